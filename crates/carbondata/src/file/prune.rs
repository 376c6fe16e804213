//! Which rows of a file may match: blocklets by the footer or index, pages by their chunk headers.

use std::sync::Arc;

use arrow_buffer::BooleanBuffer;
use pilaster_core::RowRanges;

use super::chunk::Chunk;
use super::cursor::KnownChunks;
use super::layout::CarbonFile;
use super::statistics::Zones;
use super::types::ColumnNode;

/// The rows of `wanted` that may match, and the chunk headers that were read to find out. `may_match` judges zones;
/// `columns` are those of the file that it looks at.
pub(crate) fn prune(
    file: &CarbonFile,
    columns: &[usize],
    wanted: &RowRanges,
    may_match: &dyn Fn(&Zones<'_>) -> BooleanBuffer,
) -> (RowRanges, KnownChunks) {
    if wanted.is_empty() {
        return (RowRanges::none(), KnownChunks::new());
    }
    let find =
        |zone: usize, node: &ColumnNode| Some((file.blocklets.get(zone)?.min_max.as_ref()?, node.chunk));
    let rows = file.blocklets.iter().map(|b| b.rows.end.saturating_sub(b.rows.start)).collect();
    let may = may_match(&Zones {
        columns: &file.columns,
        words: &file.dictionaries,
        rows,
        calendar: file.calendar,
        find: &find,
    });
    let mut known = KnownChunks::new();
    let mut kept = Vec::new();
    for (number, blocklet) in file.blocklets.iter().enumerate().filter(|(number, _)| may.value(*number)) {
        let inside = wanted.intersect(&RowRanges::one(blocklet.rows.clone()));
        if inside.is_empty() {
            continue;
        }
        // A single page has the statistics of its blocklet.
        if blocklet.pages() < 2 {
            kept.extend(inside.as_slice().iter().cloned());
            continue;
        }
        let pages = prune_pages(file, number, columns, may_match, &mut known);
        kept.extend(inside.intersect(&pages).as_slice().iter().cloned());
    }
    (kept.into_iter().collect(), known)
}

/// The rows of the pages of a blocklet that may match.
fn prune_pages(
    file: &CarbonFile,
    number: usize,
    columns: &[usize],
    may_match: &dyn Fn(&Zones<'_>) -> BooleanBuffer,
    known: &mut KnownChunks,
) -> RowRanges {
    let Some(blocklet) = file.blocklets.get(number) else { return RowRanges::none() };
    for node in columns.iter().filter_map(|column| file.columns.get(*column)) {
        // A chunk that cannot be read prunes nothing: the scan will meet it again and say so.
        if !node.carbon_type.is_nested()
            && let Ok(chunk) = Chunk::read(file, blocklet, node.chunk)
        {
            known.insert((number, node.chunk), Arc::new(chunk));
        }
    }
    let known = &*known;
    let find = |page: usize, node: &ColumnNode| {
        let chunk = known.get(&(number, node.chunk))?;
        Some((chunk.page_statistics(page)?, 0))
    };
    let pages: Vec<_> = (0..blocklet.pages()).map(|page| blocklet.page_rows(page)).collect();
    let rows = pages.iter().map(|rows| rows.end.saturating_sub(rows.start)).collect();
    let may = may_match(&Zones {
        columns: &file.columns,
        words: &file.dictionaries,
        rows,
        calendar: file.calendar,
        find: &find,
    });
    pages.into_iter().enumerate().filter(|(page, _)| may.value(*page)).map(|(_, rows)| rows).collect()
}
