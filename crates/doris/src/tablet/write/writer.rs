//! The folder being written.

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use arrow_array::RecordBatch;
use pilaster_core::atomic::{AtomicFile, AtomicFolder};
use pilaster_core::error::AtPosition;
use pilaster_core::{Error, Result};
use std::io::{Sink, Write, sink};

use super::header::{Header, Rowset, rowset_id};
use super::options::TabletWriteOptions;
use super::prepare::prepare;
use super::replaced::Replaced;
use super::size;
use crate::schema::{KeysType, TabletSchema};
use crate::segment::{Compression, SegmentSummary, SegmentWriter};

/// The version of the first load: rowset [0-1] is empty.
const FIRST_VERSION: i64 = 2;

/// What was written.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TabletSummary {
    /// Rows of all segments, replaced ones too.
    pub rows: u64,
    /// Bytes of all segments.
    pub bytes: u64,
    /// Segments.
    pub segments: u64,
    /// Newest version.
    pub version: i64,
    /// The tablet's own folder.
    pub folder: PathBuf,
}

/// Writes a tablet as a folder, which appears when [`TabletWriter::finish`] succeeds, or not at all.
///
/// ```no_run
/// use pilaster_doris::TabletSchema;
/// use pilaster_doris::tablet::{TabletWriteOptions, TabletWriter};
/// # fn batches() -> Vec<arrow_array::RecordBatch> { Vec::new() }
///
/// let schema = TabletSchema::parse_json(&std::fs::read("schema.json")?)?;
/// let mut writer = TabletWriter::create("backup", &schema, &TabletWriteOptions::default())?;
/// for batch in batches() {
///     writer.write(&batch)?;
/// }
/// writer.finish()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct TabletWriter {
    folder: AtomicFolder,
    target: PathBuf,
    schema: TabletSchema,
    options: TabletWriteOptions,
    creation_time: i64,
    /// Finished rowsets.
    rowsets: Vec<Rowset>,
    segments: Vec<SegmentSummary>,
    gathered: Vec<RecordBatch>,
    gathered_rows: u64,
    gathered_bytes: usize,
    /// The segment that rows go to as they come, and its number.
    open: Option<(SegmentWriter<AtomicFile>, u32)>,
    /// Where rows go first that come sorted, while it is not known how many there are.
    probe: Option<SegmentWriter<Sink>>,
    replaced: Replaced,
    /// Whether rows were lost on the way: then there must be no tablet without them.
    has_failed: bool,
}

impl TabletWriter {
    /// Starts the tablet in the folder that will be `target`, which must not exist yet or be empty.
    ///
    /// # Errors
    /// [`pilaster_core::ErrorKind::InvalidInput`] if schema and options do not fit each other or the folder is not empty;
    /// [`pilaster_core::ErrorKind::Io`].
    pub fn create(
        target: impl Into<PathBuf>,
        schema: &TabletSchema,
        options: &TabletWriteOptions,
    ) -> Result<Self> {
        options.check()?;
        let mut schema = schema.clone();
        options.segment.declare(&mut schema);
        // What cannot be written is refused before anything is made.
        SegmentWriter::try_new(sink(), &schema, &options.segment)?;
        let target = target.into();
        let folder = AtomicFolder::create(&target)?;
        let inner = folder.path().join(options.folder());
        std::fs::create_dir_all(&inner).at(&target.display().to_string(), 0, "")?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let empty = Rowset {
            id: rowset_id(options, 1),
            first_version: 0,
            last_version: FIRST_VERSION.saturating_sub(1),
            segments: Vec::new(),
        };
        Ok(Self {
            folder,
            target,
            schema,
            creation_time: options.creation_time.unwrap_or(i64::try_from(now).unwrap_or_default()),
            options: options.clone(),
            rowsets: vec![empty],
            segments: Vec::new(),
            gathered: Vec::new(),
            gathered_rows: 0,
            gathered_bytes: 0,
            open: None,
            probe: None,
            replaced: Replaced::default(),
            has_failed: false,
        })
    }

    /// Whether rows can be written as they come.
    fn is_streaming(&self) -> bool {
        self.schema.keys_type == KeysType::Duplicate
            && (self.options.sorted_input || self.schema.sort_columns().is_empty())
    }

    /// Version of the rowset being written.
    fn version(&self) -> i64 {
        self.rowsets.last().map_or(FIRST_VERSION, |rowset| rowset.last_version.saturating_add(1))
    }

    fn rowset_id(&self) -> String {
        rowset_id(&self.options, (self.rowsets.len() as u64).saturating_add(1))
    }

    /// Adds rows to the rowset.
    ///
    /// # Errors
    /// As [`SegmentWriter::write`]; [`pilaster_core::ErrorKind::Io`]. Then the tablet cannot be finished.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        self.start_step()?;
        self.gather(batch)?;
        self.has_failed = false;
        Ok(())
    }

    /// What stops before the flag is taken back leaves the tablet without some of its rows.
    fn start_step(&mut self) -> Result<()> {
        if std::mem::replace(&mut self.has_failed, true) {
            return Err(Error::invalid("a tablet whose last rows could not be written"));
        }
        Ok(())
    }

    fn gather(&mut self, batch: &RecordBatch) -> Result<()> {
        let most = u64::from(self.options.rows_per_segment);
        let mut start = 0usize;
        while start < batch.num_rows() {
            let filled = match &self.open {
                Some((writer, _)) => writer.rows(),
                None => self.gathered_rows,
            };
            let room = usize::try_from(most.saturating_sub(filled)).unwrap_or(usize::MAX);
            let rows = room.min(batch.num_rows().saturating_sub(start));
            let part = batch.slice(start, rows);
            start = start.saturating_add(rows);
            if self.is_streaming() {
                self.stream(&part)?;
            } else {
                self.gathered_rows = self.gathered_rows.saturating_add(rows as u64);
                let share =
                    batch.get_array_memory_size() as f64 * rows as f64 / batch.num_rows().max(1) as f64;
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "a share of a size"
                )]
                let share = share as usize;
                self.gathered_bytes = self.gathered_bytes.saturating_add(share);
                self.gathered.push(part);
                if self.gathered_rows >= most || self.gathered_bytes >= self.options.buffer_bytes {
                    self.flush()?;
                }
            }
        }
        Ok(())
    }

    fn stream(&mut self, part: &RecordBatch) -> Result<()> {
        match &mut self.open {
            Some((writer, _)) => writer.write(part)?,
            None => {
                // Whether they are compressed is known when there are enough of them; whether they can be written, now.
                if self.probe.is_none() {
                    let probe = SegmentWriter::try_new(sink(), &self.schema, &self.options.segment)?;
                    self.probe = Some(probe);
                }
                if let Some(probe) = &mut self.probe {
                    probe.write(part)?;
                }
                self.gathered_rows = self.gathered_rows.saturating_add(part.num_rows() as u64);
                self.gathered_bytes = self.gathered_bytes.saturating_add(size::of_rows(&self.schema, part));
                self.gathered.push(part.clone());
                if self.gathered_bytes > size::COMPRESSED_FROM {
                    self.open_gathered()?;
                }
            }
        }
        let rows = self.open.as_ref().map_or(self.gathered_rows, |(writer, _)| writer.rows());
        if rows >= u64::from(self.options.rows_per_segment) {
            self.close_segment()?;
        }
        Ok(())
    }

    /// Starts a segment with the rows that were gathered while nothing was known of its size.
    fn open_gathered(&mut self) -> Result<()> {
        let gathered = std::mem::take(&mut self.gathered);
        let bytes = std::mem::take(&mut self.gathered_bytes);
        self.gathered_rows = 0;
        self.probe = None;
        if gathered.is_empty() {
            return Ok(());
        }
        let number = self.next_segment()?;
        let mut writer = self.segment_writer(number, bytes)?;
        gathered.iter().try_for_each(|batch| writer.write(batch))?;
        self.open = Some((writer, number));
        Ok(())
    }

    fn close_segment(&mut self) -> Result<()> {
        if self.is_streaming() {
            self.open_gathered()?;
        }
        if let Some((writer, number)) = self.open.take() {
            let summary = self.finish_segment(writer, number)?;
            self.segments.push(summary);
        }
        Ok(())
    }

    fn next_segment(&self) -> Result<u32> {
        u32::try_from(self.segments.len()).map_err(|_| Error::invalid("2^32 segments in a rowset"))
    }

    /// Starts the segment of this number in the rowset being written, for rows of about so many bytes.
    fn segment_writer(&self, number: u32, bytes: usize) -> Result<SegmentWriter<AtomicFile>> {
        let name = format!("{}_{number}.dat", self.rowset_id());
        let file = AtomicFile::create(self.inner().join(name))?;
        let mut options = self.options.segment.clone().with_segment_id(number);
        if options.compression().is_none() && bytes <= size::COMPRESSED_FROM {
            options = options.with_compression(Compression::None);
        }
        SegmentWriter::try_new(file, &self.schema, &options)
    }

    fn finish_segment(&self, writer: SegmentWriter<AtomicFile>, number: u32) -> Result<SegmentSummary> {
        let in_segment = |error: Error| {
            if error.position().is_some() {
                error
            } else {
                error.at(&format!("segment {number} of rowset {}", self.rowset_id()), 0, "")
            }
        };
        let (file, summary) = writer.finish().map_err(in_segment)?;
        file.commit()?;
        Ok(summary)
    }

    fn inner(&self) -> PathBuf {
        self.folder.path().join(self.options.folder())
    }

    /// Writes the gathered rows.
    fn flush(&mut self) -> Result<()> {
        let gathered = std::mem::take(&mut self.gathered);
        (self.gathered_rows, self.gathered_bytes) = (0, 0);
        let is_merge_on_write = self.schema.keys_type == KeysType::Unique && self.schema.merge_on_write;
        for batches in prepare(&self.schema, &gathered)? {
            let number = self.next_segment()?;
            let mut writer = self.segment_writer(
                number,
                batches.iter().map(|batch| size::of_rows(&self.schema, batch)).sum(),
            )?;
            for batch in &batches {
                let first_row = u32::try_from(writer.rows()).unwrap_or(u32::MAX);
                writer.write(batch)?;
                if is_merge_on_write {
                    let place = (self.rowsets.len(), number, self.version());
                    self.replaced.add(&self.schema, batch, place, first_row)?;
                }
            }
            let summary = self.finish_segment(writer, number)?;
            self.segments.push(summary);
        }
        Ok(())
    }

    /// Ends the rowset: what is written next belongs to the next version. A rowset may be without rows.
    ///
    /// # Errors
    /// As [`TabletWriter::write`].
    pub fn finish_rowset(&mut self) -> Result<()> {
        self.start_step()?;
        self.close_segment()?;
        self.flush()?;
        let version = self.version();
        self.rowsets.push(Rowset {
            id: self.rowset_id(),
            first_version: version,
            last_version: version,
            segments: std::mem::take(&mut self.segments),
        });
        self.has_failed = false;
        Ok(())
    }

    /// Ends the last rowset, writes the metadata and gives the folder its name.
    ///
    /// # Errors
    /// As [`TabletWriter::write`]; then nothing appears.
    pub fn finish(mut self) -> Result<TabletSummary> {
        self.start_step()?;
        self.has_failed = false;
        let has_rows = !self.gathered.is_empty() || !self.segments.is_empty() || self.open.is_some();
        if has_rows || self.rowsets.len() == 1 {
            self.finish_rowset()?;
        }
        let header =
            Header { options: &self.options, schema: &self.schema, creation_time: self.creation_time };
        let bytes = header.bytes(&self.rowsets, std::mem::take(&mut self.replaced).finish())?;
        let inner = self.inner();
        let mut file = AtomicFile::create(inner.join(format!("{}.hdr", self.options.tablet_id)))?;
        file.write_all(&bytes)?;
        file.commit()?;
        sync_folders(self.folder.path(), &inner)?;
        let all = || self.rowsets.iter().flat_map(|rowset| &rowset.segments);
        let summary = TabletSummary {
            rows: all().map(|segment| segment.rows).sum(),
            bytes: all().map(|segment| segment.bytes).sum(),
            segments: all().count() as u64,
            version: self.rowsets.last().map_or(0, |rowset| rowset.last_version),
            folder: self.target.join(self.options.folder()),
        };
        self.folder.commit()?;
        Ok(summary)
    }
}

/// Makes the entries of the folders from `inner` up to `root` durable.
fn sync_folders(root: &Path, inner: &Path) -> Result<()> {
    let mut at = Some(inner);
    while let Some(folder) = at {
        std::fs::File::open(folder).and_then(|file| file.sync_all()).at(
            &folder.display().to_string(),
            0,
            "",
        )?;
        at = folder.parent().filter(|_| folder != root);
    }
    Ok(())
}
