//! Array cells outside CFiles: in changes, log entries and defaults.
//!
//! A cell is a FlatBuffers buffer whose root is a table `{ data: union, validity: [ubyte] }`. Each member of the union is a
//! table with one vector `values`; the members are, from 1: int8, uint8, int16, uint16, int32, uint32, int64, uint64,
//! float, double, string, binary (a vector of tables with a vector of bytes). A set validity bit is a value; no
//! validity means all are. An empty buffer is an empty array. Booleans are stored as uint8.
//!
//! Read from Kudu's 1.19 source; no released server writes it.

use std::sync::Arc;

use arrow_array::{ArrayRef, ListArray};
use arrow_buffer::{NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::Field;
use pilaster_core::{Error, Result};
use pilaster_encoding::bits;

use super::cells::values_to_array;
use super::schema::KuduColumn;
use crate::cfile::Physical;

/// Kudu takes no longer arrays.
const MAX_ELEMENTS: usize = 65_536;
/// Union member of binary elements, each a table of its own.
const BINARY_MEMBER: u8 = 12;

/// Cells of an array column as a list array.
pub(super) fn to_array(column: &KuduColumn, cells: &[Option<&[u8]>]) -> Result<ArrayRef> {
    let mut elements: Vec<Option<&[u8]>> = Vec::new();
    let mut offsets = Vec::with_capacity(cells.len().saturating_add(1));
    offsets.push(0i32);
    for cell in cells {
        if let Some(cell) = cell {
            elements.extend(parse(column, cell)?);
        }
        offsets.push(i32::try_from(elements.len()).map_err(|_| Error::invalid("more than 2^31 elements"))?);
    }
    let values = values_to_array(column, &elements)?;
    let nulls = NullBuffer::from_iter(cells.iter().map(Option::is_some));
    let field = Arc::new(Field::new("item", values.data_type().clone(), true));
    let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets));
    Ok(Arc::new(ListArray::try_new(field, offsets, values, (nulls.null_count() > 0).then_some(nulls))?))
}

/// The elements of one cell.
fn parse<'a>(column: &KuduColumn, cell: &'a [u8]) -> Result<Vec<Option<&'a [u8]>>> {
    if cell.is_empty() {
        return Ok(Vec::new());
    }
    parse_buffer(column, cell).ok_or_else(|| Error::corrupt("an array cell", "bytes that are none"))
}

fn parse_buffer<'a>(column: &KuduColumn, cell: &'a [u8]) -> Option<Vec<Option<&'a [u8]>>> {
    let buffer = Buffer(cell);
    let root = buffer.follow(0)?;
    let member = buffer.field(root, 0).map_or(Some(0), |at| cell.get(at).copied())?;
    let content = buffer.follow(buffer.field(root, 1)?)?;
    let vector = buffer.follow(buffer.field(content, 0)?)?;
    let count = buffer.word(vector)? as usize;
    if count > MAX_ELEMENTS {
        return None;
    }
    let first = vector.checked_add(4)?;
    let values: Vec<&[u8]> = match column.data_type.physical() {
        Physical::Fixed(width) => fixed_elements(cell, first, count, width)?,
        Physical::Bool => fixed_elements(cell, first, count, 1)?,
        Physical::Binary => (0..count)
            .map(|index| {
                let element = buffer.follow(first.checked_add(index.checked_mul(4)?)?)?;
                let bytes =
                    if member == BINARY_MEMBER { buffer.follow(buffer.field(element, 0)?)? } else { element };
                let length = buffer.word(bytes)? as usize;
                let start = bytes.checked_add(4)?;
                cell.get(start..start.checked_add(length)?)
            })
            .collect::<Option<_>>()?,
    };
    let validity = match buffer.field(root, 2) {
        None => None,
        Some(at) => {
            let vector = buffer.follow(at)?;
            let length = buffer.word(vector)? as usize;
            let start = vector.checked_add(4)?;
            Some(cell.get(start..start.checked_add(length)?)?)
        }
    };
    let is_set = |index: usize| validity.is_none_or(|bytes| bytes.is_empty() || bits::get(bytes, index));
    Some(values.into_iter().enumerate().map(|(index, value)| is_set(index).then_some(value)).collect())
}

fn fixed_elements(cell: &[u8], first: usize, count: usize, width: usize) -> Option<Vec<&[u8]>> {
    let end = first.checked_add(count.checked_mul(width)?)?;
    Some(cell.get(first..end)?.chunks_exact(width).collect())
}

/// A FlatBuffers buffer, looked at with every bound checked.
struct Buffer<'a>(&'a [u8]);

impl Buffer<'_> {
    fn word(&self, at: usize) -> Option<u32> {
        self.0.get(at..)?.first_chunk::<4>().map(|four| u32::from_le_bytes(*four))
    }

    /// What an offset at `at` points to.
    fn follow(&self, at: usize) -> Option<usize> {
        at.checked_add(self.word(at)? as usize).filter(|target| *target < self.0.len())
    }

    /// Where field number `slot` of the table at `table` lies; `None` if it is absent.
    fn field(&self, table: usize, slot: usize) -> Option<usize> {
        let half = |at: usize| self.0.get(at..)?.first_chunk::<2>().map(|two| u16::from_le_bytes(*two));
        let back = i32::from_le_bytes(*self.0.get(table..)?.first_chunk::<4>()?);
        let vtable = usize::try_from(i64::try_from(table).ok()?.checked_sub(i64::from(back))?).ok()?;
        let entry = slot.checked_mul(2)?.checked_add(4)?;
        if entry.checked_add(2)? > usize::from(half(vtable)?) {
            return None;
        }
        match half(vtable.checked_add(entry)?)? {
            0 => None,
            offset => table.checked_add(usize::from(offset)),
        }
    }
}

/// Parses a cell as every kind of array.
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) fn parse_array_cells(cell: &[u8]) {
    use crate::messages::{ArrayTypePb, ColumnSchemaPb, NestedTypePb, SchemaPb};
    for element_type in 0..=20 {
        let nested = NestedTypePb { array: Some(ArrayTypePb { element_type: Some(element_type) }) };
        let column = ColumnSchemaPb {
            name: Some("column".into()),
            data_type: Some(21),
            nested_type: Some(nested),
            ..ColumnSchemaPb::default()
        };
        let schema = super::schema::KuduSchema::parse(&SchemaPb { columns: vec![column] });
        if let Some(column) = schema.ok().and_then(|schema| schema.columns.into_iter().next()) {
            let _ = to_array(&column, &[Some(cell), None]);
        }
    }
}
