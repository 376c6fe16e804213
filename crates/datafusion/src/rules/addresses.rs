//! Addresses are compared as the numbers they are.
//!
//! IPV4 and IPV6 of Doris leave as text, and their fields say so ([`pilaster_core::order`]). As texts, `10.0.0.1` comes before
//! `9.0.0.0`. Here addresses become their sixteen bytes where their order matters; where only equality does, what is written
//! beside them becomes the usual text of the same address, which scans and their indexes know.

use std::net::IpAddr;
use std::sync::{Arc, LazyLock};

use datafusion::arrow::array::builder::BinaryBuilder;
use datafusion::arrow::array::{Array, AsArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::metadata::FieldMetadata;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, ExprSchema, ScalarValue, exec_err};
use datafusion::error::Result;
use datafusion::logical_expr::expr::{Case, WindowFunctionDefinition};
use datafusion::logical_expr::{
    AggregateUDF, BinaryExpr, ColumnarValue, Distinct, Expr, ExprSchemable, LogicalPlan, Operator,
    ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, SortExpr, Volatility,
};
use pilaster_core::Error;
use pilaster_core::order::{KEY, Order};

use super::address_extremes::extreme;
use super::floats::is_comparison;
use crate::error::to_datafusion;
use crate::translate::scalar_of;

/// Has the addresses in `expr` compared as such.
pub(super) fn rewrite(expr: Expr, columns: &DFSchema) -> Result<Transformed<Expr>> {
    expr.transform_up(|mut expr| {
        let changed = match &mut expr {
            Expr::BinaryExpr(BinaryExpr { left, op, right }) if is_comparison(*op) => {
                use Operator::{Gt, GtEq, Lt, LtEq};
                let is_equality = !matches!(op, Lt | LtEq | Gt | GtEq);
                settle(&mut [left.as_mut(), right.as_mut()], is_equality, columns)?
            }
            Expr::Between(between) => {
                let group = &mut [between.expr.as_mut(), between.low.as_mut(), between.high.as_mut()];
                settle(group, false, columns)?
            }
            Expr::InList(list) => {
                let mut group = vec![list.expr.as_mut()];
                group.extend(list.list.iter_mut());
                settle(&mut group, true, columns)?
            }
            Expr::Case(Case { expr: Some(operand), when_then_expr, .. }) => {
                let mut group = vec![operand.as_mut()];
                group.extend(when_then_expr.iter_mut().map(|(when, _)| when.as_mut()));
                settle(&mut group, true, columns)?
            }
            Expr::ScalarFunction(call)
                if matches!(call.func.name(), "greatest" | "least")
                    && call.args.iter().any(|arg| order_of(arg, columns).is_some()) =>
            {
                let said = format!("sql: {} knows no addresses; CASE compares them", call.func.name());
                return Err(to_datafusion(Error::invalid(said)));
            }
            Expr::AggregateFunction(call) => {
                let instead = extreme_of_addresses(&call.func, &call.params.args, columns);
                let is_replaced = instead.is_some();
                call.func = instead.unwrap_or_else(|| Arc::clone(&call.func));
                order_by_address(&mut call.params.order_by, columns) || is_replaced
            }
            Expr::WindowFunction(call) => {
                let instead = match &call.fun {
                    WindowFunctionDefinition::AggregateUDF(func) => {
                        extreme_of_addresses(func, &call.params.args, columns)
                    }
                    WindowFunctionDefinition::WindowUDF(_) => None,
                };
                let is_replaced = instead.is_some();
                if let Some(func) = instead {
                    call.fun = WindowFunctionDefinition::AggregateUDF(func);
                }
                order_by_address(&mut call.params.order_by, columns) || is_replaced
            }
            _ => false,
        };
        Ok(if changed { Transformed::yes(expr) } else { Transformed::no(expr) })
    })
}

/// Has a node sort by addresses, and what it computes of them known as such.
pub(super) fn prepare(plan: LogicalPlan) -> Result<LogicalPlan> {
    Ok(match plan {
        LogicalPlan::Sort(mut sort) => {
            order_by_address(&mut sort.expr, sort.input.schema());
            LogicalPlan::Sort(sort)
        }
        LogicalPlan::Distinct(Distinct::On(mut distinct)) => {
            let columns = Arc::clone(distinct.input.schema());
            for expr in &mut distinct.on_expr {
                by_address(expr, &columns);
            }
            order_by_address(distinct.sort_expr.as_deref_mut().unwrap_or_default(), &columns);
            LogicalPlan::Distinct(Distinct::On(distinct))
        }
        LogicalPlan::Projection(mut projection) => {
            let columns = Arc::clone(projection.input.schema());
            for output in &mut projection.expr {
                let Some(order) = order_of(output, &columns) else { continue };
                if output.metadata(columns.as_ref())?.inner().contains_key(KEY) {
                    continue;
                }
                let (relation, name) = output.qualified_name();
                let says: FieldMetadata = order.metadata().into();
                *output = std::mem::take(output).unalias().alias_qualified_with_metadata(
                    relation,
                    name,
                    Some(says),
                );
            }
            LogicalPlan::Projection(projection)
        }
        plan => plan,
    })
}

fn order_by_address(orders: &mut [SortExpr], columns: &DFSchema) -> bool {
    let mut changed = false;
    for order in orders {
        changed |= by_address(&mut order.expr, columns);
    }
    changed
}

/// Puts the bytes of an address in its place; true if it is one.
fn by_address(expr: &mut Expr, columns: &DFSchema) -> bool {
    let is_address = order_of(expr, columns).is_some();
    if is_address {
        *expr = ORDERED.call(vec![std::mem::take(expr)]);
    }
    is_address
}

/// `min` or `max` of addresses.
fn extreme_of_addresses(func: &AggregateUDF, args: &[Expr], columns: &DFSchema) -> Option<Arc<AggregateUDF>> {
    let [arg] = args else { return None };
    if !matches!(func.name(), "min" | "max") {
        return None;
    }
    order_of(arg, columns).map(|order| extreme(func.name() == "max", order))
}

/// How an expression is ordered, if it gives addresses.
fn order_of(expr: &Expr, columns: &DFSchema) -> Option<Order> {
    match expr {
        Expr::Column(column) => Order::of(columns.field_from_column(column).ok()?),
        Expr::OuterReferenceColumn(field, _) => Order::of(field),
        Expr::Alias(alias) => order_of(&alias.expr, columns),
        Expr::Cast(cast) if is_text(cast.field.data_type()) => order_of(&cast.expr, columns),
        Expr::TryCast(cast) if is_text(cast.field.data_type()) => order_of(&cast.expr, columns),
        Expr::Case(case) => {
            let results = case.when_then_expr.iter().map(|(_, then)| then.as_ref());
            first_order(results.chain(case.else_expr.as_deref()), columns)
        }
        Expr::ScalarFunction(call) => match call.func.name() {
            "coalesce" | "nvl" | "ifnull" => first_order(call.args.iter(), columns),
            "nullif" => first_order(call.args.iter().take(1), columns),
            "nvl2" => first_order(call.args.iter().skip(1), columns),
            _ => None,
        },
        Expr::AggregateFunction(call) => match call.func.name() {
            "min" | "max" | "first_value" | "last_value" | "nth_value" | "any_value" => {
                first_order(call.params.args.iter().take(1), columns)
            }
            _ => None,
        },
        Expr::WindowFunction(call) => match call.fun.name() {
            "min" | "max" | "first_value" | "last_value" | "nth_value" | "lead" | "lag" => {
                first_order(call.params.args.iter().take(1), columns)
            }
            _ => None,
        },
        Expr::ScalarSubquery(subquery) => {
            subquery.subquery.schema().fields().first().and_then(|field| Order::of(field))
        }
        _ => None,
    }
}

fn first_order<'a>(exprs: impl IntoIterator<Item = &'a Expr>, columns: &DFSchema) -> Option<Order> {
    exprs.into_iter().find_map(|expr| order_of(expr, columns))
}

fn is_text(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
}

/// Brings what is compared to one form; true if there are addresses in it.
fn settle(group: &mut [&mut Expr], is_equality: bool, columns: &DFSchema) -> Result<bool> {
    let orders: Vec<_> = group.iter().map(|expr| order_of(expr, columns)).collect();
    let Some(order) = orders.iter().flatten().next().copied() else { return Ok(false) };
    let mut written = Vec::with_capacity(group.len());
    for expr in group.iter() {
        written.push(match scalar_of(expr) {
            Some(value) if value.is_null() => Some(None),
            Some(value) => match value.try_as_str().flatten() {
                Some(text) => Some(Some(address(text)?)),
                None => return Ok(false),
            },
            None => None,
        });
    }
    let are_usual =
        orders.iter().zip(&written).all(|(found, written)| written.is_some() || *found == Some(order));
    for (expr, written) in group.iter_mut().zip(written) {
        let text_type = expr.get_type(columns)?;
        match written {
            Some(address) if is_equality && are_usual => {
                let text = address.map(|address| order.usual_text(address));
                **expr = Expr::Literal(ScalarValue::Utf8(text).cast_to(&text_type)?, None);
            }
            Some(address) => {
                let bytes = address.map(|address| octets(address).to_vec());
                **expr = Expr::Literal(ScalarValue::Binary(bytes), None);
            }
            None if is_equality && are_usual => {}
            None => **expr = ORDERED.call(vec![std::mem::take(*expr)]),
        }
    }
    Ok(true)
}

/// An address that was written.
pub(super) fn address(text: &str) -> Result<IpAddr> {
    text.parse().map_err(|_| to_datafusion(Error::invalid(format!("sql: '{text}' is no address"))))
}

/// Sixteen bytes in the order of addresses; those of IPv4 are in their place among those of IPv6.
pub(super) fn octets(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
        IpAddr::V6(address) => address.octets(),
    }
}

static ORDERED: LazyLock<ScalarUDF> =
    LazyLock::new(|| ScalarUDF::from(Ordered { signature: Signature::any(1, Volatility::Immutable) }));

/// The bytes of an address.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Ordered {
    signature: Signature,
}

impl ScalarUDFImpl for Ordered {
    fn name(&self) -> &'static str {
        "address_bytes"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Binary)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [texts] = args.args.as_slice() else { return exec_err!("the bytes of one address") };
        let texts = cast(&texts.to_array(args.number_rows)?, &DataType::Utf8View)?;
        let mut bytes = BinaryBuilder::with_capacity(texts.len(), texts.len().saturating_mul(16));
        for text in texts.as_string_view() {
            bytes.append_option(text.map(address).transpose()?.map(octets));
        }
        Ok(ColumnarValue::Array(Arc::new(bytes.finish())))
    }
}
