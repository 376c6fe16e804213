//! Checkpoints and sync blocks.
//!
//! ```text
//! | "RCK1" | marker, 16 | kind u8 | flags u8 | reserved u16 | n u32 | own offset u64 | previous block's offset u64 |
//! | payload length L u32 | CRC-32 of everything before it and the payload u32 | payload, L | u32 L + 60 | "RCK1" |
//! ```
//!
//! Kind 0 is a checkpoint: the payload is the metadata of all `n` row groups written so far. Kind 1 says that row group `n - 1`
//! is complete: the payload is that row group alone.

use pilaster_core::{Error, Limits, Result, Source};
use pilaster_encoding::checksum::{crc32, crc32_append};

use crate::metadata::{FileMetadata, MARKER_BYTES, RowGroup};
use crate::thrift::Reader;

pub(super) const TAG: [u8; 4] = *b"RCK1";
/// Bytes before the payload.
pub(super) const HEAD_BYTES: usize = 52;
/// Bytes of the head that its checksum covers.
const COVERED_BYTES: usize = 48;
/// Bytes after the payload.
const TAIL_BYTES: usize = 8;

const CHECKPOINT: u8 = 0;
const ROW_GROUP: u8 = 1;

/// A block to be written.
#[derive(Debug)]
pub(crate) struct Block {
    marker: [u8; MARKER_BYTES],
    kind: u8,
    groups: usize,
    payload: Vec<u8>,
}

impl Block {
    /// The metadata of all row groups so far.
    pub fn checkpoint(marker: [u8; MARKER_BYTES], groups: usize, metadata: &FileMetadata) -> Self {
        let mut payload = Vec::new();
        metadata.write(&mut payload);
        Self { marker, kind: CHECKPOINT, groups, payload }
    }

    /// One more row group is complete.
    pub fn row_group(marker: [u8; MARKER_BYTES], groups: usize, group: &RowGroup) -> Self {
        let mut payload = Vec::new();
        group.write(&mut payload);
        Self { marker, kind: ROW_GROUP, groups, payload }
    }

    /// Its bytes at `offset`; `previous` is where the block before it begins, 0 for the first.
    pub fn encode(&self, offset: u64, previous: u64) -> Result<Vec<u8>> {
        let small =
            |value: usize| u32::try_from(value).map_err(|_| Error::invalid("a checkpoint above 4 GiB"));
        let mut bytes =
            Vec::with_capacity(self.payload.len().saturating_add(HEAD_BYTES).saturating_add(TAIL_BYTES));
        bytes.extend_from_slice(&TAG);
        bytes.extend_from_slice(&self.marker);
        bytes.extend_from_slice(&[self.kind, 0, 0, 0]);
        bytes.extend_from_slice(&small(self.groups)?.to_le_bytes());
        bytes.extend_from_slice(&offset.to_le_bytes());
        bytes.extend_from_slice(&previous.to_le_bytes());
        bytes.extend_from_slice(&small(self.payload.len())?.to_le_bytes());
        let crc = crc32_append(crc32(&bytes), &self.payload);
        bytes.extend_from_slice(&crc.to_le_bytes());
        bytes.extend_from_slice(&self.payload);
        let length = self.payload.len().saturating_add(HEAD_BYTES).saturating_add(TAIL_BYTES);
        bytes.extend_from_slice(&small(length)?.to_le_bytes());
        bytes.extend_from_slice(&TAG);
        Ok(bytes)
    }
}

/// What a block says.
#[derive(Debug, Clone)]
pub(super) enum Content {
    Checkpoint(Box<FileMetadata>),
    RowGroup(Box<RowGroup>),
    /// A kind of a later version: stepped over.
    Unknown,
}

/// A valid block in a file.
#[derive(Debug, Clone)]
pub(super) struct FoundBlock {
    pub offset: u64,
    pub end: u64,
    pub marker: [u8; MARKER_BYTES],
    /// Row groups that were complete.
    pub groups: u64,
    pub previous: u64,
    pub content: Content,
}

/// Numbers of the head after its tag.
struct Head {
    marker: [u8; MARKER_BYTES],
    kind: u8,
    groups: u32,
    offset: u64,
    previous: u64,
    length: u32,
    crc: u32,
}

impl Head {
    fn parse(bytes: &[u8]) -> Option<Self> {
        let rest = bytes.strip_prefix(&TAG)?;
        let (marker, rest) = rest.split_first_chunk()?;
        let ([kind, ..], rest) = rest.split_first_chunk::<4>()?;
        let (groups, rest) = rest.split_first_chunk()?;
        let (offset, rest) = rest.split_first_chunk()?;
        let (previous, rest) = rest.split_first_chunk()?;
        let (length, rest) = rest.split_first_chunk()?;
        let (crc, _) = rest.split_first_chunk()?;
        Some(Self {
            marker: *marker,
            kind: *kind,
            groups: u32::from_le_bytes(*groups),
            offset: u64::from_le_bytes(*offset),
            previous: u64::from_le_bytes(*previous),
            length: u32::from_le_bytes(*length),
            crc: u32::from_le_bytes(*crc),
        })
    }
}

/// The block at `offset`; `None` if there is no valid one.
///
/// # Errors
/// [`pilaster_core::ErrorKind::Io`].
pub(super) fn read(source: &dyn Source, offset: u64, limits: &Limits) -> Result<Option<FoundBlock>> {
    let size = source.size();
    let head_end = offset.saturating_add(HEAD_BYTES as u64);
    if head_end > size {
        return Ok(None);
    }
    let head_bytes = source.read_at(offset..head_end)?;
    let Some(head) = Head::parse(&head_bytes) else { return Ok(None) };
    let end = head_end.saturating_add(u64::from(head.length)).saturating_add(TAIL_BYTES as u64);
    if head.offset != offset || end > size || limits.metadata(u64::from(head.length)).is_err() {
        return Ok(None);
    }
    let bytes = source.read_at(head_end..end)?;
    let Some((payload, tail)) = bytes.split_last_chunk::<TAIL_BYTES>() else { return Ok(None) };
    let stated = tail.first_chunk().map(|length| u64::from(u32::from_le_bytes(*length)));
    let covered = head_bytes.get(..COVERED_BYTES).unwrap_or_default();
    let is_whole = stated == Some(end.saturating_sub(offset))
        && tail.ends_with(&TAG)
        && crc32_append(crc32(covered), payload) == head.crc;
    if !is_whole {
        return Ok(None);
    }
    let content = match head.kind {
        CHECKPOINT => {
            FileMetadata::parse_whole(payload).ok().map(|metadata| Content::Checkpoint(Box::new(metadata)))
        }
        ROW_GROUP => {
            let mut reader = Reader::strict(payload);
            let group = RowGroup::parse(&mut reader).ok().filter(|_| reader.position() == payload.len());
            group.map(|group| Content::RowGroup(Box::new(group)))
        }
        _ => Some(Content::Unknown),
    };
    Ok(content.map(|content| FoundBlock {
        offset,
        end,
        marker: head.marker,
        groups: u64::from(head.groups),
        previous: head.previous,
        content,
    }))
}
