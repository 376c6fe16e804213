//! What a file says of itself: the Thrift structures of the format, typed.

mod column;
mod enums;
mod file;
mod page;
mod schema_element;

use pilaster_encoding::{DecodeError, Result};

pub use column::{ColumnChunk, ColumnMetadata, RowGroup, Statistics};
pub use enums::{Compression, ConvertedType, Encoding, PageType, PhysicalType, Repetition};
pub(crate) use file::{FOOTER_PART, check_head};
pub use file::{FileMetadata, MAGIC, MARKER_BYTES, VERSION, checksums};
pub(crate) use page::{
    DataPageHeader, IndexPageHeader, PageHeader, PageIndexEntry, parse_page_index, write_page_index,
};
pub use schema_element::{KeyValue, LogicalType, SchemaElement, kind};

use crate::thrift::{Field, Reader, Writer, string, wire};

fn missing(at: usize, name: &str) -> DecodeError {
    DecodeError::new(at, format!("the field {name}"), "none")
}

fn parse_key_values(reader: &mut Reader<'_>, field: Field) -> Result<Vec<KeyValue>> {
    reader.list(field, wire::STRUCT, |reader| {
        let start = reader.position();
        let (mut key, mut value) = (None, None);
        reader.structure(|reader, field| {
            match field.id {
                1 => key = Some(string(reader, field)?),
                2 => value = Some(string(reader, field)?),
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok((key.ok_or_else(|| missing(start, "KeyValue.key"))?, value))
    })
}

fn put_key_values(writer: &mut Writer<'_>, id: i16, pairs: &[KeyValue]) {
    writer.list(id, wire::STRUCT, pairs, |(key, value), out| {
        let mut pair = Writer::new(out);
        pair.binary(1, key.as_bytes());
        if let Some(value) = value {
            pair.binary(2, value.as_bytes());
        }
        pair.finish();
    });
}
