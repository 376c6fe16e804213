//! Tablets: from a superblock to rows.
//!
//! ```text
//! superblock → rowsets: base columns (CFiles) + UNDO deltas + REDO deltas ┐
//!              log: changes of rowsets not yet flushed (DMS)              ├→ live rows at a time → merged by key
//!              log: rows not yet flushed (MRS)                            ┘
//! ```

mod array_cell;
mod belonging;
mod cells;
mod change;
mod choice;
mod completeness;
mod delta;
mod encoded_keys;
mod found;
mod history;
mod key_index;
mod key_range;
#[cfg(test)]
mod late_tests;
mod lenient;
mod log_reach;
mod lost_log;
mod lost_rows;
mod merge;
mod opening;
mod overlay;
mod ownership;
mod partition;
mod probe;
mod rebuild;
mod replica;
mod restore;
mod row_filter;
mod rowset;
mod rowset_reader;
mod rowset_report;
mod salvage;
#[cfg(test)]
mod scan_tests;
mod schema;
mod superblock;
mod table;
mod table_scan;
mod tablet_rows;
mod units;
mod unread_parts;
mod verify;

#[cfg(any(test, feature = "fuzzing"))]
pub(crate) use array_cell::parse_array_cells;
pub(crate) use belonging::assign_tables;
pub(crate) use cells::to_array as cells_to_array;
pub(crate) use change::{ChangeBuilder, ChangeKind, ChangeList};
pub(crate) use choice::{at_common_time, open_best};
pub(crate) use completeness::{Completeness, completeness};
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) use delta::DeltaFile;
pub(crate) use found::{FoundTablet, find_tablets, logged_tablets, tablet_id};
pub(crate) use history::History;
pub(crate) use key_range::KeyRange;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) use lenient::parse as parse_damaged_superblock;
pub(crate) use opening::log_damage;
pub(crate) use ownership::attach_rowsets;
pub use partition::Partition;
pub(crate) use rebuild::{belongs_to_undo, key_columns};
pub use replica::LogUse;
pub(crate) use replica::{Replica, Tablet, Witness, voters};
pub(crate) use rowset::{Blocks, RowSet, Snapshot};
pub use schema::{KuduColumn, KuduSchema};
pub(crate) use superblock::TransactionState;
pub use superblock::{RowSetMetadata, TabletMetadata, TabletState};
pub use table::KuduTable;
pub(crate) use table::Parts;
pub(crate) use unread_parts::UnreadPart;
