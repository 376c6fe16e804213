//! What goes down into a scan changes what is read, never what is answered.
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

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use common::{Table, people};
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::util::pretty::pretty_format_batches;
use datafusion::datasource::MemTable;
use datafusion::prelude::SessionContext;
use futures::TryStreamExt;
use pilaster_core::{DatasetRef, ScanRequest};
use pilaster_datafusion::{RowFilter, SqlContext, SqlOptions, from_datafusion};
use proptest::prelude::*;

async fn rows(context: &SqlContext, sql: &str) -> Vec<RecordBatch> {
    context.sql(sql).await.unwrap().try_collect().await.unwrap()
}

fn shown(batches: &[RecordBatch]) -> String {
    pretty_format_batches(batches).unwrap().to_string()
}

fn context(threads: usize, row_count: usize, split_rows: u64) -> SqlContext {
    let context = SqlContext::new(SqlOptions::default().with_threads(threads).with_batch_size(3));
    let table = Table::new("people", people(row_count), split_rows);
    context.register("people", Arc::new(table)).unwrap();
    context
}

#[tokio::test]
async fn explain_shows_what_was_pushed_down() {
    let context = context(4, 40, 5);
    let plan = shown(
        &rows(
            &context,
            "EXPLAIN SELECT name FROM people WHERE 10 < id AND name LIKE 'n%' AND name ILIKE 'N%' AND id IN (20, 30, 31, 32)",
        )
        .await,
    );
    assert!(plan.contains("predicate=(id IN (20, 30, 31, 32) AND id > 10 AND name LIKE n%)"), "{plan}");
    assert!(plan.contains("FilterExec: name"), "{plan}");
    assert!(plan.contains("projection=[name]"), "{plan}");
    let plan = shown(&rows(&context, "EXPLAIN SELECT id FROM people LIMIT 7").await);
    assert!(plan.contains("limit=7"), "{plan}");
}

/// Writes five people into each of two Parquet files.
fn two_files(folder: &Path) {
    for part in 0..2 {
        let batch = people(10).slice(part * 5, 5);
        let file = std::fs::File::create(folder.join(format!("{part}.parquet"))).unwrap();
        let mut writer =
            datafusion::parquet::arrow::ArrowWriter::try_new(file, batch.schema(), None).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
    }
}

/// The partitions of a join wait for each other: asking one after the other would never end.
#[tokio::test]
async fn joins_of_several_partitions_end() {
    let folder = tempfile::tempdir().unwrap();
    two_files(folder.path());
    let context = context(4, 40, 5);
    let parts = folder.path().join("*.parquet");
    for sql in [
        format!("SELECT p.id FROM (VALUES (2), (7)) AS v (id) JOIN '{}' p ON p.id = v.id", parts.display()),
        format!(
            "SELECT id FROM '{}' WHERE id IN (SELECT id FROM people WHERE id IN (2, 7))",
            parts.display()
        ),
    ] {
        let found = tokio::time::timeout(Duration::from_secs(60), rows(&context, &sql)).await.unwrap();
        let found: usize = found.iter().map(RecordBatch::num_rows).sum();
        assert_eq!(found, 2, "{sql}");
    }
}

/// DataFusion reads Parquet, but does not say where it is damaged.
#[tokio::test]
async fn damage_in_parquet_has_a_place() {
    let folder = tempfile::tempdir().unwrap();
    two_files(folder.path());
    let damaged = folder.path().join("1.parquet");
    let mut bytes = std::fs::read(&damaged).unwrap();
    bytes[4..12].fill(0xff);
    std::fs::write(&damaged, bytes).unwrap();
    let context = context(4, 40, 5);
    for query in ["SELECT * FROM", "SELECT id FROM", "SELECT sum(id) FROM"] {
        let sql = format!("{query} '{}'", folder.path().join("*.parquet").display());
        let found = context.sql(&sql).await.unwrap().try_collect::<Vec<_>>().await;
        let error = from_datafusion(found.unwrap_err());
        assert!(error.is_damage(), "{error}");
        let position = error.position().unwrap();
        assert_eq!((&*position.path, position.offset), (damaged.to_str().unwrap(), 4), "{error}");
    }
}

#[tokio::test]
async fn counts_and_bounds_come_from_statistics() {
    let context = context(4, 40, 5);
    for sql in ["SELECT count(*) FROM people", "SELECT min(id), max(id), count(big) FROM people"] {
        let plan = shown(&rows(&context, &format!("EXPLAIN {sql}")).await);
        assert!(!plan.contains("PilasterExec"), "{plan}");
    }
    // Statistics of all rows say nothing about some rows, and bounds of floats leave NaN out.
    for sql in [
        "SELECT count(*) FROM people WHERE id > 3",
        "SELECT max(score) FROM people",
        "SELECT max(name) FROM people",
    ] {
        let plan = shown(&rows(&context, &format!("EXPLAIN {sql}")).await);
        assert!(plan.contains("PilasterExec"), "{plan}");
    }
}

#[tokio::test]
async fn partitions_together_give_all_rows_in_order() {
    for threads in [1, 2, 5, 64] {
        let context = context(threads, 101, 4);
        let batches = rows(&context, "SELECT id FROM people WHERE name LIKE 'n%' OR name IS NULL").await;
        let ids: Vec<_> = batches
            .iter()
            .flat_map(|batch| {
                let ids = batch.column(0).as_any().downcast_ref::<datafusion::arrow::array::Int32Array>();
                ids.unwrap().values().to_vec()
            })
            .collect();
        assert_eq!(ids, (0..101).collect::<Vec<_>>());
    }
}

#[tokio::test]
async fn a_limit_gives_the_first_rows() {
    let context = context(4, 101, 4);
    let expected = shown(&rows(&context, "SELECT id FROM people WHERE id < 9").await);
    assert_eq!(shown(&rows(&context, "SELECT id FROM people LIMIT 9").await), expected);
}

#[tokio::test]
async fn an_abandoned_query_ends() {
    let context = context(2, 5000, 10);
    let mut stream = context.sql("SELECT * FROM people").await.unwrap();
    assert!(stream.try_next().await.unwrap().is_some());
    drop(stream);
}

fn condition() -> impl Strategy<Value = String> {
    let op = || prop::sample::select(vec!["=", "<>", "<", "<=", ">", ">="]);
    let leaf = prop_oneof![
        (op(), -2i32..45).prop_map(|(op, value)| format!("id {op} {value}")),
        (op(), -2i32..45).prop_map(|(op, value)| format!("{value} {op} id")),
        (op(), -2i32..45).prop_map(|(op, value)| format!("id {op} {value}.5")),
        (op(), prop::sample::select(vec!["2.5", "0.0", "-0.0", "'NaN'::double", "7", "1e300"]))
            .prop_map(|(op, value)| format!("score {op} {value}")),
        (op(), 0i64..45).prop_map(|(op, value)| format!("big {op} {}", value * 1_000_000_007)),
        (op(), 0i64..45).prop_map(|(op, value)| format!("big {op} {}.0::double", value * 1_000_000_007)),
        (op(), "n[0-7]").prop_map(|(op, value)| format!("name {op} '{value}'")),
        (op(), 0i32..45).prop_map(|(op, value)| format!("id {op} '{value}'")),
        Just("score IN (1.75, 3, 5.25, 7.25)".to_string()),
        prop::collection::vec(0i32..45, 1..6).prop_map(|values| {
            let values: Vec<_> = values.iter().map(ToString::to_string).collect();
            format!("id IN ({})", values.join(", "))
        }),
        "n[0-7]".prop_map(|value| format!("name NOT IN ('{value}', NULL)")),
        (0i32..20, 0i32..20).prop_map(|(low, high)| format!("id BETWEEN {low} AND {high}")),
        (0i32..20, 0i32..20).prop_map(|(low, high)| format!("score NOT BETWEEN {low} AND {high}")),
        Just("name IS NULL".to_string()),
        Just("score IS NOT NULL".to_string()),
        "[n%_0-7]{0,3}".prop_map(|pattern| format!("name LIKE '{pattern}'")),
        "[n%_0-7]{0,3}".prop_map(|pattern| format!("name ILIKE '{pattern}'")),
        Just("big % 2 = 0".to_string()),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a} AND {b})")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a} OR {b})")),
            inner.prop_map(|a| format!("NOT ({a})")),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]
    #[test]
    fn pushed_down_is_the_same_as_not(text in condition(), limit in prop::option::of(0u64..20)) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let sql = format!("SELECT * FROM people WHERE {text}");
            let found = rows(&context(3, 43, 5), &sql).await;
            let plain = SessionContext::new();
            let table = MemTable::try_new(people(1).schema(), vec![vec![people(43)]]).unwrap();
            plain.register_table("people", Arc::new(table)).unwrap();
            let expected = plain.sql(&sql).await.unwrap().collect().await.unwrap();
            let expected = if expected.is_empty() { vec![people(0)] } else { expected };
            let found = if found.is_empty() { vec![people(0)] } else { found };
            assert_eq!(shown(&found), shown(&expected), "{text}");

            let dataset: DatasetRef = Arc::new(Table::new("people", people(43), 5));
            let filter = RowFilter::parse(&text, &dataset.schema()).unwrap();
            let request = ScanRequest { limit, ..ScanRequest::default() };
            let filtered: Vec<_> = filter.apply(dataset).read(&request).unwrap().map(|b| b.unwrap()).collect();
            let all = datafusion::arrow::compute::concat_batches(&people(0).schema(), &expected).unwrap();
            let kept = all.num_rows().min(limit.map_or(usize::MAX, |limit| limit as usize));
            let filtered = datafusion::arrow::compute::concat_batches(&people(0).schema(), &filtered).unwrap();
            assert_eq!(shown(&[filtered]), shown(&[all.slice(0, kept)]), "{text}");
        });
    }
}

#[test]
fn a_filter_reads_the_columns_it_needs_and_gives_those_asked_for() {
    let dataset: DatasetRef = Arc::new(Table::new("people", people(20), 5));
    let filter = RowFilter::parse("name ILIKE '%2' AND id > 2", &dataset.schema()).unwrap();
    assert_eq!(filter.predicate().map(ToString::to_string), Some("id > 2".to_string()));
    assert!(!filter.is_exact());
    let filtered = filter.apply(dataset);
    let batches: Vec<_> = filtered.scan().project(["big"]).read().unwrap().map(|b| b.unwrap()).collect();
    assert_eq!(batches.iter().map(RecordBatch::num_rows).sum::<usize>(), 2);
    assert_eq!(batches[0].schema().fields().len(), 1);
}

#[test]
fn a_condition_that_is_none_is_refused_in_one_line() {
    let schema = people(1).schema();
    let text = |condition: &str| RowFilter::parse(condition, &schema).unwrap_err().to_string();
    assert_eq!(text("id > 10 AS name"), "sql: unexpected \"name\" after a condition");
    assert_eq!(text("id + 1"), "a condition is true or false, this is Int64: id + 1");
    assert!(text("nope = 1").contains("nope"), "{}", text("nope = 1"));
    assert!(text("id >").starts_with("sql: "), "{}", text("id >"));
    assert!(!text("id > > 1").contains('\n'));
}
