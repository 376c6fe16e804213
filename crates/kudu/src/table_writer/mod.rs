//! Writing a table as the folder of a tablet server that Kudu opens.
//!
//! ```text
//! batches ─► Arrow types Kudu has ─► rows by tablet ─► sorted by key, as much as fits in memory ─► rowsets ─► blocks
//!                                                      at the end: keys of all rowsets compared, metadata written
//! ```
//!
//! | module | what |
//! | --- | --- |
//! | `options`, `partition_options` | what can be chosen |
//! | `columns` | Arrow columns → Kudu columns |
//! | `convert` | arrays → the types of the table, without loss |
//! | `partitions` | which tablet a row belongs to |
//! | `key_ranges` | the ranges of its key columns |
//! | `key_rows` | encoded keys of many rows |
//! | `run` | rows in memory, sorted |
//! | `rowset` | sorted rows → the blocks of a rowset |
//! | `tablet` | what a tablet has: its rows in memory, its rowsets, its metadata |
//! | `duplicates` | keys that occur in several rowsets |
//! | `writer` | the whole |
//!
//! Rows may come in any order. They are sorted in memory, and each stretch of rows that memory holds becomes rowsets of its
//! own; rowsets of one tablet may overlap in key range, as in Kudu itself. A primary key that occurs twice is an error.
//!
//! ```
//! use std::sync::Arc;
//! use arrow_array::{Int64Array, RecordBatch, StringArray};
//! use pilaster_kudu::store::{KuduStore, KuduStoreOptions};
//! use pilaster_kudu::table_writer::{HashPartition, KuduTableWriter, KuduTableWriterOptions};
//!
//! # let scratch = tempfile::tempdir()?;
//! let folder = scratch.path().join("tserver");
//! let batch = RecordBatch::try_from_iter([
//!     ("id", Arc::new(Int64Array::from(vec![3, 1, 2])) as _),
//!     ("name", Arc::new(StringArray::from(vec!["c", "a", "b"])) as _),
//! ])?;
//! let options = KuduTableWriterOptions::default()
//!     .with_table_name("customers")
//!     .with_primary_key(["id"])
//!     .with_hash_partition(HashPartition::new(["id"], 2));
//! let mut writer = KuduTableWriter::try_new(&folder, batch.schema(), options)?;
//! writer.write(&batch)?;
//! let summary = writer.finish()?;
//! assert_eq!((summary.rows, summary.tablets.len()), (3, 2));
//!
//! let store = KuduStore::open(&[folder], KuduStoreOptions::default())?;
//! assert_eq!(store.tables(), ["customers"]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod columns;
mod convert;
mod duplicates;
mod key_ranges;
mod key_rows;
mod options;
mod partition_options;
mod partitions;
mod rowset;
mod run;
mod tablet;
mod writer;

pub use crate::fs::BlockManager;
pub use options::KuduTableWriterOptions;
pub use partition_options::{HashPartition, KeyBounds, RangePartition};
pub use writer::{KuduTableSummary, KuduTableWriter, TabletSummary};
