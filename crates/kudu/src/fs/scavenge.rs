//! Finding CFiles in a container whose records are lost.
//!
//! Blocks begin at multiples of the file system's block size. Where one begins with a CFile's magic, its end is the next
//! magic with a footer before it that checks.

use std::ops::Range;
use std::sync::Arc;

use pilaster_core::Result;
use pilaster_encoding::checksum::crc32c;

use super::blocks::{BlockPlace, Container, FilePool};
use crate::cfile::{CFileMetadata, CFileReader, Version};

/// How much of a container is looked at in one piece; no CFile found may be larger.
const WINDOW_BYTES: u64 = 256 << 20;
const LONGEST_FOOTER_BYTES: usize = 65_536;

/// A CFile without an id; ids ascend with the offset in a container, so its own lies between those of its neighbours.
#[derive(Debug)]
pub(crate) struct NamelessFile {
    pub place: BlockPlace,
    pub ids: Range<u64>,
    pub metadata: CFileMetadata,
}

/// The CFiles of a container that no record covers, by offset.
pub(crate) fn nameless_files(container: &Container, pool: &FilePool) -> Result<Vec<NamelessFile>> {
    let source = pool.file(&container.data)?;
    let known = &container.known;
    let step = container.block_bytes.max(512);
    let mut found = Vec::new();
    let mut at = 0u64;
    while at < source.size() {
        if let Some((_, length)) = known.get(&at) {
            at = next_step(at.saturating_add((*length).max(1)), step);
            continue;
        }
        let head = source.read_at(at..at.saturating_add(8).min(source.size()))?;
        let mut next = at.saturating_add(step);
        if Version::of(&head).is_some() {
            let end = at.saturating_add(WINDOW_BYTES).min(source.size());
            let bytes = source.read_at(at..end)?;
            if let Some(length) = cfile_length(&bytes) {
                let place = BlockPlace { file: Arc::clone(&container.data), offset: at, length };
                if let Ok(file) = CFileReader::open(pool.block(0, &place)?) {
                    next = next_step(at.saturating_add(length), step);
                    let below = known.range(..at).next_back().map_or(0, |(_, (id, _))| id.saturating_add(1));
                    let above = known.range(at..).next().map_or(u64::MAX, |(_, (id, _))| *id);
                    found.push(NamelessFile { place, ids: below..above, metadata: file.metadata().clone() });
                }
            }
        }
        at = next;
    }
    Ok(found)
}

/// The first multiple of `step` at or after `at`.
fn next_step(at: u64, step: u64) -> u64 {
    at.checked_next_multiple_of(step).unwrap_or(u64::MAX)
}

/// The length of the CFile that `bytes` begin with.
fn cfile_length(bytes: &[u8]) -> Option<u64> {
    let magic = bytes.first_chunk::<8>()?;
    let mut from = 12;
    loop {
        let at = bytes.get(from..)?.windows(8).position(|window| window == magic)?.checked_add(from)?;
        from = at.checked_add(1)?;
        let length = u32::from_le_bytes(*bytes.get(at.checked_add(8)?..)?.first_chunk::<4>()?) as usize;
        if length == 0 || length > LONGEST_FOOTER_BYTES {
            continue;
        }
        let end = at.checked_add(12)?;
        let Some(start) = at.checked_sub(length) else { continue };
        let covered = bytes.get(start..end)?;
        let stored = start.checked_sub(4).and_then(|from| bytes.get(from..)?.first_chunk::<4>());
        let checks = stored.is_some_and(|stored| crc32c(covered) == u32::from_le_bytes(*stored));
        // Without checksums the footer itself must make sense; whoever opens the file finds out.
        if checks || crate::cfile::looks_like_footer(bytes.get(start..at)?, start as u64) {
            return Some(end as u64);
        }
    }
}
