//! A tablet at a version as a dataset.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_schema::{Field, Schema, SchemaRef};
use pilaster_core::describe::{ColumnStatistics, Node, Page};
use pilaster_core::error::AtPosition;
use pilaster_core::source::FileSource;
use pilaster_core::{
    BatchReader, Dataset, Error, Finding, Limits, LossLog, Predicate, Progress, Result, Scan, ScanRequest,
    Split, VerifyDepth, VerifyReport,
};
use roaring::RoaringBitmap;

use super::delete_predicate::{self, Columns};
use super::digest::StoredDigests;
use super::layout::{HEADER_PART, TabletFolder};
use super::meta::{RowsetMeta, TabletMeta};
use super::scan;
use crate::index_file::IndexFileReader;
use crate::schema::{KeysType, TabletSchema};
use crate::segment::{SegmentReader, SegmentReaderOptions, schema_type};

/// How to open a tablet.
#[derive(Debug, Clone)]
pub struct TabletOptions {
    as_of: Option<i64>,
    hidden: bool,
    verify_checksums: bool,
    recovers: bool,
    limits: Limits,
}

impl Default for TabletOptions {
    /// The newest version; checksums are verified, and all segments must be there.
    fn default() -> Self {
        Self {
            as_of: None,
            hidden: false,
            verify_checksums: true,
            recovers: false,
            limits: Limits::default(),
        }
    }
}

impl TabletOptions {
    /// Rows as of an earlier version that is still on disk.
    #[must_use]
    pub fn with_as_of(mut self, version: Option<i64>) -> Self {
        self.as_of = version;
        self
    }

    /// Whether columns that queries do not see are given too.
    #[must_use]
    pub fn with_hidden(mut self, hidden: bool) -> Self {
        self.hidden = hidden;
        self
    }

    /// Whether stored checksums are compared; on unless switched off.
    #[must_use]
    pub fn with_verify_checksums(mut self, verify: bool) -> Self {
        self.verify_checksums = verify;
        self
    }

    /// Whether a tablet opens without segments that are missing or cannot be opened. Their rows are lost to a scan that
    /// goes on over damage; others end with the reason.
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

/// The rows Doris would answer for one tablet.
#[derive(Debug, Clone)]
pub struct TabletReader(Arc<Tablet>);

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
    /// Segments that are not there or cannot be opened.
    pub lost: Vec<LostSegment>,
    /// What a backup repository says about its files.
    digests: StoredDigests,
    limits: Limits,
}

/// A segment without which a tablet was opened.
#[derive(Debug)]
pub(crate) struct LostSegment {
    /// Positions of its rows in the tablet, as far as the metadata tells.
    rows: Range<u64>,
    error: Error,
}

/// A segment of a rowset, oldest first.
#[derive(Debug)]
pub(crate) struct TabletSegment {
    pub reader: SegmentReader,
    pub version: i64,
    /// What must be true for its rows to stay.
    pub keeps: Vec<Predicate>,
    /// Rows that newer rowsets replaced.
    pub deleted: RoaringBitmap,
    /// Position of its first row in the tablet.
    pub first_row: u64,
    /// Its inverted and ANN index files.
    pub index_files: Vec<PathBuf>,
}

impl Tablet {
    fn index_file(&self, path: &Path) -> Result<IndexFileReader> {
        IndexFileReader::open(Arc::new(FileSource::open(path)?), &self.limits)
    }

    /// Notes rows of segments that are lost, or fails because of the first.
    pub fn report_lost(&self, log: Option<&Arc<LossLog>>) -> Result<()> {
        for lost in &self.lost {
            match log {
                Some(log) => log.record(lost.rows.clone(), None, &lost.error),
                None => return Err(Error::invalid(lost.error.to_string()).at(&self.name, 0, "")),
            }
        }
        Ok(())
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
    /// Opens the tablet in a folder.
    ///
    /// # Errors
    /// If the metadata or a segment is missing or damaged, or the version is not on disk.
    pub fn open(folder: &TabletFolder, options: &TabletOptions) -> Result<Self> {
        let meta = folder.meta(&options.limits)?;
        let name = folder.path.display().to_string();
        let version = match options.as_of {
            Some(version) => version,
            None => meta.newest_version().at(&name, 0, HEADER_PART)?,
        };
        let rowsets: Vec<RowsetMeta> =
            meta.rowsets_at(version).at(&name, 0, "")?.into_iter().cloned().collect();
        let mut columns = Columns { schema: &meta.schema, rowsets: &rowsets, dropped: Vec::new() };
        let mut deletes = Vec::new();
        for rowset in &rowsets {
            if let Some(message) = &rowset.delete_predicate {
                let keeps = delete_predicate::keeps(message, &mut columns).at(&name, 0, HEADER_PART)?;
                deletes.push((rowset.start_version, keeps));
            }
        }
        let mut schema = meta.schema.clone();
        let given = schema.columns.len();
        schema.columns.extend(columns.dropped);
        let (segments, lost) = open_segments(folder, &meta, &rowsets, &schema, &deletes, (version, options))?;
        let fields = unified_fields(&schema, &segments).at(&name, 0, HEADER_PART)?;
        let output: Vec<usize> = (0..given)
            .filter(|at| options.hidden || schema.columns.get(*at).is_some_and(|column| column.visible))
            .collect();
        let arrow = Arc::new(Schema::new(fields.clone()).project(&output)?);
        Ok(Self(Arc::new(Tablet {
            name,
            meta,
            version,
            schema,
            fields,
            output,
            arrow,
            segments,
            lost,
            digests: StoredDigests::of(folder, &rowsets),
            limits: options.limits.clone(),
        })))
    }

    /// A tablet of the same columns of which nothing can be read: it has no rows, and says why to a scan that goes on over
    /// damage.
    #[must_use]
    pub fn lost_like(&self, folder: &TabletFolder, error: Error) -> Self {
        let like = &self.0;
        Self(Arc::new(Tablet {
            name: folder.path.display().to_string(),
            meta: TabletMeta { rowsets: Vec::new(), stale_rowsets: Vec::new(), ..like.meta.clone() },
            version: like.version,
            schema: like.schema.clone(),
            fields: like.fields.clone(),
            output: like.output.clone(),
            arrow: Arc::clone(&like.arrow),
            segments: Vec::new(),
            lost: vec![LostSegment { rows: 0..0, error }],
            digests: StoredDigests::default(),
            limits: like.limits.clone(),
        }))
    }

    /// What the `.hdr` file says.
    pub fn meta(&self) -> &TabletMeta {
        &self.0.meta
    }

    /// The version whose rows these are.
    pub fn version(&self) -> i64 {
        self.0.version
    }
}

fn open_segments(
    folder: &TabletFolder,
    meta: &TabletMeta,
    rowsets: &[RowsetMeta],
    schema: &TabletSchema,
    deletes: &[(i64, Predicate)],
    (version, options): (i64, &TabletOptions),
) -> Result<(Vec<TabletSegment>, Vec<LostSegment>)> {
    let reader_options = SegmentReaderOptions::default()
        .with_schema(Some(Arc::new(schema.clone())))
        .with_hidden(true)
        .with_verify_checksums(options.verify_checksums)
        .with_limits(options.limits.clone());
    let (mut segments, mut lost, mut first_row) = (Vec::new(), Vec::new(), 0u64);
    for rowset in rowsets {
        let keeps = deletes.iter().filter(|(at, _)| rowset.end_version < *at).map(|(_, keeps)| keeps.clone());
        let keeps: Vec<_> = keeps.collect();
        for number in 0..rowset.num_segments {
            let reader = match open_segment(folder, rowset, number, &reader_options) {
                Ok(reader) => reader,
                Err(error) if options.recovers => {
                    let end = first_row.saturating_add(rowset.rows_of_segment(number).unwrap_or(0));
                    lost.push(LostSegment { rows: first_row..end, error });
                    first_row = end;
                    continue;
                }
                Err(error) => return Err(error),
            };
            let rows = reader.metadata().num_rows;
            let index_files = index_files(folder, &format!("{}_{number}", rowset.id));
            let deleted = meta.deleted.rows(&rowset.id, number, version);
            if let Some(row) = deleted.max().filter(|row| u64::from(*row) >= rows) {
                return Err(Error::corrupt(format!("deleted rows below {rows}"), row).at(
                    reader.name(),
                    0,
                    "delete bitmap",
                ));
            }
            segments.push(TabletSegment {
                reader,
                version: rowset.end_version,
                keeps: keeps.clone(),
                deleted,
                first_row,
                index_files,
            });
            first_row = first_row.saturating_add(rows);
        }
    }
    Ok((segments, lost))
}

fn open_segment(
    folder: &TabletFolder,
    rowset: &RowsetMeta,
    number: u32,
    options: &SegmentReaderOptions,
) -> Result<SegmentReader> {
    let file = format!("{}_{number}.dat", rowset.id);
    let path = folder.files.get(&file).ok_or_else(|| missing(&folder.path, &file, rowset))?;
    SegmentReader::open_with_options(Arc::new(FileSource::open(path)?), options)
}

/// `<segment>.idx`, or `<segment>_<index>.idx` for each index.
fn index_files(folder: &TabletFolder, segment: &str) -> Vec<PathBuf> {
    let belongs = |name: &str| {
        let rest = name.strip_prefix(segment).and_then(|rest| rest.strip_suffix(".idx"));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
    };
    let mut files: Vec<_> =
        folder.files.iter().filter(|(name, _)| belongs(name)).map(|(_, path)| path.clone()).collect();
    files.sort();
    files
}

fn missing(folder: &Path, file: &str, rowset: &RowsetMeta) -> Error {
    let message = if rowset.is_remote {
        format!("segment {file} is in object storage, and not in this folder")
    } else {
        format!("segment {file} of versions {}..={} is missing", rowset.start_version, rowset.end_version)
    };
    Error::invalid(message).at(&folder.display().to_string(), 0, "")
}

/// One field for each column, of the type and nullability that all segments can give.
fn unified_fields(schema: &TabletSchema, segments: &[TabletSegment]) -> Result<Vec<Field>> {
    let given: Vec<SchemaRef> = segments.iter().map(|segment| segment.reader.schema()).collect();
    let mut fields = Vec::with_capacity(schema.columns.len());
    for (number, column) in schema.columns.iter().enumerate() {
        let in_segments: Vec<_> = given.iter().map(|schema| schema.field(number)).collect();
        let data_type = match in_segments.first() {
            Some(field) => field.data_type().clone(),
            None => schema_type(column)?,
        };
        if let Some(other) = in_segments.iter().find(|field| field.data_type() != &data_type) {
            return Err(Error::corrupt(
                format!("column \"{}\" of type {data_type}", column.name),
                other.data_type(),
            ));
        }
        let is_nullable = column.is_nullable || in_segments.iter().any(|field| field.is_nullable());
        fields.push(Field::new(&column.name, data_type, is_nullable));
    }
    Ok(fields)
}

impl Dataset for TabletReader {
    fn format(&self) -> &'static str {
        "doris tablet"
    }

    fn name(&self) -> &str {
        &self.0.name
    }

    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.0.arrow)
    }

    fn row_count(&self) -> Option<u64> {
        let tablet = &self.0;
        let is_all = !tablet.merges()
            && tablet.lost.is_empty()
            && tablet.schema.keys_type == KeysType::Duplicate
            && tablet.segments.iter().all(|segment| segment.keeps.is_empty());
        is_all.then(|| tablet.segments.iter().map(|segment| segment.reader.metadata().num_rows).sum())
    }

    fn size_bytes(&self) -> u64 {
        self.0.segments.iter().map(|segment| segment.reader.size_bytes()).sum()
    }

    fn splits(&self) -> Result<Vec<Split>> {
        if self.0.merges() || self.0.segments.is_empty() {
            return Ok(vec![Split { rows: None, bytes: self.size_bytes() }]);
        }
        let split = |segment: &TabletSegment| {
            let end = segment.first_row.saturating_add(segment.reader.metadata().num_rows);
            Split { rows: Some(segment.first_row..end), bytes: segment.reader.size_bytes() }
        };
        Ok(self.0.segments.iter().map(split).collect())
    }

    fn scan(&self) -> Scan<'_> {
        Scan::new(self)
    }

    fn read(&self, request: &ScanRequest) -> Result<BatchReader> {
        let splits = self.splits()?.len();
        if let Some(split) = request.split.filter(|split| *split >= splits) {
            return Err(Error::invalid(format!("no split number {split}: there are {splits}")));
        }
        scan::read(&self.0, request)
    }

    fn findings(&self) -> Vec<Finding> {
        let finding =
            |lost: &LostSegment| Finding::from_error(&lost.error, &self.0.name, Some(lost.rows.clone()));
        self.0.lost.iter().map(finding).collect()
    }

    fn verify(&self, depth: VerifyDepth, progress: &dyn Progress) -> Result<VerifyReport> {
        let mut report = VerifyReport { files: 1, findings: self.findings(), ..VerifyReport::default() };
        for segment in &self.0.segments {
            report.merge(segment.reader.verify(depth, progress)?);
            for path in &segment.index_files {
                match self.0.index_file(path) {
                    Ok(index) => report.merge(index.verify(depth, progress)?),
                    Err(error) => {
                        report.files = report.files.saturating_add(1);
                        report.findings.push(Finding::from_error(&error, &path.display().to_string(), None));
                    }
                }
            }
        }
        if depth >= VerifyDepth::Checksums {
            report.merge(self.0.digests.verify());
        }
        progress.set_total(self.size_bytes());
        Ok(report)
    }

    fn describe(&self) -> Result<Node> {
        let tablet = &self.0;
        let mut node = Node::new(format!("tablet {}", tablet.meta.tablet_id), self.size_bytes())
            .fact("table_id", tablet.meta.table_id)
            .fact("partition_id", tablet.meta.partition_id)
            .fact("keys_type", format!("{:?}", tablet.schema.keys_type))
            .fact("merge_on_write", tablet.meta.schema.merge_on_write)
            .fact("version", tablet.version)
            .fact("rowsets", tablet.meta.rowsets.len())
            .fact("stale_rowsets", tablet.meta.stale_rowsets.len());
        for segment in &tablet.segments {
            let child = segment
                .reader
                .describe()?
                .fact("version", segment.version)
                .fact("deleted_rows", segment.deleted.len());
            node = node.child(child);
            for path in &segment.index_files {
                node = node.child(match self.0.index_file(path) {
                    Ok(index) => index.describe()?,
                    Err(error) => {
                        Node::new(format!("index file {}", path.display()), 0).fact("damaged", error)
                    }
                });
            }
        }
        Ok(node)
    }

    fn pages(&self) -> Result<Vec<Page>> {
        let mut pages = Vec::new();
        for segment in &self.0.segments {
            pages.extend(segment.reader.pages()?);
        }
        Ok(pages)
    }

    fn column_statistics(&self) -> Result<Vec<ColumnStatistics>> {
        let mut statistics = vec![ColumnStatistics::default(); self.0.output.len()];
        for segment in &self.0.segments {
            let of_segment = segment.reader.column_statistics()?;
            for (number, all) in self.0.output.iter().zip(&mut statistics) {
                let Some(one) = of_segment.get(*number) else { continue };
                all.bytes = all.bytes.saturating_add(one.bytes);
                for (to, from) in [(&mut all.encodings, &one.encodings), (&mut all.codecs, &one.codecs)] {
                    let new: Vec<_> = from.iter().filter(|name| !to.contains(name)).cloned().collect();
                    to.extend(new);
                }
            }
        }
        Ok(statistics)
    }
}
