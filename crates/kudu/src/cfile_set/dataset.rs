//! A set as a dataset.

use std::sync::{Arc, OnceLock};

use arrow_schema::SchemaRef;
use pilaster_core::dataset::column_index;
use pilaster_core::describe::{ColumnStatistics, Node, Page};
use pilaster_core::error::AtPosition;
use pilaster_core::positional::{self, ColumnCursor, Columns};
use pilaster_core::source::open_source;
use pilaster_core::verify::Finding;
use pilaster_core::{
    BatchReader, Dataset, Error, Limits, Progress, Result, RowRanges, Scan, ScanRequest, SourceRef, Split,
    VerifyDepth, VerifyReport,
};

use super::manifest::{MANIFEST_NAME, MAX_MANIFEST_BYTES, Manifest};
use crate::cfile::{CFile, CFileReader, CFileReaderOptions, CellCursor, column_statistics, row_splits};

/// How to open a set.
#[derive(Debug, Clone)]
pub struct CFileSetOptions {
    verify_checksums: bool,
    limits: Limits,
}

impl Default for CFileSetOptions {
    /// Checksums are verified.
    fn default() -> Self {
        Self { verify_checksums: true, limits: Limits::default() }
    }
}

impl CFileSetOptions {
    /// Whether stored checksums are compared; on unless switched off.
    #[must_use]
    pub fn with_verify_checksums(mut self, verify: bool) -> Self {
        self.verify_checksums = verify;
        self
    }

    /// How much a file may make us allocate.
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }
}

/// Opens the file of a column by its name in the folder.
type OpenFile = Arc<dyn Fn(&str) -> Result<SourceRef> + Send + Sync>;

/// An open set. A column's file is opened when it is first needed, and kept.
#[derive(Clone)]
pub struct CFileSet(Arc<Inner>);

struct Inner {
    name: String,
    manifest: Manifest,
    schema: SchemaRef,
    options: CFileSetOptions,
    open_file: OpenFile,
    columns: Vec<OnceLock<CFileReader>>,
    /// The same files, opened for a scan: that needs no header, and so one read less.
    scanned: Vec<OnceLock<Arc<CFile>>>,
}

impl std::fmt::Debug for CFileSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CFileSet").field("name", &self.0.name).finish_non_exhaustive()
    }
}

impl CFileSet {
    /// Opens the set in `folder`, a path or an address.
    ///
    /// # Errors
    /// [`pilaster_core::ErrorKind::Io`] if there is no manifest, [`pilaster_core::ErrorKind::Corrupt`] if it is damaged.
    pub fn open(folder: &str, options: CFileSetOptions) -> Result<Self> {
        let base = folder.trim_end_matches('/').to_string();
        Self::open_with(folder, options, move |file| open_source(&format!("{base}/{file}")))
    }

    /// Opens a set whose files `open_file` finds by name.
    ///
    /// # Errors
    /// As [`CFileSet::open`].
    pub fn open_with(
        name: &str,
        options: CFileSetOptions,
        open_file: impl Fn(&str) -> Result<SourceRef> + Send + Sync + 'static,
    ) -> Result<Self> {
        let source = open_file(MANIFEST_NAME)?;
        if source.size() > MAX_MANIFEST_BYTES {
            return Err(Error::corrupt(
                format!("a manifest of at most {MAX_MANIFEST_BYTES} bytes"),
                source.size(),
            )
            .at(source.name(), 0, "cfile set manifest"));
        }
        let bytes = source.read_at(0..source.size())?;
        let manifest = Manifest::parse(&bytes).at(source.name(), 0, "cfile set manifest")?;
        let columns = manifest.columns.iter().map(|_| OnceLock::new()).collect();
        let scanned = manifest.columns.iter().map(|_| OnceLock::new()).collect();
        let schema = Arc::new(manifest.schema.clone());
        let open_file: OpenFile = Arc::new(open_file);
        Ok(Self(Arc::new(Inner {
            name: name.into(),
            manifest,
            schema,
            options,
            open_file,
            columns,
            scanned,
        })))
    }

    /// The CFile of a column.
    ///
    /// # Errors
    /// If it is missing or damaged, or has another number of rows than the set.
    pub fn column(&self, index: usize) -> Result<&CFileReader> {
        let slot = self.0.columns.get(index).ok_or_else(|| no_column(index))?;
        if let Some(reader) = slot.get() {
            return Ok(reader);
        }
        let (source, options) = self.open_column(index)?;
        let reader = CFileReader::open_with_options(source, &options)?;
        self.check_rows(reader.file())?;
        Ok(slot.get_or_init(|| reader))
    }

    /// The CFile of a column, to be scanned.
    fn scanned(&self, index: usize) -> Result<&Arc<CFile>> {
        if let Some(reader) = self.0.columns.get(index).and_then(OnceLock::get) {
            return Ok(reader.file());
        }
        let slot = self.0.scanned.get(index).ok_or_else(|| no_column(index))?;
        if let Some(file) = slot.get() {
            return Ok(file);
        }
        let (source, options) = self.open_column(index)?;
        let file = CFile::open(source, &options.without_header())?;
        self.check_rows(&file)?;
        Ok(slot.get_or_init(|| Arc::new(file)))
    }

    fn open_column(&self, index: usize) -> Result<(SourceRef, CFileReaderOptions)> {
        let inner = &*self.0;
        let described = inner.manifest.columns.get(index).ok_or_else(|| no_column(index))?;
        let options = CFileReaderOptions::default()
            .with_field(inner.schema.field(index).clone())
            .with_verify_checksums(inner.options.verify_checksums)
            .with_limits(inner.options.limits.clone());
        Ok(((inner.open_file)(&described.file)?, options))
    }

    fn check_rows(&self, file: &CFile) -> Result<()> {
        let (expected, found) = (self.0.manifest.rows, file.metadata().num_values);
        if expected == found {
            return Ok(());
        }
        Err(Error::corrupt(format!("{expected} rows, as the manifest says"), found).at(
            file.name(),
            file.metadata().blocks_end,
            "cfile footer",
        ))
    }

    /// The readable columns, and what is wrong with the others.
    fn all_columns(&self) -> impl Iterator<Item = Result<&CFileReader>> {
        (0..self.0.columns.len()).map(|index| self.column(index))
    }
}

impl Columns for CFileSet {
    fn open(&self, column: usize, wanted: &RowRanges) -> Result<Box<dyn ColumnCursor>> {
        Ok(Box::new(CellCursor::new(Arc::clone(self.scanned(column)?), wanted.clone())))
    }
}

impl Dataset for CFileSet {
    fn format(&self) -> &'static str {
        "kudu cfile set"
    }

    fn name(&self) -> &str {
        &self.0.name
    }

    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.0.schema)
    }

    fn row_count(&self) -> Option<u64> {
        Some(self.0.manifest.rows)
    }

    fn size_bytes(&self) -> u64 {
        self.all_columns().flatten().map(Dataset::size_bytes).sum()
    }

    fn splits(&self) -> Result<Vec<Split>> {
        Ok(row_splits(self.0.manifest.rows, self.size_bytes()))
    }

    fn scan(&self) -> Scan<'_> {
        Scan::new(self)
    }

    fn read(&self, request: &ScanRequest) -> Result<BatchReader> {
        let splits = if request.split.is_some() { row_splits(self.0.manifest.rows, 0) } else { Vec::new() };
        let mut wanted = request.wanted_rows(self.0.manifest.rows, &splits)?;
        if let (Some(predicate), Some(key)) = (&request.predicate, &self.0.manifest.key) {
            let index = column_index(&self.0.schema, key)?;
            let bounds = predicate.bind(&self.0.schema)?.bounds(index);
            wanted = self.scanned(index)?.narrow(&wanted, &bounds, &request.on_damage)?;
        }
        positional::scan(self, &self.0.schema, request, &wanted)
    }

    fn verify(&self, depth: VerifyDepth, progress: &dyn Progress) -> Result<VerifyReport> {
        let mut report = VerifyReport::default();
        for column in self.all_columns() {
            match column {
                Ok(reader) => report.merge(reader.verify(depth, progress)?),
                Err(error) => report.findings.push(Finding::from_error(&error, &self.0.name, None)),
            }
        }
        progress.set_total(report.bytes);
        Ok(report)
    }

    fn describe(&self) -> Result<Node> {
        let key = self.0.manifest.key.as_deref().unwrap_or("none");
        let node = Node::new(format!("cfile set {}", self.0.name), self.size_bytes())
            .fact("rows", self.0.manifest.rows)
            .fact("columns", self.0.columns.len())
            .fact("key", key);
        self.all_columns().try_fold(node, |node, column| {
            let column = column?;
            let mut child = column.describe()?;
            child.name = format!("column {}", column.file().field.name());
            Ok(node.child(child))
        })
    }

    fn pages(&self) -> Result<Vec<Page>> {
        let mut pages = Vec::new();
        for column in self.all_columns() {
            pages.extend(column?.pages()?);
        }
        Ok(pages)
    }

    fn column_statistics(&self) -> Result<Vec<ColumnStatistics>> {
        self.all_columns().map(|column| Ok(column_statistics(column?.file()))).collect()
    }
}

fn no_column(index: usize) -> Error {
    Error::invalid(format!("no column number {index}"))
}
