//! The session for callers that do not use async.

use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::record_batch::RecordBatchReader;
use datafusion::physical_plan::SendableRecordBatchStream;
use datafusion::sql::parser::Statement;
use futures::StreamExt;
use pilaster_core::{BatchReader, DatasetRef, Result};
use tokio::runtime::{Builder, Runtime};

use crate::error::from_datafusion;
use crate::session::{SqlContext, SqlOptions};

/// Planning walks expressions by recursion. Of a stack only what is used takes memory.
const STACK: usize = 256 << 20;

/// Does work that walks expressions, on a thread that has room for it.
pub(crate) fn on_wide_stack<T: Send>(work: impl FnOnce() -> T + Send) -> Result<T> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, work)?;
        match thread.join() {
            Ok(done) => Ok(done),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

/// A [`SqlContext`] with its own threads. Not for use inside an async runtime.
#[derive(Debug)]
pub struct SqlSession {
    context: SqlContext,
    runtime: Arc<Runtime>,
}

impl SqlSession {
    /// A session without tables.
    ///
    /// # Errors
    /// If no thread can be started.
    pub fn new(options: SqlOptions) -> Result<Self> {
        let runtime = Arc::new(Builder::new_multi_thread().enable_all().thread_stack_size(STACK).build()?);
        Ok(Self { context: SqlContext::new(options), runtime })
    }

    /// The session underneath.
    pub fn context(&self) -> &SqlContext {
        &self.context
    }

    /// Gives a dataset a name.
    ///
    /// # Errors
    /// As [`SqlContext::register`].
    pub fn register(&self, name: &str, dataset: DatasetRef) -> Result<()> {
        self.context.register(name, dataset)
    }

    /// Runs one statement; batches come as they are asked for.
    ///
    /// # Errors
    /// As [`SqlContext::sql`].
    pub fn sql(&self, text: &str) -> Result<BatchReader> {
        let stream = on_wide_stack(|| self.runtime.block_on(self.context.sql(text)))??;
        Ok(self.reader(stream))
    }

    /// Runs one parsed statement.
    ///
    /// # Errors
    /// As [`SqlContext::execute`].
    pub fn execute(&self, statement: Statement) -> Result<BatchReader> {
        let stream = on_wide_stack(|| self.runtime.block_on(self.context.execute(statement)))??;
        Ok(self.reader(stream))
    }

    fn reader(&self, stream: SendableRecordBatchStream) -> BatchReader {
        Box::new(BlockingReader { runtime: Arc::clone(&self.runtime), stream })
    }
}

/// Waits for each batch. Keeps the threads alive that make them.
struct BlockingReader {
    stream: SendableRecordBatchStream,
    runtime: Arc<Runtime>,
}

impl Iterator for BlockingReader {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let batch = self.runtime.block_on(self.stream.next())?;
        Some(batch.map_err(|error| from_datafusion(error).into()))
    }
}

impl RecordBatchReader for BlockingReader {
    fn schema(&self) -> SchemaRef {
        self.stream.schema()
    }
}
