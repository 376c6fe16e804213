//! A predicate as a list of values of one column, for bloom filters and indexes by value.

use super::bind::{Bound, BoundPredicate};
use super::{CompareOp, Literal};

impl BoundPredicate {
    /// The values of `column` one of which every match has, of the column's type; `None` if no such list is known.
    ///
    /// The list may be longer than needed, never shorter. Comparisons that need the column cast give none.
    pub fn points(&self, column: usize) -> Option<Vec<Literal>> {
        points(&self.0, column)
    }
}

fn points(bound: &Bound, wanted: usize) -> Option<Vec<Literal>> {
    match bound {
        Bound::Compare { column, op: CompareOp::Eq, value, cast: None } if *column == wanted => {
            // Nothing equals null.
            Some(if value.is_null() { Vec::new() } else { vec![value.clone()] })
        }
        Bound::Compare { .. } | Bound::IsNull { .. } => None,
        Bound::And(parts) => parts.iter().filter_map(|part| points(part, wanted)).min_by_key(Vec::len),
        Bound::Or(parts) => {
            let lists = parts.iter().map(|part| points(part, wanted)).collect::<Option<Vec<_>>>()?;
            Some(lists.concat())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Predicate, col, lit};
    use arrow_schema::{DataType, Field, Schema};

    #[test]
    fn every_match_has_one_of_the_points() {
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
        ] {
            let points = predicate.bind(&schema).unwrap().points(0);
            let text = points.map(|list| list.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "));
            assert_eq!(text.as_deref(), expected, "{predicate}");
        }
    }
}
