//! Columns of every Arrow type, for tests of what becomes of them.

use std::sync::Arc;

use arrow_array::builder::{FixedSizeBinaryBuilder, Int32Builder, MapBuilder, StringBuilder};
use arrow_array::types::{Int8Type, Int32Type, UInt64Type};
use arrow_array::{
    Array, ArrayRef, DictionaryArray, FixedSizeListArray, Int8Array, Int32Array, IntervalDayTimeArray,
    IntervalMonthDayNanoArray, IntervalYearMonthArray, ListArray, NullArray, RunArray, StructArray,
    UInt64Array,
};
use arrow_buffer::{IntervalDayTime, IntervalMonthDayNano, NullBuffer, OffsetBuffer};
use arrow_cast::cast;
use arrow_schema::{DataType, Field, TimeUnit};

/// Rows of each column.
pub const ROWS: usize = 6;

/// 1, null, 2, 1, 3, 2.
fn numbers() -> ArrayRef {
    Arc::new(Int32Array::from(vec![Some(1), None, Some(2), Some(1), Some(3), Some(2)]))
}

/// The numbers as another type.
fn number(data_type: &DataType) -> ArrayRef {
    let numbers = numbers();
    let steps: &[DataType] = match data_type {
        DataType::Timestamp(..) | DataType::Duration(_) | DataType::Time64(_) | DataType::Date64 => {
            &[DataType::Int64]
        }
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => {
            &[DataType::Utf8, DataType::Binary]
        }
        _ => &[],
    };
    let through = steps.iter().fold(numbers, |array, step| as_type(&array, step));
    as_type(&through, data_type)
}

fn as_type(array: &ArrayRef, data_type: &DataType) -> ArrayRef {
    cast(array, data_type).unwrap_or_else(|error| panic!("{data_type}: {error}"))
}

/// A column of [`ROWS`] rows of every flat type that is a number in some way: 1, null, 2, 1, 3, 2.
pub fn number_columns() -> Vec<ArrayRef> {
    use DataType::{
        Decimal32, Decimal64, Decimal128, Decimal256, Float16, Float32, Float64, Int8, Int16, Int32, Int64,
        UInt8, UInt16, UInt32, UInt64,
    };
    let mut columns: Vec<_> = [
        Int8,
        Int16,
        Int32,
        Int64,
        UInt8,
        UInt16,
        UInt32,
        UInt64,
        Float16,
        Float32,
        Float64,
        Decimal32(7, 2),
        Decimal64(12, 2),
        Decimal128(20, 3),
        Decimal256(40, 1),
    ]
    .iter()
    .map(number)
    .collect();
    for values in [Int64, Decimal32(5, 1), Decimal64(15, 2), Decimal128(20, 3), Float64] {
        columns.push(dictionary(&number(&values)));
    }
    columns.push(runs(&number(&Decimal64(15, 2))));
    columns.push(runs(&number(&Int64)));
    columns
}

/// A column of [`ROWS`] rows of every type of text: "1", null, "2", "1", "3", "2".
pub fn text_columns() -> Vec<ArrayRef> {
    use DataType::{LargeUtf8, Utf8, Utf8View};
    let mut columns: Vec<_> = [Utf8, LargeUtf8, Utf8View].iter().map(number).collect();
    let wide: ArrayRef = Arc::new(DictionaryArray::<UInt64Type>::new(
        UInt64Array::from(vec![Some(0), None, Some(1), Some(0), Some(2), Some(1)]),
        as_type(&(Arc::new(Int32Array::from(vec![1, 2, 3])) as ArrayRef), &Utf8),
    ));
    columns.extend([Utf8, LargeUtf8, Utf8View].map(|values| dictionary(&number(&values))));
    columns.push(wide);
    columns.push(runs(&number(&Utf8)));
    columns
}

/// A column of [`ROWS`] rows of every other type.
pub fn other_columns() -> Vec<ArrayRef> {
    use DataType::{
        Binary, BinaryView, Boolean, Date32, Date64, Duration, LargeBinary, Time32, Time64, Timestamp, Utf8,
    };
    use TimeUnit::{Microsecond, Millisecond, Nanosecond, Second};
    let mut columns: Vec<_> = [
        Boolean,
        Binary,
        LargeBinary,
        BinaryView,
        Date32,
        Date64,
        Time32(Second),
        Time32(Millisecond),
        Time64(Microsecond),
        Time64(Nanosecond),
    ]
    .iter()
    .map(number)
    .collect();
    for unit in [Second, Millisecond, Microsecond, Nanosecond] {
        columns.push(number(&Timestamp(unit, None)));
        columns.push(number(&Timestamp(unit, Some("UTC".into()))));
        columns.push(number(&Duration(unit)));
    }
    let mut fixed = FixedSizeBinaryBuilder::new(2);
    for byte in [Some(1u8), None, Some(2), Some(1), Some(3), Some(2)] {
        match byte {
            Some(byte) => fixed.append_value([byte, 0]).unwrap_or_else(|error| panic!("{error}")),
            None => fixed.append_null(),
        }
    }
    let fixed: ArrayRef = Arc::new(fixed.finish());
    columns.extend([dictionary(&fixed), fixed, dictionary(&number(&Binary))]);
    columns.extend([dictionary(&number(&Date32)), dictionary(&number(&Timestamp(Microsecond, None)))]);
    columns.push(Arc::new(IntervalYearMonthArray::from(vec![
        Some(1),
        None,
        Some(2),
        Some(1),
        Some(3),
        Some(2),
    ])));
    let of = |month: Option<i32>| month.map(|month| IntervalDayTime::new(month, 0));
    let months = [Some(1), None, Some(2), Some(1), Some(3), Some(2)];
    columns.push(Arc::new(IntervalDayTimeArray::from_iter(months.map(of))));
    let of = |month: Option<i32>| month.map(|month| IntervalMonthDayNano::new(month, 0, 0));
    columns.push(Arc::new(IntervalMonthDayNanoArray::from_iter(months.map(of))));
    columns.push(Arc::new(NullArray::new(ROWS)));
    for values in [number(&Utf8), number(&DataType::Int32), number(&DataType::Decimal64(15, 2))] {
        columns.extend(nested(&values));
    }
    let mut map = MapBuilder::new(None, StringBuilder::new(), Int32Builder::new());
    for number in [Some(1), None, Some(2), Some(1), Some(3), Some(2)] {
        map.keys().append_value("k");
        map.values().append_option(number);
        map.append(true).unwrap_or_else(|error| panic!("{error}"));
    }
    columns.push(Arc::new(map.finish()));
    columns
}

/// Lists and structs of one value each.
fn nested(values: &ArrayRef) -> Vec<ArrayRef> {
    let item = Arc::new(Field::new("item", values.data_type().clone(), true));
    let lengths = OffsetBuffer::from_lengths([1; ROWS]);
    let nulls = Some(NullBuffer::from(vec![true, true, true, false, true, true]));
    let lists: ArrayRef = Arc::new(ListArray::new(Arc::clone(&item), lengths, Arc::clone(values), nulls));
    let large = as_type(&lists, &DataType::LargeList(Arc::clone(&item)));
    let views = as_type(&lists, &DataType::ListView(Arc::clone(&item)));
    let fixed: ArrayRef = Arc::new(FixedSizeListArray::new(item, 1, Arc::clone(values), None));
    let field = Arc::new(Field::new("a", values.data_type().clone(), true));
    let parts: ArrayRef = Arc::new(StructArray::from(vec![(field, Arc::clone(values))]));
    vec![lists, large, views, fixed, parts]
}

/// The values as a dictionary with short keys.
fn dictionary(values: &ArrayRef) -> ArrayRef {
    let keys = (0i8..).zip(0..values.len()).map(|(key, row)| values.is_valid(row).then_some(key));
    let keys: Int8Array = keys.collect();
    Arc::new(DictionaryArray::<Int8Type>::new(keys, Arc::clone(values)))
}

/// The values as runs of one.
fn runs(values: &ArrayRef) -> ArrayRef {
    let ends: Int32Array = (1i32..).take(values.len()).map(Some).collect();
    Arc::new(RunArray::<Int32Type>::try_new(&ends, values).unwrap_or_else(|error| panic!("{error}")))
}
