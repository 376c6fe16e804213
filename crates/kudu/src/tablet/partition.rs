//! Which rows of a table a tablet holds.
//!
//! ```text
//! partition key: | bucket, u32 big-endian | … one for each hash dimension | range columns, encoded as a key |
//! ```
//!
//! A range without an end shows as the key of the next bucket with nothing behind it, or as no key at all; so may one without
//! a start.

use std::num::NonZeroU32;

use pilaster_core::predicate::BoundPredicate;

use super::key_range::{KeyRange, key_ranges, named_keys};
use super::schema::{KuduColumn, KuduSchema};
use crate::messages::{ColumnIdentifierPb, HashBucketSchemaPb, PartitionPb, PartitionSchemaPb};
use crate::partition_hash::bucket_of_encoded;

/// The bounds of a tablet.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Partition {
    /// Bucket of each hash dimension.
    pub hash_buckets: Vec<i32>,
    /// First partition key, inclusive; empty for no bound.
    pub start: Vec<u8>,
    /// Last partition key, exclusive; empty for no bound.
    pub end: Vec<u8>,
}

impl Partition {
    pub(crate) fn parse(message: PartitionPb) -> Self {
        Self {
            hash_buckets: message.hash_buckets,
            start: message.partition_key_start.unwrap_or_default(),
            end: message.partition_key_end.unwrap_or_default(),
        }
    }
}

impl Partition {
    /// The keys of the range columns that it holds.
    pub(super) fn range_keys(&self) -> KeyRange {
        let buckets: Vec<u8> = self.hash_buckets.iter().flat_map(|bucket| bucket.to_be_bytes()).collect();
        let range_of = |key: &[u8]| key.strip_prefix(buckets.as_slice()).unwrap_or_default().to_vec();
        KeyRange { start: range_of(&self.start), end: range_of(&self.end) }
    }
}

/// How a table is divided, as far as it is known.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct PartitionSchema {
    /// The hash dimensions of the table, and those of ranges that have their own.
    hashes: Vec<Vec<HashDimension>>,
    /// Ids of the range columns.
    range: Vec<i32>,
}

/// Rows are dealt to buckets by the hash of some columns.
#[derive(Debug, Clone, PartialEq, Eq)]
struct HashDimension {
    /// Ids of the columns.
    columns: Vec<i32>,
    buckets: NonZeroU32,
    seed: u32,
}

impl PartitionSchema {
    /// Reads the message; what makes no sense is taken as not known, and nothing is concluded from it.
    pub fn parse(message: &PartitionSchemaPb, schema: &KuduSchema) -> Self {
        let custom = message.custom_hash_schema_ranges.iter().map(|range| &range.hash_schema);
        let hashes = std::iter::once(&message.hash_schema).chain(custom);
        let hashes = hashes.map(|dimensions| {
            dimensions.iter().map(|dimension| HashDimension::parse(dimension, schema)).collect()
        });
        let range = message.range_schema.as_ref().map(|range| column_ids(&range.columns, schema));
        Self {
            hashes: hashes.collect::<Option<_>>().unwrap_or_default(),
            range: range.unwrap_or_default().unwrap_or_default(),
        }
    }

    /// Whether rows are dealt by ranges too.
    pub fn has_ranges(&self) -> bool {
        !self.range.is_empty()
    }

    /// How many buckets each hash dimension of a tablet's range has, at least: which of several hash schemas is that of the
    /// range is told only by the buckets that are there. `None` if nothing is known.
    pub fn least_buckets(&self, partition: &Partition) -> Option<Vec<i32>> {
        let counts = self.hashes.iter().map(|dimensions| {
            let counts = dimensions.iter().map(|dimension| i32::try_from(dimension.buckets.get()).ok());
            counts.collect::<Option<Vec<i32>>>()
        });
        let fits = |counts: &Vec<i32>| {
            let mut pairs = counts.iter().zip(&partition.hash_buckets);
            counts.len() == partition.hash_buckets.len() && pairs.all(|(count, bucket)| bucket < count)
        };
        counts.flatten().filter(fits).reduce(|least, other| {
            least.iter().zip(other).map(|(count, other)| (*count).min(other)).collect()
        })
    }

    /// Whether a tablet may hold a row that matches; `schema` is that of the predicate.
    pub fn may_match(&self, partition: &Partition, predicate: &BoundPredicate, schema: &KuduSchema) -> bool {
        let range_keys = partition.range_keys();
        let may_match_range = match columns_of(&self.range, schema) {
            Some(columns) => {
                key_ranges(predicate, &columns).iter().any(|keys| !keys.intersect(&range_keys).is_empty())
            }
            None => true,
        };
        // Which ranges have hash dimensions of their own is not looked at: a tablet is left out if none fits.
        let mut hashes =
            self.hashes.iter().filter(|hash| hash.len() == partition.hash_buckets.len()).peekable();
        let may_match_hash = hashes.peek().is_none()
            || hashes.any(|dimensions| {
                let mut pairs = dimensions.iter().zip(&partition.hash_buckets);
                pairs.all(|(dimension, bucket)| dimension.may_match(*bucket, predicate, schema))
            });
        may_match_range && may_match_hash
    }
}

impl HashDimension {
    fn parse(message: &HashBucketSchemaPb, schema: &KuduSchema) -> Option<Self> {
        let buckets = NonZeroU32::new(u32::try_from(message.num_buckets?).ok()?)?;
        let columns = column_ids(&message.columns, schema).filter(|columns| !columns.is_empty())?;
        Some(Self { columns, buckets, seed: message.seed.unwrap_or_default() })
    }

    fn may_match(&self, bucket: i32, predicate: &BoundPredicate, schema: &KuduSchema) -> bool {
        let keys = columns_of(&self.columns, schema).and_then(|columns| named_keys(predicate, &columns));
        let is_of = |key: &Vec<u8>| {
            i32::try_from(bucket_of_encoded(key, self.seed, self.buckets)).is_ok_and(|found| found == bucket)
        };
        keys.is_none_or(|keys| keys.iter().any(is_of))
    }
}

fn column_ids(columns: &[ColumnIdentifierPb], schema: &KuduSchema) -> Option<Vec<i32>> {
    let id = |column: &ColumnIdentifierPb| {
        column.id.or_else(|| schema.columns.get(schema.index_of_name(column.name.as_deref()?)?)?.id)
    };
    columns.iter().map(id).collect()
}

/// The columns of these ids with their numbers; `None` if one is not there.
fn columns_of<'a>(ids: &[i32], schema: &'a KuduSchema) -> Option<Vec<(usize, &'a KuduColumn)>> {
    ids.iter()
        .map(|id| schema.index_of_id(*id).and_then(|index| Some((index, schema.columns.get(index)?))))
        .collect()
}

impl std::fmt::Display for Partition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if !self.hash_buckets.is_empty() {
            let buckets: Vec<_> = self.hash_buckets.iter().map(ToString::to_string).collect();
            write!(f, "hash {} ", buckets.join(","))?;
        }
        KeyRange { start: self.start.clone(), end: self.end.clone() }.fmt(f)
    }
}

#[cfg(test)]
impl PartitionSchema {
    /// Hash schemas with so many buckets.
    pub fn of_buckets(schemas: &[&[i32]], has_ranges: bool) -> Self {
        let dimension = |count: &i32| {
            let buckets = NonZeroU32::new(u32::try_from(*count).unwrap()).unwrap();
            HashDimension { columns: vec![0], buckets, seed: 0 }
        };
        let hashes = schemas.iter().map(|counts| counts.iter().map(dimension).collect());
        Self { hashes: hashes.collect(), range: if has_ranges { vec![0] } else { Vec::new() } }
    }
}
