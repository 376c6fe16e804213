//! Random Arrow schemas and values of every type the format has a form for.

use std::sync::Arc;

use arrow_array::types::{Int16Type, UInt16Type};
use arrow_array::{
    Array, ArrayRef, BinaryArray, BinaryViewArray, BooleanArray, DictionaryArray, FixedSizeBinaryArray,
    Int16Array, Int32Array, LargeBinaryArray, LargeStringArray, MapArray, NullArray, PrimitiveArray,
    RecordBatch, RunArray, StringArray, StringViewArray, StructArray, UInt64Array, UnionArray, make_array,
};
use arrow_buffer::{ArrowNativeType, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer, i256};
use arrow_data::ArrayData;
use arrow_schema::{
    DataType, Field, FieldRef, Fields, IntervalUnit, Schema, TimeUnit, UnionFields, UnionMode,
};
use arrow_select::take::take;

use super::Numbers;

/// Any table: a schema of a few columns and some rows.
pub fn table(numbers: &mut Numbers) -> RecordBatch {
    let columns = 1 + numbers.below(4);
    let fields: Vec<Field> = (0..columns)
        .map(|column| {
            let field = field(&format!("c{column}"), 3, numbers);
            match numbers.below(4) {
                0 => field.with_metadata([("key".to_string(), format!("é{column}"))].into()),
                _ => field,
            }
        })
        .collect();
    let rows = match numbers.below(4) {
        0 => numbers.below(4) as usize,
        1 => 300 + numbers.below(300) as usize,
        _ => numbers.below(60) as usize,
    };
    let arrays = fields.iter().map(|field| array(field, rows, numbers)).collect();
    let metadata =
        if numbers.below(2) == 0 { [("a".to_string(), "b".to_string())].into() } else { Default::default() };
    RecordBatch::try_new(Arc::new(Schema::new_with_metadata(fields, metadata)), arrays).unwrap()
}

fn field(name: &str, depth: u64, numbers: &mut Numbers) -> Field {
    let data_type = data_type(depth, numbers);
    let is_nullable = match &data_type {
        DataType::Null => true,
        DataType::Union(..) => false,
        DataType::Dictionary(..) | DataType::RunEndEncoded(..) => true,
        _ => numbers.below(2) == 0,
    };
    Field::new(name, data_type, is_nullable)
}

fn data_type(depth: u64, numbers: &mut Numbers) -> DataType {
    let kinds = if depth == 0 { 44 } else { 66 };
    let unit = [TimeUnit::Second, TimeUnit::Millisecond, TimeUnit::Microsecond, TimeUnit::Nanosecond]
        [numbers.below(4) as usize];
    let precision = |most: u64, numbers: &mut Numbers| 1 + numbers.below(most) as u8;
    match numbers.below(kinds) {
        0 => DataType::Null,
        1 => DataType::Boolean,
        2 => DataType::Int8,
        3 => DataType::Int16,
        4..=7 => DataType::Int32,
        8..=10 => DataType::Int64,
        11 => DataType::UInt8,
        12 => DataType::UInt16,
        13 => DataType::UInt32,
        14 => DataType::UInt64,
        15 => DataType::Float16,
        16 => DataType::Float32,
        17 => DataType::Float64,
        18..=20 => DataType::Utf8,
        21 => DataType::LargeUtf8,
        22 => DataType::Utf8View,
        23 => DataType::Binary,
        24 => DataType::LargeBinary,
        25 => DataType::BinaryView,
        26 => DataType::FixedSizeBinary(numbers.below(6) as i32),
        27 => DataType::Date32,
        28 => DataType::Date64,
        29 => DataType::Time32([TimeUnit::Second, TimeUnit::Millisecond][numbers.below(2) as usize]),
        30 => DataType::Time64([TimeUnit::Microsecond, TimeUnit::Nanosecond][numbers.below(2) as usize]),
        31 => DataType::Timestamp(unit, None),
        32 => DataType::Timestamp(unit, Some("Europe/Berlin".into())),
        33 => DataType::Duration(unit),
        34 => DataType::Interval(IntervalUnit::YearMonth),
        35 => DataType::Interval(IntervalUnit::DayTime),
        36 => DataType::Interval(IntervalUnit::MonthDayNano),
        37 => DataType::Decimal128(precision(9, numbers), -2),
        38 => DataType::Decimal128(precision(18, numbers), 0),
        39 | 40 => DataType::Decimal128(precision(38, numbers), 1),
        41 => DataType::Decimal256(precision(76, numbers), -3),
        42 => DataType::Dictionary(Box::new(DataType::UInt16), Box::new(DataType::Utf8)),
        43 => {
            let ends = Field::new("run_ends", DataType::Int16, false);
            DataType::RunEndEncoded(Arc::new(ends), Arc::new(Field::new("values", DataType::Int32, true)))
        }
        44..=49 => {
            let count = 1 + numbers.below(3);
            DataType::Struct((0..count).map(|n| field(&format!("f{n}"), depth - 1, numbers)).collect())
        }
        50..=54 => DataType::List(item(depth, numbers)),
        55 => DataType::LargeList(item(depth, numbers)),
        56 => DataType::ListView(item(depth, numbers)),
        57 => DataType::LargeListView(item(depth, numbers)),
        58 | 59 => DataType::FixedSizeList(item(depth, numbers), numbers.below(4) as i32),
        60 | 61 => {
            let pair = Fields::from(vec![
                Field::new("key", DataType::Utf8, false),
                field("value", depth - 1, numbers),
            ]);
            let entries = Field::new("entries", DataType::Struct(pair), false);
            DataType::Map(Arc::new(entries), numbers.below(2) == 0)
        }
        62 => DataType::Dictionary(Box::new(DataType::Int16), Box::new(DataType::Decimal128(30, 2))),
        _ => {
            let mode = [UnionMode::Dense, UnionMode::Sparse][numbers.below(2) as usize];
            let count = 1 + numbers.below(3);
            let children = (0..count).map(|n| {
                // Sparse children are filled up by Arrow's own kernel, which cannot do it for every type.
                let depth = if mode == UnionMode::Sparse { 0 } else { depth - 1 };
                let mut child = field(&format!("u{n}"), depth, numbers);
                if matches!(
                    child.data_type(),
                    DataType::Union(..) | DataType::RunEndEncoded(..) | DataType::FixedSizeBinary(0)
                ) {
                    child = Field::new(child.name(), DataType::Int8, true);
                }
                (3 * n as i8 + 1, Arc::new(child.with_nullable(true)))
            });
            DataType::Union(children.collect::<UnionFields>(), mode)
        }
    }
}

fn item(depth: u64, numbers: &mut Numbers) -> FieldRef {
    Arc::new(field("item", depth - 1, numbers))
}

fn nulls(field: &Field, length: usize, numbers: &mut Numbers) -> Option<NullBuffer> {
    if !field.is_nullable() || numbers.below(4) == 0 {
        return None;
    }
    let share = numbers.below(5);
    let nulls = NullBuffer::from_iter((0..length).map(|_| numbers.below(4) >= share));
    Some(nulls).filter(|nulls| nulls.null_count() > 0)
}

fn fixed<T: ArrowNativeType>(
    field: &Field,
    length: usize,
    numbers: &mut Numbers,
    value: impl Fn(u64) -> T,
) -> ArrayRef {
    // Small values and repeats too, so that both encodings and long runs come up.
    let bits = numbers.below(64);
    let values: Vec<T> = (0..length).map(|_| value(numbers.next() >> bits)).collect();
    let nulls = nulls(field, length, numbers);
    let data = ArrayData::builder(field.data_type().clone())
        .len(length)
        .add_buffer(Buffer::from_vec(values))
        .nulls(nulls);
    make_array(data.build().unwrap())
}

fn words(field: &Field, length: usize, numbers: &mut Numbers) -> Vec<Option<String>> {
    let nulls = nulls(field, length, numbers);
    let long = numbers.below(3) == 0;
    (0..length)
        .map(|row| {
            let count = if long { numbers.below(90) } else { numbers.below(5) };
            let word: String =
                (0..count).map(|_| ['a', 'b', 'é', '漢', '\u{ffff}'][numbers.below(5) as usize]).collect();
            nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row)).then_some(word)
        })
        .collect()
}

fn bytes(field: &Field, length: usize, numbers: &mut Numbers) -> Vec<Option<Vec<u8>>> {
    words(field, length, numbers)
        .into_iter()
        .map(|word| {
            word.map(|word| word.bytes().map(|byte| byte ^ (numbers.below(2) * 0x7f) as u8).collect())
        })
        .collect()
}

/// Lengths of lists, as offsets.
fn offsets(length: usize, nulls: Option<&NullBuffer>, numbers: &mut Numbers) -> Vec<usize> {
    let mut offsets = vec![0];
    for row in 0..length {
        let is_null = nulls.is_some_and(|nulls| nulls.is_null(row));
        // A null list may have elements, which nobody sees.
        let count = if is_null && numbers.below(4) > 0 { 0 } else { numbers.below(4) };
        offsets.push(offsets[row] + count as usize);
    }
    offsets
}

/// Values of a field.
pub fn array(field: &Field, length: usize, numbers: &mut Numbers) -> ArrayRef {
    match field.data_type() {
        DataType::Null => Arc::new(NullArray::new(length)),
        DataType::Boolean => {
            let nulls = nulls(field, length, numbers);
            let values = (0..length).map(|_| numbers.below(2) == 0).collect();
            Arc::new(BooleanArray::new(values, nulls))
        }
        DataType::Int8 | DataType::UInt8 => fixed(field, length, numbers, |n| n as i8),
        DataType::Int16 | DataType::UInt16 | DataType::Float16 => fixed(field, length, numbers, |n| n as i16),
        DataType::Int32
        | DataType::UInt32
        | DataType::Float32
        | DataType::Date32
        | DataType::Time32(_)
        | DataType::Interval(IntervalUnit::YearMonth) => fixed(field, length, numbers, |n| n as i32),
        DataType::Interval(IntervalUnit::MonthDayNano) => fixed(field, length, numbers, |n| {
            arrow_buffer::IntervalMonthDayNano::new(n as i32, (n >> 8) as i32, n as i64)
        }),
        DataType::Interval(IntervalUnit::DayTime) => {
            fixed(field, length, numbers, |n| arrow_buffer::IntervalDayTime::new(n as i32, (n >> 13) as i32))
        }
        DataType::Decimal128(precision, _) => {
            let most = 10i128.pow(u32::from(*precision));
            fixed(field, length, numbers, |n| (i128::from(n as i64) * 987_654_321_987_654_321) % most)
        }
        DataType::Decimal256(precision, _) => {
            let most = i256::from_i128(10).wrapping_pow(u32::from(*precision));
            fixed(field, length, numbers, |n| {
                let wide = i256::from_i128(i128::from(n as i64) * 987_654_321_987_654_321);
                wide.wrapping_mul(wide)
                    .wrapping_mul(i256::from_i128(if n % 2 == 0 { 1 } else { -1 }))
                    .wrapping_rem(most)
            })
        }
        DataType::Utf8 => Arc::new(StringArray::from(words(field, length, numbers))),
        DataType::LargeUtf8 => Arc::new(LargeStringArray::from(words(field, length, numbers))),
        DataType::Utf8View => Arc::new(StringViewArray::from_iter(words(field, length, numbers))),
        DataType::Binary => Arc::new(BinaryArray::from_iter(bytes(field, length, numbers))),
        DataType::LargeBinary => Arc::new(LargeBinaryArray::from_iter(bytes(field, length, numbers))),
        DataType::BinaryView => Arc::new(BinaryViewArray::from_iter(bytes(field, length, numbers))),
        DataType::FixedSizeBinary(width) => {
            let nulls = nulls(field, length, numbers);
            let values: Vec<u8> = (0..length * *width as usize).map(|_| numbers.next() as u8).collect();
            Arc::new(FixedSizeBinaryArray::try_new_with_len(*width, values.into(), nulls, length).unwrap())
        }
        DataType::Dictionary(key, values) => {
            let nulls = nulls(field, length, numbers);
            let words = array(&Field::new("", values.as_ref().clone(), false), 5, numbers);
            let keys =
                |row: usize, n: u64| nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row)).then_some(n);
            let keys: Vec<Option<u64>> = (0..length).map(|row| keys(row, numbers.below(5))).collect();
            if **key == DataType::UInt16 {
                let keys: PrimitiveArray<UInt16Type> =
                    keys.into_iter().map(|key| key.map(|key| key as u16)).collect();
                Arc::new(DictionaryArray::try_new(keys, words).unwrap())
            } else {
                let keys: PrimitiveArray<Int16Type> =
                    keys.into_iter().map(|key| key.map(|key| key as i16)).collect();
                Arc::new(DictionaryArray::try_new(keys, words).unwrap())
            }
        }
        DataType::RunEndEncoded(..) => {
            let mut ends = Vec::new();
            while ends.last().copied().unwrap_or(0) < length {
                let next = ends.last().copied().unwrap_or(0) + 1 + numbers.below(4) as usize;
                ends.push(next.min(length));
            }
            let start = numbers.next() as i32;
            // Neighbouring runs differ, as those that are read back will.
            let values = Int32Array::from_iter(
                (0..ends.len() as i32).map(|n| (n % 3 != 2).then_some(start.wrapping_add(n))),
            );
            let ends = Int16Array::from_iter_values(ends.into_iter().map(|end| end as i16));
            Arc::new(RunArray::<Int16Type>::try_new(&ends, &values).unwrap())
        }
        DataType::Struct(fields) => {
            let nulls = nulls(field, length, numbers);
            let children = fields.iter().map(|child| array(child, length, numbers)).collect();
            built(DataType::Struct(fields.clone()), length, vec![], children, nulls)
        }
        DataType::List(item) => {
            let nulls = nulls(field, length, numbers);
            let offsets: Vec<i32> =
                offsets(length, nulls.as_ref(), numbers).iter().map(|n| *n as i32).collect();
            let values = array(item, *offsets.last().unwrap() as usize, numbers);
            built(
                DataType::List(Arc::clone(item)),
                length,
                vec![Buffer::from_vec(offsets)],
                vec![values],
                nulls,
            )
        }
        DataType::LargeList(item) => {
            let nulls = nulls(field, length, numbers);
            let offsets: Vec<i64> =
                offsets(length, nulls.as_ref(), numbers).iter().map(|n| *n as i64).collect();
            let values = array(item, *offsets.last().unwrap() as usize, numbers);
            built(
                DataType::LargeList(Arc::clone(item)),
                length,
                vec![Buffer::from_vec(offsets)],
                vec![values],
                nulls,
            )
        }
        DataType::ListView(item) => list_view::<i32>(item, field, length, numbers),
        DataType::LargeListView(item) => list_view::<i64>(item, field, length, numbers),
        DataType::FixedSizeList(item, size) => {
            let nulls = nulls(field, length, numbers);
            let values = array(item, length * *size as usize, numbers);
            built(DataType::FixedSizeList(Arc::clone(item), *size), length, vec![], vec![values], nulls)
        }
        DataType::Map(entries, is_sorted) => {
            let nulls = nulls(field, length, numbers);
            let offsets: Vec<i32> =
                offsets(length, nulls.as_ref(), numbers).iter().map(|n| *n as i32).collect();
            let pairs = array(entries, *offsets.last().unwrap() as usize, numbers);
            let pairs = StructArray::from(pairs.to_data());
            let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets));
            Arc::new(MapArray::try_new(Arc::clone(entries), offsets, pairs, nulls, *is_sorted).unwrap())
        }
        DataType::Union(fields, mode) => union(fields, *mode, length, numbers),
        _ => fixed(field, length, numbers, |n| n as i64),
    }
}

/// An array of its parts: Arrow's constructors take the nulls of a union's children for nulls of the union.
fn built(
    data_type: DataType,
    length: usize,
    buffers: Vec<Buffer>,
    children: Vec<ArrayRef>,
    nulls: Option<NullBuffer>,
) -> ArrayRef {
    let children = children.iter().map(|child| child.to_data()).collect();
    let data = ArrayData::builder(data_type).len(length).buffers(buffers).child_data(children).nulls(nulls);
    make_array(data.build().unwrap())
}

fn list_view<O: arrow_array::OffsetSizeTrait>(
    item: &FieldRef,
    field: &Field,
    length: usize,
    numbers: &mut Numbers,
) -> ArrayRef {
    let nulls = nulls(field, length, numbers);
    let all = 20usize;
    let values = array(item, all, numbers);
    // Views overlap and come in any order.
    let starts: Vec<usize> = (0..length).map(|_| numbers.below(all as u64) as usize).collect();
    let sizes: Vec<usize> =
        starts.iter().map(|start| numbers.below(4).min((all - start) as u64) as usize).collect();
    let convert =
        |values: Vec<usize>| Buffer::from_vec(values.into_iter().map(O::usize_as).collect::<Vec<O>>());
    built(field.data_type().clone(), length, vec![convert(starts), convert(sizes)], vec![values], nulls)
}

fn union(fields: &UnionFields, mode: UnionMode, length: usize, numbers: &mut Numbers) -> ArrayRef {
    let ids: Vec<i8> = fields.iter().map(|(id, _)| id).collect();
    let chosen: Vec<i8> = (0..length).map(|_| ids[numbers.below(ids.len() as u64) as usize]).collect();
    let mut offsets = vec![0i32; length];
    let mut children = Vec::new();
    for (id, field) in fields.iter() {
        let mut count = 0;
        for (row, own) in chosen.iter().enumerate() {
            if *own == id {
                offsets[row] = count;
                count += 1;
            }
        }
        let values = array(field, count as usize, numbers);
        children.push(match mode {
            UnionMode::Dense => values,
            UnionMode::Sparse => {
                let picks =
                    chosen.iter().zip(&offsets).map(|(own, offset)| (*own == id).then_some(*offset as u64));
                take(&values, &picks.collect::<UInt64Array>(), None).unwrap()
            }
        });
    }
    let offsets = (mode == UnionMode::Dense).then(|| offsets.into());
    Arc::new(UnionArray::try_new(fields.clone(), chosen.into(), offsets, children).unwrap())
}
