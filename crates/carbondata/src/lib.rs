//! Apache CarbonData's files, without Spark.
//!
//! | module | what |
//! | --- | --- |
//! | [`mod@file`] | the columnar file of version 3: `.carbondata`, and its index: `.carbonindex` |
//! | [`table`] | whole tables: segments, partitions, deleted rows, schema changes, earlier states, repair; folders the SDK wrote |
//! | [`messages`] | the Thrift structs of data and index files |
//!
//! ```no_run
//! use pilaster_carbondata::file::CarbonFileReader;
//! use pilaster_core::source::open_source;
//! use pilaster_core::Dataset;
//!
//! let file = CarbonFileReader::open(open_source("part-0-0_batchno0-0-0-1.snappy.carbondata")?)?;
//! for batch in file.scan().project(["id"]).read()? {
//!     println!("{} rows", batch?.num_rows());
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Writing: [`file::CarbonFileWriter`] for one file, [`table::CarbonFolderWriter`] for a folder as the SDK makes it,
//! [`table::CarbonTableWriter`] for new tables and loads into others, [`table::compact`] to merge segments.
#![deny(missing_docs)]
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]
#![cfg_attr(
    test,
    allow(
        clippy::arithmetic_side_effects,
        clippy::cast_possible_truncation,
        clippy::indexing_slicing,
        clippy::unwrap_used,
        clippy::panic,
        reason = "tests compute with known values"
    )
)]

pub mod file;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzzing;
mod legacy;
pub mod messages;
pub mod table;
