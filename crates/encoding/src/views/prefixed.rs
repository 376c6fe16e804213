//! Views of strings that lie each behind its length, without a list of offsets in between.

use super::{ViewBuilder, ViewKind, view, view_of};
use crate::prefixed::{self, LengthPrefix, LittleU32};
use crate::{DecodeError, Result};
use arrow_buffer::Buffer;

/// The bytes of lengths below this are text, whatever their width and order.
const SHORT_LEN: u32 = 0x80;

impl<T: ViewKind> ViewBuilder<T> {
    /// Appends `count` strings of `values`, each behind its length (see [`crate::prefixed`]), from `*pos` on; moves `*pos`
    /// behind them.
    ///
    /// # Errors
    /// If the values end before, or text is not UTF-8. Nothing is appended then.
    pub fn append_prefixed(&mut self, values: &Buffer, pos: &mut usize, count: usize) -> Result<()> {
        if count.saturating_mul(LittleU32::LEN) > values.len() {
            let expected = format!("{count} strings");
            return Err(DecodeError::new(*pos, expected, format!("{} bytes", values.len())));
        }
        let before = self.views.len();
        self.views.reserve(count);
        let end = self
            .push_prefixed::<LittleU32>(values, *pos, count)
            .and_then(|end| match self.views.len().wrapping_sub(before) {
                made if made == count => Ok(end),
                made => Err(DecodeError::new(end, format!("{count} strings"), made.to_string())),
            })
            .inspect_err(|_| self.views.truncate(before))?;
        self.buffers.push(values.clone());
        *pos = end;
        Ok(())
    }

    /// Appends all strings of `values`, each behind its length.
    ///
    /// # Errors
    /// If the values end inside a string, there are more than `most`, or text is not UTF-8. Nothing is appended then.
    ///
    /// ```
    /// use arrow_array::types::StringViewType;
    /// use pilaster_encoding::prefixed::BigU16;
    /// use pilaster_encoding::views::ViewBuilder;
    ///
    /// let mut texts = ViewBuilder::<StringViewType>::with_capacity(2);
    /// texts.append_all_prefixed::<BigU16>(b"\0\x02hi\0\0".into(), 2)?;
    /// assert_eq!(texts.finish(None)?.value(0), "hi");
    /// # Ok::<(), pilaster_encoding::DecodeError>(())
    /// ```
    pub fn append_all_prefixed<L: LengthPrefix>(&mut self, values: Buffer, most: usize) -> Result<()> {
        let before = self.views.len();
        self.push_prefixed::<L>(&values, 0, most)
            .and_then(|end| match values.len() {
                len if len == end => Ok(()),
                _ => Err(DecodeError::new(end, format!("at most {most} strings"), "more")),
            })
            .inspect_err(|_| self.views.truncate(before))?;
        self.buffers.push(values);
        Ok(())
    }

    /// Appends strings from `pos` on until there are `most` of them or the values end; says where the last one ends.
    fn push_prefixed<L: LengthPrefix>(
        &mut self,
        values: &Buffer,
        mut pos: usize,
        most: usize,
    ) -> Result<usize> {
        if i32::try_from(values.len()).is_err() {
            return Err(DecodeError::new(0, "strings of at most 2 GiB", format!("{} bytes", values.len())));
        }
        let buffer = u32::try_from(self.buffers.len())
            .map_err(|_| DecodeError::new(0, "fewer blocks of strings", self.buffers.len().to_string()))?;
        let bytes = values.as_slice();
        // The length of a short string is text too (characters below 128), so strings are checked together with the
        // lengths between them: a character cannot go on over one. Only a longer length has to be stepped over.
        let mut unchecked = pos;
        let mut left = most;
        loop {
            left = left.wrapping_sub(self.push_short::<L>(bytes, buffer, &mut pos, left));
            if left == 0 || pos == bytes.len() {
                break;
            }
            let at = pos;
            let len = u32::try_from(prefixed::next_behind::<L>(bytes, &mut pos)?.len()).unwrap_or(u32::MAX);
            let start = at.wrapping_add(L::LEN);
            if len >= SHORT_LEN {
                let whole = bytes.get(unchecked..at).unwrap_or_default();
                T::check_bytes(whole).map_err(|error| error.shifted(unchecked))?;
                unchecked = start;
            }
            // Offsets fit: the values are below 2 GiB.
            self.views.push(view(bytes, buffer, u32::try_from(start).unwrap_or(u32::MAX), len));
            left = left.wrapping_sub(1);
        }
        let whole = bytes.get(unchecked..pos).unwrap_or_default();
        T::check_bytes(whole).map_err(|error| error.shifted(unchecked))?;
        Ok(pos)
    }

    /// Appends at most `most` strings that are short and not the last bytes; says how many.
    ///
    /// Where a string begins is known only when the length of the one before it was read, so that is all that may wait: both
    /// forms of a view are made of the same sixteen bytes, and one is chosen without a branch.
    #[inline(always)]
    fn push_short<L: LengthPrefix>(
        &mut self,
        bytes: &[u8],
        buffer: u32,
        pos: &mut usize,
        most: usize,
    ) -> usize {
        let mut at = *pos;
        let mut count = 0usize;
        while count < most
            && let Some(head) = bytes.get(at..).and_then(|rest| rest.first_chunk::<16>())
        {
            let [a, b, c, d, ..] = *head;
            let len = L::length([a, b, c, d]);
            let start = at.wrapping_add(L::LEN);
            let end = start.wrapping_add(len as usize);
            if len >= SHORT_LEN || end > bytes.len() {
                break;
            }
            // The sixteen bytes hold at least the twelve that a view may want.
            let [text @ .., _, _, _, _] = (u128::from_le_bytes(*head) >> L::BITS).to_le_bytes();
            #[expect(clippy::cast_possible_truncation, reason = "the values are below 2 GiB")]
            self.views.push(view_of(text, buffer, start as u32, len));
            at = end;
            count = count.wrapping_add(1);
        }
        *pos = at;
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prefixed::{BigU16, BigU32};
    use arrow_array::Array;
    use arrow_array::types::StringViewType;
    use arrow_buffer::NullBuffer;
    use proptest::prelude::*;

    fn words() -> impl Strategy<Value = Vec<String>> {
        prop::collection::vec(prop_oneof!["[a-zà-ÿ€]{0,20}", "[a-z€]{100,140}"], 0..30)
    }

    /// Texts, and bytes that may be none.
    fn strings() -> impl Strategy<Value = Vec<Vec<u8>>> {
        let any = prop::collection::vec(any::<u8>(), 0..5);
        let text = (0usize..5).prop_map(|repeats| "é".as_bytes().repeat(repeats * 20));
        prop::collection::vec(prop_oneof![any, text], 0..6)
    }

    fn put(strings: &[Vec<u8>], length: impl Fn(usize) -> Vec<u8>) -> Vec<u8> {
        strings.iter().flat_map(|string| [length(string.len()), string.clone()].concat()).collect()
    }

    /// Whether the strings are taken to be text; if so they are what they were.
    fn all<L: LengthPrefix>(bytes: Vec<u8>, strings: &[Vec<u8>]) -> bool {
        let made = |most: usize| {
            let mut builder = ViewBuilder::<StringViewType>::with_capacity(0);
            builder
                .append_all_prefixed::<L>(bytes.clone().into(), most)
                .map(|()| builder.finish(None).unwrap())
        };
        assert!(strings.is_empty() || made(strings.len() - 1).is_err());
        let Ok(array) = made(strings.len()) else { return false };
        array.to_data().validate_full().unwrap();
        assert!(array.iter().map(|text| text.unwrap().as_bytes()).eq(strings.iter().map(Vec::as_slice)));
        true
    }

    proptest! {
        #![proptest_config(crate::test_config())]
        #[test]
        fn strings_behind_their_lengths_are_views_too(words in words(), cut in 0usize..30) {
            let mut bytes = Vec::new();
            for word in &words {
                prefixed::put(word.as_bytes(), &mut bytes).unwrap();
            }
            let (values, mut pos) = (Buffer::from(bytes), 0);
            let cut = cut.min(words.len());
            let mut builder = ViewBuilder::<StringViewType>::with_capacity(words.len());
            builder.append_prefixed(&values, &mut pos, cut).unwrap();
            builder.append_prefixed(&values, &mut pos, words.len() - cut).unwrap();
            prop_assert_eq!(pos, values.len());
            prop_assert!(builder.append_prefixed(&values, &mut pos, 1).is_err());
            let validity: Vec<bool> = (0..words.len()).flat_map(|n| [n % 3 == 0, true]).filter(|&b| b || cut % 2 == 0).collect();
            let valid = validity.iter().filter(|&&bit| bit).count();
            let array = if valid == words.len() {
                builder.finish_spread(NullBuffer::from(validity)).unwrap()
            } else {
                builder.finish(None).unwrap()
            };
            array.to_data().validate_full().unwrap();
            prop_assert_eq!(array.iter().flatten().collect::<Vec<_>>(), words);
        }

        #[test]
        fn lengths_of_every_kind_are_read(words in words()) {
            let strings: Vec<Vec<u8>> = words.into_iter().map(String::into_bytes).collect();
            prop_assert!(all::<LittleU32>(put(&strings, |len| (len as u32).to_le_bytes().to_vec()), &strings));
            prop_assert!(all::<BigU32>(put(&strings, |len| (len as u32).to_be_bytes().to_vec()), &strings));
            prop_assert!(all::<BigU16>(put(&strings, |len| (len as u16).to_be_bytes().to_vec()), &strings));
        }

        #[test]
        fn each_string_alone_must_be_text(strings in strings()) {
            let is_text = strings.iter().all(|string| std::str::from_utf8(string).is_ok());
            let found = all::<BigU16>(put(&strings, |len| (len as u16).to_be_bytes().to_vec()), &strings);
            prop_assert_eq!(found, is_text);
            let found = all::<LittleU32>(put(&strings, |len| (len as u32).to_le_bytes().to_vec()), &strings);
            prop_assert_eq!(found, is_text);
        }

        #[test]
        fn any_bytes_behind_lengths_give_a_valid_array_or_an_error(strings in strings(), cut in 0usize..40, count in 0usize..7) {
            let mut bytes = Vec::new();
            for string in &strings {
                prefixed::put(string, &mut bytes).unwrap();
            }
            bytes.truncate(bytes.len().saturating_sub(cut));
            let mut builder = ViewBuilder::<StringViewType>::with_capacity(0);
            if builder.append_prefixed(&bytes.clone().into(), &mut 0, count).is_ok() {
                builder.finish(None).unwrap().to_data().validate_full().unwrap();
            }
            let mut builder = ViewBuilder::<StringViewType>::with_capacity(0);
            if builder.append_all_prefixed::<BigU16>(bytes.into(), 100).is_ok() {
                builder.finish(None).unwrap().to_data().validate_full().unwrap();
            }
        }
    }
}
