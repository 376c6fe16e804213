//! Arrow view arrays over decoded strings, without copying the strings.
//!
//! ```text
//! a view, 16 bytes:  | u32 length | up to 12 bytes, filled up with zeros |                      length <= 12
//!                    | u32 length | first 4 bytes | u32 number of the buffer | u32 offset |     longer
//! ```
//!
//! Arrow's own constructors check each string alone or build each view through several calls. Here the text of a whole
//! block is checked in one pass and the views are made by one loop, which is three times as fast.

mod prefixed;

use arrow_array::types::{BinaryViewType, ByteViewType, StringViewType};
use arrow_array::{Array, BinaryViewArray, GenericByteViewArray, StringViewArray};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer, ScalarBuffer};

use crate::{DecodeError, Result, spread, utf8};
use std::fmt;
use std::hint::select_unpredictable;
use std::marker::PhantomData;

/// Strings up to this length lie in the view itself.
const MAX_INLINE_LEN: u32 = 12;
/// What of a string may lie in its view.
type Head = [u8; MAX_INLINE_LEN as usize];

/// For each length of an inline string the bits of its view, as two words; longer ones keep all of the first.
static INLINE_BITS: [[u64; 2]; 13] = inline_bits();

#[expect(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    reason = "evaluated at compile time, where a wrong index fails the build"
)]
const fn inline_bits() -> [[u64; 2]; 13] {
    let (mut bits, mut words, mut len) = (0xffff_ffff_u128, [[0; 2]; 13], 0);
    while len < words.len() {
        words[len] = [bits as u64, (bits >> 64) as u64];
        bits = (bits << 8) | 0xff;
        len += 1;
    }
    words
}

/// What the strings of a view array may hold: text or any bytes.
pub trait ViewKind: ByteViewType + sealed::Sealed {
    /// Refuses offsets that descend or leave the values, and strings that are none of this kind.
    ///
    /// # Errors
    /// With the position of what is wrong.
    fn check(values: &[u8], offsets: &[u32]) -> Result<()>;

    /// Refuses bytes that are no string of this kind.
    ///
    /// # Errors
    /// With the position of what is wrong.
    fn check_bytes(bytes: &[u8]) -> Result<()>;
}

mod sealed {
    /// Only this module knows which kinds its arrays may have.
    pub trait Sealed {}
    impl Sealed for super::StringViewType {}
    impl Sealed for super::BinaryViewType {}
}

impl ViewKind for StringViewType {
    fn check(values: &[u8], offsets: &[u32]) -> Result<()> {
        utf8::validate_slices(values, offsets)
    }

    #[inline]
    fn check_bytes(bytes: &[u8]) -> Result<()> {
        utf8::validate(bytes)
    }
}

impl ViewKind for BinaryViewType {
    fn check(values: &[u8], offsets: &[u32]) -> Result<()> {
        utf8::check_offsets(values, offsets)
    }

    #[inline]
    fn check_bytes(_: &[u8]) -> Result<()> {
        Ok(())
    }
}

/// Makes one view array of the strings of one or more blocks.
///
/// ```
/// use arrow_array::types::StringViewType;
/// use pilaster_encoding::views::ViewBuilder;
///
/// let mut texts = ViewBuilder::<StringViewType>::with_capacity(3);
/// texts.append("onetwo".as_bytes().into(), &[0, 3, 6])?;
/// texts.append("three".as_bytes().into(), &[0, 5])?;
/// assert_eq!(texts.finish(None)?.value(2), "three");
/// # Ok::<(), pilaster_encoding::DecodeError>(())
/// ```
pub struct ViewBuilder<T: ViewKind> {
    views: Vec<u128>,
    buffers: Vec<Buffer>,
    kind: PhantomData<T>,
}

impl<T: ViewKind> fmt::Debug for ViewBuilder<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ViewBuilder").field("views", &self.views.len()).finish_non_exhaustive()
    }
}

impl<T: ViewKind> ViewBuilder<T> {
    /// Room for so many strings.
    #[must_use]
    pub fn with_capacity(strings: usize) -> Self {
        Self { views: Vec::with_capacity(strings), buffers: Vec::new(), kind: PhantomData }
    }

    /// How many strings there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.views.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.views.is_empty()
    }

    /// Appends the strings `values[offsets[i]..offsets[i + 1]]`.
    ///
    /// # Errors
    /// If the offsets do not ascend or leave the values, or text is not UTF-8. Nothing is appended then.
    pub fn append(&mut self, values: Buffer, offsets: &[u32]) -> Result<()> {
        if i32::try_from(values.len()).is_err() {
            return Err(DecodeError::new(0, "strings of at most 2 GiB", format!("{} bytes", values.len())));
        }
        T::check(&values, offsets)?;
        let buffer = u32::try_from(self.buffers.len())
            .map_err(|_| DecodeError::new(0, "fewer blocks of strings", self.buffers.len().to_string()))?;
        let bytes = values.as_slice();
        // Offsets ascend, so all but a few strings at the end have as many bytes behind their start as a view looks at.
        let last_start = bytes.len().saturating_sub(MAX_INLINE_LEN as usize);
        let last = offsets.partition_point(|&start| (start as usize) < last_start);
        let (wide, narrow) =
            (offsets.get(..=last).unwrap_or(offsets), offsets.get(last..).unwrap_or_default());
        self.views.extend(wide.array_windows().map(move |&[start, end]| {
            debug_assert!((start as usize) < last_start, "offsets ascend");
            // SAFETY: the kind's `check` has found that offsets ascend, so that those before `last` are all below `last_start`,
            // and at least as many bytes as are read here follow each. The kinds are sealed: the checks are those above.
            let head = unsafe { bytes.as_ptr().add(start as usize).cast::<Head>().read_unaligned() };
            view_of(head, buffer, start, end.wrapping_sub(start))
        }));
        self.views.extend(
            narrow.array_windows().map(|&[start, end]| view(bytes, buffer, start, end.wrapping_sub(start))),
        );
        self.buffers.push(values);
        Ok(())
    }

    /// The array with a string where a bit of `nulls` is set and null elsewhere.
    ///
    /// # Errors
    /// If there are not as many set bits as strings.
    pub fn finish_spread(mut self, nulls: NullBuffer) -> Result<GenericByteViewArray<T>> {
        let validity = nulls.inner().sliced();
        self.views = spread::spread(&self.views, &validity, nulls.len())?;
        self.finish(Some(nulls))
    }

    /// The array with nulls instead of the strings that are `word`, which has at most 12 bytes.
    ///
    /// # Errors
    /// If the word is longer.
    ///
    /// ```
    /// use arrow_array::Array;
    /// use arrow_array::types::BinaryViewType;
    /// use pilaster_encoding::views::ViewBuilder;
    ///
    /// let mut strings = ViewBuilder::<BinaryViewType>::with_capacity(2);
    /// strings.append(b"one--".into(), &[0, 3, 5])?;
    /// assert!(strings.finish_null_for(b"--")?.is_null(1));
    /// # Ok::<(), pilaster_encoding::DecodeError>(())
    /// ```
    pub fn finish_null_for(self, word: &[u8]) -> Result<GenericByteViewArray<T>> {
        let len = u32::try_from(word.len()).unwrap_or(u32::MAX);
        if len > MAX_INLINE_LEN {
            let expected = format!("a word of at most {MAX_INLINE_LEN} bytes");
            return Err(DecodeError::new(0, expected, word.len().to_string()));
        }
        let word = view(word, 0, 0, len);
        // No early exit, so that the loop is vectorised.
        let is_there = self.views.iter().fold(false, |any, &view| any | (view == word));
        let nulls = is_there.then(|| {
            let is_other = |at: usize| self.views.get(at) != Some(&word);
            NullBuffer::new(BooleanBuffer::collect_bool(self.views.len(), is_other))
        });
        self.finish(nulls)
    }

    /// The array, with nulls where `nulls` says so.
    ///
    /// # Errors
    /// If there are not as many nulls as strings.
    pub fn finish(self, nulls: Option<NullBuffer>) -> Result<GenericByteViewArray<T>> {
        if let Some(nulls) = &nulls
            && nulls.len() != self.views.len()
        {
            let expected = format!("nulls of {} strings", self.views.len());
            return Err(DecodeError::new(0, expected, nulls.len().to_string()));
        }
        // SAFETY: each view is zero (an empty string) or was made by `view` or `view_of` of a range inside the buffer it names, which
        // `check` or `check_bytes` of the kind has found to hold a string of that kind; the kinds are sealed, so these are those
        // above. There are as many nulls as views.
        Ok(unsafe {
            GenericByteViewArray::new_unchecked(ScalarBuffer::from(self.views), self.buffers, nulls)
        })
    }
}

/// The texts `values[offsets[i]..offsets[i + 1]]`.
///
/// # Errors
/// As [`ViewBuilder::append`] and [`ViewBuilder::finish`].
pub fn text(values: Buffer, offsets: &[u32], nulls: Option<NullBuffer>) -> Result<StringViewArray> {
    one_block(values, offsets, nulls)
}

/// The byte strings `values[offsets[i]..offsets[i + 1]]`.
///
/// # Errors
/// As [`ViewBuilder::append`] and [`ViewBuilder::finish`].
pub fn binary(values: Buffer, offsets: &[u32], nulls: Option<NullBuffer>) -> Result<BinaryViewArray> {
    one_block(values, offsets, nulls)
}

/// The strings of `words` that `keys` number.
///
/// # Errors
/// If a key is not the number of a word.
///
/// ```
/// use pilaster_encoding::views::{gather, text};
///
/// let words = text(b"onetwo".into(), &[0, 3, 6], None)?;
/// assert_eq!(gather(&words, &[1, 0, 1])?.iter().flatten().collect::<Vec<_>>(), ["two", "one", "two"]);
/// # Ok::<(), pilaster_encoding::DecodeError>(())
/// ```
pub fn gather<T: ViewKind>(words: &GenericByteViewArray<T>, keys: &[u32]) -> Result<GenericByteViewArray<T>> {
    let views = words.views();
    let mut largest = 0;
    let gathered = keys.iter().map(|&key| {
        largest = largest.max(key);
        views.get(key as usize).copied().unwrap_or_default()
    });
    let gathered: Vec<u128> = gathered.collect();
    if largest as usize >= views.len() && !keys.is_empty() {
        return Err(DecodeError::new(0, format!("keys below {}", views.len()), largest.to_string()));
    }
    let nulls = words.nulls().filter(|nulls| largest as usize >= first_null(nulls)).map(|nulls| {
        let is_valid = |at: usize| keys.get(at).is_some_and(|key| nulls.is_valid(*key as usize));
        NullBuffer::new(BooleanBuffer::collect_bool(keys.len(), is_valid))
    });
    let nulls = nulls.filter(|nulls| nulls.null_count() > 0);
    // SAFETY: each view is one of `words`, whose buffers these are, as every key was below their number. There are as many
    // nulls as views.
    Ok(unsafe { GenericByteViewArray::new_unchecked(gathered.into(), words.data_buffers(), nulls) })
}

/// The place of the first null; where there is none, that after the last.
fn first_null(nulls: &NullBuffer) -> usize {
    match nulls.inner().set_slices().next() {
        Some((0, end)) => end,
        _ => 0,
    }
}

fn one_block<T: ViewKind>(
    values: Buffer,
    offsets: &[u32],
    nulls: Option<NullBuffer>,
) -> Result<GenericByteViewArray<T>> {
    let mut builder = ViewBuilder::with_capacity(offsets.len().saturating_sub(1));
    builder.append(values, offsets)?;
    builder.finish(nulls)
}

/// The view of the `len` bytes at `start`, which lie inside `bytes`, the bytes of buffer number `buffer`.
#[inline(always)]
fn view(bytes: &[u8], buffer: u32, start: u32, len: u32) -> u128 {
    let rest = bytes.get(start as usize..).unwrap_or_default();
    match rest.first_chunk() {
        Some(head) => view_of(*head, buffer, start, len),
        None => view_of(last_bytes(rest), buffer, start, len),
    }
}

/// The view of a string that begins with `head`, if it is that long. Both forms are made and one is chosen without a branch:
/// lengths around the limit cannot be guessed.
#[inline(always)]
fn view_of(head: Head, buffer: u32, start: u32, len: u32) -> u128 {
    let [a, b, c, d, next @ ..] = head;
    let kept = INLINE_BITS.get(len.min(MAX_INLINE_LEN) as usize).copied().unwrap_or_default();
    let [low_kept, high_kept] = kept;
    let low = (u64::from(u32::from_le_bytes([a, b, c, d])) << 32) | u64::from(len);
    let place = (u64::from(start) << 32) | u64::from(buffer);
    let high = select_unpredictable(len > MAX_INLINE_LEN, place, u64::from_le_bytes(next) & high_kept);
    (u128::from(high) << 64) | u128::from(low & low_kept)
}

/// Fewer bytes than an inline string may have, filled up with zeros.
#[cold]
fn last_bytes(bytes: &[u8]) -> Head {
    let mut filled = Head::default();
    for (to, from) in filled.iter_mut().zip(bytes) {
        *to = *from;
    }
    filled
}

#[cfg(test)]
mod tests {
    use super::*;
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
            let mut halves = ViewBuilder::<StringViewType>::with_capacity(words.len());
            halves.append(values.clone(), &offsets[..=skip]).unwrap();
            halves.append(values.clone(), &offsets[skip..]).unwrap();
            prop_assert_eq!(halves.len(), words.len());
            let halves = halves.finish(None).unwrap();
            halves.to_data().validate_full().unwrap();
            prop_assert_eq!(halves.iter().flatten().collect::<Vec<_>>(), &words[..]);
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

    proptest! {
        #![proptest_config(crate::test_config())]
        #[test]
        fn one_word_may_stand_for_null(words in prop::collection::vec("[ab]{0,2}|longer than twelve", 0..40), null in "[ab]{0,2}") {
            let (values, offsets) = concatenated(&words);
            let mut builder = ViewBuilder::<StringViewType>::with_capacity(words.len());
            builder.append(values, &offsets).unwrap();
            let array = builder.finish_null_for(null.as_bytes()).unwrap();
            array.to_data().validate_full().unwrap();
            let expected: Vec<_> = words.iter().map(|word| (*word != null).then_some(word.as_str())).collect();
            prop_assert_eq!(array.iter().collect::<Vec<_>>(), expected);
        }
    }

    proptest! {
        #![proptest_config(crate::test_config())]
        #[test]
        fn words_are_gathered_as_one_by_one(words in prop::collection::vec("[ab]{0,2}|longer than twelve", 0..9), keys in prop::collection::vec(0u32..9, 0..70)) {
            let (values, offsets) = concatenated(&words);
            let mut builder = ViewBuilder::<StringViewType>::with_capacity(words.len());
            builder.append(values, &offsets).unwrap();
            let words = builder.finish_null_for(b"ab").unwrap();
            match gather(&words, &keys) {
                Ok(array) => {
                    array.to_data().validate_full().unwrap();
                    let word = |key: &u32| words.is_valid(*key as usize).then(|| words.value(*key as usize));
                    prop_assert!(array.iter().eq(keys.iter().map(word)));
                }
                Err(_) => prop_assert!(keys.iter().any(|key| *key as usize >= words.len())),
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
