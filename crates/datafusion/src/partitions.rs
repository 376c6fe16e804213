//! Splits divided among threads.

use pilaster_core::Split;

/// The `wanted` numbers of splits, which ascend, in at most `target` groups that are about equally heavy, so that reading the
/// groups one after the other gives the rows in their order. There is always at least one group.
pub(crate) fn group_splits(splits: &[Split], wanted: &[usize], target: usize) -> Vec<Vec<usize>> {
    let target = u128::try_from(target.max(1)).unwrap_or(1);
    let weight = |split: &Split| u128::from(split.bytes.max(1));
    let wanted: Vec<_> = wanted.iter().filter_map(|number| Some((*number, splits.get(*number)?))).collect();
    let total: u128 = wanted.iter().map(|(_, split)| weight(split)).sum();
    let mut groups = vec![Vec::new()];
    let mut done: u128 = 0;
    for (index, split) in wanted {
        // A split belongs where its middle falls when the whole is cut into equal parts.
        let middle = done.saturating_mul(2).saturating_add(weight(split));
        let part = middle.saturating_mul(target).checked_div(total.saturating_mul(2)).unwrap_or(0);
        let opened = u128::try_from(groups.len()).unwrap_or(u128::MAX);
        if part >= opened && groups.last().is_some_and(|group| !group.is_empty()) {
            groups.push(Vec::new());
        }
        if let Some(group) = groups.last_mut() {
            group.push(index);
        }
        done = done.saturating_add(weight(split));
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn splits(bytes: &[u64]) -> Vec<Split> {
        bytes.iter().map(|&bytes| Split { rows: None, bytes }).collect()
    }

    fn all(bytes: &[u64], target: usize) -> Vec<Vec<usize>> {
        group_splits(&splits(bytes), &(0..bytes.len()).collect::<Vec<_>>(), target)
    }

    #[test]
    fn equal_splits_are_dealt_evenly() {
        assert_eq!(all(&[5; 6], 2), [vec![0, 1, 2], vec![3, 4, 5]]);
        assert_eq!(all(&[5; 2], 8), [vec![0], vec![1]]);
        assert_eq!(all(&[90, 5, 5], 2), [vec![0], vec![1, 2]]);
        assert_eq!(all(&[], 4), [Vec::<usize>::new()]);
    }

    #[test]
    fn splits_that_are_not_wanted_weigh_nothing() {
        assert_eq!(group_splits(&splits(&[90, 5, 5, 90, 5]), &[1, 2, 4], 3), [vec![1], vec![2], vec![4]]);
        assert_eq!(group_splits(&splits(&[90, 5]), &[], 3), [Vec::<usize>::new()]);
    }

    proptest! {
        #[test]
        fn every_wanted_split_is_read_once_and_in_order(
            splits in prop::collection::vec((0u64..1000, any::<bool>()), 0..40),
            target in 0usize..9,
        ) {
            let wanted: Vec<_> =
                splits.iter().enumerate().filter(|(_, (_, wanted))| *wanted).map(|(number, _)| number).collect();
            let bytes: Vec<_> = splits.iter().map(|(bytes, _)| *bytes).collect();
            let groups = group_splits(&self::splits(&bytes), &wanted, target);
            prop_assert!(groups.len() <= target.max(1));
            prop_assert_eq!(groups.concat(), wanted);
        }
    }
}
