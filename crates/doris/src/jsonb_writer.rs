//! JSON text → JSONB.
//!
//! One pass over the text: keys stay in their order, integers keep all their digits as long as 128 bits hold them.

use std::borrow::Cow;

use pilaster_core::{Error, Result};

use crate::jsonb::{EMPTY_KEY, VERSION};

const NULL: u8 = 0;
const TRUE: u8 = 1;
const FALSE: u8 = 2;
const INT8: u8 = 3;
const INT16: u8 = 4;
const INT32: u8 = 5;
const INT64: u8 = 6;
const DOUBLE: u8 = 7;
const STRING: u8 = 8;
const OBJECT: u8 = 10;
const ARRAY: u8 = 11;
const INT128: u8 = 12;

/// The document of a JSON text.
///
/// # Errors
/// [`pilaster_core::ErrorKind::InvalidInput`] if the text is no JSON, is nested deeper than `depth`, or has a key of more
/// than 255 bytes.
///
/// ```
/// let document = pilaster_doris::jsonb::from_text(r#"{"a": 1}"#, 32)?;
/// assert_eq!(document, b"\x01\x0a\x04\0\0\0\x01a\x03\x01");
/// # Ok::<(), pilaster_core::Error>(())
/// ```
pub fn from_text(text: &str, depth: u32) -> Result<Vec<u8>> {
    let mut document = Vec::with_capacity(text.len());
    append_document(text, depth, &mut document)?;
    Ok(document)
}

/// Appends the document of a JSON text.
pub(crate) fn append_document(text: &str, depth: u32, out: &mut Vec<u8>) -> Result<()> {
    out.push(VERSION);
    let mut input = Text { text, at: 0 };
    input.value(depth, out)?;
    input.skip_space();
    match input.peek() {
        None => Ok(()),
        Some(_) => Err(input.refuse("the end of the JSON text")),
    }
}

/// An object or an array being written: its size is known at the end.
#[derive(Debug)]
pub(crate) struct Container(usize);

impl Container {
    pub fn object(out: &mut Vec<u8>) -> Self {
        Self::start(OBJECT, out)
    }

    fn start(kind: u8, out: &mut Vec<u8>) -> Self {
        out.push(kind);
        out.extend([0; 4]);
        Self(out.len())
    }

    pub fn end(self, out: &mut [u8]) -> Result<()> {
        let size = length(out.len().saturating_sub(self.0))?;
        let slot = self.0.checked_sub(4).and_then(|at| out.get_mut(at..self.0));
        if let Some(slot) = slot {
            slot.copy_from_slice(&size);
        }
        Ok(())
    }
}

fn length(bytes: usize) -> Result<[u8; 4]> {
    u32::try_from(bytes).map(u32::to_le_bytes).map_err(|_| Error::invalid("4 GiB in one JSONB value"))
}

/// Appends a key of an object.
pub(crate) fn append_key(key: &str, out: &mut Vec<u8>) -> Result<()> {
    match u8::try_from(key.len()) {
        Ok(0) => append_key_id(EMPTY_KEY, out),
        Ok(length) => {
            out.push(length);
            out.extend_from_slice(key.as_bytes());
        }
        Err(_) => {
            return Err(Error::invalid(format!("a JSON key of {} bytes, more than 255", key.len())));
        }
    }
    Ok(())
}

/// Appends a key that is a number.
pub(crate) fn append_key_id(id: u16, out: &mut Vec<u8>) {
    out.push(0);
    out.extend(id.to_le_bytes());
}

/// Appends bytes with their length: a string or binary value.
pub(crate) fn append_sized(kind: u8, bytes: &[u8], out: &mut Vec<u8>) -> Result<()> {
    out.push(kind);
    out.extend(length(bytes.len())?);
    out.extend_from_slice(bytes);
    Ok(())
}

/// Appends an integer in the smallest type that holds it.
fn append_integer(value: i128, out: &mut Vec<u8>) {
    if let Ok(value) = i8::try_from(value) {
        out.push(INT8);
        out.extend(value.to_le_bytes());
    } else if let Ok(value) = i16::try_from(value) {
        out.push(INT16);
        out.extend(value.to_le_bytes());
    } else if let Ok(value) = i32::try_from(value) {
        out.push(INT32);
        out.extend(value.to_le_bytes());
    } else if let Ok(value) = i64::try_from(value) {
        out.push(INT64);
        out.extend(value.to_le_bytes());
    } else {
        out.push(INT128);
        out.extend(value.to_le_bytes());
    }
}

/// What is left of a JSON text.
struct Text<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Text<'a> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at = self.at.saturating_add(1);
        }
    }

    fn refuse(&self, expected: &str) -> Error {
        let rest: String = self.text.get(self.at..).unwrap_or_default().chars().take(20).collect();
        Error::invalid(format!("expected {expected} at byte {} of a JSON text, found \"{rest}\"", self.at))
    }

    fn take(&mut self, token: &str) -> bool {
        let found = self.text.get(self.at..).is_some_and(|rest| rest.starts_with(token));
        if found {
            self.at = self.at.saturating_add(token.len());
        }
        found
    }

    fn value(&mut self, depth: u32, out: &mut Vec<u8>) -> Result<()> {
        self.skip_space();
        match self.peek() {
            Some(b'{') => self.object(depth, out),
            Some(b'[') => self.array(depth, out),
            Some(b'"') => append_sized(STRING, self.string()?.as_bytes(), out),
            Some(b'-' | b'0'..=b'9') => self.number(out),
            _ => {
                let kind = match () {
                    () if self.take("null") => NULL,
                    () if self.take("true") => TRUE,
                    () if self.take("false") => FALSE,
                    () => return Err(self.refuse("a JSON value")),
                };
                out.push(kind);
                Ok(())
            }
        }
    }

    fn deeper(depth: u32) -> Result<u32> {
        depth.checked_sub(1).ok_or_else(|| Error::invalid("a JSON text nested too deeply"))
    }

    fn object(&mut self, depth: u32, out: &mut Vec<u8>) -> Result<()> {
        let depth = Self::deeper(depth)?;
        let object = Container::start(OBJECT, out);
        self.members("{", "}", |text| {
            if text.peek() != Some(b'"') {
                return Err(text.refuse("a key in quotes"));
            }
            append_key(&text.string()?, out)?;
            text.skip_space();
            if !text.take(":") {
                return Err(text.refuse("\":\""));
            }
            text.value(depth, out)
        })?;
        object.end(out)
    }

    fn array(&mut self, depth: u32, out: &mut Vec<u8>) -> Result<()> {
        let depth = Self::deeper(depth)?;
        let array = Container::start(ARRAY, out);
        self.members("[", "]", |text| text.value(depth, out))?;
        array.end(out)
    }

    /// `open`, what `member` reads as often as there are commas, `close`.
    fn members(
        &mut self,
        open: &str,
        close: &str,
        mut member: impl FnMut(&mut Self) -> Result<()>,
    ) -> Result<()> {
        self.take(open);
        self.skip_space();
        if self.take(close) {
            return Ok(());
        }
        loop {
            self.skip_space();
            member(self)?;
            self.skip_space();
            if self.take(close) {
                return Ok(());
            }
            if !self.take(",") {
                return Err(self.refuse("\",\" or the end of an object or array"));
            }
        }
    }

    fn string(&mut self) -> Result<Cow<'a, str>> {
        let start = self.at;
        let mut has_escapes = false;
        loop {
            self.at = self.at.saturating_add(1);
            match self.peek() {
                None => return Err(self.refuse("the end of a string")),
                Some(b'"') => break,
                Some(b'\\') => {
                    has_escapes = true;
                    self.at = self.at.saturating_add(1);
                }
                Some(0..=0x1f) => return Err(self.refuse("no control character in a string")),
                Some(_) => {}
            }
        }
        self.at = self.at.saturating_add(1);
        let quoted = self.text.get(start..self.at).unwrap_or_default();
        if has_escapes {
            let text: String = serde_json::from_str(quoted)
                .map_err(|error| Error::invalid(format!("a string of a JSON text: {error}")))?;
            return Ok(Cow::Owned(text));
        }
        Ok(Cow::Borrowed(quoted.trim_matches('"')))
    }

    fn number(&mut self, out: &mut Vec<u8>) -> Result<()> {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let is_part = |byte: u8| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E');
        let end = rest.bytes().position(|byte| !is_part(byte)).unwrap_or(rest.len());
        let number = rest.get(..end).unwrap_or_default();
        // The library knows the grammar; it would round integers of more than 64 bits, though.
        let double: f64 =
            serde_json::from_str(number).map_err(|_| self.refuse("a JSON number that a double can hold"))?;
        self.at = self.at.saturating_add(end);
        match number.parse::<i128>() {
            Ok(integer) if number != "-0" => append_integer(integer, out),
            _ => {
                out.push(DOUBLE);
                out.extend(double.to_le_bytes());
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jsonb::to_text;
    use proptest::prelude::*;

    #[test]
    fn documents_read_back_as_they_were() {
        for text in [
            "null",
            "true",
            "[]",
            "{}",
            "-128",
            "128",
            "-32769",
            "4294967296",
            "9223372036854775808",
            "-170141183460469231731687303715884105728",
            "1.5",
            "-0.0",
            r#""""#,
            r#""a\"b""#,
            r#"{"b":1,"a":[true,false,null,{"":"x"}]}"#,
        ] {
            assert_eq!(to_text(&from_text(text, 8).unwrap(), 8).unwrap(), text);
        }
        assert_eq!(to_text(&from_text(" [ 1 ,\t2 ] ", 8).unwrap(), 8).unwrap(), "[1,2]");
        assert_eq!(to_text(&from_text(r#""\u00e4\n""#, 8).unwrap(), 8).unwrap(), "\"ä\\n\"");
    }

    #[test]
    fn what_is_no_json_is_refused() {
        for text in [
            "",
            " ",
            "nul",
            "[1",
            "[1,]",
            "{\"a\"}",
            "{a:1}",
            "01",
            "1.",
            "+1",
            "\"",
            "\"\\",
            "\"\n\"",
            "1 2",
            "{\"a\":1,}",
            "--1",
            "1e999",
            "\"\\u12\"",
        ] {
            assert!(from_text(text, 8).is_err(), "{text}");
        }
        assert!(from_text("[[[]]]", 2).is_err());
        assert!(from_text(&format!("{{\"{}\":1}}", "k".repeat(256)), 8).is_err());
    }

    proptest! {
        #[test]
        fn any_text_is_json_for_both_or_for_none(text in r#"[\[\]{}",:\\0-9.eE a-zä\-]{0,20}"#) {
            // The library has no number beyond a double either.
            let library = serde_json::from_str::<serde::de::IgnoredAny>(&text).is_ok();
            if let Ok(document) = from_text(&text, 32) {
                prop_assert!(library);
                prop_assert!(to_text(&document, 32).is_ok());
            }
        }
    }
}
