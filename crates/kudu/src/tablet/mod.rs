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
mod key_range;
mod merge;
mod partition;
mod replica;
mod rowset;
mod rowset_report;
mod schema;
mod superblock;
mod table;
mod tablet_rows;

pub(crate) use cells::to_array as cells_to_array;
pub(crate) use change::{ChangeBuilder, ChangeKind, ChangeList};
pub use partition::Partition;
pub use replica::LogUse;
pub(crate) use replica::{Replica, Tablet, voters};
pub(crate) use rowset::{Blocks, RowSet, Snapshot};
pub use schema::{KuduColumn, KuduSchema};
pub(crate) use superblock::TransactionState;
pub use superblock::{RowSetMetadata, TabletMetadata, TabletState};
pub use table::KuduTable;
