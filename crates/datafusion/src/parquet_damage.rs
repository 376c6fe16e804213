//! Damage in Parquet files, which DataFusion reads itself: it says what is wrong, but not where, and panics over some.
//!
//! Where a query fails so, our own reader goes over its files until it meets damage: first the columns that the query gives, then all.
//! That takes as long as reading them, and is worth it: a name and a byte are what the user needs next. A panic for which no file is
//! found to be damaged is a fault of the program.

use std::any::Any;
use std::collections::BTreeSet;
use std::error::Error as StdError;
use std::fmt;
use std::panic::AssertUnwindSafe;
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
use tokio::task::JoinError;

use crate::error::{root_cause, to_datafusion};

/// A panic of DataFusion, in its words. It becomes [`pilaster_core::ErrorKind::Internal`] unless damage is found in a file.
#[derive(Debug)]
pub(crate) struct EnginePanic(String);

impl fmt::Display for EnginePanic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl StdError for EnginePanic {}

/// The same rows; if who makes them panics, an error.
pub(crate) fn without_panics(stream: SendableRecordBatchStream) -> SendableRecordBatchStream {
    let schema = stream.schema();
    let caught = AssertUnwindSafe(stream).catch_unwind();
    let rows = caught.map(|batch| batch.unwrap_or_else(|panic| Err(panicked(panic.as_ref()))));
    Box::pin(RecordBatchStreamAdapter::new(schema, rows))
}

/// What a panic says as an error.
pub(crate) fn panicked(panic: &(dyn Any + Send)) -> DataFusionError {
    let text = panic.downcast_ref::<&str>().map(ToString::to_string);
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    DataFusionError::External(Box::new(EnginePanic(text.unwrap_or_else(|| NO_WORDS.to_string()))))
}

const NO_WORDS: &str = "a panic without words";

/// What the panic inside an error says: ours, or that of a task that DataFusion started, of which it made an error already.
pub(crate) fn panic_in(error: &DataFusionError) -> Option<String> {
    let mut next: Option<&(dyn StdError + 'static)> = Some(error);
    while let Some(error) = next {
        if let Some(panic) = error.downcast_ref::<EnginePanic>() {
            return Some(panic.to_string());
        }
        // The source of an external error is the source of what it carries, not the carried error itself.
        if let Some(DataFusionError::External(carried)) = error.downcast_ref::<DataFusionError>()
            && let Some(panic) = carried.downcast_ref::<EnginePanic>()
        {
            return Some(panic.to_string());
        }
        let shared = error.downcast_ref::<Arc<JoinError>>().map(AsRef::as_ref);
        if let Some(task) = shared.or_else(|| error.downcast_ref::<JoinError>()) {
            let text = task.to_string();
            let words = text.split_once("panicked with message ").map(|(_, words)| words.trim_matches('"'));
            return task.is_panic().then(|| words.unwrap_or(NO_WORDS).to_string());
        }
        next = match error.downcast_ref::<Arc<DataFusionError>>() {
            Some(shared) => Some(shared.as_ref()),
            None => error.source(),
        };
    }
    None
}

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
                Err(error) if may_be_parquet_damage(&error) => {
                    let found = tokio::task::spawn_blocking(move || first_damage(plan.as_ref()));
                    Err(found.await.ok().flatten().map_or(error, to_datafusion))
                }
                batch => batch,
            }
        }
    });
    Box::pin(RecordBatchStreamAdapter::new(schema, placed))
}

fn may_be_parquet_damage(error: &DataFusionError) -> bool {
    root_cause(error).is_none()
        && match error.find_root() {
            DataFusionError::ParquetError(_) => true,
            DataFusionError::ArrowError(error, _) => matches!(error.as_ref(), ArrowError::ParquetError(_)),
            _ => panic_in(error).is_some(),
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

/// What our own reader meets in the Parquet files that a statement names, if that is damage.
pub(crate) fn damage_in_files(paths: &[String]) -> Option<Error> {
    paths.iter().filter(|path| path.ends_with(".parquet")).find_map(|path| damage_in(path, |_| true))
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
