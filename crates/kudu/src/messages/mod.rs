//! The protobuf messages of Kudu's metadata and log.
//!
//! Written by hand: only the fields that mean something to a reader of dead disks are named, the others are skipped by the
//! wire format. Every field is optional here, also the required ones, because prost reads a missing required field as zero
//! and the format says that is corruption; [`required`] turns absence into an error.

mod block;
mod catalog;
mod consensus;
mod log;
mod schema;
mod superblock;

pub(crate) use block::*;
pub(crate) use catalog::*;
pub(crate) use consensus::*;
pub(crate) use log::*;
pub(crate) use schema::*;
pub(crate) use superblock::*;

pub(crate) use pilaster_core::protobuf::{parse, required};
