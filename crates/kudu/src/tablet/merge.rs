//! Merging sources of rows by primary key.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef};
use arrow_select::concat::concat;
use arrow_select::interleave::interleave;
use pilaster_core::{Error, LossLog, Result};

use super::encoded_keys::EncodedKeys;
use super::schema::KuduColumn;

/// From so many rows in a row on, copying them at once is faster than one by one.
const LONG_RUN: usize = 16;

/// Some rows: their columns and their number, which also rows without columns have.
#[derive(Debug)]
pub(crate) struct SomeRows {
    pub arrays: Vec<ArrayRef>,
    pub count: usize,
}

/// Batches of rows in key order; where they are to be merged, the key columns come first.
pub(crate) trait KeyedRows: Send {
    /// An encoded key that no row is before, known without reading.
    fn first_key(&self) -> &[u8];

    /// The next rows, never none of them; `None` at the end, and from then on nothing is held.
    fn next(&mut self) -> Result<Option<SomeRows>>;
}

/// Merges sources; each key may come from one of them only. A source is read when its turn comes.
pub(crate) struct Merge {
    sources: Vec<Source>,
    /// Numbers of the sources with rows left, as a binary heap: the one with the smallest key first.
    heap: Vec<usize>,
    keys: Vec<KuduColumn>,
    batch_size: usize,
    losses: Option<Arc<LossLog>>,
}

struct Source {
    rows: Box<dyn KeyedRows>,
    is_read: bool,
    batch: Vec<ArrayRef>,
    keys: EncodedKeys,
    at: usize,
}

impl Source {
    /// The key of the next row, or what it is not before; what is not yet read goes first among equals.
    fn order(&self) -> (&[u8], bool) {
        (if self.is_read { self.keys.get(self.at) } else { self.rows.first_key() }, self.is_read)
    }

    /// Loads the next batch; whether there is one.
    fn load(&mut self, columns: &[KuduColumn]) -> Result<bool> {
        self.is_read = true;
        self.at = 0;
        let Some(rows) = self.rows.next()? else {
            self.batch.clear();
            return Ok(false);
        };
        self.keys.encode(columns, &rows.arrays, rows.count)?;
        self.batch = rows.arrays;
        Ok(true)
    }
}

/// Rows to be given: runs of batches.
#[derive(Default)]
struct Taken {
    batches: Vec<Vec<ArrayRef>>,
    /// Number of a batch, and which of its rows.
    runs: Vec<(usize, Range<usize>)>,
    count: usize,
}

impl Merge {
    pub fn new(
        sources: Vec<Box<dyn KeyedRows>>,
        keys: Vec<KuduColumn>,
        batch_size: usize,
        losses: Option<Arc<LossLog>>,
    ) -> Self {
        let source =
            |rows| Source { rows, is_read: false, batch: Vec::new(), keys: EncodedKeys::default(), at: 0 };
        let sources: Vec<_> = sources.into_iter().map(source).collect();
        let mut heap: Vec<usize> = (0..sources.len()).collect();
        // A sorted list is a heap.
        heap.sort_by(|a, b| sources.get(*a).map(Source::order).cmp(&sources.get(*b).map(Source::order)));
        Self { sources, heap, keys, batch_size, losses }
    }

    fn is_before(&self, a: usize, b: usize) -> bool {
        let order =
            |at: usize| self.heap.get(at).and_then(|source| self.sources.get(*source)).map(Source::order);
        order(a) < order(b)
    }

    /// The smallest of the places below `place` in the heap.
    fn below(&self, place: usize) -> Option<usize> {
        let left = place.saturating_mul(2).saturating_add(1);
        let right = left.saturating_add(1);
        if right < self.heap.len() && self.is_before(right, left) {
            return Some(right);
        }
        (left < self.heap.len()).then_some(left)
    }

    /// Puts the first source of the heap, whose key has grown, to its place.
    fn sink(&mut self) {
        let mut place = 0;
        while let Some(below) = self.below(place).filter(|below| self.is_before(*below, place)) {
            self.heap.swap(place, below);
            place = below;
        }
    }

    /// Passes over rows of the first source up to row `end` of its batch; whether another batch had to be loaded.
    fn advance(&mut self, end: usize) -> Result<bool> {
        let Some(source) = self.heap.first().and_then(|first| self.sources.get_mut(*first)) else {
            return Ok(false);
        };
        source.at = end;
        let is_used_up = !source.is_read || end >= source.keys.len();
        if is_used_up && !source.load(&self.keys)? {
            self.heap.swap_remove(0);
        }
        self.sink();
        Ok(is_used_up)
    }

    /// The next merged rows.
    pub fn next(&mut self) -> Result<Option<SomeRows>> {
        let mut taken = Taken::default();
        // Where the current batch of each source stands among the batches taken from.
        let mut slots: Vec<Option<usize>> = vec![None; self.sources.len()];
        while taken.count < self.batch_size {
            let Some(&first) = self.heap.first() else { break };
            let Some(source) = self.sources.get(first) else { break };
            if !source.is_read {
                self.advance(0)?;
                continue;
            }
            let rival = self.below(0).and_then(|place| self.heap.get(place));
            let rival = rival.and_then(|rival| self.sources.get(*rival)).map(|rival| rival.order().0);
            if rival == Some(source.order().0) {
                self.pass_duplicates(&mut slots)?;
                continue;
            }
            // All rows of this source below the next smallest key of the others follow at once.
            let room = self.batch_size.saturating_sub(taken.count);
            let most = source.keys.len().min(source.at.saturating_add(room));
            let end = match rival {
                None => most,
                Some(key) => source.keys.first_not_below(key, source.at.saturating_add(1), most),
            };
            let slot = slots.get_mut(first);
            taken.add(&source.batch, source.at..end, slot);
            if self.advance(end)?
                && let Some(slot) = slots.get_mut(first)
            {
                *slot = None;
            }
        }
        taken.gather()
    }

    /// Two rows have the same key: neither can be proven good.
    fn pass_duplicates(&mut self, slots: &mut [Option<usize>]) -> Result<()> {
        let error = Error::corrupt("every key live once", "a key that is live in two rowsets");
        let Some(losses) = &self.losses else { return Err(error) };
        losses.record(0..0, None, &error);
        let head = |merge: &Self| {
            let first = *merge.heap.first()?;
            Some((first, merge.sources.get(first)?.order().0.to_vec(), merge.sources.get(first)?.at))
        };
        let Some((_, key, _)) = head(self) else { return Ok(()) };
        while let Some((first, next, at)) = head(self)
            && next == key
        {
            let is_read = self.sources.get(first).is_some_and(|source| source.is_read);
            if self.advance(if is_read { at.saturating_add(1) } else { 0 })?
                && let Some(slot) = slots.get_mut(first)
            {
                *slot = None;
            }
        }
        Ok(())
    }
}

impl Taken {
    /// Adds rows of a batch; `slot` is where the batch stands among those known.
    fn add(&mut self, batch: &[ArrayRef], rows: Range<usize>, slot: Option<&mut Option<usize>>) {
        let number = match slot {
            Some(Some(number)) => *number,
            slot => {
                self.batches.push(batch.to_vec());
                let number = self.batches.len().saturating_sub(1);
                if let Some(slot) = slot {
                    *slot = Some(number);
                }
                number
            }
        };
        self.count = self.count.saturating_add(rows.len());
        self.runs.push((number, rows));
    }

    /// The rows as columns; without a copy if they are one run, else copied run by run or row by row.
    fn gather(self) -> Result<Option<SomeRows>> {
        let Self { batches, runs, count } = self;
        let width = batches.first().map_or(0, Vec::len);
        let column_of =
            |number: usize, column: usize| batches.get(number).and_then(|batch| batch.get(column));
        let slice = |(number, rows): &(usize, Range<usize>), column: usize| {
            column_of(*number, column).map(|array| array.slice(rows.start, rows.len()))
        };
        let arrays = match runs.as_slice() {
            [] => return Ok(None),
            [run] => (0..width).filter_map(|column| slice(run, column)).collect(),
            runs if runs.len().saturating_mul(LONG_RUN) <= count => (0..width)
                .map(|column| {
                    let slices: Vec<_> = runs.iter().filter_map(|run| slice(run, column)).collect();
                    let slices: Vec<&dyn Array> = slices.iter().map(AsRef::as_ref).collect();
                    Ok(concat(&slices)?)
                })
                .collect::<Result<_>>()?,
            runs => {
                let rows = runs.iter().flat_map(|(number, rows)| rows.clone().map(move |row| (*number, row)));
                let rows: Vec<(usize, usize)> = rows.collect();
                let columns = (0..width).map(|column| {
                    let arrays = (0..batches.len()).filter_map(|number| column_of(number, column));
                    let arrays: Vec<&dyn Array> = arrays.map(AsRef::as_ref).collect();
                    Ok(interleave(&arrays, &rows)?)
                });
                columns.collect::<Result<_>>()?
            }
        };
        Ok(Some(SomeRows { arrays, count }))
    }
}
