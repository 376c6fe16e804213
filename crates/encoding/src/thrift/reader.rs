//! Reading.

use std::collections::BTreeSet;

use super::wire;
use crate::{DecodeError, Result, varint, zigzag};

/// Deepest nesting of structs, lists and maps.
const MAX_DEPTH: u32 = 64;
/// The same for strict readers.
const STRICT_MAX_DEPTH: u32 = 32;

/// The header of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field {
    /// Its number in the struct.
    pub id: i16,
    /// Its type, one of [`wire`].
    pub wire: u8,
    /// Where the header begins.
    pub at: usize,
}

/// A place in bytes that hold structs.
#[derive(Debug, Clone)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    pos: usize,
    depth: u32,
    is_strict: bool,
}

impl<'a> Reader<'a> {
    /// At the start of `bytes`.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, pos: 0, depth: 0, is_strict: false }
    }

    /// As [`Reader::new`], for bytes that only one way of writing can have made: a varint that is longer than needed is an
    /// error, so is a field that comes twice, a skipped number that its type cannot hold, and nesting deeper than 32.
    #[must_use]
    pub fn strict(bytes: &'a [u8]) -> Self {
        Self { is_strict: true, ..Self::new(bytes) }
    }

    /// The bytes between two positions.
    #[must_use]
    pub fn bytes_between(&self, start: usize, end: usize) -> &'a [u8] {
        self.bytes.get(start..end).unwrap_or_default()
    }

    /// How many bytes have been read.
    #[must_use]
    pub fn position(&self) -> usize {
        self.pos
    }

    /// Whether all bytes have been read.
    #[must_use]
    pub fn is_at_end(&self) -> bool {
        self.left() == 0
    }

    fn left(&self) -> usize {
        self.bytes.len().saturating_sub(self.pos)
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8]> {
        let end = self.pos.checked_add(count);
        let taken = end.and_then(|end| self.bytes.get(self.pos..end));
        let taken = taken.ok_or_else(|| {
            DecodeError::new(
                self.pos,
                format!("{count} more bytes of a thrift struct"),
                format!("{}", self.left()),
            )
        })?;
        self.pos = self.pos.saturating_add(count);
        Ok(taken)
    }

    #[inline]
    fn byte(&mut self) -> Result<u8> {
        match self.bytes.get(self.pos) {
            Some(byte) => {
                self.pos = self.pos.wrapping_add(1);
                Ok(*byte)
            }
            None => self.take(1).map(|_| 0),
        }
    }

    #[inline]
    fn varint(&mut self) -> Result<u64> {
        // Most take one byte.
        match self.bytes.get(self.pos) {
            Some(byte @ ..0x80) => {
                self.pos = self.pos.wrapping_add(1);
                Ok(u64::from(*byte))
            }
            _ => self.long_varint(),
        }
    }

    fn long_varint(&mut self) -> Result<u64> {
        let start = self.pos;
        let value = varint::read_u64(self.bytes, &mut self.pos)?;
        if self.is_strict && self.pos.saturating_sub(start) > varint::len_u64(value) {
            return Err(DecodeError::new(start, "a varint of the least length", "a longer one"));
        }
        Ok(value)
    }

    /// A number outside of any field, as in a list.
    ///
    /// # Errors
    /// If the bytes end inside it or it is longer than 64 bits.
    #[inline]
    pub fn i64_value(&mut self) -> Result<i64> {
        self.varint().map(zigzag::decode_i64)
    }

    /// As [`Reader::i64_value`].
    ///
    /// # Errors
    /// Likewise, and if it does not fit 32 bits.
    #[inline]
    pub fn i32_value(&mut self) -> Result<i32> {
        let start = self.pos;
        let value = self.i64_value()?;
        i32::try_from(value).map_err(|_| DecodeError::new(start, "a 32-bit number", value.to_string()))
    }

    fn i16_value(&mut self) -> Result<i16> {
        let start = self.pos;
        let value = self.i64_value()?;
        i16::try_from(value).map_err(|_| DecodeError::new(start, "a 16-bit number", value.to_string()))
    }

    /// A boolean in a list.
    ///
    /// # Errors
    /// If the bytes end before it.
    pub fn bool_value(&mut self) -> Result<bool> {
        Ok(self.byte()? == wire::TRUE)
    }

    /// A length or count: not more than the bytes that are left, because every element takes at least one.
    fn length(&mut self) -> Result<usize> {
        let start = self.pos;
        let value = self.varint()?;
        match usize::try_from(value) {
            Ok(length) if length <= self.left() => Ok(length),
            _ => Err(DecodeError::new(
                start,
                format!("a length of at most {}", self.left()),
                value.to_string(),
            )),
        }
    }

    /// Bytes outside of any field, as in a list.
    ///
    /// # Errors
    /// If they are longer than what is left.
    pub fn binary_value(&mut self) -> Result<&'a [u8]> {
        let length = self.length()?;
        self.take(length)
    }

    /// Text outside of any field.
    ///
    /// # Errors
    /// As [`Reader::binary_value`], and if it is not UTF-8.
    pub fn text_value(&mut self) -> Result<&'a str> {
        let start = self.pos;
        let bytes = self.binary_value()?;
        std::str::from_utf8(bytes).map_err(|_| DecodeError::new(start, "text in UTF-8", "other bytes"))
    }

    fn list_header(&mut self) -> Result<(usize, u8)> {
        let header = self.byte()?;
        let count = match header >> 4 {
            15 => self.length()?,
            short => usize::from(short),
        };
        if count > self.left() {
            let expected = format!("a list of at most {} elements", self.left());
            return Err(DecodeError::new(self.pos, expected, count.to_string()));
        }
        Ok((count, header & 15))
    }

    fn nested<T>(&mut self, inner: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let max_depth = if self.is_strict { STRICT_MAX_DEPTH } else { MAX_DEPTH };
        if self.depth >= max_depth {
            return Err(DecodeError::new(self.pos, format!("nesting of at most {max_depth}"), "more"));
        }
        self.depth = self.depth.saturating_add(1);
        let result = inner(self);
        self.depth = self.depth.saturating_sub(1);
        result
    }

    /// Reads a struct: `on_field` takes a field it knows and says so, others are skipped.
    ///
    /// # Errors
    /// If the bytes are no struct, or what `on_field` says.
    pub fn structure(&mut self, on_field: impl FnMut(&mut Self, Field) -> Result<bool>) -> Result<()> {
        self.structure_until(None, on_field).map(|_| ())
    }

    /// As [`Reader::structure`], but stops right behind the header of the field `stop` and gives it, if it comes.
    ///
    /// # Errors
    /// As [`Reader::structure`].
    pub fn structure_until(
        &mut self,
        stop: Option<i16>,
        mut on_field: impl FnMut(&mut Self, Field) -> Result<bool>,
    ) -> Result<Option<Field>> {
        self.nested(|reader| {
            let mut seen = Seen::default();
            let mut last = 0;
            while let Some(field) = reader.field(last)? {
                if reader.is_strict {
                    seen.add(field)?;
                }
                last = field.id;
                if stop == Some(field.id) {
                    return Ok(Some(field));
                }
                if !on_field(reader, field)? {
                    reader.skip(field.wire)?;
                }
            }
            Ok(None)
        })
    }

    /// Takes the mark that ends a struct.
    ///
    /// # Errors
    /// If another field comes.
    pub fn end(&mut self) -> Result<()> {
        let at = self.pos;
        match self.byte()? {
            0 => Ok(()),
            _ => Err(DecodeError::new(at, "the end of the struct", "another field")),
        }
    }

    /// The next field header; `None` at the end of the struct.
    #[inline]
    fn field(&mut self, last: i16) -> Result<Option<Field>> {
        let at = self.pos;
        let header = self.byte()?;
        if header == 0 {
            return Ok(None);
        }
        let id = match header >> 4 {
            0 => self.i16_value()?,
            delta => last
                .checked_add(i16::from(delta))
                .ok_or_else(|| DecodeError::new(at, "a 16-bit field id", "a larger one"))?,
        };
        let wire = header & 15;
        if !(wire::TRUE..=wire::STRUCT).contains(&wire) {
            return Err(DecodeError::new(at, "a field type of 1 to 12", wire.to_string()));
        }
        Ok(Some(Field { id, wire, at }))
    }

    /// Steps over a value of any type.
    fn skip(&mut self, wire: u8) -> Result<()> {
        match wire {
            wire::TRUE | wire::FALSE => Ok(()),
            wire::I8 => self.take(1).map(|_| ()),
            wire::I16 if self.is_strict => self.i16_value().map(|_| ()),
            wire::I32 if self.is_strict => self.i32_value().map(|_| ()),
            wire::I16 | wire::I32 | wire::I64 => self.i64_value().map(|_| ()),
            wire::DOUBLE => self.take(8).map(|_| ()),
            wire::BINARY => self.binary_value().map(|_| ()),
            wire::LIST | wire::SET => self.nested(|reader| {
                let (count, element) = reader.list_header()?;
                (0..count).try_for_each(|_| reader.skip_element(element))
            }),
            wire::MAP => self.pairs(|reader, key, value| {
                reader.skip_element(key)?;
                reader.skip_element(value)
            }),
            wire::STRUCT => self.structure(|_, _| Ok(false)),
            other => Err(DecodeError::new(self.pos, "a type of 1 to 12", other.to_string())),
        }
    }

    /// As [`Reader::skip`]; a boolean in a list has a byte of its own.
    fn skip_element(&mut self, wire: u8) -> Result<()> {
        match wire {
            wire::TRUE | wire::FALSE => self.byte().map(|_| ()),
            other => self.skip(other),
        }
    }

    fn pairs(&mut self, mut on_pair: impl FnMut(&mut Self, u8, u8) -> Result<()>) -> Result<()> {
        self.nested(|reader| {
            let count = reader.length()?;
            if count == 0 {
                return Ok(());
            }
            let types = reader.byte()?;
            (0..count).try_for_each(|_| on_pair(reader, types >> 4, types & 15))
        })
    }

    #[inline]
    fn expect(&self, field: Field, wire: u8) -> Result<()> {
        if field.wire == wire { Ok(()) } else { Err(other_type(field, wire)) }
    }

    /// The value of a field.
    ///
    /// # Errors
    /// If it has another type.
    #[inline]
    pub fn i32(&mut self, field: Field) -> Result<i32> {
        self.expect(field, wire::I32)?;
        self.i32_value()
    }

    /// The value of a field.
    ///
    /// # Errors
    /// If it has another type.
    #[inline]
    pub fn i64(&mut self, field: Field) -> Result<i64> {
        self.expect(field, wire::I64)?;
        self.i64_value()
    }

    /// The value of a field.
    ///
    /// # Errors
    /// If it has another type.
    pub fn bool(&mut self, field: Field) -> Result<bool> {
        match field.wire {
            wire::TRUE => Ok(true),
            wire::FALSE => Ok(false),
            _ => self.expect(field, wire::TRUE).map(|()| false),
        }
    }

    /// The value of a field.
    ///
    /// # Errors
    /// If it has another type or is no UTF-8.
    pub fn text(&mut self, field: Field) -> Result<&'a str> {
        self.expect(field, wire::BINARY)?;
        self.text_value()
    }

    /// The value of a field.
    ///
    /// # Errors
    /// If it has another type.
    pub fn binary(&mut self, field: Field) -> Result<&'a [u8]> {
        self.expect(field, wire::BINARY)?;
        self.binary_value()
    }

    /// The struct in a field.
    ///
    /// # Errors
    /// If it has another type, or what `parse` says.
    pub fn structure_field<T>(
        &mut self,
        field: Field,
        parse: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        self.expect(field, wire::STRUCT)?;
        parse(self)
    }

    /// A list whose elements have type `element`.
    ///
    /// # Errors
    /// If it is no such list, or what `parse` says.
    pub fn list<T>(
        &mut self,
        field: Field,
        element: u8,
        mut parse: impl FnMut(&mut Self) -> Result<T>,
    ) -> Result<Vec<T>> {
        self.expect(field, wire::LIST)?;
        self.nested(|reader| {
            let at = reader.pos;
            let (count, found) = reader.list_header()?;
            let is_bool = |wire| matches!(wire, wire::TRUE | wire::FALSE);
            if count > 0 && found != element && !(is_bool(found) && is_bool(element)) {
                return Err(DecodeError::new(at, format!("elements of type {element}"), found.to_string()));
            }
            // Not reserved at once: an element in memory is larger than the byte it takes in the file.
            let mut elements = Vec::new();
            for _ in 0..count {
                elements.push(parse(reader)?);
            }
            Ok(elements)
        })
    }

    /// A map of texts to texts, in file order.
    ///
    /// # Errors
    /// If it is no such map.
    pub fn text_map(&mut self, field: Field) -> Result<Vec<(&'a str, &'a str)>> {
        self.expect(field, wire::MAP)?;
        let mut pairs = Vec::new();
        self.pairs(|reader, key, value| {
            if (key, value) != (wire::BINARY, wire::BINARY) {
                let found = format!("types {key} and {value}");
                return Err(DecodeError::new(reader.pos, "a map of texts to texts", found));
            }
            pairs.push((reader.text_value()?, reader.text_value()?));
            Ok(())
        })?;
        Ok(pairs)
    }
}

#[cold]
fn other_type(field: Field, wire: u8) -> DecodeError {
    let expected = format!("type {wire} for field {}", field.id);
    DecodeError::new(field.at, expected, format!("type {}", field.wire))
}

/// The ids of the fields met so far.
#[derive(Default)]
struct Seen {
    low: u64,
    others: BTreeSet<i16>,
}

impl Seen {
    #[inline]
    fn add(&mut self, field: Field) -> Result<()> {
        let is_new = match u32::try_from(field.id) {
            Ok(id @ 0..64) => {
                let bit = 1u64 << id;
                let is_new = self.low & bit == 0;
                self.low |= bit;
                is_new
            }
            _ => self.others.insert(field.id),
        };
        if is_new {
            return Ok(());
        }
        Err(DecodeError::new(field.at, format!("field {} once", field.id), "a second one"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn skip_all(bytes: &[u8]) -> Result<usize> {
        let mut reader = Reader::new(bytes);
        reader.structure(|_, _| Ok(false))?;
        Ok(reader.position())
    }

    #[test]
    fn every_type_is_skipped() {
        let bytes = [
            0x11, 0x12, 0x13, 0x7f, 0x14, 0x02, 0x15, 0x04, 0x16, 0x06, // booleans and numbers
            0x17, 0, 0, 0, 0, 0, 0, 0, 0, // double
            0x18, 0x01, b'x', 0x19, 0x25, 0x02, 0x04, 0x1a, 0x11, 0x01, // binary, list, set
            0x1b, 0x01, 0x88, 0x01, b'k', 0x01, b'v', 0x1b, 0x00, // maps
            0x1c, 0x15, 0x02, 0x00, 0x05, 0xc8, 0x01, 0x02, // struct, a field with a long id
            0x00, 0xff,
        ];
        assert_eq!(skip_all(&bytes), Ok(bytes.len() - 1));
        for end in 0..bytes.len() - 1 {
            assert!(skip_all(&bytes[..end]).is_err(), "{end}");
        }
    }

    #[test]
    fn lists_and_maps_are_read() -> Result<()> {
        let bytes = [0x19, 0x31, 1, 2, 1, 0x1b, 0x01, 0x88, 0x01, b'k', 0x01, b'v', 0x00];
        let (mut flags, mut map) = (Vec::new(), Vec::new());
        Reader::new(&bytes).structure(|reader, field| {
            match field.id {
                1 => flags = reader.list(field, wire::TRUE, Reader::bool_value)?,
                _ => map = reader.text_map(field)?,
            }
            Ok(true)
        })?;
        assert_eq!((flags, map), (vec![true, false, true], vec![("k", "v")]));
        Ok(())
    }

    #[test]
    fn wrong_types_lengths_and_depths_are_refused() {
        let text =
            |bytes: &[u8]| Reader::new(bytes).structure(|reader, field| reader.text(field).map(|_| true));
        assert!(text(&[0x18, 0x01, b'a', 0]).is_ok());
        assert!(text(&[0x18, 0x01, 0xff, 0]).is_err());
        assert!(text(&[0x18, 0x7f, b'a', 0]).is_err());
        assert!(text(&[0x15, 0x02, 0]).is_err());
        assert!(skip_all(&[0x1d, 0]).is_err());
        assert!(skip_all(&[vec![0x1c; 60], vec![0; 61]].concat()).is_ok());
        assert!(skip_all(&[vec![0x1c; 5000], vec![0; 5001]].concat()).is_err());
        assert!(skip_all(&[0x19, 0xf8, 0xff, 0xff, 0xff, 0xff, 0x0f]).is_err());
    }

    #[test]
    fn strict_readers_take_one_way_of_writing_only() {
        let strict = |bytes: &[u8]| Reader::strict(bytes).structure(|_, _| Ok(false));
        let cases: [(&[u8], bool); 6] = [
            (&[0x15, 0x02, 0x00], true),
            (&[0x15, 0x82, 0x00, 0x00], false), // a varint with a byte to spare
            (&[0x15, 0x02, 0x05, 0x02, 0x02, 0x00], false), // field 1 again
            (&[0x05, 0x90, 0x01, 0x02, 0x05, 0x90, 0x01, 0x02, 0x00], false), // field 72 again
            (&[0x14, 0x80, 0x80, 0x04, 0x00], false), // 32768 as a 16-bit number
            (&[0x14, 0xfe, 0xff, 0x03, 0x00], true),
        ];
        for (bytes, is_strict) in cases {
            assert!(skip_all(bytes).is_ok(), "{bytes:x?}");
            assert_eq!(strict(bytes).is_ok(), is_strict, "{bytes:x?}");
        }
        let nested = |depth: usize| [vec![0x1c; depth], vec![0; depth + 1]].concat();
        assert!(strict(&nested(31)).is_ok());
        assert!(strict(&nested(32)).is_err());
    }

    #[test]
    fn a_struct_can_be_left_at_a_field() -> Result<()> {
        let bytes = [0x15, 0x02, 0x25, 0x04, 0x00];
        let mut reader = Reader::new(&bytes);
        let field = reader.structure_until(Some(3), |_, _| Ok(false))?.unwrap();
        assert_eq!((field.id, reader.bytes_between(0, field.at)), (3, &bytes[..2]));
        assert_eq!(reader.i32(field)?, 2);
        reader.end()?;
        assert!(reader.is_at_end());
        Ok(())
    }

    proptest! {
        #![proptest_config(crate::test_config())]
        #[test]
        fn never_panics_on_any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            if let Ok(used) = skip_all(&bytes) {
                prop_assert!(used <= bytes.len());
            }
        }
    }
}
