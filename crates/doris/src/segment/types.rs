//! Types, encodings and codecs, by the numbers files use for them.

use std::fmt;

use pilaster_core::{Error, Result};
use pilaster_encoding::codec::Codec;

macro_rules! numbered {
    ($(#[$doc:meta])* $name:ident, $what:literal { $($variant:ident = $number:literal $text:literal),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum $name {
            $(#[doc = concat!("`", $text, "`, number ", stringify!($number), ".")] $variant),*
        }

        impl $name {
            /// The one of this number in a file.
            pub(crate) fn from_number(number: i32) -> Result<Self> {
                match number {
                    $($number => Ok(Self::$variant),)*
                    other => Err(Error::unsupported(format!("{} of number {other}", $what))),
                }
            }

            /// Its number in a file.
            pub(crate) fn number(self) -> i32 {
                match self {
                    $(Self::$variant => $number),*
                }
            }

            /// The one of this name.
            pub fn from_name(name: &str) -> Option<Self> {
                [$(Self::$variant),*].into_iter().find(|one| one.name().eq_ignore_ascii_case(name))
            }

            /// Its name in Doris's words.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $text),*
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.name())
            }
        }
    };
}

numbered! {
    /// What the cells of a column are.
    FieldType, "a field type" {
        TinyInt = 1 "TINYINT", UnsignedTinyInt = 2 "UNSIGNED_TINYINT", SmallInt = 3 "SMALLINT",
        UnsignedSmallInt = 4 "UNSIGNED_SMALLINT", Int = 5 "INT", UnsignedInt = 6 "UNSIGNED_INT", BigInt = 7 "BIGINT",
        UnsignedBigInt = 8 "UNSIGNED_BIGINT", LargeInt = 9 "LARGEINT", Float = 10 "FLOAT", Double = 11 "DOUBLE",
        Char = 13 "CHAR", Date = 14 "DATE", DateTime = 15 "DATETIME", Decimal = 16 "DECIMAL", Varchar = 17 "VARCHAR",
        Struct = 18 "STRUCT", Array = 19 "ARRAY", Map = 20 "MAP", Hll = 23 "HLL", Bool = 24 "BOOLEAN",
        Bitmap = 25 "BITMAP", String = 26 "STRING", QuantileState = 27 "QUANTILE_STATE", DateV2 = 28 "DATEV2",
        DateTimeV2 = 29 "DATETIMEV2", Decimal32 = 31 "DECIMAL32", Decimal64 = 32 "DECIMAL64",
        Decimal128 = 33 "DECIMAL128I", Jsonb = 34 "JSONB", Variant = 35 "VARIANT", AggState = 36 "AGG_STATE",
        Decimal256 = 37 "DECIMAL256", Ipv4 = 38 "IPV4", Ipv6 = 39 "IPV6", TimestampTz = 40 "TIMESTAMPTZ",
    }
}

numbered! {
    /// How the values of a page are laid out.
    Encoding, "an encoding" {
        Plain = 2 "PLAIN_ENCODING", Prefix = 3 "PREFIX_ENCODING", Rle = 4 "RLE", Dict = 5 "DICT_ENCODING",
        BitShuffle = 6 "BIT_SHUFFLE", Frames = 7 "FOR_ENCODING", PlainV2 = 8 "PLAIN_ENCODING_V2",
        PlainV3 = 9 "PLAIN_ENCODING_V3",
    }
}

numbered! {
    /// How the bodies of pages are compressed.
    Compression, "a codec" {
        None = 2 "NO_COMPRESSION", Snappy = 3 "SNAPPY", Lz4 = 4 "LZ4", Lz4Frame = 5 "LZ4F", Zlib = 6 "ZLIB",
        Zstd = 7 "ZSTD", Lz4Hc = 8 "LZ4HC",
    }
}

impl Compression {
    /// The codec; `None` if bodies are stored as they are.
    pub(crate) fn codec(self) -> Option<Codec> {
        match self {
            Self::None => None,
            Self::Snappy => Some(Codec::Snappy),
            Self::Lz4 | Self::Lz4Hc => Some(Codec::Lz4),
            Self::Lz4Frame => Some(Codec::Lz4Frame),
            Self::Zlib => Some(Codec::Zlib),
            Self::Zstd => Some(Codec::Zstd),
        }
    }
}

/// What a cell is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Physical {
    /// So many bytes.
    Fixed(usize),
    /// Any number of bytes.
    Bytes,
    /// Other columns.
    Nested,
}

impl FieldType {
    /// The type of this name in a tablet schema, which has two names of its own.
    pub(crate) fn from_schema_name(name: &str) -> Option<Self> {
        match name.to_ascii_uppercase().as_str() {
            "BOOL" => Some(Self::Bool),
            "OBJECT" => Some(Self::Bitmap),
            "DECIMALV2" => Some(Self::Decimal),
            other => Self::from_name(other),
        }
    }

    /// Bytes of a cell, if all have as many.
    pub(crate) fn width(self) -> Option<usize> {
        match self.physical() {
            Physical::Fixed(width) => Some(width),
            _ => None,
        }
    }

    pub(crate) fn physical(self) -> Physical {
        match self {
            Self::TinyInt | Self::UnsignedTinyInt | Self::Bool => Physical::Fixed(1),
            Self::SmallInt | Self::UnsignedSmallInt => Physical::Fixed(2),
            Self::Date => Physical::Fixed(3),
            Self::Int | Self::UnsignedInt | Self::Float | Self::DateV2 | Self::Decimal32 | Self::Ipv4 => {
                Physical::Fixed(4)
            }
            Self::BigInt
            | Self::UnsignedBigInt
            | Self::Double
            | Self::DateTime
            | Self::DateTimeV2
            | Self::TimestampTz
            | Self::Decimal64 => Physical::Fixed(8),
            Self::Decimal => Physical::Fixed(12),
            Self::LargeInt | Self::Decimal128 | Self::Ipv6 => Physical::Fixed(16),
            Self::Decimal256 => Physical::Fixed(32),
            Self::Char
            | Self::Varchar
            | Self::String
            | Self::Jsonb
            | Self::Hll
            | Self::Bitmap
            | Self::QuantileState
            | Self::AggState => Physical::Bytes,
            Self::Struct | Self::Array | Self::Map | Self::Variant => Physical::Nested,
        }
    }
}
