//! Arrow strings over decoded bytes, without copying the bytes.
//!
//! Decoders of string blocks leave the bytes of all values in one buffer, with offsets. A view array points into that
//! buffer, so a string costs 16 bytes of view and no copy; UTF-8 is checked once for the whole buffer.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{BinaryViewType, StringViewType};
use arrow_array::{Array, ArrayRef, GenericByteViewArray, UInt32Array};
use arrow_buffer::{Buffer, NullBuffer, ScalarBuffer};
use arrow_schema::DataType;
use arrow_select::take::{TakeOptions, take};
use pilaster_encoding::prefixed::LengthPrefix;
use pilaster_encoding::views::{self, ViewKind};

use crate::error::{Error, Result};

/// What the bytes of a string column are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ByteKind {
    /// Text: must be UTF-8.
    Text,
    /// Any bytes.
    Binary,
}

/// Makes one view array of the strings of one or more blocks.
#[derive(Debug)]
pub struct ViewBuilder(Kind);

#[derive(Debug)]
enum Kind {
    Text(views::ViewBuilder<StringViewType>),
    Binary(views::ViewBuilder<BinaryViewType>),
}

impl ViewBuilder {
    /// Room for so many strings.
    pub fn with_capacity(kind: ByteKind, strings: usize) -> Self {
        Self(match kind {
            ByteKind::Text => Kind::Text(views::ViewBuilder::with_capacity(strings)),
            ByteKind::Binary => Kind::Binary(views::ViewBuilder::with_capacity(strings)),
        })
    }

    /// Appends the strings `values[offsets[i]..offsets[i + 1]]`.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Corrupt`] if the offsets descend or reach past the end, or text is not UTF-8.
    pub fn append(&mut self, values: Buffer, offsets: &[u32]) -> Result<()> {
        match &mut self.0 {
            Kind::Text(builder) => builder.append(values, offsets)?,
            Kind::Binary(builder) => builder.append(values, offsets)?,
        }
        Ok(())
    }

    /// The array, with nulls where `nulls` says so.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Corrupt`] if there are not as many nulls as strings.
    pub fn finish(self, nulls: Option<NullBuffer>) -> Result<ArrayRef> {
        Ok(match self.0 {
            Kind::Text(builder) => Arc::new(builder.finish(nulls)?),
            Kind::Binary(builder) => Arc::new(builder.finish(nulls)?),
        })
    }
}

/// The strings `bytes[offsets[i]..offsets[i + 1]]` of a block, out of which batches take some.
#[derive(Debug, Clone)]
pub struct Strings {
    /// The bytes of all strings.
    pub bytes: Buffer,
    /// Where each begins, and where the last ends.
    pub offsets: Vec<u32>,
}

impl Strings {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.offsets.len().saturating_sub(1)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Where the strings `range` begin, and where the last of them ends.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Internal`] if there are fewer.
    pub fn offsets_of(&self, range: &Range<usize>) -> Result<&[u32]> {
        self.offsets
            .get(range.start..range.end.saturating_add(1))
            .ok_or_else(|| Error::internal(format!("values {range:?} of {}", self.len())))
    }

    /// The strings `range` as an array, spread over the rows of `nulls` if there are nulls.
    ///
    /// # Errors
    /// As [`Strings::offsets_of`] and [`view_array`].
    pub fn read(&self, kind: ByteKind, range: &Range<usize>, nulls: Option<NullBuffer>) -> Result<ArrayRef> {
        let offsets = self.offsets_of(range)?;
        match nulls {
            None => view_array(kind, self.bytes.clone(), offsets, None),
            Some(nulls) => {
                view_array(kind, self.bytes.clone(), &spread_offsets(offsets, &nulls), Some(nulls))
            }
        }
    }
}

/// Offsets with an empty string for each null.
pub fn spread_offsets<O: Copy + Default>(offsets: &[O], nulls: &NullBuffer) -> Vec<O> {
    let mut spread = Vec::with_capacity(nulls.len().saturating_add(1));
    let mut dense = offsets.iter().copied();
    let mut at = dense.next().unwrap_or_default();
    spread.push(at);
    for is_set in nulls.iter() {
        if is_set {
            at = dense.next().unwrap_or(at);
        }
        spread.push(at);
    }
    spread
}

/// A view array whose value `i` is `values[offsets[i]..offsets[i + 1]]`.
///
/// # Errors
/// As [`ViewBuilder::append`] and [`ViewBuilder::finish`].
pub fn view_array(
    kind: ByteKind,
    values: Buffer,
    offsets: &[u32],
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef> {
    let mut builder = ViewBuilder::with_capacity(kind, offsets.len().saturating_sub(1));
    builder.append(values, offsets)?;
    builder.finish(nulls)
}

/// A view array of all strings of `values`, each behind its length; of at most `most` if that is known. Those that are `null`
/// are null.
///
/// # Errors
/// [`crate::ErrorKind::Corrupt`] if the values end inside a string, there are more, or text is not UTF-8.
pub fn prefixed_array<L: LengthPrefix>(
    kind: ByteKind,
    values: Buffer,
    most: Option<usize>,
    null: Option<&[u8]>,
) -> Result<ArrayRef> {
    Ok(match kind {
        ByteKind::Text => Arc::new(prefixed::<L, StringViewType>(values, most, null)?),
        ByteKind::Binary => Arc::new(prefixed::<L, BinaryViewType>(values, most, null)?),
    })
}

/// The values of `words` that `keys` number.
///
/// # Errors
/// [`crate::ErrorKind::Corrupt`] if a key is not the number of a word.
pub fn gather(words: &ArrayRef, keys: ScalarBuffer<u32>) -> Result<ArrayRef> {
    Ok(match words.data_type() {
        DataType::Utf8View => Arc::new(views::gather(words.as_string_view(), &keys)?),
        DataType::BinaryView => Arc::new(views::gather(words.as_binary_view(), &keys)?),
        _ => {
            let keys = UInt32Array::new(keys, None);
            take(words, &keys, Some(TakeOptions { check_bounds: true }))?
        }
    })
}

fn prefixed<L: LengthPrefix, T: ViewKind>(
    values: Buffer,
    most: Option<usize>,
    null: Option<&[u8]>,
) -> Result<GenericByteViewArray<T>> {
    let most_there = values.len().checked_div(L::LEN).unwrap_or_default();
    let mut builder = views::ViewBuilder::<T>::with_capacity(most.unwrap_or(0).min(most_there));
    builder.append_all_prefixed::<L>(values, most.unwrap_or(usize::MAX))?;
    Ok(match null {
        Some(null) => builder.finish_null_for(null)?,
        None => builder.finish(None)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::Int32Array;
    use arrow_array::types::Int32Type;
    use pilaster_encoding::prefixed::BigU16;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn views_read_back_as_the_values(words in prop::collection::vec("[a-zà-ÿ]{0,20}", 0..50)) {
            let mut offsets = vec![0];
            for word in &words {
                offsets.push(offsets.last().unwrap() + word.len() as u32);
            }
            let array = view_array(ByteKind::Text, words.concat().into_bytes().into(), &offsets, None).unwrap();
            prop_assert_eq!(array.as_string_view().iter().flatten().collect::<Vec<_>>(), words);
        }
    }

    #[test]
    fn strings_are_spread_over_nulls() {
        let strings = Strings { bytes: b"onetwothree".to_vec().into(), offsets: vec![0, 3, 6, 11] };
        let nulls = NullBuffer::from(vec![false, true, false, true]);
        let array = strings.read(ByteKind::Text, &(1..3), Some(nulls)).unwrap();
        let found: Vec<_> = array.as_string_view().iter().collect();
        assert_eq!(found, [None, Some("two"), None, Some("three")]);
        assert!(strings.read(ByteKind::Text, &(1..4), None).is_err());
    }

    #[test]
    fn strings_behind_their_lengths_and_a_word_for_null() {
        let bytes = b"\0\x01a\0\x02--\0\0";
        let array = prefixed_array::<BigU16>(ByteKind::Text, bytes.into(), Some(3), Some(b"--")).unwrap();
        assert_eq!(array.as_string_view().iter().collect::<Vec<_>>(), [Some("a"), None, Some("")]);
        let array = prefixed_array::<BigU16>(ByteKind::Binary, bytes.into(), None, None).unwrap();
        assert_eq!(array.as_binary_view().iter().flatten().collect::<Vec<_>>(), [&b"a"[..], b"--", b""]);
        assert!(prefixed_array::<BigU16>(ByteKind::Text, bytes.into(), Some(2), None).is_err());
    }

    #[test]
    fn words_of_any_type_are_gathered() {
        let texts = view_array(ByteKind::Text, b"onetwo".into(), &[0, 3, 6], None).unwrap();
        let gathered = gather(&texts, vec![1, 1, 0].into()).unwrap();
        assert_eq!(gathered.as_string_view().iter().flatten().collect::<Vec<_>>(), ["two", "two", "one"]);
        let numbers: ArrayRef = Arc::new(Int32Array::from(vec![Some(7), None]));
        let gathered = gather(&numbers, vec![1, 0].into()).unwrap();
        assert_eq!(gathered.as_primitive::<Int32Type>().iter().collect::<Vec<_>>(), [None, Some(7)]);
        assert!(gather(&texts, vec![2].into()).is_err() && gather(&numbers, vec![2].into()).is_err());
    }

    #[test]
    fn bad_offsets_and_bad_text_are_refused() {
        for (bytes, offsets) in [(&b"abc"[..], [0, 2, 1]), (b"abc", [0, 0, 4]), (b"\xff", [0, 0, 1])] {
            assert!(view_array(ByteKind::Text, bytes.to_vec().into(), &offsets, None).is_err());
        }
        assert!(view_array(ByteKind::Binary, b"\xff".to_vec().into(), &[0, 1], None).is_ok());
    }
}
