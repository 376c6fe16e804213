//! Bytes to values and back.

#![deny(missing_docs)]
#![cfg_attr(
    test,
    allow(
        clippy::arithmetic_side_effects,
        clippy::cast_possible_truncation,
        reason = "tests compute on numbers they chose themselves"
    )
)]

pub mod bits;
pub mod bitshuffle;
pub mod checksum;
pub mod codec;
pub mod dictionary;
mod error;
pub mod frame_of_reference;
pub mod group_varint;
pub mod plain;
pub mod prefix;
pub mod rle;
pub mod utf8;
pub mod varint;
pub mod zigzag;

pub use error::{DecodeError, Result};

#[cfg(test)]
fn test_config() -> proptest::test_runner::Config {
    // An interpreter such as miri is a thousand times slower and has no file to keep failures in.
    let cases = if cfg!(miri) { 4 } else { 256 };
    proptest::test_runner::Config { cases, failure_persistence: None, ..Default::default() }
}
