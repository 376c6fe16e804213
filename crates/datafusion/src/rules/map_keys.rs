//! The key in `m['a']` has the type of the keys of the map.
//!
//! DataFusion compares it with them as it was written: a text is no key of a map whose keys are views of texts, nor is a number of 64
//! bits one of a map of smaller numbers, and the query ends with an error.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::DFSchema;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, ExprSchemable};
use datafusion::prelude::cast;

/// Gives the keys in `expr` their types.
pub(super) fn rewrite(expr: Expr, columns: &DFSchema) -> Result<Transformed<Expr>> {
    expr.transform_up(|mut expr| {
        let Expr::ScalarFunction(call) = &mut expr else { return Ok(Transformed::no(expr)) };
        if call.func.name() != "get_field" {
            return Ok(Transformed::no(expr));
        }
        let [map, key] = call.args.as_mut_slice() else { return Ok(Transformed::no(expr)) };
        let Some(wanted) = map.get_type(columns).ok().as_ref().and_then(key_type) else {
            return Ok(Transformed::no(expr));
        };
        if key.get_type(columns)? == wanted {
            return Ok(Transformed::no(expr));
        }
        *key = match std::mem::take(key) {
            Expr::Literal(value, metadata) => Expr::Literal(value.cast_to(&wanted)?, metadata),
            key => cast(key, wanted),
        };
        Ok(Transformed::yes(expr))
    })
}

fn key_type(map: &DataType) -> Option<DataType> {
    let DataType::Map(entries, _) = map else { return None };
    let DataType::Struct(fields) = entries.data_type() else { return None };
    fields.first().map(|key| key.data_type().clone())
}
