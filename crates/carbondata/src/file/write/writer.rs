//! A whole file: header, blocklets, footer.

use std::collections::HashMap;
use std::io::Write;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use bytes::Bytes;
use pilaster_core::{Error, Result};

use super::super::page::encoding;
use super::columns::{Naming, columns_of};
use super::encoder::{EncodedBlocklet, RowEncoder};
use super::options::CarbonWriterOptions;
use super::release::Release;
use super::strings::fitting;
use super::table_codes::UNKNOWN_CARDINALITY;
use crate::messages::{
    BlockIndex, BlockletIndex, BlockletInfo, ColumnSchema, FileFooter, FileHeader, IndexHeader, MinMax,
};

/// The version of the format.
const VERSION: i32 = 3;

/// What was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WriteSummary {
    /// Rows written.
    pub rows: u64,
    /// Data files written.
    pub files: u64,
    /// Blocklets of them.
    pub blocklets: u64,
    /// Bytes of the data files.
    pub data_bytes: u64,
    /// Bytes of the index files.
    pub index_bytes: u64,
    /// Values that CarbonData cannot tell from others and that will be read as those: long texts that are null (read as empty),
    /// empty bytes, arrays of one null and structs of nothing but nulls (read as null).
    pub conflated: u64,
}

/// What an index file says of a data file.
#[derive(Debug, Clone)]
pub struct FileIndex {
    rows: i64,
    footer_offset: i64,
    file_size: i64,
    blocklets: Vec<(BlockletIndex, BlockletInfo)>,
    columns: Arc<[ColumnSchema]>,
    cardinalities: Arc<[i32]>,
    time_stamp: i64,
    is_sorted: bool,
}

/// The bytes of an index file over data files of these names, which must be of one schema; `bucket` is that of their rows.
///
/// # Errors
/// [`pilaster_core::ErrorKind::InvalidInput`] if there is no file.
pub fn index_file(files: &[(String, FileIndex)], bucket: u32) -> Result<Vec<u8>> {
    let Some((_, first)) = files.first() else {
        return Err(Error::invalid("an index file of no data files"));
    };
    let header = IndexHeader {
        version: VERSION,
        columns: first.columns.to_vec(),
        cardinalities: first.cardinalities.to_vec(),
        bucket: i32::try_from(bucket).ok(),
        time_stamp: Some(first.time_stamp),
        is_sorted: Some(first.is_sorted),
    };
    let mut records = Vec::new();
    for (name, file) in files {
        records.extend(file.blocklets.iter().map(|(index, info)| BlockIndex {
            rows: file.rows,
            file_name: name.clone(),
            footer_offset: file.footer_offset,
            index: index.clone(),
            blocklet: Some(info.clone()),
            file_size: Some(file.file_size),
        }));
    }
    Ok(header.write_file(&records))
}

/// What every file of a load says of itself.
#[derive(Debug, Clone)]
pub(crate) struct FileFacts {
    columns: Arc<[ColumnSchema]>,
    cardinalities: Arc<[i32]>,
    time_stamp: i64,
    is_sorted: bool,
    written_by: String,
    release: Release,
}

impl FileFacts {
    pub fn new(
        columns: Arc<[ColumnSchema]>,
        time_stamp: i64,
        is_sorted: bool,
        written_by: &str,
        release: Release,
    ) -> Self {
        let cardinalities = match release {
            Release::Old => cardinalities(&columns).into(),
            Release::Current => Arc::new([]) as Arc<[i32]>,
        };
        Self { columns, cardinalities, time_stamp, is_sorted, written_by: written_by.to_string(), release }
    }
}

/// What files of releases before 2.0 note for each dimension: how many codes it may have.
fn cardinalities(columns: &[ColumnSchema]) -> Vec<i32> {
    let cardinality = |column: &ColumnSchema| match column.encoders.contains(&encoding::DICTIONARY) {
        true => UNKNOWN_CARDINALITY,
        false => -1,
    };
    columns.iter().filter(|column| column.is_dimension).map(cardinality).collect()
}

/// A file that blocklets are written into.
#[derive(Debug)]
pub(crate) struct FileOutput<W> {
    sink: W,
    facts: FileFacts,
    position: u64,
    rows: i64,
    indexes: Vec<BlockletIndex>,
    blocklets: Vec<BlockletInfo>,
}

fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

impl<W: Write> FileOutput<W> {
    pub fn new(sink: W, facts: FileFacts) -> Result<Self> {
        let header = FileHeader {
            version: VERSION,
            columns: facts.columns.to_vec(),
            is_footer_present: true,
            time_stamp: facts.time_stamp,
            sync_marker: None,
            compressor_name: None,
        };
        let mut bytes = Vec::new();
        header.write(&mut bytes);
        let mut output =
            Self { sink, facts, position: 0, rows: 0, indexes: Vec::new(), blocklets: Vec::new() };
        output.put(&bytes)?;
        Ok(output)
    }

    fn put(&mut self, bytes: &[u8]) -> Result<()> {
        self.sink.write_all(bytes)?;
        self.position = self.position.saturating_add(bytes.len() as u64);
        Ok(())
    }

    /// Bytes so far.
    pub fn bytes(&self) -> u64 {
        self.position
    }

    pub fn has_blocklets(&self) -> bool {
        !self.blocklets.is_empty()
    }

    pub fn write(&mut self, blocklet: EncodedBlocklet) -> Result<()> {
        let EncodedBlocklet { page_rows, chunks } = blocklet;
        let rows = page_rows.iter().try_fold(0i32, |sum, rows| sum.checked_add(*rows));
        let rows = rows.ok_or_else(|| Error::invalid("a blocklet of more than two thousand million rows"))?;
        let dimensions = self.facts.columns.iter().take_while(|column| column.is_dimension).count();
        let mut info = BlockletInfo {
            rows,
            chunk_offsets: Vec::with_capacity(chunks.len()),
            chunk_header_lengths: Vec::with_capacity(chunks.len()),
            dimensions_end: None,
            measures_end: None,
            pages: fitting(page_rows.len(), "the pages of a blocklet")?,
            page_rows: Some(page_rows),
        };
        let mut bounds = MinMax { min: Vec::new(), max: Vec::new(), is_present: Vec::new() };
        for (number, chunk) in chunks.into_iter().enumerate() {
            if number == dimensions {
                info.dimensions_end = Some(signed(self.position));
            }
            info.chunk_offsets.push(signed(self.position));
            info.chunk_header_lengths.push(fitting(chunk.header.len(), "the header of a chunk")?);
            self.put(&chunk.header)?;
            for page in &chunk.pages {
                self.put(page)?;
            }
            let (min, max, is_present): (Bytes, Bytes, bool) = chunk.bounds;
            bounds.min.push(min);
            bounds.max.push(max);
            bounds.is_present.push(is_present);
        }
        info.dimensions_end.get_or_insert(signed(self.position));
        info.measures_end = Some(signed(self.position));
        self.rows = self.rows.saturating_add(i64::from(rows));
        self.indexes.push(BlockletIndex::new(bounds));
        self.blocklets.push(info);
        Ok(())
    }

    /// Writes the footer.
    pub fn finish(mut self) -> Result<(W, FileIndex)> {
        if self.blocklets.is_empty() {
            return Err(Error::invalid("a data file without rows, which CarbonData cannot read"));
        }
        let offset = self.position;
        let footer = FileFooter {
            rows: self.rows,
            cardinalities: self.facts.cardinalities.to_vec(),
            indexes: self.indexes,
            blocklets: self.blocklets,
            is_sorted: Some(self.facts.is_sorted),
            extra: vec![
                ("written_by".into(), self.facts.written_by.clone()),
                ("version".into(), self.facts.release.version().into()),
            ],
        };
        let mut bytes = Vec::new();
        footer.write(self.facts.columns.len(), &mut bytes);
        bytes.extend(signed(offset).to_be_bytes());
        self.sink.write_all(&bytes)?;
        self.sink.flush()?;
        let index = FileIndex {
            rows: footer.rows,
            footer_offset: signed(offset),
            file_size: signed(offset.saturating_add(bytes.len() as u64)),
            blocklets: footer.indexes.into_iter().zip(footer.blocklets).collect(),
            columns: self.facts.columns,
            cardinalities: self.facts.cardinalities,
            time_stamp: self.facts.time_stamp,
            is_sorted: self.facts.is_sorted,
        };
        Ok((self.sink, index))
    }
}

impl FileIndex {
    pub(crate) fn summary(&self) -> WriteSummary {
        let number = |value: i64| u64::try_from(value).unwrap_or_default();
        WriteSummary {
            rows: number(self.rows),
            files: 1,
            blocklets: self.blocklets.len() as u64,
            data_bytes: number(self.file_size),
            index_bytes: 0,
            conflated: 0,
        }
    }
}

impl WriteSummary {
    pub(crate) fn add(&mut self, other: Self) {
        self.rows = self.rows.saturating_add(other.rows);
        self.files = self.files.saturating_add(other.files);
        self.blocklets = self.blocklets.saturating_add(other.blocklets);
        self.data_bytes = self.data_bytes.saturating_add(other.data_bytes);
        self.index_bytes = self.index_bytes.saturating_add(other.index_bytes);
        self.conflated = self.conflated.saturating_add(other.conflated);
    }
}

/// Writes one data file in one pass, rows in the order they come. In memory are the pages of one blocklet.
///
/// CarbonData reads a data file only with an index file beside it: see [`index_file`]. To have rows sorted, and for files of a
/// limited size, write a folder ([`crate::table::CarbonFolderWriter`]) or a table ([`crate::table::CarbonTableWriter`]).
///
/// ```
/// use std::sync::Arc;
/// use arrow_array::{ArrayRef, Int32Array, RecordBatch};
/// use pilaster_carbondata::file::{CarbonFileWriter, CarbonWriterOptions};
///
/// let batch = RecordBatch::try_from_iter([("id", Arc::new(Int32Array::from(vec![1, 2])) as ArrayRef)])?;
/// let mut writer = CarbonFileWriter::try_new(Vec::new(), &batch.schema(), &CarbonWriterOptions::default())?;
/// writer.write(&batch)?;
/// let (bytes, summary, index) = writer.finish()?;
/// assert_eq!((summary.rows, bytes.len() as u64), (2, summary.data_bytes));
/// # let _ = index;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct CarbonFileWriter<W: Write> {
    encoder: RowEncoder,
    output: FileOutput<W>,
}

impl<W: Write> CarbonFileWriter<W> {
    /// Begins a file for batches of `schema`.
    ///
    /// # Errors
    /// [`pilaster_core::ErrorKind::InvalidInput`] if a column has no form in the format or an option names none;
    /// [`pilaster_core::ErrorKind::Io`].
    pub fn try_new(sink: W, schema: &SchemaRef, options: &CarbonWriterOptions) -> Result<Self> {
        let columns = columns_of(schema, options, &[], Naming::Sdk)?;
        Self::with_columns(sink, columns.into(), options)
    }

    pub(crate) fn with_columns(
        sink: W,
        columns: Arc<[ColumnSchema]>,
        options: &CarbonWriterOptions,
    ) -> Result<Self> {
        let facts =
            FileFacts::new(Arc::clone(&columns), now_millis(), false, &options.written_by, Release::Current);
        let encoder = RowEncoder::new(&columns, &HashMap::new(), Release::Current, options)?;
        Ok(Self { encoder, output: FileOutput::new(sink, facts)? })
    }

    /// The schema of the file, which batches are cast to.
    pub fn schema(&self) -> &SchemaRef {
        self.encoder.schema()
    }

    /// Appends rows.
    ///
    /// # Errors
    /// [`pilaster_core::ErrorKind::InvalidInput`] if the batch has other columns or a value that cannot be stored;
    /// [`pilaster_core::ErrorKind::Io`].
    pub fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        self.encoder.write(batch, &mut |blocklet| self.output.write(blocklet))
    }

    /// Writes the last blocklet and the footer; gives the sink back, what was written, and what an index file must say.
    ///
    /// # Errors
    /// [`pilaster_core::ErrorKind::InvalidInput`] if there are no rows; [`pilaster_core::ErrorKind::Io`].
    pub fn finish(mut self) -> Result<(W, WriteSummary, FileIndex)> {
        self.encoder.finish(&mut |blocklet| self.output.write(blocklet))?;
        let conflated = self.encoder.conflated();
        let (sink, index) = self.output.finish()?;
        Ok((sink, WriteSummary { conflated, ..index.summary() }, index))
    }
}

/// Milliseconds since 1970.
pub(crate) fn now_millis() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}
