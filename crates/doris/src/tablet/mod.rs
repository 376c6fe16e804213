//! Tablets: rowsets of segments, and what their rows are at a version.
//!
//! | module | what |
//! | --- | --- |
//! | `layout`, `walk`, `digest` | where tablets lie; the checksums in the names of a backup |
//! | `database` | the metadata of a whole storage root |
//! | `header`, `meta`, `messages`, `json` | the `.hdr` file or its JSON form: schema, rowsets, versions |
//! | `deleted` | rows that newer ones replaced |
//! | `delete_predicate`, `delete_values` | conditions that remove rows of older rowsets |
//! | `addresses` | IP addresses as numbers |
//! | `merge`, `unions` | rows of equal keys made one |
//! | `doubts` | keys that lost rows leave uncertain |
//! | `options`, `opening`, `reader`, `scan`, `order`, `segment_rows` | the dataset |
//! | `describe` | what it says of itself |
//! | `write`, `schema_message` | Arrow → a folder with the files of a tablet |

mod addresses;
#[cfg(any(test, feature = "fuzzing"))]
mod any_bytes;
mod database;
mod delete_predicate;
mod delete_values;
mod deleted;
mod describe;
mod digest;
mod doubts;
mod header;
mod json;
mod layout;
mod merge;
mod messages;
mod meta;
mod opening;
mod options;
mod order;
#[cfg(test)]
mod patched_tests;
mod reader;
mod scan;
mod schema_message;
mod segment_rows;
mod unions;
mod walk;
mod write;

#[cfg(any(test, feature = "fuzzing"))]
pub(crate) use any_bytes::parse_any_meta;
pub use layout::{
    FoundTablets, TabletFolder, find_tablets, has_tablets, is_segment_of_tablet, is_tablet_folder,
};
pub use meta::{RowsetMeta, TabletMeta, TabletState};
pub use options::TabletOptions;
pub use reader::TabletReader;
pub use write::{TabletLayout, TabletSummary, TabletWriteOptions, TabletWriter};
