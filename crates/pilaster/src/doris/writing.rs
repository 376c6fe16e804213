//! Writing segments and tablets of Doris.

use std::io::Write;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::Schema;
use pilaster_core::{BatchReader, Dataset, Error, Limits, Location, Progress, Result};
use pilaster_doris::segment::{SegmentWriteOptions, SegmentWriter};
use pilaster_doris::tablet::{TabletOptions, TabletReader, TabletWriteOptions, TabletWriter, find_tablets};
use pilaster_doris::{KeysType, TableModel, TabletSchema};

use crate::convert::{ConvertSummary, Counted, write_counted};
use crate::output::BatchWriter;

/// How segments and tablets are written.
#[derive(Debug, Clone, Default)]
pub struct DorisWriterOptions {
    model: TableModel,
    schema: Option<Arc<TabletSchema>>,
    tablet: TabletWriteOptions,
    segment: SegmentWriteOptions,
}

impl DorisWriterOptions {
    /// Keys and what rows of equal keys mean, for a schema that is made from the columns.
    #[must_use]
    pub fn with_model(mut self, model: TableModel) -> Self {
        self.model = model;
        self
    }

    /// The whole schema, instead of one made from the columns.
    #[must_use]
    pub fn with_schema(mut self, schema: Option<Arc<TabletSchema>>) -> Self {
        self.schema = schema;
        self
    }

    /// Ids, layout and sizes of a tablet.
    #[must_use]
    pub fn with_tablet(mut self, tablet: TabletWriteOptions) -> Self {
        self.tablet = tablet;
        self
    }

    /// How segments are written, alone or in a tablet.
    #[must_use]
    pub fn with_segment(mut self, segment: SegmentWriteOptions) -> Self {
        self.segment = segment;
        self
    }

    /// About how many bytes of rows are sorted in memory; more go through temporary files.
    #[must_use]
    pub fn with_sort_memory_bytes(mut self, bytes: usize) -> Self {
        self.tablet = self.tablet.with_sort_memory_bytes(bytes);
        self
    }

    pub(super) fn schema(&self, columns: &Schema) -> Result<Arc<TabletSchema>> {
        match &self.schema {
            Some(schema) => Ok(Arc::clone(schema)),
            None => TabletSchema::from_arrow(columns, &self.model).map(Arc::new),
        }
    }
}

/// A writer of one segment, whose rows must be sorted by its keys.
pub(super) fn segment_writer(
    sink: Box<dyn Write + Send>,
    columns: &Schema,
    options: &DorisWriterOptions,
) -> Result<Box<dyn BatchWriter>> {
    let schema = options.schema(columns)?;
    Ok(Box::new(SegmentOutput(SegmentWriter::try_new(sink, &schema, &options.segment)?)))
}

struct SegmentOutput(SegmentWriter<Box<dyn Write + Send>>);

impl BatchWriter for SegmentOutput {
    fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        self.0.write(batch)
    }

    fn finish(self: Box<Self>) -> Result<()> {
        let (mut sink, _) = self.0.finish()?;
        Ok(sink.flush()?)
    }
}

/// Writes a tablet, whose rows may come in any order; it appears complete and counted, or not at all.
pub(super) fn write_tablet(
    batches: BatchReader,
    folder: &Location,
    options: &DorisWriterOptions,
    progress: &dyn Progress,
) -> Result<ConvertSummary> {
    let name = folder.to_string();
    let in_folder = |error: Error| error.at(&name, 0, "");
    let schema = options.schema(&batches.schema())?;
    let tablet =
        options.tablet.clone().with_segment_options(options.segment.clone()).with_single_rowset(true);
    write_counted(folder, |folder| {
        let mut writer = TabletWriter::create(folder, &schema, &tablet).map_err(in_folder)?;
        for batch in batches {
            let batch = batch.map_err(Error::from)?;
            writer.write(&batch).map_err(in_folder)?;
            progress.advance(batch.num_rows() as u64);
        }
        let summary = writer.finish().map_err(in_folder)?;
        // Rows of equal keys became one in other models, so only here does the number say something.
        let is_countable = schema.keys_type == KeysType::Duplicate;
        let found = is_countable.then(|| count_rows(folder)).transpose()?;
        Ok(Counted { rows: summary.rows, bytes: summary.bytes, found })
    })
}

fn count_rows(folder: &Location) -> Result<u64> {
    let mut rows = 0u64;
    for tablet in find_tablets(folder, &Limits::default())?.tablets {
        let reader = TabletReader::open(&tablet, &TabletOptions::default())?;
        rows = rows.saturating_add(reader.row_count().unwrap_or(0));
    }
    Ok(rows)
}
