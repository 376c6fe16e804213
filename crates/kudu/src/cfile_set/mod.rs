//! A CFile set: a table as a folder with one CFile per column and a manifest.
//!
//! ```text
//! lineitem/
//!   cfile-set.json          names, files, row count, key column, the Arrow schema
//!   0000-l_orderkey.cfile   one CFile per column, row i of each is row i of the table
//!   0001-l_partkey.cfile
//! ```
//!
//! The CFiles are ordinary ones that Kudu's own tool reads. What a CFile cannot say (names, precision and scale, text
//! widths, time units) is in the manifest, so that a table goes through a set and comes back without loss.

mod dataset;
mod lost;
mod manifest;
mod writer;

pub use dataset::{CFileSet, CFileSetOptions};
pub use manifest::MANIFEST_NAME;
pub use writer::{CFileSetWriter, CFileSetWriterOptions, SetSummary};
