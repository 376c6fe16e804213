//! Random schemas, rows and options that the format can hold without loss.

use std::sync::Arc;

use arrow_array::{
    ArrayRef, BinaryViewArray, BooleanArray, Date32Array, Decimal128Array, Float32Array, Float64Array,
    Int8Array, Int16Array, Int32Array, Int64Array, ListArray, MapArray, RecordBatch, StringViewArray,
    StructArray, TimestampMillisecondArray,
};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::{DataType, Field, Fields, Schema, TimeUnit};
use pilaster_carbondata::file::{CarbonWriterOptions, Compressor};

use super::Numbers;

/// Every type without children.
pub fn flat_types() -> Vec<DataType> {
    vec![
        DataType::Utf8View,
        DataType::Int16,
        DataType::Int32,
        DataType::Int64,
        DataType::Float64,
        DataType::Decimal128(5, 2),
        DataType::Decimal128(18, 4),
        DataType::Decimal128(19, 0),
        DataType::Decimal128(38, 10),
        timestamp(),
        DataType::Date32,
        DataType::Boolean,
        DataType::Float32,
        DataType::Int8,
        DataType::BinaryView,
    ]
}

pub fn timestamp() -> DataType {
    DataType::Timestamp(TimeUnit::Millisecond, Some("UTC".into()))
}

pub fn list(item: DataType) -> DataType {
    DataType::List(Arc::new(Field::new("item", item, true)))
}

pub fn structure(fields: Vec<DataType>) -> DataType {
    let field = |(place, data_type)| Field::new(format!("f{place}"), data_type, true);
    DataType::Struct(fields.into_iter().enumerate().map(field).collect())
}

pub fn map(key: DataType, value: DataType) -> DataType {
    let fields = Fields::from(vec![Field::new("key", key, false), Field::new("value", value, true)]);
    DataType::Map(Arc::new(Field::new("entries", DataType::Struct(fields), false)), false)
}

/// A type with at most so many levels below it.
pub fn any_type(numbers: &mut Numbers, depth: u64) -> DataType {
    let flat = flat_types();
    match numbers.below(if depth == 0 { 1 } else { 5 }) {
        1 => list(any_type(numbers, depth - 1)),
        2 => structure((0..=numbers.below(3)).map(|_| any_type(numbers, depth - 1)).collect()),
        3 => {
            let keys = [DataType::Utf8View, DataType::Int32, DataType::Date32, DataType::Int64];
            let key = keys[numbers.below(4) as usize].clone();
            map(key, any_type(numbers, depth - 1))
        }
        _ => flat[numbers.below(flat.len() as u64) as usize].clone(),
    }
}

/// What values look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pattern {
    Few,
    Small,
    Any,
    /// Far from 0 and near to each other.
    Near,
}

pub const PATTERNS: [Pattern; 4] = [Pattern::Few, Pattern::Small, Pattern::Any, Pattern::Near];

fn integer(numbers: &mut Numbers, pattern: Pattern, min: i64, max: i64) -> i64 {
    let value = match pattern {
        Pattern::Few => numbers.below(4) as i64 * 37,
        Pattern::Small => numbers.below(400) as i64 - 200,
        Pattern::Near => max / 3 + numbers.below(90) as i64,
        Pattern::Any => match numbers.below(12) {
            0 => min,
            1 => max,
            _ => numbers.next() as i64 >> numbers.below(64),
        },
    };
    value.clamp(min, max)
}

fn text(numbers: &mut Numbers, pattern: Pattern) -> String {
    let length = match pattern {
        Pattern::Few => return format!("w{}", numbers.below(5)),
        Pattern::Small => numbers.below(4),
        Pattern::Near => 30,
        Pattern::Any if numbers.below(400) == 0 => 300,
        Pattern::Any => numbers.below(20),
    };
    let letters = ['a', 'b', 'Z', '0', ' ', '@', 'é', '€', '漢', '\u{1f600}', '\u{1}'];
    (0..length).map(|_| letters[numbers.below(letters.len() as u64) as usize]).collect()
}

fn optional<T>(valid: &[bool], mut value: impl FnMut() -> T) -> Vec<Option<T>> {
    valid.iter().map(|valid| valid.then(&mut value)).collect()
}

/// An array with values where `valid` says so.
pub fn column(numbers: &mut Numbers, data_type: &DataType, pattern: Pattern, valid: &[bool]) -> ArrayRef {
    let n = numbers;
    let real = |n: &mut Numbers| match pattern {
        Pattern::Few => n.below(3) as f64,
        Pattern::Small => (n.below(20_000) as f64 - 10_000.0) / 100.0,
        Pattern::Near => 1_000_000.0 + n.below(50) as f64 / 10.0,
        Pattern::Any => {
            let any = f64::from_bits(n.next());
            if any.is_nan() { -0.0 } else { any }
        }
    };
    match data_type {
        DataType::Utf8View => Arc::new(StringViewArray::from_iter(optional(valid, || text(n, pattern)))),
        DataType::BinaryView => {
            // Nobody can tell empty bytes from null.
            let mut bytes = || [b"x", text(n, pattern).as_bytes()].concat();
            let values = optional(valid, &mut bytes);
            Arc::new(BinaryViewArray::from_iter(values.iter().map(Option::as_deref)))
        }
        DataType::Boolean => Arc::new(BooleanArray::from(optional(valid, || n.below(2) == 1))),
        DataType::Int8 => Arc::new(Int8Array::from(optional(valid, || integer(n, pattern, -128, 127) as i8))),
        DataType::Int16 => {
            let value = || integer(n, pattern, i16::MIN.into(), i16::MAX.into()) as i16;
            Arc::new(Int16Array::from(optional(valid, value)))
        }
        DataType::Int32 => {
            let value = || integer(n, pattern, i32::MIN.into(), i32::MAX.into()) as i32;
            Arc::new(Int32Array::from(optional(valid, value)))
        }
        DataType::Int64 => {
            Arc::new(Int64Array::from(optional(valid, || integer(n, pattern, i64::MIN, i64::MAX))))
        }
        DataType::Float64 => Arc::new(Float64Array::from(optional(valid, || real(n)))),
        DataType::Float32 => Arc::new(Float32Array::from(optional(valid, || {
            let value = real(n) as f32;
            if value.is_nan() { 0.5 } else { value }
        }))),
        DataType::Date32 => {
            Arc::new(Date32Array::from(optional(valid, || integer(n, pattern, -100_000, 2_900_000) as i32)))
        }
        DataType::Timestamp(..) => {
            // The years 1621 to 9,800, which everyone prints alike.
            let value = || integer(n, pattern, -11_000_000_000_000, 247_000_000_000_000);
            Arc::new(TimestampMillisecondArray::from(optional(valid, value)).with_timezone("UTC"))
        }
        DataType::Decimal128(precision, scale) => {
            let limit = 10i128.pow(u32::from(*precision)) - 1;
            let values = optional(valid, || {
                let wide = i128::from(integer(n, pattern, i64::MIN, i64::MAX));
                let wide = if pattern == Pattern::Any { wide << n.below(60) } else { wide };
                wide.clamp(-limit, limit)
            });
            Arc::new(Decimal128Array::from(values).with_precision_and_scale(*precision, *scale).unwrap())
        }
        DataType::List(field) => {
            let (offsets, inner) = elements(n, valid);
            let items = column(n, field.data_type(), pattern, &inner);
            Arc::new(ListArray::new(field.clone(), offsets, items, nulls(valid)))
        }
        DataType::Map(entries, _) => {
            let DataType::Struct(fields) = entries.data_type() else { panic!() };
            let (offsets, inner) = elements(n, valid);
            let keys = keys(n, fields[0].data_type(), &offsets);
            let values = column(n, fields[1].data_type(), pattern, &inner);
            let pairs = StructArray::new(fields.clone(), vec![keys, values], None);
            Arc::new(MapArray::new(entries.clone(), offsets, pairs, nulls(valid), false))
        }
        DataType::Struct(fields) => {
            let columns = fields.iter().enumerate().map(|(place, field)| {
                // A struct of nothing but nulls is null.
                let inner: Vec<_> =
                    valid.iter().map(|valid| *valid && (place == 0 || n.below(5) > 0)).collect();
                column(n, field.data_type(), pattern, &inner)
            });
            let columns = columns.collect();
            Arc::new(StructArray::new(fields.clone(), columns, nulls(valid)))
        }
        other => panic!("{other}"),
    }
}

/// Keys that differ inside of each map.
fn keys(numbers: &mut Numbers, data_type: &DataType, offsets: &OffsetBuffer<i32>) -> ArrayRef {
    let in_row = offsets.lengths().flat_map(|length| 0..length as i64);
    let values: Vec<_> = in_row.map(|place| place * 1000 + numbers.below(1000) as i64).collect();
    match data_type {
        DataType::Utf8View => {
            Arc::new(StringViewArray::from_iter_values(values.iter().map(|value| format!("k{value}"))))
        }
        DataType::Int32 => Arc::new(Int32Array::from_iter_values(values.iter().map(|value| *value as i32))),
        DataType::Date32 => Arc::new(Date32Array::from_iter_values(values.iter().map(|value| *value as i32))),
        DataType::Int64 => Arc::new(Int64Array::from_iter_values(values)),
        other => panic!("{other}"),
    }
}

fn nulls(valid: &[bool]) -> Option<NullBuffer> {
    Some(NullBuffer::from(valid.to_vec()))
}

/// Where the elements of arrays end, and which of them are values; one alone is, because an array of one null is null.
fn elements(numbers: &mut Numbers, valid: &[bool]) -> (OffsetBuffer<i32>, Vec<bool>) {
    let mut inner = Vec::new();
    let mut lengths = Vec::new();
    for is_valid in valid {
        let length = if *is_valid { numbers.below(4) as usize } else { 0 };
        lengths.push(length);
        inner.extend((0..length).map(|_| length == 1 || numbers.below(5) > 0));
    }
    (OffsetBuffer::from_lengths(lengths), inner)
}

/// Rows of some schema.
pub fn batch(numbers: &mut Numbers, types: &[DataType], rows: usize) -> RecordBatch {
    let mut fields = Vec::new();
    let mut columns = Vec::new();
    for (place, data_type) in types.iter().enumerate() {
        let pattern = PATTERNS[numbers.below(4) as usize];
        let percent = [0, 10, 50, 100][[0, 0, 0, 1, 1, 1, 2, 3][numbers.below(8) as usize]];
        let valid: Vec<_> = (0..rows).map(|_| numbers.below(100) >= percent).collect();
        fields.push(Field::new(format!("c{place}"), data_type.clone(), true));
        columns.push(column(numbers, data_type, pattern, &valid));
    }
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).unwrap()
}

/// Options for rows of `batch`: small pages and blocklets, any sort columns.
pub fn options(numbers: &mut Numbers, batch: &RecordBatch) -> CarbonWriterOptions {
    let is_sortable = |data_type: &DataType| {
        matches!(
            data_type,
            DataType::Utf8View
                | DataType::Boolean
                | DataType::Int16
                | DataType::Int32
                | DataType::Int64
                | DataType::Date32
                | DataType::Timestamp(..)
        )
    };
    let schema = batch.schema();
    let mut sorted: Vec<_> = schema
        .fields()
        .iter()
        .filter(|field| is_sortable(field.data_type()) && numbers.below(3) == 0)
        .map(|field| field.name().clone())
        .collect();
    if numbers.below(2) == 0 {
        sorted.reverse();
    }
    let can_index = |name: &&String| {
        matches!(schema.field_with_name(name).unwrap().data_type(), DataType::Utf8View | DataType::Date32)
    };
    let indexed: Vec<_> =
        sorted.iter().filter(can_index).filter(|_| numbers.below(2) == 0).cloned().collect();
    CarbonWriterOptions::default()
        .with_compressor(Compressor::ALL[numbers.below(3) as usize])
        .with_page_rows(1 + numbers.below(300) as usize)
        .with_page_bytes([1 << 30, 2000][numbers.below(2) as usize])
        .with_blocklet_bytes([1 << 30, 5000, 1][numbers.below(3) as usize])
        .with_local_dictionary(numbers.below(4) > 0)
        .with_local_dictionary_threshold([10_000, 20][numbers.below(2) as usize])
        .with_sort_columns(sorted)
        .with_inverted_index(indexed)
}
