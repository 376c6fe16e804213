//! BIT_SHUFFLE blocks: numbers, and the codewords of DICT blocks.
//!
//! ```text
//! | u32 ordinal | u32 count | u32 bytes of all this | u32 count rounded up to 8 | u32 width | sub-blocks |
//! ```
//!
//! Sub-blocks are decompressed when a batch asks for their values, not before: a batch of few rows costs few sub-blocks, and
//! values go from the cache straight into the batch.

use std::ops::Range;

use arrow_array::types::{UInt8Type, UInt16Type, UInt32Type};
use arrow_array::{Array, ArrayRef, DictionaryArray, PrimitiveArray, new_null_array};
use arrow_buffer::{Buffer, MutableBuffer, NullBuffer};
use arrow_schema::DataType;
use arrow_select::take::take;
use bytes::Bytes;
use pilaster_core::{Error, Result};
use pilaster_encoding::bitshuffle::SubBlocks;
use std::sync::Arc;

use super::fixed::spread;
use super::numbers::Numbers;
use super::{BlockShape, BlockStart, Form, Words, word};
use crate::cfile::arrow_types::Target;

/// Bytes of the BIT_SHUFFLE header.
pub(crate) const SHUFFLE_HEADER_BYTES: usize = 20;

/// The values of a BIT_SHUFFLE block, still packed.
#[derive(Debug)]
pub(crate) struct Shuffled {
    packed: Bytes,
    blocks: SubBlocks,
}

/// Checks the header of a BIT_SHUFFLE block and finds its sub-blocks.
pub(super) fn open(shape: &BlockShape, encoded: &Bytes) -> Result<(BlockStart, Shuffled)> {
    let ordinal = word(encoded, 0, "an ordinal")?;
    let count = shape.check_count(u64::from(word(encoded, 4, "a count")?))?;
    let size = word(encoded, 8, "a size")? as usize;
    let padded = word(encoded, 12, "a padded count")? as usize;
    let element_size = word(encoded, 16, "an element size")? as usize;
    if size != encoded.len() {
        return Err(Error::corrupt(format!("a size of {} bytes", encoded.len()), size));
    }
    if padded != count.next_multiple_of(8) {
        return Err(Error::corrupt(format!("{} elements with padding", count.next_multiple_of(8)), padded));
    }
    if !matches!(element_size, 1 | 2 | 4 | 8 | 16) {
        return Err(Error::corrupt("elements of 1, 2, 4, 8 or 16 bytes", element_size));
    }
    shape.limits.decoded((padded as u64).saturating_mul(element_size as u64))?;
    let packed = encoded.slice(SHUFFLE_HEADER_BYTES.min(encoded.len())..);
    let blocks = SubBlocks::locate(element_size, &packed, padded)?;
    Ok((BlockStart { ordinal, count }, Shuffled { packed, blocks }))
}

impl Shuffled {
    /// Bytes of a value.
    pub fn width(&self) -> usize {
        self.blocks.element_size()
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
            None => self.blocks.decompress(&self.packed, dense, |stored| numbers.push(stored))?,
            Some(nulls) => numbers.push(&self.stored(dense, Some(nulls))?),
        }
        numbers.finish(rows, nulls, target)
    }

    /// The values `dense` as they are stored, spread over the rows of `nulls` if there are nulls.
    fn stored(&self, dense: Range<usize>, nulls: Option<&NullBuffer>) -> Result<Buffer> {
        let mut buffer = MutableBuffer::with_capacity(dense.len().saturating_mul(self.width()));
        self.blocks.decompress(&self.packed, dense, |stored| buffer.extend_from_slice(stored))?;
        Ok(match nulls {
            None => buffer.into(),
            Some(nulls) => spread(&buffer.into(), self.width(), nulls),
        })
    }

    /// The words that the codewords `dense` stand for.
    pub fn read_words(
        &self,
        dense: Range<usize>,
        nulls: Option<NullBuffer>,
        words: &Words,
        form: Form,
        target: &Target,
    ) -> Result<ArrayRef> {
        // Arrow has no way from words to fixed-size values, which a comparison would need.
        let form = if matches!(target.arrow, DataType::FixedSizeBinary(_)) { Form::Wanted } else { form };
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
    // Where all is null there may be no word at all.
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
