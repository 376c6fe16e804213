//! A condition on a column of a join is none on another of the same name.
//!
//! DataFusion pushes conditions down physical plans, and what sorts and joins learn while they run, by the names of columns. Where a plan
//! gives two columns of one name, as joins do, it takes the first. While it does so, a barrier stands above such plans.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};

type Rule = Arc<dyn PhysicalOptimizerRule + Send + Sync>;

/// The same rule, with barriers if it is one that pushes conditions down.
pub(super) fn guarded(rule: Rule) -> Rule {
    if rule.name().starts_with("FilterPushdown") { Arc::new(Guarded { rule }) } else { rule }
}

#[derive(Debug)]
struct Guarded {
    rule: Rule,
}

impl PhysicalOptimizerRule for Guarded {
    fn name(&self) -> &str {
        self.rule.name()
    }

    fn schema_check(&self) -> bool {
        self.rule.schema_check()
    }

    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let with_barriers = plan.transform_up(|plan| {
            Ok(if has_a_name_twice(plan.as_ref()) {
                Transformed::yes(Arc::new(Barrier { inner: plan }) as Arc<dyn ExecutionPlan>)
            } else {
                Transformed::no(plan)
            })
        })?;
        if !with_barriers.transformed {
            return self.rule.optimize(with_barriers.data, config);
        }
        let done = self.rule.optimize(with_barriers.data, config)?.transform_up(|plan| {
            Ok(match plan.downcast_ref::<Barrier>() {
                Some(barrier) => Transformed::yes(Arc::clone(&barrier.inner)),
                None => Transformed::no(plan),
            })
        });
        done.map(|done| done.data)
    }
}

fn has_a_name_twice(plan: &dyn ExecutionPlan) -> bool {
    let mut names = HashSet::new();
    !plan.schema().fields().iter().all(|field| names.insert(field.name().clone()))
}

/// The same rows; no condition passes, which is what plans do unless they say otherwise.
#[derive(Debug)]
struct Barrier {
    inner: Arc<dyn ExecutionPlan>,
}

impl DisplayAs for Barrier {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Barrier")
    }
}

impl ExecutionPlan for Barrier {
    fn name(&self) -> &'static str {
        "Barrier"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.inner.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.inner]
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let inner = children.into_iter().next();
        let inner = inner.ok_or_else(|| DataFusionError::Internal("a barrier has one input".to_string()))?;
        Ok(Arc::new(Self { inner }))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        self.inner.execute(partition, context)
    }
}
