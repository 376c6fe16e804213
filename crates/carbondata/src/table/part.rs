//! One data file of a table: where its columns come from and which of its rows are left.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use arrow_array::{Array, ArrayRef, BooleanArray, UInt64Array};
use arrow_buffer::BooleanBuffer;
use arrow_cast::cast::{CastOptions, cast_with_options};
use arrow_schema::{DataType, Schema};
use pilaster_core::predicate::ZoneStatistics;
use pilaster_core::{CompareOp, Literal, Location, Result};

use super::live::Live;
use super::values::repeat;
use crate::file::ColumnNode;
use crate::file::layout::CarbonFile;
use crate::legacy::{USUAL_BLOCKLET_ROWS, open_outlined};
use crate::messages::StreamRecord;

/// What is smaller is not worth a stretch of its own.
const LEAST_STRETCH_BYTES: u64 = 1 << 10;
/// The most stretches that a file is cut into by what its index says of it alone.
const MOST_STRETCHES: u64 = 1 << 16;

/// Where the values of a table's column come from.
#[derive(Debug, Clone)]
pub(crate) enum ColumnOrigin {
    /// A column of the file.
    File(usize),
    /// One value for all rows: a partition's, or the default of a column the file does not have.
    Constant(ArrayRef),
}

/// A data file.
#[derive(Debug)]
pub(crate) struct Part {
    pub segment: String,
    /// Where the file is.
    pub place: Location,
    /// What its index says of it, which of versions 1 and 2 is not all that a scan needs.
    pub file: Arc<CarbonFile>,
    /// The file opened, of versions 1 and 2.
    pub opened: OnceLock<Arc<CarbonFile>>,
    pub live: Live,
    /// One per column of the table.
    pub origins: Vec<ColumnOrigin>,
    /// What the index says of a stream.
    pub record: Option<StreamRecord>,
    /// The bucket all its rows are in, where that follows from the hash that buckets are pruned by.
    pub bucket: Option<u32>,
    /// Position of its first row in the table.
    pub first_row: u64,
}

impl Part {
    pub fn rows(&self) -> Range<u64> {
        self.first_row..self.first_row.saturating_add(self.live.count())
    }

    /// The file with all its blocklets.
    pub fn whole(&self) -> Result<&Arc<CarbonFile>> {
        if !self.file.is_outline() {
            return Ok(&self.file);
        }
        if let Some(file) = self.opened.get() {
            return Ok(file);
        }
        let file = Arc::new(open_outlined(&self.file)?);
        Ok(self.opened.get_or_init(|| file))
    }

    /// Whether the system lets us read the file, asked by its first byte; an empty one has none.
    pub fn first_byte(&self) -> Result<()> {
        let source = &self.file.source;
        source.read_at(0..source.size().min(1)).map(drop)
    }

    /// Stretches of physical rows that may be read on their own: blocklets, where the index knows them.
    pub fn stretches(&self) -> Vec<(Range<u64>, u64)> {
        if !self.file.is_outline() {
            return self.file.blocklets.iter().map(|b| (b.rows.clone(), b.bytes())).collect();
        }
        outlined_stretches(self.file.rows, self.file.source.size())
    }

    /// Whether its rows may be in one of these buckets.
    pub fn may_be_in(&self, buckets: &[u32]) -> bool {
        self.bucket.is_none_or(|bucket| buckets.contains(&bucket))
    }

    /// The column of the table that a column of the file is, if their types are the same.
    pub fn column_of(&self, node: &ColumnNode, schema: &Schema) -> Option<usize> {
        let index = self.file.columns.iter().position(|column| column.chunk == node.chunk)?;
        let is_it = |origin: &ColumnOrigin| matches!(origin, ColumnOrigin::File(column) if *column == index);
        let column = self.origins.iter().position(is_it)?;
        let field = schema.fields().get(column)?;
        (field.data_type() == node.field.data_type()).then_some(column)
    }

    /// The statistics of zones of the file, as statistics of the table's columns.
    pub fn zones<'a>(&'a self, schema: &'a Schema, zones: &'a dyn ZoneStatistics) -> PartZones<'a> {
        PartZones { part: self, schema, zones }
    }

    /// Leaves out the deleted rows of `physical`, whose values are in `array`.
    pub fn without_deleted(&self, array: ArrayRef, physical: &Range<u64>) -> Result<ArrayRef> {
        if self.live.is_whole(physical) {
            return Ok(array);
        }
        let mask: BooleanArray = physical.clone().map(|row| Some(self.live.contains(row))).collect();
        Ok(arrow_select::filter::filter(&array, &mask)?)
    }
}

/// Stretches of about a blocklet each, with their share of the bytes. An index may say any number of rows: there are never many
/// more of them than bytes for them.
fn outlined_stretches(rows: u64, bytes: u64) -> Vec<(Range<u64>, u64)> {
    let most = (bytes / LEAST_STRETCH_BYTES).clamp(1, MOST_STRETCHES);
    let step = USUAL_BLOCKLET_ROWS.max(rows.div_ceil(most));
    let share = |part: &Range<u64>| {
        let part = u128::from(part.end.saturating_sub(part.start));
        let share = part.saturating_mul(u128::from(bytes)).checked_div(u128::from(rows));
        share.and_then(|share| u64::try_from(share).ok()).unwrap_or(bytes)
    };
    let starts = (0..rows.div_ceil(step)).map(|number| number.saturating_mul(step));
    let parts = starts.map(|first| first..first.saturating_add(step).min(rows));
    parts.map(|part| (part.clone(), share(&part))).collect()
}

/// Whether a column of this type may have been made one of the other: integers, floats and decimals become wider, and what is nested may
/// have changed inside.
pub(crate) fn may_become(from: &DataType, to: &DataType) -> bool {
    let integer =
        |data_type: &DataType| data_type.is_integer().then(|| data_type.primitive_width()).flatten();
    match (from, to) {
        _ if from == to || (from.is_nested() && to.is_nested()) => true,
        (DataType::Decimal128(precision, scale), DataType::Decimal128(wider, finer)) => {
            wider >= precision && finer >= scale
        }
        (DataType::Float32, DataType::Float64) => true,
        _ => integer(from).zip(integer(to)).is_some_and(|(from, to)| from <= to),
    }
}

/// Values of a file as values of the table, whose type may have been widened since.
pub(crate) fn widened(array: ArrayRef, data_type: &DataType) -> Result<ArrayRef> {
    let found = array.data_type();
    let is_same = match found {
        DataType::Dictionary(_, words) => words.as_ref() == data_type,
        found => found == data_type,
    };
    if is_same {
        return Ok(array);
    }
    let options = CastOptions { safe: false, ..CastOptions::default() };
    Ok(cast_with_options(&array, data_type, &options)?)
}

/// See [`Part::zones`].
pub(crate) struct PartZones<'a> {
    part: &'a Part,
    schema: &'a Schema,
    zones: &'a dyn ZoneStatistics,
}

impl PartZones<'_> {
    fn bound(&self, column: usize, of: impl Fn(usize) -> Option<ArrayRef>) -> Option<ArrayRef> {
        let data_type = self.schema.fields().get(column)?.data_type();
        match self.part.origins.get(column)? {
            ColumnOrigin::File(index) => widened(of(*index)?, data_type).ok(),
            // Nulls match no comparison, and as bounds they would say "not known".
            ColumnOrigin::Constant(value) => repeat(value, self.zones.zones()).ok(),
        }
    }
}

impl ZoneStatistics for PartZones<'_> {
    fn zones(&self) -> usize {
        self.zones.zones()
    }

    fn min(&self, column: usize) -> Option<ArrayRef> {
        self.bound(column, |index| self.zones.min(index))
    }

    fn max(&self, column: usize) -> Option<ArrayRef> {
        self.bound(column, |index| self.zones.max(index))
    }

    fn null_counts(&self, column: usize) -> Option<UInt64Array> {
        match self.part.origins.get(column)? {
            ColumnOrigin::File(index) => self.zones.null_counts(*index),
            ColumnOrigin::Constant(value) if value.is_null(0) => self.row_counts(),
            ColumnOrigin::Constant(_) => Some(UInt64Array::from(vec![0; self.zones.zones()])),
        }
    }

    fn row_counts(&self) -> Option<UInt64Array> {
        self.zones.row_counts()
    }

    fn compared(&self, column: usize, op: CompareOp, value: &Literal) -> Option<BooleanBuffer> {
        match self.part.origins.get(column)? {
            ColumnOrigin::File(index) => self.zones.compared(*index, op, value),
            ColumnOrigin::Constant(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stretches_of_an_outline_are_blocklets_and_never_many() {
        let (rows, bytes) = (300_000, 3_000_000);
        let found = outlined_stretches(rows, bytes);
        assert_eq!(
            found,
            [(0..120_000, 1_200_000), (120_000..240_000, 1_200_000), (240_000..300_000, 600_000)]
        );
        for (rows, bytes) in [(u64::MAX, u64::MAX), (u64::MAX, 0), (1 << 62, 5000), (0, 10), (1, 1 << 40)] {
            let found = outlined_stretches(rows, bytes);
            assert!(found.len() as u64 <= MOST_STRETCHES.min(1 + bytes / LEAST_STRETCH_BYTES));
            let mut next = 0;
            for (part, _) in &found {
                assert_eq!(part.start, next);
                next = part.end;
            }
            assert_eq!(next, rows);
        }
    }
}
