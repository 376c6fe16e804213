//! The values of a leaf without its nulls, as they come out of pages.

use arrow_array::types::{BinaryViewType, StringViewType};
use arrow_buffer::Buffer;
use arrow_schema::DataType;
use bytes::Bytes;
use pilaster_encoding::views::ViewBuilder;
use pilaster_encoding::{DecodeError, Result, bits, group_varint, prefixed};

use crate::metadata::{Encoding, PhysicalType};

/// Values of one or more pages, back to back.
#[derive(Debug)]
pub(crate) enum Dense {
    Bits {
        bits: Vec<u8>,
        len: usize,
    },
    Words(Vec<u32>),
    Longs(Vec<u64>),
    /// 96-bit numbers, widened.
    Wide(Vec<i128>),
    Strings {
        values: Vec<u8>,
        offsets: Vec<i32>,
    },
    LargeStrings {
        values: Vec<u8>,
        offsets: Vec<i64>,
    },
    TextViews(ViewBuilder<StringViewType>),
    ByteViews(ViewBuilder<BinaryViewType>),
}

impl Dense {
    /// Nothing yet, of a physical type that will become `data_type`; room for `capacity` values.
    pub fn new(physical: PhysicalType, data_type: &DataType, capacity: usize) -> Self {
        match (physical, data_type) {
            (PhysicalType::Boolean | PhysicalType::Unknown(_), _) => {
                Self::Bits { bits: Vec::with_capacity(capacity.div_ceil(8)), len: 0 }
            }
            (PhysicalType::Int32 | PhysicalType::Float, _) => Self::Words(Vec::with_capacity(capacity)),
            (PhysicalType::Int64 | PhysicalType::Double, _) => Self::Longs(Vec::with_capacity(capacity)),
            (PhysicalType::Int96, _) => Self::Wide(Vec::with_capacity(capacity)),
            (PhysicalType::ByteArray, DataType::Utf8View) => {
                Self::TextViews(ViewBuilder::with_capacity(capacity))
            }
            (PhysicalType::ByteArray, DataType::BinaryView) => {
                Self::ByteViews(ViewBuilder::with_capacity(capacity))
            }
            (PhysicalType::ByteArray, DataType::LargeUtf8 | DataType::LargeBinary) => {
                let mut offsets = Vec::with_capacity(capacity.saturating_add(1));
                offsets.push(0);
                Self::LargeStrings { values: Vec::new(), offsets }
            }
            (PhysicalType::ByteArray, _) => {
                let mut offsets = Vec::with_capacity(capacity.saturating_add(1));
                offsets.push(0);
                Self::Strings { values: Vec::new(), offsets }
            }
        }
    }

    /// How many values there are.
    pub fn len(&self) -> usize {
        match self {
            Self::Bits { len, .. } => *len,
            Self::Words(values) => values.len(),
            Self::Longs(values) => values.len(),
            Self::Wide(values) => values.len(),
            Self::Strings { offsets, .. } => offsets.len().saturating_sub(1),
            Self::LargeStrings { offsets, .. } => offsets.len().saturating_sub(1),
            Self::TextViews(views) => views.len(),
            Self::ByteViews(views) => views.len(),
        }
    }
}

/// The values of one page, and how far they have been read.
#[derive(Debug)]
pub(crate) enum PageValues {
    /// Values of fixed width in their place.
    Plain {
        bytes: Bytes,
        width: usize,
        next: usize,
    },
    Bits {
        bytes: Bytes,
        next: usize,
    },
    /// Groups that have not been decoded: if all are asked for at once they go straight to where they are wanted.
    GroupedWords {
        bytes: Bytes,
        count: usize,
    },
    GroupedLongs {
        bytes: Bytes,
        count: usize,
    },
    Words {
        values: Vec<u32>,
        next: usize,
    },
    Longs {
        values: Vec<u64>,
        next: usize,
    },
    Strings {
        bytes: Buffer,
        pos: usize,
        left: usize,
    },
}

const INT96_BYTES: usize = 12;

impl PageValues {
    /// Bytes of numbers that are unpacked, or will be.
    pub fn unpacked_bytes(&self) -> usize {
        match self {
            Self::GroupedWords { count, .. } => count.saturating_mul(4),
            Self::GroupedLongs { count, .. } => count.saturating_mul(8),
            Self::Words { values, .. } => values.len().saturating_mul(4),
            Self::Longs { values, .. } => values.len().saturating_mul(8),
            Self::Plain { .. } | Self::Bits { .. } | Self::Strings { .. } => 0,
        }
    }

    /// The `count` values that `bytes` must hold exactly.
    pub fn open(bytes: Bytes, physical: PhysicalType, encoding: Encoding, count: usize) -> Result<Self> {
        let exactly = |wanted: usize, bytes: Bytes| {
            if bytes.len() == wanted {
                return Ok(bytes);
            }
            let expected = format!("{wanted} bytes of values");
            Err(DecodeError::new(bytes.len().min(wanted), expected, format!("{} bytes", bytes.len())))
        };
        let plain = |bytes: Bytes, width: usize| {
            Ok(Self::Plain { bytes: exactly(count.saturating_mul(width), bytes)?, width, next: 0 })
        };
        match (physical, encoding) {
            (PhysicalType::Boolean, Encoding::Plain) => {
                Ok(Self::Bits { bytes: exactly(count.div_ceil(8), bytes)?, next: 0 })
            }
            (PhysicalType::Int32 | PhysicalType::Float, Encoding::Plain) => plain(bytes, 4),
            (PhysicalType::Int64 | PhysicalType::Double, Encoding::Plain) => plain(bytes, 8),
            (PhysicalType::Int96, Encoding::Plain) => plain(bytes, INT96_BYTES),
            (PhysicalType::Int32 | PhysicalType::Int64, Encoding::GroupVarInt) if count == 0 => {
                plain(bytes, 0)
            }
            (PhysicalType::Int32, Encoding::GroupVarInt) => Ok(Self::GroupedWords { bytes, count }),
            (PhysicalType::Int64, Encoding::GroupVarInt) => Ok(Self::GroupedLongs { bytes, count }),
            (PhysicalType::ByteArray, Encoding::Plain) => {
                let values = Self::Strings { bytes: Buffer::from(bytes), pos: 0, left: count };
                values.check_end()?;
                Ok(values)
            }
            (physical, encoding) => {
                Err(DecodeError::new(0, format!("an encoding of {physical}"), encoding.to_string()))
            }
        }
    }

    /// Appends the next `count` values.
    pub fn take(&mut self, count: usize, out: &mut Dense) -> Result<()> {
        let missing = || DecodeError::new(0, format!("{count} more values"), "fewer");
        match (&*self, &mut *out) {
            (Self::GroupedWords { bytes, count: all }, Dense::Words(words)) if *all == count => {
                group_varint::decode_all(bytes, count, words)?;
                *self = Self::Words { values: Vec::new(), next: 0 };
                return Ok(());
            }
            (Self::GroupedLongs { bytes, count: all }, Dense::Longs(longs)) if *all == count => {
                group_varint::wide::decode_all(bytes, count, longs)?;
                *self = Self::Longs { values: Vec::new(), next: 0 };
                return Ok(());
            }
            _ => self.decode_groups()?,
        }
        match (&mut *self, out) {
            (Self::Bits { bytes, next }, Dense::Bits { bits, len }) => {
                bits::append_range(bits, len, bytes, *next, count)?;
                *next = next.saturating_add(count);
            }
            (Self::Plain { bytes, width, next }, out) => {
                let from = next.saturating_mul(*width);
                let to = from.saturating_add(count.saturating_mul(*width));
                let cut = bytes.get(from..to).ok_or_else(missing)?;
                *next = next.saturating_add(count);
                match out {
                    Dense::Words(words) => {
                        words.extend(cut.as_chunks().0.iter().map(|chunk| u32::from_le_bytes(*chunk)));
                    }
                    Dense::Longs(longs) => {
                        longs.extend(cut.as_chunks().0.iter().map(|chunk| u64::from_le_bytes(*chunk)));
                    }
                    Dense::Wide(wide) => wide.extend(cut.as_chunks().0.iter().map(widen)),
                    _ => return Err(missing()),
                }
            }
            (Self::Words { values, next }, Dense::Words(words)) => {
                let end = next.saturating_add(count);
                words.extend_from_slice(values.get(*next..end).ok_or_else(missing)?);
                *next = end;
            }
            (Self::Longs { values, next }, Dense::Longs(longs)) => {
                let end = next.saturating_add(count);
                longs.extend_from_slice(values.get(*next..end).ok_or_else(missing)?);
                *next = end;
            }
            (Self::Strings { bytes, pos, left }, out) => {
                match out {
                    Dense::Strings { values, offsets } => {
                        prefixed::append(bytes, pos, count, values, offsets)?;
                    }
                    Dense::LargeStrings { values, offsets } => {
                        prefixed::append(bytes, pos, count, values, offsets)?;
                    }
                    Dense::TextViews(views) => views.append_prefixed(bytes, pos, count)?,
                    Dense::ByteViews(views) => views.append_prefixed(bytes, pos, count)?,
                    _ => return Err(missing()),
                }
                *left = left.checked_sub(count).ok_or_else(missing)?;
            }
            _ => return Err(missing()),
        }
        self.check_end()
    }

    /// Decodes groups, if that is what they are.
    fn decode_groups(&mut self) -> Result<()> {
        match self {
            Self::GroupedWords { bytes, count } => {
                let mut values = Vec::new();
                group_varint::decode_all(bytes, *count, &mut values)?;
                *self = Self::Words { values, next: 0 };
            }
            Self::GroupedLongs { bytes, count } => {
                let mut values = Vec::new();
                group_varint::wide::decode_all(bytes, *count, &mut values)?;
                *self = Self::Longs { values, next: 0 };
            }
            _ => {}
        }
        Ok(())
    }

    /// Steps over the next `count` values.
    pub fn skip(&mut self, count: usize) -> Result<()> {
        if count == 0 {
            return Ok(());
        }
        self.decode_groups()?;
        match self {
            Self::GroupedWords { .. } | Self::GroupedLongs { .. } => {}
            Self::Bits { next, .. }
            | Self::Plain { next, .. }
            | Self::Words { next, .. }
            | Self::Longs { next, .. } => *next = next.saturating_add(count),
            Self::Strings { bytes, pos, left } => {
                prefixed::skip(bytes, pos, count)?;
                *left = left.saturating_sub(count);
            }
        }
        self.check_end()
    }

    /// Strings must fill their page; that is known when the last one has been read.
    fn check_end(&self) -> Result<()> {
        match self {
            Self::Strings { bytes, pos, left: 0 } if *pos != bytes.len() => Err(DecodeError::new(
                *pos,
                format!("{pos} bytes of values"),
                format!("{} bytes", bytes.len()),
            )),
            _ => Ok(()),
        }
    }
}

/// A 96-bit number with its sign carried on.
fn widen(chunk: &[u8; INT96_BYTES]) -> i128 {
    let [a, b, c, d, e, f, g, h, i, j, k, l] = *chunk;
    i128::from_le_bytes([0, 0, 0, 0, a, b, c, d, e, f, g, h, i, j, k, l]) >> 32
}
