//! The zeros of floats are one value, all NaN are one, and the largest.
//!
//! DataFusion compares floats by the order of their bits, in which -0 is below 0 and a NaN may be at either end, and skips the parts of
//! Parquet files whose bounds, which know nothing of NaN, leave no room for a value. Where floats are compared, sorted or
//! grouped, their plain form takes their place; as a function it is opaque to whoever looks for bounds.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};

use datafusion::arrow::array::{ArrayRef, AsArray};
use datafusion::arrow::datatypes::{DataType, Float32Type, Float64Type};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, DFSchema, ScalarValue};
use datafusion::error::Result;
use datafusion::logical_expr::expr::{Case, InSubquery};
use datafusion::logical_expr::{
    BinaryExpr, ColumnarValue, Distinct, Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, Operator,
    ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

/// Puts the plain form of floats where they are compared.
pub(super) fn rewrite(expr: Expr, columns: &DFSchema) -> Result<Transformed<Expr>> {
    expr.transform_up(|expr| rewrite_one(expr, columns))
}

fn rewrite_one(mut expr: Expr, columns: &DFSchema) -> Result<Transformed<Expr>> {
    let changed = match &mut expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if is_comparison(*op) => {
            plain_all([left.as_mut(), right.as_mut()], columns)
        }
        Expr::Between(between) => {
            plain_all([between.expr.as_mut(), between.low.as_mut(), between.high.as_mut()], columns)
        }
        Expr::InList(list) => {
            plain_all(std::iter::once(list.expr.as_mut()).chain(list.list.iter_mut()), columns)
        }
        Expr::InSubquery(InSubquery { expr, subquery, .. }) => {
            let inside = Arc::unwrap_or_clone(Arc::clone(&subquery.subquery));
            if let Some(plan) = plain_outputs(&inside)? {
                subquery.subquery = Arc::new(plan);
            }
            plain_all([expr.as_mut()], columns)
        }
        Expr::Case(Case { expr: Some(operand), when_then_expr, .. }) => {
            let whens = when_then_expr.iter_mut().map(|(when, _)| when.as_mut());
            plain_all(std::iter::once(operand.as_mut()).chain(whens), columns)
        }
        Expr::AggregateFunction(call)
            if call.params.distinct || matches!(call.func.name(), "min" | "max") =>
        {
            plain_all(call.params.args.iter_mut(), columns)
        }
        Expr::WindowFunction(call) => {
            let orders = call.params.order_by.iter_mut().map(|order| &mut order.expr);
            plain_all(call.params.partition_by.iter_mut().chain(orders), columns)
        }
        _ => false,
    };
    Ok(if changed { Transformed::yes(expr) } else { Transformed::no(expr) })
}

/// Whether an operator compares its operands.
pub(super) fn is_comparison(op: Operator) -> bool {
    use Operator::{Eq, Gt, GtEq, IsDistinctFrom, IsNotDistinctFrom, Lt, LtEq, NotEq};
    matches!(op, Eq | NotEq | Lt | LtEq | Gt | GtEq | IsDistinctFrom | IsNotDistinctFrom)
}

fn plain_all<'a>(group: impl IntoIterator<Item = &'a mut Expr>, columns: &DFSchema) -> bool {
    let mut changed = false;
    for expr in group {
        changed |= make_plain(expr, columns);
    }
    changed
}

/// Wraps an expression whose values can be -0 or NaN; true if it was.
fn make_plain(expr: &mut Expr, columns: &DFSchema) -> bool {
    match expr {
        Expr::Literal(ScalarValue::Float64(Some(value)), _) => {
            let plain = plain_double(*value);
            let changed = plain.to_bits() != value.to_bits();
            *value = plain;
            return changed;
        }
        Expr::Literal(ScalarValue::Float32(Some(value)), _) => {
            let plain = plain_single(*value);
            let changed = plain.to_bits() != value.to_bits();
            *value = plain;
            return changed;
        }
        Expr::Literal(..) => return false,
        Expr::ScalarFunction(call) if call.func.name() == NAME => return false,
        _ => {}
    }
    let is_float = expr
        .get_type(columns)
        .is_ok_and(|data_type| matches!(data_type, DataType::Float32 | DataType::Float64));
    if is_float {
        *expr = PLAIN.call(vec![std::mem::take(expr)]);
    }
    is_float
}

/// Does the same for what a node sorts, groups or joins by.
pub(super) fn prepare(plan: LogicalPlan) -> Result<LogicalPlan> {
    Ok(match plan {
        LogicalPlan::Sort(mut sort) => {
            for order in &mut sort.expr {
                make_plain(&mut order.expr, sort.input.schema());
            }
            LogicalPlan::Sort(sort)
        }
        LogicalPlan::Aggregate(mut aggregate) => {
            for group in &mut aggregate.group_expr {
                let (relation, name) = group.qualified_name();
                if !matches!(group, Expr::GroupingSet(_)) && make_plain(group, aggregate.input.schema()) {
                    *group = std::mem::take(group).alias_qualified(relation, name);
                }
            }
            LogicalPlan::Aggregate(aggregate)
        }
        LogicalPlan::Join(mut join) => {
            for (left, right) in &mut join.on {
                make_plain(left, join.left.schema());
                make_plain(right, join.right.schema());
            }
            LogicalPlan::Join(join)
        }
        LogicalPlan::Distinct(Distinct::On(mut distinct)) => {
            for expr in &mut distinct.on_expr {
                make_plain(expr, distinct.input.schema());
            }
            for order in distinct.sort_expr.iter_mut().flatten() {
                make_plain(&mut order.expr, distinct.input.schema());
            }
            LogicalPlan::Distinct(Distinct::On(distinct))
        }
        LogicalPlan::Distinct(Distinct::All(input)) => {
            let plain = plain_outputs(&input)?.map(Arc::new);
            LogicalPlan::Distinct(Distinct::All(plain.unwrap_or(input)))
        }
        plan => plan,
    })
}

/// The rows of a plan with plain floats; `None` if it has no floats.
fn plain_outputs(plan: &LogicalPlan) -> Result<Option<LogicalPlan>> {
    let schema = Arc::clone(plan.schema());
    let mut changed = false;
    let outputs: Vec<_> = schema
        .iter()
        .map(|(relation, field)| {
            let mut output = Expr::Column(Column::new(relation.cloned(), field.name()));
            if make_plain(&mut output, &schema) {
                changed = true;
                output = output.alias_qualified(relation.cloned(), field.name());
            }
            output
        })
        .collect();
    if !changed {
        return Ok(None);
    }
    LogicalPlanBuilder::from(plan.clone()).project(outputs)?.build().map(Some)
}

/// What is compared, without the function around it that only makes floats plain.
pub(crate) fn inside(expr: &Expr) -> &Expr {
    match expr {
        Expr::ScalarFunction(call) if call.func.name() == NAME => call.args.first().unwrap_or(expr),
        expr => expr,
    }
}

const NAME: &str = "plain_float";

static PLAIN: LazyLock<ScalarUDF> = LazyLock::new(|| ScalarUDF::from(Plain::new(0)));

/// The same values, through which no rule looks, and which is taken for equal to no other expression.
pub(super) fn opaque(expr: Expr) -> Expr {
    static SERIAL: AtomicU64 = AtomicU64::new(1);
    ScalarUDF::from(Plain::new(SERIAL.fetch_add(1, Ordering::Relaxed))).call(vec![expr])
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Plain {
    signature: Signature,
    serial: u64,
}

impl Plain {
    fn new(serial: u64) -> Self {
        Self { signature: Signature::any(1, Volatility::Immutable), serial }
    }
}

impl ScalarUDFImpl for Plain {
    fn name(&self) -> &'static str {
        NAME
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arg_types: &[DataType]) -> Result<DataType> {
        Ok(arg_types.first().cloned().unwrap_or(DataType::Null))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = args.number_rows;
        match args.args.into_iter().next() {
            Some(ColumnarValue::Array(array)) => Ok(ColumnarValue::Array(plain_array(&array))),
            Some(ColumnarValue::Scalar(value)) => {
                let array = plain_array(&value.to_array()?);
                ScalarValue::try_from_array(&array, 0).map(ColumnarValue::Scalar)
            }
            None => ScalarValue::Null.to_array_of_size(rows).map(ColumnarValue::Array),
        }
    }
}

fn plain_array(array: &ArrayRef) -> ArrayRef {
    if let Some(doubles) = array.as_primitive_opt::<Float64Type>() {
        Arc::new(doubles.unary::<_, Float64Type>(plain_double))
    } else if let Some(singles) = array.as_primitive_opt::<Float32Type>() {
        Arc::new(singles.unary::<_, Float32Type>(plain_single))
    } else {
        Arc::clone(array)
    }
}

fn plain_double(value: f64) -> f64 {
    if value.is_nan() { f64::NAN } else { value + 0.0 }
}

fn plain_single(value: f32) -> f32 {
    if value.is_nan() { f32::NAN } else { value + 0.0 }
}
