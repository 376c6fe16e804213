//! Apache Doris's files, without a cluster.
//!
//! | module | what |
//! | --- | --- |
//! | [`segment`] | the columnar file, read and written: `.dat` of storage formats V2 and V3, and of Doris 0.12 |
//! | [`tablet`] | the rows of a tablet at a version: rowsets, key models, delete bitmaps and predicates; and new tablets |
//! | [`schema`] | names and models of columns, which a segment does not know |
//! | [`index_file`] | containers of inverted and ANN indexes |
//! | [`jsonb`] | JSON documents in binary |
//!
//! ```no_run
//! use std::sync::Arc;
//! use pilaster_core::Dataset;
//! use pilaster_core::source::open_source;
//! use pilaster_doris::TabletSchema;
//! use pilaster_doris::segment::{SegmentReader, SegmentReaderOptions};
//!
//! let schema = TabletSchema::parse_json(&std::fs::read("schema.json")?)?;
//! let options = SegmentReaderOptions::default().with_schema(Some(Arc::new(schema)));
//! let segment = SegmentReader::open_with_options(open_source("0200000000000001_0.dat")?, &options)?;
//! for batch in segment.scan().project(["id"]).read()? {
//!     println!("{} rows", batch?.num_rows());
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Writing, from any Arrow schema:
//!
//! ```no_run
//! use std::path::Path;
//! use pilaster_doris::{TableModel, TabletSchema};
//! use pilaster_doris::tablet::{TabletWriteOptions, TabletWriter};
//! # fn rows() -> arrow_array::RecordBatch { unimplemented!() }
//!
//! let batch = rows();
//! let schema = TabletSchema::from_arrow(&batch.schema(), &TableModel::duplicate(["id"]))?;
//! let mut writer = TabletWriter::create(Path::new("snapshot"), &schema, &TabletWriteOptions::default())?;
//! writer.write(&batch)?;
//! writer.finish()?;
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
        clippy::indexing_slicing,
        reason = "tests compute with known values"
    )
)]

mod calendar;
mod decimal;
mod from_arrow;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzzing;
pub mod index_file;
mod json_text;
pub mod jsonb;
mod jsonb_writer;
mod messages;
pub mod schema;
pub mod segment;
pub mod tablet;

pub use from_arrow::TableModel;
pub use schema::{KeysType, SchemaColumn, SchemaIndex, TabletSchema};
