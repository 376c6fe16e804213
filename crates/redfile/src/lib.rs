//! Redfile: the nested columnar format that became Parquet, with the recovery its authors only planned.
//!
//! ```text
//! "RED1" | [checkpoint] | row group | [sync block] | row group | … | file metadata | distance, u32 | "RED1"
//!
//! row group     column chunk | column metadata | column chunk | column metadata | …
//! column chunk  data page | data page | … | [index page]
//! page          page header | body: definition levels, repetition levels, values; compressed as one
//! ```
//!
//! Metadata is Thrift, compact protocol. Everything is found through offsets; everything is written in one pass.
//! `docs/formats/redfile.md` has every byte.
//!
//! | module | what |
//! | --- | --- |
//! | [`metadata`] | what a file says of itself, typed |
//! | [`schema`](RedfileSchema) | the schema as the file has it and as Arrow has it |
//! | [`RedfileReader`] | reading: any nesting to Arrow, pruning, tolerant scans |
//! | [`RedfileWriter`] | writing, with checkpoints |
//! | [`recover`](recover()) | the metadata of a file whose footer is damaged or missing |
//! | [`repair`](repair()) | a damaged file made whole again |
//!
//! ```
//! use std::sync::Arc;
//! use arrow_array::{ArrayRef, Int32Array, RecordBatch};
//! use pilaster_core::source::MemorySource;
//! use pilaster_core::Dataset;
//! use pilaster_redfile::{RedfileReader, RedfileWriter, RedfileWriterOptions};
//!
//! let values: ArrayRef = Arc::new(Int32Array::from_iter_values(0..1000));
//! let batch = RecordBatch::try_from_iter([("value", values)])?;
//! let mut writer = RedfileWriter::try_new(Vec::new(), &batch.schema(), RedfileWriterOptions::default())?;
//! writer.write(&batch)?;
//! let (bytes, summary) = writer.finish()?;
//! assert_eq!(summary.rows, 1000);
//!
//! let file = RedfileReader::open(Arc::new(MemorySource::new("example.red", bytes)))?;
//! let again = file.scan().read()?.collect::<Result<Vec<_>, _>>()?;
//! assert_eq!(again, [batch]);
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

#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzzing;
mod gather;
pub mod metadata;
mod read;
mod recover;
mod repair;
mod schema;
mod thrift;
mod write;

#[doc(hidden)]
pub use read::salvage::inspect_levels;
pub use read::salvage::{Loss, LossReason, Note, SalvageReport};
pub use read::{LostCells, RedfileReader, RedfileReaderOptions};
#[doc(hidden)]
pub use recover::kernels;
pub use recover::{Effort, Recovery, RecoveryReport, RecoverySource, RecoveryStatus, Rest, recover};
pub use repair::{InPlaceRepair, RepairOptions, RepairReport, repair, repair_in_place, write_sidecar};
pub use schema::RedfileSchema;
pub use write::{
    DataFile, EncodingChoice, RedfileWriter, RedfileWriterOptions, WriteSummary, write_table_file,
};
