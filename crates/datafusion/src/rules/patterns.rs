//! `LIKE … ESCAPE` with any sign. DataFusion knows the backslash alone, which is what stands here in the sign's place.

use datafusion::common::ScalarValue;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::Result;
use datafusion::logical_expr::Expr;
use pilaster_core::Error;

use crate::error::to_datafusion;

/// The sign that DataFusion and scans know.
const KNOWN: char = '\\';

/// Writes patterns with the sign that is known.
pub(super) fn rewrite(expr: Expr) -> Result<Transformed<Expr>> {
    expr.transform_up(|mut expr| {
        let Expr::Like(like) = &mut expr else { return Ok(Transformed::no(expr)) };
        let Some(sign) = like.escape_char.filter(|sign| *sign != KNOWN) else {
            return Ok(Transformed::no(expr));
        };
        let Expr::Literal(
            ScalarValue::Utf8(pattern) | ScalarValue::Utf8View(pattern) | ScalarValue::LargeUtf8(pattern),
            _,
        ) = like.pattern.as_mut()
        else {
            return Ok(Transformed::no(expr));
        };
        if let Some(text) = pattern {
            *text = escaped(text, sign)?;
        }
        like.escape_char = None;
        Ok(Transformed::yes(expr))
    })
}

fn escaped(pattern: &str, sign: char) -> Result<String> {
    let mut text = String::with_capacity(pattern.len());
    let mut signs = pattern.chars();
    while let Some(next) = signs.next() {
        let (literal, next) = if next == sign {
            let Some(next) = signs.next() else {
                let said = format!("sql: LIKE '{pattern}' ends with its escape sign '{sign}'");
                return Err(to_datafusion(Error::invalid(said)));
            };
            (true, next)
        } else {
            (next == KNOWN, next)
        };
        if literal && matches!(next, '%' | '_' | KNOWN) {
            text.push(KNOWN);
        }
        text.push(next);
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_backslash_takes_the_place_of_any_sign() {
        for (pattern, expected) in
            [("a!%b%", r"a\%b%"), ("a!!_", "a!_"), (r"a\%", r"a\\%"), (r"a!\", r"a\\"), ("!x!_", r"x\_")]
        {
            assert_eq!(escaped(pattern, '!').unwrap(), expected, "{pattern}");
        }
        assert!(escaped("a!", '!').is_err());
    }
}
