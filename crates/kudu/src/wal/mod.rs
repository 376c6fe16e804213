//! The write-ahead log: what was not yet flushed when the server died.
//!
//! | module | what |
//! | --- | --- |
//! | `segment` | bytes of a segment → entries, torn tails and damage told apart |
//! | `row_ops` | the rows of a write request |
//! | `replay` | entries → rows and changes, as the server's own bootstrap would decide |
//! | `describe` | the log as a list for people |
//! | `memory` | the rows that were in memory only |

mod describe;
mod memory;
mod replay;
mod row_ops;
mod segment;

pub use describe::LogLine;
pub(crate) use describe::lines;
pub(crate) use memory::MemoryRows;
pub(crate) use replay::{LogReport, Replay, Uncommitted};
pub(crate) use segment::{Segment, read_segments};
