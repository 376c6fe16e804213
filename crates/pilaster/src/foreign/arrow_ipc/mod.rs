//! Arrow IPC: files with a footer, and streams.

mod dictionaries;
mod layout;
mod sizes;

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, new_null_array};
use arrow_ipc::reader::FileDecoder;
use arrow_schema::{DataType, SchemaRef};
use pilaster_core::dataset::column_index;
use pilaster_core::describe::{ColumnStatistics, Node, Page};
use pilaster_core::{
    BatchReader, Dataset, Error, Finding, LossLog, OnDamage, PlannedScan, Progress, Result, RowRanges, Scan,
    ScanPlan, ScanRequest, Severity, SourceRef, TaskSpan, VerifyDepth, VerifyReport,
};

use super::guard::guarded;
use super::whole;
use crate::open::OpenOptions;
pub(crate) use dictionaries::Dictionaries;
use layout::Layout;
use pilaster_core::stream;
use sizes::Unpacked;

/// An Arrow IPC file or stream. A record batch is a split, and so is the place where a stream breaks off.
#[derive(Debug)]
pub struct ArrowDataset {
    layout: Arc<Layout>,
}

impl ArrowDataset {
    /// Opens a file: reads the footer and the header of each record batch.
    ///
    /// # Errors
    /// [`pilaster_core::ErrorKind::Corrupt`] if they do not parse.
    pub fn open_file(source: SourceRef, options: &OpenOptions) -> Result<Self> {
        let recovers = options.recovers();
        let layout = match Layout::of_file(Arc::clone(&source), options.limits(), recovers) {
            Err(error) if recovers && error.is_damage() => {
                let footer = error.clone();
                Layout::of_file_without_footer(source, options.limits(), footer).map_err(|_| error)?
            }
            Ok(listed) if recovers => {
                let footer = Error::corrupt("a footer that lists every record batch", listed.batches.len());
                let footer = footer.at(source.name(), 0, "arrow footer");
                match Layout::of_file_without_footer(source, options.limits(), footer) {
                    Ok(walked) if walked.batches.len() > listed.batches.len() => walked,
                    _ => listed,
                }
            }
            opened => opened?,
        };
        Ok(Self { layout: Arc::new(layout) })
    }

    /// Opens a stream: walks over the headers of its messages.
    ///
    /// # Errors
    /// [`pilaster_core::ErrorKind::Corrupt`] if its schema does not parse. Where it breaks off later, scans do.
    pub fn open_stream(source: SourceRef, options: &OpenOptions) -> Result<Self> {
        Ok(Self { layout: Arc::new(Layout::of_stream(source, options.limits(), options.recovers())?) })
    }

    /// The record batches as tasks.
    fn spans(&self) -> Vec<TaskSpan> {
        let spans = self.layout.batches.iter().map(|(block, rows)| {
            let bytes = i64::from(block.metaDataLength()).saturating_add(block.bodyLength());
            TaskSpan { rows: Some(rows.clone()), bytes: u64::try_from(bytes).unwrap_or(0) }
        });
        spans.collect()
    }
}

/// The record batches that a scan reads, and the end of the file where it is broken.
struct PlannedBatches {
    layout: Arc<Layout>,
    wanted: RowRanges,
    spans: Vec<TaskSpan>,
    /// Whoever asks for certain rows that are there does not meet the end.
    meets_end: bool,
}

impl PlannedScan for PlannedBatches {
    fn spans(&self) -> Result<Vec<TaskSpan>> {
        let end = (self.meets_end && self.layout.is_broken())
            .then(|| TaskSpan { rows: None, bytes: self.layout.bytes_lost() });
        Ok(self.spans.iter().cloned().chain(end).collect())
    }

    fn read(&self, tasks: Option<Range<usize>>, request: &ScanRequest) -> Result<BatchReader> {
        let (mut wanted, mut meets_end) = (self.wanted.clone(), self.meets_end);
        if let Some(tasks) = tasks {
            meets_end &= tasks.end > self.spans.len();
            let rows = |number: usize| self.spans.get(number).and_then(|span| span.rows.clone());
            wanted = wanted.intersect(&tasks.filter_map(rows).collect());
        }
        let schema = &self.layout.schema;
        let needed = stream::needed_columns(request, schema)?;
        let decoder =
            FileDecoder::new(Arc::clone(schema), self.layout.version).with_projection(needed.clone());
        let compared = request.predicate.iter().flat_map(|predicate| predicate.columns());
        let compared = compared.map(|name| column_index(schema, name)).collect::<Result<Vec<_>>>()?;
        let first = wanted.as_slice().first().map_or(0, |range| range.start);
        let input = Batches {
            layout: Arc::clone(&self.layout),
            decoder,
            needed,
            compared,
            next: self.layout.batches.partition_point(|(_, rows)| rows.end <= first),
            wanted: wanted.clone(),
            next_dictionary: 0,
            lost_dictionary: None,
            unpacked: Unpacked::default(),
            on_damage: request.on_damage.clone(),
            meets_end,
        };
        let rows = (!meets_end).then_some(wanted);
        stream::apply_at(input, schema, &ScanRequest { rows, ..request.clone() })
    }
}

impl Dataset for ArrowDataset {
    fn format(&self) -> &'static str {
        if self.layout.is_stream { "arrow stream" } else { "arrow file" }
    }

    fn name(&self) -> &str {
        self.layout.source.name()
    }

    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.layout.schema)
    }

    fn row_count(&self) -> Option<u64> {
        (!self.layout.is_broken()).then(|| self.layout.row_count())
    }

    fn size_bytes(&self) -> u64 {
        self.layout.source.size()
    }

    fn scan(&self) -> Scan<'_> {
        Scan::new(self)
    }

    fn plan(&self, request: &ScanRequest) -> Result<ScanPlan> {
        let wanted = request.wanted_rows(self.layout.row_count());
        let is_wanted =
            |span: &TaskSpan| span.rows.as_ref().is_some_and(|rows| !wanted.within(rows).is_empty());
        let spans = self.spans().into_iter().filter(is_wanted).collect();
        let (layout, meets_end) = (Arc::clone(&self.layout), request.rows.is_none());
        ScanPlan::new(request, &self.layout.schema, PlannedBatches { layout, wanted, spans, meets_end })
    }

    fn verify(&self, depth: VerifyDepth, progress: &dyn Progress) -> Result<VerifyReport> {
        let mut report = whole::verify(self, depth, progress)?;
        if let Some(error) = self.layout.bad_head()? {
            // Nobody needs it who finds the footer.
            let finding = Finding::from_error(&error, self.name(), None);
            report.findings.insert(0, Finding { severity: Severity::Warning, ..finding });
        }
        Ok(report)
    }

    fn describe(&self) -> Result<Node> {
        let mut node = whole::describe(self.format(), self.size_bytes(), &self.layout.schema)
            .fact("rows", self.layout.row_count())
            .fact("version", format!("{:?}", self.layout.version));
        for (index, (span, (block, rows))) in self.spans().iter().zip(&self.layout.batches).enumerate() {
            let child = Node::new(format!("record batch {index}"), span.bytes)
                .fact("offset", block.offset())
                .fact("rows", rows.end.saturating_sub(rows.start));
            node = node.child(child);
        }
        Ok(node)
    }

    fn pages(&self) -> Result<Vec<Page>> {
        Ok(Vec::new())
    }

    fn column_statistics(&self) -> Result<Vec<ColumnStatistics>> {
        Ok(whole::no_statistics(&self.layout.schema))
    }
}

/// The record batches that hold a wanted row, each with the position of its first row.
struct Batches {
    layout: Arc<Layout>,
    decoder: FileDecoder,
    /// The columns that are decoded, and those that a condition compares.
    needed: Vec<usize>,
    compared: Vec<usize>,
    wanted: RowRanges,
    next: usize,
    next_dictionary: usize,
    /// What is wrong with a dictionary: what comes after it means other words, or none.
    lost_dictionary: Option<Error>,
    unpacked: Unpacked,
    on_damage: OnDamage,
    meets_end: bool,
}

impl Batches {
    /// Reads the dictionaries that hold for a record batch at `offset`.
    fn read_dictionaries(&mut self, offset: i64) -> Result<()> {
        while let Some(block) = self.layout.dictionaries.get(self.next_dictionary) {
            if self.layout.is_stream && block.offset() > offset {
                break;
            }
            self.next_dictionary = self.next_dictionary.saturating_add(1);
            let read = self.layout.read_block(block).and_then(|buffer| {
                let counted = self.unpacked.add_dictionary(&buffer, head_of(block), &self.layout.limits);
                counted.map_err(|error| self.layout.in_block(block, error))?;
                guarded(|| self.decoder.read_dictionary(block, &buffer))
                    .map_err(|found| self.layout.bad_block(block, found))
            });
            if let Err(error) = read {
                self.lost_dictionary.get_or_insert(error);
            }
        }
        match &self.lost_dictionary {
            Some(error) => Err(error.clone()),
            None => Ok(()),
        }
    }

    fn read_batch(&mut self, block: &arrow_ipc::Block) -> Result<Option<RecordBatch>> {
        self.read_dictionaries(block.offset())?;
        let buffer = self.layout.read_block(block)?;
        let checked = self.unpacked.check_batch(&buffer, head_of(block), &self.layout.limits);
        checked.map_err(|error| self.layout.in_block(block, error))?;
        guarded(|| self.decoder.read_record_batch(block, &buffer))
            .map_err(|found| self.layout.bad_block(block, found))
    }

    /// A record batch with null in the columns that cannot be read, which are noted; `None` if they may not be null, or none is left.
    fn read_filled(
        &self,
        block: &arrow_ipc::Block,
        rows: &Range<u64>,
        wanted: &RowRanges,
        losses: &LossLog,
    ) -> Option<RecordBatch> {
        // As many as a header says: nulls are made of what its bytes can hold only.
        let held = u64::try_from(block.bodyLength()).ok()?.saturating_mul(8);
        let count = Some(rows.end.saturating_sub(rows.start)).filter(|count| *count <= held)?;
        let count = usize::try_from(count).ok()?;
        let mut columns = Vec::with_capacity(self.needed.len());
        let mut lost = Vec::new();
        for column in &self.needed {
            let field = self.layout.schema.fields().get(*column)?;
            match self.read_column(block, *column) {
                Ok(Some(array)) if array.len() == count => columns.push(array),
                Err(error) if field.is_nullable() && !self.compared.contains(column) => {
                    columns.push(new_null_array(field.data_type(), count));
                    lost.push((field.name(), error));
                }
                Ok(_) | Err(_) => return None,
            }
        }
        if lost.len() == columns.len() {
            return None;
        }
        for (name, error) in lost {
            wanted.as_slice().iter().for_each(|rows| losses.record(rows.clone(), Some(name), &error));
        }
        let schema = Arc::new(self.layout.schema.project(&self.needed).ok()?);
        RecordBatch::try_new(schema, columns).ok()
    }

    /// One column of a record batch by itself, with the dictionaries that it needs.
    fn read_column(&self, block: &arrow_ipc::Block, column: usize) -> Result<Option<ArrayRef>> {
        let mut decoder = FileDecoder::new(Arc::clone(&self.layout.schema), self.layout.version)
            .with_projection(vec![column]);
        let field = self.layout.schema.fields().get(column);
        if field.is_some_and(|field| has_dictionary(field.data_type())) {
            let before =
                |other: &&arrow_ipc::Block| !self.layout.is_stream || other.offset() <= block.offset();
            let mut unpacked = Unpacked::default();
            for dictionary in self.layout.dictionaries.iter().take_while(before) {
                let buffer = self.layout.read_block(dictionary)?;
                unpacked
                    .add_dictionary(&buffer, head_of(dictionary), &self.layout.limits)
                    .map_err(|error| self.layout.in_block(dictionary, error))?;
                guarded(|| decoder.read_dictionary(dictionary, &buffer))
                    .map_err(|found| self.layout.bad_block(dictionary, found))?;
            }
        }
        let buffer = self.layout.read_block(block)?;
        let checked = self.unpacked.check_batch(&buffer, head_of(block), &self.layout.limits);
        checked.map_err(|error| self.layout.in_block(block, error))?;
        let batch = guarded(|| decoder.read_record_batch(block, &buffer))
            .map_err(|found| self.layout.bad_block(block, found))?;
        Ok(batch.and_then(|batch| batch.columns().first().cloned()))
    }

    /// What cannot be read and counted, once.
    fn end(&mut self) -> Option<Result<(u64, RecordBatch)>> {
        if !self.meets_end {
            return None;
        }
        self.meets_end = false;
        for error in self.layout.unreadable.iter().chain(&self.layout.breaks_off) {
            match &self.on_damage {
                OnDamage::Stop => return Some(Err(error.clone())),
                // How many rows are behind the break nobody knows.
                OnDamage::Skip(losses) => losses.record_unknown(error),
            }
        }
        None
    }
}

/// Bytes of a message before its body.
fn head_of(block: &arrow_ipc::Block) -> usize {
    usize::try_from(block.metaDataLength()).unwrap_or(0)
}

/// Whether values of a type are looked up in words that stand elsewhere in the file.
fn has_dictionary(data_type: &DataType) -> bool {
    match data_type {
        DataType::Dictionary(..) => true,
        DataType::RunEndEncoded(_, inner)
        | DataType::List(inner)
        | DataType::LargeList(inner)
        | DataType::ListView(inner)
        | DataType::LargeListView(inner)
        | DataType::FixedSizeList(inner, _)
        | DataType::Map(inner, _) => has_dictionary(inner.data_type()),
        DataType::Struct(fields) => fields.iter().any(|field| has_dictionary(field.data_type())),
        DataType::Union(fields, _) => fields.iter().any(|(_, field)| has_dictionary(field.data_type())),
        _ => false,
    }
}

impl Iterator for Batches {
    type Item = Result<(u64, RecordBatch)>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let Some((block, rows)) = self.layout.batches.get(self.next).cloned() else { return self.end() };
            self.next = self.next.saturating_add(1);
            let wanted = self.wanted.intersect(&RowRanges::one(rows.clone()));
            if wanted.is_empty() {
                continue;
            }
            match (self.read_batch(&block), &self.on_damage) {
                (Ok(Some(batch)), _) => return Some(Ok((rows.start, batch))),
                (Ok(None), _) => {}
                (Err(error), OnDamage::Stop) => return Some(Err(error)),
                (Err(error), OnDamage::Skip(losses)) => {
                    let filled =
                        losses.fills_cells().then(|| self.read_filled(&block, &rows, &wanted, losses));
                    if let Some(batch) = filled.flatten() {
                        return Some(Ok((rows.start, batch)));
                    }
                    for lost in wanted.as_slice() {
                        losses.record(lost.clone(), None, &error);
                    }
                }
            }
        }
    }
}
