//! Writing.

use super::wire;
use crate::{varint, zigzag};

/// Writes one struct behind the bytes of a buffer, fields in ascending order of their ids.
///
/// ```
/// use pilaster_encoding::thrift::Writer;
///
/// let mut bytes = Vec::new();
/// let mut writer = Writer::new(&mut bytes);
/// writer.i32(1, 3);
/// writer.text(2, "ab");
/// writer.bool(9, true);
/// writer.finish();
/// assert_eq!(bytes, [0x15, 0x06, 0x18, 0x02, b'a', b'b', 0x71, 0x00]);
/// ```
#[derive(Debug)]
pub struct Writer<'a> {
    out: &'a mut Vec<u8>,
    start: usize,
    last: i16,
}

impl<'a> Writer<'a> {
    /// Begins a struct at the end of `out`.
    pub fn new(out: &'a mut Vec<u8>) -> Self {
        let start = out.len();
        Self { out, start, last: 0 }
    }

    /// The bytes of the struct so far.
    #[must_use]
    pub fn written(&self) -> &[u8] {
        self.out.get(self.start..).unwrap_or_default()
    }

    fn header(&mut self, id: i16, wire: u8) {
        match u8::try_from(id.saturating_sub(self.last)) {
            Ok(delta @ 1..=15) => self.out.push((delta << 4) | wire),
            _ => self.long_header(id, wire),
        }
        self.last = id;
    }

    fn long_header(&mut self, id: i16, wire: u8) {
        self.out.push(wire);
        put_number(self.out, i64::from(id));
    }

    /// A field of 32 bits.
    pub fn i32(&mut self, id: i16, value: i32) {
        self.header(id, wire::I32);
        put_number(self.out, i64::from(value));
    }

    /// As [`Writer::i32`], but with the id whole, where it could be short too.
    pub fn i32_with_long_header(&mut self, id: i16, value: i32) {
        self.long_header(id, wire::I32);
        self.last = id;
        put_number(self.out, i64::from(value));
    }

    /// A field of 64 bits.
    pub fn i64(&mut self, id: i16, value: i64) {
        self.header(id, wire::I64);
        put_number(self.out, value);
    }

    /// A boolean.
    pub fn bool(&mut self, id: i16, value: bool) {
        self.header(id, if value { wire::TRUE } else { wire::FALSE });
    }

    /// Bytes.
    pub fn binary(&mut self, id: i16, value: &[u8]) {
        self.header(id, wire::BINARY);
        put_binary(self.out, value);
    }

    /// Text.
    pub fn text(&mut self, id: i16, value: &str) {
        self.binary(id, value.as_bytes());
    }

    /// A struct, which `write` appends.
    pub fn structure(&mut self, id: i16, write: impl FnOnce(&mut Vec<u8>)) {
        self.header(id, wire::STRUCT);
        write(self.out);
    }

    /// A list of elements of type `element`, each appended by `write`.
    pub fn list<T>(&mut self, id: i16, element: u8, values: &[T], mut write: impl FnMut(&T, &mut Vec<u8>)) {
        self.header(id, wire::LIST);
        match u8::try_from(values.len()) {
            Ok(count @ 0..15) => self.out.push((count << 4) | element),
            _ => {
                self.out.push(0xf0 | element);
                varint::write_u64(self.out, values.len() as u64);
            }
        }
        for value in values {
            write(value, self.out);
        }
    }

    /// A list of numbers of 32 bits.
    pub fn i32_list(&mut self, id: i16, values: &[i32]) {
        self.list(id, wire::I32, values, |value, out| put_number(out, i64::from(*value)));
    }

    /// A list of numbers of 64 bits.
    pub fn i64_list(&mut self, id: i16, values: &[i64]) {
        self.list(id, wire::I64, values, |value, out| put_number(out, *value));
    }

    /// A list of byte strings or texts.
    pub fn binary_list<T: AsRef<[u8]>>(&mut self, id: i16, values: &[T]) {
        self.list(id, wire::BINARY, values, |value, out| put_binary(out, value.as_ref()));
    }

    /// A list of booleans, a byte each.
    pub fn bool_list(&mut self, id: i16, values: &[bool]) {
        let byte = |value: bool| if value { wire::TRUE } else { wire::FALSE };
        self.list(id, wire::TRUE, values, |value, out| out.push(byte(*value)));
    }

    /// A map of texts to texts.
    pub fn text_map(&mut self, id: i16, pairs: &[(String, String)]) {
        self.header(id, wire::MAP);
        varint::write_u64(self.out, pairs.len() as u64);
        if !pairs.is_empty() {
            self.out.push((wire::BINARY << 4) | wire::BINARY);
        }
        for (key, value) in pairs {
            put_binary(self.out, key.as_bytes());
            put_binary(self.out, value.as_bytes());
        }
    }

    /// Ends the struct.
    pub fn finish(self) {
        self.out.push(0);
    }
}

/// Appends a number as an element of a list.
pub fn put_number(out: &mut Vec<u8>, value: i64) {
    varint::write_u64(out, zigzag::encode_i64(value));
}

/// Appends bytes as an element of a list.
pub fn put_binary(out: &mut Vec<u8>, value: &[u8]) {
    varint::write_u64(out, value.len() as u64);
    out.extend_from_slice(value);
}

#[cfg(test)]
mod tests {
    use super::super::Reader;
    use super::*;
    use crate::Result;
    use proptest::prelude::*;

    #[derive(Debug, Default, PartialEq)]
    struct Everything {
        small: i32,
        large: i64,
        flag: bool,
        bytes: Vec<u8>,
        numbers: Vec<i32>,
        longs: Vec<i64>,
        flags: Vec<bool>,
        texts: Vec<Vec<u8>>,
        pairs: Vec<(String, String)>,
    }

    impl Everything {
        fn write(&self, step: i16, out: &mut Vec<u8>) {
            let mut writer = Writer::new(out);
            writer.i32(step, self.small);
            writer.i64(step * 2, self.large);
            writer.bool(step * 3, self.flag);
            writer.binary(step * 4, &self.bytes);
            writer.i32_list(step * 5, &self.numbers);
            writer.i64_list(step * 6, &self.longs);
            writer.bool_list(step * 7, &self.flags);
            writer.binary_list(step * 8, &self.texts);
            writer.text_map(step * 9, &self.pairs);
            writer.structure(step * 10, |out| Writer::new(out).finish());
            writer.i32_with_long_header(step * 11, 7);
            writer.finish();
        }

        fn read(step: i16, bytes: &[u8]) -> Result<Self> {
            let mut all = Self::default();
            let mut reader = Reader::strict(bytes);
            reader.structure(|reader, field| {
                match field.id / step {
                    1 => all.small = reader.i32(field)?,
                    2 => all.large = reader.i64(field)?,
                    3 => all.flag = reader.bool(field)?,
                    4 => all.bytes = reader.binary(field)?.to_vec(),
                    5 => all.numbers = reader.list(field, wire::I32, Reader::i32_value)?,
                    6 => all.longs = reader.list(field, wire::I64, Reader::i64_value)?,
                    7 => all.flags = reader.list(field, wire::TRUE, Reader::bool_value)?,
                    8 => {
                        all.texts =
                            reader.list(field, wire::BINARY, |reader| Ok(reader.binary_value()?.to_vec()))?;
                    }
                    9 => {
                        let pairs = reader.text_map(field)?;
                        all.pairs = pairs.into_iter().map(|(k, v)| (k.into(), v.into())).collect();
                    }
                    11 => assert_eq!(reader.i32(field)?, 7),
                    _ => return Ok(false),
                }
                Ok(true)
            })?;
            assert!(reader.is_at_end());
            Ok(all)
        }
    }

    proptest! {
        #![proptest_config(crate::test_config())]
        #[test]
        fn what_is_written_is_read(
            step in 1i16..30,
            (small, large, flag) in any::<(i32, i64, bool)>(),
            bytes in prop::collection::vec(any::<u8>(), 0..200),
            numbers in prop::collection::vec(any::<i32>(), 0..40),
            longs in prop::collection::vec(any::<i64>(), 0..20),
            flags in prop::collection::vec(any::<bool>(), 0..20),
            texts in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..4), 0..20),
            pairs in prop::collection::vec(("[a-z]{0,3}", "[a-z]{0,3}"), 0..4),
        ) {
            let all = Everything { small, large, flag, bytes, numbers, longs, flags, texts, pairs };
            let mut out = Vec::new();
            all.write(step, &mut out);
            prop_assert_eq!(Everything::read(step, &out).unwrap(), all);
        }
    }
}
