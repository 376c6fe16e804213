//! Types of columns, and the Arrow types they are read as.
//!
//! | CarbonData | Arrow |
//! | --- | --- |
//! | STRING, VARCHAR | Utf8View |
//! | BINARY | BinaryView |
//! | BOOLEAN | Boolean |
//! | BYTE, SHORT, INT, LONG | Int8, Int16, Int32, Int64 |
//! | FLOAT, DOUBLE | Float32, Float64 |
//! | DECIMAL(p, s) | Decimal128(p, s) |
//! | DATE | Date32 |
//! | TIMESTAMP | Timestamp(ms, UTC) |
//! | ARRAY, MAP, STRUCT | List, Map, Struct |
//!
//! Every field is nullable, because the format does not say otherwise.

use std::sync::Arc;

use arrow_schema::{DataType, Field, FieldRef, Fields, TimeUnit};
use pilaster_core::{Error, Result};

use super::page::encoding;
use crate::messages::ColumnSchema;

/// Greatest precision of a decimal.
const MAX_PRECISION: u8 = 38;

/// The type of a column or of a node of a nested one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are the format's own")]
pub enum CarbonType {
    String,
    Short,
    Int,
    Long,
    Double,
    Decimal { precision: u8, scale: u8 },
    Timestamp,
    Date,
    Boolean,
    Array,
    Struct,
    Varchar,
    Map,
    Float,
    Byte,
    Binary,
}

impl CarbonType {
    /// The type a column schema names.
    pub(crate) fn of(column: &ColumnSchema) -> Result<Self> {
        Ok(match column.data_type {
            0 => Self::String,
            1 => Self::Short,
            2 => Self::Int,
            3 => Self::Long,
            4 => Self::Double,
            5 => {
                let (precision, scale) = (u8::try_from(column.precision), u8::try_from(column.scale));
                match (precision, scale) {
                    (Ok(precision @ 1..=MAX_PRECISION), Ok(scale)) if scale <= precision => {
                        Self::Decimal { precision, scale }
                    }
                    _ => {
                        return Err(Error::corrupt(
                            format!(
                                "a decimal of at most {MAX_PRECISION} digits for column {:?}",
                                column.name
                            ),
                            format!("precision {} and scale {}", column.precision, column.scale),
                        ));
                    }
                }
            }
            6 => Self::Timestamp,
            7 => Self::Date,
            8 => Self::Boolean,
            20 => Self::Array,
            21 => Self::Struct,
            22 => Self::Varchar,
            23 => Self::Map,
            24 => Self::Float,
            25 => Self::Byte,
            26 => Self::Binary,
            other => {
                return Err(Error::corrupt(format!("a known type for column {:?}", column.name), other));
            }
        })
    }

    /// Whether its values are nodes with children.
    pub fn is_nested(self) -> bool {
        matches!(self, Self::Array | Self::Struct | Self::Map)
    }

    /// The Arrow type of a type without children.
    fn leaf_type(self) -> DataType {
        match self {
            Self::String | Self::Varchar => DataType::Utf8View,
            Self::Binary => DataType::BinaryView,
            Self::Short => DataType::Int16,
            Self::Int => DataType::Int32,
            Self::Long => DataType::Int64,
            Self::Double => DataType::Float64,
            Self::Float => DataType::Float32,
            Self::Byte => DataType::Int8,
            Self::Boolean => DataType::Boolean,
            Self::Date => DataType::Date32,
            Self::Timestamp => DataType::Timestamp(TimeUnit::Millisecond, Some("UTC".into())),
            Self::Decimal { precision, scale } => {
                DataType::Decimal128(precision, i8::try_from(scale).unwrap_or(i8::MAX))
            }
            Self::Array | Self::Struct | Self::Map => DataType::Null,
        }
    }
}

/// A column, or a node of a nested one: which chunk holds it and what is below it.
#[derive(Debug, Clone)]
pub struct ColumnNode {
    /// Its type.
    pub carbon_type: CarbonType,
    /// Number of its chunk in a blocklet, which is its place in the header's list of columns.
    pub chunk: usize,
    /// Whether it is a dimension.
    pub is_dimension: bool,
    /// Whether its values are codes of a dictionary of the whole table.
    pub has_table_dictionary: bool,
    /// Whether it lies inside a nested column.
    pub is_child: bool,
    /// Name and Arrow type.
    pub field: FieldRef,
    /// The nodes below it: one of an array, two of a map (its keys and values), any number of a struct.
    pub children: Vec<ColumnNode>,
    /// The chunk of the struct of keys and values, of a map.
    pub entries_chunk: Option<usize>,
}

impl ColumnNode {
    /// Numbers of all chunks the column needs, in file order.
    pub fn chunks(&self) -> Vec<usize> {
        let mut chunks = vec![self.chunk];
        chunks.extend(self.entries_chunk);
        for child in &self.children {
            chunks.extend(child.chunks());
        }
        chunks
    }
}

/// Whether a column holds codes of a dictionary of the whole table.
pub(crate) fn is_global(column: &ColumnSchema) -> bool {
    let lists = |encoding| column.encoders.contains(&encoding);
    // Old files list the encoding of the children at the nodes above them too.
    let is_node = matches!(column.data_type, 20 | 21 | 23);
    lists(encoding::DICTIONARY) && !lists(encoding::DIRECT_DICTIONARY) && !is_node
}

/// Builds the trees of a header's flat list, in the order of the user.
pub(crate) fn column_trees(columns: &[ColumnSchema], max_depth: u32) -> Result<Vec<ColumnNode>> {
    let mut trees = Vec::new();
    let mut next = 0;
    while let Some(column) = columns.get(next) {
        let order = column.ordinal.unwrap_or(-1);
        let tree = build(columns, &mut next, None, max_depth)?;
        if !column.is_invisible {
            trees.push((order, tree));
        }
    }
    // Old files have no ordinals: then the order of the list counts.
    if trees.iter().all(|(order, _)| *order >= 0) {
        trees.sort_by_key(|(order, _)| *order);
    }
    Ok(trees.into_iter().map(|(_, tree)| tree).collect())
}

fn build(
    columns: &[ColumnSchema],
    next: &mut usize,
    parent: Option<&ColumnSchema>,
    depth: u32,
) -> Result<ColumnNode> {
    let chunk = *next;
    let column =
        columns.get(chunk).ok_or_else(|| Error::corrupt("another child column", "the last column"))?;
    let carbon_type = CarbonType::of(column)?;
    let Some(depth) = depth.checked_sub(1) else {
        return Err(Error::corrupt("fewer levels of nesting", &column.name));
    };
    *next = chunk.saturating_add(1);
    let wanted = match carbon_type {
        CarbonType::Array | CarbonType::Map => 1..=1,
        CarbonType::Struct => 1..=i32::MAX,
        _ => 0..=0,
    };
    if !wanted.contains(&column.num_child) {
        return Err(Error::corrupt(
            format!("{} to {} children of column {:?}", wanted.start(), wanted.end(), column.name),
            column.num_child,
        ));
    }
    let mut children = Vec::new();
    let mut entries_chunk = None;
    if carbon_type == CarbonType::Map {
        let entries = build(columns, next, Some(column), depth)?;
        if entries.carbon_type != CarbonType::Struct || entries.children.len() != 2 {
            return Err(Error::corrupt("a struct of keys and values in a map", &entries.field));
        }
        entries_chunk = Some(entries.chunk);
        children = entries.children;
    } else {
        for _ in 0..column.num_child {
            children.push(build(columns, next, Some(column), depth)?);
        }
    }
    let data_type = data_type(carbon_type, &children);
    let name = match parent {
        Some(parent) => {
            let path = format!("{}.", parent.name);
            column.name.strip_prefix(&path).unwrap_or(&column.name)
        }
        None => &column.name,
    };
    Ok(ColumnNode {
        carbon_type,
        chunk,
        is_dimension: column.is_dimension,
        has_table_dictionary: is_global(column),
        is_child: parent.is_some(),
        field: Arc::new(Field::new(name, data_type, true)),
        children,
        entries_chunk,
    })
}

fn data_type(carbon_type: CarbonType, children: &[ColumnNode]) -> DataType {
    let renamed = |node: &ColumnNode, name: &str, is_nullable: bool| {
        Arc::new(Field::new(name, node.field.data_type().clone(), is_nullable))
    };
    match (carbon_type, children) {
        (CarbonType::Array, [item]) => DataType::List(renamed(item, "item", true)),
        (CarbonType::Map, [key, value]) => {
            let entries = Fields::from(vec![renamed(key, "key", false), renamed(value, "value", true)]);
            DataType::Map(Arc::new(Field::new("entries", DataType::Struct(entries), false)), false)
        }
        (CarbonType::Struct, fields) => {
            DataType::Struct(fields.iter().map(|node| Arc::clone(&node.field)).collect())
        }
        (leaf, _) => leaf.leaf_type(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(name: &str, data_type: i32, num_child: i32, ordinal: i32) -> ColumnSchema {
        ColumnSchema {
            data_type,
            name: name.into(),
            column_id: name.into(),
            encoders: Vec::new(),
            is_dimension: true,
            is_columnar: true,
            group: -1,
            scale: 2,
            precision: 10,
            num_child,
            default_value: None,
            properties: Vec::new(),
            is_invisible: false,
            ordinal: Some(ordinal),
        }
    }

    #[test]
    fn nesting_follows_the_numbers_of_children_and_columns_the_ordinals() {
        let columns = [
            column("m", 23, 1, 1),
            column("m.val0", 21, 2, -1),
            column("m.val0.m.key", 0, 0, -1),
            column("m.val0.m.value", 20, 1, -1),
            column("m.val0.m.value.val1", 5, 0, -1),
            column("i", 2, 0, 0),
        ];
        let trees = column_trees(&columns, 8).unwrap();
        assert_eq!(trees.iter().map(|tree| tree.field.name().as_str()).collect::<Vec<_>>(), ["i", "m"]);
        assert_eq!(trees[1].chunks(), [0, 1, 2, 3, 4]);
        let DataType::Map(entries, _) = trees[1].field.data_type() else { panic!() };
        assert_eq!(entries.data_type().to_string().matches("Decimal128(10, 2)").count(), 1);
    }

    #[test]
    fn lists_that_do_not_add_up_are_refused() {
        for columns in [
            vec![column("a", 20, 1, 0)],
            vec![column("a", 20, 2, 0), column("b", 0, 0, 0), column("c", 0, 0, 0)],
            vec![column("a", 0, 1, 0), column("b", 0, 0, 0)],
            vec![column("a", 99, 0, 0)],
            vec![column("m", 23, 1, 0), column("m.v", 0, 0, -1)],
        ] {
            assert!(column_trees(&columns, 8).is_err(), "{columns:?}");
        }
        let deep: Vec<_> =
            (0..9).map(|level| column("a", if level < 8 { 20 } else { 0 }, (level < 8).into(), 0)).collect();
        assert!(column_trees(&deep, 8).is_err());
        assert!(column_trees(&deep, 9).is_ok());
    }
}
