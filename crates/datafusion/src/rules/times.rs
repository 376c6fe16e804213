//! Times as they are written, beside columns of times.
//!
//! DataFusion makes nanoseconds of texts and dates beside times, and of the column with them. Those end in 2262, and columns hold
//! 9999-12-31. Here written times become microseconds, and what is compared with them too where nanoseconds cannot hold one.

use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::compute::{CastOptions, cast_with_options};
use datafusion::arrow::datatypes::{DataType, TimeUnit, TimestampMicrosecondType, TimestampNanosecondType};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::Result;
use datafusion::logical_expr::{Between, BinaryExpr, Expr, ExprSchemable, Operator, binary_expr, not};
use datafusion::prelude::{cast, lit};

use super::floats::is_comparison;
use crate::translate::scalar_of;

/// Gives the times in `expr` their types.
pub(super) fn rewrite(expr: Expr, columns: &DFSchema) -> Result<Transformed<Expr>> {
    expr.transform_up(|mut expr| {
        let changed = match &mut expr {
            Expr::BinaryExpr(BinaryExpr { left, op, right }) if is_comparison(*op) => {
                settle(&mut [left.as_mut(), right.as_mut()], columns)
            }
            Expr::Between(between) if is_nanos(&between.expr, columns) => {
                let Between { expr: value, negated, low, high } = between.clone();
                let sides = match (is_far(&low), is_far(&high)) {
                    (false, false) => return Ok(Transformed::no(expr)),
                    _ if negated => [
                        binary_expr(*value.clone(), Operator::Lt, *low),
                        binary_expr(*value, Operator::Gt, *high),
                    ],
                    _ => [
                        binary_expr(*value.clone(), Operator::GtEq, *low),
                        binary_expr(*value, Operator::LtEq, *high),
                    ],
                };
                let [mut first, mut last] = sides;
                for side in [&mut first, &mut last] {
                    if let Expr::BinaryExpr(BinaryExpr { left, right, .. }) = side {
                        settle(&mut [left.as_mut(), right.as_mut()], columns);
                    }
                }
                expr = if negated { first.or(last) } else { first.and(last) };
                true
            }
            Expr::Between(between) => {
                let group = &mut [between.expr.as_mut(), between.low.as_mut(), between.high.as_mut()];
                settle(group, columns)
            }
            Expr::InList(list) => {
                if is_nanos(&list.expr, columns) && !list.list.iter().all(is_far) {
                    // No time of the column is one of those beyond its range.
                    list.list.retain(|member| !is_far(member));
                }
                let mut group = vec![list.expr.as_mut()];
                group.extend(list.list.iter_mut());
                settle(&mut group, columns)
            }
            _ => false,
        };
        Ok(if changed { Transformed::yes(expr) } else { Transformed::no(expr) })
    })
}

/// What columns of times are compared with keeps its digits. DataFusion takes those away that the column does not have:
/// `40.000001` beside milliseconds would be `40`.
pub(super) fn keep_digits(expr: Expr, columns: &DFSchema) -> Result<Transformed<Expr>> {
    expr.transform_up(|expr| {
        let done = match expr {
            Expr::BinaryExpr(BinaryExpr { left, op, right }) if is_comparison(op) => {
                match (op.swap(), compared(&left, op, &right, columns)) {
                    (_, Some(found)) => Ok(found),
                    (Some(swapped), None) => compared(&right, swapped, &left, columns)
                        .ok_or_else(|| binary_expr(*left, op, *right)),
                    (None, None) => Err(binary_expr(*left, op, *right)),
                }
            }
            Expr::Between(between) => {
                let sides = [(Operator::GtEq, &between.low), (Operator::LtEq, &between.high)];
                let found = sides.map(|(op, limit)| compared(&between.expr, op, limit, columns));
                if found.iter().all(Option::is_none) {
                    Err(Expr::Between(between))
                } else {
                    let [low, high] = found;
                    let low = low.unwrap_or_else(|| between.expr.as_ref().clone().gt_eq(*between.low));
                    let high = high.unwrap_or_else(|| between.expr.as_ref().clone().lt_eq(*between.high));
                    let both = low.and(high);
                    Ok(if between.negated { not(both) } else { both })
                }
            }
            Expr::InList(mut list) => match unit_below_cast(&list.expr, columns) {
                Some(unit) => {
                    let before = list.list.len();
                    list.list.retain(|member| whole(member, unit).is_none_or(|(_, is_whole)| is_whole));
                    match list.list.len() {
                        0 if list.negated => Ok(not(never(*list.expr))),
                        0 => Ok(never(*list.expr)),
                        left if left < before => Ok(Expr::InList(list)),
                        _ => Err(Expr::InList(list)),
                    }
                }
                None => Err(Expr::InList(list)),
            },
            expr => Err(expr),
        };
        Ok(done.map_or_else(Transformed::no, Transformed::yes))
    })
}

/// `left op right`, where `left` is a column made a finer time and `right` a time that it cannot have.
fn compared(left: &Expr, op: Operator, right: &Expr, columns: &DFSchema) -> Option<Expr> {
    let (before, is_whole) = whole(right, unit_below_cast(left, columns)?)?;
    if is_whole {
        return None;
    }
    let (left, before) = (left.clone(), Expr::Literal(before, None));
    Some(match op {
        Operator::Gt | Operator::GtEq => left.gt(before),
        Operator::Lt | Operator::LtEq => left.lt_eq(before),
        Operator::Eq => never(left),
        Operator::NotEq => not(never(left)),
        Operator::IsDistinctFrom => lit(true),
        Operator::IsNotDistinctFrom => lit(false),
        _ => return None,
    })
}

/// False, and null where `expr` is null.
fn never(expr: Expr) -> Expr {
    expr.is_null().and(Expr::Literal(ScalarValue::Boolean(None), None))
}

/// Nanoseconds of the unit of what is cast to a time of a finer one.
fn unit_below_cast(expr: &Expr, columns: &DFSchema) -> Option<i64> {
    let Expr::Cast(cast) = expr else { return None };
    if matches!(cast.expr.as_ref(), Expr::Literal(..)) {
        return None;
    }
    let DataType::Timestamp(to, _) = cast.field.data_type() else { return None };
    let from = match cast.expr.get_type(columns).ok()? {
        DataType::Timestamp(from, _) => nanoseconds(from),
        DataType::Date32 | DataType::Date64 => NANOSECONDS_OF_DAY,
        _ => return None,
    };
    (from > nanoseconds(*to)).then_some(from)
}

const NANOSECONDS_OF_DAY: i64 = 86_400_000_000_000;

fn nanoseconds(unit: TimeUnit) -> i64 {
    match unit {
        TimeUnit::Second => 1_000_000_000,
        TimeUnit::Millisecond => 1_000_000,
        TimeUnit::Microsecond => 1_000,
        TimeUnit::Nanosecond => 1,
    }
}

/// The last time of a unit of so many nanoseconds that is not after a time that was written, and whether it is that time.
fn whole(expr: &Expr, unit: i64) -> Option<(ScalarValue, bool)> {
    use ScalarValue::{TimestampMicrosecond, TimestampMillisecond, TimestampNanosecond, TimestampSecond};
    let value = scalar_of(expr)?;
    let (count, own) = match &value {
        TimestampSecond(Some(count), _) => (*count, TimeUnit::Second),
        TimestampMillisecond(Some(count), _) => (*count, TimeUnit::Millisecond),
        TimestampMicrosecond(Some(count), _) => (*count, TimeUnit::Microsecond),
        TimestampNanosecond(Some(count), _) => (*count, TimeUnit::Nanosecond),
        _ => return None,
    };
    let units = unit.checked_div(nanoseconds(own))?;
    let rest = count.checked_rem_euclid(units)?;
    let before = count.checked_sub(rest)?;
    let before = match value {
        TimestampSecond(_, zone) => TimestampSecond(Some(before), zone),
        TimestampMillisecond(_, zone) => TimestampMillisecond(Some(before), zone),
        TimestampMicrosecond(_, zone) => TimestampMicrosecond(Some(before), zone),
        TimestampNanosecond(_, zone) => TimestampNanosecond(Some(before), zone),
        _ => return None,
    };
    Some((before, rest == 0))
}

/// A time that was written: as microseconds, if they hold it, and as nanoseconds.
struct Written {
    micros: Option<ScalarValue>,
    fits_nanos: bool,
    /// Whether it stands there as a time, and not as a text that may be one.
    is_typed: bool,
}

fn settle(group: &mut [&mut Expr], columns: &DFSchema) -> bool {
    let texts: Vec<_> = group.iter().map(|expr| text_of(expr)).collect();
    if texts.iter().all(Option::is_none) && !group.iter().any(|expr| is_date(expr, columns)) {
        return false;
    }
    let types: Vec<_> = group
        .iter()
        .zip(&texts)
        .map(|(expr, text)| if text.is_none() { expr.get_type(columns).ok() } else { None })
        .collect();
    let times = types.iter().flatten().filter_map(|data_type| match data_type {
        DataType::Timestamp(unit, zone) => Some((*unit, zone.clone())),
        _ => None,
    });
    let (units, zones): (Vec<_>, Vec<_>) = times.unzip();
    let zone = zones.into_iter().flatten().next();
    let written: Vec<_> =
        texts.iter().map(|text| text.as_ref().map(|text| read(text, zone.as_deref()))).collect();
    let has_date = types.iter().flatten().any(|data_type| data_type == &DataType::Date32);
    let has_typed_time = written.iter().flatten().any(|time| time.is_typed);
    if units.is_empty() && !(has_date && has_typed_time) {
        return false;
    }
    // All of what is written must be whole microseconds; nanoseconds stay where they can hold everything.
    let has_far = written.iter().flatten().any(|time| !time.fits_nanos);
    if written.iter().flatten().any(|time| time.micros.is_none())
        || units.contains(&TimeUnit::Nanosecond) && (!has_far || has_date)
        || zone.is_some() && has_date
    {
        return false;
    }
    let micros = DataType::Timestamp(TimeUnit::Microsecond, zone);
    for ((expr, time), data_type) in group.iter_mut().zip(written).zip(types) {
        match (time.and_then(|time| time.micros), data_type) {
            (Some(value), _) => **expr = Expr::Literal(value, None),
            (None, Some(DataType::Date32 | DataType::Timestamp(TimeUnit::Nanosecond, _))) => {
                **expr = cast(std::mem::take(*expr), micros.clone());
            }
            _ => {}
        }
    }
    true
}

fn is_nanos(expr: &Expr, columns: &DFSchema) -> bool {
    expr.get_type(columns).is_ok_and(|found| matches!(found, DataType::Timestamp(TimeUnit::Nanosecond, _)))
}

/// Whether it is a time that nanoseconds do not hold.
fn is_far(expr: &Expr) -> bool {
    let written = text_of(expr).map(|text| read(&text, None));
    written.is_some_and(|time| time.micros.is_some() && !time.fits_nanos)
}

fn is_date(expr: &Expr, columns: &DFSchema) -> bool {
    !matches!(expr, Expr::Literal(..)) && expr.get_type(columns).is_ok_and(|found| found == DataType::Date32)
}

/// The text of a time, and whether it stands there as a time: `'2020-01-01'` and `TIMESTAMP '2020-01-01'`.
fn text_of(expr: &Expr) -> Option<(String, bool)> {
    match expr {
        Expr::Literal(
            ScalarValue::Utf8(Some(text))
            | ScalarValue::Utf8View(Some(text))
            | ScalarValue::LargeUtf8(Some(text)),
            _,
        ) => Some((text.clone(), false)),
        Expr::Cast(cast) => match (cast.expr.as_ref(), cast.field.data_type()) {
            (Expr::Literal(ScalarValue::Utf8(Some(text)), _), DataType::Timestamp(_, None)) => {
                Some((text.clone(), true))
            }
            (Expr::Literal(ScalarValue::Utf8(Some(text)), _), DataType::Date32) => {
                Some((text.clone(), false))
            }
            _ => None,
        },
        _ => None,
    }
}

fn read((text, is_typed): &(String, bool), zone: Option<&str>) -> Written {
    let nanos = time_in(text, TimeUnit::Nanosecond, zone);
    let nanos = nanos.as_ref().and_then(|array| array.as_primitive_opt::<TimestampNanosecondType>());
    let nanos = nanos.map(|array| array.value(0));
    let micros = time_in(text, TimeUnit::Microsecond, zone).filter(|array| {
        let micros = array.as_primitive_opt::<TimestampMicrosecondType>().map(|array| array.value(0));
        nanos.is_none_or(|nanos| micros.and_then(|micros| micros.checked_mul(1000)) == Some(nanos))
    });
    Written {
        micros: micros.and_then(|array| ScalarValue::try_from_array(&array, 0).ok()),
        fits_nanos: nanos.is_some(),
        is_typed: *is_typed,
    }
}

fn time_in(text: &str, unit: TimeUnit, zone: Option<&str>) -> Option<ArrayRef> {
    let text = ScalarValue::Utf8(Some(text.to_string())).to_array().ok()?;
    let strict = CastOptions { safe: false, ..CastOptions::default() };
    let time = cast_with_options(&text, &DataType::Timestamp(unit, zone.map(Into::into)), &strict).ok()?;
    (time.len() == 1 && time.is_valid(0)).then_some(time)
}
