//! Numbers and texts one after another, as manifests and batches hold them.

use pilaster_core::{Error, Result};
use pilaster_encoding::varint;

/// Bytes that are read from their beginning on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    pub const fn is_at_end(&self) -> bool {
        self.at >= self.bytes.len()
    }

    pub fn byte(&mut self) -> Result<u8> {
        Ok(self.take(1)?.first().copied().unwrap_or_default())
    }

    pub fn u32(&mut self) -> Result<u32> {
        Ok(varint::read_u32(self.bytes, &mut self.at)?)
    }

    pub fn u64(&mut self) -> Result<u64> {
        Ok(varint::read_u64(self.bytes, &mut self.at)?)
    }

    /// Bytes behind their length.
    pub fn text(&mut self) -> Result<&'a [u8]> {
        let length = self.u32()? as usize;
        self.take(length)
    }

    pub fn take(&mut self, length: usize) -> Result<&'a [u8]> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let taken = rest.get(..length).ok_or_else(|| {
            Error::corrupt(format!("{length} bytes"), format!("the end after {}", rest.len()))
        })?;
        self.at = self.at.saturating_add(length);
        Ok(taken)
    }
}
