//! One column of a batch as text.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Decimal32Type, Decimal64Type, Decimal128Type, Decimal256Type, Float16Type, Float32Type, Float64Type,
    Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, downcast_dictionary_array, downcast_run_array};
use arrow_schema::{DataType, TimeUnit};
use pilaster_core::{Error, Result};

use super::calendar::Unit;
use super::nested::{DictionaryEncoder, ListEncoder, MapEncoder, RunEncoder, StructEncoder};
use super::scalar::{
    BinaryEncoder, DecimalEncoder, FloatEncoder, IntegerEncoder, TextEncoder, Time, TimeEncoder,
};

/// Types nested deeper than this are refused.
const DEPTH: u32 = 64;

/// Appends values of one kind of array. Nulls are dealt with by [`ValueEncoder`].
pub(super) trait Encode {
    /// Appends the value at `row`, which is not null, as JSON.
    fn encode(&self, row: usize, out: &mut Vec<u8>);

    /// Whether the JSON text is a string whose quotes say nothing: no character in it needs an escape.
    fn is_plain_string(&self) -> bool {
        false
    }

    /// Appends the text itself of a string column, without quotes and escapes; `false` if this is none.
    fn append_raw(&self, _row: usize, _out: &mut Vec<u8>) -> bool {
        false
    }
}

/// Appends the values of one column as text: built once per column and batch, it allocates nothing per value.
pub struct ValueEncoder<'a> {
    nulls: Option<arrow_buffer::NullBuffer>,
    encoder: Box<dyn Encode + 'a>,
}

impl<'a> ValueEncoder<'a> {
    /// An encoder of `array`.
    ///
    /// # Errors
    /// [`pilaster_core::ErrorKind::Unsupported`] if the type has no text (a union).
    pub fn try_new(array: &'a dyn Array) -> Result<Self> {
        Self::at_depth(array, DEPTH)
    }

    pub(super) fn at_depth(array: &'a dyn Array, depth: u32) -> Result<Self> {
        let Some(depth) = depth.checked_sub(1) else {
            return Err(Error::unsupported("text of a type nested this deeply"));
        };
        Ok(Self { nulls: array.logical_nulls(), encoder: encoder(array, depth)? })
    }

    /// Whether the value at `row` is null.
    #[inline]
    pub fn is_null(&self, row: usize) -> bool {
        self.nulls.as_ref().is_some_and(|nulls| row >= nulls.len() || nulls.is_null(row))
    }

    /// Appends the value at `row` as JSON.
    #[inline]
    pub fn append_json(&self, row: usize, out: &mut Vec<u8>) {
        if self.is_null(row) {
            out.extend_from_slice(b"null");
        } else {
            self.encoder.encode(row, out);
        }
    }

    pub(super) fn is_plain_string(&self) -> bool {
        self.encoder.is_plain_string()
    }

    pub(super) fn append_raw(&self, row: usize, out: &mut Vec<u8>) -> bool {
        self.encoder.append_raw(row, out)
    }

    /// Appends the value at `row` as JSON has it, but strings without quotes and escapes, and nothing for null.
    pub fn append_text(&self, row: usize, out: &mut Vec<u8>) {
        if self.is_null(row) {
            return;
        }
        if self.encoder.append_raw(row, out) {
            return;
        }
        let start = out.len();
        self.encoder.encode(row, out);
        if self.encoder.is_plain_string() && out.get(start) == Some(&b'"') {
            out.remove(start);
            out.pop();
        }
    }
}

impl std::fmt::Debug for ValueEncoder<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ValueEncoder").finish_non_exhaustive()
    }
}

/// The value of an array of type null: never asked for, since every row is null.
struct NullEncoder;

impl Encode for NullEncoder {
    fn encode(&self, _row: usize, out: &mut Vec<u8>) {
        out.extend_from_slice(b"null");
    }
}

fn encoder<'a>(array: &'a dyn Array, depth: u32) -> Result<Box<dyn Encode + 'a>> {
    macro_rules! integers {
        ($type:ty) => {
            Box::new(IntegerEncoder::<$type>(array.as_primitive()))
        };
    }
    macro_rules! decimals {
        ($type:ty, $scale:expr) => {
            Box::new(DecimalEncoder::<$type>::new(array.as_primitive(), *$scale))
        };
    }
    Ok(match array.data_type() {
        DataType::Null => Box::new(NullEncoder),
        DataType::Boolean => Box::new(super::scalar::BoolEncoder(array.as_boolean())),
        DataType::Int8 => integers!(Int8Type),
        DataType::Int16 => integers!(Int16Type),
        DataType::Int32 => integers!(Int32Type),
        DataType::Int64 => integers!(Int64Type),
        DataType::UInt8 => integers!(UInt8Type),
        DataType::UInt16 => integers!(UInt16Type),
        DataType::UInt32 => integers!(UInt32Type),
        DataType::UInt64 => integers!(UInt64Type),
        DataType::Float16 => Box::new(FloatEncoder::<Float16Type>(array.as_primitive())),
        DataType::Float32 => Box::new(FloatEncoder::<Float32Type>(array.as_primitive())),
        DataType::Float64 => Box::new(FloatEncoder::<Float64Type>(array.as_primitive())),
        DataType::Decimal32(_, scale) => decimals!(Decimal32Type, scale),
        DataType::Decimal64(_, scale) => decimals!(Decimal64Type, scale),
        DataType::Decimal128(_, scale) => decimals!(Decimal128Type, scale),
        DataType::Decimal256(_, scale) => decimals!(Decimal256Type, scale),
        DataType::Utf8 => Box::new(TextEncoder(array.as_string::<i32>())),
        DataType::LargeUtf8 => Box::new(TextEncoder(array.as_string::<i64>())),
        DataType::Utf8View => Box::new(TextEncoder(array.as_string_view())),
        DataType::Binary => Box::new(BinaryEncoder(array.as_binary::<i32>())),
        DataType::LargeBinary => Box::new(BinaryEncoder(array.as_binary::<i64>())),
        DataType::BinaryView => Box::new(BinaryEncoder(array.as_binary_view())),
        DataType::FixedSizeBinary(_) => Box::new(BinaryEncoder(array.as_fixed_size_binary())),
        DataType::Date32
        | DataType::Date64
        | DataType::Time32(_)
        | DataType::Time64(_)
        | DataType::Duration(_) => Box::new(TimeEncoder::try_new(array, time_of(array.data_type()))?),
        DataType::Timestamp(unit, zone) => {
            Box::new(TimeEncoder::try_new(array, Time::Timestamp(Unit::of(unit), zone.is_some()))?)
        }
        DataType::Interval(_) => Box::new(TimeEncoder::try_new(array, Time::Interval)?),
        DataType::List(_) => Box::new(ListEncoder::offsets(array.as_list::<i32>(), depth)?),
        DataType::LargeList(_) => Box::new(ListEncoder::offsets(array.as_list::<i64>(), depth)?),
        DataType::ListView(_) => Box::new(ListEncoder::views(array.as_list_view::<i32>(), depth)?),
        DataType::LargeListView(_) => Box::new(ListEncoder::views(array.as_list_view::<i64>(), depth)?),
        DataType::FixedSizeList(_, _) => Box::new(ListEncoder::fixed(array.as_fixed_size_list(), depth)?),
        DataType::Struct(_) => Box::new(StructEncoder::try_new(array.as_struct(), depth)?),
        DataType::Map(_, _) => Box::new(MapEncoder::try_new(array.as_map(), depth)?),
        DataType::Dictionary(_, _) => downcast_dictionary_array!(
            array => Box::new(DictionaryEncoder::try_new(array, depth)?),
            other => return Err(no_text(other))
        ),
        DataType::RunEndEncoded(_, _) => downcast_run_array!(
            array => Box::new(RunEncoder::try_new(array, depth)?),
            other => return Err(no_text(other))
        ),
        other => return Err(no_text(other)),
    })
}

fn no_text(data_type: &DataType) -> Error {
    Error::unsupported(format!("text of type {data_type}"))
}

fn time_of(data_type: &DataType) -> Time {
    match data_type {
        DataType::Date32 => Time::Days,
        DataType::Date64 => Time::Milliseconds,
        DataType::Time32(unit) | DataType::Time64(unit) => Time::Clock(Unit::of(unit)),
        DataType::Duration(unit) => Time::Duration(Unit::of(unit)),
        _ => Time::Clock(Unit::of(&TimeUnit::Microsecond)),
    }
}
