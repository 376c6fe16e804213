//! Folders of data files, as the SDK makes them.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{Schema, SchemaRef};
use pilaster_core::{Error, Limits, Location, NewFolder, Result};

use super::load::{LoadPlan, LoadWriter, places_of};
use super::options::CarbonTableWriterOptions;
use crate::file::types::column_trees;
use crate::file::write::Release;
use crate::file::write::columns::{Naming, columns_of};
use crate::file::write::writer::now_millis;
use crate::file::{CarbonWriterOptions, WriteSummary};

/// Writes a folder of data files without a table's metadata, as the SDK does. It appears when it is finished.
pub struct CarbonFolderWriter {
    load: LoadWriter,
    schema: SchemaRef,
    folder: NewFolder,
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
    /// As [`super::CarbonTableWriter::create`].
    pub fn create(
        folder: impl Into<Location>,
        schema: &SchemaRef,
        options: &CarbonWriterOptions,
    ) -> Result<Self> {
        let time = now_millis();
        let columns = columns_of(schema, options, &[], Naming::Sdk)?;
        let trees = column_trees(&columns, Limits::default().depth)?;
        let fields: Vec<_> = trees.iter().map(|tree| Arc::clone(&tree.field)).collect();
        let stored = Arc::new(Schema::new(fields));
        let folder = NewFolder::create(folder)?;
        let plan = LoadPlan {
            root: folder.place().clone(),
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
            release: Release::Current,
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
    /// As [`super::CarbonTableWriter::write`].
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
        self.folder.finish()?;
        Ok(loaded.summary)
    }
}
