//! The keys of a batch.

use std::ops::Range;

use arrow_buffer::BooleanBuffer;

use crate::Result;

/// The keys of the rows of a batch, one after the other.
#[derive(Debug, Default)]
pub struct Keys {
    bytes: Vec<u8>,
    /// Where each key ends.
    ends: Vec<usize>,
    /// How many rows come before that of each key, and then all; empty if every key has its row.
    places: Vec<usize>,
}

impl Keys {
    /// Forgets all keys and makes room for `count` others.
    pub fn clear(&mut self, count: usize) {
        self.bytes.clear();
        self.ends.clear();
        self.places.clear();
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

    /// Adds a key of these bytes.
    pub fn push_bytes(&mut self, key: &[u8]) {
        self.bytes.extend_from_slice(key);
        self.ends.push(self.bytes.len());
    }

    /// Says that the batch has rows only for the keys that `kept` has a one for. The others keep their place in the order, so
    /// that equal keys meet though nobody wants their rows.
    pub fn leave_out_but(&mut self, kept: &BooleanBuffer) {
        self.places.clear();
        if kept.count_set_bits() == kept.len() {
            return;
        }
        let mut place = 0usize;
        self.places.extend(kept.iter().map(|is_kept| {
            let before = place;
            place = place.saturating_add(usize::from(is_kept));
            before
        }));
        self.places.push(place);
    }

    /// The rows that some of the keys have in the batch.
    pub fn rows(&self, keys: Range<usize>) -> Range<usize> {
        let Some(all) = self.places.last() else { return keys };
        let place = |key: usize| self.places.get(key).unwrap_or(all);
        *place(keys.start)..*place(keys.end)
    }

    /// Number of keys.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The memory they take.
    pub fn memory_bytes(&self) -> usize {
        let numbers = self.ends.len().saturating_add(self.places.len());
        self.bytes.len().saturating_add(numbers.saturating_mul(size_of::<usize>()))
    }

    /// Gives back memory that no key is in.
    pub fn shrink(&mut self) {
        self.bytes.shrink_to_fit();
        self.ends.shrink_to_fit();
        self.places.shrink_to_fit();
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
