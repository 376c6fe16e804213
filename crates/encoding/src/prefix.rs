//! Prefix encoding: byte strings that share their beginning with the one before.
//!
//! ```text
//! entry:  varint shared | varint unshared | unshared bytes
//!         value = the first `shared` bytes of the previous value + the bytes
//!
//! "key-00", "key-01"    00 06 6b65792d3030 | 05 01 31
//! ```
//!
//! Every `restart_interval`-th entry shares nothing and its place is listed, so that a reader can start there. The first
//! entry shares nothing either but is not in the list. Values need not be sorted. Header, list and trailer around the
//! entries differ between formats and are not written here.

use crate::{DecodeError, Result, varint};

/// Decodes `count` entries from the start of `bytes` and returns how many bytes they took.
///
/// The values go back to back behind `values`; `offsets` gets `count + 1` positions in `values`, of which the first is
/// its length before the call.
///
/// # Errors
/// If an entry is cut, shares more than the previous value has, the values together take more than `max_bytes`, or a
/// position does not fit 32 bits. `values` and `offsets` then are as before.
///
/// ```
/// let (mut values, mut offsets) = (Vec::new(), Vec::new());
/// let used = pilaster_encoding::prefix::decode(b"\0\x06key-00\x05\x011", 2, &mut values, &mut offsets, 100)?;
/// assert_eq!((used, values.as_slice(), offsets.as_slice()), (11, &b"key-00key-01"[..], &[0, 6, 12][..]));
/// # Ok::<(), pilaster_encoding::DecodeError>(())
/// ```
pub fn decode(
    bytes: &[u8],
    count: usize,
    values: &mut Vec<u8>,
    offsets: &mut Vec<u32>,
    max_bytes: usize,
) -> Result<usize> {
    let (values_before, offsets_before) = (values.len(), offsets.len());
    let used = append_entries(bytes, count, values, offsets, max_bytes);
    if used.is_err() {
        values.truncate(values_before);
        offsets.truncate(offsets_before);
    }
    used
}

fn append_entries(
    bytes: &[u8],
    count: usize,
    values: &mut Vec<u8>,
    offsets: &mut Vec<u32>,
    max_bytes: usize,
) -> Result<usize> {
    // An entry takes two bytes or more, so the count is bounded before anything is allocated for it.
    if count.saturating_mul(2) > bytes.len() {
        let expected = format!("{count} entries of at least 2 bytes");
        return Err(DecodeError::new(bytes.len(), expected, format!("{} bytes", bytes.len())));
    }
    let start = values.len();
    let end_limit = start.saturating_add(max_bytes).min(u32::MAX as usize);
    let position = |len: usize, at: usize| {
        u32::try_from(len).map_err(|_| DecodeError::new(at, "positions of 32 bits", len.to_string()))
    };
    offsets.reserve(count.saturating_add(1));
    offsets.push(position(start, 0)?);
    let (mut pos, mut previous) = (0, start..start);
    for _ in 0..count {
        let at = pos;
        let shared = varint::read_u32(bytes, &mut pos)? as usize;
        let unshared = varint::read_u32(bytes, &mut pos)? as usize;
        if shared > previous.len() {
            let expected = format!("at most {} shared bytes", previous.len());
            return Err(DecodeError::new(at, expected, shared.to_string()));
        }
        let Some(suffix) = bytes.get(pos..).and_then(|rest| rest.get(..unshared)) else {
            let found = format!("{} bytes", bytes.len().saturating_sub(pos));
            return Err(DecodeError::new(pos, format!("{unshared} unshared bytes"), found));
        };
        let value_start = values.len();
        let value_end = value_start.saturating_add(shared).saturating_add(unshared);
        if value_end > end_limit {
            let found = value_end.saturating_sub(start).to_string();
            return Err(DecodeError::new(at, format!("values of at most {max_bytes} bytes together"), found));
        }
        values.extend_from_within(previous.start..previous.start.saturating_add(shared));
        values.extend_from_slice(suffix);
        offsets.push(position(value_end, at)?);
        previous = value_start..value_end;
        pos = pos.saturating_add(unshared);
    }
    Ok(pos)
}

/// Builds entries value by value.
///
/// ```
/// let mut encoder = pilaster_encoding::prefix::PrefixEncoder::new(16);
/// encoder.push(b"key-00");
/// encoder.push(b"key-01");
/// let (entries, restarts) = encoder.finish();
/// assert_eq!(entries, b"\0\x06key-00\x05\x011");
/// assert!(restarts.is_empty());
/// ```
#[derive(Debug, Clone)]
pub struct PrefixEncoder {
    restart_interval: u32,
    since_restart: u32,
    len: usize,
    last: Vec<u8>,
    entries: Vec<u8>,
    restarts: Vec<u32>,
}

impl PrefixEncoder {
    /// An encoder that starts anew every `restart_interval` entries (0 counts as 1).
    #[must_use]
    pub fn new(restart_interval: u32) -> Self {
        Self {
            restart_interval: restart_interval.max(1),
            since_restart: 0,
            len: 0,
            last: Vec::new(),
            entries: Vec::new(),
            restarts: Vec::new(),
        }
    }

    /// Adds a value. Entries and restart positions are of 32 bits, so the caller starts a new block before 4 GiB.
    pub fn push(&mut self, value: &[u8]) {
        self.push_sharing(value, usize::MAX);
    }

    /// As [`PrefixEncoder::push`], with no more than `most` bytes shared with the value before.
    pub fn push_sharing(&mut self, value: &[u8], most: usize) {
        let shared = if self.since_restart == self.restart_interval {
            self.since_restart = 0;
            self.restarts.push(u32::try_from(self.entries.len()).unwrap_or(u32::MAX));
            0
        } else {
            common_prefix(&self.last, value).min(most)
        };
        let suffix = value.get(shared..).unwrap_or_default();
        varint::write_u64(&mut self.entries, shared as u64);
        varint::write_u64(&mut self.entries, suffix.len() as u64);
        self.entries.extend_from_slice(suffix);
        self.last.truncate(shared);
        self.last.extend_from_slice(suffix);
        self.since_restart = self.since_restart.saturating_add(1);
        self.len = self.len.saturating_add(1);
    }

    /// Values pushed so far.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether nothing was pushed yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes of the entries so far.
    #[must_use]
    pub fn encoded_bytes(&self) -> usize {
        self.entries.len()
    }

    /// Positions of the restart entries so far, relative to the first entry.
    #[must_use]
    pub fn restarts(&self) -> &[u32] {
        &self.restarts
    }

    /// The entries, and the positions of the restart entries relative to the first entry.
    #[must_use]
    pub fn finish(self) -> (Vec<u8>, Vec<u32>) {
        (self.entries, self.restarts)
    }
}

fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    let (words_a, words_b) = (a.as_chunks::<8>().0, b.as_chunks::<8>().0);
    let words = words_a.iter().zip(words_b).take_while(|(a, b)| a == b).count();
    let at = words.saturating_mul(8);
    let rest = a.iter().zip(b).skip(at).take_while(|(a, b)| a == b).count();
    at.saturating_add(rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn decode_all(bytes: &[u8], count: usize) -> Result<(usize, Vec<Vec<u8>>)> {
        let (mut values, mut offsets) = (b"xyz".to_vec(), vec![]);
        let used = decode(bytes, count, &mut values, &mut offsets, 1 << 20)?;
        assert_eq!(offsets.len(), count + 1);
        assert_eq!(offsets[0], 3);
        Ok((used, offsets.windows(2).map(|w| values[w[0] as usize..w[1] as usize].to_vec()).collect()))
    }

    #[test]
    fn worked_example() -> Result<()> {
        // The key column of the tiny table: key-00 to key-09.
        let mut bytes = b"\0\x06key-00".to_vec();
        for digit in b'1'..=b'9' {
            bytes.extend([5, 1, digit]);
        }
        let (used, values) = decode_all(&bytes, 10)?;
        assert_eq!(used, bytes.len());
        assert_eq!(values[9], b"key-09");
        let mut encoder = PrefixEncoder::new(16);
        for value in &values {
            encoder.push(value);
        }
        assert_eq!(encoder.encoded_bytes(), bytes.len());
        assert_eq!(encoder.finish(), (bytes, vec![]));
        Ok(())
    }

    #[test]
    fn total_is_limited_and_failure_leaves_nothing_behind() {
        let mut encoder = PrefixEncoder::new(100);
        for _ in 0..10 {
            encoder.push(&[b'a'; 100]);
        }
        let (entries, _) = encoder.finish();
        let (mut values, mut offsets) = (vec![1], vec![9]);
        assert!(decode(&entries, 10, &mut values, &mut offsets, 999).is_err());
        assert_eq!((values.as_slice(), offsets.as_slice()), (&[1][..], &[9][..]));
        assert!(decode(&entries, 10, &mut values, &mut offsets, 1000).is_ok());
        assert!(decode(&[1, 0], 1, &mut values, &mut offsets, 1000).is_err());
    }

    proptest! {
        #![proptest_config(crate::test_config())]
        #[test]
        fn round_trips(values in prop::collection::vec("[ab]{0,20}|[a-z]{0,8}", 0..80), interval in 1u32..20) {
            let mut encoder = PrefixEncoder::new(interval);
            for value in &values {
                encoder.push(value.as_bytes());
            }
            prop_assert_eq!(encoder.len(), values.len());
            let (entries, restarts) = encoder.finish();
            prop_assert_eq!(restarts.len(), values.len().saturating_sub(1) / interval as usize);
            let (used, again) = decode_all(&entries, values.len()).unwrap();
            prop_assert_eq!(used, entries.len());
            prop_assert!(again.iter().zip(&values).all(|(a, b)| a == b.as_bytes()));
            for (i, &restart) in restarts.iter().enumerate() {
                let first = (i + 1) * interval as usize;
                let (_, rest) = decode_all(&entries[restart as usize..], values.len() - first).unwrap();
                prop_assert_eq!(&rest[..], &again[first..]);
            }
            if !values.is_empty() {
                prop_assert!(decode_all(&entries[..entries.len() - 1], values.len()).is_err());
            }
        }

        #[test]
        fn never_panics_on_any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..100), count in prop_oneof![0usize..50, any::<usize>()]) {
            let _ = decode(&bytes, count, &mut Vec::new(), &mut Vec::new(), 1000);
        }
    }
}
