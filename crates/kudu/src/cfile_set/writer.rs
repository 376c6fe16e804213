//! Writing a set.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{Field, Schema, SchemaRef};
use pilaster_core::dataset::DEFAULT_BATCH_SIZE;
use pilaster_core::{Error, Location, NewFile, NewFolder, Result};

use super::manifest::{MANIFEST_NAME, Manifest, ManifestColumn, file_name};
use crate::cfile::{CFileWriter, CFileWriterOptions, Compression, Encoding, Physical, kudu_type};

/// Bytes of a block of strings or booleans, unless the options say otherwise: whoever wants few rows reads few. Blocks of numbers hold
/// a batch, so that both end together.
const BLOCK_SIZE_BYTES: usize = 64 << 10;
/// Bytes of a dictionary then: what Kudu takes with its larger blocks.
const DICTIONARY_SIZE_BYTES: usize = 256 << 10;

/// How to write a set. Blocks hold 8,192 numbers or 64 KiB of anything else, and dictionaries have 256 KiB, unless the options of columns say
/// otherwise.
#[derive(Debug, Clone, Default)]
pub struct CFileSetWriterOptions {
    column: CFileWriterOptions,
    key: Option<String>,
    encodings: HashMap<String, Encoding>,
    compressions: HashMap<String, Compression>,
}

impl CFileSetWriterOptions {
    /// What every column is written with unless it has an option of its own.
    #[must_use]
    pub fn with_column_options(mut self, options: CFileWriterOptions) -> Self {
        self.column = options;
        self
    }

    /// The column by which the rows ascend, without repeats; it gets a value index.
    #[must_use]
    pub fn with_key(mut self, column: impl Into<String>) -> Self {
        self.key = Some(column.into());
        self
    }

    /// The encoding of one column.
    #[must_use]
    pub fn with_encoding(mut self, column: impl Into<String>, encoding: Encoding) -> Self {
        self.encodings.insert(column.into(), encoding);
        self
    }

    /// The codec of one column.
    #[must_use]
    pub fn with_compression(mut self, column: impl Into<String>, compression: Compression) -> Self {
        self.compressions.insert(column.into(), compression);
        self
    }

    /// What a column is written with that is no part of a set: as of a set, but with the sizes that Kudu takes.
    pub fn of_file(&self, field: &Field) -> CFileWriterOptions {
        self.narrowed(self.column.clone(), field)
    }

    fn of_column(&self, field: &Field) -> Result<CFileWriterOptions> {
        let block = match kudu_type(field.data_type())?.physical() {
            Physical::Fixed(width) => DEFAULT_BATCH_SIZE.saturating_mul(width),
            Physical::Bool | Physical::Binary => BLOCK_SIZE_BYTES,
        };
        Ok(self.narrowed(self.column.clone().or_sizes_bytes(block, DICTIONARY_SIZE_BYTES), field))
    }

    /// With what is asked for of this column alone.
    fn narrowed(&self, mut options: CFileWriterOptions, field: &Field) -> CFileWriterOptions {
        let name = field.name();
        if let Some(&encoding) = self.encodings.get(name) {
            options = options.with_encoding(encoding);
        }
        if let Some(&compression) = self.compressions.get(name) {
            options = options.with_compression(compression);
        }
        if self.key.as_deref() == Some(name) {
            options = options.with_value_index(true);
        }
        options
    }
}

/// The same columns; the key is one that holds no null, whatever it was declared as.
fn with_key(schema: &SchemaRef, key: Option<&str>) -> SchemaRef {
    let fields = schema.fields().iter().map(|field| match key == Some(field.name().as_str()) {
        true => Arc::new(field.as_ref().clone().with_nullable(false)),
        false => Arc::clone(field),
    });
    Arc::new(Schema::new_with_metadata(fields.collect::<Vec<_>>(), schema.metadata().clone()))
}

/// What was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SetSummary {
    /// Rows of the table.
    pub rows: u64,
    /// Bytes of all files.
    pub bytes: u64,
}

/// Writes a table as a set. The folder appears when [`CFileSetWriter::finish`] has succeeded, or not at all.
#[derive(Debug)]
pub struct CFileSetWriter {
    folder: NewFolder,
    schema: SchemaRef,
    columns: Vec<(ManifestColumn, CFileWriter<NewFile>)>,
    key: Option<String>,
    rows: u64,
}

impl CFileSetWriter {
    /// Starts a set that will be the folder `target`, which must not exist or be empty.
    ///
    /// # Errors
    /// [`pilaster_core::ErrorKind::InvalidInput`] if a column has no CFile form or an option names none;
    /// [`pilaster_core::ErrorKind::Io`].
    pub fn create(
        target: impl Into<Location>,
        schema: SchemaRef,
        options: &CFileSetWriterOptions,
    ) -> Result<Self> {
        let named = options.encodings.keys().chain(options.compressions.keys()).chain(&options.key);
        for name in named {
            pilaster_core::dataset::column_index(&schema, name)?;
        }
        let schema = with_key(&schema, options.key.as_deref());
        let folder = NewFolder::create(target)?;
        let mut columns = Vec::with_capacity(schema.fields().len());
        for (index, field) in schema.fields().iter().enumerate() {
            let column = ManifestColumn { name: field.name().clone(), file: file_name(index, field.name()) };
            let sink = folder.place().child(&column.file).create()?;
            let writer = options
                .of_column(field)
                .and_then(|options| CFileWriter::try_new(sink, field, options))
                .map_err(|error| error.at(&format!("column \"{}\"", field.name()), 0, ""))?;
            columns.push((column, writer));
        }
        Ok(Self { folder, schema, columns, key: options.key.clone(), rows: 0 })
    }

    /// Appends rows.
    ///
    /// # Errors
    /// [`pilaster_core::ErrorKind::InvalidInput`] if the batch has other columns, or a key out of order.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        if batch.num_columns() != self.columns.len() {
            return Err(Error::invalid(format!(
                "a batch of {} columns for a set of {}",
                batch.num_columns(),
                self.columns.len()
            )));
        }
        for ((_, writer), array) in self.columns.iter_mut().zip(batch.columns()) {
            writer.write_array(array)?;
        }
        self.rows = self.rows.saturating_add(batch.num_rows() as u64);
        Ok(())
    }

    /// Completes every file, makes them durable and gives the folder its name.
    ///
    /// # Errors
    /// [`pilaster_core::ErrorKind::Io`]; then there is no folder.
    pub fn finish(self) -> Result<SetSummary> {
        let mut bytes = 0u64;
        let mut columns = Vec::with_capacity(self.columns.len());
        for (column, writer) in self.columns {
            let (file, summary) = writer.finish()?;
            file.finish()?;
            bytes = bytes.saturating_add(summary.bytes);
            columns.push(column);
        }
        let json = Manifest::new(self.rows, self.key, columns, self.schema.as_ref().clone()).to_json()?;
        // Last: without it nobody takes the files for a set.
        self.folder.place().child(MANIFEST_NAME).write(&json)?;
        self.folder.finish()?;
        Ok(SetSummary { rows: self.rows, bytes: bytes.saturating_add(json.len() as u64) })
    }
}
