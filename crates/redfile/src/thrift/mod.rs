//! The Thrift compact protocol, bare structs.
//!
//! ```text
//! struct   field field … 00
//! field    one byte `delta << 4 | type`, the id being that of the field before plus delta; or `type`, then the id
//! numbers  zig-zag varints, never longer than needed
//! binary   varint length, bytes
//! list     one byte `n << 4 | type`, or `f0 | type` and n as varint; then the elements
//! ```
//!
//! Written here and not by a library, because this format asks for what they do not do: a varint that is longer than needed is
//! corrupt, so is a field that comes twice, and a checksum over the bytes of a struct before its last field needs to know
//! where that field begins.

mod reader;
mod writer;

pub(crate) use reader::{Field, Reader};
pub(crate) use writer::{Writer, put_binary};

/// Types of fields and elements on the wire.
pub(crate) mod wire {
    pub const TRUE: u8 = 1;
    pub const FALSE: u8 = 2;
    pub const I8: u8 = 3;
    pub const I16: u8 = 4;
    pub const I32: u8 = 5;
    pub const I64: u8 = 6;
    pub const DOUBLE: u8 = 7;
    pub const BINARY: u8 = 8;
    pub const LIST: u8 = 9;
    pub const SET: u8 = 10;
    pub const MAP: u8 = 11;
    pub const STRUCT: u8 = 12;
}
