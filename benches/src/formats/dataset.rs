//! The scans of any Pilaster dataset.

use std::ops::Range;

use pilaster_core::predicate::{Predicate, col, lit};
use pilaster_core::{Dataset, Scan};

use crate::Result;
use crate::format::Batches;
use crate::table::BATCH_ROWS;

pub fn full_scan(dataset: &dyn Dataset) -> Result<Batches> {
    read(dataset.scan())
}

pub fn one_column(dataset: &dyn Dataset, column: &str) -> Result<Batches> {
    read(dataset.scan().project([column]))
}

pub fn key_range(dataset: &dyn Dataset, key: &str, range: Range<i64>) -> Result<Batches> {
    let within = Predicate::And(vec![col(key).gt_eq(lit(range.start)), col(key).lt(lit(range.end))]);
    read(dataset.scan().filter(within))
}

pub fn equal_text(dataset: &dyn Dataset, columns: [&str; 2], text: &str) -> Result<Batches> {
    let [_, compared] = columns;
    read(dataset.scan().project(columns).filter(col(compared).eq(lit(text))))
}

fn read(scan: Scan<'_>) -> Result<Batches> {
    Ok(Box::new(scan.batch_size(BATCH_ROWS).read()?))
}
