//! Opening a table of which something is lost or damaged.

mod stream;

pub(crate) use self::stream::fault_of;

use std::collections::HashSet;
use std::sync::Arc;

use pilaster_core::verify::{Finding, Severity};
use pilaster_core::{Error, Location, Result};

use crate::file::layout::{CarbonFile, HEADER_PART};
use crate::file::page::words::{Words, WordsRef};
use crate::file::recover::{recover, unknown_rest};
use crate::file::{ColumnNode, IndexFile};
use crate::legacy::{cardinalities, open_legacy};
use crate::messages::{BlockIndex, ColumnSchema};
use crate::table::deletes::{Deletes, read_delta};
use crate::table::dictionary::{Damaged, read_dictionary, recover_dictionary};
use crate::table::lost::{self, Broken, Lost, data_folders, is_lost, numbers};
use crate::table::names::{is_too_new, loose_name};
use crate::table::open::{names_if_there, open_file, sorted_names};
use crate::table::opener::{Opener, bucket_of, by_file, kind_of};
use crate::table::options::CarbonTableOptions;
use crate::table::repair::is_index_of;
use crate::table::status::SegmentStatus;

/// What is noted before an [`Opener`] is there to note it.
pub(crate) struct Recovery<'a> {
    table: &'a Location,
    recovers: bool,
    pub broken: Vec<Broken>,
}

impl<'a> Recovery<'a> {
    pub fn new(table: &'a Location, options: &CarbonTableOptions) -> Self {
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
                let finding = Finding::from_error(&error, &self.table.to_string(), None);
                self.broken.push(Broken { lost, finding });
                // If nothing else helps, what was wrong first says most.
                other().map_err(|_| error)
            }
            tried => tried,
        }
    }

    /// The newest update status that can be read, for a table that does not say which one counts.
    pub fn newest_deletes(&mut self) -> Result<Deletes> {
        let metadata = self.table.child("Metadata");
        let mut names: Vec<_> = names_if_there(&metadata)?
            .unwrap_or_default()
            .into_iter()
            .filter(|name| name.starts_with("tableupdatestatus-"))
            .collect();
        names.sort_by_key(|name| name.len());
        let (name, read) = match (names.pop(), newest_delta(self.table)?) {
            (Some(name), _) => (name.clone(), Deletes::read(&metadata, &name)),
            (None, None) => return Ok(Deletes::default()),
            (None, Some(stamp)) => {
                let path = metadata.to_string();
                let error = Error::corrupt("an update status, which says what delete deltas count", "none");
                (format!("tableupdatestatus-{stamp}"), Err(error.at(&path, 0, "")))
            }
        };
        self.instead(read, Lost::UpdateStatus { name }, || Ok(Deletes::every_delta()))
    }
}

/// The newest stamp of lists of deleted rows beside the data files of a table.
fn newest_delta(table: &Location) -> Result<Option<u64>> {
    let mut newest = None;
    for (folder, _) in data_folders(table)? {
        let names = sorted_names(&folder)?;
        let stems = names.iter().filter_map(|name| name.strip_suffix(".deletedelta")?.rsplit_once('-'));
        newest = newest.max(stems.filter_map(|(_, stamp)| stamp.parse::<u64>().ok()).max());
    }
    Ok(newest)
}

/// The data files that no index names.
fn unnamed_files(on_disk: &[String], indexes: &[(&String, IndexFile)]) -> Vec<String> {
    let names = indexes.iter().filter_map(|(_, index)| by_file(index).ok());
    let named: HashSet<String> = names.flatten().map(|(name, _)| name.to_string()).collect();
    on_disk.iter().filter(|name| !named.contains(*name)).cloned().collect()
}

impl Opener<'_> {
    /// Adds the data files of a segment in a folder, whatever is left of its index files.
    pub fn recover_folder(
        &mut self,
        segment: &str,
        folder: &Location,
        names: &[String],
        partitions: &[String],
    ) -> Result<()> {
        let mut indexes = Vec::new();
        let mut has_lost = false;
        for name in names {
            let Some(merged) = kind_of(name) else {
                // A name that only a segment file has, and that is no index file's, is a damaged one.
                if folder.child(name).entry()?.is_none() {
                    has_lost = true;
                    let error = Error::corrupt("the name of an index file", format!("{name:?}"));
                    let place = folder.child(name).to_string();
                    self.lost_index(segment, folder, name, &error.at(&place, 0, "carbondata segment file"));
                }
                continue;
            };
            let read = open_file(&folder.child(name)).and_then(|source| match merged {
                true => IndexFile::open_merged(&source, &self.options.limits),
                false => Ok(vec![IndexFile::open(&source, &self.options.limits)?]),
            });
            match read {
                Ok(read) => indexes.extend(read.into_iter().map(|index| (name, index))),
                Err(error) if is_lost(&error) => {
                    has_lost = true;
                    self.lost_index(segment, folder, name, &error);
                }
                Err(error) => return Err(error),
            }
        }
        let on_disk = lost::data_files(folder, segment)?;
        let mut unnamed = unnamed_files(&on_disk, &indexes);
        let mut done = HashSet::new();
        for (index_name, index) in &indexes {
            let files = match by_file(index) {
                Ok(files) => files,
                Err(error) => {
                    has_lost = true;
                    self.lost_index(segment, folder, index_name, &error);
                    continue;
                }
            };
            for (name, blocks) in files {
                // A name that no file has may be a damaged one, of a file that no name is of; else a file is gone, and missed by its name.
                let is_gone = !on_disk.iter().any(|known| known == name);
                if done.contains(name) || (is_gone && self.take_named(&mut unnamed, folder, &blocks)) {
                    has_lost = true;
                    let error = Error::corrupt("the name of a data file", format!("{name:?}"));
                    let place = folder.child(index_name).to_string();
                    self.lost_index(segment, folder, index_name, &error.at(&place, 0, "carbondata index"));
                    continue;
                }
                done.insert(name.to_string());
                self.add_name(segment, name);
                if self.deletes.is_gone(segment, name) {
                    continue;
                }
                let path = folder.child(name);
                if path.entry()?.is_none() {
                    self.absent_file(segment, &path, &blocks);
                    continue;
                }
                if let Some(file) = self.checked_file(segment, folder, index_name, index, &blocks, &path)? {
                    self.recovered_file(segment, folder, name, file, partitions)?;
                    if let Some(part) = self.parts.last_mut() {
                        part.bucket = bucket_of(name, index);
                    }
                }
            }
        }
        for name in on_disk.iter().filter(|name| !done.contains(*name)) {
            let path = folder.child(name);
            if is_too_new(name, self.options.as_of) || !has_lost && !indexes.is_empty() {
                // What no index names was never committed.
                continue;
            }
            if !names.iter().any(|name| kind_of(name).is_some()) {
                let index = loose_name(name).unwrap_or_else(|| format!("{name}.carbonindex"));
                let error = Error::corrupt("an index file beside the data", "none");
                let error = error.at(&folder.child(&index).to_string(), 0, "carbondata index");
                self.lost_index(segment, folder, &index, &error);
            }
            if let Some(file) = self.data_file(&path)? {
                self.recovered_file(segment, folder, name, file, partitions)?;
            }
        }
        // Nobody knows what the index files named that are lost, and without data beside them nothing else tells.
        if on_disk.is_empty() && indexes.is_empty() && names.iter().any(|name| kind_of(name).is_some()) {
            self.absent_of(segment, folder, "every data file", None);
        }
        Ok(())
    }

    /// Takes the file out of `unnamed` that an index means by a name which no file has: it has as many bytes, or rows, as the index says.
    fn take_named(&self, unnamed: &mut Vec<String>, folder: &Location, blocks: &[&BlockIndex]) -> bool {
        let known = blocks.first().map(|block| (block.file_size, block.rows));
        let is_meant = |name: &String| {
            let Some((bytes, rows)) = known else { return false };
            let path = folder.child(name);
            let size = path.entry().ok().flatten().map(|found| found.size());
            if let Some(bytes) = bytes {
                return size.is_some_and(|size| i64::try_from(size) == Ok(bytes));
            }
            let limits = &self.options.limits;
            let found = open_file(&path).and_then(|source| {
                CarbonFile::open(Arc::clone(&source), limits.clone())
                    .or_else(|_| open_legacy(source, limits.clone()))
            });
            found.is_ok_and(|file| i64::try_from(file.rows) == Ok(rows))
        };
        let place = unnamed.iter().position(is_meant);
        place.map(|place| unnamed.remove(place)).is_some()
    }

    /// Notes a data file of which nothing can be read.
    fn unreadable_file(&mut self, path: &Location, rows: Option<u64>, error: &Error) {
        let what = format!("cannot be read at all: {}", error.kind());
        self.absent("", path, &what, rows);
    }

    fn lost_index(&mut self, segment: &str, folder: &Location, name: &str, error: &Error) {
        let lost = Lost::Index { segment: segment.into(), folder: folder.clone(), name: name.into() };
        if !self.broken.iter().any(|broken| broken.lost == lost) {
            self.note(lost, error);
        }
    }

    /// How many columns of a file the schema does not know as they are.
    fn unlike_schema(&self, file: &CarbonFile) -> usize {
        let known = |column: &ColumnSchema| {
            let mut same = self.schema.columns.iter().filter(|known| known.column_id == column.column_id);
            same.any(|known| known.data_type == column.data_type && known.name == column.name)
        };
        file.header.columns.iter().filter(|column| !known(column)).count()
    }

    fn differing_index(&mut self, segment: &str, folder: &Location, name: &str) {
        let place = folder.child(name).to_string();
        let error = Error::corrupt("an index that says what the footer says", "another one");
        self.lost_index(segment, folder, name, &error.at(&place, 0, "carbondata index"));
    }

    /// A data file as its footer and its index say: where they differ, the footer lies beside what it describes.
    fn checked_file(
        &mut self,
        segment: &str,
        folder: &Location,
        index_name: &str,
        index: &IndexFile,
        blocks: &[&BlockIndex],
        path: &Location,
    ) -> Result<Option<CarbonFile>> {
        if index.header.version < 3 {
            let rows = blocks.first().and_then(|block| u64::try_from(block.rows).ok());
            let file = self.legacy_file(segment, path, rows)?;
            if file.is_some() && !is_index_of(index, blocks, path, &self.options.limits) {
                self.differing_index(segment, folder, index_name);
            }
            return Ok(file);
        }
        let opened = open_file(path).and_then(|source| CarbonFile::open(source, self.options.limits.clone()));
        let indexed = self.indexed_file(path, index, blocks);
        match (opened, indexed) {
            (Ok(file), indexed) => {
                let differs = match indexed {
                    // Of one layout: what the schema says tells which columns are right.
                    Ok(indexed)
                        if file.is_same_layout(&indexed)
                            && index.header.columns != file.header.columns
                            && self.unlike_schema(&file) > self.unlike_schema(&indexed) =>
                    {
                        let place = path.to_string();
                        let error = Error::corrupt("the columns that index and schema have", "others");
                        self.note(Lost::Data, &error.at(&place, 0, HEADER_PART));
                        return Ok(Some(indexed));
                    }
                    Ok(indexed) => {
                        !file.is_same_layout(&indexed) || index.header.columns != file.header.columns
                    }
                    Err(_) => true,
                };
                if differs {
                    self.differing_index(segment, folder, index_name);
                }
                self.with_dictionaries(path, file)
            }
            (Err(error), Ok(mut file)) if is_lost(&error) => {
                self.note(Lost::Data, &error);
                // What is there of a file that was cut is less than its index says.
                if let Ok(source) = open_file(path) {
                    file.source = source;
                }
                Ok(Some(file))
            }
            (Err(error), Err(_)) if is_lost(&error) => self.data_file(path),
            (Err(error), _) => Err(error),
        }
    }

    /// A data file of version 1 or 2; `None` if its footer cannot be read: nothing else says where its pages are.
    fn legacy_file(
        &mut self,
        segment: &str,
        path: &Location,
        rows: Option<u64>,
    ) -> Result<Option<CarbonFile>> {
        let opened = open_file(path).and_then(|source| open_legacy(source, self.options.limits.clone()));
        match opened {
            Ok(mut file) => {
                let cardinalities = cardinalities(&file).to_vec();
                self.add_dictionaries(&mut file, &cardinalities)?;
                Ok(Some(file))
            }
            Err(error) if is_lost(&error) => {
                self.note(Lost::Data, &error);
                let name = path.name().to_string_lossy();
                let rows = rows.and_then(|rows| self.deletes.rows_left(segment, &name, rows));
                self.unreadable_file(path, rows, &error);
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// A data file without an index; `None` if nothing of it can be read.
    pub fn data_file(&mut self, path: &Location) -> Result<Option<CarbonFile>> {
        let limits = &self.options.limits;
        let source = open_file(path)?;
        let error = match CarbonFile::open(Arc::clone(&source), limits.clone()) {
            Ok(file) => return self.with_dictionaries(path, file),
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
            Ok((file, unknown_from)) => {
                if let Some(byte) = unknown_from {
                    self.absent("", path, &unknown_rest(byte), None);
                }
                self.with_dictionaries(path, file)
            }
            Err(error) if is_lost(&error) => {
                self.unreadable_file(path, None, &error);
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    fn with_dictionaries(&mut self, path: &Location, mut file: CarbonFile) -> Result<Option<CarbonFile>> {
        let cardinalities =
            file.footer.as_ref().map(|footer| footer.cardinalities.clone()).unwrap_or_default();
        match self.add_dictionaries(&mut file, &cardinalities) {
            Ok(()) => Ok(Some(file)),
            Err(error) if self.options.recovers && is_lost(&error) => {
                self.note(Lost::Data, &error);
                self.unreadable_file(path, Some(file.rows), &error);
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Adds a data file without the rows that the delta files which can be read delete.
    fn recovered_file(
        &mut self,
        segment: &str,
        folder: &Location,
        name: &str,
        file: CarbonFile,
        partitions: &[String],
    ) -> Result<()> {
        let Some(deltas) = self.deletes.deltas(segment, folder, name)? else { return Ok(()) };
        let mut deleted = Vec::new();
        let mut unread = None;
        for path in deltas {
            match read_delta(&path, &file, &mut deleted) {
                Err(error) if is_lost(&error) => {
                    self.note(Lost::Delta, &error);
                    unread = Some(error);
                }
                read => read?,
            }
        }
        deleted.sort_unstable();
        deleted.dedup();
        let left = self.deletes.rows_left(segment, name, file.rows);
        let known = file.rows.saturating_sub(deleted.len() as u64);
        let why = match unread {
            Some(error) => Some(error.to_string()),
            None => {
                left.filter(|left| *left < known).map(|_| "a list of deleted rows is not here".to_string())
            }
        };
        // Unless the other lists have them all, any row may be one that was deleted.
        if let Some(why) = why.filter(|_| left != Some(known)) {
            let what = format!("which of its rows were deleted is not known: {why}");
            self.absent(segment, &folder.child(name), &what, left);
            return Ok(());
        }
        self.add_file(segment, &folder.child(name), file, deleted, partitions)
    }

    /// The dictionary of a column; of a damaged one the entries that are left.
    pub fn dictionary(
        &mut self,
        metadata: &Location,
        column_id: &str,
        node: &ColumnNode,
    ) -> Result<WordsRef> {
        match read_dictionary(metadata, column_id, node, &self.options.limits) {
            Err(error) if self.options.recovers && is_lost(&error) => {
                let (words, damaged) = recover_dictionary(metadata, column_id, node, &self.options.limits)
                    .or_else(|lost| match is_lost(&lost) {
                        // Only the cells of the column are lost.
                        true => {
                            let words = Words::missing(node.field.data_type(), error.to_string())?;
                            Ok((Arc::new(words), vec![(Damaged::Words, error)]))
                        }
                        false => Err(lost),
                    })?;
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
                    return Err(Error::invalid(message).at(&self.table.to_string(), 0, ""));
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
        let path = self.table.child("Metadata/tablestatus").to_string();
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
