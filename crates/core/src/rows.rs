//! Sets of row positions.

use std::ops::Range;

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
        }
    }
}
