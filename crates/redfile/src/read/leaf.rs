//! One column of the file, by row position.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use pilaster_core::fitting::Held;
use pilaster_core::kept::Kept;
use pilaster_core::{Error, Result, RowRanges, ScanMemory};

use super::batch::LeafBatch;
use super::chunk::{CHUNK_PART, Chunk, HEADER_PART, PAGE_PART, StoredPage, Window};
use super::file::RedFile;
use super::page::{DataPage, Scratch};
use crate::metadata::PageType;

/// Where a data page is and which rows of its row group it holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PagePlace {
    pub offset: u64,
    pub size: u64,
    pub rows: Range<u64>,
}

/// Reads a column forwards; going back is possible and costs more.
#[derive(Debug)]
pub(crate) struct LeafReader {
    file: Arc<RedFile>,
    leaf: usize,
    /// What the scan will visit: a row group that is visited as a whole is read through, without its index page.
    wanted: RowRanges,
    open: Option<OpenChunk>,
    memory: ScanMemory,
    /// Row groups that were looked through for damage: the chunk and its sound pages.
    inspected: BTreeMap<usize, (Chunk, Arc<Vec<PagePlace>>)>,
}

#[derive(Debug)]
struct OpenChunk {
    chunk: Chunk,
    pages: Pages,
    window: Window,
    page: Kept<DataPage>,
    /// Bytes of the pages of this read that do not stay, and whether there were any.
    passing: Held,
    has_passing: bool,
    /// The row of the row group that `page` gives next.
    next_row: u64,
    scratch: Scratch,
}

#[derive(Debug)]
enum Pages {
    /// One page after the other from here on.
    InTurn { next: Place, current: Place },
    /// Known places; holes are lost pages.
    Known(Arc<Vec<PagePlace>>),
}

/// Where a page begins, and what was before it.
#[derive(Debug, Clone, Copy)]
struct Place {
    offset: u64,
    row: u64,
    entries: u64,
}

impl Place {
    fn first_of(chunk: &Chunk) -> Self {
        Self { offset: chunk.start, row: 0, entries: 0 }
    }
}

impl LeafReader {
    pub fn new(file: Arc<RedFile>, leaf: usize, wanted: RowRanges, memory: &ScanMemory) -> Self {
        Self { file, leaf, wanted, open: None, memory: memory.clone(), inspected: BTreeMap::new() }
    }

    /// Begins a read: what the last one gave is no longer held.
    pub fn begin_read(&mut self) {
        if let Some(open) = &mut self.open {
            open.page.begin_read();
            (open.passing, open.has_passing) = (Held::default(), false);
        }
    }

    /// Ends a read, and lets go of a page that there is no room for; says whether what was read must be copied for that.
    pub fn end_read(&mut self) -> bool {
        self.open.as_mut().is_some_and(|open| {
            open.let_go();
            open.has_passing
        })
    }

    /// What a salvage found in row groups before this one is not needed any more.
    pub fn forget_before(&mut self, first: usize) {
        self.inspected.retain(|group, _| *group >= first);
    }

    /// From now on pages of a chunk are where a salvage found them.
    pub fn use_places(&mut self, chunk: Chunk, places: Arc<Vec<PagePlace>>) {
        if self.is_open(chunk.group) {
            self.open = None;
        }
        self.inspected.insert(chunk.group, (chunk, places));
    }

    fn is_open(&self, group: usize) -> bool {
        self.open.as_ref().is_some_and(|open| open.chunk.group == group)
    }

    /// Appends `rows` of a row group to `out`.
    pub fn read(&mut self, group: usize, rows: Range<u64>, out: &mut LeafBatch) -> Result<()> {
        if !self.is_open(group) {
            self.open(group)?;
        }
        let Some(open) = &mut self.open else { return Ok(()) };
        open.read(&self.file, rows, out)
    }

    fn open(&mut self, group: usize) -> Result<()> {
        if let Some((chunk, places)) = self.inspected.get(&group) {
            let pages = Pages::Known(Arc::clone(places));
            self.open = Some(OpenChunk::new(chunk.clone(), pages, &self.memory));
            return Ok(());
        }
        let chunk = self.file.chunk(group, self.leaf)?;
        chunk.check_supported(self.file.leaf(self.leaf)?)?;
        let all = RowRanges::one(self.file.group_rows(group));
        let is_whole = self.wanted.intersect(&all) == all;
        let index = if is_whole { None } else { chunk.index()? };
        let pages = match index {
            Some(entries) => Pages::Known(Arc::new(places(&chunk, &entries))),
            None => Pages::InTurn { next: Place::first_of(&chunk), current: Place::first_of(&chunk) },
        };
        self.open = Some(OpenChunk::new(chunk, pages, &self.memory));
        Ok(())
    }
}

/// The places an index page tells.
pub(crate) fn places(chunk: &Chunk, entries: &[crate::metadata::PageIndexEntry]) -> Vec<PagePlace> {
    entries
        .iter()
        .map(|entry| PagePlace {
            offset: chunk.start.saturating_add(entry.offset),
            size: u64::from(entry.size),
            rows: entry.first_row..entry.first_row.saturating_add(u64::from(entry.num_rows)),
        })
        .collect()
}

impl OpenChunk {
    fn new(chunk: Chunk, pages: Pages, memory: &ScanMemory) -> Self {
        Self {
            chunk,
            pages,
            window: Window::default(),
            page: Kept::new(memory),
            passing: Held::default(),
            has_passing: false,
            next_row: 0,
            scratch: Scratch::default(),
        }
    }

    /// Lets go of the page if there is no room for it: the next read finds it again where it begins.
    fn let_go(&mut self) {
        if self.page.end_read()
            && let Pages::InTurn { next, current } = &mut self.pages
        {
            *next = *current;
        }
    }

    /// Makes a page the current one.
    fn enter(&mut self, page: DataPage, memory_bytes: u64, first_row: u64) -> Result<()> {
        self.next_row = first_row;
        self.page.set(page, memory_bytes);
        if !self.page.is_kept() {
            self.has_passing = true;
            self.passing.add(memory_bytes, &self.chunk.limits)?;
        }
        Ok(())
    }

    fn read(&mut self, file: &RedFile, rows: Range<u64>, out: &mut LeafBatch) -> Result<()> {
        let mut at = rows.start;
        while at < rows.end {
            self.seek(file, at, rows.end)?;
            let Some(page) = self.page.get_mut() else { break };
            let left = rows.end.saturating_sub(at).min(page.rows_left as u64);
            let count = usize::try_from(left).unwrap_or(usize::MAX);
            let offset = self.chunk.start;
            page.take(count, out)
                .map_err(|error| Error::from(error).at(self.chunk.name(), offset, PAGE_PART))?;
            at = at.saturating_add(left);
            self.next_row = at;
        }
        Ok(())
    }

    /// Opens the page that holds `row` and steps to it; about `end` is how far will be read.
    fn seek(&mut self, file: &RedFile, row: u64, end: u64) -> Result<()> {
        let leaf = file.leaf(self.chunk.leaf)?;
        loop {
            if let Some(page) = self.page.get_mut()
                && let Some(ahead) = row.checked_sub(self.next_row)
                && ahead < page.rows_left as u64
            {
                let count = usize::try_from(ahead).unwrap_or(usize::MAX);
                page.skip(count).map_err(|error| {
                    Error::from(error).at(self.chunk.source.name(), self.chunk.start, PAGE_PART)
                })?;
                self.next_row = row;
                return Ok(());
            }
            if let Some(page) = self.page.take() {
                self.scratch = page.into_scratch();
            }
            match &mut self.pages {
                Pages::Known(places) => {
                    let places = Arc::clone(places);
                    self.open_known(&places, row, end, leaf)?;
                }
                Pages::InTurn { .. } => self.open_next(row, leaf)?,
            }
        }
    }

    fn open_known(
        &mut self,
        places: &[PagePlace],
        row: u64,
        end: u64,
        leaf: &crate::schema::Leaf,
    ) -> Result<()> {
        let number = places.partition_point(|place| place.rows.end <= row);
        let Some(place) = places.get(number).filter(|place| place.rows.contains(&row)) else {
            return Err(Error::corrupt(format!("a page with row {row}"), "none").at(
                self.chunk.name(),
                self.chunk.start,
                CHUNK_PART,
            ));
        };
        // Pages that will be needed at once are read at once.
        let last =
            places.get(number..).unwrap_or_default().iter().take_while(|place| place.rows.start < end).last();
        let ahead = last.map_or(0, |place| place.offset.saturating_add(place.size));
        let page = self.chunk.page(
            &mut self.window,
            place.offset,
            ahead.max(place.offset.saturating_add(place.size)),
        )?;
        if page.end() != place.offset.saturating_add(place.size) {
            return Err(Error::corrupt(
                format!("a page of {} bytes, as the index says", place.size),
                page.end().saturating_sub(place.offset),
            )
            .at(self.chunk.name(), place.offset, HEADER_PART));
        }
        let opened = self.chunk.open_page(&page, leaf, std::mem::take(&mut self.scratch))?;
        let rows = place.rows.end.saturating_sub(place.rows.start);
        if opened.rows_left as u64 != rows {
            return Err(Error::corrupt(format!("{rows} rows, as the index says"), opened.rows_left).at(
                self.chunk.name(),
                place.offset,
                PAGE_PART,
            ));
        }
        let bytes = memory_bytes(&page, &opened);
        self.enter(opened, bytes, place.rows.start)
    }

    /// Opens the next page that holds `row`, stepping over others without decoding them where their header tells their rows.
    fn open_next(&mut self, row: u64, leaf: &crate::schema::Leaf) -> Result<()> {
        let Pages::InTurn { next, current } = &mut self.pages else { return Ok(()) };
        if row < next.row {
            *next = Place::first_of(&self.chunk);
        }
        *current = *next;
        let (at, first) = (next.offset, next.row);
        let (header, header_bytes) = self.chunk.header(&mut self.window, at, self.chunk.end)?;
        let stored_end = at.saturating_add(header_bytes).saturating_add(u64::from(header.compressed_size));
        let Some(data) = header.data.as_ref().filter(|_| header.page_type == PageType::Data) else {
            next.offset = stored_end;
            return Ok(());
        };
        next.entries = next.entries.saturating_add(u64::from(data.num_values));
        let known = data.num_rows.or((leaf.max_rep == 0).then_some(data.num_values)).map(u64::from);
        let is_before = |rows: u64| first.saturating_add(rows) <= row;
        if let Some(rows) = known.filter(|rows| is_before(*rows)) {
            (next.offset, next.row) = (stored_end, first.saturating_add(rows));
            return Ok(());
        }
        let page = self.chunk.body(&mut self.window, header, header_bytes, at, self.chunk.end)?;
        let opened = self.chunk.open_page(&page, leaf, std::mem::take(&mut self.scratch))?;
        let end = first.saturating_add(opened.rows_left as u64);
        (next.offset, next.row) = (page.end(), end);
        let entries = next.entries;
        let stated = u64::try_from(self.chunk.metadata.num_values).unwrap_or_default();
        if end > self.chunk.rows || entries > stated || (end == self.chunk.rows && entries != stated) {
            let expected = format!("{} rows in {stated} entries", self.chunk.rows);
            let found = format!("{end} rows in {entries}");
            return Err(Error::corrupt(expected, found).at(self.chunk.name(), at, PAGE_PART));
        }
        let bytes = memory_bytes(&page, &opened);
        self.enter(opened, bytes, first)
    }
}

/// What an open page takes in memory, about.
fn memory_bytes(stored: &StoredPage, page: &DataPage) -> u64 {
    u64::from(stored.header.uncompressed_size).saturating_add(page.decoded_bytes())
}
