//! Arrow view arrays over decoded strings, without copying the strings.
//!
//! ```text
//! a view, 16 bytes:  | u32 length | up to 12 bytes, filled up with zeros |                      length <= 12
//!                    | u32 length | first 4 bytes | u32 number of the buffer | u32 offset |     longer
//! ```
//!
//! Arrow's own constructors check each string alone or build each view through several calls. Here the text of a whole
//! block is checked in one pass and the views are made by one loop, which is three times as fast.

use arrow_array::types::{BinaryViewType, ByteViewType, StringViewType};
use arrow_array::{BinaryViewArray, GenericByteViewArray, StringViewArray};
use arrow_buffer::{Buffer, NullBuffer, ScalarBuffer};

use crate::{DecodeError, Result, utf8};

/// Strings up to this length lie in the view itself.
const MAX_INLINE_LEN: u32 = 12;

/// For each length of an inline string, the bits of its bytes.
static INLINE_BITS: [u128; 13] = {
    let mut bits = [0; 13];
    let mut len = 1;
    #[expect(
        clippy::indexing_slicing,
        reason = "evaluated at compile time, where a wrong index fails the build"
    )]
    while len < bits.len() {
        bits[len] = (bits[len - 1] << 8) | 0xff;
        len += 1;
    }
    bits
};

/// The texts `values[offsets[i]..offsets[i + 1]]`.
///
/// # Errors
/// If the offsets do not ascend or leave the values, a text is not UTF-8, or there are not as many nulls as texts.
///
/// ```
/// let text = pilaster_encoding::views::text("onetwo".as_bytes().into(), &[0, 3, 6], None)?;
/// assert_eq!(text.value(1), "two");
/// # Ok::<(), pilaster_encoding::DecodeError>(())
/// ```
pub fn text(values: Buffer, offsets: &[u32], nulls: Option<NullBuffer>) -> Result<StringViewArray> {
    utf8::validate_slices(&values, offsets)?;
    // SAFETY: the offsets were checked by the call above, and that every string between two of them is UTF-8.
    unsafe { views::<StringViewType>(values, offsets, nulls) }
}

/// The byte strings `values[offsets[i]..offsets[i + 1]]`.
///
/// # Errors
/// If the offsets do not ascend or leave the values, or there are not as many nulls as strings.
pub fn binary(values: Buffer, offsets: &[u32], nulls: Option<NullBuffer>) -> Result<BinaryViewArray> {
    utf8::check_offsets(&values, offsets)?;
    // SAFETY: the offsets were checked by the call above, and any bytes will do.
    unsafe { views::<BinaryViewType>(values, offsets, nulls) }
}

/// # Safety
/// The offsets ascend and do not leave the values, and every string between two of them is valid for `T`.
unsafe fn views<T: ByteViewType>(
    values: Buffer,
    offsets: &[u32],
    nulls: Option<NullBuffer>,
) -> Result<GenericByteViewArray<T>> {
    if i32::try_from(values.len()).is_err() {
        return Err(DecodeError::new(0, "strings of at most 2 GiB", format!("{} bytes", values.len())));
    }
    let bytes = values.as_slice();
    let views: Vec<u128> = offsets
        .windows(2)
        .map(|pair| match pair {
            &[start, end] => view(bytes, start, end.wrapping_sub(start)),
            _ => 0,
        })
        .collect();
    if let Some(nulls) = &nulls
        && nulls.len() != views.len()
    {
        let expected = format!("nulls of {} strings", views.len());
        return Err(DecodeError::new(0, expected, nulls.len().to_string()));
    }
    // SAFETY: each view was made by `view` from a range inside the one buffer, which is valid for `T` by the caller's
    // promise; there are as many nulls as views.
    Ok(unsafe { GenericByteViewArray::new_unchecked(ScalarBuffer::from(views), vec![values], nulls) })
}

/// The view of the `len` bytes at `start`, which lie inside `bytes`.
#[inline(always)]
fn view(bytes: &[u8], start: u32, len: u32) -> u128 {
    let rest = bytes.get(start as usize..).unwrap_or_default();
    let head = match rest.first_chunk::<16>() {
        Some(head) => u128::from_le_bytes(*head),
        None => last_bytes(rest),
    };
    let len_bits = u128::from(len);
    if len > MAX_INLINE_LEN {
        let prefix = (head & 0xffff_ffff) << 32;
        (u128::from(start) << 96) | prefix | len_bits
    } else {
        let kept = INLINE_BITS.get(len as usize).copied().unwrap_or_default();
        ((head & kept) << 32) | len_bits
    }
}

/// Fewer than 16 bytes, filled up with zeros.
#[cold]
fn last_bytes(bytes: &[u8]) -> u128 {
    let mut filled = [0; 16];
    for (to, from) in filled.iter_mut().zip(bytes) {
        *to = *from;
    }
    u128::from_le_bytes(filled)
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::Array;
    use proptest::prelude::*;

    fn concatenated(words: &[String]) -> (Buffer, Vec<u32>) {
        let mut offsets = vec![0];
        for word in words {
            offsets.push(offsets.last().unwrap() + word.len() as u32);
        }
        (words.concat().into_bytes().into(), offsets)
    }

    proptest! {
        #![proptest_config(crate::test_config())]
        #[test]
        fn views_are_those_arrow_would_make(words in prop::collection::vec("[a-zà-ÿ€]{0,20}", 0..60), skip in 0usize..5) {
            let (values, offsets) = concatenated(&words);
            let skip = skip.min(words.len());
            let array = text(values.clone(), &offsets[skip..], None).unwrap();
            array.to_data().validate_full().unwrap();
            prop_assert_eq!(array.iter().flatten().collect::<Vec<_>>(), &words[skip..]);
            let bytes = binary(values, &offsets[skip..], None).unwrap();
            bytes.to_data().validate_full().unwrap();
            prop_assert_eq!(bytes.iter().flatten().collect::<Vec<_>>(), words[skip..].iter().map(String::as_bytes).collect::<Vec<_>>());
        }

        #[test]
        fn any_bytes_and_offsets_give_a_valid_array_or_an_error(
            bytes in prop::collection::vec(any::<u8>(), 0..40),
            offsets in prop::collection::vec(0u32..45, 0..6),
        ) {
            if let Ok(array) = text(bytes.clone().into(), &offsets, None) {
                array.to_data().validate_full().unwrap();
            }
            if let Ok(array) = binary(bytes.into(), &offsets, None) {
                array.to_data().validate_full().unwrap();
            }
        }
    }

    #[test]
    fn nulls_are_as_many_as_strings() {
        let nulls = NullBuffer::from(vec![true, false]);
        let array = text(b"abc".to_vec().into(), &[0, 3, 3], Some(nulls.clone())).unwrap();
        assert_eq!(array.iter().collect::<Vec<_>>(), [Some("abc"), None]);
        assert!(text(b"abc".to_vec().into(), &[0, 3], Some(nulls)).is_err());
    }
}
