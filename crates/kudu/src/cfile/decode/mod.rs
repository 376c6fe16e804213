//! From the payload of a data block to Arrow arrays.
//!
//! A block is opened once ([`DecodedBlock`]): counts, bitmap, offsets. Batches then take their rows out of it: bit-shuffled
//! values are decompressed straight into the batch that asks for them, runs unrolled, strings are views over the block. Nulls are
//! spread only where a batch asks for them, so a block of a hundred million nulls costs a bitmap.

mod bitmaps;
mod bits;
mod bytes;
mod fixed;
mod lists;
mod numbers;
mod runs;
mod shuffled;

use std::ops::Range;
use std::sync::Arc;

use ::bytes::Bytes;
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BooleanArray, new_null_array};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer};
use arrow_select::take::take;
use pilaster_core::dataset::DEFAULT_BATCH_SIZE;
use pilaster_core::validity::{self, Validity};
use pilaster_core::views::Strings;
use pilaster_core::{Error, Limits, Result, fitting};

use super::arrow_types::Target;
use super::metadata::CFileMetadata;
use super::types::{Encoding, Physical};
pub(crate) use bytes::{MODE_CODEWORDS, MODE_PLAIN, PLAIN_HEADER_BYTES, decode_plain as decode_plain_bytes};
use lists::Lists;
pub(crate) use lists::as_list_type;
pub(crate) use numbers::{number_values, one_number};
use runs::Runs;
use shuffled::Shuffled;
pub(crate) use shuffled::{ORDINAL_BYTES, SHUFFLE_HEADER_BYTES};

/// Number of values and ordinal of the first row, as every encoded block says at its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BlockStart {
    pub ordinal: u32,
    pub count: usize,
}

/// What a decoder must know of the file around the block.
#[derive(Debug, Clone)]
pub(crate) struct BlockShape {
    pub metadata: Arc<CFileMetadata>,
    pub limits: Limits,
    pub target: Target,
}

/// The entries of a DICT file.
pub(crate) type Words = ArrayRef;

/// Finds the entries of a DICT file. Blocks of plain strings do without them.
pub(crate) type FindWords<'a> = &'a dyn Fn() -> Result<Option<Words>>;

/// One data block, ready to give its rows.
#[derive(Debug)]
pub(crate) struct DecodedBlock {
    pub first_row: u64,
    pub rows: usize,
    /// What it takes in memory, about.
    pub bytes: u64,
    validity: Option<Validity>,
    values: Values,
}

/// The values that are there, without nulls.
#[derive(Debug)]
pub(crate) enum Values {
    Fixed { width: usize, bytes: Buffer },
    Shuffled(Shuffled),
    Runs(Runs),
    Bits(Buffer),
    Bytes(Strings),
    Codes { codes: Shuffled, words: Words },
    Lists(Lists),
}

impl Values {
    /// See [`DecodedBlock::held_bytes`].
    fn held_bytes(&self) -> u64 {
        match self {
            Self::Bytes(strings) => strings.bytes.len() as u64,
            Self::Lists(lists) => lists.held_bytes(),
            _ => 0,
        }
    }

    /// See [`DecodedBlock::words`].
    fn words(&self) -> Option<&Words> {
        match self {
            Self::Codes { words, .. } => Some(words),
            Self::Lists(lists) => lists.words(),
            _ => None,
        }
    }

    /// What they take besides the payload, about.
    fn bytes(&self) -> u64 {
        let bytes = match self {
            Self::Fixed { bytes, .. } | Self::Bits(bytes) => bytes.len(),
            Self::Shuffled(_) | Self::Runs(_) => 0,
            Self::Bytes(strings) => {
                strings.bytes.len().saturating_add(strings.offsets.len().saturating_mul(size_of::<u32>()))
            }
            Self::Codes { words, .. } => words.get_buffer_memory_size(),
            Self::Lists(lists) => return lists.bytes(),
        };
        bytes as u64
    }
}

/// How dictionary-coded strings leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// As the type that was asked for.
    Wanted,
    /// As an Arrow dictionary where the block has one: for comparing once per entry.
    Codes,
}

impl BlockShape {
    /// Decodes a payload; `words` is asked for the dictionary if the payload needs it.
    pub fn decode(&self, payload: &Bytes, words: FindWords<'_>) -> Result<DecodedBlock> {
        let metadata = &*self.metadata;
        if metadata.is_array {
            return self.decode_lists(payload, words);
        }
        let mut at = 0;
        let validity = if metadata.is_nullable { Some(self.read_validity(payload, &mut at)?) } else { None };
        let encoded = payload.slice(at.min(payload.len())..);
        let expected = validity.as_ref().map(Validity::ones);
        let (start, values) = self.decode_values(&encoded, words, expected)?;
        let rows = validity.as_ref().map_or(start.count, Validity::len);
        let bytes = block_bytes(payload, rows, &values);
        Ok(DecodedBlock { first_row: u64::from(start.ordinal), rows, bytes, validity, values })
    }

    /// The dense values of an encoded block. `expected` is their number, where a bitmap has told it.
    fn decode_values(
        &self,
        encoded: &Bytes,
        words: FindWords<'_>,
        expected: Option<usize>,
    ) -> Result<(BlockStart, Values)> {
        let (start, values) = match (self.metadata.data_type.physical(), self.metadata.encoding) {
            (Physical::Fixed(width), encoding) => fixed::decode(self, encoded, width, encoding)?,
            (Physical::Bool, encoding) => bits::decode(self, encoded, encoding)?,
            (Physical::Binary, Encoding::Dict) => bytes::decode_dict(self, encoded, words)?,
            (Physical::Binary, encoding) => bytes::decode(self, encoded, encoding)?,
        };
        match expected {
            Some(expected) if expected != start.count => {
                Err(Error::corrupt(format!("{expected} values, one for each set bit"), start.count))
            }
            _ => Ok((start, values)),
        }
    }

    /// Refuses a count that the file as a whole does not have.
    fn check_count(&self, count: u64) -> Result<usize> {
        if self.metadata.is_array {
            // The footer counts cells, not elements; the bytes they take are limited where they are reserved.
            return usize::try_from(count).map_err(|_| Error::corrupt("a count of elements", count));
        }
        match usize::try_from(count) {
            Ok(usable) if count <= self.metadata.num_values => Ok(usable),
            _ => Err(Error::corrupt(format!("at most {} values", self.metadata.num_values), count)),
        }
    }
}

impl DecodedBlock {
    /// All rows of this block as an array.
    pub fn read_all(&mut self, target: &Target) -> Result<ArrayRef> {
        self.read(0..self.rows, Form::Wanted, target)
    }

    /// The rows `range` of this block (counted from its first row) as an array.
    pub fn read(&mut self, range: Range<usize>, form: Form, target: &Target) -> Result<ArrayRef> {
        if range.end > self.rows || range.start > range.end {
            return Err(Error::internal(format!("rows {range:?} of a block of {} rows", self.rows)));
        }
        if let Values::Lists(lists) = &mut self.values {
            return lists.read(range, target);
        }
        let (nulls, dense) = validity::read(self.validity.as_mut(), range.clone());
        if nulls.is_some() && dense.is_empty() {
            return Ok(new_null_array(&target.arrow, range.len()));
        }
        read_values(&mut self.values, dense, nulls, form, target)
    }

    /// The block's strings and which of them are the rows `range`, if they are in plain and none of them is null.
    pub fn plain_strings(&mut self, range: Range<usize>) -> Option<(&Strings, Range<usize>)> {
        let Values::Bytes(strings) = &self.values else { return None };
        match validity::read(self.validity.as_mut(), range) {
            (None, dense) => Some((strings, dense)),
            (Some(_), _) => None,
        }
    }

    /// Bytes that an array of this block's rows keeps in memory beside its own: those of strings, which are views over the block.
    pub fn held_bytes(&self) -> u64 {
        self.values.held_bytes()
    }

    /// The dictionary of its codewords.
    pub fn words(&self) -> Option<&Words> {
        self.values.words()
    }

    /// Makes every value once, so that nothing in the block can fail later.
    pub fn check(&mut self, shape: &BlockShape) -> Result<()> {
        let decoded = shape.target.decoded_only();
        let mut start = 0;
        while start < self.rows {
            let end = start.saturating_add(DEFAULT_BATCH_SIZE).min(self.rows);
            fitting::by_halves(start..end, |rows| {
                let array = self.read(rows, Form::Wanted, &decoded)?;
                finish_all(array, shape).map(drop)
            })?;
            start = end;
        }
        Ok(())
    }
}

/// What a block takes in memory, about.
fn block_bytes(payload: &Bytes, rows: usize, values: &Values) -> u64 {
    (payload.len() as u64).saturating_add(rows.div_ceil(8) as u64).saturating_add(values.bytes())
}

/// The values of a dictionary block as an array of entries.
pub(crate) fn words_of(values: &Values, target: &Target) -> Result<Words> {
    let Values::Bytes(strings) = values else {
        return Err(Error::invalid("a dictionary without bytes"));
    };
    strings.read(target.byte_kind(), &(0..strings.len()), None)
}

/// The dense values `dense`, spread over the rows of `nulls` if there are nulls.
fn read_values(
    values: &mut Values,
    dense: Range<usize>,
    nulls: Option<NullBuffer>,
    form: Form,
    target: &Target,
) -> Result<ArrayRef> {
    match values {
        Values::Fixed { width, bytes } => fixed::read(bytes, *width, dense, nulls, target),
        Values::Shuffled(shuffled) => shuffled.read_numbers(dense, nulls, target),
        Values::Runs(runs) => {
            let count = dense.len();
            fixed::read(&runs.unroll(dense)?, runs.width(), 0..count, nulls, target)
        }
        Values::Bits(bits) => {
            let cut = BooleanBuffer::new(bits.clone(), dense.start, dense.len());
            Ok(Arc::new(match nulls {
                Some(nulls) => BooleanArray::new(bits::spread(&cut, &nulls), Some(nulls)),
                None => BooleanArray::new(cut, None),
            }))
        }
        Values::Bytes(strings) => target.finish(strings.read(target.byte_kind(), &dense, nulls)?),
        Values::Codes { codes, words } => codes.read_words(dense, nulls, words, form, target),
        Values::Lists(_) => Err(Error::internal("lists inside lists")),
    }
}

/// What was decoded, strings as views, as the type that was asked for; refused if it is too large for one batch.
pub(crate) fn finish_all(array: ArrayRef, shape: &BlockShape) -> Result<ArrayRef> {
    if shape.metadata.is_array {
        return lists::finish(array, shape);
    }
    shape.target.finish_within(array, &shape.limits)
}

/// Strings, or what was read as [`Form::Codes`], as the type that was asked for.
pub(crate) fn finish(array: ArrayRef, target: &Target) -> Result<ArrayRef> {
    match array.as_any_dictionary_opt() {
        Some(codes) if array.data_type() != &target.arrow => {
            target.finish(take(codes.values(), codes.keys(), None)?)
        }
        _ => target.finish(array),
    }
}

/// A little-endian word at `at`.
fn word(bytes: &[u8], at: usize, what: &str) -> Result<u32> {
    bytes.get(at..).and_then(|rest| rest.first_chunk::<4>()).map(|four| u32::from_le_bytes(*four)).ok_or_else(
        || {
            Error::corrupt(
                format!("{what} at byte {at} of the block"),
                format!("a block of {} bytes", bytes.len()),
            )
        },
    )
}
