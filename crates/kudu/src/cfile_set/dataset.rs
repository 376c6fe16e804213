//! A set as a dataset.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use arrow_schema::{FieldRef, Schema, SchemaRef};
use pilaster_core::dataset::column_index;
use pilaster_core::describe::{ColumnStatistics, Node, Page};
use pilaster_core::error::AtPosition;
use pilaster_core::positional::{self, ColumnCursor, Columns};
use pilaster_core::predicate::Bounds;
use pilaster_core::stream::needed_columns;
use pilaster_core::verify::Finding;
use pilaster_core::{
    Dataset, Error, ErrorKind, Limits, Location, OnDamage, Predicate, Progress, Result, RowRanges, Scan,
    ScanMemory, ScanPlan, ScanRequest, SourceRef, TaskSpan, VerifyDepth, VerifyReport,
};

use super::lost::{LostColumn, LostCursor};
use super::manifest::{MANIFEST_NAME, MAX_MANIFEST_BYTES, Manifest};
use crate::cfile::{
    CFile, CFileKind, CFileReader, CFileReaderOptions, CellCursor, column_statistics,
    column_statistics_with_sizes, recover_column,
};

/// How to open a set.
#[derive(Debug, Clone)]
pub struct CFileSetOptions {
    verify_checksums: bool,
    recovers: bool,
    limits: Limits,
}

impl Default for CFileSetOptions {
    /// Checksums are verified.
    fn default() -> Self {
        Self { verify_checksums: true, recovers: false, limits: Limits::default() }
    }
}

impl CFileSetOptions {
    /// Whether stored checksums are compared; on unless switched off.
    #[must_use]
    pub fn with_verify_checksums(mut self, verify: bool) -> Self {
        self.verify_checksums = verify;
        self
    }

    /// Whether a set is opened although files of columns are missing, torn or damaged as a whole. Such columns may be null. Scans that
    /// skip damage give null for what is lost of them, and note it; others that ask for them fail.
    #[must_use]
    pub fn with_recovery(mut self, recovers: bool) -> Self {
        self.recovers = recovers;
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
    manifest_bytes: u64,
    schema: SchemaRef,
    options: CFileSetOptions,
    open_file: OpenFile,
    columns: Vec<OnceLock<CFileReader>>,
    /// The same files, opened for a scan: that needs no header, and so one read less.
    scanned: Vec<OnceLock<Arc<CFile>>>,
    /// Columns that cannot be opened, of a set that is opened all the same.
    lost: BTreeMap<usize, LostColumn>,
    /// What was found wrong with columns when they were opened.
    failures: Mutex<BTreeMap<usize, Finding>>,
}

impl std::fmt::Debug for CFileSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CFileSet").field("name", &self.0.name).finish_non_exhaustive()
    }
}

impl CFileSet {
    /// Opens the set in `folder`.
    ///
    /// # Errors
    /// [`pilaster_core::ErrorKind::Io`] if there is no manifest, [`pilaster_core::ErrorKind::Corrupt`] if it is damaged.
    pub fn open(folder: impl Into<Location>, options: CFileSetOptions) -> Result<Self> {
        let folder = folder.into();
        Self::open_with(&folder.to_string(), options, move |file| folder.child(file).open())
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
        let mut inner = Inner {
            name: name.into(),
            manifest,
            manifest_bytes: source.size(),
            schema,
            options,
            open_file,
            columns,
            scanned,
            lost: BTreeMap::new(),
            failures: Mutex::default(),
        };
        if inner.options.recovers {
            inner.find_lost_columns()?;
        }
        Ok(Self(Arc::new(inner)))
    }

    /// The CFile of a column.
    ///
    /// # Errors
    /// If it is missing or damaged, or has another number of rows than the set.
    pub fn column(&self, index: usize) -> Result<&CFileReader> {
        self.0.column(index)
    }

    /// The readable columns, and what is wrong with the others.
    fn all_columns(&self) -> impl Iterator<Item = Result<&CFileReader>> {
        (0..self.0.columns.len()).map(|index| self.column(index))
    }
}

impl Inner {
    fn column(&self, index: usize) -> Result<&CFileReader> {
        let slot = self.columns.get(index).ok_or_else(|| no_column(index))?;
        if let Some(reader) = slot.get() {
            return Ok(reader);
        }
        let opened = self.open_column(index).and_then(|(source, options)| {
            let reader = CFileReader::open_with_options(source, &options)?;
            self.check_file(index, reader.file())?;
            Ok(reader)
        });
        match opened {
            Ok(reader) => Ok(slot.get_or_init(|| reader)),
            Err(error) => {
                let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
                failures.insert(index, Finding::from_error(&error, &self.name, None));
                Err(error)
            }
        }
    }

    /// The CFile of a column, to be scanned.
    fn scanned(&self, index: usize) -> Result<&Arc<CFile>> {
        if let Some(reader) = self.columns.get(index).and_then(OnceLock::get) {
            return Ok(reader.file());
        }
        let slot = self.scanned.get(index).ok_or_else(|| no_column(index))?;
        if let Some(file) = slot.get() {
            return Ok(file);
        }
        let (source, options) = self.open_column(index)?;
        let file = CFile::open(source, &options.without_header())?;
        self.check_file(index, &file)?;
        Ok(slot.get_or_init(|| Arc::new(file)))
    }

    /// The key column, if there is one and its file is not lost, and what `predicate` asks of it.
    fn key_bounds(&self, predicate: &Predicate) -> Result<Option<(usize, Bounds)>> {
        let bound = predicate.bind(&self.schema)?;
        let Some(key) = &self.manifest.key else { return Ok(None) };
        let index = column_index(&self.schema, key)?;
        Ok((!self.lost.contains_key(&index)).then(|| (index, bound.bounds(index))))
    }

    /// About how many bytes the columns take that a request needs: their files are not opened for it.
    fn bytes_of(&self, request: &ScanRequest) -> Result<u64> {
        let fields = self.schema.project(&needed_columns(request, &self.schema)?)?;
        let width = |field: &FieldRef| field.data_type().primitive_width().unwrap_or(16) as u64;
        Ok(fields.fields().iter().map(width).fold(0, u64::saturating_add).saturating_mul(self.manifest.rows))
    }

    fn open_column(&self, index: usize) -> Result<(SourceRef, CFileReaderOptions)> {
        let described = self.manifest.columns.get(index).ok_or_else(|| no_column(index))?;
        let field = self.schema.fields().get(index).ok_or_else(|| no_column(index))?;
        let options = CFileReaderOptions::default()
            .with_field(Arc::clone(field))
            .with_verify_checksums(self.options.verify_checksums)
            .with_limits(self.options.limits.clone());
        Ok(((self.open_file)(&described.file)?, options))
    }

    /// Refuses the file of a column that is not what the manifest says.
    fn check_file(&self, index: usize, file: &CFile) -> Result<()> {
        let (expected, found) = (self.manifest.rows, file.metadata().num_values);
        let may_be_null = self.schema.fields().get(index).is_none_or(|field| field.is_nullable());
        let error = if expected != found {
            Error::corrupt(format!("{expected} rows, as the manifest says"), found)
        } else if file.metadata().is_nullable && !may_be_null {
            Error::corrupt("values that are all there, as the manifest says", "values that may be null")
        } else {
            return Ok(());
        };
        Err(error.at(file.name(), file.metadata().blocks_end, "cfile footer"))
    }

    /// Opens all columns; those that cannot be opened are lost, but for blocks of a torn file that are still there.
    fn find_lost_columns(&mut self) -> Result<()> {
        let mut fields = self.schema.fields().to_vec();
        for (index, field) in fields.iter_mut().enumerate() {
            // The header is not needed.
            let Err(reason) = self.scanned(index) else { continue };
            if !reason.is_damage() && !matches!(reason.kind(), ErrorKind::Io(_)) {
                return Err(reason);
            }
            let torn = self.open_column(index).ok();
            let found =
                torn.and_then(|(source, options)| recover_column(source, field, &options).ok().flatten());
            // A file whose footer is sound and says another number of rows is not this column's.
            let is_torn =
                |file: &CFile| file.recovered.is_some() && file.metadata().num_values <= self.manifest.rows;
            let found = found.filter(is_torn).map(Arc::new);
            self.lost.insert(index, LostColumn { reason, found });
            *field = Arc::new(field.as_ref().clone().with_nullable(true));
        }
        self.schema = Arc::new(Schema::new_with_metadata(fields, self.schema.metadata().clone()));
        Ok(())
    }
}

/// The columns of a set for one scan.
struct SetColumns<'a> {
    set: &'a Inner,
    on_damage: &'a OnDamage,
    memory: ScanMemory,
}

impl Columns for SetColumns<'_> {
    fn may_fill(&self, _column: usize) -> bool {
        true
    }

    fn open(&self, column: usize, wanted: &RowRanges) -> Result<Box<dyn ColumnCursor>> {
        if let (Some(lost), OnDamage::Skip(log)) = (self.set.lost.get(&column), self.on_damage)
            && let Some(field) = self.set.schema.fields().get(column)
        {
            return Ok(Box::new(LostCursor::new(lost, field, log)));
        }
        let file = Arc::clone(self.set.scanned(column)?);
        Ok(Box::new(CellCursor::new(file, wanted.clone()).within(&self.memory)))
    }

    fn memory(&self) -> ScanMemory {
        self.memory.clone()
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
        let columns = self.all_columns().flatten().map(Dataset::size_bytes);
        columns.fold(self.0.manifest_bytes, u64::saturating_add)
    }

    fn scan(&self) -> Scan<'_> {
        Scan::new(self)
    }

    fn plan(&self, request: &ScanRequest) -> Result<ScanPlan> {
        let rows = self.0.manifest.rows;
        let mut wanted = request.wanted_rows(rows);
        let bounds = request.predicate.as_ref().map(|predicate| self.0.key_bounds(predicate)).transpose()?;
        if let Some((key, bounds)) = bounds.flatten() {
            wanted = self.0.scanned(key)?.narrow(&wanted, &bounds, &request.on_damage)?;
        }
        let set = Arc::clone(&self.0);
        let spans = TaskSpan::stretches(rows, self.0.bytes_of(request)?);
        ScanPlan::by_rows(request, &self.0.schema, wanted, spans, move |request, wanted| {
            let memory = request.memory(&set.options.limits);
            let columns = SetColumns { set: &set, on_damage: &request.on_damage, memory };
            positional::scan(&columns, &set.schema, request, wanted)
        })
    }

    /// Columns whose files turned out to be missing or damaged when they were needed.
    fn findings(&self) -> Vec<Finding> {
        let lost = self.0.lost.values().map(|lost| Finding::from_error(&lost.reason, &self.0.name, None));
        let failures = self.0.failures.lock().unwrap_or_else(PoisonError::into_inner);
        let failed = failures.iter().filter(|(index, _)| !self.0.lost.contains_key(index));
        lost.chain(failed.map(|(_, finding)| finding.clone())).collect()
    }

    fn verify(&self, depth: VerifyDepth, progress: &dyn Progress) -> Result<VerifyReport> {
        let mut report = VerifyReport::default();
        for column in self.all_columns() {
            match column {
                Ok(reader) => report.merge(reader.verify(depth, progress)?),
                Err(error) => {
                    // A file that is not there is a loss; one that cannot be read may be sound.
                    let is_unread = matches!(error.kind(), ErrorKind::Io(error) if error.kind() != io::ErrorKind::NotFound);
                    report.add_failure(&self.0.name, &error, is_unread);
                }
            }
        }
        Ok(report)
    }

    fn describe(&self) -> Result<Node> {
        let key = self.0.manifest.key.as_deref().unwrap_or("none");
        let node = Node::new(format!("cfile set {}", self.0.name), self.size_bytes())
            .fact("rows", self.0.manifest.rows)
            .fact("columns", self.0.columns.len())
            .fact("key", key)
            .child(Node::new(format!("manifest {MANIFEST_NAME}"), self.0.manifest_bytes));
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

    fn column_statistics_with_sizes(&self) -> Result<Vec<ColumnStatistics>> {
        let of_file = |file: &CFile| column_statistics_with_sizes(file, CFileKind::Column);
        self.all_columns().map(|column| Ok(of_file(column?.file()))).collect()
    }
}

fn no_column(index: usize) -> Error {
    Error::internal(format!("no column number {index}"))
}
