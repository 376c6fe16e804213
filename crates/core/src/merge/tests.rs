use std::collections::VecDeque;
use std::sync::Arc;

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
