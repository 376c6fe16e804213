//! A table as a dataset.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use arrow_schema::{Schema, SchemaRef};
use pilaster_core::describe::{ColumnStatistics, Node, Page};
use pilaster_core::positional::{self, ColumnCursor, Columns};
use pilaster_core::predicate::BoundPredicate;
use pilaster_core::verify::Finding;
use pilaster_core::{
    BatchReader, Dataset, Error, Limits, Literal, LossLog, OnDamage, Partition, Progress, Result, RowRanges,
    Scan, ScanRequest, Split, VerifyDepth, VerifyReport,
};

use super::buckets::Buckets;
use super::cursor::{PlannedParts, TableCursor};
use super::describe::{describe_table, statistics_of_table};
use super::lazy::ReadCounts;
use super::lost::Broken;
use super::open::{OpenedTable, open_bare, open_path, open_table, schema_path, sorted_names};
use super::opener::ForeignSegment;
pub use super::options::CarbonTableOptions;
use super::part::{ColumnOrigin, Part};
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
    folder: PathBuf,
    pub(super) has_metadata: bool,
    pub(super) schema: SchemaRef,
    pub(super) table: TableSchema,
    pub(super) segments: Vec<SegmentStatus>,
    pub(super) parts: Vec<Arc<Part>>,
    foreign: Vec<ForeignSegment>,
    read: Arc<ReadCounts>,
    broken: Vec<Broken>,
}

impl Inner {
    /// The buckets that may hold a match, if the predicate says so.
    fn buckets(&self, bound: &BoundPredicate) -> Option<Vec<u32>> {
        let (columns, count) = Buckets::of(&self.table)?;
        let columns: Option<Vec<_>> = columns.iter().map(|name| self.schema.index_of(name).ok()).collect();
        Buckets::matching(&columns?, count, bound)
    }
}

/// Whether a folder has the metadata of a table, or some of it.
pub fn has_metadata(folder: &Path) -> bool {
    let metadata = folder.join("Metadata");
    schema_path(folder).is_some()
        || metadata.join("tablestatus").is_file()
        || metadata.join("segments").is_dir()
}

/// Whether a folder is a table: it has metadata, or data files of its own.
pub fn is_table(folder: &Path) -> bool {
    if has_metadata(folder) {
        return true;
    }
    let is_data = |name: &String| name.ends_with(".carbondata") || name.ends_with(".carbonindex");
    sorted_names(folder).is_ok_and(|names| names.iter().any(is_data))
}

/// The tables below a store's folder, by their path in it: `db/table` or `table`.
///
/// # Errors
/// If the folder cannot be listed.
pub fn find_tables(store: &Path) -> Result<Vec<(String, PathBuf)>> {
    let mut tables = Vec::new();
    for name in sorted_names(store)? {
        let folder = store.join(&name);
        if !folder.is_dir() {
            continue;
        }
        if has_metadata(&folder) {
            tables.push((name, folder));
            continue;
        }
        for inner in sorted_names(&folder)? {
            let path = folder.join(&inner);
            if path.is_dir() && has_metadata(&path) {
                tables.push((format!("{name}/{inner}"), path));
            }
        }
    }
    Ok(tables)
}

impl CarbonTable {
    /// Opens the table in `folder`: with its metadata, or data files without any, as the SDK writes them.
    ///
    /// # Errors
    /// If its metadata or index files are missing or damaged, or a segment is in a form that cannot be read.
    pub fn open(folder: &Path, options: &CarbonTableOptions) -> Result<Self> {
        let has_metadata = has_metadata(folder);
        let opened = if has_metadata {
            open_table(folder, options)?
        } else if options.segments.is_some() {
            return Err(Error::invalid("has no segments").at(&folder.display().to_string(), 0, ""));
        } else if options.as_of.is_some() {
            return Err(Error::invalid("knows no earlier state").at(&folder.display().to_string(), 0, ""));
        } else {
            open_bare(folder, options)?
        };
        let OpenedTable { schema: table, columns, segments, parts, foreign, read, broken } = opened;
        let fields: Vec<_> = columns.iter().map(|column| Arc::clone(&column.field)).collect();
        Ok(Self(Arc::new(Inner {
            name: folder.display().to_string(),
            folder: folder.to_path_buf(),
            has_metadata,
            schema: Arc::new(Schema::new(fields)),
            table,
            segments,
            parts: parts.into_iter().map(Arc::new).collect(),
            foreign,
            read,
            broken,
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

    /// How many rows of a segment are part of the table.
    pub fn segment_rows(&self, id: &str) -> u64 {
        let parts = self.0.parts.iter().filter(|part| part.segment == id);
        parts.fold(0, |rows, part| rows.saturating_add(part.live.count()))
    }

    /// Bytes of the data files of a segment that are part of the table.
    pub fn segment_bytes(&self, id: &str) -> u64 {
        self.0.parts.iter().filter(|part| part.segment == id).map(|part| part.file.source.size()).sum()
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

    pub(super) fn rows(&self) -> u64 {
        self.0.parts.last().map_or(0, |part| part.rows().end)
    }

    /// The files of a scan and the rows of `wanted` that may match.
    fn plan(&self, request: &ScanRequest, wanted: RowRanges) -> Result<(PlannedParts, RowRanges)> {
        let inner = &*self.0;
        let Some(predicate) = &request.predicate else {
            let parts = inner.parts.iter().map(|part| (Arc::clone(part), Arc::new(KnownChunks::new())));
            return Ok((Arc::new(parts.collect()), wanted));
        };
        let bound = predicate.bind(&inner.schema)?;
        let names = predicate.columns();
        let columns: Vec<_> = names.into_iter().filter_map(|name| inner.schema.index_of(name).ok()).collect();
        let buckets = inner.buckets(&bound);
        let mut planned = Vec::with_capacity(inner.parts.len());
        let mut kept = Vec::new();
        for part in &inner.parts {
            let local: RowRanges = wanted
                .intersect(&RowRanges::one(part.rows()))
                .as_slice()
                .iter()
                .map(|rows| {
                    rows.start.saturating_sub(part.first_row)..rows.end.saturating_sub(part.first_row)
                })
                .collect();
            let mut physical = part.live.physical_ranges(&local);
            if buckets.as_ref().is_some_and(|buckets| !part.may_be_in(buckets)) {
                physical = RowRanges::none();
            }
            // Each split is planned by itself, and most parts have nothing of it.
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
            kept.extend(logical.as_slice().iter().map(|rows| {
                rows.start.saturating_add(part.first_row)..rows.end.saturating_add(part.first_row)
            }));
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
        if !file.has_chunks() {
            return Ok(());
        }
        let footer = CarbonFile::open(open_path(Path::new(file.name()))?, file.limits.clone())?;
        if !file.is_same_layout(&footer) {
            let error = Error::corrupt("a footer that says what the index says", "another one");
            return Err(error.at(file.name(), 0, "carbondata footer"));
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
        let rows = wanted.intersect(&RowRanges::one(part.rows()));
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
}

impl Columns for ScanColumns {
    fn open(&self, column: usize, wanted: &RowRanges) -> Result<Box<dyn ColumnCursor>> {
        let field = self.schema.fields().get(column);
        let field = field.ok_or_else(|| Error::invalid(format!("no column number {column}")))?;
        let data_type = field.data_type().clone();
        Ok(Box::new(TableCursor::new(Arc::clone(&self.parts), column, data_type, wanted.clone())))
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

    fn splits(&self) -> Result<Vec<Split>> {
        let mut splits = Vec::new();
        for part in &self.0.parts {
            for (rows, bytes) in part.stretches() {
                let rows = part.live.logical(&rows);
                let start = rows.start.saturating_add(part.first_row);
                let rows = start..rows.end.saturating_add(part.first_row);
                splits.push(Split { rows: Some(rows), bytes });
            }
        }
        Ok(splits)
    }

    fn partitions(&self) -> Result<Vec<Partition>> {
        let inner = &*self.0;
        let names = &inner.table.partition_columns;
        let columns: Vec<_> = names.iter().filter_map(|name| inner.schema.index_of(name).ok()).collect();
        let mut partitions: Vec<Partition> = Vec::new();
        for part in &inner.parts {
            let value = |column: &usize| match part.origins.get(*column)? {
                ColumnOrigin::Constant(value) => Some((*column, Literal::from_array(value.as_ref(), 0))),
                ColumnOrigin::File(_) => None,
            };
            let Some(values) = columns.iter().map(value).collect::<Option<Vec<_>>>() else {
                return Ok(Vec::new());
            };
            let rows = RowRanges::one(part.rows());
            match partitions.iter_mut().find(|partition| partition.values == values) {
                Some(partition) => partition.rows = partition.rows.union(&rows),
                None => partitions.push(Partition { values, rows }),
            }
        }
        // All rows in one partition without values are no partitions.
        Ok(if columns.is_empty() { Vec::new() } else { partitions })
    }

    fn scan(&self) -> Scan<'_> {
        Scan::new(self)
    }

    fn read(&self, request: &ScanRequest) -> Result<BatchReader> {
        let wanted = request.wanted_rows(self.rows(), &self.splits()?)?;
        let (parts, mut wanted) = self.plan(request, wanted)?;
        if let OnDamage::Skip(losses) = &request.on_damage {
            wanted = without_unreadable(&parts, &wanted, losses);
        }
        let columns = ScanColumns { parts, schema: self.schema() };
        positional::scan(&columns, &self.0.schema, request, &wanted)
    }

    fn findings(&self) -> Vec<Finding> {
        self.0.broken.iter().map(|broken| broken.finding.clone()).collect()
    }

    fn verify(&self, depth: VerifyDepth, progress: &dyn Progress) -> Result<VerifyReport> {
        let mut report = VerifyReport { findings: self.findings(), ..VerifyReport::default() };
        if self.0.has_metadata {
            report.findings.extend(check_sort_indexes(&self.0.folder, &self.0.table, &Limits::default())?);
        }
        for part in &self.0.parts {
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
