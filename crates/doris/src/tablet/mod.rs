//! Tablets: rowsets of segments, and what their rows are at a version.
//!
//! | module | what |
//! | --- | --- |
//! | `layout`, `digest` | where tablets lie; the checksums in the names of a backup |
//! | `database` | the metadata of a whole storage root |
//! | `meta`, `messages`, `json` | the `.hdr` file or its JSON form: schema, rowsets, versions, replaced rows |
//! | `delete_predicate` | conditions that remove rows of older rowsets |
//! | `merge`, `unions` | rows of equal keys made one |
//! | `doubts` | keys that lost rows leave uncertain |
//! | `reader`, `scan`, `segment_rows` | the dataset |
//! | `write`, `schema_message` | Arrow → a folder with the files of a tablet |

#[cfg(any(test, feature = "fuzzing"))]
mod any_bytes;
mod database;
mod delete_predicate;
mod digest;
mod doubts;
mod json;
mod layout;
mod merge;
mod messages;
mod meta;
mod reader;
mod scan;
mod schema_message;
mod segment_rows;
mod unions;
mod write;

#[cfg(any(test, feature = "fuzzing"))]
pub(crate) use any_bytes::parse_any_meta;
pub use layout::{TabletFolder, find_tablets, has_tablets};
pub use meta::{RowsetMeta, TabletMeta};
pub use reader::{TabletOptions, TabletReader};
pub use write::{TabletLayout, TabletSummary, TabletWriteOptions, TabletWriter};
