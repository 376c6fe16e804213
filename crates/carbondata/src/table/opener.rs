//! From segments to data files: folders, index files, dictionaries, deleted rows.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use pilaster_core::error::AtPosition;
use pilaster_core::verify::Finding;
use pilaster_core::{Error, Limits, Result};

use super::deletes::{Deletes, is_missing};
use super::lazy::{LazySource, ReadCounts};
use super::live::Live;
use super::lost::{self, Broken, Lost, is_lost};
use super::names::is_too_new;
use super::open::{FACT, OpenedTable, open_path, sorted_names};
use super::options::{CarbonTableOptions, inside};
use super::part::{ColumnOrigin, Part};
use super::schema::TableSchema;
use super::status::{SegmentFile, SegmentFolder, SegmentStatus, checked_id, checked_name, read_json};
use super::values::{default_value, partition_value, unescape};
use crate::file::layout::CarbonFile;
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
    pub files: Vec<PathBuf>,
    /// Why it cannot be reached.
    pub unreachable: Option<String>,
}

/// A table being opened.
pub(crate) struct Opener<'a> {
    pub table: &'a Path,
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
    /// By column id.
    dictionaries: HashMap<String, WordsRef>,
}

/// The index files among `names`: merged ones, if there are any, else all others.
pub(crate) fn read_indexes<'a>(
    folder: &Path,
    names: impl Iterator<Item = &'a str> + Clone,
    limits: &Limits,
) -> Result<Vec<IndexFile>> {
    let mut indexes = Vec::new();
    for name in names.clone().filter(|name| name.ends_with(".carbonindexmerge")) {
        indexes.extend(IndexFile::open_merged(&open_path(&folder.join(name))?, limits)?);
    }
    if indexes.is_empty() {
        for name in names.filter(|name| name.ends_with(".carbonindex")) {
            indexes.push(IndexFile::open(&open_path(&folder.join(name))?, limits)?);
        }
    }
    Ok(indexes)
}

impl<'a> Opener<'a> {
    pub fn new(
        table: &'a Path,
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
            dictionaries: HashMap::new(),
        }
    }

    pub fn finish(self, segments: Vec<SegmentStatus>) -> OpenedTable {
        let Self { schema, columns, mut parts, foreign, read, broken, .. } = self;
        let mut row = 0u64;
        for part in &mut parts {
            part.first_row = row;
            row = part.rows().end;
        }
        OpenedTable { schema, columns, segments, parts, foreign, read, broken }
    }

    pub fn segment(&mut self, segment: &SegmentStatus) -> Result<()> {
        let id = checked_id(&segment.id)?;
        if segment.is_stream() {
            return self.stream(id);
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
            let folder = self.table.join(FACT).join(format!("Segment_{id}"));
            let names = match sorted_names(&folder) {
                Err(error) if self.options.recovers => {
                    self.note(Lost::Data, &error);
                    return Ok(());
                }
                names => names?,
            };
            return self.add_folder(id, &folder, &names, &[]);
        };
        let path = self.table.join("Metadata/segments").join(checked_name(name)?);
        let read = open_path(&path).and_then(|source| read_json::<SegmentFile>(&source, SEGMENT_PART));
        let file = match read {
            Err(error) if self.options.recovers && is_lost(&error) => {
                let (segment, name) = (id.to_string(), name.to_string());
                self.note(Lost::SegmentFile { segment, name }, &error);
                lost::segment_file(self.table, id)?
            }
            read => read?,
        };
        let place = path.display().to_string();
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
        Ok(())
    }

    /// Where a folder of a segment lies.
    fn folder_path(&self, location: &str, folder: &SegmentFolder) -> Result<PathBuf> {
        if folder.is_relative {
            return Ok(self.table.join(inside(location)?));
        }
        self.options.outside.find(location)
    }

    fn add_foreign(
        &mut self,
        id: &str,
        format: &str,
        location: &str,
        path: Result<PathBuf>,
        folder: &SegmentFolder,
    ) -> Result<()> {
        let path = path.and_then(|path| match folder.partitions.is_empty() {
            true => Ok(path),
            false => Err(Error::unsupported(format!("partitioned {format}: open it by itself"))),
        });
        let (files, unreachable) = match path {
            Ok(path) => {
                let files = folder.files.iter().map(|name| Ok(path.join(checked_name(name)?)));
                (files.collect::<Result<_>>()?, None)
            }
            Err(error) => (Vec::new(), Some(error.to_string())),
        };
        let (id, format, location) = (id.to_string(), format.to_lowercase(), location.to_string());
        self.foreign.push(ForeignSegment { id, format, location, files, unreachable });
        Ok(())
    }

    /// The files of a streaming segment, up to the bytes that its index says are whole.
    fn stream(&mut self, segment: &str) -> Result<()> {
        let folder = self.table.join(FACT).join(format!("Segment_{segment}"));
        if !folder.is_dir() {
            // Nothing has been written into it yet.
            return Ok(());
        }
        if self.options.recovers {
            return self.recover_stream(segment, &folder);
        }
        for name in sorted_names(&folder)?.iter().filter(|name| name.ends_with(".carbonindex")) {
            for (path, record) in self.stream_files(&folder, name)? {
                let valid = u64::try_from(record.file_size).unwrap_or(u64::MAX);
                let mut file = open_stream(open_path(&path)?, self.options.limits.clone(), valid)?;
                self.add_stream_dictionaries(&mut file)?;
                self.add_file(segment, file, Vec::new(), &[])?;
            }
        }
        Ok(())
    }

    /// The data files that the index of a stream names, and what it says of them.
    pub fn stream_files(&self, folder: &Path, name: &str) -> Result<Vec<(PathBuf, StreamRecord)>> {
        let index = open_path(&folder.join(name))?;
        self.options.limits.metadata(index.size()).at(index.name(), 0, STREAM_PART)?;
        let bytes = index.read_at(0..index.size())?;
        let mut files = Vec::new();
        for record in StreamRecord::parse_file(&bytes).at(index.name(), 0, STREAM_PART)? {
            let path = folder.join(checked_name(&record.file_name)?);
            let source = open_path(&path)?;
            if u64::try_from(record.file_size).unwrap_or(u64::MAX) > source.size() {
                let expected = format!("{} bytes, as the index says", record.file_size);
                let error = Error::corrupt(expected, source.size());
                return Err(error.at(source.name(), source.size(), STREAM_PART));
            }
            files.push((path, record));
        }
        Ok(files)
    }

    fn folder(&mut self, segment: &str, path: &Path, folder: &SegmentFolder) -> Result<()> {
        let names = folder.index_names();
        names.iter().try_for_each(|name| checked_name(name).map(drop))?;
        self.add_folder(segment, path, &names, &folder.partitions)
    }

    /// Adds the data files that the index files among `names` list.
    fn add_folder(
        &mut self,
        segment: &str,
        path: &Path,
        names: &[String],
        partitions: &[String],
    ) -> Result<()> {
        if self.options.recovers {
            return self.recover_folder(segment, path, names, partitions);
        }
        let indexes = read_indexes(path, names.iter().map(String::as_str), &self.options.limits)?;
        self.add_indexes(segment, path, &indexes, partitions)
    }

    /// Notes what is worked around.
    pub fn note(&mut self, lost: Lost, error: &Error) {
        let finding = Finding::from_error(error, &self.table.display().to_string(), None);
        self.broken.push(Broken { lost, finding });
    }

    /// Adds the data files that index files name.
    pub fn add_indexes(
        &mut self,
        segment: &str,
        folder: &Path,
        indexes: &[IndexFile],
        partitions: &[String],
    ) -> Result<()> {
        for index in indexes {
            let as_of = self.options.as_of;
            for (name, blocks) in by_file(index)?.into_iter().filter(|(name, _)| !is_too_new(name, as_of)) {
                let file = self.indexed_file(&folder.join(name), index, &blocks)?;
                if let Some(deleted) = self.deleted(segment, folder, name, &file)? {
                    self.add_file(segment, file, deleted, partitions)?;
                    if let Some(part) = self.parts.last_mut() {
                        part.bucket = bucket_of(name, index);
                    }
                }
            }
        }
        Ok(())
    }

    /// A data file as its index describes it.
    pub fn indexed_file(
        &mut self,
        path: &Path,
        index: &IndexFile,
        blocks: &[&BlockIndex],
    ) -> Result<CarbonFile> {
        let limits = self.options.limits.clone();
        if index.header.version < 3 {
            let size = std::fs::metadata(path).at(&path.display().to_string(), 0, "")?.len();
            let source = Arc::new(LazySource::new(path.display().to_string(), size, Arc::clone(&self.read)));
            let mut file = outline(source, limits, &index.header, blocks)?;
            self.add_dictionaries(&mut file, &index.header.cardinalities)?;
            return Ok(file);
        }
        let size = match blocks.first().and_then(|block| block.file_size) {
            Some(size) => u64::try_from(size).unwrap_or(0),
            None => open_path(path)?.size(),
        };
        let source = Arc::new(LazySource::new(path.display().to_string(), size, Arc::clone(&self.read)));
        let mut file = CarbonFile::from_index(source, limits, &index.header, blocks)?;
        self.add_dictionaries(&mut file, &index.header.cardinalities)?;
        Ok(file)
    }

    /// The deleted rows of a data file, ascending; `None` if all of it is gone.
    pub fn deleted(
        &self,
        segment: &str,
        folder: &Path,
        name: &str,
        file: &CarbonFile,
    ) -> Result<Option<Vec<u64>>> {
        let deleted = self.deletes.of_file(segment, folder, name, file);
        match (deleted, self.next_deletes) {
            (Err(error), Some(next)) if is_missing(&error) => Err(Error::invalid(format!(
                "the rows that were deleted by then are no longer listed ({error}); an earlier time that can be given is {next}"
            ))),
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
                    let metadata = self.table.join("Metadata");
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

    /// The same for a stream, whose codes have four bytes, however many words there are.
    pub fn add_stream_dictionaries(&mut self, file: &mut CarbonFile) -> Result<()> {
        let cardinalities = vec![i32::MAX; file.header.columns.len()];
        self.add_dictionaries(file, &cardinalities)
    }

    pub fn add_file(
        &mut self,
        segment: &str,
        file: CarbonFile,
        deleted: Vec<u64>,
        partitions: &[String],
    ) -> Result<()> {
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
                    return Err(Error::invalid("a column without a schema"));
                };
                if let Some(value) = values.get(node.field.name()) {
                    return Ok(ColumnOrigin::Constant(partition_value(node, value)?));
                }
                match by_id.get(column.column_id.as_str()) {
                    Some(index) => Ok(ColumnOrigin::File(*index)),
                    None => Ok(ColumnOrigin::Constant(default_value(node, column.default_value.as_deref())?)),
                }
            })
            .collect::<Result<_>>()?;
        let live = Live::new(file.rows, &deleted);
        self.parts.push(Part {
            segment: segment.to_string(),
            file: Arc::new(file),
            opened: OnceLock::new(),
            live,
            origins,
            bucket: None,
            first_row: 0,
        });
        Ok(())
    }
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
