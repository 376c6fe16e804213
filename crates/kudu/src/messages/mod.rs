//! The protobuf messages of Kudu's metadata and log.
//!
//! Written by hand: only the fields that mean something to a reader of dead disks are named, the others are skipped by the
//! wire format. Every field is optional here, also the required ones, because prost reads a missing required field as zero
//! and the format says that is corruption; [`required`] turns absence into an error.

mod block;
mod consensus;
mod log;
mod schema;
mod superblock;

pub(crate) use block::*;
pub(crate) use consensus::*;
pub(crate) use log::*;
pub(crate) use schema::*;
pub(crate) use superblock::*;

use pilaster_core::{Error, Result};

/// A required field, or the error that names it.
pub(crate) fn required<T>(field: Option<T>, name: &str) -> Result<T> {
    field.ok_or_else(|| Error::corrupt(format!("the required field {name}"), "a message without it"))
}

/// Parses a message.
pub(crate) fn parse<M: prost::Message + Default>(bytes: &[u8], name: &str) -> Result<M> {
    M::decode(bytes).map_err(|error| Error::corrupt(format!("a {name} message"), error))
}
