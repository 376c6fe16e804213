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

/// The stored forms (see [`encode`]) of all columns of a compound key.
///
/// # Errors
/// [`pilaster_core::ErrorKind::Corrupt`] if the bytes are not a key of these types.
pub fn decode_all(types: &[KuduType], encoded: &[u8]) -> Result<Vec<Vec<u8>>> {
    let mut rest = encoded;
    let mut stored = Vec::with_capacity(types.len());
    for (number, data_type) in types.iter().enumerate() {
        if number.saturating_add(1) == types.len() {
            stored.push(decode_last(*data_type, rest)?);
            break;
        }
        let short = || Error::corrupt(format!("a {data_type} in the key"), "the end of the key");
        match data_type.physical() {
            Physical::Fixed(width) => {
                let (value, after) = rest.split_at_checked(width).ok_or_else(short)?;
                stored.push(decode_last(*data_type, value)?);
                rest = after;
            }
            Physical::Binary => {
                let (value, after) = decode_terminated(rest).ok_or_else(short)?;
                stored.push(value);
                rest = after;
            }
            Physical::Bool => return Err(Error::corrupt("a type that can be a key", data_type)),
        }
    }
    Ok(stored)
}

/// The bytes up to the terminator, zeros as they were, and what comes after it.
fn decode_terminated(encoded: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let mut value = Vec::new();
    let mut at = 0usize;
    loop {
        let byte = *encoded.get(at)?;
        at = at.checked_add(1)?;
        if byte != 0 {
            value.push(byte);
            continue;
        }
        let escape = *encoded.get(at)?;
        at = at.checked_add(1)?;
        match escape {
            0 => return Some((value, encoded.get(at..)?)),
            1 => value.push(0),
            _ => return None,
        }
    }
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
        fn compound_keys_come_apart_again(
            a in prop::collection::vec(0u8..3, 0..6),
            b in any::<i32>(),
            c in prop::collection::vec(any::<u8>(), 0..6),
        ) {
            let types = [KuduType::String, KuduType::Int32, KuduType::Binary];
            let mut key = encoded(KuduType::String, &a, KeyPart::NotLast);
            key.extend(encoded(KuduType::Int32, &b.to_le_bytes(), KeyPart::NotLast));
            key.extend(encoded(KuduType::Binary, &c, KeyPart::Last));
            prop_assert_eq!(decode_all(&types, &key).unwrap(), vec![a, b.to_le_bytes().to_vec(), c.clone()]);
            // Any bytes are a key or an error.
            let _ = decode_all(&types, &c);
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
        }
    }
}
