//! The write-ahead log: what was not yet flushed when the server died.
//!
//! | module | what |
//! | --- | --- |
//! | `segment` | bytes of a segment → entries, torn tails and damage told apart |
//! | `coverage` | which operations a log holds, and which it has lost |
//! | `row_ops` | the rows of a write request |
//! | `keyed_op` | row operations with keys and cells by column id |
//! | `replay` | entries → rows and changes, as the server's own bootstrap would decide |
//! | `describe` | the log as a list for people |
//! | `memory` | the rows that were in memory only |
//! | `new_log` | the log of a tablet that was never on a server |

mod coverage;
mod describe;
mod keyed_op;
mod memory;
mod new_log;
mod replay;
mod row_ops;
mod segment;
mod written;

pub(crate) use coverage::Coverage;
pub use describe::LogLine;
pub(crate) use describe::{Secrets, lines};
pub(crate) use memory::{MemoryCursor, MemoryRow, MemoryRows};
pub(crate) use new_log::{FIRST_SEGMENT, FIRST_TERM, first_segment};
pub(crate) use replay::{LogReport, Losses, Method, Replay, Uncommitted};
pub(crate) use row_ops::RangeBoundsWriter;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) use row_ops::parse_rows;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) use segment::parse_segment;
pub(crate) use segment::{Log, Segment, SegmentEnd, read_headers, read_log};
pub(crate) use written::Written;
