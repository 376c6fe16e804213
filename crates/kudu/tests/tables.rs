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

use pilaster_core::Dataset;
use pilaster_testing::needs;
use support::tables::{Expected, compare, expectations, expected_rows, open, scan};

fn check(folder: &Path, expected: &Expected, is_ordered: bool) -> Result<usize, String> {
    let table = open(folder, Some(&expected.table), expected.as_of)?;
    let mut found = scan(&table, None)?;
    let mut wanted = expected_rows(expected, &table.schema());
    if !is_ordered {
        found.sort();
        wanted.sort();
    }
    compare(&found, &wanted)
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

#[needs(goldens = "kudu", goldens = "kudu-extra")]
#[test]
fn every_golden_table_gives_the_rows_its_client_saw() {
    let goldens = support::goldens();
    for (folder, expected_scans) in [("", 214), ("../kudu-extra", 66)] {
        let (scans, failures) = check_all(&goldens.join(folder), |case| case.join("fs"));
        assert!(failures.is_empty(), "{}", failures.join("\n"));
        assert!(scans >= expected_scans);
    }
}
