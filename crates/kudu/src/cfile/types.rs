//! The numbers a footer uses for types, encodings and codecs, and which of them go together.

use std::fmt;
use std::str::FromStr;

use pilaster_core::{Error, Result};
use pilaster_encoding::codec::Codec;

macro_rules! footer_enum {
    ($(#[$doc:meta])* $name:ident, $what:literal { $($(#[$variant_doc:meta])* $variant:ident = $number:literal $text:literal),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum $name {
            $($(#[$variant_doc])* $variant = $number),*
        }

        impl $name {
            /// All there are, by number.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// The number in the file.
            pub fn number(self) -> i32 {
                self as i32
            }

            /// Kudu's own name for it.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $text),*
                }
            }

            pub(crate) fn from_number(number: i32) -> Result<Self> {
                match number {
                    $($number => Ok(Self::$variant),)*
                    other => Err(Error::unsupported(format!(concat!($what, " number {}"), other))),
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.name())
            }
        }

        impl FromStr for $name {
            type Err = Error;

            /// Takes Kudu's name, in any case.
            fn from_str(text: &str) -> Result<Self> {
                Self::ALL.iter().copied().find(|one| one.name().eq_ignore_ascii_case(text)).ok_or_else(|| {
                    let known: Vec<_> = Self::ALL.iter().map(|one| one.name()).collect();
                    Error::invalid(format!(concat!("no ", $what, " \"{}\"; there are: {}"), text, known.join(", ")))
                })
            }
        }
    };
}

footer_enum! {
    /// What a column holds, as the footer says it.
    KuduType, "data type" {
        /// Unsigned 8 bits.
        UInt8 = 0 "UINT8",
        /// Signed 8 bits.
        Int8 = 1 "INT8",
        /// Unsigned 16 bits.
        UInt16 = 2 "UINT16",
        /// Signed 16 bits.
        Int16 = 3 "INT16",
        /// Unsigned 32 bits.
        UInt32 = 4 "UINT32",
        /// Signed 32 bits.
        Int32 = 5 "INT32",
        /// Unsigned 64 bits.
        UInt64 = 6 "UINT64",
        /// Signed 64 bits.
        Int64 = 7 "INT64",
        /// Text; Kudu does not check that it is UTF-8.
        String = 8 "STRING",
        /// True or false.
        Bool = 9 "BOOL",
        /// IEEE 754, 32 bits.
        Float = 10 "FLOAT",
        /// IEEE 754, 64 bits.
        Double = 11 "DOUBLE",
        /// Any bytes.
        Binary = 12 "BINARY",
        /// Microseconds since 1970, UTC.
        UnixtimeMicros = 13 "UNIXTIME_MICROS",
        /// Signed 128 bits.
        Int128 = 14 "INT128",
        /// Decimal of at most 9 digits, unscaled.
        Decimal32 = 15 "DECIMAL32",
        /// Decimal of at most 18 digits, unscaled.
        Decimal64 = 16 "DECIMAL64",
        /// Decimal of at most 38 digits, unscaled.
        Decimal128 = 17 "DECIMAL128",
        /// Text of bounded length.
        Varchar = 19 "VARCHAR",
        /// Days since 1970.
        Date = 20 "DATE",
    }
}

footer_enum! {
    /// How the values of a block are laid out.
    Encoding, "encoding" {
        /// One value after the other.
        Plain = 1 "PLAIN_ENCODING",
        /// Strings without the prefix they share with the one before.
        Prefix = 2 "PREFIX_ENCODING",
        /// Distances from the smallest value, one to four bytes each: UINT32 of Kudu up to 1.1.
        GroupVarint = 3 "GROUP_VARINT",
        /// Runs and bit-packed stretches.
        Rle = 4 "RLE",
        /// Numbers of entries in a dictionary.
        Dict = 5 "DICT_ENCODING",
        /// Bits transposed, then LZ4.
        BitShuffle = 6 "BIT_SHUFFLE",
    }
}

footer_enum! {
    /// How blocks are compressed.
    Compression, "compression" {
        /// Not at all.
        None = 1 "NO_COMPRESSION",
        /// Snappy, without frames.
        Snappy = 2 "SNAPPY",
        /// LZ4, without frames.
        Lz4 = 3 "LZ4",
        /// zlib.
        Zlib = 4 "ZLIB",
    }
}

impl Compression {
    pub(crate) fn codec(self) -> Option<Codec> {
        match self {
            Self::None => None,
            Self::Snappy => Some(Codec::Snappy),
            Self::Lz4 => Some(Codec::Lz4),
            Self::Zlib => Some(Codec::Zlib),
        }
    }
}

/// What the bytes of a value are, whatever they mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Physical {
    /// Integers or floats of this many bytes.
    Fixed(usize),
    /// Bits.
    Bool,
    /// Bytes of any length.
    Binary,
}

impl KuduType {
    /// What its bytes are.
    pub fn physical(self) -> Physical {
        match self {
            Self::UInt8 | Self::Int8 => Physical::Fixed(1),
            Self::UInt16 | Self::Int16 => Physical::Fixed(2),
            Self::UInt32 | Self::Int32 | Self::Float | Self::Decimal32 | Self::Date => Physical::Fixed(4),
            Self::UInt64 | Self::Int64 | Self::Double | Self::UnixtimeMicros | Self::Decimal64 => {
                Physical::Fixed(8)
            }
            Self::Int128 | Self::Decimal128 => Physical::Fixed(16),
            Self::String | Self::Binary | Self::Varchar => Physical::Binary,
            Self::Bool => Physical::Bool,
        }
    }

    pub(crate) fn is_unsigned(self) -> bool {
        matches!(self, Self::UInt8 | Self::UInt16 | Self::UInt32 | Self::UInt64)
    }

    /// Whether it may be a key column.
    pub fn can_be_key(self) -> bool {
        !matches!(self, Self::Bool | Self::Float | Self::Double)
    }

    /// The encodings its values may have; the first is what Kudu takes by default.
    pub fn encodings(self) -> &'static [Encoding] {
        use Encoding::{BitShuffle, Dict, GroupVarint, Plain, Prefix, Rle};
        match self {
            Self::UInt32 => &[BitShuffle, Plain, Rle, GroupVarint],
            Self::Float | Self::Double | Self::Int128 | Self::Decimal128 => &[BitShuffle, Plain],
            Self::String | Self::Binary | Self::Varchar => &[Dict, Plain, Prefix],
            Self::Bool => &[Rle, Plain],
            _ => &[BitShuffle, Plain, Rle],
        }
    }

    /// What Kudu takes when the table says AUTO_ENCODING.
    pub fn default_encoding(self) -> Encoding {
        match self.physical() {
            Physical::Fixed(_) => Encoding::BitShuffle,
            Physical::Bool => Encoding::Rle,
            Physical::Binary => Encoding::Dict,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_encoding_is_the_first_allowed_one() {
        for &data_type in KuduType::ALL {
            assert_eq!(data_type.encodings().first(), Some(&data_type.default_encoding()), "{data_type}");
        }
    }

    #[test]
    fn names_and_numbers_go_both_ways() {
        for &one in Encoding::ALL {
            assert_eq!(Encoding::from_number(one.number()).unwrap(), one);
            assert_eq!(one.name().to_lowercase().parse::<Encoding>().unwrap(), one);
        }
        assert_eq!(
            KuduType::from_number(18).unwrap_err().to_string(),
            "cannot read this: data type number 18"
        );
    }
}
