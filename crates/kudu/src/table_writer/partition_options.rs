//! How a table is divided into tablets, as it is asked for.

use std::str::FromStr;

use pilaster_core::{Error, Literal, Result};

/// A hash dimension: rows go to buckets by the hash of some key columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HashPartition {
    pub(super) columns: Vec<String>,
    pub(super) buckets: u32,
    pub(super) seed: u32,
}

impl HashPartition {
    /// Buckets by the hash of `columns`, which must be key columns.
    pub fn new<S: Into<String>>(columns: impl IntoIterator<Item = S>, buckets: u32) -> Self {
        Self { columns: columns.into_iter().map(Into::into).collect(), buckets, seed: 0 }
    }

    /// The seed of the hash; 0 unless set.
    #[must_use]
    pub fn with_seed(mut self, seed: u32) -> Self {
        self.seed = seed;
        self
    }
}

impl FromStr for HashPartition {
    type Err = Error;

    /// Takes `columns:buckets` or `columns:buckets:seed`, the columns separated by commas.
    fn from_str(text: &str) -> Result<Self> {
        let refuse = || {
            Error::invalid(format!(
                "no hash partition \"{text}\"; it is written as columns:buckets, for example id,name:4"
            ))
        };
        let mut parts = text.split(':');
        let columns = column_list(parts.next().unwrap_or_default()).ok_or_else(refuse)?;
        let buckets = parts.next().and_then(|part| part.trim().parse().ok()).ok_or_else(refuse)?;
        let seed = match parts.next() {
            Some(part) => part.trim().parse().map_err(|_| refuse())?,
            None => 0,
        };
        if parts.next().is_some() {
            return Err(refuse());
        }
        Ok(Self::new(columns, buckets).with_seed(seed))
    }
}

/// Ranges of some key columns, each a tablet or, with hash dimensions, several.
#[derive(Debug, Clone, PartialEq)]
pub struct RangePartition {
    pub(super) columns: Vec<String>,
    pub(super) ranges: Ranges,
}

/// Which ranges there are.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Ranges {
    /// All keys, divided at these.
    Splits(Vec<Vec<Literal>>),
    /// No other keys than these.
    Only(Vec<KeyBounds>),
}

impl RangePartition {
    /// All keys of `columns`, which must be key columns, divided at `splits`: a value for each column. A row that equals a
    /// split belongs to the range it begins.
    pub fn new<S: Into<String>>(
        columns: impl IntoIterator<Item = S>,
        splits: impl IntoIterator<Item = Vec<Literal>>,
    ) -> Self {
        Self {
            columns: columns.into_iter().map(Into::into).collect(),
            ranges: Ranges::Splits(splits.into_iter().collect()),
        }
    }

    /// Only these ranges of `columns`. A row outside all of them is an error, as it is for a client of Kudu.
    pub fn only<S: Into<String>>(
        columns: impl IntoIterator<Item = S>,
        ranges: impl IntoIterator<Item = KeyBounds>,
    ) -> Self {
        Self {
            columns: columns.into_iter().map(Into::into).collect(),
            ranges: Ranges::Only(ranges.into_iter().collect()),
        }
    }
}

/// A range of keys: a value for each range column, or no bound.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct KeyBounds {
    /// The first key that belongs to it.
    pub(super) lower: Option<Vec<Literal>>,
    /// The first key that no longer does.
    pub(super) upper: Option<Vec<Literal>>,
    pub(super) hash: Vec<HashPartition>,
}

impl KeyBounds {
    /// The keys from `lower` on and before `upper`; `None` for no bound.
    pub fn new(lower: Option<Vec<Literal>>, upper: Option<Vec<Literal>>) -> Self {
        Self { lower, upper, hash: Vec::new() }
    }

    /// Adds a hash dimension of this range. A range that has any has none of the table's, but as many: Kudu refuses others.
    #[must_use]
    pub fn with_hash_partition(mut self, partition: HashPartition) -> Self {
        self.hash.push(partition);
        self
    }
}

impl FromStr for RangePartition {
    type Err = Error;

    /// Takes `columns:split|split|…` or `columns:lower..upper|lower..upper|…`, columns and the values of a split or a bound
    /// separated by commas. A bound may be missing; behind a range, `@columns:buckets` is a hash dimension of its own.
    fn from_str(text: &str) -> Result<Self> {
        let refuse = || {
            Error::invalid(format!(
                "no range partition \"{text}\"; it is written as columns:split|split, for example year:2020|2024, or as \
                 columns:lower..upper|lower..upper, for example year:2020..2024|2024..@id:8"
            ))
        };
        let (columns, ranges) = text.split_once(':').ok_or_else(refuse)?;
        let columns = column_list(columns).ok_or_else(refuse)?;
        let values = |text: &str| -> Result<Vec<Literal>> {
            let values: Vec<_> = text.split(',').map(Literal::from).collect();
            if values.len() == columns.len() { Ok(values) } else { Err(refuse()) }
        };
        let bound = |text: &str| (!text.is_empty()).then(|| values(text)).transpose();
        if !ranges.contains("..") {
            let splits = ranges.split('|').map(values).collect::<Result<Vec<_>>>()?;
            return Ok(Self::new(columns, splits));
        }
        let mut all = Vec::new();
        for range in ranges.split('|') {
            let (lower, rest) = range.split_once("..").ok_or_else(refuse)?;
            let mut parts = rest.split('@');
            let upper = parts.next().unwrap_or_default();
            let bounds = KeyBounds::new(bound(lower)?, bound(upper)?);
            let hash = parts.map(HashPartition::from_str).collect::<Result<Vec<_>>>()?;
            all.push(KeyBounds { hash, ..bounds });
        }
        Ok(Self::only(columns, all))
    }
}

fn column_list(text: &str) -> Option<Vec<String>> {
    let columns: Vec<_> = text.split(',').map(|name| name.trim().to_string()).collect();
    columns.iter().all(|name| !name.is_empty()).then_some(columns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pilaster_core::lit;

    #[test]
    fn partitions_are_read_from_text() {
        let hash: HashPartition = "a, b:4:7".parse().unwrap();
        assert_eq!(hash, HashPartition::new(["a", "b"], 4).with_seed(7));
        let range: RangePartition = "a,b:1,x|2,y".parse().unwrap();
        let splits = [vec![lit("1"), lit("x")], vec![lit("2"), lit("y")]];
        assert_eq!(range, RangePartition::new(["a", "b"], splits));
        for bad in ["", "a", "a:", "a:x", ":4", "a:4:", "a:4:5:6"] {
            assert!(bad.parse::<HashPartition>().is_err(), "{bad}");
        }
        let range: RangePartition = "a:..5|7..9@b:4@c,d:2:1|20..".parse().unwrap();
        let one = |text| Some(vec![lit(text)]);
        let hashed = KeyBounds::new(one("7"), one("9"))
            .with_hash_partition(HashPartition::new(["b"], 4))
            .with_hash_partition(HashPartition::new(["c", "d"], 2).with_seed(1));
        let ranges = [KeyBounds::new(None, one("5")), hashed, KeyBounds::new(one("20"), None)];
        assert_eq!(range, RangePartition::only(["a"], ranges));
        for bad in ["", "a", ":4", "a,b:1|2", "a:1..2|3", "a,b:1..2", "a:1..2@b", "a:1..2@"] {
            assert!(bad.parse::<RangePartition>().is_err(), "{bad}");
        }
    }
}
