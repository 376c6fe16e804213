//! Commands that give rows.
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

use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;

use common::Folder;

snapshots! {
    cat_gives_json_lines_in_a_pipe: ["cat", "people.parquet"];
    cat_as_a_table: ["cat", "-f", "table", "people.parquet"];
    cat_as_csv_with_columns_in_the_order_asked_for: ["cat", "-f", "csv", "-c", "name,id", "people.parquet"];
    cat_as_tsv: ["cat", "-f", "tsv", "people.csv"];
    cat_as_json: ["cat", "--format", "json", "-n", "2", "people.parquet"];
    cat_where_a_scan_can_tell: ["cat", "-w", "id > 1 AND score IS NOT NULL", "people.parquet"];
    cat_where_only_sql_can_tell: ["cat", "-w", "id % 2 = 0 AND id > 1", "-c", "id", "people.parquet"];
    cat_by_position: ["cat", "--rows", "1..3", "people.parquet"];
    cat_by_position_from_the_end_of_a_stream: ["cat", "--rows", "3..", "people.csv"];
    cat_of_several_files: ["cat", "-c", "id", "people.parquet", "people.csv"];
    head_gives_the_first: ["head", "-n", "2", "people.csv"];
    tail_gives_the_last: ["tail", "-n", "2", "people.parquet"];
    tail_of_rows_that_match: ["tail", "-n", "2", "-w", "id < 4", "people.parquet"];
    tail_of_a_stream: ["tail", "-n", "1", "people.csv"];
    sample_repeats_with_its_seed: ["sample", "-n", "2", "--seed", "7", "people.parquet"];
    sample_of_rows_that_match: ["sample", "-n", "2", "--seed", "7", "-w", "id <> 2", "people.csv"];
    count_from_the_footer: ["count", "people.parquet"];
    count_where: ["count", "-w", "name IS NULL", "people.csv"];
    count_as_json: ["count", "--json", "people.csv"];
    cat_of_an_unknown_column: ["cat", "-c", "id,age", "people.parquet"];
    cat_where_nothing_is_asked: ["cat", "-w", "id +", "people.parquet"];
    cat_where_a_column_is_unknown: ["cat", "-w", "age > 1", "people.parquet"];
    cat_of_rows_that_end_before_they_begin: ["cat", "--rows", "3..1", "people.parquet"];
    cat_of_a_missing_file: ["cat", "nobody.parquet"];
    cat_of_a_file_cut_short: ["cat", "broken/cut.parquet"];
    cat_of_no_path: ["cat"];
    cat_in_an_unknown_format: ["cat", "-f", "xml", "people.csv"];
    cat_to_a_name_that_says_no_format: ["cat", "-o", "rows", "people.csv"];
}

#[test]
fn rows_go_to_a_file_that_appears_complete() {
    let folder = Folder::new();
    let output = folder.run(&["cat", "-o", "rows.csv", "people.parquet"]).output().unwrap();
    assert!(output.status.success() && output.stdout.is_empty() && output.stderr.is_empty(), "{output:?}");
    assert!(folder.read("rows.csv").starts_with("id,name,score\n1,ann,1.5\n"), "{}", folder.read("rows.csv"));

    let output = folder.run(&["cat", "-o", "lost.csv", "broken/cut.parquet"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(!folder.path("lost.csv").exists());
}

#[test]
fn a_closed_pipe_is_success() {
    let folder = Folder::new();
    let rows: String =
        (0..50_000).map(|row| format!("{row},some text that makes the rows longer\n")).collect();
    folder.write("long.csv", format!("id,text\n{rows}"));
    for args in
        [&["cat", "long.csv"][..], &["cat", "-f", "csv", "long.csv"], &["sql", "SELECT * FROM 'long.csv'"]]
    {
        let mut child = folder.run(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let mut words = String::new();
        child.stderr.take().unwrap().read_to_string(&mut words).unwrap();
        assert!(child.wait().unwrap().success(), "{args:?}");
        assert_eq!(words, "", "{args:?}");
    }
}
