//! What is measured of a format.

use std::ops::Range;
use std::path::Path;

use arrow_array::RecordBatch;
use arrow_schema::ArrowError;
use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use crate::Result;
use crate::table::Table;

/// A codec that the formats measured here have, or most of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Codec {
    None,
    Lz4,
    Snappy,
    Zlib,
}

impl Codec {
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Lz4 => "lz4",
            Self::Snappy => "snappy",
            Self::Zlib => "zlib",
        }
    }
}

/// Batches as they are read.
pub type Batches = Box<dyn Iterator<Item = Result<RecordBatch, ArrowError>>>;

/// A format under measurement. Every scan begins with opening the file.
pub trait BenchFormat {
    /// Its name in tables and on the command line.
    fn name(&self) -> &'static str;

    /// The name of the format it is compared with.
    fn baseline(&self) -> &'static str {
        crate::formats::BASELINE
    }

    /// Whether it has this codec.
    fn has(&self, _codec: Codec) -> bool {
        true
    }

    /// Writes the table to `path`, which does not exist; durable when this returns.
    fn write(&self, table: &Table, path: &Path, codec: Codec) -> Result<()>;

    /// Reads all columns.
    fn full_scan(&self, path: &Path) -> Result<Batches>;

    /// Reads one column.
    fn one_column(&self, path: &Path, column: &str) -> Result<Batches>;

    /// Reads all columns of the rows whose `key` lies in `range`.
    fn key_range(&self, path: &Path, key: &str, range: Range<i64>) -> Result<Batches>;

    /// Reads two columns of the rows whose second one is `text`.
    fn equal_text(&self, path: &Path, columns: [&str; 2], text: &str) -> Result<Batches>;
}
