//! Nested columns in rows: a value is one piece of bytes, with everything that is below it.
//!
//! ```text
//! array    i32 count | elements; -1 is null
//! map      i32 count | entries, each a struct of key and value
//! struct   i16 number of fields (i32 before release 1.4) | fields
//! others   as [`Rows::child_form`] says
//! ```
//!
//! Nulls are those of pages: an array of one null, a struct of nothing but nulls.

use arrow_array::ArrayRef;
use pilaster_core::{Error, Result};

use super::rows::Rows;
use crate::file::page::nested;
use crate::file::types::{CarbonType, ColumnNode};

/// The values of a nested column; none where a row has none.
pub(super) fn array(rows: &Rows<'_>, node: &ColumnNode, column: &[Option<&[u8]>]) -> Result<ArrayRef> {
    let mut values = Values::new(node);
    for value in column {
        match value {
            None => values.push_null(),
            Some(bytes) => {
                let rest = values.take(rows, bytes)?;
                if !rest.is_empty() {
                    let found = format!("{} bytes more", rest.len());
                    return Err(Error::corrupt(format!("a value of column {:?}", node.field.name()), found));
                }
            }
        }
    }
    values.finish(rows)
}

/// The values of a node, and of all below it.
struct Values<'n, 'a> {
    node: &'n ColumnNode,
    /// Of a node without children.
    leaves: Vec<Option<&'a [u8]>>,
    /// Counts and first elements of arrays and maps, in the form of pages.
    nodes: Vec<u8>,
    /// Elements so far.
    elements: u32,
    children: Vec<Values<'n, 'a>>,
}

impl<'n, 'a> Values<'n, 'a> {
    fn new(node: &'n ColumnNode) -> Self {
        let children = node.children.iter().map(Values::new).collect();
        Self { node, leaves: Vec::new(), nodes: Vec::new(), elements: 0, children }
    }

    fn push_null(&mut self) {
        match self.node.carbon_type {
            CarbonType::Array | CarbonType::Map => self.push_count(1),
            CarbonType::Struct => {}
            _ => self.leaves.push(None),
        }
        self.children.iter_mut().for_each(Self::push_null);
    }

    fn push_count(&mut self, count: u32) {
        let first = if count == 0 { 0 } else { self.elements };
        self.nodes.extend(count.to_be_bytes());
        self.nodes.extend(first.to_be_bytes());
        self.elements = self.elements.saturating_add(count);
    }

    /// Takes the value at the start of `bytes`; gives what is behind it.
    fn take(&mut self, rows: &Rows<'_>, bytes: &'a [u8]) -> Result<&'a [u8]> {
        let cut = || Error::corrupt("the number of elements of an array", "the end of its bytes");
        match self.node.carbon_type {
            CarbonType::Array | CarbonType::Map => {
                let (count, mut rest) = bytes.split_first_chunk().ok_or_else(cut)?;
                let count = i32::from_be_bytes(*count);
                if count == -1 {
                    self.push_null();
                    return Ok(rest);
                }
                // Every element has some bytes.
                let count = match u32::try_from(count) {
                    Ok(count) if usize::try_from(count).is_ok_and(|count| count <= rest.len()) => count,
                    _ => return Err(Error::corrupt(format!("elements in {} bytes", rest.len()), count)),
                };
                self.push_count(count);
                for _ in 0..count {
                    if self.node.carbon_type == CarbonType::Map {
                        rest = fields(rest, self.children.len())?;
                    }
                    for child in &mut self.children {
                        rest = child.take(rows, rest)?;
                    }
                }
                Ok(rest)
            }
            CarbonType::Struct => {
                let mut rest = fields(bytes, self.children.len())?;
                for child in &mut self.children {
                    rest = child.take(rows, rest)?;
                }
                Ok(rest)
            }
            _ => {
                let (value, rest) = rows.child_form(self.node).take(bytes)?;
                self.leaves.push(Some(value));
                Ok(rest)
            }
        }
    }

    fn finish(self, rows: &Rows<'_>) -> Result<ArrayRef> {
        let Self { node, leaves, nodes, children, .. } = self;
        let mut children =
            children.into_iter().map(|child| child.finish(rows)).collect::<Result<Vec<_>>>()?;
        match (node.carbon_type, children.as_mut_slice()) {
            (CarbonType::Array, [items]) => nested::list(node, &nodes, items),
            (CarbonType::Map, [keys, values]) => {
                nested::map(node, &nodes, &(ArrayRef::clone(keys), ArrayRef::clone(values)))
            }
            (CarbonType::Struct, _) => nested::structs(node, children),
            (CarbonType::Array | CarbonType::Map, _) => Err(Error::invalid("an array without elements")),
            _ => rows.array(node, &leaves),
        }
    }
}

/// Cuts off the number of fields of a struct. It is never 0, so the two widths cannot be taken for each other.
fn fields(bytes: &[u8], wanted: usize) -> Result<&[u8]> {
    if let Some((count, rest)) = bytes.split_first_chunk()
        && usize::from(u16::from_be_bytes(*count)) == wanted
    {
        return Ok(rest);
    }
    match bytes.split_first_chunk() {
        Some((count, rest)) if usize::try_from(u32::from_be_bytes(*count)) == Ok(wanted) => Ok(rest),
        _ => {
            let found = format!("{:02x?}", bytes.get(..4.min(bytes.len())).unwrap_or_default());
            Err(Error::corrupt(format!("a struct of {wanted} fields"), found))
        }
    }
}
