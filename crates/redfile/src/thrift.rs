//! The Thrift compact protocol as this format has it: one way of writing only, and structs that end with a checksum.

use pilaster_encoding::checksum::crc32;
pub(crate) use pilaster_encoding::thrift::{Field, Reader, Writer, put_binary, wire};
use pilaster_encoding::{DecodeError, Result};

/// Text of its own in a list.
pub(crate) fn string_value(reader: &mut Reader<'_>) -> Result<String> {
    reader.text_value().map(str::to_string)
}

/// The text of a field.
pub(crate) fn string(reader: &mut Reader<'_>, field: Field) -> Result<String> {
    reader.text(field).map(str::to_string)
}

/// Reads a struct whose last field may be `crc_id`, the checksum of the bytes before that field; says whether it is there.
pub(crate) fn checked_structure<'a>(
    reader: &mut Reader<'a>,
    crc_id: i16,
    on_field: impl FnMut(&mut Reader<'a>, Field) -> Result<bool>,
) -> Result<bool> {
    let start = reader.position();
    let Some(field) = reader.structure_until(Some(crc_id), on_field)? else { return Ok(false) };
    let stored = reader.i32(field)?.cast_unsigned();
    let computed = crc32(reader.bytes_between(start, field.at));
    if stored != computed {
        return Err(DecodeError::new(
            start,
            format!("CRC-32 {stored:08x}, as the struct says"),
            format!("{computed:08x}"),
        ));
    }
    reader.end()?;
    Ok(true)
}

/// Ends a struct with the checksum of everything before it. The header is short where the id allows.
pub(crate) fn finish_with_crc(mut writer: Writer<'_>, id: i16) {
    let crc = crc32(writer.written()).cast_signed();
    writer.i32(id, crc);
    writer.finish();
}

/// As [`finish_with_crc`], always with the long header.
pub(crate) fn finish_with_long_crc(mut writer: Writer<'_>, id: i16) {
    let crc = crc32(writer.written()).cast_signed();
    writer.i32_with_long_header(id, crc);
    writer.finish();
}
