//! A file whose footer is lost.
//!
//! Chunks lie one after the other in the order of the header's columns, and each begins with a header that says how long
//! its pages are: that leads from the file's header to the last whole chunk. Statistics of blocklets are lost, those
//! of pages are not.

use pilaster_core::error::AtPosition;
use pilaster_core::{Limits, Result, SourceRef};

use super::chunk::{CHUNK_PART, Chunk};
use super::layout::{Blocklet, CarbonFile, ChunkPlace, TRAILER_BYTES};
use crate::messages::{ChunkHeader, FileFooter};

/// What most chunk headers fit into.
const FIRST_CHUNK_BYTES: u64 = 16 * 1024;

/// What is not known of a file behind the last chunk that leads to another.
pub(crate) fn unknown_rest(byte: u64) -> String {
    format!("how many rows stood behind byte {byte} is not known: the footer that counts them is lost")
}

/// Opens `source` by walking through its chunks; with the byte from which on it is not known what there was, unless the footer, or
/// the offset of it, lies where the chunks end.
pub(crate) fn recover(source: SourceRef, limits: Limits) -> Result<(CarbonFile, Option<u64>)> {
    let mut file = CarbonFile::with_header(source, limits)?;
    let mut offset = file.header_bytes;
    loop {
        let start = offset;
        if ends_at(&file, start) {
            return Ok((file, None));
        }
        let Some(blocklet) = next_blocklet(&file, &mut offset) else { return Ok((file, Some(start))) };
        let is_last = blocklet.chunks.iter().any(|chunk| chunk.end > file.source.size());
        file.rows = blocklet.rows.end;
        file.blocklets.push(blocklet);
        if is_last {
            return Ok((file, Some(offset)));
        }
    }
}

/// Whether the footer begins at `offset`: the end of the file says so, or it can still be parsed.
fn ends_at(file: &CarbonFile, offset: u64) -> bool {
    let size = file.source.size();
    let Some(end) = size.checked_sub(TRAILER_BYTES).filter(|end| *end >= offset) else { return false };
    let trailer = file.source.read_at(end..size);
    let named = trailer.ok().and_then(|bytes| Some(i64::from_be_bytes(*bytes.first_chunk()?)));
    if named.and_then(|named| u64::try_from(named).ok()) == Some(offset) {
        return true;
    }
    let bytes =
        file.limits.metadata(size.saturating_sub(offset)).and_then(|_| file.source.read_at(offset..size));
    bytes.is_ok_and(|bytes| {
        FileFooter::parse(&bytes).is_ok_and(|(footer, _)| u64::try_from(footer.rows) == Ok(file.rows))
    })
}

/// The blocklet at `offset`, if it can be told how many rows it has. Chunks that are cut off lie behind the end of the file.
fn next_blocklet(file: &CarbonFile, offset: &mut u64) -> Option<Blocklet> {
    let mut chunks: Vec<Chunk> = Vec::with_capacity(file.header.columns.len());
    let mut page_rows = None;
    let tops: Vec<_> = file.columns.iter().filter(|c| !c.carbon_type.is_nested()).map(|c| c.chunk).collect();
    for number in 0..file.header.columns.len() {
        let chunk = match chunk_at(file, *offset, number) {
            Ok(chunk) => chunk,
            // Behind a cut, what the chunks before it say of their rows is all that is left.
            Err(_) if page_rows.is_some() && is_cut(file, *offset) => break,
            Err(_) => return None,
        };
        *offset = chunk.place.end;
        // The numbers of rows of nested columns are not to be trusted.
        if page_rows.is_none() && tops.contains(&number) {
            let rows =
                chunk.header.pages.iter().map(|page| page.rows.and_then(|rows| u64::try_from(rows).ok()));
            page_rows = rows.collect::<Option<Vec<_>>>();
        }
        chunks.push(chunk);
    }
    let page_rows =
        page_rows.filter(|rows| !rows.is_empty() && rows.iter().all(|rows| (1..=32_767).contains(rows)))?;
    if chunks.iter().any(|chunk| chunk.pages.len() != page_rows.len()) {
        return None;
    }
    let mut page_starts = vec![file.rows];
    let mut row = file.rows;
    for rows in page_rows {
        row = row.saturating_add(rows);
        page_starts.push(row);
    }
    let mut chunks: Vec<_> = chunks.into_iter().map(|chunk| chunk.place).collect();
    let behind = file.source.size().saturating_add(1);
    chunks.resize(file.header.columns.len(), ChunkPlace { offset: behind, header_bytes: 0, end: behind });
    Some(Blocklet { rows: file.rows..row, page_starts, chunks, min_max: None })
}

/// Whether the file ends inside the chunk that begins at `offset`, or before it.
fn is_cut(file: &CarbonFile, offset: u64) -> bool {
    let left = file.source.size().saturating_sub(offset);
    if left == 0 {
        return true;
    }
    let bytes = file.limits.metadata(left).and_then(|_| file.source.read_at(offset..file.source.size()));
    bytes.is_ok_and(|bytes| ChunkHeader::parse(&bytes).is_err_and(|error| error.at >= bytes.len()))
}

/// The chunk that begins at `offset`; its pages may reach past the end of the file.
fn chunk_at(file: &CarbonFile, offset: u64, number: usize) -> Result<Chunk> {
    let left = file.source.size().saturating_sub(offset);
    let most = left.min(file.limits.metadata_bytes);
    let mut length = FIRST_CHUNK_BYTES.min(most);
    loop {
        let bytes = file.source.read_at(offset..offset.saturating_add(length))?;
        let (header, used) = match ChunkHeader::parse(&bytes) {
            Ok(parsed) => parsed,
            Err(_) if length < most => {
                length = length.saturating_mul(8).min(most);
                continue;
            }
            Err(error) => return Err(error).at(file.name(), offset, CHUNK_PART),
        };
        let header_bytes = used as u64;
        let pages = header.page_offsets.iter().zip(&header.page_lengths);
        let body_bytes = pages
            .map(|(offset, length)| {
                u64::try_from(*offset).unwrap_or(0).saturating_add(u64::try_from(*length).unwrap_or(0))
            })
            .max()
            .unwrap_or(0);
        let end = offset.saturating_add(header_bytes).saturating_add(body_bytes);
        let place = ChunkPlace { offset, header_bytes, end };
        return Chunk::new(number, place, header).at(file.name(), offset, CHUNK_PART);
    }
}
