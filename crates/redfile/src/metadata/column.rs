//! Column chunks and row groups.

use pilaster_encoding::{DecodeError, Result};

use super::enums::{Compression, Encoding, PhysicalType};
use super::schema_element::{KeyValue, located};
use super::{missing, parse_key_values, put_key_values};
use crate::thrift::{Reader, Writer, checked_structure, finish_with_crc, string, string_value, wire};

/// What is known of the values of a chunk or a page.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Statistics {
    /// Plain bytes of a value that none is below.
    pub min: Option<Vec<u8>>,
    /// Plain bytes of a value that none is above.
    pub max: Option<Vec<u8>>,
    /// Entries without a value.
    pub null_count: Option<i64>,
    /// `false` if `min` was cut; absent means exact.
    pub is_min_exact: Option<bool>,
    /// `false` if `max` was cut; absent means exact.
    pub is_max_exact: Option<bool>,
    /// Values that are not a number, which the bounds leave out.
    pub nan_count: Option<i64>,
}

impl Statistics {
    pub(super) fn parse(reader: &mut Reader<'_>) -> Result<Self> {
        let mut statistics = Self::default();
        reader.structure(|reader, field| {
            match field.id {
                1 => statistics.min = Some(reader.binary(field)?.to_vec()),
                2 => statistics.max = Some(reader.binary(field)?.to_vec()),
                3 => statistics.null_count = Some(reader.i64(field)?),
                4 => statistics.is_min_exact = Some(reader.bool(field)?),
                5 => statistics.is_max_exact = Some(reader.bool(field)?),
                6 => statistics.nan_count = Some(reader.i64(field)?),
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok(statistics)
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let mut writer = Writer::new(out);
        if let Some(min) = &self.min {
            writer.binary(1, min);
        }
        if let Some(max) = &self.max {
            writer.binary(2, max);
        }
        if let Some(count) = self.null_count {
            writer.i64(3, count);
        }
        if let Some(exact) = self.is_min_exact {
            writer.bool(4, exact);
        }
        if let Some(exact) = self.is_max_exact {
            writer.bool(5, exact);
        }
        if let Some(count) = self.nan_count {
            writer.i64(6, count);
        }
        writer.finish();
    }
}

/// What stands behind a column chunk, and again in the footer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnMetadata {
    /// Physical type, as the schema has it.
    pub physical_type: PhysicalType,
    /// Encodings of its data pages.
    pub encodings: Vec<Encoding>,
    /// Names from below the root to the leaf.
    pub path: Vec<String>,
    /// Codec of the pages that name none.
    pub codec: Compression,
    /// Level entries, nulls included.
    pub num_values: i64,
    /// Headers and uncompressed bodies of all pages.
    pub total_uncompressed_size: i64,
    /// Headers and stored bodies: the bytes of the chunk.
    pub total_compressed_size: i64,
    /// First data page.
    pub data_page_offset: i64,
    /// Index page.
    pub index_page_offset: Option<i64>,
    /// What the application says of it.
    pub key_values: Option<Vec<KeyValue>>,
    /// What is known of its values.
    pub statistics: Option<Statistics>,
    /// Whether it carried a checksum of itself.
    pub(crate) has_crc: bool,
}

impl ColumnMetadata {
    /// First byte of the chunk.
    pub(crate) fn start(&self) -> i64 {
        self.index_page_offset.map_or(self.data_page_offset, |index| index.min(self.data_page_offset))
    }

    /// Parses a struct at the start of `bytes`; gives its length too.
    pub(crate) fn parse_at_start(bytes: &[u8]) -> Result<(Self, usize)> {
        let mut reader = Reader::strict(bytes);
        let metadata = Self::parse(&mut reader)?;
        Ok((metadata, reader.position()))
    }

    fn parse(reader: &mut Reader<'_>) -> Result<Self> {
        let start = reader.position();
        let (mut physical_type, mut encodings, mut path, mut codec) = (None, None, None, None);
        let (mut num_values, mut uncompressed, mut compressed, mut data_page) = (None, None, None, None);
        let (mut index_page_offset, mut key_values, mut statistics) = (None, None, None);
        let has_crc = checked_structure(reader, 12, |reader, field| {
            let at = field.at;
            match field.id {
                1 => physical_type = Some(located(PhysicalType::from_number(reader.i32(field)?), at)?),
                2 => {
                    encodings = Some(reader.list(field, wire::I32, |reader| {
                        located(Encoding::from_number(reader.i32_value()?), at)
                    })?);
                }
                3 => path = Some(reader.list(field, wire::BINARY, string_value)?),
                4 => codec = Some(located(Compression::from_number(reader.i32(field)?), at)?),
                5 => num_values = Some(reader.i64(field)?),
                6 => uncompressed = Some(reader.i64(field)?),
                7 => compressed = Some(reader.i64(field)?),
                8 => data_page = Some(reader.i64(field)?),
                9 => index_page_offset = Some(reader.i64(field)?),
                10 => key_values = Some(parse_key_values(reader, field)?),
                11 => statistics = Some(reader.structure_field(field, Statistics::parse)?),
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        let metadata = Self {
            physical_type: physical_type.ok_or_else(|| missing(start, "ColumnMetaData.type"))?,
            encodings: encodings.ok_or_else(|| missing(start, "ColumnMetaData.encodings"))?,
            path: path.ok_or_else(|| missing(start, "ColumnMetaData.path_in_schema"))?,
            codec: codec.ok_or_else(|| missing(start, "ColumnMetaData.codec"))?,
            num_values: num_values.ok_or_else(|| missing(start, "ColumnMetaData.num_values"))?,
            total_uncompressed_size: uncompressed
                .ok_or_else(|| missing(start, "ColumnMetaData.total_uncompressed_size"))?,
            total_compressed_size: compressed
                .ok_or_else(|| missing(start, "ColumnMetaData.total_compressed_size"))?,
            data_page_offset: data_page.ok_or_else(|| missing(start, "ColumnMetaData.data_page_offset"))?,
            index_page_offset,
            key_values,
            statistics,
            has_crc,
        };
        let sizes = [
            metadata.num_values,
            metadata.total_uncompressed_size,
            metadata.total_compressed_size,
            metadata.start(),
        ];
        match sizes.iter().find(|size| **size < 0) {
            Some(size) => Err(DecodeError::new(start, "sizes and offsets of 0 or more", size.to_string())),
            None => Ok(metadata),
        }
    }

    pub(crate) fn write(&self, with_crc: bool, out: &mut Vec<u8>) {
        let mut writer = Writer::new(out);
        writer.i32(1, self.physical_type.number());
        let encodings: Vec<i32> = self.encodings.iter().map(|encoding| encoding.number()).collect();
        writer.i32_list(2, &encodings);
        writer.list(3, wire::BINARY, &self.path, |name, out| {
            crate::thrift::put_binary(out, name.as_bytes());
        });
        writer.i32(4, self.codec.number());
        writer.i64(5, self.num_values);
        writer.i64(6, self.total_uncompressed_size);
        writer.i64(7, self.total_compressed_size);
        writer.i64(8, self.data_page_offset);
        if let Some(offset) = self.index_page_offset {
            writer.i64(9, offset);
        }
        if let Some(pairs) = &self.key_values {
            put_key_values(&mut writer, 10, pairs);
        }
        if let Some(statistics) = &self.statistics {
            writer.structure(11, |out| statistics.write(out));
        }
        if with_crc {
            finish_with_crc(writer, 12);
        } else {
            writer.finish();
        }
    }
}

/// Where a column chunk is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnChunk {
    /// The file that holds it, relative to the folder of this one; absent: this file.
    pub file_path: Option<String>,
    /// Where its metadata stands, right behind its pages.
    pub file_offset: i64,
    /// A replica of that metadata.
    pub metadata: Option<ColumnMetadata>,
}

impl ColumnChunk {
    fn parse(reader: &mut Reader<'_>) -> Result<Self> {
        let start = reader.position();
        let (mut file_path, mut file_offset, mut metadata) = (None, None, None);
        reader.structure(|reader, field| {
            match field.id {
                1 => file_path = Some(string(reader, field)?),
                2 => file_offset = Some(reader.i64(field)?),
                3 => metadata = Some(reader.structure_field(field, ColumnMetadata::parse)?),
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        let file_offset = file_offset.ok_or_else(|| missing(start, "ColumnChunk.file_offset"))?;
        if file_offset < 0 {
            return Err(DecodeError::new(start, "an offset of 0 or more", file_offset.to_string()));
        }
        Ok(Self { file_path, file_offset, metadata })
    }

    fn write(&self, out: &mut Vec<u8>) {
        let mut writer = Writer::new(out);
        if let Some(path) = &self.file_path {
            writer.binary(1, path.as_bytes());
        }
        writer.i64(2, self.file_offset);
        if let Some(metadata) = &self.metadata {
            writer.structure(3, |out| metadata.write(metadata.has_crc, out));
        }
        writer.finish();
    }
}

/// A horizontal slice of rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowGroup {
    /// One chunk for each leaf, in the order of the schema.
    pub columns: Vec<ColumnChunk>,
    /// Uncompressed bytes.
    pub total_byte_size: i64,
    /// Rows.
    pub num_rows: i64,
    /// Its first byte in this file.
    pub file_offset: Option<i64>,
    /// Stored bytes.
    pub total_compressed_size: Option<i64>,
}

impl RowGroup {
    pub(crate) fn parse(reader: &mut Reader<'_>) -> Result<Self> {
        let start = reader.position();
        let (mut columns, mut total_byte_size, mut num_rows) = (None, None, None);
        let (mut file_offset, mut total_compressed_size) = (None, None);
        reader.structure(|reader, field| {
            match field.id {
                1 => columns = Some(reader.list(field, wire::STRUCT, ColumnChunk::parse)?),
                2 => total_byte_size = Some(reader.i64(field)?),
                3 => num_rows = Some(reader.i64(field)?),
                4 => file_offset = Some(reader.i64(field)?),
                5 => total_compressed_size = Some(reader.i64(field)?),
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        let group = Self {
            columns: columns.ok_or_else(|| missing(start, "RowGroup.columns"))?,
            total_byte_size: total_byte_size.ok_or_else(|| missing(start, "RowGroup.total_byte_size"))?,
            num_rows: num_rows.ok_or_else(|| missing(start, "RowGroup.num_rows"))?,
            file_offset,
            total_compressed_size,
        };
        if group.num_rows < 1 {
            return Err(DecodeError::new(start, "a row group of 1 row or more", group.num_rows.to_string()));
        }
        Ok(group)
    }

    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        let mut writer = Writer::new(out);
        writer.list(1, wire::STRUCT, &self.columns, ColumnChunk::write);
        writer.i64(2, self.total_byte_size);
        writer.i64(3, self.num_rows);
        if let Some(offset) = self.file_offset {
            writer.i64(4, offset);
        }
        if let Some(size) = self.total_compressed_size {
            writer.i64(5, size);
        }
        writer.finish();
    }

    /// Its rows.
    pub fn rows(&self) -> u64 {
        u64::try_from(self.num_rows).unwrap_or_default()
    }
}
