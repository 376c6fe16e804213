//! Damaged server folders: everything that can be given back is, and nothing wrong is given silently.
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

use std::sync::Arc;

use pilaster_core::{Dataset, LossLog, Severity};
use support::tables::{compare, expectations, expected_rows, open, scan};

/// Each folder of `damaged/`, whether a plain scan gives everything or stops, and what its error names.
const DAMAGED: &[(&str, Option<&str>)] = &[
    ("clean", None),
    ("cfile-flip", Some("checksum")),
    ("data-missing", None),
    ("data-short", None),
    ("instance-missing", None),
    ("meta-body-flip", None),
    ("meta-length-flip", None),
    ("meta-missing", None),
    ("meta-torn", None),
    ("meta-zero-tail", None),
    ("recovery-dir", None),
    ("superblock-flip", None),
    ("superblock-missing", None),
    ("wal-flip", None),
    ("wal-missing", Some("expected a log, found none")),
    ("wal-torn", None),
];

#[test]
fn every_damaged_folder_gives_back_all_that_the_rules_promise() {
    let Some(goldens) = support::goldens() else { return };
    let root = goldens.join("../kudu-extra/damaged");
    let mut failures = Vec::new();
    for (kind, refusal) in DAMAGED {
        for expected in expectations(&root) {
            let at = format!("{kind} @{:?}", expected.as_of);
            let folder = root.join(kind).join("fs");
            let table = open(&folder, None, expected.as_of).unwrap();
            let wanted = expected_rows(&expected, &table.schema());
            match (scan(&table, None), refusal) {
                (Ok(found), None) => {
                    if let Err(error) = compare(&found, &wanted) {
                        failures.push(format!("{at}: {error}"));
                    }
                    let errors = table.findings().into_iter().filter(|f| f.severity == Severity::Error);
                    failures.extend(errors.map(|finding| format!("{at}: {finding}")));
                }
                (Err(error), Some(text)) => {
                    assert!(error.contains(text) && error.contains("`salvage`"), "{at}: {error}");
                }
                (Ok(_), Some(_)) => failures.push(format!("{at}: rows instead of an error")),
                (Err(error), None) => failures.push(format!("{at}: {error}")),
            }
            let losses = Arc::new(LossLog::new());
            let found = scan(&table, Some(&losses)).unwrap();
            // What was only in the lost log is lost.
            let is_lost = *kind == "wal-missing";
            match compare(&found, &wanted) {
                Ok(_) if is_lost == (losses.is_empty()) => failures.push(format!("{at}: {:?}", losses.losses())),
                Err(error) if !is_lost || expected.as_of.is_some() => {
                    failures.push(format!("{at}, tolerant: {error} {:?}", losses.losses()));
                }
                _ => {}
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
