//! The table that is measured: TPC-H lineitem with an ascending key in front.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use tpchgen::generators::LineItemGenerator;
use tpchgen_arrow::LineItemArrow;

use crate::Result;

/// The column that stands for a unique key, which lineitem does not have: the number of the row.
pub const KEY: &str = "l_rowkey";

/// Columns that are scanned alone, one of each kind.
pub const SINGLE_COLUMNS: [&str; 6] =
    ["l_orderkey", "l_partkey", "l_extendedprice", "l_shipdate", "l_shipmode", "l_comment"];

/// Rows of a batch, when generated and when read.
pub const BATCH_ROWS: usize = 8192;

/// Rows of lineitem for each unit of the scale factor, at least.
const ROWS_PER_SCALE: f64 = 5_900_000.0;

/// The generated rows.
pub struct Table {
    pub schema: SchemaRef,
    pub batches: Vec<RecordBatch>,
    pub rows: usize,
}

impl Table {
    /// The first `rows` rows of a lineitem that has at least so many.
    #[expect(clippy::cast_precision_loss, reason = "a scale factor need not be exact")]
    pub fn generate(rows: usize) -> Result<Self> {
        let scale = (rows as f64 / ROWS_PER_SCALE).max(0.01);
        let mut left = rows;
        let mut batches = Vec::with_capacity(rows.div_ceil(BATCH_ROWS));
        let mut schema = None;
        for batch in LineItemArrow::new(LineItemGenerator::new(scale, 1, 1)).with_batch_size(BATCH_ROWS) {
            if left == 0 {
                break;
            }
            let batch = batch.slice(0, left.min(batch.num_rows()));
            let first = i64::try_from(rows.saturating_sub(left))?;
            left = left.saturating_sub(batch.num_rows());
            let keyed = with_key(&batch, first)?;
            schema.get_or_insert_with(|| keyed.schema());
            batches.push(keyed);
        }
        let schema = schema.ok_or("no rows were generated")?;
        Ok(Self { schema, batches, rows: rows.saturating_sub(left) })
    }
}

fn with_key(batch: &RecordBatch, first: i64) -> Result<RecordBatch> {
    let end = first.saturating_add(i64::try_from(batch.num_rows())?);
    let keys: ArrayRef = Arc::new(Int64Array::from_iter_values(first..end));
    let schema = batch.schema();
    let fields: Vec<_> = [Arc::new(Field::new(KEY, DataType::Int64, false))]
        .into_iter()
        .chain(schema.fields().iter().cloned())
        .collect();
    let columns = [keys].into_iter().chain(batch.columns().iter().cloned()).collect();
    Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)?)
}

/// The keys of a thousandth of `rows` rows, from the middle of the table.
pub fn key_range(rows: usize) -> Range<i64> {
    let count = rows.div_ceil(1000);
    let start = i64::try_from(rows / 2).unwrap_or(i64::MAX);
    start..start.saturating_add(i64::try_from(count).unwrap_or(i64::MAX))
}
