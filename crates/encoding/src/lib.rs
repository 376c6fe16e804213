//! Bytes to values and back: the encodings, block codecs and checksums that columnar file formats are made of.
//!
//! The crate knows no file; it takes slices and gives values, and the other way. Formats add their headers and counts, but for those
//! that belong to an encoding wherever it is used ([`bitshuffle::ShuffledBlock`]). Of Arrow it knows one layout, string views, with the
//! feature `arrow`. Every decoder takes bytes from anywhere: whatever they hold, it returns values or a [`DecodeError`] with the
//! position, and allocates no more than the counts its caller passed in allow.
//!
//! | module | bytes |
//! | --- | --- |
//! | [`plain`] | fixed-width little-endian values |
//! | [`big24`] | big-endian integers of three bytes |
//! | [`bits`] | booleans and integers of 1 to 64 bits, lowest bit first |
//! | [`varint`], [`zigzag`] | LEB128 integers, signed integers as unsigned ones |
//! | [`group_varint`], [`frame_of_reference`] | four `u32` behind a selector byte (or five `u64`), the same as distances from a minimum |
//! | [`packed_frames`] | integers of any width as distances in frames, highest bit first |
//! | [`packed_date`] | year, month and day in bit fields |
//! | [`rle`] | the hybrid of repeated and bit-packed runs, null bitmaps |
//! | [`bitshuffle`] | transposed bits in LZ4 sub-blocks |
//! | [`prefixed`] | byte strings behind their length |
//! | [`prefix`] | byte strings that share their beginning with the one before |
//! | [`dictionary`] | distinct words and their codes |
//! | [`levels`] | numbers below 128 of a fixed width in bits, a byte each in memory |
//! | [`spread`] | dense values put where a bitmap says |
//! | [`thrift`] | structs in the Thrift compact protocol |
//! | [`codec`] | LZ4, Snappy, zlib, gzip, LZO and Zstandard blocks |
//! | [`checksum`] | CRC-32C, CRC-32, xxHash |
//! | [`utf8`] | text checks over whole buffers |
//! | `views` | Arrow string views over strings behind offsets or lengths, with the feature `arrow` |
//!
//! Hot loops have kernels for the vectors of x86-64 (SSSE3, AVX2, AVX-512 with GFNI) and 64-bit Arm (NEON), chosen once at
//! run time, beside portable code that gives the same bytes.
//!
//! # Example
//!
//! The null bitmap and the values of a nullable column with ten rows, as Kudu stores them:
//!
//! ```
//! use pilaster_encoding::{plain, rle};
//!
//! let bitmap = [0x05, 0xf6, 0x01];
//! let values = [1, 0, 2, 0, 4, 0, 5, 0, 6, 0, 7, 0, 8, 0];
//!
//! let mut validity = Vec::new();
//! let present = rle::decode_bitmap(&bitmap, 10, &mut validity)?;
//! let mut numbers = vec![0i16; present];
//! plain::decode_into(&values, &mut numbers)?;
//! assert_eq!((validity.as_slice(), numbers.as_slice()), (&[0xf6, 0x01][..], &[1, 2, 4, 5, 6, 7, 8][..]));
//!
//! let mut again = Vec::new();
//! rle::encode_bitmap(&validity, 0, 10, &mut again);
//! assert_eq!(again, bitmap);
//! # Ok::<(), pilaster_encoding::DecodeError>(())
//! ```
//!
//! # Features
//!
//! | feature | default | adds |
//! | --- | --- | --- |
//! | `snappy` | yes | the Snappy block codec |
//! | `zlib` | yes | the zlib and gzip block codecs |
//! | `lzo` | yes | the LZO block codec |
//! | `lz4-frame` | yes | the LZ4 frame codec |
//! | `zstd` | yes | the Zstandard codec |
//! | `xxhash` | no | the xxHash checksums |
//! | `arrow` | no | Arrow view arrays over decoded strings |
//!
//! Without its feature a codec can still be named; using it gives an error that names the feature.

#![deny(missing_docs)]
#![cfg_attr(
    test,
    allow(
        clippy::arithmetic_side_effects,
        clippy::cast_possible_truncation,
        reason = "tests compute on numbers they chose themselves"
    )
)]

pub mod big24;
pub mod bits;
pub mod bitshuffle;
pub mod checksum;
pub mod codec;
pub mod dictionary;
mod error;
pub mod frame_of_reference;
pub mod group_varint;
pub mod levels;
pub mod packed_date;
pub mod packed_frames;
pub mod plain;
pub mod prefix;
pub mod prefixed;
pub mod rle;
pub mod spread;
pub mod thrift;
pub mod utf8;
pub mod varint;
#[cfg(feature = "arrow")]
pub mod views;
pub mod zigzag;

pub use error::{DecodeError, Result};

/// As many cases as `PROPTEST_CASES` says, 256 without it.
#[cfg(test)]
fn test_config() -> proptest::test_runner::Config {
    let config = proptest::test_runner::Config { failure_persistence: None, ..Default::default() };
    // An interpreter is a thousand times slower.
    if cfg!(miri) { proptest::test_runner::Config { cases: 4, ..config } } else { config }
}
