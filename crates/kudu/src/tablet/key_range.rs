//! From a predicate to the range of encoded primary keys it allows.

use std::ops::Bound;

use pilaster_core::Literal;
use pilaster_core::predicate::{BoundPredicate, Bounds};

use super::schema::{KuduColumn, KuduSchema};
use super::tablet_rows::KeyRange;
use crate::cfile::stored_form;
use crate::key::{self, KeyPart};

/// The keys that can match: a prefix of key columns with one value each, then a range of the next one.
pub(crate) fn key_range(predicate: &BoundPredicate, schema: &KuduSchema) -> KeyRange {
    let keys = schema.keys();
    let mut prefix = Vec::new();
    for (index, column) in keys.iter().enumerate() {
        let is_last = index.saturating_add(1) == keys.len();
        let bounds = predicate.bounds(index);
        if let Bounds { lower: Bound::Included(low), upper: Bound::Included(high) } = &bounds
            && low == high
            && let Some(key) = extended(&prefix, column, low, is_last)
        {
            prefix = key;
            continue;
        }
        return range_of(&prefix, column, &bounds, is_last);
    }
    // One whole key: nothing lies between it and itself with a zero byte behind.
    let mut end = prefix.clone();
    end.push(0);
    KeyRange { start: prefix, end }
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
    let after = |key: Vec<u8>| {
        if is_last {
            let mut key = key;
            key.push(0);
            key
        } else {
            successor(key)
        }
    };
    let encode = |value: &Literal| extended(prefix, column, value, is_last);
    let start = match &bounds.lower {
        Bound::Included(value) => encode(value),
        Bound::Excluded(value) => encode(value).map(after),
        Bound::Unbounded => None,
    };
    let end = match &bounds.upper {
        Bound::Included(value) => encode(value).map(after),
        Bound::Excluded(value) => encode(value),
        Bound::Unbounded => None,
    };
    KeyRange {
        start: start.unwrap_or_else(|| prefix.to_vec()),
        end: end.unwrap_or_else(|| if prefix.is_empty() { Vec::new() } else { successor(prefix.to_vec()) }),
    }
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
