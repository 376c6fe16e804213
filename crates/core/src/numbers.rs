//! Arrow arrays of numbers over decoded bytes, without a copy.

use std::sync::Arc;

use arrow_array::{ArrayRef, ArrowPrimitiveType, PrimitiveArray, downcast_primitive};
use arrow_buffer::{Buffer, NullBuffer, ScalarBuffer};
use arrow_schema::DataType;

use crate::error::{Error, Result};

/// The first `rows` numbers of `values`, which are as wide as `data_type`'s. Whether decimals keep to their precision is not checked.
///
/// # Errors
/// If there are fewer, they do not lie where such numbers may, or the type is not one of numbers.
pub fn number_array(
    data_type: &DataType,
    values: Buffer,
    rows: usize,
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef> {
    macro_rules! of_type {
        ($type:ty) => {
            primitive::<$type>(data_type, values, rows, nulls)
        };
    }
    downcast_primitive! {
        data_type => (of_type),
        other => Err(Error::internal(format!("numbers as Arrow type {other}")))
    }
}

fn primitive<T: ArrowPrimitiveType>(
    data_type: &DataType,
    values: Buffer,
    rows: usize,
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef> {
    let needed = rows.saturating_mul(size_of::<T::Native>());
    if needed > values.len() {
        let expected = format!("{rows} values of {data_type} in {needed} bytes");
        return Err(Error::corrupt(expected, format!("{} bytes", values.len())));
    }
    // No file can be blamed for where we have put its bytes.
    if !values.as_ptr().cast::<T::Native>().is_aligned() {
        return Err(Error::internal(format!(
            "values of {data_type} in a buffer that is not aligned for them"
        )));
    }
    let array = PrimitiveArray::<T>::try_new(ScalarBuffer::new(values, 0, rows), nulls)?;
    Ok(Arc::new(array.with_data_type(data_type.clone())))
}

#[cfg(test)]
mod tests {
    use arrow_array::cast::AsArray;
    use arrow_array::types::{Decimal64Type, Int32Type};

    use super::*;

    #[test]
    fn numbers_keep_their_type() {
        let decimals = DataType::Decimal64(9, 2);
        let array = number_array(&decimals, Buffer::from_vec(vec![1i64, 2, 3]), 2, None).unwrap();
        assert_eq!(array.data_type(), &decimals);
        assert_eq!(array.as_primitive::<Decimal64Type>().values().as_ref(), [1, 2]);
        let nulls = NullBuffer::from(vec![true, false]);
        let array = number_array(&DataType::Int32, Buffer::from_vec(vec![1, 2]), 2, Some(nulls)).unwrap();
        assert_eq!(array.as_primitive::<Int32Type>().iter().collect::<Vec<_>>(), [Some(1), None]);
    }

    #[test]
    fn bytes_that_are_no_such_numbers_are_refused() {
        let three = || Buffer::from_vec(vec![1i32, 2, 3]);
        let refused = [
            number_array(&DataType::Int32, three(), 4, None),
            number_array(&DataType::Int64, three(), 2, None),
            number_array(&DataType::Int32, three().slice(1), 1, None),
            number_array(&DataType::Int32, three(), 3, Some(NullBuffer::new_null(2))),
            number_array(&DataType::Int32, three(), usize::MAX, None),
            number_array(&DataType::Utf8, three(), 3, None),
        ];
        for result in refused {
            assert!(result.is_err(), "{result:?}");
        }
    }
}
