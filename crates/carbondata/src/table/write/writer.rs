//! New tables, and loads into tables that exist.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use pilaster_core::{Error, Location, NewFolder, Result};

use super::super::schema::TableSchema;
use super::commit::{
    Entry, change_status, finish_entry, is_old, new_entry, next_id, read_entries, set_modified, text,
    write_entries, write_segment_file,
};
use super::dictionary::Dictionaries;
use super::load::{LoadPlan, LoadWriter, Loaded};
use super::lock::TableLock;
use super::options::CarbonTableWriterOptions;
use super::plan::{FACT, new_table, plan, read_table, table_files};
use crate::file::WriteSummary;
use crate::file::write::writer::now_millis;

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
    New(NewFolder),
    Segment(Box<OpenSegment>),
}

/// A load that `tablestatus` says is in progress. Dropped, it is marked as deleted.
struct OpenSegment {
    table: Location,
    id: String,
    options: CarbonTableWriterOptions,
    is_done: bool,
    /// Says that the load is alive.
    _lock: TableLock,
}

impl OpenSegment {
    fn begin(
        table: &Location,
        schema: &TableSchema,
        time: i64,
        options: &CarbonTableWriterOptions,
    ) -> Result<Self> {
        let begun = change_status(table, options, |entries| {
            let id = next_id(entries)?.to_string();
            let lock = TableLock::take(table, &format!("Segment_{id}.lock"), options.lock_timeout)?;
            entries.push(new_entry(is_old(schema, entries), &id, "In Progress", time));
            Ok((id, lock))
        });
        let (id, lock) = begun?;
        Ok(Self { table: table.clone(), id, options: options.clone(), is_done: false, _lock: lock })
    }

    /// Changes its own entry.
    fn change(&self, change: impl FnOnce(&mut Entry)) -> Result<()> {
        change_status(&self.table, &self.options, |entries| {
            let entry = entries.iter_mut().find(|entry| text(entry, "loadName") == self.id);
            let name = self.table.to_string();
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
    pub fn create(
        folder: impl Into<Location>,
        schema: &SchemaRef,
        options: CarbonTableWriterOptions,
    ) -> Result<Self> {
        let time = now_millis();
        let table = new_table(schema, &options, time)?;
        let folder = NewFolder::create(folder)?;
        for part in ["Metadata/segments", FACT] {
            folder.place().child(part).make_folder()?;
        }
        folder.place().child("Metadata/schema").write(&table.write())?;
        let plan = plan(folder.place(), &table, "0", time, false, &options)?;
        let dictionaries = Dictionaries::open(folder.place(), &plan.columns, &options)?;
        Ok(Self::new(plan, Target::New(folder), dictionaries))
    }

    /// Begins a load into the table in `folder`, which becomes a segment of its own. Sort columns, partitions, buckets and
    /// sizes are the table's.
    ///
    /// # Errors
    /// If the table cannot be read, somebody else holds its lock, or it has what this writer cannot add to.
    pub fn append(folder: impl Into<Location>, options: CarbonTableWriterOptions) -> Result<Self> {
        let folder = &folder.into();
        let table = read_table(folder)?;
        let time = now_millis();
        let options = CarbonTableWriterOptions { files: table_files(&table, &options.files)?, ..options };
        // What cannot be written is refused before anything is changed.
        let is_old = is_old(&table, &read_entries(folder)?);
        let columns = plan(folder, &table, "0", time, is_old, &options)?.columns;
        let dictionaries = Dictionaries::open(folder, &columns, &options)?;
        let segment = OpenSegment::begin(folder, &table, time, &options)?;
        let plan = plan(folder, &table, &segment.id, time, is_old, &options)?;
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
                let file = write_segment_file(folder.place(), "0", time, &folders)?;
                let mut entries = Vec::new();
                if file.is_some() {
                    let mut entry = new_entry(has_dictionaries, "0", "Success", time);
                    finish_entry(&mut entry, file.as_deref(), &summary);
                    entries.push(entry);
                }
                write_entries(folder.place(), &entries)?;
                folder.finish()?;
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
