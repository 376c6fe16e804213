//! What a column is compared with stands on the right.
//!
//! Of several comparisons of one column DataFusion keeps the strictest. It takes `5 = x AND x = 5` for a contradiction, because the
//! two are written differently, and `x >= 5 AND 5 < x` for `x >= 5`. It turns sides around itself, but only where the constant is a
//! plain value already: a decimal is cast to the type of the column at that time.

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::Result;
use datafusion::logical_expr::{BinaryExpr, Expr};

use super::floats::is_comparison;

/// Turns comparisons around whose columns are on the right alone.
pub(super) fn rewrite(expr: Expr) -> Result<Transformed<Expr>> {
    expr.transform_up(|expr| {
        let Expr::BinaryExpr(BinaryExpr { left, op, right }) = expr else { return Ok(Transformed::no(expr)) };
        let is_reversed = is_comparison(op) && !left.any_column_refs() && right.any_column_refs();
        Ok(match op.swap() {
            Some(swapped) if is_reversed => {
                Transformed::yes(Expr::BinaryExpr(BinaryExpr { left: right, op: swapped, right: left }))
            }
            _ => Transformed::no(Expr::BinaryExpr(BinaryExpr { left, op, right })),
        })
    })
}
