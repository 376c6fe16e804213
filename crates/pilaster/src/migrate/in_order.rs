//! Files of a table that gives its rows in order only, as one whose rows are merged: where a split ends is known when it was read.

use std::sync::Arc;

use arrow_array::RecordBatch;
use pilaster_core::{
    BatchReader, Dataset, Error, Limits, LossLog, LostRows, OnDamage, Result, ScanRequest, Split, fitting,
};
use serde::{Deserialize, Serialize};

/// Where a file begins.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Place {
    pub split: usize,
    /// Of the split, so many rows are in files before.
    pub row: u64,
}

/// The rows of one split after the other.
pub(super) struct RowsInOrder<'a> {
    dataset: &'a dyn Dataset,
    request: &'a ScanRequest,
    splits: usize,
    /// Of the rows that come next.
    place: Place,
    /// The rows of the split that is being read, and its losses.
    reader: Option<(BatchReader, Arc<LossLog>)>,
    rest: Option<RecordBatch>,
    /// Losses of splits that were read to their end: one that is read again by a later run tells them again.
    losses: LossLog,
}

impl<'a> RowsInOrder<'a> {
    pub fn new(dataset: &'a dyn Dataset, request: &'a ScanRequest, splits: &[Split], place: Place) -> Self {
        let losses = LossLog::new();
        Self { dataset, request, splits: splits.len(), place, reader: None, rest: None, losses }
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

    /// The losses of the splits that have ended since this was asked last.
    pub fn take_losses(&mut self) -> Vec<LostRows> {
        std::mem::take(&mut self.losses).losses()
    }

    /// Reads until there are rows, or no more splits.
    fn fill(&mut self) -> Result<()> {
        while self.rest.is_none() && self.place.split < self.splits {
            let Some((reader, losses)) = &mut self.reader else {
                self.reader = Some(self.open()?);
                continue;
            };
            match reader.next().transpose()? {
                Some(batch) => self.rest = Some(batch).filter(|batch| batch.num_rows() > 0),
                None => {
                    losses.losses().into_iter().for_each(|lost| self.losses.add(lost));
                    self.place = Place { split: self.place.split.saturating_add(1), row: 0 };
                    self.reader = None;
                }
            }
        }
        Ok(())
    }

    /// Opens the split behind the rows that are in files before.
    fn open(&mut self) -> Result<(BatchReader, Arc<LossLog>)> {
        let losses = Arc::new(LossLog::new());
        let on_damage = match self.request.on_damage {
            OnDamage::Skip(_) => OnDamage::Skip(Arc::clone(&losses)),
            OnDamage::Stop => OnDamage::Stop,
        };
        let request = ScanRequest { on_damage, split: Some(self.place.split), ..self.request.clone() };
        // Writers copy strings that scans share.
        let mut reader = fitting::batches(self.dataset.read(&request)?, &Limits::default());
        let mut before = self.place.row;
        while before > 0 {
            let batch = reader.next().transpose()?.ok_or_else(|| {
                let expected = format!(
                    "{} rows in split {}, as many as an earlier run wrote",
                    self.place.row, self.place.split
                );
                Error::corrupt(expected, self.place.row.saturating_sub(before)).at(self.dataset.name(), 0, "")
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
