//! Arrow IPC: files with a footer, and streams.

mod layout;

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_ipc::reader::FileDecoder;
use arrow_schema::SchemaRef;
use pilaster_core::describe::{ColumnStatistics, Node, Page};
use pilaster_core::{
    BatchReader, Dataset, OnDamage, Progress, Result, RowRanges, Scan, ScanRequest, SourceRef, Split,
    VerifyDepth, VerifyReport,
};

use super::guard::guarded;
use super::whole;
use crate::open::OpenOptions;
use crate::stream;
use layout::Layout;

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
        Ok(Self { layout: Arc::new(Layout::of_file(source, options.limits())?) })
    }

    /// Opens a stream: walks over the headers of its messages.
    ///
    /// # Errors
    /// [`pilaster_core::ErrorKind::Corrupt`] if its schema does not parse. Where it breaks off later, scans do.
    pub fn open_stream(source: SourceRef, options: &OpenOptions) -> Result<Self> {
        Ok(Self { layout: Arc::new(Layout::of_stream(source, options.limits())?) })
    }

    fn split_list(&self) -> Vec<Split> {
        let splits = self.layout.batches.iter().map(|(block, rows)| {
            let bytes = i64::from(block.metaDataLength()).saturating_add(block.bodyLength());
            Split { rows: Some(rows.clone()), bytes: u64::try_from(bytes).unwrap_or(0) }
        });
        let broken_end =
            self.layout.broken_end().map(|_| Split { rows: None, bytes: self.layout.bytes_lost() });
        splits.chain(broken_end).collect()
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
        self.layout.breaks_off.is_none().then(|| self.layout.row_count())
    }

    fn size_bytes(&self) -> u64 {
        self.layout.source.size()
    }

    fn splits(&self) -> Result<Vec<Split>> {
        Ok(self.split_list())
    }

    fn scan(&self) -> Scan<'_> {
        Scan::new(self)
    }

    fn read(&self, request: &ScanRequest) -> Result<BatchReader> {
        let mut wanted = request.wanted_rows(self.layout.row_count(), &self.split_list())?;
        let is_broken_end = request.split.is_some() && request.split == self.layout.broken_end();
        if is_broken_end {
            wanted = RowRanges::none();
        }
        let needed = stream::needed_columns(request, &self.layout.schema)?;
        let decoder =
            FileDecoder::new(Arc::clone(&self.layout.schema), self.layout.version).with_projection(needed);
        // Whoever asks for certain rows that are there does not meet the end.
        let meets_end = request.rows.is_none() && (request.split.is_none() || is_broken_end);
        let input = Batches {
            layout: Arc::clone(&self.layout),
            decoder,
            wanted: wanted.clone(),
            next: 0,
            next_dictionary: 0,
            on_damage: request.on_damage.clone(),
            meets_end,
        };
        let rows = (!meets_end).then_some(wanted);
        stream::apply_at(input, &self.layout.schema, &ScanRequest { rows, ..request.clone() })
    }

    fn verify(&self, depth: VerifyDepth, progress: &dyn Progress) -> Result<VerifyReport> {
        whole::verify(self, depth, progress)
    }

    fn describe(&self) -> Result<Node> {
        let mut node = whole::describe(self.format(), self.size_bytes(), &self.layout.schema)
            .fact("rows", self.layout.row_count())
            .fact("version", format!("{:?}", self.layout.version));
        for (index, (split, (block, rows))) in self.split_list().iter().zip(&self.layout.batches).enumerate()
        {
            let child = Node::new(format!("record batch {index}"), split.bytes)
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
    wanted: RowRanges,
    next: usize,
    next_dictionary: usize,
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
            let buffer = self.layout.read_block(block)?;
            guarded(|| self.decoder.read_dictionary(block, &buffer))
                .map_err(|found| self.layout.bad_block(block, found))?;
        }
        Ok(())
    }

    fn read_batch(&mut self, block: &arrow_ipc::Block) -> Result<Option<RecordBatch>> {
        self.read_dictionaries(block.offset())?;
        let buffer = self.layout.read_block(block)?;
        guarded(|| self.decoder.read_record_batch(block, &buffer))
            .map_err(|found| self.layout.bad_block(block, found))
    }

    /// The error of a stream that breaks off, once.
    fn end(&mut self) -> Option<Result<(u64, RecordBatch)>> {
        let error = self.layout.breaks_off.as_ref().filter(|_| self.meets_end)?.again();
        self.meets_end = false;
        match &self.on_damage {
            OnDamage::Stop => Some(Err(error)),
            OnDamage::Skip(losses) => {
                // How many rows are behind the break nobody knows.
                let rows = self.layout.row_count();
                losses.record(rows..rows, None, &error);
                None
            }
        }
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
                    for lost in wanted.as_slice() {
                        losses.record(lost.clone(), None, &error);
                    }
                }
            }
        }
    }
}
