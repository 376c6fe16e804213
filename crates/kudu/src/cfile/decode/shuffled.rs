//! BIT_SHUFFLE blocks: numbers, and the codewords of DICT blocks.
//!
//! ```text
//! | u32 ordinal | header and sub-blocks: see `ShuffledBlock` |
//! ```
//!
//! Sub-blocks are decompressed when a batch asks for their values, not before: a batch of few rows costs few sub-blocks, and
//! values go from the cache straight into the batch.

use std::ops::Range;

use arrow_array::types::{UInt8Type, UInt16Type, UInt32Type};
use arrow_array::{Array, ArrayRef, DictionaryArray, PrimitiveArray, new_null_array};
use arrow_buffer::{Buffer, MutableBuffer, NullBuffer};
use arrow_select::take::take;
use bytes::Bytes;
use pilaster_core::{Error, Result};
use pilaster_encoding::bitshuffle::ShuffledBlock;
use std::sync::Arc;

use super::fixed::spread;
use super::numbers::Numbers;
use super::{BlockShape, BlockStart, Form, Words, word};
use crate::cfile::arrow_types::Target;

/// Bytes of the ordinal before the header.
pub(crate) const ORDINAL_BYTES: usize = size_of::<u32>();
/// Bytes of ordinal and header.
pub(crate) const SHUFFLE_HEADER_BYTES: usize = ORDINAL_BYTES + ShuffledBlock::HEADER_BYTES;

/// The values of a BIT_SHUFFLE block, still packed.
#[derive(Debug)]
pub(crate) struct Shuffled {
    bytes: Bytes,
    block: ShuffledBlock,
}

/// Checks the header of a BIT_SHUFFLE block and finds its sub-blocks.
pub(super) fn open(shape: &BlockShape, encoded: &Bytes) -> Result<(BlockStart, Shuffled)> {
    let ordinal = word(encoded, 0, "an ordinal")?;
    let block = ShuffledBlock::open(encoded, ORDINAL_BYTES)?;
    let count = shape.check_count(block.count() as u64)?;
    if !matches!(block.element_size(), 1 | 2 | 4 | 8 | 16) {
        return Err(Error::corrupt("elements of 1, 2, 4, 8 or 16 bytes", block.element_size()));
    }
    shape.limits.decoded((count as u64).saturating_mul(block.element_size() as u64))?;
    Ok((BlockStart { ordinal, count }, Shuffled { bytes: encoded.clone(), block }))
}

impl Shuffled {
    /// Bytes of a value.
    pub fn width(&self) -> usize {
        self.block.element_size()
    }

    /// The values `dense`, spread over the rows of `nulls` if there are nulls.
    pub fn read_numbers(
        &self,
        dense: Range<usize>,
        nulls: Option<NullBuffer>,
        target: &Target,
    ) -> Result<ArrayRef> {
        let rows = nulls.as_ref().map_or(dense.len(), NullBuffer::len);
        let mut numbers = Numbers::new(target, rows)?;
        match &nulls {
            None => self.block.decompress(&self.bytes, dense, |stored| numbers.push(stored))?,
            Some(nulls) => numbers.push(&self.stored(dense, Some(nulls))?),
        }
        numbers.finish(rows, nulls, target)
    }

    /// The values `dense` as they are stored, spread over the rows of `nulls` if there are nulls.
    fn stored(&self, dense: Range<usize>, nulls: Option<&NullBuffer>) -> Result<Buffer> {
        let mut buffer = MutableBuffer::with_capacity(dense.len().saturating_mul(self.width()));
        self.block.decompress(&self.bytes, dense, |stored| buffer.extend_from_slice(stored))?;
        Ok(match nulls {
            None => buffer.into(),
            Some(nulls) => spread(&buffer.into(), self.width(), nulls),
        })
    }

    /// The entries that the codewords `dense` stand for.
    pub fn read_words(
        &self,
        dense: Range<usize>,
        nulls: Option<NullBuffer>,
        words: &Words,
        form: Form,
        target: &Target,
    ) -> Result<ArrayRef> {
        let codes = self.stored(dense, nulls.as_ref())?;
        let array = match self.width() {
            1 => look_up::<UInt8Type>(codes, nulls, words, form)?,
            2 => look_up::<UInt16Type>(codes, nulls, words, form)?,
            _ => look_up::<UInt32Type>(codes, nulls, words, form)?,
        };
        if form == Form::Codes { Ok(array) } else { target.finish(array) }
    }
}

/// Words by their codes, which are used as narrow as they are stored.
fn look_up<T: arrow_array::types::ArrowDictionaryKeyType>(
    codes: Buffer,
    nulls: Option<NullBuffer>,
    words: &Words,
    form: Form,
) -> Result<ArrayRef>
where
    T::Native: Ord + Into<u32>,
{
    let codes = PrimitiveArray::<T>::new(codes.into(), nulls);
    // Where all is null there may be no entry at all.
    if codes.null_count() == codes.len() {
        return Ok(new_null_array(words.data_type(), codes.len()));
    }
    let largest = codes.values().iter().copied().max().map_or(0, Into::into);
    if largest as usize >= words.len() {
        return Err(Error::corrupt(format!("codewords below {}", words.len()), largest));
    }
    Ok(match form {
        Form::Codes => Arc::new(DictionaryArray::try_new(codes, Arc::clone(words))?),
        Form::Wanted => take(words, &codes, None)?,
    })
}
