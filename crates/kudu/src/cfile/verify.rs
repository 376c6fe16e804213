//! Looking for damage in a CFile.

use std::sync::Arc;

use pilaster_core::verify::{Finding, Severity};
use pilaster_core::{Error, Progress, VerifyDepth, VerifyReport};

use super::block::{Block, BlockStore};
use super::bloom::BloomBlock;
use super::decode::DecodedBlock;
use super::file::{CFile, DATA_PART, LocatedBlock};
use super::index::IndexTree;
use super::kinds::{CFileKind, bloom_entries};
use super::metadata::BlockPointer;
use super::verify_values::{IndexKeys, KeyCheck, check_changes, check_restarts, index_keys};

/// Looks at everything `depth` asks for.
///
/// A file that was opened without comparing checksums is opened again: header, footer, indexes and dictionary are
/// kept once they have been read.
pub(crate) fn verify(
    file: &CFile,
    kind: CFileKind,
    depth: VerifyDepth,
    progress: &dyn Progress,
) -> VerifyReport {
    if file.store.verify_checksums || file.recovered.is_some() {
        return look(file, kind, depth, progress);
    }
    match file.open_again_with_checksums() {
        Ok(strict) => look(&strict, kind, depth, progress),
        Err(error) => {
            let mut report = look(file, kind, depth, progress);
            report.findings.insert(0, Finding::from_error(&error, file.name(), None));
            report
        }
    }
}

fn look(file: &CFile, kind: CFileKind, depth: VerifyDepth, progress: &dyn Progress) -> VerifyReport {
    let store = BlockStore { verify_checksums: true, ..file.store.clone() };
    progress.set_total(file.metadata().file_bytes);
    // Where there are no checksums, only its values can tell whether a block is sound.
    let depth = match depth {
        VerifyDepth::Checksums if !file.metadata().has_checksums() => VerifyDepth::Values,
        depth => depth,
    };
    let mut check = Check {
        file,
        store,
        progress,
        report: VerifyReport { files: 1, ..VerifyReport::default() },
        seen: Vec::new(),
    };
    check.indexes();
    let blocks = check.data_blocks(kind);
    check.coverage(&blocks, kind);
    if depth >= VerifyDepth::Checksums {
        check.dictionary();
        check.blocks(kind, &blocks, depth);
    }
    check.report
}

struct Check<'a> {
    file: &'a CFile,
    store: BlockStore,
    progress: &'a dyn Progress,
    report: VerifyReport,
    /// Every block a structure points to.
    seen: Vec<BlockPointer>,
}

impl Check<'_> {
    fn found(&mut self, error: &Error, rows: Option<std::ops::Range<u64>>) {
        self.report.findings.push(Finding::from_error(error, self.file.name(), rows));
    }

    fn warn(&mut self, offset: u64, part: &str, message: String) {
        self.report.findings.push(Finding {
            severity: Severity::Warning,
            path: Arc::from(self.file.name()),
            offset,
            part: part.to_string(),
            message,
            rows: None,
        });
    }

    fn count(&mut self, pointer: BlockPointer) {
        self.report.blocks = self.report.blocks.saturating_add(1);
        self.report.bytes = self.report.bytes.saturating_add(u64::from(pointer.size));
        if self.file.metadata().has_checksums() {
            self.report.checksums = self.report.checksums.saturating_add(1);
        }
        self.progress.advance(u64::from(pointer.size));
    }

    /// Reads both trees with their checksums.
    fn indexes(&mut self) {
        let file = self.file;
        for tree in [&file.positional, &file.by_value].into_iter().flatten() {
            let (blocks, failures) = tree.blocks(&self.store);
            for block in blocks {
                self.seen.push(block.pointer);
                self.count(block.pointer);
            }
            failures.iter().for_each(|error| self.found(error, None));
            if let Err(error) = tree.entries(&self.store)
                && failures.is_empty()
            {
                self.found(&error, None);
            }
        }
        self.compare_indexes();
    }

    /// Both trees list the same data blocks.
    fn compare_indexes(&mut self) {
        let (Some(positional), Some(by_value)) = (&self.file.positional, &self.file.by_value) else { return };
        let list = |tree: &IndexTree| {
            tree.entries(&self.store).map(|all| all.into_iter().map(|e| e.pointer).collect::<Vec<_>>())
        };
        if let (Ok(a), Ok(b)) = (list(positional), list(by_value))
            && a != b
        {
            let error = Error::corrupt("the same data blocks in both indexes", "different ones").at(
                self.file.name(),
                self.file.metadata().value_index.map_or(0, |root| root.offset),
                "cfile value index",
            );
            self.found(&error, None);
        }
    }

    /// The data blocks the index names; rows only where a positional index tells them.
    fn data_blocks(&mut self, kind: CFileKind) -> Vec<LocatedBlock> {
        let file = self.file;
        if kind == CFileKind::Bloom {
            return Vec::new();
        }
        if file.positional.is_some() || file.recovered.is_some() {
            // The trees were checked before: what is wrong has been said.
            return file.located_blocks().unwrap_or_default();
        }
        match file.sequence() {
            Ok(pointers) => pointers
                .iter()
                .map(|&pointer| LocatedBlock { pointer, rows: LocatedBlock::UNKNOWN_ROWS })
                .collect(),
            Err(error) => {
                if self.report.findings.is_empty() {
                    self.found(&error, None);
                }
                Vec::new()
            }
        }
    }

    /// Every byte between header and footer belongs to exactly one block.
    fn coverage(&mut self, blocks: &[LocatedBlock], kind: CFileKind) {
        let metadata = self.file.metadata();
        if let Some(recovered) = &self.file.recovered {
            for lost in &recovered.lost {
                self.found(&lost.error(self.file.name()), None);
            }
            return;
        }
        let mut all: Vec<_> =
            blocks.iter().map(|block| block.pointer).chain(self.seen.iter().copied()).collect();
        all.extend(metadata.dictionary);
        if kind == CFileKind::Bloom {
            all.extend(self.file.sequence().unwrap_or_default());
        }
        for &pointer in &all {
            if let Err(error) = self.store.check_pointer(pointer, "cfile block pointer") {
                self.found(&error, None);
            }
        }
        if !self.report.findings.is_empty() {
            return;
        }
        all.sort_by_key(|pointer| pointer.offset);
        let mut at = metadata.blocks_start;
        for pointer in all {
            if pointer.offset != at {
                let message =
                    format!("expected a block at byte {at}, found the next one at byte {}", pointer.offset);
                self.warn(at, "cfile blocks", message);
            }
            at = pointer.end();
        }
        if at != metadata.blocks_end {
            self.warn(
                at,
                "cfile blocks",
                format!("expected blocks up to byte {}, found none", metadata.blocks_end),
            );
        }
    }

    fn dictionary(&mut self) {
        let Some(pointer) = self.file.metadata().dictionary else { return };
        self.count(pointer);
        let result = self.store.read(pointer, "cfile dictionary block").and_then(|_| self.file.words());
        if let Err(error) = result {
            self.found(&error, None);
        }
    }

    fn blocks(&mut self, kind: CFileKind, blocks: &[LocatedBlock], depth: VerifyDepth) {
        if kind == CFileKind::Bloom {
            for entry in bloom_entries(self.file).unwrap_or_default() {
                self.count(entry.pointer);
                if let Err(error) = BloomBlock::read(self.file, &entry) {
                    self.found(&error, None);
                }
            }
            return;
        }
        let mut next_row = 0;
        let looks_at_values = depth >= VerifyDepth::Values;
        let index = if looks_at_values { index_keys(self.file) } else { IndexKeys::default() };
        let mut keys = KeyCheck::new(self.file, kind, &index);
        for located in blocks {
            self.count(located.pointer);
            let known = located.is_known().then(|| located.rows.clone());
            match self.data_block(located, next_row, depth) {
                Ok((end, decoded)) => {
                    next_row = end;
                    if let Some((block, decoded)) = decoded {
                        self.beside_values(kind, &block, decoded, &index, keys.as_mut());
                    }
                }
                Err(error) => {
                    self.found(&error, known);
                    next_row = if located.is_known() { located.rows.end } else { u64::MAX };
                    keys.iter_mut().for_each(KeyCheck::skip);
                }
            }
        }
        for error in keys.iter().flat_map(KeyCheck::edges) {
            let error = error.at(self.file.name(), self.file.metadata().blocks_end, "cfile footer");
            self.found(&error, None);
        }
        let total = self.file.metadata().num_values;
        if depth >= VerifyDepth::Values && next_row != total && next_row != u64::MAX && self.report.is_sound()
        {
            let error = Error::corrupt(format!("{total} values"), next_row).at(
                self.file.name(),
                self.file.metadata().blocks_end,
                "cfile footer",
            );
            self.found(&error, None);
        }
    }

    /// Compares what stands beside the values of a block with them. The rows can be read all the same, but not found by their keys,
    /// or not by Kudu.
    fn beside_values(
        &mut self,
        kind: CFileKind,
        block: &Block,
        mut decoded: DecodedBlock,
        index: &IndexKeys,
        keys: Option<&mut KeyCheck<'_>>,
    ) {
        let pointer = block.pointer;
        let mut found = Vec::new();
        found.extend(check_restarts(self.file, &block.payload).err());
        if kind == CFileKind::Delta {
            found.extend(check_changes(self.file, index, pointer, &mut decoded).err());
        }
        found.extend(keys.and_then(|keys| keys.block(pointer, &mut decoded).err()));
        for error in found {
            self.found(&error.at(self.file.name(), pointer.offset, DATA_PART), None);
        }
    }

    /// Checks one data block; gives the row after its last, where `u64::MAX` stands for "not known", and its values if they were looked
    /// at.
    fn data_block(
        &mut self,
        located: &LocatedBlock,
        next_row: u64,
        depth: VerifyDepth,
    ) -> Result<(u64, Option<(Block, DecodedBlock)>), Error> {
        let block = self.store.read(located.pointer, DATA_PART)?;
        if depth < VerifyDepth::Values {
            return Ok((located.rows.end, None));
        }
        let mut decoded = self.file.decode(&block)?;
        let end = decoded.first_row.saturating_add(decoded.rows as u64);
        let is_expected = next_row == u64::MAX || decoded.first_row == next_row;
        let agrees = !located.is_known() || located.rows == (decoded.first_row..end);
        if !is_expected || !agrees {
            return Err(Error::corrupt(
                if agrees {
                    format!("a block from row {next_row}")
                } else {
                    format!("rows {:?}", located.rows)
                },
                format!("rows {}..{end}", decoded.first_row),
            )
            .at(self.file.name(), located.pointer.offset, DATA_PART));
        }
        decoded
            .check(&self.file.shape)
            .map_err(|error| error.at(self.file.name(), located.pointer.offset, DATA_PART))?;
        self.report.rows = self.report.rows.saturating_add(decoded.rows as u64);
        Ok((end, Some((block, decoded))))
    }
}
