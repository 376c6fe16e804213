//! From a predicate to the ranges of encoded keys it allows.

use std::ops::Bound;

use pilaster_core::Literal;
use pilaster_core::predicate::{BoundPredicate, Bounds, MOST_VALUES};

use super::schema::KuduColumn;
use crate::cfile::stored_form;
use crate::key::{self, KeyPart};

/// A range of encoded keys: start inclusive, end exclusive; an empty end means no end.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct KeyRange {
    pub start: Vec<u8>,
    pub end: Vec<u8>,
}

impl KeyRange {
    /// The keys from `min` to `max`, both included.
    pub fn closed(min: &[u8], max: &[u8]) -> Self {
        Self { start: min.to_vec(), end: after(max.to_vec()) }
    }

    /// Whether no key can lie in it.
    pub fn is_empty(&self) -> bool {
        !self.end.is_empty() && self.start >= self.end
    }

    /// Whether keys up to and without `end` (empty: no end) all lie before the end of this.
    pub fn reaches(&self, end: &[u8]) -> bool {
        self.end.is_empty() || (!end.is_empty() && end <= self.end.as_slice())
    }

    /// The keys in both.
    pub fn intersect(&self, other: &Self) -> Self {
        let end = if self.reaches(&other.end) { &other.end } else { &self.end };
        Self { start: (&self.start).max(&other.start).clone(), end: end.clone() }
    }

    /// The only key in it, if there is only one.
    pub fn only_key(&self) -> Option<&[u8]> {
        match self.end.split_last() {
            Some((0, key)) if key == self.start => Some(key),
            _ => None,
        }
    }
}

impl std::fmt::Display for KeyRange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let bound = |key: &[u8], none: &str| match key {
            [] => none.to_string(),
            key => key.iter().map(|byte| format!("{byte:02x}")).collect(),
        };
        write!(f, "[{}, {})", bound(&self.start, "-∞"), bound(&self.end, "∞"))
    }
}

/// The smallest key after `key`.
fn after(mut key: Vec<u8>) -> Vec<u8> {
    key.push(0);
    key
}

/// The keys made of `columns` (each with its number in the schema of the predicate) that can match, as ascending ranges that
/// do not touch: some values for each of the first columns, then a range of the next one.
pub(crate) fn key_ranges(predicate: &BoundPredicate, columns: &[(usize, &KuduColumn)]) -> Vec<KeyRange> {
    let mut prefixes = vec![Vec::new()];
    for (number, &(index, column)) in columns.iter().enumerate() {
        let is_last = number.saturating_add(1) == columns.len();
        let values = predicate.values(index);
        let extended = values.and_then(|values| all_extended(&prefixes, column, &values, is_last));
        let Some(extended) = extended else {
            let bounds = predicate.bounds(index);
            return joined(
                prefixes.iter().map(|prefix| range_of(prefix, column, &bounds, is_last)).collect(),
            );
        };
        prefixes = extended;
    }
    if columns.is_empty() {
        return vec![KeyRange::default()];
    }
    joined(prefixes.into_iter().map(|key| KeyRange { end: after(key.clone()), start: key }).collect())
}

/// Every key made of `columns` that can match, if the predicate names a value for each column, and few enough.
pub(crate) fn named_keys(
    predicate: &BoundPredicate,
    columns: &[(usize, &KuduColumn)],
) -> Option<Vec<Vec<u8>>> {
    let mut keys = vec![Vec::new()];
    for (number, &(index, column)) in columns.iter().enumerate() {
        let is_last = number.saturating_add(1) == columns.len();
        keys = all_extended(&keys, column, &predicate.values(index)?, is_last)?;
    }
    Some(keys)
}

/// Every prefix with every value behind it; `None` if that cannot be told or would be too many.
fn all_extended(
    prefixes: &[Vec<u8>],
    column: &KuduColumn,
    values: &[Literal],
    is_last: bool,
) -> Option<Vec<Vec<u8>>> {
    if prefixes.len().saturating_mul(values.len()) > MOST_VALUES {
        return None;
    }
    let pairs = prefixes.iter().flat_map(|prefix| values.iter().map(move |value| (prefix, value)));
    pairs.map(|(prefix, value)| extended(prefix, column, value, is_last)).collect()
}

/// The encoded key prefix with one more column.
fn extended(prefix: &[u8], column: &KuduColumn, value: &Literal, is_last: bool) -> Option<Vec<u8>> {
    let stored = stored_form(value.array(), column.data_type.physical())?;
    let mut key = prefix.to_vec();
    let part = if is_last { KeyPart::Last } else { KeyPart::NotLast };
    key::encode(column.data_type, &stored, part, &mut key).ok()?;
    Some(key)
}

fn range_of(prefix: &[u8], column: &KuduColumn, bounds: &Bounds, is_last: bool) -> KeyRange {
    let behind = |key: Vec<u8>| if is_last { after(key) } else { successor(key) };
    let encode = |value: &Literal| extended(prefix, column, value, is_last);
    let start = match &bounds.lower {
        Bound::Included(value) => encode(value),
        Bound::Excluded(value) => encode(value).map(behind),
        Bound::Unbounded => None,
    };
    let end = match &bounds.upper {
        Bound::Included(value) => encode(value).map(behind),
        Bound::Excluded(value) => encode(value),
        Bound::Unbounded => None,
    };
    KeyRange {
        start: start.unwrap_or_else(|| prefix.to_vec()),
        end: end.unwrap_or_else(|| if prefix.is_empty() { Vec::new() } else { successor(prefix.to_vec()) }),
    }
}

/// Sorted, without empty ones, and one range where several touch.
fn joined(mut ranges: Vec<KeyRange>) -> Vec<KeyRange> {
    ranges.retain(|range| !range.is_empty());
    ranges.sort();
    let mut joined: Vec<KeyRange> = Vec::with_capacity(ranges.len());
    for range in ranges {
        match joined.last_mut() {
            Some(last) if last.end.is_empty() || range.start <= last.end => {
                if !last.reaches(&range.end) {
                    last.end = range.end;
                }
            }
            _ => joined.push(range),
        }
    }
    joined
}

/// The smallest key greater than every key that begins with `prefix`; empty if there is none.
fn successor(mut prefix: Vec<u8>) -> Vec<u8> {
    while let Some(last) = prefix.pop() {
        if let Some(next) = last.checked_add(1) {
            prefix.push(next);
            return prefix;
        }
    }
    prefix
}
