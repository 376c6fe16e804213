//! Block codecs: a whole block in, a whole block out, the sizes known from outside.
//!
//! | codec | bytes | feature |
//! | --- | --- | --- |
//! | [`Codec::Lz4`] | raw LZ4 block: no frame, no size | always there |
//! | [`Codec::Snappy`] | raw Snappy: no framing; begins with its own uncompressed length | `snappy` |
//! | [`Codec::Zlib`] | zlib stream: two header bytes, Adler-32 at the end; written with level 6 | `zlib` |
//! | [`Codec::Gzip`] | gzip (RFC 1952): one member is written, several are read; written with level 5 | `zlib` |
//! | [`Codec::Lzo`] | raw LZO1X stream with its end mark `11 00 00`: no frame, no size | `lzo` |
//! | [`Codec::Lz4Frame`] | one LZ4 frame: header, blocks, end mark | `lz4-frame` |
//! | [`Codec::Zstd`] | Zstandard frames; written as one with level 3, content size and checksum | `zstd` |
//!
//! [`Codec::decompress_sized`] is for formats that leave the length to the codec, [`shared`] for blocks that need bytes which stand
//! elsewhere, [`deflate`] for what is inside of zlib and gzip, without their head and end.

#[cfg(feature = "zlib")]
pub mod deflate;
mod extent;
#[cfg(feature = "zlib")]
mod gzip;
pub(crate) mod lz4;
#[cfg(feature = "lz4-frame")]
mod lz4_frame;
#[cfg(feature = "lzo")]
mod lzo;
pub mod shared;
#[cfg(feature = "snappy")]
mod snappy;
#[cfg(feature = "zlib")]
mod zlib;
#[cfg(feature = "zstd")]
mod zstd;

use crate::{DecodeError, Result};
use std::fmt;
use std::str::FromStr;

/// A way to compress a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Codec {
    /// Raw LZ4 block.
    Lz4,
    /// Raw Snappy.
    Snappy,
    /// zlib stream.
    Zlib,
    /// gzip file format.
    Gzip,
    /// Raw LZO1X.
    Lzo,
    /// LZ4 frame.
    Lz4Frame,
    /// Zstandard frame.
    Zstd,
}

impl Codec {
    /// Every codec, whether its feature is on or not.
    pub const ALL: [Self; 7] =
        [Self::Lz4, Self::Snappy, Self::Zlib, Self::Gzip, Self::Lzo, Self::Lz4Frame, Self::Zstd];

    /// Its name in lower case.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Lz4 => "lz4",
            Self::Snappy => "snappy",
            Self::Zlib => "zlib",
            Self::Gzip => "gzip",
            Self::Lzo => "lzo",
            Self::Lz4Frame => "lz4-frame",
            Self::Zstd => "zstd",
        }
    }

    /// Appends the compressed form of `src`.
    ///
    /// # Errors
    /// If the codec was left out of the build or `src` is larger than the codec allows.
    pub fn compress(self, src: &[u8], out: &mut Vec<u8>) -> Result<()> {
        match self {
            Self::Lz4 => lz4::compress(src, out),
            Self::Snappy => snappy::compress(src, out),
            Self::Zlib => zlib::compress(src, out),
            Self::Gzip => gzip::compress(src, out),
            Self::Lzo => lzo::compress(src, out),
            Self::Lz4Frame => lz4_frame::compress(src, out),
            Self::Zstd => zstd::compress(src, out),
        }
    }

    /// Decompresses all of `src` into exactly `dst`.
    ///
    /// # Errors
    /// If `src` is malformed, does not give exactly `dst.len()` bytes, or goes on after them; or if the codec was left
    /// out of the build. What `dst` then holds is not specified.
    ///
    /// ```
    /// use pilaster_encoding::codec::Codec;
    ///
    /// let mut packed = Vec::new();
    /// Codec::Lz4.compress(b"repeat repeat repeat repeat", &mut packed)?;
    /// let mut text = [0; 27];
    /// Codec::Lz4.decompress(&packed, &mut text)?;
    /// assert_eq!(&text, b"repeat repeat repeat repeat");
    /// # Ok::<(), pilaster_encoding::DecodeError>(())
    /// ```
    pub fn decompress(self, src: &[u8], dst: &mut [u8]) -> Result<()> {
        match self {
            Self::Lz4 => lz4::decompress(src, dst),
            Self::Snappy => snappy::decompress(src, dst),
            Self::Zlib => zlib::decompress(src, dst),
            Self::Gzip => gzip::decompress(src, dst),
            Self::Lzo => lzo::decompress(src, dst),
            Self::Lz4Frame => lz4_frame::decompress(src, dst),
            Self::Zstd => zstd::decompress(src, dst),
        }
    }

    /// Decompresses all of `src`, whose length is known to the codec alone: Snappy, gzip and Zstandard say it. No more than
    /// `max_len` bytes are reserved.
    ///
    /// # Errors
    /// As [`Codec::decompress`]; if there are more than `max_len` bytes; or if the codec does not store a length.
    pub fn decompress_sized(self, src: &[u8], max_len: usize) -> Result<Vec<u8>> {
        let mut out = vec![0; self.content_length(src, max_len)?];
        self.decompress(src, &mut out)?;
        Ok(out)
    }

    /// How many bytes at the start of `src` are a block of `content` bytes, whatever follows them: for LZ4, Snappy and zlib, whose
    /// bytes tell. The block may still be damaged inside.
    ///
    /// # Errors
    /// If no such block begins there, or if the codec's blocks do not tell where they end.
    ///
    /// ```
    /// use pilaster_encoding::codec::Codec;
    ///
    /// let mut bytes = Vec::new();
    /// Codec::Lz4.compress(b"repeat repeat repeat repeat", &mut bytes)?;
    /// let length = bytes.len();
    /// bytes.extend(b"something else");
    /// assert_eq!(Codec::Lz4.stored_length(&bytes, 27)?, length);
    /// # Ok::<(), pilaster_encoding::DecodeError>(())
    /// ```
    pub fn stored_length(self, src: &[u8], content: usize) -> Result<usize> {
        match self {
            Self::Lz4 => extent::lz4(src, content),
            #[cfg(feature = "snappy")]
            Self::Snappy => extent::snappy(src, content),
            #[cfg(feature = "zlib")]
            Self::Zlib => zlib::stored_length(src, content),
            _ => Err(DecodeError::new(0, "a codec whose blocks tell where they end", self.name())),
        }
    }

    /// The length of what `src` decompresses to, as the codec says it; no more than `max_len`.
    ///
    /// # Errors
    /// If it is longer, or if the codec does not store a length.
    pub fn content_length(self, src: &[u8], max_len: usize) -> Result<usize> {
        let promised = match self {
            Self::Lz4 | Self::Lz4Frame | Self::Lzo | Self::Zlib => {
                return Err(DecodeError::new(0, "a codec that says how long its content is", self.name()));
            }
            Self::Snappy => snappy::content_length(src)?,
            // The last four bytes are the length of the last member, which is all a writer makes.
            Self::Gzip => u64::from(src.last_chunk().map_or(0, |chunk| u32::from_le_bytes(*chunk))),
            Self::Zstd => zstd::content_length(src)?,
        };
        usize::try_from(promised)
            .ok()
            .filter(|length| *length <= max_len)
            .ok_or_else(|| wrong_length(self, max_len, format_args!("{promised} bytes")))
    }
}

impl fmt::Display for Codec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Codec {
    type Err = DecodeError;

    fn from_str(name: &str) -> Result<Self> {
        let same = |codec: &Self| codec.name().eq_ignore_ascii_case(name);
        Self::ALL.into_iter().find(same).ok_or_else(|| {
            let names = "lz4, snappy, zlib, gzip, lzo, lz4-frame or zstd";
            DecodeError::new(0, names, format!("{name:?}"))
        })
    }
}

fn wrong_length(codec: Codec, expected: usize, found: impl fmt::Display) -> DecodeError {
    DecodeError::new(0, format!("{codec} data of {expected} bytes"), format!("{found}"))
}

/// Stands in for codecs that were left out of the build.
macro_rules! left_out {
    ($($feature:literal $name:ident),*) => {$(
        #[cfg(not(feature = $feature))]
        mod $name {
            use crate::{DecodeError, Result};

            fn missing() -> DecodeError {
                let expected = concat!("a build with the feature `", $feature, "`");
                DecodeError::new(0, expected, concat!("a ", stringify!($name), " block"))
            }

            pub(super) fn compress(_: &[u8], _: &mut Vec<u8>) -> Result<()> {
                Err(missing())
            }

            pub(super) fn decompress(_: &[u8], _: &mut [u8]) -> Result<()> {
                Err(missing())
            }

            #[allow(dead_code, reason = "not every codec stores a length")]
            pub(super) fn content_length(_: &[u8]) -> Result<u64> {
                Err(missing())
            }
        }
    )*};
}
left_out!("snappy" snappy, "zlib" zlib, "zlib" gzip, "lzo" lzo, "lz4-frame" lz4_frame, "zstd" zstd);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn available() -> impl Iterator<Item = Codec> {
        Codec::ALL.into_iter().filter(|codec| match codec {
            Codec::Lz4 => true,
            Codec::Snappy => cfg!(feature = "snappy"),
            Codec::Zlib | Codec::Gzip => cfg!(feature = "zlib"),
            Codec::Lzo => cfg!(feature = "lzo"),
            Codec::Lz4Frame => cfg!(feature = "lz4-frame"),
            Codec::Zstd => cfg!(feature = "zstd"),
        })
    }

    #[test]
    fn names_are_read_back() {
        for codec in Codec::ALL {
            assert_eq!(codec.to_string().parse(), Ok(codec));
            assert_eq!(codec.name().to_uppercase().parse(), Ok(codec));
        }
        assert!("brotli".parse::<Codec>().is_err());
    }

    #[test]
    fn reads_the_lz4_block_of_the_worked_example() -> Result<()> {
        // The `sdict` column of the tiny table: nine codewords, bit-shuffled and padded to sixteen.
        let mut out = [0; 16];
        let block = [0x34, 0x4a, 0x01, 0x00, 0x01, 0x00, 0x50, 0, 0, 0, 0, 0];
        Codec::Lz4.decompress(&block, &mut out)?;
        assert_eq!(out[..2], [0x4a, 0x01]);
        assert_eq!(out[2..], [0; 14]);
        Ok(())
    }

    #[test]
    fn nothing_round_trips_too() {
        for codec in available() {
            let mut packed = Vec::new();
            codec.compress(&[], &mut packed).unwrap();
            codec.decompress(&packed, &mut []).unwrap();
            assert!(codec.decompress(&packed, &mut [0]).is_err());
            assert!(codec.decompress(&[], &mut [0]).is_err());
        }
    }

    #[test]
    fn features_left_out_are_named() {
        for codec in Codec::ALL.into_iter().filter(|codec| !available().any(|other| other == *codec)) {
            let error = codec.decompress(&[0], &mut [0]).unwrap_err();
            assert!(error.to_string().contains(codec.name()), "{error}");
        }
    }

    proptest! {
        #![proptest_config(crate::test_config())]
        #[test]
        fn round_trips(
            bytes in prop_oneof![prop::collection::vec(any::<u8>(), 0..3000), prop::collection::vec(0u8..2, 0..3000)],
            cut in any::<prop::sample::Index>(),
        ) {
            for codec in available() {
                let mut packed = b"before".to_vec();
                codec.compress(&bytes, &mut packed).unwrap();
                prop_assert_eq!(&packed[..6], b"before");
                let packed = &packed[6..];
                let mut again = vec![0; bytes.len()];
                codec.decompress(packed, &mut again).unwrap();
                prop_assert_eq!(&again, &bytes);
                if !matches!(codec, Codec::Lz4 | Codec::Lz4Frame | Codec::Lzo | Codec::Zlib) {
                    prop_assert_eq!(&codec.decompress_sized(packed, bytes.len()).unwrap(), &bytes);
                    prop_assert_eq!(codec.content_length(packed, usize::MAX).unwrap(), bytes.len());
                    prop_assert!(bytes.is_empty() || codec.decompress_sized(packed, bytes.len() - 1).is_err());
                }
                // Another length, a cut and an addition are all refused.
                prop_assert!(codec.decompress(packed, &mut vec![0; bytes.len() + 1]).is_err());
                if !bytes.is_empty() {
                    prop_assert!(codec.decompress(packed, &mut vec![0; bytes.len() - 1]).is_err());
                }
                prop_assert!(codec.decompress(&packed[..cut.index(packed.len())], &mut again).is_err());
                prop_assert!(codec.decompress(&[packed, &[0]].concat(), &mut again).is_err());
                if matches!(codec, Codec::Lz4 | Codec::Snappy | Codec::Zlib) {
                    let length = |bytes: &[u8], content| codec.stored_length(bytes, content);
                    let followed = [packed, &bytes].concat();
                    prop_assert_eq!(length(&followed, bytes.len()), Ok(packed.len()));
                    prop_assert!(length(&packed[..cut.index(packed.len())], bytes.len()).is_err());
                    prop_assert!(bytes.is_empty() || length(&followed, bytes.len() - 1).is_err());
                }
            }
        }

        #[test]
        fn never_panics_on_any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..200), len in 0usize..2000, flip in any::<prop::sample::Index>()) {
            for codec in available() {
                let _ = codec.decompress(&bytes, &mut vec![0; len]);
                let mut packed = Vec::new();
                codec.compress(&bytes, &mut packed).unwrap();
                let at = flip.index(packed.len());
                packed[at] ^= bytes.first().copied().unwrap_or(1);
                let _ = codec.decompress(&packed, &mut vec![0; bytes.len()]);
                let _ = codec.decompress_sized(&packed, 10_000);
                let _ = codec.stored_length(&packed, bytes.len());
                prop_assert!(codec.stored_length(&bytes, len).map_or(true, |stored| stored <= bytes.len()));
            }
        }
    }
}
