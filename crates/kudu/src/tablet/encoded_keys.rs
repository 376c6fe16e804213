//! The encoded primary keys of a batch of rows.

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_data::ArrayData;
use arrow_schema::DataType;
use pilaster_core::merge::{Keys, SomeRows};
use pilaster_core::{Error, Result};

use super::schema::KuduColumn;
use crate::cfile::{KuduType, Physical};
use crate::key::{self, KeyPart};

/// Encodes the keys of rows whose columns begin with the key columns, in place of those in `to`: they compare as bytes, with
/// each other and with the bounds of rowsets.
pub(crate) fn encode_keys(columns: &[KuduColumn], rows: &SomeRows, to: &mut Keys) -> Result<()> {
    to.clear(rows.count);
    let cells = columns.iter().zip(&rows.arrays).map(|(column, array)| KeyCells::new(column, array));
    let cells = cells.collect::<Result<Vec<_>>>()?;
    for row in 0..rows.count {
        to.push(|bytes| {
            for (number, (column, cells)) in columns.iter().zip(&cells).enumerate() {
                let is_last = number.saturating_add(1) == columns.len();
                let part = if is_last { KeyPart::Last } else { KeyPart::NotLast };
                key::encode(column.data_type, cells.get(row)?, part, bytes)?;
            }
            Ok(())
        })?;
    }
    Ok(())
}

/// The cells of a key column in the form in which they are stored.
enum KeyCells<'a> {
    Fixed { data: ArrayData, width: usize, stride: usize },
    Bytes(&'a ArrayRef),
    Text(&'a ArrayRef),
}

impl<'a> KeyCells<'a> {
    fn new(column: &KuduColumn, array: &'a ArrayRef) -> Result<Self> {
        if array.null_count() > 0 {
            return Err(Error::corrupt(format!("values in key column {:?}", column.name), "a null"));
        }
        Ok(match (column.data_type.physical(), array.data_type()) {
            (Physical::Binary, DataType::Utf8View) => Self::Text(array),
            (Physical::Binary, DataType::BinaryView) => Self::Bytes(array),
            (Physical::Fixed(width), other) => match other.primitive_width() {
                Some(stride) if stride >= width => Self::Fixed { data: array.to_data(), width, stride },
                _ => return Err(not_a_key(column.data_type)),
            },
            _ => return Err(not_a_key(column.data_type)),
        })
    }

    fn get(&self, row: usize) -> Result<&[u8]> {
        Ok(match self {
            Self::Bytes(array) => array.as_binary_view().value(row),
            Self::Text(array) => array.as_string_view().value(row).as_bytes(),
            Self::Fixed { data, width, stride } => {
                let start = data.offset().saturating_add(row).saturating_mul(*stride);
                let values = data.buffers().first().map(|buffer| buffer.as_slice()).unwrap_or_default();
                // A wider number of Arrow has the same low bytes.
                let cell = values.get(start..).and_then(|rest| rest.get(..*width));
                cell.ok_or_else(|| Error::internal(format!("no key in row {row}")))?
            }
        })
    }
}

fn not_a_key(data_type: KuduType) -> Error {
    Error::invalid(format!("{data_type} cannot be a key"))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{Int32Array, StringViewArray};
    use proptest::prelude::*;

    use super::*;
    use crate::messages::{ColumnSchemaPb, SchemaPb};
    use crate::tablet::KuduSchema;

    /// A key of a text and a number.
    fn columns() -> Vec<KuduColumn> {
        let column = |(number, data_type)| ColumnSchemaPb {
            id: Some(number),
            name: Some(format!("k{number}")),
            data_type: Some(data_type),
            is_key: Some(true),
            ..ColumnSchemaPb::default()
        };
        let columns = [(0, 8), (1, 5)].map(column).to_vec();
        KuduSchema::parse(&SchemaPb { columns }).unwrap().columns
    }

    proptest! {
        #[test]
        fn keys_compare_as_the_rows_do(rows in prop::collection::vec(("[a\0b]{0,3}", -3i32..3), 1..40)) {
            let mut rows = rows;
            rows.sort();
            let texts: ArrayRef = Arc::new(StringViewArray::from_iter_values(rows.iter().map(|(text, _)| text)));
            let numbers: ArrayRef = Arc::new(Int32Array::from_iter_values(rows.iter().map(|(_, number)| *number)));
            let mut keys = Keys::default();
            // Also of arrays that are parts of others.
            let from = rows.len() / 3;
            let count = rows.len() - from;
            let arrays = vec![texts.slice(from, count), numbers.slice(from, count)];
            encode_keys(&columns(), &SomeRows { arrays, count }, &mut keys).unwrap();
            prop_assert_eq!(keys.len(), count);
            for row in 1..count {
                prop_assert_eq!(rows[from + row - 1].cmp(&rows[from + row]), keys.get(row - 1).cmp(keys.get(row)));
            }
            for row in 0..count {
                for start in 0..=row {
                    let found = keys.first_not_below(keys.get(row), start, count);
                    let expected = (start..count).find(|at| keys.get(*at) >= keys.get(row)).unwrap_or(count);
                    prop_assert_eq!(found, expected);
                }
            }
        }
    }
}
