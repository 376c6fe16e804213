//! What numbers mean in SQL and in conditions: decimals beside numbers as written, sums that do not fit, bounds of Parquet.
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
    ArrayRef, ArrowPrimitiveType, Date32Array, Decimal128Array, Decimal256Array, DictionaryArray,
    Float16Array, Float64Array, Int8Array, Int32Array, Int64Array, RecordBatch, RunArray,
    TimestampMicrosecondArray, TimestampMillisecondArray, TimestampNanosecondArray, UInt64Array,
};
use datafusion::arrow::datatypes::{Float16Type, i256};
use datafusion::arrow::ipc::writer::FileWriter;
use datafusion::parquet::arrow::ArrowWriter;
use pilaster_core::DatasetRef;
use pilaster_datafusion::RowFilter;

fn decimals(values: &[i128], precision: u8, scale: i8) -> ArrayRef {
    Arc::new(Decimal128Array::from(values.to_vec()).with_precision_and_scale(precision, scale).unwrap())
}

fn table(columns: Vec<(&str, ArrayRef)>) -> DatasetRef {
    Arc::new(Table::new("t", RecordBatch::try_from_iter(columns).unwrap(), 2))
}

fn widest(values: &[&str]) -> ArrayRef {
    let values = values.iter().map(|text| i256::from_string(text).unwrap()).collect::<Vec<_>>();
    Arc::new(Decimal256Array::from(values).with_precision_and_scale(76, 0).unwrap())
}

/// Prices 99999.99, 73787.01, 0.10 and 12345678901234567.89, with floats and integers beside them.
fn prices() -> DatasetRef {
    table(vec![
        ("id", Arc::new(Int32Array::from(vec![1, 2, 3, 4]))),
        ("p", decimals(&[9_999_999, 7_378_701, 10, 1_234_567_890_123_456_789], 21, 2)),
        ("q", decimals(&[9_999_999_000, 1, 1_000, 5], 25, 5)),
        ("f", Arc::new(Float64Array::from(vec![99999.99, 1e300, 0.1, 1e-300]))),
        ("n", Arc::new(Int64Array::from(vec![9_007_199_254_740_993, 5, 6, 7]))),
    ])
}

#[test]
fn a_number_beside_a_decimal_is_the_digits_that_were_written() {
    let dataset = prices();
    let session = session(vec![("t", Arc::clone(&dataset))]);
    for (condition, expected) in [
        ("p = 99999.99", "1"),
        ("99999.99 = p", "1"),
        ("p >= 99999.99", "1, 4"),
        ("p > 99999.99", "4"),
        ("p <> 99999.99", "2, 3, 4"),
        ("p IS NOT DISTINCT FROM 99999.99", "1"),
        ("p IN (99999.99, 0.1, 5)", "1, 3"),
        ("p NOT IN (99999.99, 0.1, 5)", "2, 4"),
        ("p BETWEEN 73787.01 AND 99999.99", "1, 2"),
        ("p = 9.999999e4", "1"),
        ("-p = -99999.99", "1"),
        ("p = 99999 + 0.99", "1"),
        ("p BETWEEN 0.06 + 0.01 AND 0.06 + 0.04", "3"),
        ("p = 12345678901234567.89", "4"),
        ("p < 12345678901234567.89", "1, 2, 3"),
        ("p = 12345678901234567.8900000001", ""),
        ("p = 99999.990000000005", ""),
        ("p < 1e300", "1, 2, 3, 4"),
        ("p > 1e-300", "1, 2, 3, 4"),
        ("p * 1.1 = 109999.989", "1"),
        ("p * 10 = 1.0", "3"),
        ("CASE WHEN id = 1 THEN p ELSE 0.5 END = 0.5", "2, 3, 4"),
        ("CASE p WHEN 99999.99 THEN true ELSE false END", "1"),
        ("coalesce(p, 0.5) = 99999.99", "1"),
        ("nullif(p, 99999.99) IS NULL", "1"),
        ("p = q", "1"),
        ("CAST(1.005 AS DECIMAL(10, 2)) = 1.01", "1, 2, 3, 4"),
        // Decimals and floats meet as doubles.
        ("p = f", "1, 3"),
        ("f > p", "2"),
        ("p IN (f, 5)", "1, 3"),
        ("p BETWEEN f AND f", "1, 3"),
        // Floats stay floats.
        ("f = 0.1", "3"),
        ("f = 1e300", "2"),
        ("f = 1e-300", "4"),
        ("f IN (0.1, 1e300)", "2, 3"),
        ("f = 0.1000000000000000055511151231257827", "3"),
        // Nor are integers rounded.
        ("n > 9007199254740992.0", "1"),
        ("n = 9007199254740992.5", ""),
        ("n < 5.5", "2"),
        ("n = 5.0", "2"),
    ] {
        let rows = answer(&session, &format!("SELECT id FROM t WHERE {condition} ORDER BY id")).unwrap();
        assert_eq!(rows, expected, "{condition}");
        let counted =
            answer(&session, &format!("SELECT count(*) FROM t WHERE ({condition}) IS TRUE")).unwrap();
        let expected_count = expected.split(", ").filter(|id| !id.is_empty()).count();
        assert_eq!(counted, expected_count.to_string(), "{condition}");

        let filtered = RowFilter::parse(condition, &dataset.schema()).unwrap().apply(Arc::clone(&dataset));
        let found: usize = filtered.scan().read().unwrap().map(|batch| batch.unwrap().num_rows()).sum();
        assert_eq!(found, expected_count, "-w {condition}");
    }
}

#[test]
fn numbers_become_decimals_across_joins_unions_and_subqueries() {
    let session = session(vec![("t", prices())]);
    for (sql, expected) in [
        ("SELECT a.id FROM t a JOIN t b ON a.p = b.f ORDER BY 1", "1, 3"),
        ("SELECT a.id FROM t a JOIN t b ON a.p = b.q ORDER BY 1", "1"),
        ("SELECT id FROM (SELECT id, p AS x FROM t) WHERE x = 99999.99", "1"),
        ("SELECT id FROM (SELECT id, p + 0.01 AS x FROM t) WHERE x = 100000.00", "1"),
        ("SELECT id FROM t WHERE p = (SELECT max(p) FROM t WHERE p < 12345678901234567.89)", "1"),
        ("SELECT id FROM t WHERE p IN (SELECT 99999.99)", "1"),
        ("SELECT id FROM t WHERE 99999.99 IN (SELECT p FROM t) ORDER BY id", "1, 2, 3, 4"),
        ("SELECT id FROM t WHERE f IN (SELECT p FROM t) ORDER BY id", "1, 3"),
        ("SELECT count(*) FROM (SELECT p FROM t UNION SELECT 99999.99)", "4"),
        ("SELECT count(*) FROM (SELECT p AS v FROM t UNION SELECT f FROM t)", "6"),
        ("SELECT sum(p * 1.1) FROM t WHERE id < 4", "191165.810"),
        ("SELECT sum(CASE WHEN id = 3 THEN p ELSE 0.0 END) FROM t", "0.10"),
        ("SELECT lag(p, 1, 0.5) OVER (ORDER BY id) FROM t ORDER BY id LIMIT 1", "0.50"),
        ("SELECT p / 3.0 FROM t WHERE id = 3", "0.03333333333333333"),
        ("SELECT 1.5, 0.1 + 0.2", "1.5 0.30000000000000004"),
        ("SELECT n * 0.5 FROM t WHERE id = 2", "2.5"),
    ] {
        assert_eq!(answer(&session, sql).unwrap(), expected, "{sql}");
    }
}

#[test]
fn integers_that_do_not_fit_are_errors() {
    let session = session(vec![(
        "t",
        table(vec![
            ("g", Arc::new(Int32Array::from(vec![1, 1, 2]))),
            ("small", Arc::new(Int8Array::from(vec![100, 100, -128]))),
            ("long", Arc::new(Int64Array::from(vec![i64::MAX, i64::MAX, i64::MIN]))),
            ("unsigned", Arc::new(UInt64Array::from(vec![u64::MAX, 1, 0]))),
            ("wide", decimals(&[10_i128.pow(38) - 1, 10_i128.pow(38) - 1, 1], 38, 0)),
            ("widest", widest(&[&"9".repeat(76), &"9".repeat(66), "1"])),
        ]),
    )]);
    for sql in [
        "SELECT sum(long) FROM t WHERE g = 1",
        "SELECT g, sum(long) FROM t GROUP BY g",
        "SELECT sum(long) OVER (ORDER BY g ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM t",
        "SELECT sum(long) OVER (PARTITION BY g) FROM t",
        "SELECT sum(unsigned) FROM t",
        "SELECT sum(wide) FROM t",
        "SELECT sum(widest) FROM t",
        "SELECT g, sum(widest) FROM t GROUP BY g",
        "SELECT avg(widest) FROM t",
        "SELECT widest + 1 FROM t",
        "SELECT wide + 1 FROM t",
        "SELECT wide * 1.5 FROM t",
        "SELECT g FROM t WHERE -wide - 1 < 0",
        "SELECT small + small FROM t",
        "SELECT small * small FROM t",
        "SELECT b.unsigned - a.unsigned FROM t a, t b",
        "SELECT long + 1 FROM t",
        "SELECT -long FROM t",
        "SELECT -small FROM t",
        "SELECT abs(small) FROM t",
        "SELECT abs(long) FROM t",
        "SELECT CAST(long AS INT) FROM t",
        "SELECT CAST(unsigned AS BIGINT) FROM t",
        "SELECT 9223372036854775807 + 1",
        "SELECT count(*) FROM t WHERE long + 1 > 0",
    ] {
        let found = answer(&session, sql);
        assert!(found.is_err(), "{sql}: {found:?}");
    }
    for (sql, expected) in [
        // In whatever order rows come, only the sum counts.
        ("SELECT sum(long) FROM t", "9223372036854775806"),
        ("SELECT sum(small) FROM t", "72"),
        ("SELECT sum(widest) FROM t WHERE g = 2", "1"),
        ("SELECT count(*) FROM t WHERE wide - 1 > 0", "2"),
        ("SELECT median(small) FROM t WHERE g = 1", "100.0"),
        ("SELECT sum(DISTINCT small) FROM t", "-28"),
        ("SELECT g, sum(unsigned) FROM t WHERE g = 2 GROUP BY g", "2 0"),
        ("SELECT sum(CAST(long AS DECIMAL(38, 0))) FROM t WHERE g = 1", "18446744073709551614"),
        ("SELECT sum(long) FROM t WHERE g > 5", "NULL"),
        ("SELECT small + 1 AS x, g * 2, g - 1 FROM t ORDER BY 1 LIMIT 1", "-127 4 1"),
        ("SELECT count(*) FROM t WHERE small < 1000 AND small > -1000", "3"),
    ] {
        assert_eq!(answer(&session, sql).unwrap_or_else(|error| error.to_string()), expected, "{sql}");
    }
    // Columns keep their names.
    let names = session.sql("SELECT g + 1, sum(small) FROM t GROUP BY g + 1").unwrap().schema();
    let names: Vec<_> = names.fields().iter().map(|field| field.name().as_str()).collect();
    assert_eq!(names, ["t.g + Int64(1)", "sum(t.small)"]);
}

/// apache/datafusion 25147: `max(a), min(b)` over several files was NULL.
#[test]
fn bounds_of_several_columns_come_from_all_files() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let session = session(Vec::new());
    for file in 0..4 {
        let target = path(&format!("t/{file}.parquet"));
        let sql = format!(
            "COPY (SELECT k + {file} * 10 AS a, 100 - k - {file} * 10 AS x \
             FROM (VALUES (1), (2), (3)) v(k)) TO '{target}'"
        );
        std::fs::create_dir_all(folder.path().join("t")).unwrap();
        answer(&session, &sql).unwrap();
    }
    let files = path("t/*.parquet");
    for sql in [
        format!("SELECT max(a), min(x) FROM '{files}'"),
        format!("SELECT max(a), min(x) FROM '{files}' WHERE a > 0 AND x < 1000"),
    ] {
        assert_eq!(answer(&session, &sql).unwrap(), "33 67", "{sql}");
    }
    let sql = format!("EXPLAIN SELECT max(a), min(x) FROM '{files}' WHERE a > 0");
    assert!(!answer(&session, &sql).unwrap().contains("DynamicFilter"), "{sql}");
}

/// Bounds of Parquet leave NaN out and keep the zeros apart; a table in memory has no bounds.
#[test]
fn floats_have_one_zero_and_one_nan_in_files_and_in_memory() {
    let folder = tempfile::tempdir().unwrap();
    let f = [f64::NAN, 1.0, f64::NAN, -0.0, 0.0, 7.0, f64::INFINITY, -3.0];
    let ids: Vec<_> = (1..=8).collect();
    let memory = table(vec![
        ("id", Arc::new(Int32Array::from(ids)) as ArrayRef),
        ("f", Arc::new(Float64Array::from(f.to_vec()))),
    ]);
    let session = session(vec![("t", memory)]);
    for file in 0..4 {
        let target = folder.path().join(format!("{file}.parquet"));
        let sql = format!(
            "COPY (SELECT * FROM t WHERE id IN ({}, {})) TO '{}'",
            file * 2 + 1,
            file * 2 + 2,
            target.display()
        );
        answer(&session, &sql).unwrap();
    }
    let files = format!("'{}/*.parquet'", folder.path().display());
    for (query, expected) in [
        ("SELECT id FROM % WHERE f = CAST('NaN' AS DOUBLE) ORDER BY id", "1, 3"),
        ("SELECT id FROM % WHERE f > 5 ORDER BY id", "1, 3, 6, 7"),
        ("SELECT id FROM % WHERE f > CAST('Infinity' AS DOUBLE) ORDER BY id", "1, 3"),
        ("SELECT id FROM % WHERE f < 0 ORDER BY id", "8"),
        ("SELECT id FROM % WHERE f <> 1.0 ORDER BY id", "1, 3, 4, 5, 6, 7, 8"),
        ("SELECT id FROM % WHERE f = 0.0 ORDER BY id", "4, 5"),
        ("SELECT id FROM % WHERE f >= 0.0 AND f <= -0.0 ORDER BY id", "4, 5"),
        ("SELECT id FROM % WHERE f IN (0.0, 10.0, 20.0, 30.0, 40.0) ORDER BY id", "4, 5"),
        ("SELECT id FROM % WHERE f NOT IN (-0.0, 10.0, 20.0, 30.0, 40.0) ORDER BY id", "1, 2, 3, 6, 7, 8"),
        ("SELECT id FROM % WHERE f BETWEEN -0.0 AND 0.0 ORDER BY id", "4, 5"),
        ("SELECT id FROM % WHERE CASE f WHEN 0.0 THEN true ELSE false END ORDER BY id", "4, 5"),
        ("SELECT max(f), min(f) FROM %", "NaN -3.0"),
        ("SELECT id FROM % ORDER BY f DESC, id LIMIT 3", "1, 3, 7"),
        ("SELECT id FROM % WHERE f <= 1 ORDER BY f, id", "8, 4, 5, 2"),
        ("SELECT count(*) FROM (SELECT f FROM % GROUP BY f)", "6"),
        ("SELECT count(*) FROM (SELECT DISTINCT f FROM %)", "6"),
        ("SELECT count(DISTINCT f) FROM %", "6"),
        ("SELECT DISTINCT ON (f) id FROM % ORDER BY f, id DESC", "8, 5, 2, 6, 7, 3"),
        ("SELECT count(*) FROM % a JOIN % b ON a.f = b.f", "12"),
        ("SELECT count(*) FROM % a JOIN % b USING (f)", "12"),
        ("SELECT count(*) FROM % WHERE f IN (SELECT f FROM % WHERE id = 5)", "2"),
        ("SELECT max(n) FROM (SELECT count(*) OVER (PARTITION BY f) AS n FROM %)", "2"),
    ] {
        for source in ["t", &files] {
            let sql = query.replace('%', source);
            assert_eq!(answer(&session, &sql).unwrap_or_else(|error| error.to_string()), expected, "{sql}");
        }
    }
}

#[test]
fn long_conditions_are_answered_or_refused() {
    let dataset = prices();
    let session = session(vec![("t", Arc::clone(&dataset))]);
    let joined = |count: usize, word: &str, part: &dyn Fn(usize) -> String| {
        (0..count).map(part).collect::<Vec<_>>().join(word)
    };
    for (condition, expected) in [
        (joined(4000, " OR ", &|number| format!("id = {}", number + 3)), Some(2)),
        (joined(500, " OR ", &|number| format!("id + {number} < 2")), Some(1)),
        (joined(300, " AND ", &|number| format!("id <> {}", number + 3)), Some(2)),
        (format!("0 < {}", joined(100, " + ", &|_| "id".to_string())), Some(4)),
        (joined(100_000, " OR ", &|number| format!("id = {number}")), None),
        (joined(100_000, " AND ", &|number| format!("id <> {number}")), None),
        (format!("0 < {}", joined(5000, " + ", &|_| "id".to_string())), None),
        (format!("{}id = 1", "NOT ".repeat(5000)), None),
        (format!("{}id = 1{}", "(".repeat(5000), ")".repeat(5000)), None),
    ] {
        let sql = format!("SELECT count(*) FROM t WHERE {condition}");
        let shown: String = condition.chars().take(60).collect();
        let counted = answer(&session, &sql).ok();
        assert_eq!(counted, expected.map(|rows: usize| rows.to_string()), "{shown}");
        let filter = RowFilter::parse(&condition, &dataset.schema());
        let found = filter.ok().map(|filter| {
            let rows = filter.apply(Arc::clone(&dataset));
            rows.scan().read().unwrap().map(|batch| batch.unwrap().num_rows()).sum::<usize>()
        });
        assert_eq!(found, expected, "-w {shown}");
    }
    let unions = |count| joined(count, " UNION ALL ", &|number| format!("SELECT {number}"));
    assert!(answer(&session, &unions(300)).is_ok());
    assert!(answer(&session, &unions(100_000)).is_err());
}

/// Nanoseconds end in 2262; columns of microseconds hold 9999-12-31, and are compared with it.
#[test]
fn times_beyond_nanoseconds_are_compared() {
    let far = 253_402_300_799_000_000;
    let dataset = table(vec![
        ("id", Arc::new(Int32Array::from(vec![1, 2, 3])) as ArrayRef),
        ("us", Arc::new(TimestampMicrosecondArray::from(vec![0, 1, far]))),
        ("ns", Arc::new(TimestampNanosecondArray::from(vec![0, 1, 1_700_000_000_000_000_000]))),
        ("d", Arc::new(Date32Array::from(vec![0, 1, 2_932_896]))),
    ]);
    let session = session(vec![("t", Arc::clone(&dataset))]);
    for (condition, expected) in [
        ("us < '9999-12-31 23:59:59'", "1, 2"),
        ("us >= '9999-12-31 23:59:59'", "3"),
        ("us = TIMESTAMP '9999-12-31 23:59:59'", "3"),
        ("us IN ('9999-12-31 23:59:59', '1970-01-01')", "1, 3"),
        ("us BETWEEN '1970-01-01 00:00:00.000001' AND '9999-12-31 23:59:59'", "2, 3"),
        ("us > '1970-01-01 00:00:00.0000005'", "2, 3"),
        ("us < DATE '9999-12-31'", "1, 2"),
        ("us > d", "3"),
        ("ns < '9999-12-31 23:59:59'", "1, 2, 3"),
        ("ns > '0001-01-01'", "1, 2, 3"),
        ("ns = '9999-12-31 23:59:59'", ""),
        ("ns IN ('9999-12-31', '1970-01-01')", "1"),
        ("ns NOT IN ('9999-12-31', '1970-01-01')", "2, 3"),
        ("ns BETWEEN '0001-01-01' AND '1970-01-01'", "1"),
        ("ns NOT BETWEEN '0001-01-01' AND '1970-01-01'", "2, 3"),
        ("ns BETWEEN '1970-01-02' AND '9999-12-31'", "3"),
        ("d < '9999-12-31'", "1, 2"),
        ("d <= TIMESTAMP '9999-12-31 00:00:00'", "1, 2, 3"),
        ("d < TIMESTAMP '1970-01-02 12:00:00'", "1, 2"),
    ] {
        let sql = format!("SELECT id FROM t WHERE {condition} ORDER BY id");
        assert_eq!(answer(&session, &sql).unwrap_or_else(|error| error.to_string()), expected, "{condition}");
        let filtered = RowFilter::parse(condition, &dataset.schema()).unwrap().apply(Arc::clone(&dataset));
        let found: usize = filtered.scan().read().unwrap().map(|batch| batch.unwrap().num_rows()).sum();
        assert_eq!(found, expected.split(", ").filter(|id| !id.is_empty()).count(), "-w {condition}");
    }
}

/// DataFusion pushes conditions down by the names of columns, takes members of lists away from each other, and digits from times.
#[test]
fn conditions_mean_what_they_say() {
    let days = |values: Vec<Option<i64>>| Arc::new(TimestampMillisecondArray::from(values)) as ArrayRef;
    let dataset = table(vec![
        ("id", Arc::new(Int64Array::from(vec![1, 2, 3, 4])) as ArrayRef),
        ("x", Arc::new(Int32Array::from(vec![Some(1), Some(2), None, Some(1)]))),
        ("y", Arc::new(Int32Array::from(vec![1, 1, 1, 2]))),
        ("z", Arc::new(Int32Array::from(vec![Some(1), Some(2), Some(1), None]))),
        ("ms", days(vec![Some(0), Some(1), None, Some(253_402_300_799_999)])),
        ("d", Arc::new(Date32Array::from(vec![0, 1, 2, 3]))),
        ("long", decimals(&[-9_999_999_999_999_999_999, 5, 9_999_999_999_999_999_999, 0], 19, 0)),
        ("small", decimals(&[1, -1, 0, 10_i128.pow(38) - 1], 38, 38)),
    ]);
    let session = session(vec![("t", Arc::clone(&dataset))]);
    for (condition, expected) in [
        // Nulls and columns in lists.
        ("x NOT IN (2, NULL) AND x IN (1, 3)", ""),
        ("NOT (x NOT IN (1) OR x IN (2, 3, 4, 5, NULL))", ""),
        ("x IN (1, NULL)", "1, 4"),
        ("(x IN (7, NULL)) IS NULL", "1, 2, 3, 4"),
        ("x IN (7, y) AND x IN (8, z)", "1"),
        ("x IN (1, 2) AND x NOT IN (y, 77)", "2, 4"),
        ("x IN (1, 2, 3, 4) AND x IN (2, 3, 4, 5)", "2"),
        ("NOT (x IN (1, 5, 6, 7) AND x IN (2, 8, 9, 10))", "1, 2, 4"),
        ("x NOT IN (1, 5, 6, 7) OR x NOT IN (2, 8, 9, 10)", "1, 2, 4"),
        ("(x IN (1, 5, 6, 7) AND x NOT IN (1, 5, 6, 7)) IS NULL", "3"),
        // Digits below the unit of a column.
        ("ms >= '1970-01-01 00:00:00.000001'", "2, 4"),
        ("ms > '1970-01-01 00:00:00.000001'", "2, 4"),
        ("ms < '1970-01-01 00:00:00.000001'", "1"),
        ("ms = '1970-01-01 00:00:00.000001'", ""),
        ("ms <> '9999-12-31 23:59:59.999999'", "1, 2, 4"),
        ("ms IN ('1970-01-01 00:00:00.000001', '1970-01-01 00:00:00.001')", "2"),
        ("ms BETWEEN '1970-01-01 00:00:00.000001' AND '1970-01-01 00:00:00.001999'", "2"),
        ("ms = TIMESTAMP '1970-01-01 00:00:00.001'", "2"),
        ("ms >= TIMESTAMP '1970-01-01 00:00:00.000000001'", "2, 4"),
        ("d >= TIMESTAMP '1970-01-02 12:00:00'", "3, 4"),
        // Integers and decimals at the ends of their digits.
        ("long = -9999999999999999999", "1"),
        ("long IN (-9999999999999999999, 5)", "1, 2"),
        ("long > -9999999999999999999", "2, 3, 4"),
        ("long = 9999999999999999999", "3"),
        ("small < 12345", "1, 2, 3, 4"),
        ("small > -1", "1, 2, 3, 4"),
        ("small IN (12345, 0)", "3"),
        ("small BETWEEN 0 AND 12345", "1, 3, 4"),
        ("coalesce(small, 12345) > 0.5", "4"),
    ] {
        let sql = format!("SELECT id FROM t WHERE {condition} ORDER BY id");
        assert_eq!(answer(&session, &sql).unwrap_or_else(|error| error.to_string()), expected, "{condition}");
        let filtered = RowFilter::parse(condition, &dataset.schema()).unwrap().apply(Arc::clone(&dataset));
        let found: usize = filtered.scan().read().unwrap().map(|batch| batch.unwrap().num_rows()).sum();
        assert_eq!(found, expected.split(", ").filter(|id| !id.is_empty()).count(), "-w {condition}");
    }
}

/// A join gives columns of one name; what is asked of one of them is not asked of the other.
#[test]
fn columns_of_one_name_are_not_mistaken_for_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let session = session(Vec::new());
    let (t, u) = (path("t.parquet"), path("u.parquet"));
    for (target, values) in [(&t, "(1, 10), (2, NULL), (3, 30), (4, 40)"), (&u, "(3, NULL), (4, 1), (7, 2)")]
    {
        answer(&session, &format!("COPY (SELECT * FROM (VALUES {values}) v(id, v)) TO '{target}'")).unwrap();
    }
    let join = |kind: &str| format!("FROM '{t}' t {kind} JOIN '{u}' u ON t.id = u.id");
    for (sql, expected) in [
        (format!("SELECT u.id {} WHERE t.id = t.id ORDER BY 1", join("RIGHT")), "3, 4"),
        (format!("SELECT u.id {} WHERE t.id IS NULL", join("RIGHT")), "7"),
        (format!("SELECT u.id, t.id {} WHERE t.v IS NULL ORDER BY 1", join("RIGHT")), "7 NULL"),
        (format!("SELECT t.id, u.v {} WHERE u.v IS NULL ORDER BY 1", join("LEFT")), "1 NULL, 2 NULL, 3 NULL"),
        (
            format!("SELECT u.v, t.v {} WHERE coalesce(t.v, 0) = 0 ORDER BY 1", join("FULL")),
            "2 NULL, NULL NULL",
        ),
        (format!("SELECT u.id, t.v {} ORDER BY t.v NULLS FIRST LIMIT 1", join("RIGHT")), "7 NULL"),
        (format!("SELECT u.id, t.v {} ORDER BY u.v DESC NULLS LAST LIMIT 1", join("RIGHT")), "7 NULL"),
    ] {
        assert_eq!(answer(&session, &sql).unwrap_or_else(|error| error.to_string()), expected, "{sql}");
    }
}

#[test]
fn aggregates_of_one_filter_are_computed_together() {
    let session = session(vec![("t", prices())]);
    let sql = "SELECT count(DISTINCT p > 1) FILTER (WHERE (p > 1) IS TRUE), bool_or(p > 1) FILTER (WHERE (p > 1) IS TRUE) FROM t";
    assert_eq!(answer(&session, sql).unwrap(), "1 true");
}

/// The strictest of several comparisons is kept, whatever side of them a column is on.
#[test]
fn comparisons_of_one_column_are_not_taken_for_others() {
    let dataset = prices();
    let session = session(vec![("t", Arc::clone(&dataset))]);
    for (condition, expected) in [
        ("99999.99 = p AND p = 99999.99", "1"),
        ("p = 99999.99 AND 99999.990 = p", "1"),
        ("p >= 99999.99 AND 99999.99 < p", "4"),
        ("99999.99 <= p AND p > 99999.99", "4"),
        ("p <= 99999.99 AND 99999.99 > p", "2, 3"),
        ("CAST('5' AS BIGINT) = n AND n = 5", "2"),
        ("n >= CAST('5' AS BIGINT) AND CAST('5' AS BIGINT) < n", "1, 3, 4"),
        ("0.1 = p AND p = 0.2", ""),
        ("(0.1 IS DISTINCT FROM p) AND p <> 99999.99", "2, 4"),
    ] {
        let rows = answer(&session, &format!("SELECT id FROM t WHERE {condition} ORDER BY id"));
        assert_eq!(rows.unwrap_or_else(|error| error.to_string()), expected, "{condition}");
        let filtered = RowFilter::parse(condition, &dataset.schema()).unwrap().apply(Arc::clone(&dataset));
        let found: usize = filtered.scan().read().unwrap().map(|batch| batch.unwrap().num_rows()).sum();
        let count = expected.split(", ").filter(|id| !id.is_empty()).count();
        assert_eq!(found, count, "-w {condition}");
    }
}

/// The sums of groups of equal values may not fit where the sum of all does.
#[test]
fn a_sum_beside_a_distinct_one_may_be_large_on_the_way() {
    let numbers = vec![i64::MAX, i64::MAX, -i64::MAX, -i64::MAX, 3];
    let groups = vec![0, 0, 0, 0, 1];
    let dataset = table(vec![
        ("n", Arc::new(Int64Array::from(numbers)) as ArrayRef),
        ("g", Arc::new(Int32Array::from(groups)) as ArrayRef),
    ]);
    let session = session(vec![("t", dataset)]);
    for (sql, expected) in [
        ("SELECT sum(n), sum(DISTINCT n) FROM t", "3 3"),
        ("SELECT sum(n), count(DISTINCT n), min(n) FROM t", "3 3 -9223372036854775807"),
        ("SELECT g, sum(n), sum(DISTINCT n) FROM t GROUP BY g ORDER BY g", "0 0 0, 1 3 3"),
    ] {
        assert_eq!(answer(&session, sql).unwrap_or_else(|error| error.to_string()), expected, "{sql}");
    }
}

/// Nanoseconds hold the years 1678 to 2261 as a whole, and conditions ask for any.
#[test]
fn years_of_nanoseconds_are_compared_with_any_year() {
    let micros = [-9_000_000_000_000_000, 0, 1_600_000_000_000_000, 9_000_000_000_000_000];
    let nanos = micros.map(|micros| micros * 1000);
    let dataset = table(vec![
        ("id", Arc::new(Int32Array::from(vec![1, 2, 3, 4])) as ArrayRef),
        ("n", Arc::new(TimestampNanosecondArray::from(nanos.to_vec())) as ArrayRef),
        ("u", Arc::new(TimestampMicrosecondArray::from(micros.to_vec())) as ArrayRef),
    ]);
    let session = session(vec![("t", Arc::clone(&dataset))]);
    for column in ["n", "u"] {
        for (condition, expected) in [
            ("extract(YEAR FROM %) >= 1", "1, 2, 3, 4"),
            ("1 <= extract(YEAR FROM %)", "1, 2, 3, 4"),
            ("extract(YEAR FROM %) <> 9999", "1, 2, 3, 4"),
            ("extract(YEAR FROM %) NOT IN (1, 1970)", "1, 3, 4"),
            ("extract(YEAR FROM %) BETWEEN 1 AND 1970", "1, 2"),
            ("extract(YEAR FROM %) <= 2262", "1, 2, 3, 4"),
            ("extract(YEAR FROM %) = 2255", "4"),
            ("extract(YEAR FROM %) > 1677", "1, 2, 3, 4"),
            ("extract(YEAR FROM %) IS DISTINCT FROM 1", "1, 2, 3, 4"),
        ] {
            let condition = condition.replace('%', column);
            let rows = answer(&session, &format!("SELECT id FROM t WHERE {condition} ORDER BY id"));
            assert_eq!(rows.unwrap_or_else(|error| error.to_string()), expected, "{condition}");
            let filtered =
                RowFilter::parse(&condition, &dataset.schema()).unwrap().apply(Arc::clone(&dataset));
            let found: usize = filtered.scan().read().unwrap().map(|batch| batch.unwrap().num_rows()).sum();
            assert_eq!(found, expected.split(", ").count(), "-w {condition}");
        }
    }
}

/// They have one zero and one NaN, as plain floats have.
#[test]
fn dictionaries_and_runs_of_floats_are_compared_as_what_they_leave_as() {
    let floats: ArrayRef = Arc::new(Float64Array::from(vec![-f64::NAN, f64::NAN, -0.0, 0.0, 7.0]));
    let keys = Int32Array::from(vec![0, 1, 2, 3, 4]);
    let ends = Int32Array::from(vec![1, 2, 3, 4, 5]);
    let columns: [(&str, ArrayRef); 4] = [
        ("id", Arc::new(Int32Array::from(vec![1, 2, 3, 4, 5]))),
        ("d", Arc::new(DictionaryArray::new(keys, Arc::clone(&floats)))),
        ("r", Arc::new(RunArray::try_new(&ends, floats.as_ref()).unwrap())),
        ("x", floats),
    ];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("d.arrow").display().to_string();
    let mut writer = FileWriter::try_new(std::fs::File::create(&path).unwrap(), &batch.schema()).unwrap();
    writer.write(&batch).unwrap();
    writer.finish().unwrap();
    let dataset = pilaster::open(&path).unwrap();
    let session = session(Vec::new());
    for column in ["d", "r", "x"] {
        for (condition, expected) in [
            ("% > 5", "1, 2, 5"),
            ("% = 0", "3, 4"),
            ("% < 0", ""),
            ("% = 'NaN'", "1, 2"),
            ("% <> 'NaN'", "3, 4, 5"),
            ("% IN (0.0, 1, 2, 3, 4)", "3, 4"),
            ("% NOT IN (7, 'NaN')", "3, 4"),
        ] {
            let condition = condition.replace('%', column);
            let rows = answer(&session, &format!("SELECT id FROM '{path}' WHERE {condition} ORDER BY id"));
            assert_eq!(rows.unwrap_or_else(|error| error.to_string()), expected, "{condition}");
            let filtered =
                RowFilter::parse(&condition, &dataset.schema()).unwrap().apply(Arc::clone(&dataset));
            let found: usize = filtered.scan().read().unwrap().map(|batch| batch.unwrap().num_rows()).sum();
            let count = expected.split(", ").filter(|id| !id.is_empty()).count();
            assert_eq!(found, count, "-w {condition}");
        }
    }
}

/// They leave as Float32, and what is written beside them is not rounded to a half.
#[test]
fn halves_are_compared_as_what_they_leave_as() {
    type Half = <Float16Type as ArrowPrimitiveType>::Native;
    let halves = [0.0, -0.0, f32::NAN, -f32::NAN, 0.1, 65504.0].map(Half::from_f32);
    let columns: [(&str, ArrayRef); 2] = [
        ("id", Arc::new(Int32Array::from(vec![1, 2, 3, 4, 5, 6]))),
        ("h", Arc::new(Float16Array::from(halves.to_vec()))),
    ];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let parquet = folder.path().join("h.parquet");
    let file = std::fs::File::create(&parquet).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    let arrow = folder.path().join("h.arrow");
    let file = std::fs::File::create(&arrow).unwrap();
    let mut writer = FileWriter::try_new(file, &batch.schema()).unwrap();
    writer.write(&batch).unwrap();
    writer.finish().unwrap();
    let session = session(Vec::new());
    for path in [parquet, arrow] {
        let dataset = pilaster::open(path.to_str().unwrap()).unwrap();
        for (condition, expected) in [
            ("h = 0", "1, 2"),
            ("h >= 0", "1, 2, 3, 4, 5, 6"),
            ("h < 0", ""),
            ("h IN (0.0, 7, 8, 9, 10)", "1, 2"),
            ("h = CAST('-0.0' AS REAL)", "1, 2"),
            ("h = CAST('NaN' AS REAL)", "3, 4"),
            ("h > 65504", "3, 4"),
            ("h = CAST('0.1' AS REAL)", ""),
            ("h < CAST('0.1' AS REAL)", "1, 2, 5"),
            ("h < 100000", "1, 2, 5, 6"),
        ] {
            let sql = format!("SELECT id FROM '{}' WHERE {condition} ORDER BY id", path.display());
            let rows = answer(&session, &sql).unwrap_or_else(|error| error.to_string());
            assert_eq!(rows, expected, "{condition} {}", path.display());
            let filtered =
                RowFilter::parse(condition, &dataset.schema()).unwrap().apply(Arc::clone(&dataset));
            let found: usize = filtered.scan().read().unwrap().map(|batch| batch.unwrap().num_rows()).sum();
            let count = expected.split(", ").filter(|id| !id.is_empty()).count();
            assert_eq!(found, count, "-w {condition} {}", path.display());
        }
    }
}
