//! The folder being written.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use arrow_array::RecordBatch;
use pilaster_core::sort::{SortedRows, Sorter};
use pilaster_core::{Error, Location, NewFile, NewFolder, Result};
use std::io::{Sink, sink};

use super::header::{Header, Rowset, rowset_id};
use super::options::TabletWriteOptions;
use super::replaced::Replaced;
use super::size;
use super::sorted::{OneRowPerKey, Ordered, sorter};
use crate::schema::{KeysType, TabletSchema};
use crate::segment::{Compression, SegmentSummary, SegmentWriter};

/// The version of the first load: rowset [0-1] is empty.
const FIRST_VERSION: i64 = 2;

/// A segment may be full after so many rows, and any multiple of them: where it ends does not depend on the batches that rows come in.
const ROWS_BETWEEN_ENDS: usize = 1024;

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
    pub folder: Location,
}

/// Writes a tablet as a folder, which appears when [`TabletWriter::finish`] succeeds, or not at all.
///
/// ```no_run
/// use std::path::Path;
/// use pilaster_doris::TabletSchema;
/// use pilaster_doris::tablet::{TabletWriteOptions, TabletWriter};
/// # fn batches() -> Vec<arrow_array::RecordBatch> { Vec::new() }
///
/// let schema = TabletSchema::parse_json(&std::fs::read("schema.json")?)?;
/// let mut writer = TabletWriter::create(Path::new("backup"), &schema, &TabletWriteOptions::default())?;
/// for batch in batches() {
///     writer.write(&batch)?;
/// }
/// writer.finish()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct TabletWriter {
    folder: NewFolder,
    schema: Arc<TabletSchema>,
    options: TabletWriteOptions,
    creation_time: i64,
    /// Finished rowsets.
    rowsets: Vec<Rowset>,
    segments: Vec<SegmentSummary>,
    /// Rows that come in any order, and how many there are and what they take.
    unsorted: Option<Sorter>,
    unsorted_rows: u64,
    unsorted_bytes: usize,
    /// The rows of a segment that is not begun, because nothing is known of its size.
    gathered: Vec<RecordBatch>,
    /// The segment that rows go to, and its number.
    open: Option<(SegmentWriter<NewFile>, u32)>,
    /// What there is of the segment, begun or not.
    segment_rows: u64,
    segment_bytes: usize,
    /// Where rows go first that come sorted, while it is not known how many there are.
    probe: Option<SegmentWriter<Sink>>,
    /// None where no key can be written twice.
    replaced: Option<Replaced>,
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
        target: impl Into<Location>,
        schema: &TabletSchema,
        options: &TabletWriteOptions,
    ) -> Result<Self> {
        options.check()?;
        let mut schema = schema.clone();
        options.segment.declare(&mut schema);
        // What cannot be written is refused before anything is made.
        SegmentWriter::try_new(sink(), &schema, &options.segment)?;
        let folder = NewFolder::create(target)?;
        folder.place().child(options.folder()).make_folder()?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let empty = Rowset {
            id: rowset_id(options, 1),
            first_version: 0,
            last_version: FIRST_VERSION.saturating_sub(1),
            segments: Vec::new(),
        };
        let is_merge_on_write = schema.keys_type == KeysType::Unique && schema.merge_on_write;
        let replaced = is_merge_on_write && !(options.single_rowset && options.sorted_rowsets);
        let replaced = replaced.then(|| Replaced::new(options.memory_bytes / 2, folder.place().scratch()));
        Ok(Self {
            folder,
            schema: Arc::new(schema),
            creation_time: options.creation_time.unwrap_or(i64::try_from(now).unwrap_or_default()),
            options: options.clone(),
            rowsets: vec![empty],
            segments: Vec::new(),
            unsorted: None,
            unsorted_rows: 0,
            unsorted_bytes: 0,
            gathered: Vec::new(),
            open: None,
            segment_rows: 0,
            segment_bytes: 0,
            probe: None,
            replaced,
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
        if self.options.single_rowset && self.rowsets.len() > 1 && batch.num_rows() > 0 {
            return Err(Error::invalid("rows of a second load, where one was announced"));
        }
        if self.is_streaming() {
            return self.append(batch);
        }
        let mut start = 0usize;
        while start < batch.num_rows() {
            let most = match self.options.sorted_rowsets {
                true => u64::MAX,
                false => u64::from(self.options.rows_per_segment).saturating_sub(self.unsorted_rows),
            };
            let left = batch.num_rows().saturating_sub(start);
            let rows = usize::try_from(most).unwrap_or(left).min(left);
            let part = batch.slice(start, rows);
            start = start.saturating_add(rows);
            let sorter = self.unsorted.get_or_insert_with(|| {
                let (schema, options) = (&self.schema, &self.options);
                let of_table = schema.keys_type != KeysType::Duplicate;
                sorter(schema, batch.schema(), of_table, options.memory_bytes, &self.folder.place().scratch())
            });
            sorter.push(&part)?;
            self.unsorted_rows = self.unsorted_rows.saturating_add(rows as u64);
            self.unsorted_bytes = self.unsorted_bytes.saturating_add(size::of_rows(&self.schema, &part));
            let is_full = self.unsorted_rows >= u64::from(self.options.rows_per_segment)
                || self.unsorted_bytes >= self.options.segment_bytes;
            if is_full && !self.options.sorted_rowsets {
                self.write_sorted()?;
            }
        }
        Ok(())
    }

    /// Writes the rows that were to be sorted.
    fn write_sorted(&mut self) -> Result<()> {
        let Some(sorter) = self.unsorted.take() else { return Ok(()) };
        (self.unsorted_rows, self.unsorted_bytes) = (0, 0);
        let mut rows = self.one_row_per_key(sorter.finish()?);
        if !self.schema.cluster_key_uids.is_empty() {
            let Some(sorted) = self.sorted_by_cluster_key(&mut rows)? else { return Ok(()) };
            for batch in sorted {
                self.append(&batch?)?;
            }
            return self.close_segment();
        }
        while let Some(rows) = rows.next()? {
            match rows {
                Ordered::Rows(batches) => batches.iter().try_for_each(|batch| self.append(batch))?,
                Ordered::Layers(layers) => {
                    self.close_segment()?;
                    for batches in layers {
                        batches.iter().try_for_each(|batch| self.append(batch))?;
                        self.close_segment()?;
                    }
                }
            }
        }
        self.close_segment()
    }

    fn one_row_per_key(&self, rows: SortedRows) -> OneRowPerKey {
        let most = (u64::from(self.options.rows_per_segment), self.options.segment_bytes);
        OneRowPerKey::new(Arc::clone(&self.schema), rows, most)
    }

    /// The rows, one for each key, in the order of other columns; `None` if there are none.
    fn sorted_by_cluster_key(&self, rows: &mut OneRowPerKey) -> Result<Option<SortedRows>> {
        let mut sorted: Option<Sorter> = None;
        while let Some(rows) = rows.next()? {
            let Ordered::Rows(batches) = rows else {
                return Err(Error::unsupported("cluster keys of rows that only Doris can make one"));
            };
            for batch in batches {
                let memory_bytes = self.options.memory_bytes / 2;
                let new = || {
                    sorter(&self.schema, batch.schema(), false, memory_bytes, &self.folder.place().scratch())
                };
                sorted.get_or_insert_with(new).push(&batch)?;
            }
        }
        sorted.map(Sorter::finish).transpose()
    }

    /// Writes rows in the order of their segment, and begins another when it is full.
    fn append(&mut self, batch: &RecordBatch) -> Result<()> {
        let most = u64::from(self.options.rows_per_segment);
        let mut start = 0usize;
        while start < batch.num_rows() {
            let filled = usize::try_from(self.segment_rows).unwrap_or(usize::MAX);
            let room = usize::try_from(most.saturating_sub(self.segment_rows)).unwrap_or(usize::MAX);
            let to_end = ROWS_BETWEEN_ENDS.saturating_sub(filled % ROWS_BETWEEN_ENDS);
            let rows = room.min(to_end).min(batch.num_rows().saturating_sub(start));
            let part = batch.slice(start, rows);
            start = start.saturating_add(rows);
            self.append_part(&part)?;
            let may_end = self.segment_rows.is_multiple_of(ROWS_BETWEEN_ENDS as u64);
            if self.segment_rows >= most || may_end && self.segment_bytes >= self.options.segment_bytes {
                self.close_segment()?;
            }
        }
        Ok(())
    }

    fn append_part(&mut self, part: &RecordBatch) -> Result<()> {
        if self.replaced.is_some() {
            let place = (self.rowsets.len(), self.next_segment()?, self.version());
            let first_row = u32::try_from(self.segment_rows)
                .map_err(|_| Error::invalid(format!("a segment of {} rows", self.segment_rows)))?;
            if let Some(replaced) = &mut self.replaced {
                replaced.add(&self.schema, part, place, first_row)?;
            }
        }
        self.segment_rows = self.segment_rows.saturating_add(part.num_rows() as u64);
        self.segment_bytes = self.segment_bytes.saturating_add(size::of_rows(&self.schema, part));
        if let Some((writer, _)) = &mut self.open {
            return writer.write(part);
        }
        // Whether they are compressed is known when there are enough of them; whether they can be written, now.
        if self.is_streaming() {
            if self.probe.is_none() {
                self.probe = Some(SegmentWriter::try_new(sink(), &self.schema, &self.options.segment)?);
            }
            if let Some(probe) = &mut self.probe {
                probe.write(part)?;
            }
        }
        self.gathered.push(part.clone());
        if self.segment_bytes > size::COMPRESSED_FROM { self.open_gathered() } else { Ok(()) }
    }

    /// Starts a segment with the rows that were gathered while nothing was known of its size.
    fn open_gathered(&mut self) -> Result<()> {
        let gathered = std::mem::take(&mut self.gathered);
        self.probe = None;
        if gathered.is_empty() {
            return Ok(());
        }
        let number = self.next_segment()?;
        let mut writer = self.segment_writer(number, self.segment_bytes)?;
        gathered.iter().try_for_each(|batch| writer.write(batch))?;
        self.open = Some((writer, number));
        Ok(())
    }

    fn close_segment(&mut self) -> Result<()> {
        self.open_gathered()?;
        if let Some((writer, number)) = self.open.take() {
            let summary = self.finish_segment(writer, number)?;
            self.segments.push(summary);
        }
        (self.segment_rows, self.segment_bytes) = (0, 0);
        Ok(())
    }

    fn next_segment(&self) -> Result<u32> {
        u32::try_from(self.segments.len()).map_err(|_| Error::invalid("2^32 segments in a rowset"))
    }

    /// Starts the segment of this number in the rowset being written, for rows of about so many bytes.
    fn segment_writer(&self, number: u32, bytes: usize) -> Result<SegmentWriter<NewFile>> {
        let name = format!("{}_{number}.dat", self.rowset_id());
        let file = self.inner().child(name).create()?;
        let mut options = self.options.segment.clone().with_segment_id(number);
        if options.compression().is_none() && bytes <= size::COMPRESSED_FROM {
            options = options.with_compression(Compression::None);
        }
        SegmentWriter::try_new(file, &self.schema, &options)
    }

    fn finish_segment(&self, writer: SegmentWriter<NewFile>, number: u32) -> Result<SegmentSummary> {
        let in_segment = |error: Error| {
            if error.position().is_some() {
                error
            } else {
                error.at(&format!("segment {number} of rowset {}", self.rowset_id()), 0, "")
            }
        };
        let (file, summary) = writer.finish().map_err(in_segment)?;
        file.finish()?;
        Ok(summary)
    }

    fn inner(&self) -> Location {
        self.folder.place().child(self.options.folder())
    }

    /// Ends the rowset: what is written next belongs to the next version. A rowset may be without rows.
    ///
    /// # Errors
    /// As [`TabletWriter::write`].
    pub fn finish_rowset(&mut self) -> Result<()> {
        self.start_step()?;
        self.write_sorted()?;
        self.close_segment()?;
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
        let has_rows = self.unsorted.is_some() || self.segment_rows > 0 || !self.segments.is_empty();
        if has_rows || self.rowsets.len() == 1 {
            self.finish_rowset()?;
        }
        let header =
            Header { options: &self.options, schema: &self.schema, creation_time: self.creation_time };
        let replaced = self.replaced.take().map(Replaced::finish).transpose()?.unwrap_or_default();
        let bytes = header.bytes(&self.rowsets, replaced)?;
        // Last: without its header a folder is no tablet.
        self.inner().child(format!("{}.hdr", self.options.tablet_id)).write(&bytes)?;
        let all = || self.rowsets.iter().flat_map(|rowset| &rowset.segments);
        let summary = TabletSummary {
            rows: all().map(|segment| segment.rows).sum(),
            bytes: all().map(|segment| segment.bytes).sum(),
            segments: all().count() as u64,
            version: self.rowsets.last().map_or(0, |rowset| rowset.last_version),
            folder: self.folder.target().child(self.options.folder()),
        };
        self.folder.finish()?;
        Ok(summary)
    }
}
