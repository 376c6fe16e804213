//! Reading part after part.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_array::{RecordBatch, RecordBatchOptions, RecordBatchReader, UInt64Array};
use arrow_schema::{ArrowError, SchemaRef};
use pilaster_core::{BatchReader, DatasetRef, Error, LossLog, OnDamage, Result, ScanRequest};

/// What to read of one part.
pub(super) struct PartRequest {
    /// Its place among the parts.
    pub(super) index: usize,
    /// Position of its first row in the whole.
    pub(super) base: u64,
    /// Whether that is known.
    pub(super) is_placed: bool,
    /// What concerns it of the request.
    pub(super) request: ScanRequest,
}

/// A stream of the rows of several parts.
pub(super) struct ConcatScan {
    parts: Arc<Vec<DatasetRef>>,
    schema: SchemaRef,
    /// The last is next.
    todo: Vec<PartRequest>,
    current: Option<Part>,
    remaining: Option<u64>,
    has_row_numbers: bool,
    on_damage: OnDamage,
}

/// The part being read.
struct Part {
    reader: BatchReader,
    base: u64,
    /// Its name, where its rows have no known positions in the whole.
    unplaced: Option<String>,
    losses: Option<Arc<LossLog>>,
}

impl ConcatScan {
    /// Reads `todo` in order; the batches have `schema`.
    pub(super) fn new(
        parts: Arc<Vec<DatasetRef>>,
        schema: SchemaRef,
        mut todo: Vec<PartRequest>,
        request: &ScanRequest,
    ) -> Self {
        todo.reverse();
        Self {
            parts,
            schema,
            todo,
            current: None,
            remaining: request.limit,
            has_row_numbers: request.row_numbers.is_some(),
            on_damage: request.on_damage.clone(),
        }
    }

    fn start_next(&mut self) -> Result<bool> {
        let Some(PartRequest { index, base, is_placed, mut request }) = self.todo.pop() else {
            return Ok(false);
        };
        request.limit = self.remaining;
        let losses = match &self.on_damage {
            OnDamage::Stop => None,
            OnDamage::Skip(all) => Some(Arc::new(all.of_part())),
        };
        if let Some(losses) = &losses {
            request.on_damage = OnDamage::Skip(Arc::clone(losses));
        }
        if let Some(part) = self.parts.get(index) {
            let unplaced = (!is_placed).then(|| part.name().to_string());
            self.current = Some(Part { reader: part.read(&request)?, base, unplaced, losses });
        }
        Ok(true)
    }

    /// Notes the losses of a part at their positions in the whole.
    fn end_part(&mut self) {
        let Some(part) = self.current.take() else { return };
        if let (OnDamage::Skip(all), Some(losses)) = (&self.on_damage, part.losses) {
            for lost in losses.losses() {
                all.add(match &part.unplaced {
                    None => lost.moved(part.base),
                    Some(name) => lost.within(name.as_str()),
                });
            }
        }
    }

    fn finish(&mut self, batch: RecordBatch, base: u64) -> Result<RecordBatch> {
        self.remaining = self.remaining.map(|remaining| remaining.saturating_sub(batch.num_rows() as u64));
        let (_, mut columns, rows) = batch.into_parts();
        if self.has_row_numbers
            && base > 0
            && let Some(numbers) = columns.pop()
        {
            let numbers = numbers
                .as_primitive_opt::<UInt64Type>()
                .ok_or_else(|| Error::internal("row numbers of another type"))?;
            columns.push(Arc::new(UInt64Array::from_iter_values(
                numbers.values().iter().map(|number| number.saturating_add(base)),
            )));
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        Ok(RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)?)
    }

    fn try_next(&mut self) -> Result<Option<RecordBatch>> {
        while self.remaining != Some(0) {
            match &mut self.current {
                None => {
                    if !self.start_next()? {
                        break;
                    }
                }
                Some(part) => match part.reader.next() {
                    Some(batch) => {
                        let base = part.base;
                        return self.finish(batch?, base).map(Some);
                    }
                    None => self.end_part(),
                },
            }
        }
        self.end_part();
        Ok(None)
    }
}

impl Iterator for ConcatScan {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.try_next();
        if !matches!(next, Ok(Some(_))) {
            self.remaining = Some(0);
        }
        next.map_err(ArrowError::from).transpose()
    }
}

impl RecordBatchReader for ConcatScan {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}
