//! From segments to data files: folders, index files, dictionaries, deleted rows.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, OnceLock};

use pilaster_core::error::AtPosition;
use pilaster_core::storage::is_not_found;
use pilaster_core::verify::Finding;
use pilaster_core::{Absence, Error, ErrorKind, Limits, Location, Result};

use super::deletes::{Deletes, UPDATE_PART};
use super::lazy::{LazySource, ReadCounts};
use super::live::Live;
use super::lost::{self, Broken, Lost, is_lost};
use super::names::is_too_new;
use super::names::stream_index_name;
use super::open::{FACT, OpenedTable, names_if_there, open_file};
use super::options::{CarbonTableOptions, inside};
use super::part::{ColumnOrigin, Part, may_become};
use super::schema::TableSchema;
use super::status::{
    BlockUpdate, SegmentFile, SegmentFolder, SegmentStatus, checked_id, checked_name, read_json,
};
use super::values::{default_value, partition_value, unescape};
use crate::file::layout::{Blocklet, CarbonFile, HEADER_PART};
use crate::file::page::words::{WordsRef, code_bytes};
use crate::file::stream::{names_compressor, open_stream};
use crate::file::{ColumnNode, IndexFile};
use crate::legacy::outline;
use crate::messages::{BlockIndex, StreamRecord};

pub(crate) const SEGMENT_PART: &str = "carbondata segment file";
pub(crate) const STREAM_PART: &str = "carbondata stream";

/// A segment in another format, which was added to the table by its path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForeignSegment {
    /// Its id.
    pub id: String,
    /// `parquet`, `orc` or another.
    pub format: String,
    /// Where the metadata says it is.
    pub location: String,
    /// Its data files; none if the place cannot be reached.
    pub files: Vec<Location>,
    /// Why it cannot be reached.
    pub unreachable: Option<String>,
}

/// A table being opened.
pub(crate) struct Opener<'a> {
    pub table: &'a Location,
    pub options: &'a CarbonTableOptions,
    pub schema: TableSchema,
    pub columns: Vec<ColumnNode>,
    pub parts: Vec<Part>,
    pub deletes: Deletes,
    /// When other deletes began to count, if the table is opened as of an earlier time.
    pub next_deletes: Option<i64>,
    foreign: Vec<ForeignSegment>,
    read: Arc<ReadCounts>,
    /// What was worked around.
    pub broken: Vec<Broken>,
    /// What the metadata names and is not here, each with the segment it is of; with none if it is the whole table's.
    pub absences: Vec<(String, Absence)>,
    /// What could not be read and was gone over.
    pub unread: Vec<Error>,
    /// The data files that index files name, by segment.
    named: HashMap<String, HashSet<String>>,
    /// Segments of which not all index files were read: folders were dropped, or something is not here.
    partly_named: HashSet<String>,
    /// By column id.
    dictionaries: HashMap<String, WordsRef>,
}

/// The index files among `names`: merged ones, if there are any, else all others.
pub(crate) fn read_indexes<'a>(
    folder: &Location,
    names: impl Iterator<Item = &'a str> + Clone,
    limits: &Limits,
) -> Result<Vec<IndexFile>> {
    let mut indexes = Vec::new();
    for name in names.clone().filter(|name| name.ends_with(".carbonindexmerge")) {
        indexes.extend(IndexFile::open_merged(&open_file(&folder.child(name))?, limits)?);
    }
    if indexes.is_empty() {
        for name in names.filter(|name| name.ends_with(".carbonindex")) {
            indexes.push(IndexFile::open(&open_file(&folder.child(name))?, limits)?);
        }
    }
    Ok(indexes)
}

/// The error of an index of streams with two entries for a data file.
fn named_twice(record: &StreamRecord) -> Error {
    Error::corrupt("each data file of the stream once", format!("{:?} again", record.file_name))
}

impl<'a> Opener<'a> {
    pub fn new(
        table: &'a Location,
        options: &'a CarbonTableOptions,
        schema: TableSchema,
        columns: Vec<ColumnNode>,
    ) -> Self {
        Self {
            table,
            options,
            schema,
            columns,
            parts: Vec::new(),
            deletes: Deletes::default(),
            next_deletes: None,
            foreign: Vec::new(),
            read: Arc::default(),
            broken: Vec::new(),
            absences: Vec::new(),
            unread: Vec::new(),
            named: HashMap::new(),
            partly_named: HashSet::new(),
            dictionaries: HashMap::new(),
        }
    }

    pub fn finish(self, segments: Vec<SegmentStatus>) -> OpenedTable {
        let Self { schema, columns, mut parts, foreign, read, broken, absences, unread, .. } = self;
        let mut row = 0u64;
        for part in &mut parts {
            part.first_row = row;
            row = part.rows().end;
        }
        OpenedTable { schema, columns, segments, parts, foreign, read, broken, absences, unread }
    }

    pub fn segment(&mut self, segment: &SegmentStatus) -> Result<()> {
        let id = checked_id(&segment.id)?;
        if segment.is_stream() {
            return self.stream(id, segment);
        }
        let format = segment.file_format.as_deref().unwrap_or("columnar_v3");
        let is_foreign = !format.eq_ignore_ascii_case("columnar_v3");
        if is_foreign && !self.options.leaves_out_foreign {
            let place = segment.path.as_deref().unwrap_or("its folder");
            return Err(Error::unsupported(format!(
                "segment {id} is {format} in {place}: open it by itself, and the others by their numbers"
            )));
        }
        let Some(name) = segment.segment_file.as_deref().filter(|name| !name.is_empty()) else {
            let folder = self.table.child(FACT).child(format!("Segment_{id}"));
            let Some(names) = names_if_there(&folder)? else {
                if !segment.has_no_data() {
                    self.absent_of(id, &folder, "the folder", None);
                }
                return Ok(());
            };
            let is_indexed = names.iter().any(|name| kind_of(name).is_some());
            let is_rebuilt = self.options.recovers && names.iter().any(|name| name.ends_with(".carbondata"));
            if !(is_indexed || is_rebuilt || segment.has_no_data()) {
                self.absent_of(id, &folder, "the index file", None);
            }
            let before = self.parts.len();
            self.add_folder(id, &folder, &names, &[])?;
            self.check_bytes(segment, before);
            return Ok(());
        };
        let path = self.table.child("Metadata/segments").child(checked_name(name)?);
        let read = open_file(&path).and_then(|source| {
            let file = read_json::<SegmentFile>(&source, SEGMENT_PART)?;
            let checked = file.folders.values().try_for_each(SegmentFolder::check_status);
            checked.at(source.name(), 0, SEGMENT_PART)?;
            Ok(file)
        });
        let file = match read {
            Err(error) if self.options.recovers && is_lost(&error) => {
                let (segment, name) = (id.to_string(), name.to_string());
                self.note(Lost::SegmentFile { segment, name }, &error);
                lost::segment_file(self.table, id)?
            }
            Err(error) if is_not_found(&error) => {
                self.absent_of(id, &path, "the segment file", None);
                return Ok(());
            }
            read => read?,
        };
        let place = path.to_string();
        if file.folders.values().any(|folder| !folder.is_live()) {
            self.partly_named.insert(id.to_string());
        }
        if file.folders.is_empty() && !segment.has_no_data() {
            self.absent_of(id, &path, "every folder", None);
        }
        let first = self.parts.len();
        for (location, folder) in file.folders.iter().filter(|(_, folder)| folder.is_live()) {
            let path = self.folder_path(location, folder).at(&place, 0, SEGMENT_PART);
            if is_foreign {
                self.add_foreign(id, format, location, path, folder).at(&place, 0, SEGMENT_PART)?;
            } else {
                let path = path?;
                let before = self.parts.len();
                self.folder(id, &path, folder).at(&place, 0, SEGMENT_PART)?;
                if !folder.is_relative {
                    // Nobody has spread the rows of what was added from elsewhere.
                    self.parts.iter_mut().skip(before).for_each(|part| part.bucket = None);
                }
            }
        }
        if !is_foreign {
            self.check_bytes(segment, first);
        }
        Ok(())
    }

    /// Notes a part of a segment that is not here.
    pub fn absent_of(&mut self, segment: &str, path: &Location, what: &str, rows: Option<u64>) {
        self.partly_named.insert(segment.to_string());
        let of = if segment.is_empty() { String::new() } else { format!(" of segment {segment}") };
        self.absent(segment, path, &format!("{what}{of} is not here"), rows);
    }

    /// Notes rows that cannot be given, for more than one reason that a part may have not to be here.
    pub fn absent(&mut self, segment: &str, path: &Location, what: &str, rows: Option<u64>) {
        let absence = Absence { path: path.to_string().into(), what: what.to_string(), rows };
        self.absences.push((segment.to_string(), absence));
    }

    /// Whether an index names a data file.
    pub fn is_named(&self, segment: &str, name: &str) -> bool {
        self.named.get(segment).is_some_and(|names| names.contains(name))
    }

    /// Data files that no index names any more show in the bytes that `tablestatus` counts. Segments that changed since they were
    /// loaded are not compared: the number stays what it was. The parts of the segment are those from `first` on.
    fn check_bytes(&mut self, segment: &SegmentStatus, first: usize) {
        let Some(expected) = segment.data_bytes.as_deref().and_then(|text| text.parse::<u64>().ok()) else {
            return;
        };
        let id = segment.id.as_str();
        if self.partly_named.contains(id) || self.options.as_of.is_some() || self.options.recovers {
            return;
        }
        let sizes = self.parts.iter().skip(first).map(|part| part.file.source.size());
        let found = sizes.fold(0, u64::saturating_add);
        if found < expected && !self.deletes.has_gone_files(id) {
            let path = self.table.child("Metadata/tablestatus");
            let what = format!(
                "{expected} bytes of data files of segment {id} are counted, and index files name {found}: the rest"
            );
            self.absent_of(id, &path, &what, None);
        }
    }

    /// What is wrong with the update status, if it names data files that are none.
    pub fn wrong_deletes(&self) -> Result<Option<Error>> {
        let is_wrong = |update: &BlockUpdate| -> Result<bool> {
            let names = self.named.get(&update.segment);
            let is_unknown = names.is_some_and(|names| !names.contains(&update.data_file));
            // What was deleted whole may be gone, and what lay in a dropped folder is not looked at; but a block is that of one file.
            let of_block =
                |name: &String| name.strip_prefix(&update.block).is_some_and(|rest| rest.starts_with('-'));
            let is_other = || names.is_some_and(|names| names.iter().any(of_block));
            let is_wrong = !update.is_gone() && !self.partly_named.contains(&update.segment);
            let is_of_none = is_unknown && (is_wrong || is_other() || self.has_unlisted(update)?);
            Ok(is_of_none || !update.is_consistent())
        };
        let mut wrong = None;
        for update in self.deletes.blocks() {
            if is_wrong(update)? {
                wrong = Some(update);
                break;
            }
        }
        let Some(wrong) = wrong else { return Ok(None) };
        let expected = format!("a data file of segment {} that an index file names", wrong.segment);
        let error = Error::corrupt(expected, format!("{:?}", wrong.data_file));
        Ok(Some(error.at(&self.deletes.path, 0, UPDATE_PART)))
    }

    /// Whether a data file that is here has rows deleted in the same delete, and the update status does not say so: a delete that was not
    /// finished has its own stamp.
    fn has_unlisted(&self, update: &BlockUpdate) -> Result<bool> {
        let Some(stamp) = update.end.as_deref().filter(|stamp| !stamp.is_empty()) else { return Ok(false) };
        for part in self.parts.iter().filter(|part| part.segment == update.segment) {
            let name = part.place.name().to_str().unwrap_or_default();
            let (Some((block, _)), Some(folder)) = (name.rsplit_once('-'), part.place.parent()) else {
                continue;
            };
            if !self.deletes.names(&part.segment, name)
                && folder.child(format!("{block}-{stamp}.deletedelta")).is_file()?
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Rows that may not be the table's any more, because what would say so is lost.
    pub fn note_unproven(&mut self) {
        let lost: Vec<_> = self.broken.iter().map(|broken| broken.lost.clone()).collect();
        for lost in lost {
            match lost {
                Lost::UpdateStatus { name } => {
                    let what = "which data files were deleted whole is not known: their rows may be among those given";
                    self.absent("", &self.table.child("Metadata").child(name), what, None);
                }
                Lost::Status => {
                    let what = "which segments were deleted or overwritten is not known: their rows may be among those given";
                    self.absent("", &self.table.child("Metadata/tablestatus"), what, None);
                }
                _ => {}
            }
        }
    }

    /// Where a folder of a segment lies.
    fn folder_path(&self, location: &str, folder: &SegmentFolder) -> Result<Location> {
        if folder.is_relative {
            return Ok(self.table.child(inside(location)?));
        }
        self.options.outside.find(location)
    }

    fn add_foreign(
        &mut self,
        id: &str,
        format: &str,
        location: &str,
        path: Result<Location>,
        folder: &SegmentFolder,
    ) -> Result<()> {
        let path = path.and_then(|path| match folder.partitions.is_empty() {
            true => Ok(path),
            false => Err(Error::unsupported(format!("partitioned {format}: open it by itself"))),
        });
        let (files, unreachable) = match path {
            Ok(path) => {
                let files = folder.files.iter().map(|name| Ok(path.child(checked_name(name)?)));
                (files.collect::<Result<_>>()?, None)
            }
            Err(error) => (Vec::new(), Some(error.to_string())),
        };
        let (id, format, location) = (id.to_string(), format.to_lowercase(), location.to_string());
        self.foreign.push(ForeignSegment { id, format, location, files, unreachable });
        Ok(())
    }

    /// The files of a streaming segment, up to the bytes that its index says are whole.
    fn stream(&mut self, segment: &str, status: &SegmentStatus) -> Result<()> {
        let folder = self.table.child(FACT).child(format!("Segment_{segment}"));
        // The folder is made together with the segment.
        let Some(names) = names_if_there(&folder)? else {
            self.absent_of(segment, &folder, "the folder", None);
            return Ok(());
        };
        if self.options.recovers {
            return self.recover_stream(segment, &folder);
        }
        let data = names.iter().find(|name| name.ends_with(".carbondata"));
        let has_index = names.iter().any(|name| name.ends_with(".carbonindex"));
        // Only a stream that is still open may have no rows yet.
        if !has_index && (data.is_some() || status.status != "Streaming") {
            let index = data.map_or("0_batchno0-0-0-0.carbonindex", |name| stream_index_name(name));
            self.absent_of(segment, &folder.child(index), "the index file", None);
        }
        let mut known = HashSet::new();
        for name in names.iter().filter(|name| name.ends_with(".carbonindex")) {
            for (path, record) in self.stream_files(segment, &folder, name)? {
                if !known.insert(record.file_name.clone()) {
                    return Err(named_twice(&record).at(&folder.child(name).to_string(), 0, STREAM_PART));
                }
                let valid = u64::try_from(record.file_size).unwrap_or(u64::MAX);
                let mut file = open_stream(open_file(&path)?, self.options.limits.clone(), valid)?;
                self.add_stream_dictionaries(&mut file)?;
                self.add_file(segment, &path, file, Vec::new(), &[])?;
                if let Some(part) = self.parts.last_mut() {
                    part.record = Some(record);
                }
            }
        }
        Ok(())
    }

    /// The data files that the index of a stream names, and what it says of them.
    pub fn stream_files(
        &mut self,
        segment: &str,
        folder: &Location,
        name: &str,
    ) -> Result<Vec<(Location, StreamRecord)>> {
        let index = open_file(&folder.child(name))?;
        self.options.limits.metadata(index.size()).at(index.name(), 0, STREAM_PART)?;
        let bytes = index.read_at(0..index.size())?;
        let mut files = Vec::new();
        let records = StreamRecord::parse_file(&bytes).at(index.name(), 0, STREAM_PART)?;
        if records.is_empty() {
            return Err(Error::corrupt("the data files of a stream", "none").at(
                index.name(),
                0,
                STREAM_PART,
            ));
        }
        let mut known = HashSet::new();
        for record in records {
            let path = folder.child(checked_name(&record.file_name)?);
            // Its rows would come twice.
            if !known.insert(record.file_name.clone()) {
                return Err(named_twice(&record).at(index.name(), 0, STREAM_PART));
            }
            let source = match open_file(&path) {
                Err(error) if is_not_found(&error) => {
                    self.absent_of(segment, &path, "a data file", u64::try_from(record.rows).ok());
                    continue;
                }
                source => source?,
            };
            if self.options.recovers {
                files.push((path, record));
                continue;
            }
            if u64::try_from(record.file_size).unwrap_or(u64::MAX) > source.size() {
                let expected = format!("{} bytes, as the index says", record.file_size);
                let error = Error::corrupt(expected, source.size());
                return Err(error.at(source.name(), source.size(), STREAM_PART));
            }
            files.push((path, record));
        }
        Ok(files)
    }

    fn folder(&mut self, segment: &str, path: &Location, folder: &SegmentFolder) -> Result<()> {
        let names = folder.index_names();
        names.iter().try_for_each(|name| checked_name(name).map(drop))?;
        if !path.is_folder()? {
            self.absent_of(segment, path, "a folder", None);
            return Ok(());
        }
        if names.is_empty() && !self.options.recovers {
            self.absent_of(segment, path, "the index file", None);
        }
        self.add_folder(segment, path, &names, &folder.partitions)
    }

    /// Adds the data files that the index files among `names` list.
    fn add_folder(
        &mut self,
        segment: &str,
        path: &Location,
        names: &[String],
        partitions: &[String],
    ) -> Result<()> {
        if self.options.recovers {
            return self.recover_folder(segment, path, names, partitions);
        }
        let mut there = Vec::with_capacity(names.len());
        for name in names {
            match path.child(name).entry()? {
                Some(_) => there.push(name.as_str()),
                None => self.absent_of(segment, &path.child(name), "an index file", None),
            }
        }
        let indexes = read_indexes(path, there.into_iter(), &self.options.limits)?;
        self.add_indexes(segment, path, &indexes, partitions)
    }

    /// Notes what is worked around.
    pub fn note(&mut self, lost: Lost, error: &Error) {
        let finding = Finding::from_error(error, &self.table.to_string(), None);
        self.broken.push(Broken { lost, finding });
    }

    /// Adds the data files that index files name.
    pub fn add_indexes(
        &mut self,
        segment: &str,
        folder: &Location,
        indexes: &[IndexFile],
        partitions: &[String],
    ) -> Result<()> {
        for index in indexes {
            for (name, blocks) in by_file(index)? {
                self.add_name(segment, name);
                // What was deleted whole may have been cleaned away.
                if is_too_new(name, self.options.as_of) || self.deletes.is_gone(segment, name) {
                    continue;
                }
                let path = folder.child(name);
                let Some(size) = path.entry()?.map(|found| found.size()) else {
                    self.absent_file(segment, &path, &blocks);
                    continue;
                };
                let mut file = self.indexed_file(&path, index, &blocks)?;
                let cut = rows_behind(&file, size);
                if size < file.source.size() && file.has_chunks() {
                    // A footer that is cut off takes no rows along.
                    self.partly_named.insert(segment.to_string());
                    let read = Arc::clone(&self.read);
                    file.source = Arc::new(LazySource::new(&path, size, read));
                }
                if let Some(mut deleted) = self.deleted(segment, folder, name, &file)? {
                    if !cut.is_empty() {
                        deleted.retain(|row| *row < cut.start);
                        let live = self.deletes.rows_left(segment, name, file.rows);
                        let rows = live.and_then(|live| {
                            live.checked_sub(cut.start.saturating_sub(deleted.len() as u64))
                        });
                        let what = format!("what stood behind byte {size} of a data file");
                        self.absent_of(segment, &path, &what, rows);
                        deleted.extend(cut);
                    }
                    self.add_file(segment, &path, file, deleted, partitions)?;
                    if let Some(part) = self.parts.last_mut() {
                        part.bucket = bucket_of(name, index);
                    }
                }
            }
        }
        Ok(())
    }

    /// Notes that an index names a data file.
    pub fn add_name(&mut self, segment: &str, name: &str) {
        self.named.entry(segment.to_string()).or_default().insert(name.to_string());
    }

    /// Notes a data file that is not here, with the rows that its index says.
    pub fn absent_file(&mut self, segment: &str, path: &Location, blocks: &[&BlockIndex]) {
        let name = path.name().to_string_lossy();
        let rows = blocks.first().and_then(|block| u64::try_from(block.rows).ok());
        let rows = rows.and_then(|rows| self.deletes.rows_left(segment, &name, rows));
        self.absent_of(segment, path, "a data file", rows);
    }

    /// A data file as its index describes it.
    pub fn indexed_file(
        &mut self,
        path: &Location,
        index: &IndexFile,
        blocks: &[&BlockIndex],
    ) -> Result<CarbonFile> {
        let limits = self.options.limits.clone();
        if index.header.version < 3 {
            let size = open_file(path)?.size();
            let source = Arc::new(LazySource::new(path, size, Arc::clone(&self.read)));
            let mut file = outline(source, limits, &index.header, blocks)?;
            self.add_dictionaries(&mut file, &index.header.cardinalities)?;
            return Ok(file);
        }
        let size = match blocks.first().and_then(|block| block.file_size) {
            Some(size) => u64::try_from(size).unwrap_or(0),
            None => open_file(path)?.size(),
        };
        let source = Arc::new(LazySource::new(path, size, Arc::clone(&self.read)));
        let mut file = CarbonFile::from_index(source, limits, &index.header, blocks)?;
        self.add_dictionaries(&mut file, &index.header.cardinalities)?;
        Ok(file)
    }

    /// The deleted rows of a data file, ascending; `None` if all of it is gone.
    pub fn deleted(
        &self,
        segment: &str,
        folder: &Location,
        name: &str,
        file: &CarbonFile,
    ) -> Result<Option<Vec<u64>>> {
        let deleted = self.deletes.of_file(segment, folder, name, file);
        match (deleted, self.next_deletes) {
            (Err(error), Some(next)) if matches!(error.kind(), ErrorKind::Incomplete { .. }) => {
                Err(Error::invalid(format!(
                    "the rows that were deleted by then are no longer listed ({error}); an earlier time that can be given is {next}"
                )))
            }
            (deleted, _) => deleted,
        }
    }

    /// Gives a file the dictionaries of the table that its columns need.
    pub fn add_dictionaries(&mut self, file: &mut CarbonFile, cardinalities: &[i32]) -> Result<()> {
        // Without its table's metadata a folder has no dictionaries.
        if self.schema.table_id.is_empty() {
            return file.refuse_missing_dictionaries();
        }
        let mut leaves = Vec::new();
        file.columns.iter().for_each(|column| leaves_of(column, &mut leaves));
        let mut found = HashMap::new();
        for (chunk, column) in file.global_columns() {
            let Some(node) = leaves.iter().find(|node| node.chunk == chunk) else { continue };
            let words = match self.dictionaries.get(&column.column_id) {
                Some(words) => Arc::clone(words),
                None => {
                    let metadata = self.table.child("Metadata");
                    let words = self.dictionary(&metadata, &column.column_id, node)?;
                    self.dictionaries.insert(column.column_id.clone(), Arc::clone(&words));
                    words
                }
            };
            let Some(cardinality) = cardinalities.get(chunk) else {
                let error = Error::corrupt(format!("the cardinality of column {:?}", column.name), "none");
                return Err(error.at(file.name(), 0, "carbondata index"));
            };
            found.insert(chunk, (words, code_bytes(*cardinality)));
        }
        file.dictionaries = found;
        file.refuse_missing_dictionaries()
    }

    /// The same for a stream, whose codes have four bytes, however many entries there are.
    pub fn add_stream_dictionaries(&mut self, file: &mut CarbonFile) -> Result<()> {
        let cardinalities = vec![i32::MAX; file.header.columns.len()];
        self.add_dictionaries(file, &cardinalities)
    }

    pub fn add_file(
        &mut self,
        segment: &str,
        place: &Location,
        mut file: CarbonFile,
        deleted: Vec<u64>,
        partitions: &[String],
    ) -> Result<()> {
        let calendar = self.options.calendar;
        file.calendar = calendar;
        let by_id: HashMap<&str, usize> = file
            .columns
            .iter()
            .enumerate()
            .filter_map(|(index, node)| {
                Some((file.header.columns.get(node.chunk)?.column_id.as_str(), index))
            })
            .collect();
        let values: HashMap<String, &str> = partitions
            .iter()
            .filter_map(|text| text.split_once('='))
            .map(|(name, value)| (unescape(name).to_lowercase(), value))
            .collect();
        let origins = self
            .columns
            .iter()
            .map(|node| {
                let Some(column) = self.schema.columns.get(node.chunk) else {
                    return Err(Error::internal("a column without a schema"));
                };
                if let Some(value) = values.get(node.field.name()) {
                    return Ok(ColumnOrigin::Constant(partition_value(node, value, calendar)?));
                }
                match by_id.get(column.column_id.as_str()) {
                    Some(index) => Ok(ColumnOrigin::File(*index)),
                    None => {
                        let stored = default_value(node, column.default_value.as_deref())?;
                        Ok(ColumnOrigin::Constant(calendar.shown(&stored)?))
                    }
                }
            })
            .collect::<Result<Vec<_>>>()?;
        if let Err(error) = check_types(&file, &self.columns, &origins) {
            if !self.options.recovers {
                return Err(error);
            }
            self.note(Lost::Data, &error);
        }
        let live = Live::new(file.rows, &deleted);
        self.parts.push(Part {
            segment: segment.to_string(),
            place: place.clone(),
            file: Arc::new(file),
            opened: OnceLock::new(),
            live,
            origins,
            record: None,
            bucket: None,
            first_row: 0,
        });
        Ok(())
    }
}

/// The rows of blocklets that do not lie within the first `size` bytes of a file; blocklets follow each other.
fn rows_behind(file: &CarbonFile, size: u64) -> std::ops::Range<u64> {
    let is_whole = |blocklet: &Blocklet| blocklet.chunks.last().is_none_or(|chunk| chunk.end <= size);
    let whole = file.blocklets.partition_point(is_whole);
    let first = file.blocklets.get(whole).map_or(file.rows, |blocklet| blocklet.rows.start);
    first..file.rows
}

/// The columns of a file have the types that the table's have, or had.
fn check_types(file: &CarbonFile, columns: &[ColumnNode], origins: &[ColumnOrigin]) -> Result<()> {
    for (node, origin) in columns.iter().zip(origins) {
        let ColumnOrigin::File(index) = origin else { continue };
        let Some(found) = file.columns.get(*index) else { continue };
        let (is, was) = (node.field.data_type(), found.field.data_type());
        if !may_become(was, is) {
            let expected = format!("column {:?} as {is}, or a type that became that", node.field.name());
            return Err(Error::corrupt(expected, was).at(file.name(), 0, HEADER_PART));
        }
    }
    Ok(())
}

/// Whether an index file is a merged one; `None` if it is no index file.
pub(crate) fn kind_of(name: &str) -> Option<bool> {
    if name.ends_with(".carbonindexmerge") {
        return Some(true);
    }
    name.ends_with(".carbonindex").then_some(false)
}

/// A data file's name and its records in an index.
type FileRecords<'a> = (&'a str, Vec<&'a BlockIndex>);

/// The records of an index by their data file, in order.
pub(crate) fn by_file(index: &IndexFile) -> Result<Vec<FileRecords<'_>>> {
    let mut files: Vec<FileRecords<'_>> = Vec::new();
    let mut places: HashMap<&str, usize> = HashMap::new();
    for block in &index.blocklets {
        // Old releases put the path of a temporary folder before the name.
        let name = checked_name(block.file_name.rsplit(['/', '\\']).next().unwrap_or_default())?;
        let place = *places.entry(name).or_insert(files.len());
        match files.get_mut(place) {
            Some((_, records)) => records.push(block),
            None => files.push((name, vec![block])),
        }
    }
    Ok(files)
}

/// The bucket of a data file, if its rows are spread as release 2 does: others hash otherwise.
pub(crate) fn bucket_of(name: &str, index: &IndexFile) -> Option<u32> {
    let is_known = names_compressor(name) && index.header.cardinalities.is_empty();
    u32::try_from(index.header.bucket.filter(|_| is_known)?).ok()
}

/// The nodes without children below a column.
fn leaves_of<'a>(node: &'a ColumnNode, leaves: &mut Vec<&'a ColumnNode>) {
    if node.children.is_empty() {
        leaves.push(node);
    }
    node.children.iter().for_each(|child| leaves_of(child, leaves));
}
