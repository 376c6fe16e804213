//! A predicate on rows.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type};
use arrow_array::{Array, ArrayRef, BooleanArray, Datum, RecordBatch};
use arrow_cast::{CastOptions, cast, cast_with_options};
use arrow_ord::cmp;
use arrow_schema::{ArrowError, DataType};

use super::bind::{Bound, BoundPredicate};
use super::{CompareOp, Literal};
use crate::error::{Error, Result};

impl BoundPredicate {
    /// For each row of `batch` (of the schema this was bound to): true, false, or null where it is unknown.
    ///
    /// A dictionary column is compared once per entry, not once per row.
    ///
    /// # Errors
    /// If an Arrow kernel refuses the types.
    pub fn evaluate(&self, batch: &RecordBatch) -> Result<BooleanArray> {
        evaluate(&self.0, batch)
    }

    /// As a condition that is asked of every batch.
    pub fn into_condition(self) -> crate::stream::Condition {
        Box::new(move |batch| self.evaluate(batch))
    }
}

fn evaluate(bound: &Bound, batch: &RecordBatch) -> Result<BooleanArray> {
    match bound {
        Bound::Compare { column, op, value, cast } => {
            compare(column_of(batch, *column)?, *op, value, cast.as_ref())
        }
        Bound::IsNull { column, negated } => {
            let column = column_of(batch, *column)?;
            Ok(if *negated { not_null(column) } else { is_null(column) })
        }
        Bound::Among { is_negated, members, .. } => {
            let column = column_of(batch, members.column)?;
            by_word(column, members.values.data_type(), |column| members.find(column, *is_negated))
        }
        Bound::And(parts) => fold(parts, batch, true, arrow_arith::boolean::and_kleene),
        Bound::Or(parts) => fold(parts, batch, false, arrow_arith::boolean::or_kleene),
    }
}

fn column_of(batch: &RecordBatch, column: usize) -> Result<&ArrayRef> {
    batch
        .columns()
        .get(column)
        .ok_or_else(|| Error::invalid(format!("a batch without column number {column}")))
}

fn fold(
    parts: &[Bound],
    batch: &RecordBatch,
    start: bool,
    join: fn(&BooleanArray, &BooleanArray) -> Result<BooleanArray, ArrowError>,
) -> Result<BooleanArray> {
    let mut result: Option<BooleanArray> = None;
    for part in parts {
        let next = evaluate(part, batch)?;
        result = Some(match result {
            Some(before) => join(&before, &next)?,
            None => next,
        });
    }
    Ok(result.unwrap_or_else(|| BooleanArray::from(vec![start; batch.num_rows()])))
}

pub(super) fn compare(
    column: &ArrayRef,
    op: CompareOp,
    value: &Literal,
    to: Option<&DataType>,
) -> Result<BooleanArray> {
    by_word(column, to.unwrap_or(value.array().data_type()), |column| {
        let cast_column;
        let column = match to {
            Some(data_type) => {
                // A value that does not fit must not quietly become unknown.
                let strict = CastOptions { safe: false, ..CastOptions::default() };
                cast_column = cast_with_options(column, data_type, &strict)?;
                &cast_column
            }
            None => column,
        };
        Ok(op.compare(column, value)?)
    })
}

/// What `compare` says of each row; of a dictionary it is asked about the entries, which it gets in the type `wanted`.
fn by_word(
    column: &ArrayRef,
    wanted: &DataType,
    compare: impl Fn(&ArrayRef) -> Result<BooleanArray>,
) -> Result<BooleanArray> {
    let Some(dictionary) = column.as_any_dictionary_opt() else {
        return compare(with_one_nan(column).as_ref().unwrap_or(column));
    };
    // Words may be views where the column is nominally plain text.
    let words = compare(&cast(dictionary.values(), wanted)?)?;
    let rows = arrow_select::take::take(&words, dictionary.keys(), None)?;
    Ok(rows.as_boolean().clone())
}

/// Floats of which one is a NaN below all numbers, as Arrow orders those of negative sign, with all NaN above them.
fn with_one_nan(column: &ArrayRef) -> Option<ArrayRef> {
    if let Some(doubles) = column.as_primitive_opt::<Float64Type>() {
        let is_low = |value: &f64| value.is_nan() && value.is_sign_negative();
        let plain = |value: f64| if value.is_nan() { f64::NAN } else { value };
        doubles.values().iter().any(is_low).then(|| Arc::new(doubles.unary::<_, Float64Type>(plain)) as _)
    } else {
        let singles = column.as_primitive_opt::<Float32Type>()?;
        let is_low = |value: &f32| value.is_nan() && value.is_sign_negative();
        let plain = |value: f32| if value.is_nan() { f32::NAN } else { value };
        singles.values().iter().any(is_low).then(|| Arc::new(singles.unary::<_, Float32Type>(plain)) as _)
    }
}

impl CompareOp {
    /// Each value of `array` compared with `value`, which is of the same type.
    ///
    /// # Errors
    /// If the types cannot be compared so.
    pub fn compare(self, array: &dyn Datum, value: &Literal) -> Result<BooleanArray, ArrowError> {
        let kernel = match self {
            Self::Eq => cmp::eq,
            Self::NotEq => cmp::neq,
            Self::Lt => cmp::lt,
            Self::LtEq => cmp::lt_eq,
            Self::Gt => cmp::gt,
            Self::GtEq => cmp::gt_eq,
            Self::Like => arrow_string::like::like,
            Self::NotLike => arrow_string::like::nlike,
        };
        kernel(array, value)
    }
}

fn is_null(column: &ArrayRef) -> BooleanArray {
    match column.logical_nulls() {
        Some(nulls) => BooleanArray::new(!nulls.inner(), None),
        None => BooleanArray::from(vec![false; column.len()]),
    }
}

fn not_null(column: &ArrayRef) -> BooleanArray {
    match column.logical_nulls() {
        Some(nulls) => BooleanArray::new(nulls.inner().clone(), None),
        None => BooleanArray::from(vec![true; column.len()]),
    }
}
