//! Arrow string and binary views over decoded bytes, without copying the bytes.

use arrow_buffer::{Buffer, ScalarBuffer};

use crate::error::{Error, Result};

/// Longest value that stands in the view itself.
const INLINE_BYTES: usize = 12;

/// The 16-byte view of `value`, which lies at `offset` of buffer number `buffer`.
#[inline]
pub fn view_of(value: &[u8], buffer: u32, offset: u32) -> u128 {
    let length = value.len();
    let mut view = [0u8; 16];
    let [l0, l1, l2, l3, rest @ ..] = &mut view;
    #[expect(
        clippy::cast_possible_truncation,
        reason = "values are cut out of buffers addressed by u32 offsets"
    )]
    let [b0, b1, b2, b3] = (length as u32).to_le_bytes();
    (*l0, *l1, *l2, *l3) = (b0, b1, b2, b3);
    if length <= INLINE_BYTES {
        for (to, from) in rest.iter_mut().zip(value) {
            *to = *from;
        }
        return u128::from_le_bytes(view);
    }
    let prefix = value.first_chunk::<4>().map_or(0, |four| u32::from_le_bytes(*four));
    u128::from(u32::from_le_bytes([b0, b1, b2, b3]))
        | u128::from(prefix) << 32
        | u128::from(buffer) << 64
        | u128::from(offset) << 96
}

/// Views of the values `offsets[i]..offsets[i + 1]` of `bytes`, which will be buffer number `buffer` of the array.
///
/// # Errors
/// [`crate::ErrorKind::InvalidInput`] if the offsets descend or reach past the end.
pub fn views_of(bytes: &Buffer, offsets: &[u32], buffer: u32) -> Result<ScalarBuffer<u128>> {
    let mut views = Vec::with_capacity(offsets.len().saturating_sub(1));
    for pair in offsets.windows(2) {
        let &[start, end] = pair else { continue };
        let value = bytes.as_slice().get(start as usize..end as usize).ok_or_else(|| {
            Error::invalid(format!("string offsets {start}..{end} of {} bytes", bytes.len()))
        })?;
        views.push(view_of(value, buffer, start));
    }
    Ok(views.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::{Array, StringViewArray};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn views_read_back_as_the_values(words in prop::collection::vec("[a-zà-ÿ]{0,20}", 0..50)) {
            let bytes = Buffer::from(words.concat().into_bytes());
            let mut offsets = vec![0u32];
            for word in &words {
                offsets.push(offsets.last().unwrap() + u32::try_from(word.len()).unwrap());
            }
            let views = views_of(&bytes, &offsets, 0).unwrap();
            let array = StringViewArray::try_new(views, vec![bytes], None).unwrap();
            prop_assert_eq!(array.len(), words.len());
            for (value, word) in array.iter().zip(&words) {
                prop_assert_eq!(value, Some(word.as_str()));
            }
        }
    }
}
