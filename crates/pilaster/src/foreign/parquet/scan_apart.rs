//! Rows whose pages are too large to be open in all columns at once: read one column after the other, some rows at a time.
//!
//! What a column gives is copied out of its pages before the next one is opened. Pages are unpacked again for the next rows, so this is
//! for what could not be read otherwise.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, Int64Array, RecordBatch, RecordBatchOptions};
use arrow_schema::{Field, Schema};
use arrow_select::filter::filter_record_batch;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ParquetRecordBatchReaderBuilder};
use pilaster_core::dataset::column_index;
use pilaster_core::kept::copied_out;
use pilaster_core::{Error, Result, RowRanges, fitting};

use super::scan::{ParquetScan, Stretch, selection};
use crate::foreign::guard::guarded;

/// Most rows that are read at once.
const MOST_ROWS: usize = 1 << 16;

/// How far a stretch was read so.
#[derive(Debug)]
pub(super) struct Apart {
    arrow: ArrowReaderMetadata,
    /// What is read: the columns of the answer, then those that are only compared.
    columns: Vec<usize>,
    /// How many rows are read at once.
    rows: u64,
    /// Rows of the answer that were given before.
    skip: u64,
}

impl Apart {
    pub(super) fn new(scan: &ParquetScan, stretch: &Stretch, given: u64) -> Result<Self> {
        let schema = scan.file.arrow.schema();
        let mut columns: Vec<usize> = scan.read_columns.clone();
        columns.retain(|column| !stretch.filled.contains(column));
        for name in scan.predicate.iter().flat_map(|predicate| predicate.columns()) {
            let column = column_index(schema, name)?;
            if !columns.contains(&column) {
                columns.push(column);
            }
        }
        let rows = scan.memory.fitting_rows(&schema.project(&columns)?, MOST_ROWS) as u64;
        Ok(Self { arrow: scan.with_views(false)?, columns, rows, skip: given })
    }
}

impl ParquetScan {
    /// The next rows of a stretch that match, with row numbers behind the columns; `None` if none of it is left to look at.
    pub(super) fn read_apart(&self, stretch: &mut Stretch, apart: &mut Apart) -> Result<Option<RecordBatch>> {
        loop {
            let (rows, rest) = split(&stretch.rows, apart.rows);
            if rows.is_empty() {
                return Ok(None);
            }
            let count = rows.count();
            self.memory.start(count);
            let read = self.read_columns_apart(stretch.group, &rows, apart);
            self.memory.start(0);
            match read {
                Err(error) if fitting::is_too_large(&error) && count > 1 => apart.rows = count / 2,
                Err(error) => return Err(error),
                Ok(arrays) => {
                    stretch.rows = rest;
                    return self.matching(arrays, &rows, stretch, apart).map(Some);
                }
            }
        }
    }

    fn read_columns_apart(&self, group: usize, rows: &RowRanges, apart: &Apart) -> Result<Vec<ArrayRef>> {
        apart.columns.iter().map(|column| self.read_column(group, rows, *column, &apart.arrow)).collect()
    }

    fn read_column(
        &self,
        group: usize,
        rows: &RowRanges,
        column: usize,
        arrow: &ArrowReaderMetadata,
    ) -> Result<ArrayRef> {
        let (_, all) = self.file.group(group)?;
        let count = usize::try_from(rows.count()).unwrap_or(usize::MAX);
        self.chunks.clear();
        let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(self.chunks.clone(), arrow.clone())
            .with_row_groups(vec![group])
            .with_batch_size(count)
            .with_projection(ProjectionMask::roots(arrow.parquet_schema(), [column]))
            .with_row_selection(selection(rows, &all));
        let batches = guarded(|| builder.build()?.collect::<std::result::Result<Vec<_>, _>>())
            .map_err(|error| self.file.group_error(group, &self.chunks, error))?;
        let arrays: Vec<_> = batches.iter().filter_map(|batch| batch.columns().first()).collect();
        let array = match arrays.as_slice() {
            [one] => Arc::clone(one),
            several => {
                let several: Vec<&dyn Array> = several.iter().map(AsRef::as_ref).collect();
                arrow_select::concat::concat(&several)?
            }
        };
        if array.len() != count {
            return Err(Error::corrupt(format!("{count} rows"), array.len()).at(
                self.file.source.name(),
                0,
                "parquet row group",
            ));
        }
        copied_out(&array, &self.memory)
    }

    /// The rows for which the predicate is true, those left out that were given before.
    fn matching(
        &self,
        mut arrays: Vec<ArrayRef>,
        rows: &RowRanges,
        stretch: &Stretch,
        apart: &mut Apart,
    ) -> Result<RecordBatch> {
        let width = self.read_columns.len().saturating_sub(stretch.filled.len());
        let numbers = rows.as_slice().iter().flat_map(|range| range.clone());
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(numbers.map(u64::cast_signed)));
        let count = numbers.len();
        let schema = self.file.arrow.schema();
        let named = |(column, array): (&usize, &ArrayRef)| {
            let name = schema.fields().get(*column).map(|field| field.name().as_str());
            Field::new(name.unwrap_or_default(), array.data_type().clone(), true)
        };
        let fields: Vec<_> = apart.columns.iter().zip(&arrays).map(named).collect();
        let matches = match &self.predicate {
            None => None,
            Some(predicate) => {
                let schema = Arc::new(Schema::new(fields.clone()));
                let options = RecordBatchOptions::new().with_row_count(Some(count));
                let batch = RecordBatch::try_new_with_options(Arc::clone(&schema), arrays.clone(), &options)?;
                Some(predicate.bind(&schema)?.evaluate(&batch)?)
            }
        };
        arrays.truncate(width);
        arrays.push(numbers);
        let mut fields: Vec<_> = fields.into_iter().take(width).collect();
        fields.push(Field::new("row", arrow_schema::DataType::Int64, false));
        let mut batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)?;
        if let Some(matches) = matches {
            batch = filter_record_batch(&batch, &matches)?;
        }
        let known = usize::try_from(apart.skip).unwrap_or(usize::MAX).min(batch.num_rows());
        apart.skip = apart.skip.saturating_sub(known as u64);
        Ok(batch.slice(known, batch.num_rows().saturating_sub(known)))
    }
}

/// The first `count` rows, and the others.
fn split(rows: &RowRanges, count: u64) -> (RowRanges, RowRanges) {
    let mut left = count;
    for range in rows.as_slice() {
        let length = range.end.saturating_sub(range.start);
        if length >= left {
            let cut = range.start.saturating_add(left);
            let part = |range| rows.intersect(&RowRanges::one(range));
            return (part(0..cut), part(cut..u64::MAX));
        }
        left = left.saturating_sub(length);
    }
    (rows.clone(), RowRanges::none())
}
