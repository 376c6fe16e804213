//! Numbers on their way into an Arrow buffer: as wide as they are stored, or wider.

use arrow_array::{ArrayRef, make_array};
use arrow_buffer::{Buffer, MutableBuffer, NullBuffer, i256};
use arrow_data::ArrayDataBuilder;
use pilaster_core::{Error, Result};

use crate::cfile::arrow_types::Target;

/// Collects stored numbers, little-endian.
#[derive(Debug)]
pub(super) struct Numbers {
    stored_width: usize,
    collected: Collected,
}

#[derive(Debug)]
enum Collected {
    AsStored(MutableBuffer),
    Bits64(Vec<i64>),
    Bits128(Vec<i128>),
    Bits256(Vec<i256>),
}

impl Numbers {
    /// Room for `rows` numbers on their way to `target`.
    pub fn new(target: &Target, rows: usize) -> Result<Self> {
        let (stored_width, width) = target.widths();
        let collected = match width {
            _ if width == stored_width => {
                Collected::AsStored(MutableBuffer::with_capacity(rows.saturating_mul(width)))
            }
            8 => Collected::Bits64(Vec::with_capacity(rows)),
            16 => Collected::Bits128(Vec::with_capacity(rows)),
            32 => Collected::Bits256(Vec::with_capacity(rows)),
            _ => return Err(Error::invalid(format!("no way from {stored_width} to {width} bytes"))),
        };
        Ok(Self { stored_width, collected })
    }

    /// Takes whole stored numbers.
    pub fn push(&mut self, stored: &[u8]) {
        match (&mut self.collected, self.stored_width) {
            (Collected::AsStored(buffer), _) => buffer.extend_from_slice(stored),
            (Collected::Bits64(wide), _) => {
                wide.extend(stored.as_chunks().0.iter().map(|four| i64::from(i32::from_le_bytes(*four))));
            }
            (Collected::Bits128(wide), 4) => {
                wide.extend(stored.as_chunks().0.iter().map(|four| i128::from(i32::from_le_bytes(*four))));
            }
            (Collected::Bits128(wide), _) => {
                wide.extend(stored.as_chunks().0.iter().map(|eight| i128::from(i64::from_le_bytes(*eight))));
            }
            (Collected::Bits256(wide), width) => {
                wide.extend(stored.chunks_exact(width).map(|value| i256::from_i128(sign_extended(value))));
            }
        }
    }

    /// The array of `rows` rows that were collected.
    pub fn finish(self, rows: usize, nulls: Option<NullBuffer>, target: &Target) -> Result<ArrayRef> {
        let buffer: Buffer = match self.collected {
            Collected::AsStored(buffer) => buffer.into(),
            Collected::Bits64(wide) => Buffer::from_vec(wide),
            Collected::Bits128(wide) => Buffer::from_vec(wide),
            Collected::Bits256(wide) => Buffer::from_vec(wide),
        };
        array(buffer, rows, nulls, target)
    }
}

/// One stored number as an array of length one.
pub(crate) fn number_array(stored: &[u8], target: &Target) -> Result<ArrayRef> {
    let mut numbers = Numbers::new(target, 1)?;
    numbers.push(stored);
    numbers.finish(1, None, target)
}

/// An array of the type that was asked for, of `rows` numbers that are as wide as [`Target::number`].
pub(super) fn array(
    numbers: Buffer,
    rows: usize,
    nulls: Option<NullBuffer>,
    target: &Target,
) -> Result<ArrayRef> {
    let data = ArrayDataBuilder::new(target.number().clone()).len(rows).nulls(nulls).add_buffer(numbers);
    target.finish(make_array(data.build()?))
}

/// A stored number of at most 16 bytes.
fn sign_extended(stored: &[u8]) -> i128 {
    let is_negative = stored.last().is_some_and(|byte| byte & 0x80 != 0);
    let mut bytes = if is_negative { [0xff; 16] } else { [0; 16] };
    for (to, from) in bytes.iter_mut().zip(stored) {
        *to = *from;
    }
    i128::from_le_bytes(bytes)
}
