//! A predicate resolved against a schema.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type, Int64Type};
use arrow_array::{Array, ArrayRef, Float32Array, Float64Array};
use arrow_cast::{CastOptions, can_cast_types, cast, cast_with_options};
use arrow_schema::{DECIMAL256_MAX_PRECISION, DataType, Schema, TimeUnit};

use super::members::Members;
use super::{CompareOp, Literal, Predicate, like};
use crate::dataset::column_index;
use crate::error::{Error, Result};

/// A predicate whose columns are positions in a schema, whose literals fit the columns' types, and in which `NOT` has
/// been pushed down to the comparisons.
#[derive(Debug, Clone)]
pub struct BoundPredicate(pub(super) Bound);

/// See [`BoundPredicate`].
#[derive(Debug, Clone)]
pub(super) enum Bound {
    /// Compare column `column` with `value`, after casting the column to `value`'s type if `cast` says so.
    Compare {
        column: usize,
        op: CompareOp,
        value: Literal,
        cast: Option<DataType>,
    },
    /// True exactly where the column is null (or is not).
    IsNull {
        column: usize,
        negated: bool,
    },
    And(Vec<Bound>),
    Or(Vec<Bound>),
    /// One of `parts` holds, or all of them if they are `NOT`: the comparisons of a column with each of many values.
    Among {
        parts: Vec<Bound>,
        is_negated: bool,
        members: Members,
    },
}

impl Predicate {
    /// Resolves columns and types.
    ///
    /// # Errors
    /// [`crate::ErrorKind::InvalidInput`] if a column is not in `schema` or a literal cannot be compared with it.
    pub fn bind(&self, schema: &Schema) -> Result<BoundPredicate> {
        Ok(BoundPredicate(bind(self, schema, false)?))
    }
}

fn bind(predicate: &Predicate, schema: &Schema, negated: bool) -> Result<Bound> {
    let all = |parts: &[Predicate]| {
        parts.iter().map(|part| bind(part, schema, negated)).collect::<Result<Vec<_>>>()
    };
    Ok(match predicate {
        Predicate::Compare { column, op, value } => {
            bind_compare(schema, column, if negated { op.negated() } else { *op }, value)?
        }
        Predicate::In { column, values } => {
            let op = if negated { CompareOp::NotEq } else { CompareOp::Eq };
            let parts: Vec<_> =
                values.iter().map(|value| bind_compare(schema, column, op, value)).collect::<Result<_>>()?;
            match Members::new(&parts, op) {
                Some(members) => Bound::Among { parts, is_negated: negated, members },
                None if negated => Bound::And(parts),
                None => Bound::Or(parts),
            }
        }
        Predicate::IsNull { column } => Bound::IsNull { column: column_index(schema, column)?, negated },
        Predicate::IsNotNull { column } => {
            Bound::IsNull { column: column_index(schema, column)?, negated: !negated }
        }
        Predicate::And(parts) if negated => Bound::Or(all(parts)?),
        Predicate::And(parts) => Bound::And(all(parts)?),
        Predicate::Or(parts) if negated => Bound::And(all(parts)?),
        Predicate::Or(parts) => Bound::Or(all(parts)?),
        Predicate::Not(inner) => bind(inner, schema, !negated)?,
    })
}

/// Brings literal and column to one type: the column's if the literal fits it exactly, else the literal's.
fn bind_compare(schema: &Schema, name: &str, op: CompareOp, value: &Literal) -> Result<Bound> {
    let column = column_index(schema, name)?;
    let column_type = match schema.field(column).data_type() {
        DataType::Dictionary(_, values) => values,
        other => other,
    };
    let value = &spelled_out(value, column_type);
    let literal_type = value.array().data_type().clone();
    if matches!(op, CompareOp::Like | CompareOp::NotLike) && !(is_text(column_type) && is_text(&literal_type))
    {
        return Err(Error::invalid(format!(
            "{op} compares text with a pattern: column \"{name}\" is of type {column_type}, the pattern of {literal_type}"
        )));
    }
    if let Some(value) = cast_exactly(value, column_type) {
        return Ok(compare(column, op, value, None));
    }
    if column_type.is_integer() && literal_type.is_integer() && !value.is_null() {
        return Ok(beyond_range(column, op, value));
    }
    if let Some((neighbour, is_above)) = neighbour(value, column_type) {
        return Ok(beside(column, op, neighbour, is_above));
    }
    // Every 32-bit integer and float is a double; comparing as doubles keeps infinities.
    if column_type.is_floating()
        && let Some(value) = cast_exactly(value, &DataType::Float64)
    {
        return Ok(compare(column, op, value, Some(DataType::Float64)));
    }
    if can_cast_types(column_type, &literal_type) && !is_text(&literal_type) {
        return Ok(compare(column, op, value.clone(), Some(literal_type)));
    }
    Err(Error::invalid(format!(
        "column \"{name}\" of type {column_type} cannot be compared with {value} ({literal_type})"
    )))
}

/// The literal with all of its digits, where the column's type may have fewer and casting either to the other would round it.
fn spelled_out(value: &Literal, column_type: &DataType) -> Literal {
    let exact_type = match column_type {
        DataType::Decimal32(_, scale)
        | DataType::Decimal64(_, scale)
        | DataType::Decimal128(_, scale)
        | DataType::Decimal256(_, scale) => decimal_places(value)
            .map(|places| DataType::Decimal256(DECIMAL256_MAX_PRECISION, places.max(*scale))),
        DataType::Timestamp(_, zone) if is_text(value.array().data_type()) => {
            Some(DataType::Timestamp(TimeUnit::Nanosecond, zone.clone()))
        }
        _ => None,
    };
    exact_type.and_then(|exact| cast_exactly(value, &exact)).unwrap_or_else(|| value.clone())
}

/// A value of the column's type next to a literal that has more digits, and whether it lies above.
fn neighbour(value: &Literal, column_type: &DataType) -> Option<(Literal, bool)> {
    let is_finer = match (value.array().data_type(), column_type) {
        (DataType::Timestamp(..), DataType::Timestamp(..)) => true,
        (literal_type, column_type) => literal_type.is_decimal() && column_type.is_decimal(),
    };
    if !is_finer || value.is_null() {
        return None;
    }
    let strict = CastOptions { safe: false, ..CastOptions::default() };
    let there = cast_with_options(value.array(), column_type, &strict).ok()?;
    let back = cast_with_options(&there, value.array().data_type(), &strict).ok()?;
    let is_above = CompareOp::Gt.compare(&back, value).ok()?.value(0);
    Some((Literal(there), is_above))
}

/// A comparison with what lies right below or above `neighbour` and is no value of the column's type.
fn beside(column: usize, op: CompareOp, neighbour: Literal, is_above: bool) -> Bound {
    let op = match (op, is_above) {
        // Null stays unknown either way.
        (CompareOp::Eq | CompareOp::Like, _) => return Bound::Or(Vec::new()),
        (CompareOp::NotEq | CompareOp::NotLike, _) => return Bound::IsNull { column, negated: true },
        (CompareOp::Lt | CompareOp::LtEq, true) => CompareOp::Lt,
        (CompareOp::Lt | CompareOp::LtEq, false) => CompareOp::LtEq,
        (CompareOp::Gt | CompareOp::GtEq, true) => CompareOp::GtEq,
        (CompareOp::Gt | CompareOp::GtEq, false) => CompareOp::Gt,
    };
    Bound::Compare { column, op, value: neighbour, cast: None }
}

/// How many digits a number has after the point; `None` if it is none, or one of floating point.
fn decimal_places(value: &Literal) -> Option<i8> {
    match value.array().data_type() {
        DataType::Decimal32(_, scale)
        | DataType::Decimal64(_, scale)
        | DataType::Decimal128(_, scale)
        | DataType::Decimal256(_, scale) => Some(*scale),
        data_type if data_type.is_integer() => Some(0),
        _ => {
            let text = like::text(value)?;
            i8::try_from(text.split_once('.').map_or(0, |(_, places)| places.trim_end().len())).ok()
        }
    }
}

/// `column op value`. A pattern without wildcards is compared as the text it is. The two zeros of floats are one value, but
/// Arrow orders -0 before +0: the comparison is made with the one that leaves both on the same side.
fn compare(column: usize, op: CompareOp, value: Literal, cast: Option<DataType>) -> Bound {
    let equality = match op {
        CompareOp::Like => Some(CompareOp::Eq),
        CompareOp::NotLike => Some(CompareOp::NotEq),
        _ => None,
    };
    if let Some(op) = equality
        && let Some(value) = like::exact(&value)
    {
        return Bound::Compare { column, op, value, cast };
    }
    let value = by_one_nan(value);
    let Some((minus, plus)) = zeros_like(&value) else { return Bound::Compare { column, op, value, cast } };
    let with = |value: Literal| Bound::Compare { column, op, value, cast: cast.clone() };
    match op {
        CompareOp::Eq => Bound::Or(vec![with(minus), with(plus)]),
        CompareOp::NotEq => Bound::And(vec![with(minus), with(plus)]),
        CompareOp::Lt | CompareOp::GtEq => with(minus),
        CompareOp::LtEq | CompareOp::Gt | CompareOp::Like | CompareOp::NotLike => with(plus),
    }
}

/// The same value; if it is a NaN, the one that all are compared as.
fn by_one_nan(value: Literal) -> Literal {
    let array = value.array();
    if array.as_primitive_opt::<Float64Type>().is_some_and(|double| double.value(0).is_nan()) {
        Literal(Arc::new(Float64Array::from(vec![f64::NAN])))
    } else if array.as_primitive_opt::<Float32Type>().is_some_and(|single| single.value(0).is_nan()) {
        Literal(Arc::new(Float32Array::from(vec![f32::NAN])))
    } else {
        value
    }
}

/// Both zeros of the literal's type, if it is one of them.
fn zeros_like(value: &Literal) -> Option<(Literal, Literal)> {
    let array = value.array();
    if array.is_null(0) {
        return None;
    }
    let both: (ArrayRef, ArrayRef) = if let Some(floats) = array.as_primitive_opt::<Float64Type>() {
        (floats.value(0) == 0.0).then(|| {
            (Arc::new(Float64Array::from(vec![-0.0])) as _, Arc::new(Float64Array::from(vec![0.0])) as _)
        })?
    } else {
        let floats = array.as_primitive_opt::<Float32Type>()?;
        (floats.value(0) == 0.0).then(|| {
            (Arc::new(Float32Array::from(vec![-0.0])) as _, Arc::new(Float32Array::from(vec![0.0])) as _)
        })?
    };
    Some((Literal(both.0), Literal(both.1)))
}

/// A comparison with an integer that the column's type cannot hold: true for all values or for none.
fn beyond_range(column: usize, op: CompareOp, value: &Literal) -> Bound {
    let is_negative = cast(value.array(), &DataType::Int64).is_ok_and(|wide| {
        let wide = wide.as_primitive::<Int64Type>();
        wide.is_valid(0) && wide.value(0) < 0
    });
    let is_true = match op {
        CompareOp::Eq | CompareOp::Like => false,
        CompareOp::NotEq | CompareOp::NotLike => true,
        CompareOp::Lt | CompareOp::LtEq => !is_negative,
        CompareOp::Gt | CompareOp::GtEq => is_negative,
    };
    // Null stays unknown either way.
    if is_true { Bound::IsNull { column, negated: true } } else { Bound::Or(Vec::new()) }
}

fn is_text(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
}

/// The literal in another type, if nothing is lost on the way. Text may become anything it spells.
fn cast_exactly(value: &Literal, to: &DataType) -> Option<Literal> {
    let from = value.array().data_type();
    if from == to {
        return Some(value.clone());
    }
    let strict = CastOptions { safe: false, ..CastOptions::default() };
    let there = cast_with_options(value.array(), to, &strict).ok()?;
    if !is_text(from) {
        let back = cast(&there, from).ok()?;
        if &back != value.array() {
            return None;
        }
    }
    Some(Literal(there))
}

#[cfg(test)]
mod tests {
    use arrow_array::{Decimal64Array, Decimal128Array, RecordBatch, TimestampSecondArray};
    use arrow_schema::Field;

    use super::*;
    use crate::predicate::{col, lit};

    /// Which of the rows 0.12, 0.13, 9999999.99 and null compare so.
    #[test]
    fn literals_are_not_rounded_to_the_digits_of_a_column() {
        let schema = Arc::new(Schema::new(vec![Field::new("x", DataType::Decimal64(9, 2), true)]));
        let values = Decimal64Array::from(vec![Some(12), Some(13), Some(999_999_999), None]);
        let values = values.with_precision_and_scale(9, 2).unwrap();
        let batch = RecordBatch::try_new(Arc::clone(&schema), vec![Arc::new(values)]).unwrap();
        let whole = Decimal128Array::from(vec![10_000_000]).with_precision_and_scale(38, 0).unwrap();
        let whole = Literal::from_array(&whole, 0);
        for (predicate, expected) in [
            (col("x").eq(lit("0.125")), [false, false, false]),
            (col("x").gt(lit("0.125")), [false, true, true]),
            (col("x").lt_eq(lit("0.125")), [true, false, false]),
            (col("x").not_eq(lit("0.125")), [true, true, true]),
            (col("x").eq(lit("0.13")), [false, true, false]),
            (col("x").eq(lit("0.1300")), [false, true, false]),
            (col("x").eq(whole.clone()), [false, false, false]),
            (col("x").lt(whole), [true, true, true]),
            (col("x").eq(lit("10000000")), [false, false, false]),
            (col("x").lt(lit(10_000_000_i64)), [true, true, true]),
            (col("x").gt_eq(lit(10_000_000_i64)), [false, false, false]),
        ] {
            let mask = predicate.bind(&schema).unwrap().evaluate(&batch).unwrap();
            let found: Vec<_> = mask.iter().map(|row| row == Some(true)).take(3).collect();
            assert_eq!(found, expected, "{predicate}");
            assert!(mask.is_null(3) || !mask.value(3), "{predicate}");
        }
        assert!(col("x").eq(lit("many")).bind(&schema).is_err());
    }

    #[test]
    fn times_are_not_cut_to_the_unit_of_a_column() {
        let seconds = DataType::Timestamp(TimeUnit::Second, None);
        let schema = Arc::new(Schema::new(vec![Field::new("x", seconds, true)]));
        let values = TimestampSecondArray::from(vec![0, 1, 253_402_300_799]);
        let batch = RecordBatch::try_new(Arc::clone(&schema), vec![Arc::new(values)]).unwrap();
        for (predicate, expected) in [
            (col("x").eq(lit("1970-01-01T00:00:01")), [false, true, false]),
            (col("x").eq(lit("9999-12-31T23:59:59")), [false, false, true]),
            (col("x").eq(lit("1970-01-01T00:00:00.5")), [false, false, false]),
            (col("x").not_eq(lit("1970-01-01T00:00:00.5")), [true, true, true]),
            (col("x").gt(lit("1970-01-01T00:00:00.5")), [false, true, true]),
            (col("x").gt_eq(lit("1969-12-31T23:59:59.5")), [true, true, true]),
            (col("x").lt(lit("1970-01-01T00:00:00.5")), [true, false, false]),
            (col("x").lt_eq(lit("1969-12-31T23:59:59.5")), [false, false, false]),
        ] {
            let mask = predicate.bind(&schema).unwrap().evaluate(&batch).unwrap();
            let found: Vec<_> = mask.iter().map(|row| row == Some(true)).collect();
            assert_eq!(found, expected, "{predicate}");
        }
        // What no value equals still tells which keys and zones can match.
        let bound = col("x").gt(lit("1970-01-01T00:00:00.5")).bind(&schema).unwrap();
        assert!(!matches!(bound.bounds(0).lower, std::ops::Bound::Unbounded));
    }

    #[test]
    fn the_two_zeros_are_one_value() {
        let schema = Arc::new(Schema::new(vec![Field::new("x", DataType::Float32, true)]));
        let values = Float32Array::from(vec![Some(-1.0), Some(-0.0), Some(0.0), Some(1.0), None]);
        let batch = RecordBatch::try_new(Arc::clone(&schema), vec![Arc::new(values)]).unwrap();
        for zero in [lit(0.0_f64), lit(-0.0_f64), lit(0_i64)] {
            let x = || col("x");
            for (predicate, expected) in [
                (x().eq(zero.clone()), [false, true, true, false]),
                (x().not_eq(zero.clone()), [true, false, false, true]),
                (x().lt(zero.clone()), [true, false, false, false]),
                (x().lt_eq(zero.clone()), [true, true, true, false]),
                (x().gt(zero.clone()), [false, false, false, true]),
                (x().gt_eq(zero.clone()), [false, true, true, true]),
                (x().is_in(vec![zero.clone()]), [false, true, true, false]),
            ] {
                let found = predicate.bind(&schema).unwrap().evaluate(&batch).unwrap();
                let found: Vec<_> = found.iter().collect();
                let expected: Vec<_> = expected.map(Some).into_iter().chain([None]).collect();
                assert_eq!(found, expected, "{predicate}");
            }
        }
    }

    #[test]
    fn all_nan_are_one_value_and_the_largest() {
        let schema = Arc::new(Schema::new(vec![Field::new("x", DataType::Float64, true)]));
        let values = Float64Array::from(vec![Some(-f64::NAN), Some(f64::NAN), Some(f64::INFINITY), None]);
        let batch = RecordBatch::try_new(Arc::clone(&schema), vec![Arc::new(values)]).unwrap();
        let x = || col("x");
        for nan in [lit(f64::NAN), lit(-f64::NAN)] {
            let many = (0..40).map(|number| lit(f64::from(number))).chain([nan.clone()]).collect();
            for (predicate, expected) in [
                (x().eq(nan.clone()), [true, true, false]),
                (x().not_eq(nan.clone()), [false, false, true]),
                (x().lt(nan.clone()), [false, false, true]),
                (x().gt_eq(nan.clone()), [true, true, false]),
                (x().gt(lit(f64::INFINITY)), [true, true, false]),
                (x().lt(lit(0.5)), [false, false, false]),
                (x().is_in(many), [true, true, false]),
            ] {
                let bound = predicate.bind(&schema).unwrap();
                let found: Vec<_> = bound.evaluate(&batch).unwrap().iter().collect();
                let expected: Vec<_> = expected.map(Some).into_iter().chain([None]).collect();
                assert_eq!(found, expected, "{predicate}");
            }
            // Indexes know each NaN by its bits.
            let bound = x().eq(nan).bind(&schema).unwrap();
            assert!(bound.values(0).is_none() && bound.bounds(0).is_unbounded());
        }
    }
}
