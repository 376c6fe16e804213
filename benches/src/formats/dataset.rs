//! The scans of any Pilaster dataset.

use std::ops::Range;
use std::path::Path;

use pilaster_core::predicate::{Predicate, col, lit};
use pilaster_core::{Dataset, Scan};

use crate::Result;
use crate::format::{Batches, BenchFormat, Codec};
use crate::table::{BATCH_ROWS, Table};

/// A format of Pilaster's: what is written and opened is its own, scans are those of a dataset.
pub trait DatasetFormat {
    /// As [`BenchFormat::name`].
    fn name(&self) -> &'static str;

    /// As [`BenchFormat::baseline`].
    fn baseline(&self) -> &'static str {
        super::BASELINE
    }

    /// As [`BenchFormat::has`].
    fn has(&self, _codec: Codec) -> bool {
        true
    }

    /// As [`BenchFormat::write`].
    fn write(&self, table: &Table, path: &Path, codec: Codec) -> Result<()>;

    /// Opens what was written.
    fn open(&self, path: &Path) -> Result<Box<dyn Dataset>>;
}

impl<F: DatasetFormat> BenchFormat for F {
    fn name(&self) -> &'static str {
        DatasetFormat::name(self)
    }

    fn baseline(&self) -> &'static str {
        DatasetFormat::baseline(self)
    }

    fn has(&self, codec: Codec) -> bool {
        DatasetFormat::has(self, codec)
    }

    fn write(&self, table: &Table, path: &Path, codec: Codec) -> Result<()> {
        DatasetFormat::write(self, table, path, codec)
    }

    fn full_scan(&self, path: &Path) -> Result<Batches> {
        read(self.open(path)?.scan())
    }

    fn one_column(&self, path: &Path, column: &str) -> Result<Batches> {
        read(self.open(path)?.scan().project([column]))
    }

    fn key_range(&self, path: &Path, key: &str, range: Range<i64>) -> Result<Batches> {
        let within = Predicate::And(vec![col(key).gt_eq(lit(range.start)), col(key).lt(lit(range.end))]);
        read(self.open(path)?.scan().filter(within))
    }

    fn equal_text(&self, path: &Path, columns: [&str; 2], text: &str) -> Result<Batches> {
        let [_, compared] = columns;
        read(self.open(path)?.scan().project(columns).filter(col(compared).eq(lit(text))))
    }
}

fn read(scan: Scan<'_>) -> Result<Batches> {
    Ok(Box::new(scan.batch_size(BATCH_ROWS).read()?))
}
