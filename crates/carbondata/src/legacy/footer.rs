//! Footers of versions 1 and 2.

use std::ops::Range;

use bytes::Bytes;
use pilaster_core::error::AtPosition;
use pilaster_core::{Error, Limits, Result, SourceRef};
use pilaster_encoding::DecodeError;
use pilaster_encoding::thrift::{Reader, wire};

use crate::messages::{BlockletIndex, ColumnSchema, MinMax, Parsed, parse_columns, required};

const PART: &str = "carbondata footer";
const CHUNK_PART: &str = "column chunk";

/// One column in one blocklet.
#[derive(Debug, Clone, Default)]
pub(crate) struct LegacyChunk {
    pub data: Range<u64>,
    pub row_ids: Range<u64>,
    pub runs: Range<u64>,
    /// Bits of nulls.
    pub presence: Vec<u8>,
    pub encoder_meta: Vec<u8>,
}

/// What the footer of a file says.
#[derive(Debug)]
pub(crate) struct LegacyFooter {
    pub offset: u64,
    pub version: i32,
    pub rows: u64,
    pub columns: Vec<ColumnSchema>,
    pub cardinalities: Vec<i32>,
    /// Rows and chunks of each blocklet.
    pub blocklets: Vec<(u64, Vec<LegacyChunk>)>,
    /// Of each blocklet.
    pub statistics: Vec<LegacyStatistics>,
}

/// What a footer says of the values of a blocklet, or an index of those of a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct LegacyStatistics {
    /// Least values, one per chunk of dimensions.
    pub min: Vec<Bytes>,
    /// Greatest values, likewise.
    pub max: Vec<Bytes>,
    /// The codes of its first row, side by side; the rows are in their order.
    pub start: Bytes,
    /// The codes of its last row.
    pub end: Bytes,
}

/// A blocklet of version 2: where its chunks begin, and the bytes of their headers.
type Places = (i32, Vec<i64>, Vec<i16>);

pub(crate) fn read_footer(source: &SourceRef, limits: &Limits) -> Result<LegacyFooter> {
    let end = source.size().saturating_sub(8);
    let trailer = source.read_at(end..source.size())?;
    let offset = trailer.first_chunk().map_or(u64::MAX, |bytes| u64::from_be_bytes(*bytes));
    if offset >= end {
        return Err(Error::corrupt(format!("an offset below {end}"), offset).at(source.name(), end, PART));
    }
    limits.metadata(end.saturating_sub(offset)).at(source.name(), offset, PART)?;
    let bytes = source.read_at(offset..end)?;
    let (mut footer, places) = parse(&bytes).at(source.name(), offset, PART)?;
    footer.offset = offset;
    for (rows, offsets, lengths) in places {
        let rows = u64::try_from(rows).map_err(|_| Error::corrupt("a number of rows", rows)).at(
            source.name(),
            offset,
            PART,
        )?;
        let mut chunks = Vec::new();
        for (start, length) in offsets.iter().zip(&lengths) {
            let (Ok(start), Ok(length)) = (u64::try_from(*start), u64::try_from(*length)) else {
                return Err(Error::corrupt("the place of a chunk", start).at(source.name(), offset, PART));
            };
            let body = start.saturating_add(length);
            let bytes = source.read_at(start..body)?;
            chunks.push(chunk_2(&bytes, body).at(source.name(), start, CHUNK_PART)?);
        }
        footer.blocklets.push((rows, chunks));
    }
    for range in
        footer.blocklets.iter().flat_map(|(_, chunks)| chunks).flat_map(|c| [&c.data, &c.row_ids, &c.runs])
    {
        if range.end > offset || range.start > range.end {
            let error = Error::corrupt(format!("a page before byte {offset}"), format!("{range:?}"));
            return Err(error.at(source.name(), offset, PART));
        }
    }
    Ok(footer)
}

fn parse(bytes: &Bytes) -> Parsed<(LegacyFooter, Vec<Places>)> {
    let mut reader = Reader::new(bytes);
    let (mut version, mut rows, mut columns, mut cardinalities) = (None, None, None, Vec::new());
    let (mut blocklets, mut places, mut statistics) = (Vec::new(), Vec::new(), Vec::new());
    reader.structure(|reader, field| {
        match field.id {
            1 => version = Some(reader.i32(field)?),
            2 => rows = Some(reader.i64(field)?),
            3 => columns = Some(parse_columns(reader, field)?),
            4 => reader.structure_field(field, |reader| {
                reader.structure(|reader, field| {
                    if field.id == 2 {
                        cardinalities = reader.list(field, wire::I32, Reader::i32_value)?;
                    }
                    Ok(field.id == 2)
                })
            })?,
            5 => {
                let index = |reader: &mut Reader<'_>| BlockletIndex::parse_legacy(bytes, reader);
                let indexes = reader.list(field, wire::STRUCT, index)?;
                statistics = indexes.iter().map(LegacyStatistics::from).collect();
            }
            6 => blocklets = reader.list(field, wire::STRUCT, |reader| blocklet_1(reader))?,
            // Before 1.0 this field is something else.
            7 if field.wire == wire::LIST => {
                places = reader.list(field, wire::STRUCT, |reader| blocklet_2(reader))?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    let version = required(version, 0, "a footer with a version")?;
    if !(0..=2).contains(&version) {
        return Err(DecodeError::new(0, "version 0, 1 or 2", version.to_string()));
    }
    let rows = required(rows, 0, "a footer with a number of rows")?;
    let footer = LegacyFooter {
        offset: 0,
        version,
        rows: u64::try_from(rows).map_err(|_| DecodeError::new(0, "a number of rows", rows.to_string()))?,
        columns: required(columns, 0, "a footer with columns")?,
        cardinalities,
        blocklets,
        statistics,
    };
    Ok((footer, places))
}

impl From<&BlockletIndex> for LegacyStatistics {
    fn from(index: &BlockletIndex) -> Self {
        let MinMax { min, max, .. } = index.min_max.clone();
        Self { min, max, start: dictionary_key(&index.keys.0), end: dictionary_key(&index.keys.1) }
    }
}

/// The codes out of a key: the length of the codes, the length of the rest, the codes, the rest.
fn dictionary_key(key: &Bytes) -> Bytes {
    let length = key.first_chunk().map_or(0, |bytes| u32::from_be_bytes(*bytes));
    let end = usize::try_from(length).ok().and_then(|length| length.checked_add(8));
    let end = end.filter(|end| *end <= key.len());
    end.map_or_else(Bytes::new, |end| key.slice(8..end))
}

fn blocklet_1(reader: &mut Reader<'_>) -> Parsed<(u64, Vec<LegacyChunk>)> {
    let at = reader.position();
    let (mut rows, mut chunks) = (None, None);
    reader.structure(|reader, field| {
        match field.id {
            1 => rows = Some(reader.i32(field)?),
            2 => chunks = Some(reader.list(field, wire::STRUCT, |reader| chunk_1(reader))?),
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    let rows = required(rows, at, "a blocklet with a number of rows")?;
    let rows = u64::try_from(rows).map_err(|_| DecodeError::new(at, "a number of rows", rows.to_string()))?;
    Ok((rows, required(chunks, at, "a blocklet with chunks")?))
}

fn blocklet_2(reader: &mut Reader<'_>) -> Parsed<Places> {
    let at = reader.position();
    let (mut rows, mut offsets, mut lengths) = (None, None, None);
    reader.structure(|reader, field| {
        match field.id {
            1 => rows = Some(reader.i32(field)?),
            2 => offsets = Some(reader.list(field, wire::I64, Reader::i64_value)?),
            3 => {
                let lengths_at = field.at;
                let short = |reader: &mut Reader<'_>| {
                    let value = reader.i32_value()?;
                    i16::try_from(value)
                        .map_err(|_| DecodeError::new(lengths_at, "a 16-bit number", value.to_string()))
                };
                lengths = Some(reader.list(field, wire::I16, short)?);
            }
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    Ok((
        required(rows, at, "a blocklet with a number of rows")?,
        required(offsets, at, "a blocklet with chunk offsets")?,
        required(lengths, at, "a blocklet with chunk lengths")?,
    ))
}

fn range(offset: i64, length: i32) -> Range<u64> {
    match (u64::try_from(offset), u64::try_from(length)) {
        (Ok(offset), Ok(length @ 1..)) => offset..offset.saturating_add(length),
        _ => 0..0,
    }
}

fn presence(reader: &mut Reader<'_>) -> Parsed<Vec<u8>> {
    let mut bits = Vec::new();
    reader.structure(|reader, field| {
        if field.id == 2 {
            bits = reader.binary(field)?.to_vec();
        }
        Ok(field.id == 2)
    })?;
    Ok(bits)
}

/// `DataChunk` of version 1: pages by offset and length.
fn chunk_1(reader: &mut Reader<'_>) -> Parsed<LegacyChunk> {
    let at = reader.position();
    let mut chunk = LegacyChunk::default();
    let (mut data, mut row_ids, mut runs) = ((None, 0), (0, 0), (0, 0));
    reader.structure(|reader, field| {
        match field.id {
            4 => data.0 = Some(reader.i64(field)?),
            5 => data.1 = reader.i32(field)?,
            6 => row_ids.0 = reader.i64(field)?,
            7 => row_ids.1 = reader.i32(field)?,
            8 => runs.0 = reader.i64(field)?,
            9 => runs.1 = reader.i32(field)?,
            10 => chunk.presence = reader.structure_field(field, |reader| presence(reader))?,
            13 => chunk.encoder_meta = first_binary(reader, field)?,
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    chunk.data = range(required(data.0, at, "a chunk with the offset of its data")?, data.1);
    chunk.row_ids = range(row_ids.0, row_ids.1);
    chunk.runs = range(runs.0, runs.1);
    Ok(chunk)
}

/// `DataChunk2` of version 2, whose pages follow from `body`.
fn chunk_2(bytes: &[u8], body: u64) -> Parsed<LegacyChunk> {
    let mut chunk = LegacyChunk::default();
    let mut lengths = [0i32; 3];
    Reader::new(bytes).structure(|reader, field| {
        match field.id {
            3 => lengths[0] = reader.i32(field)?,
            4 => lengths[1] = reader.i32(field)?,
            5 => lengths[2] = reader.i32(field)?,
            6 => chunk.presence = reader.structure_field(field, |reader| presence(reader))?,
            9 => chunk.encoder_meta = first_binary(reader, field)?,
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    let lengths = lengths.map(|length| u64::try_from(length).unwrap_or(0));
    let [data, row_ids, runs] = lengths;
    chunk.data = body..body.saturating_add(data);
    chunk.row_ids = chunk.data.end..chunk.data.end.saturating_add(row_ids);
    chunk.runs = chunk.row_ids.end..chunk.row_ids.end.saturating_add(runs);
    Ok(chunk)
}

fn first_binary(reader: &mut Reader<'_>, field: pilaster_encoding::thrift::Field) -> Parsed<Vec<u8>> {
    let all = reader.list(field, wire::BINARY, |reader| reader.binary_value().map(<[u8]>::to_vec))?;
    Ok(all.into_iter().next().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use pilaster_encoding::thrift::Writer;

    use super::*;
    use crate::messages::write_columns;

    /// Minima and maxima are optional in these versions; the keys beside them count all the same.
    #[test]
    fn a_blocklet_may_have_no_minima_and_maxima() {
        let mut bytes = Vec::new();
        let mut footer = Writer::new(&mut bytes);
        footer.i32(1, 2);
        footer.i64(2, 7);
        write_columns(&mut footer, 3, &[ColumnSchema::text("a", 0)]);
        footer.list(5, wire::STRUCT, &[()], |(), out| {
            let mut index = Writer::new(out);
            index.structure(2, |out| {
                let mut keys = Writer::new(out);
                keys.binary(1, &[0, 0, 0, 1, 0, 0, 0, 0, 2]);
                keys.binary(2, &[0, 0, 0, 1, 0, 0, 0, 0, 9]);
                keys.finish();
            });
            index.finish();
        });
        footer.finish();
        let (footer, _) = parse(&bytes.into()).unwrap();
        let (start, end) = (Bytes::from_static(&[2]), Bytes::from_static(&[9]));
        assert_eq!(footer.statistics, [LegacyStatistics { start, end, ..LegacyStatistics::default() }]);
    }
}
