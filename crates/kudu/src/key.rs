//! How Kudu encodes key values so that they compare as bytes.
//!
//! | type | encoded |
//! | --- | --- |
//! | signed integer of n bytes | sign bit flipped, n bytes big-endian |
//! | unsigned integer of n bytes | n bytes big-endian |
//! | bytes, last or only key column | the bytes |
//! | bytes, not the last key column | each 00 as 00 01, then 00 00 |
//!
//! Dates, times and decimals are encoded as the integers they are stored as.
//!
//! Delta files order their entries by row and timestamp, each as a varint that compares as bytes; see
//! [`decode_ordered_varint`].

use crate::cfile::{KuduType, Physical};
use pilaster_core::{Error, Result};

/// Whether more key columns follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyPart {
    /// The last or only column of the key.
    Last,
    /// A column that others follow.
    NotLast,
}

/// Appends the encoded form of a value, given as it is stored: little-endian integers, or the bytes themselves.
///
/// # Errors
/// [`pilaster_core::ErrorKind::InvalidInput`] if the type cannot be a key or the value has another width.
pub fn encode(data_type: KuduType, stored: &[u8], part: KeyPart, out: &mut Vec<u8>) -> Result<()> {
    match data_type.physical() {
        Physical::Fixed(width) if data_type.can_be_key() => {
            if stored.len() != width {
                return Err(Error::invalid(format!("a {data_type} key of {} bytes", stored.len())));
            }
            let start = out.len();
            out.extend(stored.iter().rev());
            if !data_type.is_unsigned()
                && let Some(top) = out.get_mut(start)
            {
                *top ^= 0x80;
            }
            Ok(())
        }
        Physical::Binary => {
            match part {
                KeyPart::Last => out.extend_from_slice(stored),
                KeyPart::NotLast => {
                    for &byte in stored {
                        out.push(byte);
                        if byte == 0 {
                            out.push(1);
                        }
                    }
                    out.extend([0, 0]);
                }
            }
            Ok(())
        }
        _ => Err(Error::invalid(format!("{data_type} cannot be a key"))),
    }
}

/// The stored form (see [`encode`]) of the value of a last or only key column.
///
/// # Errors
/// [`pilaster_core::ErrorKind::Corrupt`] if the length is not that of the type.
pub fn decode_last(data_type: KuduType, encoded: &[u8]) -> Result<Vec<u8>> {
    match data_type.physical() {
        Physical::Fixed(width) if data_type.can_be_key() => {
            if encoded.len() != width {
                return Err(Error::corrupt(format!("a {data_type} key of {width} bytes"), encoded.len()));
            }
            let mut stored: Vec<u8> = encoded.iter().rev().copied().collect();
            if !data_type.is_unsigned()
                && let Some(top) = stored.last_mut()
            {
                *top ^= 0x80;
            }
            Ok(stored)
        }
        Physical::Binary => Ok(encoded.to_vec()),
        _ => Err(Error::corrupt("a type that can be a key", data_type)),
    }
}

/// The stored forms (see [`encode`]) of the columns of an encoded key.
///
/// # Errors
/// [`pilaster_core::ErrorKind::Corrupt`] if the bytes are not a key of these types.
pub fn decode(types: &[KuduType], encoded: &[u8]) -> Result<Vec<Vec<u8>>> {
    let Some((last, others)) = types.split_last() else {
        return Err(Error::corrupt("a key of no columns", format!("{} bytes", encoded.len())));
    };
    let mut cells = Vec::with_capacity(types.len());
    let mut rest = encoded;
    for data_type in others {
        let missing = || Error::corrupt(format!("a {data_type} in a key"), "the end of the key");
        match data_type.physical() {
            Physical::Fixed(width) => {
                let (cell, after) = rest.split_at_checked(width).ok_or_else(missing)?;
                cells.push(decode_last(*data_type, cell)?);
                rest = after;
            }
            Physical::Binary => {
                let (mut cell, mut bytes) = (Vec::new(), rest.iter());
                loop {
                    match *bytes.next().ok_or_else(missing)? {
                        0 => match *bytes.next().ok_or_else(missing)? {
                            0 => break,
                            1 => cell.push(0),
                            other => return Err(Error::corrupt("00 or 01 after 00 in a key", other)),
                        },
                        byte => cell.push(byte),
                    }
                }
                cells.push(cell);
                rest = bytes.as_slice();
            }
            Physical::Bool => return Err(Error::corrupt("a type that can be a key", data_type)),
        }
    }
    cells.push(decode_last(*last, rest)?);
    Ok(cells)
}

/// A separator between two neighbouring keys, as Kudu's value index holds it: `key` cut one byte after where it stops
/// agreeing with `before`.
pub fn separator<'a>(before: &[u8], key: &'a [u8]) -> &'a [u8] {
    let common = before.iter().zip(key).take_while(|(a, b)| a == b).count();
    key.get(..common.saturating_add(1)).unwrap_or(key)
}

/// Reads a varint whose bytes compare as the number does.
///
/// | first byte A | value | bytes in all |
/// | --- | --- | --- |
/// | 0..=240 | A | 1 |
/// | 241..=248 | 240 + 256 (A − 241) + next | 2 |
/// | 249 | 2288 + next two, big-endian | 3 |
/// | 250..=255 | next A − 247, big-endian | 4..=9 |
///
/// # Errors
/// [`pilaster_core::ErrorKind::Corrupt`] if bytes are missing.
pub fn decode_ordered_varint(bytes: &[u8], at: &mut usize) -> Result<u64> {
    let missing = || Error::corrupt("an ordered varint", "the end of the value");
    let first = *bytes.get(*at).ok_or_else(missing)?;
    let (base, length) = match first {
        0..=240 => (u64::from(first), 0),
        241..=248 => (u64::from(first).saturating_sub(241).saturating_mul(256).saturating_add(240), 1),
        249 => (2288, 2),
        250..=255 => (0, usize::from(first.saturating_sub(247))),
    };
    let start = at.saturating_add(1);
    let end = start.saturating_add(length);
    let rest = bytes.get(start..end).ok_or_else(missing)?;
    *at = end;
    let value = rest.iter().fold(0u64, |value, byte| value << 8 | u64::from(*byte));
    base.checked_add(value).ok_or_else(|| Error::corrupt("an ordered varint of 64 bits", "a larger one"))
}

/// The delta key at the start of a value of a delta file: row and timestamp.
pub(crate) fn delta_key(value: &[u8]) -> Result<&[u8]> {
    let mut at = 0;
    decode_ordered_varint(value, &mut at)?;
    decode_ordered_varint(value, &mut at)?;
    Ok(value.get(..at).unwrap_or(value))
}

/// Appends a number as [`decode_ordered_varint`] reads it, in the shortest form.
pub fn encode_ordered_varint(value: u64, out: &mut Vec<u8>) {
    // A number without its first `zeros` bytes, big-endian.
    let tail = |number: u64, zeros: usize| number.to_be_bytes().into_iter().skip(zeros);
    match value {
        0..=240 => out.extend(tail(value, 7)),
        241..=2287 => out.extend(tail(value.saturating_sub(240).saturating_add(241 << 8), 6)),
        2288..=67823 => {
            out.push(249);
            out.extend(tail(value.saturating_sub(2288), 6));
        }
        _ => {
            let zeros = value.leading_zeros() / 8;
            out.push(u8::try_from(255u32.saturating_sub(zeros)).unwrap_or(u8::MAX));
            out.extend(tail(value, zeros as usize));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn encoded(data_type: KuduType, stored: &[u8], part: KeyPart) -> Vec<u8> {
        let mut out = Vec::new();
        encode(data_type, stored, part, &mut out).unwrap();
        out
    }

    proptest! {
        #[test]
        fn integers_compare_as_their_keys_do(a in any::<i64>(), b in any::<i64>()) {
            let key = |v: i64| encoded(KuduType::Int64, &v.to_le_bytes(), KeyPart::Last);
            prop_assert_eq!(a.cmp(&b), key(a).cmp(&key(b)));
            prop_assert_eq!(decode_last(KuduType::Int64, &key(a)).unwrap(), a.to_le_bytes());
        }

        #[test]
        fn strings_before_others_compare_as_they_do(a in prop::collection::vec(0u8..3, 0..6), b in prop::collection::vec(0u8..3, 0..6)) {
            let key = |v: &[u8]| encoded(KuduType::String, v, KeyPart::NotLast);
            prop_assert_eq!(a.cmp(&b), key(&a).cmp(&key(&b)));
        }

        #[test]
        fn compound_keys_come_back(a in prop::collection::vec(0u8..3, 0..6), b in any::<i32>(), c in prop::collection::vec(0u8..3, 0..6)) {
            let cells = [a, b.to_le_bytes().to_vec(), c];
            let types = [KuduType::Binary, KuduType::Int32, KuduType::String];
            let mut key = Vec::new();
            for (index, (data_type, cell)) in types.iter().zip(&cells).enumerate() {
                let part = if index == 2 { KeyPart::Last } else { KeyPart::NotLast };
                encode(*data_type, cell, part, &mut key).unwrap();
            }
            prop_assert_eq!(decode(&types, &key).unwrap(), cells);
        }

        #[test]
        fn ordered_varints_come_back_and_compare(a in any::<u64>(), b in any::<u64>(), shift in 0u32..64) {
            let encoded = |v: u64| {
                let mut out = Vec::new();
                encode_ordered_varint(v, &mut out);
                out
            };
            let (a, b) = (a >> shift, b >> shift);
            prop_assert_eq!(decode_ordered_varint(&encoded(a), &mut 0).unwrap(), a);
            prop_assert_eq!(a.cmp(&b), encoded(a).cmp(&encoded(b)));
        }

        #[test]
        fn separators_separate(a in prop::collection::vec(0u8..3, 0..6), b in prop::collection::vec(0u8..3, 0..6)) {
            prop_assume!(a < b);
            let cut = separator(&a, &b);
            prop_assert!(a.as_slice() < cut && cut <= b.as_slice());
        }

        #[test]
        fn any_bytes_are_a_number_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..12)) {
            let mut at = 0;
            if decode_ordered_varint(&bytes, &mut at).is_ok() {
                prop_assert!(at <= bytes.len());
            }
        }
    }

    #[test]
    fn ordered_varints_of_every_length() {
        for (bytes, value) in [
            (&[0u8][..], 0),
            (&[240], 240),
            (&[241, 0], 240),
            (&[248, 255], 2287),
            (&[249, 0, 0], 2288),
            (&[249, 255, 255], 67823),
            (&[250, 1, 8, 240], 0x01_08f0),
            (&[255, 255, 255, 255, 255, 255, 255, 255, 255], u64::MAX),
        ] {
            let mut at = 0;
            assert_eq!(decode_ordered_varint(bytes, &mut at).unwrap(), value);
            assert_eq!(at, bytes.len());
            let mut encoded = Vec::new();
            encode_ordered_varint(value, &mut encoded);
            // 240 has two forms; the shorter one is written.
            assert!(encoded == bytes || value == 240 && encoded == [240]);
        }
    }

    #[test]
    fn bytes_that_are_no_compound_key_are_refused() {
        let types = [KuduType::String, KuduType::Int16];
        assert_eq!(decode(&types, b"a\0\x01\0\0\x80\x07").unwrap(), [b"a\0".to_vec(), vec![7, 0]]);
        for bad in [&b""[..], b"a", b"a\0", b"a\0\x02\0\0\x80\x07", b"a\0\0\x80", b"a\0\0\x80\0\0"] {
            assert!(decode(&types, bad).is_err(), "{bad:?}");
        }
    }
}
