//! Cells of the maps of a VARIANT: each says its type.
//!
//! ```text
//! u8 field type | payload
//! numbers, dates, addresses   the cell as in memory
//! decimals                    u8 precision | u8 scale | value
//! DATETIMEV2, TIMESTAMPTZ     u8 scale | u64
//! STRING, JSONB               u64 length | bytes
//! ARRAY                       u64 count | cells
//! ```

use arrow_buffer::MutableBuffer;
use pilaster_core::{Error, Limits, Result};

use super::cells::Cell;
use super::types::{FieldType, Physical};
use super::zero_date;
use crate::json_text::{JsonShape, write_json};
use crate::{decimal, jsonb};

/// The type that stands for null.
const NONE: u8 = 22;

/// The JSON text of a cell.
pub(crate) fn to_text(cell: &[u8], limits: &Limits) -> Result<String> {
    let (mut rest, mut text) = (cell, String::new());
    write(&mut rest, limits.depth, &mut text)?;
    if !rest.is_empty() {
        return Err(Error::corrupt("the end of a VARIANT cell", format!("{} more bytes", rest.len())));
    }
    Ok(text)
}

fn take<'a>(rest: &mut &'a [u8], bytes: usize) -> Result<&'a [u8]> {
    let (taken, after) = rest.split_at_checked(bytes).ok_or_else(|| {
        Error::corrupt(format!("{bytes} bytes of a VARIANT cell"), format!("{} bytes", rest.len()))
    })?;
    *rest = after;
    Ok(taken)
}

fn take_byte(rest: &mut &[u8]) -> Result<u8> {
    Ok(take(rest, 1)?.first().copied().unwrap_or_default())
}

fn take_length(rest: &mut &[u8]) -> Result<usize> {
    let length = take(rest, 8)?.first_chunk().map_or(0, |eight| u64::from_le_bytes(*eight));
    usize::try_from(length).map_err(|_| Error::corrupt("a length", length))
}

fn write(rest: &mut &[u8], depth: u32, out: &mut String) -> Result<()> {
    let kind = take_byte(rest)?;
    if kind == NONE {
        out.push_str("null");
        return Ok(());
    }
    let field_type = FieldType::from_number(i32::from(kind))?;
    match field_type {
        FieldType::Char | FieldType::Varchar | FieldType::String => {
            let length = take_length(rest)?;
            let bytes = take(rest, length)?;
            let text =
                std::str::from_utf8(bytes).map_err(|_| Error::corrupt("text in UTF-8", "other bytes"))?;
            jsonb::write_string(text, out);
        }
        FieldType::Jsonb => {
            let length = take_length(rest)?;
            jsonb::write_document(take(rest, length)?, depth, out)?;
        }
        FieldType::Array => {
            let count = take_length(rest)?;
            let depth = depth
                .checked_sub(1)
                .ok_or_else(|| Error::corrupt("arrays nested less deeply", "more levels"))?;
            // A cell takes a byte or more.
            if count > rest.len() {
                return Err(Error::corrupt(format!("{count} cells"), format!("{} bytes", rest.len())));
            }
            out.push('[');
            for number in 0..count {
                if number > 0 {
                    out.push(',');
                }
                write(rest, depth, out)?;
            }
            out.push(']');
        }
        FieldType::Date | FieldType::DateTime => write_old_date(take(rest, 8)?, field_type, out),
        _ => write_fixed(field_type, rest, out)?,
    }
    Ok(())
}

fn write_fixed(field_type: FieldType, rest: &mut &[u8], out: &mut String) -> Result<()> {
    match field_type {
        FieldType::Decimal
        | FieldType::Decimal32
        | FieldType::Decimal64
        | FieldType::Decimal128
        | FieldType::Decimal256 => {
            let (_precision, scale) = (take_byte(rest)?, take_byte(rest)?);
            // In memory the old decimal is one integer of 16 bytes. Any integer has a text, also one with more digits
            // than the precision says: an Arrow decimal would lose them.
            let stored = if field_type == FieldType::Decimal { FieldType::Decimal128 } else { field_type };
            out.push_str(&decimal::text(take(rest, fixed_width(stored)?)?, u32::from(scale))?);
            return Ok(());
        }
        FieldType::DateTimeV2 | FieldType::TimestampTz => {
            take_byte(rest)?;
        }
        _ => {}
    }
    let mut cell = MutableBuffer::default();
    cell.extend_from_slice(take(rest, fixed_width(field_type)?)?);
    let array = Cell::of_type(field_type, None, None)?.fixed_array(cell)?;
    zero_date::refuse_in(&array)?;
    write_json(&array, 0, &JsonShape::Value, out)
}

fn fixed_width(field_type: FieldType) -> Result<usize> {
    match field_type.physical() {
        Physical::Fixed(width) => Ok(width),
        _ => Err(Error::unsupported(format!("a VARIANT cell of type {field_type}"))),
    }
}

/// `u16 (second << 4 | type << 1), u8 minute, u8 hour, u8 day, u8 month, u16 year`
fn write_old_date(cell: &[u8], field_type: FieldType, out: &mut String) {
    let &[a, b, minute, hour, day, month, c, d] = cell else { return };
    let (second, year) = (u16::from_le_bytes([a, b]) >> 4, u16::from_le_bytes([c, d]));
    let date = format!("{year:04}-{month:02}-{day:02}");
    let text = match field_type {
        FieldType::Date => date,
        _ => format!("{date} {hour:02}:{minute:02}:{second:02}"),
    };
    jsonb::write_string(&text, out);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_form_of_a_cell() {
        for (cell, expected) in [
            (&b"\x16"[..], "null"),
            (b"\x18\x01", "true"),
            (b"\x01\xff", "-1"),
            (b"\x07\x05\0\0\0\0\0\0\0", "5"),
            (b"\x1a\x02\0\0\0\0\0\0\0hi", "\"hi\""),
            (b"\x13\x02\0\0\0\0\0\0\0\x01\x01\x16", "[1,null]"),
            (b"\x22\x02\0\0\0\0\0\0\0\x01\x02", "false"),
            (b"\x1f\x09\x02\x7b\0\0\0", "1.23"),
            // More digits than the precision of 8 says.
            (b"\x1f\x08\x08\x08\x28\x8a\x08", "1.43271944"),
            (b"\x26\x04\x03\x02\x01", "\"1.2.3.4\""),
            (b"\x0f\xb6\x03\x3b\x17\x1f\x0c\xcf\x07", "\"1999-12-31 23:59:59\""),
        ] {
            assert_eq!(to_text(cell, &Limits::default()).unwrap(), expected, "{}", cell.escape_ascii());
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_json_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            if let Ok(text) = to_text(&bytes, &Limits::default()) {
                prop_assert!(serde_json::from_str::<serde_json::Value>(&text).is_ok(), "{}", text);
            }
        }
    }
}
