//! Arrow → a folder with the files of a tablet.
//!
//! ```text
//! <tablet id>/<schema hash>/<tablet id>.hdr           schema, rowsets, versions, replaced rows
//!                           <rowset id>_<n>.dat       segments
//! ```
//!
//! The form of a snapshot, which a cluster restores. A rowset is what one load wrote; versions start with the empty
//! rowset [0-1]. Rows come in any order: as many as fit a segment are gathered, sorted by key, and made one where keys are
//! equal, by the rule of the table's model. A merge-on-write table also remembers the keys of all rows, and marks
//! those that a later one replaces.
//!
//! | module | what |
//! | --- | --- |
//! | `options` | what can be chosen |
//! | `prepare` | rows of one segment: sorted, merged |
//! | `replaced` | rows that later ones replace |
//! | `size` | whether a segment is worth compressing |
//! | `header` | the metadata file |
//! | `writer` | the folder |

mod header;
mod options;
mod prepare;
mod replaced;
mod size;
mod writer;

pub use options::{TabletLayout, TabletWriteOptions};
pub use writer::{TabletSummary, TabletWriter};
