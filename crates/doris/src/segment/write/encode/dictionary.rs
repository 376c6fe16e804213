//! Strings as codes of the entries of a dictionary, as long as it has room.
//!
//! The entry that fills the dictionary is still added. The next new entry, or the end of the page, ends the codes: from there
//! on pages hold the strings themselves.

use std::ops::Range;

use pilaster_core::{Error, Result};
use pilaster_encoding::bitshuffle::ShuffledBlock;
use pilaster_encoding::dictionary::DictionaryBuilder;

use super::bytes::PlainEncoder;
use super::{Taken, small};
use crate::segment::types::Encoding;
use crate::segment::write::values::ByteValues;

const CODE_BYTES: usize = size_of::<u32>();

/// Encodes strings as codes while the dictionary has room, then in plain.
#[derive(Debug)]
pub(in crate::segment::write) struct DictionaryEncoder {
    words: DictionaryBuilder,
    word_encoding: Encoding,
    /// Bytes of the dictionary page so far.
    word_bytes: usize,
    word_page_bytes: usize,
    page_bytes: usize,
    codes: Vec<u8>,
    /// The page in which an entry was seen last: in each page an entry is looked at once.
    seen: Vec<u32>,
    page: u32,
    /// Takes the strings once the dictionary is full.
    plain: Option<PlainEncoder>,
}

impl DictionaryEncoder {
    pub fn new(page_bytes: usize, word_page_bytes: usize, word_encoding: Encoding) -> Self {
        Self {
            words: DictionaryBuilder::new(),
            word_encoding,
            word_bytes: if word_encoding == Encoding::PlainV3 { 8 } else { 4 },
            word_page_bytes,
            page_bytes,
            codes: Vec::new(),
            seen: Vec::new(),
            page: 1,
            plain: None,
        }
    }

    fn is_dictionary_full(&self) -> bool {
        self.word_bytes > self.word_page_bytes
    }

    fn is_page_full(&self) -> bool {
        self.codes.len() >= (self.page_bytes / CODE_BYTES).max(1).saturating_mul(CODE_BYTES)
    }

    pub fn append<V: ByteValues>(
        &mut self,
        values: &V,
        range: Range<usize>,
        observe: &mut impl FnMut(&[u8]),
    ) -> Result<Taken> {
        if let Some(plain) = &mut self.plain {
            return Ok(plain.append(values, range, observe));
        }
        let mut taken = Taken::default();
        for row in range {
            let value = values.value(row);
            let Some(code) = self.code(value)? else {
                taken.is_full = true;
                return Ok(taken);
            };
            if let Some(seen) = self.seen.get_mut(code as usize)
                && *seen != self.page
            {
                *seen = self.page;
                observe(value);
            }
            self.codes.extend(code.to_le_bytes());
            taken.values = taken.values.saturating_add(1);
            taken.bytes = taken.bytes.saturating_add(value.len() as u64);
            if self.is_page_full() {
                taken.is_full = true;
                break;
            }
        }
        Ok(taken)
    }

    /// The code of an entry; `None` if it is new and there is no room.
    fn code(&mut self, word: &[u8]) -> Result<Option<u32>> {
        if self.is_dictionary_full() {
            return Ok(self.words.find(word));
        }
        let (code, is_new) = self
            .words
            .get_or_insert(word)
            .ok_or_else(|| Error::invalid("words of 4 GiB in one dictionary"))?;
        if is_new {
            self.seen.push(0);
            let overhead = PlainEncoder::overhead(self.word_encoding, word.len());
            self.word_bytes = self.word_bytes.saturating_add(word.len()).saturating_add(overhead);
        }
        Ok(Some(code))
    }

    pub fn finish_page(&mut self, out: &mut Vec<u8>) -> Result<()> {
        if let Some(plain) = &mut self.plain {
            out.extend(self.word_encoding.number().to_le_bytes());
            return plain.finish_page(out);
        }
        out.extend(Encoding::Dict.number().to_le_bytes());
        ShuffledBlock::append(CODE_BYTES, &mut self.codes, 0, out)?;
        self.codes.clear();
        self.page = self.page.wrapping_add(1);
        if self.is_dictionary_full() {
            self.plain = Some(PlainEncoder::new(self.word_encoding, self.page_bytes));
        }
        Ok(())
    }

    /// The entries, in the order of their codes.
    pub fn dictionary_page(&self) -> Result<(Vec<u8>, Encoding)> {
        let mut page = PlainEncoder::new(self.word_encoding, usize::MAX);
        for code in 0..small(self.words.len())? {
            page.push(self.words.word(code).unwrap_or_default());
        }
        let mut body = Vec::new();
        page.finish_page(&mut body)?;
        Ok((body, self.word_encoding))
    }
}
