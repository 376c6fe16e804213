//! From the body of a data page to Arrow arrays.
//!
//! ```text
//! body = | values that are not null, encoded | RLE bits, 1 for a null, if there is one |
//! ```
//!
//! A page is decoded once, its nulls left out, and batches cut their rows out of it; of shuffled cells each batch decodes those
//! it needs. Nulls are spread only over the rows of a batch, so a page of a hundred million nulls costs a bitmap.

mod bytes;
mod fixed;
mod shuffled;
#[cfg(test)]
mod tests;

use std::ops::Range;
use std::sync::Arc;

use ::bytes::Bytes;
use arrow_array::types::UInt32Type;
use arrow_array::{Array, ArrayRef, DictionaryArray, PrimitiveArray, UInt32Array, new_null_array};
use arrow_buffer::NullBuffer;
use arrow_select::take::take;
use pilaster_core::dataset::DEFAULT_BATCH_SIZE;
use pilaster_core::validity::{self, Validity};
use pilaster_core::views::{ByteKind, Strings};
use pilaster_core::{Error, Limits, Result};
use pilaster_encoding::rle;

use super::cells::Cell;
use super::column_meta::starrocks;
use super::page::Page;
use super::types::Encoding;
use crate::messages::required;

pub(crate) use bytes::decode_plain as decode_plain_bytes;

use shuffled::Shuffled;

/// The entries of a DICT column.
pub(crate) type Words = ArrayRef;

/// Finds the entries of a DICT column. Pages of plain strings do without them.
pub(crate) type FindWords<'a> = &'a dyn Fn() -> Result<Words>;

/// What a decoder must know of the column around the page.
#[derive(Debug, Clone)]
pub(crate) struct PageShape {
    pub cell: Cell,
    pub encoding: Encoding,
    pub limits: Limits,
}

/// How dictionary-coded strings leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// As the column's type.
    Wanted,
    /// As an Arrow dictionary where the page has one: for comparing once per entry.
    Codes,
}

/// One data page, ready to give its rows.
#[derive(Debug)]
pub(crate) struct DecodedPage {
    pub first_row: u64,
    pub rows: usize,
    /// For pages of offsets: where the items after the last row of the page begin.
    pub next_item: Option<u64>,
    /// What it takes in memory, without the entries of a dictionary.
    pub bytes: u64,
    validity: Option<Validity>,
    values: Values,
}

/// The values that are not null.
#[derive(Debug)]
enum Values {
    Dense(ArrayRef),
    Shuffled(Shuffled),
    /// Strings that leave as they are stored.
    Strings(ByteKind, Strings),
    Codes {
        codes: Shuffled,
        words: Words,
    },
}

impl PageShape {
    /// Decodes a page; `words` is asked for the dictionary if the page needs it.
    pub fn decode(&self, page: &Page, words: FindWords<'_>) -> Result<DecodedPage> {
        let footer = required(page.footer.data_page_footer, "data_page_footer")?;
        if footer.format_version.is_some() {
            return Err(starrocks());
        }
        let first_row = required(footer.first_ordinal, "first_ordinal")?;
        let num_values = required(footer.num_values, "num_values")?;
        let rows = u32::try_from(num_values)
            .map_err(|_| Error::corrupt("at most 2^32 values in a page", num_values))?
            as usize;
        let null_bytes = footer.nullmap_size.unwrap_or(0) as usize;
        let split = page.body.len().checked_sub(null_bytes).ok_or_else(|| {
            Error::corrupt(format!("a null map of at most {} bytes", page.body.len()), null_bytes)
        })?;
        let validity = match null_bytes {
            0 => None,
            _ => Some(self.null_map(page.body.get(split..).unwrap_or_default(), rows)?),
        };
        let present = validity.as_ref().map_or(rows, Validity::ones);
        let values = self.decode_values(&page.body.slice(..split), present, words)?;
        let next_item = footer.next_array_item_ordinal;
        // Dense values are beside the page, the others point into it.
        let dense = match &values {
            Values::Dense(array) => array.get_buffer_memory_size() as u64,
            Values::Strings(_, strings) => {
                (strings.bytes.len() as u64).saturating_add(size_of_val(strings.offsets.as_slice()) as u64)
            }
            Values::Shuffled(_) | Values::Codes { .. } => page.body.len() as u64,
        };
        let bytes = dense.saturating_add(rows.div_ceil(8) as u64);
        Ok(DecodedPage { first_row, rows, next_item, bytes, validity, values })
    }

    /// RLE bits, 1 for a null, turned around.
    fn null_map(&self, stream: &[u8], rows: usize) -> Result<Validity> {
        self.limits.decoded(rows.div_ceil(8) as u64)?;
        let mut bytes = Vec::with_capacity(rows.div_ceil(8));
        let nulls = rle::decode_bitmap(stream, rows, &mut bytes)?;
        for byte in &mut bytes {
            *byte = !*byte;
        }
        Ok(Validity::new(bytes, rows, rows.saturating_sub(nulls)))
    }

    /// Exactly `count` values.
    fn decode_values(&self, encoded: &Bytes, count: usize, words: FindWords<'_>) -> Result<Values> {
        match self.cell.width() {
            Some(width) if self.encoding == Encoding::BitShuffle => {
                Ok(Values::Shuffled(Shuffled::open(encoded, width, count, &self.limits)?))
            }
            Some(width) => Ok(Values::Dense(fixed::decode(self, encoded, width, count)?)),
            None if self.encoding == Encoding::Dict => self.decode_dictionary(encoded, count, words),
            None => self.strings(bytes::decode(encoded, self.encoding, count, &self.limits)?),
        }
    }

    fn strings(&self, strings: Strings) -> Result<Values> {
        Ok(match self.cell.stored_kind() {
            Some(kind) => Values::Strings(kind, strings),
            None => {
                Values::Dense(self.cell.bytes_array(strings.bytes.clone(), &strings.offsets, &self.limits)?)
            }
        })
    }

    /// `u32 inner encoding | codes or plain strings`
    fn decode_dictionary(&self, encoded: &Bytes, count: usize, words: FindWords<'_>) -> Result<Values> {
        let inner = word(encoded, 0, "an inner encoding")?;
        let rest = encoded.slice(size_of::<u32>()..);
        let refuse = |found: &dyn std::fmt::Display| Error::corrupt("codes or plain strings", found);
        let inner = i32::try_from(inner)
            .ok()
            .and_then(|inner| Encoding::from_number(inner).ok())
            .ok_or_else(|| refuse(&format!("encoding {inner}")))?;
        match inner {
            Encoding::Dict => {
                let codes = Shuffled::open(&rest, size_of::<u32>(), count, &self.limits)?;
                Ok(Values::Codes { codes, words: words()? })
            }
            plain @ (Encoding::Plain | Encoding::PlainV2 | Encoding::PlainV3) => {
                self.strings(bytes::decode(&rest, plain, count, &self.limits)?)
            }
            other => Err(refuse(&other)),
        }
    }
}

impl DecodedPage {
    pub fn row_range(&self) -> Range<u64> {
        self.first_row..self.first_row.saturating_add(self.rows as u64)
    }

    /// Whether its values are entries of the dictionary.
    pub fn has_codes(&self) -> bool {
        matches!(self.values, Values::Codes { .. })
    }

    /// The dictionary of its values, if they have one.
    pub fn words(&self) -> Option<&Words> {
        match &self.values {
            Values::Codes { words, .. } => Some(words),
            _ => None,
        }
    }

    /// How many rows are null.
    pub fn nulls(&self) -> usize {
        self.validity.as_ref().map_or(0, |validity| validity.len().saturating_sub(validity.ones()))
    }

    /// Bytes that an array of this page's rows keeps in memory beside its own: those of strings, which are views over the page.
    pub fn held_bytes(&self) -> u64 {
        match &self.values {
            Values::Strings(_, strings) => strings.bytes.len() as u64,
            _ => 0,
        }
    }

    /// Makes every value once, so that nothing in the page can fail later.
    pub fn check(&mut self, cell: &Cell) -> Result<()> {
        let mut start = 0;
        while start < self.rows {
            let end = start.saturating_add(DEFAULT_BATCH_SIZE).min(self.rows);
            self.read(start..end, Form::Wanted, cell)?;
            start = end;
        }
        Ok(())
    }

    /// The page's strings and which of them are the rows `range`, if they leave as they are stored and none of them is null.
    pub fn plain_strings(&mut self, range: Range<usize>) -> Option<(ByteKind, &Strings, Range<usize>)> {
        let Values::Strings(kind, strings) = &self.values else { return None };
        match validity::read(self.validity.as_mut(), range) {
            (None, dense) => Some((*kind, strings, dense)),
            (Some(_), _) => None,
        }
    }

    /// The rows `range` of this page (counted from its first row) as an array.
    pub fn read(&mut self, range: Range<usize>, form: Form, cell: &Cell) -> Result<ArrayRef> {
        if range.end > self.rows || range.start > range.end {
            return Err(Error::invalid(format!("rows {range:?} of a page of {} rows", self.rows)));
        }
        let (nulls, dense) = validity::read(self.validity.as_mut(), range.clone());
        if nulls.is_some() && dense.is_empty() {
            return Ok(new_null_array(&cell.arrow(), range.len()));
        }
        match &self.values {
            Values::Dense(array) => with_nulls(array.slice(dense.start, dense.len()), nulls),
            Values::Shuffled(cells) => with_nulls(cell.fixed_array(cells.cells(dense)?)?, nulls),
            Values::Strings(kind, strings) => strings.read(*kind, &dense, nulls),
            Values::Codes { codes, words } => {
                let dense = codes.codes(dense, words.len())?;
                let codes = match nulls {
                    None => dense,
                    Some(nulls) => spread(&dense, nulls),
                };
                Ok(match form {
                    Form::Codes => {
                        Arc::new(DictionaryArray::<UInt32Type>::try_new(codes, Arc::clone(words))?)
                    }
                    Form::Wanted => take(words, &codes, None)?,
                })
            }
        }
    }
}

/// Puts dense values where `nulls` has one.
fn with_nulls(dense: ArrayRef, nulls: Option<NullBuffer>) -> Result<ArrayRef> {
    match nulls {
        None => Ok(dense),
        Some(nulls) => Ok(take(&dense, &ranks(nulls), None)?),
    }
}

/// For each row the position of its value among those that are not null.
fn ranks(nulls: NullBuffer) -> UInt32Array {
    let mut positions = vec![0u32; nulls.len()];
    let mut next = 0u32;
    for row in nulls.valid_indices() {
        if let Some(slot) = positions.get_mut(row) {
            *slot = next;
        }
        next = next.wrapping_add(1);
    }
    PrimitiveArray::new(positions.into(), Some(nulls))
}

/// Puts dense codes where `nulls` has a value.
fn spread(dense: &UInt32Array, nulls: NullBuffer) -> UInt32Array {
    let mut spread = vec![0u32; nulls.len()];
    for (row, code) in nulls.valid_indices().zip(dense.values()) {
        if let Some(slot) = spread.get_mut(row) {
            *slot = *code;
        }
    }
    PrimitiveArray::new(spread.into(), Some(nulls))
}

/// A little-endian word at `at`.
pub(crate) fn word(bytes: &[u8], at: usize, what: &str) -> Result<u32> {
    bytes.get(at..).and_then(|rest| rest.first_chunk::<4>()).map(|four| u32::from_le_bytes(*four)).ok_or_else(
        || {
            Error::corrupt(
                format!("{what} at byte {at} of the page"),
                format!("a page of {} bytes", bytes.len()),
            )
        },
    )
}

/// Refuses another number of values than the page has rows that are not null.
fn check_count(found: usize, expected: usize) -> Result<()> {
    if found == expected {
        return Ok(());
    }
    Err(Error::corrupt(format!("{expected} values, one for each row that is not null"), found))
}
