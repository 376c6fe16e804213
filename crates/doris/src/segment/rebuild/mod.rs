//! A segment whose footer is gone, put together again from its pages and the tablet's schema.
//!
//! ```text
//! pages, found by their footers and checksums  ─►  runs of pages that begin with row 0  ─►  the columns of the schema, in order
//! ```
//!
//! Pages say which rows they hold; what they do not say, encoding and codec, is found out by decoding. The result is the
//! file as far as its pages reach and a new tail: ordinal indexes and a footer. Zone maps, filters and key indexes of
//! the old file are left aside; writing the rows again makes new ones.
//!
//! | module | what |
//! | --- | --- |
//! | `walk` | the pages of a file, without pointers to them |
//! | `proven` | a footer of which only the end is lost |
//! | `assign` | which pages are whose, by the schema |
//! | `region` | which pages are whose, by the descriptions of columns before the footer |
//! | `indexes` | ordinal indexes that cannot be read, made again |
//! | `keep` | the encodings and codecs of the old file for the new one |

mod assign;
mod indexes;
mod keep;
mod proven;
mod region;
mod walk;

use std::io::Write;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use pilaster_core::{Dataset, Error, ErrorKind, LossLog, LostRows, Result, Source, SourceRef};

pub(super) use indexes::restore as restore_indexes;

use super::footer::StorageFormat;
use super::reader::{SegmentReader, SegmentReaderOptions};
use super::write::{SegmentWriteOptions, SegmentWriter};
use crate::schema::TabletSchema;

const PART: &str = "segment pages";

/// What a repair did.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SegmentRepair {
    /// Rows of the new file.
    pub rows: u64,
    /// Bytes of the new file.
    pub bytes: u64,
    /// Whether the footer had to be made again.
    pub is_footer_rebuilt: bool,
    /// What was lost and why, by position.
    pub losses: Vec<LostRows>,
}

/// A file with another end.
#[derive(Debug)]
struct Mended {
    source: SourceRef,
    /// How much of the file stays.
    kept: u64,
    tail: Bytes,
}

impl Source for Mended {
    fn name(&self) -> &str {
        self.source.name()
    }

    fn size(&self) -> u64 {
        self.kept.saturating_add(self.tail.len() as u64)
    }

    fn read_at(&self, range: Range<u64>) -> Result<Bytes> {
        if range.start > range.end || range.end > self.size() {
            return Err(Error::corrupt(format!("bytes inside 0..{}", self.size()), format!("{range:?}")).at(
                self.name(),
                range.start,
                "mended segment",
            ));
        }
        if range.end <= self.kept {
            return self.source.read_at(range);
        }
        let place = |at: u64| usize::try_from(at.saturating_sub(self.kept)).unwrap_or(usize::MAX);
        let tail = place(range.start.max(self.kept))..place(range.end);
        if range.start >= self.kept {
            return Ok(self.tail.slice(tail));
        }
        let mut bytes = self.source.read_at(range.start..self.kept)?.to_vec();
        bytes.extend_from_slice(self.tail.get(tail).unwrap_or_default());
        Ok(bytes.into())
    }
}

impl SegmentReader {
    /// Opens a segment whose footer is damaged or gone: what it said is put together again from the pages and the tablet's
    /// schema, which the options must have. Pages whose checksum is wrong are lost to a scan that goes on over damage.
    ///
    /// # Errors
    /// [`pilaster_core::ErrorKind::InvalidInput`] without a schema, [`pilaster_core::ErrorKind::Corrupt`] if the pages do
    /// not fit the schema or some are missing, [`pilaster_core::ErrorKind::Unsupported`] if it has a VARIANT whose paths
    /// went with the footer.
    pub fn recover(source: SourceRef, options: &SegmentReaderOptions) -> Result<Self> {
        recovered(source, options).map(|recovered| recovered.reader)
    }
}

/// A segment put together again.
struct Recovered {
    reader: SegmentReader,
    /// The format of the file, if something tells.
    format: Option<StorageFormat>,
    /// Whether encodings and codecs were found out by decoding.
    is_guessed: bool,
}

/// Puts a segment together again: by a footer that only lost its end, by its pages and the schema, or by what is left of the
/// columns' descriptions.
fn recovered(source: SourceRef, options: &SegmentReaderOptions) -> Result<Recovered> {
    let schema = options
        .written_schema()
        .ok_or_else(|| Error::invalid("a segment without a footer needs the schema of its tablet"))?;
    let (pages, end) = walk::walk(source.as_ref(), options.limits())?;
    if let Some(tail) = proven::tail(source.as_ref(), end, options.limits())? {
        let mended = Mended { source: Arc::clone(&source), kept: tail.start, tail: tail.bytes.into() };
        let reader = SegmentReader::open_as_it_is(Arc::new(mended), options)?;
        let format = Some(reader.metadata().format);
        return Ok(Recovered { reader, format, is_guessed: false });
    }
    match assign::new_tail(&source, schema, &pages, end, options.limits()) {
        Ok(assign::NewTail { bytes, is_end_known }) => {
            let name = source.name().to_string();
            let mended = Mended { source, kept: end, tail: bytes.into() };
            let mut reader = SegmentReader::open_as_it_is(Arc::new(mended), options)?;
            if !is_end_known {
                let rows = reader.metadata().num_rows;
                let error =
                    Error::corrupt("the end of a column", format!("the end of the file after {rows} rows"));
                reader = reader.with_unknown_end(error.at(&name, end, PART));
            }
            Ok(Recovered { reader, format: keep::format_of(&pages), is_guessed: true })
        }
        Err(error) => region::recovered(&source, &pages, end, options).map_err(|_| error),
    }
}

/// Writes a whole segment with the rows of a damaged one; its footer is made again if it has to be. Encodings, codecs and
/// format are those of the damaged one, as far as `options` leave them open. Of `reading` the limits count, and what is done about
/// lost cells.
///
/// # Errors
/// As [`SegmentReader::recover`]; [`pilaster_core::ErrorKind::Corrupt`] if no row is left.
pub fn repair<W: Write>(
    source: SourceRef,
    sink: W,
    schema: &Arc<TabletSchema>,
    options: &SegmentWriteOptions,
    reading: &SegmentReaderOptions,
) -> Result<(W, SegmentRepair)> {
    let reading = reading.clone().with_schema(Some(Arc::clone(schema))).with_hidden(true);
    let opened = SegmentReader::open_as_it_is(Arc::clone(&source), &reading);
    let is_footer_rebuilt = opened.is_err();
    let Recovered { reader, format, is_guessed } = match opened {
        Ok(reader) => {
            let format = Some(reader.metadata().format);
            Recovered { reader, format, is_guessed: false }
        }
        Err(error) if error.is_damage() => recovered(source, &reading)?,
        // A number that nobody knows is a newer Doris, or damage in what no checksum covers.
        Err(error) if matches!(error.kind(), ErrorKind::Unsupported { .. }) => {
            recovered(source, &reading).map_err(|_| error)?
        }
        Err(error) => return Err(error),
    };
    restore_indexes(reader.shared())?;
    let mut options = options.clone();
    options.fill_format(format);
    keep::fill_columns(&mut options, schema, &reader.metadata().columns, is_guessed);
    let losses = Arc::new(LossLog::new());
    let scan = reader.scan().skip_damage(Arc::clone(&losses));
    let mut writer = SegmentWriter::try_new(sink, &schema.without_bitmap_indexes(), &options)?;
    for batch in scan.read()? {
        writer.write(&batch?)?;
    }
    if writer.rows() == 0 {
        return Err(Error::corrupt("at least one sound row", "none").at(reader.name(), 0, "segment"));
    }
    let (sink, summary) = writer.finish()?;
    let report = SegmentRepair {
        rows: summary.rows,
        bytes: summary.bytes,
        is_footer_rebuilt,
        losses: losses.losses(),
    };
    Ok((sink, report))
}
