//! Minima and maxima of blocklets and pages, as arrays that a predicate can be asked about.
//!
//! The bytes have other forms than the values. Nulls count as the value that is stored for them (0, the least date, the
//! marker of null), so bounds are never too narrow but may be too wide.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    TimestampMillisecondType,
};
use arrow_array::{
    Array, ArrayRef, BinaryViewArray, BooleanArray, Decimal128Array, PrimitiveArray, StringViewArray,
    UInt64Array,
};
use arrow_buffer::BooleanBuffer;
use arrow_ord::sort::{SortOptions, sort_limit};
use bytes::Bytes;
use pilaster_core::describe::ColumnStatistics;
use pilaster_core::predicate::ZoneStatistics;
use pilaster_core::{CompareOp, Literal};

use super::calendar::Calendar;
use super::page::strings::{DATE_BASE, decimal};
use super::page::words::WordsRef;
use super::types::{CarbonType, ColumnNode};
use crate::messages::MinMax;

/// Which bounds of a column are meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Min,
    Max,
}

/// The bounds of zones as an array of the column's type, null where they are not known; `None` if none can be.
pub(crate) fn bounds(node: &ColumnNode, zones: &[Option<&Bytes>]) -> Option<ArrayRef> {
    // Codes of a table's dictionary are not in the order of the entries.
    if node.has_table_dictionary {
        return None;
    }
    let zones = zones.iter().copied();
    Some(match (node.carbon_type, node.is_dimension) {
        (CarbonType::String | CarbonType::Varchar, _) => {
            let texts = zones.map(|zone| std::str::from_utf8(zone?).ok());
            Arc::new(texts.collect::<StringViewArray>())
        }
        (CarbonType::Binary, _) => {
            Arc::new(zones.map(|zone| zone.map(AsRef::as_ref)).collect::<BinaryViewArray>())
        }
        (CarbonType::Date, _) => fixed::<Date32Type, 4>(zones, |bytes| {
            let surrogate = i32::from_be_bytes(bytes);
            (surrogate >= 0).then(|| surrogate.wrapping_sub(DATE_BASE))
        }),
        (CarbonType::Short, true) => {
            fixed::<Int16Type, 2>(zones, |bytes| Some(i16::from_be_bytes(bytes) ^ i16::MIN))
        }
        (CarbonType::Int, true) => {
            fixed::<Int32Type, 4>(zones, |bytes| Some(i32::from_be_bytes(bytes) ^ i32::MIN))
        }
        (CarbonType::Long, true) => {
            fixed::<Int64Type, 8>(zones, |bytes| Some(i64::from_be_bytes(bytes) ^ i64::MIN))
        }
        (CarbonType::Timestamp, true) => utc(zones, |bytes| i64::from_be_bytes(bytes) ^ i64::MIN),
        (CarbonType::Timestamp, false) => utc(zones, i64::from_be_bytes),
        (CarbonType::Short, false) => {
            fixed::<Int16Type, 8>(zones, |bytes| i16::try_from(i64::from_be_bytes(bytes)).ok())
        }
        (CarbonType::Int, false) => {
            fixed::<Int32Type, 8>(zones, |bytes| i32::try_from(i64::from_be_bytes(bytes)).ok())
        }
        (CarbonType::Long, false) => fixed::<Int64Type, 8>(zones, |bytes| Some(i64::from_be_bytes(bytes))),
        (CarbonType::Byte, false) => fixed::<Int8Type, 1>(zones, |bytes| Some(i8::from_be_bytes(bytes))),
        (CarbonType::Float, _) => fixed::<Float32Type, 8>(zones, |bytes| {
            bytes.first_chunk().map(|bytes| f32::from_be_bytes(*bytes))
        }),
        (CarbonType::Double, _) => fixed::<Float64Type, 8>(zones, |bytes| Some(f64::from_be_bytes(bytes))),
        (CarbonType::Boolean, _) => {
            let flags = zones.map(|zone| match zone.map(AsRef::as_ref) {
                Some([0 | b'0']) => Some(false),
                Some([1 | b'1' | 0xff]) => Some(true),
                _ => None,
            });
            Arc::new(flags.collect::<BooleanArray>())
        }
        (CarbonType::Decimal { precision, scale }, _) => {
            let values = zones.map(|zone| {
                let (stored, unscaled) = zone?.split_first()?;
                decimal(*stored, unscaled, precision, scale).ok()
            });
            let array = values.collect::<Decimal128Array>();
            Arc::new(array.with_precision_and_scale(precision, i8::try_from(scale).ok()?).ok()?)
        }
        // Text of numbers, merged in the order of text: it bounds nothing.
        (CarbonType::Byte, true) => return None,
        (CarbonType::Array | CarbonType::Struct | CarbonType::Map, _) => return None,
    })
}

fn fixed<'a, T: ArrowPrimitiveType, const N: usize>(
    zones: impl Iterator<Item = Option<&'a Bytes>>,
    value: impl Fn([u8; N]) -> Option<T::Native>,
) -> ArrayRef {
    Arc::new(fixed_array::<T, N>(zones, value))
}

fn fixed_array<'a, T: ArrowPrimitiveType, const N: usize>(
    zones: impl Iterator<Item = Option<&'a Bytes>>,
    value: impl Fn([u8; N]) -> Option<T::Native>,
) -> PrimitiveArray<T> {
    zones.map(|zone| <[u8; N]>::try_from(zone?.as_ref()).ok().and_then(&value)).collect()
}

fn utc<'a>(zones: impl Iterator<Item = Option<&'a Bytes>>, value: impl Fn([u8; 8]) -> i64) -> ArrayRef {
    let array = fixed_array::<TimestampMillisecondType, 8>(zones, |bytes| Some(value(bytes)));
    Arc::new(array.with_timezone("UTC"))
}

/// Finds the statistics of a zone that hold a column, and its place in them.
pub(crate) type FindStatistics<'a> = &'a dyn Fn(usize, &ColumnNode) -> Option<(&'a MinMax, usize)>;

/// Zones whose statistics lie in lists: blocklets, with a list of all columns, or pages, with a list for each column.
pub(crate) struct Zones<'a> {
    pub columns: &'a [ColumnNode],
    /// Dictionaries of the table, by chunk, with the bytes of their codes.
    pub words: &'a HashMap<usize, (WordsRef, usize)>,
    pub rows: Vec<u64>,
    /// Which days and times the bounds are given as.
    pub calendar: Calendar,
    /// Where the statistics are.
    pub find: FindStatistics<'a>,
}

impl Zones<'_> {
    fn side(&self, column: usize, side: Side) -> Option<ArrayRef> {
        self.calendar.shown(&self.stored_side(column, side)?).ok()
    }

    fn stored_side(&self, column: usize, side: Side) -> Option<ArrayRef> {
        let node = self.columns.get(column)?;
        let zones: Vec<_> = (0..self.rows.len())
            .map(|zone| {
                let (statistics, place) = (self.find)(zone, node)?;
                let (min, max) = statistics.bounds(place)?;
                Some(if side == Side::Min { min } else { max })
            })
            .collect();
        bounds(node, &zones)
    }

    /// The zones in which a code is whose entry a question is true for; those of which the codes are not known may have any.
    fn with_code(&self, column: usize, question: Option<(CompareOp, Literal)>) -> Option<BooleanBuffer> {
        let node = self.columns.get(column).filter(|node| node.has_table_dictionary)?;
        let (words, _) = self.words.get(&node.chunk)?;
        let counts = words.matches(&question)?;
        let last = u32::try_from(words.array.len()).unwrap_or(u32::MAX);
        Some(BooleanBuffer::collect_bool(self.rows.len(), |zone| {
            let codes = (self.find)(zone, node).and_then(|(statistics, place)| {
                let (min, max) = statistics.bounds(place)?;
                Some((code(min)?, code(max)?))
            });
            let (min, max) = codes.unwrap_or((0, last));
            counts.any(min, max)
        }))
    }
}

/// A code of a dictionary, big-endian in as few bytes as its table needs.
fn code(bytes: &[u8]) -> Option<u32> {
    let is_code = (1..=4).contains(&bytes.len());
    is_code.then(|| bytes.iter().fold(0u32, |code, byte| (code << 8) | u32::from(*byte)))
}

impl ZoneStatistics for Zones<'_> {
    fn zones(&self) -> usize {
        self.rows.len()
    }

    fn min(&self, column: usize) -> Option<ArrayRef> {
        self.side(column, Side::Min)
    }

    fn max(&self, column: usize) -> Option<ArrayRef> {
        self.side(column, Side::Max)
    }

    fn null_counts(&self, column: usize) -> Option<UInt64Array> {
        // Only of codes it is known whether null is among them, and then not how often.
        let may = self.with_code(column, None)?;
        Some(may.iter().map(|may| (!may).then_some(0)).collect())
    }

    fn row_counts(&self) -> Option<UInt64Array> {
        Some(UInt64Array::from(self.rows.clone()))
    }

    fn compared(&self, column: usize, op: CompareOp, value: &Literal) -> Option<BooleanBuffer> {
        self.with_code(column, Some((op, value.clone())))
    }
}

/// Puts least and greatest value of all zones into `statistics`, where they are sure to be values and not what stands
/// for null.
pub(crate) fn fill_bounds(
    statistics: &mut ColumnStatistics,
    node: &ColumnNode,
    zones: &Zones<'_>,
    column: usize,
) {
    let extreme = |side: Side| {
        let all = zones.stored_side(column, side).filter(|all| all.null_count() == 0 && !all.is_empty())?;
        let options = SortOptions { descending: side == Side::Max, nulls_first: false };
        let one = sort_limit(&all, Some(options), Some(1)).ok()?;
        if may_be_null_stand_in(node, &one) { None } else { zones.calendar.shown(&one).ok() }
    };
    statistics.min = extreme(Side::Min);
    statistics.max = extreme(Side::Max);
}

/// Whether a bound may come from nulls alone.
fn may_be_null_stand_in(node: &ColumnNode, bound: &ArrayRef) -> bool {
    let stand_ins: Vec<Vec<u8>> = match (node.carbon_type, node.is_dimension) {
        (CarbonType::String, _) => vec![b"@NU#LL$!".to_vec()],
        (CarbonType::Varchar | CarbonType::Binary, _) => vec![Vec::new()],
        (CarbonType::Date, _) => vec![vec![0, 0, 0, 1], vec![0; 4]],
        (CarbonType::Boolean, _) => vec![vec![0]],
        (CarbonType::Short, true) => vec![vec![0x80, 0], vec![0; 2]],
        (CarbonType::Int, true) => vec![vec![0x80, 0, 0, 0], vec![0; 4]],
        (CarbonType::Long | CarbonType::Timestamp, true) => vec![vec![0x80, 0, 0, 0, 0, 0, 0, 0], vec![0; 8]],
        (CarbonType::Byte, false) => vec![vec![0]],
        (CarbonType::Decimal { .. }, _) => vec![vec![0, 0]],
        _ => vec![vec![0; 8]],
    };
    stand_ins.iter().any(|bytes| {
        let bytes = Bytes::copy_from_slice(bytes);
        bounds(node, &[Some(&bytes)]).is_some_and(|stand_in| stand_in.as_ref() == bound.as_ref())
    })
}
