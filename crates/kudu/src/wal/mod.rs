//! The write-ahead log: what was not yet flushed when the server died.
//!
//! | module | what |
//! | --- | --- |
//! | `segment` | bytes of a segment → entries, torn tails and damage told apart |
//! | `coverage` | which operations a log holds, and which it has lost |
//! | `row_ops` | the rows of a write request |
//! | `keyed_op` | row operations with keys and cells by column id |
//! | `replay` | entries → rows and changes, as the server's own bootstrap would decide |
//! | `memory` | the rows that were in memory only |

mod coverage;
mod keyed_op;
mod memory;
mod replay;
mod row_ops;
mod segment;

pub(crate) use coverage::Coverage;
pub(crate) use memory::MemoryRows;
pub(crate) use replay::{LogReport, Method, Replay, Uncommitted};
pub(crate) use segment::{Log, SegmentEnd, read_log};
