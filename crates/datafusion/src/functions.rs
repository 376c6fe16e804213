//! Table functions: what files say of themselves, in SQL.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::catalog::{MemTable, TableFunctionArgs, TableFunctionImpl, TableProvider};
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::logical_expr::Expr;
use datafusion::prelude::SessionContext;
use pilaster_core::{Dataset, Error};

use crate::describe::{metadata_batch, pages_batch, schema_batch};
use crate::error::to_datafusion;
use crate::open::TableCache;

/// Makes one table of one dataset.
type Describe = fn(&dyn Dataset) -> pilaster_core::Result<RecordBatch>;

/// A function of one path.
struct PathFunction {
    name: &'static str,
    describe: Describe,
    cache: Arc<TableCache>,
}

impl fmt::Debug for PathFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PathFunction").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Adds `pilaster_metadata`, `pilaster_pages` and `pilaster_schema`.
pub(crate) fn register(context: &SessionContext, cache: &Arc<TableCache>) {
    let functions: [(&str, Describe); 3] = [
        ("pilaster_metadata", |dataset| metadata_batch(&dataset.describe()?)),
        ("pilaster_pages", |dataset| pages_batch(&dataset.pages()?)),
        ("pilaster_schema", |dataset| schema_batch(&dataset.schema())),
    ];
    for (name, describe) in functions {
        let cache = Arc::clone(cache);
        context.register_udtf(name, Arc::new(PathFunction { name, describe, cache }));
    }
}

impl TableFunctionImpl for PathFunction {
    fn call_with_args(&self, args: TableFunctionArgs<'_, '_>) -> Result<Arc<dyn TableProvider>> {
        let [Expr::Literal(ScalarValue::Utf8(Some(path)), _)] = args.exprs() else {
            return Err(to_datafusion(Error::invalid(format!("{0} takes one path: {0}('path')", self.name))));
        };
        let table = self.cache.open(path).map_err(to_datafusion)?;
        let batch = (self.describe)(table.dataset().as_ref()).map_err(to_datafusion)?;
        Ok(Arc::new(MemTable::try_new(batch.schema(), vec![vec![batch]])?))
    }
}
