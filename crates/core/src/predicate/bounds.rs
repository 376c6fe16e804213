//! A predicate as a range of one column, for key indexes.

use std::cmp::Ordering;
use std::ops::Bound as Limit;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type};
use arrow_array::{Array, BooleanArray};
use arrow_ord::cmp;

use super::bind::{Bound, BoundPredicate};
use super::{CompareOp, Literal, like};

/// Between which values of one column all matches lie.
#[derive(Debug, Clone, PartialEq)]
pub struct Bounds {
    /// No match is below this.
    pub lower: Limit<Literal>,
    /// No match is above this.
    pub upper: Limit<Literal>,
}

impl Bounds {
    pub(super) const EVERYTHING: Bounds = Bounds { lower: Limit::Unbounded, upper: Limit::Unbounded };

    /// Whether nothing is excluded.
    pub fn is_unbounded(&self) -> bool {
        matches!((&self.lower, &self.upper), (Limit::Unbounded, Limit::Unbounded))
    }
}

impl BoundPredicate {
    /// Between which values of `column` all matches lie; literals are of the column's type.
    ///
    /// The bounds may be wider than the matches, never narrower. Comparisons that need the column cast do not bound
    /// it.
    pub fn bounds(&self, column: usize) -> Bounds {
        bounds(&self.0, column)
    }

    /// The only values `column` has in any match, in any order and some perhaps twice; literals are of the column's type.
    /// `None` if the predicate does not name them, or names more than [`MOST_VALUES`].
    pub fn values(&self, column: usize) -> Option<Vec<Literal>> {
        values(&self.0, column)
    }
}

/// More values than this are not worth looking up one by one.
pub const MOST_VALUES: usize = 1024;

fn values(bound: &Bound, wanted: usize) -> Option<Vec<Literal>> {
    match bound {
        // NaN has many forms.
        Bound::Compare { value, .. } if is_nan(value) => None,
        Bound::Compare { column, op: CompareOp::Eq, value, cast: None } if *column == wanted => {
            // Nothing equals null.
            Some(if value.is_null() { Vec::new() } else { vec![value.clone()] })
        }
        Bound::Compare { .. } | Bound::IsNull { .. } => None,
        // Each part alone holds for every match; the shortest list says most.
        Bound::And(parts) | Bound::Among { parts, is_negated: true, .. } => {
            parts.iter().filter_map(|part| values(part, wanted)).min_by_key(|values| values.len())
        }
        Bound::Or(parts) | Bound::Among { parts, is_negated: false, .. } => {
            let mut all = Vec::new();
            for part in parts {
                all.extend(values(part, wanted)?);
                if all.len() > MOST_VALUES {
                    return None;
                }
            }
            Some(all)
        }
    }
}

fn bounds(bound: &Bound, wanted: usize) -> Bounds {
    match bound {
        Bound::Compare { value, .. } if is_nan(value) => Bounds::EVERYTHING,
        Bound::Compare { column, op, value, cast: None } if *column == wanted && !value.is_null() => {
            let exact = || Limit::Included(value.clone());
            let (lower, upper) = match op {
                CompareOp::Eq => (exact(), exact()),
                CompareOp::NotEq => (Limit::Unbounded, Limit::Unbounded),
                CompareOp::Lt => (Limit::Unbounded, Limit::Excluded(value.clone())),
                CompareOp::LtEq => (Limit::Unbounded, exact()),
                CompareOp::Gt => (Limit::Excluded(value.clone()), Limit::Unbounded),
                CompareOp::GtEq => (exact(), Limit::Unbounded),
                CompareOp::Like => return like::bounds(value),
                CompareOp::NotLike => return Bounds::EVERYTHING,
            };
            Bounds { lower, upper }
        }
        Bound::Compare { .. } | Bound::IsNull { .. } => Bounds::EVERYTHING,
        Bound::And(parts) | Bound::Among { parts, is_negated: true, .. } => {
            parts.iter().map(|part| bounds(part, wanted)).fold(Bounds::EVERYTHING, |a, b| Bounds {
                lower: tighter(a.lower, b.lower, Ordering::Greater),
                upper: tighter(a.upper, b.upper, Ordering::Less),
            })
        }
        Bound::Or(parts) | Bound::Among { parts, is_negated: false, .. } => parts
            .iter()
            .map(|part| bounds(part, wanted))
            .reduce(|a, b| Bounds {
                lower: wider(a.lower, b.lower, Ordering::Less),
                upper: wider(a.upper, b.upper, Ordering::Greater),
            })
            .unwrap_or(Bounds::EVERYTHING),
    }
}

fn is_nan(value: &Literal) -> bool {
    let array = value.array();
    array.as_primitive_opt::<Float64Type>().is_some_and(|value| value.value(0).is_nan())
        || array.as_primitive_opt::<Float32Type>().is_some_and(|value| value.value(0).is_nan())
}

/// Of two limits the one that excludes more; `better` is the order in which the first value excludes more.
fn tighter(a: Limit<Literal>, b: Limit<Literal>, better: Ordering) -> Limit<Literal> {
    match (value_of(&a), value_of(&b)) {
        (None, _) => b,
        (_, None) => a,
        (Some(x), Some(y)) => match compare(x, y) {
            Some(order) if order == better => a,
            Some(Ordering::Equal) if matches!(a, Limit::Excluded(_)) => a,
            _ => b,
        },
    }
}

/// Of two limits the one that excludes less; `better` is the order in which the first value excludes less.
fn wider(a: Limit<Literal>, b: Limit<Literal>, better: Ordering) -> Limit<Literal> {
    match (value_of(&a), value_of(&b)) {
        (None, _) | (_, None) => Limit::Unbounded,
        (Some(x), Some(y)) => match compare(x, y) {
            Some(order) if order == better => a,
            Some(Ordering::Equal) if matches!(a, Limit::Included(_)) => a,
            Some(_) => b,
            None => Limit::Unbounded,
        },
    }
}

fn value_of(limit: &Limit<Literal>) -> Option<&Literal> {
    match limit {
        Limit::Included(value) | Limit::Excluded(value) => Some(value),
        Limit::Unbounded => None,
    }
}

fn compare(a: &Literal, b: &Literal) -> Option<Ordering> {
    let is_true = |result: BooleanArray| !result.is_empty() && result.is_valid(0) && result.value(0);
    if is_true(cmp::lt(a, b).ok()?) {
        Some(Ordering::Less)
    } else if is_true(cmp::gt(a, b).ok()?) {
        Some(Ordering::Greater)
    } else {
        Some(Ordering::Equal)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Predicate, col, lit};
    use super::*;
    use arrow_schema::{DataType, Field, Schema};

    fn text(predicate: Predicate) -> String {
        let schema = Schema::new(vec![
            Field::new("k", DataType::Int32, false),
            Field::new("v", DataType::Int32, true),
        ]);
        let bounds = predicate.bind(&schema).unwrap().bounds(0);
        let show = |limit: &Limit<Literal>, inside: &str, outside: &str| match limit {
            Limit::Included(value) => format!("{inside}{value}"),
            Limit::Excluded(value) => format!("{outside}{value}"),
            Limit::Unbounded => String::new(),
        };
        format!("{} {}", show(&bounds.lower, ">=", ">"), show(&bounds.upper, "<=", "<"))
    }

    #[test]
    fn literals_beyond_the_type_match_all_or_none() {
        use arrow_array::{Int32Array, RecordBatch, UInt64Array};
        use std::sync::Arc;
        let schema = Arc::new(Schema::new(vec![
            Field::new("i", DataType::Int32, true),
            Field::new("u", DataType::UInt64, true),
        ]));
        let ints = Int32Array::from(vec![Some(i32::MIN), None, Some(i32::MAX)]);
        let unsigned = UInt64Array::from(vec![Some(0), None, Some(u64::MAX)]);
        let batch =
            RecordBatch::try_new(Arc::clone(&schema), vec![Arc::new(ints), Arc::new(unsigned)]).unwrap();
        let large = || lit(1i64 << 40);
        for (predicate, expected) in [
            (col("i").lt(large()), 2),
            (col("i").gt(large()), 0),
            (col("i").not_eq(large()), 2),
            (col("u").gt(lit(-1i64)), 2),
            (col("u").lt_eq(lit(-1i64)), 0),
            (Predicate::Not(Box::new(col("u").eq(lit(-1i64)))), 2),
        ] {
            let selected = predicate.bind(&schema).unwrap().evaluate(&batch).unwrap();
            assert_eq!(selected.true_count(), expected, "{predicate}");
        }
    }

    #[test]
    fn every_match_has_one_of_the_values() {
        let schema = Schema::new(vec![
            Field::new("k", DataType::Int32, false),
            Field::new("v", DataType::Int32, true),
        ]);
        let k = || col("k");
        for (predicate, expected) in [
            (k().eq(lit(5)), Some("5")),
            (k().is_in(vec![lit(4), lit(2)]), Some("4 2")),
            (k().gt(lit(5)), None),
            (k().is_null(), None),
            (
                Predicate::And(vec![k().is_in(vec![lit(4), lit(2)]), k().eq(lit(9)), col("v").eq(lit(1))]),
                Some("9"),
            ),
            (Predicate::Or(vec![k().eq(lit(7)), k().eq(lit(3))]), Some("7 3")),
            (Predicate::Or(vec![k().eq(lit(7)), col("v").eq(lit(3))]), None),
            (Predicate::Or(vec![]), Some("")),
            (Predicate::Not(Box::new(k().not_eq(lit(3)))), Some("3")),
            (k().is_in((0..=1024).map(lit).collect()), None),
        ] {
            let values = predicate.bind(&schema).unwrap().values(0);
            let text = values.map(|list| list.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "));
            assert_eq!(text.as_deref(), expected, "{predicate}");
        }
    }

    #[test]
    fn bounds_hold_every_match() {
        let k = || col("k");
        let cases = [
            (k().eq(lit(5)), ">=5 <=5"),
            (k().gt(lit(5)), ">5 "),
            (k().not_eq(lit(5)), " "),
            (Predicate::Not(Box::new(k().gt(lit(5)))), " <=5"),
            (
                Predicate::And(vec![k().gt_eq(lit(1)), k().gt(lit(1)), k().lt(lit(9)), col("v").eq(lit(2))]),
                ">1 <9",
            ),
            (Predicate::Or(vec![k().eq(lit(7)), k().eq(lit(3))]), ">=3 <=7"),
            (Predicate::Or(vec![k().eq(lit(7)), col("v").eq(lit(3))]), " "),
            (k().is_in(vec![lit(4), lit(2), lit(9)]), ">=2 <=9"),
            (Predicate::Not(Box::new(k().is_in(vec![lit(4)]))), " "),
            (k().gt(lit(2.5)), " "),
            (k().gt(lit(2.0)), ">2 "),
        ];
        for (predicate, expected) in cases {
            assert_eq!(text(predicate.clone()), expected, "{predicate}");
        }
    }
}
