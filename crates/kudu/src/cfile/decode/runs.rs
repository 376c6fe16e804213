//! RLE blocks of numbers.
//!
//! ```text
//! | u32 count | u32 ordinal | runs |
//! ```
//!
//! Kudu ends a block when its runs take the bytes of a block, and one run takes a handful however long it is. So runs are unrolled for
//! the batch that asks for their values, not before.

use std::ops::Range;

use arrow_buffer::{ArrowNativeType, Buffer};
use bytes::Bytes;
use pilaster_core::{Error, Limits, Result};
use pilaster_encoding::rle::{RleDecoder, RleValue};

use super::fixed::{COUNTS_BYTES, split_counts};
use super::{BlockShape, BlockStart};

/// The values of an RLE block, still as runs.
#[derive(Debug)]
pub(crate) struct Runs {
    width: usize,
    limits: Limits,
    /// Before the first value.
    first: RleDecoder<Bytes>,
    /// Before the value `next`: batches mostly follow each other.
    place: RleDecoder<Bytes>,
    next: usize,
}

impl Runs {
    /// Checks every run of a block of values of `width` bytes.
    pub fn open(shape: &BlockShape, encoded: &Bytes, width: usize) -> Result<(BlockStart, Self)> {
        if !matches!(width, 1 | 2 | 4 | 8) {
            return Err(Error::corrupt("runs of values of 1 to 8 bytes", width));
        }
        let (start, _) = split_counts(shape, encoded)?;
        // Values take time, if not memory: as many as a block of booleans may have.
        shape.limits.decoded(start.count.div_ceil(8) as u64)?;
        let bits = u32::try_from(width.saturating_mul(8)).unwrap_or(u32::MAX);
        let first = RleDecoder::new(encoded.slice(COUNTS_BYTES.min(encoded.len())..), bits)?;
        let mut last = first.clone();
        last.skip(start.count)?;
        last.finish()?;
        Ok((start, Self { width, limits: shape.limits.clone(), place: first.clone(), first, next: 0 }))
    }

    /// Bytes of a value.
    pub fn width(&self) -> usize {
        self.width
    }

    /// The values `range` as they are stored in PLAIN blocks.
    pub fn unroll(&mut self, range: Range<usize>) -> Result<Buffer> {
        self.limits.decoded(range.len().saturating_mul(self.width) as u64)?;
        if range.start < self.next {
            (self.place, self.next) = (self.first.clone(), 0);
        }
        let skipped = range.start.saturating_sub(self.next);
        // Where a read fails in the middle, the next one starts over.
        self.next = usize::MAX;
        self.place.skip(skipped)?;
        let buffer = match self.width {
            1 => self.read::<u8>(range.len()),
            2 => self.read::<u16>(range.len()),
            4 => self.read::<u32>(range.len()),
            _ => self.read::<u64>(range.len()),
        }?;
        self.next = range.end;
        Ok(buffer)
    }

    fn read<T: RleValue + ArrowNativeType>(&mut self, count: usize) -> Result<Buffer> {
        let mut values = vec![<T as Default>::default(); count];
        self.place.read(&mut values)?;
        Ok(Buffer::from_vec(values))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pilaster_encoding::rle;

    #[test]
    fn values_come_in_any_order() {
        let values: Vec<u32> =
            (0..1000).map(|row: u32| if row % 100 < 60 { row / 100 } else { row }).collect();
        let mut stream = Vec::new();
        rle::encode(&values, 32, &mut stream);
        let first = RleDecoder::new(Bytes::from(stream), 32).unwrap();
        let limits = Limits { decoded_bytes: 4000, ..Limits::default() };
        let mut runs = Runs { width: 4, limits, place: first.clone(), first, next: 0 };
        for range in [0..10, 10..500, 700..1000, 699..701, 0..0, 0..1000, 5..5, 999..1000] {
            let found = runs.unroll(range.clone()).unwrap();
            assert_eq!(found.typed_data::<u32>(), &values[range]);
        }
        assert!(runs.unroll(0..1001).unwrap_err().to_string().contains("decoded_bytes"));
        assert!(runs.unroll(990..1001).is_err());
        assert_eq!(runs.unroll(990..1000).unwrap().typed_data::<u32>(), &values[990..]);
    }
}
