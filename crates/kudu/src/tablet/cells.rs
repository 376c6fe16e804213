//! Cells as rows, changes and defaults hold them, as Arrow arrays.
//!
//! Numbers are little-endian, booleans one byte, strings the bytes; array cells are described in [`super::array_cell`].

use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray};
use arrow_buffer::{MutableBuffer, NullBuffer};
use arrow_schema::DataType;
use pilaster_core::views::{ByteKind, view_array};
use pilaster_core::{Error, Result};

use super::array_cell;
use super::schema::KuduColumn;
use crate::cfile::{Physical, Target, number_values};

/// Cells of one column as an array of the column's type; `None` is null.
pub(crate) fn to_array(column: &KuduColumn, cells: &[Option<&[u8]>]) -> Result<ArrayRef> {
    if column.is_array {
        return array_cell::to_array(column, cells);
    }
    values_to_array(column, cells)
}

/// As [`to_array`] for a column that is not an array, or for the elements of one that is.
pub(super) fn values_to_array(column: &KuduColumn, cells: &[Option<&[u8]>]) -> Result<ArrayRef> {
    let nulls = NullBuffer::from_iter(cells.iter().map(Option::is_some));
    let nulls = (nulls.null_count() > 0).then_some(nulls);
    let data_type = column.value_type();
    match column.data_type.physical() {
        Physical::Fixed(width) => {
            let mut bytes = MutableBuffer::with_capacity(cells.len().saturating_mul(width));
            for cell in cells {
                match cell {
                    Some(cell) if cell.len() == width => bytes.extend_from_slice(cell),
                    Some(cell) => return Err(wrong_size(column, width, cell.len())),
                    None => bytes.extend_zeros(width),
                }
            }
            let target = Target::new(column.data_type, Some(&data_type))?;
            number_values(bytes.into(), cells.len(), nulls, &target)
        }
        Physical::Bool => {
            let mut values = Vec::with_capacity(cells.len());
            for cell in cells {
                match cell {
                    Some([byte]) => values.push(Some(*byte != 0)),
                    Some(cell) => return Err(wrong_size(column, 1, cell.len())),
                    None => values.push(None),
                }
            }
            Ok(Arc::new(BooleanArray::from(values)))
        }
        Physical::Binary => {
            let (mut bytes, mut offsets) = (Vec::new(), Vec::with_capacity(cells.len().saturating_add(1)));
            offsets.push(0);
            for cell in cells {
                bytes.extend_from_slice(cell.unwrap_or_default());
                let end =
                    u32::try_from(bytes.len()).map_err(|_| Error::invalid("cells of more than 4 GiB"))?;
                offsets.push(end);
            }
            let kind = if data_type == DataType::Utf8View { ByteKind::Text } else { ByteKind::Binary };
            view_array(kind, bytes.into(), &offsets, nulls)
        }
    }
}

fn wrong_size(column: &KuduColumn, expected: usize, found: usize) -> Error {
    Error::corrupt(
        format!("a cell of {expected} bytes in column {:?}", column.name),
        format!("{found} bytes"),
    )
}

/// What rows written before the column existed read as: `count` times the read default, or null.
pub(crate) fn default_array(column: &KuduColumn, count: usize) -> Result<ArrayRef> {
    let cell = column.read_default.as_deref();
    if cell.is_none() && !column.is_nullable {
        return Err(Error::corrupt(
            format!("a default for column {:?}, which this rowset lacks", column.name),
            "none",
        ));
    }
    let one = to_array(column, &[cell])?;
    let indexes = arrow_array::UInt32Array::from(vec![0; count]);
    Ok(arrow_select::take::take(&one, &indexes, None)?)
}
