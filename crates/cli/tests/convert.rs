//! `convert` and `salvage`.
#![allow(
    dead_code,
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests compute with known values, and share helpers that not all of them use"
)]

#[macro_use]
mod common;

use common::{Folder, settings};

#[test]
fn every_format_comes_back_as_it_went() {
    let folder = Folder::new();
    let rows = |name: &str| {
        let output = folder.run(&["cat", name]).output().unwrap();
        assert!(output.status.success(), "{name}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let expected = rows("people.parquet");
    for name in ["a.parquet", "a.arrow", "a.csv", "a.tsv", "a.jsonl"] {
        folder.convert("people.parquet", name);
        assert_eq!(rows(name), expected, "{name}");
    }
}

snapshots! {
    convert_says_what_it_wrote: ["convert", "-c", "id", "-w", "id > 2", "people.parquet", "some.csv"];
    convert_by_position: ["convert", "--rows", "..2", "people.parquet", "some.jsonl"];
    convert_keeps_what_is_there: ["convert", "people.parquet", "people.csv"];
    convert_replaces_when_told: ["convert", "--overwrite", "people.parquet", "people.csv"];
    convert_to_a_name_that_says_no_format: ["convert", "people.parquet", "rows"];
    convert_to_a_named_format: ["convert", "-f", "tsv", "people.parquet", "rows"];
    convert_of_a_damaged_file: ["convert", "broken/cut.parquet", "rows.csv"];
    convert_into_a_missing_folder: ["convert", "people.csv", "no/such/rows.csv"];
    salvage_of_a_sound_file: ["salvage", "people.parquet", "saved.csv"];
    salvage_of_a_lost_footer: ["salvage", "broken/cut.parquet", "saved.csv"];
}

#[test]
fn salvage_writes_a_report() {
    let folder = Folder::new();
    let args =
        ["-q", "salvage", "--report", "report.json", "--row-number", "row", "people.parquet", "saved.csv"];
    let output = folder.run(&args).output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    assert!(folder.read("saved.csv").starts_with("id,name,score,row\n"));
    settings().bind(|| insta::assert_snapshot!("salvage_report", folder.read("report.json")));
}
