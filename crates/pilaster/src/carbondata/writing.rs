//! Writing CarbonData tables, and merging their segments.

use pilaster_carbondata::table::{
    CarbonTable, CarbonTableOptions, CarbonTableWriter, CarbonTableWriterOptions, CompactionSummary,
};
use pilaster_core::{BatchReader, Dataset, Error, Location, Progress, Result};

use crate::convert::{ConvertSummary, Counted, write_counted};
use crate::paths;

/// How tables are written.
#[derive(Debug, Clone, Default)]
pub struct CarbonDataWriterOptions {
    table: CarbonTableWriterOptions,
    append: bool,
}

impl CarbonDataWriterOptions {
    /// Columns, partitions, buckets and files.
    #[must_use]
    pub fn with_table(mut self, table: CarbonTableWriterOptions) -> Self {
        self.table = table;
        self
    }

    /// Whether rows are added to a table that exists, as one more segment.
    #[must_use]
    pub fn with_append(mut self, append: bool) -> Self {
        self.append = append;
        self
    }

    /// About how many bytes of rows are sorted in memory; more go through temporary files.
    #[must_use]
    pub fn with_sort_memory_bytes(mut self, bytes: usize) -> Self {
        self.table = self.table.with_sort_memory_bytes(bytes);
        self
    }

    /// Whether rows are added to a table that exists.
    pub fn appends(&self) -> bool {
        self.append
    }
}

/// Writes a table, which appears complete and counted or not at all; or adds a segment to one, complete or not at all, whose
/// rows are counted when it is part of the table.
pub(super) fn write_table(
    batches: BatchReader,
    folder: &Location,
    options: &CarbonDataWriterOptions,
    progress: &dyn Progress,
) -> Result<ConvertSummary> {
    let name = folder.to_string();
    let in_folder = |error: Error| error.at(&name, 0, "");
    let table = options.table.clone();
    if options.append {
        let writer = CarbonTableWriter::append(folder, table)?;
        return load(batches, writer, folder, in_folder, progress)?.check(folder);
    }
    write_counted(folder, |folder| {
        let writer = CarbonTableWriter::create(folder, &batches.schema(), table).map_err(in_folder)?;
        load(batches, writer, folder, in_folder, progress)
    })
}

/// Writes all rows as a segment of the table in `folder`, and counts them as a reader of the table does. `located` says to errors
/// of the writer where it writes.
fn load(
    batches: BatchReader,
    mut writer: CarbonTableWriter,
    folder: &Location,
    located: impl Fn(Error) -> Error,
    progress: &dyn Progress,
) -> Result<Counted> {
    for batch in batches {
        let batch = batch.map_err(Error::from)?;
        writer.write(&batch).map_err(&located)?;
        progress.advance(batch.num_rows() as u64);
    }
    let summary = writer.finish().map_err(&located)?;
    let found = match summary.segment {
        Some(segment) => {
            let only = CarbonTableOptions::default().with_segments(Some(vec![segment]));
            CarbonTable::open(folder, &only)?.row_count()
        }
        None => Some(0),
    };
    let bytes = summary.written.data_bytes.saturating_add(summary.written.index_bytes);
    Ok(Counted { rows: summary.written.rows, bytes, found })
}

/// Merges segments of the table at `path` into one, as CarbonData's compaction does: those named, or all that can be.
///
/// # Errors
/// If the path is no table with metadata, a segment is not there or cannot be merged, or somebody else writes to the table;
/// then it is as it was.
pub fn compact_table(
    path: &str,
    segments: Option<&[String]>,
    options: &CarbonDataWriterOptions,
) -> Result<CompactionSummary> {
    let folder = paths::place(path)?;
    if !pilaster_carbondata::table::has_metadata(&folder)? {
        return Err(Error::invalid("is no folder of a CarbonData table with metadata").at(path, 0, ""));
    }
    pilaster_carbondata::table::compact(folder, segments, options.table.clone())
}
