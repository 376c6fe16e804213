//! What a file says of itself.

use std::collections::BTreeMap;
use std::sync::Arc;

use pilaster_core::Result;
use pilaster_core::describe::{ColumnStatistics, Node, Page};

use super::chunk::Chunk;
use super::layout::CarbonFile;
use super::page::encoding;
use super::statistics::{Zones, fill_bounds};
use super::types::ColumnNode;
use crate::messages::PageHeader;

fn encodings(page: &PageHeader, has_words: bool) -> String {
    let mut names: Vec<_> = page.encoders.iter().map(|number| encoding::name(*number)).collect();
    if has_words {
        names.insert(0, "LOCAL_DICTIONARY");
    }
    if names.is_empty() {
        names.push("PLAIN");
    }
    names.join("+")
}

fn codec(page: &PageHeader) -> &str {
    page.compressor_name.as_deref().unwrap_or("snappy")
}

fn column_name(file: &CarbonFile, chunk: usize) -> String {
    file.header.columns.get(chunk).map_or_else(String::new, |column| column.name.clone())
}

pub(crate) fn describe(file: &CarbonFile) -> Result<Node> {
    let header = &file.header;
    let mut node = Node::new(format!("carbondata {}", file.name()), file.source.size())
        .fact("version", header.version)
        .fact("time_stamp", header.time_stamp)
        .fact("rows", file.rows)
        .fact("columns", header.columns.len())
        .fact("blocklets", file.blocklets.len());
    let sort_columns: Vec<_> = header
        .columns
        .iter()
        .filter(|column| {
            column.properties.iter().any(|(key, value)| key == "sort_columns" && value == "true")
        })
        .map(|column| column.name.as_str())
        .collect();
    node = node.fact("sort_columns", sort_columns.join(","));
    match &file.footer {
        Some(footer) => {
            if let Some(is_sorted) = footer.is_sorted {
                node = node.fact("is_sort", is_sorted);
            }
            for (key, value) in &footer.extra {
                node = node.fact(format!("extra_info.{key}"), value);
            }
        }
        None if file.stream.is_some() => node = node.fact("layout", "rows of a stream"),
        None if file.legacy.is_some() => node = node.fact("layout", "one page per column and blocklet"),
        None => node = node.fact("footer", "lost"),
    }
    node = node.child(Node::new("header", file.header_bytes));
    for (number, blocklet) in file.blocklets.iter().enumerate() {
        let mut child = Node::new(format!("blocklet {number}"), blocklet.bytes())
            .fact("rows", blocklet.rows.end.saturating_sub(blocklet.rows.start))
            .fact("pages", blocklet.pages());
        for place in 0..blocklet.chunks.len() {
            let chunk = Chunk::read(file, blocklet, place)?;
            let bytes = chunk.place.end.saturating_sub(chunk.place.offset);
            let mut column = Node::new(format!("column {}", column_name(file, place)), bytes);
            if let Some(page) = chunk.header.pages.first() {
                let has_words = chunk.header.dictionary.is_some();
                column = column.fact("encodings", encodings(page, has_words)).fact("codec", codec(page));
            }
            if let Some(dictionary) = &chunk.header.dictionary {
                column = column.fact("dictionary_bytes", dictionary.words.len());
            }
            child = child.child(column);
        }
        node = node.child(child);
    }
    if let Some(footer) = &file.footer {
        node = node.child(Node::new("footer", file.source.size().saturating_sub(footer.offset)));
    }
    Ok(node)
}

pub(crate) fn pages(file: &CarbonFile) -> Result<Vec<Page>> {
    let path: Arc<str> = file.name().into();
    let mut pages = Vec::new();
    let nested: Vec<_> =
        file.columns.iter().filter(|c| c.carbon_type.is_nested()).flat_map(ColumnNode::chunks).collect();
    for blocklet in &file.blocklets {
        for number in 0..blocklet.chunks.len() {
            let chunk = Chunk::read(file, blocklet, number)?;
            for (page, (range, header)) in chunk.pages.iter().zip(&chunk.header.pages).enumerate() {
                let is_top = file.columns.iter().any(|column| column.chunk == number);
                pages.push(Page {
                    path: Arc::clone(&path),
                    column: column_name(file, number),
                    kind: if nested.contains(&number) { "node page" } else { "column page" },
                    offset: range.start,
                    bytes: range.end.saturating_sub(range.start),
                    uncompressed_bytes: None,
                    rows: is_top.then(|| blocklet.page_rows(page)),
                    nulls: None,
                    encoding: encodings(header, chunk.header.dictionary.is_some()),
                    codec: codec(header).to_string(),
                });
            }
        }
    }
    Ok(pages)
}

/// What footer and index say of each column; if `reads_headers`, also what the header of every chunk says: its encodings and codecs.
pub(crate) fn column_statistics(file: &CarbonFile, reads_headers: bool) -> Result<Vec<ColumnStatistics>> {
    let find =
        |zone: usize, node: &ColumnNode| Some((file.blocklets.get(zone)?.min_max.as_ref()?, node.chunk));
    let rows = file.blocklets.iter().map(|b| b.rows.end.saturating_sub(b.rows.start)).collect();
    let zones = Zones {
        columns: &file.columns,
        words: &file.dictionaries,
        rows,
        calendar: file.calendar,
        find: &find,
    };
    let mut all = Vec::with_capacity(file.columns.len());
    for (number, node) in file.columns.iter().enumerate() {
        let mut statistics = ColumnStatistics::default();
        let (mut names, mut codecs) = (BTreeMap::new(), BTreeMap::new());
        for blocklet in file.blocklets.iter().filter(|_| file.has_chunks()) {
            for number in node.chunks() {
                let place = blocklet.chunks.get(number);
                let bytes = place.map_or(0, |place| place.end.saturating_sub(place.offset));
                statistics.bytes = statistics.bytes.saturating_add(bytes);
                if !reads_headers {
                    continue;
                }
                let chunk = Chunk::read(file, blocklet, number)?;
                for page in &chunk.header.pages {
                    let order = (names.len(), codecs.len());
                    names.entry(encodings(page, chunk.header.dictionary.is_some())).or_insert(order.0);
                    codecs.entry(codec(page).to_string()).or_insert(order.1);
                }
            }
        }
        statistics.encodings = in_order(names);
        statistics.codecs = in_order(codecs);
        fill_bounds(&mut statistics, node, &zones, number);
        all.push(statistics);
    }
    Ok(all)
}

fn in_order(names: BTreeMap<String, usize>) -> Vec<String> {
    let mut names: Vec<_> = names.into_iter().collect();
    names.sort_by_key(|(_, first)| *first);
    names.into_iter().map(|(name, _)| name).collect()
}
