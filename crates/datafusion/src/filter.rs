//! A condition in SQL's words on any dataset: what `-w "id > 10"` means.

use std::sync::Arc;

use datafusion::arrow::array::{AsArray, BooleanArray, RecordBatch};
use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::common::DFSchema;
use datafusion::error::Result as DataFusionResult;
use datafusion::execution::SessionStateBuilder;
use datafusion::logical_expr::execution_props::ExecutionProps;
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::utils::{conjunction, split_conjunction_owned};
use datafusion::logical_expr::{Expr, ExprSchemable};
use datafusion::optimizer::simplify_expressions::ExprSimplifier;
use datafusion::physical_expr::{PhysicalExpr, create_physical_expr};
use datafusion::prelude::SessionConfig;
use pilaster_core::dataset::column_index;
use pilaster_core::describe::ColumnStatistics;
use pilaster_core::stream::{Condition, Tail};
use pilaster_core::{Dataset, DatasetRef, Error, Predicate, Result, ScanPlan, ScanRequest, Wrapper};

use crate::blocking::on_wide_stack;
use crate::error::from_datafusion;
use crate::hidden::cleared_batch;
use crate::rules;
use crate::translate::translate;

/// A condition: the part a scan applies itself, and the rest that DataFusion evaluates on what the scan gives.
#[derive(Debug, Clone)]
pub struct RowFilter {
    predicate: Option<Predicate>,
    rest: Option<Expr>,
}

impl RowFilter {
    /// Reads a condition such as `id > 10 AND name LIKE 'a%'`. Column names are taken as written.
    ///
    /// # Errors
    /// [`pilaster_core::ErrorKind::InvalidInput`] if the text is no condition on columns of `schema`.
    pub fn parse(text: &str, schema: &SchemaRef) -> Result<Self> {
        rules::depth::check(text)?;
        on_wide_stack(|| Self::parse_here(text, schema))?
    }

    fn parse_here(text: &str, schema: &SchemaRef) -> Result<Self> {
        let expr = parse_condition(text, schema)?;
        let (mut predicates, mut rest) = (Vec::new(), Vec::new());
        for part in split_conjunction_owned(expr) {
            match translate(&part, schema) {
                Some(predicate) => predicates.push(predicate),
                None => rest.push(part),
            }
        }
        Ok(Self { predicate: all_of(predicates), rest: conjunction(rest) })
    }

    /// A filter of expressions that no scan can apply; `None` if there are none.
    pub(crate) fn of_rest(rest: Vec<Expr>) -> Option<Self> {
        conjunction(rest).map(|rest| Self { predicate: None, rest: Some(rest) })
    }

    /// The part that a scan applies itself.
    pub fn predicate(&self) -> Option<&Predicate> {
        self.predicate.as_ref()
    }

    /// Whether a scan applies all of it itself.
    pub fn is_exact(&self) -> bool {
        self.rest.is_none()
    }

    /// `dataset` with only the rows for which the condition is true.
    pub fn apply(self, dataset: DatasetRef) -> DatasetRef {
        Arc::new(FilteredDataset { inner: dataset, filter: self })
    }
}

/// All of them as one predicate, without an `AND` around a single one.
pub(crate) fn all_of(mut predicates: Vec<Predicate>) -> Option<Predicate> {
    match predicates.len() {
        0 => None,
        1 => predicates.pop(),
        _ => Some(Predicate::And(predicates)),
    }
}

fn parse_condition(text: &str, schema: &SchemaRef) -> Result<Expr> {
    let parse = || -> DataFusionResult<Result<Expr>> {
        let config = SessionConfig::new().set_bool("datafusion.sql_parser.enable_ident_normalization", false);
        let mut state = SessionStateBuilder::new().with_config(config).with_default_features().build();
        rules::register_for_conditions(&mut state)?;
        let columns = Arc::new(DFSchema::try_from(Arc::clone(schema))?);
        let dialect = state.config().options().sql_parser.dialect;
        let mut parsed = state.sql_to_expr_with_alias(text, &dialect)?;
        if let Some(word) = &parsed.alias {
            return Ok(Err(Error::invalid(format!("sql: unexpected \"{word}\" after a condition"))));
        }
        if let Err(error) = rules::limits::check(&parsed.expr) {
            return Ok(Err(error));
        }
        rules::depth::flatten(&mut parsed.expr);
        rules::digits::keep(&mut parsed.expr);
        let expr = state.create_logical_expr_from_sql_expr(parsed, &columns)?;
        let expr = rules::with_typed_literals(expr, &columns)?;
        let context = SimplifyContext::builder().with_schema(Arc::clone(&columns)).build();
        let simplifier = ExprSimplifier::new(context);
        let expr = rules::with_checks(simplifier.coerce(expr, &columns)?, &columns)?;
        let data_type = expr.get_type(&columns)?;
        if !matches!(data_type, DataType::Boolean | DataType::Null) {
            return Ok(Err(Error::invalid(format!(
                "a condition is true or false, this is {data_type}: {text}"
            ))));
        }
        Ok(Ok(simplifier.simplify(expr)?))
    };
    parse().map_err(from_datafusion)?
}

/// A dataset of which a condition takes rows away.
#[derive(Debug)]
struct FilteredDataset {
    inner: DatasetRef,
    filter: RowFilter,
}

impl Wrapper for FilteredDataset {
    fn inner(&self) -> &dyn Dataset {
        self.inner.as_ref()
    }

    fn schema(&self) -> SchemaRef {
        self.inner.schema()
    }

    fn row_count(&self) -> Option<u64> {
        None
    }

    fn plan(&self, request: &ScanRequest) -> Result<ScanPlan> {
        let schema = self.inner.schema();
        let mut inner = request.clone();
        inner.predicate = match (self.filter.predicate.clone(), inner.predicate.take()) {
            (Some(own), Some(asked)) => Some(Predicate::And(vec![own, asked])),
            (own, asked) => own.or(asked),
        };
        let Some(rest) = &self.filter.rest else { return self.inner.plan(&inner) };

        // The rest looks at columns that may not be asked for, and a limit counts rows after it.
        let mut columns = request.projected(&schema)?;
        for column in rest.column_refs() {
            let index = column_index(&schema, &column.name)?;
            if !columns.contains(&index) {
                columns.push(index);
            }
        }
        inner.projection = Some(columns.clone());
        inner.limit = None;
        let condition = physical(rest, &Arc::new(schema.project(&columns)?))?;
        ScanPlan::around(self.inner.plan(&inner)?, request, &self.inner.schema(), move |request, inner| {
            let condition = Arc::clone(&condition);
            let matches: Condition = Box::new(move |batch| matches(condition.as_ref(), batch));
            let tail = Tail::new(request, &schema, &columns, Some(matches))?;
            let (with_numbers, width) = (request.row_numbers.is_some(), columns.len());
            Ok(tail.read(inner.read(None)?.map(move |batch| {
                let batch = batch?;
                let numbers = batch.columns().get(width).filter(|_| with_numbers).cloned();
                Ok((batch.project(&(0..width).collect::<Vec<_>>())?, numbers))
            })))
        })
    }

    /// Sizes and encodings; of the values nothing is known once rows are taken away.
    fn statistics(&self, inner: Vec<ColumnStatistics>) -> Vec<ColumnStatistics> {
        without_values(inner)
    }
}

fn without_values(mut columns: Vec<ColumnStatistics>) -> Vec<ColumnStatistics> {
    for column in &mut columns {
        (column.min, column.max, column.nulls) = (None, None, None);
    }
    columns
}

fn physical(expr: &Expr, schema: &SchemaRef) -> Result<Arc<dyn PhysicalExpr>> {
    let columns = DFSchema::try_from(Arc::clone(schema)).map_err(from_datafusion)?;
    create_physical_expr(expr, &columns, &ExecutionProps::new(), &PhysicalPlanningContext::default())
        .map_err(from_datafusion)
}

/// For which rows a condition is true.
fn matches(condition: &dyn PhysicalExpr, batch: &RecordBatch) -> Result<BooleanArray> {
    let matches = condition
        .evaluate(&cleared_batch(batch)?)
        .and_then(|value| value.into_array(batch.num_rows()))
        .map_err(from_datafusion)?;
    let matches = matches.as_boolean_opt().cloned();
    matches.ok_or_else(|| Error::internal("a condition without truth values"))
}
