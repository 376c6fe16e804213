//! A column that has pages of its own: where they are, and its dictionary.

use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use arrow_array::{Array, ArrayRef};
use bytes::Bytes;
use pilaster_core::error::AtPosition;
use pilaster_core::{Error, Result};
use pilaster_encoding::varint;

use super::cells::Cell;
use super::column_meta::{ColumnMeta, IndexedColumnMeta, TreeMeta};
use super::decode::{DecodedPage, FindWords, Form, PageShape, Words, decode_plain_bytes};
use super::page::{Page, PageKind, PagePointer, PageStore};
use super::types::{Compression, Encoding};
use crate::messages::required;

/// `IndexPageFooterPB.type` of a page whose entries point at data pages.
const LEAF: i32 = 1;
const ORDINAL_BYTES: usize = size_of::<u64>();
/// Key length, ordinal, page offset and page size.
const SMALLEST_ENTRY_BYTES: usize = ORDINAL_BYTES + 3;

/// Size of the page footer and checksum, which every page ends with.
const SMALLEST_PAGE_BYTES: u64 = 8;
/// What a value of any length takes in an Arrow array besides its bytes.
pub(crate) const VIEW_BYTES: usize = 16;

/// Where a data page lies and which rows it holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LocatedPage {
    pub pointer: PagePointer,
    pub rows: Range<u64>,
}

impl LocatedPage {
    pub fn count(&self) -> u64 {
        self.rows.end.saturating_sub(self.rows.start)
    }
}

/// What the keys of an index tree are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TreeKeys {
    Ordinals,
    /// First values: only the pages know their rows.
    Values,
}

/// What the cursors of a column with pages share.
#[derive(Debug)]
pub(crate) struct PagedColumn {
    pub store: Arc<PageStore>,
    pub shape: PageShape,
    pub compression: Compression,
    pub rows: u64,
    pub dictionary: Option<PagePointer>,
    pub tree: Option<TreeMeta>,
    is_nullable: bool,
    keys: TreeKeys,
    pages: OnceLock<Vec<LocatedPage>>,
    words: Mutex<Option<Words>>,
}

impl PagedColumn {
    /// A column, or a part of one.
    pub fn new(store: &Arc<PageStore>, column: &ColumnMeta, cell: Cell) -> Result<Self> {
        let encoding = column.encoding.ok_or_else(|| {
            Error::corrupt(format!("an encoding of the {} column", column.field_type), "none")
        })?;
        Ok(Self {
            store: Arc::clone(store),
            shape: PageShape { cell, encoding, limits: store.limits.clone() },
            compression: column.compression,
            rows: column.num_rows,
            dictionary: column.dictionary,
            tree: column.ordinal_index,
            is_nullable: column.is_nullable,
            keys: TreeKeys::Ordinals,
            pages: OnceLock::new(),
            words: Mutex::new(None),
        })
    }

    /// A column that serves an index.
    pub fn of_index(store: &Arc<PageStore>, column: &IndexedColumnMeta, cell: Cell) -> Self {
        let (tree, keys) = match (column.ordinal_index, column.value_index) {
            (Some(tree), _) => (Some(tree), TreeKeys::Ordinals),
            (None, tree) => (tree, TreeKeys::Values),
        };
        Self {
            store: Arc::clone(store),
            shape: PageShape { cell, encoding: column.encoding, limits: store.limits.clone() },
            compression: column.compression,
            rows: column.num_values,
            dictionary: None,
            tree,
            is_nullable: false,
            keys,
            pages: OnceLock::new(),
            words: Mutex::new(None),
        }
    }

    pub fn name(&self) -> &str {
        self.store.name()
    }

    /// Every data page, in row order; read from the index once.
    pub fn pages(&self) -> Result<&[LocatedPage]> {
        if let Some(known) = self.pages.get() {
            return Ok(known);
        }
        let located = self.locate()?;
        let count = located.len() as u64;
        self.store.check_listed(count).at(
            self.name(),
            self.tree.map_or(0, |tree| tree.root.offset),
            PageKind::Index.part(),
        )?;
        // Another thread may have been faster.
        if self.pages.set(located).is_ok() {
            self.store.count_listed(count);
        }
        self.pages.get().map(Vec::as_slice).ok_or_else(|| Error::invalid("pages that are not known"))
    }

    /// Says where the pages are, of a column whose index cannot be read.
    pub fn set_pages(&self, located: Vec<LocatedPage>) {
        // An index that could be read meanwhile is right.
        let _ = self.pages.set(located);
    }

    /// Says that [`PagedColumn::pages`] is likely to be asked for.
    pub fn announce_pages(&self) {
        if let Some(tree) = self.tree
            && !tree.is_data_page
            && self.pages.get().is_none()
        {
            self.store.announce_index(tree.root);
        }
    }

    fn locate(&self) -> Result<Vec<LocatedPage>> {
        let Some(tree) = self.tree else {
            if self.rows == 0 {
                return Ok(Vec::new());
            }
            return Err(Error::corrupt("an index of the column's pages", "none").at(
                self.name(),
                self.store.pages_end,
                "segment column metadata",
            ));
        };
        if tree.is_data_page {
            return Ok(vec![LocatedPage { pointer: tree.root, rows: 0..self.rows }]);
        }
        let page = self.store.read_index(tree.root, self.compression)?;
        let located = match self.keys {
            TreeKeys::Ordinals => self.locate_by_ordinals(&page),
            TreeKeys::Values => self.locate_by_reading(&page),
        };
        located.at(self.name(), tree.root.offset, PageKind::Index.part())
    }

    /// Refuses an index of more pages than the file has room for: each is read, or listed, by whoever asks for all.
    fn check_entries(&self, page: &Page) -> Result<()> {
        let entries = page.footer.index_page_footer.and_then(|footer| footer.num_entries).unwrap_or(0);
        let most = self.store.pages_end / SMALLEST_PAGE_BYTES;
        if u64::from(entries) > most {
            return Err(Error::corrupt(format!("an index of at most {most} pages"), entries));
        }
        Ok(())
    }

    fn locate_by_ordinals(&self, page: &Page) -> Result<Vec<LocatedPage>> {
        self.check_entries(page)?;
        let entries =
            page.footer.index_page_footer.and_then(|footer| footer.num_entries).unwrap_or(0) as usize;
        let mut located: Vec<LocatedPage> =
            Vec::with_capacity(entries.min(page.body.len() / SMALLEST_ENTRY_BYTES));
        parse_entries(page, |key, pointer| {
            let start = key.try_into().map(u64::from_be_bytes).map_err(|_| {
                Error::corrupt(format!("a key of {ORDINAL_BYTES} bytes"), format!("{} bytes", key.len()))
            })?;
            if let Some(last) = located.last_mut() {
                last.rows.end = start;
            } else if start != 0 {
                return Err(Error::corrupt("a first page from row 0", format!("from row {start}")));
            }
            located.push(LocatedPage { pointer, rows: start..self.rows });
            Ok(())
        })?;
        if let Some(page) = located.iter().find(|page| page.rows.start >= page.rows.end) {
            return Err(Error::corrupt(
                format!("pages that ascend to row {}", self.rows),
                format!("rows {:?}", page.rows),
            ));
        }
        if located.is_empty() && self.rows > 0 {
            return Err(Error::corrupt(format!("pages of {} rows", self.rows), "an index without entries"));
        }
        Ok(located)
    }

    /// For an index by value: each page says its rows.
    fn locate_by_reading(&self, page: &Page) -> Result<Vec<LocatedPage>> {
        let mut next = 0u64;
        let mut located: Vec<LocatedPage> = Vec::new();
        self.check_entries(page)?;
        parse_entries(page, |_, pointer| {
            let before = located.last().map_or(0, |last| last.pointer.range().end);
            if pointer.offset < before {
                return Err(Error::corrupt(
                    format!("pages that ascend, the next from byte {before}"),
                    format!("one at byte {}", pointer.offset),
                ));
            }
            let page = self.store.read(pointer, PageKind::Data, self.compression)?;
            let count = required(page.footer.data_page_footer, "data_page_footer")?.num_values.unwrap_or(0);
            let end = next.saturating_add(count);
            located.push(LocatedPage { pointer, rows: next..end });
            next = end;
            Ok(())
        })?;
        if next != self.rows {
            return Err(Error::corrupt(format!("pages of {} values", self.rows), format!("{next} values")));
        }
        Ok(located)
    }

    /// The page that holds `row`: its number.
    pub fn page_of(&self, row: u64) -> Result<usize> {
        let pages = self.pages()?;
        let number = pages.partition_point(|page| page.rows.end <= row);
        match pages.get(number) {
            Some(page) if page.rows.contains(&row) => Ok(number),
            _ => Err(Error::corrupt(format!("a page with row {row}"), "the end of the index").at(
                self.name(),
                self.tree.map_or(0, |tree| tree.root.offset),
                PageKind::Index.part(),
            )),
        }
    }

    /// Says that an error came from the page of `row`.
    pub fn at_page_of(&self, row: u64, error: Error) -> Error {
        let page = self.page_of(row).ok().and_then(|number| self.pages().ok()?.get(number));
        error.at(self.name(), page.map_or(0, |page| page.pointer.offset), PageKind::Data.part())
    }

    /// The dictionary: kept with the file as long as the dictionaries of all columns are not much larger than it. Others are
    /// kept by whoever asks.
    pub fn words(&self) -> Result<Words> {
        let mut words = self.words.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = words.as_ref() {
            return Ok(Arc::clone(known));
        }
        let pointer = self.dictionary.ok_or_else(|| Error::corrupt("a dictionary page", "none"))?;
        let read = self.read_words(pointer)?;
        if self.store.may_keep_words(read.get_buffer_memory_size() as u64) {
            *words = Some(Arc::clone(&read));
        }
        Ok(read)
    }

    /// Whether the dictionary is kept with the file.
    pub fn has_words(&self) -> bool {
        self.words.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Whether every page has codes of the dictionary: once it is full, all later pages have strings, so the last one tells.
    pub fn has_only_codes(&self) -> Result<bool> {
        match self.pages()?.last() {
            Some(last) => Ok(self.decode(last, None)?.has_codes()),
            None => Ok(true),
        }
    }

    fn read_words(&self, pointer: PagePointer) -> Result<Words> {
        let page = self.store.read(pointer, PageKind::Dictionary, self.compression)?;
        let decode = || {
            let encoding = match page.footer.dict_page_footer.and_then(|footer| footer.encoding) {
                None => Encoding::Plain,
                Some(number) => Encoding::from_number(number)?,
            };
            if !matches!(encoding, Encoding::Plain | Encoding::PlainV2 | Encoding::PlainV3) {
                return Err(Error::corrupt("a dictionary of plain words", encoding));
            }
            let cells = decode_plain_bytes(&page.body, encoding)?;
            self.shape.cell.bytes_array(cells.bytes.clone(), &cells.offsets, &self.shape.limits)
        };
        decode().at(self.name(), pointer.offset, PageKind::Dictionary.part())
    }

    /// All values of a page at once.
    pub fn values_of(&self, located: &LocatedPage) -> Result<ArrayRef> {
        self.check_count(located.count())?;
        let mut page = self.decode(located, None)?;
        let values = page.read(0..page.rows, Form::Wanted, &self.shape.cell);
        values.at(self.name(), located.pointer.offset, PageKind::Data.part())
    }

    /// Refuses to read so many values at once that they are over the limit: a few bytes can claim any number.
    pub fn check_count(&self, values: u64) -> Result<()> {
        let width = self.shape.cell.value_bytes() as u64;
        let root = self.tree.map_or(0, |tree| tree.root.offset);
        let within = self.shape.limits.decoded(values.saturating_mul(width));
        within.map(|_| ()).at(self.name(), root, PageKind::Data.part())
    }

    /// Decodes a page that must hold the rows the index says.
    pub fn decode(&self, located: &LocatedPage, stored: Option<Bytes>) -> Result<DecodedPage> {
        self.decode_with(located, stored, &|| self.words())
    }

    /// As [`PagedColumn::decode`], with entries that are known.
    pub fn decode_with(
        &self,
        located: &LocatedPage,
        stored: Option<Bytes>,
        words: FindWords<'_>,
    ) -> Result<DecodedPage> {
        let page = match stored {
            Some(bytes) => self.store.open(located.pointer, bytes, PageKind::Data, self.compression)?,
            None => self.store.read(located.pointer, PageKind::Data, self.compression)?,
        };
        let decode = || {
            let decoded = self.shape.decode(&page, words)?;
            let is_as_said = match self.keys {
                TreeKeys::Ordinals => decoded.row_range() == located.rows,
                TreeKeys::Values => decoded.rows as u64 == located.count(),
            };
            if !is_as_said {
                return Err(Error::corrupt(
                    format!("rows {:?}, as the index says", located.rows),
                    format!("rows {:?}", decoded.row_range()),
                ));
            }
            if !self.is_nullable && decoded.nulls() > 0 {
                return Err(Error::corrupt(
                    "no nulls in a column that may not have any",
                    format!("{} nulls", decoded.nulls()),
                ));
            }
            Ok(decoded)
        };
        decode().at(self.name(), located.pointer.offset, PageKind::Data.part())
    }
}

/// `varint key length | key | varint page offset | varint page size`, as often as the footer says: each goes to `take`.
pub(crate) fn parse_entries<'a>(
    page: &'a Page,
    mut take: impl FnMut(&'a [u8], PagePointer) -> Result<()>,
) -> Result<()> {
    let footer = required(page.footer.index_page_footer, "index_page_footer")?;
    if footer.kind.unwrap_or(LEAF) != LEAF {
        return Err(Error::corrupt("an index of at most two levels", "an inner index page"));
    }
    let body = page.body.as_ref();
    let mut at = 0;
    for _ in 0..footer.num_entries.unwrap_or(0) {
        let length = varint::read_u32(body, &mut at)? as usize;
        let end = at.saturating_add(length);
        let key = body
            .get(at..end)
            .ok_or_else(|| Error::corrupt(format!("a key of {length} bytes"), "the end of the index page"))?;
        at = end;
        let offset = varint::read_u64(body, &mut at)?;
        let size = varint::read_u32(body, &mut at)?;
        take(key, PagePointer { offset, size })?;
    }
    if at != body.len() {
        return Err(Error::corrupt(
            "the end of the index page",
            format!("{} more bytes", body.len().saturating_sub(at)),
        ));
    }
    Ok(())
}
