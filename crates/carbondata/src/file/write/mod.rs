//! From Arrow to data files and index files.
//!
//! | module | what |
//! | --- | --- |
//! | `options` | how to write |
//! | `columns` | Arrow schemas to the columns of headers |
//! | `encoder` | rows to pages to blocklets |
//! | `nested` | nested columns to the pages of their nodes |
//! | `chunk`, `chunk_bytes` | one column of a blocklet |
//! | `numbers`, `strings` | values to the bytes of pages |
//! | `table_codes` | values to codes of a table's dictionary |
//! | `release` | what older readers expect to be otherwise |
//! | `bounds` | least and greatest values |
//! | `writer` | header, blocklets, footer; index files |

mod bounds;
mod chunk;
mod chunk_bytes;
pub(crate) mod columns;
pub(crate) mod encoder;
mod nested;
mod numbers;
mod options;
mod release;
pub(crate) mod strings;
pub(crate) mod table_codes;
pub(crate) mod writer;

pub use columns::storable_type;
pub use options::{CarbonWriterOptions, Compressor};
pub(crate) use release::Release;
pub(crate) use table_codes::TableCodes;
pub use writer::{CarbonFileWriter, FileIndex, WriteSummary, index_file};
