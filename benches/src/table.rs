//! The tables that are measured: TPC-H lineitem with an ascending key in front, and its lines nested by order.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, Int64Array, ListArray, RecordBatch, StructArray};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use clap::ValueEnum;
use tpchgen::generators::LineItemGenerator;
use tpchgen_arrow::LineItemArrow;

use crate::Result;

/// The column that stands for a unique key, which lineitem does not have: the number of the row.
pub const KEY: &str = "l_rowkey";

/// Columns that are scanned alone, one of each kind.
pub const SINGLE_COLUMNS: [&str; 6] =
    ["l_orderkey", "l_partkey", "l_extendedprice", "l_shipdate", "l_shipmode", "l_comment"];

/// Two columns that are read of the rows whose second one is [`SOUGHT_TEXT`]: a column of seven words.
pub const SOUGHT_COLUMNS: [&str; 2] = ["l_partkey", "l_shipmode"];

/// What is sought: every seventh row has it.
pub const SOUGHT_TEXT: &str = "RAIL";

/// Rows of a batch, when generated and when read.
pub const BATCH_ROWS: usize = 8192;

/// Rows of lineitem for each unit of the scale factor, at least.
const ROWS_PER_SCALE: f64 = 5_900_000.0;

/// Which table is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TableKind {
    /// TPC-H lineitem, flat.
    Lineitem,
    /// The same lines, as a list of structs for each order: nested.
    Orders,
}

impl TableKind {
    pub fn name(self) -> &'static str {
        match self {
            Self::Lineitem => "lineitem",
            Self::Orders => "orders",
        }
    }
}

/// The generated rows.
pub struct Table {
    pub schema: SchemaRef,
    pub batches: Vec<RecordBatch>,
    pub rows: usize,
}

impl Table {
    /// The rows of a table.
    pub fn generate(kind: TableKind, rows: usize) -> Result<Self> {
        match kind {
            TableKind::Lineitem => Self::lineitem(rows),
            TableKind::Orders => Self::orders(rows),
        }
    }

    /// The lines of each order as a list of structs; `rows` counts lines. An order of which a batch has only a part is two.
    fn orders(rows: usize) -> Result<Self> {
        let lines = Self::lineitem(rows)?;
        let batches = lines.batches.iter().map(nest).collect::<Result<Vec<_>>>()?;
        let schema = batches.first().ok_or("no rows were generated")?.schema();
        let rows = batches.iter().map(RecordBatch::num_rows).sum();
        Ok(Self { schema, batches, rows })
    }

    /// The first `rows` rows of a lineitem that has at least so many.
    #[expect(clippy::cast_precision_loss, reason = "a scale factor need not be exact")]
    fn lineitem(rows: usize) -> Result<Self> {
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

/// Columns of a line.
const LINE: [&str; 6] =
    ["l_partkey", "l_quantity", "l_extendedprice", "l_shipdate", "l_shipmode", "l_comment"];

/// One row for each order: its key and its lines.
fn nest(batch: &RecordBatch) -> Result<RecordBatch> {
    let keys = batch.column_by_name("l_orderkey").ok_or("no order keys")?.as_primitive::<Int64Type>();
    let mut orders: Vec<i64> = Vec::new();
    let mut lengths = Vec::new();
    for order in keys.values().chunk_by(|a, b| a == b) {
        orders.extend(order.first());
        lengths.push(order.len());
    }
    let names = LINE.iter().map(|name| batch.schema().index_of(name)).collect::<Result<Vec<_>, _>>()?;
    let line: StructArray = batch.project(&names)?.into();
    let item = Arc::new(Field::new("item", line.data_type().clone(), false));
    let lines = ListArray::try_new(item, OffsetBuffer::from_lengths(lengths), Arc::new(line), None)?;
    let columns: [(&str, ArrayRef); 2] =
        [("o_orderkey", Arc::new(Int64Array::from(orders))), ("o_lines", Arc::new(lines))];
    Ok(RecordBatch::try_from_iter(columns)?)
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
