//! Keys that compare as bytes.
//!
//! ```text
//! key = for each column: marker | value      01 null, no value    02 a value follows
//!
//! signed numbers, decimals, DATETIME    big-endian, sign bit flipped
//! booleans, other dates, addresses      big-endian
//! CHAR, VARCHAR, STRING                 the bytes, cut in short keys; no end mark
//! ```

use super::cells::Cell;

const NULL: u8 = 0x01;
pub(crate) const VALUE: u8 = 0x02;

/// Appends a column's part of a key that is null.
pub(crate) fn append_null(key: &mut Vec<u8>) {
    key.push(NULL);
}

/// Appends a column's part of a key: the marker and the value of a stored cell, strings cut to `most` bytes. `None` if
/// cells of this kind are never in keys.
pub(crate) fn append(kind: &Cell, cell: &[u8], most: usize, key: &mut Vec<u8>) -> Option<()> {
    key.push(VALUE);
    match kind {
        Cell::Number(arrow, _) if arrow.is_floating() => {
            let mut bytes: Vec<u8> = cell.iter().rev().copied().collect();
            let is_negative = bytes.first().is_some_and(|first| first & 0x80 != 0);
            if is_negative {
                bytes.iter_mut().for_each(|byte| *byte = !*byte);
            } else if let Some(first) = bytes.first_mut() {
                *first ^= 0x80;
            }
            key.extend(bytes);
        }
        Cell::Number(..) | Cell::LargeInt | Cell::Decimal { .. } | Cell::DateTime => signed(cell, key),
        Cell::DecimalV2 => {
            let (whole, fraction) = cell.split_at_checked(8)?;
            signed(whole, key);
            signed(fraction, key);
        }
        Cell::Bool
        | Cell::Date
        | Cell::DateV2
        | Cell::DateTimeV2
        | Cell::TimestampTz
        | Cell::Ipv4
        | Cell::Ipv6 => {
            key.extend(cell.iter().rev());
        }
        Cell::Char | Cell::Text => key.extend_from_slice(cell.get(..most).unwrap_or(cell)),
        Cell::Bytes | Cell::Jsonb => return None,
    }
    Some(())
}

fn signed(cell: &[u8], key: &mut Vec<u8>) {
    let at = key.len();
    key.extend(cell.iter().rev());
    if let Some(first) = key.get_mut(at) {
        *first ^= 0x80;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_schema::DataType;
    use proptest::prelude::*;

    fn key(kind: &Cell, cell: &[u8]) -> Vec<u8> {
        let mut key = Vec::new();
        append(kind, cell, usize::MAX, &mut key).unwrap();
        key
    }

    proptest! {
        #[test]
        fn keys_order_as_their_values(a: i64, b: i64, x: f64, y: f64) {
            let number = Cell::Number(DataType::Int64, 8);
            prop_assert_eq!(key(&number, &a.to_le_bytes()).cmp(&key(&number, &b.to_le_bytes())), a.cmp(&b));
            let float = Cell::Number(DataType::Float64, 8);
            prop_assert_eq!(key(&float, &x.to_le_bytes()).cmp(&key(&float, &y.to_le_bytes())), x.total_cmp(&y));
        }
    }
}
