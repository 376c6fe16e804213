//! Protobuf messages in files: what cannot be parsed and what is missing, as errors of ours.

use prost::Message;

use crate::error::{Error, Result};

/// Parses a message; `name` is what the format calls it.
///
/// # Errors
/// [`crate::ErrorKind::Corrupt`] if the bytes are no such message.
pub fn parse<M: Message + Default>(bytes: &[u8], name: &str) -> Result<M> {
    M::decode(bytes).map_err(|error| Error::corrupt(format!("a {name} message"), error))
}

/// A field that must be there.
///
/// # Errors
/// [`crate::ErrorKind::Corrupt`], with its name, if it is not.
pub fn required<T>(field: Option<T>, name: &str) -> Result<T> {
    field.ok_or_else(|| Error::corrupt(format!("the required field {name}"), "a message without it"))
}
