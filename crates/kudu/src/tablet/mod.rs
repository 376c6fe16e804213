//! Tablets: from a superblock to rows.
//!
//! ```text
//! superblock → rowsets: base columns (CFiles) + UNDO deltas + REDO deltas ┐
//!              log: changes of rowsets not yet flushed (DMS)              ├→ live rows at a time → merged by key
//!              log: rows not yet flushed (MRS)                            ┘
//! ```

mod array_cell;
mod cells;
mod change;
mod delta;
mod merge;
mod partition;
mod rowset;
mod schema;
mod superblock;

pub use partition::Partition;
pub use schema::{KuduColumn, KuduSchema};
pub use superblock::{RowSetMetadata, TabletMetadata, TabletState};
