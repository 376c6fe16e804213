//! Smallest and largest values of a segment and of its pages.
//!
//! Bounds are text: numbers in decimal digits (decimals without their point, except the old one), dates as
//! `YYYY-MM-DD`, strings as they are but cut to 512 bytes, the last byte of a cut upper bound increased by one.

use std::sync::Arc;

use arrow_array::types::{Decimal128Type, Decimal256Type};
use arrow_array::{ArrayRef, BooleanArray, PrimitiveArray, StringArray, StringViewArray};
use arrow_buffer::i256;
use arrow_cast::cast;
use arrow_schema::DataType;
use pilaster_core::Result;

use super::cells::Cell;
use crate::messages::ZoneMapPb;

/// Strings are cut to this many bytes.
pub(crate) const CUT_BYTES: usize = 512;

/// Digits and sign of the longest number of 256 bits.
const LONGEST_NUMBER: usize = 78;

/// For each zone a value that none in it is below and one that none is above, null where not known; `None` for types
/// whose bounds say nothing about their order in Arrow.
pub(crate) fn bounds(cell: &Cell, zones: &[ZoneMapPb]) -> Result<(Option<ArrayRef>, Option<ArrayRef>)> {
    let known = |zone: &ZoneMapPb| zone.has_not_null != Some(false) && zone.pass_all != Some(true);
    let side = |bound: &dyn Fn(&ZoneMapPb) -> Option<&[u8]>, is_max: bool| -> Result<Option<ArrayRef>> {
        let texts: Vec<Option<&[u8]>> =
            zones.iter().map(|zone| bound(zone).filter(|_| known(zone))).collect();
        parse(cell, &texts, is_max)
    };
    Ok((side(&|zone| zone.min.as_deref(), false)?, side(&|zone| zone.max.as_deref(), true)?))
}

/// A number of 256 bits; `None` if the text is longer than any, which the parser would follow on the stack.
pub(crate) fn large_number(text: &str) -> Option<i256> {
    (text.len() <= LONGEST_NUMBER).then(|| i256::from_string(text)).flatten()
}

fn parse(cell: &Cell, texts: &[Option<&[u8]>], is_max: bool) -> Result<Option<ArrayRef>> {
    let as_text = || texts.iter().map(|text| std::str::from_utf8((*text)?).ok());
    Ok(Some(match cell {
        Cell::Bool => Arc::new(
            as_text()
                .map(|text| {
                    Some(match text? {
                        "0" => false,
                        "1" => true,
                        _ => return None,
                    })
                })
                .collect::<BooleanArray>(),
        ),
        Cell::LargeInt | Cell::Decimal { width: 32, .. } => {
            let values: PrimitiveArray<Decimal256Type> = as_text().map(|text| large_number(text?)).collect();
            Arc::new(values.with_data_type(cell.arrow()))
        }
        Cell::Decimal { .. } => {
            let values: PrimitiveArray<Decimal128Type> = as_text().map(|text| text?.parse().ok()).collect();
            Arc::new(values.with_data_type(cell.arrow()))
        }
        Cell::Text | Cell::Char => {
            let is_padded = *cell == Cell::Char;
            let values = texts.iter().map(|text| string_bound((*text)?, is_padded, is_max));
            Arc::new(values.collect::<StringViewArray>())
        }
        Cell::Number(DataType::Float32 | DataType::Float64, _) => return Ok(None),
        Cell::Number(..)
        | Cell::Date
        | Cell::DateV2
        | Cell::DateTime
        | Cell::DateTimeV2
        | Cell::TimestampTz
        | Cell::DecimalV2 => {
            // What does not parse becomes null, which is "not known".
            cast(&as_text().collect::<StringArray>(), &cell.arrow())?
        }
        Cell::Ipv4 | Cell::Ipv6 | Cell::Bytes | Cell::Jsonb => return Ok(None),
    }))
}

/// A bound of strings as text; `None` if it is none.
fn string_bound(bytes: &[u8], is_padded: bool, is_max: bool) -> Option<&str> {
    let without_padding =
        || bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last.saturating_add(1));
    let length = if is_padded { without_padding() } else { bytes.len() };
    let bytes = bytes.get(..length)?;
    match std::str::from_utf8(bytes) {
        Ok(text) => Some(text),
        // The beginning of a string is not above it.
        Err(error) if !is_max => std::str::from_utf8(bytes.get(..error.valid_up_to())?).ok(),
        Err(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_of_too_many_digits_is_not_known() {
        let most = "9".repeat(76);
        assert_eq!(large_number(&format!("-{most}")), i256::from_string(&format!("-{most}")));
        assert_eq!(large_number(&"1".repeat(10_000_000)), None);
    }

    #[test]
    fn cut_strings_are_bounds_all_the_same() {
        let cut = "ä".as_bytes();
        assert_eq!(string_bound(&cut[..1], false, false), Some(""));
        assert_eq!(string_bound(&cut[..1], false, true), None);
        assert_eq!(string_bound(b"a\0\0", true, true), Some("a"));
        assert_eq!(string_bound(b"a\0\0", false, true), Some("a\0\0"));
    }

    #[test]
    fn zones_that_say_nothing_have_no_bounds() {
        let zone = |pass_all, has_not_null| ZoneMapPb {
            min: Some(b"1".to_vec()),
            max: Some(b"2".to_vec()),
            has_null: Some(false),
            has_not_null: Some(has_not_null),
            pass_all: Some(pass_all),
            ..ZoneMapPb::default()
        };
        let zones = [zone(false, true), zone(true, true), zone(false, false)];
        let (min, max) = bounds(&Cell::Number(DataType::Int32, 4), &zones).unwrap();
        for bound in [min.unwrap(), max.unwrap()] {
            assert_eq!((0..3).map(|zone| bound.is_valid(zone)).collect::<Vec<_>>(), [true, false, false]);
        }
    }
}
