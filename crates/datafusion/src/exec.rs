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
    DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties, SendableRecordBatchStream,
};
use pilaster_core::{DatasetRef, ScanRequest};
use tokio::sync::mpsc::Sender;

use crate::error::to_datafusion;
use crate::hidden::cleared;

/// Batches decoded ahead of the consumer, per partition.
const BATCHES_AHEAD: usize = 2;

/// Reads a dataset: each partition is a contiguous group of its splits, decoded on a thread of its own.
#[derive(Debug)]
pub struct PilasterExec {
    dataset: DatasetRef,
    request: ScanRequest,
    groups: Arc<[Vec<usize>]>,
    statistics: Statistics,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl PilasterExec {
    /// A plan that answers `request`, with one partition per group of split numbers.
    ///
    /// # Errors
    /// If the request projects columns that are not there.
    pub fn try_new(
        dataset: DatasetRef,
        request: ScanRequest,
        groups: Vec<Vec<usize>>,
        statistics: Statistics,
    ) -> Result<Self> {
        let schema = request.output_schema(&dataset.schema()).map_err(to_datafusion)?;
        let properties = PlanProperties::new(
            EquivalenceProperties::new(schema),
            Partitioning::UnknownPartitioning(groups.len()),
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
            groups: groups.into(),
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

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        if partition >= self.groups.len() {
            return Err(DataFusionError::Internal(format!("no partition {partition}")));
        }
        let schema = self.schema();
        let mut stream = RecordBatchReceiverStreamBuilder::new(Arc::clone(&schema), BATCHES_AHEAD);
        let task = PartitionTask {
            dataset: Arc::clone(&self.dataset),
            request: ScanRequest {
                batch_size: context.session_config().batch_size(),
                ..self.request.clone()
            },
            groups: Arc::clone(&self.groups),
            partition,
            schema,
            metrics: BaselineMetrics::new(&self.metrics, partition),
            output: stream.tx(),
        };
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
            Some(_) if self.groups.len() == 1 => self.statistics.clone(),
            Some(_) => Statistics::new_unknown(&self.schema()),
        }))
    }
}

/// One partition being read on its own thread.
struct PartitionTask {
    dataset: DatasetRef,
    request: ScanRequest,
    groups: Arc<[Vec<usize>]>,
    partition: usize,
    schema: SchemaRef,
    metrics: BaselineMetrics,
    output: Sender<Result<RecordBatch>>,
}

impl PartitionTask {
    fn run(mut self) -> Result<()> {
        let groups = Arc::clone(&self.groups);
        for &split in groups.get(self.partition).into_iter().flatten() {
            if self.request.limit == Some(0) || !self.read_split(split)? {
                break;
            }
        }
        self.metrics.done();
        Ok(())
    }

    /// Reads one split; false when nobody wants more.
    fn read_split(&mut self, split: usize) -> Result<bool> {
        self.request.split = Some(split);
        let mut reader = self.timed(|task| task.dataset.read(&task.request)).map_err(to_datafusion)?;
        while let Some(batch) = self.timed(|_| reader.next()) {
            let batch = self.conform(batch?)?;
            let rows = batch.num_rows();
            if let Some(limit) = &mut self.request.limit {
                *limit = limit.saturating_sub(u64::try_from(rows).unwrap_or(u64::MAX));
            }
            self.metrics.record_output(rows);
            if self.output.blocking_send(Ok(batch)).is_err() {
                return Ok(false);
            }
        }
        Ok(true)
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
