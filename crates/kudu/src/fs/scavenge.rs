//! Finding CFiles in a container whose records are lost.
//!
//! Blocks begin at multiples of the file system's block size. Where one begins with a CFile's magic, its end is the next
//! magic with a footer before it that checks.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use pilaster_core::Result;
use pilaster_core::verify::Severity;
use pilaster_encoding::checksum::crc32c;

use super::blocks::{BlockMap, BlockPlace, FilePool, NamelessBlock};
use crate::cfile::{CFileReader, Version};

/// How much of a container is looked at in one piece; no CFile found may be larger.
const WINDOW_BYTES: u64 = 256 << 20;
const LONGEST_FOOTER_BYTES: usize = 65_536;

/// Adds the CFiles of `data` that no record in `known` (offset → id, length) covers.
pub(super) fn scavenge(
    data: &Path,
    known: &BTreeMap<u64, (u64, u64)>,
    block_bytes: u64,
    pool: &FilePool,
    map: &mut BlockMap,
) {
    match find(data, known, block_bytes, pool) {
        Ok(found) => {
            if !found.is_empty() {
                let message = format!("{} CFiles were found without their records", found.len());
                map.report(Severity::Warning, data, 0, "container", message);
            }
            map.nameless.extend(found);
        }
        Err(error) => map.report_error(data, &error),
    }
}

fn find(
    data: &Path,
    known: &BTreeMap<u64, (u64, u64)>,
    block_bytes: u64,
    pool: &FilePool,
) -> Result<Vec<NamelessBlock>> {
    let source = pool.file(data)?;
    let file: Arc<Path> = Arc::from(data);
    let step = block_bytes.max(512);
    let mut found = Vec::new();
    let mut at = 0u64;
    while at < source.size() {
        if let Some((_, length)) = known.get(&at) {
            at = at.saturating_add((*length).max(1)).next_multiple_of(step);
            continue;
        }
        let head = source.read_at(at..at.saturating_add(8).min(source.size()))?;
        let mut next = at.saturating_add(step);
        if Version::of(&head).is_some() {
            let end = at.saturating_add(WINDOW_BYTES).min(source.size());
            let bytes = source.read_at(at..end)?;
            if let Some(length) = cfile_length(&bytes) {
                let place = BlockPlace { file: Arc::clone(&file), offset: at, length };
                if CFileReader::open(pool.block(0, &place)?).is_ok() {
                    next = at.saturating_add(length).next_multiple_of(step);
                    let below = known.range(..at).next_back().map_or(0, |(_, (id, _))| id.saturating_add(1));
                    let above = known.range(at..).next().map_or(u64::MAX, |(_, (id, _))| *id);
                    found.push(NamelessBlock { place, ids: below..above });
                }
            }
        }
        at = next;
    }
    Ok(found)
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
