//! Any dataset as a table of DataFusion.

use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::Statistics;
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;
use pilaster_core::{DatasetRef, Predicate, ScanRequest};

use crate::error::to_datafusion;
use crate::exec::PilasterExec;
use crate::filter::{RowFilter, all_of};
use crate::statistics::table_statistics;
use crate::translate::translate;

/// A dataset as a table: projection, filters and limit go down into its scan, its statistics come up.
#[derive(Debug)]
pub struct PilasterTable {
    dataset: DatasetRef,
    schema: SchemaRef,
    statistics: OnceLock<Statistics>,
}

impl PilasterTable {
    /// A table over `dataset`.
    pub fn new(dataset: DatasetRef) -> Self {
        let schema = dataset.schema();
        Self { dataset, schema, statistics: OnceLock::new() }
    }

    /// What the table reads from.
    pub fn dataset(&self) -> &DatasetRef {
        &self.dataset
    }

    fn known_statistics(&self) -> &Statistics {
        self.statistics.get_or_init(|| table_statistics(self.dataset.as_ref()))
    }
}

#[async_trait]
impl TableProvider for PilasterTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let (predicate, rest) = divide(filters, &self.schema);
        // Filters are offered before the last simplification, so one of them may have become what no scan can say.
        let dataset = match RowFilter::of_rest(rest) {
            Some(filter) => filter.apply(Arc::clone(&self.dataset)),
            None => Arc::clone(&self.dataset),
        };
        let request = ScanRequest {
            projection: projection.cloned(),
            predicate,
            limit: limit.map(|rows| u64::try_from(rows).unwrap_or(u64::MAX)),
            batch_size: state.config().batch_size(),
            ..ScanRequest::default()
        };
        // Without a filter the first rows answer a limit: one thread reads them and stops.
        let target = if request.limit.is_some() && filters.is_empty() {
            1
        } else {
            state.config().target_partitions()
        };
        let plan = dataset.plan(&request).map_err(to_datafusion)?;
        let mut statistics = self.known_statistics().clone();
        if !filters.is_empty() {
            statistics = statistics.to_inexact();
        }
        Ok(Arc::new(PilasterExec::try_new(dataset, &plan, target, statistics)?))
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        Ok(filters
            .iter()
            .map(|filter| match translate(filter, &self.schema) {
                Some(_) => TableProviderFilterPushDown::Exact,
                None => TableProviderFilterPushDown::Unsupported,
            })
            .collect())
    }

    fn statistics(&self) -> Option<Statistics> {
        Some(self.known_statistics().clone())
    }
}

/// What the scan applies itself, and what it cannot say.
fn divide(filters: &[Expr], schema: &SchemaRef) -> (Option<Predicate>, Vec<Expr>) {
    let (mut predicates, mut rest) = (Vec::new(), Vec::new());
    for filter in filters {
        match translate(filter, schema) {
            Some(predicate) => predicates.push(predicate),
            None => rest.push(filter.clone()),
        }
    }
    (all_of(predicates), rest)
}
