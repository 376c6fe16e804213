//! Finding blocks in a file, forwards and backwards, in constant memory.

use pilaster_core::{Limits, Result, SourceRef};

use super::block::{FoundBlock, TAG, read};
use crate::metadata::MARKER_BYTES;

/// Bytes looked at together.
const STEP_BYTES: u64 = 1 << 20;

/// Every valid block, in file order.
pub(super) fn all_blocks(source: &SourceRef, limits: &Limits) -> Result<Vec<FoundBlock>> {
    let mut blocks = Vec::new();
    let mut from = 0u64;
    while let Some(at) = find_forwards(source, &TAG, from)? {
        match read(source.as_ref(), at, limits)? {
            Some(block) => {
                from = block.end;
                blocks.push(block);
            }
            // The tag also stands at the end of each block, and may stand in any value.
            None => from = at.saturating_add(1),
        }
    }
    Ok(blocks)
}

/// The last valid block with this marker that ends at or before `end`.
pub(super) fn last_block_before(
    source: &SourceRef,
    marker: &[u8; MARKER_BYTES],
    end: u64,
    limits: &Limits,
) -> Result<Option<FoundBlock>> {
    let pattern = [TAG.as_slice(), marker].concat();
    let mut end_of_search = end;
    while let Some(at) = find_backwards(source, &pattern, end_of_search)? {
        if let Some(block) = read(source.as_ref(), at, limits)?.filter(|block| block.end <= end) {
            return Ok(Some(block));
        }
        // Occurrences may overlap, though not those of a tag.
        end_of_search = at.saturating_add(pattern.len() as u64).saturating_sub(1);
    }
    Ok(None)
}

fn find_forwards(source: &SourceRef, pattern: &[u8], from: u64) -> Result<Option<u64>> {
    let overlap = (pattern.len() as u64).saturating_sub(1);
    let mut start = from;
    while start < source.size() {
        let end = start.saturating_add(STEP_BYTES).saturating_add(overlap).min(source.size());
        let bytes = source.read_at(start..end)?;
        if let Some(at) = position(&bytes, pattern) {
            return Ok(Some(start.saturating_add(at as u64)));
        }
        start = start.saturating_add(STEP_BYTES);
    }
    Ok(None)
}

/// The last occurrence that ends at or before `end`.
fn find_backwards(source: &SourceRef, pattern: &[u8], end: u64) -> Result<Option<u64>> {
    let overlap = (pattern.len() as u64).saturating_sub(1);
    let mut end = end.min(source.size());
    loop {
        let start = end.saturating_sub(STEP_BYTES);
        let bytes = source.read_at(start..end)?;
        if let Some(at) = last_position(&bytes, pattern) {
            return Ok(Some(start.saturating_add(at as u64)));
        }
        if start == 0 {
            return Ok(None);
        }
        end = start.saturating_add(overlap);
    }
}

fn position(bytes: &[u8], pattern: &[u8]) -> Option<usize> {
    let first = *pattern.first()?;
    let mut from = 0usize;
    while let Some(at) = bytes.get(from..)?.iter().position(|byte| *byte == first) {
        let at = from.saturating_add(at);
        if bytes.get(at..)?.starts_with(pattern) {
            return Some(at);
        }
        from = at.saturating_add(1);
    }
    None
}

fn last_position(bytes: &[u8], pattern: &[u8]) -> Option<usize> {
    let first = *pattern.first()?;
    let mut end = bytes.len().checked_sub(pattern.len())?.saturating_add(1);
    while let Some(at) = bytes.get(..end)?.iter().rposition(|byte| *byte == first) {
        if bytes.get(at..)?.starts_with(pattern) {
            return Some(at);
        }
        end = at;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use pilaster_core::source::MemorySource;
    use proptest::prelude::*;
    use std::sync::Arc;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn both_directions_find_what_windows_find(bytes in prop::collection::vec(0u8..3, 0..60), pattern in prop::collection::vec(0u8..3, 1..4)) {
            let source: SourceRef = Arc::new(MemorySource::new("m", bytes.clone()));
            let all: Vec<u64> = bytes.windows(pattern.len()).enumerate().filter(|(_, w)| *w == pattern).map(|(at, _)| at as u64).collect();
            prop_assert_eq!(find_forwards(&source, &pattern, 0).unwrap(), all.first().copied());
            prop_assert_eq!(find_backwards(&source, &pattern, u64::MAX).unwrap(), all.last().copied());
        }
    }
}
