//! What a segment says of itself.

use std::collections::HashMap;
use std::sync::Arc;

use pilaster_core::Result;
use pilaster_core::describe::{ColumnStatistics, Node, Page};

use super::column_meta::ColumnMeta;
use super::footer::StorageFormat;
use super::reader::Segment;
use super::structure::{Owner, StructurePage, structure_pages, walk};
use super::types::FieldType;
use super::zone_map;

pub(super) fn describe(segment: &Segment) -> Result<Node> {
    let metadata = &segment.metadata;
    let mut node = Node::new(format!("segment {}", segment.name()), metadata.file_bytes)
        .fact(
            "storage_format",
            match metadata.format {
                StorageFormat::V2 => "V2",
                StorageFormat::V3 => "V3",
            },
        )
        .fact("num_rows", metadata.num_rows)
        .fact("columns", metadata.columns.len());
    for (key, value) in &metadata.pairs {
        node = node.fact(format!("file_meta.{key}"), value.escape_ascii());
    }
    let pages = structure_pages(segment);
    let by_owner = by_owner(&pages);
    let owned_by = |owner: Owner| by_owner.get(&owner).map(Vec::as_slice).unwrap_or_default();
    for (number, column) in metadata.columns.iter().enumerate() {
        node = node.child(column_node(segment, number, column, owned_by(Owner::Column(number))));
    }
    for (name, owner) in [("short key index", Owner::ShortKey), ("primary key index", Owner::PrimaryKey)] {
        let owned = owned_by(owner);
        if !owned.is_empty() {
            let mut index = Node::new(name, bytes(owned)).fact("pages", owned.len());
            if let (Owner::PrimaryKey, Some(key)) = (owner, &metadata.primary_key) {
                index = index
                    .fact("keys", key.index.num_values)
                    .fact("min_key", key.min_key.escape_ascii())
                    .fact("max_key", key.max_key.escape_ascii());
            }
            node = node.child(index);
        }
    }
    if metadata.pages_end < metadata.footer_start {
        node = node
            .child(Node::new("column metadata", metadata.footer_start.saturating_sub(metadata.pages_end)));
    }
    Ok(node.child(Node::new("footer", metadata.file_bytes.saturating_sub(metadata.footer_start))))
}

/// The pages of each owner, in their order.
fn by_owner(pages: &[StructurePage]) -> HashMap<Owner, Vec<&StructurePage>> {
    let mut owned = HashMap::<Owner, Vec<&StructurePage>>::new();
    for page in pages {
        owned.entry(page.owner).or_default().push(page);
    }
    owned
}

fn bytes(pages: &[&StructurePage]) -> u64 {
    pages.iter().map(|page| u64::from(page.pointer.size)).sum()
}

fn column_node(segment: &Segment, number: usize, column: &ColumnMeta, pages: &[&StructurePage]) -> Node {
    let (data, index): (Vec<_>, Vec<_>) = pages.iter().copied().partition(|page| page.is_data());
    let mut node = Node::new(format!("column {}", column_name(segment, number)), bytes(pages))
        .fact("unique_id", column.unique_id)
        .fact("type", type_text(column))
        .fact("length", column.length)
        .fact("encoding", column.encoding.map_or("none", |encoding| encoding.name()))
        .fact("compression", column.compression)
        .fact("is_nullable", column.is_nullable)
        .fact("num_rows", column.num_rows)
        .fact("data_bytes", bytes(&data))
        .fact("index_bytes", bytes(&index));
    if let Some((_, uncompressed)) = column.data_bytes.filter(|(stored, _)| *stored > 0) {
        node = node.fact("uncompressed_data_bytes", uncompressed);
    }
    if let Some(name) = &column.function_name {
        node = node.fact("aggregation", name);
    }
    if let Some(path) = column.path.as_ref().filter(|path| path.parent.is_some()) {
        node = node.fact("path", path.keys.join("."));
    }
    let mut kinds: Vec<&str> = Vec::new();
    for page in pages {
        if !kinds.contains(&page.what) {
            kinds.push(page.what);
        }
    }
    for kind in kinds {
        let of_kind: Vec<_> = pages.iter().copied().filter(|page| page.what == kind).collect();
        node = node.child(Node::new(format!("{kind}s"), bytes(&of_kind)).fact("pages", of_kind.len()));
    }
    node
}

/// A type with its digits and what it is made of.
fn type_text(column: &ColumnMeta) -> String {
    let digits = column.precision.filter(|precision| *precision > 0);
    let scale = column.frac.filter(|scale| *scale > 0);
    // The last parts are offsets and nulls.
    let parts = |count: usize| {
        let parts: Vec<_> = column.children.iter().take(count).map(type_text).collect();
        format!("{}<{}>", column.field_type, parts.join(", "))
    };
    match column.field_type {
        FieldType::Decimal32 | FieldType::Decimal64 | FieldType::Decimal128 | FieldType::Decimal256 => {
            match digits {
                Some(digits) => format!("{}({digits}, {})", column.field_type, scale.unwrap_or(0)),
                None => column.field_type.to_string(),
            }
        }
        FieldType::DateTimeV2 | FieldType::TimestampTz => match scale {
            Some(scale) => format!("{}({scale})", column.field_type),
            None => column.field_type.to_string(),
        },
        FieldType::Char | FieldType::Varchar if column.length > 0 => {
            format!("{}({})", column.field_type, column.length)
        }
        FieldType::Array => parts(1),
        FieldType::Map => parts(2),
        FieldType::Struct => parts(column.children.len().saturating_sub(usize::from(column.is_nullable))),
        other => other.to_string(),
    }
}

/// The name of a column of the file: as the dataset has it, else by its id or path.
pub(super) fn column_name(segment: &Segment, number: usize) -> String {
    if let Some(output) = segment.columns.iter().find(|output| output.stored == Some(number)) {
        return output.name.clone();
    }
    let Some(column) = segment.metadata.columns.get(number) else { return number.to_string() };
    let named = |id: i32| {
        let of_schema =
            segment.schema.as_ref().and_then(|schema| schema.columns.iter().find(|c| c.unique_id == id));
        of_schema.map_or_else(|| id.to_string(), |column| column.name.clone())
    };
    match &column.path {
        Some(path) if path.parent.is_some() => {
            format!("{}['{}']", named(path.parent.unwrap_or_default()), path.keys.join("."))
        }
        _ => named(column.unique_id),
    }
}

pub(super) fn pages(segment: &Segment) -> Result<Vec<Page>> {
    let path: Arc<str> = segment.name().into();
    let mut failure = None;
    let found = walk(segment, &mut |error| {
        failure.get_or_insert(error);
    });
    if let Some(error) = failure {
        return Err(error);
    }
    let mut pages: Vec<Page> = found
        .into_iter()
        .map(|found| {
            let opened = segment.store.read(found.pointer, found.kind, found.compression).ok();
            let footer = opened.as_ref().map(|page| page.footer);
            let column = match found.owner {
                Owner::Column(number) => column_name(segment, number),
                Owner::ShortKey | Owner::PrimaryKey => String::new(),
            };
            Page {
                path: Arc::clone(&path),
                column,
                kind: found.what,
                offset: found.pointer.offset,
                bytes: u64::from(found.pointer.size),
                uncompressed_bytes: footer.and_then(|footer| footer.uncompressed_size).map(u64::from),
                rows: found.rows,
                nulls: None,
                encoding: found.encoding.map_or_else(String::new, |encoding| encoding.name().to_string()),
                codec: found.compression.name().to_string(),
            }
        })
        .collect();
    pages.sort_by_key(|page| page.offset);
    Ok(pages)
}

pub(super) fn column_statistics(segment: &Segment) -> Result<Vec<ColumnStatistics>> {
    let pages = structure_pages(segment);
    let by_owner = by_owner(&pages);
    segment
        .columns
        .iter()
        .map(|output| {
            let mut statistics = ColumnStatistics::default();
            let Some(meta) = segment.stored(output) else { return Ok(statistics) };
            let owner = Owner::Column(output.stored.unwrap_or(usize::MAX));
            let owned = by_owner.get(&owner).map(Vec::as_slice).unwrap_or_default();
            statistics.bytes = bytes(owned);
            // Indexes are stored as they are.
            let index_bytes: u64 =
                owned.iter().filter(|page| !page.is_data()).map(|page| u64::from(page.pointer.size)).sum();
            statistics.uncompressed_bytes = meta
                .data_bytes
                .filter(|(stored, _)| *stored > 0)
                .map(|(_, uncompressed)| uncompressed.saturating_add(index_bytes));
            let encodings =
                output.column.paged().into_iter().map(|column| column.shape.encoding.name().to_string());
            for encoding in encodings {
                if !statistics.encodings.contains(&encoding) {
                    statistics.encodings.push(encoding);
                }
            }
            statistics.codecs = vec![meta.compression.name().to_string()];
            if let Some(zone) = meta.zone_map.as_ref().and_then(|zones| zones.segment.as_ref())
                && let super::column::Column::Paged(paged) = &output.column
            {
                let (min, max) = zone_map::bounds(&paged.shape.cell, std::slice::from_ref(zone))?;
                // Bounds of long strings are cut, so they are bounds and no values.
                let is_exact = [&zone.min, &zone.max]
                    .iter()
                    .all(|text| text.as_ref().is_none_or(|text| text.len() < zone_map::CUT_BYTES));
                if is_exact {
                    statistics.min = min.filter(|min| min.is_valid(0));
                    statistics.max = max.filter(|max| max.is_valid(0));
                }
                statistics.nulls = match (zone.has_null, zone.has_not_null) {
                    (Some(false), _) => Some(0),
                    (Some(true), Some(false)) => Some(meta.num_rows),
                    _ => None,
                };
            }
            Ok(statistics)
        })
        .collect()
}
