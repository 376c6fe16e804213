//! Checks that bytes are UTF-8, a whole buffer of strings at a time.

use crate::{DecodeError, Result};

/// Says whether `bytes` are UTF-8.
///
/// # Errors
/// With the position of the first byte that cannot be.
pub fn validate(bytes: &[u8]) -> Result<()> {
    if simdutf8::basic::from_utf8(bytes).is_ok() {
        return Ok(());
    }
    // The fast check does not say where; bad text is rare enough to be checked twice.
    let at = simdutf8::compat::from_utf8(bytes).err().map_or(0, |error| error.valid_up_to());
    let found = bytes.get(at).map_or_else(|| "the end".to_string(), |byte| format!("byte {byte:#04x}"));
    Err(DecodeError::new(at, "UTF-8 text", found))
}

/// Says whether every string `bytes[offsets[i]..offsets[i + 1]]` is UTF-8, by one pass over the whole buffer and a look at
/// the first byte of each string. Bytes before the first and after the last offset are not looked at.
///
/// # Errors
/// If the offsets do not ascend or leave the buffer, or with the position of the first byte that is not UTF-8 or is in
/// the middle of a character where a string ends.
///
/// ```
/// use pilaster_encoding::utf8::validate_slices;
///
/// assert!(validate_slices("aé".as_bytes(), &[0, 1, 3]).is_ok());
/// assert!(validate_slices("aé".as_bytes(), &[0, 2, 3]).is_err());
/// ```
pub fn validate_slices(bytes: &[u8], offsets: &[u32]) -> Result<()> {
    let (Some(&first), Some(&last)) = (offsets.first(), offsets.last()) else { return Ok(()) };
    check_offsets(bytes, offsets)?;
    let text = bytes.get(first as usize..last as usize).unwrap_or_default();
    if text.is_ascii() {
        return Ok(());
    }
    validate(text).map_err(|error| error.shifted(first as usize))?;
    let is_inside_character =
        |&&offset: &&u32| bytes.get(offset as usize).is_some_and(|byte| byte & 0xc0 == 0x80);
    // What lies after the last offset belongs to nobody, and before it the text is known to end well.
    let inner = offsets.split_last().map_or(&[][..], |(_, inner)| inner);
    if let Some(&offset) = inner.iter().filter(|&&offset| offset < last).find(is_inside_character) {
        return Err(DecodeError::new(offset as usize, "the start of a character", "the middle of one"));
    }
    Ok(())
}

/// Refuses offsets that descend or leave `bytes`.
///
/// # Errors
/// With the number of the first offset that descends, or the length of the bytes that one leaves.
pub fn check_offsets(bytes: &[u8], offsets: &[u32]) -> Result<()> {
    let ascend = |pair: &[u32]| matches!(pair, [start, end] if start <= end);
    // No early exit, so that the loop is vectorised.
    if !offsets.windows(2).fold(true, |all, pair| all & ascend(pair)) {
        let at = offsets.windows(2).position(|pair| !ascend(pair)).unwrap_or_default();
        let found = offsets.get(at.saturating_add(1)).copied().unwrap_or_default().to_string();
        return Err(DecodeError::new(at, "offsets that ascend", found));
    }
    match offsets.last() {
        Some(&last) if last as usize > bytes.len() => {
            let expected = format!("offsets of at most {}", bytes.len());
            Err(DecodeError::new(bytes.len(), expected, last.to_string()))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn says_where() {
        assert_eq!(validate(b"ab\xffcd").unwrap_err().at, 2);
        assert_eq!(validate_slices(b"..ab\xffcd", &[2, 3, 7]).unwrap_err().at, 4);
        assert_eq!(validate_slices("aé".as_bytes(), &[0, 2, 3]).unwrap_err().at, 2);
        assert!(validate_slices(b"ab\xff", &[0, 1, 2]).is_ok());
        assert!(validate_slices("é".as_bytes(), &[0, 1]).is_err());
        assert!(validate_slices(b"ab", &[0, 2, 1]).is_err());
        assert!(validate_slices(b"ab", &[0, 3]).is_err());
        assert!(validate_slices(b"ab", &[]).is_ok());
    }

    proptest! {
        #![proptest_config(crate::test_config())]
        #[test]
        fn agrees_with_each_string_alone(
            bytes in prop_oneof![prop::collection::vec(any::<u8>(), 0..12), "[aé€😀]{0,12}".prop_map(String::into_bytes), "[a-z]{0,40}".prop_map(String::into_bytes)],
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
        ) {
            let mut offsets: Vec<u32> = cuts.iter().map(|cut| cut.index(bytes.len() + 1) as u32).collect();
            offsets.sort_unstable();
            let each = offsets.windows(2).all(|w| std::str::from_utf8(&bytes[w[0] as usize..w[1] as usize]).is_ok());
            prop_assert_eq!(validate_slices(&bytes, &offsets).is_ok(), each);
            prop_assert_eq!(validate(&bytes).is_ok(), std::str::from_utf8(&bytes).is_ok());
        }
    }
}
