//! Times of day of different units, and as they are written.
//!
//! DataFusion makes nanoseconds of `TIME '12:00:00'` and refuses to compare these with a column of any other unit; it takes the digits
//! of a text away that a column does not have; and it knows no windows that are ordered by times of day.

use datafusion::arrow::array::{Array, AsArray};
use datafusion::arrow::compute::{CastOptions, cast_with_options};
use datafusion::arrow::datatypes::{DataType, Time64NanosecondType, TimeUnit};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::Result;
use datafusion::logical_expr::expr::{Case, WindowFunction};
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, WindowFrameBound, WindowFrameUnits};
use datafusion::prelude::cast;
use datafusion::sql::sqlparser::ast::BinaryOperator;
use pilaster_core::Error;

use super::floats::is_comparison;
use crate::error::to_datafusion;

/// The finest unit holds every time of day of the others.
const FINEST: DataType = DataType::Time64(TimeUnit::Nanosecond);

/// Gives the times of day in `expr` their types.
pub(super) fn rewrite(expr: Expr, columns: &DFSchema) -> Result<Transformed<Expr>> {
    expr.transform_up(|mut expr| {
        let changed = match &mut expr {
            Expr::BinaryExpr(BinaryExpr { left, op, right }) if is_comparison(*op) => {
                settle(&mut [left.as_mut(), right.as_mut()], columns)
            }
            Expr::Between(between) => {
                let group = &mut [between.expr.as_mut(), between.low.as_mut(), between.high.as_mut()];
                settle(group, columns)
            }
            Expr::InList(list) => {
                let mut group = vec![list.expr.as_mut()];
                group.extend(list.list.iter_mut());
                settle(&mut group, columns)
            }
            Expr::Case(Case { expr: Some(operand), when_then_expr, .. }) => {
                let mut group = vec![operand.as_mut()];
                group.extend(when_then_expr.iter_mut().map(|(when, _)| when.as_mut()));
                settle(&mut group, columns)
            }
            Expr::ScalarFunction(call)
                if matches!(call.func.name(), "coalesce" | "nullif" | "greatest" | "least") =>
            {
                settle(&mut call.args.iter_mut().collect::<Vec<_>>(), columns)
            }
            Expr::WindowFunction(call) => order_by_number(call, columns)?,
            _ => false,
        };
        Ok(if changed { Transformed::yes(expr) } else { Transformed::no(expr) })
    })
}

/// Does the same for a comparison while it is planned: `SELECT` asks for its type before there are rules.
#[derive(Debug)]
pub(super) struct Comparisons;

impl ExprPlanner for Comparisons {
    fn plan_binary_op(
        &self,
        mut expr: RawBinaryExpr,
        columns: &DFSchema,
    ) -> Result<PlannerResult<RawBinaryExpr>> {
        use BinaryOperator::{Eq, Gt, GtEq, Lt, LtEq, NotEq};
        if matches!(expr.op, Eq | NotEq | Lt | LtEq | Gt | GtEq) {
            settle(&mut [&mut expr.left, &mut expr.right], columns);
        }
        Ok(PlannerResult::Original(expr))
    }
}

/// Makes one type of the times of a group: that of its columns if they have one that holds all that is written beside them, else
/// nanoseconds.
fn settle(group: &mut [&mut Expr], columns: &DFSchema) -> bool {
    let written: Vec<_> = group.iter().map(|expr| nanoseconds_of(expr)).collect();
    let mut types = Vec::new();
    for (expr, written) in group.iter().zip(&written) {
        match expr.get_type(columns) {
            Ok(DataType::Null) => {}
            _ if written.is_some() => {}
            Ok(found @ (DataType::Time32(_) | DataType::Time64(_))) => types.push(found),
            // DataFusion says what it can compare with times, and what not.
            _ => return false,
        }
    }
    let Some(first) = types.first().cloned() else { return false };
    let fits = |count: &i64| count.rem_euclid(nanoseconds_in(&first)) == 0;
    let is_one_type = types.iter().all(|found| found == &first);
    if is_one_type && written.iter().all(Option::is_none) {
        return false;
    }
    let wanted = if is_one_type && written.iter().flatten().all(fits) { first } else { FINEST };
    for (expr, written) in group.iter_mut().zip(written) {
        let value =
            written.and_then(|count| ScalarValue::Time64Nanosecond(Some(count)).cast_to(&wanted).ok());
        match (value, expr.get_type(columns)) {
            (Some(value), _) => **expr = Expr::Literal(value, None),
            (None, Ok(found)) if found != wanted && found != DataType::Null => {
                **expr = cast(std::mem::take(*expr), wanted.clone());
            }
            _ => {}
        }
    }
    true
}

/// A time of day that was written: `TIME '12:00:00'`, or a text that may be one.
fn nanoseconds_of(expr: &Expr) -> Option<i64> {
    let value = match expr {
        Expr::Literal(value, _) => value,
        Expr::Cast(cast) => match (cast.expr.as_ref(), cast.field.data_type()) {
            (Expr::Literal(value, _), DataType::Time32(_) | DataType::Time64(_)) => value,
            _ => return None,
        },
        _ => return None,
    };
    if !matches!(value, ScalarValue::Utf8(_) | ScalarValue::Utf8View(_) | ScalarValue::LargeUtf8(_)) {
        return None;
    }
    let strict = CastOptions { safe: false, ..CastOptions::default() };
    let time = cast_with_options(&value.to_array().ok()?, &FINEST, &strict).ok()?;
    let time = time.as_primitive_opt::<Time64NanosecondType>()?;
    time.is_valid(0).then(|| time.value(0))
}

fn nanoseconds_in(time: &DataType) -> i64 {
    match time {
        DataType::Time32(TimeUnit::Second) => 1_000_000_000,
        DataType::Time32(_) => 1_000_000,
        DataType::Time64(TimeUnit::Microsecond) => 1_000,
        _ => 1,
    }
}

/// Has a window sort by the numbers that times of day are.
fn order_by_number(call: &mut WindowFunction, columns: &DFSchema) -> Result<bool> {
    let frame = &call.params.window_frame;
    let has_distance = frame.units == WindowFrameUnits::Range
        && [&frame.start_bound, &frame.end_bound].into_iter().any(|bound| match bound {
            WindowFrameBound::Preceding(distance) | WindowFrameBound::Following(distance) => {
                !distance.is_null()
            }
            WindowFrameBound::CurrentRow => false,
        });
    let mut changed = false;
    for sort in &mut call.params.order_by {
        let number = match sort.expr.get_type(columns) {
            Ok(DataType::Time32(_)) => DataType::Int32,
            Ok(DataType::Time64(_)) => DataType::Int64,
            _ => continue,
        };
        if has_distance {
            let said = "sql: a window of RANGE knows no distance between times of day; ROWS and GROUPS do";
            return Err(to_datafusion(Error::invalid(said)));
        }
        sort.expr = cast(std::mem::take(&mut sort.expr), number);
        changed = true;
    }
    Ok(changed)
}
