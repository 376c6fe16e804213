//! Which rows of a block hold a value, where only those values are stored.

use std::ops::Range;

use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer};

/// A bit for each row of a block, 1 for a value, and how many values stand before a row.
#[derive(Debug)]
pub struct Validity {
    bits: Buffer,
    rows: usize,
    ones: usize,
    /// A row and the number of ones before it: batches ask in ascending order.
    rank: (usize, usize),
}

impl Validity {
    /// Of `rows` bits, `ones` of which are 1. Bits that are missing at the end count as 0.
    pub fn new(mut bits: Vec<u8>, rows: usize, ones: usize) -> Self {
        bits.resize(rows.div_ceil(8), 0);
        Self { bits: bits.into(), rows, ones, rank: (0, 0) }
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.rows
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// Number of rows that hold a value.
    pub fn ones(&self) -> usize {
        self.ones
    }

    /// The null buffer of the rows `range`, all of which must be there (`None` if all hold a value), and which of the stored values
    /// are theirs.
    pub fn read(&mut self, range: Range<usize>) -> (Option<NullBuffer>, Range<usize>) {
        if self.ones == self.rows {
            return (None, range);
        }
        let dense = self.rank_of(range.start)..self.rank_of(range.end);
        if dense.len() == range.len() {
            return (None, dense);
        }
        (Some(NullBuffer::new(self.slice(range.start, range.end))), dense)
    }

    /// Number of ones before `row`.
    fn rank_of(&mut self, row: usize) -> usize {
        let (known_row, known_rank) = if self.rank.0 <= row { self.rank } else { (0, 0) };
        let ones = self.slice(known_row, row).count_set_bits();
        self.rank = (row, known_rank.saturating_add(ones));
        self.rank.1
    }

    fn slice(&self, start: usize, end: usize) -> BooleanBuffer {
        BooleanBuffer::new(self.bits.clone(), start, end.saturating_sub(start))
    }

    /// All bits.
    pub fn bits(&self) -> BooleanBuffer {
        self.slice(0, self.rows)
    }
}

/// As [`Validity::read`]; without one, all rows hold a value.
pub fn read(validity: Option<&mut Validity>, range: Range<usize>) -> (Option<NullBuffer>, Range<usize>) {
    match validity {
        None => (None, range),
        Some(validity) => validity.read(range),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn stretches_in_any_order_are_those_of_the_bits(
            rows in prop::collection::vec(prop::bool::weighted(0.8), 1..60),
            cuts in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 1..8),
        ) {
            let bits = BooleanBuffer::from(rows.clone());
            let mut validity = Validity::new(bits.inner().to_vec(), rows.len(), bits.count_set_bits());
            for (a, b) in cuts {
                let (a, b) = (a.index(rows.len() + 1), b.index(rows.len() + 1));
                let range = a.min(b)..a.max(b);
                let (nulls, dense) = validity.read(range.clone());
                let before = rows[..range.start].iter().filter(|row| **row).count();
                let inside = rows[range.clone()].iter().filter(|row| **row).count();
                prop_assert_eq!(dense, before..before + inside);
                prop_assert_eq!(nulls.is_none(), inside == range.len());
                if let Some(nulls) = nulls {
                    prop_assert_eq!(nulls.iter().collect::<Vec<_>>(), &rows[range.clone()]);
                }
            }
            prop_assert_eq!(validity.bits(), bits);
        }
    }
}
