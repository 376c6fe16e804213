//! What a Parquet file says of itself.

use std::ops::Range;
use std::sync::Arc;

use parquet::basic::Compression;
use parquet::column::page::Page as ParquetPage;
use parquet::file::metadata::{ColumnChunkMetaData, RowGroupMetaData};
use pilaster_core::Result;
use pilaster_core::describe::{Node, Page};

use super::chunks::SourceChunks;
use super::page_walk::PageWalk;
use super::{ParquetFile, metadata};

/// The codec without its level, which is not stored in the file.
pub(super) fn codec_name(compression: Compression) -> String {
    let text = compression.to_string();
    text.split('(').next().unwrap_or(&text).to_string()
}

/// Footer facts, then row groups with their column chunks.
pub(super) fn describe(file: &ParquetFile) -> Result<Node> {
    let footer = file.metadata().file_metadata();
    let mut node = Node::new("parquet", file.source.size())
        .fact("version", footer.version())
        .fact("created by", footer.created_by().unwrap_or(""))
        .fact("rows", file.row_count())
        .fact("row groups", file.groups.len())
        .fact("columns", file.arrow.parquet_schema().num_columns())
        .fact("page index", if file.metadata().offset_index().is_some() { "yes" } else { "no" });
    for pair in footer.key_value_metadata().into_iter().flatten() {
        node = node.fact(format!("key {}", pair.key), pair.value.as_deref().unwrap_or(""));
    }
    for (index, (group, rows)) in file.metadata().row_groups().iter().zip(&file.groups).enumerate() {
        node = node.child(describe_group(index, group, rows));
    }
    Ok(node.child(Node::new("footer", file.footer_bytes)))
}

fn describe_group(index: usize, group: &RowGroupMetaData, rows: &Range<u64>) -> Node {
    let bytes = group.columns().iter().map(size).fold(0, u64::saturating_add);
    let mut node = Node::new(format!("row group {index}"), bytes)
        .fact("rows", group.num_rows())
        .fact("first row", rows.start)
        .fact("uncompressed bytes", group.total_byte_size());
    for column in group.columns() {
        let encodings: Vec<_> = column.encodings().map(|encoding| encoding.to_string()).collect();
        let mut child = Node::new(format!("column {}", column.column_path().string()), size(column))
            .fact("type", column.column_type())
            .fact("encodings", encodings.join(", "))
            .fact("codec", codec_name(column.compression()))
            .fact("values", column.num_values())
            .fact("offset", column.dictionary_page_offset().unwrap_or(column.data_page_offset()))
            .fact("uncompressed bytes", column.uncompressed_size());
        if let Some(statistics) = column.statistics() {
            if let Some(nulls) = statistics.null_count_opt() {
                child = child.fact("nulls", nulls);
            }
            child = child.fact("statistics", statistics);
        }
        if let Some(offset) = column.bloom_filter_offset() {
            child = child.fact("bloom filter offset", offset);
        }
        node = node.child(child);
    }
    node
}

fn size(column: &ColumnChunkMetaData) -> u64 {
    u64::try_from(column.compressed_size()).unwrap_or(0)
}

/// Every page, in the order of row groups and columns. Page headers lie between the pages, so all of them are visited.
pub(super) fn pages(file: &ParquetFile) -> Result<Vec<Page>> {
    let path: Arc<str> = file.source.name().into();
    let mut all = Vec::new();
    for (index, (group, rows)) in file.metadata().row_groups().iter().zip(&file.groups).enumerate() {
        let ranges = metadata::check_group(file, group)?;
        let chunks = SourceChunks::new(Arc::clone(&file.source), ranges, &file.limits);
        for (leaf, column) in group.columns().iter().enumerate() {
            let firsts = first_rows(file, index, leaf);
            let mut data_pages = 0usize;
            let mut next_row = rows.start;
            for step in PageWalk::new(chunks.clone(), column) {
                let page = step.page.map_err(|error| error.at(&path, step.bytes.start, "parquet page"))?;
                let page_rows = match page.is_data_page() {
                    true => rows_of(&page, column, &firsts, data_pages, next_row, rows),
                    false => None,
                };
                if page.is_data_page() {
                    data_pages = data_pages.saturating_add(1);
                    next_row = page_rows.as_ref().map_or(next_row, |rows| rows.end);
                }
                all.push(Page {
                    path: Arc::clone(&path),
                    column: column.column_path().string(),
                    kind: kind(&page),
                    offset: step.bytes.start,
                    bytes: step.bytes.end.saturating_sub(step.bytes.start),
                    uncompressed_bytes: Some(page.buffer().len() as u64),
                    rows: page_rows,
                    nulls: match &page {
                        ParquetPage::DataPageV2 { num_nulls, .. } => Some(u64::from(*num_nulls)),
                        _ => None,
                    },
                    encoding: page.encoding().to_string(),
                    codec: codec_name(column.compression()),
                });
            }
        }
    }
    Ok(all)
}

fn kind(page: &ParquetPage) -> &'static str {
    match page {
        ParquetPage::DataPage { .. } => "data page",
        ParquetPage::DataPageV2 { .. } => "data page v2",
        ParquetPage::DictionaryPage { .. } => "dictionary page",
    }
}

/// First rows of a chunk's data pages, where the page index tells.
fn first_rows(file: &ParquetFile, group: usize, leaf: usize) -> Vec<u64> {
    let index = file.metadata().offset_index().and_then(|groups| groups.get(group)?.get(leaf));
    let locations = index.map(|index| index.page_locations().as_slice()).unwrap_or_default();
    locations.iter().map(|page| u64::try_from(page.first_row_index).unwrap_or(0)).collect()
}

/// The rows of a data page: by the page index, by its own header, or because each value is a row.
pub(super) fn rows_of(
    page: &ParquetPage,
    column: &ColumnChunkMetaData,
    firsts: &[u64],
    number: usize,
    next_row: u64,
    group: &Range<u64>,
) -> Option<Range<u64>> {
    let absolute = |row: &u64| group.start.saturating_add(*row).min(group.end);
    if let Some(first) = firsts.get(number) {
        let end = number.checked_add(1).and_then(|next| firsts.get(next)).map_or(group.end, absolute);
        return Some(absolute(first)..end);
    }
    let rows = match page {
        ParquetPage::DataPageV2 { num_rows, .. } => *num_rows,
        ParquetPage::DataPage { num_values, .. } if column.column_descr().max_rep_level() == 0 => *num_values,
        _ => return None,
    };
    Some(next_row..next_row.saturating_add(u64::from(rows)).min(group.end))
}
