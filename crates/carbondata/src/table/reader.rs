//! A table as a dataset.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};

use arrow_schema::{Schema, SchemaRef};
use pilaster_core::describe::{ColumnStatistics, Node, Page};
use pilaster_core::positional::{self, ColumnCursor, Columns};
use pilaster_core::predicate::BoundPredicate;
use pilaster_core::verify::Finding;
use pilaster_core::{
    Absence, Dataset, Error, Limits, Literal, Location, LossLog, OnDamage, Partition, Progress, Result,
    RowRanges, Scan, ScanMemory, ScanPlan, ScanRequest, TaskSpan, VerifyDepth, VerifyReport,
};

use super::buckets::Buckets;
use super::cursor::{PlannedParts, TableCursor};
use super::describe::{describe_table, statistics_of_table};
use super::lazy::ReadCounts;
use super::lost::{Broken, has_segments, is_lost};
use super::open::{OpenedTable, open_bare, open_file, open_table, schema_path, sorted_names};
use super::opener::ForeignSegment;
pub use super::options::CarbonTableOptions;
use super::part::{ColumnOrigin, Part};
use super::recovery::fault_of;
use super::repair::check_sort_indexes;
use super::schema::TableSchema;
use super::secondary::{self, SecondaryIndex};
use super::status::SegmentStatus;
use crate::file::cursor::KnownChunks;
use crate::file::layout::CarbonFile;
use crate::file::prune::prune;
use crate::file::statistics::Zones;
use crate::file::{describe, verify};
use crate::legacy::{holds, keys};

/// An open table: all rows of its readable segments that were not deleted. Data files are opened when they are first
/// read; what their index files say is kept.
#[derive(Debug, Clone)]
pub struct CarbonTable(pub(super) Arc<Inner>);

#[derive(Debug)]
pub(super) struct Inner {
    pub(super) name: String,
    folder: Location,
    pub(super) has_metadata: bool,
    pub(super) schema: SchemaRef,
    pub(super) table: TableSchema,
    pub(super) segments: Vec<SegmentStatus>,
    pub(super) parts: Vec<Arc<Part>>,
    /// The places of the parts of each segment.
    places: HashMap<String, Vec<usize>>,
    spans: OnceLock<Vec<TaskSpan>>,
    foreign: Vec<ForeignSegment>,
    read: Arc<ReadCounts>,
    broken: Vec<Broken>,
    absences: Vec<(String, Absence)>,
    unread: Vec<Error>,
}

impl Inner {
    /// The buckets that may hold a match, if the predicate says so.
    fn buckets(&self, bound: &BoundPredicate) -> Option<Vec<u32>> {
        let (columns, count) = Buckets::of(&self.table)?;
        let columns: Option<Vec<_>> = columns.iter().map(|name| self.schema.index_of(name).ok()).collect();
        Buckets::matching(&columns?, count, bound)
    }

    /// The parts of a segment.
    pub(super) fn parts_of<'a>(&'a self, segment: &str) -> impl Iterator<Item = &'a Arc<Part>> + use<'a> {
        let places = self.places.get(segment).map(Vec::as_slice).unwrap_or_default();
        places.iter().filter_map(|place| self.parts.get(*place))
    }

    /// The parts from the first to the last that some of `wanted` lie in. A split has few of them, however many there are.
    fn parts_around(&self, wanted: &RowRanges) -> &[Arc<Part>] {
        let ([first, ..], [.., last]) = (wanted.as_slice(), wanted.as_slice()) else { return &[] };
        let from = self.parts.partition_point(|part| part.rows().end <= first.start);
        let to = self.parts.partition_point(|part| part.rows().start < last.end);
        self.parts.get(from..to).unwrap_or_default()
    }

    fn spans(&self) -> &[TaskSpan] {
        self.spans.get_or_init(|| {
            let mut spans = Vec::new();
            for part in &self.parts {
                for (rows, bytes) in part.stretches() {
                    let rows = part.live.logical(&rows);
                    let start = rows.start.saturating_add(part.first_row);
                    let rows = start..rows.end.saturating_add(part.first_row);
                    spans.push(TaskSpan { rows: Some(rows), bytes });
                }
            }
            spans
        })
    }
}

/// Whether a folder has the metadata of a table, or some of it, or lost all of it: segments lie there as only tables have them.
///
/// # Errors
/// If nothing of it was found, and not all that may be it can be looked at.
pub fn has_metadata(folder: impl Into<Location>) -> Result<bool> {
    let folder = &folder.into();
    let metadata = folder.child("Metadata");
    // What cannot be looked at in there may be metadata: whoever opens it is told why it cannot be.
    let or_unknown = |found: Result<bool>| found.unwrap_or(true);
    let has_some = metadata.entry()?.is_some()
        && (or_unknown(schema_path(folder).map(|path| path.is_some()))
            || or_unknown(metadata.child("tablestatus").is_file())
            || or_unknown(metadata.child("segments").is_folder()));
    Ok(has_some || has_segments(folder)?)
}

/// Whether a folder is a table: it has metadata, or data files of its own.
///
/// # Errors
/// If it is not known to be one, and cannot be looked into.
pub fn is_table(folder: impl Into<Location>) -> Result<bool> {
    let folder = &folder.into();
    if has_metadata(folder)? {
        return Ok(true);
    }
    let is_data = |name: &String| name.ends_with(".carbondata") || name.ends_with(".carbonindex");
    Ok(folder.is_folder()? && sorted_names(folder)?.iter().any(is_data))
}

impl CarbonTable {
    /// Opens the table in `folder`: with its metadata, or data files without any, as the SDK writes them.
    ///
    /// # Errors
    /// If its metadata or index files are missing or damaged, or a segment is in a form that cannot be read.
    pub fn open(folder: impl Into<Location>, options: &CarbonTableOptions) -> Result<Self> {
        let folder = &folder.into();
        let has_metadata = has_metadata(folder)?;
        let opened = if has_metadata {
            open_table(folder, options)?
        } else if options.segments.is_some() {
            return Err(Error::invalid("has no segments").at(&folder.to_string(), 0, ""));
        } else if options.as_of.is_some() {
            return Err(Error::invalid("knows no earlier state").at(&folder.to_string(), 0, ""));
        } else {
            open_bare(folder, options)?
        };
        let OpenedTable { schema: table, columns, segments, parts, foreign, read, broken, absences, unread } =
            opened;
        let fields: Vec<_> = columns.iter().map(|column| Arc::clone(&column.field)).collect();
        let mut places: HashMap<String, Vec<usize>> = HashMap::new();
        for (place, part) in parts.iter().enumerate() {
            places.entry(part.segment.clone()).or_default().push(place);
        }
        Ok(Self(Arc::new(Inner {
            name: folder.to_string(),
            folder: folder.clone(),
            has_metadata,
            schema: Arc::new(Schema::new(fields)),
            table,
            segments,
            parts: parts.into_iter().map(Arc::new).collect(),
            places,
            spans: OnceLock::new(),
            foreign,
            read,
            broken,
            absences,
            unread,
        })))
    }

    /// What the schema file says.
    pub fn table_schema(&self) -> &TableSchema {
        &self.0.table
    }

    /// All segments, readable or not, in load order; of a table as of an earlier time, those that were part of it.
    pub fn segments(&self) -> &[SegmentStatus] {
        &self.0.segments
    }

    /// Segments in other formats that were left out.
    pub fn foreign_segments(&self) -> &[ForeignSegment] {
        &self.0.foreign
    }

    /// What could not be read and was left out, if the options allow that.
    pub fn unread(&self) -> &[Error] {
        &self.0.unread
    }

    /// What of a segment is not here.
    pub fn absences_of(&self, id: &str) -> Vec<&Absence> {
        self.0.absences.iter().filter(|(segment, _)| segment == id).map(|(_, absence)| absence).collect()
    }

    /// How many rows of a segment are part of the table.
    pub fn segment_rows(&self, id: &str) -> u64 {
        self.0.parts_of(id).fold(0, |rows, part| rows.saturating_add(part.live.count()))
    }

    /// Bytes of the data files of a segment that are part of the table.
    pub fn segment_bytes(&self, id: &str) -> u64 {
        self.0.parts_of(id).map(|part| part.file.source.size()).sum()
    }

    /// Indexes and views of the table, which never change what a scan gives.
    ///
    /// # Errors
    /// If the table's folder cannot be listed.
    pub fn secondary_indexes(&self) -> Result<Vec<SecondaryIndex>> {
        if self.0.has_metadata { secondary::find(&self.0.folder, &self.0.table) } else { Ok(Vec::new()) }
    }

    /// How many data files were opened since the table was, and how many of their bytes were read: planning needs none.
    pub fn data_read(&self) -> (u64, u64) {
        let read = &self.0.read;
        (read.files.load(Ordering::Relaxed), read.bytes.load(Ordering::Relaxed))
    }

    /// How many data files the planning of scans has looked at since the table was opened. For tests of what planning costs.
    #[doc(hidden)]
    pub fn parts_planned(&self) -> u64 {
        self.0.read.planned.load(Ordering::Relaxed)
    }

    pub(super) fn rows(&self) -> u64 {
        self.0.parts.last().map_or(0, |part| part.rows().end)
    }

    /// The files of a scan and the rows of `wanted` that may match.
    fn prune(&self, request: &ScanRequest, wanted: RowRanges) -> Result<(PlannedParts, RowRanges)> {
        let inner = &*self.0;
        let around = inner.parts_around(&wanted);
        inner.read.planned.fetch_add(around.len() as u64, Ordering::Relaxed);
        let Some(predicate) = &request.predicate else {
            let parts = around.iter().map(|part| (Arc::clone(part), Arc::new(KnownChunks::new())));
            return Ok((Arc::new(parts.collect()), wanted));
        };
        let bound = predicate.bind(&inner.schema)?;
        let names = predicate.columns();
        let columns: Vec<_> = names.into_iter().filter_map(|name| inner.schema.index_of(name).ok()).collect();
        let buckets = inner.buckets(&bound);
        let mut planned = Vec::with_capacity(around.len());
        let mut kept = Vec::new();
        for part in around {
            let local = wanted.within(&part.rows());
            let mut physical = part.live.physical_ranges(&local);
            if buckets.as_ref().is_some_and(|buckets| !part.may_be_in(buckets)) {
                physical = RowRanges::none();
            }
            if physical.is_empty() {
                planned.push((Arc::clone(part), Arc::new(KnownChunks::new())));
                continue;
            }
            let in_file: Vec<_> = columns
                .iter()
                .filter_map(|column| match part.origins.get(*column)? {
                    ColumnOrigin::File(index) => Some(*index),
                    ColumnOrigin::Constant(_) => None,
                })
                .collect();
            let narrowed = |file: &CarbonFile, rows: &RowRanges| {
                let by_keys = keys::rows(file, &bound, &|node| part.column_of(node, &inner.schema));
                let rows = by_keys.map_or_else(|| rows.clone(), |kept| rows.intersect(&kept));
                let may_match = |zones: &Zones<'_>| bound.may_match(&part.zones(&inner.schema, zones));
                prune(file, &in_file, &rows, &may_match)
            };
            let (mut may, mut known) = narrowed(&part.file, &physical);
            // What the index of versions 1 and 2 leaves of a file, its footer may narrow further. One that cannot be read narrows
            // nothing: the scan will meet it again and say so.
            if part.file.is_outline()
                && !may.is_empty()
                && let Ok(file) = part.whole()
            {
                (may, known) = narrowed(file, &may);
            }
            let logical = part.live.logical_ranges(&may).intersect(&local);
            kept.extend(logical.moved(part.first_row).as_slice().iter().cloned());
            planned.push((Arc::clone(part), Arc::new(known)));
        }
        Ok((Arc::new(planned), kept.into_iter().collect()))
    }

    /// The data file agrees with what its index said.
    fn check_index(part: &Part) -> Result<()> {
        let file = &part.file;
        if file.is_outline() && !holds(file, part.whole()?) {
            let error = Error::corrupt("least and greatest values that hold all of the footer's", "others");
            return Err(error.at(file.name(), 0, "carbondata index"));
        }
        if let Some(known) = &part.record
            && let Some((_, error)) = fault_of(known, file)?
        {
            return Err(error.at(file.name(), 0, "carbondata stream index"));
        }
        if !file.has_chunks() {
            return Ok(());
        }
        let footer = CarbonFile::open(open_file(&part.place)?, file.limits.clone())?;
        if !file.is_same_layout(&footer) {
            let error = Error::corrupt("a footer that says what the index says", "another one");
            return Err(error.at(file.name(), 0, "carbondata footer"));
        }
        if file.header.columns != footer.header.columns {
            let error = Error::corrupt("the columns that the index has", "others");
            return Err(error.at(file.name(), 0, "carbondata header"));
        }
        Ok(())
    }
}

/// The rows of `wanted` in files that can be opened. Those of others are lost as a whole, however many an index promises: they are not
/// to be tried one by one.
fn without_unreadable(
    parts: &[(Arc<Part>, Arc<KnownChunks>)],
    wanted: &RowRanges,
    losses: &LossLog,
) -> RowRanges {
    let mut readable = Vec::with_capacity(parts.len());
    for (part, _) in parts {
        let rows = wanted.within(&part.rows()).moved(part.first_row);
        if rows.is_empty() {
            continue;
        }
        match part.whole() {
            Ok(_) => readable.push(part.rows()),
            Err(error) => rows.as_slice().iter().for_each(|lost| losses.record(lost.clone(), None, &error)),
        }
    }
    wanted.intersect(&readable.into_iter().collect())
}

/// The columns of one scan.
struct ScanColumns {
    parts: PlannedParts,
    schema: SchemaRef,
    memory: ScanMemory,
}

impl Columns for ScanColumns {
    fn may_fill(&self, _column: usize) -> bool {
        true
    }

    fn open(&self, column: usize, wanted: &RowRanges) -> Result<Box<dyn ColumnCursor>> {
        let field = self.schema.fields().get(column);
        let field = field.ok_or_else(|| Error::internal(format!("no column number {column}")))?;
        let data_type = field.data_type().clone();
        let (parts, memory) = (Arc::clone(&self.parts), self.memory());
        Ok(Box::new(TableCursor::new(parts, column, data_type, wanted.clone(), memory)))
    }

    fn memory(&self) -> ScanMemory {
        self.memory.clone()
    }
}

impl Dataset for CarbonTable {
    fn format(&self) -> &'static str {
        if self.0.has_metadata { "carbondata table" } else { "carbondata folder" }
    }

    fn name(&self) -> &str {
        &self.0.name
    }

    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.0.schema)
    }

    fn row_count(&self) -> Option<u64> {
        Some(self.rows())
    }

    fn size_bytes(&self) -> u64 {
        self.0.parts.iter().map(|part| part.file.source.size()).sum()
    }

    fn partitions(&self) -> Result<Vec<Partition>> {
        let inner = &*self.0;
        let names = &inner.table.partition_columns;
        let columns: Vec<_> = names.iter().filter_map(|name| inner.schema.index_of(name).ok()).collect();
        let mut partitions: Vec<(_, Vec<_>)> = Vec::new();
        for part in &inner.parts {
            let value = |column: &usize| match part.origins.get(*column)? {
                ColumnOrigin::Constant(value) => Some((*column, Literal::from_array(value.as_ref(), 0))),
                ColumnOrigin::File(_) => None,
            };
            let Some(values) = columns.iter().map(value).collect::<Option<Vec<_>>>() else {
                return Ok(Vec::new());
            };
            match partitions.iter_mut().find(|(known, _)| *known == values) {
                Some((_, rows)) => rows.push(part.rows()),
                None => partitions.push((values, vec![part.rows()])),
            }
        }
        // All rows in one partition without values are no partitions.
        if columns.is_empty() {
            return Ok(Vec::new());
        }
        let partition = |(values, rows): (_, Vec<_>)| Partition { values, rows: rows.into_iter().collect() };
        Ok(partitions.into_iter().map(partition).collect())
    }

    fn scan(&self) -> Scan<'_> {
        Scan::new(self)
    }

    fn plan(&self, request: &ScanRequest) -> Result<ScanPlan> {
        let (parts, mut wanted) = self.prune(request, request.wanted_rows(self.rows()))?;
        if let OnDamage::Skip(losses) = &request.on_damage {
            for (part, _) in parts.iter() {
                match part.first_byte() {
                    Err(error) if !is_lost(&error) => return Err(error),
                    _ => {}
                }
            }
            wanted = without_unreadable(&parts, &wanted, losses);
        }
        let limits = parts.first().map(|(part, _)| part.file.limits.clone()).unwrap_or_default();
        let schema = self.schema();
        ScanPlan::by_rows(request, &self.0.schema, wanted, self.0.spans().to_vec(), move |request, wanted| {
            let memory = request.memory(&limits);
            let columns = ScanColumns { parts: Arc::clone(&parts), schema: Arc::clone(&schema), memory };
            positional::scan(&columns, &schema, request, wanted)
        })
    }

    fn findings(&self) -> Vec<Finding> {
        self.0.broken.iter().map(|broken| broken.finding.clone()).collect()
    }

    fn absences(&self) -> Vec<Absence> {
        self.0.absences.iter().map(|(_, absence)| absence.clone()).collect()
    }

    fn verify(&self, depth: VerifyDepth, progress: &dyn Progress) -> Result<VerifyReport> {
        let mut report = VerifyReport { findings: self.findings(), ..VerifyReport::default() };
        if self.0.has_metadata {
            check_sort_indexes(&self.0.folder, &self.0.table, &Limits::default(), &mut report)?;
        }
        for error in &self.0.unread {
            report.add_failure(&self.0.name, error, true);
        }
        for part in &self.0.parts {
            // What the system does not let us read says nothing about what is in it.
            if let Err(error) = part.first_byte()
                && !is_lost(&error)
            {
                report.add_failure(part.file.name(), &error, true);
                continue;
            }
            if let Err(error) = Self::check_index(part) {
                report.findings.push(Finding::from_error(&error, part.file.name(), Some(part.rows())));
            }
            if let Ok(file) = part.whole() {
                report.merge(verify::verify(file, depth, progress));
            }
        }
        progress.set_total(report.bytes);
        Ok(report)
    }

    fn describe(&self) -> Result<Node> {
        describe_table(self)
    }

    fn pages(&self) -> Result<Vec<Page>> {
        let mut pages = Vec::new();
        for part in &self.0.parts {
            for mut page in describe::pages(&part.file)? {
                page.rows = page.rows.map(|rows| {
                    let rows = part.live.logical(&rows);
                    rows.start.saturating_add(part.first_row)..rows.end.saturating_add(part.first_row)
                });
                pages.push(page);
            }
        }
        Ok(pages)
    }

    fn column_statistics(&self) -> Result<Vec<ColumnStatistics>> {
        statistics_of_table(self, false)
    }

    fn column_statistics_with_sizes(&self) -> Result<Vec<ColumnStatistics>> {
        statistics_of_table(self, true)
    }
}
