//! Which entries a range delete takes, as a scan goes by.
//!
//! A range delete of a table counts only between the table's smallest and largest entry: compaction copies it into each table that
//! it cuts, and takes newer entries out of its reach by moving them, without their sequence number, to other tables.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use crate::edit::TableFile;
use crate::key::{self, MAX_SEQUENCE, Place, RangeDelete};

/// The range deletes around a scan's present place.
#[derive(Debug, Default)]
pub(crate) struct RangeDeletes {
    /// Those ahead, by where they begin.
    ahead: BinaryHeap<Reverse<(Place, Place, u64)>>,
    /// Those that have begun, by where they end.
    begun: BinaryHeap<Reverse<(Place, u64)>>,
    /// How often a sequence number is among those that have begun.
    sequences: BTreeMap<u64, usize>,
}

impl RangeDeletes {
    pub fn add(&mut self, delete: RangeDelete) {
        if delete.start < delete.end {
            self.ahead.push(Reverse((delete.start, delete.end, delete.sequence)));
        }
    }

    /// Whether the entry at `place` is deleted. Places are asked for in their order.
    pub fn covers(&mut self, place: &Place) -> bool {
        while let Some(Reverse((start, ..))) = self.ahead.peek()
            && start <= place
        {
            let Some(Reverse((_, end, sequence))) = self.ahead.pop() else { break };
            if end > *place {
                self.begun.push(Reverse((end, sequence)));
                let count = self.sequences.entry(sequence).or_default();
                *count = count.saturating_add(1);
            }
        }
        while let Some(Reverse((end, _))) = self.begun.peek()
            && end <= place
        {
            let Some(Reverse((_, sequence))) = self.begun.pop() else { break };
            if let Some(count) = self.sequences.get_mut(&sequence) {
                *count = count.saturating_sub(1);
                if *count == 0 {
                    self.sequences.remove(&sequence);
                }
            }
        }
        self.sequences.last_key_value().is_some_and(|(newest, _)| *newest > key::sequence(place.tag))
    }
}

/// The part of a table's range delete that counts.
pub(crate) fn within(mut delete: RangeDelete, file: &TableFile) -> RangeDelete {
    let Some((smallest, largest)) = &file.bounds else { return delete };
    // Of a key's entries, those are the table's that are as old as its smallest one, or older.
    delete.start = delete.start.max(Place { user: smallest.user.clone(), tag: smallest.tag | 0xff });
    let end = match key::sequence(largest.tag) {
        // Only the end of a range delete, which no entry has.
        MAX_SEQUENCE => Place::before(&largest.user),
        0 => largest.clone(),
        sequence => Place { user: largest.user.clone(), tag: sequence.saturating_sub(1) << 8 | 0xff },
    };
    delete.end = delete.end.min(end);
    delete
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn delete(start: u8, end: u8, sequence: u64) -> RangeDelete {
        RangeDelete { start: Place::before(&[start]), end: Place::before(&[end]), sequence }
    }

    proptest! {
        #[test]
        fn a_sweep_says_what_looking_at_all_of_them_says(
            deletes in prop::collection::vec((0u8..20, 0u8..20, 1u64..30), 0..12),
            mut entries in prop::collection::vec((0u8..20, 1u64..30), 0..40),
        ) {
            let mut sweep = RangeDeletes::default();
            deletes.iter().for_each(|(start, end, sequence)| sweep.add(delete(*start, *end, *sequence)));
            entries.sort_by_key(|(user, sequence)| (*user, Reverse(*sequence)));
            for (user, sequence) in entries {
                let wanted = deletes.iter().any(|(start, end, newer)| *start <= user && user < *end && *newer > sequence);
                prop_assert_eq!(sweep.covers(&Place { user: vec![user], tag: sequence << 8 | 1 }), wanted);
            }
        }
    }

    #[test]
    fn a_range_delete_does_not_reach_out_of_its_table() {
        let place = |user: u8, sequence: u64| Place { user: vec![user], tag: sequence << 8 | 1 };
        let file = TableFile {
            number: 1,
            path: 0,
            bytes: 0,
            bounds: Some((place(5, 10), place(9, 4))),
            sequences: None,
        };
        let covers = |user, sequence| {
            let mut deletes = RangeDeletes::default();
            deletes.add(within(delete(0, 200, 50), &file));
            deletes.covers(&place(user, sequence))
        };
        assert!(!covers(4, 1) && !covers(5, 11) && covers(5, 10) && covers(7, 1) && covers(9, 4));
        assert!(!covers(9, 3) && !covers(10, 1));
    }
}
