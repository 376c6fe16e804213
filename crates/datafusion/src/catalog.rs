//! `FROM 'path'`: names that are paths become tables.

use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider, TableProviderFactory, UrlTableFactory};
use datafusion::datasource::dynamic_file::DynamicListTableFactory;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::CreateExternalTable;
use futures::FutureExt;
use pilaster_core::{Error, widen};

use crate::error::to_datafusion;
use crate::irregular;
use crate::open::TableCache;
use crate::table::PilasterTable;

/// Makes tables of paths: Parquet by DataFusion's own reader, everything else by ours.
#[derive(Debug)]
pub(crate) struct PathTables {
    cache: Arc<TableCache>,
    listing: Arc<DynamicListTableFactory>,
}

impl PathTables {
    pub(crate) fn new(cache: Arc<TableCache>, listing: Arc<DynamicListTableFactory>) -> Self {
        Self { cache, listing }
    }
}

#[async_trait]
impl UrlTableFactory for PathTables {
    async fn try_new(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        if !looks_like_a_path(name) {
            return Ok(None);
        }
        // A Parquet file that DataFusion cannot open, or panics over, is opened by us too: for the error that says where it is damaged.
        if is_local_parquet(name)
            && let Ok(Ok(Some(table))) = AssertUnwindSafe(self.listing.try_new(name)).catch_unwind().await
            && leaves_as_it_is(&table.schema())
        {
            return Ok(Some(table));
        }
        Ok(Some(open_in_background(&self.cache, name).await?))
    }
}

/// `CREATE EXTERNAL TABLE name STORED AS PILASTER LOCATION 'path'`.
#[derive(Debug)]
pub(crate) struct PilasterTableFactory {
    cache: Arc<TableCache>,
}

impl PilasterTableFactory {
    pub(crate) fn new(cache: Arc<TableCache>) -> Self {
        Self { cache }
    }
}

#[async_trait]
impl TableProviderFactory for PilasterTableFactory {
    async fn create(
        &self,
        _state: &dyn Session,
        command: &CreateExternalTable,
    ) -> Result<Arc<dyn TableProvider>> {
        let [location] = command.locations.as_slice() else {
            return Err(to_datafusion(Error::invalid("a table stored as pilaster has one location")));
        };
        Ok(open_in_background(&self.cache, location).await?)
    }
}

/// Opens on a thread that may block: opening reads footers and indexes.
async fn open_in_background(cache: &Arc<TableCache>, address: &str) -> Result<Arc<PilasterTable>> {
    let (cache, address) = (Arc::clone(cache), address.to_string());
    tokio::task::spawn_blocking(move || cache.open(&address))
        .await
        .map_err(|error| DataFusionError::ExecutionJoin(Box::new(error)))?
        .map_err(to_datafusion)
}

/// A misspelt table name should be reported as such and not as a missing file.
pub(crate) fn looks_like_a_path(name: &str) -> bool {
    name.contains(['/', '\\', '.', '*', '?', '#', ':']) || Path::new(name).exists()
}

/// Whether DataFusion computes rightly with all types of a file. Those of others are opened by us, in types that it does.
fn leaves_as_it_is(schema: &SchemaRef) -> bool {
    Arc::ptr_eq(&widen::schema(schema), schema)
}

/// Whether this is a Parquet file of this machine, or a pattern for several. A folder is opened by us, whatever its name: it may hold
/// partitions; and so is a pipe, for which DataFusion would wait.
fn is_local_parquet(name: &str) -> bool {
    pilaster::local_path(name).is_some_and(|path| {
        path.extension().is_some_and(|extension| extension == "parquet")
            && (path.is_file() || !path.exists())
            && irregular::check(name).is_ok()
    })
}
