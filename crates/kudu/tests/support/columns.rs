//! Arrays of every type the writer takes, in patterns that encodings care about.

use std::sync::Arc;

use arrow_array::builder::{BinaryBuilder, BooleanBuilder, FixedSizeBinaryBuilder};
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, GenericListArray, LargeBinaryArray, make_array};
use arrow_buffer::{Buffer, MutableBuffer, NullBuffer, OffsetBuffer, ScalarBuffer, i256};
use arrow_cast::cast;
use arrow_data::ArrayDataBuilder;
use arrow_schema::{DataType, Field, TimeUnit};

use super::Numbers;

/// How the values of a column follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pattern {
    /// Any bits.
    Random,
    /// Long runs with a few single values between.
    Runs,
    /// Growing slowly.
    Ascending,
    /// A few values in any order.
    Few,
    /// Zero, one, the smallest and the largest.
    Extremes,
    /// One value.
    Constant,
}

pub const PATTERNS: [Pattern; 6] =
    [Pattern::Random, Pattern::Runs, Pattern::Ascending, Pattern::Few, Pattern::Extremes, Pattern::Constant];

/// A column to make.
#[derive(Debug, Clone, Copy)]
pub struct Recipe {
    pub pattern: Pattern,
    pub rows: usize,
    /// Percent of rows that are null.
    pub nulls: u64,
    pub seed: u64,
}

impl Recipe {
    pub fn new(pattern: Pattern, rows: usize, nulls: u64) -> Self {
        Self { pattern, rows, nulls, seed: 7 }
    }

    fn numbers(self) -> Vec<Option<u128>> {
        let mut random = Numbers(self.seed);
        let mut last = u128::from(random.next() >> 40);
        let constant = u128::from(random.next());
        (0..self.rows)
            .map(|_| {
                let bits = u128::from(random.next()) << 64 | u128::from(random.next());
                let value = match self.pattern {
                    Pattern::Random => bits,
                    Pattern::Runs => {
                        if random.below(12) == 0 {
                            last = bits >> random.below(127);
                        }
                        last
                    }
                    Pattern::Ascending => {
                        last += u128::from(random.below(4));
                        last
                    }
                    Pattern::Few => u128::from(random.below(5)) * 1_000_003,
                    Pattern::Extremes => {
                        [0, 1, u128::MAX, 1 << 127, u128::MAX >> 1][random.below(5) as usize]
                    }
                    Pattern::Constant => constant,
                };
                (random.below(100) >= self.nulls).then_some(value)
            })
            .collect()
    }

    /// The column as an array of `data_type`, cut out of a longer one so that it does not begin at its buffers' start.
    pub fn build(self, data_type: &DataType) -> ArrayRef {
        const BEFORE: usize = 3;
        let longer = Self { rows: self.rows + BEFORE + 2, ..self };
        build(data_type, longer).slice(BEFORE, self.rows)
    }
}

fn build(data_type: &DataType, recipe: Recipe) -> ArrayRef {
    match data_type {
        DataType::List(element) => {
            let (offsets, nulls, elements) = list_parts(element.data_type(), recipe);
            let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets));
            Arc::new(GenericListArray::<i32>::new(Arc::clone(element), offsets, elements, nulls))
        }
        DataType::LargeList(element) => {
            let (offsets, nulls, elements) = list_parts(element.data_type(), recipe);
            let offsets: Vec<_> = offsets.into_iter().map(i64::from).collect();
            let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets));
            Arc::new(GenericListArray::<i64>::new(Arc::clone(element), offsets, elements, nulls))
        }
        DataType::Dictionary(_, values) => cast(&build(values, recipe), data_type).unwrap(),
        DataType::Boolean => {
            let mut bits = BooleanBuilder::new();
            recipe.numbers().iter().for_each(|n| bits.append_option(n.map(|n| (n ^ n >> 7) & 1 == 1)));
            Arc::new(bits.finish())
        }
        DataType::FixedSizeBinary(width) => {
            let mut values = FixedSizeBinaryBuilder::new(*width);
            for number in recipe.numbers() {
                match number {
                    Some(number) => values.append_value(&number.to_be_bytes()[..*width as usize]).unwrap(),
                    None => values.append_null(),
                }
            }
            Arc::new(values.finish())
        }
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {
            let words: arrow_array::LargeStringArray =
                recipe.numbers().into_iter().map(|n| n.map(|n| word(n, recipe.pattern))).collect();
            cast(&(Arc::new(words) as ArrayRef), data_type).unwrap()
        }
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => {
            let mut values = BinaryBuilder::new();
            for number in recipe.numbers() {
                values.append_option(number.map(|n| n.to_be_bytes()[..(n % 17) as usize].to_vec()));
            }
            cast(&(Arc::new(values.finish()) as ArrayRef), data_type).unwrap()
        }
        other => fixed(other, &recipe.numbers()),
    }
}

/// A word for a number: often with the beginning of its neighbour, sometimes empty, with NUL and wide characters.
fn word(number: u128, pattern: Pattern) -> String {
    match (pattern, number % 7) {
        (Pattern::Ascending, _) => format!("customer/{number:08}"),
        (_, 0) => String::new(),
        (_, 1) => format!("\0{}", number % 1000),
        (_, 2) => format!("größe-{number:x}"),
        _ => format!("a rather common beginning {}", number % 10_000),
    }
}

fn fixed(data_type: &DataType, numbers: &[Option<u128>]) -> ArrayRef {
    let width = data_type.primitive_width().unwrap();
    let mut bytes = MutableBuffer::new(numbers.len() * width);
    for number in numbers {
        // What stands under a null must not matter.
        let value = within(data_type, number.unwrap_or(0x5555_5555));
        let wide = i256::from_i128(value).to_le_bytes();
        bytes.extend_from_slice(&wide[..width]);
    }
    let nulls = NullBuffer::from_iter(numbers.iter().map(Option::is_some));
    let data = ArrayDataBuilder::new(data_type.clone()).len(numbers.len()).add_buffer(Buffer::from(bytes));
    let nulls = (nulls.null_count() > 0).then_some(nulls);
    make_array(data.nulls(nulls).build().unwrap())
}

/// A number in the range of the type where it has one.
fn within(data_type: &DataType, number: u128) -> i128 {
    let number = number as i128;
    match data_type {
        DataType::Decimal32(precision, _)
        | DataType::Decimal64(precision, _)
        | DataType::Decimal128(precision, _)
        | DataType::Decimal256(precision @ ..=38, _) => number % 10i128.pow(u32::from(*precision)),
        _ => number,
    }
}

/// Offsets, nulls and elements; null cells cover elements too, which Arrow allows and readers must not see.
fn list_parts(element: &DataType, recipe: Recipe) -> (Vec<i32>, Option<NullBuffer>, ArrayRef) {
    let mut random = Numbers(recipe.seed ^ 1);
    let mut offsets = vec![0];
    let mut valid = Vec::new();
    for _ in 0..recipe.rows {
        let length = [0, 0, 1, 2, 3, 9][random.below(6) as usize];
        offsets.push(offsets.last().unwrap() + length);
        valid.push(random.below(100) >= recipe.nulls);
    }
    let elements = Recipe { rows: *offsets.last().unwrap() as usize, nulls: 20, ..recipe };
    let nulls = NullBuffer::from(valid);
    (offsets, (recipe.nulls > 0).then_some(nulls), build(element, elements))
}

/// Every flat Arrow type that has a CFile form.
pub fn flat_types() -> Vec<DataType> {
    use DataType::{
        Binary, BinaryView, Boolean, Date32, Date64, Decimal32, Decimal64, Decimal128, Decimal256, Duration,
        FixedSizeBinary, Float16, Float32, Float64, Int8, Int16, Int32, Int64, LargeBinary, LargeUtf8,
        Time32, Time64, Timestamp, UInt8, UInt16, UInt32, UInt64, Utf8, Utf8View,
    };
    use TimeUnit::{Microsecond, Millisecond, Nanosecond, Second};
    let mut types = vec![
        Boolean,
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
        Date32,
        Date64,
        Time32(Second),
        Time32(Millisecond),
        Time64(Microsecond),
        Time64(Nanosecond),
        Utf8,
        LargeUtf8,
        Utf8View,
        Binary,
        LargeBinary,
        BinaryView,
        FixedSizeBinary(5),
        Decimal32(7, 2),
        Decimal64(9, 3),
        Decimal64(17, 3),
        Decimal128(4, 4),
        Decimal128(15, 2),
        Decimal128(38, 10),
        Decimal256(8, 2),
        Decimal256(30, 2),
        Decimal256(39, 0),
    ];
    for unit in [Second, Millisecond, Microsecond, Nanosecond] {
        types.push(Duration(unit));
        types.push(Timestamp(unit, None));
        types.push(Timestamp(unit, Some("+02:00".into())));
    }
    types
}

/// Dictionaries of types that have a CFile form.
pub fn dictionary_types() -> Vec<DataType> {
    [
        (DataType::Int32, DataType::Utf8),
        (DataType::UInt16, DataType::Utf8),
        (DataType::Int64, DataType::LargeUtf8),
        (DataType::Int32, DataType::Binary),
        (DataType::Int32, DataType::Int64),
    ]
    .into_iter()
    .map(|(key, value)| DataType::Dictionary(Box::new(key), Box::new(value)))
    .collect()
}

/// Lists of types that Kudu has arrays of.
pub fn list_types() -> Vec<DataType> {
    use DataType::{
        Binary, Boolean, Date32, Decimal32, Decimal128, Float32, Float64, Int8, Int16, Int32, Int64, Utf8,
        Utf8View,
    };
    let elements = [
        Boolean,
        Int8,
        Int16,
        Int32,
        Int64,
        Float32,
        Float64,
        Date32,
        Utf8,
        Utf8View,
        Binary,
        Decimal32(9, 2),
        Decimal128(15, 2),
        DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
    ];
    let mut types: Vec<_> =
        elements.iter().map(|e| DataType::List(Arc::new(Field::new("item", e.clone(), true)))).collect();
    types.push(DataType::LargeList(Arc::new(Field::new("element", Int64, true))));
    types
}

/// The rows of `array` in ascending order without repeats or nulls, for a key column.
pub fn ascending(array: &ArrayRef) -> ArrayRef {
    let sorted = arrow_ord::sort::sort(array, None).unwrap();
    let keep: arrow_array::BooleanArray = (0..sorted.len())
        .map(|row| {
            Some(sorted.is_valid(row) && (row == 0 || sorted.slice(row, 1) != sorted.slice(row - 1, 1)))
        })
        .collect();
    arrow_select::filter::filter(&sorted, &keep).unwrap()
}

/// The values of a column of bytes or text as bytes.
pub fn as_bytes(array: &ArrayRef) -> LargeBinaryArray {
    cast(array, &DataType::LargeBinary).unwrap().as_binary::<i64>().clone()
}
