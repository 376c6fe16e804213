//! Damage in Parquet files, which DataFusion reads itself: it says what is wrong, but not where.

use std::sync::Arc;

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

/// The same rows. Where they break off because a Parquet file of `plan` is damaged, our own reader goes over these files for the place.
pub(crate) fn with_place(
    stream: SendableRecordBatchStream,
    plan: &dyn ExecutionPlan,
) -> SendableRecordBatchStream {
    let mut files = Vec::new();
    collect_files(plan, &mut files);
    if files.is_empty() {
        return stream;
    }
    let files: Arc<[String]> = files.into();
    let schema = stream.schema();
    let placed = stream.then(move |batch| {
        let files = Arc::clone(&files);
        async move {
            match batch {
                Err(error) if is_parquet_damage(&error) => {
                    let found =
                        tokio::task::spawn_blocking(move || files.iter().find_map(|file| first_damage(file)));
                    Err(found.await.ok().flatten().map_or(error, to_datafusion))
                }
                batch => batch,
            }
        }
    });
    Box::pin(RecordBatchStreamAdapter::new(schema, placed))
}

/// Adds the local Parquet files that a plan reads.
fn collect_files(plan: &dyn ExecutionPlan, files: &mut Vec<String>) {
    let scan = plan.downcast_ref::<DataSourceExec>();
    if let Some((config, _)) = scan.and_then(|scan| scan.downcast_to_file_source::<ParquetSource>()) {
        let parts = config.file_groups.iter().flat_map(|group| group.files());
        for part in parts {
            let file = format!("/{}", part.object_meta.location);
            if !files.contains(&file) {
                files.push(file);
            }
        }
    }
    plan.children().into_iter().for_each(|child| collect_files(child.as_ref(), files));
}

fn is_parquet_damage(error: &DataFusionError) -> bool {
    root_cause(error).is_none()
        && match error.find_root() {
            DataFusionError::ParquetError(_) => true,
            DataFusionError::ArrowError(error, _) => matches!(error.as_ref(), ArrowError::ParquetError(_)),
            _ => false,
        }
}

/// What our own reader meets in a file, if that is damage.
fn first_damage(file: &str) -> Option<Error> {
    let read = || -> Result<(), Error> {
        for batch in OpenOptions::default().open(file)?.scan().read()? {
            batch?;
        }
        Ok(())
    };
    read().err().filter(Error::is_damage)
}
