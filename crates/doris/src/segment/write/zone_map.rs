//! Smallest and largest values of each page and of the segment; how they are written is in [`crate::segment`]'s `zone_map`.

use arrow_buffer::i256;
use arrow_schema::DataType;
use prost::Message;
use std::net::{Ipv4Addr, Ipv6Addr};

use crate::decimal;
use crate::messages::ZoneMapPb;
use crate::segment::cells::{Cell, decimal_v2};
use crate::segment::zone_map::CUT_BYTES;

/// Pages of fewer rows say nothing of their bounds.
const FEWEST_ROWS: usize = 20;

/// The least and the greatest value so far.
#[derive(Debug, Clone, Default)]
enum Extremes {
    #[default]
    None,
    Signed(i128, i128),
    Unsigned(u128, u128),
    Wide(i256, i256),
    Float(f64, f64),
    /// Cut, like all that is written of strings.
    Bytes(Vec<u8>, Vec<u8>),
}

/// What is known of a stretch of rows.
#[derive(Debug, Clone, Default)]
struct Zone {
    extremes: Extremes,
    has_null: bool,
    has_value: bool,
    has_positive_infinity: bool,
    has_negative_infinity: bool,
    has_nan: bool,
}

/// Builds the zone maps of one column.
#[derive(Debug)]
pub(super) struct ZoneMapBuilder {
    cell: Cell,
    page: Zone,
    segment: Zone,
    pages: Vec<Vec<u8>>,
    /// Pages of fewer rows say nothing of their bounds.
    fewest_rows: usize,
}

/// The zone maps of one column.
#[derive(Debug)]
pub(super) struct ZoneMaps {
    pub segment: ZoneMapPb,
    /// Serialized, one for each page.
    pub pages: Vec<Vec<u8>>,
}

impl ZoneMapBuilder {
    pub fn new(cell: Cell) -> Self {
        let (page, segment) = (Zone::default(), Zone::default());
        Self { cell, page, segment, pages: Vec::new(), fewest_rows: FEWEST_ROWS }
    }

    /// Whether pages of any number of rows have bounds.
    pub fn with_bounds_of_small_pages(mut self, have_bounds: bool) -> Self {
        if have_bounds {
            self.fewest_rows = 0;
        }
        self
    }

    pub fn add_nulls(&mut self) {
        self.page.has_null = true;
    }

    /// Adds cells of fixed width.
    pub fn add_cells(&mut self, cells: &[u8]) {
        if cells.is_empty() {
            return;
        }
        let page = &mut self.page;
        page.has_value = true;
        macro_rules! whole {
            ($kind:ident, $native:ty, $width:literal) => {{
                let values = cells.as_chunks::<$width>().0.iter().map(|cell| <$native>::from_le_bytes(*cell));
                page.extremes.$kind(values.fold((<$native>::MAX, <$native>::MIN), |(min, max), value| {
                    (min.min(value), max.max(value))
                }));
            }};
        }
        match &self.cell {
            Cell::Bool => whole!(unsigned, u8, 1),
            Cell::Number(DataType::Int8, _) => whole!(signed, i8, 1),
            Cell::Number(DataType::Int16, _) => whole!(signed, i16, 2),
            Cell::Number(DataType::Int32, _) | Cell::Decimal { width: 4, .. } => whole!(signed, i32, 4),
            Cell::Number(DataType::Int64, _) | Cell::Decimal { width: 8, .. } | Cell::DateTime => {
                whole!(signed, i64, 8);
            }
            Cell::LargeInt | Cell::Decimal { width: 16, .. } => whole!(signed, i128, 16),
            Cell::Number(DataType::UInt8, _) => whole!(unsigned, u8, 1),
            Cell::Number(DataType::UInt16, _) => whole!(unsigned, u16, 2),
            Cell::Number(DataType::UInt32, _) | Cell::DateV2 | Cell::Ipv4 => whole!(unsigned, u32, 4),
            Cell::Number(DataType::UInt64, _) | Cell::DateTimeV2 | Cell::TimestampTz => {
                whole!(unsigned, u64, 8);
            }
            Cell::Ipv6 => whole!(unsigned, u128, 16),
            Cell::Date => {
                let days =
                    cells.as_chunks::<3>().0.iter().map(|[a, b, c]| u32::from_le_bytes([*a, *b, *c, 0]));
                page.extremes.unsigned(bounds(days, (u32::MAX, 0)));
            }
            Cell::DecimalV2 => {
                let values = cells.as_chunks::<12>().0.iter().map(decimal_v2);
                page.extremes.signed(bounds(values, (i128::MAX, i128::MIN)));
            }
            Cell::Decimal { .. } => {
                let values = cells.as_chunks::<32>().0.iter().map(|cell| i256::from_le_bytes(*cell));
                page.extremes.wide(bounds(values, (i256::MAX, i256::MIN)));
            }
            Cell::Number(DataType::Float32, _) => {
                page.add_floats(cells.as_chunks::<4>().0.iter().map(|cell| f32::from_le_bytes(*cell).into()));
            }
            Cell::Number(..) => {
                page.add_floats(cells.as_chunks::<8>().0.iter().map(|cell| f64::from_le_bytes(*cell)));
            }
            Cell::Text | Cell::Char | Cell::Bytes | Cell::Jsonb => {}
        }
    }

    /// Adds a value of any length.
    #[inline]
    pub fn add_bytes(&mut self, value: &[u8]) {
        let cut = value.get(..CUT_BYTES).unwrap_or(value);
        self.page.has_value = true;
        match &mut self.page.extremes {
            Extremes::Bytes(min, max) => {
                if cut < min.as_slice() {
                    replace(min, cut);
                } else if cut > max.as_slice() {
                    replace(max, cut);
                }
            }
            other => *other = Extremes::Bytes(cut.to_vec(), cut.to_vec()),
        }
    }

    /// Ends a page of so many rows.
    pub fn finish_page(&mut self, rows: usize) {
        let page = std::mem::take(&mut self.page);
        let mut message = page.message(&self.cell);
        if rows < self.fewest_rows {
            message.min = Some(Vec::new());
            message.max = Some(Vec::new());
            message.pass_all = Some(true);
        }
        self.pages.push(message.encode_to_vec());
        self.segment.join(page);
    }

    pub fn finish(self) -> ZoneMaps {
        ZoneMaps { segment: self.segment.message(&self.cell), pages: self.pages }
    }
}

fn replace(kept: &mut Vec<u8>, value: &[u8]) {
    kept.clear();
    kept.extend_from_slice(value);
}

fn bounds<T: PartialOrd + Copy>(values: impl Iterator<Item = T>, none: (T, T)) -> (T, T) {
    values.fold(none, |(min, max), value| {
        (if value < min { value } else { min }, if value > max { value } else { max })
    })
}

impl Extremes {
    fn signed<T: Into<i128>>(&mut self, (min, max): (T, T)) {
        let (min, max) = (min.into(), max.into());
        *self = match self {
            Self::Signed(least, greatest) => Self::Signed(min.min(*least), max.max(*greatest)),
            _ => Self::Signed(min, max),
        };
    }

    fn unsigned<T: Into<u128>>(&mut self, (min, max): (T, T)) {
        let (min, max) = (min.into(), max.into());
        *self = match self {
            Self::Unsigned(least, greatest) => Self::Unsigned(min.min(*least), max.max(*greatest)),
            _ => Self::Unsigned(min, max),
        };
    }

    fn wide(&mut self, (min, max): (i256, i256)) {
        *self = match self {
            Self::Wide(least, greatest) => Self::Wide(min.min(*least), max.max(*greatest)),
            _ => Self::Wide(min, max),
        };
    }

    fn float(&mut self, (min, max): (f64, f64)) {
        *self = match self {
            Self::Float(least, greatest) => Self::Float(min.min(*least), max.max(*greatest)),
            _ => Self::Float(min, max),
        };
    }

    fn join(&mut self, other: Self) {
        match other {
            Self::None => {}
            Self::Signed(min, max) => self.signed((min, max)),
            Self::Unsigned(min, max) => self.unsigned((min, max)),
            Self::Wide(min, max) => self.wide((min, max)),
            Self::Float(min, max) => self.float((min, max)),
            Self::Bytes(min, max) => match self {
                Self::Bytes(least, greatest) => {
                    if min < *least {
                        *least = min;
                    }
                    if max > *greatest {
                        *greatest = max;
                    }
                }
                _ => *self = Self::Bytes(min, max),
            },
        }
    }
}

impl Zone {
    fn add_floats(&mut self, values: impl Iterator<Item = f64>) {
        let mut found: Option<(f64, f64)> = None;
        for value in values {
            if value.is_finite() {
                let (min, max) = found.unwrap_or((value, value));
                found = Some((min.min(value), max.max(value)));
            } else {
                self.has_nan |= value.is_nan();
                self.has_positive_infinity |= value == f64::INFINITY;
                self.has_negative_infinity |= value == f64::NEG_INFINITY;
            }
        }
        if let Some(found) = found {
            self.extremes.float(found);
        }
    }

    fn join(&mut self, other: Self) {
        self.extremes.join(other.extremes);
        self.has_null |= other.has_null;
        self.has_value |= other.has_value;
        self.has_positive_infinity |= other.has_positive_infinity;
        self.has_negative_infinity |= other.has_negative_infinity;
        self.has_nan |= other.has_nan;
    }

    fn message(&self, cell: &Cell) -> ZoneMapPb {
        let (min, max, is_bound) = match &self.extremes {
            Extremes::None => (Vec::new(), Vec::new(), !self.has_value),
            Extremes::Signed(min, max) => (signed_text(cell, *min), signed_text(cell, *max), true),
            Extremes::Unsigned(min, max) => (unsigned_text(cell, *min), unsigned_text(cell, *max), true),
            Extremes::Wide(min, max) => (min.to_string().into_bytes(), max.to_string().into_bytes(), true),
            Extremes::Float(min, max) => {
                let is_short = matches!(cell, Cell::Number(DataType::Float32, _));
                (float_text(*min, is_short).into_bytes(), float_text(*max, is_short).into_bytes(), true)
            }
            Extremes::Bytes(min, max) => {
                let mut upper = max.clone();
                let mut is_bound = true;
                if upper.len() == CUT_BYTES
                    && let Some(last) = upper.last_mut()
                {
                    // Without a next byte the cut string is no upper bound.
                    is_bound = *last < u8::MAX;
                    *last = last.saturating_add(1);
                }
                (min.clone(), upper, is_bound)
            }
        };
        // Infinities and NaN alone leave no bounds to write.
        let (min, max) = if is_bound { (min, max) } else { (Vec::new(), Vec::new()) };
        ZoneMapPb {
            min: Some(min),
            max: Some(max),
            has_null: Some(self.has_null),
            has_not_null: Some(self.has_value),
            pass_all: Some(!is_bound),
            has_positive_inf: Some(self.has_positive_infinity),
            has_negative_inf: Some(self.has_negative_infinity),
            has_nan: Some(self.has_nan),
        }
    }
}

fn signed_text(cell: &Cell, value: i128) -> Vec<u8> {
    let text = match cell {
        Cell::DecimalV2 => decimal::text(&value.to_le_bytes(), 9).unwrap_or_default(),
        Cell::DateTime => {
            let digits = format!("{value:014}");
            let part = |from: usize, to: usize| digits.get(from..to).unwrap_or_default();
            format!(
                "{}-{}-{} {}:{}:{}",
                part(0, 4),
                part(4, 6),
                part(6, 8),
                part(8, 10),
                part(10, 12),
                part(12, 14)
            )
        }
        _ => value.to_string(),
    };
    text.into_bytes()
}

fn unsigned_text(cell: &Cell, value: u128) -> Vec<u8> {
    let bits = |shift: u32, width: u32| {
        let mask = 1u128.checked_shl(width).unwrap_or_default().wrapping_sub(1);
        value.checked_shr(shift).unwrap_or_default() & mask
    };
    let date = |shift: u32| {
        let at = |more: u32| shift.saturating_add(more);
        format!("{:04}-{:02}-{:02}", bits(at(9), 18), bits(at(5), 4), bits(shift, 5))
    };
    let time = || {
        let clock = format!("{:02}:{:02}:{:02}.{:06}", bits(32, 5), bits(26, 6), bits(20, 6), bits(0, 20));
        format!("{} {clock}", date(37))
    };
    let text = match cell {
        Cell::Date | Cell::DateV2 => date(0),
        Cell::DateTimeV2 => time(),
        Cell::TimestampTz => format!("{}+00:00", time()),
        Cell::Ipv4 => Ipv4Addr::from_bits(u32::try_from(value).unwrap_or_default()).to_string(),
        Cell::Ipv6 => Ipv6Addr::from_bits(value).to_string(),
        _ => value.to_string(),
    };
    text.into_bytes()
}

/// The fewest digits that tell a number from its neighbours; an exponent of two digits or more outside 1e-4 … 1e16 (1e7
/// for floats of 32 bits).
fn float_text(value: f64, is_short: bool) -> String {
    #[expect(clippy::cast_possible_truncation, reason = "the value came from a float of 32 bits")]
    let scientific = if is_short { format!("{:e}", value as f32) } else { format!("{value:e}") };
    let Some((digits, exponent)) = scientific.split_once('e') else { return scientific };
    let Ok(exponent) = exponent.parse::<i32>() else { return scientific };
    let most = if is_short { 7 } else { 16 };
    if (-4..most).contains(&exponent) {
        #[expect(clippy::cast_possible_truncation, reason = "as above")]
        return if is_short { (value as f32).to_string() } else { value.to_string() };
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_as_short_as_they_can_be() {
        for (value, expected) in [
            (1e-8, "1e-08"),
            (-1.25, "-1.25"),
            (98765.4321, "98765.4321"),
            (1e16, "1e+16"),
            (1e15, "1000000000000000"),
            (0.0001, "0.0001"),
            (1.5e-5, "1.5e-05"),
            (1e100, "1e+100"),
            (0.0, "0"),
        ] {
            assert_eq!(float_text(value, false), expected);
        }
        assert_eq!(float_text(f64::from(0.1f32), true), "0.1");
        assert_eq!(float_text(1e7, true), "1e+07");
    }

    #[test]
    fn cut_strings_are_bounds() {
        let mut zones = ZoneMapBuilder::new(Cell::Text);
        zones.add_bytes(&[b'a'; 600]);
        zones.finish_page(20);
        let segment = zones.finish().segment;
        assert_eq!(segment.min.unwrap(), [b'a'; 512]);
        let max = segment.max.unwrap();
        assert_eq!((max.len(), max[510], max[511]), (512, b'a', b'b'));
        let mut zones = ZoneMapBuilder::new(Cell::Bytes);
        zones.add_bytes(&[0xff; 512]);
        zones.finish_page(20);
        assert_eq!(zones.finish().segment.pass_all, Some(true));
    }

    #[test]
    fn small_pages_pass_all_and_the_segment_does_not() {
        let mut zones = ZoneMapBuilder::new(Cell::Number(DataType::Int32, 4));
        zones.add_cells(&[1, 0, 0, 0, 0xff, 0xff, 0xff, 0xff]);
        zones.finish_page(2);
        let zones = zones.finish();
        let page = ZoneMapPb::decode(zones.pages[0].as_slice()).unwrap();
        assert_eq!((page.pass_all, page.min), (Some(true), Some(Vec::new())));
        assert_eq!(zones.segment.min, Some(b"-1".to_vec()));
        assert_eq!(zones.segment.max, Some(b"1".to_vec()));
        // Older releases want them.
        let mut zones =
            ZoneMapBuilder::new(Cell::Number(DataType::Int32, 4)).with_bounds_of_small_pages(true);
        zones.add_cells(&[1, 0, 0, 0, 0xff, 0xff, 0xff, 0xff]);
        zones.finish_page(2);
        let page = ZoneMapPb::decode(zones.finish().pages[0].as_slice()).unwrap();
        assert_eq!((page.pass_all.unwrap_or(false), page.min), (false, Some(b"-1".to_vec())));
    }

    #[test]
    fn infinities_are_no_bounds() {
        let mut zones = ZoneMapBuilder::new(Cell::Number(DataType::Float64, 8));
        let cells: Vec<u8> =
            [1.0, f64::NAN, f64::INFINITY, -2.0].iter().flat_map(|v: &f64| v.to_le_bytes()).collect();
        zones.add_cells(&cells);
        zones.finish_page(30);
        let segment = zones.finish().segment;
        assert_eq!((segment.min.unwrap(), segment.max.unwrap()), (b"-2".to_vec(), b"1".to_vec()));
        assert_eq!(
            (segment.has_nan, segment.has_positive_inf, segment.has_negative_inf),
            (Some(true), Some(true), Some(false))
        );
    }
}
