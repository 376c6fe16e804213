//! A tablet at a version as a dataset.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use arrow_schema::{Field, SchemaRef};
use pilaster_core::describe::{ColumnStatistics, Node, Page};
use pilaster_core::stream;
use pilaster_core::{
    Absence, Dataset, Error, Finding, Limits, Location, LossLog, LostRows, Progress, Result, Scan, ScanPlan,
    ScanRequest, TaskSpan, VerifyDepth, VerifyReport,
};
use roaring::RoaringBitmap;

use super::delete_predicate::Keeps;
use super::digest::StoredDigests;
use super::layout::TabletFolder;
use super::meta::TabletMeta;
use super::options::TabletOptions;
use super::order::Piece;
use super::{describe, opening, scan};
use crate::index_file::IndexFileReader;
use crate::schema::{KeysType, TabletSchema};
use crate::segment::SegmentReader;

/// The rows Doris would answer for one tablet.
#[derive(Debug, Clone)]
pub struct TabletReader {
    tablet: Arc<Tablet>,
    notes: Arc<[Finding]>,
    /// Parts of its table that are not here, and may be of others.
    absences: Arc<[Absence]>,
}

/// What scans share.
#[derive(Debug)]
pub(crate) struct Tablet {
    pub name: String,
    pub meta: TabletMeta,
    pub version: i64,
    /// The current schema, and columns dropped since that a delete predicate looks at.
    pub schema: TabletSchema,
    /// Fields of all columns of `schema`.
    pub fields: Vec<Field>,
    /// Which of them are given.
    pub output: Vec<usize>,
    pub arrow: SchemaRef,
    pub segments: Vec<TabletSegment>,
    /// Segments that cannot be opened.
    pub lost: Vec<LostSegment>,
    /// What the metadata names and is not there.
    pub absences: Vec<Absence>,
    /// What a backup repository says about its files.
    pub digests: StoredDigests,
    pub limits: Limits,
    /// See [`Tablet::units`] and [`Tablet::pieces`].
    pub units: OnceLock<Vec<Piece>>,
    pub pieces: OnceLock<Vec<Piece>>,
}

/// Rows of a segment without which a tablet was opened.
#[derive(Debug)]
pub(crate) struct LostSegment {
    /// Its file.
    pub segment: String,
    /// Positions of the rows in it, if the metadata tells.
    pub rows: Option<Range<u64>>,
    /// Position of its first row in the tablet.
    pub first_row: u64,
    pub error: Error,
}

/// A segment of a rowset, oldest first.
#[derive(Debug)]
pub(crate) struct TabletSegment {
    pub reader: SegmentReader,
    /// Id of its rowset.
    pub rowset: String,
    pub version: i64,
    /// What must be true for its rows to stay.
    pub keeps: Vec<Keeps>,
    /// Rows that newer rowsets replaced.
    pub deleted: RoaringBitmap,
    /// Position of its first row in the tablet.
    pub first_row: u64,
    /// Its inverted and ANN index files.
    pub index_files: Vec<Location>,
    /// How large they are together.
    pub index_bytes: u64,
}

impl TabletSegment {
    /// Bytes of the segment and its index files.
    pub fn bytes(&self) -> u64 {
        self.reader.size_bytes().saturating_add(self.index_bytes)
    }
}

impl Tablet {
    pub fn index_file(&self, file: &Location) -> Result<IndexFileReader> {
        IndexFileReader::open(file.open()?, &self.limits)
    }

    /// Notes rows of segments that are lost, or fails because of the first.
    pub fn report_lost(&self, log: Option<&Arc<LossLog>>) -> Result<()> {
        for lost in &self.lost {
            match log {
                Some(log) => {
                    let reason = lost.error.to_string();
                    log.add(match &lost.rows {
                        Some(rows) => {
                            self.placed(LostRows::at(rows.clone(), reason), &lost.segment, lost.first_row)
                        }
                        None => LostRows::unknown(reason),
                    });
                }
                None => return Err(lost.error.clone().at(&self.name, 0, "")),
            }
        }
        Ok(())
    }

    /// A loss with positions in a segment, with positions in the tablet if those are known before reading.
    pub fn placed(&self, lost: LostRows, segment: &str, first_row: u64) -> LostRows {
        if self.gives_all_rows() { lost.moved(first_row) } else { lost.within(segment) }
    }

    /// The places of the key columns.
    pub fn key_columns(&self) -> Vec<usize> {
        let columns = self.schema.columns.iter().enumerate();
        columns.filter(|(_, column)| column.is_key).map(|(at, _)| at).collect()
    }

    /// Whether a scan gives every row that the files hold, one segment after the other: then positions in them are known before
    /// reading. Where rows are merged, replaced or deleted only counting tells the positions of those that are left.
    pub fn gives_all_rows(&self) -> bool {
        self.schema.keys_type == KeysType::Duplicate
            && self.segments.iter().all(|segment| segment.keeps.is_empty() && segment.deleted.is_empty())
    }

    /// Whether rows of equal keys must be made one when they are read.
    pub fn merges(&self) -> bool {
        match self.schema.keys_type {
            KeysType::Duplicate => false,
            KeysType::Unique => !self.meta.schema.merge_on_write,
            KeysType::Aggregate => true,
        }
    }
}

impl TabletReader {
    /// Opens the tablet in a folder. Segments and versions that are not there are in [`Dataset::absences`], and scans give the rest.
    ///
    /// # Errors
    /// If the metadata is missing, it or a segment is damaged, or the version that is asked for is not on disk.
    pub fn open(folder: &TabletFolder, options: &TabletOptions) -> Result<Self> {
        Self::open_with_meta(folder, folder.meta(&options.limits)?, options)
    }

    /// Opens the tablet in a folder, whose metadata ([`TabletFolder::meta`]) was read before.
    ///
    /// # Errors
    /// As [`TabletReader::open`].
    pub fn open_with_meta(folder: &TabletFolder, meta: TabletMeta, options: &TabletOptions) -> Result<Self> {
        Ok(Self::new(opening::open(folder, meta, options)?))
    }

    fn new(tablet: Tablet) -> Self {
        Self { tablet: Arc::new(tablet), notes: Arc::new([]), absences: Arc::new([]) }
    }

    /// Adds what whoever opened it noticed, and a reader of its rows should know.
    #[must_use]
    pub fn with_notes(mut self, notes: Vec<Finding>) -> Self {
        self.notes = self.notes.iter().cloned().chain(notes).collect();
        self
    }

    /// Adds parts that are not here and may have been its table's.
    #[must_use]
    pub fn with_absences(mut self, absences: &[Absence]) -> Self {
        self.absences = self.absences.iter().chain(absences).cloned().collect();
        self
    }

    /// A tablet of the same columns of which nothing can be read: it has no rows, and says why to a scan that goes on over
    /// damage.
    #[must_use]
    pub fn lost_like(&self, folder: &TabletFolder, error: Error) -> Self {
        let like = &self.tablet;
        Self::new(Tablet {
            name: folder.location.to_string(),
            meta: TabletMeta { rowsets: Vec::new(), stale_rowsets: Vec::new(), ..like.meta.clone() },
            version: like.version,
            schema: like.schema.clone(),
            fields: like.fields.clone(),
            output: like.output.clone(),
            arrow: Arc::clone(&like.arrow),
            segments: Vec::new(),
            lost: vec![LostSegment { segment: folder.location.to_string(), rows: None, first_row: 0, error }],
            absences: Vec::new(),
            digests: StoredDigests::default(),
            limits: like.limits.clone(),
            units: OnceLock::new(),
            pieces: OnceLock::new(),
        })
    }

    /// What the `.hdr` file says.
    pub fn meta(&self) -> &TabletMeta {
        &self.tablet.meta
    }

    /// The version whose rows these are.
    pub fn version(&self) -> i64 {
        self.tablet.version
    }
}

impl Dataset for TabletReader {
    fn format(&self) -> &'static str {
        "doris tablet"
    }

    fn name(&self) -> &str {
        &self.tablet.name
    }

    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.tablet.arrow)
    }

    fn row_count(&self) -> Option<u64> {
        let tablet = &self.tablet;
        let is_all = tablet.lost.is_empty() && tablet.absences.is_empty() && tablet.gives_all_rows();
        is_all.then(|| tablet.segments.iter().map(|segment| segment.reader.metadata().num_rows).sum())
    }

    fn size_bytes(&self) -> u64 {
        self.tablet.segments.iter().map(TabletSegment::bytes).fold(0, u64::saturating_add)
    }

    fn scan(&self) -> Scan<'_> {
        Scan::new(self)
    }

    fn plan(&self, request: &ScanRequest) -> Result<ScanPlan> {
        let is_by_position = request.rows.is_some() || request.row_numbers.is_some();
        if !is_by_position || self.tablet.gives_all_rows() {
            return scan::plan(&self.tablet, request);
        }
        let (tablet, span) = (Arc::clone(&self.tablet), TaskSpan { rows: None, bytes: self.size_bytes() });
        ScanPlan::of_one_task(request, &self.tablet.arrow, span, move |request| {
            stream::read_by_counting(&tablet.arrow, request, |all| scan::plan(&tablet, all)?.read())
        })
    }

    fn findings(&self) -> Vec<Finding> {
        let finding =
            |lost: &LostSegment| Finding::from_error(&lost.error, &self.tablet.name, lost.rows.clone());
        self.notes.iter().cloned().chain(self.tablet.lost.iter().map(finding)).collect()
    }

    fn absences(&self) -> Vec<Absence> {
        self.tablet.absences.iter().chain(self.absences.iter()).cloned().collect()
    }

    fn verify(&self, depth: VerifyDepth, progress: &dyn Progress) -> Result<VerifyReport> {
        let mut report = VerifyReport { files: 1, findings: self.findings(), ..VerifyReport::default() };
        for segment in &self.tablet.segments {
            report.merge(segment.reader.verify(depth, progress)?);
            for file in &segment.index_files {
                match self.tablet.index_file(file) {
                    Ok(index) => report.merge(index.verify(depth, progress)?),
                    Err(error) => {
                        report.files = report.files.saturating_add(1);
                        report.findings.push(Finding::from_error(&error, &file.to_string(), None));
                    }
                }
            }
        }
        if depth >= VerifyDepth::Checksums {
            report.merge(self.tablet.digests.verify());
        }
        progress.set_total(self.size_bytes());
        Ok(report)
    }

    fn describe(&self) -> Result<Node> {
        describe::describe(&self.tablet)
    }

    fn pages(&self) -> Result<Vec<Page>> {
        let mut pages = Vec::new();
        for segment in &self.tablet.segments {
            pages.extend(segment.reader.pages()?);
        }
        Ok(pages)
    }

    fn column_statistics(&self) -> Result<Vec<ColumnStatistics>> {
        describe::column_statistics(&self.tablet)
    }
}
