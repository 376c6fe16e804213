//! Decimals as unscaled little-endian integers.

use arrow_buffer::i256;
use pilaster_core::{Error, Result};

/// More digits after the point than any decimal has.
const MAX_SCALE: u32 = 76;

/// A signed little-endian integer of up to 32 bytes.
pub(crate) fn integer(stored: &[u8]) -> i256 {
    let is_negative = stored.last().is_some_and(|byte| byte & 0x80 != 0);
    let mut bytes = if is_negative { [0xff; 32] } else { [0; 32] };
    for (to, from) in bytes.iter_mut().zip(stored) {
        *to = *from;
    }
    i256::from_le_bytes(bytes)
}

/// The decimal text of an unscaled integer with `scale` digits after the point.
pub(crate) fn text(stored: &[u8], scale: u32) -> Result<String> {
    if scale > MAX_SCALE {
        return Err(Error::corrupt(format!("at most {MAX_SCALE} digits after the point"), scale));
    }
    let digits = integer(stored).to_string();
    let (sign, digits) = match digits.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", digits.as_str()),
    };
    if scale == 0 {
        return Ok(format!("{sign}{digits}"));
    }
    let scale = scale as usize;
    let padded = format!("{digits:0>width$}", width = scale.saturating_add(1));
    let (whole, fraction) = padded.split_at_checked(padded.len().saturating_sub(scale)).unwrap_or_default();
    Ok(format!("{sign}{whole}.{fraction}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_point_stands_where_the_scale_says() {
        for (value, scale, expected) in
            [(-123i64, 2, "-1.23"), (5, 3, "0.005"), (-5, 3, "-0.005"), (70, 0, "70"), (0, 1, "0.0")]
        {
            assert_eq!(text(&value.to_le_bytes(), scale).unwrap(), expected);
        }
        assert!(text(&[0], 77).is_err());
    }
}
