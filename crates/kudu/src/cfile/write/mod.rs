//! Arrow → CFile.
//!
//! | module | what |
//! | --- | --- |
//! | `options` | what can be chosen, with Kudu's defaults |
//! | `values` | Arrow arrays in the form a CFile stores |
//! | `encoder` | the values of one block, for each encoding |
//! | `block` | a block being filled: nulls, arrays, values |
//! | `index` | the index trees |
//! | `writer` | the file |

mod block;
mod encoder;
mod index;
mod options;
mod values;
mod writer;

pub use options::CFileWriterOptions;
pub use writer::{CFileWriter, WriteSummary};
