//! Internal keys: what the user called the key, and which entry of it this is.
//!
//! ```text
//! user key | u64: sequence number << 8 | kind
//! ```
//!
//! Entries are ordered by user key, and those of one key from the newest to the oldest.

use std::cmp::Ordering;

use bytes::Bytes;
use pilaster_core::{Error, Result};

/// The highest sequence number there is; no entry has it, only bounds do.
pub(crate) const MAX_SEQUENCE: u64 = (1 << 56) - 1;
/// The kind of a range delete, in bounds of files and in the block of range deletes.
pub(crate) const RANGE_DELETE: u8 = 15;
const TAG_BYTES: usize = 8;

/// What an entry does to its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Put,
    Delete,
    /// Needs code of the program that wrote the database, or a file beside it: by name.
    Foreign(&'static str),
}

impl Kind {
    pub fn of(tag: u64) -> Result<Self> {
        match tag & 0xff {
            0 | 7 => Ok(Self::Delete),
            1 => Ok(Self::Put),
            2 => Ok(Self::Foreign("a merge operand, which only the program that wrote it can apply")),
            17 => Ok(Self::Foreign("a value in a blob file")),
            20 => Ok(Self::Foreign("a delete with a timestamp")),
            22 => Ok(Self::Foreign("an entity of several columns")),
            24 => Ok(Self::Foreign("a value with a time of its own")),
            other => Err(Error::corrupt("an entry that puts or deletes", format!("kind {other}"))),
        }
    }
}

/// Where an entry or a bound stands in the order of all entries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    pub user: Vec<u8>,
    /// Sequence number and kind.
    pub tag: u64,
}

impl Place {
    /// Before all entries of a key.
    pub fn before(user: &[u8]) -> Self {
        Self { user: user.to_vec(), tag: u64::MAX }
    }

    pub fn parse(key: &[u8]) -> Result<Self> {
        let (user, tag) = split(key)?;
        Ok(Self { user: user.to_vec(), tag })
    }
}

impl Ord for Place {
    fn cmp(&self, other: &Self) -> Ordering {
        compare((&self.user, self.tag), (&other.user, other.tag))
    }
}

impl PartialOrd for Place {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The order of entries: by key, then from the newest to the oldest.
pub(crate) fn compare(a: (&[u8], u64), b: (&[u8], u64)) -> Ordering {
    a.0.cmp(b.0).then(b.1.cmp(&a.1))
}

/// The user key and the tag of an internal key.
pub(crate) fn split(key: &[u8]) -> Result<(&[u8], u64)> {
    match key.split_last_chunk::<TAG_BYTES>() {
        Some((user, tag)) => Ok((user, u64::from_le_bytes(*tag))),
        None => Err(Error::corrupt(
            "a key with its sequence number, 8 bytes at least",
            format!("{} bytes", key.len()),
        )),
    }
}

pub(crate) const fn sequence(tag: u64) -> u64 {
    tag >> 8
}

/// One entry, as a table or a log has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub user: Vec<u8>,
    pub tag: u64,
    pub value: Bytes,
}

/// Deletes all keys from `start` on that come before `end` and are older than `sequence`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RangeDelete {
    pub start: Place,
    pub end: Place,
    pub sequence: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newer_entries_of_a_key_come_first() {
        let place = |user: &[u8], tag| Place { user: user.to_vec(), tag };
        let mut places =
            [place(b"b", 1), place(b"a", 1 << 8), place(b"a", 9 << 8), Place::before(b"a"), place(b"", 0)];
        places.sort();
        let tags: Vec<_> = places.iter().map(|place| place.tag).collect();
        assert_eq!(tags, [0, u64::MAX, 9 << 8, 1 << 8, 1]);
        assert_eq!(Place::parse(b"ab\x01\x02\0\0\0\0\0\0").unwrap(), place(b"ab", 0x0201));
        assert!(Place::parse(b"short").is_err());
    }
}
