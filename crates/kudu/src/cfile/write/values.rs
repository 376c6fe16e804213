//! Arrow arrays in the form a CFile stores: little-endian numbers, bits, or bytes.

use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal32Type, Decimal64Type, Decimal128Type, Decimal256Type};
use arrow_array::{
    Array, ArrayAccessor, ArrayRef, BinaryArray, BinaryViewArray, FixedSizeBinaryArray, LargeBinaryArray,
};
use arrow_buffer::{BooleanBuffer, Buffer};
use arrow_cast::cast;
use arrow_schema::DataType;
use pilaster_core::{Error, Result};

use crate::cfile::types::Physical;

/// The values of an array, those under nulls included.
#[derive(Debug)]
pub(crate) enum Stored {
    Fixed { width: usize, bytes: Buffer },
    Bits(BooleanBuffer),
    Bytes(Bytes),
}

/// Values of any length, in whichever Arrow layout they came.
#[derive(Debug)]
pub(crate) enum Bytes {
    Short(BinaryArray),
    Large(LargeBinaryArray),
    View(BinaryViewArray),
    Fixed(FixedSizeBinaryArray),
}

/// Runs `$body` with `$values` bound to the array of either layout: the choice is made once, not per value.
macro_rules! with_bytes {
    ($bytes:expr, $values:ident => $body:expr) => {
        match $bytes {
            Bytes::Short($values) => $body,
            Bytes::Large($values) => $body,
            Bytes::View($values) => $body,
            Bytes::Fixed($values) => $body,
        }
    };
}
pub(super) use with_bytes;

impl Stored {
    /// `array` as values of `physical`.
    pub fn new(array: &ArrayRef, physical: Physical) -> Result<Self> {
        if let DataType::Dictionary(_, values) = array.data_type() {
            return Self::new(&cast(array, values)?, physical);
        }
        match physical {
            Physical::Bool => match array.as_boolean_opt() {
                Some(bits) => Ok(Self::Bits(bits.values().clone())),
                None => Err(unexpected(array)),
            },
            Physical::Fixed(width) => Ok(Self::Fixed { width, bytes: fixed_bytes(array, width)? }),
            Physical::Binary => Ok(Self::Bytes(match array.data_type() {
                DataType::Utf8 => Bytes::Short(array.as_string::<i32>().clone().into()),
                DataType::LargeUtf8 => Bytes::Large(array.as_string::<i64>().clone().into()),
                DataType::Utf8View => Bytes::View(array.as_string_view().clone().to_binary_view()),
                DataType::Binary => Bytes::Short(array.as_binary::<i32>().clone()),
                DataType::LargeBinary => Bytes::Large(array.as_binary::<i64>().clone()),
                DataType::BinaryView => Bytes::View(array.as_binary_view().clone()),
                DataType::FixedSizeBinary(_) => Bytes::Fixed(array.as_fixed_size_binary().clone()),
                _ => return Err(unexpected(array)),
            })),
        }
    }

    /// One value as it is stored; bits have no such form.
    pub fn value(&self, index: usize) -> Option<&[u8]> {
        match self {
            Self::Bits(_) => None,
            Self::Fixed { width, bytes } => {
                let start = index.checked_mul(*width)?;
                bytes.as_slice().get(start..start.checked_add(*width)?)
            }
            Self::Bytes(bytes) => {
                with_bytes!(bytes, values => (index < values.len()).then(|| values.value(index)))
            }
        }
    }

    /// Whether each value is greater than the one before, by key order.
    pub fn ascends(&self, array: &ArrayRef) -> Result<bool> {
        let Some(pairs) = array.len().checked_sub(1) else { return Ok(true) };
        if let Self::Bytes(bytes) = self {
            return Ok(with_bytes!(bytes, values => bytes_ascend(values)));
        }
        let (before, after) = (array.slice(0, pairs), array.slice(1, pairs));
        let ascending = arrow_ord::cmp::lt(&before, &after)?;
        Ok(ascending.true_count() == ascending.len())
    }
}

fn bytes_ascend<'a>(values: impl ArrayAccessor<Item = &'a [u8]>) -> bool {
    (1..values.len()).zip(0..).all(|(index, before)| values.value(before) < values.value(index))
}

fn unexpected(array: &ArrayRef) -> Error {
    Error::invalid(format!("an array of Arrow type {} where another was announced", array.data_type()))
}

/// The bytes of fixed-width values, narrowed to `width` where Arrow has wider ones.
fn fixed_bytes(array: &ArrayRef, width: usize) -> Result<Buffer> {
    let have = array.data_type().primitive_width().ok_or_else(|| unexpected(array))?;
    if have == width {
        let data = array.to_data();
        let buffer = data.buffers().first().ok_or_else(|| unexpected(array))?;
        return Ok(
            buffer.slice_with_length(data.offset().saturating_mul(width), array.len().saturating_mul(width))
        );
    }
    match array.data_type() {
        DataType::Decimal32(..) => {
            resized(array, width, array.as_primitive::<Decimal32Type>().values(), |v| Some(i128::from(*v)))
        }
        DataType::Decimal64(..) => {
            resized(array, width, array.as_primitive::<Decimal64Type>().values(), |v| Some(i128::from(*v)))
        }
        DataType::Decimal128(..) => {
            resized(array, width, array.as_primitive::<Decimal128Type>().values(), |v| Some(*v))
        }
        DataType::Decimal256(..) => {
            resized(array, width, array.as_primitive::<Decimal256Type>().values(), |v| v.to_i128())
        }
        _ => Err(unexpected(array)),
    }
}

fn resized<T>(
    array: &ArrayRef,
    width: usize,
    values: &[T],
    wide: impl Fn(&T) -> Option<i128>,
) -> Result<Buffer> {
    // What stands under a null is nobody's value and may be anything.
    let nulls = array.nulls();
    let is_null = |row: usize| nulls.is_some_and(|nulls| nulls.is_null(row));
    let cells =
        values.iter().enumerate().map(|(row, value)| if is_null(row) { Some(0) } else { wide(value) });
    let too_large =
        || Error::invalid(format!("a {} value that does not fit in {width} bytes", array.data_type()));
    match width {
        4 => Ok(Buffer::from_vec(
            cells.map(|v| i32::try_from(v?).ok()).collect::<Option<Vec<_>>>().ok_or_else(too_large)?,
        )),
        8 => Ok(Buffer::from_vec(
            cells.map(|v| i64::try_from(v?).ok()).collect::<Option<Vec<_>>>().ok_or_else(too_large)?,
        )),
        16 => Ok(Buffer::from_vec(cells.collect::<Option<Vec<_>>>().ok_or_else(too_large)?)),
        _ => Err(unexpected(array)),
    }
}
