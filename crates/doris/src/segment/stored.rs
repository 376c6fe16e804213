//! From an Arrow value back to the cell a file would hold: for hashing and for keys.

use std::net::{Ipv4Addr, Ipv6Addr};

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Decimal128Type, Decimal256Type, TimestampMicrosecondType, TimestampSecondType,
};
use pilaster_core::Literal;

use super::cells::{Cell, decimal_v2_cell};
use crate::calendar;

/// Longer than any CHAR: Doris has them up to 255 bytes.
const LONGEST_CHAR: usize = 4096;

/// The cell of a value, of the column's type; `None` if it is null or no cell can be it. CHAR cells are filled up to
/// `length`.
pub(crate) fn cell(kind: &Cell, length: i32, value: &Literal) -> Option<Vec<u8>> {
    if value.is_null() || value.array().data_type() != &kind.arrow() {
        return None;
    }
    let array = value.array();
    let text = || Some(array.as_string_view_opt()?.value(0));
    match kind {
        Cell::Bool => Some(vec![u8::from(array.as_boolean_opt()?.value(0))]),
        Cell::Number(_, width) => {
            let data = array.to_data();
            let start = data.offset().checked_mul(*width)?;
            Some(data.buffers().first()?.get(start..start.checked_add(*width)?)?.to_vec())
        }
        Cell::LargeInt => {
            let wide = array.as_primitive_opt::<Decimal256Type>()?.value(0);
            Some(wide.to_i128()?.to_le_bytes().to_vec())
        }
        Cell::Decimal { width: 32, .. } => {
            Some(array.as_primitive_opt::<Decimal256Type>()?.value(0).to_le_bytes().to_vec())
        }
        Cell::Decimal { width, .. } => {
            let wide = array.as_primitive_opt::<Decimal128Type>()?.value(0);
            let fits = match width {
                4 => i32::try_from(wide).is_ok(),
                8 => i64::try_from(wide).is_ok(),
                _ => true,
            };
            fits.then(|| wide.to_le_bytes().into_iter().take(*width).collect())
        }
        Cell::DecimalV2 => {
            decimal_v2_cell(array.as_primitive_opt::<Decimal128Type>()?.value(0)).map(|cell| cell.to_vec())
        }
        Cell::Date => {
            let packed = calendar::pack_days(array.as_primitive_opt::<Date32Type>()?.value(0))?;
            Some(packed.to_le_bytes().into_iter().take(3).collect())
        }
        Cell::DateV2 => {
            let packed = calendar::pack_days(array.as_primitive_opt::<Date32Type>()?.value(0))?;
            Some(packed.to_le_bytes().to_vec())
        }
        Cell::DateTime => {
            let digits = calendar::second_digits(array.as_primitive_opt::<TimestampSecondType>()?.value(0))?;
            Some(digits.to_le_bytes().to_vec())
        }
        Cell::DateTimeV2 | Cell::TimestampTz => {
            let packed =
                calendar::pack_micros(array.as_primitive_opt::<TimestampMicrosecondType>()?.value(0))?;
            Some(packed.to_le_bytes().to_vec())
        }
        // Only the text that reading gives can be equal to what is read.
        Cell::Ipv4 => {
            let address: Ipv4Addr = text()?.parse().ok()?;
            (address.to_string() == text()?).then(|| address.to_bits().to_le_bytes().to_vec())
        }
        Cell::Ipv6 => {
            let address: Ipv6Addr = text()?.parse().ok()?;
            (address.to_string() == text()?).then(|| address.to_bits().to_le_bytes().to_vec())
        }
        Cell::Text => Some(text()?.as_bytes().to_vec()),
        Cell::Char => {
            let mut padded = text()?.as_bytes().to_vec();
            // A file may claim any length; without a cell nothing is looked up.
            let length = usize::try_from(length).ok().filter(|length| *length <= LONGEST_CHAR)?;
            (padded.len() <= length).then_some(())?;
            padded.resize(length, 0);
            Some(padded)
        }
        Cell::Bytes | Cell::Jsonb => None,
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::StringViewArray;

    use super::*;

    #[test]
    fn a_char_is_filled_up_to_a_length_that_chars_have() {
        let text = Literal::from_array(&StringViewArray::from(vec!["ab"]), 0);
        let at = |length| cell(&Cell::Char, length, &text);
        assert_eq!(at(2).unwrap(), b"ab");
        assert_eq!(at(4).unwrap(), b"ab\0\0");
        assert_eq!(at(4096).unwrap().len(), 4096);
        for length in [1, -1, 4097, i32::MAX] {
            assert_eq!(at(length), None, "{length}");
        }
    }
}
