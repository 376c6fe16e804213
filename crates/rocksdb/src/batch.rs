//! What one write to a database was: a record of its write-ahead log.
//!
//! ```text
//! batch:  | u64 sequence number of the first entry | u32 count of entries | entries |
//! entry:  1 key value   0 key   7 key   15 begin end        put, delete, delete what was put once, delete a range
//!         5 4 8 14      the same with the varint number of a column family before the key
//!         2 6 merges    16 17 values in blob files    22 23 entities    24 25 values with a time
//!         3 text        13        remarks, which are no entries
//!         9 to 12, 18, 19, 21     transactions in two phases
//! texts:  | varint length | bytes |
//! ```

use pilaster_core::{Error, Result};

use crate::cursor::Cursor;
use crate::key::MAX_SEQUENCE;

const HEADER_BYTES: usize = 12;

/// What an entry does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change<'a> {
    Put(&'a [u8], &'a [u8]),
    Delete(&'a [u8]),
    /// From the first key on, up to the second.
    DeleteRange(&'a [u8], &'a [u8]),
    /// An entry of a kind that no reader of pairs can apply, for a key: by its number.
    Foreign(u8, &'a [u8]),
}

/// An entry and whose it is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Op<'a> {
    pub family: u32,
    pub sequence: u64,
    pub change: Change<'a>,
}

/// The entries of a batch in their order.
#[derive(Debug)]
pub(crate) struct Batch<'a> {
    cursor: Cursor<'a>,
    first: u64,
    count: u32,
    seen: u32,
}

impl<'a> Batch<'a> {
    pub fn parse(bytes: &'a [u8]) -> Result<Self> {
        let header = bytes.first_chunk::<HEADER_BYTES>();
        let Some([s0, s1, s2, s3, s4, s5, s6, s7, c0, c1, c2, c3]) = header.copied() else {
            return Err(Error::corrupt("a batch of 12 bytes at least", format!("{} bytes", bytes.len())));
        };
        let mut cursor = Cursor::new(bytes);
        cursor.take(HEADER_BYTES)?;
        let first = u64::from_le_bytes([s0, s1, s2, s3, s4, s5, s6, s7]);
        // Behind the last entry of a batch there is still a number that fits.
        if first >= MAX_SEQUENCE >> 1 {
            return Err(Error::corrupt("a sequence number of 55 bits", first));
        }
        Ok(Self { cursor, first, count: u32::from_le_bytes([c0, c1, c2, c3]), seen: 0 })
    }

    /// The sequence number of the first entry.
    pub const fn first(&self) -> u64 {
        self.first
    }

    /// The sequence number that the entry after the last one would have.
    pub fn next_sequence(&self) -> u64 {
        self.first.saturating_add(u64::from(self.count))
    }

    /// The next entry; `None` at the end.
    pub fn next(&mut self) -> Result<Option<Op<'a>>> {
        loop {
            if self.cursor.is_at_end() {
                if self.seen != self.count {
                    return Err(Error::corrupt(format!("{} entries in a batch", self.count), self.seen));
                }
                return Ok(None);
            }
            let tag = self.cursor.byte()?;
            // With the number of a family before the key, and the same without.
            let (has_family, kind) = match tag {
                4 => (true, 0),
                5 => (true, 1),
                6 => (true, 2),
                8 => (true, 7),
                14 => (true, 15),
                16 => (true, 17),
                23 => (true, 22),
                25 => (true, 24),
                other => (false, other),
            };
            let family = if has_family { self.cursor.u32()? } else { 0 };
            let change = match kind {
                0 | 7 => Change::Delete(self.cursor.text()?),
                1 => Change::Put(self.cursor.text()?, self.cursor.text()?),
                15 => Change::DeleteRange(self.cursor.text()?, self.cursor.text()?),
                2 | 17 | 22 | 24 => {
                    let key = self.cursor.text()?;
                    self.cursor.text()?;
                    Change::Foreign(kind, key)
                }
                3 => {
                    self.cursor.text()?;
                    continue;
                }
                13 => continue,
                9..=12 | 18 | 19 | 21 => return Err(Error::unsupported("transactions in two phases")),
                other => return Err(Error::corrupt("an entry of a batch", format!("kind {other}"))),
            };
            let sequence = self.first.saturating_add(u64::from(self.seen));
            self.seen = self.seen.saturating_add(1);
            return Ok(Some(Op { family, sequence, change }));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(count: u32, entries: &[u8]) -> Vec<u8> {
        [&40u64.to_le_bytes()[..], &count.to_le_bytes(), entries].concat()
    }

    #[test]
    fn entries_count_up_and_remarks_do_not() {
        let bytes =
            batch(4, b"\x03\x02hi\x01\x01a\x01A\x0d\x04\x02\x01b\x0e\x02\x01c\x01d\x06\x02\x01e\x01+");
        let mut batch = Batch::parse(&bytes).unwrap();
        let mut ops = Vec::new();
        while let Some(op) = batch.next().unwrap() {
            ops.push((op.family, op.sequence, op.change));
        }
        assert_eq!(
            ops,
            [
                (0, 40, Change::Put(b"a", b"A")),
                (2, 41, Change::Delete(b"b")),
                (2, 42, Change::DeleteRange(b"c", b"d")),
                (2, 43, Change::Foreign(2, b"e")),
            ]
        );
        assert_eq!(batch.next_sequence(), 44);
    }

    #[test]
    fn a_wrong_count_and_an_early_end_are_refused() {
        for bytes in [
            batch(2, b"\x01\x01a\x01A"),
            batch(0, b"\x01\x01a\x01A"),
            batch(1, b"\x01\x01a\x02A"),
            batch(1, b"\x63"),
        ] {
            let mut batch = Batch::parse(&bytes).unwrap();
            let error = loop {
                match batch.next() {
                    Ok(Some(_)) => {}
                    Ok(None) => panic!("{bytes:?} was read"),
                    Err(error) => break error,
                }
            };
            assert!(error.is_damage(), "{error}");
        }
        assert!(Batch::parse(b"short").is_err());
    }
}
