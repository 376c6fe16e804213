//! Files of streaming segments: rows, not columns, appended batch by batch.
//!
//! ```text
//! FileHeader                                         is_footer_present false, sync marker, codec
//! 16 bytes sync marker | i32 n | BlockletHeader, n bytes | i32 m | compressed rows, m bytes       … again and again
//!
//! row = i16 k | k bytes of null bits | the columns that are not null, in the header's order
//! ```
//!
//! Dates are 4 bytes, long texts have lengths of 4, other dimensions of 2 bytes; measures have the width of their type, decimals
//! a length of 2. All numbers are big-endian. A blocklet is read as one page.

mod bounds;

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, Float32Array, Float64Array, make_array};
use arrow_buffer::NullBuffer;
use pilaster_core::error::AtPosition;
use pilaster_core::{Error, Limits, Result, SourceRef};
use pilaster_encoding::codec::Codec;

pub(crate) use self::bounds::{holds, record};
use super::layout::{Blocklet, CarbonFile, HEADER_PART, read_header};
use super::page::strings::{self, LengthWidth};
use super::types::{CarbonType, ColumnNode};
use crate::messages::{MinMax, StreamBlocklet};

const BLOCKLET_PART: &str = "stream blocklet";
const MARKER_BYTES: u64 = 16;
/// The length before a header and before the rows.
const LENGTH_BYTES: u64 = 4;

/// Where the rows of a streaming file lie.
#[derive(Debug)]
pub(crate) struct Stream {
    codec: Codec,
    /// Compressed rows of each blocklet.
    blocks: Vec<Range<u64>>,
    /// What the header of each blocklet says of its values.
    statistics: Vec<Option<MinMax>>,
}

/// Opens a streaming file, of which the first `valid_bytes` bytes count.
pub(crate) fn open_stream(source: SourceRef, limits: Limits, valid_bytes: u64) -> Result<CarbonFile> {
    let (file, damage) = open_stream_until_damage(source, limits, valid_bytes)?;
    damage.map_or(Ok(file), Err)
}

/// Opens a streaming file up to the first blocklet that is damaged or cut; gives what is wrong with that one too.
pub(crate) fn open_stream_until_damage(
    source: SourceRef,
    limits: Limits,
    valid_bytes: u64,
) -> Result<(CarbonFile, Option<Error>)> {
    let (header, header_bytes) = read_header(&source, &limits)?;
    let codec = match header.compressor_name.as_deref() {
        None | Some("snappy") => Codec::Snappy,
        Some("zstd") => Codec::Zstd,
        Some("gzip") => Codec::Gzip,
        Some(other) => {
            let error = Error::unsupported(format!("rows compressed by {other:?}"));
            return Err(error.at(source.name(), 0, HEADER_PART));
        }
    };
    let marker = header.sync_marker.clone().unwrap_or_default();
    let mut file = CarbonFile::with_columns(source, limits, header.version, Vec::new())?;
    file.set_columns(header)?;
    file.header_bytes = header_bytes;
    let (mut blocks, mut statistics) = (Vec::new(), Vec::new());
    let mut damage = None;
    let mut next = header_bytes;
    while next < valid_bytes {
        let read = read_blocklet(&file, &marker, next, valid_bytes).at(file.name(), next, BLOCKLET_PART);
        let (header, rows) = match read {
            Ok(blocklet) => blocklet,
            Err(error) => {
                damage = Some(error);
                break;
            }
        };
        let end = file.rows.saturating_add(header.rows);
        file.blocklets.push(Blocklet {
            rows: file.rows..end,
            page_starts: vec![file.rows, end],
            chunks: Vec::new(),
            min_max: header.min_max.as_ref().and_then(|known| bounds::by_column(&file, known)),
        });
        file.rows = end;
        next = rows.end;
        blocks.push(rows);
        statistics.push(header.min_max);
    }
    file.stream = Some(Stream { codec, blocks, statistics });
    Ok((file, damage))
}

/// The header of the blocklet at `start`, and where its rows lie.
fn read_blocklet(
    file: &CarbonFile,
    marker: &[u8],
    start: u64,
    end: u64,
) -> Result<(StreamBlocklet, Range<u64>)> {
    let inside = |from: u64, bytes: u64| -> Result<Range<u64>> {
        let to = from.saturating_add(bytes);
        if to > end {
            return Err(Error::corrupt(format!("a blocklet before byte {end}"), format!("{from}..{to}")));
        }
        Ok(from..to)
    };
    let number = |at: u64| -> Result<u64> {
        let bytes = file.source.read_at(inside(at, LENGTH_BYTES)?)?;
        Ok(u64::from(bytes.first_chunk().map_or(0, |bytes| u32::from_be_bytes(*bytes))))
    };
    if file.source.read_at(inside(start, MARKER_BYTES)?)?.as_ref() != marker {
        return Err(Error::corrupt("the sync marker of the file", "other bytes"));
    }
    let length_at = start.saturating_add(MARKER_BYTES);
    let header = inside(length_at.saturating_add(LENGTH_BYTES), number(length_at)?)?;
    file.limits.metadata(header.end.saturating_sub(header.start))?;
    let parsed = StreamBlocklet::parse(&file.source.read_at(header.clone())?)?;
    if parsed.mutation != 0 {
        return Err(Error::unsupported("a stream that deletes rows"));
    }
    let rows = inside(header.end.saturating_add(LENGTH_BYTES), number(header.end)?)?;
    file.limits.block(rows.end.saturating_sub(rows.start))?;
    Ok((parsed, rows))
}

/// The form of a column in a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Fixed(usize),
    /// A length of two bytes, then as many.
    Short,
    /// A length of four bytes, then as many.
    Long,
}

fn form(carbon_type: CarbonType, is_dimension: bool) -> Form {
    match (carbon_type, is_dimension) {
        (CarbonType::Date, true) => Form::Fixed(4),
        (CarbonType::Varchar, true) => Form::Long,
        (_, true) | (CarbonType::Decimal { .. }, false) => Form::Short,
        (CarbonType::Boolean | CarbonType::Byte, false) => Form::Fixed(1),
        (CarbonType::Short, false) => Form::Fixed(2),
        (CarbonType::Int | CarbonType::Float | CarbonType::Date, false) => Form::Fixed(4),
        (CarbonType::Long | CarbonType::Double | CarbonType::Timestamp, false) => Form::Fixed(8),
        (_, false) => Form::Short,
    }
}

impl Stream {
    /// Where the last blocklet ends.
    pub fn end(&self) -> Option<u64> {
        self.blocks.last().map(|rows| rows.end)
    }

    /// The rows of a blocklet, unpacked.
    fn unpacked(&self, file: &CarbonFile, block: &Range<u64>) -> Result<Vec<u8>> {
        let packed = file.source.read_at(block.clone())?;
        let cap = usize::try_from(file.limits.decoded_bytes).unwrap_or(usize::MAX);
        Ok(self.codec.decompress_sized(&packed, cap)?)
    }

    /// The values of a column in a blocklet.
    pub fn decode(
        &self,
        file: &CarbonFile,
        number: usize,
        node: &ColumnNode,
        rows: usize,
    ) -> Result<ArrayRef> {
        let Some(block) = self.blocks.get(number) else {
            return Err(Error::invalid(format!("no blocklet number {number}")));
        };
        let unpack = || -> Result<ArrayRef> {
            if node.carbon_type.is_nested() {
                return Err(Error::unsupported(format!("nested column {:?} in a stream", node.field.name())));
            }
            let bytes = self.unpacked(file, block)?;
            column_of(file, &bytes, node, rows)
        };
        unpack().at(file.name(), block.start, BLOCKLET_PART)
    }
}

/// The columns of a row in their order. Children have no place of their own: they lie inside their parents.
fn in_row_order(file: &CarbonFile) -> Vec<&ColumnNode> {
    let mut columns: Vec<_> = file.columns.iter().collect();
    columns.sort_by_key(|node| node.chunk);
    columns
}

/// Cuts the first row off; `found` gets its values.
fn cut_row<'a>(
    bytes: &'a [u8],
    columns: &[&ColumnNode],
    mut found: impl FnMut(&ColumnNode, Option<&'a [u8]>),
) -> Result<&'a [u8]> {
    let (nulls, mut rest) = take(bytes, Form::Short)?;
    for (place, node) in columns.iter().enumerate() {
        if pilaster_encoding::bits::get(nulls, place) && place / 8 < nulls.len() {
            found(node, None);
            continue;
        }
        let (value, after) = take(rest, form(node.carbon_type, node.is_dimension))?;
        rest = after;
        found(node, Some(value));
    }
    Ok(rest)
}

/// Cuts one column out of rows.
fn column_of(file: &CarbonFile, bytes: &[u8], node: &ColumnNode, rows: usize) -> Result<ArrayRef> {
    let columns = in_row_order(file);
    let mut column = Vec::with_capacity(rows.min(bytes.len()));
    let mut rest = bytes;
    for _ in 0..rows {
        rest = cut_row(rest, &columns, |other, value| {
            if other.chunk == node.chunk {
                column.push(value);
            }
        })?;
    }
    if !rest.is_empty() {
        return Err(Error::corrupt(format!("{rows} rows"), format!("{} bytes more", rest.len())));
    }
    typed(&column, node)
}

fn take(bytes: &[u8], form: Form) -> Result<(&[u8], &[u8])> {
    let cut = || Error::corrupt("a whole row", "the end of the blocklet");
    let (length, bytes) = match form {
        Form::Fixed(length) => (length, bytes),
        Form::Short => {
            let (length, rest) = bytes.split_first_chunk().ok_or_else(cut)?;
            (usize::from(u16::from_be_bytes(*length)), rest)
        }
        Form::Long => {
            let (length, rest) = bytes.split_first_chunk().ok_or_else(cut)?;
            (usize::try_from(u32::from_be_bytes(*length)).unwrap_or(usize::MAX), rest)
        }
    };
    bytes.split_at_checked(length).ok_or_else(cut)
}

fn typed(column: &[Option<&[u8]>], node: &ColumnNode) -> Result<ArrayRef> {
    let values = column.iter().map(|value| value.unwrap_or_default());
    let array: ArrayRef = match (node.carbon_type, node.is_dimension) {
        (CarbonType::Double, _) => Arc::new(
            values.map(|b| b.first_chunk().map(|b| f64::from_be_bytes(*b))).collect::<Float64Array>(),
        ),
        (CarbonType::Float, _) => Arc::new(
            values.map(|b| b.first_chunk().map(|b| f32::from_be_bytes(*b))).collect::<Float32Array>(),
        ),
        (CarbonType::Byte, false) => {
            let bytes = values.map(|b| b.first().map(|b| b.cast_signed()));
            Arc::new(bytes.collect::<arrow_array::Int8Array>())
        }
        (carbon_type, _) => {
            let bytes = behind_lengths(values, node)?;
            strings::array(bytes.into(), LengthWidth::Four, carbon_type, Some(column.len()))?
        }
    };
    let given = NullBuffer::from_iter(column.iter().map(Option::is_some));
    if given.null_count() == 0 {
        return Ok(array);
    }
    let nulls = NullBuffer::union(Some(&given), array.nulls());
    Ok(make_array(array.to_data().into_builder().nulls(nulls).build()?))
}

/// Values as pages have them.
fn behind_lengths<'a>(values: impl Iterator<Item = &'a [u8]>, node: &ColumnNode) -> Result<Vec<u8>> {
    let is_integer = matches!(
        node.carbon_type,
        CarbonType::Short | CarbonType::Int | CarbonType::Long | CarbonType::Timestamp
    );
    // Dates and measures are stored as they are, strings of numbers with the sign flipped.
    let flips_sign = node.carbon_type == CarbonType::Date || (is_integer && !node.is_dimension);
    let mut out = Vec::new();
    for value in values {
        let length = u32::try_from(value.len());
        out.extend(length.map_err(|_| Error::corrupt("less than 4 GiB of rows", "more"))?.to_be_bytes());
        let start = out.len();
        out.extend_from_slice(value);
        if let Some(byte) = out.get_mut(start).filter(|_| flips_sign) {
            *byte ^= 0x80;
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_cut_by_their_form() {
        assert_eq!(take(b"\0\x02abc", Form::Short).unwrap(), (&b"ab"[..], &b"c"[..]));
        assert_eq!(take(b"\0\0\0\x01ab", Form::Long).unwrap(), (&b"a"[..], &b"b"[..]));
        assert_eq!(take(b"abc", Form::Fixed(2)).unwrap(), (&b"ab"[..], &b"c"[..]));
        for form in [Form::Short, Form::Long, Form::Fixed(3)] {
            assert!(take(b"\xff\xff", form).is_err());
        }
    }
}
