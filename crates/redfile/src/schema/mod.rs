//! The schema of a file: a tree of nodes with their levels, and what it means in Arrow.
//!
//! | module | what |
//! | --- | --- |
//! | `tree` | the list of elements as a tree, checked |
//! | `shape` | what Arrow makes of the tree: drives assembling and shredding |
//! | `leaf` | the Arrow types of leaves |
//! | `from_arrow` | the elements an Arrow schema becomes |

mod from_arrow;
mod leaf;
mod shape;
mod tree;

use std::collections::HashMap;
use std::sync::Arc;

use arrow_schema::{Schema, SchemaRef};
use pilaster_encoding::{DecodeError, Result};

pub(crate) use leaf::{Order, decimal_bytes, order_of};
pub(crate) use shape::{Kind, ListKind, Shape, UnionShape};
pub(crate) use tree::{Leaf, Node};

use crate::metadata::{KeyValue, SchemaElement};

/// The schema of a file.
#[derive(Debug, Clone)]
pub struct RedfileSchema {
    elements: Vec<SchemaElement>,
    leaves: Vec<Leaf>,
    shapes: Vec<Shape>,
    arrow: SchemaRef,
}

impl RedfileSchema {
    /// Checks the elements of a file; `pairs` are the file's own key/values, which Arrow keeps with its schema.
    pub(crate) fn from_elements(elements: Vec<SchemaElement>, pairs: Option<&[KeyValue]>) -> Result<Self> {
        let root = Node::build(&elements)?;
        let mut leaves = Vec::new();
        root.collect_leaves(&mut Vec::new(), &mut leaves);
        let shapes = root.children.iter().map(Shape::of_field).collect::<Result<Vec<_>>>()?;
        let fields: Vec<_> = shapes.iter().map(|shape| Arc::clone(&shape.field)).collect();
        let metadata = pairs.map(key_value_map).unwrap_or_default();
        let arrow = Arc::new(Schema::new_with_metadata(fields, metadata));
        Ok(Self { elements, leaves, shapes, arrow })
    }

    /// The schema of elements as a file has them.
    ///
    /// # Errors
    /// [`pilaster_core::ErrorKind::Corrupt`] if they are no tree, or a logical type lacks what it needs.
    pub fn from_file_elements(elements: Vec<SchemaElement>) -> pilaster_core::Result<Self> {
        Ok(Self::from_elements(elements, None)?)
    }

    /// The schema an Arrow schema becomes in a file.
    ///
    /// # Errors
    /// [`pilaster_core::ErrorKind::InvalidInput`] if a type has no form in the format: a struct without fields, a union that
    /// may be null.
    pub fn from_arrow(schema: &Schema) -> pilaster_core::Result<Self> {
        let elements = from_arrow::elements(schema)?;
        let pairs = from_arrow::key_values(schema.metadata());
        Ok(Self::from_elements(elements, pairs.as_deref())?)
    }

    /// The elements, as they stand in the file.
    pub fn elements(&self) -> &[SchemaElement] {
        &self.elements
    }

    /// Columns and types in Arrow.
    pub fn arrow(&self) -> &SchemaRef {
        &self.arrow
    }

    /// The columns of the file: names from below the root to the leaf.
    pub fn leaf_paths(&self) -> impl Iterator<Item = &[String]> {
        self.leaves.iter().map(|leaf| leaf.path.as_slice())
    }

    pub(crate) fn leaves(&self) -> &[Leaf] {
        &self.leaves
    }

    /// One for each field of the Arrow schema.
    pub(crate) fn shapes(&self) -> &[Shape] {
        &self.shapes
    }
}

/// Key/values as Arrow has them: a key without a value has an empty one.
pub(crate) fn key_value_map(pairs: &[KeyValue]) -> HashMap<String, String> {
    pairs.iter().map(|(key, value)| (key.clone(), value.clone().unwrap_or_default())).collect()
}

/// An error of the schema; it has no place of its own inside the metadata.
pub(crate) fn bad_schema(expected: impl Into<String>, found: impl Into<String>) -> DecodeError {
    DecodeError::new(0, expected.into(), found.into())
}
