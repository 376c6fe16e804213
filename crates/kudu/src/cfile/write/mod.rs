//! Arrow → CFile.
//!
//! | module | what |
//! | --- | --- |
//! | `options` | what can be chosen, with Kudu's defaults |
//! | `values` | Arrow arrays in the form a CFile stores |
//! | `encoder` | the values of one block, for each encoding |
//! | `block` | a block being filled: nulls, arrays, values |
//! | `index` | the index trees |
//! | `sink` | header, blocks and footer as bytes |
//! | `writer` | the file |
//! | `bloom` | a bloom file |

mod block;
mod bloom;
mod encoder;
mod index;
mod options;
mod sink;
mod values;
mod writer;

pub(crate) use bloom::BloomFileWriter;
pub use options::CFileWriterOptions;
pub(crate) use values::Stored;
pub use writer::{CFileWriter, WriteSummary};
