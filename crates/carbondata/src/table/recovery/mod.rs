//! Opening a table of which something is lost or damaged.

mod stream;

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use pilaster_core::verify::{Finding, Severity};
use pilaster_core::{Error, Result};

use crate::file::layout::CarbonFile;
use crate::file::page::words::WordsRef;
use crate::file::recover::recover;
use crate::file::{ColumnNode, IndexFile};
use crate::legacy::{cardinalities, open_legacy};
use crate::messages::BlockIndex;
use crate::table::deletes::{Deletes, read_delta};
use crate::table::dictionary::{Damaged, read_dictionary, recover_dictionary};
use crate::table::lost::{self, Broken, Lost, is_lost, numbers};
use crate::table::names::{is_too_new, loose_name};
use crate::table::open::{open_path, sorted_names};
use crate::table::opener::{Opener, bucket_of, by_file};
use crate::table::options::CarbonTableOptions;
use crate::table::repair::is_index_of;
use crate::table::status::SegmentStatus;

/// What is noted before an [`Opener`] is there to note it.
pub(crate) struct Recovery<'a> {
    table: &'a Path,
    recovers: bool,
    pub broken: Vec<Broken>,
}

impl<'a> Recovery<'a> {
    pub fn new(table: &'a Path, options: &CarbonTableOptions) -> Self {
        Self { table, recovers: options.recovers, broken: Vec::new() }
    }

    /// What `tried` gave; if that is damage and damage is worked around, what `other` gives.
    pub fn instead<T>(
        &mut self,
        tried: Result<T>,
        lost: Lost,
        other: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        match tried {
            Err(error) if self.recovers && is_lost(&error) => {
                let finding = Finding::from_error(&error, &self.table.display().to_string(), None);
                self.broken.push(Broken { lost, finding });
                // If nothing else helps, what was wrong first says most.
                other().map_err(|_| error)
            }
            tried => tried,
        }
    }

    /// The newest update status that can be read, for a table that does not say which one counts.
    pub fn newest_deletes(&mut self) -> Result<Deletes> {
        let metadata = self.table.join("Metadata");
        let mut names: Vec<_> = sorted_names(&metadata)?
            .into_iter()
            .filter(|name| name.starts_with("tableupdatestatus-"))
            .collect();
        names.sort_by_key(|name| name.len());
        let Some(name) = names.pop() else { return Ok(Deletes::default()) };
        let lost = Lost::UpdateStatus { name: name.clone() };
        self.instead(Deletes::read(&metadata, &name), lost, || Ok(Deletes::every_delta()))
    }
}

impl Opener<'_> {
    /// Adds the data files of a segment in a folder, whatever is left of its index files.
    pub fn recover_folder(
        &mut self,
        segment: &str,
        folder: &Path,
        names: &[String],
        partitions: &[String],
    ) -> Result<()> {
        let mut indexes = Vec::new();
        for name in names {
            let Some(merged) = kind_of(name) else { continue };
            let read = open_path(&folder.join(name)).and_then(|source| match merged {
                true => IndexFile::open_merged(&source, &self.options.limits),
                false => Ok(vec![IndexFile::open(&source, &self.options.limits)?]),
            });
            match read {
                Ok(read) => indexes.extend(read.into_iter().map(|index| (name, index))),
                Err(error) if is_lost(&error) => self.lost_index(segment, folder, name, &error),
                Err(error) => return Err(error),
            }
        }
        let on_disk = lost::data_files(folder, segment).or_else(|error| match is_lost(&error) {
            true => {
                self.note(Lost::Data, &error);
                Ok(Vec::new())
            }
            false => Err(error),
        })?;
        let mut done = HashSet::new();
        for (index_name, index) in &indexes {
            let files = match by_file(index) {
                Ok(files) => files,
                Err(error) => {
                    self.lost_index(segment, folder, index_name, &error);
                    continue;
                }
            };
            for (name, blocks) in files {
                // A name that no file has may be a damaged one; a file that is gone is missed by its name.
                let is_other = !on_disk.iter().any(|known| known == name) && !on_disk.is_empty();
                if done.contains(name) || (is_other && on_disk.len() > done.len()) {
                    let error = Error::corrupt("the name of a data file", format!("{name:?}"));
                    let place = folder.join(index_name).display().to_string();
                    self.lost_index(segment, folder, index_name, &error.at(&place, 0, "carbondata index"));
                    continue;
                }
                done.insert(name.to_string());
                let path = folder.join(name);
                if let Some(file) = self.checked_file(segment, folder, index_name, index, &blocks, &path)? {
                    self.recovered_file(segment, folder, name, file, partitions)?;
                    if let Some(part) = self.parts.last_mut() {
                        part.bucket = bucket_of(name, index);
                    }
                }
            }
        }
        for name in on_disk.iter().filter(|name| !done.contains(*name)) {
            let path = folder.join(name);
            if is_too_new(name, self.options.as_of) || indexes.len() == names.len() && !indexes.is_empty() {
                // What no index names was never committed.
                continue;
            }
            if !names.iter().any(|name| kind_of(name).is_some()) {
                let index = loose_name(name).unwrap_or_else(|| format!("{name}.carbonindex"));
                let error = Error::corrupt("an index file beside the data", "none");
                let error = error.at(&folder.join(&index).display().to_string(), 0, "carbondata index");
                self.lost_index(segment, folder, &index, &error);
            }
            if let Some(file) = self.data_file(&path)? {
                self.recovered_file(segment, folder, name, file, partitions)?;
            }
        }
        Ok(())
    }

    fn lost_index(&mut self, segment: &str, folder: &Path, name: &str, error: &Error) {
        let lost = Lost::Index { segment: segment.into(), folder: folder.into(), name: name.into() };
        if !self.broken.iter().any(|broken| broken.lost == lost) {
            self.note(lost, error);
        }
    }

    fn differing_index(&mut self, segment: &str, folder: &Path, name: &str) {
        let place = folder.join(name).display().to_string();
        let error = Error::corrupt("an index that says what the footer says", "another one");
        self.lost_index(segment, folder, name, &error.at(&place, 0, "carbondata index"));
    }

    /// A data file as its footer and its index say: where they differ, the footer lies beside what it describes.
    fn checked_file(
        &mut self,
        segment: &str,
        folder: &Path,
        index_name: &str,
        index: &IndexFile,
        blocks: &[&BlockIndex],
        path: &Path,
    ) -> Result<Option<CarbonFile>> {
        if index.header.version < 3 {
            let file = self.legacy_file(path)?;
            if file.is_some() && !is_index_of(index, blocks, path, &self.options.limits) {
                self.differing_index(segment, folder, index_name);
            }
            return Ok(file);
        }
        let opened = open_path(path).and_then(|source| CarbonFile::open(source, self.options.limits.clone()));
        let indexed = self.indexed_file(path, index, blocks);
        match (opened, indexed) {
            (Ok(file), indexed) => {
                let differs = match &indexed {
                    Ok(indexed) => {
                        !file.is_same_layout(indexed) || index.header.columns != file.header.columns
                    }
                    Err(_) => true,
                };
                if differs {
                    self.differing_index(segment, folder, index_name);
                }
                self.with_dictionaries(file)
            }
            (Err(error), Ok(mut file)) if is_lost(&error) => {
                self.note(Lost::Data, &error);
                // What is there of a file that was cut is less than its index says.
                if let Ok(source) = open_path(path) {
                    file.source = source;
                }
                Ok(Some(file))
            }
            (Err(error), Err(_)) if is_lost(&error) => self.data_file(path),
            (Err(error), _) => Err(error),
        }
    }

    /// A data file of version 1 or 2; `None` if its footer cannot be read.
    fn legacy_file(&mut self, path: &Path) -> Result<Option<CarbonFile>> {
        let opened = open_path(path).and_then(|source| open_legacy(source, self.options.limits.clone()));
        match opened {
            Ok(mut file) => {
                let cardinalities = cardinalities(&file).to_vec();
                self.add_dictionaries(&mut file, &cardinalities)?;
                Ok(Some(file))
            }
            Err(error) if is_lost(&error) => {
                self.note(Lost::Data, &error);
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// A data file without an index; `None` if nothing of it can be read.
    pub fn data_file(&mut self, path: &Path) -> Result<Option<CarbonFile>> {
        let limits = &self.options.limits;
        let source = open_path(path)?;
        let error = match CarbonFile::open(Arc::clone(&source), limits.clone()) {
            Ok(file) => return self.with_dictionaries(file),
            Err(error) if !self.options.recovers || !is_lost(&error) => return Err(error),
            Err(error) => error,
        };
        if let Ok(mut file) = open_legacy(Arc::clone(&source), limits.clone()) {
            let cardinalities = cardinalities(&file).to_vec();
            self.add_dictionaries(&mut file, &cardinalities)?;
            return Ok(Some(file));
        }
        self.note(Lost::Data, &error);
        match recover(source, limits.clone()) {
            Ok(file) => self.with_dictionaries(file),
            Err(error) if is_lost(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn with_dictionaries(&mut self, mut file: CarbonFile) -> Result<Option<CarbonFile>> {
        let cardinalities =
            file.footer.as_ref().map(|footer| footer.cardinalities.clone()).unwrap_or_default();
        match self.add_dictionaries(&mut file, &cardinalities) {
            Ok(()) => Ok(Some(file)),
            Err(error) if self.options.recovers && is_lost(&error) => {
                self.note(Lost::Data, &error);
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Adds a data file without the rows that the delta files which can be read delete.
    fn recovered_file(
        &mut self,
        segment: &str,
        folder: &Path,
        name: &str,
        file: CarbonFile,
        partitions: &[String],
    ) -> Result<()> {
        let Some(deltas) = self.deletes.deltas(segment, folder, name)? else { return Ok(()) };
        let mut deleted = Vec::new();
        for path in deltas {
            match read_delta(&path, &file, &mut deleted) {
                Err(error) if is_lost(&error) => self.note(Lost::Delta, &error),
                read => read?,
            }
        }
        deleted.sort_unstable();
        deleted.dedup();
        self.add_file(segment, file, deleted, partitions)
    }

    /// The dictionary of a column; of a damaged one the words that are left.
    pub fn dictionary(&mut self, metadata: &Path, column_id: &str, node: &ColumnNode) -> Result<WordsRef> {
        match read_dictionary(metadata, column_id, node, &self.options.limits) {
            Err(error) if self.options.recovers && is_lost(&error) => {
                let (words, damaged) =
                    recover_dictionary(metadata, column_id, node, &self.options.limits).map_err(|_| error)?;
                for (which, error) in damaged {
                    let column_id = column_id.to_string();
                    let lost = match which {
                        Damaged::Meta => Lost::DictionaryMeta { column_id },
                        Damaged::Words => Lost::Dictionary,
                    };
                    self.note(lost, &error);
                }
                Ok(words)
            }
            words => words,
        }
    }

    /// Leaves out the segments that were compacted into others, for a table that does not say which were: a segment `0.1` has
    /// the rows of 0 and of those after it, as many as make up its own number of rows.
    pub fn drop_compacted(&mut self, segments: &mut Vec<SegmentStatus>) -> Result<()> {
        segments.sort_by_key(|segment| numbers(&segment.id));
        let mut results: Vec<SegmentStatus> =
            segments.iter().filter(|segment| segment.id.contains('.')).cloned().collect();
        results
            .sort_by_key(|segment| (segment.load_start.clone(), numbers(&segment.id).map(|(a, b)| (b, a))));
        // What was part of the table before each compaction, by the numbers of the ids.
        let mut alive: Vec<SegmentStatus> =
            segments.iter().filter(|segment| !segment.id.contains('.')).cloned().collect();
        for result in results {
            let Some((first, count)) = numbers(&result.id) else { continue };
            let rows = self.stored_rows(&result.id);
            let from = (first, count.saturating_sub(1));
            let (mut sum, mut merged) = (0u64, Vec::new());
            for source in alive.iter().skip_while(|other| numbers(&other.id) != Some(from)) {
                sum = sum.saturating_add(self.parts_of(&source.id).map(|part| part.live.count()).sum());
                merged.push(source.id.clone());
                if sum >= rows {
                    break;
                }
            }
            // Without sources, they have been cleaned away.
            if sum != rows && !merged.is_empty() {
                if self.options.segments.is_none() {
                    let message = format!(
                        "which segments were compacted into {} is not known without tablestatus; choose segments by their numbers",
                        result.id
                    );
                    return Err(Error::invalid(message).at(&self.table.display().to_string(), 0, ""));
                }
                merged.clear();
            }
            alive.retain(|segment| !merged.contains(&segment.id));
            alive.push(result);
            alive.sort_by_key(|segment| numbers(&segment.id));
        }
        self.parts.retain(|part| alive.iter().any(|segment| segment.id == part.segment));
        *segments = alive;
        self.drop_handed_off(segments);
        if let Some(wanted) = &self.options.segments {
            self.parts.retain(|part| wanted.contains(&part.segment));
        }
        let path = self.table.join("Metadata/tablestatus").display().to_string();
        self.broken.push(Broken {
            lost: Lost::Status,
            finding: Finding {
                severity: Severity::Warning,
                path: path.into(),
                offset: 0,
                part: "carbondata tablestatus".into(),
                message: "segments that were deleted or overwritten, and not cleaned away yet, are part of the table again".into(),
                rows: None,
            },
        });
        Ok(())
    }

    /// Leaves out streams whose rows are a segment of columns by now.
    fn drop_handed_off(&mut self, segments: &mut Vec<SegmentStatus>) {
        let streams: Vec<_> = segments.iter().filter(|segment| segment.is_stream()).cloned().collect();
        for stream in streams {
            let rows = self.stored_rows(&stream.id);
            let is_copy = |other: &&SegmentStatus| {
                numbers(&other.id) > numbers(&stream.id) && other.segment_file.is_none() && !other.is_stream()
            };
            let is_handed_off =
                segments.iter().filter(is_copy).any(|other| self.stored_rows(&other.id) == rows);
            if is_handed_off {
                segments.retain(|segment| segment.id != stream.id);
                self.parts.retain(|part| part.segment != stream.id);
            }
        }
    }

    /// The rows of a segment, with those that were deleted.
    fn stored_rows(&self, segment: &str) -> u64 {
        self.parts_of(segment).fold(0, |rows, part| rows.saturating_add(part.file.rows))
    }

    fn parts_of<'b>(&'b self, segment: &'b str) -> impl Iterator<Item = &'b crate::table::part::Part> {
        self.parts.iter().filter(move |part| part.segment == segment)
    }
}

/// Whether an index file is a merged one; `None` if it is no index file.
fn kind_of(name: &str) -> Option<bool> {
    if name.ends_with(".carbonindexmerge") {
        return Some(true);
    }
    name.ends_with(".carbonindex").then_some(false)
}
