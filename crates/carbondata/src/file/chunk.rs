//! Column chunks: a header, and pages by the offsets in it.

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use pilaster_core::error::AtPosition;
use pilaster_core::{Error, Result};

use super::layout::{Blocklet, CarbonFile, ChunkPlace};
use super::page::words::{LOCAL_CODE_BYTES, Words, WordsRef};
use super::page::{self, Page};
use super::types::CarbonType;
use crate::messages::{ChunkHeader, MinMax};

pub(crate) const CHUNK_PART: &str = "column chunk";

/// The parsed header of a chunk.
#[derive(Debug)]
pub(crate) struct Chunk {
    pub number: usize,
    pub place: ChunkPlace,
    pub header: ChunkHeader,
    /// Where each page lies.
    pub pages: Vec<Range<u64>>,
    words: Mutex<Option<WordsRef>>,
}

impl Chunk {
    /// Reads the header of chunk `number`.
    pub fn read(file: &CarbonFile, blocklet: &Blocklet, number: usize) -> Result<Self> {
        let place = Self::place(file, blocklet, number)?;
        file.limits.metadata(place.header_bytes).at(file.name(), place.offset, CHUNK_PART)?;
        let bytes = file.source.read_at(place.offset..place.offset.saturating_add(place.header_bytes))?;
        Self::parse(file, blocklet, number, &bytes)
    }

    fn place<'a>(file: &CarbonFile, blocklet: &'a Blocklet, number: usize) -> Result<&'a ChunkPlace> {
        let missing = || Error::invalid(format!("no chunk number {number}")).at(file.name(), 0, CHUNK_PART);
        blocklet.chunks.get(number).ok_or_else(missing)
    }

    /// Parses the header of chunk `number`, which is all of `bytes`.
    pub fn parse(file: &CarbonFile, blocklet: &Blocklet, number: usize, bytes: &Bytes) -> Result<Self> {
        let place = Self::place(file, blocklet, number)?.clone();
        let (header, used) = ChunkHeader::parse(bytes).at(file.name(), place.offset, CHUNK_PART)?;
        let chunk = Self::new(number, place, header);
        let checked = match chunk {
            Ok(_) if used != bytes.len() => {
                Err(Error::corrupt(format!("a chunk header of {} bytes", bytes.len()), used))
            }
            Ok(chunk) if chunk.pages.len() != blocklet.pages() => {
                Err(Error::corrupt(format!("{} pages", blocklet.pages()), chunk.pages.len()))
            }
            other => other,
        };
        let offset = Self::place(file, blocklet, number)?.offset;
        checked.at(file.name(), offset, CHUNK_PART)
    }

    /// Checks that the pages lie inside the chunk, one after the other.
    pub fn new(number: usize, place: ChunkPlace, header: ChunkHeader) -> Result<Self> {
        let body = place.offset.saturating_add(place.header_bytes);
        let mut pages = Vec::with_capacity(header.pages.len());
        let mut next = body;
        for ((offset, length), page) in
            header.page_offsets.iter().zip(&header.page_lengths).zip(&header.pages)
        {
            let (Ok(offset), Ok(length)) = (u64::try_from(*offset), u64::try_from(*length)) else {
                return Err(Error::corrupt("the place of a page", format!("{length} bytes at {offset}")));
            };
            let start = body.saturating_add(offset);
            let range = start..start.saturating_add(length);
            if range.start < next || range.end > place.end {
                let expected = format!("a page inside {next}..{}", place.end);
                return Err(Error::corrupt(expected, format!("{}..{}", range.start, range.end)));
            }
            let parts = [page.data_length, page.row_id_length, page.rle_length];
            let sum = parts.iter().map(|part| u64::try_from(*part).ok()).sum::<Option<u64>>();
            if sum != Some(length) {
                let expected = format!("parts of a page of {length} bytes");
                return Err(Error::corrupt(expected, format!("{parts:?}")));
            }
            next = range.end;
            pages.push(range);
        }
        Ok(Self { number, place, header, pages, words: Mutex::default() })
    }

    /// The words of the chunk, if it has any; parsed once, unless they are forgotten.
    pub fn words(&self, file: &CarbonFile, carbon_type: CarbonType) -> Result<Option<WordsRef>> {
        let Some(dictionary) = &self.header.dictionary else { return Ok(None) };
        let mut known = self.known_words();
        if let Some(words) = known.as_ref() {
            return Ok(Some(Arc::clone(words)));
        }
        let Some(first) = self.header.pages.first() else { return Ok(None) };
        let parse =
            || -> Result<Words> { Words::parse(dictionary, page::codec(first)?, carbon_type, &file.limits) };
        let words = Arc::new(parse().at(file.name(), self.place.offset, "local dictionary")?);
        *known = Some(Arc::clone(&words));
        Ok(Some(words))
    }

    fn known_words(&self) -> MutexGuard<'_, Option<WordsRef>> {
        self.words.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes that the words take which are here.
    pub fn words_bytes(&self) -> u64 {
        self.known_words().as_ref().map_or(0, |words| words.bytes())
    }

    /// Lets go of the words.
    pub fn forget_words(&self) {
        *self.known_words() = None;
    }

    /// A page of the chunk, out of its bytes.
    pub fn page<'a>(
        &'a self,
        file: &'a CarbonFile,
        number: usize,
        bytes: Bytes,
        carbon_type: CarbonType,
    ) -> Result<Page<'a>> {
        let (Some(header), Some(range)) = (self.header.pages.get(number), self.pages.get(number)) else {
            let error = Error::corrupt(format!("a page number {number}"), self.pages.len());
            return Err(error.at(file.name(), self.place.offset, CHUNK_PART));
        };
        let mut page =
            Page { path: file.name(), offset: range.start, header, bytes, words: None, code_bytes: 0 };
        if let Some((words, code_bytes)) = file.dictionaries.get(&self.number) {
            (page.words, page.code_bytes) = (Some(Arc::clone(words)), *code_bytes);
        } else if !carbon_type.is_nested() {
            (page.words, page.code_bytes) = (self.words(file, carbon_type)?, LOCAL_CODE_BYTES);
        }
        Ok(page)
    }

    /// Statistics of a page.
    pub fn page_statistics(&self, page: usize) -> Option<&MinMax> {
        self.header.pages.get(page)?.min_max.as_ref()
    }
}
