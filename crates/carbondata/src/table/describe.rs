//! What a table says of itself.

use pilaster_core::describe::{ColumnStatistics, Node};
use pilaster_core::{Dataset, Result};

use super::part::ColumnOrigin;
use super::reader::CarbonTable;
use super::schema::TableSchema;
use super::status::SegmentStatus;
use crate::file::page::encoding;
use crate::file::{CarbonType, describe};

/// The table with its columns and segments.
pub(crate) fn describe_table(table: &CarbonTable) -> Result<Node> {
    let inner = &*table.0;
    let mut node = Node::new(format!("{} {}", table.format(), inner.name), table.size_bytes())
        .fact("rows", table.rows())
        .fact("columns", inner.schema.fields().len());
    if !inner.has_metadata {
        for part in &inner.parts {
            node = node.child(describe::describe(part.whole()?)?);
        }
        return Ok(node);
    }
    node = node.fact("table_id", &inner.table.table_id);
    for (key, value) in &inner.table.properties {
        node = node.fact(format!("property.{key}"), value);
    }
    if let Some((columns, count)) = &inner.table.buckets {
        node = node.fact("buckets", format!("{count} by {}", columns.join(", ")));
    }
    if !inner.table.partition_columns.is_empty() {
        node = node.fact("partition_columns", inner.table.partition_columns.join(","));
    }
    if let Some(made) = inner.table.made() {
        node = node.fact("made", made);
    }
    for index in table.secondary_indexes()? {
        node = node.fact("secondary_index", index);
    }
    node = node.child(columns_node(&inner.table));
    for segment in &inner.segments {
        node = node.child(segment_node(table, segment)?);
    }
    Ok(node)
}

fn segment_node(table: &CarbonTable, segment: &SegmentStatus) -> Result<Node> {
    let mut node = Node::new(format!("segment {}", segment.id), 0)
        .fact("status", &segment.status)
        .fact("load_start", segment.load_start.as_deref().unwrap_or_default())
        .fact("load_end", segment.load_end.as_deref().unwrap_or_default())
        .fact("modified", segment.modified.as_deref().unwrap_or_default())
        .fact("merged_into", segment.merged_into.as_deref().unwrap_or_default())
        .fact("rows", table.segment_rows(&segment.id));
    for part in table.0.parts_of(&segment.id) {
        let deleted = part.file.rows.saturating_sub(part.live.count());
        let child = describe::describe(part.whole()?)?.fact("deleted_rows", deleted);
        node.bytes = node.bytes.saturating_add(child.bytes);
        node = node.child(child);
    }
    Ok(node)
}

/// What the schema says of each column.
fn columns_node(table: &TableSchema) -> Node {
    let mut node = Node::new("columns", 0);
    for column in table.columns.iter().filter(|column| !column.is_invisible) {
        let encodings: Vec<_> = column.encoders.iter().map(|number| encoding::name(*number)).collect();
        let carbon_type =
            CarbonType::of(column).map_or_else(|_| column.data_type.to_string(), |t| format!("{t:?}"));
        let mut child = Node::new(format!("column {}", column.name), 0)
            .fact("type", carbon_type)
            .fact("id", &column.column_id)
            .fact("encodings", encodings.join(","))
            .fact("kind", if column.is_dimension { "dimension" } else { "measure" });
        for (key, value) in &column.properties {
            child = child.fact(format!("property.{key}"), value);
        }
        if let Some(default) = &column.default_value {
            child = child.fact("default", String::from_utf8_lossy(default).into_owned());
        }
        node = node.child(child);
    }
    node
}

/// What the chunks of its files say of each column; see [`describe::column_statistics`].
pub(crate) fn statistics_of_table(table: &CarbonTable, reads_headers: bool) -> Result<Vec<ColumnStatistics>> {
    let mut all = vec![ColumnStatistics::default(); table.0.schema.fields().len()];
    for part in &table.0.parts {
        let of_file = describe::column_statistics(&part.file, reads_headers)?;
        for (column, origin) in all.iter_mut().zip(&part.origins) {
            let ColumnOrigin::File(index) = origin else { continue };
            let Some(known) = of_file.get(*index) else { continue };
            column.bytes = column.bytes.saturating_add(known.bytes);
            for (names, more) in
                [(&mut column.encodings, &known.encodings), (&mut column.codecs, &known.codecs)]
            {
                for name in more {
                    if !names.contains(name) {
                        names.push(name.clone());
                    }
                }
            }
        }
    }
    Ok(all)
}
