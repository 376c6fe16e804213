//! Values of any length.

use std::ops::Range;

use pilaster_core::Result;
use pilaster_encoding::{prefix, varint};

use super::{Taken, small};
use crate::segment::types::Encoding;
use crate::segment::write::values::ByteValues;

const WORD_BYTES: usize = size_of::<u32>();
const RESTART_INTERVAL: u8 = 16;

/// The three plain forms.
#[derive(Debug)]
pub(in crate::segment::write) struct PlainEncoder {
    encoding: Encoding,
    page_bytes: usize,
    bytes: Vec<u8>,
    /// Offsets of PLAIN, encoded lengths of PLAIN_V3.
    places: Vec<u8>,
    count: usize,
    size: usize,
}

impl PlainEncoder {
    pub fn new(encoding: Encoding, page_bytes: usize) -> Self {
        let mut encoder =
            Self { encoding, page_bytes, bytes: Vec::new(), places: Vec::new(), count: 0, size: 0 };
        encoder.size = encoder.trailer_bytes();
        encoder
    }

    fn trailer_bytes(&self) -> usize {
        match self.encoding {
            Encoding::PlainV3 => 2 * WORD_BYTES,
            _ => WORD_BYTES,
        }
    }

    /// Bytes a page takes for a value besides the value.
    pub fn overhead(encoding: Encoding, length: usize) -> usize {
        match encoding {
            Encoding::Plain => WORD_BYTES,
            _ => varint::len_u32(u32::try_from(length).unwrap_or(u32::MAX)),
        }
    }

    pub fn is_full(&self) -> bool {
        self.size > self.page_bytes
    }

    pub fn push(&mut self, value: &[u8]) {
        let length = u32::try_from(value.len()).unwrap_or(u32::MAX);
        match self.encoding {
            Encoding::Plain => {
                let offset = u32::try_from(self.bytes.len()).unwrap_or(u32::MAX);
                self.places.extend(offset.to_le_bytes());
            }
            Encoding::PlainV2 => varint::write_u32(&mut self.bytes, length),
            _ => varint::write_u32(&mut self.places, length),
        }
        self.bytes.extend_from_slice(value);
        self.count = self.count.saturating_add(1);
        let overhead = Self::overhead(self.encoding, value.len());
        self.size = self.size.saturating_add(value.len()).saturating_add(overhead);
    }

    pub fn append<V: ByteValues>(
        &mut self,
        values: &V,
        range: Range<usize>,
        observe: &mut impl FnMut(&[u8]),
    ) -> Taken {
        fill(self, Self::is_full, Self::push, (values, range), observe)
    }

    pub fn finish_page(&mut self, out: &mut Vec<u8>) -> Result<()> {
        let data_bytes = small(self.bytes.len())?;
        out.extend_from_slice(&self.bytes);
        out.extend_from_slice(&self.places);
        if self.encoding == Encoding::PlainV3 {
            out.extend(data_bytes.to_le_bytes());
        }
        out.extend(small(self.count)?.to_le_bytes());
        self.bytes.clear();
        self.places.clear();
        self.count = 0;
        self.size = self.trailer_bytes();
        Ok(())
    }
}

/// Adds values to a page until it is full.
fn fill<P, V: ByteValues>(
    page: &mut P,
    is_full: impl Fn(&P) -> bool,
    push: impl Fn(&mut P, &[u8]),
    (values, range): (&V, Range<usize>),
    observe: &mut impl FnMut(&[u8]),
) -> Taken {
    let mut taken = Taken::default();
    for row in range {
        if is_full(page) {
            break;
        }
        let value = values.value(row);
        observe(value);
        push(page, value);
        taken.values = taken.values.saturating_add(1);
        taken.bytes = taken.bytes.saturating_add(value.len() as u64);
    }
    taken.is_full = is_full(page);
    taken
}

/// Values without the beginning they share with the value before.
#[derive(Debug)]
pub(in crate::segment::write) struct PrefixEncoder {
    page_bytes: usize,
    entries: prefix::PrefixEncoder,
}

impl PrefixEncoder {
    pub fn new(page_bytes: usize) -> Self {
        Self { page_bytes, entries: prefix::PrefixEncoder::new(u32::from(RESTART_INTERVAL)) }
    }

    fn restarts(&self) -> usize {
        self.entries.len().div_ceil(usize::from(RESTART_INTERVAL))
    }

    /// As Doris counts: entries, restarts and two more words.
    pub fn is_full(&self) -> bool {
        let words = self.restarts().saturating_add(2).saturating_mul(WORD_BYTES);
        self.entries.encoded_bytes().saturating_add(words) >= self.page_bytes
    }

    pub fn push(&mut self, value: &[u8]) {
        // Doris compares bytes of different signs, so what it shares ends before the first byte beyond ASCII.
        let ascii = value.iter().position(|byte| !byte.is_ascii()).unwrap_or(value.len());
        self.entries.push_sharing(value, ascii);
    }

    pub fn append<V: ByteValues>(
        &mut self,
        values: &V,
        range: Range<usize>,
        observe: &mut impl FnMut(&[u8]),
    ) -> Taken {
        fill(self, Self::is_full, Self::push, (values, range), observe)
    }

    pub fn finish_page(&mut self, out: &mut Vec<u8>) {
        let restarts = self.restarts();
        let next = prefix::PrefixEncoder::new(u32::from(RESTART_INTERVAL));
        let entries = std::mem::replace(&mut self.entries, next);
        let count = entries.len();
        let (entries, later) = entries.finish();
        out.extend_from_slice(&entries);
        out.extend(u32::try_from(count).unwrap_or(u32::MAX).to_le_bytes());
        out.push(RESTART_INTERVAL);
        // The first entry is a restart as well.
        for offset in [0].iter().take(restarts).chain(&later) {
            out.extend(offset.to_le_bytes());
        }
        out.extend(u32::try_from(restarts).unwrap_or(u32::MAX).to_le_bytes());
    }
}
