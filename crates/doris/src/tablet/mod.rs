//! Tablets: rowsets of segments, and what their rows are at a version.
//!
//! | module | what |
//! | --- | --- |
//! | `layout` | where tablets lie |
//! | `meta`, `messages` | the `.hdr` file: schema, rowsets, versions, replaced rows |
//! | `delete_predicate` | conditions that remove rows of older rowsets |
//! | `merge`, `unions` | rows of equal keys made one |
//! | `reader`, `scan` | the dataset |
//! | `write`, `schema_message` | Arrow → a folder with the files of a tablet |

mod delete_predicate;
mod layout;
mod merge;
mod messages;
mod meta;
mod reader;
mod scan;
mod schema_message;
mod unions;
mod write;

pub use layout::{TabletFolder, find_tablets, has_tablets};
pub use meta::{RowsetMeta, TabletMeta};
pub use reader::{TabletOptions, TabletReader};
pub use write::{TabletLayout, TabletSummary, TabletWriteOptions, TabletWriter};
