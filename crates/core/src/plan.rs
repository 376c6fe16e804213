//! What a scan will read, found before any row of it is read.
//!
//! [`Dataset::plan`](crate::Dataset::plan) prunes once and gives a [`ScanPlan`]. Its tasks are independent of each other: threads, engines and
//! other processes divide them among themselves. Tasks read one after the other give the rows of the scan in their order.

use std::fmt::{self, Debug};
use std::ops::Range;
use std::sync::Arc;

use arrow_array::RecordBatchIterator;
use arrow_schema::{Schema, SchemaRef};

use crate::dataset::{BatchReader, OnDamage, ScanRequest};
use crate::error::{Error, Result};
use crate::rows::RowRanges;
use crate::salvage::LossLog;

/// Where the rows of a task lie, and how much reading them takes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TaskSpan {
    /// Positions in the dataset between which its rows lie, where positions are known before reading.
    pub rows: Option<Range<u64>>,
    /// About how many bytes reading all of it takes.
    pub bytes: u64,
}

/// Rows of a task where it may end anywhere: a power of two, so that tasks end where batches and most blocks do.
pub const TASK_ROWS: u64 = 1 << 17;

impl TaskSpan {
    /// Stretches of [`TASK_ROWS`] of `rows` rows, which take about `bytes` bytes in all.
    pub fn stretches(rows: u64, bytes: u64) -> Vec<Self> {
        let count = rows.div_ceil(TASK_ROWS);
        let bytes = bytes.checked_div(count).unwrap_or_default();
        (0..count)
            .map(|number| {
                let start = number.saturating_mul(TASK_ROWS);
                Self { rows: Some(start..start.saturating_add(TASK_ROWS).min(rows)), bytes }
            })
            .collect()
    }

    /// From the first row of one to the last of another that follows it.
    fn through(&self, last: &Self) -> Self {
        let rows = self.rows.as_ref().zip(last.rows.as_ref()).map(|(first, last)| first.start..last.end);
        Self { rows, bytes: 0 }
    }
}

/// How a format reads what it has planned.
///
/// The request that it is asked with is the one that was planned, but for how much is wanted: limit, batch size, memory, and where
/// losses are noted. What it lost in planning has been noted already.
pub trait PlannedScan: Send + Sync {
    /// The tasks, in row order. Asked for only by those who divide the work: finding them may take a few reads.
    ///
    /// # Errors
    /// If finding them needs bytes that cannot be read.
    fn spans(&self) -> Result<Vec<TaskSpan>>;

    /// Reads some neighbouring tasks as one stream; all of them, without a need to know which they are, if `tasks` is `None`.
    ///
    /// # Errors
    /// What is met before the first batch.
    fn read(&self, tasks: Option<Range<usize>>, request: &ScanRequest) -> Result<BatchReader>;
}

/// A scan that was planned: it can be read as a whole, or task by task.
#[derive(Clone)]
pub struct ScanPlan {
    request: ScanRequest,
    schema: SchemaRef,
    planned: Arc<dyn PlannedScan>,
}

impl Debug for ScanPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScanPlan").field("request", &self.request).finish_non_exhaustive()
    }
}

impl ScanPlan {
    /// A plan for `request`, which asks a dataset with the columns `of`.
    ///
    /// # Errors
    /// [`crate::ErrorKind::InvalidInput`] if the request names columns that are not there.
    pub fn new(request: &ScanRequest, of: &Schema, planned: impl PlannedScan + 'static) -> Result<Self> {
        let schema = request.output_schema(of)?;
        Ok(Self { request: request.clone(), schema, planned: Arc::new(planned) })
    }

    /// A plan of one task.
    ///
    /// # Errors
    /// As [`ScanPlan::new`].
    pub fn of_one_task<F>(request: &ScanRequest, of: &Schema, span: TaskSpan, read: F) -> Result<Self>
    where
        F: Fn(&ScanRequest) -> Result<BatchReader> + Send + Sync + 'static,
    {
        Self::new(request, of, OneTask { span, read })
    }

    /// A plan for the `wanted` rows of a dataset whose columns can be read by row position: tasks are those of `spans` in which
    /// some of them lie.
    ///
    /// # Errors
    /// As [`ScanPlan::new`].
    pub fn by_rows<F>(
        request: &ScanRequest,
        of: &Schema,
        wanted: RowRanges,
        mut spans: Vec<TaskSpan>,
        read: F,
    ) -> Result<Self>
    where
        F: Fn(&ScanRequest, &RowRanges) -> Result<BatchReader> + Send + Sync + 'static,
    {
        spans.retain(|span| span.rows.as_ref().is_none_or(|rows| !wanted.within(rows).is_empty()));
        Self::new(request, of, ByRows { spans, wanted, read })
    }

    /// The plan of a scan that gives no rows, whatever is in the files.
    ///
    /// # Errors
    /// As [`ScanPlan::new`].
    pub fn of_nothing(request: &ScanRequest, of: &Schema) -> Result<Self> {
        let schema = request.output_schema(of)?;
        Self::by_rows(request, of, RowRanges::none(), Vec::new(), move |_, _| {
            Ok(Box::new(RecordBatchIterator::new([], Arc::clone(&schema))))
        })
    }

    /// The plan of a dataset around another one: the tasks of `inner`, whose rows `read` turns into those of `request`.
    ///
    /// # Errors
    /// As [`ScanPlan::new`].
    pub fn around<F>(inner: Self, request: &ScanRequest, of: &Schema, read: F) -> Result<Self>
    where
        F: Fn(&ScanRequest, &dyn InnerTasks) -> Result<BatchReader> + Send + Sync + 'static,
    {
        Self::new(request, of, Around { inner, read })
    }

    /// The schema of the batches.
    pub fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    /// What was planned.
    pub fn request(&self) -> &ScanRequest {
        &self.request
    }

    /// The independent units of work, in row order: those that can hold rows which are asked for.
    ///
    /// # Errors
    /// If finding them needs bytes that cannot be read.
    pub fn tasks(&self) -> Result<Vec<ScanTask>> {
        let spans = self.planned.spans()?;
        Ok(spans
            .into_iter()
            .enumerate()
            .map(|(number, span)| self.task(number..number.saturating_add(1), span))
            .collect())
    }

    /// As [`ScanPlan::tasks`], merged to at most `count` that are about equally heavy.
    ///
    /// # Errors
    /// As [`ScanPlan::tasks`].
    pub fn tasks_for(&self, count: usize) -> Result<Vec<ScanTask>> {
        let spans = self.planned.spans()?;
        let merged = grouped(&spans, count).into_iter().filter_map(|group| {
            let members = spans.get(group.clone())?;
            let mut span = members.first()?.through(members.last()?);
            span.bytes = members.iter().fold(0, |sum, span| sum.saturating_add(span.bytes));
            Some(self.task(group, span))
        });
        Ok(merged.collect())
    }

    fn task(&self, tasks: Range<usize>, span: TaskSpan) -> ScanTask {
        ScanTask { plan: self.clone(), tasks, span }
    }

    /// The rows of some neighbouring tasks.
    ///
    /// # Errors
    /// As [`ScanPlan::read`].
    pub fn read_tasks(&self, tasks: Range<usize>) -> Result<BatchReader> {
        self.planned.read(Some(tasks), &self.request)
    }

    /// All rows, in order.
    ///
    /// # Errors
    /// What is met before the first batch; what reading meets comes out of the stream.
    pub fn read(&self) -> Result<BatchReader> {
        self.planned.read(None, &self.request)
    }

    /// The same plan, of which no more rows than this are wanted.
    #[must_use]
    pub fn with_limit(mut self, limit: Option<u64>) -> Self {
        self.request.limit = limit;
        self
    }

    /// The same plan, which notes in `losses` what it loses from now on, if it goes on over damage.
    #[must_use]
    pub fn with_losses(mut self, losses: Arc<LossLog>) -> Self {
        if let OnDamage::Skip(noted) = &mut self.request.on_damage {
            *noted = losses;
        }
        self
    }
}

/// A part of a scan that can be read by itself, at any time and as often as wanted.
#[derive(Debug, Clone)]
pub struct ScanTask {
    plan: ScanPlan,
    tasks: Range<usize>,
    span: TaskSpan,
}

impl ScanTask {
    /// Where its rows lie, and how much there is to read.
    pub fn span(&self) -> &TaskSpan {
        &self.span
    }

    /// Which of the tasks of its plan it is made of.
    pub fn numbers(&self) -> Range<usize> {
        self.tasks.clone()
    }

    /// The schema of the batches.
    pub fn schema(&self) -> SchemaRef {
        self.plan.schema()
    }

    /// As [`ScanPlan::with_limit`].
    #[must_use]
    pub fn with_limit(mut self, limit: Option<u64>) -> Self {
        self.plan = self.plan.with_limit(limit);
        self
    }

    /// As [`ScanPlan::with_losses`].
    #[must_use]
    pub fn with_losses(mut self, losses: Arc<LossLog>) -> Self {
        self.plan = self.plan.with_losses(losses);
        self
    }

    /// Its rows; a limit of the plan counts for each task by itself.
    ///
    /// # Errors
    /// As [`ScanPlan::read`].
    pub fn read(&self) -> Result<BatchReader> {
        self.plan.read_tasks(self.tasks.clone())
    }
}

/// Neighbours in at most `count` groups that are about equally heavy.
fn grouped(spans: &[TaskSpan], count: usize) -> Vec<Range<usize>> {
    let count = u128::try_from(count.max(1)).unwrap_or(1);
    let weight = |span: &TaskSpan| u128::from(span.bytes.max(1));
    let total: u128 = spans.iter().map(weight).sum();
    let mut groups: Vec<Range<usize>> = Vec::new();
    let mut done: u128 = 0;
    for (number, span) in spans.iter().enumerate() {
        // A task belongs where its middle falls when the whole is cut into equal parts.
        let middle = done.saturating_mul(2).saturating_add(weight(span));
        let part = middle.saturating_mul(count).checked_div(total.saturating_mul(2)).unwrap_or(0);
        let opened = u128::try_from(groups.len()).unwrap_or(u128::MAX);
        match groups.last_mut() {
            Some(group) if part < opened => group.end = number.saturating_add(1),
            _ => groups.push(number..number.saturating_add(1)),
        }
        done = done.saturating_add(weight(span));
    }
    groups
}

struct OneTask<F> {
    span: TaskSpan,
    read: F,
}

impl<F> PlannedScan for OneTask<F>
where
    F: Fn(&ScanRequest) -> Result<BatchReader> + Send + Sync,
{
    fn spans(&self) -> Result<Vec<TaskSpan>> {
        Ok(vec![self.span.clone()])
    }

    fn read(&self, _tasks: Option<Range<usize>>, request: &ScanRequest) -> Result<BatchReader> {
        (self.read)(request)
    }
}

struct ByRows<F> {
    spans: Vec<TaskSpan>,
    wanted: RowRanges,
    read: F,
}

impl<F> PlannedScan for ByRows<F>
where
    F: Fn(&ScanRequest, &RowRanges) -> Result<BatchReader> + Send + Sync,
{
    fn spans(&self) -> Result<Vec<TaskSpan>> {
        Ok(self.spans.clone())
    }

    fn read(&self, tasks: Option<Range<usize>>, request: &ScanRequest) -> Result<BatchReader> {
        let Some(tasks) = tasks else { return (self.read)(request, &self.wanted) };
        let spans = self.spans.get(tasks).unwrap_or_default();
        let of_all = spans.first().zip(spans.last()).and_then(|(first, last)| first.through(last).rows);
        let rows = of_all.ok_or_else(|| Error::internal("a task that was not planned"))?;
        (self.read)(request, &self.wanted.within(&rows).moved(rows.start))
    }
}

/// Some tasks of an inner plan, to be read once it is known how.
pub trait InnerTasks {
    /// Reads them: no more rows than this, and with losses noted where the request around them says.
    ///
    /// # Errors
    /// As [`ScanPlan::read`].
    fn read(&self, limit: Option<u64>) -> Result<BatchReader>;
}

struct Around<F> {
    inner: ScanPlan,
    read: F,
}

struct Inner<'a> {
    plan: &'a ScanPlan,
    tasks: Option<Range<usize>>,
    request: &'a ScanRequest,
}

impl InnerTasks for Inner<'_> {
    fn read(&self, limit: Option<u64>) -> Result<BatchReader> {
        let request = ScanRequest {
            limit,
            batch_size: self.request.batch_size,
            on_damage: self.request.on_damage.clone(),
            memory: self.request.memory.clone(),
            ..self.plan.request.clone()
        };
        self.plan.planned.read(self.tasks.clone(), &request)
    }
}

impl<F> PlannedScan for Around<F>
where
    F: Fn(&ScanRequest, &dyn InnerTasks) -> Result<BatchReader> + Send + Sync,
{
    fn spans(&self) -> Result<Vec<TaskSpan>> {
        self.inner.planned.spans()
    }

    fn read(&self, tasks: Option<Range<usize>>, request: &ScanRequest) -> Result<BatchReader> {
        (self.read)(request, &Inner { plan: &self.inner, tasks, request })
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::{ArrayRef, RecordBatch, RecordBatchIterator, UInt64Array};
    use arrow_schema::{DataType, Field};
    use proptest::prelude::*;

    use super::*;

    fn spans(bytes: &[u64]) -> Vec<TaskSpan> {
        bytes.iter().map(|&bytes| TaskSpan { rows: None, bytes }).collect()
    }

    #[test]
    fn equal_tasks_are_dealt_evenly() {
        assert_eq!(grouped(&spans(&[5; 6]), 2), [0..3, 3..6]);
        assert_eq!(grouped(&spans(&[5; 2]), 8), [0..1, 1..2]);
        assert_eq!(grouped(&spans(&[90, 5, 5]), 2), [0..1, 1..3]);
        assert!(grouped(&spans(&[]), 4).is_empty());
    }

    proptest! {
        #[test]
        fn every_task_is_in_one_group_and_in_order(
            bytes in prop::collection::vec(0u64..1000, 0..40),
            count in 0usize..9,
        ) {
            let groups = grouped(&spans(&bytes), count);
            prop_assert!(groups.len() <= count.max(1));
            prop_assert!(groups.iter().all(|group| !group.is_empty()));
            prop_assert_eq!(groups.into_iter().flatten().collect::<Vec<_>>(), (0..bytes.len()).collect::<Vec<_>>());
        }

        #[test]
        fn tasks_read_in_any_groups_give_the_rows_of_the_plan(
            wanted in prop::collection::vec(any::<bool>(), 40),
            sizes in prop::collection::vec(1u64..9, 1..9),
            count in 1usize..9,
        ) {
            let schema = Schema::new(vec![Field::new("row", DataType::UInt64, false)]);
            let wanted: RowRanges = (0..40).zip(wanted).filter(|(_, wanted)| *wanted).map(|(row, _)| row..row + 1).collect();
            let mut ends = vec![0];
            ends.extend(sizes.iter().scan(0, |end, size| { *end = (*end + size).min(40); Some(*end) }));
            ends.push(40);
            let spans = ends.windows(2).map(|pair| TaskSpan { rows: Some(pair[0]..pair[1]), bytes: 1 }).collect();
            let of = schema.clone();
            let plan = ScanPlan::by_rows(&ScanRequest::default(), &schema, wanted.clone(), spans, move |_, rows| {
                let rows: ArrayRef = Arc::new(rows.as_slice().iter().cloned().flatten().collect::<UInt64Array>());
                let batch = RecordBatch::try_new(Arc::new(of.clone()), vec![rows])?;
                Ok(Box::new(RecordBatchIterator::new([Ok(batch)], Arc::new(of.clone()))))
            }).unwrap();
            let rows = |reader: BatchReader| -> Vec<u64> {
                let of_batch = |batch: RecordBatch| batch.column(0).as_any().downcast_ref::<UInt64Array>().unwrap().values().to_vec();
                reader.flat_map(|batch| of_batch(batch.unwrap())).collect()
            };
            let all: Vec<u64> = wanted.as_slice().iter().cloned().flatten().collect();
            prop_assert_eq!(&rows(plan.read().unwrap()), &all);
            for tasks in [plan.tasks().unwrap(), plan.tasks_for(count).unwrap()] {
                let each = tasks.iter().map(|task| rows(task.read().unwrap()));
                prop_assert_eq!(&each.flatten().collect::<Vec<_>>(), &all);
                prop_assert!(tasks.iter().all(|task| !rows(task.read().unwrap()).is_empty()));
            }
        }
    }
}
