//! Footers, blocklets and index files.

use bytes::Bytes;
use pilaster_encoding::DecodeError;
use pilaster_encoding::thrift::{Reader, Writer, wire};

use super::{
    ColumnSchema, Message, Parsed, binaries, i32_list, parse_columns, required, shared, write_columns,
};

/// `FileFooter3`.
#[derive(Debug, Clone)]
pub struct FileFooter {
    /// Rows of the file.
    pub rows: i64,
    /// Values per dictionary column; empty since 2.0.
    pub cardinalities: Vec<i32>,
    /// Statistics, one per blocklet.
    pub indexes: Vec<BlockletIndex>,
    /// The blocklets.
    pub blocklets: Vec<BlockletInfo>,
    /// Whether the rows are in the order of the sort columns.
    pub is_sorted: Option<bool>,
    /// Who wrote the file.
    pub extra: Vec<(String, String)>,
}

impl FileFooter {
    /// Parses the footer at the start of `bytes`; gives its length too.
    pub(crate) fn parse(bytes: &Bytes) -> Parsed<(Self, usize)> {
        let Message { bytes: whole, mut reader } = Message::new(bytes);
        let (mut rows, mut blocklets) = (None, None);
        let (mut cardinalities, mut indexes, mut is_sorted, mut extra) =
            (Vec::new(), Vec::new(), None, Vec::new());
        reader.structure(|reader, field| {
            match field.id {
                1 => rows = Some(reader.i64(field)?),
                2 => cardinalities = reader.structure_field(field, |reader| segment_info(reader))?,
                3 => {
                    indexes =
                        reader.list(field, wire::STRUCT, |reader| BlockletIndex::parse(whole, reader))?;
                }
                4 => {
                    blocklets = Some(reader.list(field, wire::STRUCT, |reader| BlockletInfo::parse(reader))?)
                }
                6 => is_sorted = Some(reader.bool(field)?),
                7 if field.wire == wire::MAP => {
                    let pairs = reader.text_map(field)?;
                    extra = pairs.into_iter().map(|(key, value)| (key.into(), value.into())).collect();
                }
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        let footer = Self {
            rows: required(rows, 0, "a footer with a number of rows")?,
            cardinalities,
            indexes,
            blocklets: required(blocklets, 0, "a footer with blocklets")?,
            is_sorted,
            extra,
        };
        Ok((footer, reader.position()))
    }

    /// Writes the footer of a file with so many columns.
    pub(crate) fn write(&self, columns: usize, out: &mut Vec<u8>) {
        let mut writer = Writer::new(out);
        writer.i64(1, self.rows);
        writer.structure(2, |out| write_segment_info(columns, &self.cardinalities, out));
        writer.list(3, wire::STRUCT, &self.indexes, BlockletIndex::write);
        writer.list(4, wire::STRUCT, &self.blocklets, BlockletInfo::write);
        if let Some(is_sorted) = self.is_sorted {
            writer.bool(6, is_sorted);
        }
        if !self.extra.is_empty() {
            writer.text_map(7, &self.extra);
        }
        writer.finish();
    }
}

fn write_segment_info(columns: usize, cardinalities: &[i32], out: &mut Vec<u8>) {
    let mut writer = Writer::new(out);
    writer.i32(1, i32::try_from(columns).unwrap_or(i32::MAX));
    writer.i32_list(2, cardinalities);
    writer.finish();
}

fn segment_info(reader: &mut Reader<'_>) -> Parsed<Vec<i32>> {
    let mut cardinalities = Vec::new();
    reader.structure(|reader, field| {
        if field.id != 2 {
            return Ok(false);
        }
        cardinalities = i32_list(reader, field)?;
        Ok(true)
    })?;
    Ok(cardinalities)
}

/// `BlockletInfo3`: where the chunks of a blocklet lie.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockletInfo {
    /// Rows of the blocklet.
    pub rows: i32,
    /// Where the chunk of each column begins.
    pub chunk_offsets: Vec<i64>,
    /// Bytes of the header of each chunk.
    pub chunk_header_lengths: Vec<i32>,
    /// End of the last dimension chunk.
    pub dimensions_end: Option<i64>,
    /// End of the last measure chunk.
    pub measures_end: Option<i64>,
    /// Pages of each column.
    pub pages: i32,
    /// Rows of each page; absent in old files.
    pub page_rows: Option<Vec<i32>>,
}

impl BlockletInfo {
    fn parse(reader: &mut Reader<'_>) -> Parsed<Self> {
        let at = reader.position();
        let (mut rows, mut offsets, mut lengths, mut pages) = (None, None, None, None);
        let (mut dimensions_end, mut measures_end, mut page_rows) = (None, None, None);
        reader.structure(|reader, field| {
            match field.id {
                1 => rows = Some(reader.i32(field)?),
                2 => offsets = Some(reader.list(field, wire::I64, Reader::i64_value)?),
                3 => lengths = Some(i32_list(reader, field)?),
                4 => dimensions_end = Some(reader.i64(field)?),
                5 => measures_end = Some(reader.i64(field)?),
                6 => pages = Some(reader.i32(field)?),
                7 => page_rows = Some(i32_list(reader, field)?),
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok(Self {
            rows: required(rows, at, "a blocklet with a number of rows")?,
            chunk_offsets: required(offsets, at, "a blocklet with chunk offsets")?,
            chunk_header_lengths: required(lengths, at, "a blocklet with chunk lengths")?,
            dimensions_end,
            measures_end,
            pages: required(pages, at, "a blocklet with a number of pages")?,
            page_rows,
        })
    }

    fn write(&self, out: &mut Vec<u8>) {
        let mut writer = Writer::new(out);
        writer.i32(1, self.rows);
        writer.i64_list(2, &self.chunk_offsets);
        writer.i32_list(3, &self.chunk_header_lengths);
        for (id, end) in [(4, self.dimensions_end), (5, self.measures_end)] {
            if let Some(end) = end {
                writer.i64(id, end);
            }
        }
        writer.i32(6, self.pages);
        if let Some(rows) = &self.page_rows {
            writer.i32_list(7, rows);
        }
        writer.finish();
    }
}

/// `BlockletIndex`: statistics of a blocklet, or of a file of version 1 or 2.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockletIndex {
    /// Least and greatest values, one per column; of versions 1 and 2 one per chunk of dimensions.
    pub min_max: MinMax,
    /// The keys of the first and of the last row; those of version 3 say nothing.
    pub keys: (Bytes, Bytes),
}

/// A key of no columns, which readers want to be there.
const EMPTY_KEY: Bytes = Bytes::from_static(&[0; 8]);

impl BlockletIndex {
    /// Statistics without keys, as version 3 has them.
    pub(crate) fn new(min_max: MinMax) -> Self {
        Self { min_max, keys: (EMPTY_KEY, EMPTY_KEY) }
    }

    pub(crate) fn parse(whole: &Bytes, reader: &mut Reader<'_>) -> Parsed<Self> {
        let at = reader.position();
        let (min_max, keys) = Self::parse_parts(whole, reader)?;
        Ok(Self { min_max: required(min_max, at, "a blocklet index with minima and maxima")?, keys })
    }

    /// As versions 1 and 2 have it, where there may be no minima and maxima: their lists are empty then.
    pub(crate) fn parse_legacy(whole: &Bytes, reader: &mut Reader<'_>) -> Parsed<Self> {
        let (min_max, keys) = Self::parse_parts(whole, reader)?;
        Ok(Self { min_max: min_max.unwrap_or_default(), keys })
    }

    fn parse_parts(whole: &Bytes, reader: &mut Reader<'_>) -> Parsed<(Option<MinMax>, (Bytes, Bytes))> {
        let (mut min_max, mut keys) = (None, (Bytes::new(), Bytes::new()));
        reader.structure(|reader, field| {
            match field.id {
                1 => min_max = Some(reader.structure_field(field, |reader| MinMax::parse(whole, reader))?),
                2 => reader.structure_field(field, |reader| {
                    reader.structure(|reader, field| {
                        match field.id {
                            1 => keys.0 = shared(whole, reader.binary(field)?),
                            2 => keys.1 = shared(whole, reader.binary(field)?),
                            _ => return Ok(false),
                        }
                        Ok(true)
                    })
                })?,
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok((min_max, keys))
    }

    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        let mut writer = Writer::new(out);
        writer.structure(1, |out| self.min_max.write(out));
        writer.structure(2, |out| {
            let mut writer = Writer::new(out);
            writer.binary(1, &self.keys.0);
            writer.binary(2, &self.keys.1);
            writer.finish();
        });
        writer.finish();
    }
}

/// `BlockletMinMaxIndex`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MinMax {
    /// Least values.
    pub min: Vec<Bytes>,
    /// Greatest values.
    pub max: Vec<Bytes>,
    /// Which of them are there; all, if empty.
    pub is_present: Vec<bool>,
}

impl MinMax {
    pub(super) fn parse(whole: &Bytes, reader: &mut Reader<'_>) -> Parsed<Self> {
        let (mut min, mut max, mut is_present) = (Vec::new(), Vec::new(), Vec::new());
        reader.structure(|reader, field| {
            match field.id {
                1 => min = binaries(whole, reader, field)?,
                2 => max = binaries(whole, reader, field)?,
                3 => is_present = reader.list(field, wire::TRUE, Reader::bool_value)?,
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok(Self { min, max, is_present })
    }

    /// The bounds of column `index`, if they are there.
    pub fn bounds(&self, index: usize) -> Option<(&Bytes, &Bytes)> {
        let is_present = self.is_present.is_empty() || self.is_present.get(index).copied().unwrap_or(false);
        if !is_present {
            return None;
        }
        Some((self.min.get(index)?, self.max.get(index)?))
    }

    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        let mut writer = Writer::new(out);
        writer.binary_list(1, &self.min);
        writer.binary_list(2, &self.max);
        if !self.is_present.is_empty() {
            writer.bool_list(3, &self.is_present);
        }
        writer.finish();
    }
}

/// The first struct of an index file.
#[derive(Debug, Clone)]
pub struct IndexHeader {
    /// Version of the format of its data files.
    pub version: i32,
    /// The columns of the table, as in the data files.
    pub columns: Vec<ColumnSchema>,
    /// Values per dictionary column; empty since 2.0.
    pub cardinalities: Vec<i32>,
    /// Number of the bucket of its data files.
    pub bucket: Option<i32>,
    /// When the schema was last changed, in milliseconds since 1970.
    pub time_stamp: Option<i64>,
    /// Whether their rows are sorted.
    pub is_sorted: Option<bool>,
}

impl IndexHeader {
    /// Parses an index file: its header, and a record per blocklet.
    ///
    /// # Errors
    /// If the bytes are no index file.
    pub(crate) fn parse_file(bytes: &Bytes) -> Parsed<(Self, Vec<BlockIndex>)> {
        let Message { bytes: whole, mut reader } = Message::new(bytes);
        let (mut version, mut columns, mut bucket, mut is_sorted) = (None, None, None, None);
        let mut time_stamp = None;
        let mut cardinalities = Vec::new();
        reader.structure(|reader, field| {
            match field.id {
                1 => version = Some(reader.i32(field)?),
                2 => columns = Some(parse_columns(reader, field)?),
                3 => cardinalities = reader.structure_field(field, |reader| segment_info(reader))?,
                4 => bucket = Some(reader.i32(field)?),
                5 => time_stamp = Some(reader.i64(field)?),
                6 => is_sorted = Some(reader.bool(field)?),
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        let header = Self {
            version: required(version, 0, "an index header with a version")?,
            columns: required(columns, 0, "an index header with columns")?,
            cardinalities,
            bucket,
            time_stamp,
            is_sorted,
        };
        let mut records = Vec::new();
        while !reader.is_at_end() {
            records.push(BlockIndex::parse(whole, &mut reader, header.version)?);
        }
        Ok((header, records))
    }

    /// Writes an index file.
    pub(crate) fn write_file(&self, records: &[BlockIndex]) -> Vec<u8> {
        let mut out = Vec::new();
        let mut writer = Writer::new(&mut out);
        writer.i32(1, self.version);
        write_columns(&mut writer, 2, &self.columns);
        writer.structure(3, |out| write_segment_info(self.columns.len(), &self.cardinalities, out));
        if let Some(bucket) = self.bucket {
            writer.i32(4, bucket);
        }
        if let Some(time_stamp) = self.time_stamp {
            writer.i64(5, time_stamp);
        }
        if let Some(is_sorted) = self.is_sorted {
            writer.bool(6, is_sorted);
        }
        writer.finish();
        for record in records {
            record.write(&mut out);
        }
        out
    }
}

/// What an index file says of one blocklet.
#[derive(Debug, Clone)]
pub struct BlockIndex {
    /// Rows of the data file.
    pub rows: i64,
    /// Name of the data file.
    pub file_name: String,
    /// Where its footer begins.
    pub footer_offset: i64,
    /// Statistics of the blocklet.
    pub index: BlockletIndex,
    /// Where its chunks lie.
    pub blocklet: Option<BlockletInfo>,
    /// Bytes of the data file.
    pub file_size: Option<i64>,
}

impl BlockIndex {
    fn parse(whole: &Bytes, reader: &mut Reader<'_>, version: i32) -> Parsed<Self> {
        let at = reader.position();
        let (mut rows, mut file_name, mut footer_offset, mut index) = (None, None, None, None);
        let (mut blocklet, mut file_size) = (None, None);
        reader.structure(|reader, field| {
            match field.id {
                1 => rows = Some(reader.i64(field)?),
                2 => file_name = Some(reader.text(field)?.to_string()),
                3 => footer_offset = Some(reader.i64(field)?),
                4 => {
                    let parse = if version < 3 { BlockletIndex::parse_legacy } else { BlockletIndex::parse };
                    index = Some(reader.structure_field(field, |reader| parse(whole, reader))?);
                }
                5 => blocklet = Some(reader.structure_field(field, |reader| BlockletInfo::parse(reader))?),
                6 => file_size = Some(reader.i64(field)?),
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok(Self {
            rows: required(rows, at, "an index record with a number of rows")?,
            file_name: required(file_name, at, "an index record with a file name")?,
            footer_offset: required(footer_offset, at, "an index record with a footer offset")?,
            index: required(index, at, "an index record with statistics")?,
            blocklet,
            file_size,
        })
    }

    fn write(&self, out: &mut Vec<u8>) {
        let mut writer = Writer::new(out);
        writer.i64(1, self.rows);
        writer.text(2, &self.file_name);
        writer.i64(3, self.footer_offset);
        writer.structure(4, |out| self.index.write(out));
        if let Some(blocklet) = &self.blocklet {
            writer.structure(5, |out| blocklet.write(out));
        }
        if let Some(size) = self.file_size {
            writer.i64(6, size);
        }
        writer.finish();
    }
}

/// Cuts a merged index file into the index files it was made of: their names and bytes.
pub(crate) fn parse_merged(bytes: &Bytes) -> Parsed<Vec<(String, Bytes)>> {
    let Message { bytes: whole, mut reader } = Message::new(bytes);
    let (mut names, mut files) = (Vec::new(), Vec::new());
    reader.structure(|reader, field| {
        if field.id == 1 {
            names = reader.list(field, wire::BINARY, |reader| reader.text_value().map(str::to_string))?;
        }
        Ok(field.id == 1)
    })?;
    reader.structure(|reader, field| {
        if field.id == 1 {
            files = binaries(whole, reader, field)?;
        }
        Ok(field.id == 1)
    })?;
    if names.len() != files.len() {
        let expected = format!("{} index files", names.len());
        return Err(DecodeError::new(0, expected, files.len().to_string()));
    }
    Ok(names.into_iter().zip(files).collect())
}

/// A merged index file of these index files: their names and bytes.
pub(crate) fn write_merged(files: &[(String, Vec<u8>)]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut writer = Writer::new(&mut out);
    writer.binary_list(1, &files.iter().map(|(name, _)| name).collect::<Vec<_>>());
    writer.finish();
    let mut writer = Writer::new(&mut out);
    writer.binary_list(1, &files.iter().map(|(_, bytes)| bytes).collect::<Vec<_>>());
    writer.finish();
    out
}
