//! Dense values and nulls as an Arrow array of the leaf's type.

use std::sync::Arc;

use arrow_array::{
    ArrayRef, BinaryArray, BooleanArray, FixedSizeBinaryArray, LargeBinaryArray, LargeStringArray, NullArray,
    StringArray,
};
use arrow_buffer::{
    ArrowNativeType, BooleanBuffer, Buffer, IntervalDayTime, IntervalMonthDayNano, NullBuffer, OffsetBuffer,
    ScalarBuffer, i256,
};
use arrow_schema::{DataType, IntervalUnit};
use pilaster_core::numbers::number_array;
use pilaster_core::views::spread_offsets;
use pilaster_core::{Error, Result};
use pilaster_encoding::{levels, spread};

use super::dense::Dense;

/// `dense` as an array of `slots` slots, with a value where `nulls` has none.
pub(super) fn array(
    dense: Dense,
    data_type: &DataType,
    slots: usize,
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef> {
    let present = nulls.as_ref().map_or(slots, |nulls| nulls.len().saturating_sub(nulls.null_count()));
    if dense.len() != present {
        return Err(Error::corrupt(format!("{present} values"), dense.len()));
    }
    match dense {
        Dense::Bits { bits, len } => booleans(bits, len, data_type, slots, nulls),
        Dense::Words(words) => {
            let words = filled(words, nulls.as_ref())?;
            words_array(words, data_type, nulls)
        }
        Dense::Longs(longs) => {
            let longs = filled(longs, nulls.as_ref())?;
            longs_array(longs, data_type, nulls)
        }
        Dense::Wide(wide) => {
            let wide = filled(wide, nulls.as_ref())?;
            match data_type {
                DataType::Decimal256(..) => {
                    fixed(wide.into_iter().map(i256::from_i128).collect(), data_type, nulls)
                }
                _ => fixed(wide, data_type, nulls),
            }
        }
        Dense::Strings { values, offsets } => strings(values, offsets, data_type, nulls),
        Dense::LargeStrings { values, offsets } => {
            let offsets = offset_buffer(offsets, nulls.as_ref());
            Ok(match data_type {
                DataType::LargeUtf8 => Arc::new(
                    LargeStringArray::try_new(offsets, values.into(), nulls).map_err(|e| no_text(&e))?,
                ),
                _ => Arc::new(LargeBinaryArray::try_new(offsets, values.into(), nulls)?),
            })
        }
        Dense::TextViews(views) => Ok(match nulls {
            Some(nulls) => Arc::new(views.finish_spread(nulls)?),
            None => Arc::new(views.finish(None)?),
        }),
        Dense::ByteViews(views) => Ok(match nulls {
            Some(nulls) => Arc::new(views.finish_spread(nulls)?),
            None => Arc::new(views.finish(None)?),
        }),
    }
}

/// Puts dense values where they belong; where there are no nulls they are there.
fn filled<T: Copy + Default>(dense: Vec<T>, nulls: Option<&NullBuffer>) -> Result<Vec<T>> {
    match nulls {
        None => Ok(dense),
        Some(nulls) => Ok(spread::spread(&dense, &nulls.inner().sliced(), nulls.len())?),
    }
}

/// An array whose buffer is `values`.
fn fixed<T: ArrowNativeType>(
    values: Vec<T>,
    data_type: &DataType,
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef> {
    let rows = values.len();
    number_array(data_type, Buffer::from_vec(values), rows, nulls)
}

/// As [`fixed`], after each value has been made narrower without losing anything.
fn narrowed<T: ArrowNativeType + TryFrom<i32>>(
    words: &[u32],
    data_type: &DataType,
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef> {
    let narrow = |word: &u32| {
        let value = word.cast_signed();
        T::try_from(value).map_err(|_| Error::corrupt(format!("values of {data_type}"), value))
    };
    fixed(words.iter().map(narrow).collect::<Result<Vec<T>>>()?, data_type, nulls)
}

fn words_array(words: Vec<u32>, data_type: &DataType, nulls: Option<NullBuffer>) -> Result<ArrayRef> {
    let signed = || words.iter().map(|word| word.cast_signed());
    match data_type {
        DataType::Int8 => narrowed::<i8>(&words, data_type, nulls),
        DataType::UInt8 => narrowed::<u8>(&words, data_type, nulls),
        DataType::Int16 => narrowed::<i16>(&words, data_type, nulls),
        // The sixteen bits of a half are there as they are.
        DataType::UInt16 | DataType::Float16 => narrowed::<u16>(&words, data_type, nulls),
        DataType::Decimal128(..) => fixed(signed().map(i128::from).collect(), data_type, nulls),
        DataType::Decimal256(..) => {
            fixed(signed().map(|value| i256::from_i128(value.into())).collect(), data_type, nulls)
        }
        _ => fixed(words, data_type, nulls),
    }
}

fn longs_array(longs: Vec<u64>, data_type: &DataType, nulls: Option<NullBuffer>) -> Result<ArrayRef> {
    let signed = || longs.iter().map(|long| long.cast_signed());
    match data_type {
        DataType::Interval(IntervalUnit::DayTime) => {
            let split = |long: &u64| {
                let [a, b, c, d, e, f, g, h] = long.to_le_bytes();
                IntervalDayTime::new(i32::from_le_bytes([a, b, c, d]), i32::from_le_bytes([e, f, g, h]))
            };
            fixed(longs.iter().map(split).collect(), data_type, nulls)
        }
        DataType::Decimal128(..) => fixed(signed().map(i128::from).collect(), data_type, nulls),
        DataType::Decimal256(..) => {
            fixed(signed().map(|value| i256::from_i128(value.into())).collect(), data_type, nulls)
        }
        _ => fixed(longs, data_type, nulls),
    }
}

fn booleans(
    bits: Vec<u8>,
    len: usize,
    data_type: &DataType,
    slots: usize,
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef> {
    if *data_type == DataType::Null {
        if len > 0 {
            return Err(Error::corrupt("nothing but nulls", format!("{len} values")));
        }
        return Ok(Arc::new(NullArray::new(slots)));
    }
    let values = match &nulls {
        None => BooleanBuffer::new(bits.into(), 0, len),
        Some(nulls) => {
            let mut dense = Vec::with_capacity(len);
            if len > 0 {
                levels::unpack(&bits, 1, len, &mut dense)?;
            }
            let slots = filled(dense, Some(nulls))?;
            let mut packed = Vec::with_capacity(slots.len().div_ceil(8));
            levels::pack(&slots, 1, &mut packed)?;
            BooleanBuffer::new(packed.into(), 0, slots.len())
        }
    };
    Ok(Arc::new(BooleanArray::new(values, nulls)))
}

/// Offsets that ascend, because they were counted up, with an empty string for each null.
fn offset_buffer<O: ArrowNativeType + arrow_array::OffsetSizeTrait>(
    offsets: Vec<O>,
    nulls: Option<&NullBuffer>,
) -> OffsetBuffer<O> {
    let offsets = match nulls {
        Some(nulls) => spread_offsets(&offsets, nulls),
        None => offsets,
    };
    OffsetBuffer::new(ScalarBuffer::from(offsets))
}

fn strings(
    values: Vec<u8>,
    offsets: Vec<i32>,
    data_type: &DataType,
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef> {
    match data_type {
        DataType::Utf8 => {
            let offsets = offset_buffer(offsets, nulls.as_ref());
            Ok(Arc::new(StringArray::try_new(offsets, values.into(), nulls).map_err(|e| no_text(&e))?))
        }
        DataType::FixedSizeBinary(width) => fixed_binary(&values, &offsets, *width, nulls),
        DataType::Decimal128(..) => {
            let numbers = each(&values, &offsets, |bytes| big_endian::<16>(bytes).map(i128::from_be_bytes))?;
            fixed(filled(numbers, nulls.as_ref())?, data_type, nulls)
        }
        DataType::Decimal256(..) => {
            let numbers = each(&values, &offsets, |bytes| big_endian::<32>(bytes).map(i256::from_be_bytes))?;
            fixed(filled(numbers, nulls.as_ref())?, data_type, nulls)
        }
        DataType::Interval(IntervalUnit::MonthDayNano) => {
            let intervals = each(&values, &offsets, month_day_nano)?;
            fixed(filled(intervals, nulls.as_ref())?, data_type, nulls)
        }
        _ => {
            let offsets = offset_buffer(offsets, nulls.as_ref());
            Ok(Arc::new(BinaryArray::try_new(offsets, values.into(), nulls)?))
        }
    }
}

fn no_text(error: &arrow_schema::ArrowError) -> Error {
    Error::corrupt("text in UTF-8", error)
}

/// Each string as a value.
fn each<T>(values: &[u8], offsets: &[i32], parse: impl Fn(&[u8]) -> Result<T>) -> Result<Vec<T>> {
    offsets.windows(2).map(|pair| parse(string_of(values, pair))).collect()
}

fn string_of<'a>(values: &'a [u8], pair: &[i32]) -> &'a [u8] {
    let at = |offset: Option<&i32>| offset.map_or(0, |offset| usize::try_from(*offset).unwrap_or_default());
    values.get(at(pair.first())..at(pair.get(1))).unwrap_or_default()
}

/// A big-endian number with its sign carried on to `N` bytes.
fn big_endian<const N: usize>(bytes: &[u8]) -> Result<[u8; N]> {
    let Some(first) = bytes.first() else {
        return Err(Error::corrupt("a decimal of 1 byte or more", "none"));
    };
    let mut wide = if *first >= 0x80 { [0xff; N] } else { [0; N] };
    match wide.len().checked_sub(bytes.len()).and_then(|start| wide.get_mut(start..)) {
        Some(place) => place.copy_from_slice(bytes),
        None => return Err(Error::corrupt(format!("a decimal of at most {N} bytes"), bytes.len())),
    }
    Ok(wide)
}

fn month_day_nano(bytes: &[u8]) -> Result<IntervalMonthDayNano> {
    let parts = bytes.split_first_chunk().and_then(|(months, rest)| {
        let (days, rest) = rest.split_first_chunk()?;
        let (nanoseconds, rest) = rest.split_first_chunk()?;
        rest.is_empty().then_some((months, days, nanoseconds))
    });
    match parts {
        Some((months, days, nanoseconds)) => Ok(IntervalMonthDayNano::new(
            i32::from_le_bytes(*months),
            i32::from_le_bytes(*days),
            i64::from_le_bytes(*nanoseconds),
        )),
        None => Err(Error::corrupt("an interval of 16 bytes", bytes.len())),
    }
}

fn fixed_binary(values: &[u8], offsets: &[i32], width: i32, nulls: Option<NullBuffer>) -> Result<ArrayRef> {
    if let Some(pair) = offsets
        .windows(2)
        .find(|pair| string_of(values, pair).len() as u64 != u64::from(width.cast_unsigned()))
    {
        return Err(Error::corrupt(format!("values of {width} bytes"), string_of(values, pair).len()));
    }
    let slots = nulls.as_ref().map_or(offsets.len().saturating_sub(1), NullBuffer::len);
    let bytes = usize::try_from(width).unwrap_or_default();
    let mut all = vec![0; slots.saturating_mul(bytes)];
    match &nulls {
        None => all.copy_from_slice(values),
        Some(nulls) => {
            let mut rest = values;
            for (start, end) in nulls.valid_slices() {
                let range = start.saturating_mul(bytes)..end.saturating_mul(bytes);
                if let Some((place, (now, later))) =
                    all.get_mut(range.clone()).zip(rest.split_at_checked(range.len()))
                {
                    place.copy_from_slice(now);
                    rest = later;
                }
            }
        }
    }
    Ok(Arc::new(FixedSizeBinaryArray::try_new_with_len(width, all.into(), nulls, slots)?))
}
