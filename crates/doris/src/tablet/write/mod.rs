//! Arrow → a folder with the files of a tablet.
//!
//! ```text
//! <tablet id>/<schema hash>/<tablet id>.hdr           schema, rowsets, versions, replaced rows
//!                           <rowset id>_<n>.dat       segments
//! ```
//!
//! The form of a snapshot, which a cluster restores. A rowset is what one load wrote; versions start with the empty
//! rowset [0-1]. Rows come in any order: they are sorted by key over the whole rowset, in temporary files where memory ends, and
//! made one where keys are equal, by the rule of the table's model. A merge-on-write table of several loads also notes the keys
//! of all rows, and marks those that a later one replaces.
//!
//! | module | what |
//! | --- | --- |
//! | `options` | what can be chosen |
//! | `sorted` | rows in the order of segments: sorted, merged |
//! | `replaced` | rows that later ones replace |
//! | `size` | whether a segment is worth compressing |
//! | `header` | the metadata file |
//! | `writer` | the folder |

mod header;
mod options;
mod replaced;
mod size;
mod sorted;
mod writer;

pub use options::{TabletLayout, TabletWriteOptions};
pub use writer::{TabletSummary, TabletWriter};
