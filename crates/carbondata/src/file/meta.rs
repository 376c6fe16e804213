//! What the encoding of a page needs to know: Java's `DataOutput`, big-endian.
//!
//! ```text
//! name | schema type | column type | i32 scale | i32 precision | store type | i32 decimals | 0 | max min … | compressor
//! ```
//!
//! Names are a `u16` length and modified UTF-8. The types have numbers of their own, not those of the schema.

use pilaster_encoding::{DecodeError, Result};

/// How the values of a page are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Store {
    Byte,
    Short,
    /// Three bytes, big-endian.
    ShortInt,
    Int,
    Long,
    Float,
    Double,
    /// Fixed width, big-endian.
    Decimal,
    /// Bytes of the nodes of nested columns and of their strings.
    ByteArray,
}

/// The greatest value of a page, in the form of its schema type.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Max {
    Integer(i64),
    Float(f32),
    Double(f64),
    /// Unscaled.
    Decimal(i128),
    None,
}

/// A parsed encoder meta.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct EncoderMeta {
    pub column_type: u8,
    pub store: Store,
    pub decimals: i32,
    pub max: Max,
    /// What follows the compressor's name: the page size of run-length pages.
    pub rest: usize,
}

/// Column type of long texts, whose dictionary entries have lengths of four bytes.
pub(crate) const PLAIN_LONG_VALUE: u8 = 8;

struct Input<'a> {
    bytes: &'a [u8],
    pos: usize,
}

impl<'a> Input<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8]> {
        let end = self.pos.saturating_add(count);
        let taken = self
            .bytes
            .get(self.pos..end)
            .ok_or_else(|| DecodeError::new(self.pos, format!("{count} bytes of encoder meta"), "its end"))?;
        self.pos = end;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        Ok(self.take(N)?.first_chunk().copied().unwrap_or([0; N]))
    }

    fn byte(&mut self) -> Result<u8> {
        Ok(u8::from_be_bytes(self.array()?))
    }

    fn i32(&mut self) -> Result<i32> {
        Ok(i32::from_be_bytes(self.array()?))
    }

    fn text(&mut self) -> Result<&'a [u8]> {
        let length = u16::from_be_bytes(self.array()?);
        self.take(usize::from(length))
    }

    fn decimal(&mut self) -> Result<i128> {
        let at = self.pos;
        let length = u16::from_be_bytes(self.array()?);
        match self.take(usize::from(length))?.split_first() {
            Some((_scale, unscaled)) => big_endian(unscaled)
                .ok_or_else(|| DecodeError::new(at, "a decimal of at most 16 bytes", length.to_string())),
            None => Ok(0),
        }
    }
}

/// A two's complement number of up to 16 bytes.
pub(crate) fn big_endian(bytes: &[u8]) -> Option<i128> {
    if bytes.len() > 16 {
        return None;
    }
    let start = match bytes.first() {
        Some(first) if *first >= 0x80 => -1i128,
        _ => 0,
    };
    Some(bytes.iter().fold(start, |value, byte| (value << 8) | i128::from(*byte)))
}

impl EncoderMeta {
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        let mut input = Input { bytes, pos: 0 };
        input.text()?;
        let schema_type = input.byte()?;
        let column_type = input.byte()?;
        input.take(8)?;
        let at = input.pos;
        let store = match input.byte()? {
            3 | 14 => Store::Byte,
            4 => Store::Short,
            5 => Store::Int,
            6 => Store::Float,
            7 | 17 => Store::Long,
            8 => Store::Double,
            10 => Store::Decimal,
            15 => Store::ByteArray,
            16 => Store::ShortInt,
            other => return Err(DecodeError::new(at, "a type that pages are stored as", other.to_string())),
        };
        let decimals = input.i32()?;
        if !(-1..=38).contains(&decimals) {
            return Err(DecodeError::new(at, "a decimal count of -1 to 38", decimals.to_string()));
        }
        input.byte()?;
        let at = input.pos;
        let max = match schema_type {
            // Maximum, minimum, and a number nobody uses any more.
            3 | 14 => {
                let max = i8::from_be_bytes(input.array()?);
                input.take(9)?;
                Max::Integer(i64::from(max))
            }
            4 => {
                let max = i16::from_be_bytes(input.array()?);
                input.take(10)?;
                Max::Integer(i64::from(max))
            }
            5 => {
                let max = input.i32()?;
                input.take(12)?;
                Max::Integer(i64::from(max))
            }
            2 | 7 | 17 => {
                let max = i64::from_be_bytes(input.array()?);
                input.take(16)?;
                Max::Integer(max)
            }
            6 => {
                let max = f32::from_be_bytes(input.array()?);
                input.take(8)?;
                Max::Float(max)
            }
            8 => {
                let max = f64::from_be_bytes(input.array()?);
                input.take(16)?;
                Max::Double(max)
            }
            10 => {
                let max = input.decimal()?;
                input.decimal()?;
                input.decimal()?;
                input.take(8)?;
                Max::Decimal(max)
            }
            0 | 1 | 9 | 11 | 12 | 13 | 15 | 18 | 19 => Max::None,
            other => return Err(DecodeError::new(at, "a known schema type", other.to_string())),
        };
        input.text()?;
        let rest = bytes.len().saturating_sub(input.pos);
        Ok(Self { column_type, store, decimals, max, rest })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_the_worked_example() {
        let mut bytes = vec![0, 1, b'i', 5, 4];
        bytes.extend([0xff; 8]);
        bytes.extend([0x0e, 0, 0, 0, 0, 0]);
        bytes.extend([0x08, 0x31, 0x65, 0x51, 0x08, 0x31, 0x65, 0x51]);
        bytes.extend([0; 8]);
        bytes.extend(b"\0\x06snappy");
        let meta = EncoderMeta::parse(&bytes).unwrap();
        let expected = EncoderMeta {
            column_type: 4,
            store: Store::Byte,
            decimals: 0,
            max: Max::Integer(137_454_929),
            rest: 0,
        };
        assert_eq!(meta, expected);
        for end in 0..bytes.len() {
            assert!(EncoderMeta::parse(&bytes[..end]).is_err());
        }
    }

    #[test]
    fn big_endian_numbers_keep_their_sign() {
        for value in [0, 1, -1, 127, -128, 255, -256, i128::MAX, i128::MIN] {
            assert_eq!(big_endian(&value.to_be_bytes()), Some(value));
        }
        assert_eq!(
            (big_endian(&[0xff]), big_endian(&[0, 0xff]), big_endian(&[])),
            (Some(-1), Some(255), Some(0))
        );
        assert_eq!(big_endian(&[0; 17]), None);
    }

    proptest! {
        #[test]
        fn never_panics_on_any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            let _ = EncoderMeta::parse(&bytes);
        }
    }
}
