//! One column, read by row position.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, new_empty_array};
use bytes::Bytes;
use pilaster_core::error::AtPosition;
use pilaster_core::kept::Kept;
use pilaster_core::positional::ColumnCursor;
use pilaster_core::source::READ_AHEAD_BYTES;
use pilaster_core::{Error, Result, RowRanges, ScanMemory};

use super::chunk::{CHUNK_PART, Chunk};
use super::layout::{Blocklet, CarbonFile, ChunkPlace, read_block};
use super::page::{PageDecoder, PageValues};
use super::types::{CarbonType, ColumnNode};
use super::verify::check_values;

/// Chunk headers that planning has read already, by blocklet and chunk.
pub(crate) type KnownChunks = HashMap<(usize, usize), Arc<Chunk>>;

/// Reads a column page by page.
pub(crate) struct PageCursor {
    file: Arc<CarbonFile>,
    column: usize,
    /// Rows that will surely be read.
    wanted: RowRanges,
    known: Arc<KnownChunks>,
    blocklet: Option<OpenBlocklet>,
    page: Kept<OpenPage>,
    /// What [`PageCursor::probe`] found wrong with the page it looked at last.
    damage: Option<(Range<u64>, String)>,
}

/// The chunks of a column in one blocklet.
struct OpenBlocklet {
    number: usize,
    chunks: Vec<OpenChunk>,
}

struct OpenChunk {
    chunk: Arc<Chunk>,
    carbon_type: CarbonType,
    /// Pages that will surely be read are read together, up to so many bytes.
    read_ahead_bytes: u64,
    /// What was read last: where the bytes begin, and they.
    ahead: (u64, Bytes),
}

struct OpenPage {
    rows: Range<u64>,
    values: PageValues,
}

/// The types of the chunks of a column, in the order of [`ColumnNode::chunks`].
fn chunk_types(node: &ColumnNode, types: &mut Vec<(usize, CarbonType)>) {
    types.push((node.chunk, node.carbon_type));
    types.extend(node.entries_chunk.map(|chunk| (chunk, CarbonType::Struct)));
    node.children.iter().for_each(|child| chunk_types(child, types));
}

impl OpenBlocklet {
    /// Reads the headers of the chunks of `node`; pages too, if every row of the blocklet is `wanted`.
    fn open(
        file: &CarbonFile,
        number: usize,
        node: &ColumnNode,
        wanted: &RowRanges,
        known: &KnownChunks,
    ) -> Result<Self> {
        let missing =
            || Error::internal(format!("no blocklet number {number}")).at(file.name(), 0, CHUNK_PART);
        let blocklet = file.blocklets.get(number).ok_or_else(missing)?;
        let mut types = Vec::new();
        chunk_types(node, &mut types);
        let whole = RowRanges::one(blocklet.rows.clone());
        let reads_all = wanted.intersect(&whole) == whole;
        let chunks = types
            .into_iter()
            .map(|(chunk, carbon_type)| {
                OpenChunk::open(file, blocklet, chunk, carbon_type, reads_all, known.get(&(number, chunk)))
            })
            .collect::<Result<_>>()?;
        Ok(Self { number, chunks })
    }

    /// Decodes a page of the column.
    fn decode(
        &mut self,
        file: &CarbonFile,
        node: &ColumnNode,
        page: usize,
        rows: usize,
    ) -> Result<PageValues> {
        let places: Vec<_> = self.chunks.iter().map(|open| open.missing(page)).collect();
        for place in &places {
            file.limits.block(place.end.saturating_sub(place.start))?;
        }
        if places.iter().any(|place| !place.is_empty()) {
            // What was read before makes room for what is read now.
            for (open, _) in self.chunks.iter_mut().zip(&places).filter(|(_, place)| !place.is_empty()) {
                open.ahead = (0, Bytes::new());
            }
            let fetched = file.source.read_many(&places)?;
            for ((open, place), bytes) in self.chunks.iter_mut().zip(places).zip(fetched) {
                if !place.is_empty() {
                    open.ahead = (place.start, bytes);
                }
            }
        }
        let pages = |chunk: usize| {
            let Some(open) = self.chunks.iter().find(|open| open.chunk.number == chunk) else {
                return Err(Error::internal(format!("chunk {chunk} is of another column")));
            };
            let bytes = match open.chunk.pages.get(page) {
                Some(range) => open.there(range),
                None => Some(Bytes::new()),
            };
            let bytes = bytes.ok_or_else(|| Error::corrupt("a page inside its chunk", "another place"))?;
            open.chunk.page(file, page, bytes, open.carbon_type)
        };
        let first = self.chunks.first().and_then(|open| open.chunk.pages.get(page));
        let offset = first.map_or(0, |range| range.start);
        PageDecoder::new(&file.limits, &pages).decode(node, Some(rows)).at(file.name(), offset, CHUNK_PART)
    }

    /// Bytes of the words of all chunks.
    fn words_bytes(&self) -> u64 {
        self.chunks.iter().map(|open| open.chunk.words_bytes()).sum()
    }
}

impl Drop for OpenBlocklet {
    /// Planning may hold on to the chunks until the scan ends.
    fn drop(&mut self) {
        self.chunks.iter().for_each(|open| open.chunk.forget_words());
    }
}

impl OpenChunk {
    /// Opens chunk `number`, with as many of its pages as come with its header.
    fn open(
        file: &CarbonFile,
        blocklet: &Blocklet,
        number: usize,
        carbon_type: CarbonType,
        reads_all: bool,
        known: Option<&Arc<Chunk>>,
    ) -> Result<Self> {
        let place = blocklet.chunks.get(number);
        // The pages of a file that was cut off may not all be there.
        let most = file.limits.block_bytes;
        let is_there = |place: &ChunkPlace| place.end <= file.source.size() && place.header_bytes <= most;
        let reads_all = reads_all && place.is_some_and(is_there);
        // What is read together is no larger than one block may be.
        let read_ahead_bytes = if reads_all { READ_AHEAD_BYTES.min(most) } else { 0 };
        let (chunk, ahead) = match (place, known) {
            (_, Some(chunk)) => (Arc::clone(chunk), (0, Bytes::new())),
            (Some(place), None) if reads_all => {
                let with_header = place.offset.saturating_add(place.header_bytes.max(read_ahead_bytes));
                let bytes = read_block(file, place.offset..with_header.min(place.end), CHUNK_PART)?;
                let header = usize::try_from(place.header_bytes).unwrap_or(usize::MAX).min(bytes.len());
                let chunk = Chunk::parse(file, blocklet, number, &bytes.slice(..header))?;
                (Arc::new(chunk), (place.offset, bytes))
            }
            _ => (Arc::new(Chunk::read(file, blocklet, number)?), (0, Bytes::new())),
        };
        Ok(Self { chunk, carbon_type, read_ahead_bytes, ahead })
    }

    /// The bytes of a page, if they were read already.
    fn there(&self, range: &Range<u64>) -> Option<Bytes> {
        let (start, bytes) = &self.ahead;
        let from = usize::try_from(range.start.checked_sub(*start)?).ok()?;
        let to = usize::try_from(range.end.checked_sub(*start)?).ok()?;
        (from <= to && to <= bytes.len()).then(|| bytes.slice(from..to))
    }

    /// What must be read for `page`: with the pages after it, if those will be read too.
    fn missing(&self, page: usize) -> Range<u64> {
        let Some((first, later)) = self.chunk.pages.get(page..).and_then(|pages| pages.split_first()) else {
            return 0..0;
        };
        if self.there(first).is_some() {
            return 0..0;
        }
        let is_near = |range: &&Range<u64>| range.end.saturating_sub(first.start) <= self.read_ahead_bytes;
        first.start..later.iter().take_while(is_near).last().map_or(first.end, |range| range.end)
    }
}

impl PageCursor {
    pub fn new(
        file: Arc<CarbonFile>,
        column: usize,
        wanted: RowRanges,
        known: Arc<KnownChunks>,
        memory: &ScanMemory,
    ) -> Self {
        Self { file, column, wanted, known, blocklet: None, page: Kept::new(memory), damage: None }
    }

    /// For whoever reads one column after the other.
    pub fn alone(file: Arc<CarbonFile>, column: usize) -> Self {
        let memory = ScanMemory::of_one_column(&file.limits);
        Self::new(file, column, RowRanges::none(), Arc::default(), &memory)
    }

    fn node(file: &CarbonFile, column: usize) -> Result<&ColumnNode> {
        let missing = || Error::internal(format!("no column number {column}"));
        file.columns.get(column).ok_or_else(missing)
    }

    /// The page that holds `row`, decoded.
    fn page(&mut self, row: u64) -> Result<&OpenPage> {
        let is_open = self.page.get().is_some_and(|page| page.rows.contains(&row));
        if !is_open {
            self.page.take();
            let page = self.decode_page(row)?;
            let words = self.blocklet.as_ref().map_or(0, OpenBlocklet::words_bytes);
            let bytes = page.values.bytes().saturating_add(words);
            self.page.set(page, bytes);
        }
        self.page.get().ok_or_else(|| Error::internal("a page was lost"))
    }

    /// Ends a read: a page that there is no room for goes with its words.
    fn end_read(&mut self) {
        if self.page.end_read() {
            self.blocklet = None;
        }
    }

    /// Whether the page that holds `row` can be given: decoded, and with values inside their bounds.
    fn checked_page(&mut self, row: u64) -> Result<()> {
        let file = Arc::clone(&self.file);
        let page = self.page(row)?;
        if !file.has_chunks() {
            return Ok(());
        }
        let count = usize::try_from(page.rows.end.saturating_sub(page.rows.start)).unwrap_or(usize::MAX);
        let values = page.values.array(0, count)?;
        let node = Self::node(&file, self.column)?;
        let (Some(open), Some(blocklet)) = (&self.blocklet, file.blocklets.get(file.blocklet_of(row))) else {
            return Ok(());
        };
        let chunk = open.chunks.iter().find(|open| open.chunk.number == node.chunk);
        let chunk = chunk.map(|open| open.chunk.as_ref());
        check_values(&file, node, chunk, blocklet.page_of(row), &values, blocklet)
    }

    fn decode_page(&mut self, row: u64) -> Result<OpenPage> {
        let file = Arc::clone(&self.file);
        let number = file.blocklet_of(row);
        let Some(blocklet) = file.blocklets.get(number) else {
            return Err(Error::internal(format!("no row {row}: there are {}", file.rows)));
        };
        let node = Self::node(&file, self.column)?;
        if !file.has_chunks() {
            let rows = blocklet.rows.clone();
            let count = usize::try_from(rows.end.saturating_sub(rows.start)).unwrap_or(usize::MAX);
            let values = match (&file.stream, &file.legacy) {
                (Some(stream), _) => stream.decode(&file, number, node, count)?,
                (None, Some(legacy)) => legacy.decode(&file, number, node, count)?,
                (None, None) => return Err(Error::internal("a file without chunks")),
            };
            return Ok(OpenPage { values: PageValues::Array(values), rows });
        }
        if self.blocklet.as_ref().is_none_or(|open| open.number != number) {
            self.blocklet = None;
            self.blocklet = Some(OpenBlocklet::open(&file, number, node, &self.wanted, &self.known)?);
        }
        let Some(open) = &mut self.blocklet else { return Err(Error::internal("a blocklet was lost")) };
        let page = blocklet.page_of(row);
        let rows = blocklet.page_rows(page);
        let count = usize::try_from(rows.end.saturating_sub(rows.start)).unwrap_or(usize::MAX);
        Ok(OpenPage { values: open.decode(&file, node, page, count)?, rows })
    }

    /// The values of `rows` as they are stored, before days are those that CarbonData shows.
    pub fn read_stored(&mut self, rows: Range<u64>) -> Result<ArrayRef> {
        self.read_form(rows, PageValues::array)
    }

    fn read_form(
        &mut self,
        rows: Range<u64>,
        form: fn(&PageValues, usize, usize) -> Result<ArrayRef>,
    ) -> Result<ArrayRef> {
        self.page.begin_read();
        let values = self.read_pages(rows, form);
        self.end_read();
        values
    }

    fn read_pages(
        &mut self,
        rows: Range<u64>,
        form: fn(&PageValues, usize, usize) -> Result<ArrayRef>,
    ) -> Result<ArrayRef> {
        let mut parts: Vec<ArrayRef> = Vec::new();
        let mut row = rows.start;
        while row < rows.end {
            let page = self.page(row)?;
            let end = page.rows.end.min(rows.end);
            let place = |row: u64| usize::try_from(row.saturating_sub(page.rows.start)).unwrap_or(usize::MAX);
            let part = form(&page.values, place(row), place(end).saturating_sub(place(row)))?;
            parts.push(self.page.given(part)?);
            row = end;
        }
        match parts.as_slice() {
            [] => Ok(new_empty_array(Self::node(&self.file, self.column)?.field.data_type())),
            [one] => Ok(Arc::clone(one)),
            several => {
                let several: Vec<&dyn Array> = several.iter().map(AsRef::as_ref).collect();
                Ok(arrow_select::concat::concat(&several)?)
            }
        }
    }

    /// What is wrong with the page that holds `row`.
    fn damage_of(&mut self, row: u64) -> Option<String> {
        self.page.begin_read();
        let damage = self.checked_page(row).err();
        self.end_read();
        damage.map(|error| error.to_string())
    }
}

impl ColumnCursor for PageCursor {
    fn read(&mut self, rows: Range<u64>) -> Result<ArrayRef> {
        let stored = self.read_stored(rows)?;
        self.file.calendar.shown(&stored)
    }

    fn read_for_filter(&mut self, rows: Range<u64>) -> Result<ArrayRef> {
        if rows.is_empty() {
            return self.read(rows);
        }
        // Pages of one read must have one form, words are only those of one page, and of one that stays.
        let is_one_page = self.page(rows.start)?.rows.end >= rows.end;
        let form = match is_one_page && self.page.is_kept() {
            true => PageValues::comparable,
            false => PageValues::array,
        };
        let stored = self.read_form(rows, form)?;
        self.file.calendar.shown(&stored)
    }

    fn block(&self, row: u64) -> Option<Range<u64>> {
        self.file.page_around(row)
    }

    fn probe(&mut self, rows: Range<u64>) -> Vec<(Range<u64>, Option<Error>)> {
        let file = Arc::clone(&self.file);
        let mut stretches = Vec::new();
        let mut row = rows.start;
        while row < rows.end {
            let Some(blocklet) = file.blocklets.get(file.blocklet_of(row)) else { break };
            let page = blocklet.page_rows(blocklet.page_of(row));
            let known = self.damage.as_ref().filter(|(damaged, _)| damaged.contains(&row));
            let error = match known {
                Some((_, message)) => Some(message.clone()),
                None => self.damage_of(row),
            };
            let stretch = match &error {
                // A damaged page is lost as a whole, a good one is good for what was asked.
                Some(message) => {
                    self.damage = Some((page.clone(), message.clone()));
                    page.clone()
                }
                None => row..page.end.min(rows.end),
            };
            row = page.end;
            stretches.push((stretch, error.map(Error::invalid)));
        }
        stretches
    }
}
