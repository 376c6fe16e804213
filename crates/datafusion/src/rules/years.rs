//! The year of a time is compared with any number.
//!
//! DataFusion compares the time with the first days of two years instead. Nanoseconds hold those of 1678 to 2262 alone: for all other
//! years it compares with null, and no row is left.

use datafusion::arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::Result;
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable};

use super::floats::{is_comparison, opaque};

/// Keeps years as they are where no two nanoseconds are their ends.
pub(super) fn rewrite(expr: Expr, columns: &DFSchema) -> Result<Transformed<Expr>> {
    expr.transform_up(|mut expr| {
        let changed = match &mut expr {
            Expr::BinaryExpr(BinaryExpr { left, op, right }) if is_comparison(*op) => {
                keep(&mut [left.as_mut(), right.as_mut()], columns)
            }
            Expr::Between(between) => {
                let group = &mut [between.expr.as_mut(), between.low.as_mut(), between.high.as_mut()];
                keep(group, columns)
            }
            Expr::InList(list) => {
                let mut group = vec![list.expr.as_mut()];
                group.extend(list.list.iter_mut());
                keep(&mut group, columns)
            }
            _ => false,
        };
        Ok(if changed { Transformed::yes(expr) } else { Transformed::no(expr) })
    })
}

fn keep(group: &mut [&mut Expr], columns: &DFSchema) -> bool {
    if !group.iter().any(|expr| is_far_year(expr)) {
        return false;
    }
    let mut changed = false;
    for expr in group.iter_mut() {
        // The types of both sides have been made equal already.
        let part = match &mut **expr {
            Expr::Cast(cast) => cast.expr.as_mut(),
            part => part,
        };
        if is_part_of_nanoseconds(part, columns) {
            *part = opaque(std::mem::take(part));
            changed = true;
        }
    }
    changed
}

/// Whether a number, taken for a year, begins or ends beyond what nanoseconds hold.
fn is_far_year(expr: &Expr) -> bool {
    let Expr::Literal(value, _) = expr else { return false };
    match value.cast_to(&DataType::Int64) {
        Ok(ScalarValue::Int64(Some(year))) => !(1678..2262).contains(&year),
        _ => false,
    }
}

fn is_part_of_nanoseconds(expr: &Expr, columns: &DFSchema) -> bool {
    let Expr::ScalarFunction(call) = expr else { return false };
    call.func.name() == "date_part"
        && call.args.get(1).is_some_and(|time| {
            matches!(time.get_type(columns), Ok(DataType::Timestamp(TimeUnit::Nanosecond, _)))
        })
}
