//! A session: SQL in, batches out.

use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::sync::Arc;

use datafusion::catalog::{DynamicFileCatalog, UrlTableFactory};
use datafusion::common::TableReference;
use datafusion::datasource::dynamic_file::DynamicListTableFactory;
use datafusion::execution::SessionStateBuilder;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::union::UnionExec;
use datafusion::physical_plan::{
    ExecutionPlan, ExecutionPlanProperties, SendableRecordBatchStream, execute_stream,
};
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion::sql::parser::{CopyToSource, DFParser, Statement};
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::tokenizer::{Token, Tokenizer, TokenizerError};
use futures::{FutureExt, StreamExt, stream};
use pilaster::OpenOptions;
use pilaster_core::{DatasetRef, Result};

use crate::blocking::on_wide_stack;
use crate::catalog::{PathTables, PilasterTableFactory, looks_like_a_path};
use crate::error::from_datafusion;
use crate::functions;
use crate::irregular;
use crate::memory::Memory;
use crate::open::{Opener, TableCache, path_of_address};
use crate::parquet_damage::{damage_in_files, panicked, with_place, without_panics};
use crate::partition_text;
use crate::rules;
use crate::table::PilasterTable;

/// How a session works.
#[derive(Debug, Clone)]
pub struct SqlOptions {
    opener: Arc<dyn Opener>,
    threads: Option<usize>,
    batch_size: Option<usize>,
    memory: Option<Memory>,
}

impl Default for SqlOptions {
    fn default() -> Self {
        Self { opener: Arc::new(OpenOptions::default()), threads: None, batch_size: None, memory: None }
    }
}

impl SqlOptions {
    /// How paths in SQL are opened: [`OpenOptions`], or an opener of one's own.
    #[must_use]
    pub fn with_opener(mut self, opener: impl Opener + 'static) -> Self {
        self.opener = Arc::new(opener);
        self
    }

    /// How many partitions a table is divided into; as many as there are processors unless set.
    #[must_use]
    pub fn with_threads(mut self, threads: usize) -> Self {
        self.threads = Some(threads.max(1));
        self
    }

    /// How much memory the queries of a session may take together for sorting, grouping, joining and counting; without bound unless
    /// set. Sorts and groups that need more go through files in `folder`, joins that need more are an error. What reading and writing
    /// take comes on top.
    ///
    /// # Errors
    /// If `folder` cannot be used.
    pub fn with_memory(mut self, bytes: usize, folder: impl Into<PathBuf>) -> Result<Self> {
        self.memory = Some(Memory::new(bytes, folder.into())?);
        Ok(self)
    }

    /// Rows per batch; [`pilaster_core::dataset::DEFAULT_BATCH_SIZE`] unless set.
    #[must_use]
    pub fn with_batch_size(mut self, rows: usize) -> Self {
        self.batch_size = Some(rows.max(1));
        self
    }
}

/// A session with tables, views and opened files of its own.
pub struct SqlContext {
    context: SessionContext,
}

impl std::fmt::Debug for SqlContext {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SqlContext").finish_non_exhaustive()
    }
}

impl SqlContext {
    /// A session without tables; paths and table functions work at once.
    pub fn new(options: SqlOptions) -> Self {
        let batch_size = options.batch_size.unwrap_or(pilaster_core::dataset::DEFAULT_BATCH_SIZE);
        let mut config = SessionConfig::new()
            .with_batch_size(batch_size)
            .with_information_schema(true)
            // Dealing batches around would mix up the rows of a filtered table; tasks keep the threads busy.
            .with_round_robin_repartition(false)
            // It takes what several readers of Parquet have seen of `max(a)` for the bounds of `min(b)`, and leaves out the rows that
            // are neither: https://github.com/apache/datafusion/issues/25147.
            .set_bool("datafusion.optimizer.enable_aggregate_dynamic_filter_pushdown", false)
            // It forgets the names of what it took out of lists in the conditions of joins, and the query fails.
            .set_bool("datafusion.optimizer.enable_leaf_expression_pushdown", false)
            // Plans differ in whether they know that a column holds no null; queries with two aggregates of one FILTER fail over it.
            .set_bool("datafusion.execution.skip_physical_aggregate_schema_check", true);
        if let Some(threads) = options.threads {
            config = config.with_target_partitions(threads);
        }
        let mut builder = SessionStateBuilder::new();
        if let Some(memory) = &options.memory {
            config = memory.configured(config);
            builder = builder.with_runtime_env(memory.runtime());
        }
        let cache = Arc::new(TableCache::new(options.opener));
        let listing = Arc::new(DynamicListTableFactory::default());
        let paths: Arc<dyn UrlTableFactory> =
            Arc::new(PathTables::new(Arc::clone(&cache), Arc::clone(&listing)));
        let state = rules::add_rules(builder.with_config(config).with_default_features())
            .with_table_factory(
                "PILASTER".to_string(),
                Arc::new(PilasterTableFactory::new(Arc::clone(&cache))),
            )
            .build();
        // The default catalog is made while the state is built, so the catalog of paths is put around it afterwards.
        let inner = Arc::clone(state.catalog_list());
        let state = SessionStateBuilder::from(state)
            .with_catalog_list(Arc::new(DynamicFileCatalog::new(inner, paths)))
            .build();
        let context = SessionContext::new_with_state(state);
        listing.session_store().with_state(context.state_weak_ref());
        functions::register(&context, &cache);
        partition_text::register(&context);
        rules::register(&context);
        Self { context }
    }

    /// DataFusion's own session, for everything it can do that is not repeated here.
    pub fn session(&self) -> &SessionContext {
        &self.context
    }

    /// Gives a dataset a name, taken as it is: in SQL, one with dots or capitals stands in double quotes.
    ///
    /// # Errors
    /// If the name cannot be used.
    pub fn register(&self, name: &str, dataset: DatasetRef) -> Result<()> {
        self.context
            .register_table(TableReference::bare(name), Arc::new(PilasterTable::new(dataset)))
            .map(|_| ())
            .map_err(from_datafusion)
    }

    /// The files, folders and globs of this machine that a statement names as tables.
    ///
    /// # Errors
    /// If its tables cannot be told.
    pub fn paths_in(&self, statement: &Statement) -> Result<Vec<String>> {
        let named = self.context.state().resolve_table_references(statement).map_err(from_datafusion)?;
        let addresses = named.iter().map(TableReference::table).filter(|name| looks_like_a_path(name));
        let paths = addresses.map(path_of_address);
        Ok(paths.filter(|path| pilaster::local_path(path).is_some()).collect())
    }

    /// Runs one statement.
    ///
    /// A query without `ORDER BY` that only selects, filters and computes gives rows in the order of the table.
    ///
    /// # Errors
    /// If the text is no statement, or several, or cannot be planned. What reading meets comes out of the stream.
    pub async fn sql(&self, text: &str) -> Result<SendableRecordBatchStream> {
        rules::depth::check(text)?;
        let state = self.context.state();
        let dialect = state.config().options().sql_parser.dialect;
        let parse = || state.sql_to_statement(text, &dialect).map_err(from_datafusion).and_then(prepared);
        self.execute(on_wide_stack(parse)??).await
    }

    /// Runs one statement out of [`parse_statements`].
    ///
    /// # Errors
    /// As [`SqlContext::sql`].
    pub async fn execute(&self, mut statement: Statement) -> Result<SendableRecordBatchStream> {
        irregular::check_statement(&statement)?;
        rules::digits::keep_in_statement(&mut statement);
        let named = self.paths_in(&statement);
        let started = async {
            let plan = self.context.state().statement_to_plan(statement).await.map_err(from_datafusion)?;
            self.start(plan).await
        };
        let started = AssertUnwindSafe(started).catch_unwind().await;
        started.unwrap_or_else(|panic| {
            // DataFusion's reader of Parquet panics over some damaged footers.
            let damage = on_wide_stack(|| damage_in_files(&named.unwrap_or_default()))?;
            Err(damage.unwrap_or_else(|| from_datafusion(panicked(panic.as_ref()))))
        })
    }

    async fn start(&self, plan: LogicalPlan) -> Result<SendableRecordBatchStream> {
        let frame = self.context.execute_logical_plan(plan).await.map_err(from_datafusion)?;
        let task = Arc::new(frame.task_ctx());
        let plan = frame.create_physical_plan().await.map_err(from_datafusion)?;
        if plan.output_partitioning().partition_count() < 2 || are_entangled(plan.as_ref()) {
            let stream = execute_stream(Arc::clone(&plan), task).map_err(from_datafusion)?;
            return Ok(with_place(without_panics(stream), plan));
        }
        // Every partition starts decoding now; their rows are given one partition after the other.
        let partitions = 0..plan.output_partitioning().partition_count();
        let streams = partitions
            .map(|partition| plan.execute(partition, Arc::clone(&task)))
            .collect::<Result<Vec<_>, _>>()
            .map_err(from_datafusion)?;
        let in_order = stream::iter(streams).flatten();
        let stream = Box::pin(RecordBatchStreamAdapter::new(plan.schema(), in_order));
        Ok(with_place(without_panics(stream), plan))
    }
}

/// Whether partitions need each other: they have to be drained together. Rows may move between them, and those of a join wait until
/// all have said which keys they look for.
fn are_entangled(plan: &dyn ExecutionPlan) -> bool {
    let children = plan.children();
    let is_join = children.len() > 1 && !plan.is::<UnionExec>();
    is_join || plan.is::<RepartitionExec>() || children.into_iter().any(|child| are_entangled(child.as_ref()))
}

/// The statements of a text, separated by `;`.
///
/// # Errors
/// If it is not SQL, or more of it than can be planned.
pub fn parse_statements(text: &str) -> Result<Vec<Statement>> {
    rules::depth::check(text)?;
    on_wide_stack(|| {
        let statements = DFParser::parse_sql(text).map_err(from_datafusion)?;
        statements.into_iter().map(prepared).collect()
    })?
}

/// A statement as it is planned: its chains are flat, and it is not too large.
fn prepared(mut statement: Statement) -> Result<Statement> {
    rules::limits::check_statement(&statement)?;
    rules::depth::flatten_statement(&mut statement);
    Ok(statement)
}

pub use crate::staged_copy::StagedCopy;

/// What a `COPY … TO 'file'` asks for.
#[derive(Debug)]
pub struct CopyTo {
    /// The rows.
    pub query: Statement,
    /// The file.
    pub target: String,
    /// The format, if the statement names it.
    pub format: Option<String>,
}

impl CopyTo {
    /// Whether a statement is a `COPY` of any kind; its answer is a number of rows.
    pub fn is_copy(statement: &Statement) -> bool {
        matches!(statement, Statement::CopyTo(_))
    }

    /// Takes a statement apart, if it is a `COPY` of a query to one file, without partitions or options, which DataFusion knows
    /// best; else gives it back.
    ///
    /// # Errors
    /// The statement, as it was.
    pub fn try_from_statement(statement: Statement) -> Result<Self, Box<Statement>> {
        let Statement::CopyTo(copy) = statement else { return Err(Box::new(statement)) };
        if !copy.partitioned_by.is_empty() || !copy.options.is_empty() {
            return Err(Box::new(Statement::CopyTo(copy)));
        }
        let query = match &copy.source {
            CopyToSource::Query(query) => query.to_string(),
            CopyToSource::Relation(name) => format!("SELECT * FROM {name}"),
        };
        match parse_statements(&query).ok().and_then(|mut statements| statements.pop()) {
            Some(query) => Ok(Self { query, target: copy.target, format: copy.stored_as }),
            None => Err(Box::new(Statement::CopyTo(copy))),
        }
    }
}

/// Whether a text being typed ends a statement: its last sign is a `;` that is not inside quotes or a comment.
pub fn ends_statement(text: &str) -> bool {
    let tokens: Result<_, TokenizerError> = Tokenizer::new(&GenericDialect {}, text).tokenize();
    tokens.is_ok_and(|tokens| {
        tokens.iter().rfind(|token| !matches!(token, Token::Whitespace(_))) == Some(&Token::SemiColon)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_ends_at_a_semicolon_outside_quotes_and_comments() {
        assert!(ends_statement("select 1;"));
        assert!(ends_statement("select ';' ;  -- done\n"));
        for open in ["", "select 1", "select ';", "select 1 -- ;", "select /* ; "] {
            assert!(!ends_statement(open), "{open}");
        }
    }
}
