//! What SQL means here where DataFusion's own meaning would give wrong rows: rules for its analyzer.
//!
//! | module | rule |
//! | --- | --- |
//! | [`depth`] | long chains are made flat, too long ones refused |
//! | [`limits`] | what cannot be planned in time is refused |
//! | [`digits`] | long numbers keep their digits on the way from text to expression |
//! | [`literals`] | a number written beside decimals is a decimal; decimals and floats meet as doubles |
//! | [`floats`] | the zeros of floats are one value, so are all NaN, which bounds know nothing of |
//! | [`bounds`] | nor do the files of Parquet prove anything by the bounds of floats |
//! | [`overflow`] | `+`, `-` and `*` of integers that do not fit are errors |
//! | [`sums`] | so are sums |
//! | [`distinct_sums`] | and sums beside `DISTINCT` ones are added up in one step |
//! | [`addresses`] | addresses are compared as numbers, not as their texts |
//! | [`patterns`] | `LIKE` knows any escape sign |
//! | [`truncate`] | `date_trunc` and `date_bin` of any time |
//! | [`extremes`] | `min` and `max` of floats in groups know infinities and NaN |
//! | [`results`] | functions of small arguments do not give more than memory holds |
//! | [`times`] | written times may lie beyond 2262, and have more digits than a column |
//! | [`clock`] | times of day compare whatever their units, and order windows |
//! | [`years`] | the year of a time is compared with any number |
//! | [`lists`] | lists of `IN` keep their nulls and the columns in them |
//! | [`map_keys`] | the key in `m['a']` has the type of the keys of the map |
//! | [`sides`] | what a column is compared with stands on the right |
//! | [`names`] | a condition on a column of a join is none on another of the same name |

mod address_extremes;
mod addresses;
mod bounds;
mod clock;
pub(crate) mod depth;
pub(crate) mod digits;
mod distinct_sums;
mod extremes;
pub(crate) mod floats;
pub(crate) mod limits;
mod lists;
mod literals;
mod map_keys;
mod names;
mod number;
mod overflow;
mod patterns;
mod results;
mod sides;
mod sums;
mod times;
mod truncate;
mod years;

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, DFSchemaRef};
use datafusion::error::Result;
use datafusion::execution::{SessionState, SessionStateBuilder};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::registry::FunctionRegistry;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::optimizer::{Analyzer, AnalyzerRule, Optimizer};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;
use datafusion::prelude::SessionContext;

use bounds::NoBoundsOfFloats;

/// Puts the rules around DataFusion's own: numbers get their types before the types of expressions are made equal, checks come
/// after that.
pub(crate) fn add_rules(mut builder: SessionStateBuilder) -> SessionStateBuilder {
    let mut rules: Vec<Arc<dyn AnalyzerRule + Send + Sync>> = vec![Arc::new(Literals)];
    rules.extend(Analyzer::new().rules);
    rules.push(Arc::new(Checks));
    let mut physical: Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>> = vec![Arc::new(NoBoundsOfFloats)];
    physical.extend(PhysicalOptimizer::new().rules.into_iter().map(names::guarded));
    builder.expr_planners().get_or_insert_default().push(Arc::new(clock::Comparisons));
    let logical = Optimizer::new().rules.into_iter().map(distinct_sums::guarded).collect();
    builder.with_analyzer_rules(rules).with_optimizer_rules(logical).with_physical_optimizer_rules(physical)
}

/// Puts our functions and our planning of comparisons in the place of DataFusion's, for one condition.
///
/// # Errors
/// If one cannot be replaced.
pub(crate) fn register_for_conditions(state: &mut SessionState) -> Result<()> {
    state.register_expr_planner(Arc::new(clock::Comparisons))?;
    truncate::functions()
        .into_iter()
        .chain(results::functions())
        .try_for_each(|function| state.register_udf(Arc::new(function)).map(drop))
}

/// Puts our functions in the place of DataFusion's.
pub(crate) fn register(context: &SessionContext) {
    sums::checked()
        .into_iter()
        .chain(extremes::of_groups())
        .for_each(|function| context.register_udaf(function));
    truncate::functions()
        .into_iter()
        .chain(results::functions())
        .for_each(|function| context.register_udf(function));
}

/// One expression on rows of `columns`, before DataFusion makes types equal.
pub(crate) fn with_typed_literals(expr: Expr, columns: &DFSchema) -> Result<Expr> {
    type_literals(expr, columns).map(|done| done.data)
}

fn type_literals(expr: Expr, columns: &DFSchema) -> Result<Transformed<Expr>> {
    literals::rewrite(expr, columns)?
        .transform_data(|expr| times::rewrite(expr, columns))?
        .transform_data(|expr| clock::rewrite(expr, columns))?
        .transform_data(patterns::rewrite)?
        .transform_data(|expr| map_keys::rewrite(expr, columns))
}

/// A condition, after DataFusion made types equal.
pub(crate) fn with_checks(expr: Expr, columns: &DFSchemaRef) -> Result<Expr> {
    check(expr, columns, true).map(|done| done.data)
}

fn check(expr: Expr, columns: &DFSchema, is_condition: bool) -> Result<Transformed<Expr>> {
    overflow::rewrite(expr, columns)?
        .transform_data(sides::rewrite)?
        .transform_data(|expr| times::keep_digits(expr, columns))?
        .transform_data(|expr| floats::rewrite(expr, columns))?
        .transform_data(|expr| addresses::rewrite(expr, columns))?
        .transform_data(|expr| years::rewrite(expr, columns))?
        .transform_data(|expr| lists::rewrite(expr, is_condition))
}

#[derive(Debug)]
struct Literals;

impl AnalyzerRule for Literals {
    fn name(&self) -> &'static str {
        "numbers_beside_decimals"
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        let done = plan.transform_up_with_subqueries(|plan| {
            let plan = literals::prepare(plan)?;
            rewrite_expressions(plan, type_literals)
        });
        done.map(|done| done.data)
    }
}

#[derive(Debug)]
struct Checks;

impl AnalyzerRule for Checks {
    fn name(&self) -> &'static str {
        "checked_integers_and_plain_floats"
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        let done = plan.transform_up_with_subqueries(|plan| match plan {
            // The planner takes only plain numbers here.
            LogicalPlan::Limit(_) => Ok(Transformed::no(plan)),
            plan => {
                let is_condition = matches!(plan, LogicalPlan::Filter(_) | LogicalPlan::Join(_));
                rewrite_expressions(addresses::prepare(floats::prepare(plan)?)?, |expr, columns| {
                    check(expr, columns, is_condition)
                })
            }
        });
        done.map(|done| done.data)
    }
}

/// Rewrites the expressions of one node, which keep their names.
fn rewrite_expressions(
    plan: LogicalPlan,
    rewrite: impl Fn(Expr, &DFSchema) -> Result<Transformed<Expr>>,
) -> Result<Transformed<LogicalPlan>> {
    let mut columns = merge_schema(&plan.inputs());
    if let LogicalPlan::TableScan(scan) = &plan {
        columns.merge(&DFSchema::try_from_qualified_schema(scan.table_name.clone(), &scan.source.schema())?);
    }
    let names = NamePreserver::new(&plan);
    plan.map_expressions(|expr| {
        let name = names.save(&expr);
        Ok(rewrite(expr, &columns)?.update_data(|expr| name.restore(expr)))
    })?
    .map_data(LogicalPlan::recompute_schema)
}
