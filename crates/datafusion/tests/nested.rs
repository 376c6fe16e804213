//! Lists, maps and structs in SQL and in conditions.
#![allow(
    dead_code,
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests compute with known values, and share helpers that not all of them use"
)]

mod common;

use std::sync::Arc;

use common::Table;
use common::sql::{answer, session};
use datafusion::arrow::array::{
    Array, ArrayRef, Int32Array, Int64Array, ListArray, MapArray, RecordBatch, StringArray, StringViewArray,
    StructArray,
};
use datafusion::arrow::buffer::{NullBuffer, OffsetBuffer};
use datafusion::arrow::datatypes::{DataType, Field, Fields, Int64Type};
use pilaster_core::DatasetRef;
use pilaster_datafusion::RowFilter;

fn table(columns: Vec<(&str, ArrayRef)>) -> DatasetRef {
    Arc::new(Table::new("t", RecordBatch::try_from_iter(columns).unwrap(), 2))
}

/// `{a: 1, b: 2}`, `{}`, null, `{b: 3}` with these keys.
fn map(keys: ArrayRef) -> ArrayRef {
    let fields = Fields::from(vec![
        Field::new("key", keys.data_type().clone(), false),
        Field::new("value", DataType::Int64, true),
    ]);
    let values: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 3]));
    let entries = StructArray::new(fields, vec![keys, values], None);
    let field = Arc::new(Field::new("entries", entries.data_type().clone(), false));
    let nulls = NullBuffer::from(vec![true, true, false, true]);
    Arc::new(MapArray::new(field, OffsetBuffer::from_lengths([2, 0, 0, 1]), entries, Some(nulls), false))
}

/// DataFusion compares the key that is written with those of the map as it is.
#[test]
fn keys_of_maps_are_of_any_type() {
    let dataset = table(vec![
        ("id", Arc::new(Int32Array::from(vec![1, 2, 3, 4])) as ArrayRef),
        ("plain", map(Arc::new(StringArray::from(vec!["a", "b", "b"])))),
        ("view", map(Arc::new(StringViewArray::from(vec!["a", "b", "b"])))),
        ("small", map(Arc::new(Int32Array::from(vec![7, 8, 8])))),
        ("large", map(Arc::new(Int64Array::from(vec![7, 8, 8])))),
    ]);
    let session = session(vec![("t", Arc::clone(&dataset))]);
    for part in ["plain['b']", "view['b']", "small[8]", "large[8]", "view['' || 'b']"] {
        for (sql, expected) in [
            (format!("SELECT {part} FROM t ORDER BY id"), "2, NULL, NULL, 3"),
            (format!("SELECT id FROM t WHERE {part} >= 2 ORDER BY id"), "1, 4"),
            (format!("SELECT sum({part}), count({part}) FROM t"), "5 2"),
            (format!("SELECT id FROM t WHERE {part} IS NULL ORDER BY id"), "2, 3"),
        ] {
            assert_eq!(answer(&session, &sql).unwrap_or_else(|error| error.to_string()), expected, "{sql}");
        }
    }
    for sql in ["SELECT view[NULL] FROM t", "SELECT small[NULL] FROM t", "SELECT view['c'] FROM t"] {
        let rows = answer(&session, sql).unwrap_or_else(|error| error.to_string());
        assert_eq!(rows, "NULL, NULL, NULL, NULL", "{sql}");
    }
    for condition in ["view['b'] >= 2", "small[8] >= 2"] {
        let filtered = RowFilter::parse(condition, &dataset.schema()).unwrap().apply(Arc::clone(&dataset));
        let found: usize = filtered.scan().read().unwrap().map(|batch| batch.unwrap().num_rows()).sum();
        assert_eq!(found, 2, "-w {condition}");
    }
}

/// DataFusion takes them out below the join, and then looks for them by the names they had before.
#[test]
fn rows_are_joined_by_parts_of_lists_and_structs() {
    let numbers = |base: i64| {
        let lists = (0..3).map(|row| Some(vec![Some(base + row), Some(9)]));
        Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>(lists)) as ArrayRef
    };
    let structs = |base: i64| {
        let fields = Fields::from(vec![Field::new("n", numbers(0).data_type().clone(), true)]);
        Arc::new(StructArray::new(fields, vec![numbers(base)], None)) as ArrayRef
    };
    let ids = || Arc::new(Int64Array::from(vec![0, 1, 2])) as ArrayRef;
    let session = session(vec![
        ("t", table(vec![("id", ids()), ("l", numbers(0)), ("s", structs(0))])),
        ("u", table(vec![("id", ids()), ("l", numbers(1)), ("s", structs(1))])),
    ]);
    for (sql, expected) in [
        ("SELECT u.id, t.id FROM t JOIN u ON t.l[1] = u.l[1] ORDER BY 1", "0 1, 1 2"),
        ("SELECT u.s['n'][1], t.id FROM t LEFT JOIN u ON t.id = u.s['n'][1] ORDER BY 2", "NULL 0, 1 1, 2 2"),
        (
            "SELECT u.s['n'][1] FROM t LEFT JOIN u ON t.id = u.s['n'][1] AND t.l[2] = u.s['n'][2] ORDER BY 1",
            "1, 2, NULL",
        ),
        (
            "SELECT t.id FROM t WHERE EXISTS (SELECT 1 FROM u WHERE t.s['n'][1] = u.s['n'][1]) ORDER BY 1",
            "1, 2",
        ),
    ] {
        assert_eq!(answer(&session, sql).unwrap_or_else(|error| error.to_string()), expected, "{sql}");
    }
}

/// Arrow does not say what the columns of a struct hold where it is null; DataFusion takes them as they are.
#[test]
fn columns_of_a_struct_that_is_null_are_null() {
    let numbers: ArrayRef = Arc::new(Int32Array::from(vec![Some(1), Some(-7), None, Some(4)]));
    let inner = Fields::from(vec![Field::new("n", DataType::Int32, true)]);
    let inner_nulls = NullBuffer::from(vec![true, true, true, false]);
    let inner: ArrayRef = Arc::new(StructArray::new(inner, vec![Arc::clone(&numbers)], Some(inner_nulls)));
    let fields = Fields::from(vec![
        Field::new("a", DataType::Int32, true),
        Field::new("s", inner.data_type().clone(), true),
    ]);
    let nulls = NullBuffer::from(vec![true, false, true, true]);
    let structs: ArrayRef = Arc::new(StructArray::new(fields, vec![numbers, inner], Some(nulls)));
    let item = Arc::new(Field::new_list_field(structs.data_type().clone(), true));
    let lists = ListArray::new(item, OffsetBuffer::from_lengths([2, 2]), Arc::clone(&structs), None);
    let dataset = table(vec![("s", structs)]);
    let filter = RowFilter::parse("s['a'] < 0", &dataset.schema()).unwrap();
    let found = filter.apply(Arc::clone(&dataset));
    assert_eq!(found.scan().read().unwrap().map(|batch| batch.unwrap().num_rows()).sum::<usize>(), 0);
    let session = session(vec![("t", dataset), ("l", table(vec![("l", Arc::new(lists) as ArrayRef)]))]);
    for (sql, expected) in [
        ("SELECT s['a'], s['s']['n'] FROM t", "1 1, NULL NULL, NULL NULL, 4 NULL"),
        ("SELECT count(*) FROM t WHERE s['a'] < 0", "0"),
        ("SELECT sum(s['s']['n']) FROM t", "1"),
        ("SELECT l[1]['a'], l[2]['a'], l[2]['s']['n'] FROM l", "1 NULL NULL, NULL 4 NULL"),
    ] {
        assert_eq!(answer(&session, sql).unwrap(), expected, "{sql}");
    }
}
