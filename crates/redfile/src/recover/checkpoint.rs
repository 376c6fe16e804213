//! File metadata out of checkpoints and sync blocks.
//!
//! What is found is defined over all valid blocks of the file: the checkpoint with the most row groups, and every row group
//! that a sync block behind it tells. To find it, it is enough to look for the last block and to follow the links backwards
//! to a checkpoint; only where a link leads to a damaged block the bytes before have to be searched.

use std::collections::{BTreeMap, HashMap};

use pilaster_core::{Limits, Result, SourceRef};

use super::Recovery;
use super::block::{Content, FoundBlock, read};
use super::report::{RecoveryReport, RecoverySource};
use super::scan::{all_blocks, last_block_before};
use super::walk::rest_at;
use crate::metadata::{FileMetadata, MAGIC, MARKER_BYTES, RowGroup};

/// Where the first block is.
const FIRST_BLOCK: u64 = MAGIC.len() as u64;

/// Recovers by blocks; `None` if there is no checkpoint.
pub(super) fn recover(source: &SourceRef, limits: &Limits) -> Result<Option<Recovery>> {
    let Some(first) = read(source.as_ref(), FIRST_BLOCK, limits)? else {
        return recover_by_full_scan(source, limits);
    };
    let marker = first.marker;
    let Some(last) = last_block_before(source, &marker, source.size(), limits)? else { return Ok(None) };
    let used = last.end;
    let mut groups = BTreeMap::new();
    let mut next = Some(last);
    while let Some(block) = next {
        match block.content {
            Content::Checkpoint(metadata) if metadata.sync_marker == Some(marker) => {
                return Ok(Some(assemble(*metadata, block.groups, groups, used, source)?));
            }
            Content::RowGroup(group) => {
                groups.entry(block.groups).or_insert(*group);
            }
            Content::Checkpoint(_) | Content::Unknown => {}
        }
        let linked = match read(source.as_ref(), block.previous, limits)? {
            Some(previous) if previous.marker == marker && previous.end <= block.offset => Some(previous),
            _ => None,
        };
        next = match linked {
            Some(previous) => Some(previous),
            None => last_block_before(source, &marker, block.offset, limits)?,
        };
    }
    Ok(None)
}

/// The same, by looking at every byte of the file.
pub(super) fn recover_by_full_scan(source: &SourceRef, limits: &Limits) -> Result<Option<Recovery>> {
    let blocks = all_blocks(source, limits)?;
    let Some(marker) = marker_of(&blocks) else { return Ok(None) };
    let own: Vec<FoundBlock> = blocks.into_iter().filter(|block| block.marker == marker).collect();
    let used = own.last().map_or(0, |block| block.end);
    let mut base: Option<(u64, FileMetadata)> = None;
    let mut groups = BTreeMap::new();
    for block in own {
        match block.content {
            Content::Checkpoint(metadata) if metadata.sync_marker == Some(marker) => {
                if base.as_ref().is_none_or(|(most, _)| block.groups >= *most) {
                    base = Some((block.groups, *metadata));
                }
            }
            Content::RowGroup(group) => {
                groups.insert(block.groups, *group);
            }
            Content::Checkpoint(_) | Content::Unknown => {}
        }
    }
    base.map(|(covered, metadata)| assemble(metadata, covered, groups, used, source)).transpose()
}

/// That of the first block if it is valid, else the most frequent one, the first of several.
fn marker_of(blocks: &[FoundBlock]) -> Option<[u8; MARKER_BYTES]> {
    if let Some(first) = blocks.first().filter(|block| block.offset == FIRST_BLOCK) {
        return Some(first.marker);
    }
    let mut counts: HashMap<[u8; MARKER_BYTES], usize> = HashMap::new();
    for block in blocks {
        let count = counts.entry(block.marker).or_default();
        *count = count.saturating_add(1);
    }
    let most = counts.values().copied().max()?;
    blocks.iter().map(|block| block.marker).find(|marker| counts.get(marker) == Some(&most))
}

/// The metadata of a checkpoint over `covered` row groups with those behind it.
fn assemble(
    mut metadata: FileMetadata,
    covered: u64,
    groups: BTreeMap<u64, RowGroup>,
    used: u64,
    source: &SourceRef,
) -> Result<Recovery> {
    let mut holes = Vec::new();
    let mut next = covered;
    for (groups_then, group) in groups.into_iter().filter(|(groups_then, _)| *groups_then > covered) {
        let ordinal = groups_then.saturating_sub(1);
        holes.extend(next..ordinal);
        next = groups_then;
        metadata.row_groups.push(group);
    }
    metadata.num_rows =
        metadata.row_groups.iter().fold(0i64, |sum, group| sum.saturating_add(group.num_rows));
    let rest = rest_at(source, used)?;
    let mut report =
        RecoveryReport::recovered(&metadata, RecoverySource::Checkpoint, used, source.size(), rest);
    report.holes = holes;
    Ok(Recovery { metadata: Some(metadata), report })
}
