//! Opens the columnar files of Apache Kudu, CarbonData, Doris and Redfile (and Parquet, Arrow, CSV and JSON lines) as
//! Arrow, converts between them, checks them, and saves rows out of damaged ones.
//!
//! # API map
//!
//! | to | use |
//! | --- | --- |
//! | open a file, a folder, a glob or an address | [`open()`], [`OpenOptions`] |
//! | find out what a file is | [`detect::detect`], [`Format`] |
//! | read rows | [`Dataset::scan`], then [`Scan::project`], [`Scan::filter`], [`Scan::read`] |
//! | choose rows | [`col`], [`lit`], [`Predicate`], [`RowRanges`] |
//! | print rows as text | [`text`], [`output::writer`] |
//! | write rows to a file | [`convert::convert`], [`OutputFormat`], [`output::BatchWriter`] |
//! | say what may be written over | [`overwrite::Overwrite`] |
//! | move a whole table into a folder of Parquet files, and go on after a kill | [`migrate::migrate`] |
//! | look for damage | [`verify::verify`], [`VerifyReport`] |
//! | save what is left of a damaged file | [`salvage::salvage`], [`SalvageReport`](salvage::SalvageReport) |
//! | make a damaged file whole again | [`repair::repair`] |
//! | see what a folder holds | [`ls::list`] |
//! | open a folder of tables | [`store::open_store`], [`Store`](store::Store) |
//! | name and type the columns of a file that carries none | [`schema_file`] |
//! | everything the formats share | [`core`] |
//!
//! # Open and scan
//!
//! ```
//! use pilaster::{col, lit};
//! # fn main() -> pilaster::Result<()> {
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("people.csv");
//! # std::fs::write(&path, "id,name\n1,ann\n2,bob\n3,eve\n")?;
//! # let path = path.to_str().unwrap();
//! let people = pilaster::open(path)?;
//! let mut rows = 0;
//! for batch in people.scan().project(["name"]).filter(col("id").gt(lit(1_i64))).read()? {
//!     rows += batch?.num_rows();
//! }
//! assert_eq!(rows, 2);
//! # Ok(())
//! # }
//! ```
//!
//! # Convert
//!
//! ```
//! use pilaster::convert::{ConvertOptions, ConvertTarget, convert};
//! use pilaster::core::progress::Silent;
//! use pilaster::{OutputFormat, ScanRequest};
//! # fn main() -> pilaster::Result<()> {
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("people.csv");
//! # std::fs::write(&path, "id,name\n1,ann\n2,bob\n3,eve\n")?;
//! # let (path, out) = (path.to_str().unwrap(), folder.path().join("people.parquet"));
//! let people = pilaster::open(path)?;
//! let target = ConvertTarget::new(out, OutputFormat::Parquet);
//! let done = convert(people.as_ref(), &ScanRequest::default(), &target, &ConvertOptions::default(), &Silent)?;
//! assert_eq!(done.rows, 3);
//! # Ok(())
//! # }
//! ```
//!
//! # Features
//!
//! | feature | gives |
//! | --- | --- |
//! | `carbondata` (default) | files and tables of Apache CarbonData |
//! | `doris` (default) | files of Apache Doris |
//! | `kudu` (default) | files of Apache Kudu |
//! | `redfile` (default) | Redfile |
//! | `object_store` | sources on S3, GCS, Azure and HTTP |
//! | `hdfs` | sources on HDFS |
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

mod adapted;
#[cfg(feature = "carbondata")]
pub mod carbondata;
mod concat;
pub mod convert;
pub mod detect;
#[cfg(feature = "doris")]
pub mod doris;
mod folder;
pub mod foreign;
mod formats;
mod hive;
#[cfg(feature = "kudu")]
pub mod kudu;
pub mod ls;
#[cfg_attr(
    not(test),
    expect(clippy::disallowed_methods, reason = "a migration and its journal lie on a disk")
)]
pub mod migrate;
pub mod open;
pub mod output;
pub mod overwrite;
mod paths;
pub mod recover;
#[cfg(feature = "redfile")]
pub mod redfile;
pub mod repair;
pub mod salvage;
pub mod schema_file;
pub mod store;
pub mod text;
pub mod verify;
mod widened;

pub use detect::Format;
pub use hive::write_partition_types;
pub use open::{OpenOptions, open};
pub use output::OutputFormat;
pub use paths::local_path;
pub use pilaster_core as core;
pub use pilaster_core::{
    Absence, AtomicFile, AtomicFolder, BatchReader, CompareOp, Dataset, DatasetRef, Error, ErrorKind, Extent,
    Finding, Limits, Literal, LossLog, LostCells, LostRows, OnDamage, Position, Predicate, Progress, Result,
    RowRanges, Scan, ScanPlan, ScanRequest, ScanTask, Severity, SharedFile, Source, SourceRef, TaskSpan,
    VerifyDepth, VerifyReport, col, lit,
};
