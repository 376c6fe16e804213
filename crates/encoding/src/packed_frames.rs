//! Frames of reference: integers as small distances, packed highest bit first, a frame at a time.
//!
//! ```text
//! frame* | (u8 format, u8 bit width) of each frame | u8 values per frame | u32 count
//! frame = minimum, in 4 bytes (values of up to 4 bytes), 8 or 16 | distances, padded to a whole byte
//!
//! format 0    value = minimum + distance
//! format 1    value = value before + distance, from the minimum on
//! format 2    the values themselves, in all their bits
//!
//! i32 values 5, 7, 6    05000000 | 0 10 01, padded: 24 | 00 02 | 80 | 03000000
//! ```
//!
//! Arithmetic wraps at the width of the values, so signed and unsigned values need no difference.

use crate::{DecodeError, Result};

/// Bytes of the frame size and the count at the end.
const TRAILER_BYTES: usize = 5;
/// Values of a frame that is written.
const FRAME_VALUES: usize = 128;
const FORMAT_FROM_MINIMUM: u8 = 0;
const FORMAT_ASCENDING: u8 = 1;
const FORMAT_PLAIN: u8 = 2;

/// Number of values in `bytes`, without decoding them.
///
/// # Errors
/// If the trailer is cut.
pub fn count(bytes: &[u8]) -> Result<usize> {
    trailer(bytes).map(|(_, _, count)| count)
}

/// Decodes all values of `width` bytes (1, 2, 3, 4, 8 or 16) and appends them to `out`, little-endian.
///
/// At most `max_count` values are decoded, so the caller bounds what is allocated.
///
/// # Errors
/// If the width is none of those, a frame or the trailer is cut, bytes are left over, or there are more than `max_count`
/// values.
///
/// ```
/// let bytes = [5, 0, 0, 0, 0b0010_0100, 0, 2, 128, 3, 0, 0, 0];
/// let mut cells = Vec::new();
/// pilaster_encoding::packed_frames::decode(&bytes, 4, 3, &mut cells)?;
/// assert_eq!(cells, [5, 0, 0, 0, 7, 0, 0, 0, 6, 0, 0, 0]);
/// # Ok::<(), pilaster_encoding::DecodeError>(())
/// ```
pub fn decode(bytes: &[u8], width: usize, max_count: usize, out: &mut Vec<u8>) -> Result<()> {
    let minimum_bytes = minimum_bytes(width)?;
    let (body, frame_size, count) = trailer(bytes)?;
    if count > max_count {
        return Err(DecodeError::new(bytes.len(), format!("at most {max_count} values"), count.to_string()));
    }
    let frames = count.div_ceil(frame_size);
    let heads_at = body.len().checked_sub(frames.saturating_mul(2)).ok_or_else(|| {
        DecodeError::new(
            body.len(),
            format!("the widths of {frames} frames"),
            format!("{} bytes", body.len()),
        )
    })?;
    let (mut rest, heads) = body.split_at_checked(heads_at).unwrap_or_default();
    out.reserve(count.saturating_mul(width));
    let mut left = count;
    for head in heads.as_chunks::<2>().0 {
        let at = heads_at.saturating_sub(rest.len());
        let in_frame = left.min(frame_size);
        let [format, bit_width] = *head;
        if usize::from(bit_width) > width.saturating_mul(8) {
            return Err(DecodeError::new(
                at,
                format!("at most {} bits", width.saturating_mul(8)),
                bit_width.to_string(),
            ));
        }
        let packed_bytes = in_frame.saturating_mul(usize::from(bit_width)).div_ceil(8);
        let cut = || DecodeError::new(at, format!("a frame of {in_frame} values"), "the end of the frames");
        let (minimum, after) = rest.split_at_checked(minimum_bytes).ok_or_else(cut)?;
        let (packed, after) = after.split_at_checked(packed_bytes).ok_or_else(cut)?;
        decode_frame(format, little_endian(minimum), packed, bit_width, in_frame, width, out)
            .ok_or_else(|| DecodeError::new(at, "frame format 0, 1 or 2", format.to_string()))?;
        rest = after;
        left = left.saturating_sub(in_frame);
    }
    if !rest.is_empty() {
        let at = heads_at.saturating_sub(rest.len());
        return Err(DecodeError::new(at, "the end of the frames", format!("{} more bytes", rest.len())));
    }
    Ok(())
}

/// Builds frames, cell by cell.
///
/// A frame whose values ascend holds the steps between them (format 1), any other the distances from its minimum (format
/// 0). Format 2 is never written: the original's reader and writer disagree about its size.
///
/// ```
/// let mut encoder = pilaster_encoding::packed_frames::FrameEncoder::new(4, true)?;
/// encoder.push(&[5, 0, 0, 0, 7, 0, 0, 0, 6, 0, 0, 0]);
/// let mut bytes = Vec::new();
/// encoder.finish_into(&mut bytes);
/// assert_eq!(bytes, [5, 0, 0, 0, 0b0010_0100, 0, 2, 128, 3, 0, 0, 0]);
/// # Ok::<(), pilaster_encoding::DecodeError>(())
/// ```
#[derive(Debug, Clone)]
pub struct FrameEncoder {
    width: usize,
    is_signed: bool,
    frames: Vec<u8>,
    heads: Vec<u8>,
    pending: Vec<i128>,
    count: usize,
}

impl FrameEncoder {
    /// An encoder of integers of `width` bytes (1, 2, 3, 4, 8 or 16).
    ///
    /// # Errors
    /// If the width is none of those.
    pub fn new(width: usize, is_signed: bool) -> Result<Self> {
        minimum_bytes(width)?;
        Ok(Self {
            width,
            is_signed,
            frames: Vec::new(),
            heads: Vec::new(),
            pending: Vec::with_capacity(FRAME_VALUES),
            count: 0,
        })
    }

    /// Values pushed since the last finish.
    #[must_use]
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether nothing was pushed since the last finish.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Bytes of the whole frames so far.
    #[must_use]
    pub fn encoded_bytes(&self) -> usize {
        self.frames.len()
    }

    /// How many values fit before the next frame is packed.
    #[must_use]
    pub fn until_next_frame(&self) -> usize {
        FRAME_VALUES.saturating_sub(self.pending.len())
    }

    /// Adds little-endian cells; what is no whole cell is left out.
    pub fn push(&mut self, cells: &[u8]) {
        for cell in cells.chunks_exact(self.width) {
            let value = little_endian(cell);
            let unused = 128u32.saturating_sub(bits_of(self.width));
            let shifted = value.checked_shl(unused).unwrap_or_default();
            let value = if self.is_signed {
                shifted.cast_signed().checked_shr(unused).unwrap_or_default()
            } else {
                value.cast_signed()
            };
            self.pending.push(value);
            self.count = self.count.saturating_add(1);
            if self.pending.len() == FRAME_VALUES {
                self.pack_frame();
            }
        }
    }

    fn pack_frame(&mut self) {
        let Some((&first, rest)) = self.pending.split_first() else { return };
        let unused = 128u32.saturating_sub(bits_of(self.width));
        let mask = u128::MAX.checked_shr(unused).unwrap_or_default();
        let distance = |from: i128, to: i128| to.wrapping_sub(from).cast_unsigned() & mask;
        let is_ascending = self.pending.is_sorted();
        let minimum = rest.iter().copied().fold(first, i128::min);
        let mut before = minimum;
        let distances: Vec<u128> = self
            .pending
            .iter()
            .map(|&value| {
                let found = distance(before, value);
                if is_ascending {
                    before = value;
                }
                found
            })
            .collect();
        let all = distances.iter().fold(0, |all, value| all | value);
        let bits = 128u32.saturating_sub(all.leading_zeros());
        let minimum_bytes = minimum_bytes(self.width).unwrap_or_default();
        self.frames.extend_from_slice(minimum.to_le_bytes().get(..minimum_bytes).unwrap_or_default());
        pack_high_first(&distances, bits, &mut self.frames);
        let format = if is_ascending { FORMAT_ASCENDING } else { FORMAT_FROM_MINIMUM };
        self.heads.extend([format, u8::try_from(bits).unwrap_or(u8::MAX)]);
        self.pending.clear();
    }

    /// Ends the frames, appends them to `out` and starts anew.
    pub fn finish_into(&mut self, out: &mut Vec<u8>) {
        self.pack_frame();
        out.append(&mut self.frames);
        out.append(&mut self.heads);
        out.push(u8::try_from(FRAME_VALUES).unwrap_or(u8::MAX));
        out.extend(u32::try_from(self.count).unwrap_or(u32::MAX).to_le_bytes());
        self.count = 0;
    }
}

/// Appends the lowest `bits` of each value, highest bit first, filled up to a whole byte.
fn pack_high_first(values: &[u128], bits: u32, out: &mut Vec<u8>) {
    let (mut pending, mut free) = (0u8, 8u32);
    for value in values {
        let mut left = bits;
        while left > 0 {
            let now = left.min(free);
            left = left.saturating_sub(now);
            free = free.saturating_sub(now);
            let mask = u8::MAX.checked_shr(8u32.saturating_sub(now)).unwrap_or_default();
            let taken = value.checked_shr(left).unwrap_or_default().to_le_bytes()[0] & mask;
            pending |= taken.checked_shl(free).unwrap_or_default();
            if free == 0 {
                out.push(pending);
                (pending, free) = (0, 8);
            }
        }
    }
    if free < 8 {
        out.push(pending);
    }
}

/// Bits of a value of up to 16 bytes.
fn bits_of(width: usize) -> u32 {
    u32::try_from(width.saturating_mul(8)).unwrap_or(u32::MAX)
}

fn minimum_bytes(width: usize) -> Result<usize> {
    match width {
        1..=4 => Ok(4),
        8 => Ok(8),
        16 => Ok(16),
        _ => Err(DecodeError::new(0, "values of 1, 2, 3, 4, 8 or 16 bytes", width.to_string())),
    }
}

/// What stands before the trailer, the values per frame, and the count.
fn trailer(bytes: &[u8]) -> Result<(&[u8], usize, usize)> {
    let cut = || DecodeError::new(bytes.len(), "a frame size and a count", format!("{} bytes", bytes.len()));
    let (body, trailer) = bytes.split_last_chunk::<TRAILER_BYTES>().ok_or_else(cut)?;
    let [frame_size, count @ ..] = *trailer;
    if frame_size == 0 || frame_size > 128 {
        return Err(DecodeError::new(body.len(), "1 to 128 values per frame", frame_size.to_string()));
    }
    Ok((body, usize::from(frame_size), u32::from_le_bytes(count) as usize))
}

/// Appends the values of one frame; `None` if its format is unknown.
fn decode_frame(
    format: u8,
    minimum: u128,
    packed: &[u8],
    bit_width: u8,
    count: usize,
    width: usize,
    out: &mut Vec<u8>,
) -> Option<()> {
    let mut bits = BitReader { bytes: packed.iter(), pending: 0, pending_bits: 0 };
    let mut value = minimum;
    for _ in 0..count {
        let distance = bits.take(bit_width);
        value = match format {
            FORMAT_FROM_MINIMUM => minimum.wrapping_add(distance),
            FORMAT_ASCENDING => value.wrapping_add(distance),
            FORMAT_PLAIN => distance,
            _ => return None,
        };
        out.extend_from_slice(value.to_le_bytes().get(..width).unwrap_or_default());
    }
    Some(())
}

fn little_endian(bytes: &[u8]) -> u128 {
    bytes.iter().rev().fold(0, |value, byte| value << 8 | u128::from(*byte))
}

/// Takes numbers out of bytes, highest bit first.
struct BitReader<'a> {
    bytes: std::slice::Iter<'a, u8>,
    pending: u8,
    pending_bits: u8,
}

impl BitReader<'_> {
    fn take(&mut self, bits: u8) -> u128 {
        let (mut value, mut wanted) = (0u128, bits);
        while wanted > 0 {
            if self.pending_bits == 0 {
                self.pending = self.bytes.next().copied().unwrap_or_default();
                self.pending_bits = 8;
            }
            let now = wanted.min(self.pending_bits);
            let mask = u8::MAX.checked_shr(8u32.saturating_sub(u32::from(now))).unwrap_or_default();
            let shift = self.pending_bits.saturating_sub(now);
            value = value << now | u128::from(self.pending >> shift & mask);
            self.pending_bits = shift;
            wanted = wanted.saturating_sub(now);
        }
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Writes frames the slow way, as the module describes them.
    fn encode(values: &[u128], width: usize, ascending: bool) -> Vec<u8> {
        let minimum_bytes = width.next_power_of_two().max(4);
        let mask = if width == 16 { u128::MAX } else { (1 << (width * 8)) - 1 };
        let (mut frames, mut heads) = (Vec::new(), Vec::new());
        for frame in values.chunks(128) {
            let minimum = if ascending { frame[0] } else { *frame.iter().min().unwrap() };
            let mut before = minimum;
            let distances: Vec<u128> = frame
                .iter()
                .map(|value| {
                    let distance = value.wrapping_sub(if ascending { before } else { minimum }) & mask;
                    before = *value;
                    distance
                })
                .collect();
            let bits = 128 - distances.iter().max().unwrap().leading_zeros();
            frames.extend_from_slice(&minimum.to_le_bytes()[..minimum_bytes]);
            let packed: Vec<bool> = distances
                .iter()
                .flat_map(|value| (0..bits).rev().map(move |bit| value >> bit & 1 == 1))
                .collect();
            for byte in packed.chunks(8) {
                frames
                    .push(byte.iter().enumerate().fold(0, |sum, (at, bit)| sum | u8::from(*bit) << (7 - at)));
            }
            heads.extend([u8::from(ascending), bits as u8]);
        }
        frames.extend(heads);
        frames.push(128);
        frames.extend((values.len() as u32).to_le_bytes());
        frames
    }

    proptest! {
        #![proptest_config(crate::test_config())]
        #[test]
        fn frames_are_read_back(
            width in prop::sample::select(vec![1usize, 2, 3, 4, 8, 16]),
            values in prop::collection::vec(any::<u128>(), 0..400),
            shift in 0u32..120,
            ascending: bool,
        ) {
            let mask = if width == 16 { u128::MAX } else { (1 << (width * 8)) - 1 };
            let values: Vec<u128> = values.iter().map(|value| value >> shift & mask).collect();
            let bytes = encode(&values, width, ascending);
            let mut cells = Vec::new();
            decode(&bytes, width, values.len(), &mut cells).unwrap();
            let expected: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()[..width].to_vec()).collect();
            prop_assert_eq!(cells, expected);
            prop_assert_eq!(count(&bytes).unwrap(), values.len());
            if !values.is_empty() {
                prop_assert!(decode(&bytes, width, values.len() - 1, &mut Vec::new()).is_err());
                prop_assert!(decode(&bytes[1..], width, values.len(), &mut Vec::new()).is_err());
            }
        }

        #[test]
        fn written_frames_are_read_back(
            width in prop::sample::select(vec![1usize, 2, 3, 4, 8, 16]),
            values in prop::collection::vec(any::<u128>(), 0..400),
            shift in 0u32..120,
            is_signed: bool,
            is_sorted: bool,
        ) {
            let mut values: Vec<u128> = values.iter().map(|value| value >> shift).collect();
            if is_sorted {
                values.sort_unstable();
            }
            let cells: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()[..width].to_vec()).collect();
            let mut encoder = FrameEncoder::new(width, is_signed).unwrap();
            for _ in 0..2 {
                encoder.push(&cells);
                prop_assert_eq!(encoder.len(), values.len());
                let (mut bytes, mut decoded) = (Vec::new(), Vec::new());
                encoder.finish_into(&mut bytes);
                decode(&bytes, width, values.len(), &mut decoded).unwrap();
                prop_assert_eq!(&decoded, &cells);
            }
        }

        #[test]
        fn any_bytes_are_decoded_or_refused(
            bytes in prop::collection::vec(any::<u8>(), 0..300),
            width in 0usize..18,
            max in 0usize..1000,
        ) {
            let mut cells = Vec::new();
            if decode(&bytes, width, max, &mut cells).is_ok() {
                prop_assert!(cells.len() <= max * width);
            }
        }
    }
}
