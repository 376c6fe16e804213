//! One column of a row group: its pages as they will be stored.

use std::collections::BTreeSet;

use pilaster_core::{Error, Result};
use pilaster_encoding::checksum::crc32;

use super::options::{EncodingChoice, RedfileWriterOptions};
use super::page::{PageBuilder, Pending};
use super::shred::{Column, EntryLevels};
use super::statistics::Extremes;
use super::stored::Stored;
use super::strings::{Strings, Views};
use super::values::{ByteStrings, Values, physical};
use crate::metadata::{
    ColumnMetadata, Compression, DataPageHeader, Encoding, IndexPageHeader, PageHeader, PageIndexEntry,
    PageType, PhysicalType, write_page_index,
};
use crate::schema::{Leaf, order_of};

/// How the pages of a column are stored.
#[derive(Debug, Clone)]
struct PageOptions {
    target_bits: u64,
    codec: Compression,
    encoding: EncodingChoice,
    index: bool,
    statistics: bool,
    checksums: bool,
    row_counts: bool,
}

/// Fills pages with the entries of a column; what is finished waits for the end of the row group.
#[derive(Debug)]
pub(super) struct ColumnWriter {
    leaf: Leaf,
    options: PageOptions,
    page: PageBuilder,
    /// Finished pages, as they will be stored.
    stored: Stored,
    entries: Vec<PageIndexEntry>,
    encodings: BTreeSet<Encoding>,
    extremes: Extremes,
    num_values: u64,
    num_rows: u64,
    uncompressed: u64,
    header: Vec<u8>,
    body: Vec<u8>,
    packed: Vec<u8>,
}

/// The bytes of a chunk, and what its metadata says; offsets count from the start of the chunk.
pub(super) struct FinishedChunk {
    pub pages: Stored,
    pub metadata: ColumnMetadata,
}

fn as_u32(value: usize, what: &str) -> Result<u32> {
    let fits = u32::try_from(value).ok().filter(|value| i32::try_from(*value).is_ok());
    fits.ok_or_else(|| {
        Error::invalid(format!("a page of {value} {what}: a record is too large to be stored"))
    })
}

impl ColumnWriter {
    pub fn new(leaf: &Leaf, options: &RedfileWriterOptions) -> Result<Self> {
        let codec = options.column_codecs.get(&leaf.name()).copied().unwrap_or(options.codec);
        if let Compression::Unknown(number) = codec {
            return Err(Error::invalid(format!("compression codec {number} cannot be written")));
        }
        let order = order_of(&leaf.element, leaf.physical_type);
        Ok(Self {
            leaf: leaf.clone(),
            options: PageOptions {
                target_bits: (options.page_bytes as u64).saturating_mul(8),
                codec,
                encoding: options.encoding,
                index: options.index_pages,
                statistics: options.statistics,
                checksums: options.checksums,
                row_counts: options.page_row_counts,
            },
            page: PageBuilder::new(leaf, order)?,
            stored: Stored::default(),
            entries: Vec::new(),
            encodings: BTreeSet::new(),
            extremes: Extremes::default(),
            num_values: 0,
            num_rows: 0,
            uncompressed: 0,
            header: Vec::new(),
            body: Vec::new(),
            packed: Vec::new(),
        })
    }

    /// Uncompressed bytes so far.
    pub fn uncompressed_bytes(&self) -> u64 {
        self.uncompressed.saturating_add(self.page.bits / 8)
    }

    /// Appends the entries of whole records.
    pub fn write(&mut self, column: &Column) -> Result<()> {
        let levels = Cut { levels: &column.levels, max_def: self.leaf.max_def };
        match physical(&column.values, self.leaf.physical_type)? {
            Values::Nothing => self.write_fixed(&levels, |_, _, _| Ok(())),
            Values::Bits(bits) => self.write_fixed(&levels, |pending, from, to| match pending {
                Pending::Bits(values) => {
                    values.extend(bits.slice(from, to.saturating_sub(from)).values().iter().map(u8::from));
                    Ok(())
                }
                _ => Err(Error::internal("booleans in another column")),
            }),
            Values::Words(words) => self.write_fixed(&levels, |pending, from, to| match pending {
                Pending::Words(values) => {
                    values.extend_from_slice(words.get(from..to).unwrap_or_default());
                    Ok(())
                }
                _ => Err(Error::internal("32-bit values in another column")),
            }),
            Values::Longs(longs) => self.write_fixed(&levels, |pending, from, to| match pending {
                Pending::Longs(values) => {
                    values.extend_from_slice(longs.get(from..to).unwrap_or_default());
                    Ok(())
                }
                _ => Err(Error::internal("64-bit values in another column")),
            }),
            Values::Wide(wide) => self.write_fixed(&levels, |pending, from, to| match pending {
                Pending::Wide(values) => {
                    values.extend_from_slice(wide.get(from..to).unwrap_or_default());
                    Ok(())
                }
                _ => Err(Error::internal("96-bit values in another column")),
            }),
            Values::Text(strings) => match strings {
                ByteStrings::Small(array) => self.write_strings(&levels, &array),
                ByteStrings::SmallText(array) => self.write_strings(&levels, &array),
                ByteStrings::Large(array) => self.write_strings(&levels, &array),
                ByteStrings::LargeText(array) => self.write_strings(&levels, &array),
                ByteStrings::View(array) => self.write_strings(&levels, &Views::new(array)),
                ByteStrings::TextView(array) => self.write_strings(&levels, &Views::new(array)),
                ByteStrings::Fixed(array) => self.write_strings(&levels, &array),
                ByteStrings::Owned(values) => self.write_strings(&levels, &values.as_slice()),
            },
        }
    }

    /// Entries of values of fixed width: how many fit the page is counted first, then they are copied at once.
    fn write_fixed(
        &mut self,
        levels: &Cut<'_>,
        mut append: impl FnMut(&mut Pending, usize, usize) -> Result<()>,
    ) -> Result<()> {
        let (level_bits, value_bits) = (self.page.level_bits(), self.page.value_bits());
        let (mut entry, mut value) = (0usize, 0usize);
        while entry < levels.levels.entries {
            if self.page.entries > 0 && self.page.bits >= self.options.target_bits {
                self.close_page()?;
            }
            let room = self.options.target_bits.saturating_sub(self.page.bits);
            let (entries, values, rows) = levels.extent(entry, room, level_bits, value_bits);
            let (next_entry, next_value) = (entry.saturating_add(entries), value.saturating_add(values));
            self.push_levels(levels, entry, next_entry);
            append(&mut self.page.values, value, next_value)?;
            let bits = (entries as u64).saturating_mul(level_bits);
            let bits = bits.saturating_add((values as u64).saturating_mul(value_bits));
            self.page.bits = self.page.bits.saturating_add(bits);
            self.page.entries = self.page.entries.saturating_add(entries);
            self.page.rows = self.page.rows.saturating_add(rows);
            (entry, value) = (next_entry, next_value);
        }
        Ok(())
    }

    fn push_levels(&mut self, levels: &Cut<'_>, from: usize, to: usize) {
        if self.leaf.max_def > 0 {
            match &levels.levels.def {
                Some(def) => self.page.def.extend_from_slice(def.get(from..to).unwrap_or_default()),
                None => {
                    let filled = self.page.def.len().saturating_add(to.saturating_sub(from));
                    self.page.def.resize(filled, self.leaf.max_def);
                }
            }
        }
        if self.leaf.max_rep > 0 {
            match &levels.levels.rep {
                Some(rep) => self.page.rep.extend_from_slice(rep.get(from..to).unwrap_or_default()),
                None => {
                    let filled = self.page.rep.len().saturating_add(to.saturating_sub(from));
                    self.page.rep.resize(filled, 0);
                }
            }
        }
    }

    /// Entries of byte strings, one by one: each has its own size.
    fn write_strings(&mut self, levels: &Cut<'_>, strings: &impl Strings) -> Result<()> {
        let (mut entry, mut value) = (0usize, 0usize);
        while entry < levels.levels.entries {
            if self.page.entries > 0 && self.page.bits >= self.options.target_bits {
                self.close_page()?;
            }
            let from = entry;
            if levels.is_simple() {
                self.fill_simply(&mut entry, strings)?;
            } else {
                self.fill(levels, &mut entry, &mut value, strings)?;
            }
            self.push_levels(levels, from, entry);
            self.page.entries = self.page.entries.saturating_add(entry.saturating_sub(from));
        }
        Ok(())
    }

    /// Fills the page with strings where every entry is a record with one.
    fn fill_simply(&mut self, entry: &mut usize, strings: &impl Strings) -> Result<()> {
        let (level_bits, order, target) = (self.page.level_bits(), self.page.order, self.options.target_bits);
        let Pending::Strings(page) = &mut self.page.values else { return Err(not_strings()) };
        let (from, end) = (*entry, strings.len());
        let (mut at, mut bits) = (from, self.page.bits);
        while at < end {
            let bytes = page.push(strings, at, order)? as u64;
            bits = bits.wrapping_add(level_bits).wrapping_add(bytes.wrapping_mul(8));
            at = at.wrapping_add(1);
            if bits >= target {
                break;
            }
        }
        self.page.bits = bits;
        self.page.rows = self.page.rows.saturating_add(at.saturating_sub(from));
        *entry = at;
        Ok(())
    }

    /// Fills the page with whole records, of any number of entries with or without a string.
    fn fill(
        &mut self,
        levels: &Cut<'_>,
        entry: &mut usize,
        value: &mut usize,
        strings: &impl Strings,
    ) -> Result<()> {
        let (level_bits, order, target) = (self.page.level_bits(), self.page.order, self.options.target_bits);
        let Pending::Strings(page) = &mut self.page.values else { return Err(not_strings()) };
        let first = *entry;
        for at in first..levels.levels.entries {
            let is_start = levels.is_start(at);
            if is_start && at > first && self.page.bits >= target {
                break;
            }
            self.page.rows = self.page.rows.wrapping_add(usize::from(is_start));
            self.page.bits = self.page.bits.wrapping_add(level_bits);
            if levels.has_value(at) {
                let bytes = page.push(strings, *value, order)? as u64;
                self.page.bits = self.page.bits.wrapping_add(bytes.wrapping_mul(8));
                *value = value.wrapping_add(1);
            }
            *entry = at.wrapping_add(1);
        }
        Ok(())
    }

    /// Encodes and compresses the page, so that only what will be stored waits.
    fn close_page(&mut self) -> Result<()> {
        self.body.clear();
        let page = self.page.encode(self.options.encoding, self.options.statistics, &mut self.body)?;
        let width = value_width(self.leaf.physical_type);
        let statistics = page.extremes.as_ref().map(|extremes| extremes.statistics(self.page.order, width));
        let (in_index, in_header) = if self.options.index { (statistics, None) } else { (None, statistics) };
        let num_values = as_u32(page.entries, "entries")?;
        let num_rows = as_u32(page.rows, "rows")?;
        let data = DataPageHeader {
            num_values,
            encoding: page.encoding,
            num_rows: self.options.row_counts.then_some(num_rows),
            statistics: in_header,
        };
        let offset = self.stored.len() as u64;
        let size = self.store(PageType::Data, Some(data), None)?;
        let entry = PageIndexEntry {
            offset,
            size,
            first_row: self.num_rows,
            num_rows,
            num_values,
            statistics: in_index,
        };
        if self.options.index {
            self.entries.push(entry);
        }
        self.encodings.insert(page.encoding);
        if let Some(extremes) = &page.extremes {
            self.extremes.merge(extremes);
        }
        self.num_values = self.num_values.saturating_add(page.entries as u64);
        self.num_rows = self.num_rows.saturating_add(page.rows as u64);
        Ok(())
    }

    /// Appends header and body of a page; gives the bytes they take.
    fn store(
        &mut self,
        page_type: PageType,
        data: Option<DataPageHeader>,
        index: Option<IndexPageHeader>,
    ) -> Result<u32> {
        self.packed.clear();
        let mut codec = None;
        if let Some(compressor) = self.options.codec.codec() {
            compressor.compress(&self.body, &mut self.packed)?;
            if self.packed.len() >= self.body.len() {
                codec = Some(Compression::Uncompressed);
            }
        }
        let is_packed = self.options.codec != Compression::Uncompressed && codec.is_none();
        let body = if is_packed { &self.packed } else { &self.body };
        let header = PageHeader {
            page_type,
            uncompressed_size: as_u32(self.body.len(), "bytes")?,
            compressed_size: as_u32(body.len(), "bytes")?,
            crc: self.options.checksums.then(|| crc32(body)),
            data,
            index,
            codec,
            has_header_crc: self.options.checksums,
        };
        self.header.clear();
        header.write(self.options.checksums, &mut self.header);
        self.stored.append(&self.header, body);
        let uncompressed = (self.header.len() as u64).saturating_add(self.body.len() as u64);
        self.uncompressed = self.uncompressed.saturating_add(uncompressed);
        as_u32(self.header.len().saturating_add(body.len()), "bytes")
    }

    /// Ends the chunk, which then begins anew for the next row group; `start` is where it will lie in its file.
    pub fn finish_chunk(&mut self, start: u64) -> Result<FinishedChunk> {
        if self.page.entries > 0 {
            self.close_page()?;
        }
        let mut index_at = None;
        if self.options.index {
            index_at = Some(self.stored.len() as u64);
            self.body.clear();
            write_page_index(&self.entries, &mut self.body);
            let header = IndexPageHeader { num_entries: i32::try_from(self.entries.len()).ok() };
            self.store(PageType::Index, None, Some(header))?;
            self.entries.clear();
        }
        let signed = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
        let extremes = std::mem::take(&mut self.extremes);
        let width = value_width(self.leaf.physical_type);
        let metadata = ColumnMetadata {
            physical_type: self.leaf.physical_type,
            encodings: std::mem::take(&mut self.encodings).into_iter().collect(),
            path: self.leaf.path.clone(),
            codec: self.options.codec,
            num_values: signed(self.num_values),
            total_uncompressed_size: signed(self.uncompressed),
            total_compressed_size: signed(self.stored.len() as u64),
            data_page_offset: signed(start),
            index_page_offset: index_at.map(|at| signed(start.saturating_add(at))),
            key_values: None,
            statistics: self.options.statistics.then(|| extremes.statistics(self.page.order, width)),
            has_crc: self.options.checksums,
        };
        (self.num_values, self.num_rows, self.uncompressed) = (0, 0, 0);
        Ok(FinishedChunk { pages: std::mem::take(&mut self.stored), metadata })
    }
}

fn not_strings() -> Error {
    Error::internal("strings in another column")
}

/// Bytes of a bound of fixed width.
pub(crate) fn value_width(physical: PhysicalType) -> usize {
    match physical {
        PhysicalType::Boolean => 1,
        PhysicalType::Int32 | PhysicalType::Float => 4,
        PhysicalType::Int64 | PhysicalType::Double => 8,
        PhysicalType::Int96 => 12,
        PhysicalType::ByteArray | PhysicalType::Unknown(_) => 0,
    }
}

/// The levels of a column, to be cut into pages.
struct Cut<'a> {
    levels: &'a EntryLevels,
    max_def: u8,
}

impl Cut<'_> {
    /// Whether every entry is a record with a value.
    fn is_simple(&self) -> bool {
        self.levels.def.is_none() && self.levels.rep.is_none()
    }

    #[inline]
    fn is_start(&self, entry: usize) -> bool {
        self.levels.rep.as_ref().is_none_or(|rep| rep.get(entry) == Some(&0))
    }

    #[inline]
    fn has_value(&self, entry: usize) -> bool {
        self.levels.def.as_ref().is_none_or(|def| def.get(entry) == Some(&self.max_def))
    }

    /// How many entries from `from` on go into a page with `room` bits left: whole records, until the room is used up. Also
    /// how many of them have values, and how many records they are.
    fn extent(&self, from: usize, room: u64, level_bits: u64, value_bits: u64) -> (usize, usize, usize) {
        let left = self.levels.entries.saturating_sub(from);
        if self.is_simple() {
            let each = level_bits.saturating_add(value_bits);
            let fit = room.div_ceil(each.max(1)).max(1);
            let entries = usize::try_from(fit).unwrap_or(usize::MAX).min(left);
            return (entries, entries, entries);
        }
        let mut used = 0u64;
        let (mut values, mut rows) = (0usize, 0usize);
        let end = from.saturating_add(left);
        for entry in from..end {
            let is_start = self.is_start(entry);
            if is_start && entry > from && used >= room {
                return (entry.saturating_sub(from), values, rows);
            }
            let has_value = self.has_value(entry);
            rows = rows.wrapping_add(usize::from(is_start));
            values = values.wrapping_add(usize::from(has_value));
            used = used.wrapping_add(level_bits).wrapping_add(if has_value { value_bits } else { 0 });
        }
        (left, values, rows)
    }
}
