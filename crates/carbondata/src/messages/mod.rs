//! The Thrift structs of data and index files.
//!
//! Written by hand over [`pilaster_encoding::thrift`]: what the format requires must be there, everything else may be
//! missing. Field numbers are those of the format.

mod chunk;
mod footer;
mod schema;
mod stream;

pub use chunk::{ChunkHeader, DictionaryChunk, PageHeader};
pub use footer::{BlockIndex, BlockletIndex, BlockletInfo, FileFooter, IndexHeader, MinMax};
pub(crate) use footer::{parse_merged, write_merged};
pub use schema::{ColumnSchema, FileHeader};
pub(crate) use schema::{parse_columns, write_columns};
pub(crate) use stream::{StreamBlocklet, StreamRecord};

use bytes::Bytes;
use pilaster_encoding::DecodeError;
use pilaster_encoding::thrift::{Field, Reader, wire};

pub(crate) type Parsed<T> = Result<T, DecodeError>;

/// What a required field holds.
pub(crate) fn required<T>(value: Option<T>, at: usize, what: &'static str) -> Parsed<T> {
    value.ok_or_else(|| DecodeError::new(at, what, "no such field"))
}

/// Structs inside `bytes`; binary fields share its memory.
pub(crate) struct Message<'a> {
    pub bytes: &'a Bytes,
    pub reader: Reader<'a>,
}

impl<'a> Message<'a> {
    pub fn new(bytes: &'a Bytes) -> Self {
        Self { bytes, reader: Reader::new(bytes) }
    }
}

fn shared(whole: &Bytes, part: &[u8]) -> Bytes {
    // An empty part may lie anywhere, and a slice of memory must lie inside it.
    if part.is_empty() { Bytes::new() } else { whole.slice_ref(part) }
}

fn binaries(whole: &Bytes, reader: &mut Reader<'_>, field: Field) -> Parsed<Vec<Bytes>> {
    reader.list(field, wire::BINARY, |reader| Ok(shared(whole, reader.binary_value()?)))
}

fn i32_list(reader: &mut Reader<'_>, field: Field) -> Parsed<Vec<i32>> {
    reader.list(field, wire::I32, Reader::i32_value)
}
