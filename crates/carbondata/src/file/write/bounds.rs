//! Least and greatest values of pages and blocklets, in the forms of the format.
//!
//! | column | bytes |
//! | --- | --- |
//! | texts, bytes | as they are |
//! | DATE | the surrogate, big-endian |
//! | integer dimensions | big-endian with the sign bit flipped |
//! | integer measures | 8 bytes big-endian; BOOLEAN and BYTE one |
//! | FLOAT, DOUBLE | 8 bytes big-endian |
//! | DECIMAL | scale, unscaled value |
//!
//! What is stored for null counts, as CarbonData has it.

use bytes::Bytes;

use super::super::meta::decimal_bytes;
use super::super::types::CarbonType;

/// Values longer than this have no bounds.
const MAX_BOUND_BYTES: usize = 200;

/// The bounds of a page or a blocklet.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Bounds {
    Integers {
        min: i64,
        max: i64,
    },
    Floats {
        min: f64,
        max: f64,
    },
    Decimals {
        min: i128,
        max: i128,
    },
    Bytes {
        min: Vec<u8>,
        max: Vec<u8>,
    },
    /// Codes of a table's dictionary, big-endian.
    Codes {
        min: u32,
        max: u32,
        width: usize,
    },
    /// None, because a value is too long.
    TooLong,
    /// None, because the column is nested.
    Node,
}

impl Bounds {
    /// The bounds of these values.
    pub fn of_bytes<'a>(values: impl Iterator<Item = &'a [u8]>) -> Self {
        let mut bounds: Option<(&[u8], &[u8])> = None;
        for value in values {
            if value.len() > MAX_BOUND_BYTES {
                return Self::TooLong;
            }
            bounds = Some(match bounds {
                None => (value, value),
                Some((min, max)) if value < min => (value, max),
                Some((min, max)) if value > max => (min, value),
                Some(same) => same,
            });
        }
        let (min, max) = bounds.unwrap_or_default();
        Self::Bytes { min: min.to_vec(), max: max.to_vec() }
    }

    /// The bounds of both.
    pub fn merge(self, other: Self) -> Self {
        match (self, other) {
            (Self::Integers { min, max }, Self::Integers { min: low, max: high }) => {
                Self::Integers { min: min.min(low), max: max.max(high) }
            }
            (Self::Floats { min, max }, Self::Floats { min: low, max: high }) => {
                Self::Floats { min: least(min, low), max: greatest(max, high) }
            }
            (Self::Decimals { min, max }, Self::Decimals { min: low, max: high }) => {
                Self::Decimals { min: min.min(low), max: max.max(high) }
            }
            (Self::Bytes { min, max }, Self::Bytes { min: low, max: high }) => {
                Self::Bytes { min: min.min(low), max: max.max(high) }
            }
            (Self::Codes { min, max, width }, Self::Codes { min: low, max: high, .. }) => {
                Self::Codes { min: min.min(low), max: max.max(high), width }
            }
            (Self::Node, _) | (_, Self::Node) => Self::Node,
            _ => Self::TooLong,
        }
    }

    /// Minimum, maximum and whether they are there, as a page of the column stores them.
    pub fn of_page(&self, kind: BoundKind, has_nulls: bool) -> (Bytes, Bytes, bool) {
        let (mut min, max, is_present) = self.stored(kind, kind.is_child);
        // CarbonData takes nulls for matches where a filter covers a page by its minimum.
        if has_nulls && kind.is_dimension && !kind.is_child && matches!(self, Self::Integers { .. }) {
            min = match kind.carbon_type {
                CarbonType::Timestamp => flipped(LEAST_TIMESTAMP, 8),
                CarbonType::Long => flipped(i64::MIN, 8),
                CarbonType::Int => flipped(i64::from(i32::MIN), 4),
                CarbonType::Short => flipped(i64::from(i16::MIN), 2),
                _ => min,
            };
        }
        (min.into(), max.into(), is_present || matches!(self, Self::Node))
    }

    /// As [`Bounds::of_page`], for a blocklet.
    pub fn of_blocklet(&self, kind: BoundKind) -> (Bytes, Bytes, bool) {
        if kind.is_child {
            return (Bytes::new(), Bytes::new(), false);
        }
        let (min, max, is_present) = self.stored(kind, false);
        (min.into(), max.into(), is_present)
    }

    fn stored(&self, kind: BoundKind, is_child: bool) -> (Vec<u8>, Vec<u8>, bool) {
        let both = |form: &dyn Fn(i64) -> Vec<u8>, min: i64, max: i64| (form(min), form(max), true);
        match self {
            Self::Node | Self::TooLong => (Vec::new(), Vec::new(), false),
            Self::Bytes { min, max } => (min.clone(), max.clone(), true),
            Self::Codes { min, max, width } => {
                let bytes = |code: u32| low_bytes(i64::from(code), *width);
                (bytes(*min), bytes(*max), true)
            }
            Self::Floats { min, max } => {
                let form = |value: f64| match kind.carbon_type {
                    CarbonType::Float => [single(value).to_be_bytes(), [0; 4]].concat(),
                    _ => value.to_be_bytes().to_vec(),
                };
                (form(*min), form(*max), true)
            }
            Self::Decimals { min, max } => {
                let scale = match kind.carbon_type {
                    CarbonType::Decimal { scale, .. } => scale,
                    _ => 0,
                };
                (decimal_bytes(scale, *min), decimal_bytes(scale, *max), true)
            }
            &Self::Integers { min, max } => match (kind.carbon_type, kind.is_dimension && !is_child) {
                (CarbonType::Date, _) => both(&|value| low_bytes(value, 4), min, max),
                (CarbonType::Boolean, true) => {
                    both(&|value| vec![if value == 0 { 0 } else { 0xff }], min, max)
                }
                (CarbonType::Byte, true) => both(&|value| value.to_string().into_bytes(), min, max),
                (CarbonType::Short, true) => both(&|value| flipped(value, 2), min, max),
                (CarbonType::Int, true) => both(&|value| flipped(value, 4), min, max),
                (_, true) => both(&|value| flipped(value, 8), min, max),
                (CarbonType::Boolean | CarbonType::Byte, false) => {
                    both(&|value| low_bytes(value, 1), min, max)
                }
                (_, false) => both(&|value| low_bytes(value, 8), min, max),
            },
        }
    }
}

/// CarbonData multiplies timestamps by a thousand.
const LEAST_TIMESTAMP: i64 = i64::MIN / 1000;

/// What the form of a bound depends on.
#[derive(Debug, Clone, Copy)]
pub(super) struct BoundKind {
    pub carbon_type: CarbonType,
    pub is_dimension: bool,
    pub is_child: bool,
}

fn low_bytes(value: i64, count: usize) -> Vec<u8> {
    value.to_be_bytes().into_iter().skip(8usize.saturating_sub(count)).collect()
}

fn flipped(value: i64, count: usize) -> Vec<u8> {
    let mut bytes = low_bytes(value, count);
    if let Some(first) = bytes.first_mut() {
        *first ^= 0x80;
    }
    bytes
}

#[expect(clippy::cast_possible_truncation, reason = "it was made of such a number")]
fn single(value: f64) -> f32 {
    value as f32
}

/// The lesser, NaN being greater than everything.
pub(super) fn least(a: f64, b: f64) -> f64 {
    if b.total_cmp(&a).is_lt() { b } else { a }
}

/// The greater, NaN being greater than everything.
pub(super) fn greatest(a: f64, b: f64) -> f64 {
    if b.total_cmp(&a).is_gt() { b } else { a }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(carbon_type: CarbonType, is_dimension: bool) -> BoundKind {
        BoundKind { carbon_type, is_dimension, is_child: false }
    }

    #[test]
    fn forms_are_those_of_the_format() {
        let bounds = Bounds::Integers { min: -3, max: 5 };
        let (min, max, present) = bounds.of_page(kind(CarbonType::Int, true), false);
        assert_eq!(
            (&min[..], &max[..], present),
            (&[0x7f, 0xff, 0xff, 0xfd][..], &[0x80, 0, 0, 5][..], true)
        );
        let (min, ..) = bounds.of_page(kind(CarbonType::Int, true), true);
        assert_eq!(&min[..], [0; 4]);
        let (min, ..) = bounds.of_page(kind(CarbonType::Int, false), true);
        assert_eq!(&min[..], (-3i64).to_be_bytes());
        let bounds = Bounds::Decimals { min: -99_844, max: 99_332 };
        let decimal = CarbonType::Decimal { precision: 5, scale: 2 };
        let (min, max, _) = bounds.of_blocklet(kind(decimal, false));
        assert_eq!((&min[..], &max[..]), (&[2, 0xfe, 0x79, 0xfc][..], &[2, 1, 0x84, 4][..]));
    }

    #[test]
    fn long_values_have_no_bounds() {
        let long = [b'x'; 201];
        assert_eq!(Bounds::of_bytes([&b"a"[..], &long].into_iter()), Bounds::TooLong);
        let short = Bounds::of_bytes([&b"b"[..], b"a"].into_iter());
        assert_eq!(short, Bounds::Bytes { min: b"a".to_vec(), max: b"b".to_vec() });
        assert_eq!(short.merge(Bounds::TooLong), Bounds::TooLong);
    }
}
