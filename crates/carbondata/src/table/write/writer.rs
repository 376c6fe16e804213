//! New tables, loads into tables that exist, and folders of data files.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{DataType, Schema, SchemaRef};
use pilaster_core::error::AtPosition;
use pilaster_core::{AtomicFolder, Error, Limits, Result};

use super::super::open::{open_path, schema_path};
use super::super::schema::{SchemaChange, TableSchema};
use super::commit::{
    change_status, finish_entry, is_old, new_entry, next_id, set_modified, text, write_entries,
    write_segment_file,
};
use super::dictionary::{Dictionaries, can_have_dictionary};
use super::load::{LoadPlan, LoadWriter, Loaded, places_of, write_whole};
use super::lock::TableLock;
use super::options::CarbonTableWriterOptions;
use crate::file::types::{column_trees, is_global};
use crate::file::write::columns::{Naming, columns_of, is_sort_column, random_id};
use crate::file::write::writer::now_millis;
use crate::file::{CarbonWriterOptions, WriteSummary};
use crate::messages::ColumnSchema;

/// Where segments lie in a table.
const FACT: &str = "Fact/Part0";

/// The folder of a segment in a table.
pub(crate) fn segment_folder(id: &str) -> PathBuf {
    Path::new(FACT).join(format!("Segment_{id}"))
}

/// What a load gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadSummary {
    /// Id of the new segment; none if there were no rows.
    pub segment: Option<String>,
    /// What was written.
    pub written: WriteSummary,
}

/// Writes rows into a new table, or as a new segment into one that exists.
///
/// A new table appears when it is finished. A load is part of its table from the moment [`CarbonTableWriter::finish`] has replaced
/// `tablestatus`; until then, and if the writer is dropped or the program ends, the table is as it was.
///
/// ```
/// use std::sync::Arc;
/// use arrow_array::{ArrayRef, Int32Array, RecordBatch};
/// use pilaster_carbondata::table::{CarbonTableWriter, CarbonTableWriterOptions};
///
/// # let place = std::env::temp_dir().join(format!("pilaster-doc-table-{}", std::process::id()));
/// let batch = RecordBatch::try_from_iter([("id", Arc::new(Int32Array::from(vec![1, 2])) as ArrayRef)])?;
/// let options = CarbonTableWriterOptions::default();
/// let mut writer = CarbonTableWriter::create(&place, &batch.schema(), options.clone())?;
/// writer.write(&batch)?;
/// assert_eq!(writer.finish()?.segment.as_deref(), Some("0"));
/// let mut writer = CarbonTableWriter::append(&place, options)?;
/// writer.write(&batch)?;
/// assert_eq!(writer.finish()?.segment.as_deref(), Some("1"));
/// # std::fs::remove_dir_all(&place)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct CarbonTableWriter {
    load: LoadWriter,
    schema: SchemaRef,
    target: Target,
    dictionaries: Dictionaries,
    options: CarbonTableWriterOptions,
    time: i64,
}

impl std::fmt::Debug for CarbonTableWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CarbonTableWriter").field("schema", &self.schema).finish_non_exhaustive()
    }
}

enum Target {
    New(AtomicFolder),
    Segment(Box<OpenSegment>),
}

/// A load that `tablestatus` says is in progress. Dropped, it is marked as deleted.
struct OpenSegment {
    table: PathBuf,
    id: String,
    options: CarbonTableWriterOptions,
    is_done: bool,
    /// Says that the load is alive.
    _lock: TableLock,
}

impl OpenSegment {
    fn begin(table: &Path, time: i64, options: &CarbonTableWriterOptions) -> Result<Self> {
        let begun = change_status(table, options, |entries| {
            let id = next_id(entries)?.to_string();
            let lock = TableLock::take(table, &format!("Segment_{id}.lock"), options.lock_timeout)?;
            entries.push(new_entry(is_old(entries), &id, "In Progress", time));
            Ok((id, lock))
        });
        let (id, lock) = begun?;
        Ok(Self { table: table.to_path_buf(), id, options: options.clone(), is_done: false, _lock: lock })
    }

    /// Changes its own entry.
    fn change(&self, change: impl FnOnce(&mut super::commit::Entry)) -> Result<()> {
        change_status(&self.table, &self.options, |entries| {
            let entry = entries.iter_mut().find(|entry| text(entry, "loadName") == self.id);
            let name = self.table.display().to_string();
            let entry = entry.ok_or_else(|| {
                Error::invalid(format!("segment {} is no longer in tablestatus", self.id)).at(&name, 0, "")
            })?;
            change(entry);
            Ok(())
        })
    }
}

impl Drop for OpenSegment {
    fn drop(&mut self) {
        if !self.is_done {
            let _ = self.change(|entry| {
                entry.insert("loadStatus".into(), "Marked for Delete".into());
                set_modified(entry, now_millis());
            });
        }
    }
}

impl CarbonTableWriter {
    /// Begins a new table in `folder`, which must not exist or be empty.
    ///
    /// # Errors
    /// [`pilaster_core::ErrorKind::InvalidInput`] if a column has no form in the format or an option names none;
    /// [`pilaster_core::ErrorKind::Io`].
    pub fn create(folder: &Path, schema: &SchemaRef, options: CarbonTableWriterOptions) -> Result<Self> {
        let time = now_millis();
        let table = new_table(schema, &options, time)?;
        let folder = AtomicFolder::create(folder)?;
        let name = folder.path().display().to_string();
        for part in ["Metadata/segments", FACT] {
            std::fs::create_dir_all(folder.path().join(part)).at(&name, 0, "")?;
        }
        write_whole(&folder.path().join("Metadata/schema"), &table.write())?;
        let plan = plan(folder.path(), &table, "0", time, &options)?;
        let dictionaries = Dictionaries::open(folder.path(), &plan.columns, &options)?;
        Ok(Self::new(plan, Target::New(folder), dictionaries))
    }

    /// Begins a load into the table in `folder`, which becomes a segment of its own. Sort columns, partitions, buckets and
    /// sizes are the table's.
    ///
    /// # Errors
    /// If the table cannot be read, somebody else holds its lock, or it has what this writer cannot add to.
    pub fn append(folder: &Path, options: CarbonTableWriterOptions) -> Result<Self> {
        let table = read_table(folder)?;
        let time = now_millis();
        let options = CarbonTableWriterOptions { files: table_files(&table, &options.files)?, ..options };
        // What cannot be written is refused before anything is changed.
        let columns = plan(folder, &table, "0", time, &options)?.columns;
        let dictionaries = Dictionaries::open(folder, &columns, &options)?;
        let segment = OpenSegment::begin(folder, time, &options)?;
        let plan = plan(folder, &table, &segment.id, time, &options)?;
        Ok(Self::new(plan, Target::Segment(Box::new(segment)), dictionaries))
    }

    fn new(mut plan: LoadPlan, target: Target, dictionaries: Dictionaries) -> Self {
        plan.codes = dictionaries.codes();
        let (schema, options, time) = (Arc::clone(&plan.schema), plan.options.clone(), plan.time);
        Self { load: LoadWriter::new(plan), schema, target, dictionaries, options, time }
    }

    /// The schema of the table, which batches are cast to.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Appends rows.
    ///
    /// # Errors
    /// [`pilaster_core::ErrorKind::InvalidInput`] if the batch has other columns or a value that cannot be stored;
    /// [`pilaster_core::ErrorKind::Io`].
    pub fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        self.load.write(batch)
    }

    /// Writes what is left and makes the rows part of the table.
    ///
    /// # Errors
    /// [`pilaster_core::ErrorKind::Io`], or if the lock of the table cannot be taken; then the table is as it was.
    pub fn finish(self) -> Result<LoadSummary> {
        let Self { load, target, dictionaries, options, time, .. } = self;
        let Loaded { folders, summary } = load.finish()?;
        dictionaries.commit(&options)?;
        let has_dictionaries = !dictionaries.codes().is_empty();
        match target {
            Target::New(folder) => {
                let file = write_segment_file(folder.path(), "0", time, &folders)?;
                let mut entries = Vec::new();
                if file.is_some() {
                    let mut entry = new_entry(has_dictionaries, "0", "Success", time);
                    finish_entry(&mut entry, file.as_deref(), &summary);
                    entries.push(entry);
                }
                write_entries(folder.path(), &entries)?;
                folder.commit()?;
                Ok(LoadSummary { segment: file.map(|_| "0".to_string()), written: summary })
            }
            Target::Segment(mut segment) => {
                let file = write_segment_file(&segment.table, &segment.id, time, &folders)?;
                options.step("segment file");
                segment.change(|entry| finish_entry(entry, file.as_deref(), &summary))?;
                segment.is_done = true;
                Ok(LoadSummary { segment: file.map(|_| segment.id.clone()), written: summary })
            }
        }
    }
}

/// What the schema file of a table says.
pub(crate) fn read_table(folder: &Path) -> Result<TableSchema> {
    let name = folder.display().to_string();
    let missing = || Error::invalid("no CarbonData table: Metadata has no schema file").at(&name, 0, "");
    TableSchema::open(&open_path(&schema_path(folder).ok_or_else(missing)?)?, &Limits::default())
}

/// The schema file of a new table.
fn new_table(schema: &SchemaRef, options: &CarbonTableWriterOptions, time: i64) -> Result<TableSchema> {
    let files = &options.files;
    let is_partition = |name: &str| options.partition_columns.iter().position(|known| known == name);
    // The engine wants the columns of partitions to be the last.
    let mut fields: Vec<_> = schema.fields().iter().cloned().collect();
    fields.sort_by_key(|field| {
        is_partition(&field.name().to_lowercase()).map_or(0, |place| place.saturating_add(1))
    });
    let schema = &Schema::new(fields);
    let columns = columns_of(schema, files, &options.dictionary_columns, Naming::Table)?;
    let top =
        |name: &String| columns.iter().find(|column| column.name == *name && column.ordinal != Some(-1));
    for (names, what) in [
        (&options.partition_columns, "partition by"),
        (&options.bucket_columns, "put rows into buckets by"),
        (&options.dictionary_columns, "have a dictionary for"),
    ] {
        if let Some(name) = names.iter().find(|name| top(name).is_none()) {
            return Err(Error::invalid(format!("no column {name:?} to {what}")));
        }
    }
    for name in &options.dictionary_columns {
        if top(name).is_some_and(|column| !can_have_dictionary(column.data_type)) {
            return Err(Error::invalid(format!("column {name:?} has a type without a dictionary")));
        }
        if files.sort_columns.contains(name) {
            return Err(Error::invalid(format!("column {name:?} has a dictionary and cannot be sorted by")));
        }
    }
    for name in &options.partition_columns {
        let is_also = files.sort_columns.contains(name) || options.dictionary_columns.contains(name);
        if is_also {
            let message = format!("column {name:?} of partitions cannot be sorted by or have a dictionary");
            return Err(Error::invalid(message));
        }
    }
    if options.bucket_columns.is_empty() != (options.buckets == 0) {
        return Err(Error::invalid("buckets need both columns and a number"));
    }
    let buckets = i32::try_from(options.buckets).map_err(|_| Error::invalid("too many buckets"))?;
    let flag = |value: bool| if value { "true" } else { "false" }.to_string();
    let mebibytes = |bytes: u64| (bytes >> 20).max(1).to_string();
    let defaults = CarbonWriterOptions::default();
    let mut properties: Vec<(String, String)> = vec![
        ("sort_columns".into(), files.sort_columns.join(",")),
        ("local_dictionary_enable".into(), flag(files.local_dictionary)),
        ("bad_record_path".into(), String::new()),
        ("comment".into(), String::new()),
        ("indexexists".into(), flag(false)),
        ("indextableexists".into(), flag(false)),
    ];
    let mut optional = |is_set: bool, key: &str, value: String| {
        if is_set {
            properties.push((key.into(), value));
        }
    };
    optional(!files.sort_columns.is_empty(), "sort_scope", "GLOBAL_SORT".into());
    optional(!files.long_strings.is_empty(), "long_string_columns", files.long_strings.join(","));
    optional(!files.inverted_index.is_empty(), "inverted_index", files.inverted_index.join(","));
    optional(files.block_bytes != defaults.block_bytes, "table_blocksize", mebibytes(files.block_bytes));
    optional(
        files.blocklet_bytes != defaults.blocklet_bytes,
        "table_blocklet_size",
        mebibytes(files.blocklet_bytes),
    );
    optional(
        files.page_bytes != defaults.page_bytes,
        "table_page_size_inmb",
        mebibytes(files.page_bytes as u64),
    );
    optional(
        files.local_dictionary_threshold != defaults.local_dictionary_threshold,
        "local_dictionary_threshold",
        files.local_dictionary_threshold.to_string(),
    );
    optional(
        files.compressor != defaults.compressor,
        "carbon.column.compressor",
        files.compressor.name().into(),
    );
    optional(buckets > 0, "bucket_columns", options.bucket_columns.join(","));
    optional(buckets > 0, "bucket_number", buckets.to_string());
    optional(
        !options.dictionary_columns.is_empty(),
        "dictionary_include",
        options.dictionary_columns.join(","),
    );
    for (key, value) in &options.properties {
        match properties.iter_mut().find(|(known, _)| known == key) {
            Some((_, known)) => known.clone_from(value),
            None => properties.push((key.clone(), value.clone())),
        }
    }
    Ok(TableSchema {
        table_id: random_id(),
        columns,
        properties,
        buckets: (buckets > 0).then(|| (options.bucket_columns.clone(), buckets)),
        partition_columns: options.partition_columns.clone(),
        evolution: vec![SchemaChange { time, ..SchemaChange::default() }],
        data_maps: Vec::new(),
    })
}

/// How the files of a table are written: as its properties say, else as `files` does.
pub(crate) fn table_files(table: &TableSchema, files: &CarbonWriterOptions) -> Result<CarbonWriterOptions> {
    let property =
        |key: &str| table.properties.iter().find(|(known, _)| known == key).map(|(_, value)| value.as_str());
    let number = |key: &str| property(key).and_then(|value| value.trim().parse::<u64>().ok());
    let mut files = files.clone();
    if let Some(size) = number("table_blocksize") {
        files = files.with_block_bytes(size.saturating_mul(1 << 20));
    }
    if let Some(size) = number("table_blocklet_size") {
        files = files.with_blocklet_bytes(size.saturating_mul(1 << 20));
    }
    if let Some(size) = number("table_page_size_inmb") {
        files = files.with_page_bytes(usize::try_from(size.saturating_mul(1 << 20)).unwrap_or(usize::MAX));
    }
    if let Some(words) = number("local_dictionary_threshold") {
        files = files.with_local_dictionary_threshold(usize::try_from(words).unwrap_or(usize::MAX));
    }
    if let Some(enable) = property("local_dictionary_enable") {
        files = files.with_local_dictionary(enable.eq_ignore_ascii_case("true"));
    }
    if let Some(name) = property("carbon.column.compressor") {
        files = files.with_compressor(name.parse()?);
    }
    Ok(files)
}

/// The columns of a flat list that were not dropped, with their children, dimensions before measures.
fn stored_trees(columns: &[ColumnSchema]) -> Vec<ColumnSchema> {
    let mut trees: Vec<Vec<ColumnSchema>> = Vec::new();
    for column in columns {
        let is_top = column.ordinal != Some(-1) && !column.name.contains('.');
        match trees.last_mut() {
            Some(tree) if !is_top => tree.push(column.clone()),
            _ => trees.push(vec![column.clone()]),
        }
    }
    let top = |tree: &Vec<ColumnSchema>| tree.first().cloned();
    trees.retain(|tree| top(tree).is_some_and(|top| !top.is_invisible));
    trees.sort_by_key(|tree| top(tree).is_some_and(|top| !top.is_dimension));
    trees.into_iter().flatten().collect()
}

/// What a load of segment `id` writes.
pub(crate) fn plan(
    root: &Path,
    table: &TableSchema,
    id: &str,
    time: i64,
    options: &CarbonTableWriterOptions,
) -> Result<LoadPlan> {
    let depth = Limits::default().depth;
    let columns = stored_trees(&table.columns);
    let trees = column_trees(&columns, depth)?;
    let fields: Vec<_> = trees.iter().map(|tree| Arc::clone(&tree.field)).collect();
    let schema = Schema::new(fields);
    let sorted: Vec<_> =
        columns.iter().filter(|column| is_sort_column(column)).map(|column| column.name.clone()).collect();
    // A table may name sort columns and yet not be sorted.
    let is_unsorted =
        |(key, value): &(String, String)| key == "sort_scope" && value.eq_ignore_ascii_case("no_sort");
    let sort_columns = match table.properties.iter().any(is_unsorted) {
        true => Vec::new(),
        false => places_of(&schema, &sorted)?,
    };
    let (bucket_names, buckets) = table.buckets.clone().unwrap_or_default();
    let method = table.properties.iter().find(|(key, _)| key == "bucket_hash_method");
    if let Some((_, method)) = method.filter(|(_, method)| method != "spark_hash_expression") {
        return Err(Error::unsupported(format!("buckets by {method}")));
    }
    let bucket_columns = places_of(&schema, &bucket_names)?;
    let is_flat = |place: &usize| !schema.field(*place).data_type().is_nested();
    if !bucket_columns.iter().all(is_flat)
        || bucket_columns.iter().any(|place| schema.field(*place).data_type() == &DataType::BinaryView)
    {
        return Err(Error::invalid("rows cannot be put into buckets by nested columns or bytes"));
    }
    let has_dictionaries = columns.iter().any(is_global);
    if has_dictionaries && columns.iter().any(|column| column.num_child > 0) {
        return Err(Error::unsupported("writing nested columns beside dictionaries of the table"));
    }
    // Rows would be in the order of codes, which come with the rows.
    let is_coded = |column: &ColumnSchema| is_global(column) && is_sort_column(column);
    let sort_columns = if columns.iter().any(is_coded) { Vec::new() } else { sort_columns };
    Ok(LoadPlan {
        root: root.to_path_buf(),
        folder: segment_folder(id),
        columns: columns.into(),
        partition_columns: places_of(&schema, &table.partition_columns)?,
        sort_columns,
        bucket_columns,
        buckets: u32::try_from(buckets).unwrap_or_default(),
        schema: Arc::new(schema),
        segment: Some(id.to_string()),
        time,
        schema_time: table.evolution.last().map_or(time, |change| change.time),
        options: options.clone(),
        codes: HashMap::new(),
    })
}

/// Writes a folder of data files without a table's metadata, as the SDK does. It appears when it is finished.
pub struct CarbonFolderWriter {
    load: LoadWriter,
    schema: SchemaRef,
    folder: AtomicFolder,
}

impl std::fmt::Debug for CarbonFolderWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CarbonFolderWriter").field("schema", &self.schema).finish_non_exhaustive()
    }
}

impl CarbonFolderWriter {
    /// Begins the folder, which must not exist or be empty.
    ///
    /// # Errors
    /// As [`CarbonTableWriter::create`].
    pub fn create(folder: &Path, schema: &SchemaRef, options: &CarbonWriterOptions) -> Result<Self> {
        let time = now_millis();
        let columns = columns_of(schema, options, &[], Naming::Sdk)?;
        let trees = column_trees(&columns, Limits::default().depth)?;
        let fields: Vec<_> = trees.iter().map(|tree| Arc::clone(&tree.field)).collect();
        let stored = Arc::new(Schema::new(fields));
        let folder = AtomicFolder::create(folder)?;
        let plan = LoadPlan {
            root: folder.path().to_path_buf(),
            folder: PathBuf::new(),
            sort_columns: places_of(&stored, &options.sort_columns)?,
            columns: columns.into(),
            schema: Arc::clone(&stored),
            partition_columns: Vec::new(),
            bucket_columns: Vec::new(),
            buckets: 0,
            segment: None,
            time,
            schema_time: time,
            options: CarbonTableWriterOptions::default().with_files(options.clone()),
            codes: HashMap::new(),
        };
        Ok(Self { load: LoadWriter::new(plan), schema: stored, folder })
    }

    /// The schema of the files, which batches are cast to.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Appends rows.
    ///
    /// # Errors
    /// As [`CarbonTableWriter::write`].
    pub fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        self.load.write(batch)
    }

    /// Writes what is left and gives the folder its name.
    ///
    /// # Errors
    /// [`pilaster_core::ErrorKind::InvalidInput`] if there are no rows; [`pilaster_core::ErrorKind::Io`].
    pub fn finish(self) -> Result<WriteSummary> {
        let loaded = self.load.finish()?;
        if loaded.folders.is_empty() {
            return Err(Error::invalid("a folder without rows, which CarbonData cannot read"));
        }
        self.folder.commit()?;
        Ok(loaded.summary)
    }
}
