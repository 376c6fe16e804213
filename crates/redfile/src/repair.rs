//! Damaged files made whole again.

use std::io::Write;
use std::sync::Arc;

use pilaster_core::salvage::LostRows;
use pilaster_core::{Dataset, Error, Location, LossLog, Progress, Result, RowRanges, SourceRef};
use serde::Serialize;

use crate::metadata::{Compression, FileMetadata, MAGIC, checksums};
use crate::read::salvage::best_chunk;
use crate::read::{Chunk, LostCells, RedFile, RedfileReader, RedfileReaderOptions, read_through};
use crate::recover::{RecoveryReport, RecoveryStatus};
use crate::schema::RedfileSchema;
use crate::write::{RedfileWriter, RedfileWriterOptions, StoredChunk, WriteSummary};

/// How to repair.
#[derive(Debug, Clone, Default)]
pub struct RepairOptions {
    /// How the damaged file is read.
    pub reader: RedfileReaderOptions,
    /// How the new file is written; as the damaged one was if not set. Row groups without damage are copied whatever it says.
    pub writer: Option<RedfileWriterOptions>,
    /// The schema, for files of which neither footer nor checkpoints are left.
    pub schema: Option<RedfileSchema>,
    /// What to do with rows of which some cells are lost.
    pub lost_cells: LostCells,
}

/// What a repair did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RepairReport {
    /// How the damaged file was found.
    pub recovery: RecoveryReport,
    /// Pages and chunks that are lost, and damage by which nothing is.
    pub salvage: crate::SalvageReport,
    /// Rows that are not in the new file, or of which cells are null.
    #[serde(skip)]
    pub losses: Vec<LostRows>,
    /// Rows of the new file.
    pub rows_written: u64,
    /// Row groups of the new file.
    pub row_groups_written: u64,
    /// Those of them that were copied page by page, because nothing in them was damaged.
    pub row_groups_copied: u64,
    /// Bytes of the new file.
    pub bytes_written: u64,
    /// Whether key/values that were added after the last checkpoint may be missing.
    pub may_miss_key_values: bool,
}

impl RepairReport {
    /// Whether every row of the file is in the new one, as far as can be known.
    pub fn is_complete(&self) -> bool {
        self.losses.is_empty() && self.recovery.status != RecoveryStatus::Lost
    }
}

/// Writes every row of `source` that can be proven good to a new, whole file. Progress counts rows.
///
/// The schema, the key/values and the row groups stay as they are. The pages of a row group without damage are copied byte for
/// byte if all its structures have checksums; others are written anew.
///
/// # Errors
/// [`pilaster_core::ErrorKind::Corrupt`] if the file is lost, [`pilaster_core::ErrorKind::Unsupported`] if it is of a later
/// version, [`pilaster_core::ErrorKind::Io`].
pub fn repair<W: Write>(
    source: SourceRef,
    sink: W,
    options: &RepairOptions,
    progress: &dyn Progress,
) -> Result<(W, RepairReport)> {
    let reader_options = options.reader.clone().with_lost_cells(options.lost_cells);
    let (reader, recovery) = RedfileReader::recover(source, options.schema.as_ref(), &reader_options)?;
    let salvage = reader.inspect();
    let schema = RedfileSchema::from_elements(reader.metadata().schema.clone(), None)?;
    let mut writer_options = options.writer.clone().unwrap_or_else(|| options_of(&reader));
    for (key, value) in reader.metadata().key_values.iter().flatten() {
        writer_options = writer_options.with_key_value(key.clone(), value.clone());
    }
    let mut writer = RedfileWriter::try_new_with_schema(sink, schema, writer_options)?;
    let log = Arc::new(LossLog::new());
    recovery.losses().into_iter().for_each(|reason| log.add(LostRows::unknown(reason)));
    let mut row_groups_copied = 0u64;
    progress.set_total(reader.row_count().unwrap_or_default());
    for group in 0..reader.metadata().row_groups.len() {
        let sound = if salvage.is_sound(group) { stored_chunks(reader.file(), group) } else { None };
        if let Some(chunks) = sound {
            let rows = reader.file().group(group)?.rows();
            writer.copy_row_group(rows, &chunks)?;
            row_groups_copied = row_groups_copied.saturating_add(1);
            progress.advance(rows);
            continue;
        }
        let rows = RowRanges::one(reader.file().group_rows(group));
        for batch in reader.scan().rows(rows).skip_damage(Arc::clone(&log)).read()? {
            let batch = batch.map_err(Error::from)?;
            writer.write(&batch)?;
            progress.advance(batch.num_rows() as u64);
        }
        writer.end_row_group()?;
    }
    let (sink, summary): (W, WriteSummary) = writer.finish()?;
    let report = RepairReport {
        may_miss_key_values: recovery.may_miss_key_values(),
        recovery,
        salvage,
        losses: log.losses(),
        rows_written: summary.rows,
        row_groups_written: summary.row_groups,
        row_groups_copied,
        bytes_written: summary.bytes,
    };
    Ok((sink, report))
}

/// The options by which a file like this one is written: its columns keep their codecs.
fn options_of(reader: &RedfileReader) -> RedfileWriterOptions {
    let mut options = RedfileWriterOptions::default();
    let leaves = reader.redfile_schema().leaves();
    for (number, leaf) in leaves.iter().enumerate() {
        let groups = 0..reader.metadata().row_groups.len();
        let codec = groups.filter_map(|group| reader.file().chunk(group, number).ok()).next();
        if let Some(codec) =
            codec.map(|chunk| chunk.metadata.codec).filter(|codec| Compression::ALL.contains(codec))
        {
            options = options.with_column_codec(leaf.name(), codec);
        }
    }
    options
}

/// The chunks of a row group of sound pages, if it may be copied: pages that are sound one by one may still not be records, and
/// without checksums nothing says that statistics are right.
fn stored_chunks(file: &Arc<RedFile>, group: usize) -> Option<Vec<StoredChunk>> {
    // Rows without columns are a number, which may be any: they are not written one by one.
    if file.schema.leaves().is_empty() {
        return Some(Vec::new());
    }
    let promised = [checksums::PAGE, checksums::PAGE_HEADER, checksums::COLUMN];
    if !file.options.verify_checksums || !promised.iter().all(|bit| file.metadata.promises(*bit)) {
        return None;
    }
    let rows = RowRanges::one(file.group_rows(group));
    let mut columns = 0..file.schema.shapes().len();
    if !columns.all(|column| read_through(file, column, &rows).is_ok()) {
        return None;
    }
    let stored = |(chunk, _): (Chunk, bool)| StoredChunk {
        source: chunk.source,
        bytes: chunk.start..chunk.end,
        metadata: chunk.metadata,
    };
    (0..file.schema.leaves().len()).map(|leaf| best_chunk(file, group, leaf).ok().map(stored)).collect()
}

/// Writes a metadata file that leads into the damaged file and leaves that untouched. `path` is the damaged file's, relative to
/// the folder of the new one. Damaged pages stay damaged: read it with damage skipped.
///
/// # Errors
/// As [`repair`].
pub fn write_sidecar<W: Write>(
    source: SourceRef,
    path: &str,
    mut sink: W,
    options: &RepairOptions,
) -> Result<(W, RecoveryReport)> {
    let (reader, report) = RedfileReader::recover(source, options.schema.as_ref(), &options.reader)?;
    let mut metadata = without_blocks(reader.metadata());
    for group in &mut metadata.row_groups {
        group.file_offset = None;
        for column in &mut group.columns {
            column.file_path.get_or_insert_with(|| path.to_string());
        }
    }
    let mut bytes = MAGIC.to_vec();
    metadata.write_footer(&mut bytes)?;
    sink.write_all(&bytes)?;
    sink.flush()?;
    Ok((sink, report))
}

/// How to give a damaged file a footer again: keep its first `keep` bytes and append `footer`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InPlaceRepair {
    /// Bytes of the file that stay.
    pub keep: u64,
    /// What to append to them.
    pub footer: Vec<u8>,
    /// Bytes of the file when it was looked at.
    pub size: u64,
    /// How the damaged file was found.
    pub report: RecoveryReport,
}

impl InPlaceRepair {
    /// Repairs the file from which this was made. If that is interrupted the file is as damaged as before.
    ///
    /// # Errors
    /// [`pilaster_core::ErrorKind::InvalidInput`] if the file has another size by now; [`pilaster_core::ErrorKind::Io`].
    pub fn apply(&self, file: impl Into<Location>) -> Result<()> {
        file.into().replace_end(self.size, self.keep, &self.footer)
    }
}

/// Says how to repair a file in place: cut it after the last block or structure that was of use, and append a footer. Nothing is
/// written here.
///
/// # Errors
/// As [`repair`]; [`pilaster_core::ErrorKind::InvalidInput`] if the footer is intact; [`pilaster_core::ErrorKind::Corrupt`]
/// if bytes would be cut off and no row be left.
pub fn repair_in_place(source: SourceRef, options: &RepairOptions) -> Result<InPlaceRepair> {
    let size = source.size();
    let (reader, report) = RedfileReader::recover(source, options.schema.as_ref(), &options.reader)?;
    if report.status == RecoveryStatus::Intact {
        return Err(Error::invalid("the footer is intact: there is nothing to repair in place").at(
            reader.name(),
            size,
            "",
        ));
    }
    let keep = report.bytes_used.unwrap_or(size);
    // What cannot be read today may still be of use to somebody: nothing is cut off for a file without rows.
    if keep < size && reader.metadata().num_rows == 0 {
        let found = "none: in place, nothing of the file would be left";
        return Err(Error::corrupt("a complete row group", found).at(reader.name(), keep, ""));
    }
    let mut footer = Vec::new();
    reader.metadata().write_footer(&mut footer)?;
    Ok(InPlaceRepair { keep, footer, size, report })
}

/// Metadata of a file that has no blocks itself.
fn without_blocks(metadata: &FileMetadata) -> FileMetadata {
    FileMetadata { sync_marker: None, checkpoint_interval: None, ..metadata.clone() }
}
