//! A predicate on zones: row groups, pages, segments, blocklets.

use std::ops::Bound as Limit;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, BooleanArray, UInt64Array};
use arrow_buffer::BooleanBuffer;

use super::bind::{Bound, BoundPredicate};
use super::evaluate::compare;
use super::{CompareOp, Literal, like};

/// What is known of each zone; columns are positions in the schema the predicate was bound to.
pub trait ZoneStatistics {
    /// Number of zones.
    fn zones(&self) -> usize;
    /// Per zone a value that none in it is below (null: not known), of the column's type.
    fn min(&self, column: usize) -> Option<ArrayRef>;
    /// Per zone a value that none in it is above (null: not known), of the column's type.
    fn max(&self, column: usize) -> Option<ArrayRef>;
    /// Per zone the number of nulls (null: not known).
    fn null_counts(&self, column: usize) -> Option<UInt64Array>;
    /// Per zone the number of rows (null: not known).
    fn row_counts(&self) -> Option<UInt64Array>;
    /// Per zone whether it can hold a value for which the comparison is true, where a format knows more than bounds say:
    /// which entries of a dictionary are in it. `None`: ask the bounds.
    fn compared(&self, _column: usize, _op: CompareOp, _value: &Literal) -> Option<BooleanBuffer> {
        None
    }
    /// Per zone whether none of the values of a column is NaN, which bounds leave out in most formats. `None`, which it is
    /// unless a format knows better: not known, and bounds of floats prove nothing.
    fn without_nan(&self, _column: usize) -> Option<BooleanArray> {
        None
    }
}

impl BoundPredicate {
    /// For each zone whether it can hold a row for which this is true. What is not known can.
    pub fn may_match(&self, zones: &dyn ZoneStatistics) -> BooleanBuffer {
        may_match(&self.0, zones).unwrap_or_else(|| BooleanBuffer::new_set(zones.zones()))
    }
}

/// `None` stands for "every zone may".
fn may_match(bound: &Bound, zones: &dyn ZoneStatistics) -> Option<BooleanBuffer> {
    match bound {
        Bound::Compare { column, op, value, cast: None } => {
            if value.is_null() {
                return Some(BooleanBuffer::new_unset(zones.zones()));
            }
            if let Some(known) = zones.compared(*column, *op, value) {
                return Some(known);
            }
            // Minima and maxima of floats leave NaN out in most formats, so they prove nothing where there may be one.
            if value.array().data_type().is_floating() {
                let clean = zones.without_nan(*column)?;
                let may = within_bounds(*column, *op, value, zones)?;
                return Some(&may | &!clean.values());
            }
            within_bounds(*column, *op, value, zones)
        }
        Bound::Compare { cast: Some(_), .. } => None,
        Bound::IsNull { column, negated: false } => {
            let nulls = zones.null_counts(*column)?;
            Some(BooleanBuffer::collect_bool(nulls.len(), |zone| {
                nulls.is_null(zone) || nulls.value(zone) > 0
            }))
        }
        Bound::IsNull { column, negated: true } => {
            let (nulls, rows) = (zones.null_counts(*column)?, zones.row_counts()?);
            Some(BooleanBuffer::collect_bool(nulls.len().min(rows.len()), |zone| {
                nulls.is_null(zone) || rows.is_null(zone) || nulls.value(zone) < rows.value(zone)
            }))
        }
        Bound::And(parts) | Bound::Among { parts, is_negated: true, .. } => {
            parts.iter().map(|part| may_match(part, zones)).fold(None, |a, b| both(a, b, |a, b| a & b))
        }
        Bound::Or(parts) | Bound::Among { parts, is_negated: false, .. } => parts
            .iter()
            .map(|part| may_match(part, zones))
            .reduce(|a, b| Some(&a? | &b?))
            .unwrap_or_else(|| Some(BooleanBuffer::new_unset(zones.zones()))),
    }
}

/// Where bounds leave room for a value for which the comparison is true.
fn within_bounds(
    column: usize,
    op: CompareOp,
    value: &Literal,
    zones: &dyn ZoneStatistics,
) -> Option<BooleanBuffer> {
    let against = |array: ArrayRef, op| not_false(&array, op, value);
    match op {
        CompareOp::Lt | CompareOp::LtEq => against(zones.min(column)?, op),
        CompareOp::Gt | CompareOp::GtEq => against(zones.max(column)?, op),
        CompareOp::Eq => {
            let low = zones.min(column).and_then(|min| against(min, CompareOp::LtEq));
            let high = zones.max(column).and_then(|max| against(max, CompareOp::GtEq));
            both(low, high, |a, b| a & b)
        }
        CompareOp::NotEq => {
            let low = against(zones.min(column)?, CompareOp::NotEq)?;
            let high = against(zones.max(column)?, CompareOp::NotEq)?;
            Some(&low | &high)
        }
        CompareOp::Like => {
            let limits = like::bounds(value);
            let value_of = |limit| match limit {
                Limit::Included(value) | Limit::Excluded(value) => Some(value),
                Limit::Unbounded => None,
            };
            let low = value_of(limits.lower)
                .and_then(|least| not_false(&zones.max(column)?, CompareOp::GtEq, &least));
            // Included or not: a zone of nothing but the limit is kept for one value too many at most.
            let high = value_of(limits.upper)
                .and_then(|most| not_false(&zones.min(column)?, CompareOp::LtEq, &most));
            both(low, high, |a, b| a & b)
        }
        CompareOp::NotLike => None,
    }
}

fn both(
    a: Option<BooleanBuffer>,
    b: Option<BooleanBuffer>,
    join: fn(&BooleanBuffer, &BooleanBuffer) -> BooleanBuffer,
) -> Option<BooleanBuffer> {
    match (a, b) {
        (Some(a), Some(b)) => Some(join(&a, &b)),
        (one, None) | (None, one) => one,
    }
}

/// Where the comparison is true or unknown; `None` if the types cannot be compared.
fn not_false(array: &ArrayRef, op: CompareOp, value: &Literal) -> Option<BooleanBuffer> {
    let result = compare(&Arc::clone(array), op, value, None).ok()?;
    Some(match result.nulls() {
        Some(nulls) => result.values() | &!nulls.inner(),
        None => result.values().clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::{Predicate, col, lit};
    use super::*;
    use arrow_array::{Int32Array, RecordBatch};
    use arrow_schema::{DataType, Field, Schema};
    use proptest::prelude::*;

    struct Zones(Vec<Vec<Option<i32>>>);

    impl ZoneStatistics for Zones {
        fn zones(&self) -> usize {
            self.0.len()
        }
        fn min(&self, _: usize) -> Option<ArrayRef> {
            Some(Arc::new(
                self.0.iter().map(|zone| zone.iter().flatten().min().copied()).collect::<Int32Array>(),
            ))
        }
        fn max(&self, _: usize) -> Option<ArrayRef> {
            Some(Arc::new(
                self.0.iter().map(|zone| zone.iter().flatten().max().copied()).collect::<Int32Array>(),
            ))
        }
        fn null_counts(&self, _: usize) -> Option<UInt64Array> {
            Some(self.0.iter().map(|zone| Some(zone.iter().filter(|v| v.is_none()).count() as u64)).collect())
        }
        fn row_counts(&self) -> Option<UInt64Array> {
            Some(self.0.iter().map(|zone| Some(zone.len() as u64)).collect())
        }
    }

    fn any_predicate() -> impl Strategy<Value = Predicate> {
        let leaf = prop_oneof![
            (0usize..6, -3i32..4).prop_map(|(op, value)| {
                let op = [
                    CompareOp::Eq,
                    CompareOp::NotEq,
                    CompareOp::Lt,
                    CompareOp::LtEq,
                    CompareOp::Gt,
                    CompareOp::GtEq,
                ][op];
                Predicate::Compare { column: "a".into(), op, value: lit(value) }
            }),
            prop::collection::vec(-3i32..4, 0..3)
                .prop_map(|v| col("a").is_in(v.into_iter().map(lit).collect())),
            Just(col("a").is_null()),
            Just(col("a").is_not_null()),
        ];
        leaf.prop_recursive(3, 12, 3, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..3).prop_map(Predicate::And),
                prop::collection::vec(inner.clone(), 0..3).prop_map(Predicate::Or),
                inner.prop_map(|p| Predicate::Not(Box::new(p))),
            ]
        })
    }

    proptest! {
        #[test]
        fn a_zone_with_a_match_is_never_pruned(
            zones in prop::collection::vec(prop::collection::vec(prop::option::of(-3i32..4), 1..6), 1..6),
            predicate in any_predicate(),
        ) {
            let schema = Arc::new(Schema::new(vec![Field::new("a", DataType::Int32, true)]));
            let bound = predicate.bind(&schema).unwrap();
            let may = bound.may_match(&Zones(zones.clone()));
            for (index, zone) in zones.into_iter().enumerate() {
                let column: ArrayRef = Arc::new(Int32Array::from(zone));
                let batch = RecordBatch::try_new(Arc::clone(&schema), vec![column]).unwrap();
                let matches = bound.evaluate(&batch).unwrap().iter().any(|row| row == Some(true));
                prop_assert!(!matches || may.value(index), "{}", predicate);
            }
        }

        #[test]
        fn every_match_has_one_of_the_values_named(value in -3i32..4, predicate in any_predicate()) {
            let schema = Arc::new(Schema::new(vec![Field::new("a", DataType::Int32, true)]));
            let bound = predicate.bind(&schema).unwrap();
            let column: ArrayRef = Arc::new(Int32Array::from(vec![value]));
            let batch = RecordBatch::try_new(Arc::clone(&schema), vec![column]).unwrap();
            if let Some(values) = bound.values(0) && bound.evaluate(&batch).unwrap().iter().any(|row| row == Some(true)) {
                prop_assert!(values.contains(&lit(value)), "{}", predicate);
            }
        }
    }
}
