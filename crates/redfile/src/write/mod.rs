//! From Arrow to bytes.
//!
//! | module | what |
//! | --- | --- |
//! | `options` | how to write a file |
//! | `shred` | records to levels and values, a batch at a time |
//! | `values` | Arrow values to physical ones |
//! | `strings` | byte strings of any Arrow form to those of a page |
//! | `page` | the page that is being filled |
//! | `stored` | finished pages |
//! | `statistics` | bounds and counts of pages and chunks |
//! | `column` | one column of a row group: pages as they will be stored |
//! | `writer` | row groups, checkpoints, footer |
//! | `table` | a metadata file over several files |

mod column;
mod options;
mod page;
mod shred;
mod statistics;
mod stored;
mod strings;
mod table;
mod values;
mod writer;

pub use options::{EncodingChoice, RedfileWriterOptions};
pub use table::write_table_file;
pub use writer::{DataFile, RedfileWriter, WriteSummary};

pub(crate) use column::value_width;
pub(crate) use statistics::Extremes;
pub(crate) use writer::StoredChunk;
