//! Some elements of a shuffled block, without decompressing the others.

use std::ops::Range;

use super::{LENGTH_BYTES, block_elements, check_elements, chosen_kernel, with_scratch};
use crate::codec::lz4;
use crate::{DecodeError, Result};

/// Where the sub-blocks of a block lie, so that each can be decompressed alone.
///
/// ```
/// use pilaster_encoding::bitshuffle::{SubBlocks, compress_lz4};
///
/// let values: Vec<u8> = (0..4096u32).flat_map(u32::to_le_bytes).collect();
/// let mut packed = Vec::new();
/// compress_lz4(4, &values, &mut packed)?;
///
/// let blocks = SubBlocks::locate(4, &packed, 4096)?;
/// let mut some = Vec::new();
/// blocks.decompress(&packed, 3000..3002, |elements| some.extend_from_slice(elements))?;
/// assert_eq!(some, [0xb8, 0x0b, 0, 0, 0xb9, 0x0b, 0, 0]);
/// # Ok::<(), pilaster_encoding::DecodeError>(())
/// ```
#[derive(Debug, Clone)]
pub struct SubBlocks {
    element_size: usize,
    elements: usize,
    /// Where the length of each sub-block stands, and the end of the last.
    positions: Vec<u32>,
}

impl SubBlocks {
    /// Finds the sub-blocks of `elements` elements in `src`, which they must fill.
    ///
    /// # Errors
    /// If the element size is none of the module's, `elements` is no multiple of eight, or `src` ends before the last
    /// sub-block or goes on after it.
    pub fn locate(element_size: usize, src: &[u8], elements: usize) -> Result<Self> {
        check_elements(element_size, elements.saturating_mul(element_size))?;
        let count = elements.div_ceil(block_elements(element_size));
        if count.saturating_mul(LENGTH_BYTES) > src.len() {
            let expected = format!("{count} sub-blocks");
            return Err(DecodeError::new(src.len(), expected, format!("{} bytes", src.len())));
        }
        let mut positions = Vec::with_capacity(count.saturating_add(1));
        let mut at = 0usize;
        for _ in 0..count {
            positions.push(position(at)?);
            let rest = src.get(at..).unwrap_or_default();
            let Some((length, rest)) = rest.split_first_chunk::<LENGTH_BYTES>() else {
                let found = format!("{} bytes", rest.len());
                return Err(DecodeError::new(at, "the length of a sub-block", found));
            };
            let length = u32::from_be_bytes(*length);
            if length as usize > rest.len() {
                let expected = format!("a sub-block of at most {} bytes", rest.len());
                return Err(DecodeError::new(at, expected, length.to_string()));
            }
            at = at.saturating_add(LENGTH_BYTES).saturating_add(length as usize);
        }
        positions.push(position(at)?);
        if at != src.len() {
            let found = format!("{} more bytes", src.len().saturating_sub(at));
            return Err(DecodeError::new(at, "the end of the sub-blocks", found));
        }
        Ok(Self { element_size, elements, positions })
    }

    /// Bytes of an element.
    #[must_use]
    pub fn element_size(&self) -> usize {
        self.element_size
    }

    /// Decompresses the sub-blocks that hold the elements `range` and gives the bytes of those elements, in order and in
    /// pieces of at most one sub-block, to `sink`. `src` is what the sub-blocks were located in.
    ///
    /// # Errors
    /// If the range leaves the elements, or a sub-block is malformed or does not give the bytes it should.
    pub fn decompress(&self, src: &[u8], range: Range<usize>, mut sink: impl FnMut(&[u8])) -> Result<()> {
        if range.start > range.end || range.end > self.elements {
            let expected = format!("elements of 0..{}", self.elements);
            return Err(DecodeError::new(0, expected, format!("{range:?}")));
        }
        if range.is_empty() {
            return Ok(());
        }
        let whole = block_elements(self.element_size);
        let block_bytes = whole.saturating_mul(self.element_size);
        let first = range.start.checked_div(whole).unwrap_or_default();
        let end = range.end.div_ceil(whole);
        let located = self.positions.get(first..end.saturating_add(1)).unwrap_or_default();
        let kernel = chosen_kernel();
        with_scratch(|scratch| {
            scratch.resize(block_bytes.saturating_mul(2).max(scratch.len()), 0);
            let (rows, elements) = scratch.split_at_mut(block_bytes);
            let mut element = first.saturating_mul(whole);
            for pair in located.windows(2) {
                let &[start, end] = pair else { continue };
                let count = self.elements.saturating_sub(element).min(whole);
                let bytes = count.saturating_mul(self.element_size);
                let at = (start as usize).saturating_add(LENGTH_BYTES);
                let packed = src.get(at..end as usize).unwrap_or_default();
                let rows = rows.get_mut(..bytes).unwrap_or_default();
                let elements = elements.get_mut(..bytes).unwrap_or_default();
                lz4::decompress(packed, rows).map_err(|error| error.shifted(at))?;
                kernel.unshuffle(self.element_size, rows, elements)?;
                let from = range.start.saturating_sub(element).saturating_mul(self.element_size);
                let until = range.end.saturating_sub(element).min(count).saturating_mul(self.element_size);
                sink(elements.get(from..until).unwrap_or_default());
                element = element.saturating_add(count);
            }
            Ok(())
        })
    }
}

fn position(at: usize) -> Result<u32> {
    u32::try_from(at).map_err(|_| DecodeError::new(at, "sub-blocks of at most 4 GiB", at.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bitshuffle::{compress_lz4, decompress_lz4};
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(crate::test_config())]
        #[test]
        fn any_range_is_cut_out_of_the_whole(
            size in prop::sample::select(vec![1usize, 2, 3, 4, 8, 12, 16, 32]),
            groups in 0usize..2500,
            seed: u64,
            cuts: [prop::sample::Index; 2],
        ) {
            let elements = groups * 8;
            let values: Vec<u8> =
                (0..elements * size).map(|i| (seed.rotate_left(i as u32 / 7) as u8) & 0x1f).collect();
            let mut packed = Vec::new();
            compress_lz4(size, &values, &mut packed).unwrap();
            let blocks = SubBlocks::locate(size, &packed, elements).unwrap();
            let [a, b] = cuts.map(|cut| cut.index(elements + 1));
            let range = a.min(b)..a.max(b);
            let mut found = Vec::new();
            blocks.decompress(&packed, range.clone(), |piece| found.extend_from_slice(piece)).unwrap();
            prop_assert_eq!(&found, &values[range.start * size..range.end * size]);
        }

        #[test]
        fn any_bytes_are_located_and_decompressed_or_refused(
            bytes in prop::collection::vec(any::<u8>(), 0..200),
            size in 0usize..18,
            elements in prop_oneof![Just(8usize), Just(16), 0usize..3000, any::<usize>()],
        ) {
            if let Ok(blocks) = SubBlocks::locate(size, &bytes, elements) {
                let mut whole = vec![0; elements * size];
                let expected = decompress_lz4(size, &bytes, &mut whole);
                let mut found = Vec::new();
                let result = blocks.decompress(&bytes, 0..elements, |piece| found.extend_from_slice(piece));
                prop_assert_eq!(result.is_ok(), expected.is_ok());
                prop_assert!(result.is_err() || found == whole);
            }
        }
    }

    #[test]
    fn ranges_outside_and_bytes_left_over_are_refused() {
        let mut packed = Vec::new();
        compress_lz4(4, &[1; 64], &mut packed).unwrap();
        let blocks = SubBlocks::locate(4, &packed, 16).unwrap();
        assert!(blocks.decompress(&packed, 0..17, |_| {}).is_err());
        assert!(blocks.decompress(&packed, 16..16, |_| {}).is_ok());
        packed.push(0);
        assert!(SubBlocks::locate(4, &packed, 16).is_err());
        assert!(SubBlocks::locate(4, &packed, 12).is_err());
        assert!(SubBlocks::locate(4, &[], 8).is_err());
        assert!(SubBlocks::locate(4, &[], 0).is_ok());
    }
}
