//! Kudu's own files on the command line: a killed server's folder, bare CFiles, CFile sets.
#![allow(
    dead_code,
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests compute with known values, and share helpers that not all of them use"
)]

#[macro_use]
mod common;

use std::path::{Path, PathBuf};

use common::{Folder, settings};
use insta_cmd::assert_cmd_snapshot;

/// A folder in which `testdata` is a link to the workspace's.
fn folder() -> Folder {
    let folder = Folder::new();
    let testdata: PathBuf =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/kudu").canonicalize().unwrap();
    std::os::unix::fs::symlink(testdata, folder.path("kudu")).unwrap();
    folder
}

fn snapshot(name: &str, args: &[&str]) {
    let folder = folder();
    settings().bind(|| assert_cmd_snapshot!(name, folder.run(args)));
}

#[test]
fn a_servers_folder_lists_its_tablets() {
    snapshot("kudu_ls", &["ls", "kudu/mixed/fs"]);
}

#[test]
fn rows_of_the_log_are_given_too() {
    snapshot("kudu_count", &["count", "kudu/mixed/fs"]);
    snapshot("kudu_count_flushed", &["count", "--no-wal", "kudu/mixed/fs"]);
}

#[test]
fn rows_of_a_server() {
    snapshot("kudu_schema", &["schema", "kudu/mixed/fs"]);
    snapshot("kudu_head", &["head", "-n", "3", "-f", "jsonl", "kudu/tiny/fs"]);
    snapshot(
        "kudu_sql",
        &["sql", "-f", "csv", "SELECT rle, count(*) FROM 'kudu/tiny/fs' GROUP BY rle ORDER BY rle"],
    );
    snapshot(
        "kudu_sql_open",
        &[
            "sql",
            "-f",
            "csv",
            "--open",
            "kudu/tiny/fs",
            "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'",
        ],
    );
    snapshot("kudu_before_history", &["cat", "--as-of", "2001-01-01T00:00:00", "kudu/mixed/fs"]);
    snapshot("kudu_no_such_table", &["cat", "--table", "nope", "kudu/mixed/fs"]);
}

#[test]
fn a_quiet_run_still_says_what_is_wrong_with_the_data() {
    let folder = folder();
    let said = |args: &[&str]| String::from_utf8(folder.run(args).output().unwrap().stderr).unwrap();
    for args in [vec!["count", "kudu/tiny/fs"], vec!["sql", "SELECT count(*) FROM 'kudu/tiny/fs'"]] {
        let loud = said(&args);
        assert!(loud.starts_with("warning: "), "{args:?}: {loud}");
        assert_eq!(said(&[vec!["-q"], args].concat()), loud);
    }
    assert_eq!(said(&["-q", "convert", "people.parquet", "people.arrow"]), "");
    let lost = said(&["-q", "salvage", "people.parquet", "broken/", "saved.csv"]);
    assert!(lost.starts_with("lost: rows 5..5: broken/cut.parquet: ") && lost.lines().count() == 1, "{lost}");
}

#[test]
fn the_log_as_a_list() {
    snapshot("kudu_wal", &["wal", "kudu/tiny/fs"]);
}

#[test]
fn what_a_cfile_says_of_itself() {
    let file = "kudu/arrays/int32-plain-none-null.cfile";
    snapshot("cfile_schema", &["schema", file]);
    snapshot("cfile_meta", &["meta", file]);
    snapshot("cfile_tree", &["tree", file]);
    snapshot("cfile_pages", &["pages", file]);
    snapshot("cfile_stats", &["stats", file]);
    snapshot("cfile_one_row", &["cat", "--rows", "2..3", "-f", "jsonl", file]);
    snapshot("cfile_verify", &["verify", "--depth", "values", file]);
    snapshot("cfile_verify_footer", &["verify", "--depth", "footer", file]);
    snapshot("cfile_ls", &["ls", file]);
    snapshot("cfile_count", &["count", file]);
    snapshot("cfile_head", &["head", "-n", "2", "-f", "jsonl", file]);
    snapshot("cfile_tail", &["tail", "-n", "2", "-f", "jsonl", file]);
    snapshot("cfile_sample", &["sample", "-n", "2", "--seed", "7", "-f", "jsonl", file]);
    snapshot("cfile_sql", &["sql", &format!("SELECT count(*), count(value) FROM '{file}'")]);
    snapshot("cfile_convert", &["convert", file, "rows.parquet"]);
    snapshot("cfile_tree_json", &["tree", "--json", file]);
}

#[test]
fn a_wrong_checksum_is_refused_unless_checksums_are_off() {
    let folder = folder();
    let original = "kudu/cfiles/zlib-decimal.cfile";
    let run = |args: &[&str]| folder.run(args).output().unwrap();
    let pages: serde_json::Value =
        serde_json::from_slice(&run(&["pages", "--json", original]).stdout).unwrap();
    let page = pages.as_array().unwrap().iter().find(|page| page["rows"].is_u64()).unwrap();
    let end = usize::try_from(page["offset"].as_u64().unwrap() + page["bytes"].as_u64().unwrap()).unwrap();
    let mut bytes = std::fs::read(folder.path(original)).unwrap();
    // The last byte of a block is one of its checksum.
    bytes[end - 1] ^= 1;
    std::fs::write(folder.path("checksum.cfile"), bytes).unwrap();
    assert_eq!(run(&["cat", "checksum.cfile"]).status.code(), Some(1));
    let read = run(&["cat", "--no-checksums", "checksum.cfile"]);
    assert_eq!(read.status.code(), Some(0));
    assert_eq!(read.stdout, run(&["cat", original]).stdout);
    assert!(!read.stdout.is_empty());
}

#[test]
fn cfiles_join_with_other_formats() {
    let folder = folder();
    folder.convert("people.parquet", "people.arrow");
    folder.convert("people.parquet", "people.jsonl");
    let set =
        folder.run(&["-q", "convert", "-f", "cfile-set", "people.parquet", "people-set"]).status().unwrap();
    assert!(set.success());
    let sql = "SELECT a.id, b.name, c.score, d.name AS again, e.id AS csv \
               FROM 'people-set' a JOIN 'people.arrow' b ON a.id = b.id JOIN 'people.jsonl' c ON a.id = c.id \
               JOIN 'people.parquet' d ON a.id = d.id JOIN 'people.csv' e ON a.id = e.id ORDER BY a.id";
    settings().bind(|| assert_cmd_snapshot!("cfile_joins", folder.run(&["sql", "-f", "csv", sql])));
}

#[test]
fn a_table_goes_through_cfiles_and_comes_back() {
    let folder = folder();
    let run = |args: &[&str]| {
        let output = folder.run(args).output().unwrap();
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    run(&["convert", "kudu/mixed/fs", "a.parquet"]);
    run(&["convert", "-f", "cfile-set", "--cfile-codec", "lz4", "a.parquet", "set"]);
    run(&["convert", "set", "b.parquet"]);
    let rows = run(&["cat", "-f", "jsonl", "a.parquet"]);
    assert!(rows.lines().count() > 500);
    assert_eq!(rows, run(&["cat", "-f", "jsonl", "kudu/mixed/fs"]));
    assert_eq!(rows, run(&["cat", "-f", "jsonl", "set"]));
    assert_eq!(rows, run(&["cat", "-f", "jsonl", "b.parquet"]));
    assert_eq!(rows, run(&["sql", "-f", "jsonl", "SELECT * FROM 'set'"]));
    assert_eq!(run(&["schema", "--json", "a.parquet"]), run(&["schema", "--json", "b.parquet"]));
}

/// As the README shows it.
#[test]
fn a_file_with_a_bad_block_gives_everything_else() {
    let folder = folder();
    let mut bytes = std::fs::read(folder.path("kudu/cfiles/prefix-lz4.cfile")).unwrap();
    bytes[3000] = b'x';
    folder.write("broken.cfile", bytes);
    settings().bind(|| {
        assert_cmd_snapshot!("salvaged_but_a_block", folder.run(&["salvage", "broken.cfile", "saved.jsonl"]));
    });
    let whole = folder.run(&["cat", "-f", "jsonl", "kudu/cfiles/prefix-lz4.cfile"]).output().unwrap();
    let whole = String::from_utf8(whole.stdout).unwrap();
    let kept: Vec<_> = whole
        .lines()
        .enumerate()
        .filter(|(row, _)| !(1159..1554).contains(row))
        .map(|(_, line)| line)
        .collect();
    assert_eq!(folder.read("saved.jsonl").lines().collect::<Vec<_>>(), kept);
}

#[test]
fn a_damaged_cfile_is_salvaged() {
    let folder = folder();
    let original = std::fs::read(folder.path("kudu/arrays/int32-plain-none-null.cfile")).unwrap();
    let mut flipped = original.clone();
    flipped[40] ^= 1;
    std::fs::write(folder.path("flipped.cfile"), &flipped).unwrap();
    std::fs::write(folder.path("headless.cfile"), &original[..original.len() - 12]).unwrap();
    settings().bind(|| {
        assert_cmd_snapshot!("damaged_cat", folder.run(&["cat", "-f", "jsonl", "flipped.cfile"]));
        assert_cmd_snapshot!(
            "damaged_verify",
            folder.run(&["verify", "--depth", "checksums", "flipped.cfile"])
        );
        assert_cmd_snapshot!("damaged_salvage", folder.run(&["salvage", "flipped.cfile", "saved.jsonl"]));
        assert_cmd_snapshot!("headless_cat", folder.run(&["cat", "headless.cfile"]));
        let args = ["salvage", "--type", "int32", "--encoding", "plain_encoding", "--nullable", "--array"];
        let args = [&args[..], &["headless.cfile", "whole.jsonl"]].concat();
        assert_cmd_snapshot!("headless_salvage", folder.run(&args));
    });
    let whole = std::fs::read_to_string(folder.path("whole.jsonl")).unwrap();
    let expected =
        folder.run(&["cat", "-f", "jsonl", "kudu/arrays/int32-plain-none-null.cfile"]).output().unwrap();
    assert_eq!(whole, String::from_utf8(expected.stdout).unwrap());
}
