//! Files of a table that gives its rows in order only, as one whose rows are merged: where a task ends is known when it was read.

use std::sync::Arc;

use arrow_array::RecordBatch;
use pilaster_core::{BatchReader, Error, Limits, LossLog, LostRows, Result, ScanTask, fitting};
use serde::{Deserialize, Serialize};

/// Where a file begins.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Place {
    #[serde(rename = "split")]
    pub task: usize,
    /// Of the task, so many rows are in files before.
    pub row: u64,
}

/// The rows of one task after the other.
pub(super) struct RowsInOrder<'a> {
    /// Of the table, for errors.
    name: &'a str,
    tasks: &'a [ScanTask],
    /// Of the rows that come next.
    place: Place,
    /// The rows of the task that is being read, and its losses.
    reader: Option<(BatchReader, Arc<LossLog>)>,
    rest: Option<RecordBatch>,
    /// Losses of tasks that were read to their end: one that is read again by a later run tells them again.
    losses: LossLog,
}

impl<'a> RowsInOrder<'a> {
    pub fn new(name: &'a str, tasks: &'a [ScanTask], place: Place) -> Self {
        Self { name, tasks, place, reader: None, rest: None, losses: LossLog::new() }
    }

    /// The next rows, at most so many.
    pub fn next(&mut self, most: u64) -> Result<Option<RecordBatch>> {
        self.fill()?;
        let Some(batch) = self.rest.take() else { return Ok(None) };
        let rows = usize::try_from(most).unwrap_or(usize::MAX).min(batch.num_rows());
        if rows < batch.num_rows() {
            self.rest = Some(batch.slice(rows, batch.num_rows().saturating_sub(rows)));
        }
        self.place.row = self.place.row.saturating_add(rows as u64);
        Ok(Some(batch.slice(0, rows)))
    }

    /// Where the rows that come next are; `None` if there are none.
    pub fn place(&mut self) -> Result<Option<Place>> {
        self.fill()?;
        Ok(self.rest.as_ref().map(|_| self.place))
    }

    /// The losses of the tasks that have ended since this was asked last.
    pub fn take_losses(&mut self) -> Vec<LostRows> {
        std::mem::take(&mut self.losses).losses()
    }

    /// Reads until there are rows, or no more tasks.
    fn fill(&mut self) -> Result<()> {
        while self.rest.is_none()
            && let Some(task) = self.tasks.get(self.place.task)
        {
            let Some((reader, losses)) = &mut self.reader else {
                self.reader = Some(self.open(task)?);
                continue;
            };
            match reader.next().transpose()? {
                Some(batch) => self.rest = Some(batch).filter(|batch| batch.num_rows() > 0),
                None => {
                    losses.losses().into_iter().for_each(|lost| self.losses.add(lost));
                    self.place = Place { task: self.place.task.saturating_add(1), row: 0 };
                    self.reader = None;
                }
            }
        }
        Ok(())
    }

    /// Opens a task behind the rows that are in files before.
    fn open(&mut self, task: &ScanTask) -> Result<(BatchReader, Arc<LossLog>)> {
        let losses = Arc::new(LossLog::new());
        // Writers copy strings that scans share.
        let reader = task.clone().with_losses(Arc::clone(&losses)).read()?;
        let mut reader = fitting::batches(reader, &Limits::default());
        let mut before = self.place.row;
        while before > 0 {
            let batch = reader.next().transpose()?.ok_or_else(|| {
                let expected = format!(
                    "{} rows in task {}, as many as an earlier run wrote",
                    self.place.row, self.place.task
                );
                Error::corrupt(expected, self.place.row.saturating_sub(before)).at(self.name, 0, "")
            })?;
            let skipped = usize::try_from(before).unwrap_or(usize::MAX).min(batch.num_rows());
            before = before.saturating_sub(skipped as u64);
            if skipped < batch.num_rows() {
                self.rest = Some(batch.slice(skipped, batch.num_rows().saturating_sub(skipped)));
            }
        }
        Ok((reader, losses))
    }
}
