//! What a file says of itself, and where its bytes go.

use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_ord::cmp;
use pilaster_core::Result;
use pilaster_core::describe::{ColumnStatistics, Node, Page};

use super::chunk::{Chunk, Window};
use super::file::RedFile;
use super::prune::value;
use crate::metadata::{ColumnMetadata, PageType};
use crate::schema::{Kind, Shape};

fn unsigned(value: i64) -> u64 {
    u64::try_from(value).unwrap_or_default()
}

pub(super) fn describe(file: &RedFile) -> Result<Node> {
    let metadata = &file.metadata;
    let mut node = Node::new(format!("redfile {}", file.name()), file.size_bytes())
        .fact("version", metadata.version)
        .fact("rows", metadata.num_rows)
        .fact("row groups", metadata.row_groups.len())
        .fact("columns", file.schema.leaves().len());
    if let Some(program) = &metadata.created_by {
        node = node.fact("created by", program);
    }
    let checksums = metadata.checksums.unwrap_or(0);
    node = node.fact(
        "checksums",
        if checksums == 0 { "none promised".to_string() } else { format!("{checksums:#06b}") },
    );
    node = match (metadata.checkpoint_interval, &metadata.sync_marker) {
        (Some(interval), Some(marker)) => {
            let marker: String = marker.iter().map(|byte| format!("{byte:02x}")).collect();
            node.fact("checkpoint every", format!("{interval} row groups")).fact("sync marker", marker)
        }
        _ => node.fact("checkpoints", "none"),
    };
    for (key, value) in metadata.key_values.iter().flatten() {
        node = node.fact(format!("key \"{key}\""), value.as_deref().unwrap_or("(no value)"));
    }
    node = node.child(describe_schema(file));
    for (number, group) in metadata.row_groups.iter().enumerate() {
        let mut child = Node::new(format!("row group {number}"), 0)
            .fact("rows", group.num_rows)
            .fact("uncompressed bytes", group.total_byte_size);
        for (leaf, column) in group.columns.iter().enumerate() {
            let metadata = match &column.metadata {
                Some(replica) => replica.clone(),
                None => file.metadata_behind(number, leaf)?,
            };
            let name = file.leaf(leaf)?.name();
            child.bytes = child.bytes.saturating_add(unsigned(metadata.total_compressed_size));
            child.children.push(describe_chunk(&name, &metadata, column.file_path.as_deref()));
        }
        node = node.child(child);
    }
    Ok(node)
}

fn describe_schema(file: &RedFile) -> Node {
    let mut node = Node::new("schema", 0);
    for leaf in file.schema.leaves() {
        let repetition = leaf.element.repetition.map(|repetition| repetition.to_string()).unwrap_or_default();
        let converted =
            leaf.element.converted_type.map(|converted| format!(" ({converted})")).unwrap_or_default();
        let text = format!(
            "{repetition} {}{converted}, max definition level {}, max repetition level {}",
            leaf.physical_type, leaf.max_def, leaf.max_rep
        );
        node = node.fact(leaf.name(), text);
    }
    node
}

fn encodings_of(metadata: &ColumnMetadata) -> Vec<String> {
    metadata.encodings.iter().map(ToString::to_string).collect()
}

fn describe_chunk(name: &str, metadata: &ColumnMetadata, path: Option<&str>) -> Node {
    let mut node = Node::new(format!("column {name}"), unsigned(metadata.total_compressed_size))
        .fact("type", metadata.physical_type)
        .fact("encodings", encodings_of(metadata).join(", "))
        .fact("codec", metadata.codec)
        .fact("entries", metadata.num_values)
        .fact("uncompressed bytes", metadata.total_uncompressed_size)
        .fact("first data page at byte", metadata.data_page_offset);
    if let Some(path) = path {
        node = node.fact("file", path);
    }
    if let Some(offset) = metadata.index_page_offset {
        node = node.fact("index page at byte", offset);
    }
    if let Some(statistics) = &metadata.statistics {
        if let Some(nulls) = statistics.null_count {
            node = node.fact("nulls", nulls);
        }
        if let Some(nans) = statistics.nan_count {
            node = node.fact("NaNs", nans);
        }
    }
    node
}

pub(super) fn pages(file: &RedFile) -> Result<Vec<Page>> {
    let mut pages = Vec::new();
    for group in 0..file.metadata.row_groups.len() {
        for leaf in 0..file.schema.leaves().len() {
            chunk_pages(file, &file.chunk(group, leaf)?, &mut pages)?;
        }
    }
    Ok(pages)
}

fn chunk_pages(file: &RedFile, chunk: &Chunk, pages: &mut Vec<Page>) -> Result<()> {
    let leaf = file.leaf(chunk.leaf)?;
    let first = file.group_rows(chunk.group).start;
    let index = chunk.index().ok().flatten().unwrap_or_default();
    let mut window = Window::default();
    let (mut offset, mut row) = (chunk.start, Some(first));
    let mut number = 0usize;
    while offset < chunk.end {
        let (header, header_bytes) = chunk.header(&mut window, offset, chunk.end)?;
        let bytes = header_bytes.saturating_add(u64::from(header.compressed_size));
        let data = header.data.as_ref().filter(|_| header.page_type == PageType::Data);
        let count = data.and_then(|data| data.num_rows.or((leaf.max_rep == 0).then_some(data.num_values)));
        let rows = data.and(row.zip(count)).map(|(row, count)| row..row.saturating_add(u64::from(count)));
        let mut nulls = None;
        if let Some(data) = data {
            row = rows.as_ref().map(|rows| rows.end);
            let entry = index.get(number).and_then(|entry| entry.statistics.as_ref());
            let statistics = entry.or(data.statistics.as_ref());
            nulls = statistics.and_then(|statistics| statistics.null_count).map(unsigned);
            number = number.saturating_add(1);
        }
        pages.push(Page {
            path: Arc::from(chunk.name()),
            column: leaf.name(),
            kind: match header.page_type {
                PageType::Data => "data page",
                PageType::Index => "index page",
                PageType::Unknown(_) => "unknown page",
            },
            offset,
            bytes,
            uncompressed_bytes: Some(header_bytes.saturating_add(u64::from(header.uncompressed_size))),
            rows,
            nulls,
            encoding: data.map(|data| data.encoding.to_string()).unwrap_or_default(),
            codec: header.codec.unwrap_or(chunk.metadata.codec).to_string(),
        });
        offset = offset.saturating_add(bytes);
    }
    Ok(())
}

pub(super) fn column_statistics(file: &RedFile) -> Result<Vec<ColumnStatistics>> {
    file.schema.shapes().iter().map(|shape| field_statistics(file, shape)).collect()
}

fn field_statistics(file: &RedFile, shape: &Shape) -> Result<ColumnStatistics> {
    let mut known = ColumnStatistics { uncompressed_bytes: Some(0), ..ColumnStatistics::default() };
    let add = |list: &mut Vec<String>, name: String| {
        if !list.contains(&name) {
            list.push(name);
        }
    };
    let is_leaf = matches!(shape.kind, Kind::Leaf);
    let mut has_bounds = is_leaf && shape.field.data_type() == file.leaf_type(shape.leaves.start)?;
    let mut nulls = is_leaf.then_some(0u64);
    for group in 0..file.metadata.row_groups.len() {
        for leaf in shape.leaves.clone() {
            let chunk = file.chunk(group, leaf)?;
            let metadata = &chunk.metadata;
            known.bytes = known.bytes.saturating_add(unsigned(metadata.total_compressed_size));
            known.uncompressed_bytes = known
                .uncompressed_bytes
                .map(|sum| sum.saturating_add(unsigned(metadata.total_uncompressed_size)));
            encodings_of(metadata).into_iter().for_each(|name| add(&mut known.encodings, name));
            add(&mut known.codecs, metadata.codec.to_string());
            let statistics = metadata.statistics.as_ref();
            let count = statistics.and_then(|statistics| statistics.null_count).map(unsigned);
            nulls = nulls.zip(count).map(|(sum, count)| sum.saturating_add(count));
            if !has_bounds {
                continue;
            }
            let Some(statistics) = statistics else {
                has_bounds = false;
                continue;
            };
            let is_exact = statistics.is_min_exact != Some(false) && statistics.is_max_exact != Some(false);
            let is_empty = statistics.null_count == Some(metadata.num_values);
            let bound = |bytes: &Option<Vec<u8>>| {
                value(file.leaf(leaf).ok()?, shape.field.data_type(), bytes.as_ref()?)
            };
            match (bound(&statistics.min), bound(&statistics.max)) {
                (Some(min), Some(max)) if is_exact && statistics.nan_count.unwrap_or(0) == 0 => {
                    known.min = Some(pick(known.min.take(), min, Pick::Less));
                    known.max = Some(pick(known.max.take(), max, Pick::Greater));
                }
                _ if is_empty => {}
                _ => has_bounds = false,
            }
        }
    }
    known.nulls = nulls;
    if !has_bounds {
        (known.min, known.max) = (None, None);
    }
    Ok(known)
}

enum Pick {
    Less,
    Greater,
}

/// The less or the greater of two arrays of one value.
fn pick(own: Option<ArrayRef>, other: ArrayRef, wanted: Pick) -> ArrayRef {
    let Some(own) = own else { return other };
    let is_other = match wanted {
        Pick::Less => cmp::lt(&other, &own),
        Pick::Greater => cmp::gt(&other, &own),
    };
    if is_other.is_ok_and(|result| result.true_count() == 1) { other } else { own }
}
