//! Writing.

use pilaster_encoding::checksum::crc32;
use pilaster_encoding::{varint, zigzag};

use super::wire;

/// Writes one struct after the bytes of `out`; fields in ascending id.
#[derive(Debug)]
pub(crate) struct Writer<'a> {
    out: &'a mut Vec<u8>,
    start: usize,
    last: i16,
}

impl<'a> Writer<'a> {
    pub fn new(out: &'a mut Vec<u8>) -> Self {
        let start = out.len();
        Self { out, start, last: 0 }
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
        varint::write_u64(self.out, zigzag::encode_i64(i64::from(id)));
    }

    pub fn i32(&mut self, id: i16, value: i32) {
        self.header(id, wire::I32);
        put_number(self.out, i64::from(value));
    }

    pub fn i64(&mut self, id: i16, value: i64) {
        self.header(id, wire::I64);
        put_number(self.out, value);
    }

    pub fn bool(&mut self, id: i16, value: bool) {
        self.header(id, if value { wire::TRUE } else { wire::FALSE });
    }

    pub fn binary(&mut self, id: i16, value: &[u8]) {
        self.header(id, wire::BINARY);
        put_binary(self.out, value);
    }

    pub fn structure(&mut self, id: i16, write: impl FnOnce(&mut Vec<u8>)) {
        self.header(id, wire::STRUCT);
        write(self.out);
    }

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

    pub fn i32_list(&mut self, id: i16, values: &[i32]) {
        self.list(id, wire::I32, values, |value, out| put_number(out, i64::from(*value)));
    }

    /// Ends the struct.
    pub fn finish(self) {
        self.out.push(0);
    }

    /// Ends the struct with the checksum of everything before it. The header is short where the id allows.
    pub fn finish_with_crc(mut self, id: i16) {
        let crc = self.crc();
        self.i32(id, crc);
        self.out.push(0);
    }

    /// As [`Writer::finish_with_crc`], always with the long header.
    pub fn finish_with_long_crc(self, id: i16) {
        let crc = self.crc();
        let Self { out, .. } = self;
        out.push(wire::I32);
        varint::write_u64(out, zigzag::encode_i64(i64::from(id)));
        put_number(out, i64::from(crc));
        out.push(0);
    }

    fn crc(&self) -> i32 {
        crc32(self.out.get(self.start..).unwrap_or_default()).cast_signed()
    }
}

pub(crate) fn put_number(out: &mut Vec<u8>, value: i64) {
    varint::write_u64(out, zigzag::encode_i64(value));
}

pub(crate) fn put_binary(out: &mut Vec<u8>, value: &[u8]) {
    varint::write_u64(out, value.len() as u64);
    out.extend_from_slice(value);
}
