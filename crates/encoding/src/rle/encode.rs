//! Writing the runs, with the decisions of Kudu's encoder.
//!
//! Which values become a repeated run and which a literal one is free; these choices make the bytes those of the
//! original writer:
//!
//! * Values are collected in groups of eight. A group of eight equal values starts a repeated run, which goes on as long
//!   as the value does; any other group joins the open literal run.
//! * A literal run is closed before a repeated run and at 63 groups, because its header is one byte reserved in advance.
//! * At the end a pending group of equal values with no literal run open is a repeated run, however short.

use super::RleValue;
use crate::bits::{self, width_mask};
use crate::varint;

/// Values in a group.
const GROUP: usize = 8;
/// With this many groups a literal run is closed: the header `2 * 63 + 1` is the largest that fits one byte.
const MAX_LITERAL_GROUPS: usize = 63;
/// The longest repeated run whose header fits 32 bits.
const MAX_REPEATED: usize = (u32::MAX >> 1) as usize;

/// Builds a stream value by value.
///
/// ```
/// let mut encoder = pilaster_encoding::rle::RleEncoder::new(32);
/// encoder.push_run(7, 9);
/// encoder.push(0xffff_ffff);
/// assert_eq!(encoder.finish(), [0x12, 7, 0, 0, 0, 0x02, 0xff, 0xff, 0xff, 0xff]);
/// ```
#[derive(Debug, Clone)]
pub struct RleEncoder {
    width: u32,
    out: Vec<u8>,
    len: usize,
    /// The last value; before the first one it is 0, so leading zeros behave like any run.
    current: u64,
    /// How often `current` was repeated since the last group was decided.
    repeated: usize,
    buffer: [u64; GROUP],
    buffered: usize,
    /// Where the header of the open literal run stands in `out`.
    literal_header: Option<usize>,
    /// Whole groups written to the open literal run.
    literal_groups: usize,
}

impl RleEncoder {
    /// An encoder of integers of `width` bits, which must be 1 to 64 (other widths are brought into that range).
    #[must_use]
    pub fn new(width: u32) -> Self {
        Self {
            width: width.clamp(1, 64),
            out: Vec::new(),
            len: 0,
            current: 0,
            repeated: 0,
            buffer: [0; GROUP],
            buffered: 0,
            literal_header: None,
            literal_groups: 0,
        }
    }

    /// Values pushed so far.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether nothing was pushed yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes written so far; values that wait for the decision about their run are not in it.
    #[must_use]
    pub fn encoded_bytes(&self) -> usize {
        self.out.len()
    }

    /// Adds a value; bits above the width are dropped.
    #[inline]
    pub fn push(&mut self, value: u64) {
        let value = value & width_mask(self.width);
        self.len = self.len.saturating_add(1);
        if value == self.current && self.repeated < MAX_REPEATED {
            self.repeated = self.repeated.saturating_add(1);
            if self.repeated > GROUP {
                return;
            }
        } else {
            if self.repeated >= GROUP {
                self.write_repeated();
            }
            self.repeated = 1;
            self.current = value;
        }
        if let Some(slot) = self.buffer.get_mut(self.buffered) {
            *slot = value;
            self.buffered = self.buffered.saturating_add(1);
        }
        if self.buffered == GROUP {
            self.decide_group();
        }
    }

    /// Adds `n` times the same value.
    pub fn push_run(&mut self, value: u64, n: usize) {
        let value = value & width_mask(self.width);
        let mut left = n;
        while left > 0 {
            if self.repeated >= GROUP && self.current == value {
                let more = left.min(MAX_REPEATED.saturating_sub(self.repeated));
                self.repeated = self.repeated.saturating_add(more);
                self.len = self.len.saturating_add(more);
                left = left.saturating_sub(more);
                if left == 0 {
                    return;
                }
            }
            self.push(value);
            left = left.saturating_sub(1);
        }
    }

    /// Whether the next value starts a group.
    #[inline]
    fn at_group_start(&self) -> bool {
        self.buffered == 0 && self.repeated == 0
    }

    /// Adds a group that is not eight times the same value; only at the start of a group.
    #[inline]
    fn push_mixed_group<T: RleValue>(&mut self, group: &[T; GROUP]) {
        self.open_literal();
        bits::pack_width(group, self.width, &mut self.out);
        let [.., last] = group;
        self.end_mixed_group(last.to_bits());
    }

    #[inline]
    fn end_mixed_group(&mut self, last: u64) {
        self.current = last & width_mask(self.width);
        self.len = self.len.saturating_add(GROUP);
        self.count_group();
    }

    fn count_group(&mut self) {
        self.literal_groups = self.literal_groups.saturating_add(1);
        if self.literal_groups >= MAX_LITERAL_GROUPS {
            self.close_literal();
        }
    }

    /// Eight values are there: they are a run, or they join the literal run.
    fn decide_group(&mut self) {
        if self.repeated >= GROUP {
            self.buffered = 0;
            self.close_literal();
            return;
        }
        self.write_buffered();
        self.repeated = 0;
        self.count_group();
    }

    fn open_literal(&mut self) {
        if self.literal_header.is_none() {
            self.literal_header = Some(self.out.len());
            self.out.push(0);
        }
    }

    fn write_buffered(&mut self) {
        self.open_literal();
        let buffer = self.buffer;
        bits::pack_width(buffer.get(..self.buffered).unwrap_or_default(), self.width, &mut self.out);
        self.buffered = 0;
    }

    fn close_literal(&mut self) {
        if let Some(at) = self.literal_header.take()
            && let Some(header) = self.out.get_mut(at)
        {
            *header = (self.literal_groups.to_le_bytes()[0] << 1) | 1;
        }
        self.literal_groups = 0;
    }

    fn write_repeated(&mut self) {
        varint::write_u64(&mut self.out, (self.repeated as u64) << 1);
        let value = self.current.to_le_bytes();
        self.out.extend(value.iter().take(self.width.div_ceil(8) as usize));
        self.repeated = 0;
        self.buffered = 0;
    }

    /// Ends the stream and appends it to `out`.
    pub fn finish_into(self, out: &mut Vec<u8>) {
        if out.is_empty() {
            *out = self.finish();
        } else {
            out.extend_from_slice(&self.finish());
        }
    }

    /// Ends the stream.
    #[must_use]
    pub fn finish(mut self) -> Vec<u8> {
        let only_repeated =
            self.literal_header.is_none() && (self.repeated == self.buffered || self.buffered == 0);
        if self.repeated > 0 && only_repeated {
            self.write_repeated();
        } else {
            if self.buffered > 0 {
                self.write_buffered();
                self.literal_groups = self.literal_groups.saturating_add(1);
            }
            self.close_literal();
        }
        self.out
    }
}

/// Appends the stream of `values`, each `width` bits wide.
pub fn encode<T: RleValue>(values: &[T], width: u32, out: &mut Vec<u8>) {
    let mut encoder = RleEncoder::new(width);
    let mut rest = values;
    while let Some(&first) = rest.first() {
        if encoder.at_group_start()
            && let Some((group, after)) = rest.split_first_chunk::<GROUP>()
            && group.iter().any(|value| value != &first)
        {
            encoder.push_mixed_group(group);
            rest = after;
        } else {
            let n = rest.iter().position(|value| value != &first).unwrap_or(rest.len());
            encoder.push_run(first.to_bits(), n);
            rest = rest.get(n..).unwrap_or_default();
        }
    }
    encoder.finish_into(out);
}

/// Appends the stream of `count` bits of `bits`, from bit `offset` on. Bits beyond the end count as zeros.
pub fn encode_bitmap(bits: &[u8], offset: usize, count: usize, out: &mut Vec<u8>) {
    let mut encoder = RleEncoder::new(1);
    let mut at = offset;
    let end = offset.saturating_add(count);
    while at < end {
        let window = window(bits, at);
        let left = end.saturating_sub(at);
        let byte = window.to_le_bytes()[0];
        if encoder.at_group_start() && left >= GROUP && byte != 0 && byte != u8::MAX {
            encoder.open_literal();
            encoder.out.push(byte);
            encoder.end_mixed_group(u64::from(byte >> 7));
            at = at.saturating_add(GROUP);
        } else {
            let bit = window & 1;
            let run = if bit == 1 { window.trailing_ones() } else { window.trailing_zeros() };
            let n = (run.min(WINDOW_BITS) as usize).min(left);
            encoder.push_run(bit, n);
            at = at.saturating_add(n);
        }
    }
    encoder.finish_into(out);
}

/// Bits of [`window`] that are real whatever the offset in the byte.
const WINDOW_BITS: u32 = 57;

/// At least [`WINDOW_BITS`] bits from bit `at` on, zeros beyond the end.
#[inline]
fn window(bits: &[u8], at: usize) -> u64 {
    let bytes = bits.get(at / 8..).unwrap_or_default();
    let word = match bytes.first_chunk() {
        Some(chunk) => u64::from_le_bytes(*chunk),
        None => bytes.iter().rev().fold(0, |word, &byte| (word << 8) | u64::from(byte)),
    };
    word >> (at % 8)
}
