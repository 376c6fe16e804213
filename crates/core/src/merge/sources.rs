//! The sources in a heap: whose turn it is, and for how many rows.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::ArrayRef;

use super::{KeyedRows, Keys};
use crate::Result;

/// Sources made one. A source is read when its turn comes; rows of equal keys come in the order of their sources.
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
    /// Which of the keys they have, one or more.
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
