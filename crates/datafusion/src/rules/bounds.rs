//! Bounds of floats in Parquet prove nothing, since they leave NaN out: DataFusion takes a file whose bounds are 1.0 and 1.0 for
//! one that holds nothing else.

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{ColumnStatistics, ScalarValue, Statistics};
use datafusion::datasource::physical_plan::{FileGroup, FileScanConfig, FileScanConfigBuilder};
use datafusion::datasource::source::DataSourceExec;
use datafusion::error::Result;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;

/// Takes the bounds of floats away from scans of files.
#[derive(Debug)]
pub(super) struct NoBoundsOfFloats;

impl PhysicalOptimizerRule for NoBoundsOfFloats {
    fn name(&self) -> &'static str {
        "no_bounds_of_floats"
    }

    fn schema_check(&self) -> bool {
        true
    }

    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let done = plan.transform_up(|plan| {
            let scan = plan.downcast_ref::<DataSourceExec>();
            let config = scan.and_then(|scan| scan.data_source().downcast_ref::<FileScanConfig>());
            Ok(match config.and_then(without_bounds) {
                Some(config) => Transformed::yes(DataSourceExec::from_data_source(config) as _),
                None => Transformed::no(plan),
            })
        });
        done.map(|done| done.data)
    }
}

fn without_bounds(config: &FileScanConfig) -> Option<FileScanConfig> {
    let of_files = config.file_groups.iter().flat_map(FileGroup::iter);
    let has_bounds = of_files.filter_map(|file| file.statistics.as_deref()).any(has_bounds_of_floats);
    let statistics = config.statistics();
    if !has_bounds && !has_bounds_of_floats(&statistics) {
        return None;
    }
    let groups = config.file_groups.iter().map(|group| {
        let mut files = group.clone().into_inner();
        for known in files.iter_mut().filter_map(|file| file.statistics.as_mut()) {
            *known = Arc::new(strip(known.as_ref().clone()));
        }
        FileGroup::new(files)
    });
    let groups = groups.collect();
    let config = FileScanConfigBuilder::from(config.clone());
    Some(config.with_file_groups(groups).with_statistics(strip(statistics)).build())
}

fn has_bounds_of_floats(statistics: &Statistics) -> bool {
    statistics.column_statistics.iter().any(is_of_floats)
}

fn is_of_floats(column: &ColumnStatistics) -> bool {
    let is_float = |bound: &Precision<ScalarValue>| {
        bound.get_value().is_some_and(|value| value.data_type().is_floating())
    };
    is_float(&column.min_value) || is_float(&column.max_value)
}

fn strip(mut statistics: Statistics) -> Statistics {
    for column in statistics.column_statistics.iter_mut().filter(|column| is_of_floats(column)) {
        column.min_value = Precision::Absent;
        column.max_value = Precision::Absent;
    }
    statistics
}
