//! Planning and reading part after part.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_array::{RecordBatch, RecordBatchOptions, RecordBatchReader, UInt64Array};
use arrow_schema::{ArrowError, SchemaRef};
use pilaster_core::{
    BatchReader, Error, LossLog, OnDamage, PlannedScan, Result, RowRanges, ScanPlan, ScanRequest, TaskSpan,
};

use super::Parts;

/// A part of which something is read.
#[derive(Debug, Clone)]
struct PlannedPart {
    plan: ScanPlan,
    place: Place,
}

/// Where the rows of a part stand in the whole.
#[derive(Debug, Clone)]
enum Place {
    /// Behind so many others.
    From(u64),
    /// Nobody knows; they are those of the part of this name.
    Within(Arc<str>),
}

impl Place {
    /// How far the rows of the part are moved.
    fn base(&self) -> u64 {
        match self {
            Self::From(base) => *base,
            Self::Within(_) => 0,
        }
    }

    /// Notes the losses of a part as those of the whole.
    fn add_losses(&self, of_part: &LossLog, all: &LossLog) {
        for lost in of_part.losses() {
            all.add(match self {
                Self::From(base) => lost.moved(*base),
                Self::Within(name) => lost.within(&**name),
            });
        }
    }
}

/// What a scan reads of all parts.
pub(super) struct PlannedParts {
    parts: Vec<PlannedPart>,
    schema: SchemaRef,
    /// The tasks of all parts, and for each part how many there are up to its end.
    tasks: OnceLock<(Vec<TaskSpan>, Vec<usize>)>,
}

impl PlannedParts {
    /// Plans what is asked of each part. Losses of planning are noted.
    pub(super) fn new(parts: &Parts, request: &ScanRequest) -> Result<Self> {
        // A request that is wrong for the columns must fail here, as it does for a single file.
        if let Some(predicate) = &request.predicate {
            predicate.bind(&parts.schema)?;
        }
        let mut planned = Vec::with_capacity(parts.parts.len());
        for (index, part) in parts.parts.iter().enumerate() {
            let rows = parts.positions.as_ref().and_then(|positions| positions.get(index)).cloned();
            let mut of_part = request.clone();
            if let (Some(wanted), Some(place)) = (&request.rows, &rows) {
                of_part.rows = Some(wanted.within(place)).filter(|inside| !inside.is_empty());
                if of_part.rows.is_none() {
                    continue;
                }
            }
            let place = match rows {
                Some(rows) => Place::From(rows.start),
                None => Place::Within(part.name().into()),
            };
            let losses = part_log(&request.on_damage);
            if let Some(losses) = &losses {
                of_part.on_damage = OnDamage::Skip(Arc::clone(losses));
            }
            let plan = part.plan(&of_part)?;
            if let (OnDamage::Skip(all), Some(losses)) = (&request.on_damage, losses) {
                place.add_losses(&losses, all);
            }
            planned.push(PlannedPart { plan, place });
        }
        Ok(Self { parts: planned, schema: request.output_schema(&parts.schema)?, tasks: OnceLock::new() })
    }

    fn tasks(&self) -> Result<&(Vec<TaskSpan>, Vec<usize>)> {
        if let Some(tasks) = self.tasks.get() {
            return Ok(tasks);
        }
        let (mut spans, mut ends) = (Vec::new(), Vec::with_capacity(self.parts.len()));
        for PlannedPart { plan, place } in &self.parts {
            for task in plan.tasks()? {
                let TaskSpan { rows, bytes } = task.span().clone();
                let rows = rows.filter(|_| matches!(place, Place::From(_)));
                let moved = rows.map(|rows| RowRanges::one(rows).moved(place.base()));
                let rows = moved.and_then(|rows| rows.as_slice().first().cloned());
                spans.push(TaskSpan { rows, bytes });
            }
            ends.push(spans.len());
        }
        Ok(self.tasks.get_or_init(|| (spans, ends)))
    }

    /// What of each part some tasks are: from the first to the last that they touch.
    fn touched(&self, tasks: &Range<usize>) -> Result<Vec<Todo>> {
        let (spans, ends) = self.tasks()?;
        if tasks.end > spans.len() {
            return Err(Error::internal("a task that was not planned"));
        }
        let first = ends.partition_point(|end| *end <= tasks.start);
        let mut start = first.checked_sub(1).and_then(|before| ends.get(before)).copied().unwrap_or(0);
        let mut todo = Vec::new();
        for (part, end) in self.parts.iter().zip(ends).skip(first) {
            if start >= tasks.end {
                break;
            }
            let inside =
                tasks.start.max(start).saturating_sub(start)..tasks.end.min(*end).saturating_sub(start);
            if !inside.is_empty() {
                todo.push(Todo { part: part.clone(), tasks: Some(inside) });
            }
            start = *end;
        }
        Ok(todo)
    }
}

impl PlannedScan for PlannedParts {
    fn spans(&self) -> Result<Vec<TaskSpan>> {
        Ok(self.tasks()?.0.clone())
    }

    fn read(&self, tasks: Option<Range<usize>>, request: &ScanRequest) -> Result<BatchReader> {
        let mut todo = match tasks {
            Some(tasks) => self.touched(&tasks)?,
            None => self.parts.iter().map(|part| Todo { part: part.clone(), tasks: None }).collect(),
        };
        todo.reverse();
        Ok(Box::new(ConcatScan {
            schema: Arc::clone(&self.schema),
            todo,
            current: None,
            remaining: request.limit,
            has_row_numbers: request.row_numbers.is_some(),
            on_damage: request.on_damage.clone(),
        }))
    }
}

/// A log for the losses of one part, if losses are noted.
fn part_log(on_damage: &OnDamage) -> Option<Arc<LossLog>> {
    match on_damage {
        OnDamage::Stop => None,
        OnDamage::Skip(all) => Some(Arc::new(all.of_part())),
    }
}

/// A part to be read, or some of its tasks.
struct Todo {
    part: PlannedPart,
    tasks: Option<Range<usize>>,
}

/// A stream of the rows of several parts.
struct ConcatScan {
    schema: SchemaRef,
    /// The last is next.
    todo: Vec<Todo>,
    current: Option<Current>,
    remaining: Option<u64>,
    has_row_numbers: bool,
    on_damage: OnDamage,
}

/// The part being read.
struct Current {
    reader: BatchReader,
    place: Place,
    losses: Option<Arc<LossLog>>,
}

impl ConcatScan {
    fn start_next(&mut self) -> Result<bool> {
        let Some(Todo { part: PlannedPart { plan, place }, tasks }) = self.todo.pop() else {
            return Ok(false);
        };
        let losses = part_log(&self.on_damage);
        let mut plan = plan.with_limit(self.remaining);
        if let Some(losses) = &losses {
            plan = plan.with_losses(Arc::clone(losses));
        }
        let reader = match tasks {
            Some(tasks) => plan.read_tasks(tasks)?,
            None => plan.read()?,
        };
        self.current = Some(Current { reader, place, losses });
        Ok(true)
    }

    /// Notes the losses of a part at their positions in the whole.
    fn end_part(&mut self) {
        let Some(Current { place, losses, .. }) = self.current.take() else { return };
        if let (OnDamage::Skip(all), Some(losses)) = (&self.on_damage, losses) {
            place.add_losses(&losses, all);
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
                        let base = part.place.base();
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
