//! Where everything in a file lies: header, footer, blocklets, chunks, pages; checked before anything is read by it.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use arrow_schema::{Schema, SchemaRef};
use bytes::Bytes;
use pilaster_core::error::AtPosition;
use pilaster_core::source::TailSource;
use pilaster_core::{Error, Limits, Result, SourceRef};
use pilaster_encoding::thrift::Reader;

use super::calendar::Calendar;
use super::page::words::WordsRef;
use super::stream::Stream;
use super::types::{ColumnNode, column_trees, is_global};
use crate::legacy::Legacy;
use crate::messages::{BlockIndex, BlockletInfo, ColumnSchema, FileFooter, FileHeader, IndexHeader, MinMax};

pub(crate) const HEADER_PART: &str = "carbondata header";
pub(crate) const FOOTER_PART: &str = "carbondata footer";
const INDEX_PART: &str = "carbondata index";
/// The offset of the footer, at the very end.
pub(super) const TRAILER_BYTES: u64 = 8;
/// Read with the trailer, because most footers are not longer.
const TAIL_BYTES: u64 = 64 * 1024;
/// What most headers fit into.
const FIRST_HEADER_BYTES: u64 = 16 * 1024;
/// Row ids are 16-bit numbers, so no page holds more rows.
const MAX_PAGE_ROWS: i32 = i16::MAX as i32;
/// What old files, which do not say it, put into every page but the last.
const DEFAULT_PAGE_ROWS: u64 = 32_000;

/// A parsed file.
#[derive(Debug)]
pub(crate) struct CarbonFile {
    pub source: SourceRef,
    pub limits: Limits,
    /// Which days and times its numbers are given as.
    pub calendar: Calendar,
    pub header: FileHeader,
    pub header_bytes: u64,
    pub columns: Vec<ColumnNode>,
    pub schema: SchemaRef,
    pub blocklets: Vec<Blocklet>,
    pub rows: u64,
    /// What the footer says; a recovered file has lost it.
    pub footer: Option<FooterFacts>,
    /// Dictionaries of the table, by chunk, with the bytes of their codes.
    pub dictionaries: HashMap<usize, (WordsRef, usize)>,
    /// Where the rows are, of a file that holds rows and not columns.
    pub stream: Option<Stream>,
    /// Where the pages are, of a file of version 1 or 2.
    pub legacy: Option<Legacy>,
}

/// Facts of the footer that are not in the blocklets.
#[derive(Debug)]
pub(crate) struct FooterFacts {
    pub offset: u64,
    pub is_sorted: Option<bool>,
    pub extra: Vec<(String, String)>,
    /// Values per dictionary column.
    pub cardinalities: Vec<i32>,
}

/// A stretch of rows with a chunk per column.
#[derive(Debug, Clone)]
pub(crate) struct Blocklet {
    pub rows: Range<u64>,
    /// First row of each page, and the end.
    pub page_starts: Vec<u64>,
    pub chunks: Vec<ChunkPlace>,
    pub min_max: Option<MinMax>,
}

/// Where a chunk lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ChunkPlace {
    pub offset: u64,
    pub header_bytes: u64,
    pub end: u64,
}

impl Blocklet {
    pub fn pages(&self) -> usize {
        self.page_starts.len().saturating_sub(1)
    }

    /// Rows of a page.
    pub fn page_rows(&self, page: usize) -> Range<u64> {
        match self.page_starts.get(page..page.saturating_add(2)) {
            Some([start, end]) => *start..*end,
            _ => self.rows.end..self.rows.end,
        }
    }

    /// The page that holds `row`.
    pub fn page_of(&self, row: u64) -> usize {
        self.page_starts.partition_point(|start| *start <= row).saturating_sub(1)
    }

    pub fn bytes(&self) -> u64 {
        let start = self.chunks.first().map_or(0, |chunk| chunk.offset);
        self.chunks.last().map_or(0, |chunk| chunk.end).saturating_sub(start)
    }
}

impl CarbonFile {
    pub fn open(source: SourceRef, limits: Limits) -> Result<Self> {
        let tail = TailSource::read(Arc::clone(&source), TAIL_BYTES)?;
        let mut file = Self::with_header(source, limits)?;
        let tail: SourceRef = Arc::new(tail);
        let (footer, offset) = read_footer(&tail, file.header_bytes, &file.limits)?;
        file.set_blocklets(footer, offset, FOOTER_PART)?;
        Ok(file)
    }

    /// A file of which only the header has been read.
    pub fn with_header(source: SourceRef, limits: Limits) -> Result<Self> {
        let (header, header_bytes) = read_header(&source, &limits)?;
        if !header.is_footer_present {
            let error = Error::unsupported("rows of a streaming segment, outside of their table");
            return Err(error.at(source.name(), 0, HEADER_PART));
        }
        let mut file = Self::with_columns(source, limits, header.version, Vec::new())?;
        file.set_columns(header)?;
        file.header_bytes = header_bytes;
        Ok(file)
    }

    /// Columns that hold codes of a dictionary of their table, by chunk.
    pub fn global_columns(&self) -> impl Iterator<Item = (usize, &ColumnSchema)> {
        self.header.columns.iter().enumerate().filter(|(_, column)| is_global(column))
    }

    /// An error if a column holds codes of a dictionary that is not there.
    pub fn refuse_missing_dictionaries(&self) -> Result<()> {
        match self.global_columns().find(|(chunk, _)| !self.dictionaries.contains_key(chunk)) {
            None => Ok(()),
            Some((_, column)) => {
                let feature = format!("column {:?} holds codes of its table's dictionary", column.name);
                Err(Error::unsupported(feature).at(self.name(), 0, HEADER_PART))
            }
        }
    }

    pub(super) fn with_columns(
        source: SourceRef,
        limits: Limits,
        version: i32,
        columns: Vec<ColumnSchema>,
    ) -> Result<Self> {
        if version != 3 {
            let found = format!("version {version} of the format");
            return Err(Error::unsupported(found).at(source.name(), 0, HEADER_PART));
        }
        let mut file = Self {
            source,
            limits,
            calendar: Calendar::default(),
            header: FileHeader::default(),
            header_bytes: 0,
            columns: Vec::new(),
            schema: Arc::new(Schema::empty()),
            blocklets: Vec::new(),
            rows: 0,
            footer: None,
            dictionaries: HashMap::new(),
            stream: None,
            legacy: None,
        };
        file.set_columns(FileHeader { version, columns, is_footer_present: true, ..FileHeader::default() })?;
        Ok(file)
    }

    pub(super) fn set_columns(&mut self, header: FileHeader) -> Result<()> {
        self.columns = column_trees(&header.columns, self.limits.depth).at(self.name(), 0, HEADER_PART)?;
        let fields: Vec<_> = self.columns.iter().map(|column| Arc::clone(&column.field)).collect();
        self.schema = Arc::new(Schema::new(fields));
        self.header = header;
        Ok(())
    }

    /// A file as its records in an index file say, without opening it.
    pub fn from_index(
        source: SourceRef,
        limits: Limits,
        header: &IndexHeader,
        records: &[&BlockIndex],
    ) -> Result<Self> {
        let mut file = Self::with_columns(source, limits, header.version, header.columns.clone())?;
        let footer = FileFooter {
            rows: records.first().map_or(0, |record| record.rows),
            cardinalities: Vec::new(),
            indexes: records.iter().map(|record| record.index.clone()).collect(),
            blocklets: records.iter().filter_map(|record| record.blocklet.clone()).collect(),
            is_sorted: header.is_sorted,
            extra: Vec::new(),
        };
        let offset = records.first().map_or(-1, |record| record.footer_offset);
        let offset = u64::try_from(offset).unwrap_or(u64::MAX);
        if footer.blocklets.len() != records.len() || offset > file.source.size() {
            let expected =
                format!("the places of {} blocklets before byte {}", records.len(), file.source.size());
            let found = format!("{} before {offset}", footer.blocklets.len());
            return Err(Error::corrupt(expected, found).at(file.name(), 0, INDEX_PART));
        }
        file.set_blocklets(footer, offset, INDEX_PART)?;
        Ok(file)
    }

    fn set_blocklets(&mut self, footer: FileFooter, offset: u64, part: &'static str) -> Result<()> {
        self.blocklets = blocklets(self, &footer, offset).at(self.name(), offset, part)?;
        self.rows = self.blocklets.last().map_or(0, |blocklet| blocklet.rows.end);
        if u64::try_from(footer.rows) != Ok(self.rows) {
            let error = Error::corrupt(format!("{} rows in all", footer.rows), self.rows);
            return Err(error.at(self.name(), offset, part));
        }
        self.footer = Some(FooterFacts {
            offset,
            is_sorted: footer.is_sorted,
            extra: footer.extra,
            cardinalities: footer.cardinalities,
        });
        Ok(())
    }

    /// Whether blocklets, pages and statistics are the same in both.
    pub fn is_same_layout(&self, other: &Self) -> bool {
        let of = |blocklet: &Blocklet| {
            let Blocklet { rows, page_starts, chunks, min_max } = blocklet.clone();
            (rows, page_starts, chunks, min_max)
        };
        self.blocklets.iter().map(of).eq(other.blocklets.iter().map(of))
    }

    /// A file of version 1 or 2, of which only the columns are known.
    pub fn legacy(
        source: SourceRef,
        limits: Limits,
        version: i32,
        columns: Vec<ColumnSchema>,
    ) -> Result<Self> {
        let mut file = Self::with_columns(source, limits, 3, columns)?;
        file.header.version = version;
        Ok(file)
    }

    /// Whether it has column chunks, as files of version 3 do.
    pub fn has_chunks(&self) -> bool {
        self.stream.is_none() && self.legacy.is_none()
    }

    /// Whether it is a file of version 1 or 2 of which only the index was read.
    pub fn is_outline(&self) -> bool {
        self.legacy.as_ref().is_some_and(Legacy::is_outline)
    }

    pub fn name(&self) -> &str {
        self.source.name()
    }

    /// The blocklet that holds `row`.
    pub fn blocklet_of(&self, row: u64) -> usize {
        self.blocklets.partition_point(|blocklet| blocklet.rows.end <= row)
    }

    /// The rows of the page that holds `row`.
    pub fn page_around(&self, row: u64) -> Option<Range<u64>> {
        let blocklet = self.blocklets.get(self.blocklet_of(row)).filter(|_| self.has_chunks())?;
        Some(blocklet.page_rows(blocklet.page_of(row)))
    }
}

pub(crate) fn read_header(source: &SourceRef, limits: &Limits) -> Result<(FileHeader, u64)> {
    let most = source.size().min(limits.metadata_bytes);
    let mut length = FIRST_HEADER_BYTES.min(most);
    loop {
        let bytes = source.read_at(0..length)?;
        let mut reader = Reader::new(&bytes);
        match FileHeader::parse(&mut reader) {
            Ok(header) => return Ok((header, reader.position() as u64)),
            // It may only be cut: nothing says how long a header is.
            Err(_) if length < most => length = length.saturating_mul(8).min(most),
            Err(error) => return Err(error).at(source.name(), 0, HEADER_PART),
        }
    }
}

fn read_footer(source: &SourceRef, header_bytes: u64, limits: &Limits) -> Result<(FileFooter, u64)> {
    let size = source.size();
    let end = size.saturating_sub(TRAILER_BYTES);
    if end < header_bytes {
        let error = Error::corrupt("the offset of the footer in the last 8 bytes", "the end of the header");
        return Err(error.at(source.name(), end, FOOTER_PART));
    }
    let trailer = source.read_at(end..size)?;
    let offset = trailer.first_chunk().map_or(-1, |bytes| i64::from_be_bytes(*bytes));
    let offset = match u64::try_from(offset) {
        Ok(offset) if offset >= header_bytes && offset < end => offset,
        _ => {
            let expected = format!("an offset of {header_bytes} to {end}");
            return Err(Error::corrupt(expected, offset).at(source.name(), end, "carbondata footer offset"));
        }
    };
    limits.metadata(end.saturating_sub(offset)).at(source.name(), offset, FOOTER_PART)?;
    let bytes = source.read_at(offset..end)?;
    let (footer, used) = FileFooter::parse(&bytes).at(source.name(), offset, FOOTER_PART)?;
    if used != bytes.len() {
        let error = Error::corrupt(format!("a footer of {} bytes", bytes.len()), used);
        return Err(error.at(source.name(), offset, FOOTER_PART));
    }
    Ok((footer, offset))
}

fn blocklets(file: &CarbonFile, footer: &FileFooter, footer_offset: u64) -> Result<Vec<Blocklet>> {
    if footer.indexes.len() != footer.blocklets.len() && !footer.indexes.is_empty() {
        let expected = format!("statistics of {} blocklets", footer.blocklets.len());
        return Err(Error::corrupt(expected, footer.indexes.len()));
    }
    let first_offsets = footer.blocklets.iter().map(|info| info.chunk_offsets.first().copied());
    let ends = first_offsets.skip(1).chain([None]);
    let mut all = Vec::with_capacity(footer.blocklets.len());
    let (mut next_row, mut next_byte) = (0u64, file.header_bytes);
    for (number, (info, end)) in footer.blocklets.iter().zip(ends).enumerate() {
        let end = match end {
            Some(end) => u64::try_from(end).unwrap_or(u64::MAX).min(footer_offset),
            None => footer_offset,
        };
        let chunks = chunk_places(info, file.header.columns.len(), next_byte..end)?;
        let page_starts = page_starts(info, next_row)?;
        let rows = next_row..page_starts.last().copied().unwrap_or(next_row);
        next_row = rows.end;
        next_byte = end;
        let min_max = footer.indexes.get(number).map(|index| index.min_max.clone());
        if let Some(statistics) = &min_max {
            check_statistics(statistics, file.header.columns.len())?;
        }
        all.push(Blocklet { rows, page_starts, chunks, min_max });
    }
    Ok(all)
}

fn check_statistics(statistics: &MinMax, columns: usize) -> Result<()> {
    let counts = [statistics.min.len(), statistics.max.len()];
    let flags = statistics.is_present.len();
    if counts != [columns; 2] || (flags != columns && flags != 0) {
        let found = format!("{} minima, {} maxima, {flags} flags", counts[0], counts[1]);
        return Err(Error::corrupt(format!("statistics of {columns} columns"), found));
    }
    Ok(())
}

/// Offsets that ascend inside `inside`, with headers that fit.
pub(crate) fn chunk_places(
    info: &BlockletInfo,
    columns: usize,
    inside: Range<u64>,
) -> Result<Vec<ChunkPlace>> {
    let (offsets, lengths) = (&info.chunk_offsets, &info.chunk_header_lengths);
    if offsets.len() != columns || lengths.len() != columns {
        let found = format!("{} offsets and {} lengths", offsets.len(), lengths.len());
        return Err(Error::corrupt(format!("chunks of {columns} columns"), found));
    }
    let mut places = Vec::with_capacity(columns);
    let ends = offsets.iter().skip(1).copied().map(Some).chain([None]);
    for ((offset, length), end) in offsets.iter().zip(lengths).zip(ends) {
        let numbers = (u64::try_from(*offset), u64::try_from(*length), end.map(u64::try_from).transpose());
        let (Ok(offset), Ok(header_bytes), Ok(end)) = numbers else {
            return Err(Error::corrupt("offsets and lengths of chunks", format!("{offset} and {length}")));
        };
        let end = end.unwrap_or(inside.end);
        let header_end = offset.saturating_add(header_bytes);
        if offset < inside.start || header_end > end || end > inside.end {
            let expected = format!("a chunk inside {}..{}", inside.start, inside.end);
            return Err(Error::corrupt(expected, format!("{offset}..{end} with a header of {header_bytes}")));
        }
        places.push(ChunkPlace { offset, header_bytes, end });
    }
    Ok(places)
}

/// First row of each page, and the end.
fn page_starts(info: &BlockletInfo, first_row: u64) -> Result<Vec<u64>> {
    let rows = u64::try_from(info.rows).map_err(|_| Error::corrupt("a number of rows", info.rows))?;
    let pages = u64::try_from(info.pages).map_err(|_| Error::corrupt("a number of pages", info.pages))?;
    let mut starts = vec![first_row];
    let mut row = first_row;
    match &info.page_rows {
        Some(counts) if !counts.is_empty() => {
            for count in counts {
                if !(1..=MAX_PAGE_ROWS).contains(count) {
                    return Err(Error::corrupt(format!("a page of 1 to {MAX_PAGE_ROWS} rows"), count));
                }
                row = row.saturating_add(u64::from(count.unsigned_abs()));
                starts.push(row);
            }
        }
        _ => {
            if pages != rows.div_ceil(DEFAULT_PAGE_ROWS) {
                let expected = format!("{} pages of {rows} rows", rows.div_ceil(DEFAULT_PAGE_ROWS));
                return Err(Error::corrupt(expected, pages));
            }
            let end = first_row.saturating_add(rows);
            while row < end {
                row = row.saturating_add(DEFAULT_PAGE_ROWS).min(end);
                starts.push(row);
            }
        }
    }
    let found = (row.saturating_sub(first_row), starts.len().saturating_sub(1) as u64);
    if found != (rows, pages) || rows == 0 {
        let expected = format!("{rows} rows in {pages} pages");
        return Err(Error::corrupt(expected, format!("{} rows in {} pages", found.0, found.1)));
    }
    Ok(starts)
}

/// Bytes of `range`, if the limit for a block allows so many.
pub(crate) fn read_block(file: &CarbonFile, range: Range<u64>, part: &'static str) -> Result<Bytes> {
    let length = range.end.saturating_sub(range.start);
    file.limits.block(length).at(file.name(), range.start, part)?;
    file.source.read_at(range)
}
