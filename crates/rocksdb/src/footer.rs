//! The end of a table: what kind of file it is, and where its other parts are.
//!
//! ```text
//! version 0:      two handles, padded to 40 bytes | u64 magic
//! versions 1..5:  u8 checksum type | two handles, padded to 40 bytes | u32 version | u64 magic
//! versions 6, 7:  u8 checksum type | 3e 00 7a 00 | u32 checksum of the footer | u32 base of contexts | u32 bytes of the list of meta blocks,
//!                 which ends where the footer begins | 24 zeros | u32 version | u64 magic
//! handle:         varint offset | varint bytes, without the five bytes that follow each block
//! ```

use pilaster_core::{Error, Result};
use pilaster_encoding::varint;

use crate::checksum::{Checksum, context};

const MAGIC: u64 = 0x88e2_41b7_85f4_cff7;
const LEGACY_MAGIC: u64 = 0xdb47_7524_8b80_fb57;
/// Kinds of tables that only databases with options of their own have.
const OTHERS: [(u64, &str); 3] = [
    (0x8242_2296_63bf_9564, "a plain table"),
    (0x4f34_18eb_7a8f_13b8, "a plain table"),
    (0x9267_89d0_c5f1_7873, "a cuckoo table"),
];
const EXTENDED_MAGIC: [u8; 4] = [0x3e, 0, 0x7a, 0];
const LEGACY_BYTES: usize = 48;
/// The longest footer.
pub(crate) const MOST_BYTES: usize = 53;
/// Codec and checksum.
pub(crate) const TRAILER_BYTES: u64 = 5;
const NEWEST_VERSION: u32 = 7;

/// Where a block is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Handle {
    pub offset: u64,
    /// Without codec and checksum.
    pub bytes: u64,
}

impl Handle {
    pub fn read(bytes: &[u8], at: &mut usize) -> Result<Self> {
        Ok(Self { offset: varint::read_u64(bytes, at)?, bytes: varint::read_u64(bytes, at)? })
    }

    /// Where the next block begins.
    pub const fn end(self) -> u64 {
        self.offset.saturating_add(self.bytes).saturating_add(TRAILER_BYTES)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Footer {
    pub version: u32,
    pub checksum: Checksum,
    pub base: u32,
    pub metas: Handle,
    /// From version 6 on it is one of the meta blocks.
    pub index: Option<Handle>,
    /// Where it begins.
    pub offset: u64,
}

impl Footer {
    /// Reads it from the end of a file of `size` bytes, of which `tail` are the last ones.
    pub fn parse(tail: &[u8], size: u64) -> Result<Self> {
        let short =
            || Error::corrupt(format!("a footer of {LEGACY_BYTES} bytes"), format!("a file of {size} bytes"));
        let (_, magic) = tail.split_last_chunk::<8>().ok_or_else(short)?;
        let magic = u64::from_le_bytes(*magic);
        if let Some((_, name)) = OTHERS.iter().find(|(other, _)| *other == magic) {
            return Err(Error::unsupported(*name));
        }
        let wanted = match magic {
            MAGIC => MOST_BYTES,
            LEGACY_MAGIC => LEGACY_BYTES,
            other => {
                return Err(Error::corrupt(
                    format!("the magic number {MAGIC:016x}"),
                    format!("{other:016x}"),
                ));
            }
        };
        let footer = tail.len().checked_sub(wanted).and_then(|start| tail.get(start..)).ok_or_else(short)?;
        let offset = size.saturating_sub(wanted as u64);
        if magic == LEGACY_MAGIC {
            let (metas, index) = handles(footer)?;
            return Ok(Self {
                version: 0,
                checksum: Checksum::Crc32c,
                base: 0,
                metas,
                index: Some(index),
                offset,
            });
        }
        let (first, rest) = footer.split_first().ok_or_else(short)?;
        let checksum = Checksum::of(*first)?;
        let version = number(rest, 40);
        match version {
            1..=5 => {
                let (metas, index) = handles(rest)?;
                Ok(Self { version, checksum, base: 0, metas, index: Some(index), offset })
            }
            6..=NEWEST_VERSION => Self::parse_extended(footer, rest, version, checksum, offset),
            other if other > NEWEST_VERSION && other < 100 => {
                Err(Error::unsupported(format!("tables of format version {other}")))
            }
            other => Err(Error::corrupt(format!("a format version up to {NEWEST_VERSION}"), other)),
        }
    }

    fn parse_extended(
        footer: &[u8],
        rest: &[u8],
        version: u32,
        checksum: Checksum,
        offset: u64,
    ) -> Result<Self> {
        if !rest.starts_with(&EXTENDED_MAGIC) {
            let found = rest.get(..4).unwrap_or_default();
            return Err(Error::corrupt("3e 00 7a 00 in the footer", format!("{found:02x?}")));
        }
        let (stored, base, bytes) = (number(rest, 4), number(rest, 8), u64::from(number(rest, 12)));
        if base == 0 {
            return Err(Error::corrupt("a base of the checksums' contexts", 0));
        }
        let mut plain = footer.to_vec();
        plain.iter_mut().skip(5).take(4).for_each(|byte| *byte = 0);
        checksum.check(&plain, stored, context(base, offset))?;
        if number(rest, 32) != 0 || number(rest, 36) != 0 {
            return Err(Error::unsupported("a table of a future format"));
        }
        let start = offset.checked_sub(bytes).and_then(|start| start.checked_sub(TRAILER_BYTES));
        let start = start.ok_or_else(|| {
            Error::corrupt("meta blocks before the footer", format!("{bytes} bytes of them"))
        })?;
        Ok(Self { version, checksum, base, metas: Handle { offset: start, bytes }, index: None, offset })
    }
}

/// The list of meta blocks, and the index.
fn handles(bytes: &[u8]) -> Result<(Handle, Handle)> {
    let mut at = 0;
    let bytes = bytes.get(..40).unwrap_or_default();
    Ok((Handle::read(bytes, &mut at)?, Handle::read(bytes, &mut at)?))
}

fn number(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |four| u32::from_le_bytes(*four))
}
