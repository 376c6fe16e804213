//! Memory that pages are decompressed into, used again for the next page.

use std::collections::VecDeque;

use arrow_buffer::Buffer;
use pilaster_core::Result;
use pilaster_encoding::codec::Codec;

/// How many buffers are remembered that arrays may still point into: those of the page before, and of one before that while a
/// batch of both is looked at.
const REMEMBERED: usize = 2;

/// The memory of one column.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    bytes: Vec<u8>,
    shared: VecDeque<Buffer>,
}

impl Scratch {
    /// What `data` decompresses to, until the next call.
    pub fn unpack(&mut self, codec: Codec, data: &[u8], most: usize) -> Result<&[u8]> {
        codec.decompress_sized_into(data, most, &mut self.bytes)?;
        Ok(&self.bytes)
    }

    /// What `data` decompresses to, for arrays that point into it.
    pub fn unpack_shared(&mut self, codec: Codec, data: &[u8], most: usize) -> Result<Buffer> {
        let mut bytes = self.unused();
        codec.decompress_sized_into(data, most, &mut bytes)?;
        let buffer = Buffer::from_vec(bytes);
        self.shared.push_back(buffer.clone());
        Ok(buffer)
    }

    /// The memory of a buffer that nothing points into any more.
    fn unused(&mut self) -> Vec<u8> {
        for _ in 0..self.shared.len() {
            match self.shared.pop_front().map(Buffer::into_vec) {
                Some(Ok(bytes)) => return bytes,
                Some(Err(used)) => self.shared.push_back(used),
                None => break,
            }
        }
        while self.shared.len() >= REMEMBERED {
            self.shared.pop_front();
        }
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packed(text: &str) -> Vec<u8> {
        let mut packed = Vec::new();
        Codec::Snappy.compress(text.as_bytes(), &mut packed).unwrap();
        packed
    }

    #[test]
    fn memory_is_used_again_only_when_nothing_points_into_it() {
        let mut scratch = Scratch::default();
        let mut unpack = |text: &str| scratch.unpack_shared(Codec::Snappy, &packed(text), 100).unwrap();
        let first = unpack("the first");
        let place = first.as_ptr();
        let second = unpack("second");
        assert_eq!((first.as_slice(), second.as_slice()), (&b"the first"[..], &b"second"[..]));
        drop(first);
        let third = unpack("third");
        assert_eq!(third.as_ptr(), place);
        let others: Vec<_> = ["a", "b", "c", "d"].map(&mut unpack).into();
        assert_eq!((second.as_slice(), third.as_slice()), (&b"second"[..], &b"third"[..]));
        assert_eq!(others.iter().flat_map(Buffer::as_slice).copied().collect::<Vec<_>>(), b"abcd");
        assert_eq!(scratch.shared.len(), REMEMBERED);
    }

    #[test]
    fn what_is_too_long_or_damaged_is_refused() {
        let mut scratch = Scratch::default();
        assert!(scratch.unpack(Codec::Snappy, &packed("text"), 3).is_err());
        assert!(scratch.unpack_shared(Codec::Snappy, &packed("text"), 3).is_err());
        assert_eq!(scratch.unpack(Codec::Snappy, &packed("text"), 4).unwrap(), b"text");
    }
}
