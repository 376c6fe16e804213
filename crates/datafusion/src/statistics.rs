//! What a dataset knows without reading values, as DataFusion's statistics.

use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::common::stats::Precision;
use datafusion::common::{ColumnStatistics, ScalarValue, Statistics};
use pilaster_core::Dataset;
use pilaster_core::describe;

/// Row count and per-column bounds of all of `dataset`.
///
/// A column whose statistics cannot be read has none: that is a reason to read more, not to fail.
pub(crate) fn table_statistics(dataset: &dyn Dataset) -> Statistics {
    let schema = dataset.schema();
    let mut statistics = Statistics::new_unknown(&schema);
    if let Some(rows) = dataset.row_count().and_then(|rows| usize::try_from(rows).ok()) {
        statistics.num_rows = Precision::Exact(rows);
    }
    if let Ok(columns) = dataset.column_statistics() {
        statistics.total_byte_size = total_bytes(&columns);
        statistics.column_statistics = column_statistics(&schema, &columns);
    }
    statistics
}

fn total_bytes(columns: &[describe::ColumnStatistics]) -> Precision<usize> {
    let total = columns
        .iter()
        .map(|column| column.uncompressed_bytes.unwrap_or(column.bytes))
        .fold(0u64, u64::saturating_add);
    usize::try_from(total).map_or(Precision::Absent, Precision::Inexact)
}

fn column_statistics(schema: &SchemaRef, known: &[describe::ColumnStatistics]) -> Vec<ColumnStatistics> {
    let mut known = known.iter();
    schema
        .fields()
        .iter()
        .map(|field| match known.next() {
            Some(column) => one_column(field.data_type(), column),
            None => ColumnStatistics::new_unknown(),
        })
        .collect()
}

fn one_column(data_type: &DataType, column: &describe::ColumnStatistics) -> ColumnStatistics {
    let bound = |value: &Option<ArrayRef>| {
        let Some(scalar) = value.as_ref().and_then(first) else { return Precision::Absent };
        if &scalar.data_type() != data_type {
            return Precision::Absent;
        }
        if bounds_are_values(data_type) { Precision::Exact(scalar) } else { Precision::Inexact(scalar) }
    };
    let mut statistics = ColumnStatistics::new_unknown();
    statistics.null_count = match column.nulls.and_then(|nulls| usize::try_from(nulls).ok()) {
        Some(nulls) => Precision::Exact(nulls),
        None => Precision::Absent,
    };
    statistics.min_value = bound(&column.min);
    statistics.max_value = bound(&column.max);
    statistics
}

fn first(array: &ArrayRef) -> Option<ScalarValue> {
    let scalar = ScalarValue::try_from_array(array, 0).ok()?;
    (!scalar.is_null()).then_some(scalar)
}

/// Whether a stored bound is a value of the column: long strings may be stored shortened, and bounds of floats leave
/// NaN out, so those can guide but not answer.
fn bounds_are_values(data_type: &DataType) -> bool {
    data_type.is_integer()
        || data_type.is_temporal()
        || data_type.is_decimal()
        || matches!(data_type, DataType::Boolean)
}
