//! A number written beside decimals is a decimal; decimals and floats meet as doubles.
//!
//! DataFusion reads `99999.99` as a double and compares a decimal with it as DECIMAL(30, 15), where the double is
//! 99999.990000000005; nor do the doubles of a column fit into that. Here the numbers of an expression are made what stands beside
//! them before DataFusion makes the types equal.

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, DFSchema, ScalarValue};
use datafusion::error::Result;
use datafusion::logical_expr::expr::{Case, InSubquery, WindowFunctionDefinition};
use datafusion::logical_expr::{
    BinaryExpr, Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, Operator, Projection, Union,
};
use datafusion::prelude::cast;

use super::number::Number;

/// What the members of a group are used for.
#[derive(Clone, Copy, PartialEq)]
enum Use {
    /// They are compared with each other, or one of them is the answer: they become one type.
    Meet,
    /// They are compared, and integers of 64 bits are no doubles.
    Compare,
    /// They are added, multiplied, …
    Compute,
}

/// Gives the numbers in `expr` their types.
pub(super) fn rewrite(expr: Expr, columns: &DFSchema) -> Result<Transformed<Expr>> {
    expr.transform_up(|expr| rewrite_one(expr, columns))
}

fn rewrite_one(mut expr: Expr, columns: &DFSchema) -> Result<Transformed<Expr>> {
    let changed = match &mut expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => match use_of(*op) {
            Some(purpose) => settle(&mut [left.as_mut(), right.as_mut()], purpose, columns),
            None => false,
        },
        Expr::Between(between) => {
            let group = &mut [between.expr.as_mut(), between.low.as_mut(), between.high.as_mut()];
            settle(group, Use::Compare, columns)
        }
        Expr::InList(list) => {
            let mut group = vec![list.expr.as_mut()];
            group.extend(list.list.iter_mut());
            settle(&mut group, Use::Compare, columns)
        }
        Expr::InSubquery(InSubquery { expr, subquery, .. }) => {
            let within = subquery.subquery.schema().fields().first().map(|field| field.data_type().clone());
            let outside = expr.get_type(columns).ok();
            match (outside, within) {
                (Some(outside), Some(within)) if is_decimal(&outside) && within.is_floating() => {
                    **expr = as_double(std::mem::take(expr.as_mut()));
                    true
                }
                (Some(outside), Some(within)) if outside.is_floating() && is_decimal(&within) => {
                    let plan = Arc::unwrap_or_clone(Arc::clone(&subquery.subquery));
                    if Number::of(expr).is_none() {
                        subquery.subquery = Arc::new(with_double(plan, 0)?);
                        true
                    } else {
                        settle_with(&mut [expr.as_mut()], &[within], Use::Compare, columns)
                    }
                }
                (Some(_), Some(within)) if is_decimal(&within) => {
                    settle_with(&mut [expr.as_mut()], &[within], Use::Compare, columns)
                }
                _ => false,
            }
        }
        Expr::Case(case) => rewrite_case(case, columns),
        Expr::Cast(cast) if is_decimal(cast.field.data_type()) => settle_alone(&mut cast.expr),
        Expr::TryCast(cast) if is_decimal(cast.field.data_type()) => settle_alone(&mut cast.expr),
        Expr::ScalarFunction(call) => {
            let skipped = match call.func.name() {
                "coalesce" | "nullif" | "nvl" | "ifnull" | "greatest" | "least" | "make_array" => Some(0),
                "nvl2" => Some(1),
                _ => None,
            };
            match skipped {
                Some(skipped) => {
                    let mut group: Vec<_> = call.args.iter_mut().skip(skipped).collect();
                    settle(&mut group, Use::Meet, columns)
                }
                None if call.func.name() == "mod" => {
                    let mut group: Vec<_> = call.args.iter_mut().collect();
                    settle(&mut group, Use::Compute, columns)
                }
                None => false,
            }
        }
        Expr::WindowFunction(call) => match &call.fun {
            WindowFunctionDefinition::WindowUDF(function) if matches!(function.name(), "lead" | "lag") => {
                let mut group: Vec<_> = call.params.args.iter_mut().step_by(2).collect();
                settle(&mut group, Use::Meet, columns)
            }
            _ => false,
        },
        _ => false,
    };
    Ok(if changed { Transformed::yes(expr) } else { Transformed::no(expr) })
}

fn use_of(op: Operator) -> Option<Use> {
    match op {
        Operator::Eq
        | Operator::NotEq
        | Operator::Lt
        | Operator::LtEq
        | Operator::Gt
        | Operator::GtEq
        | Operator::IsDistinctFrom
        | Operator::IsNotDistinctFrom => Some(Use::Compare),
        // A quotient has more digits than either: divided by a number with a fraction, a decimal becomes a double, as it always did.
        Operator::Plus | Operator::Minus | Operator::Multiply | Operator::Modulo => Some(Use::Compute),
        _ => None,
    }
}

fn rewrite_case(case: &mut Case, columns: &DFSchema) -> bool {
    let mut results: Vec<_> = case.when_then_expr.iter_mut().map(|(_, then)| then.as_mut()).collect();
    results.extend(case.else_expr.as_deref_mut());
    let mut changed = settle(&mut results, Use::Meet, columns);
    if let Some(operand) = case.expr.as_deref_mut() {
        let mut compared = vec![operand];
        compared.extend(case.when_then_expr.iter_mut().map(|(when, _)| when.as_mut()));
        changed |= settle(&mut compared, Use::Compare, columns);
    }
    changed
}

/// Settles the types of expressions that belong together; true if one was changed.
fn settle(group: &mut [&mut Expr], purpose: Use, columns: &DFSchema) -> bool {
    settle_with(group, &[], purpose, columns)
}

/// The same, with more that belongs to them.
fn settle_with(group: &mut [&mut Expr], others: &[DataType], purpose: Use, columns: &DFSchema) -> bool {
    // Beside a decimal, of which all digits may be behind the point, integers are numbers like others.
    let of_decimals = purpose != Use::Compute
        && group.iter().any(|expr| expr.get_type(columns).is_ok_and(|found| is_decimal(&value_type(found))));
    let number_of =
        |expr: &Expr| Number::of(expr).or_else(|| Number::of_integer(expr).filter(|_| of_decimals));
    let numbers: Vec<_> = group.iter().map(|expr| number_of(expr)).collect();
    let types: Vec<_> = group
        .iter()
        .zip(&numbers)
        .map(|(expr, number)| match number {
            // What is written has no type of its own yet.
            Some(_) => None,
            None if is_literal(expr) => None,
            None => expr.get_type(columns).ok().map(value_type),
        })
        .collect();
    let known: Vec<_> = types.iter().flatten().chain(others).cloned().collect();
    let any_float = known.iter().any(DataType::is_floating);
    let any_decimal = known.iter().any(is_decimal);
    let any_long = known.iter().any(|data_type| matches!(data_type, DataType::Int64 | DataType::UInt64));
    let mut changed = false;
    if any_float || any_decimal && numbers.iter().flatten().any(|number| number.comparable(&known).is_none())
    {
        if any_decimal && purpose != Use::Compute {
            for (expr, data_type) in group.iter_mut().zip(&types) {
                if data_type.as_ref().is_some_and(is_decimal) {
                    **expr = as_double(std::mem::take(*expr));
                    changed = true;
                }
            }
        }
        return changed;
    }
    if !(any_decimal || any_long && purpose == Use::Compare) {
        return false;
    }
    for (expr, number) in group.iter_mut().zip(&numbers) {
        let Some(number) = number else { continue };
        let of_integers = || match known.as_slice() {
            [first, rest @ ..] if rest.iter().all(|other| other == first) => number.as_integer(first),
            _ => None,
        };
        let value = match purpose {
            Use::Compute => number.operand(),
            Use::Meet | Use::Compare => of_integers().or_else(|| number.comparable(&known)),
        };
        if let Some(value) = value {
            **expr = Expr::Literal(value, None);
            changed = true;
        }
    }
    changed
}

/// A number that is made a decimal.
fn settle_alone(expr: &mut Expr) -> bool {
    match Number::of(expr).and_then(Number::operand) {
        Some(value) => {
            *expr = Expr::Literal(value, None);
            true
        }
        None => false,
    }
}

fn is_literal(expr: &Expr) -> bool {
    matches!(expr, Expr::Literal(ScalarValue::Int64(_) | ScalarValue::UInt64(_) | ScalarValue::Null, _))
}

fn value_type(data_type: DataType) -> DataType {
    match data_type {
        DataType::Dictionary(_, values) => *values,
        other => other,
    }
}

fn is_decimal(data_type: &DataType) -> bool {
    data_type.is_decimal()
}

fn as_double(expr: Expr) -> Expr {
    cast(expr, DataType::Float64)
}

/// What belongs together across the inputs of a node: the columns of a `UNION`, the keys of a join.
pub(super) fn prepare(plan: LogicalPlan) -> Result<LogicalPlan> {
    match plan {
        LogicalPlan::Union(union) => prepare_union(union),
        LogicalPlan::Join(mut join) => {
            for (left, right) in &mut join.on {
                let left_type = left.get_type(join.left.schema().as_ref()).ok().map(value_type);
                let right_type = right.get_type(join.right.schema().as_ref()).ok().map(value_type);
                let (Some(left_type), Some(right_type)) = (left_type, right_type) else { continue };
                if is_decimal(&left_type) && right_type.is_floating() {
                    *left = as_double(std::mem::take(left));
                } else if left_type.is_floating() && is_decimal(&right_type) {
                    *right = as_double(std::mem::take(right));
                }
            }
            Ok(LogicalPlan::Join(join))
        }
        plan => Ok(plan),
    }
}

fn prepare_union(union: Union) -> Result<LogicalPlan> {
    let mut inputs: Vec<LogicalPlan> =
        union.inputs.iter().map(|input| Arc::unwrap_or_clone(Arc::clone(input))).collect();
    let width = inputs.iter().map(|input| input.schema().fields().len()).min().unwrap_or(0);
    let mut changed = false;
    for column in 0..width {
        let types: Vec<_> = inputs.iter().map(|input| type_of_output(input, column)).collect();
        let known: Vec<_> = types.iter().flatten().cloned().collect();
        if !known.iter().any(is_decimal) {
            continue;
        }
        let any_float = known.iter().any(DataType::is_floating);
        for (input, data_type) in inputs.iter_mut().zip(&types) {
            match data_type {
                Some(data_type) if any_float && is_decimal(data_type) => {
                    *input = with_double(std::mem::take(input), column)?;
                    changed = true;
                }
                None if !any_float => {
                    if let Some(number) =
                        output_number(input, column).and_then(|number| number.comparable(&known))
                    {
                        *input = with_output(std::mem::take(input), column, number)?;
                        changed = true;
                    }
                }
                _ => {}
            }
        }
    }
    if !changed {
        return Ok(LogicalPlan::Union(union));
    }
    let inputs = inputs.into_iter().map(Arc::new).collect();
    Ok(LogicalPlan::Union(Union::try_new_with_loose_types(inputs)?))
}

/// The type of an output column; `None` if it is a number as written.
fn type_of_output(plan: &LogicalPlan, column: usize) -> Option<DataType> {
    if output_number(plan, column).is_some() {
        return None;
    }
    plan.schema().fields().get(column).map(|field| value_type(field.data_type().clone()))
}

fn output_number(plan: &LogicalPlan, column: usize) -> Option<Number> {
    let LogicalPlan::Projection(projection) = plan else { return None };
    Number::of(&projection.expr.get(column)?.clone().unalias())
}

fn with_output(plan: LogicalPlan, column: usize, value: ScalarValue) -> Result<LogicalPlan> {
    let LogicalPlan::Projection(projection) = plan else { return Ok(plan) };
    let mut expr = projection.expr;
    if let Some(output) = expr.get_mut(column) {
        let name = output.qualified_name().1;
        *output = Expr::Literal(value, None).alias(name);
    }
    Projection::try_new(expr, projection.input).map(LogicalPlan::Projection)
}

fn with_double(plan: LogicalPlan, column: usize) -> Result<LogicalPlan> {
    let outputs: Vec<_> = plan
        .schema()
        .iter()
        .enumerate()
        .map(|(index, (qualifier, field))| {
            let output = Expr::Column(Column::new(qualifier.cloned(), field.name()));
            if index == column {
                as_double(output).alias_qualified(qualifier.cloned(), field.name())
            } else {
                output
            }
        })
        .collect();
    LogicalPlanBuilder::from(plan).project(outputs)?.build()
}
