//! The page that is being filled: levels and values of whole records.

use pilaster_core::{Error, Result};
use pilaster_encoding::{group_varint, levels, plain, prefixed};

use super::options::EncodingChoice;
use super::statistics::{Bounds, Extremes, compare_decimals};
use crate::metadata::{Encoding, PhysicalType};
use crate::schema::{Leaf, Order};

/// Values that wait to be encoded.
#[derive(Debug)]
pub(super) enum Pending {
    /// A byte for each boolean.
    Bits(Vec<u8>),
    Words(Vec<u32>),
    Longs(Vec<u64>),
    Wide(Vec<i128>),
    /// Already encoded, with the places of the least and the greatest.
    Strings {
        bytes: Vec<u8>,
        count: usize,
        least: Place,
        greatest: Place,
    },
}

/// Where a string lies among the pending bytes.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Place {
    start: usize,
    len: usize,
    /// Its first bytes as a number: where they differ, nothing else has to be compared.
    prefix: u64,
}

/// The first eight bytes in an order that numbers have too; shorter strings are filled up with zeros.
#[inline]
fn prefix_of(string: &[u8]) -> u64 {
    match string.first_chunk() {
        Some(first) => u64::from_be_bytes(*first),
        None => string
            .iter()
            .zip([56u32, 48, 40, 32, 24, 16, 8])
            .fold(0, |sum, (byte, shift)| sum | (u64::from(*byte) << shift)),
    }
}

impl Place {
    fn of(self, bytes: &[u8]) -> &[u8] {
        bytes.get(self.start..self.start.saturating_add(self.len)).unwrap_or_default()
    }
}

impl Pending {
    fn new(physical: PhysicalType) -> Result<Self> {
        Ok(match physical {
            PhysicalType::Boolean => Self::Bits(Vec::new()),
            PhysicalType::Int32 | PhysicalType::Float => Self::Words(Vec::new()),
            PhysicalType::Int64 | PhysicalType::Double => Self::Longs(Vec::new()),
            PhysicalType::Int96 => Self::Wide(Vec::new()),
            PhysicalType::ByteArray => Self::Strings {
                bytes: Vec::new(),
                count: 0,
                least: Place::default(),
                greatest: Place::default(),
            },
            PhysicalType::Unknown(number) => {
                return Err(Error::invalid(format!("physical type {number} cannot be written")));
            }
        })
    }

    fn len(&self) -> usize {
        match self {
            Self::Bits(values) => values.len(),
            Self::Words(values) => values.len(),
            Self::Longs(values) => values.len(),
            Self::Wide(values) => values.len(),
            Self::Strings { count, .. } => *count,
        }
    }

    fn clear(&mut self) {
        match self {
            Self::Bits(values) => values.clear(),
            Self::Words(values) => values.clear(),
            Self::Longs(values) => values.clear(),
            Self::Wide(values) => values.clear(),
            Self::Strings { bytes, count, least, greatest } => {
                bytes.clear();
                (*count, *least, *greatest) = (0, Place::default(), Place::default());
            }
        }
    }

    /// Appends a string and keeps the bounds, if `order` asks for them.
    #[inline]
    pub fn push_string(&mut self, string: &[u8], order: Order) -> Result<()> {
        let Self::Strings { bytes, count, least, greatest } = self else {
            return Err(Error::invalid("a string in a column of numbers"));
        };
        let prefix = prefix_of(string);
        let place =
            Place { start: bytes.len().saturating_add(prefixed::PREFIX_LEN), len: string.len(), prefix };
        prefixed::put(string, bytes)?;
        if *count == 0 {
            (*least, *greatest) = (place, place);
        } else {
            match order {
                Order::Bytes => {
                    if prefix < least.prefix || (prefix == least.prefix && string < least.of(bytes)) {
                        *least = place;
                    } else if prefix > greatest.prefix
                        || (prefix == greatest.prefix && string > greatest.of(bytes))
                    {
                        *greatest = place;
                    }
                }
                Order::DecimalBytes => {
                    if compare_decimals(string, least.of(bytes)).is_lt() {
                        *least = place;
                    } else if compare_decimals(string, greatest.of(bytes)).is_gt() {
                        *greatest = place;
                    }
                }
                _ => {}
            }
        }
        *count = count.saturating_add(1);
        Ok(())
    }

    fn extremes(&self, order: Order) -> Extremes {
        match self {
            _ if order == Order::None => Extremes { values: self.len() as u64, ..Extremes::default() },
            Self::Bits(values) => Extremes::of_bits(values),
            Self::Words(values) => Extremes::of_words(values, order),
            Self::Longs(values) => Extremes::of_longs(values, order),
            Self::Wide(values) => Extremes::of_wide(values),
            Self::Strings { bytes, count, least, greatest } => {
                let (low, high) = (least.of(bytes).to_vec(), greatest.of(bytes).to_vec());
                let bounds = match order {
                    _ if *count == 0 => Bounds::None,
                    Order::DecimalBytes => Bounds::Decimal(low, high),
                    _ => Bounds::Bytes(low, high),
                };
                Extremes { bounds, values: *count as u64, ..Extremes::default() }
            }
        }
    }

    /// Appends the encoded values; says how they were encoded.
    fn encode(&self, physical: PhysicalType, choice: EncodingChoice, out: &mut Vec<u8>) -> Result<Encoding> {
        match self {
            Self::Bits(values) => levels::pack(values, 1, out)?,
            Self::Words(values) => {
                let is_grouped = physical == PhysicalType::Int32
                    && match choice {
                        EncodingChoice::Plain => false,
                        EncodingChoice::GroupVarInt => true,
                        EncodingChoice::Auto => {
                            group_varint::encoded_size(values) < size_of_val(values.as_slice())
                        }
                    };
                if is_grouped {
                    group_varint::encode(values, out);
                    return Ok(Encoding::GroupVarInt);
                }
                plain::encode(values, out);
            }
            Self::Longs(values) => {
                let is_grouped = physical == PhysicalType::Int64
                    && match choice {
                        EncodingChoice::Plain => false,
                        EncodingChoice::GroupVarInt => true,
                        EncodingChoice::Auto => {
                            group_varint::wide::encoded_size(values) < size_of_val(values.as_slice())
                        }
                    };
                if is_grouped {
                    group_varint::wide::encode(values, out);
                    return Ok(Encoding::GroupVarInt);
                }
                plain::encode(values, out);
            }
            Self::Wide(values) => {
                for value in values {
                    let [a, b, c, d, e, f, g, h, i, j, k, l, ..] = value.to_le_bytes();
                    out.extend_from_slice(&[a, b, c, d, e, f, g, h, i, j, k, l]);
                }
            }
            Self::Strings { bytes, .. } => out.extend_from_slice(bytes),
        }
        Ok(Encoding::Plain)
    }
}

/// See the module.
#[derive(Debug)]
pub(super) struct PageBuilder {
    pub values: Pending,
    pub def: Vec<u8>,
    pub rep: Vec<u8>,
    pub entries: usize,
    pub rows: usize,
    /// Size so far as if PLAIN, in bits.
    pub bits: u64,
    pub order: Order,
    max_def: u8,
    max_rep: u8,
    physical: PhysicalType,
}

/// What an encoded page holds.
pub(super) struct EncodedPage {
    pub encoding: Encoding,
    pub entries: usize,
    pub rows: usize,
    pub extremes: Option<Extremes>,
}

impl PageBuilder {
    pub fn new(leaf: &Leaf, order: Order) -> Result<Self> {
        Ok(Self {
            values: Pending::new(leaf.physical_type)?,
            def: Vec::new(),
            rep: Vec::new(),
            entries: 0,
            rows: 0,
            bits: 0,
            order,
            max_def: leaf.max_def,
            max_rep: leaf.max_rep,
            physical: leaf.physical_type,
        })
    }

    /// Bits that the levels of an entry take.
    pub fn level_bits(&self) -> u64 {
        u64::from(levels::width_of(self.max_def)).saturating_add(u64::from(levels::width_of(self.max_rep)))
    }

    /// Bits of a value of fixed width.
    pub fn value_bits(&self) -> u64 {
        match self.physical {
            PhysicalType::Boolean => 1,
            PhysicalType::Int32 | PhysicalType::Float => 32,
            PhysicalType::Int64 | PhysicalType::Double => 64,
            PhysicalType::Int96 => 96,
            PhysicalType::ByteArray | PhysicalType::Unknown(_) => 0,
        }
    }

    /// Writes the body of the page and begins the next one.
    pub fn encode(
        &mut self,
        choice: EncodingChoice,
        with_extremes: bool,
        out: &mut Vec<u8>,
    ) -> Result<EncodedPage> {
        if self.max_def > 0 {
            if self.max_def == 1 && self.max_rep == 0 {
                // Null bits: 1 for a missing value.
                self.def.iter_mut().for_each(|level| *level ^= 1);
            }
            levels::pack(&self.def, levels::width_of(self.max_def), out)?;
        }
        if self.max_rep > 0 {
            levels::pack(&self.rep, levels::width_of(self.max_rep), out)?;
        }
        let encoding = self.values.encode(self.physical, choice, out)?;
        let extremes = with_extremes.then(|| {
            let nulls = self.entries.saturating_sub(self.values.len()) as u64;
            Extremes { nulls, ..self.values.extremes(self.order) }
        });
        let page = EncodedPage { encoding, entries: self.entries, rows: self.rows, extremes };
        self.values.clear();
        self.def.clear();
        self.rep.clear();
        (self.entries, self.rows, self.bits) = (0, 0, 0);
        Ok(page)
    }
}
