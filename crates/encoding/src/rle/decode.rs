//! Reading the runs.

use std::ops::Range;

use super::RleValue;
use crate::bits::{self, width_mask};
use crate::{DecodeError, Result, varint};

/// What is left of the run the decoder stands in.
#[derive(Debug, Clone)]
enum Run {
    Repeated {
        value: u64,
        left: usize,
    },
    /// `next` values were taken, `stored` have bytes, `nominal` is what the header promised (a multiple of eight).
    Literal {
        bytes: Range<usize>,
        next: usize,
        stored: usize,
        nominal: usize,
    },
}

impl Run {
    const EMPTY: Self = Run::Repeated { value: 0, left: 0 };

    /// Values that can still be taken.
    fn available(&self) -> usize {
        match self {
            Run::Repeated { left, .. } => *left,
            Run::Literal { next, stored, .. } => stored.saturating_sub(*next),
        }
    }

    fn advance(&mut self, n: usize) {
        match self {
            Run::Repeated { left, .. } => *left = left.saturating_sub(n),
            Run::Literal { next, .. } => *next = next.saturating_add(n),
        }
    }
}

/// Reads a stream piece by piece, out of bytes that it borrows or owns.
///
/// ```
/// use pilaster_encoding::rle::RleDecoder;
///
/// let stream = [0x12, 7, 0, 0, 0, 0x02, 0xff, 0xff, 0xff, 0xff];
/// let mut decoder = RleDecoder::new(stream, 32)?;
/// decoder.skip(8)?;
/// let mut values = [0i32; 2];
/// decoder.read(&mut values)?;
/// assert_eq!(values, [7, -1]);
/// decoder.finish()?;
/// # Ok::<(), pilaster_encoding::DecodeError>(())
/// ```
#[derive(Debug, Clone)]
pub struct RleDecoder<B> {
    bytes: B,
    pos: usize,
    width: u32,
    run: Run,
}

impl<B: AsRef<[u8]>> RleDecoder<B> {
    /// A decoder of integers of `width` bits.
    ///
    /// # Errors
    /// If the width is not in 1 to 64.
    pub fn new(bytes: B, width: u32) -> Result<Self> {
        if width == 0 || width > 64 {
            return Err(DecodeError::new(0, "a width of 1 to 64 bits", width.to_string()));
        }
        Ok(Self { bytes, pos: 0, width, run: Run::EMPTY })
    }

    /// Reads the next `out.len()` values.
    ///
    /// # Errors
    /// If the stream has fewer, a run is malformed, or `T` is narrower than the stream's values.
    pub fn read<T: RleValue>(&mut self, out: &mut [T]) -> Result<()> {
        if self.width > T::BITS {
            return Err(DecodeError::new(
                0,
                format!("a width of 1 to {} bits", T::BITS),
                self.width.to_string(),
            ));
        }
        let mut rest = out;
        while !rest.is_empty() {
            let n = self.available()?.min(rest.len());
            let (now, later) = std::mem::take(&mut rest).split_at_mut(n);
            match &self.run {
                Run::Repeated { value, .. } => now.fill(T::from_bits(*value)),
                Run::Literal { bytes, next, .. } => {
                    let stored = self.bytes.as_ref().get(bytes.clone()).unwrap_or_default();
                    bits::unpack_width(stored, self.width, *next, now)?;
                }
            }
            self.run.advance(n);
            rest = later;
        }
        Ok(())
    }

    /// Leaves out the next `n` values.
    ///
    /// # Errors
    /// If the stream has fewer or a run is malformed.
    pub fn skip(&mut self, n: usize) -> Result<()> {
        let mut left = n;
        while left > 0 {
            let now = self.available()?.min(left);
            self.run.advance(now);
            left = left.saturating_sub(now);
        }
        Ok(())
    }

    /// Says whether the stream ended with the last value that was taken.
    ///
    /// # Errors
    /// If bytes, a repeated run or a group of a literal run go on after it.
    pub fn finish(self) -> Result<()> {
        match self.run {
            Run::Repeated { left: 0, .. } => {}
            Run::Repeated { left, .. } => {
                let found = format!("a run of {left} more");
                return Err(DecodeError::new(self.pos, "no value after the last", found));
            }
            Run::Literal { bytes, next, nominal, .. } => {
                let used = next.saturating_mul(self.width as usize).div_ceil(8);
                if used < bytes.len() {
                    let at = self.pos.saturating_sub(bytes.len()).saturating_add(used);
                    let found = format!("{} more bytes", bytes.len().saturating_sub(used));
                    return Err(DecodeError::new(at, "no literal byte after the last value", found));
                }
                if nominal.saturating_sub(next) >= 8 {
                    let found = format!("a run of {nominal}");
                    return Err(DecodeError::new(
                        self.pos,
                        format!("a literal run for {next} values"),
                        found,
                    ));
                }
            }
        }
        let length = self.bytes.as_ref().len();
        if self.pos < length {
            let found = format!("{} more bytes", length.saturating_sub(self.pos));
            return Err(DecodeError::new(self.pos, "the end of the stream", found));
        }
        Ok(())
    }

    /// How many values the current run has left, at least one; opens the next run if there is none.
    #[inline]
    fn available(&mut self) -> Result<usize> {
        let available = self.run.available();
        if available > 0 { Ok(available) } else { self.next_run() }
    }

    fn next_run(&mut self) -> Result<usize> {
        let (at, bytes) = (self.pos, self.bytes.as_ref());
        if at >= bytes.len() {
            return Err(DecodeError::new(at, "another run", "the end of the stream"));
        }
        let header = varint::read_u32(bytes, &mut self.pos)?;
        let count = (header >> 1) as usize;
        if count == 0 {
            return Err(DecodeError::new(at, "a run of at least one value", "an empty run"));
        }
        let rest = bytes.get(self.pos..).unwrap_or_default();
        if header & 1 == 0 {
            let len = self.width.div_ceil(8) as usize;
            let Some(stored) = rest.get(..len) else {
                let found = format!("{} bytes", rest.len());
                return Err(DecodeError::new(self.pos, format!("the repeated value in {len} bytes"), found));
            };
            let value = stored.iter().rev().fold(0u64, |value, &byte| (value << 8) | u64::from(byte));
            if value & !width_mask(self.width) != 0 {
                let expected = format!("a value of {} bits", self.width);
                return Err(DecodeError::new(self.pos, expected, value.to_string()));
            }
            self.pos = self.pos.saturating_add(len);
            self.run = Run::Repeated { value, left: count };
        } else {
            let width = self.width as usize;
            // A group of eight values takes `width` bytes.
            let bytes = rest.get(..count.saturating_mul(width)).unwrap_or(rest);
            let nominal = count.saturating_mul(8);
            let stored = nominal.min(bytes.len().saturating_mul(8).checked_div(width).unwrap_or(0));
            if stored == 0 {
                return Err(DecodeError::new(
                    self.pos,
                    "the values of a literal run",
                    "the end of the stream",
                ));
            }
            let start = self.pos;
            self.pos = start.saturating_add(bytes.len());
            self.run = Run::Literal { bytes: start..self.pos, next: 0, stored, nominal };
        }
        Ok(self.run.available())
    }
}

/// How many bytes at the start of `bytes` are a stream of `count` integers of `width` bits, whatever follows them. It has at most
/// `runs` runs, which is what they are taken from: a caller that asks at many places bounds its work.
///
/// # Errors
/// If no such stream begins there.
///
/// ```
/// assert_eq!(pilaster_encoding::rle::stream_length(&[0x05, 0xf6, 0x01, 0xff], 1, 10, &mut 1)?, 3);
/// # Ok::<(), pilaster_encoding::DecodeError>(())
/// ```
pub fn stream_length(bytes: &[u8], width: u32, count: usize, runs: &mut u64) -> Result<usize> {
    let (width, mut left, mut pos) = (width as usize, count, 0usize);
    while left > 0 {
        *runs =
            runs.checked_sub(1).ok_or_else(|| DecodeError::new(pos, "the end of the stream", "more runs"))?;
        let at = pos;
        let header = varint::read_u32(bytes, &mut pos)?;
        let run = (header >> 1) as usize;
        let (values, stored) = if header & 1 == 0 {
            (run, width.div_ceil(8))
        } else {
            let nominal = run.saturating_mul(8);
            // Only the bytes of values that exist follow, and no group without a value.
            let values = if nominal.saturating_sub(left) < 8 { nominal.min(left) } else { nominal };
            (values, values.saturating_mul(width).div_ceil(8))
        };
        if values == 0 || values > left {
            return Err(DecodeError::new(at, format!("a run of 1 to {left} values"), values.to_string()));
        }
        pos = pos.saturating_add(stored);
        if pos > bytes.len() {
            return Err(DecodeError::new(at, format!("a run of {stored} bytes"), "the end of the bytes"));
        }
        left = left.saturating_sub(values);
    }
    Ok(pos)
}

/// Decodes a whole stream of integers of `width` bits: fills `out`, and the stream must end there.
///
/// # Errors
/// If the stream has fewer or more values, a run is malformed, or `T` is narrower than `width`.
pub fn decode<T: RleValue>(bytes: &[u8], width: u32, out: &mut [T]) -> Result<()> {
    let mut decoder = RleDecoder::new(bytes, width)?;
    decoder.read(out)?;
    decoder.finish()
}

/// Decodes a whole stream of `count` single bits, appends them to `out` from a new byte on (the unused bits of the last
/// byte are zero), and says how many are ones.
///
/// `count` decides how much is allocated, so the caller bounds it.
///
/// # Errors
/// If the stream has fewer or more values or a run is malformed. `out` is then longer all the same.
///
/// ```
/// let mut bitmap = Vec::new();
/// assert_eq!(pilaster_encoding::rle::decode_bitmap(&[0x05, 0xf6, 0x01], 10, &mut bitmap)?, 7);
/// assert_eq!(bitmap, [0xf6, 0x01]);
/// # Ok::<(), pilaster_encoding::DecodeError>(())
/// ```
pub fn decode_bitmap(bytes: &[u8], count: usize, out: &mut Vec<u8>) -> Result<usize> {
    let start = out.len();
    out.resize(start.saturating_add(count.div_ceil(8)), 0);
    let bitmap = out.get_mut(start..).unwrap_or_default();
    let mut decoder = RleDecoder::new(bytes, 1)?;
    let mut at = 0usize;
    while at < count {
        let n = decoder.available()?.min(count.wrapping_sub(at));
        match &decoder.run {
            Run::Repeated { value: 0, .. } => {}
            Run::Repeated { .. } => bits::set_run(bitmap, at, n),
            // The whole run is taken at once, so it starts with its first byte.
            Run::Literal { bytes: stored, .. } => {
                bits::or_bits(bitmap, at, bytes.get(stored.clone()).unwrap_or_default(), n);
            }
        }
        decoder.run.advance(n);
        at = at.wrapping_add(n);
    }
    decoder.finish()?;
    Ok(bits::count_ones(bitmap, count))
}
