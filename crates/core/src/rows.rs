//! Sets of row positions.

use std::ops::Range;

use arrow_buffer::{BooleanBuffer, BooleanBufferBuilder};

/// Row positions as ascending, disjoint, non-empty ranges.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RowRanges(Vec<Range<u64>>);

impl RowRanges {
    /// No rows.
    pub fn none() -> Self {
        Self::default()
    }

    /// One range (none if it is empty).
    pub fn one(range: Range<u64>) -> Self {
        Self::from_iter([range])
    }

    /// The ranges, ascending and disjoint.
    pub fn as_slice(&self) -> &[Range<u64>] {
        &self.0
    }

    /// How many rows.
    pub fn count(&self) -> u64 {
        self.0.iter().map(|range| range.end.saturating_sub(range.start)).sum()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The rows in both.
    #[must_use]
    pub fn intersect(&self, other: &Self) -> Self {
        let (mut left, mut right) = (self.0.iter().peekable(), other.0.iter().peekable());
        let mut both = Vec::new();
        while let (Some(a), Some(b)) = (left.peek(), right.peek()) {
            let common = a.start.max(b.start)..a.end.min(b.end);
            if a.end <= b.end {
                left.next();
            } else {
                right.next();
            }
            both.push(common);
        }
        Self::from_iter(both)
    }

    /// The ranges that hold `row` or lie behind it.
    #[must_use]
    pub fn from_row(&self, row: u64) -> &[Range<u64>] {
        let first = self.0.partition_point(|range| range.end <= row);
        self.0.get(first..).unwrap_or_default()
    }

    /// Those of `rows` that are in the set, counted from the start of `rows`.
    #[must_use]
    pub fn within(&self, rows: &Range<u64>) -> Self {
        let touched = self.from_row(rows.start).iter().take_while(|range| range.start < rows.end);
        let clipped = touched.map(|range| {
            let end = range.end.min(rows.end).saturating_sub(rows.start);
            range.start.saturating_sub(rows.start)..end
        });
        Self(clipped.collect())
    }

    /// The same rows, each `by` further on.
    #[must_use]
    pub fn moved(mut self, by: u64) -> Self {
        for range in &mut self.0 {
            *range = range.start.saturating_add(by)..range.end.saturating_add(by);
        }
        self
    }

    /// For each of the first `count` rows whether it is in the set.
    pub fn to_mask(&self, count: usize) -> BooleanBuffer {
        let mut mask = BooleanBufferBuilder::new(count);
        let index = |row: u64| usize::try_from(row).unwrap_or(usize::MAX).min(count);
        for range in self.0.iter().take_while(|range| index(range.start) < count) {
            mask.append_n(index(range.start).saturating_sub(mask.len()), false);
            mask.append_n(index(range.end).saturating_sub(mask.len()), true);
        }
        mask.append_n(count.saturating_sub(mask.len()), false);
        mask.finish()
    }

    /// The rows in either.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        self.0.iter().chain(&other.0).cloned().collect()
    }
}

impl FromIterator<Range<u64>> for RowRanges {
    /// Takes ranges in any order, empty and overlapping ones too.
    fn from_iter<I: IntoIterator<Item = Range<u64>>>(ranges: I) -> Self {
        let mut sorted: Vec<_> = ranges.into_iter().filter(|range| !range.is_empty()).collect();
        sorted.sort_by_key(|range| range.start);
        let mut merged: Vec<Range<u64>> = Vec::with_capacity(sorted.len());
        for range in sorted {
            match merged.last_mut() {
                Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
                _ => merged.push(range),
            }
        }
        Self(merged)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn rows(ranges: &RowRanges) -> BTreeSet<u64> {
        ranges.as_slice().iter().cloned().flatten().collect()
    }

    fn any_ranges() -> impl Strategy<Value = RowRanges> {
        prop::collection::vec((0u64..60, 0u64..9), 0..8)
            .prop_map(|pairs| pairs.into_iter().map(|(start, length)| start..start + length).collect())
    }

    proptest! {
        #[test]
        fn set_operations_agree_with_sets(a in any_ranges(), b in any_ranges()) {
            prop_assert_eq!(rows(&a.intersect(&b)), rows(&a).intersection(&rows(&b)).copied().collect());
            prop_assert_eq!(rows(&a.union(&b)), rows(&a).union(&rows(&b)).copied().collect());
            prop_assert_eq!(a.count() as usize, rows(&a).len());
            prop_assert_eq!(rows(&a.clone().moved(7)), rows(&a).into_iter().map(|row| row + 7).collect());
        }

        #[test]
        fn a_stretch_has_those_of_its_rows_that_are_in_the_set(a in any_ranges(), start in 0u64..70, length in 0u64..70) {
            let stretch = start..start + length;
            let mask: Vec<bool> = a.within(&stretch).to_mask(length as usize).iter().collect();
            prop_assert_eq!(mask, stretch.map(|row| rows(&a).contains(&row)).collect::<Vec<_>>());
        }
    }
}
