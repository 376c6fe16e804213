//! From bytes to Arrow.
//!
//! | module | what |
//! | --- | --- |
//! | `options` | how to open a file |
//! | `file` | an open file: footer, schema, data files, chunks |
//! | `chunk` | a column chunk: its pages as stored, its index page |
//! | `page`, `dense` | a data page: levels and values, a stretch of rows at a time |
//! | `leaf` | one column of the file by row position |
//! | `batch`, `assemble`, `values`, `encoded` | levels and values of a batch to Arrow arrays |
//! | `cursor` | one field of the Arrow schema by row position |
//! | `prune` | which rows a predicate can be true for |
//! | `reader`, `describe`, `verify` | the dataset |

mod assemble;
mod batch;
mod chunk;
mod cursor;
mod dense;
mod describe;
mod encoded;
mod file;
mod leaf;
mod options;
mod page;
mod prune;
mod reader;
pub(crate) mod salvage;
mod values;
mod verify;

#[cfg(any(test, feature = "fuzzing"))]
pub(crate) use batch::LeafBatch;
pub(crate) use chunk::Chunk;
pub(crate) use cursor::read_through;
pub(crate) use file::RedFile;
pub use options::{LostCells, RedfileReaderOptions};
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) use page::{DataPage, Scratch};
pub use reader::RedfileReader;
