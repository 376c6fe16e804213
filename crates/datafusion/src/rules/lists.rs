//! `IN` and `NOT IN` keep their nulls and the columns in their lists.
//!
//! DataFusion makes one list of two over the same column: it takes away what both have, as if it knew what a column in the list is
//! worth, as if NULL were a value like any other, and as if what is left of nothing were false for a column that is null.

use datafusion::common::ScalarValue;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::utils::{conjunction, disjunction, split_conjunction_owned};
use datafusion::logical_expr::{BinaryExpr, Expr, Operator};

use super::floats::opaque;

/// Of a condition it does not matter whether it is false or null.
pub(super) fn rewrite(expr: Expr, is_condition: bool) -> Result<Transformed<Expr>> {
    let done = expr.transform_up(|expr| match expr {
        Expr::InList(list) => Ok(split(list)),
        expr => Ok(Transformed::no(expr)),
    })?;
    done.transform_data(|expr| {
        let is_chain = matches!(&expr, Expr::BinaryExpr(BinaryExpr { op: Operator::And, .. }));
        if !(is_condition && is_chain) {
            return part_lists(expr);
        }
        let mut changed = false;
        let parts = split_conjunction_owned(expr).into_iter().map(|part| {
            let done = part_lists(part)?;
            changed |= done.transformed;
            Ok(done.data)
        });
        let parts = parts.collect::<Result<Vec<_>>>()?;
        let expr = conjunction(parts).unwrap_or_default();
        Ok(if changed { Transformed::yes(expr) } else { Transformed::no(expr) })
    })
}

/// A list of values alone; what else is in the list is compared by itself.
fn split(list: InList) -> Transformed<Expr> {
    let is_value = |member: &Expr| matches!(member, Expr::Literal(value, _) if !value.is_null());
    if list.list.iter().all(is_value) {
        return Transformed::no(Expr::InList(list));
    }
    let InList { expr, list, negated } = list;
    let (values, others): (Vec<_>, Vec<_>) = list.into_iter().partition(is_value);
    let mut parts = Vec::new();
    if !values.is_empty() {
        parts.push(Expr::InList(InList::new(expr.clone(), values, negated)));
    }
    for member in others {
        parts.push(match (member, negated) {
            (Expr::Literal(..), _) => Expr::Literal(ScalarValue::Boolean(None), None),
            (member, false) => expr.as_ref().clone().eq(member),
            (member, true) => expr.as_ref().clone().not_eq(member),
        });
    }
    let joined = if negated { conjunction(parts) } else { disjunction(parts) };
    Transformed::yes(joined.unwrap_or_default())
}

/// Lists over the same expression are not put together.
fn part_lists(expr: Expr) -> Result<Transformed<Expr>> {
    let mut count = 0_usize;
    expr.apply(|part| {
        count = count.saturating_add(usize::from(matches!(part, Expr::InList(_))));
        Ok(TreeNodeRecursion::Continue)
    })?;
    if count < 2 {
        return Ok(Transformed::no(expr));
    }
    let mut seen: Vec<Expr> = Vec::new();
    expr.transform_up(|expr| {
        let Expr::InList(mut list) = expr else { return Ok(Transformed::no(expr)) };
        if !seen.contains(&list.expr) {
            seen.push(list.expr.as_ref().clone());
            return Ok(Transformed::no(Expr::InList(list)));
        }
        *list.expr = opaque(std::mem::take(list.expr.as_mut()));
        Ok(Transformed::yes(Expr::InList(list)))
    })
}
