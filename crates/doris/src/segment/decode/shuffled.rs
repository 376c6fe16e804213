//! BIT_SHUFFLE pages: cells of fixed width, and the codes of DICT pages.
//!
//! ```text
//! | u32 count | u32 bytes of all this | u32 count rounded up to 8 | u32 width | sub-blocks |
//! ```
//!
//! Sub-blocks are decompressed when a batch asks for their cells, not before: a batch of few rows costs few sub-blocks.

use std::ops::Range;

use arrow_array::{PrimitiveArray, UInt32Array};
use arrow_buffer::{Buffer, MutableBuffer};
use bytes::Bytes;
use pilaster_core::{Error, Limits, Result};
use pilaster_encoding::bitshuffle::SubBlocks;

use super::{check_count, word};

const HEADER_BYTES: usize = 16;

/// The cells of a page, still packed.
#[derive(Debug)]
pub(super) struct Shuffled {
    packed: Bytes,
    blocks: SubBlocks,
}

impl Shuffled {
    /// Checks the header of exactly `count` cells of `width` bytes and finds the sub-blocks.
    pub fn open(encoded: &Bytes, width: usize, count: usize, limits: &Limits) -> Result<Self> {
        check_count(word(encoded, 0, "a count")? as usize, count)?;
        let size = word(encoded, 4, "a size")? as usize;
        let padded = word(encoded, 8, "a padded count")? as usize;
        let element_size = word(encoded, 12, "an element size")? as usize;
        if size != encoded.len() {
            return Err(Error::corrupt(format!("a size of {} bytes", encoded.len()), size));
        }
        if padded != count.next_multiple_of(8) {
            let expected = format!("{} elements with padding", count.next_multiple_of(8));
            return Err(Error::corrupt(expected, padded));
        }
        if element_size != width {
            return Err(Error::corrupt(format!("elements of {width} bytes"), element_size));
        }
        limits.decoded((padded as u64).saturating_mul(width as u64))?;
        let packed = encoded.slice(HEADER_BYTES.min(encoded.len())..);
        let blocks = SubBlocks::locate(width, &packed, padded)?;
        Ok(Self { packed, blocks })
    }

    /// The bytes of the cells `range`.
    pub fn cells(&self, range: Range<usize>) -> Result<MutableBuffer> {
        let bytes = range.len().saturating_mul(self.blocks.element_size());
        let mut cells = MutableBuffer::with_capacity(bytes);
        self.blocks.decompress(&self.packed, range, |piece| cells.extend_from_slice(piece))?;
        Ok(cells)
    }

    /// The cells `range`, which are codes of a dictionary of `words` words.
    pub fn codes(&self, range: Range<usize>, words: usize) -> Result<UInt32Array> {
        let codes: UInt32Array = PrimitiveArray::new(Buffer::from(self.cells(range)?).into(), None);
        let largest = codes.values().iter().copied().max();
        match largest.filter(|code| *code as usize >= words) {
            Some(code) => Err(Error::corrupt(format!("codes below {words}"), code)),
            None => Ok(codes),
        }
    }
}
