//! Data files of version 3.
//!
//! ```text
//! FileHeader                 columns; no magic, no length: found by parsing
//! blocklet 0
//!   column chunk 0           header | page 0 | page 1 | …
//!   column chunk 1           …
//! blocklet 1 …
//! FileFooter3                blocklets with their statistics
//! footer offset              8 bytes, big-endian
//! ```
//!
//! Every node of a nested column has a chunk of its own, parents before children. See `docs/formats/carbondata-file.md`.

pub(crate) mod calendar;
mod chunk;
pub(crate) mod cursor;
pub(crate) mod describe;
mod index;
pub(crate) mod layout;
pub(crate) mod meta;
pub(crate) mod page;
pub(crate) mod prune;
mod reader;
pub(crate) mod recover;
pub(crate) mod statistics;
pub(crate) mod stream;
pub(crate) mod types;
pub(crate) mod verify;
pub(crate) mod write;

pub use calendar::Calendar;
pub use index::IndexFile;
pub use reader::{CarbonFileOptions, CarbonFileReader};
pub use types::{CarbonType, ColumnNode};
pub use write::{
    CarbonFileWriter, CarbonWriterOptions, Compressor, FileIndex, WriteSummary, index_file, storable_type,
};
