//! Giving found CFiles their ids back.
//!
//! A CFile does not know its block id. Superblocks do: they name every block of a tablet and say what it is. Where a record
//! is lost, the CFile it stood for is looked for in the containers, among those no other record covers. Within a container
//! ids ascend with the offset, so the search is for the largest set of pairs (id, file) in which both ascend, each file
//! lies between neighbours of smaller and larger ids, and its footer fits what the superblock says of the block. Only if
//! there is exactly one such set are the names certain.

use std::collections::HashSet;

use pilaster_core::verify::Severity;

use super::blocks::{BlockMap, FilePool};
use super::scavenge::{NamelessFile, nameless_files};
use crate::cfile::{CFileMetadata, Encoding, KuduType, MIN_KEY};

/// Above this product of blocks and files no proof is tried that there is only one way: it would take hours.
const MOST_PAIRS_PROVEN: usize = 1 << 18;

/// What a superblock says of a block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum BlockKind {
    /// Cells of a column.
    Column {
        data_type: KuduType,
        is_nullable: bool,
        is_array: bool,
    },
    /// Cells of a column that the schema no longer has.
    DroppedColumn,
    Delta,
    Bloom,
    /// The index of a compound key.
    KeyIndex,
}

/// A block that a superblock names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WantedBlock {
    pub id: u64,
    pub kind: BlockKind,
    /// Rows of its rowset, where another block of it tells.
    pub rows: Option<u64>,
}

impl WantedBlock {
    /// Whether a CFile with this footer can be the block.
    fn fits(&self, file: &CFileMetadata) -> bool {
        let is_column = !file.is_delta_file() && file.positional_index.is_some();
        let has_rows = self.rows.is_none_or(|rows| rows == file.num_values);
        match &self.kind {
            BlockKind::Column { data_type, is_nullable, is_array } => {
                is_column
                    && has_rows
                    && (file.data_type, file.is_nullable, file.is_array)
                        == (*data_type, *is_nullable, *is_array)
            }
            BlockKind::DroppedColumn => is_column && has_rows,
            BlockKind::Delta => file.is_delta_file(),
            BlockKind::Bloom => file.is_bloom_file(),
            BlockKind::KeyIndex => {
                !file.is_delta_file()
                    && has_rows
                    && file.data_type == KuduType::Binary
                    && file.encoding == Encoding::Prefix
                    && file.positional_index.is_none()
                    && file.pair(MIN_KEY).is_some()
            }
        }
    }
}

/// Looks in the containers for the wanted blocks that no record names, and adds those it finds.
pub(crate) fn find_blocks(map: &mut BlockMap, wanted: &[WantedBlock], pool: &FilePool) {
    let mut missing: Vec<&WantedBlock> =
        wanted.iter().filter(|block| !map.places.contains_key(&block.id)).collect();
    missing.sort_by_key(|block| block.id);
    missing.dedup_by_key(|block| block.id);
    if missing.is_empty() {
        return;
    }
    let mut named_elsewhere: HashSet<u64> = HashSet::new();
    for container in map.containers.clone() {
        let files = match nameless_files(&container, pool) {
            Ok(files) => files,
            Err(error) => {
                map.report_error(&container.data, &error);
                continue;
            }
        };
        let fits = |block: &WantedBlock, file: &NamelessFile| {
            file.ids.contains(&block.id) && block.fits(&file.metadata)
        };
        let candidates: Vec<&WantedBlock> =
            missing.iter().copied().filter(|block| files.iter().any(|file| fits(block, file))).collect();
        let (pairs, is_only_way) = pair_up(candidates.len(), files.len(), |block, file| {
            candidates.get(block).zip(files.get(file)).is_some_and(|(block, file)| fits(block, file))
        });
        // A block that another container may hold as well has no certain name in either.
        for block in &candidates {
            if !named_elsewhere.insert(block.id) || !is_only_way {
                map.uncertain.insert(block.id);
            }
        }
        for (block, file) in pairs {
            let (Some(block), Some(file)) = (candidates.get(block), files.get(file)) else { continue };
            if map.places.contains_key(&block.id) {
                continue;
            }
            // A record that could not be read is not lost.
            let what = if map.unread.is_some() { "could not be read" } else { "is lost" };
            let message =
                format!("the record of block {} {what}; the block was found by its content", block.id);
            map.report(Severity::Warning, &container.data, file.place.offset, "block", message);
            map.places.insert(block.id, file.place.clone());
        }
    }
}

/// The largest set of pairs (row, column) that ascends in both and satisfies `fits`, and whether it is the only one of its
/// size.
fn pair_up(rows: usize, columns: usize, fits: impl Fn(usize, usize) -> bool) -> (Vec<(usize, usize)>, bool) {
    if rows.saturating_mul(columns) > MOST_PAIRS_PROVEN {
        return (first_fit(rows, columns, fits), false);
    }
    // longest[i][j]: how many pairs rows i.. and columns j.. allow.
    let width = columns.saturating_add(1);
    let mut longest = vec![0usize; rows.saturating_add(1).saturating_mul(width)];
    let at = |row: usize, column: usize| row.saturating_mul(width).saturating_add(column);
    let get = |longest: &[usize], row: usize, column: usize| {
        longest.get(at(row, column)).copied().unwrap_or_default()
    };
    for row in (0..rows).rev() {
        for column in (0..columns).rev() {
            let (below, right) = (row.saturating_add(1), column.saturating_add(1));
            let mut best = get(&longest, below, column).max(get(&longest, row, right));
            if fits(row, column) {
                best = best.max(get(&longest, below, right).saturating_add(1));
            }
            if let Some(cell) = longest.get_mut(at(row, column)) {
                *cell = best;
            }
        }
    }
    let mut pairs = Vec::new();
    let mut is_only_way = true;
    let (mut row, mut column) = (0, 0);
    loop {
        let target = get(&longest, row, column);
        if target == 0 {
            return (pairs, is_only_way);
        }
        // Every pair that can come first; two of them are two ways.
        let mut firsts =
            (row..rows).flat_map(|r| (column..columns).map(move |c| (r, c))).filter(|&(r, c)| {
                fits(r, c)
                    && get(&longest, r.saturating_add(1), c.saturating_add(1)).saturating_add(1) == target
            });
        let Some(first) = firsts.next() else { return (pairs, false) };
        is_only_way = is_only_way && firsts.next().is_none();
        pairs.push(first);
        (row, column) = (first.0.saturating_add(1), first.1.saturating_add(1));
    }
}

/// Each row with the first column after the last one that fits.
fn first_fit(rows: usize, columns: usize, fits: impl Fn(usize, usize) -> bool) -> Vec<(usize, usize)> {
    let (mut pairs, mut from) = (Vec::new(), 0);
    for row in 0..rows {
        if let Some(column) = (from..columns).find(|column| fits(row, *column)) {
            pairs.push((row, column));
            from = column.saturating_add(1);
        }
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Blocks and files by kind: equal letters fit.
    fn pairs(blocks: &str, files: &str) -> (Vec<(usize, usize)>, bool) {
        let (blocks, files) = (blocks.as_bytes().to_vec(), files.as_bytes().to_vec());
        pair_up(blocks.len(), files.len(), move |block, file| blocks[block] == files[file])
    }

    #[test]
    fn as_many_files_as_blocks_have_one_way() {
        assert_eq!(pairs("aab", "aab"), (vec![(0, 0), (1, 1), (2, 2)], true));
        assert_eq!(pairs("", "ab"), (vec![], true));
    }

    #[test]
    fn other_kinds_between_do_not_matter() {
        assert_eq!(pairs("ab", "acb"), (vec![(0, 0), (1, 2)], true));
        assert_eq!(pairs("adb", "ab"), (vec![(0, 0), (2, 1)], true));
    }

    #[test]
    fn one_file_for_two_blocks_is_uncertain() {
        assert!(!pairs("aa", "a").1);
        assert!(!pairs("a", "aa").1);
        assert!(!pairs("ab", "ba").1);
    }

    proptest! {
        #[test]
        fn pairs_ascend_and_fit(blocks in "[ab]{0,8}", files in "[ab]{0,8}") {
            let (found, _) = pairs(&blocks, &files);
            prop_assert!(found.windows(2).all(|w| w[0].0 < w[1].0 && w[0].1 < w[1].1));
            prop_assert!(found.iter().all(|&(b, f)| blocks.as_bytes()[b] == files.as_bytes()[f]));
        }
    }
}
