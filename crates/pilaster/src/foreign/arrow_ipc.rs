//! Arrow IPC: files with a footer, and streams.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_buffer::Buffer;
use arrow_ipc::convert::fb_to_schema;
use arrow_ipc::reader::{FileDecoder, StreamReader, read_footer_length};
use arrow_ipc::{Block, root_as_footer, root_as_message};
use arrow_schema::{ArrowError, SchemaRef};
use pilaster_core::describe::{ColumnStatistics, Node, Page};
use pilaster_core::error::AtPosition;
use pilaster_core::{
    BatchReader, Dataset, Error, Limits, Progress, Result, RowRanges, Scan, ScanRequest, SourceRef, Split,
    VerifyDepth, VerifyReport,
};

use super::source_read::SourceRead;
use super::whole::{self, front_to_back};
use crate::open::OpenOptions;
use crate::stream;

/// Length of the footer's length and the magic after it.
const TAIL_BYTES: u64 = 10;

/// An Arrow IPC file. A record batch is a split.
#[derive(Debug)]
pub struct ArrowFileDataset {
    file: Arc<ArrowFile>,
}

#[derive(Debug)]
struct ArrowFile {
    source: SourceRef,
    schema: SchemaRef,
    version: arrow_ipc::MetadataVersion,
    limits: Limits,
    dictionaries: Vec<Block>,
    batches: Vec<(Block, Range<u64>)>,
}

impl ArrowFileDataset {
    /// Reads the footer and the header of each record batch.
    ///
    /// # Errors
    /// [`pilaster_core::ErrorKind::Corrupt`] if they do not parse.
    pub fn open(source: SourceRef, options: &OpenOptions) -> Result<Self> {
        let (name, size) = (source.name().to_string(), source.size());
        let in_footer = |offset: u64| {
            let name = name.clone();
            move |error: &dyn std::fmt::Display| {
                Error::corrupt("an arrow footer", error).at(&name, offset, "arrow footer")
            }
        };
        let tail_start = size.saturating_sub(TAIL_BYTES);
        let at_tail = in_footer(tail_start);
        let tail = source.read_at(tail_start..size)?;
        let tail: [u8; 10] = tail.as_ref().try_into().map_err(|error| at_tail(&error))?;
        let length = read_footer_length(tail).map_err(|error| at_tail(&error))? as u64;
        options.limits().metadata(length).at(&name, tail_start, "arrow footer length")?;
        let start = tail_start.checked_sub(length).ok_or_else(|| at_tail(&format!("length {length}")))?;
        let at_footer = in_footer(start);
        let bytes = source.read_at(start..tail_start)?;
        let footer = root_as_footer(&bytes).map_err(|error| at_footer(&error))?;
        let schema = footer.schema().ok_or_else(|| at_footer(&"no schema"))?;
        let mut file = ArrowFile {
            schema: Arc::new(fb_to_schema(schema)),
            version: footer.version(),
            limits: options.limits().clone(),
            dictionaries: footer.dictionaries().into_iter().flatten().copied().collect(),
            batches: Vec::new(),
            source,
        };
        let mut next = 0u64;
        for block in footer.recordBatches().into_iter().flatten() {
            let end = file
                .rows_in(block)
                .and_then(|rows| next.checked_add(rows).ok_or_else(|| at_footer(&rows)))?;
            file.batches.push((*block, next..end));
            next = end;
        }
        Ok(Self { file: Arc::new(file) })
    }
}

impl ArrowFile {
    /// The bytes of a block, or of its header only.
    fn block_range(&self, block: &Block) -> Result<(Range<u64>, u64)> {
        let place = (
            u64::try_from(block.offset()),
            u64::try_from(block.metaDataLength()),
            u64::try_from(block.bodyLength()),
        );
        let (Ok(start), Ok(header), Ok(body)) = place else {
            return Err(Error::corrupt("a block inside the file", format!("{block:?}")).at(
                self.source.name(),
                0,
                "arrow block",
            ));
        };
        self.limits.metadata(header).at(self.source.name(), start, "arrow block")?;
        let length = header.saturating_add(body);
        self.limits.block(length).at(self.source.name(), start, "arrow block")?;
        Ok((start..start.saturating_add(length), header))
    }

    /// The number of rows, as the header of a record batch says.
    fn rows_in(&self, block: &Block) -> Result<u64> {
        let (range, header) = self.block_range(block)?;
        let bytes = self.source.read_at(range.start..range.start.saturating_add(header))?;
        let bad = |found: String| {
            Error::corrupt("the header of a record batch", found).at(
                self.source.name(),
                range.start,
                "arrow block",
            )
        };
        // Since version 0.15 a continuation mark stands before the length.
        let skip = if bytes.starts_with(&[0xff; 4]) { 8 } else { 4 };
        let message = bytes.get(skip..).ok_or_else(|| bad(format!("{} bytes", bytes.len())))?;
        let message = root_as_message(message).map_err(|error| bad(error.to_string()))?;
        let batch =
            message.header_as_record_batch().ok_or_else(|| bad(format!("{:?}", message.header_type())))?;
        u64::try_from(batch.length()).map_err(|_| bad(format!("{} rows", batch.length())))
    }

    fn read_block(&self, block: &Block) -> Result<Buffer> {
        let (range, _) = self.block_range(block)?;
        Ok(Buffer::from(self.source.read_at(range)?))
    }

    fn decoder(&self, columns: &[usize]) -> Result<FileDecoder> {
        let mut decoder =
            FileDecoder::new(Arc::clone(&self.schema), self.version).with_projection(columns.to_vec());
        for block in &self.dictionaries {
            let buffer = self.read_block(block)?;
            decoder.read_dictionary(block, &buffer).map_err(|error| self.bad_block(block, error))?;
        }
        Ok(decoder)
    }

    fn bad_block(&self, block: &Block, error: ArrowError) -> Error {
        let offset = u64::try_from(block.offset()).unwrap_or(0);
        let error = match Error::from(error) {
            own if own.is_damage() => own,
            other => Error::corrupt("a block that decodes", other),
        };
        error.at(self.source.name(), offset, "arrow block")
    }

    fn row_count(&self) -> u64 {
        self.batches.last().map_or(0, |(_, rows)| rows.end)
    }

    fn splits(&self) -> Vec<Split> {
        let splits = self.batches.iter().map(|(block, rows)| {
            let (header, body) = (i64::from(block.metaDataLength()), block.bodyLength());
            Split { rows: Some(rows.clone()), bytes: u64::try_from(header.saturating_add(body)).unwrap_or(0) }
        });
        splits.collect()
    }
}

impl Dataset for ArrowFileDataset {
    fn format(&self) -> &'static str {
        "arrow file"
    }

    fn name(&self) -> &str {
        self.file.source.name()
    }

    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.file.schema)
    }

    fn row_count(&self) -> Option<u64> {
        Some(self.file.row_count())
    }

    fn size_bytes(&self) -> u64 {
        self.file.source.size()
    }

    fn splits(&self) -> Result<Vec<Split>> {
        Ok(self.file.splits())
    }

    fn scan(&self) -> Scan<'_> {
        Scan::new(self)
    }

    fn read(&self, request: &ScanRequest) -> Result<BatchReader> {
        let wanted = request.wanted_rows(self.file.row_count(), &self.file.splits())?;
        let needed = stream::needed_columns(request, &self.file.schema)?;
        let decoder = self.file.decoder(&needed)?;
        let input = Batches { file: Arc::clone(&self.file), decoder, wanted: wanted.clone(), next: 0 };
        let rows = (request.rows.is_some() || request.split.is_some()).then_some(wanted);
        stream::apply_at(input, &self.file.schema, &ScanRequest { rows, ..request.clone() })
    }

    fn verify(&self, depth: VerifyDepth, progress: &dyn Progress) -> Result<VerifyReport> {
        whole::verify(self, depth, progress)
    }

    fn describe(&self) -> Result<Node> {
        let mut node = whole::describe("arrow file", self.size_bytes(), &self.file.schema)
            .fact("rows", self.file.row_count())
            .fact("version", format!("{:?}", self.file.version));
        for (index, (split, (block, rows))) in self.file.splits().iter().zip(&self.file.batches).enumerate() {
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
        Ok(whole::no_statistics(&self.file.schema))
    }
}

/// The record batches that hold a wanted row, each with the position of its first row.
struct Batches {
    file: Arc<ArrowFile>,
    decoder: FileDecoder,
    wanted: RowRanges,
    next: usize,
}

impl Iterator for Batches {
    type Item = Result<(u64, RecordBatch)>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let (block, rows) = self.file.batches.get(self.next)?;
            self.next = self.next.saturating_add(1);
            if self.wanted.intersect(&RowRanges::one(rows.clone())).is_empty() {
                continue;
            }
            let read = self.file.read_block(block).and_then(|buffer| {
                let batch = self.decoder.read_record_batch(block, &buffer);
                batch.map_err(|error| self.file.bad_block(block, error))
            });
            match read {
                Ok(Some(batch)) => return Some(Ok((rows.start, batch))),
                Ok(None) => {}
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

/// An Arrow IPC stream.
#[derive(Debug)]
pub struct ArrowStreamDataset {
    source: SourceRef,
    schema: SchemaRef,
}

impl ArrowStreamDataset {
    /// Reads the schema at the beginning.
    ///
    /// # Errors
    /// [`pilaster_core::ErrorKind::Corrupt`] if it does not parse.
    pub fn open(source: SourceRef) -> Result<Self> {
        let reader =
            StreamReader::try_new_buffered(SourceRead::new(Arc::clone(&source)), None).map_err(|error| {
                Error::corrupt("the schema of an arrow stream", error).at(source.name(), 0, "arrow stream")
            })?;
        let schema = reader.schema();
        Ok(Self { source, schema })
    }
}

impl Dataset for ArrowStreamDataset {
    front_to_back!("arrow stream");

    fn read(&self, request: &ScanRequest) -> Result<BatchReader> {
        stream::check_single_split(request)?;
        let needed = stream::needed_columns(request, &self.schema)?;
        let reader = StreamReader::try_new_buffered(SourceRead::new(Arc::clone(&self.source)), Some(needed))?;
        let name = self.source.name().to_string();
        let input = reader.map(move |batch| {
            batch.map_err(|error| Error::corrupt("a record batch that decodes", error).at(&name, 0, ""))
        });
        stream::apply(input, &self.schema, request)
    }
}
