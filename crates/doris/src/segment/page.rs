//! From a page pointer to the body of a page: bounds, checksum, footer, decompression.
//!
//! ```text
//! page = | body, maybe compressed | PageFooterPB | u32 its size | CRC-32C of all before |
//! ```
//!
//! A body is compressed exactly if it is stored in another size than the footer says it has.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use pilaster_core::buffers::BlockBuffer;
use pilaster_core::error::AtPosition;
use pilaster_core::{Error, Limits, Result, SourceRef};
use pilaster_encoding::checksum::check_crc32c;

use super::index_pages::IndexPages;
use super::types::Compression;
use crate::messages::{self, PageFooterPb, PagePointerPb, required};

/// Size of the page footer and checksum.
const TRAILER_BYTES: usize = 8;
/// Dictionaries that are kept have so many bytes for each of the file.
const WORDS_FOR_A_BYTE: u64 = 4;

/// Where a page lies: its offset, and its size with footer and checksum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PagePointer {
    /// Offset from the start of the file.
    pub offset: u64,
    /// Size in bytes.
    pub size: u32,
}

impl PagePointer {
    pub(crate) fn parse(message: PagePointerPb) -> Result<Self> {
        Ok(Self { offset: required(message.offset, "offset")?, size: required(message.size, "size")? })
    }

    pub(crate) fn message(self) -> PagePointerPb {
        PagePointerPb { offset: Some(self.offset), size: Some(self.size) }
    }

    pub(crate) fn range(self) -> Range<u64> {
        self.offset..self.offset.saturating_add(u64::from(self.size))
    }
}

/// What a page is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PageKind {
    Data,
    Index,
    Dictionary,
    ShortKey,
}

impl PageKind {
    pub fn number(self) -> i32 {
        match self {
            Self::Data => 1,
            Self::Index => 2,
            Self::Dictionary => 3,
            Self::ShortKey => 4,
        }
    }

    pub fn part(self) -> &'static str {
        match self {
            Self::Data => "segment data page",
            Self::Index => "segment index page",
            Self::Dictionary => "segment dictionary page",
            Self::ShortKey => "segment short key page",
        }
    }
}

/// A page ready for decoding.
#[derive(Debug, Clone)]
pub(crate) struct Page {
    pub body: Bytes,
    pub footer: PageFooterPb,
}

/// Reads and opens the pages of one file.
#[derive(Debug, Clone)]
pub(crate) struct PageStore {
    pub source: SourceRef,
    pub limits: Limits,
    pub verify_checksums: bool,
    /// Where pages end.
    pub pages_end: u64,
    pub(super) index_pages: Arc<IndexPages>,
    /// Pages that the indexes of all columns list.
    pub(super) listed: Arc<AtomicU64>,
    /// Bytes of the dictionaries that are kept.
    pub(super) words: Arc<AtomicU64>,
}

impl PageStore {
    pub fn new(source: SourceRef, limits: Limits, verify_checksums: bool, pages_end: u64) -> Self {
        Self {
            source,
            limits,
            verify_checksums,
            pages_end,
            index_pages: Arc::default(),
            listed: Arc::default(),
            words: Arc::default(),
        }
    }

    /// Refuses more pages of all columns than the file has room for: many columns may name one index.
    pub fn check_listed(&self, more: u64) -> Result<()> {
        let all = self.listed.load(Ordering::Relaxed).saturating_add(more);
        if all <= self.pages_end {
            return Ok(());
        }
        Err(Error::corrupt(format!("indexes of at most {} pages in all", self.pages_end), all))
    }

    pub fn count_listed(&self, more: u64) {
        self.listed.fetch_add(more, Ordering::Relaxed);
    }

    /// Whether dictionaries of so many bytes more are kept as long as the file is open.
    pub fn may_keep_words(&self, bytes: u64) -> bool {
        let most = self.pages_end.saturating_mul(WORDS_FOR_A_BYTE).min(self.limits.scan_bytes / 2);
        let add = |all: u64| all.checked_add(bytes).filter(|sum| *sum <= most);
        self.words.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).is_ok()
    }

    pub fn name(&self) -> &str {
        self.source.name()
    }

    /// Refuses a pointer outside the part of the file where pages may lie.
    pub fn check_pointer(&self, pointer: PagePointer, kind: PageKind) -> Result<()> {
        let end = pointer.range().end;
        if end > self.pages_end || (pointer.size as usize) < TRAILER_BYTES {
            return Err(Error::corrupt(
                format!("a page inside bytes 0..{}", self.pages_end),
                format!("bytes {}..{end}", pointer.offset),
            )
            .at(self.name(), pointer.offset, kind.part()));
        }
        self.limits.block(u64::from(pointer.size)).at(self.name(), pointer.offset, kind.part())?;
        Ok(())
    }

    pub fn read(&self, pointer: PagePointer, kind: PageKind, compression: Compression) -> Result<Page> {
        self.check_pointer(pointer, kind)?;
        self.open(pointer, self.source.read_at(pointer.range())?, kind, compression)
    }

    /// Says that an ordinal index is likely to be asked for: see [`IndexPages`].
    pub fn announce_index(&self, pointer: PagePointer) {
        if self.check_pointer(pointer, PageKind::Index).is_ok() {
            self.index_pages.announce(pointer);
        }
    }

    /// As [`PageStore::read`], of an ordinal index.
    pub fn read_index(&self, pointer: PagePointer, compression: Compression) -> Result<Page> {
        self.check_pointer(pointer, PageKind::Index)?;
        let stored = self.index_pages.read(self.source.as_ref(), pointer)?;
        self.open(pointer, stored, PageKind::Index, compression)
    }

    /// Checks and decompresses the stored bytes of a page.
    pub fn open(
        &self,
        pointer: PagePointer,
        stored: Bytes,
        kind: PageKind,
        compression: Compression,
    ) -> Result<Page> {
        let (body, footer) =
            self.open_stored(&stored, kind, compression).at(self.name(), pointer.offset, kind.part())?;
        Ok(Page { body, footer })
    }

    fn open_stored(
        &self,
        stored: &Bytes,
        kind: PageKind,
        compression: Compression,
    ) -> Result<(Bytes, PageFooterPb)> {
        let cut = || Error::corrupt("a page footer", format!("a page of {} bytes", stored.len()));
        let (checked, checksum) = stored.split_last_chunk::<4>().ok_or_else(cut)?;
        if self.verify_checksums {
            check_crc32c(checked, u32::from_le_bytes(*checksum))?;
        }
        let (rest, footer_bytes) = checked.split_last_chunk::<4>().ok_or_else(cut)?;
        let footer_bytes = u32::from_le_bytes(*footer_bytes) as usize;
        let body_bytes = rest.len().checked_sub(footer_bytes).ok_or_else(|| {
            Error::corrupt(format!("a page footer of at most {} bytes", rest.len()), footer_bytes)
        })?;
        let footer: PageFooterPb =
            messages::parse(rest.get(body_bytes..).unwrap_or_default(), "PageFooterPB")?;
        let found = required(footer.kind, "type")?;
        if found != kind.number() {
            return Err(Error::corrupt(format!("page type {}", kind.number()), found));
        }
        let body = stored.slice(..body_bytes);
        let uncompressed = required(footer.uncompressed_size, "uncompressed_size")?;
        if body_bytes == uncompressed as usize {
            return Ok((body, footer));
        }
        let codec = compression.codec().ok_or_else(|| {
            Error::corrupt(
                format!("a body of {uncompressed} bytes"),
                format!("{body_bytes} bytes and no codec"),
            )
        })?;
        let mut plain = BlockBuffer::with_length(self.limits.decoded(u64::from(uncompressed))?);
        codec.decompress(&body, &mut plain)?;
        Ok((plain.into_bytes(), footer))
    }
}
