//! A file whose footer is lost.
//!
//! Chunks lie one after the other in the order of the header's columns, and each begins with a header that says how long
//! its pages are: that leads from the file's header to the last whole chunk. Statistics of blocklets are lost, those
//! of pages are not.

use pilaster_core::error::AtPosition;
use pilaster_core::{Limits, Result, SourceRef};

use super::chunk::{CHUNK_PART, Chunk};
use super::layout::{Blocklet, CarbonFile, ChunkPlace};
use crate::messages::ChunkHeader;

/// What most chunk headers fit into.
const FIRST_CHUNK_BYTES: u64 = 16 * 1024;

/// Opens `source` by walking through its chunks.
pub(crate) fn recover(source: SourceRef, limits: Limits) -> Result<CarbonFile> {
    let mut file = CarbonFile::with_header(source, limits)?;
    let mut offset = file.header_bytes;
    while let Some(blocklet) = next_blocklet(&file, &mut offset) {
        file.rows = blocklet.rows.end;
        file.blocklets.push(blocklet);
    }
    Ok(file)
}

/// The blocklet at `offset`, if all its chunks begin inside the file.
fn next_blocklet(file: &CarbonFile, offset: &mut u64) -> Option<Blocklet> {
    let mut chunks = Vec::with_capacity(file.header.columns.len());
    let mut page_rows = None;
    let tops: Vec<_> = file.columns.iter().filter(|c| !c.carbon_type.is_nested()).map(|c| c.chunk).collect();
    for number in 0..file.header.columns.len() {
        let chunk = chunk_at(file, *offset, number).ok()?;
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
    let chunks = chunks.into_iter().map(|chunk| chunk.place).collect();
    Some(Blocklet { rows: file.rows..row, page_starts, chunks, min_max: None })
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
