//! Headers of pages, and the index page.

use pilaster_encoding::{DecodeError, Result};

use super::column::Statistics;
use super::enums::{Compression, Encoding, PageType};
use super::missing;
use super::schema_element::located;
use crate::thrift::{Reader, Writer, checked_structure, finish_with_crc, wire};

/// What stands before the body of a page.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PageHeader {
    pub page_type: PageType,
    /// Bytes of the body, uncompressed.
    pub uncompressed_size: u32,
    /// Bytes of the body as stored.
    pub compressed_size: u32,
    /// Checksum of the stored body.
    pub crc: Option<u32>,
    pub data: Option<DataPageHeader>,
    pub index: Option<IndexPageHeader>,
    /// Codec of this page, where it is not that of the chunk.
    pub codec: Option<Compression>,
    /// Whether the header had a checksum of its own.
    pub has_header_crc: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct DataPageHeader {
    /// Level entries, nulls included.
    pub num_values: u32,
    pub encoding: Encoding,
    /// Records that start in the page.
    pub num_rows: Option<u32>,
    pub statistics: Option<Statistics>,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct IndexPageHeader {
    pub num_entries: Option<i32>,
}

/// A size or count of 0 or more.
fn count(value: i32, at: usize) -> Result<u32> {
    u32::try_from(value).map_err(|_| DecodeError::new(at, "0 or more", value.to_string()))
}

fn count_i64(value: i64, at: usize) -> Result<u64> {
    u64::try_from(value).map_err(|_| DecodeError::new(at, "0 or more", value.to_string()))
}

impl PageHeader {
    /// Parses a header at the start of `bytes`; gives its length too.
    pub fn parse(bytes: &[u8]) -> Result<(Self, usize)> {
        let mut reader = Reader::strict(bytes);
        let (mut page_type, mut uncompressed_size, mut compressed_size) = (None, None, None);
        let (mut crc, mut data, mut index, mut codec) = (None, None, None, None);
        let has_header_crc = checked_structure(&mut reader, 8, |reader, field| {
            let at = field.at;
            match field.id {
                1 => page_type = Some(located(PageType::from_number(reader.i32(field)?), at)?),
                2 => uncompressed_size = Some(count(reader.i32(field)?, at)?),
                3 => compressed_size = Some(count(reader.i32(field)?, at)?),
                4 => crc = Some(reader.i32(field)?.cast_unsigned()),
                5 => data = Some(reader.structure_field(field, DataPageHeader::parse)?),
                6 => index = Some(reader.structure_field(field, IndexPageHeader::parse)?),
                7 => codec = Some(located(Compression::from_number(reader.i32(field)?), at)?),
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        let header = Self {
            page_type: page_type.ok_or_else(|| missing(0, "PageHeader.type"))?,
            uncompressed_size: uncompressed_size
                .ok_or_else(|| missing(0, "PageHeader.uncompressed_page_size"))?,
            compressed_size: compressed_size.ok_or_else(|| missing(0, "PageHeader.compressed_page_size"))?,
            crc,
            data,
            index,
            codec,
            has_header_crc,
        };
        let is_data = header.page_type == PageType::Data;
        let is_index = header.page_type == PageType::Index;
        if header.data.is_some() != is_data || header.index.is_some() != is_index {
            let expected = format!("the header of a {} and no other", header.page_type);
            return Err(DecodeError::new(0, expected, "another"));
        }
        Ok((header, reader.position()))
    }

    pub fn write(&self, with_crc: bool, out: &mut Vec<u8>) {
        let mut writer = Writer::new(out);
        writer.i32(1, self.page_type.number());
        writer.i32(2, self.uncompressed_size.cast_signed());
        writer.i32(3, self.compressed_size.cast_signed());
        if let Some(crc) = self.crc {
            writer.i32(4, crc.cast_signed());
        }
        if let Some(data) = &self.data {
            writer.structure(5, |out| data.write(out));
        }
        if let Some(index) = &self.index {
            writer.structure(6, |out| index.write(out));
        }
        if let Some(codec) = self.codec {
            writer.i32(7, codec.number());
        }
        if with_crc {
            finish_with_crc(writer, 8);
        } else {
            writer.finish();
        }
    }
}

impl DataPageHeader {
    fn parse(reader: &mut Reader<'_>) -> Result<Self> {
        let (mut num_values, mut encoding, mut num_rows, mut statistics) = (None, None, None, None);
        let start = reader.position();
        reader.structure(|reader, field| {
            let at = field.at;
            match field.id {
                1 => num_values = Some(count(reader.i32(field)?, at)?),
                2 => encoding = Some(located(Encoding::from_number(reader.i32(field)?), at)?),
                3 => num_rows = Some(count(reader.i32(field)?, at)?),
                4 => statistics = Some(reader.structure_field(field, Statistics::parse)?),
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok(Self {
            num_values: num_values.ok_or_else(|| missing(start, "DataPageHeader.num_values"))?,
            encoding: encoding.ok_or_else(|| missing(start, "DataPageHeader.encoding"))?,
            num_rows,
            statistics,
        })
    }

    fn write(&self, out: &mut Vec<u8>) {
        let mut writer = Writer::new(out);
        writer.i32(1, self.num_values.cast_signed());
        writer.i32(2, self.encoding.number());
        if let Some(rows) = self.num_rows {
            writer.i32(3, rows.cast_signed());
        }
        if let Some(statistics) = &self.statistics {
            writer.structure(4, |out| statistics.write(out));
        }
        writer.finish();
    }
}

impl IndexPageHeader {
    fn parse(reader: &mut Reader<'_>) -> Result<Self> {
        let mut header = Self::default();
        reader.structure(|reader, field| {
            if field.id == 1 {
                header.num_entries = Some(reader.i32(field)?);
                return Ok(true);
            }
            Ok(false)
        })?;
        Ok(header)
    }

    fn write(&self, out: &mut Vec<u8>) {
        let mut writer = Writer::new(out);
        if let Some(count) = self.num_entries {
            writer.i32(1, count);
        }
        writer.finish();
    }
}

/// One data page in the index page of its chunk.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PageIndexEntry {
    /// Of the page header, from the first byte of the chunk.
    pub offset: u64,
    /// Header and stored body.
    pub size: u32,
    /// First row in the row group.
    pub first_row: u64,
    pub num_rows: u32,
    pub num_values: u32,
    pub statistics: Option<Statistics>,
}

impl PageIndexEntry {
    fn parse(reader: &mut Reader<'_>) -> Result<Self> {
        let (mut offset, mut size, mut first_row) = (None, None, None);
        let (mut num_rows, mut num_values, mut statistics) = (None, None, None);
        let start = reader.position();
        reader.structure(|reader, field| {
            let at = field.at;
            match field.id {
                1 => offset = Some(count_i64(reader.i64(field)?, at)?),
                2 => size = Some(count(reader.i32(field)?, at)?),
                3 => first_row = Some(count_i64(reader.i64(field)?, at)?),
                4 => num_rows = Some(count(reader.i32(field)?, at)?),
                5 => num_values = Some(count(reader.i32(field)?, at)?),
                6 => statistics = Some(reader.structure_field(field, Statistics::parse)?),
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok(Self {
            offset: offset.ok_or_else(|| missing(start, "PageIndexEntry.offset"))?,
            size: size.ok_or_else(|| missing(start, "PageIndexEntry.size"))?,
            first_row: first_row.ok_or_else(|| missing(start, "PageIndexEntry.first_row"))?,
            num_rows: num_rows.ok_or_else(|| missing(start, "PageIndexEntry.num_rows"))?,
            num_values: num_values.ok_or_else(|| missing(start, "PageIndexEntry.num_values"))?,
            statistics,
        })
    }

    fn write(&self, out: &mut Vec<u8>) {
        let mut writer = Writer::new(out);
        writer.i64(1, self.offset.cast_signed());
        writer.i32(2, self.size.cast_signed());
        writer.i64(3, self.first_row.cast_signed());
        writer.i32(4, self.num_rows.cast_signed());
        writer.i32(5, self.num_values.cast_signed());
        if let Some(statistics) = &self.statistics {
            writer.structure(6, |out| statistics.write(out));
        }
        writer.finish();
    }
}

/// The body of an index page, which the struct must fill.
pub(crate) fn parse_page_index(bytes: &[u8]) -> Result<Vec<PageIndexEntry>> {
    let mut reader = Reader::strict(bytes);
    let mut entries = None;
    reader.structure(|reader, field| {
        if field.id == 1 {
            entries = Some(reader.list(field, wire::STRUCT, PageIndexEntry::parse)?);
            return Ok(true);
        }
        Ok(false)
    })?;
    if reader.position() != bytes.len() {
        let expected = format!("a page index of {} bytes", bytes.len());
        return Err(DecodeError::new(reader.position(), expected, reader.position().to_string()));
    }
    entries.ok_or_else(|| missing(0, "PageIndex.entries"))
}

pub(crate) fn write_page_index(entries: &[PageIndexEntry], out: &mut Vec<u8>) {
    let mut writer = Writer::new(out);
    writer.list(1, wire::STRUCT, entries, PageIndexEntry::write);
    writer.finish();
}
