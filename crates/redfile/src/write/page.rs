//! The page that is being filled: levels and values of whole records.

use pilaster_core::{Error, Result};
use pilaster_encoding::{group_varint, levels, plain};

use super::options::EncodingChoice;
use super::statistics::{Bounds, Extremes};
use super::strings::PageStrings;
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
    /// Already encoded.
    Strings(PageStrings),
}

impl Pending {
    fn new(physical: PhysicalType) -> Result<Self> {
        Ok(match physical {
            PhysicalType::Boolean => Self::Bits(Vec::new()),
            PhysicalType::Int32 | PhysicalType::Float => Self::Words(Vec::new()),
            PhysicalType::Int64 | PhysicalType::Double => Self::Longs(Vec::new()),
            PhysicalType::Int96 => Self::Wide(Vec::new()),
            PhysicalType::ByteArray => Self::Strings(PageStrings::default()),
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
            Self::Strings(strings) => strings.count,
        }
    }

    fn clear(&mut self) {
        match self {
            Self::Bits(values) => values.clear(),
            Self::Words(values) => values.clear(),
            Self::Longs(values) => values.clear(),
            Self::Wide(values) => values.clear(),
            Self::Strings(strings) => strings.clear(),
        }
    }

    fn extremes(&self, order: Order) -> Extremes {
        match self {
            _ if order == Order::None => Extremes { values: self.len() as u64, ..Extremes::default() },
            Self::Bits(values) => Extremes::of_bits(values),
            Self::Words(values) => Extremes::of_words(values, order),
            Self::Longs(values) => Extremes::of_longs(values, order),
            Self::Wide(values) => Extremes::of_wide(values),
            Self::Strings(strings) => {
                let (low, high) = strings.range();
                let (low, high) = (low.to_vec(), high.to_vec());
                let bounds = match order {
                    _ if strings.count == 0 => Bounds::None,
                    Order::DecimalBytes => Bounds::Decimal(low, high),
                    _ => Bounds::Bytes(low, high),
                };
                Extremes { bounds, values: strings.count as u64, ..Extremes::default() }
            }
        }
    }

    /// Appends the encoded values; says how they were encoded.
    fn encode(&self, physical: PhysicalType, choice: EncodingChoice, out: &mut Vec<u8>) -> Result<Encoding> {
        match self {
            Self::Bits(values) => levels::pack(values, 1, out)?,
            Self::Words(values) => {
                let may_group = physical == PhysicalType::Int32 && choice != EncodingChoice::Plain;
                let must_group = choice == EncodingChoice::GroupVarInt;
                if may_group && group_words(values, must_group, out) {
                    return Ok(Encoding::GroupVarInt);
                }
                plain::encode(values, out);
            }
            Self::Longs(values) => {
                let may_group = physical == PhysicalType::Int64 && choice != EncodingChoice::Plain;
                let must_group = choice == EncodingChoice::GroupVarInt;
                if may_group && group_longs(values, must_group, out) {
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
            Self::Strings(strings) => out.extend_from_slice(&strings.bytes),
        }
        Ok(Encoding::Plain)
    }
}

/// Values by which it is guessed which encoding will be the smaller one.
const SAMPLE: usize = 64;

macro_rules! group_or_not {
    ($name:ident, $t:ty, $encoding:path) => {
        /// Appends the values as groups if that is smaller than to store them as they are, or if it must be; says whether.
        fn $name(values: &[$t], must: bool, out: &mut Vec<u8>) -> bool {
            use $encoding as groups;
            let is_smaller = |bytes: usize, values: &[$t]| bytes < size_of_val(values);
            let sample = values.get(..SAMPLE).unwrap_or(values);
            // Mostly groups are smaller; then encoding them tells their size. Where they will hardly be, it is counted before.
            let is_likely = is_smaller(groups::encoded_size(sample), sample);
            if !must && !is_likely && !is_smaller(groups::encoded_size(values), values) {
                return false;
            }
            let start = out.len();
            groups::encode(values, out);
            let is_kept = must || is_smaller(out.len().saturating_sub(start), values);
            if !is_kept {
                out.truncate(start);
            }
            is_kept
        }
    };
}

group_or_not!(group_words, u32, group_varint);
group_or_not!(group_longs, u64, group_varint::wide);

/// The levels and values of a page that is being filled.
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
