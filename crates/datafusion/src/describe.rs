//! What files say of themselves, as Arrow tables: the rows of `pilaster_metadata`, `pilaster_pages` and
//! `pilaster_schema`.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, BooleanArray, RecordBatch, StringArray, UInt64Array};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use pilaster::schema_file::type_name;
use pilaster_core::Result;
use pilaster_core::describe::{Node, Page};

fn schema(columns: &[(&str, DataType, bool)]) -> SchemaRef {
    let field = |(name, data_type, nullable): &(&str, DataType, bool)| {
        Field::new(*name, data_type.clone(), *nullable)
    };
    Arc::new(Schema::new(columns.iter().map(field).collect::<Vec<_>>()))
}

/// One row per fact of each structure, parents before children; a structure without facts has one row.
///
/// # Errors
/// If Arrow refuses the columns.
pub fn metadata_batch(root: &Node) -> Result<RecordBatch> {
    let mut rows = MetadataRows::default();
    rows.add(root, "", 0);
    let columns: Vec<ArrayRef> = vec![
        Arc::new(StringArray::from(rows.path)),
        Arc::new(UInt64Array::from(rows.depth)),
        Arc::new(StringArray::from(rows.name)),
        Arc::new(StringArray::from(rows.fact)),
        Arc::new(StringArray::from(rows.value)),
        Arc::new(UInt64Array::from(rows.bytes)),
    ];
    let schema = schema(&[
        ("path", DataType::Utf8, false),
        ("depth", DataType::UInt64, false),
        ("name", DataType::Utf8, false),
        ("fact", DataType::Utf8, true),
        ("value", DataType::Utf8, true),
        ("bytes", DataType::UInt64, false),
    ]);
    Ok(RecordBatch::try_new(schema, columns)?)
}

#[derive(Default)]
struct MetadataRows {
    path: Vec<String>,
    depth: Vec<u64>,
    name: Vec<String>,
    fact: Vec<Option<String>>,
    value: Vec<Option<String>>,
    bytes: Vec<u64>,
}

impl MetadataRows {
    fn add(&mut self, root: &Node, parent: &str, depth: u64) {
        // An explicit stack: the depth of the tree is the file's to decide.
        let mut stack = vec![(root, parent.to_string(), depth)];
        while let Some((node, parent, depth)) = stack.pop() {
            let path = if parent.is_empty() { node.name.clone() } else { format!("{parent}/{}", node.name) };
            if node.facts.is_empty() {
                self.row(node, &path, depth, None);
            }
            for fact in &node.facts {
                self.row(node, &path, depth, Some(fact));
            }
            let below = depth.saturating_add(1);
            stack.extend(node.children.iter().rev().map(|child| (child, path.clone(), below)));
        }
    }

    fn row(&mut self, node: &Node, path: &str, depth: u64, fact: Option<&(String, String)>) {
        self.path.push(path.to_string());
        self.depth.push(depth);
        self.name.push(node.name.clone());
        self.fact.push(fact.map(|(name, _)| name.clone()));
        self.value.push(fact.map(|(_, value)| value.clone()));
        self.bytes.push(node.bytes);
    }
}

/// One row per page or block.
///
/// # Errors
/// If Arrow refuses the columns.
pub fn pages_batch(pages: &[Page]) -> Result<RecordBatch> {
    fn text<'a>(pages: &'a [Page], value: impl Fn(&'a Page) -> &'a str) -> ArrayRef {
        Arc::new(StringArray::from_iter_values(pages.iter().map(value)))
    }
    fn number(pages: &[Page], value: impl Fn(&Page) -> Option<u64>) -> ArrayRef {
        Arc::new(pages.iter().map(value).collect::<UInt64Array>())
    }
    let columns: Vec<ArrayRef> = vec![
        text(pages, |page| &page.path),
        text(pages, |page| &page.column),
        text(pages, |page| page.kind),
        number(pages, |page| Some(page.offset)),
        number(pages, |page| Some(page.bytes)),
        number(pages, |page| page.uncompressed_bytes),
        number(pages, |page| page.rows.as_ref().map(|rows| rows.start)),
        number(pages, |page| page.rows.as_ref().map(|rows| rows.end.saturating_sub(rows.start))),
        number(pages, |page| page.nulls),
        text(pages, |page| &page.encoding),
        text(pages, |page| &page.codec),
    ];
    let schema = schema(&[
        ("file", DataType::Utf8, false),
        ("column", DataType::Utf8, false),
        ("kind", DataType::Utf8, false),
        ("offset", DataType::UInt64, false),
        ("bytes", DataType::UInt64, false),
        ("uncompressed_bytes", DataType::UInt64, true),
        ("first_row", DataType::UInt64, true),
        ("rows", DataType::UInt64, true),
        ("nulls", DataType::UInt64, true),
        ("encoding", DataType::Utf8, false),
        ("codec", DataType::Utf8, false),
    ]);
    Ok(RecordBatch::try_new(schema, columns)?)
}

/// One row per column of a schema.
///
/// # Errors
/// If Arrow refuses the columns.
pub fn schema_batch(described: &Schema) -> Result<RecordBatch> {
    let fields = described.fields();
    let columns: Vec<ArrayRef> = vec![
        Arc::new(StringArray::from_iter_values(fields.iter().map(|field| field.name()))),
        Arc::new(StringArray::from_iter_values(fields.iter().map(|field| type_name(field)))),
        Arc::new(BooleanArray::from_iter(fields.iter().map(|field| Some(field.is_nullable())))),
    ];
    let schema = schema(&[
        ("column", DataType::Utf8, false),
        ("type", DataType::Utf8, false),
        ("nullable", DataType::Boolean, false),
    ]);
    Ok(RecordBatch::try_new(schema, columns)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::array::AsArray;

    #[test]
    fn structures_come_before_what_lies_inside_them() {
        let root = Node::new("file", 10)
            .fact("version", 2)
            .fact("rows", 3)
            .child(Node::new("footer", 4).child(Node::new("magic", 1)))
            .child(Node::new("block", 5).fact("codec", "lz4"));
        let batch = metadata_batch(&root).unwrap();
        let paths: Vec<_> = batch.column(0).as_string::<i32>().iter().flatten().collect();
        assert_eq!(paths, ["file", "file", "file/footer", "file/footer/magic", "file/block"]);
        let facts: Vec<_> = batch.column(3).as_string::<i32>().iter().collect();
        assert_eq!(facts, [Some("version"), Some("rows"), None, None, Some("codec")]);
    }
}
