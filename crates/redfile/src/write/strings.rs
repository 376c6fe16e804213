//! Byte strings on their way into a page: how they are put there, and the least and the greatest of them.

use arrow_array::types::{ByteArrayType, ByteViewType};
use arrow_array::{FixedSizeBinaryArray, GenericByteArray, GenericByteViewArray};
use arrow_buffer::{ArrowNativeType, Buffer};
use pilaster_core::Result;
use pilaster_encoding::prefixed::{self, BLOCK_LEN, MAX_INLINE_LEN, PREFIX_LEN};

use super::statistics::compare_decimals;
use crate::schema::Order;

/// Byte strings by number.
pub(super) trait Strings {
    /// How many there are.
    fn len(&self) -> usize;

    /// Appends one of them behind its length; gives its key. One that is not there is empty.
    fn put(&self, number: usize, out: &mut Vec<u8>) -> Result<Key>;
}

/// A number by which most strings can be compared: the first twelve bytes, filled up with zeros, then the length.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key(u128);

impl Key {
    #[inline]
    fn of(string: &[u8]) -> Self {
        Self::new(first_bytes(string), u32::try_from(string.len()).unwrap_or(u32::MAX))
    }

    /// That of a string that lies in an Arrow view: its length is in the lowest bits, its bytes are above.
    #[inline(always)]
    fn of_view(view: u128, len: u32) -> Self {
        Self::new((view >> 32).swap_bytes(), len)
    }

    #[inline(always)]
    fn new(bytes: u128, len: u32) -> Self {
        Self((bytes & !u128::from(u32::MAX)) | u128::from(len))
    }

    /// Whether this key and another do not tell which of their strings is less.
    #[inline(always)]
    fn is_undecided(self, other: Self) -> bool {
        let is_long = |key: Self| key.0 & u128::from(u32::MAX) > MAX_INLINE_LEN as u128;
        self.0 >> 32 == other.0 >> 32 && is_long(self) && is_long(other)
    }
}

/// The first sixteen bytes as a number, which is less if they are; fewer are filled up with zeros.
#[inline]
fn first_bytes(string: &[u8]) -> u128 {
    if let Some(first) = string.first_chunk() {
        return u128::from_be_bytes(*first);
    }
    // From both ends; what the last ones repeat of the first ones is shifted out.
    let missing_bits = 128usize.saturating_sub(string.len().saturating_mul(8));
    let missing_bits = u32::try_from(missing_bits).unwrap_or_default();
    if let (Some(first), Some(last)) = (string.first_chunk(), string.last_chunk()) {
        let rest = u64::from_be_bytes(*last).checked_shl(missing_bits).unwrap_or_default();
        return (u128::from(u64::from_be_bytes(*first)) << 64) | u128::from(rest);
    }
    string
        .iter()
        .fold(0, |sum, byte| (sum << 8) | u128::from(*byte))
        .checked_shl(missing_bits)
        .unwrap_or_default()
}

/// Appends a string and gives its key.
#[inline]
fn put(string: &[u8], out: &mut Vec<u8>) -> Result<Key> {
    prefixed::put(string, out)?;
    Ok(Key::of(string))
}

/// As [`put`], for `len` bytes inside of others: what follows them is read, too, because blocks of fixed size are copied faster.
#[inline(always)]
fn put_within(bytes: &[u8], start: usize, len: usize, out: &mut Vec<u8>) -> Result<Key> {
    let rest = bytes.get(start..).unwrap_or_default();
    match rest.first_chunk::<BLOCK_LEN>() {
        Some(block) if len <= BLOCK_LEN => {
            prefixed::put_block(block, len, out);
            let bytes = block.first_chunk().map_or(0, |first| u128::from_be_bytes(*first));
            let behind = u128::MAX.checked_shr(u32::try_from(len.wrapping_mul(8)).unwrap_or(u32::MAX));
            Ok(Key::new(bytes & !behind.unwrap_or_default(), u32::try_from(len).unwrap_or(u32::MAX)))
        }
        _ => put(rest.get(..len).unwrap_or_default(), out),
    }
}

/// Strings that end where the next begins.
impl<T: ByteArrayType> Strings for &GenericByteArray<T> {
    fn len(&self) -> usize {
        arrow_array::Array::len(self)
    }

    #[inline(always)]
    fn put(&self, number: usize, out: &mut Vec<u8>) -> Result<Key> {
        let offsets = self.value_offsets();
        let at = |number: usize| offsets.get(number).map_or(0, |offset| offset.as_usize());
        let (start, end) = (at(number), at(number.wrapping_add(1)));
        put_within(self.value_data(), start, end.saturating_sub(start), out)
    }
}

/// The views of an array and what the longer ones lead to.
pub(super) struct Views<'a> {
    views: &'a [u128],
    buffers: &'a [Buffer],
}

impl<'a> Views<'a> {
    pub fn new<T: ByteViewType + ?Sized>(array: &'a GenericByteViewArray<T>) -> Self {
        Self { views: array.views(), buffers: array.data_buffers() }
    }
}

impl Strings for Views<'_> {
    fn len(&self) -> usize {
        self.views.len()
    }

    #[inline(always)]
    fn put(&self, number: usize, out: &mut Vec<u8>) -> Result<Key> {
        let view = self.views.get(number).copied().unwrap_or_default();
        let [a, b, c, d, _, _, _, _, e, f, g, h, i, j, k, l] = view.to_le_bytes();
        let len = u32::from_le_bytes([a, b, c, d]);
        if len as usize <= MAX_INLINE_LEN {
            prefixed::put_inline(view, out);
            return Ok(Key::of_view(view, len));
        }
        let (buffer, start) = (u32::from_le_bytes([e, f, g, h]), u32::from_le_bytes([i, j, k, l]) as usize);
        let buffer = self.buffers.get(buffer as usize).map_or(&[][..], Buffer::as_slice);
        put_within(buffer, start, len as usize, out)
    }
}

impl Strings for &FixedSizeBinaryArray {
    fn len(&self) -> usize {
        arrow_array::Array::len(self)
    }

    #[inline]
    fn put(&self, number: usize, out: &mut Vec<u8>) -> Result<Key> {
        put(if number < Strings::len(self) { self.value(number) } else { &[] }, out)
    }
}

impl Strings for &[Vec<u8>] {
    fn len(&self) -> usize {
        <[_]>::len(self)
    }

    #[inline]
    fn put(&self, number: usize, out: &mut Vec<u8>) -> Result<Key> {
        put(self.get(number).map_or(&[][..], Vec::as_slice), out)
    }
}

/// Where a string lies among those of a page.
#[derive(Debug, Clone, Copy, Default)]
struct Place {
    start: usize,
    end: usize,
    key: Key,
}

impl Place {
    fn of(self, bytes: &[u8]) -> &[u8] {
        bytes.get(self.start..self.end).unwrap_or_default()
    }

    #[inline(always)]
    fn is_below(self, other: Self, bytes: &[u8], order: Order) -> bool {
        if order == Order::DecimalBytes {
            return compare_decimals(self.of(bytes), other.of(bytes)).is_lt();
        }
        if self.key.is_undecided(other.key) {
            return self.of(bytes) < other.of(bytes);
        }
        self.key < other.key
    }
}

/// The strings of a page, encoded, with the least and the greatest of them.
#[derive(Debug, Default)]
pub(super) struct PageStrings {
    pub bytes: Vec<u8>,
    pub count: usize,
    least: Place,
    greatest: Place,
}

impl PageStrings {
    /// Appends a string; gives the bytes it takes.
    #[inline(always)]
    pub fn push(&mut self, strings: &impl Strings, number: usize, order: Order) -> Result<usize> {
        let before = self.bytes.len();
        let key = strings.put(number, &mut self.bytes)?;
        let place = Place { start: before.wrapping_add(PREFIX_LEN), end: self.bytes.len(), key };
        if self.count == 0 {
            (self.least, self.greatest) = (place, place);
        } else if place.is_below(self.least, &self.bytes, order) {
            self.least = place;
        } else if self.greatest.is_below(place, &self.bytes, order) {
            self.greatest = place;
        }
        self.count = self.count.wrapping_add(1);
        Ok(place.end.wrapping_sub(before))
    }

    /// The least and the greatest string; empty if there are none.
    pub fn range(&self) -> (&[u8], &[u8]) {
        (self.least.of(&self.bytes), self.greatest.of(&self.bytes))
    }

    pub fn clear(&mut self) {
        self.bytes.clear();
        self.count = 0;
        (self.least, self.greatest) = (Place::default(), Place::default());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::{BinaryArray, BinaryViewArray};
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn every_form_gives_the_same_bytes_and_the_same_bounds(
            strings in prop::collection::vec(prop::collection::vec(prop_oneof![Just(0u8), Just(7), Just(255)], 0..20), 1..12),
            long in prop::option::of(60usize..70),
        ) {
            let strings: Vec<Vec<u8>> = strings.into_iter().chain(long.map(|len| vec![9; len])).collect();
            let least = strings.iter().min().unwrap();
            let greatest = strings.iter().max().unwrap();
            let mut expected = Vec::new();
            for string in &strings {
                expected.extend_from_slice(&(string.len() as u32).to_le_bytes());
                expected.extend_from_slice(string);
            }
            let views = BinaryViewArray::from_iter_values(&strings);
            let offsets = BinaryArray::from_iter_values(&strings);
            let forms: [PageStrings; 3] = [
                filled(&Views::new(&views)),
                filled(&&offsets),
                filled(&strings.as_slice()),
            ];
            for form in forms {
                prop_assert_eq!(&form.bytes, &expected);
                prop_assert_eq!(form.range(), (least.as_slice(), greatest.as_slice()));
            }
        }
    }

    fn filled(strings: &impl Strings) -> PageStrings {
        let mut page = PageStrings::default();
        for number in 0..strings.len() {
            page.push(strings, number, Order::Bytes).unwrap();
        }
        page
    }
}
