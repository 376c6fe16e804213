//! Arrow strings over decoded bytes, without copying the bytes.
//!
//! Decoders of string blocks leave the bytes of all values in one buffer, with offsets. A view array points into that
//! buffer, so a string costs 16 bytes of view and no copy; UTF-8 is checked once for the whole buffer.

use std::sync::Arc;

use arrow_array::types::{BinaryType, ByteArrayType, Utf8Type};
use arrow_array::{ArrayRef, BinaryViewArray, GenericByteArray, StringViewArray};
use arrow_buffer::{Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};

use crate::error::{Error, Result};

/// What the bytes of a string column are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ByteKind {
    /// Text: must be UTF-8.
    Text,
    /// Any bytes.
    Binary,
}

/// A view array whose value `i` is `values[offsets[i]..offsets[i + 1]]`.
///
/// # Errors
/// [`crate::ErrorKind::Corrupt`] if the offsets descend or reach past the end, or text is not UTF-8.
pub fn view_array(
    kind: ByteKind,
    values: Buffer,
    offsets: Vec<i32>,
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef> {
    Ok(match kind {
        ByteKind::Text => Arc::new(StringViewArray::from(&byte_array::<Utf8Type>(values, offsets, nulls)?)),
        ByteKind::Binary => {
            Arc::new(BinaryViewArray::from(&byte_array::<BinaryType>(values, offsets, nulls)?))
        }
    })
}

fn byte_array<T: ByteArrayType<Offset = i32>>(
    values: Buffer,
    offsets: Vec<i32>,
    nulls: Option<NullBuffer>,
) -> Result<GenericByteArray<T>> {
    let ascending = offsets.first().is_some_and(|first| *first >= 0) && offsets.is_sorted();
    if !ascending {
        return Err(Error::corrupt("ascending string offsets", "offsets that descend"));
    }
    let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets));
    GenericByteArray::try_new(offsets, values, nulls)
        .map_err(|error| Error::corrupt(format!("{} values", T::DATA_TYPE), error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::cast::AsArray;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn views_read_back_as_the_values(words in prop::collection::vec("[a-zà-ÿ]{0,20}", 0..50)) {
            let mut offsets = vec![0i32];
            for word in &words {
                offsets.push(offsets.last().unwrap() + word.len() as i32);
            }
            let array = view_array(ByteKind::Text, words.concat().into_bytes().into(), offsets, None).unwrap();
            prop_assert_eq!(array.as_string_view().iter().flatten().collect::<Vec<_>>(), words);
        }
    }

    #[test]
    fn bad_offsets_and_bad_text_are_refused() {
        for (bytes, offsets) in
            [(&b"abc"[..], vec![0, 2, 1]), (b"abc", vec![0, 4]), (b"\xff", vec![0, 1]), (b"", vec![])]
        {
            assert!(view_array(ByteKind::Text, bytes.to_vec().into(), offsets, None).is_err());
        }
        assert!(view_array(ByteKind::Binary, b"\xff".to_vec().into(), vec![0, 1], None).is_ok());
    }
}
