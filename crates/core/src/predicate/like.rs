//! What a `LIKE` pattern says of the texts that match it.

use std::ops::Bound as Limit;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, StringArray};
use arrow_cast::cast;
use arrow_schema::DataType;

use super::bind::{Bound, BoundPredicate};
use super::bounds::Bounds;
use super::{CompareOp, Literal};

impl BoundPredicate {
    /// Texts that `column` contains in every match.
    pub fn contained(&self, column: usize) -> Vec<String> {
        contained(&self.0, column)
    }
}

fn contained(bound: &Bound, wanted: usize) -> Vec<String> {
    match bound {
        Bound::Compare { column, op: CompareOp::Like, value, cast: None } if *column == wanted => {
            pieces(value).unwrap_or_default().into_iter().filter(|piece| !piece.is_empty()).collect()
        }
        Bound::Compare { column, op: CompareOp::Eq, value, cast: None } if *column == wanted => {
            text(value).into_iter().collect()
        }
        Bound::And(parts) => parts.iter().flat_map(|part| contained(part, wanted)).collect(),
        Bound::Compare { .. } | Bound::IsNull { .. } | Bound::Or(_) | Bound::Among { .. } => Vec::new(),
    }
}

/// The only text that matches a pattern, if it has no wildcards.
pub(super) fn exact(pattern: &Literal) -> Option<Literal> {
    match pieces(pattern)?.as_slice() {
        [only] => of_type(only, pattern.array().data_type()),
        _ => None,
    }
}

/// Between which values the texts lie that match a pattern: from what it begins with to the first text that does not begin so.
pub(super) fn bounds(pattern: &Literal) -> Bounds {
    let data_type = pattern.array().data_type();
    let beginning = pieces(pattern).and_then(|pieces| pieces.into_iter().next()).unwrap_or_default();
    if beginning.is_empty() {
        return Bounds::EVERYTHING;
    }
    let limit = |text: Option<String>| text.and_then(|text| of_type(&text, data_type));
    Bounds {
        upper: limit(behind(&beginning)).map_or(Limit::Unbounded, Limit::Excluded),
        lower: limit(Some(beginning)).map_or(Limit::Unbounded, Limit::Included),
    }
}

/// The texts between the wildcards of a pattern; `None` if it is null or no text.
fn pieces(pattern: &Literal) -> Option<Vec<String>> {
    let pattern = text(pattern)?;
    let mut pieces = vec![String::new()];
    let mut characters = pattern.chars();
    while let Some(character) = characters.next() {
        let literal = match character {
            '%' | '_' => {
                pieces.push(String::new());
                continue;
            }
            // At the end it stands for itself.
            '\\' => characters.next().unwrap_or(character),
            other => other,
        };
        if let Some(last) = pieces.last_mut() {
            last.push(literal);
        }
    }
    Some(pieces)
}

/// The least text that is greater than every text that begins with `beginning`.
fn behind(beginning: &str) -> Option<String> {
    let kept = beginning.trim_end_matches(char::MAX);
    let last = kept.chars().next_back()?;
    // Between the two halves of the range lie the surrogates, which are no characters.
    let next = (u32::from(last).checked_add(1)?..).find_map(char::from_u32)?;
    let mut behind = kept.strip_suffix(last)?.to_string();
    behind.push(next);
    Some(behind)
}

pub(super) fn text(literal: &Literal) -> Option<String> {
    let literal = literal.array();
    if literal.is_null(0) {
        return None;
    }
    let text = match literal.data_type() {
        DataType::Utf8 => literal.as_string::<i32>().value(0),
        DataType::LargeUtf8 => literal.as_string::<i64>().value(0),
        DataType::Utf8View => literal.as_string_view().value(0),
        _ => return None,
    };
    Some(text.to_string())
}

fn of_type(text: &str, data_type: &DataType) -> Option<Literal> {
    let texts: ArrayRef = Arc::new(StringArray::from(vec![text]));
    cast(&texts, data_type).ok().map(Literal)
}

#[cfg(test)]
mod tests {
    use super::super::{Predicate, col, lit};
    use super::*;
    use arrow_array::{RecordBatch, StringViewArray};
    use arrow_schema::{Field, Schema};
    use proptest::prelude::*;

    fn shown(pattern: &str) -> String {
        let bounds = bounds(&lit(pattern));
        let text = |limit: &Limit<Literal>| match limit {
            Limit::Included(value) | Limit::Excluded(value) => value.to_string(),
            Limit::Unbounded => "*".to_string(),
        };
        format!("{}..{}", text(&bounds.lower), text(&bounds.upper))
    }

    #[test]
    fn a_pattern_bounds_its_matches_by_their_beginning() {
        for (pattern, expected) in [
            ("abc%", "abc..abd"),
            ("a_c", "a..b"),
            ("%a", "*..*"),
            (r"a\%b%", "a%b..a%c"),
            (r"a\", r"a\..a]"),
            ("\u{d7ff}%", "\u{d7ff}..\u{e000}"),
            ("a\u{10ffff}%", "a\u{10ffff}..b"),
            ("\u{10ffff}%", "\u{10ffff}..*"),
        ] {
            assert_eq!(shown(pattern), expected, "{pattern}");
        }
    }

    proptest! {
        #[test]
        fn what_a_pattern_says_is_true_of_every_match(
            pattern in r"[ab%_\\\u{10ffff}]{0,6}",
            texts in prop::collection::vec("[ab%_\u{10ffff}]{0,5}", 1..8),
        ) {
            let schema = Arc::new(Schema::new(vec![Field::new("t", DataType::Utf8View, true)]));
            let column: ArrayRef = Arc::new(StringViewArray::from_iter_values(&texts));
            let batch = RecordBatch::try_new(Arc::clone(&schema), vec![column]).unwrap();
            let like = col("t").like(lit(pattern.as_str()));
            let bound = like.bind(&schema).unwrap();
            let matches = bound.evaluate(&batch).unwrap();
            let opposite = Predicate::Not(Box::new(like)).bind(&schema).unwrap().evaluate(&batch).unwrap();
            let limits = bound.bounds(0);
            for (row, text) in texts.iter().enumerate() {
                prop_assert_ne!(matches.value(row), opposite.value(row));
                if !matches.value(row) {
                    continue;
                }
                prop_assert!(bound.contained(0).iter().all(|piece| text.contains(piece.as_str())));
                let inside = |op, value: &Literal| {
                    let bound = Predicate::Compare { column: "t".into(), op, value: value.clone() };
                    bound.bind(&schema).unwrap().evaluate(&batch).unwrap().value(row)
                };
                match &limits.lower {
                    Limit::Included(least) => prop_assert!(inside(CompareOp::GtEq, least)),
                    other => prop_assert_eq!(other, &Limit::Unbounded),
                }
                match &limits.upper {
                    Limit::Included(most) => prop_assert!(inside(CompareOp::LtEq, most)),
                    Limit::Excluded(behind) => prop_assert!(inside(CompareOp::Lt, behind)),
                    Limit::Unbounded => {}
                }
            }
        }
    }
}
