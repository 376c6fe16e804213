//! A file a stretch at a time: logs and record files are read from front to back, and may be far larger than what is in them.

use std::cell::RefCell;

use bytes::Bytes;
use pilaster_core::{Result, Source};

/// What is held of a file at once; a record may be larger.
const STRETCH_BYTES: usize = 1 << 20;

/// Reads a file front to back, one stretch in memory at a time.
#[derive(Debug)]
pub(crate) struct Stretches<'a> {
    source: &'a dyn Source,
    /// What is read at once, unless more is asked for.
    step: usize,
    /// What was read last, and where it begins.
    held: RefCell<(u64, Bytes)>,
}

impl<'a> Stretches<'a> {
    pub fn new(source: &'a dyn Source) -> Self {
        Self { source, step: STRETCH_BYTES, held: RefCell::default() }
    }

    /// For whoever reads the beginning only: nothing is read that was not asked for.
    pub fn sparing(source: &'a dyn Source) -> Self {
        Self { step: 1, ..Self::new(source) }
    }

    pub fn name(&self) -> &'a str {
        self.source.name()
    }

    pub fn size(&self) -> u64 {
        self.source.size()
    }

    /// `length` bytes; `None` if the file ends before. Whoever takes a length from the file checks it against the limits first.
    pub fn get(&self, at: u64, length: usize) -> Result<Option<Bytes>> {
        let end = at.checked_add(length as u64).filter(|end| *end <= self.size());
        if end.is_none() {
            return Ok(None);
        }
        let bytes = self.from(at, length)?;
        Ok(bytes.get(..length).map(|part| bytes.slice_ref(part)))
    }

    /// What is held from `at` on: `least` bytes, unless the file ends before, or more.
    pub fn from(&self, at: u64, least: usize) -> Result<Bytes> {
        let mut held = self.held.borrow_mut();
        let (start, bytes) = &*held;
        let skipped = at.checked_sub(*start).and_then(|skipped| usize::try_from(skipped).ok());
        let left = self.size().saturating_sub(at);
        let least = least.max(1) as u64;
        if let Some(rest) = skipped.and_then(|skipped| bytes.get(skipped..))
            && rest.len() as u64 >= least.min(left)
        {
            return Ok(bytes.slice_ref(rest));
        }
        let length = least.max(self.step as u64).min(left);
        // What was held is given up first: two stretches are never held.
        *held = (0, Bytes::new());
        let start = at.min(self.size());
        *held = (start, self.source.read_at(start..start.saturating_add(length))?);
        Ok(held.1.clone())
    }

    /// Where the first byte is, at or after `at` and before `end`, that is not zero.
    pub fn next_set(&self, at: u64, end: u64) -> Result<Option<u64>> {
        let mut at = at;
        while at < end {
            let bytes = self.from(at, 1)?;
            let zeros = leading_zeros(&bytes);
            let found = at.saturating_add(zeros as u64);
            if zeros < bytes.len() || bytes.is_empty() {
                return Ok((found < end).then_some(found));
            }
            at = found;
        }
        Ok(None)
    }

    /// Where the last byte is, at or after `at` and before `end`, that is not zero.
    pub fn last_set(&self, at: u64, end: u64) -> Result<Option<u64>> {
        let (mut at, mut last) = (at, None);
        while at < end {
            let bytes = self.from(at, 1)?;
            let wanted = usize::try_from(end.saturating_sub(at)).unwrap_or(usize::MAX).min(bytes.len());
            let part = bytes.get(..wanted).unwrap_or_default();
            if leading_zeros(part) < part.len() {
                let place = part.iter().rposition(|byte| *byte != 0);
                last = place.map(|place| at.saturating_add(place as u64)).or(last);
            }
            at = at.saturating_add(wanted.max(1) as u64);
        }
        Ok(last)
    }
}

/// How many zeros come first.
fn leading_zeros(bytes: &[u8]) -> usize {
    const ZEROS: [u8; 4096] = [0; 4096];
    let blocks = bytes.chunks_exact(ZEROS.len()).take_while(|block| *block == ZEROS).count();
    let start = blocks.saturating_mul(ZEROS.len());
    let rest = bytes.get(start..).unwrap_or_default();
    start.saturating_add(rest.iter().take_while(|byte| **byte == 0).count())
}

#[cfg(test)]
mod tests {
    use super::*;
    use pilaster_core::source::{CountingSource, MemorySource};
    use std::sync::Arc;

    #[test]
    fn a_stretch_is_read_once_and_longer_ones_in_one_piece() {
        let bytes: Vec<u8> = (0..3 * STRETCH_BYTES).map(|at| (at % 251) as u8).collect();
        let source = CountingSource::new(Arc::new(MemorySource::new("f", bytes.clone())));
        let stretches = Stretches::new(&source);
        for at in (0..STRETCH_BYTES - 10).step_by(1000) {
            assert_eq!(stretches.get(at as u64, 10).unwrap().unwrap(), bytes[at..at + 10]);
        }
        assert_eq!(source.counts().reads, 1);
        let long = stretches.get(5, 2 * STRETCH_BYTES).unwrap().unwrap();
        assert_eq!(long, bytes[5..5 + 2 * STRETCH_BYTES]);
        let end = bytes.len() as u64;
        assert_eq!(stretches.get(end - 3, 3).unwrap().unwrap(), bytes[bytes.len() - 3..]);
        assert_eq!(stretches.get(end - 3, 4).unwrap(), None);
        assert_eq!(stretches.get(u64::MAX, 4).unwrap(), None);
        assert_eq!(stretches.get(end, 0).unwrap().unwrap(), Bytes::new());
    }

    #[test]
    fn bytes_among_zeros_are_found() {
        let mut bytes = vec![0; 2 * STRETCH_BYTES + 5000];
        let (first, last) = (STRETCH_BYTES as u64 - 1, 2 * STRETCH_BYTES as u64 + 17);
        let source = MemorySource::new("f", bytes.clone());
        let end = bytes.len() as u64;
        assert_eq!(Stretches::new(&source).next_set(0, end).unwrap(), None);
        assert_eq!(Stretches::new(&source).last_set(0, end).unwrap(), None);
        bytes[first as usize] = 1;
        bytes[last as usize] = 2;
        let source = MemorySource::new("f", bytes);
        let stretches = Stretches::new(&source);
        assert_eq!(stretches.next_set(0, end).unwrap(), Some(first));
        assert_eq!(stretches.next_set(first + 1, end).unwrap(), Some(last));
        assert_eq!(stretches.next_set(first + 1, last).unwrap(), None);
        assert_eq!(stretches.last_set(0, end).unwrap(), Some(last));
        assert_eq!(stretches.last_set(0, last).unwrap(), Some(first));
        assert_eq!(stretches.last_set(last + 1, end).unwrap(), None);
    }
}
