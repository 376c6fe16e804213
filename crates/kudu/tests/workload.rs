//! Copies of the folders of a real server, taken in the middle of random workloads by `.ci/kudu-workload`, against what
//! Kudu's own client saw.
#![allow(
    missing_docs,
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test"
)]

mod support;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::{Array, RecordBatch};
use arrow_select::filter::filter_record_batch;
use pilaster_core::{Dataset, Literal, LossLog, Scan, Severity, col};
use pilaster_kudu::store::{KuduStore, KuduStoreOptions};
use pilaster_kudu::tablet::KuduTable;
use support::golden::json_lines;
use support::tables::{Expected, compare, expectations, expected_rows, open, rows_of, scan};

/// The folders named by the environment, each with a `case.json`.
fn copies() -> Vec<PathBuf> {
    let root = std::env::var_os("PILASTER_KUDU_CASES").unwrap();
    let mut copies: Vec<_> = std::fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path()).collect();
    copies.retain(|path| path.join("case.json").is_file());
    copies.sort();
    copies
}

fn check(copy: &Path, expected: &Expected) -> Result<(), String> {
    let table = open(&copy.join("fs"), Some(&expected.table), expected.as_of)?;
    check_table(&table, expected).or_else(|error| {
        // What only a minority had written a cluster may drop when it starts again: then most of its servers agree without.
        let is_open = table.findings().iter().any(|finding| finding.message.contains("may drop them"));
        let without = |left_out: &str| {
            let others = ["ts0", "ts1", "ts2"].iter().filter(|name| **name != left_out);
            let folders: Vec<_> = others.map(|name| copy.join("fs").join(name)).collect();
            let store = KuduStore::open(&folders, KuduStoreOptions::default()).ok()?.at(expected.as_of);
            check_table(&store.table(Some(&expected.table)).ok()?, expected).ok()
        };
        match is_open && ["ts0", "ts1", "ts2"].into_iter().any(|left_out| without(left_out).is_some()) {
            true => Ok(()),
            false => Err(error),
        }
    })
}

fn check_table(table: &KuduTable, expected: &Expected) -> Result<(), String> {
    check_columns(expected, &table.schema())?;
    let wanted = expected_rows(expected, &table.schema());
    let findings = || {
        let all: Vec<_> = table.findings().iter().map(ToString::to_string).collect();
        all.join("; ")
    };
    let found = scan(table, None)?;
    compare(&found, &wanted).map_err(|error| format!("{error}; findings: {}", findings()))?;
    check_filters(table)?;
    // Nothing is damaged, so a tolerant scan gives the same and complains of nothing.
    let losses = Arc::new(LossLog::new());
    let found = scan(table, Some(&losses))?;
    compare(&found, &wanted).map_err(|error| format!("tolerant: {error}"))?;
    if !losses.is_empty() {
        return Err(format!("losses of a sound table: {:?}", losses.losses()));
    }
    match table.findings().iter().find(|finding| finding.severity == Severity::Error) {
        Some(finding) => Err(format!("an error in a sound table: {finding}")),
        None => Ok(()),
    }
}

/// What pruning by partitions, keys and blooms leaves is what the filter alone leaves, with all columns and with one.
fn check_filters(table: &KuduTable) -> Result<(), String> {
    let text = |error: pilaster_core::Error| error.to_string();
    let read = |scan: Scan<'_>| -> Result<Vec<RecordBatch>, String> {
        let batches = scan.read().map_err(text)?;
        batches.collect::<Result<_, _>>().map_err(|error| error.to_string())
    };
    let all = read(table.scan())?;
    let Some(some) = all.first() else { return Ok(()) };
    for (index, field) in table.schema().fields().iter().enumerate().take(4) {
        let column = some.column(index);
        if column.is_null(column.len() / 2) {
            continue;
        }
        let value = || Literal::from_array(column.as_ref(), column.len() / 2);
        let predicates =
            [col(field.name()).eq(value()), col(field.name()).gt(value()), col(field.name()).lt_eq(value())];
        for predicate in predicates {
            let bound = predicate.bind(&table.schema()).map_err(text)?;
            let wanted = all.iter().map(|batch| {
                let mask = bound.evaluate(batch).map_err(text)?;
                filter_record_batch(batch, &mask).map_err(|error| error.to_string())
            });
            let wanted = rows_of(&wanted.collect::<Result<Vec<_>, _>>()?);
            let found = rows_of(&read(table.scan().filter(predicate.clone()))?);
            compare(&found, &wanted).map_err(|error| format!("{predicate:?}: {error}"))?;
            let one = rows_of(&read(table.scan().filter(predicate.clone()).project([field.name().clone()]))?);
            let wanted = wanted.into_iter().map(|row| vec![row[index].clone()]).collect();
            compare(&one, &wanted).map_err(|error| format!("{predicate:?}, one column: {error}"))?;
        }
    }
    Ok(())
}

/// The client's columns are ours, in the same order.
fn check_columns(expected: &Expected, schema: &arrow_schema::SchemaRef) -> Result<(), String> {
    let Some(first) = json_lines(&expected.rows).into_iter().next() else { return Ok(()) };
    let mut theirs: Vec<_> =
        first.as_object().unwrap().keys().filter(|name| !name.ends_with("#bits")).collect();
    let mut ours: Vec<_> = schema.fields().iter().map(|field| field.name()).collect();
    theirs.sort();
    ours.sort();
    if theirs == ours { Ok(()) } else { Err(format!("columns {ours:?} instead of {theirs:?}")) }
}

#[test]
#[ignore = "needs folders that .ci/kudu-workload makes: run that"]
fn every_copy_reads_as_the_client_saw_it() {
    let (mut scans, mut failures) = (0, Vec::new());
    for copy in copies() {
        for expected in expectations(&copy) {
            scans += 1;
            if let Err(error) = check(&copy, &expected) {
                failures.push(format!(
                    "{} {} @{:?}: {error}",
                    copy.display(),
                    expected.table,
                    expected.as_of
                ));
            }
        }
    }
    println!("compared {scans} scans");
    assert!(failures.is_empty(), "{} of {scans} differ:\n{}", failures.len(), failures.join("\n"));
    assert!(scans > 0, "no folder to compare");
}
