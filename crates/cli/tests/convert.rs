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
fn one_column_becomes_a_cfile() {
    let folder = Folder::new();
    let convert = |arguments: &[&str]| {
        folder
            .run(&[&["convert", "--overwrite", "people.parquet", "id.cfile"], arguments].concat())
            .output()
            .unwrap()
    };
    let refused = convert(&[]);
    assert_eq!(refused.status.code(), Some(2));
    let said = String::from_utf8(refused.stderr).unwrap();
    assert!(said.contains("choose one of them") && said.trim_end().ends_with("(-c COLUMNS)"), "{said}");
    for options in
        [&["-c", "id"][..], &["-c", "id", "--cfile-version", "1", "--cfile-index-block-size", "64"]]
    {
        let output = convert(options);
        assert!(output.status.success(), "{output:?}");
        let rows = folder.run(&["cat", "-f", "csv", "id.cfile"]).output().unwrap().stdout;
        assert_eq!(String::from_utf8(rows).unwrap(), "value\n1\n2\n3\n4\n5\n", "{options:?}");
    }
}

#[test]
fn every_format_comes_back_as_it_went() {
    let folder = Folder::new();
    let rows = |name: &str| {
        let output = folder.run(&["cat", name]).output().unwrap();
        assert!(output.status.success(), "{name}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    // Columns in another order than that of the alphabet.
    said(&folder, &["convert", "-c", "score,id,name", "people.parquet", "start.parquet"]);
    let expected = rows("start.parquet");
    assert!(expected.starts_with("{\"score\":1.5,\"id\":1,"), "{expected}");
    for name in ["a.parquet", "a.arrow", "a.csv", "a.tsv", "a.jsonl", "a.json"] {
        folder.convert("start.parquet", name);
        assert_eq!(rows(name), expected, "{name}");
    }
}

#[test]
fn floats_that_json_has_no_number_for_come_back_as_floats() {
    let folder = Folder::new();
    let query =
        "SELECT * FROM (VALUES (1, 1.5), (2, CAST('NaN' AS DOUBLE)), (3, CAST('-inf' AS DOUBLE))) t(k, f)";
    said(&folder, &["sql", "-o", "a.jsonl", query]);
    assert!(folder.read("a.jsonl").contains("{\"k\":2,\"f\":\"NaN\"}"));
    folder.convert("a.jsonl", "b.parquet");
    assert_eq!(said(&folder, &["cat", "b.parquet"]), folder.read("a.jsonl"));
    let types = said(&folder, &["schema", "--json", "b.parquet"]);
    assert!(types.contains("double"), "{types}");
}

/// What a run prints, which must succeed.
fn said(folder: &Folder, args: &[&str]) -> String {
    let output = folder.run(args).output().unwrap();
    assert!(output.status.success(), "{args:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn tables_of_every_system_come_back_as_they_went() {
    let folder = Folder::new();
    let expected = said(&folder, &["cat", "people.parquet"]);
    for (target, args) in [
        ("a.red", vec![]),
        ("set", vec!["-f", "cfile-set"]),
        ("server", vec!["-f", "kudu", "--kudu-key", "id"]),
        // Without -f, the options say what it is.
        ("second-server/", vec!["--kudu-key", "id", "--kudu-codec", "lz4"]),
        ("second-table/", vec!["--carbon-sort", "id"]),
        (
            "snapshot",
            vec!["-f", "doris", "--doris-key", "id", "--doris-format", "v3", "--doris-bloom", "name"],
        ),
        (
            "unique",
            vec!["-f", "doris", "--doris-model", "unique", "--doris-key", "id", "--doris-merge-on-read"],
        ),
        ("a.dat.d", vec!["-f", "doris-segment", "--doris-codec", "zstd"]),
        ("table", vec!["-f", "carbondata", "--carbon-sort", "id", "--carbon-compressor", "zstd"]),
        ("parts/", vec![]),
    ] {
        let all = [vec!["convert"], args, vec!["people.parquet", target]].concat();
        said(&folder, &all);
        let mut rows =
            said(&folder, &["cat", if target == "parts/" { "parts/part-00000.parquet" } else { target }]);
        if target == "a.dat.d" {
            // A segment alone knows no names.
            rows = rows
                .replace("\"0\":", "\"id\":")
                .replace("\"1\":", "\"name\":")
                .replace("\"2\":", "\"score\":");
        }
        assert_eq!(rows, expected, "{target}");
    }
}

#[test]
fn a_carbondata_table_grows_and_is_compacted() {
    let folder = Folder::new();
    said(&folder, &["convert", "-f", "carbondata", "people.parquet", "table"]);
    let once: u64 = said(&folder, &["count", "table"]).trim().parse().unwrap();
    let refused = folder.run(&["convert", "-f", "carbondata", "people.parquet", "table"]).output().unwrap();
    assert!(!refused.status.success());
    said(&folder, &["convert", "-f", "carbondata", "--carbon-append", "people.parquet", "table"]);
    let count = || said(&folder, &["count", "table"]).trim().parse::<u64>().unwrap();
    assert_eq!(count(), once * 2);
    said(&folder, &["compact", "table"]);
    assert_eq!(count(), once * 2);
    assert!(said(&folder, &["ls", "--json", "table"]).contains("0.1"));
    assert_eq!(count(), once * 2);
    std::fs::write(folder.path("table/Metadata/tablestatus"), b"[").unwrap();
    assert!(!folder.run(&["cat", "table"]).output().unwrap().status.success());
    folder.run(&["repair", "table"]).output().unwrap();
    assert!(folder.run(&["cat", "table"]).output().unwrap().status.success());
}

#[test]
fn a_migration_goes_on_where_it_was_stopped() {
    let folder = Folder::new();
    said(&folder, &["convert", "--file-rows", "2", "people.parquet", "out/"]);
    std::fs::remove_file(folder.path("out/part-00001.parquet")).unwrap();
    let again = folder.run(&["convert", "--file-rows", "2", "people.parquet", "out/"]).output().unwrap();
    let words = String::from_utf8(again.stderr).unwrap();
    assert!(again.status.success() && words.contains("there already"), "{words}");
    assert!(folder.path("out/part-00001.parquet").is_file());
}

#[test]
fn a_migration_of_other_rows_is_refused() {
    let folder = Folder::new();
    said(&folder, &["convert", "--file-rows", "2", "-w", "id % 2 = 1", "people.parquet", "out/"]);
    // Positions are those of the source.
    let whole = said(&folder, &["count", "people.parquet"]).trim().parse::<usize>().unwrap();
    let parts = std::fs::read_dir(folder.path("out")).unwrap();
    let is_part = |name: &std::ffi::OsString| name.to_str().unwrap().starts_with("part-");
    assert_eq!(parts.filter(|part| is_part(&part.as_ref().unwrap().file_name())).count(), whole.div_ceil(2));
    said(&folder, &["convert", "-f", "carbondata", "people.parquet", "table"]);
    said(&folder, &["convert", "-f", "carbondata", "--carbon-append", "people.parquet", "table"]);
    said(&folder, &["convert", "--segment", "0", "table", "first/"]);
    let refused = |args: &[&str], expected: &str| {
        let output = folder.run(&[&["convert", "--file-rows", "2"], args].concat()).output().unwrap();
        let words = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(2) && words.contains(expected), "{args:?}: {words}");
    };
    let begun = "was begun with --where \"id % 2 = 1\", not ";
    refused(&["people.parquet", "out/", "-w", "id % 2 = 0"], &format!("{begun}--where \"id % 2 = 0\""));
    refused(&["people.parquet", "out/"], &format!("{begun}all rows"));
    let refused = folder.run(&["convert", "--segment", "1", "table", "first/"]).output().unwrap();
    let words = String::from_utf8(refused.stderr).unwrap();
    assert!(words.contains("was begun with --segment 0, not --segment 1"), "{words}");
}

#[test]
fn a_segment_without_its_end_is_repaired() {
    let folder = Folder::new();
    let schema = r#"{"keys_type": "DUP_KEYS", "columns": [
        {"unique_id": 0, "name": "id", "type": "BIGINT", "is_nullable": true, "length": 8},
        {"unique_id": 1, "name": "name", "type": "STRING", "is_nullable": true},
        {"unique_id": 2, "name": "score", "type": "DOUBLE", "is_nullable": true, "length": 8}]}"#;
    folder.write("schema.json", schema);
    said(&folder, &["convert", "--doris-schema", "schema.json", "people.parquet", "whole.dat"]);
    let expected = said(&folder, &["cat", "--schema", "schema.json", "whole.dat"]);
    let bytes = std::fs::read(folder.path("whole.dat")).unwrap();
    folder.write("cut.dat", &bytes[..bytes.len() - 20]);
    said(&folder, &["repair", "--schema", "schema.json", "cut.dat", "again.dat"]);
    assert_eq!(said(&folder, &["cat", "--schema", "schema.json", "again.dat"]), expected);
    said(&folder, &["salvage", "--schema", "schema.json", "cut.dat", "saved.parquet"]);
    assert_eq!(said(&folder, &["cat", "saved.parquet"]), expected);
}

snapshots! {
    convert_says_what_it_wrote: ["convert", "-c", "id", "-w", "id > 2", "people.parquet", "some.csv"];
    convert_with_options_between: ["convert", "people.parquet", "-c", "id", "some.csv", "-w", "id > 2"];
    convert_of_one_path: ["convert", "people.parquet"];
    convert_by_position: ["convert", "--rows", "..2", "people.parquet", "some.jsonl"];
    convert_keeps_what_is_there: ["convert", "people.parquet", "people.csv"];
    convert_replaces_when_told: ["convert", "--overwrite", "people.parquet", "people.csv"];
    convert_to_a_name_that_says_no_format: ["convert", "people.parquet", "rows"];
    convert_to_a_named_format: ["convert", "-f", "tsv", "people.parquet", "rows"];
    convert_of_a_damaged_file: ["convert", "broken/cut.parquet", "rows.csv"];
    convert_into_a_missing_folder: ["convert", "people.csv", "no/such/rows.csv"];
    salvage_of_a_sound_file: ["salvage", "people.parquet", "--report", "report.json", "saved.csv"];
    salvage_of_a_folder_with_a_lost_footer: ["salvage", "people.parquet", "broken/", "saved.csv"];
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
