//! Every table of every golden server folder, at the latest state and at every recorded snapshot.
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

use arrow_array::RecordBatch;
use arrow_schema::DataType;
use pilaster_core::Dataset;
use pilaster_kudu::store::{KuduStore, KuduStoreOptions};
use serde_json::Value;
use support::cells;
use support::golden::json_lines;

/// A scan that a real client made: table, timestamp, file of rows.
struct Expected {
    table: String,
    as_of: Option<u64>,
    rows: PathBuf,
}

fn expectations(case: &Path) -> Vec<Expected> {
    let description: Value = serde_json::from_slice(&std::fs::read(case.join("case.json")).unwrap()).unwrap();
    let folder = case.join("expected");
    let text = |value: &Value| value.as_str().unwrap().to_string();
    let tables = description["tables"].as_array().unwrap().iter().map(|table| Expected {
        table: text(&table["name"]),
        as_of: None,
        rows: folder.join(text(&table["expected"])),
    });
    let snapshots = description["snapshots"].as_array().into_iter().flatten().map(|snapshot| Expected {
        table: text(&snapshot["table"]),
        as_of: Some(snapshot["timestamp"].as_u64().unwrap()),
        rows: folder.join(text(&snapshot["expected"])),
    });
    tables.chain(snapshots).collect()
}

/// Rows as texts, columns by name.
fn rows_of(batches: &[RecordBatch]) -> Vec<Vec<Option<String>>> {
    let mut rows = Vec::new();
    for batch in batches {
        let schema = batch.schema();
        let columns: Vec<_> = batch
            .columns()
            .iter()
            .zip(schema.fields())
            .map(|(array, field)| {
                let scale = match field.data_type() {
                    DataType::Decimal32(_, s) | DataType::Decimal64(_, s) | DataType::Decimal128(_, s) => {
                        *s as usize
                    }
                    _ => 0,
                };
                cells::texts(array, scale)
            })
            .collect();
        rows.extend(
            (0..batch.num_rows()).map(|row| columns.iter().map(|column| column[row].clone()).collect()),
        );
    }
    rows
}

fn check(folder: &Path, expected: &Expected, is_ordered: bool) -> Result<usize, String> {
    let options = KuduStoreOptions::default().with_as_of(expected.as_of);
    let store = KuduStore::open(&[folder.to_path_buf()], options).map_err(|error| error.to_string())?;
    let table = store.table(Some(&expected.table)).map_err(|error| error.to_string())?;
    let schema = table.schema();
    let batches: Vec<_> = table
        .scan()
        .read()
        .map_err(|error| error.to_string())?
        .collect::<Result<_, _>>()
        .map_err(|error| pilaster_core::Error::from(error).to_string())?;
    let mut found = rows_of(&batches);
    let mut wanted: Vec<Vec<Option<String>>> = json_lines(&expected.rows)
        .iter()
        .map(|row| {
            let fields = schema.fields().iter();
            fields.map(|field| cells::expected(row, field.name(), field.data_type().is_floating())).collect()
        })
        .collect();
    if !is_ordered {
        found.sort();
        wanted.sort();
    }
    if found.len() != wanted.len() {
        return Err(format!("{} rows instead of {}", found.len(), wanted.len()));
    }
    match found.iter().zip(&wanted).position(|(found, wanted)| found != wanted) {
        Some(row) => Err(format!("row {row}: {:?} instead of {:?}", found[row], wanted[row])),
        None => Ok(found.len()),
    }
}

fn check_all(root: &Path, folder_of: impl Fn(&Path) -> PathBuf) -> (usize, Vec<String>) {
    let mut cases: Vec<_> = std::fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path()).collect();
    cases.retain(|case| case.join("case.json").is_file() && case.join("fs").is_dir());
    cases.sort();
    let (mut scans, mut failures) = (0, Vec::new());
    for case in cases {
        for expected in expectations(&case) {
            let is_ordered = !case.ends_with("txn-wal");
            scans += 1;
            if let Err(error) = check(&folder_of(&case), &expected, is_ordered) {
                failures.push(format!(
                    "{} {} @{:?}: {error}",
                    case.display(),
                    expected.table,
                    expected.as_of
                ));
            }
        }
    }
    (scans, failures)
}

#[test]
fn the_sample_servers_give_the_rows_their_clients_saw() {
    let (scans, failures) = check_all(&support::testdata(), |case| case.join("fs"));
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(scans >= 5, "{scans} scans");
}

#[test]
fn every_golden_table_gives_the_rows_its_client_saw() {
    let Some(goldens) = support::goldens() else { return };
    for (folder, expected_scans) in [("", 214), ("../kudu-extra", 66)] {
        let (scans, failures) = check_all(&goldens.join(folder), |case| case.join("fs"));
        assert!(failures.is_empty(), "{}", failures.join("\n"));
        assert!(scans >= expected_scans);
    }
}
