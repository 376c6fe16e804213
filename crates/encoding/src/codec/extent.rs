//! Where a compressed block ends that other bytes follow.
//!
//! Formats tell how long a block is; what is left of a damaged file may not. LZ4 and Snappy are sequences of copies, of
//! which only the lengths are read here: the block ends where they add up to its content. A zlib stream has an end mark.

use crate::{DecodeError, Result};

/// Bytes of the LZ4 sequences at the start of `src` that give `content` bytes; see `lz4` for their form.
pub(super) fn lz4(src: &[u8], content: usize) -> Result<usize> {
    const MORE: usize = 15;
    const MIN_MATCH: usize = 4;
    let mut walk = Walk { src, pos: 0, made: 0, content };
    loop {
        let token = walk.byte()?;
        let literals = walk.extended(usize::from(token >> 4), MORE)?;
        walk.pass(literals)?;
        walk.make(literals)?;
        // Nothing but literals can end a block.
        if walk.made == content {
            return Ok(walk.pos);
        }
        let offset = walk.number(2)?;
        walk.check_offset(offset)?;
        let length = walk.extended(usize::from(token & 15), MORE)?;
        walk.make(length.saturating_add(MIN_MATCH))?;
    }
}

/// Bytes of the Snappy elements at the start of `src` that give `content` bytes.
///
/// ```text
/// element:  tag & 3 = 0   literals: l = tag >> 2, or 60..=63 if l follows in 1 to 4 bytes; l + 1 bytes
///           tag & 3 = 1   4 + (tag >> 2 & 7) bytes from tag >> 5 << 8 | next byte back
///           tag & 3 = 2   (tag >> 2) + 1 bytes from the next two bytes back
///           tag & 3 = 3   (tag >> 2) + 1 bytes from the next four bytes back
/// ```
#[cfg(feature = "snappy")]
pub(super) fn snappy(src: &[u8], content: usize) -> Result<usize> {
    let mut pos = 0;
    let promised = crate::varint::read_u32(src, &mut pos)?;
    if promised as usize != content {
        return Err(DecodeError::new(0, format!("{content} bytes of content"), promised.to_string()));
    }
    let mut walk = Walk { src, pos, made: 0, content };
    while walk.made < content {
        let tag = usize::from(walk.byte()?);
        let short = tag >> 2;
        if tag & 3 == 0 {
            let length = match short.checked_sub(59).filter(|bytes| *bytes > 0) {
                None => short,
                Some(bytes) => walk.number(bytes)?,
            };
            let length = length.saturating_add(1);
            walk.pass(length)?;
            walk.make(length)?;
            continue;
        }
        let (length, offset) = match tag & 3 {
            1 => ((short & 7).saturating_add(4), tag >> 5 << 8 | walk.number(1)?),
            2 => (short.saturating_add(1), walk.number(2)?),
            _ => (short.saturating_add(1), walk.number(4)?),
        };
        walk.check_offset(offset)?;
        walk.make(length)?;
    }
    Ok(walk.pos)
}

/// A place among the elements, and how much they have made so far.
struct Walk<'a> {
    src: &'a [u8],
    pos: usize,
    made: usize,
    content: usize,
}

impl Walk<'_> {
    fn cut(&self) -> DecodeError {
        DecodeError::new(self.pos, "more compressed bytes", "the end of the bytes")
    }

    fn byte(&mut self) -> Result<u8> {
        let byte = *self.src.get(self.pos).ok_or_else(|| self.cut())?;
        self.pos = self.pos.saturating_add(1);
        Ok(byte)
    }

    /// A number of so many bytes, little-endian.
    fn number(&mut self, bytes: usize) -> Result<usize> {
        let start = self.pos;
        self.pass(bytes)?;
        let stored = self.src.get(start..self.pos).unwrap_or_default();
        Ok(stored.iter().rev().fold(0, |value, byte| value << 8 | usize::from(*byte)))
    }

    /// A length whose first part was `start`: if that says so, bytes are added up to one that is not 255.
    fn extended(&mut self, start: usize, more: usize) -> Result<usize> {
        let mut length = start;
        let mut goes_on = start == more;
        while goes_on {
            let byte = self.byte()?;
            length = length.saturating_add(usize::from(byte));
            goes_on = byte == u8::MAX;
        }
        Ok(length)
    }

    fn pass(&mut self, bytes: usize) -> Result<()> {
        let end = self.pos.saturating_add(bytes);
        if end > self.src.len() {
            return Err(self.cut());
        }
        self.pos = end;
        Ok(())
    }

    fn make(&mut self, bytes: usize) -> Result<()> {
        self.made = self.made.saturating_add(bytes);
        if self.made > self.content {
            let expected = format!("{} bytes of content", self.content);
            return Err(DecodeError::new(self.pos, expected, format!("{}", self.made)));
        }
        Ok(())
    }

    fn check_offset(&self, offset: usize) -> Result<()> {
        if offset == 0 || offset > self.made {
            let expected = format!("a copy from at most {} bytes back", self.made);
            return Err(DecodeError::new(self.pos, expected, offset.to_string()));
        }
        Ok(())
    }
}
