//! Buffers for blocks, used again when nothing points into them any more.
//!
//! A scan needs a buffer for each block that is read or decompressed, and lets it go a batch later. An allocator gives such
//! memory back to the system and gets it again page by page, zeroed, a thousand times a second; and memory that was in
//! use just now is in the processor's cache. So a few buffers are kept: the one that came back last leaves first.

use std::fmt;
use std::hint::black_box;
use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

use arrow_buffer::Buffer;
use bytes::Bytes;

/// Shorter buffers are what allocators are good at.
const SHORTEST_BYTES: usize = 4 << 10;
/// Longer ones are not kept.
const LONGEST_BYTES: usize = 2 << 20;
/// Capacities are multiples of this, so that blocks of about the same size share buffers.
const STEP_BYTES: usize = 4 << 10;
/// What all kept buffers together have, at most.
const KEPT_BYTES: usize = 8 << 20;
/// How many there are at most: they are looked through one by one.
const MOST_BUFFERS: usize = 256;
/// See [`teach_allocator`].
const LESSON_BYTES: usize = 4 << 20;

static KEPT: Mutex<Kept> = Mutex::new(Kept { buffers: Vec::new(), bytes: 0 });

struct Kept {
    /// All of them initialised from end to end.
    buffers: Vec<Vec<u8>>,
    bytes: usize,
}

impl Kept {
    fn lock() -> MutexGuard<'static, Self> {
        KEPT.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The buffer that came back last, of those that are long enough and not twice as long as needed.
    fn take(&mut self, length: usize) -> Option<Vec<u8>> {
        let fits = length..=length.saturating_mul(2).max(STEP_BYTES);
        let at = self.buffers.iter().rposition(|buffer| fits.contains(&buffer.len()))?;
        let buffer = self.buffers.remove(at);
        self.bytes = self.bytes.saturating_sub(buffer.len());
        Some(buffer)
    }

    fn put(&mut self, buffer: Vec<u8>) {
        self.bytes = self.bytes.saturating_add(buffer.len());
        self.buffers.push(buffer);
        while (self.bytes > KEPT_BYTES || self.buffers.len() > MOST_BUFFERS) && !self.buffers.is_empty() {
            self.bytes = self.bytes.saturating_sub(self.buffers.remove(0).len());
        }
    }
}

/// Bytes to be written over, of which nothing is known: they may be those of an earlier block.
pub struct BlockBuffer {
    buffer: Vec<u8>,
    length: usize,
}

impl BlockBuffer {
    /// So many bytes. The caller has checked that there may be as many ([`crate::Limits`]).
    pub fn with_length(length: usize) -> Self {
        if !is_kept(length) {
            return Self { buffer: vec![0; length], length };
        }
        let kept = Kept::lock().take(length);
        let buffer = kept.unwrap_or_else(|| {
            teach_allocator();
            vec![0; length.next_multiple_of(STEP_BYTES)]
        });
        Self { buffer, length }
    }

    /// The bytes, to be shared; the buffer is free again when the last of those who share them is gone.
    pub fn into_bytes(mut self) -> Bytes {
        if is_kept(self.buffer.len()) {
            Bytes::from_owner(self)
        } else {
            std::mem::take(&mut self.buffer).into()
        }
    }

    /// As [`BlockBuffer::into_bytes`], for Arrow.
    pub fn into_buffer(self) -> Buffer {
        self.into_bytes().into()
    }
}

fn is_kept(length: usize) -> bool {
    (SHORTEST_BYTES..=LONGEST_BYTES).contains(&length)
}

/// The allocator of the GNU C library gives memory back to the system above a limit that it raises when it gets back a larger
/// piece than before. It would learn that from the blocks of a scan, were these not kept here; the arrays of a batch would then
/// be unmapped and mapped again with every batch, which costs more than decoding some columns. Once is enough, and the piece is
/// never touched.
fn teach_allocator() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| drop(black_box(Vec::<u8>::with_capacity(LESSON_BYTES))));
}

impl Drop for BlockBuffer {
    fn drop(&mut self) {
        if is_kept(self.buffer.len()) {
            Kept::lock().put(std::mem::take(&mut self.buffer));
        }
    }
}

impl AsRef<[u8]> for BlockBuffer {
    fn as_ref(&self) -> &[u8] {
        self.buffer.get(..self.length).unwrap_or_default()
    }
}

impl Deref for BlockBuffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.as_ref()
    }
}

impl DerefMut for BlockBuffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        self.buffer.get_mut(..self.length).unwrap_or_default()
    }
}

impl fmt::Debug for BlockBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BlockBuffer").field("length", &self.length).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_of_any_length_are_as_long_as_asked_for() {
        for length in [0, 1, SHORTEST_BYTES, SHORTEST_BYTES + 1, 100_000, LONGEST_BYTES, LONGEST_BYTES + 1] {
            for _ in 0..2 {
                let mut buffer = BlockBuffer::with_length(length);
                buffer.fill(7);
                let bytes = buffer.into_bytes();
                assert_eq!(bytes.len(), length);
                assert!(bytes.iter().all(|byte| *byte == 7));
            }
        }
    }

    #[test]
    fn nobody_writes_over_bytes_that_are_still_shared() {
        let mut first = BlockBuffer::with_length(50_000);
        first.fill(1);
        let part = first.into_bytes().slice(10..20);
        let mut second = BlockBuffer::with_length(50_000);
        second.fill(2);
        assert!(part.iter().all(|byte| *byte == 1));
    }

    #[test]
    fn what_is_kept_has_an_end() {
        let mut kept = Kept { buffers: Vec::new(), bytes: 0 };
        for number in 0..100u8 {
            kept.put(vec![number; 1 << 20]);
        }
        assert_eq!((kept.buffers.len(), kept.bytes), (KEPT_BYTES >> 20, KEPT_BYTES));
        assert_eq!(kept.take(1 << 20).unwrap().first(), Some(&99));
        assert!(kept.take((1 << 20) + 1).is_none() && kept.take(1 << 18).is_none());
    }
}
