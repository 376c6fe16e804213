//! Which rows of a data file are left, and their positions without the deleted ones.

use std::ops::Range;

use pilaster_core::RowRanges;

/// The rows of a file that were not deleted. *Physical* positions count all rows, *logical* ones those that are left.
#[derive(Debug, Clone)]
pub(crate) struct Live {
    /// Logical position of the first row of each stretch.
    starts: Vec<u64>,
    stretches: Vec<Range<u64>>,
    count: u64,
}

impl Live {
    /// All of `rows` but `deleted`, which is ascending.
    pub fn new(rows: u64, deleted: &[u64]) -> Self {
        let mut live = Self { starts: Vec::new(), stretches: Vec::new(), count: 0 };
        let mut next = 0;
        for &row in deleted.iter().filter(|row| **row < rows) {
            live.push(next..row);
            next = row.saturating_add(1);
        }
        live.push(next..rows);
        live
    }

    fn push(&mut self, stretch: Range<u64>) {
        if stretch.is_empty() {
            return;
        }
        self.starts.push(self.count);
        self.count = self.count.saturating_add(stretch.end.saturating_sub(stretch.start));
        self.stretches.push(stretch);
    }

    pub fn count(&self) -> u64 {
        self.count
    }

    /// Whether `physical` rows are all left.
    pub fn is_whole(&self, physical: &Range<u64>) -> bool {
        let at = self.stretches.partition_point(|stretch| stretch.end < physical.end);
        self.stretches.get(at).is_some_and(|stretch| stretch.start <= physical.start)
    }

    pub fn contains(&self, physical: u64) -> bool {
        let at = self.stretches.partition_point(|stretch| stretch.end <= physical);
        self.stretches.get(at).is_some_and(|stretch| stretch.start <= physical)
    }

    /// How many rows before `physical` are left.
    fn rank(&self, physical: u64) -> u64 {
        let at = self.stretches.partition_point(|stretch| stretch.end <= physical);
        match (self.stretches.get(at), self.starts.get(at)) {
            (Some(stretch), Some(start)) => start.saturating_add(physical.saturating_sub(stretch.start)),
            _ => self.count,
        }
    }

    /// Where the row at `logical` is.
    fn select(&self, logical: u64) -> Option<u64> {
        let at = self.starts.partition_point(|start| *start <= logical).checked_sub(1)?;
        let (start, stretch) = (self.starts.get(at)?, self.stretches.get(at)?);
        let row = stretch.start.saturating_add(logical.saturating_sub(*start));
        (row < stretch.end).then_some(row)
    }

    /// The logical positions of what is left of `physical`.
    pub fn logical(&self, physical: &Range<u64>) -> Range<u64> {
        self.rank(physical.start)..self.rank(physical.end)
    }

    /// From the first to the last of the rows at `logical` positions.
    pub fn physical(&self, logical: &Range<u64>) -> Option<Range<u64>> {
        if logical.is_empty() {
            return None;
        }
        let first = self.select(logical.start)?;
        let last = self.select(logical.end.checked_sub(1)?)?;
        Some(first..last.saturating_add(1))
    }

    pub fn logical_ranges(&self, physical: &RowRanges) -> RowRanges {
        physical.as_slice().iter().map(|range| self.logical(range)).collect()
    }

    pub fn physical_ranges(&self, logical: &RowRanges) -> RowRanges {
        logical.as_slice().iter().filter_map(|range| self.physical(range)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn positions_agree_with_a_list(rows in 0u64..60, deleted in prop::collection::btree_set(0u64..70, 0..40), a in 0u64..60, b in 0u64..60) {
            let live = Live::new(rows, &deleted.iter().copied().collect::<Vec<_>>());
            let left: Vec<u64> = (0..rows).filter(|row| !deleted.contains(row)).collect();
            prop_assert_eq!(live.count(), left.len() as u64);
            for (logical, physical) in left.iter().enumerate() {
                prop_assert_eq!(live.select(logical as u64), Some(*physical));
                prop_assert_eq!(live.rank(*physical), logical as u64);
            }
            let physical = a.min(b).min(rows)..a.max(b).min(rows);
            let inside: BTreeSet<u64> = left.iter().copied().filter(|row| physical.contains(row)).collect();
            let logical = live.logical(&physical);
            prop_assert_eq!(logical.end - logical.start, inside.len() as u64);
            prop_assert!(physical.is_empty() || live.is_whole(&physical) == (inside.len() as u64 == physical.end - physical.start));
            if let Some(cover) = live.physical(&logical) {
                prop_assert_eq!(Some(&cover.start), inside.first());
            } else {
                prop_assert!(inside.is_empty());
            }
            prop_assert!((0..70).all(|row| live.contains(row) == left.contains(&row)));
        }
    }
}
