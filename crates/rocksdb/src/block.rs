//! Blocks of a table: keys in order, of which each shares its beginning with the one before.
//!
//! ```text
//! block:   entries | hash index, if the highest bit of the count is set: u8 buckets, u16 count of them | u32 restarts | u32 count
//!          the hash index stands behind the restarts
//! entry:   | varint shared | varint own | varint length of the value | own bytes of the key | value |
//!          in an index whose values are distances: | varint shared | varint own | own bytes of the key | value |
//! ```
//!
//! At a restart a key shares nothing; readers that look for one key begin there. Here blocks are read from their beginning on, so that
//! only the count of restarts matters.

use std::ops::Range;

use bytes::Bytes;
use pilaster_core::{Error, Result};
use pilaster_encoding::varint;

const HASH_INDEX: u32 = 1 << 31;
/// Keys that are spread evenly: of no meaning to a reader that reads them all.
const UNIFORM: u32 = 1 << 29;
const VALUES_APART: u32 = 1 << 28;

/// Goes through the entries of a block.
#[derive(Debug)]
pub(crate) struct BlockCursor {
    bytes: Bytes,
    at: usize,
    end: usize,
    has_value_lengths: bool,
    key: Vec<u8>,
    is_shared: bool,
    value: Range<usize>,
}

impl BlockCursor {
    pub fn new(bytes: Bytes) -> Result<Self> {
        Self::with_values(bytes, true)
    }

    /// An index block whose values do not say how long they are: [`BlockCursor::take_value`] must be called for each entry.
    pub fn with_values(bytes: Bytes, has_value_lengths: bool) -> Result<Self> {
        let end = entries_end(&bytes)?;
        Ok(Self { bytes, at: 0, end, has_value_lengths, key: Vec::new(), is_shared: false, value: 0..0 })
    }

    /// Goes to the next entry; says whether there is one.
    pub fn advance(&mut self) -> Result<bool> {
        if self.at >= self.end {
            return Ok(false);
        }
        let entries = self.bytes.get(..self.end).unwrap_or_default();
        let mut at = self.at;
        let shared = varint::read_u32(entries, &mut at)? as usize;
        let own = varint::read_u32(entries, &mut at)? as usize;
        let length = if self.has_value_lengths { varint::read_u32(entries, &mut at)? as usize } else { 0 };
        if shared > self.key.len() {
            let found = format!("a key of {} bytes", self.key.len());
            return Err(self.error(format!("{shared} bytes to share"), found));
        }
        let key_end = at.saturating_add(own);
        let value_end = key_end.saturating_add(length);
        let (Some(suffix), true) = (entries.get(at..key_end), value_end <= self.end) else {
            return Err(
                self.error(format!("a key of {own} and a value of {length} bytes"), "the end of the block")
            );
        };
        self.key.truncate(shared);
        self.key.extend_from_slice(suffix);
        self.is_shared = shared > 0;
        self.value = key_end..value_end;
        self.at = value_end;
        Ok(true)
    }

    pub fn key(&self) -> &[u8] {
        &self.key
    }

    pub fn value(&self) -> Bytes {
        self.bytes.slice(self.value.clone())
    }

    /// Where the value stands in the block.
    pub fn value_range(&self) -> Range<usize> {
        self.value.clone()
    }

    /// Whether the key shares bytes with the one before.
    pub const fn is_shared(&self) -> bool {
        self.is_shared
    }

    /// What is left behind the key, of which the value is as much as `read` takes.
    pub fn take_value<T>(&mut self, read: impl FnOnce(&[u8], &mut usize) -> Result<T>) -> Result<T> {
        let rest = self.bytes.get(self.value.start..self.end).unwrap_or_default();
        let mut taken = 0;
        let value = read(rest, &mut taken)?;
        if !self.has_value_lengths {
            self.value.end = self.value.start.saturating_add(taken).min(self.end);
            self.at = self.value.end;
        }
        Ok(value)
    }

    fn error(&self, expected: impl Into<String>, found: impl std::fmt::Display) -> Error {
        Error::corrupt(format!("{} at byte {} of a block", expected.into(), self.at), found)
    }
}

/// Where the entries of a block end.
fn entries_end(bytes: &[u8]) -> Result<usize> {
    let short = || Error::corrupt("a block with restarts", format!("{} bytes", bytes.len()));
    let (rest, count) = bytes.split_last_chunk::<4>().ok_or_else(short)?;
    let mut count = u32::from_le_bytes(*count);
    let mut end = rest.len();
    if count & VALUES_APART != 0 && count & !(HASH_INDEX | UNIFORM | VALUES_APART) < VALUES_APART {
        return Err(Error::unsupported("blocks whose values stand apart from their keys"));
    }
    if count & HASH_INDEX != 0 {
        let (_, buckets) = rest.split_last_chunk::<2>().ok_or_else(short)?;
        end = end
            .checked_sub(2)
            .and_then(|end| end.checked_sub(usize::from(u16::from_le_bytes(*buckets))))
            .ok_or_else(short)?;
    }
    count &= !(HASH_INDEX | UNIFORM);
    end.checked_sub((count as usize).saturating_mul(4)).ok_or_else(|| {
        Error::corrupt(format!("{count} restarts"), format!("a block of {} bytes", bytes.len()))
    })
}
