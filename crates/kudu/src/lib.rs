//! Apache Kudu's files, without a cluster.
//!
//! | module | what |
//! | --- | --- |
//! | [`cfile`] | the columnar file: one column, one delta file, one bloom file or one compound-key index |
//! | [`cfile_set`] | a folder with one CFile per column and a manifest: a whole table of ours |
//! | [`key`] | how Kudu encodes key values so that they compare as bytes |
//! | [`store`], [`tablet`], [`wal`], [`fs`] | the disks of servers: tables, tablets, logs, blocks |
//! | [`table_writer`] | a table as the folder of a tablet server that Kudu starts on |
//! | [`partition_hash`] | which hash bucket a row belongs to |
//!
//! ```
//! use std::sync::Arc;
//! use arrow_array::{ArrayRef, Int32Array};
//! use arrow_schema::{DataType, Field};
//! use pilaster_core::source::MemorySource;
//! use pilaster_core::Dataset;
//! use pilaster_kudu::cfile::{CFileReader, CFileWriter, CFileWriterOptions};
//!
//! let values: ArrayRef = Arc::new(Int32Array::from_iter_values(0..1000));
//! let field = Field::new("value", DataType::Int32, false);
//! let mut writer = CFileWriter::try_new(Vec::new(), &field, CFileWriterOptions::default())?;
//! writer.write_array(&values)?;
//! let (bytes, summary) = writer.finish()?;
//! assert_eq!(summary.rows, 1000);
//!
//! let file = CFileReader::open(Arc::new(MemorySource::new("example.cfile", bytes)))?;
//! let rows: usize = file.scan().read()?.map(|batch| batch.map(|b| b.num_rows())).sum::<Result<_, _>>()?;
//! assert_eq!(rows, 1000);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![deny(missing_docs)]
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]
#![cfg_attr(
    test,
    allow(
        clippy::arithmetic_side_effects,
        clippy::cast_possible_truncation,
        reason = "tests compute with known values"
    )
)]

#[cfg(test)]
extern crate self as pilaster_kudu;

pub mod cfile;
pub mod cfile_set;
pub mod fs;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzzing;
pub mod key;
mod messages;
pub mod partition_hash;
pub mod store;
pub mod table_writer;
pub mod tablet;
pub mod wal;
