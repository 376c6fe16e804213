//! 0000-00-00, the date of rows that are there to delete others.
//!
//! An update of some columns that deletes a key writes a whole row with the delete sign. Columns that the update does not name, may
//! not be null and have no default get whatever a cell of zero bits is: of a date, a day in no calendar. Nobody sees these rows, so
//! such a cell is no damage; but Arrow has no value for it, and any other date would be a wrong one. It is read as a day before all
//! others, as Doris compares it, and refused where a row with it would be given.

use arrow_array::cast::AsArray;
use arrow_array::types::{ArrowPrimitiveType, Date32Type, TimestampMicrosecondType, TimestampSecondType};
use arrow_array::{Array, BooleanArray};
use arrow_schema::{DataType, TimeUnit};
use pilaster_core::{Error, Result};

use crate::calendar::{ZERO_DAY, ZERO_TIME};

/// Which values stand for it; `None` if none does.
pub(crate) fn find(values: &dyn Array) -> Option<BooleanArray> {
    match values.data_type() {
        DataType::Date32 => equal::<Date32Type>(values, ZERO_DAY),
        DataType::Timestamp(TimeUnit::Second, _) => equal::<TimestampSecondType>(values, ZERO_TIME),
        DataType::Timestamp(TimeUnit::Microsecond, _) => equal::<TimestampMicrosecondType>(values, ZERO_TIME),
        _ => None,
    }
}

fn equal<T: ArrowPrimitiveType>(values: &dyn Array, zero: T::Native) -> Option<BooleanArray> {
    let values = values.as_primitive_opt::<T>()?;
    // What lies under a null may be anything.
    let is_zero = |row: usize| values.is_valid(row) && values.value(row) == zero;
    values.values().contains(&zero).then_some(())?;
    let found: BooleanArray = (0..values.len()).map(|row| Some(is_zero(row))).collect();
    (found.true_count() > 0).then_some(found)
}

/// What is said about a row with it.
pub(crate) fn refuse(of: &str) -> Error {
    Error::unsupported(format!(
        "0000-00-00{of}, a date in no calendar, which Doris writes into rows that only delete others"
    ))
}

/// Refuses it inside other values, where Doris does not write it.
pub(crate) fn refuse_in(values: &dyn Array) -> Result<()> {
    match find(values) {
        Some(_) => Err(refuse(" inside another value")),
        None => Ok(()),
    }
}
