//! Protobuf messages in files: what cannot be parsed and what is missing, as errors of ours.

use pilaster_encoding::varint;
use prost::Message;

use crate::error::{Error, Result};

/// Parses a message; `name` is what the format calls it.
///
/// # Errors
/// [`crate::ErrorKind::Corrupt`] if the bytes are no such message.
pub fn parse<M: Message + Default>(bytes: &[u8], name: &str) -> Result<M> {
    M::decode(bytes).map_err(|error| Error::corrupt(format!("a {name} message"), error))
}

/// How many messages there are in field `field` of a message, and in field `inner` of those, and of these again: what parsing
/// them takes is many times the bytes of empty ones. Counting stops at `most`, and where bytes are no message.
#[must_use]
pub fn count_nested(bytes: &[u8], field: u64, inner: u64, most: usize) -> usize {
    // Parsing itself goes no deeper.
    const DEPTH: u32 = 100;
    count_within(bytes, field, inner, most, DEPTH)
}

fn count_within(bytes: &[u8], field: u64, inner: u64, most: usize, depth: u32) -> usize {
    let Some(depth) = depth.checked_sub(1) else { return 0 };
    let (mut at, mut count) = (0, 0usize);
    while at < bytes.len() && count < most {
        let Ok(tag) = varint::read_u64(bytes, &mut at) else { break };
        let length = match tag & 7 {
            0 => {
                if varint::read_u64(bytes, &mut at).is_err() {
                    break;
                }
                0
            }
            1 => 8,
            2 => {
                match varint::read_u64(bytes, &mut at).ok().and_then(|length| usize::try_from(length).ok()) {
                    Some(length) => length,
                    None => break,
                }
            }
            5 => 4,
            // What is between the ends of a group counts too, rather than ending the count.
            3 | 4 => 0,
            _ => break,
        };
        let Some(content) = bytes.get(at..at.saturating_add(length)) else { break };
        if tag == field << 3 | 2 {
            let below = count_within(content, inner, inner, most.saturating_sub(count), depth);
            count = count.saturating_add(1).saturating_add(below);
        }
        at = at.saturating_add(length);
    }
    count
}

/// A field that must be there.
///
/// # Errors
/// [`crate::ErrorKind::Corrupt`], with its name, if it is not.
pub fn required<T>(field: Option<T>, name: &str) -> Result<T> {
    field.ok_or_else(|| Error::corrupt(format!("the required field {name}"), "a message without it"))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]
mod tests {
    use super::*;

    #[test]
    fn messages_are_counted_before_they_are_parsed() {
        // Field 1 is a number, field 2 has two messages, one of them with three empty ones in its field 10.
        let bytes =
            [0x08, 0x96, 0x01, 0x12, 0x00, 0x12, 0x06, 0x52, 0x00, 0x52, 0x00, 0x52, 0x00, 0x1d, 1, 2, 3, 4];
        assert_eq!(count_nested(&bytes, 2, 10, 100), 5);
        assert_eq!(count_nested(&bytes, 2, 9, 100), 2);
        assert_eq!(count_nested(&bytes, 3, 10, 100), 0);
        let behind_a_group = [&[0x23, 0x12, 0x00, 0x24][..], &bytes].concat();
        assert_eq!(count_nested(&behind_a_group, 2, 10, 100), 6);
        assert!((2..=5).contains(&count_nested(&bytes, 2, 10, 2)));
        for end in 0..bytes.len() {
            assert!(count_nested(bytes.get(..end).unwrap(), 2, 10, 100) <= 5);
        }
        let deep = (0..1000).fold(Vec::new(), |inner: Vec<u8>, _| {
            let mut outer = vec![0x12];
            varint::write_u64(&mut outer, inner.len() as u64);
            [outer, inner].concat()
        });
        assert_eq!(count_nested(&deep, 2, 2, usize::MAX), 100);
    }
}
