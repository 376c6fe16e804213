//! Files of streaming segments: rows, not columns, appended batch by batch.
//!
//! ```text
//! FileHeader                                         is_footer_present false, sync marker, codec
//! 16 bytes sync marker | i32 n | BlockletHeader, n bytes | i32 m | compressed rows, m bytes       … again and again
//!
//! row = i16 k | k bytes of null bits | the columns that are not null, in the header's order
//! ```
//!
//! A blocklet is read as one page. What rows are like is in [`rows`], nested columns in [`nested`].

mod bounds;
mod nested;
mod rows;
#[cfg(test)]
pub(crate) mod sample;

use std::ops::Range;

use arrow_array::ArrayRef;
use pilaster_core::error::AtPosition;
use pilaster_core::{Error, Limits, Result, SourceRef};
use pilaster_encoding::codec::Codec;

pub(crate) use self::bounds::{holds, record};
use self::rows::Rows;
pub(crate) use self::rows::names_compressor;
use super::layout::{Blocklet, CarbonFile, HEADER_PART, read_header};
use super::types::ColumnNode;
use crate::messages::{MinMax, StreamBlocklet};

const BLOCKLET_PART: &str = "stream blocklet";
const MARKER_BYTES: u64 = 16;
/// The length before a header and before the rows.
const LENGTH_BYTES: u64 = 4;

/// Where the rows of a streaming file lie.
#[derive(Debug)]
pub(crate) struct Stream {
    codec: Codec,
    /// Compressed rows of each blocklet.
    blocks: Vec<Range<u64>>,
    /// What the header of each blocklet says of its values.
    statistics: Vec<Option<MinMax>>,
}

/// Opens a streaming file, of which the first `valid_bytes` bytes count.
pub(crate) fn open_stream(source: SourceRef, limits: Limits, valid_bytes: u64) -> Result<CarbonFile> {
    let (file, damage) = open_stream_until_damage(source, limits, valid_bytes)?;
    damage.map_or(Ok(file), Err)
}

/// Opens a streaming file up to the first blocklet that is damaged or cut; gives what is wrong with that one too.
pub(crate) fn open_stream_until_damage(
    source: SourceRef,
    limits: Limits,
    valid_bytes: u64,
) -> Result<(CarbonFile, Option<Error>)> {
    let (header, header_bytes) = read_header(&source, &limits)?;
    let codec = match header.compressor_name.as_deref() {
        None | Some("snappy") => Codec::Snappy,
        Some("zstd") => Codec::Zstd,
        Some("gzip") => Codec::Gzip,
        Some(other) => {
            let error = Error::unsupported(format!("rows compressed by {other:?}"));
            return Err(error.at(source.name(), 0, HEADER_PART));
        }
    };
    let marker = header.sync_marker.clone().unwrap_or_default();
    let mut file = CarbonFile::with_columns(source, limits, header.version, Vec::new())?;
    file.set_columns(header)?;
    file.header_bytes = header_bytes;
    let (mut blocks, mut statistics) = (Vec::new(), Vec::new());
    let mut damage = None;
    let mut next = header_bytes;
    let mut bounds_bytes = 0u64;
    while next < valid_bytes {
        let read = read_blocklet(&file, &marker, next, valid_bytes).at(file.name(), next, BLOCKLET_PART);
        let (header, rows) = match read {
            Ok(blocklet) => blocklet,
            Err(error) => {
                damage = Some(error);
                break;
            }
        };
        let end = file.rows.saturating_add(header.rows);
        // Blocklets of a few bytes each may have bounds of all columns; without them they are read.
        bounds_bytes = bounds_bytes.saturating_add(bounds::bytes_in_memory(&file));
        let has_room = bounds_bytes <= file.limits.metadata_bytes;
        file.blocklets.push(Blocklet {
            rows: file.rows..end,
            page_starts: vec![file.rows, end],
            chunks: Vec::new(),
            min_max: header
                .min_max
                .as_ref()
                .filter(|_| has_room)
                .and_then(|known| bounds::by_column(&file, known)),
        });
        file.rows = end;
        next = rows.end;
        blocks.push(rows);
        statistics.push(header.min_max);
    }
    file.stream = Some(Stream { codec, blocks, statistics });
    Ok((file, damage))
}

/// The header of the blocklet at `start`, and where its rows lie.
fn read_blocklet(
    file: &CarbonFile,
    marker: &[u8],
    start: u64,
    end: u64,
) -> Result<(StreamBlocklet, Range<u64>)> {
    let inside = |from: u64, bytes: u64| -> Result<Range<u64>> {
        let to = from.saturating_add(bytes);
        if to > end {
            return Err(Error::corrupt(format!("a blocklet before byte {end}"), format!("{from}..{to}")));
        }
        Ok(from..to)
    };
    let number = |at: u64| -> Result<u64> {
        let bytes = file.source.read_at(inside(at, LENGTH_BYTES)?)?;
        Ok(u64::from(bytes.first_chunk().map_or(0, |bytes| u32::from_be_bytes(*bytes))))
    };
    if file.source.read_at(inside(start, MARKER_BYTES)?)?.as_ref() != marker {
        return Err(Error::corrupt("the sync marker of the file", "other bytes"));
    }
    let length_at = start.saturating_add(MARKER_BYTES);
    let header = inside(length_at.saturating_add(LENGTH_BYTES), number(length_at)?)?;
    file.limits.metadata(header.end.saturating_sub(header.start))?;
    let parsed = StreamBlocklet::parse(&file.source.read_at(header.clone())?)?;
    if parsed.mutation != 0 {
        return Err(Error::unsupported("a stream that deletes rows"));
    }
    let rows = inside(header.end.saturating_add(LENGTH_BYTES), number(header.end)?)?;
    file.limits.block(rows.end.saturating_sub(rows.start))?;
    Ok((parsed, rows))
}

impl Stream {
    /// Where the last blocklet ends.
    pub fn end(&self) -> Option<u64> {
        self.blocks.last().map(|rows| rows.end)
    }

    /// The rows of a blocklet, unpacked.
    fn unpacked(&self, file: &CarbonFile, block: &Range<u64>) -> Result<Vec<u8>> {
        let packed = file.source.read_at(block.clone())?;
        let cap = usize::try_from(file.limits.decoded_bytes).unwrap_or(usize::MAX);
        Ok(self.codec.decompress_sized(&packed, cap)?)
    }

    /// The values of a column in a blocklet.
    pub fn decode(
        &self,
        file: &CarbonFile,
        number: usize,
        node: &ColumnNode,
        rows: usize,
    ) -> Result<ArrayRef> {
        let Some(block) = self.blocks.get(number) else {
            return Err(Error::internal(format!("no blocklet number {number}")));
        };
        let unpack = || -> Result<ArrayRef> {
            let bytes = self.unpacked(file, block)?;
            Rows::of(file).column(&bytes, node, rows)
        };
        unpack().at(file.name(), block.start, BLOCKLET_PART)
    }
}
