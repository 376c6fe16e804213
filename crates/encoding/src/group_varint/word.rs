//! What groups of `u32` and groups of `u64` have in common: everything but the numbers in [`Word`].

use crate::{DecodeError, Result};

/// A value of a group, and the shape of groups of it.
pub(super) trait Word: Copy + Default + PartialEq + Into<u64> {
    /// The values of a group.
    type Group: IntoIterator<Item = Self>;
    /// How many they are.
    const GROUP: usize;
    /// Bytes of the selector, which is big-endian.
    const SELECTOR_LEN: usize;
    /// Bits of the selector that tell the length of one value; those of the last value are the lowest.
    const LENGTH_BITS: usize;
    /// Bytes of the shortest group.
    const MIN_GROUP_LEN: usize = Self::SELECTOR_LEN.wrapping_add(Self::GROUP);
    /// Bytes of the longest group.
    const MAX_GROUP_LEN: usize = Self::SELECTOR_LEN.wrapping_add(Self::GROUP.wrapping_mul(size_of::<Self>()));

    /// Bytes of all values inside groups.
    fn encoded_lens(values: &[Self]) -> usize {
        values.iter().fold(0, |sum, &value| sum.wrapping_add(encoded_len(value)))
    }

    /// Reads one group at `*pos` and moves `*pos` behind it.
    fn read_group(bytes: &[u8], pos: &mut usize) -> Result<Self::Group>;

    /// Writes one group to the start of `place`, which has room for the longest; bytes after it are scratch. Gives its length.
    fn put_group(place: &mut [u8], values: &[Self]) -> usize;

    /// Decodes as many groups as the machine has a fast way for, at most `groups`; gives the position behind them and their
    /// number.
    fn decode_fast(_bytes: &[u8], _groups: usize, _out: &mut Vec<Self>) -> (usize, usize) {
        (0, 0)
    }
}

/// Values of the largest group.
const MAX_GROUP: usize = 5;

/// What only differs by types: lengths of places are constants then, and hardly anything is checked.
macro_rules! groups {
    ($word:ty, $selector:ty) => {
        type Group = [$word; <$word>::GROUP];

        #[inline]
        fn read_group(bytes: &[u8], pos: &mut usize) -> Result<Self::Group> {
            let truncated = || truncated::<Self>(*pos);
            let rest = bytes.get(*pos..).unwrap_or_default();
            let (selector, mut rest) = rest.split_first_chunk().ok_or_else(truncated)?;
            let selector = usize::from(<$selector>::from_be_bytes(*selector));
            let mut shift = Self::LENGTH_BITS.wrapping_mul(Self::GROUP);
            if selector >> shift != 0 {
                return Err(no_selector(*pos, 1usize << shift, selector));
            }
            let mut values = [0; Self::GROUP];
            for value in &mut values {
                shift = shift.wrapping_sub(Self::LENGTH_BITS);
                let len = ((selector >> shift) & size_of::<Self>().wrapping_sub(1)).wrapping_add(1);
                let (now, later) = rest.split_at_checked(len).ok_or_else(truncated)?;
                *value = now.iter().rev().fold(0, |value, &byte| (value << 8) | Self::from(byte));
                rest = later;
            }
            *pos = bytes.len().wrapping_sub(rest.len());
            Ok(values)
        }

        #[inline(always)]
        fn put_group(place: &mut [u8], values: &[Self]) -> usize {
            let place = place.first_chunk_mut::<{ <$word>::MAX_GROUP_LEN }>();
            let values = values.first_chunk::<{ <$word>::GROUP }>();
            let (Some(place), Some(values)) = (place, values) else { return 0 };
            let mut selector: $selector = 0;
            let mut at = Self::SELECTOR_LEN;
            for value in values {
                let len = encoded_len(*value);
                let [low, ..] = len.wrapping_sub(1).to_le_bytes();
                selector = (selector << Self::LENGTH_BITS) | <$selector>::from(low);
                // The longest group ends with the place, so all bytes of a value are always there.
                if let Some(place) = place.get_mut(at..).and_then(|rest| rest.first_chunk_mut()) {
                    *place = value.to_le_bytes();
                }
                at = at.wrapping_add(len);
            }
            if let Some(place) = place.first_chunk_mut() {
                *place = selector.to_be_bytes();
            }
            at
        }
    };
}

impl Word for u32 {
    const GROUP: usize = 4;
    const SELECTOR_LEN: usize = 1;
    const LENGTH_BITS: usize = 2;

    groups!(u32, u8);

    fn encoded_lens(values: &[Self]) -> usize {
        // Comparisons instead of leading zeros, so that the loop is vectorised.
        let over = |value: u32| {
            u32::from(value > 0xff)
                .wrapping_add(u32::from(value > 0xffff))
                .wrapping_add(u32::from(value > 0xff_ffff))
        };
        let extra = |chunk: &[u32]| chunk.iter().fold(0u32, |sum, &value| sum.wrapping_add(over(value)));
        values.chunks(1 << 16).map(|chunk| extra(chunk) as usize).sum::<usize>().saturating_add(values.len())
    }

    #[cfg(all(target_arch = "x86_64", not(miri)))]
    fn decode_fast(bytes: &[u8], groups: usize, out: &mut Vec<Self>) -> (usize, usize) {
        super::ssse3::narrow::decode(bytes, groups, out)
    }
}

impl Word for u64 {
    const GROUP: usize = 5;
    const SELECTOR_LEN: usize = 2;
    const LENGTH_BITS: usize = 3;

    groups!(u64, u16);

    #[cfg(all(target_arch = "x86_64", not(miri)))]
    fn decode_fast(bytes: &[u8], groups: usize, out: &mut Vec<Self>) -> (usize, usize) {
        super::ssse3::wide::decode(bytes, groups, out)
    }
}

#[cold]
fn truncated<W: Word>(at: usize) -> DecodeError {
    DecodeError::new(at, format!("a whole group of {} varints", W::GROUP), "the end of the bytes")
}

#[cold]
fn no_selector(at: usize, end: usize, found: usize) -> DecodeError {
    DecodeError::new(at, format!("a selector below {end:#06x}"), format!("{found:#06x}"))
}

/// Bytes of `value` inside a group, at least 1.
#[inline(always)]
pub(super) fn encoded_len(value: impl Word) -> usize {
    (71u32.saturating_sub((value.into() | 1).leading_zeros()) / 8) as usize
}

/// The portable decoder: appends the values of `groups` groups from byte `pos` on; returns the position behind them.
pub(super) fn decode_portable<W: Word>(
    bytes: &[u8],
    mut pos: usize,
    groups: usize,
    out: &mut Vec<W>,
) -> Result<usize> {
    for _ in 0..groups {
        out.extend(W::read_group(bytes, &mut pos)?);
    }
    Ok(pos)
}

/// Appends the values of `groups` groups; returns the bytes they took.
pub(super) fn decode_groups<W: Word>(bytes: &[u8], groups: usize, out: &mut Vec<W>) -> Result<usize> {
    let (pos, done) = W::decode_fast(bytes, groups, out);
    decode_portable(bytes, pos, groups.saturating_sub(done), out)
}

/// See [`super::decode`].
pub(super) fn decode<W: Word>(bytes: &[u8], count: usize, out: &mut Vec<W>) -> Result<usize> {
    // Every group takes a byte for each value or more, so the count is bounded before anything is allocated for it.
    let groups = count.div_ceil(W::GROUP);
    let least = groups.saturating_mul(W::MIN_GROUP_LEN);
    if least > bytes.len() {
        let expected = format!("{count} values in at least {least} bytes");
        return Err(DecodeError::new(bytes.len(), expected, format!("{} bytes", bytes.len())));
    }
    let start = out.len();
    let used = decode_groups(bytes, groups, out);
    match used {
        Ok(_) => out.truncate(start.saturating_add(count)),
        Err(_) => out.truncate(start),
    }
    used
}

/// See [`super::decode_all`].
pub(super) fn decode_all<W: Word>(bytes: &[u8], count: usize, out: &mut Vec<W>) -> Result<()> {
    let start = out.len();
    let padded = count.checked_next_multiple_of(W::GROUP).unwrap_or(usize::MAX);
    let used = decode(bytes, padded, out)?;
    let end = start.saturating_add(count);
    let is_padded = out.get(end..).is_some_and(|padding| padding.iter().all(|value| *value == W::default()));
    if used == bytes.len() && is_padded {
        out.truncate(end);
        return Ok(());
    }
    out.truncate(start);
    Err(if used == bytes.len() {
        DecodeError::new(used, "zeros after the last value of a group", "another value")
    } else {
        DecodeError::new(used, format!("{used} bytes of groups"), format!("{} bytes", bytes.len()))
    })
}

/// Bytes that [`encode`] appends for `values`.
pub(super) fn encoded_size<W: Word>(values: &[W]) -> usize {
    let groups = values.len().div_ceil(W::GROUP);
    let padding = groups.saturating_mul(W::GROUP).saturating_sub(values.len());
    let selectors = groups.saturating_mul(W::SELECTOR_LEN);
    selectors.saturating_add(W::encoded_lens(values)).saturating_add(padding)
}

/// Appends `values` in groups, the last one filled up with zeros.
pub(super) fn encode<W: Word>(values: &[W], out: &mut Vec<u8>) {
    let groups = values.chunks_exact(W::GROUP);
    let rest = groups.remainder();
    let mut at = out.len();
    // Room for the longest form; each group overwrites what the one before wrote too much.
    let most = values.len().div_ceil(W::GROUP).saturating_mul(W::MAX_GROUP_LEN);
    out.resize(at.saturating_add(most), 0);
    for group in groups {
        at = at.wrapping_add(W::put_group(out.get_mut(at..).unwrap_or_default(), group));
    }
    if !rest.is_empty() {
        let mut last = [W::default(); MAX_GROUP];
        last.iter_mut().zip(rest).for_each(|(slot, value)| *slot = *value);
        let last = last.get(..W::GROUP).unwrap_or(&last);
        at = at.wrapping_add(W::put_group(out.get_mut(at..).unwrap_or_default(), last));
    }
    out.truncate(at);
}
