//! Statements of many operators: chains of `AND`, `OR` and `UNION ALL` become trees that are as deep as their logarithm, and what is
//! still too deep is an error. Planning walks expressions by recursion, and the stack is not endless.

use std::ops::ControlFlow;

use datafusion::sql::parser::{CopyToSource, Statement};
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, Query, SetExpr, SetOperator, SetQuantifier, Value, Values, VisitMut, VisitorMut,
};
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::tokenizer::{Token, Tokenizer, Word};
use pilaster_core::{Error, Result};

/// So many words and signs may follow each other without commas, parentheses, `AND` or `OR` between them: each may be an operator on
/// all before it. What is inside parentheses counts together with what it is inside of.
const LONGEST_CHAIN: usize = 1_200;

/// So deep may parentheses, `CASE` and `NOT` be inside each other: the parser's limit.
const DEEPEST: usize = 45;

/// So many `OR` and `UNION` may be in one text.
const MOST_ALTERNATIVES: usize = 10_000;

/// So many `AND` may be in one text: DataFusion takes them apart and puts them together one after the other.
const MOST_CONDITIONS: usize = 2_000;

/// Shorter chains stay as they are.
const SHORT: usize = 64;

/// Refuses a text whose expressions are too deep or too many to plan.
///
/// # Errors
/// If it is. What is no SQL at all is the parser's to say.
pub(crate) fn check(text: &str) -> Result<()> {
    let Ok(tokens) = Tokenizer::new(&GenericDialect {}, text).tokenize() else { return Ok(()) };
    let mut levels = Levels::new();
    let (mut alternatives, mut conditions, mut nots) = (0_usize, 0_usize, 0_usize);
    for token in tokens.iter().filter(|token| !matches!(token, Token::Whitespace(_))) {
        let is_not =
            matches!(token, Token::Word(word) if is_word(word, "NOT")) || matches!(token, Token::Minus);
        nots = if is_not { nots.saturating_add(1) } else { 0 };
        match token {
            Token::LParen | Token::LBracket => levels.open(false),
            Token::RParen | Token::RBracket => levels.close(false),
            Token::Comma | Token::SemiColon => levels.restart(),
            Token::Word(word) => {
                let is = |name: &str| is_word(word, name);
                if is("AND") {
                    conditions = conditions.saturating_add(1);
                    levels.restart();
                } else if is("OR") || is("UNION") || is("INTERSECT") || is("EXCEPT") {
                    alternatives = alternatives.saturating_add(1);
                    levels.restart();
                } else if is("CASE") {
                    levels.open(true);
                } else if is("END") {
                    levels.close(true);
                } else if ["SELECT", "FROM", "WHERE", "WHEN", "THEN", "ELSE", "JOIN", "ON"]
                    .into_iter()
                    .any(is)
                {
                    levels.restart();
                } else {
                    levels.lengthen();
                }
            }
            _ => levels.lengthen(),
        }
        if levels.length > LONGEST_CHAIN {
            return Err(Error::invalid(
                "sql: too many operators in a row; parentheses or several columns make them fewer",
            ));
        }
        if levels.open.len().saturating_add(nots) > DEEPEST {
            return Err(Error::invalid(TOO_DEEP));
        }
        for (count, most, words) in
            [(alternatives, MOST_ALTERNATIVES, "OR or UNION"), (conditions, MOST_CONDITIONS, "AND")]
        {
            if count > most {
                return Err(Error::invalid(format!(
                    "sql: more than {most} {words}; a list, as in x IN (…), may be longer"
                )));
            }
        }
    }
    Ok(())
}

/// What to say of expressions inside expressions inside expressions.
pub(crate) const TOO_DEEP: &str = "sql: too many expressions or queries inside each other";

fn is_word(word: &Word, name: &str) -> bool {
    word.quote_style.is_none() && word.value.eq_ignore_ascii_case(name)
}

/// Parentheses and `CASE` that are open, and how many words and signs follow each other in each.
struct Levels {
    open: Vec<(bool, usize)>,
    /// Of all together.
    length: usize,
}

impl Levels {
    fn new() -> Self {
        Self { open: vec![(false, 0)], length: 0 }
    }

    fn open(&mut self, is_case: bool) {
        self.open.push((is_case, 0));
    }

    fn close(&mut self, is_case: bool) {
        if self.open.len() > 1
            && let Some((_, length)) = self.open.pop_if(|(of_case, _)| *of_case == is_case)
        {
            self.length = self.length.saturating_sub(length);
            self.lengthen();
        }
    }

    fn restart(&mut self) {
        if let Some((_, length)) = self.open.last_mut() {
            self.length = self.length.saturating_sub(*length);
            *length = 0;
        }
    }

    fn lengthen(&mut self) {
        if let Some((_, length)) = self.open.last_mut() {
            *length = length.saturating_add(1);
            self.length = self.length.saturating_add(1);
        }
    }
}

/// Makes the chains of a statement flat.
pub(crate) fn flatten_statement(statement: &mut Statement) {
    match statement {
        Statement::Statement(statement) => flatten(statement.as_mut()),
        Statement::CopyTo(copy) => {
            if let CopyToSource::Query(query) = &mut copy.source {
                flatten(query.as_mut());
            }
        }
        Statement::Explain(explain) => flatten_statement(&mut explain.statement),
        Statement::CreateExternalTable(_) | Statement::Reset(_) => {}
    }
}

/// Makes the chains of a part of a statement flat.
pub(crate) fn flatten(part: &mut impl VisitMut) {
    let done = part.visit(&mut Flatten);
    debug_assert!(done.is_continue());
}

struct Flatten;

impl VisitorMut for Flatten {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        let chain = |body: &SetExpr| {
            matches!(
                body,
                SetExpr::SetOperation { op: SetOperator::Union, set_quantifier: SetQuantifier::All, .. }
            )
        };
        let mut parts = Vec::new();
        let mut rest = std::mem::replace(query.body.as_mut(), SetExpr::Values(empty_values()));
        while chain(&rest)
            && let SetExpr::SetOperation { left, right, .. } = rest
        {
            parts.push(*right);
            rest = *left;
        }
        parts.push(rest);
        parts.reverse();
        let union = |left, right| SetExpr::SetOperation {
            op: SetOperator::Union,
            set_quantifier: SetQuantifier::All,
            left: Box::new(left),
            right: Box::new(right),
        };
        if let Some(body) = join(parts, &union) {
            *query.body = body;
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        let Expr::BinaryOp { op: wanted @ (BinaryOperator::And | BinaryOperator::Or), .. } = expr else {
            return ControlFlow::Continue(());
        };
        let wanted = wanted.clone();
        let mut parts = Vec::new();
        let mut rest = std::mem::replace(expr, Expr::value(Value::Null));
        loop {
            match rest {
                Expr::BinaryOp { left, op, right } if op == wanted => {
                    parts.push(*right);
                    rest = *left;
                }
                first => {
                    parts.push(first);
                    break;
                }
            }
        }
        parts.reverse();
        let both =
            |left, right| Expr::BinaryOp { left: Box::new(left), op: wanted.clone(), right: Box::new(right) };
        if let Some(joined) = join(parts, &both) {
            *expr = joined;
        }
        ControlFlow::Continue(())
    }
}

fn empty_values() -> Values {
    Values { explicit_row: false, value_keyword: false, rows: Vec::new() }
}

/// Few parts one after the other, as they were; many as a tree. `None` of none.
fn join<T>(parts: Vec<T>, both: &impl Fn(T, T) -> T) -> Option<T> {
    if parts.len() <= SHORT {
        return parts.into_iter().reduce(both);
    }
    let mut level = parts;
    while level.len() > 1 {
        let mut next = Vec::with_capacity(level.len().div_ceil(2));
        let mut parts = level.into_iter();
        while let Some(left) = parts.next() {
            next.push(match parts.next() {
                Some(right) => both(left, right),
                None => left,
            });
        }
        level = next;
    }
    level.pop()
}
