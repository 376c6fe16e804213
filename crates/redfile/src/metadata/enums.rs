//! The enumerations of the format. What a later version may add is kept as a number, so that it can be named.

use std::fmt;

use pilaster_encoding::{DecodeError, Result};

macro_rules! open_enum {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $value:literal $text:literal),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $($(#[$variant_doc])* $variant,)*
            /// A number this version has no name for.
            Unknown(i32),
        }

        impl $name {
            /// The value of this number; a negative one is corrupt.
            pub(crate) fn from_number(number: i32) -> Result<Self> {
                match number {
                    $($value => Ok(Self::$variant),)*
                    0.. => Ok(Self::Unknown(number)),
                    _ => Err(DecodeError::new(0, concat!("a ", stringify!($name), " of 0 or more"), number.to_string())),
                }
            }

            /// Its number in files.
            pub const fn number(self) -> i32 {
                match self {
                    $(Self::$variant => $value,)*
                    Self::Unknown(number) => number,
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    $(Self::$variant => f.write_str($text),)*
                    Self::Unknown(number) => write!(f, "{} {number}", stringify!($name)),
                }
            }
        }
    };
}

open_enum! {
    /// How the values of a leaf are stored.
    PhysicalType {
        /// One bit.
        Boolean = 0 "BOOLEAN",
        /// 32 bits, two's complement.
        Int32 = 1 "INT32",
        /// 64 bits, two's complement.
        Int64 = 2 "INT64",
        /// 96 bits, two's complement: a number, not a timestamp.
        Int96 = 3 "INT96",
        /// IEEE 754, 32 bits.
        Float = 4 "FLOAT",
        /// IEEE 754, 64 bits.
        Double = 5 "DOUBLE",
        /// Bytes of any length.
        ByteArray = 6 "BYTE_ARRAY",
    }
}

open_enum! {
    /// The first, short list of logical types.
    ConvertedType {
        /// Text.
        Utf8 = 0 "UTF8",
        /// A map.
        Map = 1 "MAP",
        /// The pairs of a map.
        MapKeyValue = 2 "MAP_KEY_VALUE",
        /// A list.
        List = 3 "LIST",
    }
}

open_enum! {
    /// How the values of a page are encoded.
    Encoding {
        /// Back to back.
        Plain = 0 "PLAIN",
        /// Groups behind their lengths.
        GroupVarInt = 1 "GROUP_VAR_INT",
    }
}

open_enum! {
    /// How the body of a page is compressed.
    Compression {
        /// Not at all.
        Uncompressed = 0 "UNCOMPRESSED",
        /// Raw Snappy.
        Snappy = 1 "SNAPPY",
        /// gzip.
        Gzip = 2 "GZIP",
        /// Raw LZO1X.
        Lzo = 3 "LZO",
    }
}

open_enum! {
    /// What a page holds.
    PageType {
        /// Levels and values.
        Data = 0 "DATA_PAGE",
        /// Where the data pages are and what is in them.
        Index = 1 "INDEX_PAGE",
    }
}

/// How often a field occurs in its group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repetition {
    /// Once.
    Required,
    /// Once or not at all.
    Optional,
    /// Any number of times.
    Repeated,
}

impl Repetition {
    pub(crate) fn from_number(number: i32) -> Result<Self> {
        match number {
            0 => Ok(Self::Required),
            1 => Ok(Self::Optional),
            2 => Ok(Self::Repeated),
            other => Err(DecodeError::new(0, "a repetition of 0, 1 or 2", other.to_string())),
        }
    }

    /// Its number in files.
    pub const fn number(self) -> i32 {
        match self {
            Self::Required => 0,
            Self::Optional => 1,
            Self::Repeated => 2,
        }
    }
}

impl fmt::Display for Repetition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Required => "REQUIRED",
            Self::Optional => "OPTIONAL",
            Self::Repeated => "REPEATED",
        })
    }
}

impl Compression {
    /// The compressor, where there is something to compress and it is known.
    pub(crate) fn codec(self) -> Option<pilaster_encoding::codec::Codec> {
        use pilaster_encoding::codec::Codec;
        match self {
            Self::Uncompressed | Self::Unknown(_) => None,
            Self::Snappy => Some(Codec::Snappy),
            Self::Gzip => Some(Codec::Gzip),
            Self::Lzo => Some(Codec::Lzo),
        }
    }

    /// Every codec of the format.
    pub const ALL: [Self; 4] = [Self::Uncompressed, Self::Snappy, Self::Gzip, Self::Lzo];
}
