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
    assert!(
        lost.starts_with("lost: an unknown number of rows: broken/cut.parquet: ")
            && lost.lines().count() == 1,
        "{lost}"
    );
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

/// Copies a server's folder without the subfolders of a name.
fn copy_without(from: &Path, to: &Path, left_out: &str) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(|entry| entry.unwrap().path()) {
        let target = to.join(entry.file_name().unwrap());
        match entry.is_dir() {
            true if entry.ends_with(left_out) => {}
            true => copy_without(&entry, &target, left_out),
            false => assert!(std::fs::copy(&entry, &target).is_ok()),
        }
    }
}

/// What a call says on stderr, and its exit code.
fn said(folder: &Folder, args: &[&str]) -> (String, Option<i32>) {
    let output = folder.run(args).output().unwrap();
    (String::from_utf8(output.stderr).unwrap(), output.status.code())
}

#[test]
fn recover_gives_all_tables_and_a_report() {
    let folder = folder();
    let recover = ["recover", "kudu/mixed/fs", "kudu/cfiles/prefix-lz4.cfile", "out"];
    // Once more: what is there stays there.
    for _ in 0..2 {
        let (text, code) = said(&folder, &recover);
        assert_eq!(code, Some(0), "{text}");
        assert!(
            text.contains("mixed: complete, 710 rows") && text.contains("2 of 2 tables complete"),
            "{text}"
        );
    }
    let report = std::fs::read_to_string(folder.path("out/report.json")).unwrap();
    assert!(report.contains("\"is_complete\": true"), "{report}");
    let csv = ["-q", "recover", "-f", "csv", "--table", "mixed", "kudu/mixed/fs", "csv"];
    let (text, code) = said(&folder, &csv);
    assert_eq!((text.lines().count(), code), (1, Some(0)), "{text}");
    assert!(text.starts_with("found: table mixed: the logs of 2 tablets: "), "{text}");
    assert_eq!(std::fs::read_to_string(folder.path("csv/mixed.csv")).unwrap().lines().count(), 711);
    let (text, code) = said(&folder, &["recover", "--table", "other", "kudu/mixed/fs", "none"]);
    assert_eq!((text.as_str(), code), ("pilaster: no table \"other\" here\n", Some(2)));
}

#[test]
fn recover_names_what_is_lost() {
    let folder = folder();
    copy_without(&folder.path("kudu/mixed/fs"), &folder.path("broken"), "wals");
    let (text, code) = said(&folder, &["recover", "broken", "out"]);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("mixed: NOT complete") && text.contains("not proven"), "{text}");
    let report = std::fs::read_to_string(folder.path("out/report.json")).unwrap();
    assert!(report.contains("\"is_complete\": false") && report.contains("\"rows_lost\": null"), "{report}");
    let (text, code) = said(&folder, &["salvage", "--unproven", "apart", "broken", "saved.parquet"]);
    assert_eq!(code, Some(1), "{text}");
    assert!(std::fs::read_dir(folder.path("apart")).unwrap().count() > 0);
}

#[test]
fn what_may_not_be_read_is_named_and_ends_with_2() {
    let folder = folder();
    folder.copy(&folder.path("kudu/mixed/fs"), "server");
    for path in ["wals", "tablet-meta", "consensus-meta", "data", "."] {
        let path = format!("server/{path}");
        let name = path.trim_end_matches("/.");
        for args in [
            &["count", "server"][..],
            &["cat", "server"],
            &["verify", "server"],
            &["ls", "server"],
            &["salvage", "server", "saved.csv"],
        ] {
            let output = folder.run_without_permission(&path, args);
            let said = [output.stdout, output.stderr].concat();
            let said = String::from_utf8_lossy(&said);
            assert_eq!(output.status.code(), Some(2), "{path} {args:?}: {said}");
            assert!(said.contains(name) && said.contains("Permission denied"), "{path} {args:?}: {said}");
            let is_lost =
                ["is lost", "found none", "found no container"].iter().any(|text| said.contains(text));
            assert!(!is_lost, "{path} {args:?}: {said}");
        }
    }
    let output = folder.run_without_permission("server/wals", &["count", "--no-wal", "server"]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn logs_that_are_not_there_or_cannot_be_read_do_not_pass_for_empty() {
    let folder = folder();
    folder.copy(&folder.path("kudu/mixed/fs"), "server");
    let (log, aside) = ("server/wals/598e19e76c6f4344aeb64cf7be84954f", folder.path("aside"));
    let found_none = "tablet 598e19e76c6f4344aeb64cf7be84954f: expected a log, found none";
    let (wal, mixed) = (["wal", "server"], ["wal", "--table", "mixed", "server"]);
    for (path, code, text) in [
        ("server/wals", 1, found_none),
        (log, 1, found_none),
        (&format!("{log}/wal-000000002"), 1, found_none),
    ] {
        std::fs::rename(folder.path(path), &aside).unwrap();
        for args in [&wal[..], &mixed] {
            let (told, found) = said(&folder, args);
            assert!(found == Some(code) && told.contains(text), "{path} {args:?}: {found:?} {told}");
        }
        // What leads to itself cannot be looked at.
        std::os::unix::fs::symlink(folder.path(path), folder.path(path)).unwrap();
        for args in [&wal[..], &mixed] {
            let (told, found) = said(&folder, args);
            assert!(found == Some(2) && told.starts_with(path), "{path} {args:?}: {found:?} {told}");
            assert!(told.lines().count() == 1 && !told.contains("found none"), "{path}: {told}");
        }
        std::fs::remove_file(folder.path(path)).unwrap();
        std::fs::rename(&aside, folder.path(path)).unwrap();
    }
    assert_eq!(said(&folder, &mixed), (String::new(), Some(0)));
    for choice in ["--table", "--tablet", "--replica"] {
        let (told, code) = said(&folder, &["wal", choice, "nope", "server"]);
        let expected = "pilaster: no such table, tablet or replica here\n";
        assert_eq!((told.as_str(), code), (expected, Some(2)), "{choice}");
    }
}

#[test]
fn a_table_without_one_of_its_tablets_is_not_given_as_a_whole() {
    let folder = folder();
    folder.copy(&folder.path("kudu/mixed/fs"), "server");
    let gone = "598e19e76c6f4344aeb64cf7be84954f";
    std::fs::remove_dir_all(folder.path(&format!("server/wals/{gone}"))).unwrap();
    std::fs::remove_file(folder.path(&format!("server/tablet-meta/{gone}"))).unwrap();
    std::fs::remove_file(folder.path(&format!("server/consensus-meta/{gone}"))).unwrap();
    let missing = "the tablet of hash bucket 0 of 2 is not here";
    let run = |args: &[&str]| {
        let output = folder.run(args).output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (output.status.code(), text(output.stdout), text(output.stderr))
    };
    for command in ["count", "cat", "verify"] {
        let (code, stdout, stderr) = run(&[command, "server"]);
        assert_eq!(code, Some(1), "{command}: {stderr}");
        assert!([stdout, stderr].concat().contains(missing), "{command}");
    }
    let (code, rows, stderr) = run(&["count", "--partial", "server"]);
    assert_eq!(code, Some(0), "{stderr}");
    assert!(["345\n", "365\n"].contains(&rows.as_str()), "{rows}");
    assert!(stderr.contains(missing), "{stderr}");
    let (_, listed, _) = run(&["ls", "server"]);
    assert!(listed.contains(missing) && listed.contains("replicas here 1 of 1"), "{listed}");
}
