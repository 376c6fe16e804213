//! Long numbers keep their digits on the way from text to expression.
//!
//! DataFusion reads `12345678901234567.89` as a double, which has 15 digits for sure. Such numbers become texts cast to doubles, which
//! is the same where doubles are meant, and from which [`super::literals`] takes all digits where decimals are.

use std::ops::ControlFlow;

use datafusion::sql::parser::{CopyToSource, Statement};
use datafusion::sql::sqlparser::ast::{
    self, CastKind, ExactNumberInfo, Expr, UnaryOperator, Value, VisitMut, visit_expressions_mut,
};

/// Doubles keep so many digits of a decimal number.
const DIGITS_OF_DOUBLES: usize = 15;

/// Keeps the digits of all numbers of a statement.
pub(crate) fn keep_in_statement(statement: &mut Statement) {
    match statement {
        Statement::Statement(statement) => keep(statement.as_mut()),
        Statement::CopyTo(copy) => {
            if let CopyToSource::Query(query) = &mut copy.source {
                keep(query.as_mut());
            }
        }
        Statement::Explain(explain) => keep_in_statement(&mut explain.statement),
        Statement::CreateExternalTable(_) | Statement::Reset(_) => {}
    }
}

/// Keeps the digits of all numbers of a part of a statement.
pub(crate) fn keep(part: &mut impl VisitMut) {
    let done = visit_expressions_mut(part, |expr| {
        match expr {
            // Below the smallest integer: it would become a double, and no integer has the digits without the sign either.
            Expr::UnaryOp { op: UnaryOperator::Minus, expr: inner } => keep_if(inner, |text| {
                text.parse::<u64>().is_ok_and(|number| number > i64::MIN.unsigned_abs())
            }),
            expr => keep_if(expr, is_long),
        }
        ControlFlow::<()>::Continue(())
    });
    debug_assert!(done.is_continue());
}

fn keep_if(expr: &mut Expr, is_kept: impl Fn(&str) -> bool) {
    if let Expr::Value(value) = expr
        && let Value::Number(text, _) = &value.value
        && is_kept(text)
    {
        let text = text.replace('_', "");
        *expr = Expr::Cast {
            kind: CastKind::Cast,
            expr: Box::new(Expr::value(Value::SingleQuotedString(text))),
            data_type: ast::DataType::Double(ExactNumberInfo::None),
            array: false,
            format: None,
        };
    }
}

fn is_long(text: &str) -> bool {
    let digits = text.split(['e', 'E']).next().unwrap_or_default();
    let digits = digits.bytes().filter(u8::is_ascii_digit).count();
    digits > DIGITS_OF_DOUBLES && text.parse::<i64>().is_err() && text.parse::<u64>().is_err()
}
