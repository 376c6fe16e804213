//! The data files of one load.
//!
//! Rows go straight into files as they come, or, where sort columns, partitions, buckets or dictionaries ask for it, through a
//! sort by partition, bucket and sort columns: then one file is open at a time.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::{Array, ArrayRef, Int32Array, RecordBatch, StringViewArray};
use arrow_row::{RowConverter, SortField};
use arrow_schema::{DataType, Schema, SchemaRef};
use pilaster_core::merge::Keys;
use pilaster_core::sort::{SortOptions, Sorter};
use pilaster_core::{Error, Location, NewFile, Result};

use super::buckets::bucket_numbers;
use super::options::CarbonTableWriterOptions;
use super::partitions::{folder_name, partition_text};
use crate::file::page::strings::NULL_MARKER;
use crate::file::write::encoder::{EncodedBlocklet, RowEncoder, stored_columns};
use crate::file::write::writer::{FileFacts, FileOutput};
use crate::file::write::{Release, TableCodes};
use crate::file::{FileIndex, WriteSummary, index_file};
use crate::messages::{ColumnSchema, write_merged};

/// Of the bytes of a data file, so many percent are used.
const USED_PERCENT: u64 = 90;

/// What a load writes, and where.
#[derive(Debug, Clone)]
pub(crate) struct LoadPlan {
    /// The table's folder.
    pub root: Location,
    /// Where the files go that are in no partition, relative to `root`.
    pub folder: PathBuf,
    /// The columns of data files: all, those of partitions too.
    pub columns: Arc<[ColumnSchema]>,
    /// All columns, in the order of the user.
    pub schema: SchemaRef,
    /// Places of columns in `schema`.
    pub sort_columns: Vec<usize>,
    pub partition_columns: Vec<usize>,
    pub bucket_columns: Vec<usize>,
    pub buckets: u32,
    /// Id of the segment; none outside of tables.
    pub segment: Option<String>,
    /// Milliseconds since 1970, part of file names.
    pub time: i64,
    /// When the schema was last changed.
    pub schema_time: i64,
    pub options: CarbonTableWriterOptions,
    pub release: Release,
    /// Codes of the table's dictionaries, by the place of their column in `columns`.
    pub codes: HashMap<usize, Arc<TableCodes>>,
}

impl LoadPlan {
    fn is_keyed(&self) -> bool {
        !self.sort_columns.is_empty() || !self.partition_columns.is_empty() || self.buckets > 0
    }

    fn segment_text(&self) -> &str {
        self.segment.as_deref().unwrap_or("null")
    }

    /// What rows are sorted by, as bytes: partition, bucket, sort columns, nulls first.
    fn append_keys(&self, batch: &RecordBatch, keys: &mut Keys) -> Result<()> {
        let columns = self.key_columns(batch)?;
        let fields = columns.iter().map(|column| SortField::new(column.data_type().clone())).collect();
        for row in &RowConverter::new(fields)?.convert_columns(&columns)? {
            keys.push_bytes(row.as_ref());
        }
        Ok(())
    }

    fn key_columns(&self, batch: &RecordBatch) -> Result<Vec<ArrayRef>> {
        let mut keys = self.group_columns(batch)?;
        for place in &self.sort_columns {
            let column = batch.column(*place);
            // Null texts stand where their marker would.
            let is_text = column.data_type() == &DataType::Utf8View && column.null_count() > 0;
            keys.push(if is_text {
                let marker = std::str::from_utf8(NULL_MARKER).unwrap_or_default();
                let texts = column.as_string_view().iter().map(|text| Some(text.unwrap_or(marker)));
                Arc::new(texts.collect::<StringViewArray>())
            } else {
                Arc::clone(column)
            });
        }
        Ok(keys)
    }

    /// Which folder and bucket each row goes to.
    fn group_columns(&self, batch: &RecordBatch) -> Result<Vec<ArrayRef>> {
        let mut groups: Vec<ArrayRef> = Vec::new();
        for place in &self.partition_columns {
            groups.push(partition_text(batch.column(*place), self.options.files.calendar)?);
        }
        if self.buckets > 0 {
            let columns: Vec<_> =
                self.bucket_columns.iter().map(|place| Arc::clone(batch.column(*place))).collect();
            groups.push(Arc::new(bucket_numbers(&columns, batch.num_rows(), self.buckets)?));
        }
        Ok(groups)
    }
}

/// What a load put into one folder.
#[derive(Debug, Clone)]
pub(crate) struct LoadedFolder {
    /// Relative to the table.
    pub path: PathBuf,
    /// Names and values of its partition, escaped.
    pub partitions: Vec<String>,
    /// Names of its index files; one, if they were merged.
    pub indexes: Vec<String>,
    pub is_merged: bool,
}

/// What a load wrote.
#[derive(Debug, Default)]
pub(crate) struct Loaded {
    pub folders: Vec<LoadedFolder>,
    pub summary: WriteSummary,
}

/// Writes the files of a load. Dropped without [`LoadWriter::finish`], it removes those it made.
pub(crate) struct LoadWriter {
    plan: Arc<LoadPlan>,
    sorter: Option<Sorter>,
    group: Option<GroupWriter>,
    groups: u64,
    /// Index files by folder.
    indexes: Vec<FolderIndexes>,
    summary: WriteSummary,
    made: MadeFiles,
}

/// A file that is still in memory.
type NamedBytes = (String, Vec<u8>);

struct FolderIndexes {
    path: PathBuf,
    partitions: Vec<String>,
    files: Vec<NamedBytes>,
}

/// Files that go if the load is not finished, and the folder they are in.
#[derive(Debug)]
struct MadeFiles {
    root: Location,
    files: Vec<Location>,
}

impl Drop for MadeFiles {
    fn drop(&mut self) {
        for file in self.files.drain(..).rev() {
            let _ = file.remove();
            // Folders go too, as far as they are empty.
            let mut folder = file.parent();
            while let Some(empty) = folder.filter(|folder| *folder != self.root) {
                folder = empty.remove_empty_folder().ok().and_then(|()| empty.parent());
            }
        }
    }
}

impl LoadWriter {
    pub fn new(plan: LoadPlan) -> Self {
        let plan = Arc::new(plan);
        let sorter = plan.is_keyed().then(|| {
            // Beside the files to come, where there is room for them.
            let options =
                SortOptions::new(plan.root.scratch()).with_memory_bytes(plan.options.files.sort_memory_bytes);
            let keys = Arc::clone(&plan);
            Sorter::new(Arc::clone(&plan.schema), options, move |batch, to| keys.append_keys(batch, to))
        });
        let made = MadeFiles { root: plan.root.clone(), files: Vec::new() };
        Self {
            plan,
            sorter,
            group: None,
            groups: 0,
            indexes: Vec::new(),
            summary: WriteSummary::default(),
            made,
        }
    }

    /// Takes rows with the columns of the table, in any order.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        if batch.num_rows() == 0 {
            return Ok(());
        }
        let columns = stored_columns(batch, &self.plan.schema)?;
        let batch = RecordBatch::try_new(Arc::clone(&self.plan.schema), columns)?;
        match &mut self.sorter {
            Some(sorter) => sorter.push(&batch),
            None => self.write_group(&batch, &[]),
        }
    }

    /// Writes rows that all go to the group of these values.
    fn write_group(&mut self, batch: &RecordBatch, key: &[GroupValue]) -> Result<()> {
        if self.group.as_ref().is_none_or(|group| group.key != key) {
            self.end_group()?;
            let number = self.groups;
            self.groups = number.saturating_add(1);
            self.group = Some(GroupWriter::new(Arc::clone(&self.plan), key.to_vec(), number)?);
        }
        match &mut self.group {
            Some(group) => group.write(batch, &mut self.made),
            None => Ok(()),
        }
    }

    fn end_group(&mut self) -> Result<()> {
        let Some(group) = self.group.take() else { return Ok(()) };
        let (path, partitions) = (group.folder.clone(), group.partitions.clone());
        let (index, summary) = group.finish(&mut self.made)?;
        self.summary.add(summary);
        let Some(index) = index else { return Ok(()) };
        match self.indexes.iter_mut().find(|folder| folder.path == path) {
            Some(folder) => folder.files.push(index),
            None => self.indexes.push(FolderIndexes { path, partitions, files: vec![index] }),
        }
        Ok(())
    }

    /// Writes everything that is left, and the index files.
    pub fn finish(mut self) -> Result<Loaded> {
        if let Some(sorter) = self.sorter.take() {
            for batch in sorter.finish()? {
                let batch = batch?;
                let groups = GroupRows::new(&self.plan, &batch)?;
                let mut from = 0usize;
                while from < batch.num_rows() {
                    let end = groups.end(from, batch.num_rows());
                    let rows = batch.slice(from, end.saturating_sub(from));
                    self.write_group(&rows, &groups.key(from))?;
                    from = end;
                }
            }
        }
        self.end_group()?;
        let mut folders = Vec::new();
        for folder in std::mem::take(&mut self.indexes) {
            folders.push(self.write_indexes(folder)?);
        }
        self.made.files.clear();
        Ok(Loaded { folders, summary: self.summary })
    }

    fn write_indexes(&mut self, folder: FolderIndexes) -> Result<LoadedFolder> {
        let is_merged = self.plan.options.merged_index && self.plan.segment.is_some();
        let files = if is_merged {
            let name = format!("{}_{}.carbonindexmerge", self.plan.segment_text(), self.plan.time);
            vec![(name, write_merged(&folder.files))]
        } else {
            folder.files
        };
        let mut names = Vec::new();
        for (name, bytes) in files {
            let file = self.plan.root.child(&folder.path).child(&name);
            file.write(&bytes)?;
            self.made.files.push(file);
            self.summary.index_bytes = self.summary.index_bytes.saturating_add(bytes.len() as u64);
            self.plan.options.step("index file");
            names.push(name);
        }
        Ok(LoadedFolder { path: folder.path, partitions: folder.partitions, indexes: names, is_merged })
    }
}

/// A partition's text (null as none) or a bucket.
#[derive(Debug, Clone, PartialEq, Eq)]
enum GroupValue {
    Partition(Option<String>),
    Bucket(i32),
}

/// The group of each row of a batch.
struct GroupRows(Vec<ArrayRef>);

impl GroupRows {
    fn new(plan: &LoadPlan, batch: &RecordBatch) -> Result<Self> {
        plan.group_columns(batch).map(Self)
    }

    fn key(&self, row: usize) -> Vec<GroupValue> {
        let value = |column: &ArrayRef| match column.as_string_view_opt() {
            Some(texts) => GroupValue::Partition(texts.is_valid(row).then(|| texts.value(row).to_string())),
            None => GroupValue::Bucket(column.as_primitive::<Int32Type>().value(row)),
        };
        self.0.iter().map(value).collect()
    }

    /// Where the group of row `from` ends.
    fn end(&self, from: usize, rows: usize) -> usize {
        let same = |column: &ArrayRef, row: usize| match column.as_string_view_opt() {
            Some(texts) => {
                texts.is_valid(from) == texts.is_valid(row)
                    && (texts.is_null(row) || texts.value(from) == texts.value(row))
            }
            None => {
                let numbers: &Int32Array = column.as_primitive();
                numbers.value(from) == numbers.value(row)
            }
        };
        let is_other = |row: &usize| !self.0.iter().all(|column| same(column, *row));
        if self.0.is_empty() { rows } else { (from..rows).find(is_other).unwrap_or(rows) }
    }
}

/// The files of one folder and bucket.
struct GroupWriter {
    plan: Arc<LoadPlan>,
    key: Vec<GroupValue>,
    folder: PathBuf,
    partitions: Vec<String>,
    bucket: u32,
    task: u64,
    encoder: RowEncoder,
    open: Option<(String, FileOutput<NewFile>)>,
    files: Vec<(String, FileIndex)>,
}

impl GroupWriter {
    fn new(plan: Arc<LoadPlan>, key: Vec<GroupValue>, number: u64) -> Result<Self> {
        let mut bucket = 0;
        let mut partitions = Vec::new();
        let mut texts = plan.partition_columns.iter();
        for value in &key {
            match value {
                GroupValue::Bucket(value) => bucket = u32::try_from(*value).unwrap_or_default(),
                GroupValue::Partition(text) => {
                    let field = texts.next().and_then(|place| plan.schema.fields().get(*place));
                    let name = field.map(|field| field.name().as_str()).unwrap_or_default();
                    partitions.push(folder_name(name, text.as_deref()));
                }
            }
        }
        let folder = match partitions.is_empty() {
            true => plan.folder.clone(),
            false => partitions.iter().collect(),
        };
        // Files of one segment must differ by name, whatever their folder; buckets do already.
        let task = if partitions.is_empty() { 0 } else { number };
        let encoder = RowEncoder::new(&plan.columns, &plan.codes, plan.release, &plan.options.files)?;
        Ok(Self { plan, key, folder, partitions, bucket, task, encoder, open: None, files: Vec::new() })
    }

    fn write(&mut self, batch: &RecordBatch, made: &mut MadeFiles) -> Result<()> {
        let Self { plan, folder, bucket, task, encoder, open, files, .. } = self;
        let mut files = FileSet { plan, folder, bucket: *bucket, task: *task, open, files, made };
        encoder.write(batch, &mut |blocklet| files.write(blocklet))
    }

    fn finish(self, made: &mut MadeFiles) -> Result<(Option<NamedBytes>, WriteSummary)> {
        let Self { plan, folder, bucket, task, mut encoder, mut open, mut files, .. } = self;
        let mut set =
            FileSet { plan: &plan, folder: &folder, bucket, task, open: &mut open, files: &mut files, made };
        encoder.finish(&mut |blocklet| set.write(blocklet))?;
        set.end_file()?;
        let mut summary = WriteSummary { conflated: encoder.conflated(), ..WriteSummary::default() };
        for (_, file) in &files {
            summary.add(file.summary());
        }
        if files.is_empty() {
            return Ok((None, summary));
        }
        let name = format!("{task}_batchno0-{bucket}-{}-{}.carbonindex", plan.segment_text(), plan.time);
        Ok((Some((name, index_file(&files, bucket)?)), summary))
    }
}

/// The data files of a group, one of them open.
struct FileSet<'a> {
    plan: &'a LoadPlan,
    folder: &'a Path,
    bucket: u32,
    task: u64,
    open: &'a mut Option<(String, FileOutput<NewFile>)>,
    files: &'a mut Vec<(String, FileIndex)>,
    made: &'a mut MadeFiles,
}

impl FileSet<'_> {
    fn write(&mut self, blocklet: EncodedBlocklet) -> Result<()> {
        let most = self.plan.options.files.block_bytes.saturating_mul(USED_PERCENT) / 100;
        let is_full = |(_, output): &(String, FileOutput<NewFile>)| {
            output.bytes().saturating_add(blocklet.bytes()) >= most && output.has_blocklets()
        };
        if self.open.as_ref().is_some_and(is_full) {
            self.end_file()?;
        }
        if self.open.is_none() {
            let compressor = match self.plan.release {
                Release::Current => format!(".{}", self.plan.options.files.compressor.name()),
                Release::Old => String::new(),
            };
            let name = format!(
                "part-{}-{}_batchno0-{}-{}-{}{compressor}.carbondata",
                self.files.len(),
                self.task,
                self.bucket,
                self.plan.segment_text(),
                self.plan.time,
            );
            let folder = self.plan.root.child(self.folder);
            folder.make_folder()?;
            let file = folder.child(&name);
            self.made.files.push(file.clone());
            let facts = FileFacts::new(
                Arc::clone(&self.plan.columns),
                self.plan.schema_time,
                !self.plan.sort_columns.is_empty(),
                &self.plan.options.files.written_by,
                self.plan.release,
            );
            *self.open = Some((name, FileOutput::new(file.create()?, facts)?));
        }
        match self.open {
            Some((_, output)) => output.write(blocklet),
            None => Err(Error::internal("a blocklet outside of any file")),
        }
    }

    fn end_file(&mut self) -> Result<()> {
        let Some((name, output)) = self.open.take() else { return Ok(()) };
        let (file, index) = output.finish()?;
        file.finish()?;
        self.plan.options.step("data file");
        self.files.push((name, index));
        Ok(())
    }
}

/// The columns at these places.
pub(crate) fn places_of(schema: &Schema, names: &[String]) -> Result<Vec<usize>> {
    let place = |name: &String| {
        schema.index_of(name).map_err(|_| Error::invalid(format!("no column {name:?} in the table")))
    };
    names.iter().map(place).collect()
}
