//! The plan node that reads a dataset.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::{RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::Statistics;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::TaskContext;
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{
    Boundedness, EmissionType, ReplaceChildrenOptions, SchedulingType,
};
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::stream::RecordBatchReceiverStreamBuilder;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, EmptyRecordBatchStream, ExecutionPlan, Partitioning, PlanProperties,
    SendableRecordBatchStream,
};
use pilaster_core::{DatasetRef, ScanPlan, ScanRequest, ScanTask};
use tokio::sync::mpsc::Sender;

use crate::error::to_datafusion;
use crate::hidden::cleared;

/// Batches decoded ahead of the consumer, per partition.
const BATCHES_AHEAD: usize = 2;

/// Reads a dataset: each partition is a task of the scan's plan, decoded on a thread of its own.
#[derive(Debug)]
pub struct PilasterExec {
    dataset: DatasetRef,
    request: ScanRequest,
    /// One for each partition; of a scan without rows there is a partition, and no task.
    tasks: Vec<ScanTask>,
    statistics: Statistics,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl PilasterExec {
    /// Reads what was planned of `dataset`, in at most `partitions` partitions.
    ///
    /// # Errors
    /// If the tasks of the plan cannot be found.
    pub fn try_new(
        dataset: DatasetRef,
        plan: &ScanPlan,
        partitions: usize,
        statistics: Statistics,
    ) -> Result<Self> {
        let (schema, request) = (plan.schema(), plan.request().clone());
        let tasks = plan.tasks_for(partitions).map_err(to_datafusion)?;
        let properties = PlanProperties::new(
            EquivalenceProperties::new(schema),
            Partitioning::UnknownPartitioning(tasks.len().max(1)),
            EmissionType::Incremental,
            Boundedness::Bounded,
        )
        .with_scheduling_type(SchedulingType::Cooperative);
        let mut statistics = statistics.project(request.projection.as_ref());
        if request.predicate.is_some() || request.limit.is_some() || dataset.row_count().is_none() {
            statistics = statistics.to_inexact();
        }
        Ok(Self {
            dataset,
            request,
            tasks,
            statistics,
            properties: Arc::new(properties),
            metrics: ExecutionPlanMetricsSet::new(),
        })
    }
}

impl DisplayAs for PilasterExec {
    fn fmt_as(&self, style: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let separator = match style {
            DisplayFormatType::TreeRender => "\n",
            DisplayFormatType::Default | DisplayFormatType::Verbose => {
                f.write_str("PilasterExec: ")?;
                ", "
            }
        };
        write!(f, "format={}{separator}name={}", self.dataset.format(), self.dataset.name())?;
        if self.request.projection.is_some() {
            let schema = self.schema();
            let names: Vec<_> = schema.fields().iter().map(|field| field.name().as_str()).collect();
            write!(f, "{separator}projection=[{}]", names.join(", "))?;
        }
        if let Some(predicate) = &self.request.predicate {
            write!(f, "{separator}predicate={predicate}")?;
        }
        if let Some(limit) = self.request.limit {
            write!(f, "{separator}limit={limit}")?;
        }
        Ok(())
    }
}

impl ExecutionPlan for PilasterExec {
    fn name(&self) -> &'static str {
        "PilasterExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn replace_children(
        self: Arc<Self>,
        _children: Vec<Arc<dyn ExecutionPlan>>,
        _options: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn with_new_children(
        self: Arc<Self>,
        _children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn apply_expressions(
        &self,
        _f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn execute(&self, partition: usize, _context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        if partition >= self.tasks.len().max(1) {
            return Err(DataFusionError::Internal(format!("no partition {partition}")));
        }
        let schema = self.schema();
        let Some(scan) = self.tasks.get(partition).cloned() else {
            return Ok(Box::pin(EmptyRecordBatchStream::new(schema)));
        };
        let mut stream = RecordBatchReceiverStreamBuilder::new(Arc::clone(&schema), BATCHES_AHEAD);
        let metrics = BaselineMetrics::new(&self.metrics, partition);
        let task = PartitionTask { scan, schema, metrics, output: stream.tx() };
        stream.spawn_blocking(move || task.run());
        Ok(stream.build())
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn statistics_from_inputs(
        &self,
        _inputs: &[Arc<Statistics>],
        args: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        Ok(Arc::new(match args.partition() {
            None => self.statistics.clone(),
            // One partition of one is the whole; what each of several holds is not known.
            Some(_) if self.tasks.len() <= 1 => self.statistics.clone(),
            Some(_) => Statistics::new_unknown(&self.schema()),
        }))
    }
}

/// One partition being read on its own thread.
struct PartitionTask {
    scan: ScanTask,
    schema: SchemaRef,
    metrics: BaselineMetrics,
    output: Sender<Result<RecordBatch>>,
}

impl PartitionTask {
    /// Reads until nobody wants more.
    fn run(self) -> Result<()> {
        let mut reader = self.timed(|task| task.scan.read()).map_err(to_datafusion)?;
        while let Some(batch) = self.timed(|_| reader.next()) {
            let batch = self.conform(batch?)?;
            self.metrics.record_output(batch.num_rows());
            if self.output.blocking_send(Ok(batch)).is_err() {
                break;
            }
        }
        self.metrics.done();
        Ok(())
    }

    fn timed<T>(&self, work: impl FnOnce(&Self) -> T) -> T {
        let _timer = self.metrics.elapsed_compute().timer();
        work(self)
    }

    /// The batch under the planned schema. A dataset that breaks its word about types is refused here, by name,
    /// before it can confuse an operator above, and what a null hides is null for all of them.
    fn conform(&self, batch: RecordBatch) -> Result<RecordBatch> {
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        let columns = batch.columns().iter().map(cleared).collect::<Result<_, _>>()?;
        Ok(RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)?)
    }
}
