//! Reading.

use hashbrown::HashSet;
use pilaster_encoding::checksum::crc32;
use pilaster_encoding::{DecodeError, Result, zigzag};

use super::wire;

/// Deepest nesting of structs, lists and maps.
const MAX_DEPTH: u32 = 32;
/// Bytes of the longest varint.
const MAX_VARINT: usize = 10;

/// The header of a field.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Field {
    pub id: i16,
    pub wire: u8,
    /// Where the header begins.
    pub at: usize,
}

/// A place in bytes that hold a struct.
#[derive(Debug)]
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
    pos: usize,
    depth: u32,
}

impl<'a> Reader<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, pos: 0, depth: 0 }
    }

    pub fn position(&self) -> usize {
        self.pos
    }

    fn left(&self) -> usize {
        self.bytes.len().saturating_sub(self.pos)
    }

    fn byte(&mut self) -> Result<u8> {
        let byte = self.bytes.get(self.pos).copied();
        let byte = byte.ok_or_else(|| DecodeError::new(self.pos, "more of the struct", END))?;
        self.pos = self.pos.saturating_add(1);
        Ok(byte)
    }

    fn varint(&mut self) -> Result<u64> {
        let start = self.pos;
        let mut value = 0u64;
        for shift in (0u32..).step_by(7).take(MAX_VARINT) {
            let byte = self.byte()?;
            let low = u64::from(byte & 0x7f);
            let placed = low.wrapping_shl(shift);
            if placed.wrapping_shr(shift) != low {
                return Err(DecodeError::new(start, "a varint of at most 64 bits", "more bits"));
            }
            value |= placed;
            if byte < 0x80 {
                if byte == 0 && shift > 0 {
                    return Err(DecodeError::new(start, "a varint of the least length", "a longer one"));
                }
                return Ok(value);
            }
        }
        Err(DecodeError::new(start, "a varint of at most 10 bytes", "a longer one"))
    }

    pub fn i64_value(&mut self) -> Result<i64> {
        Ok(zigzag::decode_i64(self.varint()?))
    }

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

    pub fn binary_value(&mut self) -> Result<&'a [u8]> {
        let length = self.length()?;
        let end = self.pos.saturating_add(length);
        let value = self.bytes.get(self.pos..end).unwrap_or_default();
        self.pos = end;
        Ok(value)
    }

    pub fn string_value(&mut self) -> Result<String> {
        let start = self.pos;
        let bytes = self.binary_value()?;
        match std::str::from_utf8(bytes) {
            Ok(text) => Ok(text.to_string()),
            Err(_) => Err(DecodeError::new(start, "text in UTF-8", "other bytes")),
        }
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
        if self.depth >= MAX_DEPTH {
            return Err(DecodeError::new(self.pos, format!("nesting of at most {MAX_DEPTH}"), "more"));
        }
        self.depth = self.depth.saturating_add(1);
        let result = inner(self);
        self.depth = self.depth.saturating_sub(1);
        result
    }

    /// Reads a struct: `on_field` takes a field it knows and says so, others are skipped.
    pub fn structure(&mut self, mut on_field: impl FnMut(&mut Self, Field) -> Result<bool>) -> Result<()> {
        self.checked_structure(None, &mut on_field).map(|_| ())
    }

    /// Reads a struct whose last field may be `crc_id`, the checksum of the bytes before that field; says whether it is there.
    pub fn checked_structure(
        &mut self,
        crc_id: Option<i16>,
        on_field: &mut dyn FnMut(&mut Self, Field) -> Result<bool>,
    ) -> Result<bool> {
        self.nested(|reader| reader.fields(crc_id, on_field))
    }

    fn fields(
        &mut self,
        crc_id: Option<i16>,
        on_field: &mut dyn FnMut(&mut Self, Field) -> Result<bool>,
    ) -> Result<bool> {
        let start = self.pos;
        let mut seen = Seen::default();
        let mut last = 0;
        while let Some(field) = self.field(last)? {
            seen.add(field)?;
            last = field.id;
            if crc_id == Some(field.id) {
                self.check_crc(field, start)?;
                return Ok(true);
            }
            if !on_field(self, field)? {
                self.skip(field.wire)?;
            }
        }
        Ok(false)
    }

    fn check_crc(&mut self, field: Field, start: usize) -> Result<()> {
        let stored = self.i32(field)?.cast_unsigned();
        let computed = crc32(self.bytes.get(start..field.at).unwrap_or_default());
        if stored != computed {
            return Err(DecodeError::new(
                start,
                format!("CRC-32 {stored:08x}, as the struct says"),
                format!("{computed:08x}"),
            ));
        }
        match self.byte()? {
            0 => Ok(()),
            _ => Err(DecodeError::new(self.pos, "the end of the struct after its checksum", "another field")),
        }
    }

    /// The next field header; `None` at the end of the struct.
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
            wire::I8 => self.byte().map(|_| ()),
            wire::I16 => self.i16_value().map(|_| ()),
            wire::I32 => self.i32_value().map(|_| ()),
            wire::I64 => self.i64_value().map(|_| ()),
            wire::DOUBLE => (0..8).try_for_each(|_| self.byte().map(|_| ())),
            wire::BINARY => self.binary_value().map(|_| ()),
            wire::LIST | wire::SET => self.nested(|reader| {
                let (count, element) = reader.list_header()?;
                (0..count).try_for_each(|_| reader.skip_element(element))
            }),
            wire::MAP => self.nested(|reader| {
                let count = reader.length()?;
                if count == 0 {
                    return Ok(());
                }
                let types = reader.byte()?;
                (0..count).try_for_each(|_| {
                    reader.skip_element(types >> 4)?;
                    reader.skip_element(types & 15)
                })
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

    fn expect(&self, field: Field, wire: u8) -> Result<()> {
        if field.wire == wire {
            return Ok(());
        }
        let expected = format!("type {wire} for field {}", field.id);
        Err(DecodeError::new(field.at, expected, format!("type {}", field.wire)))
    }

    pub fn i32(&mut self, field: Field) -> Result<i32> {
        self.expect(field, wire::I32)?;
        self.i32_value()
    }

    pub fn i64(&mut self, field: Field) -> Result<i64> {
        self.expect(field, wire::I64)?;
        self.i64_value()
    }

    pub fn bool(&mut self, field: Field) -> Result<bool> {
        match field.wire {
            wire::TRUE => Ok(true),
            wire::FALSE => Ok(false),
            _ => self.expect(field, wire::TRUE).map(|()| false),
        }
    }

    pub fn string(&mut self, field: Field) -> Result<String> {
        self.expect(field, wire::BINARY)?;
        self.string_value()
    }

    pub fn binary(&mut self, field: Field) -> Result<&'a [u8]> {
        self.expect(field, wire::BINARY)?;
        self.binary_value()
    }

    pub fn structure_field<T>(
        &mut self,
        field: Field,
        parse: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        self.expect(field, wire::STRUCT)?;
        parse(self)
    }

    /// A list whose elements have type `element`.
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
            if count > 0 && found != element {
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
}

const END: &str = "the end of the bytes";

/// The ids of the fields met so far.
#[derive(Default)]
struct Seen {
    low: u64,
    others: HashSet<i16>,
}

impl Seen {
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
