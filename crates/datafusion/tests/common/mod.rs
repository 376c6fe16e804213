//! A dataset in memory with several tasks, for tests of everything above a format.

pub mod sql;

use std::sync::Arc;

use datafusion::arrow::array::{
    ArrayRef, Float64Array, Int32Array, Int64Array, RecordBatch, RecordBatchIterator, StringArray,
    UInt32Array,
};
use datafusion::arrow::compute::{filter_record_batch, take_record_batch};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use pilaster_core::describe::{ColumnStatistics, Node, Page};
use pilaster_core::source::CountingSource;
use pilaster_core::{
    BatchReader, Dataset, Progress, Result, RowRanges, Scan, ScanPlan, ScanRequest, Source, TaskSpan,
    VerifyDepth, VerifyReport,
};

/// Rows in memory; every column is an Arrow array.
#[derive(Debug, Clone)]
pub struct Table {
    name: String,
    rows: RecordBatch,
    task_rows: u64,
    /// Read once per open and once per scan, as a file's footer and blocks would be.
    source: Option<Arc<CountingSource>>,
}

impl Table {
    pub fn new(name: &str, rows: RecordBatch, task_rows: u64) -> Self {
        Self { name: name.to_string(), rows, task_rows, source: None }
    }

    /// As if it were opened from `source`: its footer is read now, one byte of data by each scan.
    pub fn open(source: Arc<CountingSource>, rows: RecordBatch) -> Result<Self> {
        source.read_at(source.size().saturating_sub(4)..source.size())?;
        Ok(Self { name: source.name().to_string(), rows, task_rows: 4, source: Some(source) })
    }

    fn row_total(&self) -> u64 {
        self.rows.num_rows() as u64
    }

    fn read_rows(&self, request: &ScanRequest, wanted: &RowRanges) -> Result<BatchReader> {
        if let Some(source) = &self.source {
            source.read_at(0..1)?;
        }
        let schema = self.rows.schema();
        let output = request.output_schema(&schema)?;
        let positions: Vec<u32> = wanted.as_slice().iter().cloned().flatten().map(|row| row as u32).collect();
        let mut rows = take_record_batch(&self.rows, &UInt32Array::from(positions))?;
        if let Some(predicate) = &request.predicate {
            rows = filter_record_batch(&rows, &predicate.bind(&schema)?.evaluate(&rows)?)?;
        }
        let kept = rows.num_rows().min(request.limit.map_or(usize::MAX, |limit| limit as usize));
        let rows = rows.slice(0, kept).project(&request.projected(&schema)?)?;
        let size = request.batch_size;
        // Batches of their own, as decoders give them: slices would count as the whole for whoever adds up memory.
        let batch = |start: usize| {
            let part = rows.slice(start, size.min(kept - start));
            let places = (0..part.num_rows() as u32).collect::<UInt32Array>();
            if part.num_columns() == 0 { Ok(part) } else { take_record_batch(&part, &places) }
        };
        let batches: Vec<_> = (0..kept).step_by(size).map(batch).collect();
        Ok(Box::new(RecordBatchIterator::new(batches, output)))
    }
}

impl Dataset for Table {
    fn format(&self) -> &'static str {
        "memory"
    }
    fn name(&self) -> &str {
        &self.name
    }
    fn schema(&self) -> SchemaRef {
        self.rows.schema()
    }
    fn row_count(&self) -> Option<u64> {
        Some(self.row_total())
    }
    fn size_bytes(&self) -> u64 {
        self.rows.get_array_memory_size() as u64
    }
    fn scan(&self) -> Scan<'_> {
        Scan::new(self)
    }
    fn plan(&self, request: &ScanRequest) -> Result<ScanPlan> {
        let total = self.row_total();
        let span = |start| TaskSpan {
            rows: Some(start..(start + self.task_rows).min(total)),
            bytes: self.task_rows,
        };
        let spans = (0..total).step_by(self.task_rows as usize).map(span).collect();
        let (table, schema) = (self.clone(), self.rows.schema());
        ScanPlan::by_rows(request, &schema, request.wanted_rows(total), spans, move |request, wanted| {
            table.read_rows(request, wanted)
        })
    }
    fn verify(&self, _depth: VerifyDepth, _progress: &dyn Progress) -> Result<VerifyReport> {
        Ok(VerifyReport::default())
    }
    fn describe(&self) -> Result<Node> {
        Ok(Node::new("memory", self.size_bytes())
            .fact("rows", self.row_total())
            .child(Node::new("column", 7).fact("name", "id")))
    }
    fn pages(&self) -> Result<Vec<Page>> {
        Ok(vec![Page {
            path: self.name.as_str().into(),
            column: "id".into(),
            kind: "data",
            offset: 16,
            bytes: 100,
            uncompressed_bytes: Some(400),
            rows: Some(0..self.row_total()),
            nulls: Some(0),
            encoding: "plain".into(),
            codec: "none".into(),
        }])
    }
    fn column_statistics(&self) -> Result<Vec<ColumnStatistics>> {
        Ok(self
            .rows
            .columns()
            .iter()
            .map(|column| {
                let sorted = datafusion::arrow::compute::sort(column, None).ok();
                let values = sorted
                    .map(|sorted| sorted.slice(column.null_count(), column.len() - column.null_count()));
                let at = |index: usize| {
                    values.as_ref().filter(|v| !v.is_empty()).map(|v| v.slice(index.min(v.len() - 1), 1))
                };
                ColumnStatistics {
                    min: at(0),
                    max: at(usize::MAX),
                    nulls: Some(column.null_count() as u64),
                    ..ColumnStatistics::default()
                }
            })
            .collect())
    }
}

/// `id` 0…rows, `score` with nulls and NaN, `name` with nulls, `big`.
pub fn people(rows: usize) -> RecordBatch {
    let score = |row: usize| match row % 5 {
        0 => None,
        1 if row % 3 == 1 => Some(f64::NAN),
        2 if row % 4 == 2 => Some(-0.0),
        _ => Some(row as f64 / 4.0),
    };
    let schema = Schema::new(vec![
        Field::new("id", DataType::Int32, false),
        Field::new("score", DataType::Float64, true),
        Field::new("name", DataType::Utf8, true),
        Field::new("big", DataType::Int64, true),
    ]);
    let columns: Vec<ArrayRef> = vec![
        Arc::new((0..rows).map(|row| Some(row as i32)).collect::<Int32Array>()),
        Arc::new((0..rows).map(score).collect::<Float64Array>()),
        Arc::new(
            (0..rows).map(|row| (row % 4 != 3).then(|| format!("n{}", row % 7))).collect::<StringArray>(),
        ),
        Arc::new(
            (0..rows).map(|row| (row % 6 != 0).then_some(row as i64 * 1_000_000_007)).collect::<Int64Array>(),
        ),
    ];
    RecordBatch::try_new(Arc::new(schema), columns).unwrap()
}
