//! Arrays of any type a schema can name.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use arrow_array::builder::{BinaryViewBuilder, StringViewBuilder};
use arrow_array::types::{
    Date32Type, Decimal128Type, Decimal256Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, TimestampMicrosecondType, TimestampSecondType,
};
use arrow_array::{
    Array, ArrayRef, ArrowPrimitiveType, BooleanArray, ListArray, MapArray, PrimitiveArray, StructArray,
};
use arrow_buffer::{NullBuffer, OffsetBuffer, i256};
use arrow_schema::DataType;

use crate::schema::{ROW_STORE_COLUMN, SchemaColumn};
use crate::segment::schema_type;
use pilaster_core::fuzzing::Choices;

/// Days of the years 0 and 9999.
const FIRST_DAY: i64 = -719_528;
const LAST_DAY: i64 = 2_932_896;
const DAY_SECONDS: i64 = 86_400;

/// How far apart the values of a column are.
#[derive(Debug, Clone, Copy)]
struct Spread(u64);

impl Spread {
    fn choose(choices: &mut Choices<'_>) -> Self {
        Self(choices.of(&[1, 2, 10, 300, 1 << 20, u64::MAX]))
    }

    fn next(self, choices: &mut Choices<'_>) -> u64 {
        choices.random() % self.0
    }

    /// A number from `first` to `last`.
    fn between(self, first: i64, last: i64, choices: &mut Choices<'_>) -> i64 {
        let width = (last - first) as u64 + 1;
        first + (self.next(choices).wrapping_mul(0x2545_f491_4f6c_dd1d) % width) as i64
    }
}

fn nulls(column: &SchemaColumn, rows: usize, choices: &mut Choices<'_>) -> Option<NullBuffer> {
    if !column.is_nullable {
        return None;
    }
    let rate = choices.of(&[0, 2, 5, 50, 97, 100]);
    let valid: Vec<bool> = (0..rows).map(|_| choices.random() % 100 >= rate).collect();
    Some(NullBuffer::from(valid)).filter(|nulls| nulls.null_count() > 0)
}

/// An array of the type that reading the column gives.
pub(super) fn array(column: &SchemaColumn, rows: usize, choices: &mut Choices<'_>) -> ArrayRef {
    let arrow = schema_type(column).expect("a type of the list");
    let nulls = nulls(column, rows, choices);
    match &arrow {
        DataType::List(field) => {
            let offsets = offsets(rows, nulls.as_ref(), choices);
            let items = array(&column.children[0], offsets.last().copied().unwrap_or(0) as usize, choices);
            Arc::new(ListArray::new(Arc::clone(field), offsets, items, nulls))
        }
        DataType::Map(field, _) => {
            let offsets = offsets(rows, nulls.as_ref(), choices);
            let count = offsets.last().copied().unwrap_or(0) as usize;
            let never_null = SchemaColumn { is_nullable: false, ..column.children[0].clone() };
            let parts = vec![array(&never_null, count, choices), array(&column.children[1], count, choices)];
            let DataType::Struct(fields) = field.data_type() else { unreachable!("entries are structs") };
            let entries = StructArray::new(fields.clone(), parts, None);
            Arc::new(MapArray::new(Arc::clone(field), offsets, entries, nulls, false))
        }
        DataType::Struct(fields) => {
            let parts = column.children.iter().map(|child| array(child, rows, choices)).collect();
            Arc::new(StructArray::new(fields.clone(), parts, nulls))
        }
        _ => scalar(column, &arrow, rows, nulls, choices),
    }
}

fn offsets(rows: usize, nulls: Option<&NullBuffer>, choices: &mut Choices<'_>) -> OffsetBuffer<i32> {
    let longest = choices.of(&[1, 2, 4, 20]);
    let keeps_null_items = choices.one_in(4);
    OffsetBuffer::from_lengths((0..rows).map(|row| {
        let length = (choices.random() % longest) as usize;
        if nulls.is_some_and(|nulls| nulls.is_null(row)) && !keeps_null_items { 0 } else { length }
    }))
}

fn primitive<T: ArrowPrimitiveType>(
    arrow: &DataType,
    rows: usize,
    nulls: Option<NullBuffer>,
    mut next: impl FnMut() -> T::Native,
) -> ArrayRef {
    let values: Vec<T::Native> = (0..rows).map(|_| next()).collect();
    Arc::new(PrimitiveArray::<T>::new(values.into(), nulls).with_data_type(arrow.clone()))
}

fn scalar(
    column: &SchemaColumn,
    arrow: &DataType,
    rows: usize,
    nulls: Option<NullBuffer>,
    choices: &mut Choices<'_>,
) -> ArrayRef {
    let spread = Spread::choose(choices);
    match arrow {
        DataType::Boolean => {
            let values: Vec<bool> = (0..rows).map(|_| spread.next(choices) & 1 == 1).collect();
            Arc::new(BooleanArray::new(values.into(), nulls))
        }
        DataType::Int8 => primitive::<Int8Type>(arrow, rows, nulls, || spread.next(choices) as i8),
        DataType::Int16 => primitive::<Int16Type>(arrow, rows, nulls, || spread.next(choices) as i16),
        DataType::Int32 => primitive::<Int32Type>(arrow, rows, nulls, || spread.next(choices) as i32),
        DataType::Int64 => primitive::<Int64Type>(arrow, rows, nulls, || spread.next(choices) as i64),
        DataType::Float32 => primitive::<Float32Type>(arrow, rows, nulls, || {
            let bits = spread.next(choices);
            if spread.0 < 300 { bits as f32 / 4.0 } else { f32::from_bits(bits as u32) }
        }),
        DataType::Float64 => primitive::<Float64Type>(arrow, rows, nulls, || {
            let bits = spread.next(choices);
            if spread.0 < 300 { -(bits as f64) } else { f64::from_bits(bits) }
        }),
        DataType::Date32 => primitive::<Date32Type>(arrow, rows, nulls, || {
            spread.between(FIRST_DAY, LAST_DAY, choices) as i32
        }),
        DataType::Timestamp(arrow_schema::TimeUnit::Second, _) => {
            primitive::<TimestampSecondType>(arrow, rows, nulls, || {
                spread.between(FIRST_DAY * DAY_SECONDS, (LAST_DAY + 1) * DAY_SECONDS - 1, choices)
            })
        }
        DataType::Timestamp(..) => primitive::<TimestampMicrosecondType>(arrow, rows, nulls, || {
            let last = (LAST_DAY + 1) * DAY_SECONDS * 1_000_000 - 1;
            spread.between(FIRST_DAY * DAY_SECONDS * 1_000_000, last, choices)
        }),
        DataType::Decimal128(digits, _) => {
            let end = 10i128.pow(u32::from(*digits));
            primitive::<Decimal128Type>(arrow, rows, nulls, || {
                let wide = i128::from(spread.next(choices)) << 64 >> (choices.random() % 70);
                wide % end
            })
        }
        DataType::Decimal256(..) if column.type_name == "LARGEINT" => {
            primitive::<Decimal256Type>(arrow, rows, nulls, || {
                let low = spread.next(choices);
                i256::from_i128(i128::from(low as i64) << (choices.random() % 64) | i128::from(low))
            })
        }
        DataType::Decimal256(..) => primitive::<Decimal256Type>(arrow, rows, nulls, || {
            let high =
                if choices.random().is_multiple_of(4) { i128::from(spread.next(choices) as i32) } else { 0 };
            i256::from_parts(u128::from(spread.next(choices)) << 40, high)
        }),
        DataType::BinaryView => {
            let mut builder = BinaryViewBuilder::new();
            for row in 0..rows {
                if nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
                    builder.append_null();
                    continue;
                }
                let number = spread.next(choices);
                let length = (number % 30) as usize;
                builder.append_value(&number.to_le_bytes().repeat(4)[..length]);
            }
            Arc::new(builder.finish())
        }
        _ => {
            let mut builder = StringViewBuilder::new();
            for row in 0..rows {
                if nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
                    builder.append_null();
                } else {
                    builder.append_value(text(column, spread, choices));
                }
            }
            Arc::new(builder.finish())
        }
    }
}

fn text(column: &SchemaColumn, spread: Spread, choices: &mut Choices<'_>) -> String {
    let number = spread.next(choices);
    match column.type_name.as_str() {
        "IPV4" => Ipv4Addr::from_bits(number as u32).to_string(),
        "IPV6" => Ipv6Addr::from_bits(u128::from(number) << (number % 64)).to_string(),
        "JSONB" | "VARIANT" => json(choices, 3).to_string(),
        "CHAR" => format!("{:x}", number % 0xffff),
        _ => match number % 23 {
            0 => String::new(),
            1 if column.type_name == "STRING" => "long ".repeat(100 + (number % 20) as usize),
            2 => format!("ünïcödé {}", number % 50),
            // Primary keys with such bytes cannot always be told from those that follow.
            3 if !column.is_key => format!("\0{}", number % 7),
            _ => format!("text {}", number % 100_000),
        },
    }
}

/// A document of a few levels.
fn json(choices: &mut Choices<'_>, depth: u32) -> serde_json::Value {
    use serde_json::{Value, json};
    let kinds = if depth == 0 { 8 } else { 12 };
    match choices.random() % kinds {
        0 => Value::Null,
        1 => json!(choices.random().is_multiple_of(2)),
        2 => json!(choices.random() as i64 >> (choices.random() % 60)),
        3 => json!(choices.random()),
        4 => json!((choices.random() % 1000) as f64 / 8.0),
        5 => json!(format!("s\"{}", choices.random() % 9)),
        6 | 7 => json!(choices.random() % 5),
        8 => (0..choices.random() % 3).map(|_| json(choices, depth - 1)).collect(),
        _ => {
            let keys = ["a", "b", "c", "d.e", "", "f"];
            let members = (0..choices.random() % 4).map(|_| {
                let key = keys[(choices.random() % 6) as usize];
                (key.to_string(), json(choices, depth - 1))
            });
            Value::Object(members.collect())
        }
    }
}

/// Whether two columns hold the same; JSON may be written in different ways.
pub(super) fn assert_same(column: &SchemaColumn, found: &ArrayRef, expected: &ArrayRef) {
    let is_json = matches!(column.type_name.as_str(), "JSONB" | "VARIANT");
    if !is_json || column.name == ROW_STORE_COLUMN {
        assert_eq!(found, expected, "column \"{}\" of {}", column.name, column.type_name);
        return;
    }
    use arrow_array::cast::AsArray;
    let (found, expected) = (found.as_string_view(), expected.as_string_view());
    assert_eq!(found.len(), expected.len());
    for row in 0..found.len() {
        assert_eq!(found.is_null(row), expected.is_null(row), "row {row} of \"{}\"", column.name);
        if found.is_valid(row) {
            let parse = |text: &str| serde_json::from_str::<serde_json::Value>(text).expect("JSON");
            let (found, expected) = (parse(found.value(row)), parse(expected.value(row)));
            assert_eq!(found, expected, "row {row} of \"{}\"", column.name);
        }
    }
}
