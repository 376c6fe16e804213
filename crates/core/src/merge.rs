//! Sources of rows in key order made one.
//!
//! Keys are bytes that compare as the rows do; how they are made is the format's matter, and so is what happens with
//! rows of equal keys. [`Merge`] gives runs: rows of one source that no row of another comes between.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef};
use arrow_select::concat::concat;
use arrow_select::interleave::interleave;

use crate::Result;

/// From so many rows in a row on, copying them at once is faster than one by one.
const LONG_RUN: usize = 16;

/// Some rows: their columns and their number, which also rows without columns have.
#[derive(Debug, Clone)]
pub struct SomeRows {
    /// The columns.
    pub arrays: Vec<ArrayRef>,
    /// Number of rows.
    pub count: usize,
}

/// Batches of rows in key order.
pub trait KeyedRows: Send {
    /// A key that no row is before, known without reading.
    fn first_key(&self) -> &[u8];

    /// The next rows, never none of them; `None` at the end, and from then on nothing is held. Their keys take the place
    /// of those in `keys`, if anybody wants to compare them.
    ///
    /// # Errors
    /// If they cannot be read.
    fn next(&mut self, keys: Option<&mut Keys>) -> Result<Option<SomeRows>>;
}

/// The keys of the rows of a batch, one after the other.
#[derive(Debug, Default)]
pub struct Keys {
    bytes: Vec<u8>,
    /// Where each key ends.
    ends: Vec<usize>,
}

impl Keys {
    /// Forgets all keys and makes room for `count` others.
    pub fn clear(&mut self, count: usize) {
        self.bytes.clear();
        self.ends.clear();
        self.ends.reserve(count);
    }

    /// Adds the key that `write` appends.
    ///
    /// # Errors
    /// Those of `write`.
    pub fn push(&mut self, write: impl FnOnce(&mut Vec<u8>) -> Result<()>) -> Result<()> {
        write(&mut self.bytes)?;
        self.ends.push(self.bytes.len());
        Ok(())
    }

    /// Number of keys.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The key of a row; empty if there is no such row.
    pub fn get(&self, row: usize) -> &[u8] {
        let start = match row.checked_sub(1) {
            Some(before) => self.ends.get(before).copied().unwrap_or_default(),
            None => 0,
        };
        let end = self.ends.get(row).copied().unwrap_or_default();
        self.bytes.get(start..end).unwrap_or_default()
    }

    /// The first row from `row` on, up to `end`, whose key is not less than `key`: near rows are looked at first.
    pub fn first_not_below(&self, key: &[u8], row: usize, end: usize) -> usize {
        let (mut low, mut step) = (row, 1usize);
        let mut high = row;
        while high < end && self.get(high) < key {
            low = high.saturating_add(1);
            high = high.saturating_add(step);
            step = step.saturating_mul(2);
        }
        high = high.min(end);
        while low < high {
            let middle = low.midpoint(high);
            if self.get(middle) < key {
                low = middle.saturating_add(1);
            } else {
                high = middle;
            }
        }
        low
    }
}

/// See the module. A source is read when its turn comes; rows of equal keys come in the order of their sources.
pub struct Merge {
    sources: Vec<Source>,
    /// Numbers of the sources with rows left, as a binary heap: the one with the smallest key first.
    heap: Vec<usize>,
    /// Where the run given last ends in the first source of the heap, which is passed over when the next is asked for.
    given: Option<usize>,
}

struct Source {
    number: usize,
    rows: Box<dyn KeyedRows>,
    is_read: bool,
    batch: Arc<[ArrayRef]>,
    keys: Keys,
    at: usize,
}

/// Rows of one source in a row.
pub struct Run<'a> {
    /// Number of the source.
    pub source: usize,
    /// The batch they are in.
    pub batch: &'a Arc<[ArrayRef]>,
    /// The keys of the batch.
    pub keys: &'a Keys,
    /// Which rows of the batch they are, one or more.
    pub rows: Range<usize>,
    /// Whether the first of them, then the only one, has the key of the next row of another source.
    pub is_contested: bool,
}

impl Source {
    /// The key of the next row, or what it is not before. Among equals what is not yet read goes first, then the order of
    /// the sources counts.
    fn order(&self) -> (&[u8], bool, usize) {
        let key = if self.is_read { self.keys.get(self.at) } else { self.rows.first_key() };
        (key, self.is_read, self.number)
    }

    /// Loads the next batch; whether there is one.
    fn load(&mut self) -> Result<bool> {
        self.is_read = true;
        self.at = 0;
        let Some(rows) = self.rows.next(Some(&mut self.keys))? else {
            self.batch = Arc::new([]);
            self.keys = Keys::default();
            return Ok(false);
        };
        self.batch = rows.arrays.into();
        Ok(true)
    }
}

impl Merge {
    /// Merges sources.
    pub fn new(sources: Vec<Box<dyn KeyedRows>>) -> Self {
        let source = |(number, rows)| Source {
            number,
            rows,
            is_read: false,
            batch: Arc::new([]),
            keys: Keys::default(),
            at: 0,
        };
        let sources: Vec<_> = sources.into_iter().enumerate().map(source).collect();
        let mut heap: Vec<usize> = (0..sources.len()).collect();
        // A sorted list is a heap.
        heap.sort_by(|a, b| sources.get(*a).map(Source::order).cmp(&sources.get(*b).map(Source::order)));
        Self { sources, heap, given: None }
    }

    fn source(&self, place: usize) -> Option<&Source> {
        self.heap.get(place).and_then(|source| self.sources.get(*source))
    }

    fn is_before(&self, a: usize, b: usize) -> bool {
        self.source(a).map(Source::order) < self.source(b).map(Source::order)
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

    /// Passes over rows of the first source up to row `end` of its batch.
    fn advance(&mut self, end: usize) -> Result<()> {
        let Some(source) = self.heap.first().and_then(|first| self.sources.get_mut(*first)) else {
            return Ok(());
        };
        source.at = end;
        let is_used_up = !source.is_read || end >= source.keys.len();
        if is_used_up && !source.load()? {
            self.heap.swap_remove(0);
        }
        self.sink();
        Ok(())
    }

    /// Passes over what was given, and reads until the first row is known.
    fn settle(&mut self) -> Result<()> {
        if let Some(end) = self.given.take() {
            self.advance(end)?;
        }
        while self.source(0).is_some_and(|first| !first.is_read) {
            self.advance(0)?;
        }
        Ok(())
    }

    /// The next run, of `most` rows at most and one at least; `None` at the end.
    ///
    /// # Errors
    /// Those of reading a source.
    pub fn next_run(&mut self, most: usize) -> Result<Option<Run<'_>>> {
        self.settle()?;
        let Some(source) = self.source(0) else { return Ok(None) };
        let rival = self.below(0).and_then(|place| self.source(place)).map(|rival| rival.order().0);
        let start = source.at;
        let is_contested = rival == Some(source.order().0);
        let most = source.keys.len().min(start.saturating_add(most.max(1)));
        // All rows of this source below the next smallest key of the others follow at once.
        let end = match rival {
            None => most,
            Some(_) if is_contested => start.saturating_add(1),
            Some(key) => source.keys.first_not_below(key, start.saturating_add(1), most),
        };
        self.given = Some(end);
        // Asked for again, since what was given is noted.
        Ok(self.source(0).map(|source| Run {
            source: source.number,
            batch: &source.batch,
            keys: &source.keys,
            rows: start..end,
            is_contested,
        }))
    }

    /// The key of the next row, if there is one.
    ///
    /// # Errors
    /// Those of reading a source.
    pub fn next_key(&mut self) -> Result<Option<&[u8]>> {
        self.settle()?;
        Ok(self.source(0).map(|source| source.order().0))
    }

    /// Passes over all rows that have the key with which the last run began.
    ///
    /// # Errors
    /// Those of reading a source.
    pub fn pass_key(&mut self) -> Result<()> {
        self.given = None;
        let Some(key) = self.source(0).map(|source| source.order().0.to_vec()) else { return Ok(()) };
        while let Some(first) = self.source(0)
            && first.order().0 == key
        {
            let next = if first.is_read { first.at.saturating_add(1) } else { 0 };
            self.advance(next)?;
        }
        Ok(())
    }
}

/// Batches that rows are taken from, each once.
#[derive(Debug, Default)]
pub struct Batches {
    batches: Vec<Arc<[ArrayRef]>>,
    /// Where the batch of each source stands.
    slots: Vec<usize>,
}

impl Batches {
    /// The number of the batch of a run among those taken from.
    pub fn number(&mut self, run: &Run<'_>) -> usize {
        if self.slots.len() <= run.source {
            self.slots.resize(run.source.saturating_add(1), usize::MAX);
        }
        let slot = self.slots.get(run.source).copied().unwrap_or(usize::MAX);
        if self.batches.get(slot).is_some_and(|known| Arc::ptr_eq(known, run.batch)) {
            return slot;
        }
        let number = self.batches.len();
        self.batches.push(Arc::clone(run.batch));
        if let Some(slot) = self.slots.get_mut(run.source) {
            *slot = number;
        }
        number
    }

    /// A column of all batches.
    pub fn column(&self, column: usize) -> Vec<&dyn Array> {
        self.batches.iter().filter_map(|batch| batch.get(column)).map(AsRef::as_ref).collect()
    }
}

/// Runs to be given as one batch.
#[derive(Debug, Default)]
pub struct Runs {
    batches: Batches,
    /// Number of a batch, and which of its rows.
    runs: Vec<(usize, Range<usize>)>,
    count: usize,
}

impl Runs {
    /// Adds a run.
    pub fn add(&mut self, run: &Run<'_>) {
        let number = self.batches.number(run);
        self.count = self.count.saturating_add(run.rows.len());
        self.runs.push((number, run.rows.clone()));
    }

    /// Number of rows added.
    pub fn count(&self) -> usize {
        self.count
    }

    /// The rows as columns; without a copy if they are one run, else copied run by run or row by row. `None` if there is
    /// none.
    ///
    /// # Errors
    /// If the batches differ in their types.
    pub fn gather(self) -> Result<Option<SomeRows>> {
        let Self { batches: Batches { batches, .. }, runs, count } = self;
        let width = batches.first().map_or(0, |batch| batch.len());
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

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use arrow_array::UInt8Array;
    use arrow_array::cast::AsArray;
    use arrow_array::types::UInt8Type;
    use proptest::prelude::*;

    use super::*;

    struct Lists {
        first: Vec<u8>,
        batches: VecDeque<Vec<u8>>,
    }

    impl KeyedRows for Lists {
        fn first_key(&self) -> &[u8] {
            &self.first
        }

        fn next(&mut self, keys: Option<&mut Keys>) -> Result<Option<SomeRows>> {
            let Some(batch) = self.batches.pop_front() else { return Ok(None) };
            if let Some(keys) = keys {
                keys.clear(batch.len());
                for value in &batch {
                    keys.push(|bytes| {
                        bytes.push(*value);
                        Ok(())
                    })?;
                }
            }
            Ok(Some(SomeRows { count: batch.len(), arrays: vec![Arc::new(UInt8Array::from(batch))] }))
        }
    }

    fn merge(sources: &[Vec<u8>], batch: usize) -> Merge {
        let sources = sources.iter().map(|values| {
            let first = values.first().copied().into_iter().collect();
            let batches = values.chunks(batch).map(<[u8]>::to_vec).collect();
            Box::new(Lists { first, batches }) as Box<dyn KeyedRows>
        });
        Merge::new(sources.collect())
    }

    proptest! {
        #[test]
        fn all_rows_come_in_order(
            mut sources in prop::collection::vec(prop::collection::vec(0u8..30, 0..20), 0..5),
            batch in 1usize..6,
            most in 1usize..8,
        ) {
            sources.iter_mut().for_each(|values| values.sort_unstable());
            let mut expected: Vec<(u8, usize)> = sources
                .iter()
                .enumerate()
                .flat_map(|(number, values)| values.iter().map(move |value| (*value, number)))
                .collect();
            expected.sort_unstable();
            let (mut merge, mut runs, mut origins) = (merge(&sources, batch), Runs::default(), Vec::new());
            while let Some(run) = merge.next_run(most).unwrap() {
                prop_assert!((1..=most).contains(&run.rows.len()));
                origins.extend(run.rows.clone().map(|row| (run.keys.get(row)[0], run.source)));
                runs.add(&run);
            }
            prop_assert_eq!(&origins, &expected);
            prop_assert_eq!(runs.count(), expected.len());
            let values = runs.gather().unwrap().map(|rows| rows.arrays[0].as_primitive::<UInt8Type>().clone());
            let values = values.map(|values| values.values().to_vec()).unwrap_or_default();
            prop_assert_eq!(values, expected.iter().map(|(value, _)| *value).collect::<Vec<_>>());
        }

        #[test]
        fn contested_keys_can_be_passed(
            mut sources in prop::collection::vec(prop::collection::btree_set(0u8..30, 0..20), 0..5),
            batch in 1usize..6,
        ) {
            let all: Vec<u8> = sources.iter().flatten().copied().collect();
            let lists: Vec<Vec<u8>> = sources.drain(..).map(|values| values.into_iter().collect()).collect();
            let (mut merge, mut found) = (merge(&lists, batch), Vec::new());
            while let Some(run) = merge.next_run(usize::MAX).unwrap() {
                if run.is_contested {
                    merge.pass_key().unwrap();
                } else {
                    found.extend(run.rows.clone().map(|row| run.keys.get(row)[0]));
                }
            }
            let mut single: Vec<u8> =
                all.iter().copied().filter(|value| all.iter().filter(|other| *other == value).count() == 1).collect();
            single.sort_unstable();
            prop_assert_eq!(found, single);
        }
    }
}
