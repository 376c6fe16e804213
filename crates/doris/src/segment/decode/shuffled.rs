//! BIT_SHUFFLE pages: cells of fixed width, and the codes of DICT pages. For the layout see [`ShuffledBlock`].
//!
//! Sub-blocks are decompressed when a batch asks for their cells, not before: a batch of few rows costs few sub-blocks.

use std::ops::Range;

use arrow_array::{PrimitiveArray, UInt32Array};
use arrow_buffer::{Buffer, MutableBuffer};
use bytes::Bytes;
use pilaster_core::{Error, Limits, Result};
use pilaster_encoding::bitshuffle::ShuffledBlock;

use super::check_count;

/// The cells of a page, still packed.
#[derive(Debug)]
pub(super) struct Shuffled {
    bytes: Bytes,
    block: ShuffledBlock,
}

impl Shuffled {
    /// Checks the header of exactly `count` cells of `width` bytes and finds the sub-blocks.
    pub fn open(encoded: &Bytes, width: usize, count: usize, limits: &Limits) -> Result<Self> {
        let block = ShuffledBlock::open(encoded, 0)?;
        check_count(block.count(), count)?;
        if block.element_size() != width {
            return Err(Error::corrupt(format!("elements of {width} bytes"), block.element_size()));
        }
        limits.decoded((count as u64).saturating_mul(width as u64))?;
        Ok(Self { bytes: encoded.clone(), block })
    }

    /// The bytes of the cells `range`.
    pub fn cells(&self, range: Range<usize>) -> Result<MutableBuffer> {
        let bytes = range.len().saturating_mul(self.block.element_size());
        let mut cells = MutableBuffer::with_capacity(bytes);
        self.block.decompress(&self.bytes, range, |piece| cells.extend_from_slice(piece))?;
        Ok(cells)
    }

    /// The cells `range`, which are codes of a dictionary of `words` entries.
    pub fn codes(&self, range: Range<usize>, words: usize) -> Result<UInt32Array> {
        let codes: UInt32Array = PrimitiveArray::new(Buffer::from(self.cells(range)?).into(), None);
        let largest = codes.values().iter().copied().max();
        match largest.filter(|code| *code as usize >= words) {
            Some(code) => Err(Error::corrupt(format!("codes below {words}"), code)),
            None => Ok(codes),
        }
    }
}
