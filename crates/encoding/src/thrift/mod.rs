//! The Thrift compact protocol: bare structs, read and written field by field.
//!
//! ```text
//! struct   field field … 00
//! field    one byte `delta << 4 | type`, the id being that of the field before plus delta; or `type`, then the id
//! numbers  zig-zag varints; a double is 8 bytes, little-endian
//! booleans are the type of their field; in a list a byte of their own, 1 for true
//! binary   varint length, bytes
//! list     one byte `n << 4 | type`, or `f0 | type` and n as varint; then the elements
//! map      n as varint; if not 0 one byte `key type << 4 | value type`, then the pairs
//! ```
//!
//! Formats describe their structs by hand: [`Reader::structure`] hands over each field, and what nobody takes is skipped.
//! That keeps every field optional, as it is on the wire, and copies nothing. [`Writer`] is its twin.
//!
//! ```
//! use pilaster_encoding::thrift::Reader;
//!
//! // 1: i32 = 3, 2: string = "ab", 9: bool = true
//! let bytes = [0x15, 0x06, 0x18, 0x02, b'a', b'b', 0x71, 0x00];
//! let (mut version, mut name) = (0, "");
//! let mut reader = Reader::new(&bytes);
//! reader.structure(|reader, field| {
//!     match field.id {
//!         1 => version = reader.i32(field)?,
//!         2 => name = reader.text(field)?,
//!         _ => return Ok(false),
//!     }
//!     Ok(true)
//! })?;
//! assert_eq!((version, name, reader.position()), (3, "ab", 8));
//! # Ok::<(), pilaster_encoding::DecodeError>(())
//! ```

mod reader;
mod writer;

pub use reader::{Field, Reader};
pub use writer::{Writer, put_binary, put_number};

/// Types of fields and elements on the wire.
pub mod wire {
    /// A field that is true; the type of booleans in lists.
    pub const TRUE: u8 = 1;
    /// A field that is false.
    pub const FALSE: u8 = 2;
    /// One byte.
    pub const I8: u8 = 3;
    /// A varint of at most 16 bits.
    pub const I16: u8 = 4;
    /// A varint of at most 32 bits.
    pub const I32: u8 = 5;
    /// A varint of at most 64 bits.
    pub const I64: u8 = 6;
    /// Eight bytes.
    pub const DOUBLE: u8 = 7;
    /// Bytes or text.
    pub const BINARY: u8 = 8;
    /// Elements of one type.
    pub const LIST: u8 = 9;
    /// As a list.
    pub const SET: u8 = 10;
    /// Pairs of keys and values.
    pub const MAP: u8 = 11;
    /// Fields up to a zero byte.
    pub const STRUCT: u8 = 12;
}
