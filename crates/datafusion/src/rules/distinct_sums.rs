//! `sum(x)` beside `sum(DISTINCT x)` is not added up in two steps.
//!
//! DataFusion makes groups of equal values first, and adds up the sums of these groups. Such a sum may not fit its type where the whole
//! sum does: ten times the largest integer and ten times the smallest are little together.

use std::sync::Arc;

use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::optimizer::optimizer::ApplyOrder;
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

/// The rule of DataFusion that makes such groups.
const RULE: &str = "single_distinct_aggregation_to_group_by";

/// The same rules, of which that one leaves sums alone.
pub(super) fn guarded(rule: Arc<dyn OptimizerRule + Send + Sync>) -> Arc<dyn OptimizerRule + Send + Sync> {
    if rule.name() == RULE { Arc::new(NotOfSums { rule }) } else { rule }
}

#[derive(Debug)]
struct NotOfSums {
    rule: Arc<dyn OptimizerRule + Send + Sync>,
}

impl OptimizerRule for NotOfSums {
    fn name(&self) -> &str {
        self.rule.name()
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.rule.apply_order()
    }

    fn rewrite(&self, plan: LogicalPlan, config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        match &plan {
            LogicalPlan::Aggregate(aggregate) if aggregate.aggr_expr.iter().any(is_whole_sum) => {
                Ok(Transformed::no(plan))
            }
            _ => self.rule.rewrite(plan, config),
        }
    }
}

fn is_whole_sum(expr: &Expr) -> bool {
    matches!(expr, Expr::AggregateFunction(call) if call.func.name() == "sum" && !call.params.distinct)
}
