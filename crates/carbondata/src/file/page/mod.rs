//! Pages: bytes of one column and up to 32,000 rows, to an array.
//!
//! ```text
//! page  = data | row ids | runs          the last two only if their lengths are not 0
//! data  = numbers by their encoder meta [numbers], lengths and bytes [strings], codes of a dictionary [words],
//!         or the nodes of nested columns [nested]
//! ```

pub(crate) mod nested;
pub(crate) mod numbers;
pub(crate) mod order;
pub(crate) mod strings;
pub(crate) mod words;

use std::cell::Cell;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, DictionaryArray, UInt32Array};
use arrow_buffer::{BooleanBuffer, NullBuffer, ScalarBuffer};
use bytes::Bytes;
use pilaster_core::buffers::BlockBuffer;
use pilaster_core::error::AtPosition;
use pilaster_core::{Error, Limits, Result};
use pilaster_encoding::codec::Codec;

use self::numbers::{NumberPage, max_bytes, value_count};
use self::strings::LengthWidth;
use self::words::WordsRef;
use super::meta::{EncoderMeta, Store};
use super::types::{CarbonType, ColumnNode};
use crate::messages::PageHeader;

/// Numbers of the encodings a page may list.
pub(crate) mod encoding {
    pub const DICTIONARY: i32 = 0;
    pub const RLE: i32 = 2;
    pub const INVERTED_INDEX: i32 = 3;
    pub const DIRECT_DICTIONARY: i32 = 5;
    pub const DIRECT_COMPRESS: i32 = 6;
    pub const ADAPTIVE_INTEGRAL: i32 = 7;
    pub const ADAPTIVE_DELTA_INTEGRAL: i32 = 8;
    pub const RLE_INTEGRAL: i32 = 9;
    pub const ADAPTIVE_FLOATING: i32 = 11;
    pub const BOOL_BYTE: i32 = 12;
    pub const ADAPTIVE_DELTA_FLOATING: i32 = 13;
    pub const DIRECT_COMPRESS_VARCHAR: i32 = 14;
    pub const INT_LENGTH_CHILD: i32 = 15;

    /// Its name in the format.
    pub fn name(encoding: i32) -> &'static str {
        const NAMES: [&str; 16] = [
            "DICTIONARY",
            "DELTA",
            "RLE",
            "INVERTED_INDEX",
            "BIT_PACKED",
            "DIRECT_DICTIONARY",
            "DIRECT_COMPRESS",
            "ADAPTIVE_INTEGRAL",
            "ADAPTIVE_DELTA_INTEGRAL",
            "RLE_INTEGRAL",
            "DIRECT_STRING",
            "ADAPTIVE_FLOATING",
            "BOOL_BYTE",
            "ADAPTIVE_DELTA_FLOATING",
            "DIRECT_COMPRESS_VARCHAR",
            "INT_LENGTH_COMPLEX_CHILD_BYTE_ARRAY",
        ];
        usize::try_from(encoding).ok().and_then(|number| NAMES.get(number)).copied().unwrap_or("unknown")
    }
}

/// What a page's structure is called in messages.
const PART: &str = "column page";

/// The codec of a page.
pub(crate) fn codec(header: &PageHeader) -> Result<Codec> {
    match header.compressor_name.as_deref() {
        None | Some("snappy") => Ok(Codec::Snappy),
        Some("zstd") => Ok(Codec::Zstd),
        Some("gzip") => Ok(Codec::Gzip),
        Some(other) => Err(Error::unsupported(format!("pages compressed by {other:?}"))),
    }
}

/// A page with everything needed to decode it.
#[derive(Debug, Clone)]
pub(crate) struct Page<'a> {
    /// The file it lies in.
    pub path: &'a str,
    /// Where it begins.
    pub offset: u64,
    pub header: &'a PageHeader,
    pub bytes: Bytes,
    pub words: Option<WordsRef>,
    /// Bytes of a code of `words`.
    pub code_bytes: usize,
}

/// The values of a page: an array, or words and which of them each row has.
#[derive(Debug, Clone)]
pub(crate) enum PageValues {
    Array(ArrayRef),
    Words { keys: ScalarBuffer<u32>, words: WordsRef },
}

impl PageValues {
    pub fn len(&self) -> usize {
        match self {
            Self::Array(array) => array.len(),
            Self::Words { keys, .. } => keys.len(),
        }
    }

    /// Bytes that they take, without the words.
    pub fn bytes(&self) -> u64 {
        match self {
            Self::Array(array) => array.get_array_memory_size() as u64,
            Self::Words { keys, .. } => keys.inner().len() as u64,
        }
    }

    /// The values as the column's own type.
    pub fn array(&self, offset: usize, length: usize) -> Result<ArrayRef> {
        match self {
            Self::Array(array) => Ok(array.slice(offset, length)),
            Self::Words { keys, words } => words.values(keys.slice(offset, length)),
        }
    }

    /// The values in the form that is cheapest to compare.
    pub fn comparable(&self, offset: usize, length: usize) -> Result<ArrayRef> {
        match self {
            // Comparing words pays when there are fewer of them than rows.
            Self::Words { keys, words } if words.array.len() < length => {
                let keys = words.nullable_keys(keys.slice(offset, length));
                Ok(Arc::new(DictionaryArray::try_new(keys, Arc::clone(&words.array))?))
            }
            _ => self.array(offset, length),
        }
    }
}

/// Decodes page after page: `pages` gives that of a chunk.
pub(crate) struct PageDecoder<'a> {
    limits: &'a Limits,
    pages: &'a dyn Fn(usize) -> Result<Page<'a>>,
    /// Bytes of the pages that were decoded: those of a nested column are there together.
    decoded: Cell<u64>,
}

impl<'a> PageDecoder<'a> {
    pub fn new(limits: &'a Limits, pages: &'a dyn Fn(usize) -> Result<Page<'a>>) -> Self {
        Self { limits, pages, decoded: Cell::new(0) }
    }

    /// The values of a column, which must be `rows` if that is known.
    pub fn decode(&self, node: &ColumnNode, rows: Option<usize>) -> Result<PageValues> {
        if node.carbon_type.is_nested() {
            return Ok(PageValues::Array(self.decode_nested(node, rows)?));
        }
        let page = (self.pages)(node.chunk)?;
        let decoded = page.decode(node, rows, self.limits).and_then(|values| {
            self.decoded.set(self.decoded.get().saturating_add(values.bytes()));
            if node.is_child {
                self.limits.decoded(self.decoded.get())?;
            }
            Ok(values)
        });
        let decoded = decoded.and_then(|values| match rows {
            Some(rows) if values.len() != rows => {
                Err(Error::corrupt(format!("a page of {rows} values"), values.len()))
            }
            _ => Ok(values),
        });
        decoded.at(page.path, page.offset, PART)
    }
}

impl Page<'_> {
    /// Data, row ids and runs.
    fn parts(&self) -> Result<(&[u8], &[u8], &[u8])> {
        let header = self.header;
        let lengths = [header.data_length, header.row_id_length, header.rle_length]
            .map(|length| usize::try_from(length).unwrap_or(usize::MAX));
        let [data, row_ids, runs] = lengths;
        let whole = data.checked_add(row_ids).and_then(|sum| sum.checked_add(runs));
        let split = self.bytes.split_at_checked(data).and_then(|(data, rest)| {
            let (row_ids, runs) = rest.split_at_checked(row_ids)?;
            Some((data, row_ids, runs))
        });
        match split {
            Some(parts) if whole == Some(self.bytes.len()) => Ok(parts),
            _ => Err(Error::corrupt(
                format!("a page of {} bytes", self.bytes.len()),
                format!("parts of {lengths:?} bytes"),
            )),
        }
    }

    pub fn codec(&self) -> Result<Codec> {
        codec(self.header)
    }

    /// The encoder meta, if the page is one that has it.
    pub fn meta(&self, is_dimension: bool) -> Result<Option<(i32, EncoderMeta)>> {
        let Some(&first) = self.header.encoders.first() else {
            return match is_dimension {
                true => Ok(None),
                false => Err(Error::corrupt("an encoding of a measure", "none")),
            };
        };
        let has_meta = matches!(first, 6 | 7 | 8 | 11 | 13) || (!is_dimension && matches!(first, 9 | 12));
        if !has_meta {
            return match is_dimension {
                true => Ok(None),
                false => Err(Error::corrupt("an encoding of a measure", encoding::name(first))),
            };
        }
        let Some(bytes) = self.header.encoder_meta.first() else {
            return Err(Error::corrupt("the meta of the encoding", "none"));
        };
        let meta = EncoderMeta::parse(bytes)?;
        let rest = if first == encoding::RLE_INTEGRAL { 4 } else { 0 };
        if meta.rest != rest {
            return Err(Error::corrupt(format!("encoder meta with {rest} bytes at its end"), meta.rest));
        }
        Ok(Some((first, meta)))
    }

    /// All bytes of the data, with the nodes of nested columns.
    pub fn node_data(&self, limits: &Limits) -> Result<Vec<u8>> {
        let (data, row_ids, runs) = self.parts()?;
        if !row_ids.is_empty() || !runs.is_empty() {
            return Err(Error::corrupt("a nested column without row ids and runs", "some"));
        }
        Ok(self.codec()?.decompress_sized(data, decoded_cap(limits))?)
    }

    /// What `data` decompresses to, at most `most` bytes.
    fn unpack(&self, data: &[u8], most: usize) -> Result<BlockBuffer> {
        let codec = self.codec()?;
        let mut bytes = BlockBuffer::with_length(codec.content_length(data, most)?);
        codec.decompress(data, &mut bytes)?;
        Ok(bytes)
    }

    fn decode(&self, node: &ColumnNode, rows: Option<usize>, limits: &Limits) -> Result<PageValues> {
        let (data, row_ids, runs) = self.parts()?;
        let cap = decoded_cap(limits);
        let most_rows = most_rows(rows, limits)?;
        match self.meta(node.is_dimension)? {
            Some((encoding, meta)) if meta.store != Store::ByteArray => {
                if !runs.is_empty() {
                    return Err(Error::corrupt(
                        "a page of numbers without runs",
                        format!("{} bytes", runs.len()),
                    ));
                }
                let unpacked;
                let bytes = if encoding == encoding::RLE_INTEGRAL {
                    data
                } else {
                    let most = rows.map_or(cap, |rows| max_bytes(node.carbon_type, &meta, rows).min(cap));
                    unpacked = self.unpack(data, most)?;
                    &unpacked
                };
                let count = value_count(node.carbon_type, encoding, &meta, bytes)?;
                let order = self.order(row_ids, count)?;
                let page = NumberPage {
                    carbon_type: node.carbon_type,
                    encoding,
                    meta: &meta,
                    bytes,
                    order: order.as_deref(),
                    nulls: self.nulls(count)?,
                };
                Ok(PageValues::Array(page.decode()?))
            }
            // Everything else is stored as bytes, with nulls told by their content.
            _ => match &self.words {
                Some(words) => {
                    let most = most_rows.saturating_mul(self.code_bytes).min(cap);
                    let mut keys = words.stored_keys(&self.unpack(data, most)?, self.code_bytes)?;
                    if !runs.is_empty() {
                        keys = order::expand_runs(runs, &keys, most_rows)?;
                    }
                    if let Some(order) = self.order(row_ids, keys.len())? {
                        keys = through(&order, &keys)?;
                    }
                    Ok(PageValues::Words { keys: keys.into(), words: Arc::clone(words) })
                }
                None => {
                    let array = if node.carbon_type == CarbonType::Date && !node.is_child {
                        strings::date_page(&self.unpack(data, cap)?)?
                    } else {
                        let bytes = self.unpack(data, cap)?.into_buffer();
                        strings::array(bytes, self.length_width(node), node.carbon_type, Some(most_rows))?
                    };
                    let places = self.places((row_ids, runs), array.len(), most_rows)?;
                    Ok(PageValues::Array(match places {
                        Some(places) => arrow_select::take::take(&array, &UInt32Array::from(places), None)?,
                        None => array,
                    }))
                }
            },
        }
    }

    /// For each row which of the `stored` values it has, if that is not the one of its number.
    fn places(
        &self,
        (row_ids, runs): (&[u8], &[u8]),
        stored: usize,
        most_rows: usize,
    ) -> Result<Option<Vec<u32>>> {
        let expanded = match runs {
            [] => None,
            runs => {
                let stored = u32::try_from(stored).unwrap_or(u32::MAX);
                Some(order::expand_runs(runs, &(0..stored).collect::<Vec<_>>(), most_rows)?)
            }
        };
        let count = expanded.as_ref().map_or(stored, Vec::len);
        let order = self.order(row_ids, count)?;
        Ok(match (expanded, order) {
            (Some(places), Some(order)) => Some(through(&order, &places)?),
            (one, other) => one.or(other),
        })
    }

    fn length_width(&self, node: &ColumnNode) -> LengthWidth {
        let lists = |encoding| self.header.encoders.contains(&encoding);
        let is_long = if node.is_child {
            lists(encoding::INT_LENGTH_CHILD)
        } else {
            lists(encoding::DIRECT_COMPRESS_VARCHAR)
                || matches!(node.carbon_type, CarbonType::Varchar | CarbonType::Binary)
        };
        if is_long { LengthWidth::Four } else { LengthWidth::Two }
    }

    fn order(&self, row_ids: &[u8], rows: usize) -> Result<Option<Vec<u32>>> {
        match row_ids {
            [] => Ok(None),
            row_ids => Ok(Some(order::row_order(row_ids, rows)?)),
        }
    }

    /// The nulls of a page of numbers, in row order.
    fn nulls(&self, rows: usize) -> Result<Option<NullBuffer>> {
        let Some(stored) = &self.header.presence else { return Ok(None) };
        if stored.is_empty() {
            return Ok(None);
        }
        let mut bits = self.codec()?.decompress_sized(stored, rows.div_ceil(8).saturating_add(8))?;
        let is_set = pilaster_encoding::bits::count_ones(&bits, bits.len().saturating_mul(8));
        if pilaster_encoding::bits::count_ones(&bits, rows) != is_set {
            return Err(Error::corrupt(format!("null bits of {rows} rows"), "more"));
        }
        let represents_presence = self.header.represents_presence;
        let nulls = if represents_presence { rows.saturating_sub(is_set) } else { is_set };
        if nulls == 0 {
            return Ok(None);
        }
        // The bits end with the last that is set.
        bits.resize(rows.div_ceil(8), 0);
        let is_set = BooleanBuffer::new(bits.into(), 0, rows);
        Ok(Some(NullBuffer::new(if represents_presence { is_set } else { !&is_set })))
    }
}

/// What a value takes while its page is decoded, about.
const CELL_BYTES: u64 = 16;

/// How many values a page may have: its `rows`, or where nobody says how many there are, as many as the limits allow.
pub(crate) fn most_rows(rows: Option<usize>, limits: &Limits) -> Result<usize> {
    match rows {
        Some(rows) => limits.decoded((rows as u64).saturating_mul(CELL_BYTES)).map(|_| rows),
        None => Ok(usize::try_from(limits.decoded_bytes / CELL_BYTES).unwrap_or(usize::MAX)),
    }
}

fn decoded_cap(limits: &Limits) -> usize {
    usize::try_from(limits.decoded_bytes).unwrap_or(usize::MAX)
}

/// `values[place]` for each place.
pub(crate) fn through(places: &[u32], values: &[u32]) -> Result<Vec<u32>> {
    places
        .iter()
        .map(|&place| values.get(place as usize).copied())
        .collect::<Option<_>>()
        .ok_or_else(|| Error::corrupt("a stored value for every row", values.len()))
}
