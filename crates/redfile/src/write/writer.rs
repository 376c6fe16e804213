//! Row groups, checkpoints and the footer.

use std::io::Write;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_buffer::ArrowNativeType;
use arrow_schema::{DataType, SchemaRef};
use pilaster_core::{Error, Result, SourceRef, fitting};

use super::column::ColumnWriter;
use super::options::RedfileWriterOptions;
use super::shred::shred;
use crate::metadata::{
    ColumnChunk, ColumnMetadata, FileMetadata, KeyValue, MAGIC, RowGroup, VERSION, checksums,
};
use crate::recover::Block;
use crate::schema::RedfileSchema;

/// Rows that are shredded at once, at most: a row group may end after each such stretch.
const SLICE_ROWS: usize = 8192;

/// Bytes that are copied at once.
const COPY_BYTES: u64 = 1 << 20;

/// A chunk that is stored already.
#[derive(Debug)]
pub(crate) struct StoredChunk {
    pub source: SourceRef,
    pub bytes: Range<u64>,
    pub metadata: ColumnMetadata,
}

/// What was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WriteSummary {
    /// Rows of the file.
    pub rows: u64,
    /// Row groups of the file.
    pub row_groups: u64,
    /// Bytes of the file, and of its data files.
    pub bytes: u64,
}

/// A file that holds chunks for a metadata file elsewhere.
#[derive(Debug)]
pub struct DataFile<W> {
    /// Its path, relative to the folder of the metadata file.
    pub path: String,
    /// Where its bytes go.
    pub sink: W,
}

/// Counts the bytes that go into a sink.
#[derive(Debug)]
struct Output<W> {
    sink: W,
    position: u64,
}

impl<W: Write> Output<W> {
    fn new(sink: W) -> Result<Self> {
        let mut output = Self { sink, position: 0 };
        output.write(&MAGIC)?;
        Ok(output)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.sink.write_all(bytes)?;
        self.position = self.position.saturating_add(bytes.len() as u64);
        Ok(())
    }
}

/// Writes a Redfile in one pass. In memory are the stored pages of one row group; with checkpoints (the default) every row
/// group that was written is safe even if the writer is never finished.
#[derive(Debug)]
pub struct RedfileWriter<W: Write> {
    schema: RedfileSchema,
    options: RedfileWriterOptions,
    metadata: FileMetadata,
    output: Output<W>,
    data_files: Vec<(String, Output<W>)>,
    /// For each column the data file that holds it; none: this file.
    places: Vec<Option<usize>>,
    columns: Vec<ColumnWriter>,
    rows_in_group: u64,
    previous_block: u64,
}

impl<W: Write> RedfileWriter<W> {
    /// Begins a file for batches of `schema`.
    ///
    /// # Errors
    /// [`pilaster_core::ErrorKind::InvalidInput`] if a column has no form in the format or an option names none;
    /// [`pilaster_core::ErrorKind::Io`].
    pub fn try_new(sink: W, schema: &SchemaRef, options: RedfileWriterOptions) -> Result<Self> {
        Self::try_new_with_schema(sink, RedfileSchema::from_arrow(schema)?, options)
    }

    /// Begins a file with a schema of the format itself, for instance that of another file; batches have its Arrow form.
    ///
    /// # Errors
    /// As [`RedfileWriter::try_new`].
    pub fn try_new_with_schema(
        sink: W,
        schema: RedfileSchema,
        options: RedfileWriterOptions,
    ) -> Result<Self> {
        Self::try_new_with_data_files(sink, Vec::new(), &|_| None, schema, options)
    }

    /// Begins a metadata file whose columns lie in `files`: `place` says for each column path in which, by number, or `None` for the
    /// metadata file itself.
    ///
    /// # Errors
    /// As [`RedfileWriter::try_new`].
    pub fn try_new_with_data_files(
        sink: W,
        files: Vec<DataFile<W>>,
        place: &dyn Fn(&[String]) -> Option<usize>,
        schema: RedfileSchema,
        options: RedfileWriterOptions,
    ) -> Result<Self> {
        let leaves = schema.leaves();
        if let Some(path) =
            options.column_codecs.keys().find(|path| !leaves.iter().any(|leaf| leaf.name() == **path))
        {
            return Err(Error::invalid(format!("no column \"{path}\"")));
        }
        let columns =
            leaves.iter().map(|leaf| ColumnWriter::new(leaf, &options)).collect::<Result<Vec<_>>>()?;
        let places: Vec<_> = leaves.iter().map(|leaf| place(&leaf.path)).collect();
        if let Some(number) = places.iter().flatten().find(|number| **number >= files.len()) {
            return Err(Error::invalid(format!("no data file {number}: there are {}", files.len())));
        }
        let data_files = files
            .into_iter()
            .map(|file| Ok((file.path, Output::new(file.sink)?)))
            .collect::<Result<Vec<_>>>()?;
        let marker = (options.checkpoint_interval > 0)
            .then(|| options.sync_marker.unwrap_or_else(|| fastrand::u128(..).to_le_bytes()));
        let interval = i32::try_from(options.checkpoint_interval)
            .map_err(|_| Error::invalid("an interval between checkpoints above two thousand million"))?;
        let metadata = FileMetadata {
            version: VERSION,
            schema: schema.elements().to_vec(),
            key_values: key_values(&schema, &options),
            created_by: options.created_by.clone(),
            sync_marker: marker,
            checkpoint_interval: marker.map(|_| interval),
            checksums: options.checksums.then_some(checksums::ALL),
            ..FileMetadata::default()
        };
        let mut writer = Self {
            schema,
            options,
            metadata,
            output: Output::new(sink)?,
            data_files,
            places,
            columns,
            rows_in_group: 0,
            previous_block: 0,
        };
        writer.write_block()?;
        Ok(writer)
    }

    /// The Arrow schema of the batches it takes.
    pub fn schema(&self) -> &SchemaRef {
        self.schema.arrow()
    }

    /// Appends rows.
    ///
    /// # Errors
    /// [`pilaster_core::ErrorKind::InvalidInput`] if the batch has other columns, or a value that cannot be stored.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        let expected = self.schema.shapes().len();
        if batch.num_columns() != expected {
            return Err(Error::invalid(format!(
                "a batch of {} columns for a file of {expected}",
                batch.num_columns()
            )));
        }
        let mut from = 0usize;
        while from < batch.num_rows() {
            let room = self.options.row_group_rows.saturating_sub(self.rows_in_group);
            let rows = usize::try_from(room)
                .unwrap_or(usize::MAX)
                .min(SLICE_ROWS)
                .min(batch.num_rows().saturating_sub(from));
            let rows = self.fitting_rows(&batch.slice(from, rows));
            self.write_slice(&batch.slice(from, rows))?;
            from = from.saturating_add(rows);
        }
        Ok(())
    }

    /// How many of the first rows of `batch` the row group has room for, one at least.
    fn fitting_rows(&self, batch: &RecordBatch) -> usize {
        let room = self.options.row_group_bytes.saturating_sub(self.bytes_in_group());
        let mut rows = batch.num_rows();
        while rows > 1 && plain_bytes(&batch.slice(0, rows)) > room {
            rows = rows.div_ceil(2);
        }
        rows
    }

    fn bytes_in_group(&self) -> u64 {
        self.columns.iter().map(ColumnWriter::uncompressed_bytes).fold(0, u64::saturating_add)
    }

    fn write_slice(&mut self, batch: &RecordBatch) -> Result<()> {
        let mut columns = Vec::with_capacity(self.columns.len());
        // Everything is taken apart before anything is kept, so that a bad value leaves the file as it was.
        for (shape, array) in self.schema.shapes().iter().zip(batch.columns()) {
            shred(shape, array, &mut columns)?;
        }
        for column in &columns {
            let writer = self.columns.get_mut(column.leaf);
            writer.ok_or_else(|| Error::internal(format!("no column {}", column.leaf)))?.write(column)?;
        }
        self.rows_in_group = self.rows_in_group.saturating_add(batch.num_rows() as u64);
        if self.rows_in_group >= self.options.row_group_rows
            || self.bytes_in_group() >= self.options.row_group_bytes
        {
            self.end_row_group()?;
        }
        Ok(())
    }

    /// Ends the row group; nothing happens if it has no rows.
    ///
    /// # Errors
    /// [`pilaster_core::ErrorKind::Io`].
    pub fn end_row_group(&mut self) -> Result<()> {
        if self.rows_in_group == 0 {
            return Ok(());
        }
        let mut group = self.begin_group(self.rows_in_group);
        for number in 0..self.columns.len() {
            self.write_chunk(number, &mut group, |column, output| {
                let chunk = column.finish_chunk(output.position)?;
                chunk.pages.blocks().try_for_each(|pages| output.write(pages))?;
                Ok(chunk.metadata)
            })?;
        }
        self.rows_in_group = 0;
        self.finish_group(group)
    }

    /// Appends a row group of which each chunk is stored elsewhere: pages are copied as they are, and what says where they are
    /// is written anew. If this file has checksums, all structures of the chunks must have theirs.
    pub(crate) fn copy_row_group(&mut self, rows: u64, chunks: &[StoredChunk]) -> Result<()> {
        self.end_row_group()?;
        let mut group = self.begin_group(rows);
        for (number, chunk) in chunks.iter().enumerate() {
            let has_crc = self.options.checksums;
            self.write_chunk(number, &mut group, |_, output| {
                let metadata = ColumnMetadata { has_crc, ..chunk.metadata.moved_to(signed(output.position)) };
                let mut at = chunk.bytes.start;
                while at < chunk.bytes.end {
                    let end = at.saturating_add(COPY_BYTES).min(chunk.bytes.end);
                    output.write(&chunk.source.read_at(at..end)?)?;
                    at = end;
                }
                Ok(metadata)
            })?;
        }
        self.finish_group(group)
    }

    /// A row group that begins here, without its chunks.
    fn begin_group(&self, rows: u64) -> RowGroup {
        let is_here = self.places.first().is_none_or(Option::is_none);
        RowGroup {
            columns: Vec::with_capacity(self.columns.len()),
            total_byte_size: 0,
            num_rows: signed(rows),
            file_offset: (self.options.row_group_extent && is_here).then(|| signed(self.output.position)),
            total_compressed_size: self.options.row_group_extent.then_some(0),
        }
    }

    /// Lets `write` put the pages of a column into the file they belong to; their metadata follows them.
    fn write_chunk(
        &mut self,
        number: usize,
        group: &mut RowGroup,
        write: impl FnOnce(&mut ColumnWriter, &mut Output<W>) -> Result<ColumnMetadata>,
    ) -> Result<()> {
        let no_column = || Error::internal(format!("no column {number}"));
        let column = self.columns.get_mut(number).ok_or_else(no_column)?;
        let place = self.places.get(number).copied().flatten();
        let (path, output) = match place.and_then(|number| self.data_files.get_mut(number)) {
            Some((path, output)) => (Some(path.clone()), output),
            None => (None, &mut self.output),
        };
        let metadata = write(column, output)?;
        let file_offset = signed(output.position);
        let mut bytes = Vec::new();
        metadata.write(self.options.checksums, &mut bytes);
        output.write(&bytes)?;
        group.total_byte_size = group.total_byte_size.saturating_add(metadata.total_uncompressed_size);
        if let Some(stored) = &mut group.total_compressed_size {
            *stored = stored.saturating_add(metadata.total_compressed_size);
        }
        let metadata = self.options.replica.then_some(metadata);
        group.columns.push(ColumnChunk { file_path: path, file_offset, metadata });
        Ok(())
    }

    fn finish_group(&mut self, group: RowGroup) -> Result<()> {
        self.metadata.num_rows = self.metadata.num_rows.saturating_add(group.num_rows);
        self.metadata.row_groups.push(group);
        self.write_block()
    }

    /// Writes the checkpoint or the sync block that makes the last row group safe.
    fn write_block(&mut self) -> Result<()> {
        let Some(marker) = self.metadata.sync_marker else { return Ok(()) };
        for (_, file) in &mut self.data_files {
            file.sink.flush()?;
        }
        let groups = self.metadata.row_groups.len();
        let is_checkpoint = groups.checked_rem(self.options.checkpoint_interval as usize) == Some(0);
        let block = match self.metadata.row_groups.last() {
            Some(last) if !is_checkpoint => Block::row_group(marker, groups, last),
            _ => Block::checkpoint(marker, groups, &self.metadata),
        };
        let bytes = block.encode(self.output.position, self.previous_block)?;
        self.previous_block = self.output.position;
        self.output.write(&bytes)?;
        self.output.sink.flush()?;
        Ok(())
    }

    /// Adds a key with its value to the file; it is safe only once the file is finished or the next checkpoint written.
    pub fn add_key_value(&mut self, key: impl Into<String>, value: Option<String>) {
        self.metadata.key_values.get_or_insert_default().push((key.into(), value));
    }

    /// Everything the footer would say now.
    pub fn metadata(&self) -> &FileMetadata {
        &self.metadata
    }

    /// Writes the last row group and the footer, and gives the sink back. Without this call only recovery reads the file.
    ///
    /// # Errors
    /// [`pilaster_core::ErrorKind::Io`].
    pub fn finish(self) -> Result<(W, WriteSummary)> {
        let (sink, _, summary) = self.finish_all()?;
        Ok((sink, summary))
    }

    /// As [`RedfileWriter::finish`], with the sinks of the data files.
    ///
    /// # Errors
    /// As [`RedfileWriter::finish`].
    pub fn finish_all(mut self) -> Result<(W, Vec<W>, WriteSummary)> {
        self.end_row_group()?;
        let mut footer = Vec::new();
        self.metadata.write_footer(&mut footer)?;
        self.output.write(&footer)?;
        self.output.sink.flush()?;
        let mut bytes = self.output.position;
        let mut sinks = Vec::with_capacity(self.data_files.len());
        for (_, mut file) in self.data_files {
            file.sink.flush()?;
            bytes = bytes.saturating_add(file.position);
            sinks.push(file.sink);
        }
        let summary = WriteSummary {
            rows: u64::try_from(self.metadata.num_rows).unwrap_or_default(),
            row_groups: self.metadata.row_groups.len() as u64,
            bytes,
        };
        Ok((self.output.sink, sinks, summary))
    }
}

/// Bytes that rows take as they are: what is stored may be less, never much more.
fn plain_bytes(batch: &RecordBatch) -> u64 {
    let of = |array: &ArrayRef| fitting::value_bytes(array).saturating_add(number_bytes(array));
    batch.columns().iter().map(of).fold(0, u64::saturating_add)
}

/// Bytes of numbers and the like, those inside lists, structs and maps included.
fn number_bytes(array: &ArrayRef) -> u64 {
    let elements = |values: &ArrayRef, from: usize, to: usize| {
        number_bytes(&values.slice(from, to.saturating_sub(from)))
    };
    let width = |data_type: &DataType| data_type.primitive_width().unwrap_or_default();
    let rows = array.len() as u64;
    match array.data_type() {
        DataType::List(_) => {
            let list = array.as_list::<i32>();
            let at = |index: usize| list.value_offsets().get(index).map_or(0, |offset| offset.as_usize());
            elements(list.values(), at(0), at(list.len()))
        }
        DataType::LargeList(_) => {
            let list = array.as_list::<i64>();
            let at = |index: usize| list.value_offsets().get(index).map_or(0, |offset| offset.as_usize());
            elements(list.values(), at(0), at(list.len()))
        }
        DataType::FixedSizeList(..) => number_bytes(array.as_fixed_size_list().values()),
        DataType::Struct(_) => {
            array.as_struct().columns().iter().map(number_bytes).fold(0, u64::saturating_add)
        }
        DataType::Map(..) => {
            let map = array.as_map();
            let at = |index: usize| map.value_offsets().get(index).map_or(0, |offset| offset.as_usize());
            let entries: ArrayRef = Arc::new(map.entries().clone());
            elements(&entries, at(0), at(map.len()))
        }
        DataType::Dictionary(_, values) => rows.saturating_mul(width(values) as u64),
        other => rows.saturating_mul(width(other) as u64),
    }
}

fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// Those of the Arrow schema, then those of the options.
fn key_values(schema: &RedfileSchema, options: &RedfileWriterOptions) -> Option<Vec<KeyValue>> {
    let mut pairs: Vec<KeyValue> =
        schema.arrow().metadata().iter().map(|(key, value)| (key.clone(), Some(value.clone()))).collect();
    pairs.sort();
    pairs.extend(options.key_values.iter().cloned());
    (!pairs.is_empty()).then_some(pairs)
}
