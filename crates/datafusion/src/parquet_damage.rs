//! Damage in Parquet files, which DataFusion reads itself: it says what is wrong, but not where.
//!
//! Where a query fails so, our own reader goes over its files until it meets damage: first the columns that the query gives, then all.
//! That takes as long as reading them, and is worth it: a name and a byte are what the user needs next.

use std::collections::BTreeSet;
use std::sync::Arc;

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::error::ArrowError;
use datafusion::datasource::physical_plan::ParquetSource;
use datafusion::datasource::source::DataSourceExec;
use datafusion::error::DataFusionError;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{ExecutionPlan, SendableRecordBatchStream};
use futures::StreamExt;
use pilaster::OpenOptions;
use pilaster_core::Error;

use crate::error::{root_cause, to_datafusion};

/// The same rows; if they break off because a Parquet file of `plan` is damaged, with the place.
pub(crate) fn with_place(
    stream: SendableRecordBatchStream,
    plan: Arc<dyn ExecutionPlan>,
) -> SendableRecordBatchStream {
    let schema = stream.schema();
    let placed = stream.then(move |batch| {
        let plan = Arc::clone(&plan);
        async move {
            match batch {
                Err(error) if is_parquet_damage(&error) => {
                    let found = tokio::task::spawn_blocking(move || first_damage(plan.as_ref()));
                    Err(found.await.ok().flatten().map_or(error, to_datafusion))
                }
                batch => batch,
            }
        }
    });
    Box::pin(RecordBatchStreamAdapter::new(schema, placed))
}

fn is_parquet_damage(error: &DataFusionError) -> bool {
    root_cause(error).is_none()
        && match error.find_root() {
            DataFusionError::ParquetError(_) => true,
            DataFusionError::ArrowError(error, _) => matches!(error.as_ref(), ArrowError::ParquetError(_)),
            _ => false,
        }
}

/// What our own reader meets in the files of a plan, if that is damage.
fn first_damage(plan: &dyn ExecutionPlan) -> Option<Error> {
    let mut scans = Vec::new();
    collect_scans(plan, &mut scans);
    let of_columns = |is_given: &dyn Fn(&SchemaRef, &str) -> bool| {
        scans.iter().find_map(|(schema, files)| {
            files.iter().find_map(|file| damage_in(file, |name| is_given(schema, name)))
        })
    };
    of_columns(&|schema, name| schema.column_with_name(name).is_some()).or_else(|| of_columns(&|_, _| true))
}

/// Adds what the Parquet scans of a plan give, and the local files they read.
fn collect_scans(plan: &dyn ExecutionPlan, scans: &mut Vec<(SchemaRef, BTreeSet<String>)>) {
    let scan = plan.downcast_ref::<DataSourceExec>();
    if let Some((config, _)) = scan.and_then(|scan| scan.downcast_to_file_source::<ParquetSource>()) {
        let parts = config.file_groups.iter().flat_map(|group| group.files());
        let files = parts.map(|part| format!("/{}", part.object_meta.location));
        scans.push((plan.schema(), files.collect()));
    }
    plan.children().into_iter().for_each(|child| collect_scans(child.as_ref(), scans));
}

fn damage_in(file: &str, is_wanted: impl Fn(&str) -> bool) -> Option<Error> {
    let read = || -> Result<(), Error> {
        let dataset = OpenOptions::default().open(file)?;
        let schema = dataset.schema();
        let wanted = schema.fields().iter().map(|field| field.name()).filter(|name| is_wanted(name.as_str()));
        for batch in dataset.scan().project(wanted.cloned()).read()? {
            batch?;
        }
        Ok(())
    };
    read().err().filter(Error::is_damage)
}
