//! Which tablets a table must have, as far as those that are here prove it.
//!
//! Every tablet says in which buckets and in which range its rows lie, and into how many buckets its range is dealt. So of a
//! range with one tablet here all other buckets are known. Ranges are not: a table need not cover all keys, so a range
//! without any tablet here was never made, was dropped, or lies elsewhere. Only a master's catalog can tell.

use std::collections::{BTreeMap, BTreeSet};

use super::key_range::KeyRange;
use super::partition::{Partition, PartitionSchema};

/// Missing tablets listed one by one; of more only the number is told.
const MOST_LISTED: usize = 64;

/// What the tablets that are here say of those that are not.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Completeness {
    /// Tablets that must exist and are not here, in words.
    pub missing: Vec<String>,
    /// How many that are: more than are listed, perhaps.
    pub missing_count: u64,
    /// Ranges of keys that no tablet here holds, in words; none of them need exist.
    pub gaps: Vec<String>,
}

/// The tablets of one range.
struct OfRange<'a> {
    buckets: BTreeSet<&'a [i32]>,
    /// Buckets of each dimension: at least.
    dimensions: Vec<i32>,
}

/// Looks at the partitions of all tablets of a table that are here.
pub(crate) fn completeness(tablets: &[(&Partition, &PartitionSchema)]) -> Completeness {
    let mut ranges: BTreeMap<KeyRange, OfRange<'_>> = BTreeMap::new();
    for (partition, schema) in tablets {
        let known = ranges.entry(partition.range_keys());
        let of_range = known.or_insert_with(|| OfRange { buckets: BTreeSet::new(), dimensions: Vec::new() });
        of_range.buckets.insert(&partition.hash_buckets);
        if let Some(dimensions) = schema.least_buckets(partition) {
            let wider = |(least, other): (&i32, i32)| (*least).max(other);
            of_range.dimensions = match of_range.dimensions.len() == dimensions.len() {
                // Each bucket that is here rules out schemas that do not have it.
                true => of_range.dimensions.iter().zip(dimensions).map(wider).collect(),
                false => dimensions,
            };
        }
    }
    let mut found = Completeness::default();
    let has_ranges = tablets.iter().any(|(_, schema)| schema.has_ranges());
    for (range, of_range) in &ranges {
        found.add_buckets(of_range, has_ranges.then_some(range));
    }
    if has_ranges {
        found.gaps = gaps(ranges.keys());
    }
    found
}

impl Completeness {
    fn add_buckets(&mut self, of_range: &OfRange<'_>, range: Option<&KeyRange>) {
        let OfRange { buckets, dimensions } = of_range;
        let expected = dimensions
            .iter()
            .fold(1u64, |product, count| product.saturating_mul(u64::try_from(*count).unwrap_or_default()));
        // Where nothing is known of the buckets of a range, nothing is concluded.
        if buckets.iter().any(|buckets| buckets.len() != dimensions.len()) {
            return;
        }
        let here = buckets.len() as u64;
        self.missing_count = self.missing_count.saturating_add(expected.saturating_sub(here));
        if expected <= here {
            return;
        }
        // One bucket after the other, the last dimension counting fastest; those here are at most as many as the files.
        let mut at = vec![0i32; dimensions.len()];
        while self.missing.len() < MOST_LISTED {
            if !buckets.contains(at.as_slice()) {
                self.missing.push(describe(&at, dimensions, range));
            }
            if !advance(&mut at, dimensions) {
                return;
            }
        }
    }
}

/// The next combination; whether there is one.
fn advance(at: &mut [i32], dimensions: &[i32]) -> bool {
    for (bucket, count) in at.iter_mut().zip(dimensions).rev() {
        *bucket = bucket.saturating_add(1);
        if *bucket < *count {
            return true;
        }
        *bucket = 0;
    }
    false
}

fn describe(buckets: &[i32], dimensions: &[i32], range: Option<&KeyRange>) -> String {
    let of = |(bucket, count): (&i32, &i32)| format!("{bucket} of {count}");
    let buckets: Vec<_> = buckets.iter().zip(dimensions).map(of).collect();
    // Where all keys are one range, it says nothing.
    let range = range.filter(|range| !(range.start.is_empty() && range.end.is_empty()));
    let range = range.map(|range| format!(", range {range}")).unwrap_or_default();
    let word = if dimensions.len() == 1 { "bucket" } else { "buckets" };
    format!("the tablet of hash {word} {}{range} is not here", buckets.join(" and "))
}

/// Keys between the ranges, before the first and behind the last.
fn gaps<'a>(ranges: impl Iterator<Item = &'a KeyRange>) -> Vec<String> {
    let mut covered: Option<Vec<u8>> = Some(Vec::new());
    let mut gaps = Vec::new();
    for range in ranges {
        let Some(end) = &covered else { break };
        if range.start > *end {
            gaps.push(KeyRange { start: end.clone(), end: range.start.clone() }.to_string());
        }
        covered = if range.end.is_empty() { None } else { Some(range.end.clone().max(end.clone())) };
    }
    if let Some(end) = covered.filter(|end| !end.is_empty()) {
        gaps.push(KeyRange { start: end, end: Vec::new() }.to_string());
    }
    gaps
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tablet(buckets: &[i32], start: &[u8], end: &[u8]) -> Partition {
        let prefix: Vec<u8> = buckets.iter().flat_map(|bucket| bucket.to_be_bytes()).collect();
        let next: Vec<u8> = match buckets.split_last() {
            Some((last, others)) if end.is_empty() => {
                let others = others.iter().flat_map(|bucket| bucket.to_be_bytes());
                others.chain(last.saturating_add(1).to_be_bytes()).collect()
            }
            _ if end.is_empty() => Vec::new(),
            _ => [&prefix, end].concat(),
        };
        Partition { hash_buckets: buckets.to_vec(), start: [&prefix, start].concat(), end: next }
    }

    fn check(schema: &PartitionSchema, tablets: &[Partition]) -> Completeness {
        completeness(&tablets.iter().map(|tablet| (tablet, schema)).collect::<Vec<_>>())
    }

    #[test]
    fn a_bucket_that_is_not_here_is_named() {
        let schema = PartitionSchema::of_buckets(&[&[2, 3]], false);
        let mut all: Vec<_> = (0..6).map(|n| tablet(&[n / 3, n % 3], b"", b"")).collect();
        assert_eq!(check(&schema, &all), Completeness::default());
        all.remove(4);
        let found = check(&schema, &all);
        assert_eq!((found.missing_count, found.gaps.len()), (1, 0));
        assert_eq!(found.missing, ["the tablet of hash buckets 1 of 2 and 1 of 3 is not here"]);
    }

    #[test]
    fn each_range_has_its_own_buckets() {
        let schema = PartitionSchema::of_buckets(&[&[2]], true);
        let tablets = [tablet(&[0], b"a", b"c"), tablet(&[1], b"a", b"c"), tablet(&[1], b"c", b"")];
        let found = check(&schema, &tablets);
        assert_eq!(found.missing, ["the tablet of hash bucket 0 of 2, range [63, ∞) is not here"]);
        assert_eq!(found.gaps, ["[-∞, 61)"]);
    }

    #[test]
    fn keys_between_ranges_are_told_and_need_not_exist() {
        let schema = PartitionSchema::of_buckets(&[], true);
        let found = check(&schema, &[tablet(&[], b"a", b"c"), tablet(&[], b"d", b"e")]);
        assert!(found.missing.is_empty());
        assert_eq!(found.gaps, ["[-∞, 61)", "[63, 64)", "[65, ∞)"]);
        assert!(check(&schema, &[tablet(&[], b"", b"c"), tablet(&[], b"c", b"")]).gaps.is_empty());
        let schema = PartitionSchema::of_buckets(&[], false);
        assert_eq!(check(&schema, &[tablet(&[], b"", b"")]), Completeness::default());
    }

    #[test]
    fn of_schemas_with_more_and_fewer_buckets_the_fewer_count_until_a_bucket_proves_more() {
        let schema = PartitionSchema::of_buckets(&[&[2], &[4]], true);
        assert_eq!(check(&schema, &[tablet(&[1], b"", b"")]).missing_count, 1);
        assert_eq!(check(&schema, &[tablet(&[3], b"", b"")]).missing_count, 3);
        assert_eq!(check(&schema, &[tablet(&[0], b"", b""), tablet(&[2], b"", b"")]).missing_count, 2);
    }

    #[test]
    fn a_lie_about_buckets_takes_no_time() {
        let schema = PartitionSchema::of_buckets(&[&[i32::MAX, i32::MAX, i32::MAX]], false);
        let found = check(&schema, &[tablet(&[0, 0, 1], b"", b"")]);
        assert_eq!((found.missing.len(), found.missing_count), (MOST_LISTED, u64::MAX - 1));
    }
}
