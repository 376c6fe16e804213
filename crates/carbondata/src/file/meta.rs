//! What the encoding of a page needs to know: Java's `DataOutput`, big-endian.
//!
//! ```text
//! name | schema type | column type | i32 scale | i32 precision | store type | i32 decimals | 0 | max min … | compressor
//! ```
//!
//! Names are a `u16` length and modified UTF-8. The types have numbers of their own, not those of the schema.

use pilaster_encoding::{DecodeError, Result};

use super::write::strings::fitting;

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

/// Column types: what a page belongs to.
pub(crate) mod column_type {
    pub const PLAIN_VALUE: u8 = 2;
    pub const MEASURE: u8 = 4;
    pub const STRUCT: u8 = 5;
    pub const ARRAY: u8 = 6;
    pub const CHILD: u8 = 7;
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

/// Least and greatest value of a page, in the form of its schema type.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Extremes {
    Byte { min: i64, max: i64 },
    Short { min: i64, max: i64 },
    Int { min: i64, max: i64 },
    Long { min: i64, max: i64 },
    Float { min: f32, max: f32 },
    Double { min: f64, max: f64 },
    Decimal { min: i128, max: i128, scale: u8, precision: u8 },
    None,
}

/// What is written as an encoder meta.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MetaFields<'a> {
    pub name: &'a str,
    pub schema_type: u8,
    pub column_type: u8,
    pub store: Store,
    pub decimals: i32,
    pub extremes: Extremes,
    pub compressor: &'a str,
}

impl Store {
    fn number(self) -> u8 {
        match self {
            Self::Byte => 14,
            Self::Short => 4,
            Self::ShortInt => 16,
            Self::Int => 5,
            Self::Long => 7,
            Self::Float => 6,
            Self::Double => 8,
            Self::Decimal => 10,
            Self::ByteArray => 15,
        }
    }
}

impl MetaFields<'_> {
    /// The bytes; a name that is too long for them is an error.
    pub fn write(&self) -> pilaster_core::Result<Vec<u8>> {
        let mut out = Vec::with_capacity(80);
        put_text(&mut out, self.name)?;
        out.push(self.schema_type);
        out.push(self.column_type);
        let (scale, precision) = match self.extremes {
            Extremes::Decimal { scale, precision, .. } => (i32::from(scale), i32::from(precision)),
            _ => (-1, -1),
        };
        out.extend(scale.to_be_bytes());
        out.extend(precision.to_be_bytes());
        out.push(self.store.number());
        out.extend(self.decimals.to_be_bytes());
        out.push(0);
        self.extremes.write(&mut out);
        put_text(&mut out, self.compressor)?;
        Ok(out)
    }
}

impl Extremes {
    /// Maximum, minimum, and a number nobody uses any more.
    fn write(&self, out: &mut Vec<u8>) {
        let low_bytes = |value: i64, count: usize, out: &mut Vec<u8>| {
            out.extend(value.to_be_bytes().iter().skip(8usize.saturating_sub(count)));
        };
        let mut integers = |min: i64, max: i64, count: usize| {
            low_bytes(max, count, out);
            low_bytes(min, count, out);
            out.extend([0; 8]);
        };
        match *self {
            Self::Byte { min, max } => integers(min, max, 1),
            Self::Short { min, max } => integers(min, max, 2),
            Self::Int { min, max } => integers(min, max, 4),
            Self::Long { min, max } => integers(min, max, 8),
            Self::Float { min, max } => {
                out.extend(max.to_be_bytes());
                out.extend(min.to_be_bytes());
                out.extend([0; 4]);
            }
            Self::Double { min, max } => {
                out.extend(max.to_be_bytes());
                out.extend(min.to_be_bytes());
                out.extend([0; 8]);
            }
            Self::Decimal { min, max, scale, precision } => {
                for (scale, value) in [(scale, max), (scale, min), (0, 0)] {
                    let bytes = decimal_bytes(scale, value);
                    out.extend(u16::try_from(bytes.len()).unwrap_or_default().to_be_bytes());
                    out.extend(bytes);
                }
                out.extend(i32::from(scale).to_be_bytes());
                out.extend(i32::from(precision).to_be_bytes());
            }
            Self::None => {}
        }
    }
}

/// A decimal as bytes: its scale and the unscaled value in as few bytes as hold it.
pub(crate) fn decimal_bytes(scale: u8, value: i128) -> Vec<u8> {
    let mut out = vec![scale];
    out.extend(least_bytes(&value.to_be_bytes()));
    out
}

/// A two's complement number without the bytes that only repeat its sign.
fn least_bytes(bytes: &[u8]) -> &[u8] {
    let mut rest = bytes;
    while let [first, tail @ ..] = rest {
        let Some(next) = tail.first() else { break };
        let repeats = (*first == 0 && *next < 0x80) || (*first == 0xff && *next >= 0x80);
        if !repeats {
            break;
        }
        rest = tail;
    }
    rest
}

/// Text as Java writes it: characters outside of the basic plane as two surrogates, NUL in two bytes.
fn put_text(out: &mut Vec<u8>, text: &str) -> pilaster_core::Result<()> {
    let mut bytes = Vec::with_capacity(text.len());
    for unit in text.encode_utf16() {
        let [high, low] = [(unit >> 6) & 0x3f, unit & 0x3f].map(|part| 0x80 | part.to_le_bytes()[0]);
        match unit {
            1..0x80 => bytes.push(unit.to_le_bytes()[0]),
            0..0x800 => bytes.extend([0xc0 | (unit >> 6).to_le_bytes()[0], low]),
            _ => bytes.extend([0xe0 | (unit >> 12).to_le_bytes()[0], high, low]),
        }
    }
    out.extend(fitting::<u16>(bytes.len(), "the bytes of a name")?.to_be_bytes());
    out.extend(bytes);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_name_that_is_too_long_is_refused() {
        let write = |text: &str| {
            let mut out = Vec::new();
            put_text(&mut out, text).map(|()| out.len()).map_err(|error| error.to_string())
        };
        let refused = "the bytes of a name: 65536 is more than the format can say";
        assert_eq!(write(&"x".repeat(65_535)), Ok(65_537));
        assert_eq!(write(&"x".repeat(65_536)), Err(refused.into()));
        // A character beyond the basic plane takes six bytes.
        assert_eq!(write(&("𝄞".repeat(10_922) + "aaaa")), Err(refused.into()));
    }

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
        let fields = MetaFields {
            name: "i",
            schema_type: 5,
            column_type: column_type::MEASURE,
            store: Store::Byte,
            decimals: 0,
            extremes: Extremes::Int { min: 137_454_929, max: 137_454_929 },
            compressor: "snappy",
        };
        assert_eq!(fields.write().unwrap(), bytes);
    }

    #[test]
    fn text_is_javas() {
        let mut out = Vec::new();
        put_text(&mut out, "a\0\u{e9}\u{20ac}\u{1f600}").unwrap();
        let expected = [0x61, 0xc0, 0x80, 0xc3, 0xa9, 0xe2, 0x82, 0xac, 0xed, 0xa0, 0xbd, 0xed, 0xb8, 0x80];
        assert_eq!(out, [&[0, 14][..], &expected].concat());
    }

    #[test]
    fn decimals_take_as_few_bytes_as_hold_them() {
        for value in [0, 1, -1, 127, 128, -128, -129, 255, 99_332, i128::MAX, i128::MIN] {
            let bytes = decimal_bytes(3, value);
            assert_eq!((bytes[0], big_endian(&bytes[1..])), (3, Some(value)));
        }
        assert_eq!(decimal_bytes(2, 99_332), [2, 1, 0x84, 4]);
        assert_eq!(decimal_bytes(0, 0), [0, 0]);
        assert_eq!(decimal_bytes(0, 128), [0, 0, 0x80]);
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
