//! Times of day in SQL and in conditions.
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
    ArrayRef, Int32Array, RecordBatch, Time32MillisecondArray, Time32SecondArray, Time64MicrosecondArray,
    Time64NanosecondArray,
};
use pilaster_core::DatasetRef;
use pilaster_datafusion::RowFilter;

/// Midnight, noon, null and the last second of a day, in every unit; `n` ends with the last nanosecond.
fn times() -> DatasetRef {
    let seconds = [Some(0_i32), Some(43_200), None, Some(86_399)];
    let scaled = |factor: i64| seconds.map(|second| second.map(|second| i64::from(second) * factor)).to_vec();
    let mut nanos = scaled(1_000_000_000);
    nanos[3] = nanos[3].map(|nanos| nanos + 999_999_999);
    let columns: [(&str, ArrayRef); 5] = [
        ("id", Arc::new(Int32Array::from(vec![1, 2, 3, 4]))),
        ("s", Arc::new(Time32SecondArray::from(seconds.to_vec()))),
        ("m", Arc::new(Time32MillisecondArray::from(seconds.map(|s| s.map(|s| s * 1000)).to_vec()))),
        ("u", Arc::new(Time64MicrosecondArray::from(scaled(1_000_000)))),
        ("n", Arc::new(Time64NanosecondArray::from(nanos))),
    ];
    Arc::new(Table::new("t", RecordBatch::try_from_iter(columns).unwrap(), 2))
}

#[test]
fn times_are_compared_whatever_their_units() {
    let dataset = times();
    let session = session(vec![("t", Arc::clone(&dataset))]);
    let mut cases =
        vec![("s = n", "1, 2"), ("n > m", "4"), ("u IN (s, n)", "1, 2, 4"), ("s = m AND m = u", "1, 2, 4")];
    for condition in [
        "s = TIME '12:00:00'",
        "m = TIME '12:00:00'",
        "u = TIME '12:00:00'",
        "n = TIME '12:00:00'",
        "TIME '12:00' = u",
        "u = '12:00:00'",
        "u IN (TIME '12:00:00', '01:00:00')",
        "u BETWEEN TIME '11:00:00' AND '12:00:00.0000001'",
        "NOT (u <> TIME '12:00:00')",
        "CASE u WHEN TIME '12:00:00' THEN true ELSE false END",
        "nullif(s, TIME '12:00:00') IS NULL AND s IS NOT NULL",
    ] {
        cases.push((condition, "2"));
    }
    cases.extend([
        ("s = '12:00:00.5'", ""),
        ("s < TIME '12:00:00.5'", "1, 2"),
        ("s >= '12:00:00.0000001'", "4"),
        ("u = TIME '12:00:00.0000001'", ""),
        ("n > TIME '23:59:59.99999999'", "4"),
        ("coalesce(u, TIME '01:00:00') = '01:00:00'", "3"),
        ("greatest(s, n) > TIME '23:59:59.5'", "4"),
    ]);
    for (condition, expected) in cases {
        let rows = answer(&session, &format!("SELECT id FROM t WHERE {condition} ORDER BY id"));
        assert_eq!(rows.unwrap_or_else(|error| error.to_string()), expected, "{condition}");
        let filtered = RowFilter::parse(condition, &dataset.schema()).unwrap().apply(Arc::clone(&dataset));
        let found: usize = filtered.scan().read().unwrap().map(|batch| batch.unwrap().num_rows()).sum();
        let count = expected.split(", ").filter(|id| !id.is_empty()).count();
        assert_eq!(found, count, "-w {condition}");
    }
    for (sql, expected) in [
        ("SELECT u = TIME '12:00:00' FROM t ORDER BY id", "false, true, NULL, false"),
        ("SELECT s < n FROM t ORDER BY id", "false, false, NULL, true"),
        ("SELECT a.id FROM t a JOIN t b ON a.s = b.n ORDER BY 1", "1, 2"),
    ] {
        assert_eq!(answer(&session, sql).unwrap_or_else(|error| error.to_string()), expected, "{sql}");
    }
}

#[test]
fn windows_are_ordered_by_times() {
    let session = session(vec![("t", times())]);
    for column in ["s", "m", "u", "n"] {
        for (sql, expected) in [
            (format!("SELECT rank() OVER (ORDER BY {column} NULLS LAST) FROM t ORDER BY id"), "1, 2, 4, 3"),
            (format!("SELECT rank() OVER (ORDER BY {column} DESC) FROM t ORDER BY id"), "4, 3, 1, 2"),
            (
                format!("SELECT sum(id) OVER (ORDER BY {column} NULLS FIRST) FROM t ORDER BY id"),
                "4, 6, 3, 10",
            ),
            (
                format!("SELECT count(*) OVER (PARTITION BY {column} ORDER BY {column}) FROM t ORDER BY id"),
                "1, 1, 1, 1",
            ),
        ] {
            assert_eq!(answer(&session, &sql).unwrap_or_else(|error| error.to_string()), expected, "{sql}");
        }
        let sql = format!(
            "SELECT count(*) OVER (ORDER BY {column} RANGE BETWEEN INTERVAL '1 hour' PRECEDING AND CURRENT ROW) FROM t"
        );
        let said = answer(&session, &sql).unwrap_err().to_string();
        assert!(said.contains("no distance between times of day"), "{said}");
    }
}
