//! What takes DataFusion time or memory without end to plan, though few words say it, and what it answers wrongly: refused.

use std::ops::ControlFlow;

use datafusion::sql::parser::{CopyToSource, Statement};
use datafusion::sql::sqlparser::ast::{
    Expr, Function, GroupByExpr, OrderByKind, Query, Select, SetExpr, SetOperator, SetQuantifier, Visit,
    Visitor, WindowType,
};
use pilaster_core::{Error, Result};

/// Tables of one `FROM`: the order of joins is searched.
const MOST_TABLES: usize = 200;

/// Queries of one `WITH`, each of which may hold all before it.
const MOST_COMMON_QUERIES: usize = 500;

/// `UNION`, `INTERSECT` and `EXCEPT` in a row; those of `UNION ALL` are made a tree.
const MOST_SET_OPERATIONS: usize = 200;

/// Queries inside expressions inside queries: planning takes twice as long with each.
const DEEPEST_SUBQUERY: usize = 8;

/// Parts of one `ORDER BY`, and windows of one `SELECT`: each is compared with each.
const MOST_ORDERINGS: usize = 200;

/// Columns that one `SELECT` gives, or groups by: planning takes the square of their number.
const MOST_COLUMNS: usize = 10_000;

/// `CUBE` of n columns is 2^n groups of columns.
const MOST_GROUPINGS: u64 = 4096;

/// Refuses a statement that cannot be planned in time.
///
/// # Errors
/// If it is one.
pub(crate) fn check_statement(statement: &Statement) -> Result<()> {
    match statement {
        Statement::Statement(statement) => check(statement.as_ref()),
        Statement::CopyTo(copy) => match &copy.source {
            CopyToSource::Query(query) => check(query.as_ref()),
            CopyToSource::Relation(_) => Ok(()),
        },
        Statement::Explain(explain) => check_statement(&explain.statement),
        Statement::CreateExternalTable(_) | Statement::Reset(_) => Ok(()),
    }
}

/// The same for a part of a statement.
///
/// # Errors
/// As [`check_statement`].
pub(crate) fn check(part: &impl Visit) -> Result<()> {
    match part.visit(&mut Limits::default()) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(found) => Err(Error::invalid(format!("sql: {found}"))),
    }
}

#[derive(Default)]
struct Limits {
    depth: usize,
    /// Windows of each `SELECT` that is open.
    windows: Vec<usize>,
}

const ORDERINGS: &str = "parts of one ORDER BY";

fn at_most(count: usize, most: usize, words: &str) -> ControlFlow<String> {
    if count > most {
        ControlFlow::Break(format!("more than {most} {words}"))
    } else {
        ControlFlow::Continue(())
    }
}

fn holds_query(expr: &Expr) -> bool {
    match expr {
        Expr::Subquery(_) | Expr::Exists { .. } | Expr::InSubquery { .. } => true,
        Expr::AnyOp { right, .. } | Expr::AllOp { right, .. } => matches!(right.as_ref(), Expr::Subquery(_)),
        _ => false,
    }
}

/// The word of an `EXCEPT ALL` or `INTERSECT ALL`, in which rows count as often as they are there.
fn counted_set_operation(body: &SetExpr) -> Option<&'static str> {
    let mut rest = vec![body];
    while let Some(next) = rest.pop() {
        let SetExpr::SetOperation { op, set_quantifier, left, right } = next else { continue };
        let word = match op {
            SetOperator::Except | SetOperator::Minus => "EXCEPT",
            SetOperator::Intersect => "INTERSECT",
            SetOperator::Union => "",
        };
        if !word.is_empty() && matches!(set_quantifier, SetQuantifier::All | SetQuantifier::AllByName) {
            return Some(word);
        }
        rest.extend([left.as_ref(), right.as_ref()]);
    }
    None
}

impl Visitor for Limits {
    type Break = String;

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<String> {
        let common = query.with.as_ref().map_or(0, |with| with.cte_tables.len());
        at_most(common, MOST_COMMON_QUERIES, "queries in one WITH")?;
        if let Some(word) = counted_set_operation(&query.body) {
            // DataFusion gives all rows of one side or none of them, however often the other side has them.
            return ControlFlow::Break(format!(
                "{word} ALL is not known here; {word}, or row_number() OVER (PARTITION BY …), does it"
            ));
        }
        let (mut operations, mut next) = (0_usize, query.body.as_ref());
        while let SetExpr::SetOperation { op, set_quantifier, left, .. } = next {
            let is_flat = *op == SetOperator::Union && *set_quantifier == SetQuantifier::All;
            operations = operations.saturating_add(usize::from(!is_flat));
            next = left;
        }
        at_most(operations, MOST_SET_OPERATIONS, "UNION, INTERSECT and EXCEPT in a row")?;
        match query.order_by.as_ref().map(|order_by| &order_by.kind) {
            Some(OrderByKind::Expressions(parts)) => at_most(parts.len(), MOST_ORDERINGS, ORDERINGS),
            _ => ControlFlow::Continue(()),
        }
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<String> {
        self.windows.push(0);
        at_most(select.projection.len(), MOST_COLUMNS, "columns in one SELECT")?;
        let tables = select.from.iter().map(|table| table.joins.len().saturating_add(1));
        at_most(tables.fold(0, usize::saturating_add), MOST_TABLES, "tables in one FROM")?;
        let GroupByExpr::Expressions(groups, _) = &select.group_by else { return ControlFlow::Continue(()) };
        at_most(groups.len(), MOST_COLUMNS, "columns in one GROUP BY")?;
        let mut groupings = 1_u64;
        for group in groups {
            let count = match group {
                Expr::Cube(parts) => 1_u64.checked_shl(u32::try_from(parts.len()).unwrap_or(u32::MAX)),
                Expr::Rollup(parts) => u64::try_from(parts.len().saturating_add(1)).ok(),
                Expr::GroupingSets(sets) => u64::try_from(sets.len()).ok(),
                _ => Some(1),
            };
            groupings = groupings.saturating_mul(count.unwrap_or(u64::MAX));
        }
        if groupings > MOST_GROUPINGS {
            return ControlFlow::Break(format!("more than {MOST_GROUPINGS} groupings in one GROUP BY"));
        }
        ControlFlow::Continue(())
    }

    fn post_visit_select(&mut self, _select: &Select) -> ControlFlow<String> {
        self.windows.pop();
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<String> {
        if let Expr::AnyOp { right, .. } | Expr::AllOp { right, .. } = expr
            && matches!(right.as_ref(), Expr::Subquery(_))
        {
            // DataFusion compares a column with itself where the query gives one of the same name.
            return ControlFlow::Break(
                "ANY and ALL of a query are not known here; IN, EXISTS, or min and max do it".to_string(),
            );
        }
        if let Expr::Function(Function { over: Some(over), .. }) = expr {
            if let Some(windows) = self.windows.last_mut() {
                *windows = windows.saturating_add(1);
                at_most(*windows, MOST_ORDERINGS, "windows in one SELECT")?;
            }
            if let WindowType::WindowSpec(window) = over {
                at_most(window.order_by.len(), MOST_ORDERINGS, ORDERINGS)?;
            }
        }
        self.depth = self.depth.saturating_add(usize::from(holds_query(expr)));
        at_most(self.depth, DEEPEST_SUBQUERY, "queries inside each other; a join, or WITH, does it flat")
    }

    fn post_visit_expr(&mut self, expr: &Expr) -> ControlFlow<String> {
        self.depth = self.depth.saturating_sub(usize::from(holds_query(expr)));
        ControlFlow::Continue(())
    }
}
