//! Writing CarbonData tables, and merging their segments.

use std::path::Path;

use pilaster_carbondata::table::{
    CarbonTable, CarbonTableOptions, CarbonTableWriter, CarbonTableWriterOptions, CompactionSummary,
};
use pilaster_core::{BatchReader, Dataset, Error, Progress, Result};

use crate::convert::ConvertSummary;
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

    /// Whether rows are added to a table that exists.
    pub fn appends(&self) -> bool {
        self.append
    }
}

/// Writes a table, or a segment of one; it appears complete, or not at all.
pub(super) fn write_table(
    batches: BatchReader,
    folder: &Path,
    options: &CarbonDataWriterOptions,
    progress: &dyn Progress,
) -> Result<ConvertSummary> {
    let name = folder.display().to_string();
    let in_folder = |error: Error| error.at(&name, 0, "");
    let table = options.table.clone();
    let mut writer = match options.append {
        true => CarbonTableWriter::append(folder, table),
        false => CarbonTableWriter::create(folder, &batches.schema(), table),
    }?;
    for batch in batches {
        let batch = batch.map_err(Error::from)?;
        writer.write(&batch).map_err(in_folder)?;
        progress.advance(batch.num_rows() as u64);
    }
    let summary = writer.finish().map_err(in_folder)?;
    let written = match summary.segment {
        Some(segment) => {
            let only = CarbonTableOptions::default().with_segments(Some(vec![segment]));
            CarbonTable::open(folder, &only)?.row_count()
        }
        None => Some(0),
    };
    let rows = summary.written.rows;
    if let Some(found) = written.filter(|found| *found != rows) {
        return Err(in_folder(Error::corrupt(format!("{rows} rows, as many as were read"), found)));
    }
    let bytes = summary.written.data_bytes.saturating_add(summary.written.index_bytes);
    Ok(ConvertSummary { rows, bytes, is_counted: written.is_some() })
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
    let folder = paths::local(path);
    if !pilaster_carbondata::table::has_metadata(folder) {
        return Err(Error::invalid("is no folder of a CarbonData table with metadata").at(path, 0, ""));
    }
    pilaster_carbondata::table::compact(folder, segments, options.table.clone())
}
