//! Which tablet a row belongs to.
//!
//! A partition key is the bucket of each hash dimension as a big-endian u32, then the range columns encoded as a key. A tablet
//! has the rows from its start (inclusive) to its end (exclusive). Where a range has no end, the end of the tablet is that of
//! its last bucket: the next bucket's number. Ranges may have hash dimensions of their own, and leave keys out.

use std::num::NonZeroU32;

use pilaster_core::{Error, Result};

use super::columns::TableColumns;
use super::key_ranges::{KeyRange, key_places, key_ranges};
use super::key_rows::{KeyColumn, KeyRows};
use super::options::KuduTableWriterOptions;
use super::partition_options::HashPartition;
use crate::messages::{
    ColumnIdentifierPb, CustomHashSchemaPb, HashBucketSchemaPb, PartitionPb, PartitionSchemaPb, RangeSchemaPb,
};
use crate::partition_hash::bucket_of_encoded;

/// More tablets than any server takes.
const MAX_TABLETS: usize = 10_000;

/// The hash dimensions and ranges of a table.
#[derive(Debug)]
pub(super) struct Partitions {
    /// The table's own hash dimensions, then those of ranges.
    hashes: Vec<HashSchema>,
    /// Range columns by their place in the key.
    range_columns: Vec<usize>,
    /// Ascending, at least one.
    ranges: Vec<Range>,
    tablets: Vec<PartitionPb>,
}

/// The hash dimensions that divide some ranges.
#[derive(Debug)]
struct HashSchema(Vec<HashDimension>);

#[derive(Debug)]
struct HashDimension {
    /// By their place in the key.
    columns: Vec<usize>,
    buckets: NonZeroU32,
    seed: u32,
}

#[derive(Debug)]
struct Range {
    keys: KeyRange,
    /// Number of its hash dimensions among [`Partitions::hashes`].
    hash: usize,
    /// The tablets of its buckets, the last dimension counting fastest.
    tablets: Vec<usize>,
}

impl Partitions {
    pub fn new(table: &TableColumns, options: &KuduTableWriterOptions) -> Result<Self> {
        let mut hashes = vec![HashSchema::new(table, &options.hash)?];
        let (range_columns, keys) = match &options.range {
            Some(range) => key_ranges(table, range)?,
            None => (Vec::new(), vec![(KeyRange::default(), &[][..])]),
        };
        let mut ranges = Vec::with_capacity(keys.len());
        for (keys, hash) in keys {
            if !hash.is_empty() {
                hashes.push(HashSchema::of_range(table, hash, options.hash.len())?);
            }
            let hash = if hash.is_empty() { 0 } else { hashes.len().saturating_sub(1) };
            ranges.push(Range { keys, hash, tablets: Vec::new() });
        }
        let of_range = |range: &Range| hashes.get(range.hash).and_then(HashSchema::buckets);
        let count = ranges.iter().try_fold(0usize, |sum, range| sum.checked_add(of_range(range)?));
        if count.is_none_or(|count| count > MAX_TABLETS) {
            return Err(Error::invalid(format!("partitions of more than {MAX_TABLETS} tablets")));
        }
        let mut partitions = Self { hashes, range_columns, ranges, tablets: Vec::new() };
        partitions.number_tablets();
        Ok(partitions)
    }

    /// Gives every tablet its number, in the order of their partition keys.
    fn number_tablets(&mut self) {
        let mut tablets = Vec::new();
        for (number, range) in self.ranges.iter().enumerate() {
            let combinations = self.hashes.get(range.hash).map(HashSchema::combinations).unwrap_or_default();
            tablets.extend(combinations.iter().map(|buckets| (tablet(buckets, &range.keys), number)));
        }
        // Buckets of one range stay in their order.
        tablets.sort_by(|(a, _), (b, _)| a.partition_key_start.cmp(&b.partition_key_start));
        for (number, (_, range)) in tablets.iter().enumerate() {
            if let Some(range) = self.ranges.get_mut(*range) {
                range.tablets.push(number);
            }
        }
        self.tablets = tablets.into_iter().map(|(tablet, _)| tablet).collect();
    }

    /// The bounds of every tablet, in the order in which [`Partitions::assign`] numbers them.
    pub fn tablets(&self) -> Vec<PartitionPb> {
        self.tablets.clone()
    }

    /// Whether all rows belong to one tablet.
    pub fn is_one(&self) -> bool {
        matches!(self.ranges.as_slice(), [range] if range.keys.is_everything() && range.tablets.len() == 1)
    }

    /// The tablet of each row, given the columns of the key; `Err` with the first row that lies in no range.
    pub fn assign(&self, keys: &[KeyColumn], rows: usize) -> Result<Result<Vec<usize>, usize>> {
        let chosen = |columns: &[usize]| -> Vec<&KeyColumn> {
            columns.iter().filter_map(|column| keys.get(*column)).collect()
        };
        let range_keys = KeyRows::encode(&chosen(&self.range_columns), rows)?;
        // Each choice of hashed columns is encoded once.
        let mut hashed: Vec<(&[usize], KeyRows)> = Vec::new();
        for dimension in self.hashes.iter().flat_map(|schema| &schema.0) {
            if !hashed.iter().any(|(columns, _)| *columns == dimension.columns) {
                hashed.push((&dimension.columns, KeyRows::encode(&chosen(&dimension.columns), rows)?));
            }
        }
        let encoded = |dimension: &HashDimension, row: usize| -> &[u8] {
            let keys = hashed.iter().find(|(columns, _)| *columns == dimension.columns);
            keys.map_or(&[][..], |(_, keys)| keys.get(row))
        };
        let mut tablets = Vec::with_capacity(rows);
        for (row, key) in range_keys.iter().enumerate() {
            let Some(range) = self.range_of(key) else { return Ok(Err(row)) };
            let dimensions = self.hashes.get(range.hash).map_or(&[][..], |schema| &schema.0);
            let number = dimensions.iter().fold(0usize, |number, dimension| {
                let bucket = bucket_of_encoded(encoded(dimension, row), dimension.seed, dimension.buckets);
                number.saturating_mul(dimension.buckets.get() as usize).saturating_add(bucket as usize)
            });
            let tablet = range.tablets.get(number).copied();
            tablets.push(tablet.ok_or_else(|| Error::internal(format!("no bucket number {number}")))?);
        }
        Ok(Ok(tablets))
    }

    /// The range of encoded range columns.
    fn range_of(&self, key: &[u8]) -> Option<&Range> {
        let behind = self.ranges.partition_point(|range| range.keys.lower.encoded.as_slice() <= key);
        self.ranges.get(behind.checked_sub(1)?).filter(|range| range.keys.contains(key))
    }

    pub fn to_message(&self, table: &TableColumns) -> PartitionSchemaPb {
        let own = self.ranges.iter().filter(|range| range.hash > 0);
        PartitionSchemaPb {
            hash_schema: self.hashes.first().map(HashSchema::to_message).unwrap_or_default(),
            range_schema: Some(RangeSchemaPb { columns: identifiers(&self.range_columns) }),
            custom_hash_schema_ranges: own
                .map(|range| CustomHashSchemaPb {
                    range_bounds: Some(range.keys.to_message(table, &self.range_columns)),
                    hash_schema: self.hashes.get(range.hash).map(HashSchema::to_message).unwrap_or_default(),
                })
                .collect(),
        }
    }
}

fn identifiers(columns: &[usize]) -> Vec<ColumnIdentifierPb> {
    // Key columns have the first ids.
    let id = |column: &usize| ColumnIdentifierPb { id: i32::try_from(*column).ok(), name: None };
    columns.iter().map(id).collect()
}

fn tablet(buckets: &[u32], keys: &KeyRange) -> PartitionPb {
    let prefix = |buckets: &[u32]| -> Vec<u8> { buckets.iter().flat_map(|b| b.to_be_bytes()).collect() };
    let start = [prefix(buckets), keys.lower.encoded.clone()].concat();
    let end = match (keys.upper.encoded.as_slice(), buckets.split_last()) {
        ([], Some((last, others))) => {
            [prefix(others), last.saturating_add(1).to_be_bytes().to_vec()].concat()
        }
        (upper, _) => [&prefix(buckets), upper].concat(),
    };
    PartitionPb {
        hash_buckets: buckets.iter().map(|bucket| i32::try_from(*bucket).unwrap_or(i32::MAX)).collect(),
        partition_key_start: Some(start),
        partition_key_end: Some(end),
    }
}

impl HashSchema {
    fn new(table: &TableColumns, partitions: &[HashPartition]) -> Result<Self> {
        let mut dimensions: Vec<HashDimension> = Vec::with_capacity(partitions.len());
        for partition in partitions {
            let dimension = HashDimension::new(table, partition)?;
            let shared = dimension.columns.iter().find(|c| dimensions.iter().any(|h| h.columns.contains(c)));
            if let Some(name) = shared.and_then(|column| table.keys().get(*column)) {
                let name = &name.column.name;
                return Err(Error::invalid(format!("column \"{name}\" is in two hash partitions")));
            }
            dimensions.push(dimension);
        }
        Ok(Self(dimensions))
    }

    /// The dimensions of a range, as many as the table has.
    fn of_range(table: &TableColumns, partitions: &[HashPartition], wanted: usize) -> Result<Self> {
        if partitions.len() != wanted {
            return Err(Error::invalid(format!(
                "a range with {} hash partitions of its own in a table with {wanted}; Kudu takes only as many",
                partitions.len()
            )));
        }
        Self::new(table, partitions)
    }

    /// Buckets of all dimensions together.
    fn buckets(&self) -> Option<usize> {
        let mut buckets = self.0.iter().map(|dimension| usize::try_from(dimension.buckets.get()).ok());
        buckets.try_fold(1usize, |count, buckets| count.checked_mul(buckets?))
    }

    /// A bucket of each dimension, the last one counting fastest.
    fn combinations(&self) -> Vec<Vec<u32>> {
        let mut combinations: Vec<Vec<u32>> = vec![Vec::new()];
        for dimension in &self.0 {
            let longer = combinations.iter().flat_map(|buckets| {
                (0..dimension.buckets.get()).map(|bucket| [buckets.as_slice(), &[bucket]].concat())
            });
            combinations = longer.collect();
        }
        combinations
    }

    fn to_message(&self) -> Vec<HashBucketSchemaPb> {
        let dimensions = self.0.iter().map(|dimension| HashBucketSchemaPb {
            columns: identifiers(&dimension.columns),
            num_buckets: i32::try_from(dimension.buckets.get()).ok(),
            seed: Some(dimension.seed),
        });
        dimensions.collect()
    }
}

impl HashDimension {
    fn new(table: &TableColumns, partition: &HashPartition) -> Result<Self> {
        let columns = key_places(table, &partition.columns)?;
        let buckets = NonZeroU32::new(partition.buckets)
            .filter(|buckets| buckets.get() >= 2 && i32::try_from(buckets.get()).is_ok())
            .ok_or_else(|| {
                Error::invalid(format!("a hash partition of {} buckets; at least 2", partition.buckets))
            })?;
        Ok(Self { columns, buckets, seed: partition.seed })
    }
}
