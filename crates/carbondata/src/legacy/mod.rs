//! Data files of versions 1 and 2, which releases before 1.2 wrote.
//!
//! ```text
//! version 1   pages of all dimensions | of all measures | row ids | runs | … | FileFooter | i64 offset of the footer
//! version 2   "CARBONDATAVERSION#ColumnarFormatV2" | per column: DataChunk2, data, row ids, runs | … | FileFooter | i64
//! ```
//!
//! A blocklet is one page per column. Dimensions are codes of the table's dictionaries, dates and times as numbers, or
//! strings; measures are numbers whose width follows from the greatest and the least of them ([`measure`]).

mod footer;
pub(crate) mod keys;
mod measure;
mod outline;
mod packed;
mod statistics;

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{ArrayRef, TimestampMillisecondArray, UInt32Array};
use arrow_buffer::{BooleanBuffer, NullBuffer};
use bytes::Bytes;
use pilaster_core::error::AtPosition;
use pilaster_core::{Error, Limits, Result, SourceRef};
use pilaster_encoding::codec::Codec;

use self::footer::{LegacyChunk, read_footer};
pub(crate) use self::outline::{USUAL_BLOCKLET_ROWS, holds, open_outlined, outline};
use crate::file::layout::{Blocklet, CarbonFile};
use crate::file::page::strings::{self, LengthWidth, date_page};
use crate::file::page::words::codes;
use crate::file::page::{most_rows, nested};
use crate::file::{CarbonType, ColumnNode};
use crate::messages::ColumnSchema;

const PART: &str = "column page";

/// Where the pages of a file of version 1 or 2 lie.
#[derive(Debug)]
pub(crate) struct Legacy {
    /// By blocklet: a chunk per block of dimensions, then one per measure.
    blocklets: Vec<Vec<LegacyChunk>>,
    /// For each column its chunk.
    places: Vec<usize>,
    /// For each column of a group the bits of its codes: how far from the right, and how many.
    group_bits: Vec<Option<(u32, u32)>>,
    cardinalities: Vec<i32>,
    version: i32,
    /// The codes of the first and the last row of each blocklet.
    keys: Vec<(Bytes, Bytes)>,
    /// Whether all that is known comes from an index, which has one record for the whole file: it stands for one blocklet.
    is_outline: bool,
}

/// Opens a file of version 1 or 2; the dictionaries of its table are still missing.
pub(crate) fn open_legacy(source: SourceRef, limits: Limits) -> Result<CarbonFile> {
    let footer = read_footer(&source, &limits)?;
    let mut file = CarbonFile::legacy(source, limits, footer.version, footer.columns)?;
    let (places, group_bits) = places(&file.header.columns, &footer.cardinalities);
    let chunks = places.iter().max().map_or(0, |last| last.saturating_add(1));
    for (number, (rows, blocklet)) in footer.blocklets.iter().enumerate() {
        if blocklet.len() != chunks {
            let error = Error::corrupt(format!("{chunks} chunks in a blocklet"), blocklet.len());
            return Err(error.at(file.name(), footer.offset, "carbondata footer"));
        }
        let end = file.rows.saturating_add(*rows);
        let page_starts = vec![file.rows, end];
        file.blocklets.push(Blocklet {
            rows: file.rows..end,
            page_starts,
            chunks: Vec::new(),
            min_max: footer.statistics.get(number).map(|statistics| {
                statistics::min_max(statistics, &file.header.columns, &places, &group_bits)
            }),
        });
        file.rows = end;
    }
    if file.rows != footer.rows {
        let error = Error::corrupt(format!("{} rows in all", footer.rows), file.rows);
        return Err(error.at(file.name(), footer.offset, "carbondata footer"));
    }
    file.legacy = Some(Legacy {
        blocklets: footer.blocklets.into_iter().map(|(_, chunks)| chunks).collect(),
        places,
        group_bits,
        cardinalities: footer.cardinalities,
        version: footer.version,
        keys: footer.statistics.into_iter().map(|known| (known.start, known.end)).collect(),
        is_outline: false,
    });
    Ok(file)
}

/// The cardinalities that a file of version 1 or 2 notes.
pub(crate) fn cardinalities(file: &CarbonFile) -> &[i32] {
    file.legacy.as_ref().map_or(&[], |legacy| &legacy.cardinalities)
}

/// The chunk of each column, and the bits of those in groups. Groups are neighbours that share a chunk.
fn places(columns: &[ColumnSchema], cardinalities: &[i32]) -> (Vec<usize>, Vec<Option<(u32, u32)>>) {
    let mut places = Vec::with_capacity(columns.len());
    let mut bits = vec![None; columns.len()];
    let mut next = 0usize;
    let mut start = 0usize;
    while let Some(column) = columns.get(start) {
        let in_group =
            |other: &ColumnSchema| !other.is_columnar && other.group >= 0 && other.group == column.group;
        let count = columns.iter().skip(start).take_while(|other| in_group(other)).count().max(1);
        let end = start.saturating_add(count);
        places.extend(std::iter::repeat_n(next, count));
        if count > 1 || in_group(column) {
            let widths: Vec<_> = (start..end).map(|c| group_width(cardinalities.get(c).copied())).collect();
            let whole: u32 = widths.iter().sum();
            // The last column also takes the bits that fill the key to whole bytes.
            let mut left = whole.next_multiple_of(8);
            let last = count.saturating_sub(1);
            for (number, width) in widths.iter().enumerate() {
                let width = if number == last { left } else { *width };
                left = left.saturating_sub(width);
                if let Some(slot) = bits.get_mut(start.saturating_add(number)) {
                    *slot = Some((left, width));
                }
            }
        }
        start = end;
        next = next.saturating_add(1);
    }
    (places, bits)
}

/// Bits of a code in a group, for a cardinality with room to grow.
fn group_width(cardinality: Option<i32>) -> u32 {
    let cardinality = cardinality.unwrap_or(0).unsigned_abs();
    let mut room = cardinality.saturating_add((cardinality.saturating_mul(10) / 100).max(1));
    if room % 8 == 7 {
        room = cardinality.saturating_add(1);
    }
    u32::BITS.saturating_sub(room.leading_zeros())
}

impl Legacy {
    /// Whether it is known from an index alone.
    pub fn is_outline(&self) -> bool {
        self.is_outline
    }

    /// The values of a column in a blocklet.
    pub fn decode(
        &self,
        file: &CarbonFile,
        number: usize,
        node: &ColumnNode,
        rows: usize,
    ) -> Result<ArrayRef> {
        let reader = BlockletReader { legacy: self, file, number };
        reader.column(node, Some(rows))
    }
}

struct BlockletReader<'a> {
    legacy: &'a Legacy,
    file: &'a CarbonFile,
    number: usize,
}

impl BlockletReader<'_> {
    fn chunk(&self, column: usize) -> Result<&LegacyChunk> {
        let place = self.legacy.places.get(column);
        let chunk = place.and_then(|place| self.legacy.blocklets.get(self.number)?.get(*place));
        chunk.ok_or_else(|| Error::internal(format!("no chunk of column {column}")))
    }

    fn read(&self, range: &Range<u64>) -> Result<Bytes> {
        self.file.limits.block(range.end.saturating_sub(range.start))?;
        self.file.source.read_at(range.clone())
    }

    fn column(&self, node: &ColumnNode, rows: Option<usize>) -> Result<ArrayRef> {
        let chunk = self.chunk(node.chunk)?;
        let offset = chunk.data.start;
        most_rows(rows, &self.file.limits).at(self.file.name(), offset, PART)?;
        if node.carbon_type.is_nested() {
            return self.nested(node, chunk, rows);
        }
        let decoded = if node.is_dimension {
            self.dimension(node, chunk, rows)
        } else {
            let bytes = self.unpacked(chunk);
            bytes.and_then(|bytes| {
                let rows =
                    rows.ok_or_else(|| Error::corrupt("dimensions inside a nested column", "a measure"))?;
                measure::decode(node.carbon_type, &chunk.encoder_meta, &bytes, rows, self.nulls(chunk, rows)?)
            })
        };
        let decoded = decoded.and_then(|array| match rows {
            Some(rows) if array.len() != rows => Err(Error::corrupt(format!("{rows} values"), array.len())),
            _ => Ok(array),
        });
        decoded.at(self.file.name(), offset, PART)
    }

    /// How many codes of `width` bytes there are may not be more than the rows, or than the limits allow.
    fn check_codes(&self, bytes: &[u8], width: usize, rows: Option<usize>) -> Result<()> {
        let most = most_rows(rows, &self.file.limits)?;
        match bytes.len().checked_div(width) {
            Some(count) if count > most => Err(Error::corrupt(format!("at most {most} codes"), count)),
            _ => Ok(()),
        }
    }

    fn unpacked(&self, chunk: &LegacyChunk) -> Result<Vec<u8>> {
        let cap = usize::try_from(self.file.limits.decoded_bytes).unwrap_or(usize::MAX);
        Ok(Codec::Snappy.decompress_sized(&self.read(&chunk.data)?, cap)?)
    }

    fn nested(&self, node: &ColumnNode, chunk: &LegacyChunk, rows: Option<usize>) -> Result<ArrayRef> {
        let at = |error: Error| error.at(self.file.name(), chunk.data.start, PART);
        let bytes = self.unpacked(chunk).map_err(at)?;
        let count = bytes.len() / 8;
        if bytes.len() % 8 != 0 || rows.is_some_and(|rows| rows != count) {
            return Err(at(Error::corrupt("nodes of 8 bytes", format!("{} bytes", bytes.len()))));
        }
        match (node.carbon_type, node.children.as_slice()) {
            (CarbonType::Array, [item]) => {
                let items = self.column(item, None)?;
                nested::list(node, &bytes, &items).map_err(at)
            }
            (CarbonType::Struct, children) => {
                let children = children.iter().map(|child| self.column(child, Some(count)));
                nested::structs(node, children.collect::<Result<_>>()?).map_err(at)
            }
            // Releases before 1.5 have no maps, and none since 1.2 writes these versions.
            _ => Err(at(Error::corrupt("an array or a struct", "a map"))),
        }
    }

    fn dimension(&self, node: &ColumnNode, chunk: &LegacyChunk, rows: Option<usize>) -> Result<ArrayRef> {
        let bytes = self.unpacked(chunk)?;
        if let Some((words, code_bytes)) = self.file.dictionaries.get(&node.chunk) {
            let stored = match self.legacy.group_bits.get(node.chunk) {
                Some(Some(bits)) => self.group_codes(node.chunk, *bits, &bytes, rows)?,
                _ => {
                    self.check_codes(&bytes, *code_bytes, rows)?;
                    codes(&bytes, *code_bytes)?
                }
            };
            let stored = match self.order(chunk, stored.len(), rows)? {
                Some(order) => through(&order, &stored)?,
                None => stored,
            };
            // Null is code 1; the first entry says so too.
            return words.values(words.keys(&stored)?.into());
        }
        let array: ArrayRef = match node.carbon_type {
            CarbonType::Date if chunk.is_direct(self.file, node) => date_page(&bytes)?,
            CarbonType::Timestamp if chunk.is_direct(self.file, node) => times(&bytes)?,
            other => {
                let most = most_rows(rows, &self.file.limits)?;
                strings::array(bytes.into(), LengthWidth::Two, other, Some(most))?
            }
        };
        Ok(match self.order(chunk, array.len(), rows)? {
            Some(order) => arrow_select::take::take(&array, &UInt32Array::from(order), None)?,
            None => array,
        })
    }

    /// The codes of one column out of the keys of its group.
    fn group_codes(
        &self,
        column: usize,
        (shift, width): (u32, u32),
        bytes: &[u8],
        rows: Option<usize>,
    ) -> Result<Vec<u32>> {
        let place = self.legacy.places.get(column);
        let members = self.legacy.places.iter().enumerate().filter(|(_, other)| Some(*other) == place);
        let bits = members.filter_map(|(c, _)| self.legacy.group_bits.get(c).copied().flatten());
        let key_bits = bits.map(|(shift, width)| shift.saturating_add(width)).max().unwrap_or(0);
        let key_bytes = usize::try_from(key_bits.div_ceil(8)).unwrap_or(0);
        if !(1..=8).contains(&key_bytes) || bytes.len().checked_rem(key_bytes) != Some(0) || width > 32 {
            let found = format!("{} bytes", bytes.len());
            return Err(Error::corrupt(format!("keys of {key_bytes} bytes"), found));
        }
        self.check_codes(bytes, key_bytes, rows)?;
        let mask = 1u64.checked_shl(width).map_or(u64::MAX, |bit| bit.wrapping_sub(1));
        let key = |bytes: &[u8]| bytes.iter().fold(0u64, |key, byte| (key << 8) | u64::from(*byte));
        bytes
            .chunks(key_bytes)
            .map(|bytes| u32::try_from((key(bytes) >> shift) & mask))
            .collect::<Result<_, _>>()
            .map_err(|_| Error::corrupt("codes of 32 bits", "larger ones"))
    }

    /// For each row which stored value it has, if that is not its own number.
    fn order(&self, chunk: &LegacyChunk, stored: usize, rows: Option<usize>) -> Result<Option<Vec<u32>>> {
        let rows = rows.unwrap_or(stored);
        let runs = match &chunk.runs {
            range if range.is_empty() => None,
            range => Some(packed::expand_runs(&self.read(range)?, stored, rows)?),
        };
        let ids = match &chunk.row_ids {
            range if range.is_empty() => None,
            range => Some(packed::row_order(&self.read(range)?, rows)?),
        };
        Ok(match (runs, ids) {
            (Some(runs), Some(ids)) => Some(through(&ids, &runs)?),
            (one, other) => one.or(other),
        })
    }

    fn nulls(&self, chunk: &LegacyChunk, rows: usize) -> Result<Option<NullBuffer>> {
        let cap = rows.div_ceil(8).saturating_add(8);
        let unpacked;
        let bits: &[u8] = match (&chunk.presence, self.legacy.version) {
            (bits, _) if bits.is_empty() => return Ok(None),
            (bits, 2..) => {
                unpacked = Codec::Snappy.decompress_sized(bits, cap)?;
                &unpacked
            }
            (bits, _) => bits,
        };
        let is_null = |row: usize| pilaster_encoding::bits::get(bits, row);
        let nulls = NullBuffer::new(BooleanBuffer::collect_bool(rows, |row| !is_null(row)));
        Ok((nulls.null_count() > 0).then_some(nulls))
    }
}

impl LegacyChunk {
    /// Whether the values of the column are numbers of days or seconds.
    fn is_direct(&self, file: &CarbonFile, node: &ColumnNode) -> bool {
        let column = file.header.columns.get(node.chunk);
        column.is_some_and(|column| column.encoders.contains(&crate::file::page::encoding::DIRECT_DICTIONARY))
    }
}

/// Seconds since 1970 and 2 more; 1 is null.
pub(crate) fn times(bytes: &[u8]) -> Result<ArrayRef> {
    let (stored, rest) = bytes.as_chunks::<4>();
    if !rest.is_empty() {
        return Err(Error::corrupt("times of 4 bytes", format!("{} bytes", bytes.len())));
    }
    let time = |bytes: &[u8; 4]| match u32::from_be_bytes(*bytes) {
        0 | 1 => None,
        seconds => Some(i64::from(seconds).saturating_sub(2).saturating_mul(1000)),
    };
    let array: TimestampMillisecondArray = stored.iter().map(time).collect();
    Ok(Arc::new(array.with_timezone("UTC")))
}

fn through(places: &[u32], values: &[u32]) -> Result<Vec<u32>> {
    places
        .iter()
        .map(|place| values.get(*place as usize).copied())
        .collect::<Option<_>>()
        .ok_or_else(|| Error::corrupt("a stored value for every row", values.len()))
}

/// Pages of measures, and packed numbers: the first bytes choose type and number of rows.
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) fn fuzz(bytes: &[u8]) {
    let Some((choice, bytes)) = bytes.split_first_chunk::<3>() else { return };
    let [which, rows, cut] = choice.map(usize::from);
    let types = [CarbonType::Long, CarbonType::Double, CarbonType::Decimal { precision: 20, scale: 4 }];
    let Some(&carbon_type) = types.get(which % 3) else { return };
    let (meta, page) = bytes.split_at(cut.saturating_mul(2).min(bytes.len()));
    let _ = measure::decode(carbon_type, meta, page, rows, None);
    let _ = packed::row_order(bytes, rows);
    let _ = packed::expand_runs(bytes, which, rows);
}
