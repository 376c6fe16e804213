//! Pages of numbers: the narrowest form that gives every value back.
//!
//! The choice is CarbonData's own: plain if narrowing gains nothing, narrowed if the values fit fewer bytes, distances from
//! the maximum if those are narrower still; numbers with few decimals as scaled integers. Forms that CarbonData itself reads
//! back wrong are left out, and a scaled form is taken only if each value comes back to the last bit.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    TimestampMillisecondType,
};
use arrow_array::{Array, ArrayRef};
use pilaster_core::{Error, Result};

use super::super::meta::{Extremes, Store};
use super::super::page::encoding;
use super::super::page::numbers::{as_f64, decimal_width, power_of_ten, store_width, to_f32, truncated};
use super::super::types::CarbonType;
use super::bounds::{Bounds, greatest, least};

/// Decimals that are stored as integers have at most so many digits.
const MAX_INTEGER_PRECISION: u8 = 18;
/// More decimals than this are not looked for.
const MAX_DECIMALS: i32 = 15;

/// The values of a page as they are stored, before compression.
#[derive(Debug)]
pub(super) struct NumberValues {
    pub encoding: i32,
    pub store: Store,
    pub decimals: i32,
    pub extremes: Extremes,
    pub bounds: Bounds,
    pub bytes: Vec<u8>,
}

/// Encodes numbers; nulls are stored as 0.
pub(super) fn encode(carbon_type: CarbonType, is_child: bool, array: &ArrayRef) -> Result<NumberValues> {
    match carbon_type {
        CarbonType::Byte => Ok(integers(carbon_type, is_child, &widened::<Int8Type>(array))),
        CarbonType::Short => Ok(integers(carbon_type, is_child, &widened::<Int16Type>(array))),
        CarbonType::Int => Ok(integers(carbon_type, is_child, &widened::<Int32Type>(array))),
        CarbonType::Long => Ok(integers(carbon_type, is_child, &widened::<Int64Type>(array))),
        CarbonType::Timestamp => {
            Ok(integers(carbon_type, is_child, &widened::<TimestampMillisecondType>(array)))
        }
        CarbonType::Boolean => Ok(integers(carbon_type, is_child, &booleans(array))),
        CarbonType::Float => Ok(floats::<Float32Type>(is_child, &cleaned::<Float32Type>(array))),
        CarbonType::Double => Ok(floats::<Float64Type>(is_child, &cleaned::<Float64Type>(array))),
        CarbonType::Decimal { precision, scale } => decimals(precision, scale, array),
        other => Err(Error::internal(format!("{other:?} is no type of numbers"))),
    }
}

/// The values with 0 for null.
fn cleaned<T: ArrowPrimitiveType>(array: &ArrayRef) -> Vec<T::Native> {
    let array = array.as_primitive::<T>();
    match array.nulls().filter(|nulls| nulls.null_count() > 0) {
        None => array.values().to_vec(),
        Some(nulls) => {
            let values = array.values().iter().zip(nulls.inner());
            values.map(|(value, is_value)| if is_value { *value } else { T::Native::default() }).collect()
        }
    }
}

fn widened<T: ArrowPrimitiveType>(array: &ArrayRef) -> Vec<i64>
where
    i64: From<T::Native>,
{
    let array = array.as_primitive::<T>();
    match array.nulls().filter(|nulls| nulls.null_count() > 0) {
        None => array.values().iter().map(|value| i64::from(*value)).collect(),
        Some(nulls) => {
            let values = array.values().iter().zip(nulls.inner());
            values.map(|(value, is_value)| if is_value { i64::from(*value) } else { 0 }).collect()
        }
    }
}

fn booleans(array: &ArrayRef) -> Vec<i64> {
    let array = array.as_boolean();
    match array.nulls() {
        None => array.values().iter().map(i64::from).collect(),
        Some(nulls) => {
            array.values().iter().zip(nulls.inner()).map(|(value, valid)| i64::from(value & valid)).collect()
        }
    }
}

fn extent(values: &[i64]) -> (i64, i64) {
    let (mut min, mut max) = (i64::MAX, i64::MIN);
    for value in values {
        min = min.min(*value);
        max = max.max(*value);
    }
    if values.is_empty() { (0, 0) } else { (min, max) }
}

/// The narrowest store for one number.
fn fit(value: i64) -> Store {
    const THREE_BYTES: std::ops::RangeInclusive<i64> = -(1 << 23)..=(1 << 23) - 1;
    if i8::try_from(value).is_ok() {
        Store::Byte
    } else if i16::try_from(value).is_ok() {
        Store::Short
    } else if THREE_BYTES.contains(&value) {
        Store::ShortInt
    } else if i32::try_from(value).is_ok() {
        Store::Int
    } else {
        Store::Long
    }
}

fn width(store: Store) -> usize {
    store_width(store).unwrap_or(8)
}

fn wider(a: Store, b: Store) -> Store {
    if width(b) > width(a) { b } else { a }
}

/// The narrowest store for all values, and that for their distances from the greatest.
fn stores(min: i64, max: i64) -> (Store, Store) {
    let plain = wider(fit(min), fit(max));
    let delta = match plain {
        // Distances of such values are read back wrong.
        Store::Long => Store::Long,
        _ => max.checked_sub(min).map_or(Store::Long, fit),
    };
    (plain, delta)
}

fn integers(carbon_type: CarbonType, is_child: bool, values: &[i64]) -> NumberValues {
    let (min, max) = extent(values);
    let (native, extremes) = match carbon_type {
        CarbonType::Byte | CarbonType::Boolean => (Store::Byte, Extremes::Byte { min, max }),
        CarbonType::Short => (Store::Short, Extremes::Short { min, max }),
        CarbonType::Int => (Store::Int, Extremes::Int { min, max }),
        _ => (Store::Long, Extremes::Long { min, max }),
    };
    let (plain, delta) = stores(min, max);
    let (encoding, store) = if !is_child && width(plain).min(width(delta)) == width(native) {
        (encoding::DIRECT_COMPRESS, native)
    } else if width(plain) <= width(delta) {
        (encoding::ADAPTIVE_INTEGRAL, plain)
    } else {
        (encoding::ADAPTIVE_DELTA_INTEGRAL, delta)
    };
    let bytes = match encoding {
        encoding::ADAPTIVE_DELTA_INTEGRAL => {
            put(store, values.len(), values.iter().map(|value| max.wrapping_sub(*value)))
        }
        _ => put(store, values.len(), values.iter().copied()),
    };
    let bounds = Bounds::Integers { min, max };
    NumberValues { encoding, store, decimals: 0, extremes, bounds, bytes }
}

/// The values in the bytes of a store, into which they fit.
#[expect(clippy::cast_possible_truncation, reason = "the store was chosen by the least and greatest value")]
fn put(store: Store, count: usize, values: impl Iterator<Item = i64>) -> Vec<u8> {
    fn fixed<const N: usize>(
        count: usize,
        values: impl Iterator<Item = i64>,
        bytes: impl Fn(i64) -> [u8; N],
    ) -> Vec<u8> {
        let mut out = vec![0; count.saturating_mul(N)];
        let (chunks, _) = out.as_chunks_mut::<N>();
        for (chunk, value) in chunks.iter_mut().zip(values) {
            *chunk = bytes(value);
        }
        out
    }
    match store {
        Store::Byte => fixed(count, values, |value| [value as u8]),
        Store::Short => fixed(count, values, |value| (value as i16).to_le_bytes()),
        Store::ShortInt => fixed(count, values, |value| {
            let [_, high, middle, low] = (value as i32).to_be_bytes();
            [high, middle, low]
        }),
        Store::Int => fixed(count, values, |value| (value as i32).to_le_bytes()),
        _ => fixed(count, values, i64::to_le_bytes),
    }
}

/// FLOAT and DOUBLE.
trait Real: ArrowPrimitiveType {
    const STORE: Store;
    fn wide(value: Self::Native) -> f64;
    /// The value that a reader makes of a double.
    fn narrow(value: f64) -> Self::Native;
    fn bits(value: Self::Native) -> u64;
    fn extremes(min: f64, max: f64) -> Extremes;
    fn plain(values: &[Self::Native]) -> Vec<u8>;
}

impl Real for Float64Type {
    const STORE: Store = Store::Double;

    fn wide(value: f64) -> f64 {
        value
    }

    fn narrow(value: f64) -> f64 {
        value
    }

    fn bits(value: f64) -> u64 {
        value.to_bits()
    }

    fn extremes(min: f64, max: f64) -> Extremes {
        Extremes::Double { min, max }
    }

    fn plain(values: &[f64]) -> Vec<u8> {
        values.iter().flat_map(|value| value.to_le_bytes()).collect()
    }
}

impl Real for Float32Type {
    const STORE: Store = Store::Float;

    fn wide(value: f32) -> f64 {
        f64::from(value)
    }

    fn narrow(value: f64) -> f32 {
        to_f32(value)
    }

    fn bits(value: f32) -> u64 {
        u64::from(value.to_bits())
    }

    fn extremes(min: f64, max: f64) -> Extremes {
        Extremes::Float { min: to_f32(min), max: to_f32(max) }
    }

    fn plain(values: &[f32]) -> Vec<u8> {
        values.iter().flat_map(|value| value.to_le_bytes()).collect()
    }
}

fn floats<T: Real>(is_child: bool, values: &[T::Native]) -> NumberValues {
    let (mut min, mut max) = (f64::NAN, f64::NAN);
    if let Some(first) = values.first() {
        (min, max) = (T::wide(*first), T::wide(*first));
    }
    for value in values {
        let value = T::wide(*value);
        min = least(min, value);
        max = greatest(max, value);
    }
    let scaled = if is_child { None } else { scaled::<T>(values, max) };
    let (encoding, store, decimals, bytes) =
        scaled.unwrap_or_else(|| (encoding::DIRECT_COMPRESS, T::STORE, -1, T::plain(values)));
    let bounds = Bounds::Floats { min, max };
    NumberValues { encoding, store, decimals, extremes: T::extremes(min, max), bounds, bytes }
}

/// The values times ten to the number of their decimals, if that is narrower and every value comes back.
fn scaled<T: Real>(values: &[T::Native], max: f64) -> Option<(i32, Store, i32, Vec<u8>)> {
    let (numbers, decimals) = whole_numbers::<T>(values)?;
    let factor = 10f64.powi(decimals);
    let (low, high) = extent(&numbers);
    let (plain, mut delta) = stores(low, high);
    // The SDK loses digits of FLOAT in distances.
    if T::STORE == Store::Float && decimals > 0 {
        delta = Store::Long;
    }
    if width(plain).min(width(delta)) >= width(T::STORE) {
        return None;
    }
    let is_delta = width(delta) < width(plain);
    let (encoding, store) = match (decimals, is_delta) {
        (0, false) => (encoding::ADAPTIVE_INTEGRAL, plain),
        (0, true) => (encoding::ADAPTIVE_DELTA_INTEGRAL, delta),
        (_, false) => (encoding::ADAPTIVE_FLOATING, plain),
        (_, true) => (encoding::ADAPTIVE_DELTA_FLOATING, delta),
    };
    if !is_delta {
        return Some((encoding, store, decimals, put(store, numbers.len(), numbers.iter().copied())));
    }
    // A reader computes the base from the maximum, and may cut off where rounding would have been right.
    let base = if decimals == 0 { truncated(max) } else { truncated(factor * max) };
    let comes_back = numbers.iter().zip(values).all(|(number, value)| {
        let stored = base.wrapping_sub(*number);
        let again = T::narrow(as_f64(base.wrapping_sub(stored)) / factor);
        width(fit(stored)) <= width(store) && T::bits(again) == T::bits(*value)
    });
    let bytes = || put(store, numbers.len(), numbers.iter().map(|number| base.wrapping_sub(*number)));
    comes_back.then(|| (encoding, store, decimals, bytes()))
}

/// Integers that, divided by a power of ten, are the values to the last bit; and the exponent.
fn whole_numbers<T: Real>(values: &[T::Native]) -> Option<(Vec<i64>, i32)> {
    /// Doubles hold every integer up to this.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let scale = |value: T::Native, decimals: i32| {
        let factor = 10f64.powi(decimals);
        let number = (T::wide(value) * factor).round();
        let whole = truncated(number);
        // Through the integer, which has no -0.
        let again = T::narrow(as_f64(whole) / factor);
        (number.abs() <= EXACT && T::bits(again) == T::bits(value)).then_some(whole)
    };
    let mut decimals = 0;
    for value in values {
        while scale(*value, decimals).is_none() {
            decimals = decimals.saturating_add(1);
            if decimals > MAX_DECIMALS {
                return None;
            }
        }
    }
    let numbers = values.iter().map(|value| scale(*value, decimals)).collect::<Option<Vec<_>>>()?;
    Some((numbers, decimals))
}

fn decimals(precision: u8, scale: u8, array: &ArrayRef) -> Result<NumberValues> {
    let values = cleaned::<Decimal128Type>(array);
    let (mut min, mut max) = (0i128, 0i128);
    if let Some(first) = values.first() {
        (min, max) = (*first, *first);
    }
    for value in &values {
        min = min.min(*value);
        max = max.max(*value);
    }
    let limit = power_of_ten(precision).unsigned_abs();
    if min.unsigned_abs() >= limit || max.unsigned_abs() >= limit {
        return Err(Error::invalid(format!("a decimal of more than {precision} digits")));
    }
    let extremes = Extremes::Decimal { min, max, scale, precision };
    let bounds = Bounds::Decimals { min, max };
    if precision > MAX_INTEGER_PRECISION {
        let width = decimal_width(precision);
        let mut bytes = Vec::with_capacity(values.len().saturating_mul(width));
        for value in &values {
            bytes.extend_from_slice(
                value.to_be_bytes().get(16usize.saturating_sub(width)..).unwrap_or_default(),
            );
        }
        let encoding = encoding::DIRECT_COMPRESS;
        return Ok(NumberValues { encoding, store: Store::Decimal, decimals: 0, extremes, bounds, bytes });
    }
    let narrow = |value: i128| i64::try_from(value).unwrap_or_default();
    let (low, high) = (narrow(min), narrow(max));
    let (plain, delta) = stores(low, high);
    let (encoding, store) = if width(plain) <= width(delta) {
        (encoding::ADAPTIVE_INTEGRAL, plain)
    } else {
        (encoding::ADAPTIVE_DELTA_INTEGRAL, delta)
    };
    let bytes = match encoding {
        encoding::ADAPTIVE_INTEGRAL => put(store, values.len(), values.iter().map(|value| narrow(*value))),
        _ => put(store, values.len(), values.iter().map(|value| high.wrapping_sub(narrow(*value)))),
    };
    Ok(NumberValues { encoding, store, decimals: 0, extremes, bounds, bytes })
}

#[cfg(test)]
mod tests {
    use super::super::super::meta::{EncoderMeta, MetaFields};
    use super::super::super::page::numbers::NumberPage;
    use super::super::columns::meta_type;
    use super::*;
    use arrow_array::{BooleanArray, Decimal128Array, Float32Array, Float64Array, Int32Array, Int64Array};
    use arrow_buffer::NullBuffer;
    use proptest::prelude::*;
    use std::sync::Arc;

    /// Encodes, and decodes with the reader.
    fn round_trip(carbon_type: CarbonType, array: &ArrayRef) -> (i32, Store) {
        for is_child in [true, false] {
            let values = encode(carbon_type, is_child, array).unwrap();
            let meta = MetaFields {
                name: "x",
                schema_type: meta_type(carbon_type),
                column_type: 4,
                store: values.store,
                decimals: values.decimals,
                extremes: values.extremes,
                compressor: "snappy",
            };
            let meta = EncoderMeta::parse(&meta.write().unwrap()).unwrap();
            let page = NumberPage {
                carbon_type,
                encoding: values.encoding,
                meta: &meta,
                bytes: &values.bytes,
                order: None,
                nulls: array.nulls().filter(|nulls| nulls.null_count() > 0).cloned(),
            };
            let decoded = page.decode().unwrap();
            // Compared as text of bits where floats are.
            assert_eq!(decoded.to_data(), array.to_data(), "{:?} {:?}", values.encoding, values.store);
            if !is_child {
                return (values.encoding, values.store);
            }
        }
        unreachable!()
    }

    #[test]
    fn integers_take_the_narrowest_form() {
        let form = |values: Vec<i32>| round_trip(CarbonType::Int, &(Arc::new(Int32Array::from(values)) as _));
        assert_eq!(form(vec![1, 2]), (7, Store::Byte));
        assert_eq!(form(vec![1000, 1001]), (8, Store::Byte));
        assert_eq!(form(vec![1000, -1000]), (7, Store::Short));
        assert_eq!(form(vec![1 << 20, 0]), (7, Store::ShortInt));
        assert_eq!(form(vec![1 << 30, (1 << 30) - 70_000]), (8, Store::ShortInt));
        assert_eq!(form(vec![i32::MIN, i32::MAX]), (6, Store::Int));
        let form =
            |values: Vec<i64>| round_trip(CarbonType::Long, &(Arc::new(Int64Array::from(values)) as _));
        assert_eq!(form(vec![i64::MAX, i64::MAX - 1]), (6, Store::Long));
        assert_eq!(form(vec![i64::MAX, i64::MIN]), (6, Store::Long));
        assert_eq!(form(vec![0, 1 << 31]), (6, Store::Long));
        assert_eq!(form(vec![0, (1 << 31) - 1]), (7, Store::Int));
    }

    #[test]
    fn floating_numbers_are_scaled_if_they_come_back() {
        let form = |values: Vec<f64>| {
            let array: ArrayRef = Arc::new(Float64Array::from(values));
            round_trip(CarbonType::Double, &array)
        };
        assert_eq!(form(vec![1.0, 2.0]), (7, Store::Byte));
        assert_eq!(form(vec![1000.0, 1001.0]), (8, Store::Byte));
        assert_eq!(form(vec![0.25, -1.5]), (11, Store::Short));
        assert_eq!(form(vec![50_000.6, 50_000.1]), (13, Store::Byte));
        assert_eq!(form(vec![0.0, -0.0]), (6, Store::Double));
        assert_eq!(form(vec![f64::NAN, f64::INFINITY]), (6, Store::Double));
        assert_eq!(form(vec![1.0 / 3.0]), (6, Store::Double));
        assert_eq!(form(vec![1e300]), (6, Store::Double));
        let form = |values: Vec<f32>| {
            let array: ArrayRef = Arc::new(Float32Array::from(values));
            round_trip(CarbonType::Float, &array)
        };
        assert_eq!(form(vec![0.1, 12.7]), (11, Store::Byte));
        assert_eq!(form(vec![50_000.6, 50_000.1]), (11, Store::ShortInt));
        assert_eq!(form(vec![1e30]), (6, Store::Float));
    }

    proptest! {
        #[test]
        fn numbers_come_back(
            longs in prop::collection::vec(prop_oneof![any::<i64>(), -300i64..300, (1i64 << 40)..(1 << 40) + 9], 1..50),
            doubles in prop::collection::vec(prop_oneof![any::<f64>(), (-99_999i32..99_999).prop_map(|n| f64::from(n) / 100.0)], 1..50),
            floats in prop::collection::vec(prop_oneof![any::<f32>(), (-9_999i16..9_999).prop_map(|n| f32::from(n) / 10.0)], 1..50),
            unscaled in prop::collection::vec(-(10i128.pow(18) - 1)..10i128.pow(18), 1..50),
            valid in prop::collection::vec(any::<bool>(), 50),
        ) {
            let nulls = |count: usize| Some(NullBuffer::from(valid[..count].to_vec()));
            // What is under a null is 0 once it was stored.
            let array = Int64Array::new(longs.clone().into(), None);
            round_trip(CarbonType::Long, &(Arc::new(array) as ArrayRef));
            let array = Float64Array::new(doubles.clone().into(), None);
            round_trip(CarbonType::Double, &(Arc::new(array) as ArrayRef));
            let array = Float32Array::new(floats.clone().into(), None);
            round_trip(CarbonType::Float, &(Arc::new(array) as ArrayRef));
            for (precision, scale) in [(18, 3), (38, 10), (25, 0)] {
                let array = Decimal128Array::from(unscaled.clone()).with_precision_and_scale(precision, scale as i8).unwrap();
                round_trip(CarbonType::Decimal { precision, scale }, &(Arc::new(array) as ArrayRef));
            }
            let array = BooleanArray::new(valid[..longs.len()].to_vec().into(), nulls(longs.len()));
            let array: BooleanArray = array.iter().map(|value| value.filter(|value| *value)).collect();
            round_trip(CarbonType::Boolean, &(Arc::new(array) as ArrayRef));
        }
    }
}
