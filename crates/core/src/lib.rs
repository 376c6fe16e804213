//! What all formats share, said once.
//!
//! | module | what it says |
//! | --- | --- |
//! | [`source`] | where bytes come from: [`Source`], with positioned reads |
//! | [`dataset`] | what a file or a table is: [`Dataset`], [`Scan`] |
//! | [`plan`] | what a scan will read, as tasks: [`ScanPlan`], [`ScanTask`] |
//! | [`positional`] | the scan of every format whose columns can be read by row position |
//! | [`predicate`] | which rows are wanted: [`Predicate`], evaluated on rows, on zones and on key ranges |
//! | [`rows`] | sets of row positions: [`RowRanges`] |
//! | [`describe`] | what a file says of itself: structure, pages, column statistics |
//! | [`verify`] | what is wrong with a file: [`Finding`], [`VerifyReport`] |
//! | [`salvage`] | which rows could not be given: [`LossLog`], [`LostRows`] |
//! | [`atomic`] | files and folders that appear complete or not at all |
//! | [`buffers`] | memory for blocks, used again |
//! | [`limits`] | how much a file may make us allocate: [`Limits`] |
//! | [`kept`] | the block that a column of a scan is in: [`Kept`](kept::Kept) |
//! | [`memory`] | what a scan holds at a time, over all of its columns: [`ScanMemory`] |
//! | [`fitting`] | batches that fit in memory once their values are written out |
//! | [`storage`] | where files lie: [`Location`], a path in a [`Storage`](storage::Storage) |
//! | [`stream`] | a scan's request applied to batches that come in order |
//! | [`progress`] | how far long work has come: [`Progress`] |
//! | [`merge`] | sources of rows in key order made one |
//! | [`sort`] | rows in the order of keys, in temporary files where memory ends |
//! | [`numbers`] | Arrow numbers over decoded bytes, without a copy |
//! | [`order`] | columns in another order than that of their type: addresses |
//! | [`pieces`] | the rows that one read takes out of several blocks, as one array |
//! | [`protobuf`] | messages that files hold, read within limits |
//! | [`validity`] | which rows of a block hold a value |
//! | [`views`] | Arrow string views over decoded bytes, without a copy |
//! | [`widen`] | the types in which rows leave |
//! | [`wrapper`] | datasets around other datasets: [`Wrapper`] |
//! | [`error`] | what failed, where, what was expected and what was found: [`Error`] |
//!
//! # Features
//!
//! | feature | gives |
//! | --- | --- |
//! | `object_store` | sources on S3, GCS, Azure and HTTP |
//! | `hdfs` | sources on HDFS |
#![deny(missing_docs)]
#![forbid(unsafe_code)]
#![cfg_attr(
    test,
    allow(
        clippy::arithmetic_side_effects,
        clippy::cast_possible_truncation,
        reason = "tests compute with known values"
    )
)]

pub mod atomic;
pub mod buffers;
pub mod dataset;
pub mod describe;
pub mod error;
pub mod fitting;
#[doc(hidden)]
pub mod fuzzing;
pub mod kept;
pub mod limits;
pub mod memory;
pub mod merge;
pub mod numbers;
pub mod order;
pub mod pieces;
pub mod plan;
pub mod positional;
pub mod predicate;
pub mod progress;
pub mod protobuf;
pub mod rows;
pub mod salvage;
pub mod sort;
pub mod source;
pub mod storage;
pub mod stream;
pub mod validity;
pub mod verify;
pub mod views;
pub mod widen;
pub mod wrapper;

pub use atomic::{AtomicFile, AtomicFolder};
pub use dataset::{Absence, BatchReader, Dataset, DatasetRef, OnDamage, Partition, Scan, ScanRequest};
pub use error::{CallOption, Error, ErrorKind, Position, Result};
pub use limits::Limits;
pub use memory::ScanMemory;
pub use plan::{PlannedScan, ScanPlan, ScanTask, TaskSpan};
pub use predicate::{CompareOp, Literal, Predicate, col, lit};
pub use progress::Progress;
pub use rows::RowRanges;
pub use salvage::{Extent, LossLog, LostCells, LostRows};
pub use source::{Source, SourceRef};
pub use storage::{Location, NewFile, NewFolder, SharedFile};
pub use verify::{Finding, Severity, VerifyDepth, VerifyReport};
pub use wrapper::Wrapper;
