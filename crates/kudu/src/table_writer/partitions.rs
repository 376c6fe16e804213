//! Which tablet a row belongs to.
//!
//! A partition key is the bucket of each hash dimension as a big-endian u32, then the range columns encoded as a key. A tablet
//! has the rows from its start (inclusive) to its end (exclusive). Where a range has no end, the end of the tablet is that of
//! its last bucket: the next bucket's number.

use std::num::NonZeroU32;

use arrow_cast::{CastOptions, cast_with_options};
use pilaster_core::{Error, Literal, Result};

use super::columns::TableColumns;
use super::key_rows::{KeyColumn, KeyRows};
use super::options::{HashPartition, KuduTableWriterOptions, RangePartition};
use crate::messages::{
    ColumnIdentifierPb, HashBucketSchemaPb, PartitionPb, PartitionSchemaPb, RangeSchemaPb,
};
use crate::partition_hash::bucket_of_encoded;

/// More tablets than any server takes.
const MAX_TABLETS: usize = 10_000;

/// The hash dimensions and ranges of a table.
#[derive(Debug)]
pub(super) struct Partitions {
    hash: Vec<HashDimension>,
    /// Range columns by their place in the key.
    range_columns: Vec<usize>,
    /// Where ranges after the first begin: encoded range columns, ascending.
    splits: Vec<Vec<u8>>,
}

#[derive(Debug)]
struct HashDimension {
    /// By their place in the key.
    columns: Vec<usize>,
    buckets: NonZeroU32,
    seed: u32,
}

impl Partitions {
    pub fn new(table: &TableColumns, options: &KuduTableWriterOptions) -> Result<Self> {
        let mut hash: Vec<HashDimension> = Vec::with_capacity(options.hash.len());
        for partition in &options.hash {
            let dimension = HashDimension::new(table, partition)?;
            let shared = dimension.columns.iter().find(|c| hash.iter().any(|h| h.columns.contains(c)));
            if let Some(name) = shared.and_then(|column| table.keys().get(*column)) {
                let name = &name.column.name;
                return Err(Error::invalid(format!("column \"{name}\" is in two hash partitions")));
            }
            hash.push(dimension);
        }
        let (range_columns, splits) = match &options.range {
            Some(range) => range_splits(table, range)?,
            None => (Vec::new(), Vec::new()),
        };
        let partitions = Self { hash, range_columns, splits };
        let tablets = partitions.hash.iter().try_fold(partitions.ranges(), |count, dimension| {
            count.checked_mul(usize::try_from(dimension.buckets.get()).ok()?)
        });
        match tablets {
            Some(count) if count <= MAX_TABLETS => Ok(partitions),
            _ => Err(Error::invalid(format!("partitions of more than {MAX_TABLETS} tablets"))),
        }
    }

    fn ranges(&self) -> usize {
        self.splits.len().saturating_add(1)
    }

    /// The bounds of every tablet, in the order in which [`Partitions::assign`] numbers them.
    pub fn tablets(&self) -> Vec<PartitionPb> {
        let mut combinations: Vec<Vec<u32>> = vec![Vec::new()];
        for dimension in &self.hash {
            let longer = combinations.iter().flat_map(|buckets| {
                (0..dimension.buckets.get()).map(|bucket| [buckets.as_slice(), &[bucket]].concat())
            });
            combinations = longer.collect();
        }
        let tablets = combinations.iter().flat_map(|buckets| {
            (0..self.ranges()).map(|range| {
                let lower = range.checked_sub(1).and_then(|before| self.splits.get(before));
                tablet(buckets, lower, self.splits.get(range))
            })
        });
        tablets.collect()
    }

    /// The tablet of each row, given the columns of the key.
    pub fn assign(&self, keys: &[KeyColumn], rows: usize) -> Result<Vec<usize>> {
        let mut tablets = vec![0usize; rows];
        for dimension in &self.hash {
            let encoded = KeyRows::encode(&chosen(keys, &dimension.columns), rows)?;
            for (tablet, key) in tablets.iter_mut().zip(encoded.iter()) {
                let bucket = bucket_of_encoded(key, dimension.seed, dimension.buckets);
                *tablet =
                    tablet.saturating_mul(dimension.buckets.get() as usize).saturating_add(bucket as usize);
            }
        }
        if !self.splits.is_empty() {
            let encoded = KeyRows::encode(&chosen(keys, &self.range_columns), rows)?;
            for (tablet, key) in tablets.iter_mut().zip(encoded.iter()) {
                let range = self.splits.partition_point(|split| split.as_slice() <= key);
                *tablet = tablet.saturating_mul(self.ranges()).saturating_add(range);
            }
        }
        Ok(tablets)
    }

    pub fn to_message(&self) -> PartitionSchemaPb {
        let identifiers = |columns: &[usize]| -> Vec<ColumnIdentifierPb> {
            // Key columns have the first ids.
            let id = |column: &usize| ColumnIdentifierPb { id: i32::try_from(*column).ok(), name: None };
            columns.iter().map(id).collect()
        };
        PartitionSchemaPb {
            hash_schema: self
                .hash
                .iter()
                .map(|dimension| HashBucketSchemaPb {
                    columns: identifiers(&dimension.columns),
                    num_buckets: i32::try_from(dimension.buckets.get()).ok(),
                    seed: Some(dimension.seed),
                })
                .collect(),
            range_schema: Some(RangeSchemaPb { columns: identifiers(&self.range_columns) }),
            custom_hash_schema_ranges: Vec::new(),
        }
    }
}

fn tablet(buckets: &[u32], lower: Option<&Vec<u8>>, upper: Option<&Vec<u8>>) -> PartitionPb {
    let prefix = |buckets: &[u32]| -> Vec<u8> { buckets.iter().flat_map(|b| b.to_be_bytes()).collect() };
    let start = [prefix(buckets), lower.cloned().unwrap_or_default()].concat();
    let end = match (upper, buckets.split_last()) {
        (Some(upper), _) => [prefix(buckets), upper.clone()].concat(),
        (None, Some((last, others))) => {
            [prefix(others), last.saturating_add(1).to_be_bytes().to_vec()].concat()
        }
        (None, None) => Vec::new(),
    };
    PartitionPb {
        hash_buckets: buckets.iter().map(|bucket| i32::try_from(*bucket).unwrap_or(i32::MAX)).collect(),
        partition_key_start: Some(start),
        partition_key_end: Some(end),
    }
}

fn chosen<'a>(keys: &'a [KeyColumn], columns: &[usize]) -> Vec<&'a KeyColumn> {
    columns.iter().filter_map(|column| keys.get(*column)).collect()
}

/// Where a column of a partition stands in the key.
fn key_place(table: &TableColumns, name: &str) -> Result<usize> {
    table.keys().iter().position(|key| key.column.name == name).ok_or_else(|| {
        let keys: Vec<_> = table.keys().iter().map(|key| key.column.name.as_str()).collect();
        Error::invalid(format!(
            "a table can only be partitioned by columns of its primary key ({}), not by \"{name}\"",
            keys.join(", ")
        ))
    })
}

fn key_places(table: &TableColumns, names: &[String]) -> Result<Vec<usize>> {
    let mut places = Vec::with_capacity(names.len());
    for name in names {
        let place = key_place(table, name)?;
        if places.contains(&place) {
            return Err(Error::invalid(format!("column \"{name}\" is in a partition twice")));
        }
        places.push(place);
    }
    if places.is_empty() {
        return Err(Error::invalid("a partition without columns"));
    }
    Ok(places)
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

fn range_splits(table: &TableColumns, range: &RangePartition) -> Result<(Vec<usize>, Vec<Vec<u8>>)> {
    let columns = key_places(table, &range.columns)?;
    let mut splits = Vec::with_capacity(range.splits.len());
    for split in &range.splits {
        splits.push(encoded_split(table, &columns, split)?);
    }
    splits.sort();
    if let Some([twice, _]) = splits.array_windows().find(|[before, after]| before == after) {
        return Err(Error::invalid(format!("the range split {twice:02x?} is given twice")));
    }
    if splits.first().is_some_and(Vec::is_empty) {
        return Err(Error::invalid("a range split at the smallest key has no rows before it"));
    }
    Ok((columns, splits))
}

fn encoded_split(table: &TableColumns, columns: &[usize], split: &[Literal]) -> Result<Vec<u8>> {
    if split.len() != columns.len() {
        return Err(Error::invalid(format!(
            "a range split of {} values for {} columns",
            split.len(),
            columns.len()
        )));
    }
    let options = CastOptions { safe: false, ..CastOptions::default() };
    let mut cells = Vec::with_capacity(columns.len());
    for (literal, column) in split.iter().zip(columns.iter().filter_map(|place| table.keys().get(*place))) {
        let (name, wanted) = (&column.column.name, column.field.data_type());
        let refuse = || {
            let data_type = column.column.data_type;
            Error::invalid(format!(
                "column \"{name}\" of type {data_type} has no value {literal} to split at"
            ))
        };
        let value = cast_with_options(literal.array(), wanted, &options).map_err(|_| refuse())?;
        if literal.is_null() {
            return Err(refuse());
        }
        cells.push(KeyColumn::new(column.column.data_type, &value)?);
    }
    let keys = KeyRows::encode(&cells.iter().collect::<Vec<_>>(), 1)?;
    Ok(keys.get(0).to_vec())
}
