//! Writes a scalar column: pages, ordinal index, and the indexes asked for.

use std::io::Write;
use std::ops::Range;

use arrow_buffer::bit_iterator::BitSliceIterator;
use pilaster_core::{Error, Result};
use pilaster_encoding::rle::RleEncoder;
use pilaster_encoding::varint;

use super::encode::{EncoderSettings, ValueEncoder};
use super::filter::{FILTER_ENCODING, FilterBuilder, FilterKind};
use super::indexed::IndexedColumn;
use super::page::{Footer, Sink, append_page};
use super::values::{ByteValues, Form, Values};
use super::zone_map::{ZoneMapBuilder, ZoneMaps};
use crate::messages::{
    BTreePb, BloomFilterIndexPb, ColumnIndexPb, OrdinalIndexPb, PagePointerPb, ZoneMapIndexPb,
};
use crate::segment::cells::Cell;
use crate::segment::page::PagePointer;
use crate::segment::types::{Compression, Encoding, FieldType};

/// `ColumnIndexMetaPB.type`
const ORDINAL_INDEX: i32 = 1;
const ZONE_MAP_INDEX: i32 = 2;
const BLOOM_FILTER_INDEX: i32 = 4;

/// How a column with pages is written.
#[derive(Debug, Clone)]
pub(crate) struct PagedSettings {
    pub cell: Cell,
    pub encoding: Encoding,
    pub compression: Compression,
    pub page_bytes: usize,
    pub dictionary_page_bytes: usize,
    /// Encoding of entries, and of strings that are no longer in the dictionary.
    pub words: Encoding,
    pub is_nullable: bool,
    pub has_zone_maps: bool,
    /// Whether pages of any number of rows have bounds.
    pub bounds_small_pages: bool,
    pub filter: Option<FilterKind>,
}

/// Bytes of a column's data and dictionary pages, and of its values.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Footprint {
    pub compressed: u64,
    pub uncompressed: u64,
    pub raw: u64,
}

impl Footprint {
    pub fn add(&mut self, other: Self) {
        self.compressed = self.compressed.saturating_add(other.compressed);
        self.uncompressed = self.uncompressed.saturating_add(other.uncompressed);
        self.raw = self.raw.saturating_add(other.raw);
    }
}

/// Fills the pages of one column, with its ordinal index and the other indexes it has.
#[derive(Debug)]
pub(super) struct PagedWriter {
    pub settings: PagedSettings,
    encoder: ValueEncoder,
    nulls: NullMap,
    /// Rows of the page being filled.
    page_rows: usize,
    /// Rows of the pages before.
    done_rows: u64,
    /// For offsets: where the items of the row after the page begin.
    next_item: Option<u64>,
    zones: Option<ZoneMapBuilder>,
    filters: Option<FilterBuilder>,
    /// Finished pages, back to back.
    stored: Vec<u8>,
    pages: Vec<StoredPage>,
    dictionary: Option<PagePointer>,
    footprint: Footprint,
    body: Vec<u8>,
    scratch: Vec<u8>,
    // What is known when the pages have been placed in the file.
    ordinal_index: Option<BTreePb>,
    zone_maps: Option<ZoneMapIndexPb>,
    bloom: Option<BloomFilterIndexPb>,
}

/// A page: its first row, and where it lies; first among the column's pages, then in the file.
#[derive(Debug, Clone, Copy)]
struct StoredPage {
    first_row: u64,
    pointer: PagePointer,
}

/// Which rows of a page are null; nothing is encoded before the first one that is.
#[derive(Debug, Default)]
struct NullMap(Option<RleEncoder>);

impl NullMap {
    fn add_valid(&mut self, rows: usize) {
        if let Some(encoder) = &mut self.0 {
            encoder.push_run(0, rows);
        }
    }

    fn add_null(&mut self, rows: usize, before: usize) {
        let encoder = self.0.get_or_insert_with(|| {
            let mut encoder = RleEncoder::new(1);
            encoder.push_run(0, before);
            encoder
        });
        encoder.push_run(1, rows);
    }

    /// Appends the map of a page; says how long it is.
    fn finish(&mut self, out: &mut Vec<u8>) -> usize {
        let start = out.len();
        if let Some(encoder) = self.0.take() {
            encoder.finish_into(out);
        }
        out.len().saturating_sub(start)
    }
}

impl PagedWriter {
    pub fn new(settings: PagedSettings) -> Result<Self> {
        let encoder = ValueEncoder::new(EncoderSettings {
            cell: &settings.cell,
            encoding: settings.encoding,
            page_bytes: settings.page_bytes,
            dictionary_page_bytes: settings.dictionary_page_bytes,
            words: settings.words,
        })?;
        Ok(Self {
            encoder,
            zones: settings.has_zone_maps.then(|| {
                ZoneMapBuilder::new(settings.cell.clone())
                    .with_bounds_of_small_pages(settings.bounds_small_pages)
            }),
            filters: settings.filter.map(FilterBuilder::new),
            settings,
            nulls: NullMap::default(),
            page_rows: 0,
            done_rows: 0,
            next_item: None,
            stored: Vec::new(),
            pages: Vec::new(),
            dictionary: None,
            footprint: Footprint::default(),
            body: Vec::new(),
            scratch: Vec::new(),
            ordinal_index: None,
            zone_maps: None,
            bloom: None,
        })
    }

    /// Rows so far.
    pub fn rows(&self) -> u64 {
        self.done_rows.saturating_add(self.page_rows as u64)
    }

    pub fn footprint(&self) -> Footprint {
        self.footprint
    }

    /// Bytes held in memory.
    pub fn stored_bytes(&self) -> usize {
        self.stored.len()
    }

    pub fn append(&mut self, values: &Values) -> Result<()> {
        let Some(nulls) = &values.nulls else {
            return self.append_valid(&values.form, 0..values.len);
        };
        let bits = nulls.inner();
        let mut at = 0;
        for (start, end) in BitSliceIterator::new(bits.values(), bits.offset(), bits.len()) {
            self.append_nulls(start.saturating_sub(at))?;
            self.append_valid(&values.form, start..end)?;
            at = end;
        }
        self.append_nulls(values.len.saturating_sub(at))
    }

    pub fn append_nulls(&mut self, rows: usize) -> Result<()> {
        if rows == 0 {
            return Ok(());
        }
        if !self.settings.is_nullable {
            return Err(Error::invalid("a null in a column that is not nullable"));
        }
        self.nulls.add_null(rows, self.page_rows);
        self.page_rows = self.page_rows.saturating_add(rows);
        if let Some(zones) = &mut self.zones {
            zones.add_nulls();
        }
        if let Some(filters) = &mut self.filters {
            filters.add_nulls();
        }
        // The number of rows of a page is of 32 bits in the decoders.
        if self.page_rows >= (u32::MAX / 2) as usize {
            self.finish_page()?;
        }
        Ok(())
    }

    fn append_valid(&mut self, form: &Form, range: Range<usize>) -> Result<()> {
        match form {
            Form::Cells { cells, width } => {
                let bytes = range.start.saturating_mul(*width)..range.end.saturating_mul(*width);
                self.append_cells(cells.get(bytes).unwrap_or_default(), *width)
            }
            Form::Text(array) => self.append_bytes(array, range),
            Form::TextViews(array) => self.append_bytes(array, range),
            Form::Binary(array) => self.append_bytes(array, range),
            Form::BinaryViews(array) => self.append_bytes(array, range),
            Form::Made(made) => self.append_bytes(made, range),
        }
    }

    /// Adds cells of fixed width.
    pub fn append_cells(&mut self, cells: &[u8], width: usize) -> Result<()> {
        let mut rest = cells;
        while !rest.is_empty() {
            let taken = self.encoder.append_cells(rest)?;
            let (now, after) =
                rest.split_at_checked(taken.values.saturating_mul(width)).unwrap_or((rest, &[]));
            if let Some(zones) = &mut self.zones {
                zones.add_cells(now);
            }
            if let Some(filters) = &mut self.filters {
                filters.add_cells(now, width);
            }
            rest = after;
            self.count(taken.values, taken.bytes);
            if taken.is_full {
                self.finish_page()?;
            } else if taken.values == 0 {
                return Err(Error::internal("part of a cell"));
            }
        }
        Ok(())
    }

    fn append_bytes<V: ByteValues>(&mut self, values: &V, range: Range<usize>) -> Result<()> {
        let mut range = range;
        while !range.is_empty() {
            let (zones, filters) = (&mut self.zones, &mut self.filters);
            let taken = self.encoder.append_bytes(values, range.clone(), &mut |value| {
                if let Some(zones) = zones {
                    zones.add_bytes(value);
                }
                if let Some(filters) = filters {
                    filters.add_bytes(value);
                }
            })?;
            range.start = range.start.saturating_add(taken.values);
            self.count(taken.values, taken.bytes);
            if taken.is_full {
                self.finish_page()?;
            }
        }
        Ok(())
    }

    fn count(&mut self, values: usize, bytes: u64) {
        self.nulls.add_valid(values);
        self.page_rows = self.page_rows.saturating_add(values);
        self.footprint.raw = self.footprint.raw.saturating_add(bytes);
    }

    /// Adds the starts of rows in a column of items, the last of which end at `end`.
    pub fn append_offsets(&mut self, starts: &[u64], end: u64) -> Result<()> {
        const WIDTH: usize = size_of::<u64>();
        let mut cells = Vec::with_capacity(self.settings.page_bytes);
        let mut rest = starts;
        while !rest.is_empty() {
            // No further than to the end of the page, which says where the next row's items begin.
            let room = (self.settings.page_bytes / WIDTH).max(1).saturating_sub(self.page_rows).max(1);
            let (now, after) = rest.split_at_checked(room).unwrap_or((rest, &[]));
            self.next_item = Some(after.first().copied().unwrap_or(end));
            cells.clear();
            cells.extend(now.iter().flat_map(|start| start.to_le_bytes()));
            self.append_cells(&cells, WIDTH)?;
            rest = after;
        }
        Ok(())
    }

    fn finish_page(&mut self) -> Result<()> {
        if self.page_rows == 0 {
            return Ok(());
        }
        self.body.clear();
        self.encoder.finish_page(&mut self.body)?;
        let null_bytes = self.nulls.finish(&mut self.body);
        let footer = Footer::Data {
            first_ordinal: self.done_rows,
            rows: self.page_rows as u64,
            null_bytes,
            next_item: self.next_item,
        };
        let pointer = self.store_page(footer)?;
        self.pages.push(StoredPage { first_row: self.done_rows, pointer });
        if let Some(zones) = &mut self.zones {
            zones.finish_page(self.page_rows);
        }
        if let Some(filters) = &mut self.filters {
            filters.finish_page();
        }
        self.done_rows = self.done_rows.saturating_add(self.page_rows as u64);
        self.page_rows = 0;
        Ok(())
    }

    /// Stores the page whose body is ready.
    fn store_page(&mut self, footer: Footer) -> Result<PagePointer> {
        let offset = self.stored.len() as u64;
        let sizes =
            append_page(&self.body, footer, self.settings.compression, &mut self.scratch, &mut self.stored)?;
        self.footprint.compressed = self.footprint.compressed.saturating_add(u64::from(sizes.stored));
        self.footprint.uncompressed = self.footprint.uncompressed.saturating_add(sizes.uncompressed);
        Ok(PagePointer { offset, size: sizes.stored })
    }

    /// Ends the last page and writes all pages and the dictionary to the file.
    pub fn write_data<W: Write>(&mut self, sink: &mut Sink<W>) -> Result<()> {
        self.finish_page()?;
        if let Some((body, encoding)) = self.encoder.dictionary_page()? {
            self.body = body;
            self.dictionary = Some(self.store_page(Footer::Dictionary(encoding))?);
        }
        let start = sink.at;
        sink.write(&self.stored)?;
        self.stored = Vec::new();
        for pointer in self.pages.iter_mut().map(|page| &mut page.pointer).chain(&mut self.dictionary) {
            pointer.offset = pointer.offset.saturating_add(start);
        }
        Ok(())
    }

    /// Writes the ordinal index, which a column of one page does without.
    pub fn write_ordinal_index<W: Write>(&mut self, sink: &mut Sink<W>) -> Result<()> {
        let pages: Vec<(u64, PagePointer)> =
            self.pages.iter().map(|page| (page.first_row, page.pointer)).collect();
        self.ordinal_index = ordinal_index(&pages, sink)?;
        Ok(())
    }

    pub fn write_zone_maps<W: Write>(&mut self, sink: &mut Sink<W>) -> Result<()> {
        let Some(zones) = self.zones.take() else { return Ok(()) };
        let ZoneMaps { segment, pages } = zones.finish();
        let mut column = IndexedColumn::new(FieldType::Bitmap, Encoding::Plain, Compression::None);
        for page in &pages {
            column.push(page, sink)?;
        }
        self.zone_maps = Some(ZoneMapIndexPb {
            segment_zone_map: Some(segment),
            page_zone_maps: Some(column.finish(sink)?),
        });
        Ok(())
    }

    pub fn write_filters<W: Write>(&mut self, sink: &mut Sink<W>) -> Result<()> {
        let Some(filters) = self.filters.take() else { return Ok(()) };
        let (filters, hash_strategy, algorithm) = filters.finish();
        self.bloom = Some(write_filters(&filters, hash_strategy, algorithm, sink)?);
        Ok(())
    }

    /// The indexes, as the column's metadata lists them.
    pub fn indexes(&self) -> Vec<ColumnIndexPb> {
        let ordinal = self.ordinal_index.map(|root_page| ColumnIndexPb {
            kind: Some(ORDINAL_INDEX),
            ordinal_index: Some(OrdinalIndexPb { root_page: Some(root_page) }),
            ..ColumnIndexPb::default()
        });
        let zones = self.zone_maps.clone().map(|zones| ColumnIndexPb {
            kind: Some(ZONE_MAP_INDEX),
            zone_map_index: Some(zones),
            ..ColumnIndexPb::default()
        });
        let bloom = self.bloom.clone().map(bloom_index);
        [ordinal, zones, bloom].into_iter().flatten().collect()
    }

    pub fn dictionary(&self) -> Option<PagePointerPb> {
        self.dictionary.map(PagePointer::message)
    }
}

/// Writes the ordinal index of pages, given with their first rows; one page needs none, and no page has none.
pub(crate) fn ordinal_index<W: Write>(
    pages: &[(u64, PagePointer)],
    sink: &mut Sink<W>,
) -> Result<Option<BTreePb>> {
    match pages {
        [] => Ok(None),
        [(_, only)] => Ok(Some(tree(*only, true))),
        pages => {
            let mut body = Vec::new();
            for (first_row, pointer) in pages {
                append_entry(&first_row.to_be_bytes(), *pointer, &mut body);
            }
            let footer = Footer::Index { entries: pages.len() };
            Ok(Some(tree(sink.write_page(&body, footer, Compression::None)?, false)))
        }
    }
}

/// Writes filters as a column of values.
pub(super) fn write_filters<W: Write>(
    filters: &[Vec<u8>],
    hash_strategy: i32,
    algorithm: i32,
    sink: &mut Sink<W>,
) -> Result<BloomFilterIndexPb> {
    let mut column = IndexedColumn::new(FieldType::Varchar, FILTER_ENCODING, Compression::None);
    for filter in filters {
        column.push(filter, sink)?;
    }
    Ok(BloomFilterIndexPb {
        hash_strategy: Some(hash_strategy),
        algorithm: Some(algorithm),
        bloom_filter: Some(column.finish(sink)?),
    })
}

pub(super) fn bloom_index(bloom: BloomFilterIndexPb) -> ColumnIndexPb {
    ColumnIndexPb {
        kind: Some(BLOOM_FILTER_INDEX),
        bloom_filter_index: Some(bloom),
        ..ColumnIndexPb::default()
    }
}

/// Appends an entry of an index page: `varint key length | key | varint page offset | varint page size`.
pub(super) fn append_entry(key: &[u8], pointer: PagePointer, out: &mut Vec<u8>) {
    varint::write_u64(out, key.len() as u64);
    out.extend_from_slice(key);
    varint::write_u64(out, pointer.offset);
    varint::write_u32(out, pointer.size);
}

pub(super) fn tree(root: PagePointer, is_data_page: bool) -> BTreePb {
    BTreePb { root_page: Some(root.message()), is_root_data_page: Some(is_data_page) }
}
