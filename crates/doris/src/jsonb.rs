//! JSONB: JSON documents in binary.
//!
//! ```text
//! document = u8 version (1) | value          value = u8 type | payload
//! object   = u32 bytes | (u8 length, key | u8 0, u16 key id) value …
//! array    = u32 bytes | value …
//!
//! {"a": 1}    01 | 0a 04000000 | 01 61 | 03 01
//! ```
//!
//! Keys of a document are text; the row store has numbers instead, the unique ids of columns.

use std::fmt::Write;

use pilaster_core::{Error, Result};

use crate::decimal;
pub use crate::jsonb_writer::from_text;
pub(crate) use crate::jsonb_writer::{Container, append_document, append_key, append_key_id, append_sized};

pub(crate) const VERSION: u8 = 1;
/// The key id that stands for an empty key.
pub(crate) const EMPTY_KEY: u16 = u16::MAX;

/// The text of a document; an empty cell is JSON's null.
///
/// # Errors
/// [`pilaster_core::ErrorKind::Corrupt`] if the bytes are no document, or are nested deeper than `depth`.
pub fn to_text(document: &[u8], depth: u32) -> Result<String> {
    let mut text = String::new();
    write_document(document, depth, &mut text)?;
    Ok(text)
}

/// Appends the text of a document.
pub(crate) fn write_document(document: &[u8], depth: u32, out: &mut String) -> Result<()> {
    let Some(mut input) = open(document)? else {
        out.push_str("null");
        return Ok(());
    };
    write_value(&mut input, depth, out)?;
    input.finish()
}

/// The value of a document; `None` if the cell is empty.
pub(crate) fn open(document: &[u8]) -> Result<Option<Input<'_>>> {
    match document.split_first() {
        None => Ok(None),
        Some((&VERSION, rest)) => Ok(Some(Input(rest))),
        Some((&other, _)) => Err(Error::corrupt("JSONB of version 1", other)),
    }
}

/// A value without the version before it.
pub(crate) fn bare(value: &[u8]) -> Input<'_> {
    Input(value)
}

/// What is left of a document.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    fn take(&mut self, bytes: usize) -> Result<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(bytes).ok_or_else(|| {
            Error::corrupt(format!("{bytes} bytes of JSONB"), format!("{} bytes", self.0.len()))
        })?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let taken = self.take(N)?;
        taken.first_chunk().copied().ok_or_else(|| Error::corrupt(format!("{N} bytes"), taken.len()))
    }

    fn sized(&mut self) -> Result<&'a [u8]> {
        let length = u32::from_le_bytes(self.array()?);
        self.take(length as usize)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Says whether nothing is left.
    pub fn finish(&self) -> Result<()> {
        if self.is_empty() {
            Ok(())
        } else {
            Err(Error::corrupt("the end of a JSONB document", format!("{} more bytes", self.0.len())))
        }
    }

    /// If an object is next, what is inside it.
    pub fn object(&mut self) -> Result<Option<Input<'a>>> {
        if self.0.first() != Some(&10) {
            return Ok(None);
        }
        self.take(1)?;
        Ok(Some(Input(self.sized()?)))
    }

    /// The next key of an object: text, or the number that stands for it.
    pub fn key(&mut self) -> Result<String> {
        let [length] = self.array()?;
        if length > 0 {
            let key = self.take(usize::from(length))?;
            let key =
                std::str::from_utf8(key).map_err(|_| Error::corrupt("a key in UTF-8", "other bytes"))?;
            return Ok(key.to_string());
        }
        Ok(match u16::from_le_bytes(self.array()?) {
            EMPTY_KEY => String::new(),
            id => id.to_string(),
        })
    }
}

/// A value of a document.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Value<'a> {
    Null,
    Bool(bool),
    Integer(i128),
    Double(f64),
    /// Text, if the document was made from text.
    String(&'a [u8]),
    Object(Input<'a>),
    Array(Input<'a>),
    /// What no JSON text becomes.
    Other,
}

impl<'a> Input<'a> {
    /// The next value, and all its bytes.
    pub fn value(&mut self) -> Result<(Value<'a>, &'a [u8])> {
        let start = self.0;
        let [kind] = self.array()?;
        let value = match kind {
            0 => Value::Null,
            1 => Value::Bool(true),
            2 => Value::Bool(false),
            3 => Value::Integer(i8::from_le_bytes(self.array()?).into()),
            4 => Value::Integer(i16::from_le_bytes(self.array()?).into()),
            5 => Value::Integer(i32::from_le_bytes(self.array()?).into()),
            6 => Value::Integer(i64::from_le_bytes(self.array()?).into()),
            7 => Value::Double(f64::from_le_bytes(self.array()?)),
            8 => Value::String(self.sized()?),
            10 => Value::Object(Input(self.sized()?)),
            11 => Value::Array(Input(self.sized()?)),
            12 => Value::Integer(i128::from_le_bytes(self.array()?)),
            _ => Value::Other,
        };
        let bytes = start.len().saturating_sub(self.0.len());
        Ok((value, start.get(..bytes).unwrap_or_default()))
    }
}

/// Appends the text of the next value.
pub(crate) fn write_value(input: &mut Input<'_>, depth: u32, out: &mut String) -> Result<()> {
    let deeper =
        || depth.checked_sub(1).ok_or_else(|| Error::corrupt("JSONB nested less deeply", "more levels"));
    let [kind] = input.array()?;
    let mut number = |text: String| out.push_str(&text);
    match kind {
        0 => out.push_str("null"),
        1 => out.push_str("true"),
        2 => out.push_str("false"),
        3 => number(i8::from_le_bytes(input.array()?).to_string()),
        4 => number(i16::from_le_bytes(input.array()?).to_string()),
        5 => number(i32::from_le_bytes(input.array()?).to_string()),
        6 => number(i64::from_le_bytes(input.array()?).to_string()),
        7 => write_float(f64::from_le_bytes(input.array()?), out),
        8 => write_text(input.sized()?, out),
        9 => write_binary(input.sized()?, out),
        10 => {
            let (mut inside, depth) = (Input(input.sized()?), deeper()?);
            out.push('{');
            let mut separator = "";
            while !inside.is_empty() {
                out.push_str(separator);
                separator = ",";
                write_string(&inside.key()?, out);
                out.push(':');
                write_value(&mut inside, depth, out)?;
            }
            out.push('}');
        }
        11 => {
            let (mut inside, depth) = (Input(input.sized()?), deeper()?);
            out.push('[');
            let mut separator = "";
            while !inside.is_empty() {
                out.push_str(separator);
                separator = ",";
                write_value(&mut inside, depth, out)?;
            }
            out.push(']');
        }
        12 => number(i128::from_le_bytes(input.array()?).to_string()),
        13 => write_float32(f32::from_le_bytes(input.array()?), out),
        14..=17 => {
            let _precision = u32::from_le_bytes(input.array()?);
            let scale = u32::from_le_bytes(input.array()?);
            let width = [4, 8, 16, 32].get(usize::from(kind.wrapping_sub(14))).copied().unwrap_or(4);
            out.push_str(&decimal::text(input.take(width)?, scale)?);
        }
        other => return Err(Error::corrupt("a type of JSONB", other)),
    }
    Ok(())
}

fn write_text(bytes: &[u8], out: &mut String) {
    match std::str::from_utf8(bytes) {
        Ok(text) => write_string(text, out),
        Err(_) => write_hex(bytes, out),
    }
}

/// Binary values hold the strings of the row store, and then are shown as such.
fn write_binary(bytes: &[u8], out: &mut String) {
    write_text(bytes, out);
}

/// Bytes that are no text, in the one way JSON can carry them without loss.
pub(crate) fn write_hex(bytes: &[u8], out: &mut String) {
    out.push_str("{\"$hex\":\"");
    for byte in bytes {
        // Writing into a string cannot fail.
        let _ = write!(out, "{byte:02x}");
    }
    out.push_str("\"}");
}

/// A string in quotes.
pub(crate) fn write_string(text: &str, out: &mut String) {
    // A string always has a JSON form.
    out.push_str(&serde_json::to_string(text).unwrap_or_default());
}

/// A number, or null: JSON has no others.
pub(crate) fn write_float(value: f64, out: &mut String) {
    match serde_json::Number::from_f64(value) {
        Some(number) => out.push_str(&number.to_string()),
        None => out.push_str("null"),
    }
}

/// As [`write_float`], in as few digits as tell 32-bit floats apart.
pub(crate) fn write_float32(value: f32, out: &mut String) {
    if value.is_finite() {
        let _ = write!(out, "{value:?}");
    } else {
        out.push_str("null");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_worked_example_and_every_type() {
        for (document, expected) in [
            (&b"\x01\x0a\x04\0\0\0\x01a\x03\x01"[..], r#"{"a":1}"#),
            (b"", "null"),
            (b"\x01\x00", "null"),
            (b"\x01\x01", "true"),
            (b"\x01\x02", "false"),
            (b"\x01\x04\x2c\xff", "-212"),
            (b"\x01\x07\0\0\0\0\0\0\x0c\x40", "3.5"),
            (b"\x01\x08\x03\0\0\0a\"b", r#""a\"b""#),
            (b"\x01\x09\x01\0\0\0\xff", r#"{"$hex":"ff"}"#),
            (b"\x01\x0b\x03\0\0\0\x00\x03\x07", "[null,7]"),
            (b"\x01\x0d\0\0\xa0\x3f", "1.25"),
            (b"\x01\x0e\x09\0\0\0\x02\0\0\0\x85\xff\xff\xff", "-1.23"),
            (b"\x01\x0a\x09\0\0\0\0\xff\xff\x00\0\x05\x00\x03\x01", r#"{"":null,"5":1}"#),
        ] {
            assert_eq!(to_text(document, 32).unwrap(), expected, "{}", document.escape_ascii());
        }
    }

    #[test]
    fn damage_and_depth_are_refused() {
        for document in [&b"\x02\x00"[..], b"\x01", b"\x01\x0a\x05\0\0\0", b"\x01\x00\x00", b"\x01\x63"] {
            assert!(to_text(document, 32).is_err(), "{}", document.escape_ascii());
        }
        let mut nested = vec![0];
        for _ in 0..40 {
            let mut outer = vec![11];
            outer.extend((nested.len() as u32).to_le_bytes());
            outer.extend(nested);
            nested = outer;
        }
        let document = [vec![1], nested].concat();
        assert!(to_text(&document, 32).is_err());
        assert!(to_text(&document, 40).is_ok());
    }

    proptest! {
        #[test]
        fn any_bytes_are_json_or_refused(mut bytes in prop::collection::vec(0u8..20, 0..80)) {
            bytes.insert(0, 1);
            if let Ok(text) = to_text(&bytes, 32) {
                prop_assert!(serde_json::from_str::<serde_json::Value>(&text).is_ok(), "{}", text);
            }
        }
    }
}
