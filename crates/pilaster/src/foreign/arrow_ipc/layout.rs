//! Where the messages of an Arrow file or stream lie.
//!
//! ```text
//! file:    | "ARROW1" 0 0 | schema | dictionaries and record batches … | footer | length i32 | "ARROW1" |
//! stream:                 | schema | dictionaries and record batches … | end mark, or simply the end |
//! message: | ff ff ff ff | header length i32 | header | body |
//! ```
//!
//! A file's footer lists its messages; those of a stream are found by walking over it.

use std::ops::Range;
use std::sync::Arc;

use arrow_ipc::convert::fb_to_schema;
use arrow_ipc::reader::read_footer_length;
use arrow_ipc::{Block, Message, MessageHeader, MetadataVersion, root_as_footer, root_as_message};
use arrow_schema::{ArrowError, SchemaRef};
use pilaster_core::error::AtPosition;
use pilaster_core::{Error, Limits, Result, SourceRef};

use crate::foreign::guard::guarded;

/// Length of the footer's length and the magic after it.
const TAIL_BYTES: u64 = 10;

const MAGIC: &[u8] = b"ARROW1";

/// Length of the magic at the start of a file, filled up with zeros; some writers fill it up to 64 bytes.
const MAGIC_BYTES: u64 = 8;
const MOST_MAGIC_BYTES: u64 = 64;

/// Length of what stands before a header: the continuation mark and the header's length.
const PREFIX_BYTES: u64 = 8;

/// Everything needed to decode record batches at any position.
#[derive(Debug)]
pub(super) struct Layout {
    pub(super) source: SourceRef,
    pub(super) schema: SchemaRef,
    pub(super) version: MetadataVersion,
    pub(super) dictionaries: Vec<Block>,
    /// Each record batch with its row positions.
    pub(super) batches: Vec<(Block, Range<u64>)>,
    /// How a stream breaks off, if it does.
    pub(super) breaks_off: Option<Error>,
    /// Messages that the footer names and that cannot be read, where the rest is given.
    pub(super) unreadable: Vec<Error>,
    /// Whether the messages end with a mark, so that none was cut off.
    pub(super) has_end_mark: bool,
    /// In a stream a dictionary holds for the record batches after it, until another replaces it.
    pub(super) is_stream: bool,
    pub(super) limits: Limits,
}

impl Layout {
    /// Reads the footer of a file and the header of each record batch.
    pub(super) fn of_file(source: SourceRef, limits: &Limits, recovers: bool) -> Result<Self> {
        let (name, size) = (source.name().to_string(), source.size());
        let tail_start = size.saturating_sub(TAIL_BYTES);
        let bad = |found: String, offset: u64| {
            // What is found has lines of its own.
            let found = found.split_whitespace().collect::<Vec<_>>().join(" ");
            Error::corrupt("an arrow footer", found).at(&name, offset, "arrow footer")
        };
        let tail = source.read_at(tail_start..size)?;
        let tail: [u8; 10] = tail.as_ref().try_into().map_err(|_| bad(format!("{size} bytes"), 0))?;
        let length = read_footer_length(tail).map_err(|error| bad(error.to_string(), tail_start))? as u64;
        limits.metadata(length).at(&name, tail_start, "arrow footer length")?;
        let start =
            tail_start.checked_sub(length).ok_or_else(|| bad(format!("length {length}"), tail_start))?;
        let bytes = source.read_at(start..tail_start)?;
        let footer = root_as_footer(&bytes).map_err(|error| bad(error.to_string(), start))?;
        if footer.recordBatches().is_none() {
            return Err(bad("no list of record batches".to_string(), start));
        }
        let schema = footer.schema().ok_or_else(|| bad("no schema".to_string(), start))?;
        let schema =
            guarded(|| Ok::<_, ArrowError>(fb_to_schema(schema))).map_err(|error| bad(error, start))?;
        let mut layout = Self {
            source,
            schema: Arc::new(schema),
            version: footer.version(),
            dictionaries: footer.dictionaries().into_iter().flatten().copied().collect(),
            batches: Vec::new(),
            breaks_off: None,
            unreadable: Vec::new(),
            has_end_mark: true,
            is_stream: false,
            limits: limits.clone(),
        };
        for block in footer.recordBatches().into_iter().flatten() {
            match layout.rows_in(block).and_then(|rows| layout.add_batch(*block, rows)) {
                Err(error) if recovers && error.is_damage() => layout.unreadable.push(error),
                added => added?,
            }
        }
        Ok(layout)
    }

    /// What is wrong with the first bytes of a file, if anything is.
    pub(super) fn bad_head(&self) -> Result<Option<Error>> {
        if self.is_stream {
            return Ok(None);
        }
        let head = self.source.read_at(0..MAGIC.len() as u64)?;
        let name = self.source.name();
        let bad = || Error::corrupt("\"ARROW1\"", format!("\"{}\"", head.escape_ascii()));
        Ok((head != MAGIC).then(|| bad().at(name, 0, "arrow magic")))
    }

    fn rows_in(&self, block: &Block) -> Result<u64> {
        let header = self.read_header(block)?;
        let rows = message(&header).and_then(|message| rows_of(&message));
        rows.map_err(|found| self.bad_block(block, found))
    }

    /// The messages of a file whose footer is lost: they stand in it as in a stream, up to an end mark. `footer` is what is wrong
    /// with the footer.
    pub(super) fn of_file_without_footer(source: SourceRef, limits: &Limits, footer: Error) -> Result<Self> {
        let start = first_message(&source)?;
        let mut layout = Self::of_messages(source, limits, start)?;
        if layout.breaks_off.is_none() && !layout.has_end_mark {
            layout.breaks_off = Some(footer);
        }
        Ok(layout)
    }

    /// Walks over the messages of a stream.
    ///
    /// A stream may end without a mark. Whoever wants to know what is lost hears that nothing shows it to be whole.
    pub(super) fn of_stream(source: SourceRef, limits: &Limits, recovers: bool) -> Result<Self> {
        let mut layout = Self::of_messages(source, limits, 0)?;
        if recovers && layout.breaks_off.is_none() && !layout.has_end_mark {
            let (name, end) = (layout.source.name(), layout.source.size());
            let error =
                Error::corrupt("an end mark", "the end of the file, so that more may have been cut off");
            layout.breaks_off = Some(error.at(name, end, "arrow stream"));
        }
        Ok(layout)
    }

    /// Walks over the messages that begin at `start`.
    fn of_messages(source: SourceRef, limits: &Limits, start: u64) -> Result<Self> {
        let mut layout = Self {
            source,
            schema: Arc::new(arrow_schema::Schema::empty()),
            version: MetadataVersion::V5,
            dictionaries: Vec::new(),
            batches: Vec::new(),
            breaks_off: None,
            unreadable: Vec::new(),
            has_end_mark: false,
            is_stream: true,
            limits: limits.clone(),
        };
        let mut position = layout.read_stream_schema(start)?;
        loop {
            match layout.step(position) {
                Ok(Some(next)) => position = next,
                Ok(None) => {
                    layout.has_end_mark = position < layout.source.size();
                    return Ok(layout);
                }
                // What comes before the damage can still be read.
                Err(error) if error.is_damage() => {
                    layout.breaks_off = Some(error.at(layout.source.name(), position, "arrow message"));
                    return Ok(layout);
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn read_stream_schema(&mut self, start: u64) -> Result<u64> {
        let bad = |source: &SourceRef, found: String| {
            Error::corrupt("the schema of an arrow stream", found).at(source.name(), start, "arrow stream")
        };
        let block = self.block_at(start)?.ok_or_else(|| bad(&self.source, "nothing".to_string()))?;
        let header = self.read_header(&block)?;
        let message = message(&header).map_err(|found| bad(&self.source, found))?;
        let schema = message
            .header_as_schema()
            .ok_or_else(|| bad(&self.source, format!("{:?}", message.header_type())))?;
        let schema = guarded(|| Ok::<_, ArrowError>(fb_to_schema(schema)))
            .map_err(|error| bad(&self.source, error))?;
        self.schema = Arc::new(schema);
        self.version = message.version();
        Ok(self.block_range(&block)?.0.end)
    }

    /// Takes in the message at `position`; gives where the next one begins.
    fn step(&mut self, position: u64) -> Result<Option<u64>> {
        let Some(block) = self.block_at(position)? else { return Ok(None) };
        let header = self.read_header(&block)?;
        let message = message(&header).map_err(|found| self.bad_block(&block, found))?;
        match message.header_type() {
            MessageHeader::DictionaryBatch => self.dictionaries.push(block),
            MessageHeader::RecordBatch => {
                let rows = rows_of(&message).map_err(|found| self.bad_block(&block, found))?;
                self.add_batch(block, rows)?;
            }
            other => return Err(self.bad_block(&block, format!("{other:?}"))),
        }
        Ok(Some(self.block_range(&block)?.0.end))
    }

    /// The message at `position`; `None` at the end mark and at the end.
    fn block_at(&self, position: u64) -> Result<Option<Block>> {
        if position >= self.source.size() {
            return Ok(None);
        }
        let prefix = self.source.read_at(position..position.saturating_add(PREFIX_BYTES))?;
        let (mark, length) = prefix.split_at_checked(4).unwrap_or_default();
        let length = length.try_into().map_or(-1, i32::from_le_bytes);
        let place = i64::try_from(position).ok().zip(length.checked_add(8));
        let (true, Some((offset, header))) = (mark == [0xff; 4] && length >= 0, place) else {
            let found = format!("\"{}\"", prefix.escape_ascii());
            return Err(Error::corrupt("an arrow message", found).at(
                self.source.name(),
                position,
                "arrow message",
            ));
        };
        if length == 0 {
            return Ok(None);
        }
        let block = Block::new(offset, header, 0);
        let bytes = self.read_header(&block)?;
        let body = message(&bytes).map_err(|found| self.bad_block(&block, found))?.bodyLength();
        let block = Block::new(offset, header, body);
        let (range, _) = self.block_range(&block)?;
        if range.end > self.source.size() {
            let found = format!("one up to byte {} of a file of {}", range.end, self.source.size());
            return Err(self.bad_block(&block, found));
        }
        Ok(Some(block))
    }

    fn add_batch(&mut self, block: Block, rows: u64) -> Result<()> {
        let start = self.row_count();
        let end = start.checked_add(rows).ok_or_else(|| self.bad_block(&block, format!("{rows} rows")))?;
        self.batches.push((block, start..end));
        Ok(())
    }

    /// Whether rows are missing that nobody can count.
    pub(super) fn is_broken(&self) -> bool {
        self.breaks_off.is_some() || !self.unreadable.is_empty()
    }

    /// Bytes from the break to the end of a stream.
    pub(super) fn bytes_lost(&self) -> u64 {
        let place = self.breaks_off.as_ref().and_then(Error::position);
        place.map_or(0, |place| self.source.size().saturating_sub(place.offset))
    }

    pub(super) fn row_count(&self) -> u64 {
        self.batches.last().map_or(0, |(_, rows)| rows.end)
    }

    /// The bytes of a message, and the length of its header.
    fn block_range(&self, block: &Block) -> Result<(Range<u64>, u64)> {
        let place = (
            u64::try_from(block.offset()),
            u64::try_from(block.metaDataLength()),
            u64::try_from(block.bodyLength()),
        );
        let (Ok(start), Ok(header), Ok(body)) = place else {
            return Err(self.bad_block(block, format!("{block:?}")));
        };
        self.limits.metadata(header).at(self.source.name(), start, "arrow message")?;
        let length = header.saturating_add(body);
        self.limits.block(length).at(self.source.name(), start, "arrow message")?;
        Ok((start..start.saturating_add(length), header))
    }

    fn read_header(&self, block: &Block) -> Result<bytes::Bytes> {
        let (range, header) = self.block_range(block)?;
        self.source.read_at(range.start..range.start.saturating_add(header))
    }

    /// The bytes of a message, header and body.
    pub(super) fn read_block(&self, block: &Block) -> Result<arrow_buffer::Buffer> {
        let (range, _) = self.block_range(block)?;
        Ok(arrow_buffer::Buffer::from(self.source.read_at(range)?))
    }

    pub(super) fn bad_block(&self, block: &Block, found: String) -> Error {
        self.in_block(block, Error::corrupt("an arrow message that can be read", found))
    }

    /// An error with the place of a message.
    pub(super) fn in_block(&self, block: &Block, error: Error) -> Error {
        let offset = u64::try_from(block.offset()).unwrap_or(0);
        error.at(self.source.name(), offset, "arrow message")
    }
}

/// Where the first message of a file begins.
fn first_message(source: &SourceRef) -> Result<u64> {
    let mut start = MAGIC_BYTES;
    while start < MOST_MAGIC_BYTES.min(source.size().saturating_sub(PREFIX_BYTES)) {
        let bytes = source.read_at(start..start.saturating_add(PREFIX_BYTES))?;
        if bytes.iter().any(|byte| *byte != 0) {
            break;
        }
        start = start.saturating_add(PREFIX_BYTES);
    }
    Ok(start)
}

/// The message of a header. Before version 0.15 no continuation mark stood before the length.
fn message(header: &[u8]) -> Result<Message<'_>, String> {
    let skip = if header.starts_with(&[0xff; 4]) { 8 } else { 4 };
    let bytes = header.get(skip..).ok_or_else(|| format!("{} bytes", header.len()))?;
    root_as_message(bytes).map_err(|error| error.to_string())
}

fn rows_of(message: &Message<'_>) -> Result<u64, String> {
    let batch = message.header_as_record_batch().ok_or_else(|| format!("{:?}", message.header_type()))?;
    // Nothing else vouches for the number of rows, which is told when they are lost.
    let of_first_column = batch.nodes().filter(|nodes| !nodes.is_empty()).map(|nodes| nodes.get(0).length());
    match (u64::try_from(batch.length()), of_first_column) {
        (Ok(rows), None) => Ok(rows),
        (Ok(rows), Some(first)) if first == batch.length() => Ok(rows),
        (_, first) => Err(format!("{} rows, of which the first column has {first:?}", batch.length())),
    }
}
