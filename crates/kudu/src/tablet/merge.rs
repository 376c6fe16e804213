//! Merging sources of rows by primary key.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef};
use arrow_row::{OwnedRow, RowConverter, Rows, SortField};
use arrow_schema::DataType;
use arrow_select::interleave::interleave;
use pilaster_core::{Error, LossLog, Result};

/// Some rows: their columns and their number, which also rows without columns have.
#[derive(Debug)]
pub(crate) struct SomeRows {
    pub arrays: Vec<ArrayRef>,
    pub count: usize,
}

/// Batches of rows in key order; where they are to be merged, the key columns come first.
pub(crate) trait KeyedRows: Send {
    /// The next rows, never none of them; `None` at the end.
    fn next(&mut self) -> Result<Option<SomeRows>>;
}

/// Merges sources; each key may come from one of them only.
pub(crate) struct Merge {
    sources: Vec<Source>,
    heap: BinaryHeap<Head>,
    converter: RowConverter,
    keys: usize,
    batch_size: usize,
    losses: Option<Arc<LossLog>>,
}

struct Source {
    rows: Box<dyn KeyedRows>,
    batch: Vec<ArrayRef>,
    keys: Option<Rows>,
    at: usize,
}

/// The next key of a source; the heap gives the smallest first.
struct Head {
    key: OwnedRow,
    source: usize,
}

impl PartialEq for Head {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}
impl Eq for Head {}
impl PartialOrd for Head {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Head {
    fn cmp(&self, other: &Self) -> Ordering {
        other.key.row().cmp(&self.key.row()).then(other.source.cmp(&self.source))
    }
}

impl Merge {
    pub fn new(
        sources: Vec<Box<dyn KeyedRows>>,
        key_types: Vec<DataType>,
        batch_size: usize,
        losses: Option<Arc<LossLog>>,
    ) -> Result<Self> {
        let keys = key_types.len();
        let converter = RowConverter::new(key_types.into_iter().map(SortField::new).collect())?;
        let sources =
            sources.into_iter().map(|rows| Source { rows, batch: Vec::new(), keys: None, at: 0 }).collect();
        let mut merge = Self { sources, heap: BinaryHeap::new(), converter, keys, batch_size, losses };
        for source in 0..merge.sources.len() {
            merge.refill(source)?;
        }
        Ok(merge)
    }

    /// Loads the next batch of a source and puts its first key on the heap.
    fn refill(&mut self, index: usize) -> Result<()> {
        let Some(source) = self.sources.get_mut(index) else { return Ok(()) };
        source.at = 0;
        source.keys = None;
        source.batch = source.rows.next()?.map(|rows| rows.arrays).unwrap_or_default();
        if source.batch.is_empty() {
            return Ok(());
        }
        let columns = source.batch.get(..self.keys).unwrap_or_default();
        let keys = self.converter.convert_columns(columns)?;
        if keys.num_rows() > 0 {
            self.heap.push(Head { key: keys.row(0).owned(), source: index });
        }
        source.keys = Some(keys);
        Ok(())
    }

    /// Passes over the first row of a source.
    fn advance(&mut self, index: usize) -> Result<()> {
        let Some(source) = self.sources.get_mut(index) else { return Ok(()) };
        source.at = source.at.saturating_add(1);
        match source.keys.as_ref().filter(|keys| source.at < keys.num_rows()) {
            Some(keys) => {
                self.heap.push(Head { key: keys.row(source.at).owned(), source: index });
                Ok(())
            }
            None => self.refill(index),
        }
    }

    /// The next merged rows.
    pub fn next(&mut self) -> Result<Option<SomeRows>> {
        // The batches rows are taken from, and the rows: batch, row.
        let mut batches: Vec<Vec<ArrayRef>> = Vec::new();
        let mut batch_of: Vec<Option<usize>> = vec![None; self.sources.len()];
        let mut taken: Vec<(usize, usize)> = Vec::with_capacity(self.batch_size);
        while taken.len() < self.batch_size {
            let Some(head) = self.heap.pop() else { break };
            if self.heap.peek().is_some_and(|next| next.key.row() == head.key.row()) {
                let error = Error::corrupt("every key live once", "a key that is live in two rowsets");
                let Some(losses) = &self.losses else { return Err(error) };
                // Neither can be proven good.
                losses.record(0..0, None, &error);
                let mut same = vec![head];
                let is_same = |next: &Head| same.first().is_some_and(|head| head.key.row() == next.key.row());
                let mut others = Vec::new();
                while self.heap.peek().is_some_and(is_same) {
                    others.extend(self.heap.pop());
                }
                same.append(&mut others);
                for head in same {
                    self.advance(head.source)?;
                    if let Some(entry) = batch_of.get_mut(head.source) {
                        *entry = None;
                    }
                }
                continue;
            }
            let Some(source) = self.sources.get_mut(head.source) else { break };
            let Some(keys) = &source.keys else { break };
            // All rows of this source below the next smallest key of the others follow at once.
            let room = self.batch_size.saturating_sub(taken.len());
            let most = keys.num_rows().min(source.at.saturating_add(room));
            let end = match self.heap.peek() {
                None => most,
                Some(next) => {
                    let mut end = source.at.saturating_add(1);
                    while end < most && keys.row(end) < next.key.row() {
                        end = end.saturating_add(1);
                    }
                    end
                }
            };
            let slot = match batch_of.get_mut(head.source) {
                Some(Some(slot)) => *slot,
                other => {
                    batches.push(source.batch.clone());
                    let slot = batches.len().saturating_sub(1);
                    if let Some(entry) = other {
                        *entry = Some(slot);
                    }
                    slot
                }
            };
            taken.extend((source.at..end).map(|row| (slot, row)));
            source.at = end;
            if end < keys.num_rows() {
                self.heap.push(Head { key: keys.row(end).owned(), source: head.source });
            } else {
                if let Some(entry) = batch_of.get_mut(head.source) {
                    *entry = None;
                }
                self.refill(head.source)?;
            }
        }
        let arrays = gather(&batches, &taken)?;
        Ok(arrays.map(|arrays| SomeRows { arrays, count: taken.len() }))
    }
}

/// The rows `taken` of `batches`; without a copy if they are one stretch of one batch.
fn gather(batches: &[Vec<ArrayRef>], taken: &[(usize, usize)]) -> Result<Option<Vec<ArrayRef>>> {
    let (Some(&(first_batch, first_row)), Some(&(_, last_row))) = (taken.first(), taken.last()) else {
        return Ok(None);
    };
    if let [only] = batches
        && last_row.saturating_sub(first_row).saturating_add(1) == taken.len()
    {
        return Ok(Some(only.iter().map(|array| array.slice(first_row, taken.len())).collect()));
    }
    let width = batches.get(first_batch).map_or(0, Vec::len);
    let columns = (0..width).map(|column| {
        let arrays: Vec<&dyn Array> =
            batches.iter().filter_map(|batch| batch.get(column)).map(AsRef::as_ref).collect();
        Ok(interleave(&arrays, taken)?)
    });
    columns.collect::<Result<Vec<_>>>().map(Some)
}
