//! Sub-blocks behind a header, as Kudu and Doris store them.

use std::ops::Range;

use super::{SubBlocks, compress_lz4};
use crate::{DecodeError, Result};

const GROUP: usize = 8;

/// Where everything in a block lies.
///
/// ```text
/// | u32 count | u32 size | u32 count rounded up to 8 | u32 bytes of an element | sub-blocks |
/// ```
///
/// All little-endian. The size is that of all this and of what stands before the header: Kudu puts the ordinal of the first row
/// there, Doris nothing.
///
/// ```
/// use pilaster_encoding::bitshuffle::ShuffledBlock;
///
/// let mut bytes = 7u32.to_le_bytes().to_vec();
/// ShuffledBlock::append(2, &mut vec![1, 0, 2, 0, 3, 0], 4, &mut bytes)?;
///
/// let block = ShuffledBlock::open(&bytes, 4)?;
/// assert_eq!((block.count(), block.element_size()), (3, 2));
/// let mut some = Vec::new();
/// block.decompress(&bytes, 1..3, |elements| some.extend_from_slice(elements))?;
/// assert_eq!(some, [2, 0, 3, 0]);
/// # Ok::<(), pilaster_encoding::DecodeError>(())
/// ```
#[derive(Debug, Clone)]
pub struct ShuffledBlock {
    count: usize,
    /// Where the sub-blocks begin.
    start: usize,
    blocks: SubBlocks,
}

impl ShuffledBlock {
    /// Bytes of the header.
    pub const HEADER_BYTES: usize = 16;

    /// Checks the header at byte `header` of `bytes`, which must end where the block does, and finds its sub-blocks.
    ///
    /// # Errors
    /// If the header is cut off, contradicts itself or the length of `bytes`, or the sub-blocks do not fit it.
    pub fn open(bytes: &[u8], header: usize) -> Result<Self> {
        let rest = bytes.get(header..).unwrap_or_default();
        let Some((words, packed)) = rest.split_first_chunk::<{ Self::HEADER_BYTES }>() else {
            let found = format!("{} bytes", rest.len());
            return Err(DecodeError::new(header, "the header of a shuffled block", found));
        };
        let mut words = words.as_chunks::<4>().0.iter().map(|four| u32::from_le_bytes(*four) as usize);
        let mut word = || words.next().unwrap_or_default();
        let (count, size, padded, element_size) = (word(), word(), word(), word());
        if size != bytes.len() {
            let expected = format!("a size of {} bytes", bytes.len());
            return Err(DecodeError::new(header.saturating_add(4), expected, size.to_string()));
        }
        if Some(padded) != count.checked_next_multiple_of(GROUP) {
            let expected = format!("{count} elements, filled up to a multiple of {GROUP}");
            return Err(DecodeError::new(header.saturating_add(8), expected, padded.to_string()));
        }
        let start = header.saturating_add(Self::HEADER_BYTES);
        let blocks = SubBlocks::locate(element_size, packed, padded).map_err(|error| error.shifted(start))?;
        Ok(Self { count, start, blocks })
    }

    /// Number of elements, without those that fill up the last group.
    #[must_use]
    pub fn count(&self) -> usize {
        self.count
    }

    /// Bytes of an element.
    #[must_use]
    pub fn element_size(&self) -> usize {
        self.blocks.element_size()
    }

    /// As [`SubBlocks::decompress`]; `bytes` are those that were opened.
    ///
    /// # Errors
    /// If the range leaves the elements or a sub-block is malformed.
    pub fn decompress(&self, bytes: &[u8], range: Range<usize>, sink: impl FnMut(&[u8])) -> Result<()> {
        if range.end > self.count {
            let expected = format!("elements of 0..{}", self.count);
            return Err(DecodeError::new(self.start, expected, format!("{range:?}")));
        }
        let packed = bytes.get(self.start..).unwrap_or_default();
        self.blocks.decompress(packed, range, sink).map_err(|error| error.shifted(self.start))
    }

    /// Appends a block of `elements`, which are filled up with zeros to a whole group. The last `before` bytes of `out` are
    /// counted to its size.
    ///
    /// # Errors
    /// If the element size is none of the module's, or the block is larger than its header can say.
    pub fn append(
        element_size: usize,
        elements: &mut Vec<u8>,
        before: usize,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let count = elements.len().checked_div(element_size).unwrap_or_default();
        let padded = count.next_multiple_of(GROUP);
        elements.resize(padded.saturating_mul(element_size), 0);
        let header = out.len();
        out.resize(header.saturating_add(Self::HEADER_BYTES), 0);
        compress_lz4(element_size, elements, out)?;
        let size = out.len().saturating_sub(header).saturating_add(before);
        let slots = out.get_mut(header..).unwrap_or_default().as_chunks_mut::<4>().0.iter_mut();
        for (slot, number) in slots.zip([count, size, padded, element_size]) {
            let number = u32::try_from(number)
                .map_err(|_| DecodeError::new(header, "a block of at most 4 GiB", number.to_string()))?;
            *slot = number.to_le_bytes();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(crate::test_config())]
        #[test]
        fn what_was_appended_is_opened(
            elements in prop::collection::vec(any::<u32>(), 0..3000),
            before in 0usize..9,
            cut: prop::sample::Index,
        ) {
            let mut bytes: Vec<u8> = elements.iter().flat_map(|element| element.to_le_bytes()).collect();
            let values = bytes.clone();
            let mut out = vec![7; before];
            ShuffledBlock::append(4, &mut bytes, before, &mut out).unwrap();
            let block = ShuffledBlock::open(&out, before).unwrap();
            prop_assert_eq!((block.count(), block.element_size()), (elements.len(), 4));
            let start = cut.index(elements.len() + 1);
            let mut found = Vec::new();
            block.decompress(&out, start..elements.len(), |piece| found.extend_from_slice(piece)).unwrap();
            prop_assert_eq!(&found, &values[start * 4..]);
            let beyond = block.decompress(&out, 0..elements.len() + 1, |_| ());
            prop_assert!(beyond.is_err());
            prop_assert!(ShuffledBlock::open(&out[..out.len() - 1], before).is_err());
        }

        #[test]
        fn any_bytes_are_opened_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..60), header in 0usize..70) {
            if let Ok(block) = ShuffledBlock::open(&bytes, header) {
                let _ = block.decompress(&bytes, 0..block.count(), |_| ());
            }
        }
    }
}
