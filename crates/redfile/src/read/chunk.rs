//! A column chunk: pages as they are stored, and the index page that tells where they are.

use std::ops::Range;

use bytes::Bytes;
use pilaster_core::buffers::BlockBuffer;
use pilaster_core::error::AtPosition;
use pilaster_core::{Error, Limits, Result, SourceRef};
use pilaster_encoding::checksum::crc32;

use super::page::{DataPage, Scratch};
use crate::metadata::{
    ColumnMetadata, Compression, Encoding, PageHeader, PageIndexEntry, PageType, PhysicalType,
    parse_page_index,
};
use crate::schema::Leaf;

pub(crate) const PAGE_PART: &str = "redfile data page";
pub(crate) const HEADER_PART: &str = "redfile page header";
pub(crate) const INDEX_PART: &str = "redfile index page";
pub(crate) const CHUNK_PART: &str = "redfile column chunk";

/// Bytes read at once where pages follow each other.
const READ_AHEAD_BYTES: u64 = 256 << 10;
/// Bytes in which a page header usually fits.
const HEADER_BYTES: u64 = 512;

/// Where a chunk is and what its metadata says.
#[derive(Debug, Clone)]
pub(crate) struct Chunk {
    pub source: SourceRef,
    pub metadata: ColumnMetadata,
    pub start: u64,
    pub end: u64,
    pub group: usize,
    pub leaf: usize,
    /// Rows of the row group.
    pub rows: u64,
    pub has_page_crc: bool,
    pub has_header_crc: bool,
    pub verify_checksums: bool,
    pub limits: Limits,
}

/// A page as it is stored.
#[derive(Debug, Clone)]
pub(crate) struct StoredPage {
    pub header: PageHeader,
    /// Where the header begins.
    pub offset: u64,
    pub header_bytes: u64,
    pub body: Bytes,
}

impl StoredPage {
    pub fn end(&self) -> u64 {
        self.offset.saturating_add(self.header_bytes).saturating_add(u64::from(self.header.compressed_size))
    }
}

/// The bytes of a file that were read last.
#[derive(Debug, Default)]
pub(crate) struct Window {
    start: u64,
    bytes: Bytes,
}

impl Window {
    /// The bytes of `range`; if they are not here, everything up to `ahead` is read with them.
    fn get(&mut self, source: &SourceRef, range: Range<u64>, ahead: u64) -> Result<Bytes> {
        if let Some(found) = self.find(&range) {
            return Ok(found);
        }
        let end = range.start.saturating_add(READ_AHEAD_BYTES).min(ahead).max(range.end);
        self.bytes = source.read_at(range.start..end)?;
        self.start = range.start;
        self.find(&range).ok_or_else(|| {
            Error::corrupt(format!("bytes {range:?}"), "fewer").at(source.name(), range.start, "read")
        })
    }

    fn find(&self, range: &Range<u64>) -> Option<Bytes> {
        let from = usize::try_from(range.start.checked_sub(self.start)?).ok()?;
        let to = usize::try_from(range.end.checked_sub(self.start)?).ok()?;
        (from <= to && to <= self.bytes.len()).then(|| self.bytes.slice(from..to))
    }

    /// What is here from `start` to at most `end`, without reading.
    fn rest(&self, start: u64, end: u64) -> Option<Bytes> {
        let here = self.start.saturating_add(self.bytes.len() as u64);
        self.find(&(start..end.min(here)))
    }
}

impl Chunk {
    pub fn name(&self) -> &str {
        self.source.name()
    }

    /// Refuses what this version cannot decode; that is known before anything is read.
    pub fn check_supported(&self, leaf: &Leaf) -> Result<()> {
        let unknown = match (self.metadata.physical_type, self.metadata.codec) {
            (PhysicalType::Unknown(number), _) => Some(format!("physical type {number}")),
            (_, Compression::Unknown(number)) => Some(format!("compression codec {number}")),
            _ => self.metadata.encodings.iter().find_map(|encoding| match encoding {
                Encoding::Unknown(number) => Some(format!("encoding {number}")),
                _ => None,
            }),
        };
        match unknown {
            None => Ok(()),
            Some(what) => Err(Error::unsupported(format!("{what} of column \"{}\"", leaf.name())).at(
                self.name(),
                self.start,
                CHUNK_PART,
            )),
        }
    }

    /// The header of the page at `offset` and its length; `ahead` is how far to read if something must be read.
    pub fn header(&self, window: &mut Window, offset: u64, ahead: u64) -> Result<(PageHeader, u64)> {
        if offset >= self.end {
            return Err(Error::corrupt("another page", "the end of the column chunk").at(
                self.name(),
                offset,
                HEADER_PART,
            ));
        }
        let left = self.end.saturating_sub(offset);
        let most = left.min(self.limits.metadata_bytes);
        let mut length = HEADER_BYTES.min(most);
        loop {
            let bytes = match window.rest(offset, self.end) {
                Some(here) if here.len() as u64 >= length => here,
                _ => window.get(&self.source, offset..offset.saturating_add(length), ahead.min(self.end))?,
            };
            match PageHeader::parse(&bytes) {
                Ok((header, used)) => {
                    self.check_header(&header).at(self.name(), offset, HEADER_PART)?;
                    return Ok((header, used as u64));
                }
                // It may be longer than what was read.
                Err(_) if length < most => length = length.saturating_mul(16).min(most),
                Err(error) => return Err::<(PageHeader, u64), _>(error).at(self.name(), offset, HEADER_PART),
            }
        }
    }

    fn check_header(&self, header: &PageHeader) -> Result<()> {
        if self.has_header_crc && !header.has_header_crc {
            return Err(Error::corrupt("a checksum of the header, as the file promises", "none"));
        }
        if self.has_page_crc && header.crc.is_none() {
            return Err(Error::corrupt("a checksum of the page, as the file promises", "none"));
        }
        Ok(())
    }

    /// The page at `offset`.
    pub fn page(&self, window: &mut Window, offset: u64, ahead: u64) -> Result<StoredPage> {
        let (header, header_bytes) = self.header(window, offset, ahead)?;
        self.body(window, header, header_bytes, offset, ahead)
    }

    /// The page whose header is known.
    pub fn body(
        &self,
        window: &mut Window,
        header: PageHeader,
        header_bytes: u64,
        offset: u64,
        ahead: u64,
    ) -> Result<StoredPage> {
        let from = offset.saturating_add(header_bytes);
        let to = from.saturating_add(u64::from(header.compressed_size));
        if to > self.end {
            let expected = format!("a page of at most {} bytes", self.end.saturating_sub(from));
            return Err(Error::corrupt(expected, header.compressed_size).at(
                self.name(),
                offset,
                HEADER_PART,
            ));
        }
        self.limits.block(u64::from(header.compressed_size)).at(self.name(), offset, HEADER_PART)?;
        let body = window.get(&self.source, from..to, ahead.min(self.end).max(to))?;
        Ok(StoredPage { header, offset, header_bytes, body })
    }

    /// The body of a page, checked and decompressed.
    pub fn uncompressed(&self, page: &StoredPage, part: &'static str) -> Result<Bytes> {
        self.decompress(page).map_err(|error| error.at(self.name(), page.offset, part))
    }

    fn decompress(&self, page: &StoredPage) -> Result<Bytes> {
        if let Some(stored) = page.header.crc.filter(|_| self.verify_checksums) {
            let computed = crc32(&page.body);
            if stored != computed {
                let expected = format!("CRC-32 {stored:08x}, as the page header says");
                return Err(Error::corrupt(expected, format!("{computed:08x}")));
            }
        }
        let compression = page.header.codec.unwrap_or(self.metadata.codec);
        let length = self.limits.decoded(u64::from(page.header.uncompressed_size))?;
        match (compression, compression.codec()) {
            (Compression::Unknown(number), _) => {
                Err(Error::unsupported(format!("compression codec {number}")))
            }
            (_, Some(codec)) => {
                let mut body = BlockBuffer::with_length(length);
                codec.decompress(&page.body, &mut body)?;
                Ok(body.into_bytes())
            }
            (_, None) if page.body.len() == length => Ok(page.body.clone()),
            (_, None) => Err(Error::corrupt(format!("a body of {length} bytes"), page.body.len())),
        }
    }

    /// Opens a data page.
    pub fn open_page(&self, page: &StoredPage, leaf: &Leaf, scratch: Scratch) -> Result<DataPage> {
        let Some(data) = &page.header.data else {
            return Err(Error::corrupt("a data page", page.header.page_type).at(
                self.name(),
                page.offset,
                PAGE_PART,
            ));
        };
        if let Encoding::Unknown(number) = data.encoding {
            return Err(Error::unsupported(format!("encoding {number} of column \"{}\"", leaf.name())).at(
                self.name(),
                page.offset,
                PAGE_PART,
            ));
        }
        // Levels take a byte each, and numbers that are packed their whole width.
        let numbers = if data.encoding == Encoding::GroupVarInt { size_of::<u64>() as u64 } else { 0 };
        let levels = if leaf.is_flat_optional() || leaf.max_def == 0 { 0 } else { 2 };
        let unpacked = u64::from(data.num_values).saturating_mul(numbers.saturating_add(levels));
        self.limits.decoded(unpacked).at(self.name(), page.offset, PAGE_PART)?;
        let body = self.uncompressed(page, PAGE_PART)?;
        // Where the body was compressed a place in it is no place in the file.
        DataPage::open(&body, data, leaf, scratch)
            .map_err(|error| Error::from(error).at(self.name(), page.offset, PAGE_PART))
    }

    /// The entries of the index page, checked; `None` if there is none.
    pub fn index(&self) -> Result<Option<Vec<PageIndexEntry>>> {
        let Some(offset) = self.metadata.index_page_offset.and_then(|offset| u64::try_from(offset).ok())
        else {
            return Ok(None);
        };
        let mut window = Window::default();
        let page = self.page(&mut window, offset, self.end)?;
        let entries = self.parse_index(&page).map_err(|error| error.at(self.name(), offset, INDEX_PART))?;
        Ok(Some(entries))
    }

    /// What is known of the data pages: by the index page, or by the page headers where there is none; `None` if neither says
    /// anything of their values.
    pub fn page_statistics(&self, leaf: &Leaf) -> Result<Option<Vec<PageIndexEntry>>> {
        match self.index()? {
            Some(entries) => Ok(Some(entries)),
            None => self.entries_by_headers(leaf),
        }
    }

    /// One entry for each data page, out of its header; `None` once a header does not tell values or rows.
    fn entries_by_headers(&self, leaf: &Leaf) -> Result<Option<Vec<PageIndexEntry>>> {
        let mut window = Window::default();
        let mut entries = Vec::new();
        let (mut offset, mut first_row, mut last_size) = (self.start, 0u64, 0u64);
        while first_row < self.rows {
            // Small pages are read through; of large ones the headers alone.
            let is_dense = last_size.saturating_mul(4) < READ_AHEAD_BYTES;
            let ahead =
                if is_dense && last_size > 0 { self.end } else { offset.saturating_add(HEADER_BYTES) };
            let (header, header_bytes) = self.header(&mut window, offset, ahead)?;
            last_size = header_bytes.saturating_add(u64::from(header.compressed_size));
            if let Some(data) = header.data.filter(|_| header.page_type == PageType::Data) {
                let num_rows = data.num_rows.or((leaf.max_rep == 0).then_some(data.num_values));
                let size = u32::try_from(last_size).ok();
                let told = num_rows.zip(size).filter(|_| data.statistics.is_some());
                let Some((num_rows, size)) = told else { return Ok(None) };
                entries.push(PageIndexEntry {
                    offset: offset.saturating_sub(self.start),
                    size,
                    first_row,
                    num_rows,
                    num_values: data.num_values,
                    statistics: data.statistics,
                });
                first_row = first_row.saturating_add(u64::from(num_rows));
            }
            offset = offset.saturating_add(last_size);
        }
        self.check_entries(&entries)?;
        Ok(Some(entries))
    }

    fn parse_index(&self, page: &StoredPage) -> Result<Vec<PageIndexEntry>> {
        if page.header.page_type != PageType::Index {
            return Err(Error::corrupt("an index page", page.header.page_type));
        }
        let body = self.uncompressed(page, INDEX_PART)?;
        let entries = parse_page_index(&body)?;
        self.check_entries(&entries)?;
        Ok(entries)
    }

    /// Refuses pages that leave the chunk, overlap, or have other rows than the row group.
    fn check_entries(&self, entries: &[PageIndexEntry]) -> Result<()> {
        let mut row = 0u64;
        let mut at = 0u64;
        let mut values = 0i64;
        let length = self.end.saturating_sub(self.start);
        for entry in entries {
            let end = entry.offset.checked_add(u64::from(entry.size)).filter(|end| *end <= length);
            if entry.first_row != row || entry.offset < at || entry.num_rows == 0 {
                return Err(Error::corrupt(
                    format!("a page from row {row} on"),
                    format!("one from row {}", entry.first_row),
                ));
            }
            at = end.ok_or_else(|| Error::corrupt("pages inside the chunk", entry.offset))?;
            row = row.saturating_add(u64::from(entry.num_rows));
            values = values.saturating_add(i64::from(entry.num_values));
        }
        if row != self.rows || values != self.metadata.num_values {
            let expected = format!("pages of {} rows and {} entries", self.rows, self.metadata.num_values);
            return Err(Error::corrupt(expected, format!("{row} rows and {values} entries")));
        }
        Ok(())
    }
}
