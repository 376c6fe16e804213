//! The elements of the schema.

use pilaster_encoding::{DecodeError, Result};

use super::enums::{ConvertedType, PhysicalType, Repetition};
use super::{missing, parse_key_values, put_key_values};
use crate::thrift::{Reader, Writer, string, wire};

/// A node of the schema, as it stands in the file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SchemaElement {
    /// Physical type; leaves only.
    pub physical_type: Option<PhysicalType>,
    /// How often it occurs; all but the root.
    pub repetition: Option<Repetition>,
    /// Its name.
    pub name: String,
    /// Positions of its children in the list of elements; groups only.
    pub children: Option<Vec<i32>>,
    /// Logical type, first list.
    pub converted_type: Option<ConvertedType>,
    /// Logical type, with parameters.
    pub logical_type: Option<LogicalType>,
    /// A number the application gave it.
    pub field_id: Option<i32>,
    /// What the application says of it; a key need not have a value.
    pub key_values: Option<Vec<KeyValue>>,
}

/// A key with or without a value.
pub type KeyValue = (String, Option<String>);

/// A logical type with its parameters; which of them count depends on the kind.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LogicalType {
    /// Which one; see [`kind`].
    pub kind: i32,
    /// Bits of an integer or a decimal.
    pub bit_width: Option<i32>,
    /// Whether an integer has a sign.
    pub signed: Option<bool>,
    /// Digits of a decimal.
    pub precision: Option<i32>,
    /// Digits after the point.
    pub scale: Option<i32>,
    /// 0 s, 1 ms, 2 µs, 3 ns.
    pub unit: Option<i32>,
    /// Time zone of a timestamp.
    pub timezone: Option<String>,
    /// Bytes of a fixed binary, elements of a fixed list.
    pub byte_width: Option<i32>,
    /// Which variant of the kind.
    pub variant: Option<i32>,
    /// Type ids of a union's children.
    pub type_ids: Option<Vec<i32>>,
    /// Bits of a dictionary's index.
    pub dict_index_width: Option<i32>,
    /// Whether the index has a sign.
    pub dict_index_signed: Option<bool>,
    /// Whether the order of the dictionary means something.
    pub dict_ordered: Option<bool>,
    /// Bits of run ends.
    pub run_end_width: Option<i32>,
    /// For each child of a union whether it may be null.
    pub type_nullable: Option<Vec<i32>>,
}

/// The kinds of logical types.
pub mod kind {
    #![allow(missing_docs, reason = "the names are those of the format's table of Arrow types")]
    pub const NONE: i32 = 0;
    pub const NULL: i32 = 1;
    pub const INT: i32 = 2;
    pub const FLOAT16: i32 = 3;
    pub const STRING: i32 = 4;
    pub const BINARY: i32 = 5;
    pub const FIXED_BINARY: i32 = 6;
    pub const DATE: i32 = 7;
    pub const TIME: i32 = 8;
    pub const TIMESTAMP: i32 = 9;
    pub const DURATION: i32 = 10;
    pub const INTERVAL: i32 = 11;
    pub const DECIMAL: i32 = 12;
    pub const LIST: i32 = 13;
    pub const LIST_ENTRY: i32 = 14;
    pub const MAP: i32 = 15;
    pub const UNION: i32 = 16;
}

impl SchemaElement {
    pub(super) fn parse(reader: &mut Reader<'_>) -> Result<Self> {
        let mut element = Self::default();
        let mut name = None;
        let start = reader.position();
        reader.structure(|reader, field| {
            let at = field.at;
            match field.id {
                1 => {
                    element.physical_type = Some(located(PhysicalType::from_number(reader.i32(field)?), at)?)
                }
                2 => element.repetition = Some(located(Repetition::from_number(reader.i32(field)?), at)?),
                3 => name = Some(string(reader, field)?),
                4 => element.children = Some(reader.list(field, wire::I32, Reader::i32_value)?),
                5 => {
                    element.converted_type =
                        Some(located(ConvertedType::from_number(reader.i32(field)?), at)?)
                }
                6 => element.logical_type = Some(reader.structure_field(field, LogicalType::parse)?),
                7 => element.field_id = Some(reader.i32(field)?),
                8 => element.key_values = Some(parse_key_values(reader, field)?),
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        element.name = name.ok_or_else(|| missing(start, "SchemaElement.name"))?;
        Ok(element)
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let mut writer = Writer::new(out);
        if let Some(physical) = self.physical_type {
            writer.i32(1, physical.number());
        }
        if let Some(repetition) = self.repetition {
            writer.i32(2, repetition.number());
        }
        writer.binary(3, self.name.as_bytes());
        if let Some(children) = &self.children {
            writer.i32_list(4, children);
        }
        if let Some(converted) = self.converted_type {
            writer.i32(5, converted.number());
        }
        if let Some(logical) = &self.logical_type {
            writer.structure(6, |out| logical.write(out));
        }
        if let Some(id) = self.field_id {
            writer.i32(7, id);
        }
        if let Some(pairs) = &self.key_values {
            put_key_values(&mut writer, 8, pairs);
        }
        writer.finish();
    }
}

/// An error of an enumeration, with its place.
pub(super) fn located<T>(result: Result<T>, at: usize) -> Result<T> {
    result.map_err(|error| DecodeError { at, ..error })
}

impl LogicalType {
    fn parse(reader: &mut Reader<'_>) -> Result<Self> {
        let mut logical = Self::default();
        let mut kind = None;
        let start = reader.position();
        reader.structure(|reader, field| {
            match field.id {
                1 => kind = Some(reader.i32(field)?),
                2 => logical.bit_width = Some(reader.i32(field)?),
                3 => logical.signed = Some(reader.bool(field)?),
                4 => logical.precision = Some(reader.i32(field)?),
                5 => logical.scale = Some(reader.i32(field)?),
                6 => logical.unit = Some(reader.i32(field)?),
                7 => logical.timezone = Some(string(reader, field)?),
                8 => logical.byte_width = Some(reader.i32(field)?),
                9 => logical.variant = Some(reader.i32(field)?),
                10 => logical.type_ids = Some(reader.list(field, wire::I32, Reader::i32_value)?),
                11 => logical.dict_index_width = Some(reader.i32(field)?),
                12 => logical.dict_index_signed = Some(reader.bool(field)?),
                13 => logical.dict_ordered = Some(reader.bool(field)?),
                14 => logical.run_end_width = Some(reader.i32(field)?),
                15 => logical.type_nullable = Some(reader.list(field, wire::I32, Reader::i32_value)?),
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        logical.kind = kind.ok_or_else(|| missing(start, "LogicalType.kind"))?;
        if logical.kind < 0 {
            return Err(DecodeError::new(start, "a kind of 0 or more", logical.kind.to_string()));
        }
        Ok(logical)
    }

    fn write(&self, out: &mut Vec<u8>) {
        let mut writer = Writer::new(out);
        writer.i32(1, self.kind);
        let put = |writer: &mut Writer<'_>, id, value: Option<i32>| {
            if let Some(value) = value {
                writer.i32(id, value);
            }
        };
        put(&mut writer, 2, self.bit_width);
        if let Some(signed) = self.signed {
            writer.bool(3, signed);
        }
        put(&mut writer, 4, self.precision);
        put(&mut writer, 5, self.scale);
        put(&mut writer, 6, self.unit);
        if let Some(timezone) = &self.timezone {
            writer.binary(7, timezone.as_bytes());
        }
        put(&mut writer, 8, self.byte_width);
        put(&mut writer, 9, self.variant);
        if let Some(ids) = &self.type_ids {
            writer.i32_list(10, ids);
        }
        put(&mut writer, 11, self.dict_index_width);
        if let Some(signed) = self.dict_index_signed {
            writer.bool(12, signed);
        }
        if let Some(ordered) = self.dict_ordered {
            writer.bool(13, ordered);
        }
        put(&mut writer, 14, self.run_end_width);
        if let Some(nullable) = &self.type_nullable {
            writer.i32_list(15, nullable);
        }
        writer.finish();
    }
}
