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
use pilaster_core::{Error, Limits, Result};

use super::rows::{CELL_BYTES, Rows};
use crate::file::page::nested;
use crate::file::types::{CarbonType, ColumnNode};

/// The values of a nested column; none where a row has none.
pub(super) fn array(rows: &Rows<'_>, node: &ColumnNode, column: &[Option<&[u8]>]) -> Result<ArrayRef> {
    let mut values = Values::new(node);
    let mut cells = Cells { limits: &rows.file.limits, count: 0 };
    for value in column {
        match value {
            None => values.push_null(&mut cells)?,
            Some(bytes) => {
                let rest = values.take(rows, bytes, &mut cells)?;
                if !rest.is_empty() {
                    let found = format!("{} bytes more", rest.len());
                    return Err(Error::corrupt(format!("a value of column {:?}", node.field.name()), found));
                }
            }
        }
    }
    values.finish(rows)
}

/// Counts what was pushed into all nodes of a column: a null of few bytes is a cell in every node below it.
struct Cells<'l> {
    limits: &'l Limits,
    count: u64,
}

impl Cells<'_> {
    fn push(&mut self) -> Result<()> {
        self.count = self.count.saturating_add(1);
        self.limits.decoded(self.count.saturating_mul(CELL_BYTES)).map(|_| ())
    }
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

    fn push_null(&mut self, cells: &mut Cells<'_>) -> Result<()> {
        cells.push()?;
        match self.node.carbon_type {
            CarbonType::Array | CarbonType::Map => self.push_count(1),
            CarbonType::Struct => {}
            _ => self.leaves.push(None),
        }
        self.children.iter_mut().try_for_each(|child| child.push_null(cells))
    }

    fn push_count(&mut self, count: u32) {
        let first = if count == 0 { 0 } else { self.elements };
        self.nodes.extend(count.to_be_bytes());
        self.nodes.extend(first.to_be_bytes());
        self.elements = self.elements.saturating_add(count);
    }

    /// Takes the value at the start of `bytes`; gives what is behind it.
    fn take(&mut self, rows: &Rows<'_>, bytes: &'a [u8], cells: &mut Cells<'_>) -> Result<&'a [u8]> {
        let cut = || Error::corrupt("the number of elements of an array", "the end of its bytes");
        cells.push()?;
        match self.node.carbon_type {
            CarbonType::Array | CarbonType::Map => {
                let (count, mut rest) = bytes.split_first_chunk().ok_or_else(cut)?;
                let count = i32::from_be_bytes(*count);
                if count == -1 {
                    self.push_null(cells)?;
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
                        rest = child.take(rows, rest, cells)?;
                    }
                }
                Ok(rest)
            }
            CarbonType::Struct => {
                let mut rest = fields(bytes, self.children.len())?;
                for child in &mut self.children {
                    rest = child.take(rows, rest, cells)?;
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
            (CarbonType::Array | CarbonType::Map, _) => Err(Error::internal("an array without elements")),
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

#[cfg(test)]
mod tests {
    use arrow_array::Array;
    use pilaster_core::ErrorKind;

    use super::super::sample;
    use super::*;

    /// A null is few bytes, and a cell in every column below it.
    #[test]
    fn nulls_of_wide_structs_are_within_the_limits() {
        let (fields, rows) = (100, 5000);
        let nulls = [0, 1, 1].repeat(rows);
        let bytes = sample::file(&sample::structure(fields, sample::DOUBLE), &[(5000, None, nulls)]);
        let read = |decoded_bytes: u64| {
            let limits = Limits { decoded_bytes, ..Limits::default() };
            let file = sample::open(bytes.clone(), limits).unwrap();
            file.stream.as_ref().unwrap().decode(&file, 0, &file.columns[0], rows)
        };
        let array = read(101 * 5000 * CELL_BYTES).unwrap();
        assert_eq!((array.len(), array.null_count()), (5000, 5000));
        let error = read(101 * 5000 * CELL_BYTES - 1).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::LimitExceeded { .. }), "{error}");
        // So are the values themselves.
        assert!(read(5000 * CELL_BYTES - 1).is_err());
    }
}
