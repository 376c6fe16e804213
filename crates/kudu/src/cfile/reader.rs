//! A CFile as a dataset.

use std::sync::Arc;

use arrow_schema::SchemaRef;
use pilaster_core::describe::{ColumnStatistics, Node, Page};
use pilaster_core::positional;
use pilaster_core::{
    Dataset, Error, OnDamage, Progress, Result, Scan, ScanPlan, ScanRequest, SourceRef, TaskSpan,
    VerifyDepth, VerifyReport,
};

use super::arrow_types::is_ordered_as_stored;
use super::file::{CFile, CFileReaderOptions};
use super::kinds::{CFileColumns, CFileKind, bloom_entries};
use super::metadata::{CFileMetadata, MAX_KEY, MIN_KEY};
use super::recover::{AssumedShape, recover};
use super::types::Compression;
use super::{describe, verify};

/// An open CFile. Cheap to clone; footer, indexes and dictionary are read once and shared.
#[derive(Debug, Clone)]
pub struct CFileReader {
    file: Arc<CFile>,
    kind: CFileKind,
    schema: SchemaRef,
    rows: u64,
}

impl CFileReader {
    /// Opens a CFile with the default options.
    ///
    /// # Errors
    /// As [`CFileReader::open_with_options`].
    pub fn open(source: SourceRef) -> Result<Self> {
        Self::open_with_options(source, &CFileReaderOptions::default())
    }

    /// Opens a CFile: reads header and footer.
    ///
    /// # Errors
    /// [`pilaster_core::ErrorKind::Corrupt`] if header or footer are damaged,
    /// [`pilaster_core::ErrorKind::InvalidInput`] if the column cannot be read as the type asked for.
    pub fn open_with_options(source: SourceRef, options: &CFileReaderOptions) -> Result<Self> {
        Self::new(CFile::open(source, options)?, options)
    }

    /// Opens a CFile whose header is damaged: nothing in it is needed to read values.
    ///
    /// # Errors
    /// As [`CFileReader::open_with_options`], but for the header.
    pub fn open_without_header(source: SourceRef, options: &CFileReaderOptions) -> Result<Self> {
        Self::new(CFile::open(source, &options.clone().without_header())?, options)
    }

    /// Opens a CFile whose footer is lost: every block is looked for in the bytes. If the footer is sound after all, it counts, not
    /// the shape. Where rows may be missing that nobody can count, scans that do not skip damage stop.
    ///
    /// # Errors
    /// [`pilaster_core::ErrorKind::InvalidInput`] if the shape makes no sense; [`pilaster_core::ErrorKind::Corrupt`] if there
    /// is no room for a header; [`pilaster_core::ErrorKind::Io`].
    pub fn recover(source: SourceRef, shape: &AssumedShape, options: &CFileReaderOptions) -> Result<Self> {
        Self::new(recover(source, shape, options)?, options)
    }

    fn new(file: CFile, options: &CFileReaderOptions) -> Result<Self> {
        let kind = CFileKind::of(file.metadata());
        if kind == CFileKind::Delta {
            file.check_delta_shape()?;
        }
        if let (Some(field), CFileKind::Delta | CFileKind::Bloom) = (&options.field, kind) {
            let columns = kind.schema(&file).fields().iter().map(|f| f.name().clone()).collect::<Vec<_>>();
            let message = format!(
                "the columns of this file are {}: it cannot be read as one column \"{}\"",
                columns.join(", "),
                field.name()
            );
            return Err(Error::invalid(message).at(file.name(), 0, ""));
        }
        let rows = match kind {
            CFileKind::Bloom => bloom_entries(&file)?.len() as u64,
            CFileKind::Column | CFileKind::Delta => file.metadata().num_values,
        };
        Ok(Self { schema: kind.schema(&file), file: Arc::new(file), kind, rows })
    }

    /// Everything header and footer say.
    pub fn metadata(&self) -> &CFileMetadata {
        self.file.metadata()
    }

    /// What its rows are.
    pub fn kind(&self) -> CFileKind {
        self.kind
    }

    /// Whether the rowset of this bloom file may hold an encoded key (see [`crate::key`]).
    ///
    /// # Errors
    /// If the block of the key cannot be read.
    pub fn bloom_may_contain(&self, key: &[u8]) -> Result<bool> {
        self.file.bloom_may_contain(key)
    }

    pub(crate) fn file(&self) -> &Arc<CFile> {
        &self.file
    }
}

impl Dataset for CFileReader {
    fn format(&self) -> &'static str {
        match self.kind {
            CFileKind::Column => "kudu cfile",
            CFileKind::Delta => "kudu delta file",
            CFileKind::Bloom => "kudu bloom file",
        }
    }

    fn name(&self) -> &str {
        self.file.name()
    }

    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn row_count(&self) -> Option<u64> {
        Some(self.rows)
    }

    fn size_bytes(&self) -> u64 {
        self.metadata().file_bytes
    }

    fn scan(&self) -> Scan<'_> {
        Scan::new(self)
    }

    fn plan(&self, request: &ScanRequest) -> Result<ScanPlan> {
        let mut wanted = request.wanted_rows(self.rows);
        if let (Some(predicate), CFileKind::Column) = (&request.predicate, self.kind) {
            let bounds = predicate.bind(&self.schema)?.bounds(0);
            wanted = self.file.narrow(&wanted, &bounds, &request.on_damage)?;
        }
        if let Some(recovered) = &self.file.recovered {
            for error in recovered.lost.iter().map(|lost| lost.error(self.name())) {
                match &request.on_damage {
                    OnDamage::Skip(log) => log.record_unknown(&error),
                    OnDamage::Stop => return Err(error),
                }
            }
        }
        let (file, kind, schema) = (Arc::clone(&self.file), self.kind, Arc::clone(&self.schema));
        let spans = TaskSpan::stretches(self.rows, self.size_bytes());
        ScanPlan::by_rows(request, &self.schema, wanted, spans, move |request, wanted| {
            let memory = request.memory(&file.store.limits);
            let columns = CFileColumns { file: Arc::clone(&file), kind, memory };
            positional::scan(&columns, &schema, request, wanted)
        })
    }

    fn verify(&self, depth: VerifyDepth, progress: &dyn Progress) -> Result<VerifyReport> {
        Ok(verify::verify(&self.file, self.kind, depth, progress))
    }

    fn describe(&self) -> Result<Node> {
        describe::describe(&self.file, self.kind)
    }

    fn pages(&self) -> Result<Vec<Page>> {
        describe::pages(&self.file, self.kind, self.schema.field(0).name())
    }

    fn column_statistics(&self) -> Result<Vec<ColumnStatistics>> {
        Ok(self.by_columns(column_statistics(&self.file)))
    }

    fn column_statistics_with_sizes(&self) -> Result<Vec<ColumnStatistics>> {
        Ok(self.by_columns(column_statistics_with_sizes(&self.file, self.kind)))
    }
}

impl CFileReader {
    /// What is known of the file, as that of its columns.
    fn by_columns(&self, whole: ColumnStatistics) -> Vec<ColumnStatistics> {
        if self.kind == CFileKind::Column {
            return vec![whole];
        }
        // The columns are parts of one value; its bytes count for the last of them, of which most are.
        let part =
            || ColumnStatistics { bytes: 0, uncompressed_bytes: None, min: None, max: None, ..whole.clone() };
        let mut columns: Vec<_> = self.schema.fields().iter().map(|_| part()).collect();
        if let Some(last) = columns.last_mut() {
            (last.bytes, last.uncompressed_bytes) = (whole.bytes, whole.uncompressed_bytes);
        }
        columns
    }
}

/// As [`column_statistics`], with what the blocks tell of their sizes.
pub(crate) fn column_statistics_with_sizes(file: &CFile, kind: CFileKind) -> ColumnStatistics {
    // A damaged index leaves it unknown.
    let uncompressed_bytes = describe::uncompressed_bytes(file, kind).ok();
    ColumnStatistics { uncompressed_bytes, ..column_statistics(file) }
}

/// What header and footer of a column's CFile tell about it.
pub(crate) fn column_statistics(file: &CFile) -> ColumnStatistics {
    let metadata = file.metadata();
    // Only a key column's own file has keys of its own type; text that is not UTF-8 has no Arrow form.
    let key = |name: &str| metadata.pair(name).and_then(|encoded| file.decode_key(encoded).ok());
    let is_key =
        metadata.value_index.is_some() && is_ordered_as_stored(metadata.data_type, file.field.data_type());
    ColumnStatistics {
        min: key(MIN_KEY).filter(|_| is_key),
        max: key(MAX_KEY).filter(|_| is_key),
        nulls: (!metadata.is_nullable).then_some(0),
        encodings: vec![metadata.encoding.name().to_string()],
        codecs: vec![metadata.compression.name().to_string()],
        bytes: metadata.file_bytes,
        uncompressed_bytes: (metadata.compression == Compression::None).then_some(metadata.file_bytes),
    }
}
