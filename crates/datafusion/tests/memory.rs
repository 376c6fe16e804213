//! Queries within a bound of memory.
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
use datafusion::arrow::array::{AsArray, Int64Array, RecordBatch, StringArray};
use datafusion::arrow::datatypes::Int64Type;
use pilaster_core::Result;
use pilaster_datafusion::{SqlOptions, SqlSession};

const ROWS: i64 = 60_000;

/// 60,000 rows of about 4 MiB, in no order.
fn session(memory: Option<(usize, &std::path::Path)>) -> SqlSession {
    let ids: Vec<_> = (0..ROWS).map(|row| row * 7919 % ROWS).collect();
    let texts: Vec<_> = ids.iter().map(|id| format!("{:060}", id * 31 % ROWS)).collect();
    let batch = RecordBatch::try_from_iter([
        ("id", Arc::new(Int64Array::from(ids)) as _),
        ("s", Arc::new(StringArray::from(texts)) as _),
    ]);
    let mut options = SqlOptions::default().with_threads(2);
    if let Some((bytes, folder)) = memory {
        options = options.with_memory(bytes, folder).unwrap();
    }
    let session = SqlSession::new(options).unwrap();
    session.register("t", Arc::new(Table::new("t", batch.unwrap(), 5_000))).unwrap();
    session
}

/// The first column of an answer.
fn numbers(session: &SqlSession, sql: &str) -> Result<Vec<i64>> {
    let mut found = Vec::new();
    for batch in session.sql(sql)? {
        let batch = batch.map_err(pilaster_core::Error::from)?;
        found.extend(batch.column(0).as_primitive::<Int64Type>().values().iter().copied());
    }
    Ok(found)
}

#[test]
fn what_does_not_fit_goes_through_files_or_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let free = session(None);
    let bound = session(Some((2 << 20, folder.path())));
    for sql in [
        "SELECT id FROM t ORDER BY s, id",
        "SELECT id FROM t ORDER BY s DESC, id LIMIT 10",
        "SELECT count(*) FROM (SELECT s, count(*) FROM t GROUP BY s)",
        "SELECT count(DISTINCT s) FROM t WHERE id < 100",
        "SELECT CAST(row_number() OVER (ORDER BY s) AS BIGINT) FROM t",
    ] {
        let found = numbers(&bound, sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
        assert!(found == numbers(&free, sql).unwrap(), "{sql}");
    }
    let explained = bound.sql("EXPLAIN ANALYZE SELECT id FROM t ORDER BY s, id").unwrap();
    let plan = explained.map(|batch| batch.unwrap().column(1).as_string::<i32>().value(0).to_string());
    let plan: String = plan.collect();
    assert!(plan.contains("spill_count=") && !plan.contains("spill_count=0,"), "{plan}");
    let join = "SELECT count(*) FROM t a JOIN t b ON a.s = b.s";
    let refused = numbers(&bound, join).unwrap_err().to_string();
    assert!(refused.starts_with("the query needs more memory than it was given: "), "{refused}");
    assert!(refused.contains("2.0 MB"), "{refused}");
    drop((free, bound));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "files stay behind");
}
