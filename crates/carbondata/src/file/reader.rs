//! A data file as a dataset.

use std::sync::Arc;

use arrow_schema::SchemaRef;
use pilaster_core::describe::{ColumnStatistics, Node, Page};
use pilaster_core::positional::{self, ColumnCursor, Columns};
use pilaster_core::{
    Absence, Dataset, Limits, Progress, Result, RowRanges, Scan, ScanMemory, ScanPlan, ScanRequest,
    SourceRef, TaskSpan, VerifyDepth, VerifyReport,
};

use super::calendar::Calendar;
use super::cursor::{KnownChunks, PageCursor};
use super::layout::CarbonFile;
use super::prune::prune;
use super::types::ColumnNode;
use super::{describe, recover, verify};
use crate::messages::FileHeader;

/// An open `.carbondata` file of version 3.
#[derive(Debug, Clone)]
pub struct CarbonFileReader {
    file: Arc<CarbonFile>,
    /// Behind which byte it is not known what there was, of a file whose footer is lost.
    unknown_from: Option<u64>,
}

/// How to open a file.
#[derive(Debug, Clone, Default)]
pub struct CarbonFileOptions {
    limits: Limits,
    calendar: Calendar,
}

impl CarbonFileOptions {
    /// How much a file may make us allocate.
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Which days and times numbers before 1582-10-15 are given as.
    #[must_use]
    pub fn with_calendar(mut self, calendar: Calendar) -> Self {
        self.calendar = calendar;
        self
    }
}

impl CarbonFileReader {
    /// Opens a file with the default options.
    ///
    /// # Errors
    /// [`pilaster_core::ErrorKind::Corrupt`] if header or footer are damaged, [`pilaster_core::ErrorKind::Unsupported`]
    /// if it is of another version.
    pub fn open(source: SourceRef) -> Result<Self> {
        Self::open_with_options(source, &CarbonFileOptions::default())
    }

    /// Opens a file.
    ///
    /// # Errors
    /// As [`CarbonFileReader::open`].
    pub fn open_with_options(source: SourceRef, options: &CarbonFileOptions) -> Result<Self> {
        Self::new(CarbonFile::open(source, options.limits.clone())?, None, options)
    }

    /// Opens a file whose footer is lost: the blocklets are found by walking from chunk to chunk. Rows of pages that were
    /// cut off are lost to a scan that goes on over damage.
    ///
    /// # Errors
    /// If the header is damaged too.
    pub fn recover(source: SourceRef, options: &CarbonFileOptions) -> Result<Self> {
        let (file, unknown_from) = recover::recover(source, options.limits.clone())?;
        Self::new(file, unknown_from, options)
    }

    fn new(mut file: CarbonFile, unknown_from: Option<u64>, options: &CarbonFileOptions) -> Result<Self> {
        file.calendar = options.calendar;
        file.refuse_missing_dictionaries()?;
        Ok(Self { file: Arc::new(file), unknown_from })
    }

    /// What the header says.
    pub fn header(&self) -> &FileHeader {
        &self.file.header
    }

    /// The columns in the order of the user, with the nodes of nested ones.
    pub fn columns(&self) -> &[ColumnNode] {
        &self.file.columns
    }

    /// Whether the rows are said to be in the order of the sort columns.
    pub fn is_sorted(&self) -> Option<bool> {
        self.file.footer.as_ref()?.is_sorted
    }
}

/// The columns of one scan.
struct ScanColumns {
    file: Arc<CarbonFile>,
    known: Arc<KnownChunks>,
    memory: ScanMemory,
}

impl Columns for ScanColumns {
    fn may_fill(&self, _column: usize) -> bool {
        true
    }

    fn open(&self, column: usize, wanted: &RowRanges) -> Result<Box<dyn ColumnCursor>> {
        let (file, known) = (Arc::clone(&self.file), Arc::clone(&self.known));
        Ok(Box::new(PageCursor::new(file, column, wanted.clone(), known, &self.memory)))
    }

    fn memory(&self) -> ScanMemory {
        self.memory.clone()
    }
}

impl Dataset for CarbonFileReader {
    fn format(&self) -> &'static str {
        "carbondata file"
    }

    fn name(&self) -> &str {
        self.file.name()
    }

    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.file.schema)
    }

    fn row_count(&self) -> Option<u64> {
        Some(self.file.rows)
    }

    fn size_bytes(&self) -> u64 {
        self.file.source.size()
    }

    fn scan(&self) -> Scan<'_> {
        Scan::new(self)
    }

    fn plan(&self, request: &ScanRequest) -> Result<ScanPlan> {
        let mut wanted = request.wanted_rows(self.file.rows);
        let mut known = KnownChunks::new();
        if let Some(predicate) = &request.predicate {
            let schema = &self.file.schema;
            let bound = predicate.bind(schema)?;
            let names = predicate.columns();
            let columns: Vec<_> = names.into_iter().filter_map(|name| schema.index_of(name).ok()).collect();
            (wanted, known) = prune(&self.file, &columns, &wanted, &|zones| bound.may_match(zones));
        }
        let span = |blocklet: &super::layout::Blocklet| TaskSpan {
            rows: Some(blocklet.rows.clone()),
            bytes: blocklet.bytes(),
        };
        let spans = self.file.blocklets.iter().map(span).collect();
        let (file, known) = (Arc::clone(&self.file), Arc::new(known));
        ScanPlan::by_rows(request, &self.file.schema, wanted, spans, move |request, wanted| {
            let memory = request.memory(&file.limits);
            let columns = ScanColumns { file: Arc::clone(&file), known: Arc::clone(&known), memory };
            positional::scan(&columns, &file.schema, request, wanted)
        })
    }

    fn absences(&self) -> Vec<Absence> {
        let absence =
            |byte| Absence { path: self.file.name().into(), what: recover::unknown_rest(byte), rows: None };
        self.unknown_from.map(absence).into_iter().collect()
    }

    fn verify(&self, depth: VerifyDepth, progress: &dyn Progress) -> Result<VerifyReport> {
        Ok(verify::verify(&self.file, depth, progress))
    }

    fn describe(&self) -> Result<Node> {
        describe::describe(&self.file)
    }

    fn pages(&self) -> Result<Vec<Page>> {
        describe::pages(&self.file)
    }

    fn column_statistics(&self) -> Result<Vec<ColumnStatistics>> {
        describe::column_statistics(&self.file, false)
    }

    fn column_statistics_with_sizes(&self) -> Result<Vec<ColumnStatistics>> {
        describe::column_statistics(&self.file, true)
    }
}
