//! What is written where: pipes and devices, links, what is there already, and what is read.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "tests stop at the first surprise"
)]
#![cfg(unix)]

#[allow(dead_code, reason = "no snapshots here")]
mod common;

use std::fs;
use std::os::unix::fs::{FileTypeExt, symlink};
use std::process::Command;
use std::thread;

use common::Folder;

const ROWS: &str = "{\"id\":1}\n{\"id\":2}\n{\"id\":3}\n{\"id\":4}\n{\"id\":5}\n";

/// Runs a call; gives its exit code and what it says.
fn run(folder: &Folder, args: &[&str]) -> (i32, String) {
    let output = folder.run(args).output().unwrap();
    (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn every_command_writes_through_a_pipe() {
    let folder = Folder::new();
    let broken = fs::read(folder.path("people.parquet")).unwrap();
    folder.write("whole.parquet", broken);
    let copy = "COPY (SELECT id FROM 'people.csv') TO 'pipe' STORED AS JSON";
    let copy_with_options = "COPY (SELECT id FROM 'people.csv') TO 'pipe.csv' STORED AS CSV OPTIONS ('format.has_header' 'false')";
    let calls: [(&str, &[&str], &str); 6] = [
        ("pipe", &["cat", "-c", "id", "-f", "jsonl", "-o", "pipe", "people.csv"], ROWS),
        ("pipe", &["convert", "-c", "id", "-f", "jsonl", "people.csv", "pipe"], ROWS),
        ("pipe", &["convert", "--overwrite", "-c", "id", "-f", "jsonl", "people.csv", "pipe"], ROWS),
        ("pipe", &["sql", "--format", "jsonl", "-o", "pipe", "SELECT id FROM 'people.csv'"], ROWS),
        ("pipe", &["sql", copy], "[\n{\"id\":1},\n"),
        ("pipe.csv", &["sql", copy_with_options], "1\n2\n3\n4\n5\n"),
    ];
    for (name, args, expected) in calls {
        let pipe = folder.path(name);
        let _ = fs::remove_file(&pipe);
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let reader = thread::spawn({
            let pipe = pipe.clone();
            move || fs::read_to_string(pipe).unwrap()
        });
        let (code, said) = run(&folder, args);
        assert!(fs::symlink_metadata(&pipe).unwrap().file_type().is_fifo(), "{args:?}");
        if code != 0 {
            // Lets the reader go.
            drop(fs::OpenOptions::new().write(true).open(&pipe));
        }
        let found = reader.join().unwrap();
        assert_eq!(code, 0, "{args:?}: {said}");
        let found: String = found.split_whitespace().map(|line| format!("{line}\n")).collect();
        assert!(found.starts_with(expected), "{args:?}: {found}");
    }
}

#[test]
fn a_report_goes_through_a_link_to_its_file() {
    let folder = Folder::new();
    fs::create_dir(folder.path("reports")).unwrap();
    folder.write("reports/last.json", "old");
    symlink("reports/last.json", folder.path("report")).unwrap();
    let (code, said) = run(&folder, &["-q", "salvage", "--report", "report", "people.parquet", "saved.csv"]);
    assert_eq!(code, 0, "{said}");
    assert!(folder.path("report").is_symlink());
    assert!(folder.read("reports/last.json").contains("rows_saved"));
}

#[test]
fn what_is_there_is_replaced_only_where_a_command_says_so_and_never_what_is_read() {
    let folder = Folder::new();
    fs::create_dir(folder.path("data")).unwrap();
    fs::copy(folder.path("people.csv"), folder.path("data/a.csv")).unwrap();
    symlink("people.csv", folder.path("link.csv")).unwrap();
    fs::hard_link(folder.path("people.csv"), folder.path("hard.csv")).unwrap();
    let own = "is what is read";
    let calls: [(&[&str], i32, &str); 13] = [
        (&["cat", "-o", "there.csv", "people.csv"], 0, ""),
        (&["sql", "COPY (SELECT * FROM 'people.csv') TO 'there.csv'"], 0, ""),
        (&["convert", "people.csv", "there.csv"], 2, "exists already"),
        (&["salvage", "people.csv", "there.csv"], 2, "exists already"),
        (&["convert", "--overwrite", "people.csv", "there.csv"], 0, ""),
        (&["convert", "--overwrite", "people.csv", "people.csv"], 2, own),
        (&["convert", "--overwrite", "people.csv", "./data/../people.csv"], 2, own),
        (&["convert", "--overwrite", "people.csv", "link.csv"], 2, own),
        (&["cat", "-o", "hard.csv", "people.csv"], 2, own),
        (&["cat", "-o", "data/a.csv", "data"], 2, own),
        (&["sql", "COPY (SELECT * FROM 'data/') TO 'data/a.csv'"], 2, own),
        (
            &[
                "sql",
                "-o",
                "people.csv",
                "SELECT a.id FROM 'people.parquet' a JOIN 'people.csv' b ON a.id = b.id",
            ],
            2,
            own,
        ),
        (&["salvage", "--report", "people.parquet", "people.parquet", "x.csv"], 2, own),
    ];
    for (args, expected, words) in calls {
        folder.write("there.csv", "old");
        let before = (folder.read("people.csv"), folder.read("data/a.csv"));
        let (code, said) = run(&folder, args);
        assert_eq!(code, expected, "{args:?}: {said}");
        assert!(said.contains(words), "{args:?}: {said}");
        assert_eq!(folder.read("there.csv") == "old", expected != 0, "{args:?}");
        assert_eq!((folder.read("people.csv"), folder.read("data/a.csv")), before, "{args:?}");
    }
    let left = fs::read_dir(folder.path("")).unwrap().map(|entry| entry.unwrap().file_name());
    let left: Vec<_> = left.filter(|name| name.to_string_lossy().starts_with('.')).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn partitions_are_written_once_and_read_as_one_table() {
    let folder = Folder::new();
    let rows = "SELECT * FROM (VALUES (1, 'x/y', DATE '2024-01-02'), (2, '', DATE '2024-01-02'), (3, NULL, NULL), (4, '%', DATE '2024-02-29')) AS t(id, p, d)";
    let copy = format!("COPY ({rows}) TO 'out' STORED AS PARQUET PARTITIONED BY (d, p)");
    assert_eq!(run(&folder, &["sql", &copy]), (0, String::new()));
    let (code, said) = run(&folder, &["sql", &copy]);
    assert!(code == 2 && said.contains("exists already"), "{said}");
    let expected = "{\"id\":1,\"d\":\"2024-01-02\",\"p\":\"x/y\"}\n{\"id\":2,\"d\":\"2024-01-02\",\"p\":\"\"}\n{\"id\":3,\"d\":null,\"p\":null}\n{\"id\":4,\"d\":\"2024-02-29\",\"p\":\"%\"}\n";
    let output = |args: &[&str]| {
        let output = folder.run(args).output().unwrap();
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(output(&["sql", "SELECT * FROM 'out' ORDER BY id"]), expected);
    assert_eq!(output(&["count", "out"]).trim(), "4");
    let mut lines: Vec<_> = output(&["cat", "out"]).lines().map(str::to_string).collect();
    lines.sort();
    assert_eq!(lines.join("\n") + "\n", expected);
    assert_eq!(output(&["cat", "-c", "id", "-w", "p IS NULL", "out"]), "{\"id\":3}\n");
    assert_eq!(output(&["cat", "-c", "id", "-w", "d > '2024-01-31' AND id < 9", "out"]), "{\"id\":4}\n");
    assert_eq!(output(&["cat", "-c", "id", "-w", "p = '' OR id = 4", "-n", "1", "out"]).lines().count(), 1);
    output(&["convert", "out", "back.parquet"]);
    assert_eq!(output(&["sql", "SELECT * FROM 'back.parquet' ORDER BY id"]), expected);
    // A folder that is two things is none.
    fs::create_dir(folder.path("out/q=1")).unwrap();
    let (code, said) = run(&folder, &["cat", "out"]);
    assert!(code == 2 && said.contains("partitions by \"d\" and by \"q\""), "{said}");
}

#[test]
fn a_write_over_the_limit_of_file_sizes_is_an_error_and_leaves_nothing() {
    let folder = Folder::new();
    let rows: String = (0..60_000).map(|row| format!("{row}\n")).collect();
    folder.write("big.csv", format!("id\n{rows}"));
    let program = env!("CARGO_BIN_EXE_pilaster");
    let script = format!("ulimit -f 8; exec '{program}' -q convert big.csv out.csv");
    let output = Command::new("bash").args(["-c", &script]).current_dir(folder.path("")).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).starts_with("pilaster: out.csv: "), "{output:?}");
    let hidden = fs::read_dir(folder.path("")).unwrap().map(|entry| entry.unwrap().file_name());
    assert!(hidden.into_iter().all(|name| !name.to_string_lossy().starts_with('.')));
    assert!(!folder.path("out.csv").exists());
}

#[test]
fn a_call_that_is_told_to_end_leaves_nothing_behind() {
    let folder = Folder::new();
    for (signal, number) in [("TERM", 15), ("INT", 2)] {
        // More rows than are made before the signal comes.
        let endless = "COPY (SELECT a.value, b.value AS other FROM range(100000000) a CROSS JOIN range(1000) b) TO 'rows.csv'";
        let mut child = folder.run(&["-q", "sql", endless]).spawn().unwrap();
        let hidden = || {
            let names = fs::read_dir(folder.path("")).unwrap().map(|entry| entry.unwrap().file_name());
            names.filter(|name| name.to_string_lossy().starts_with(".rows.csv")).count()
        };
        while hidden() == 0 {
            assert!(child.try_wait().unwrap().is_none(), "the call ended by itself");
            thread::sleep(std::time::Duration::from_millis(20));
        }
        let kill = Command::new("kill").args(["-s", signal, &child.id().to_string()]).status().unwrap();
        assert!(kill.success());
        let status = child.wait().unwrap();
        assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(number));
        assert_eq!(hidden(), 0, "{signal}");
    }
}

#[test]
fn a_copy_by_partitions_that_fails_leaves_nothing_behind() {
    let folder = Folder::new();
    let program = env!("CARGO_BIN_EXE_pilaster");
    let copy = "COPY (SELECT value AS id, value % 7 AS p FROM range(400000)) TO 'parts' STORED AS CSV PARTITIONED BY (p)";
    let script = format!("ulimit -f 64; exec '{program}' -q sql \"{copy}\"");
    let output = Command::new("bash").args(["-c", &script]).current_dir(folder.path("")).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let left: Vec<_> =
        fs::read_dir(folder.path("")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(left.iter().all(|name| !name.to_string_lossy().contains("parts")), "{left:?}");
}

#[test]
fn sql_does_not_wait_for_a_pipe_that_is_called_parquet() {
    let folder = Folder::new();
    assert!(Command::new("mkfifo").arg(folder.path("pipe.parquet")).status().unwrap().success());
    let mut child = folder.run(&["sql", "SELECT count(*) FROM 'pipe.parquet'"]).spawn().unwrap();
    let waited = (0..600).find_map(|_| {
        thread::sleep(std::time::Duration::from_millis(100));
        child.try_wait().unwrap()
    });
    let _ = child.kill();
    assert_eq!(waited.and_then(|status| status.code()), Some(2));
}

#[test]
fn partitions_keep_types_and_refuse_the_text_that_stands_for_null() {
    let folder = Folder::new();
    let rows = "SELECT * FROM (VALUES (1, '1', 1.50, true), (2, '2', 2.25, false), (3, NULL, NULL, NULL)) AS t(id, _n, d, b)";
    let rows = rows.replace("1.50", "CAST(1.50 AS DECIMAL(18,15))");
    let copy = format!("COPY ({rows}) TO 'typed' STORED AS PARQUET PARTITIONED BY (_n, d, b)");
    assert_eq!(run(&folder, &["sql", &copy]), (0, String::new()));
    let output = |args: &[&str]| String::from_utf8(folder.run(args).output().unwrap().stdout).unwrap();
    let expected = "{\"id\":1,\"_n\":\"1\",\"d\":\"1.500000000000000\",\"b\":true}\n{\"id\":2,\"_n\":\"2\",\"d\":\"2.250000000000000\",\"b\":false}\n{\"id\":3,\"_n\":null,\"d\":null,\"b\":null}\n";
    assert_eq!(output(&["sql", "SELECT * FROM 'typed' ORDER BY id"]), expected);
    assert_eq!(output(&["count", "typed"]).trim(), "3");
    // A partition that does not fit what was noted: its column is what all values are.
    fs::create_dir_all(folder.path("typed/_n=9/d=much/b=true")).unwrap();
    let file = walk(&folder.path("typed/_n=1"));
    fs::copy(file, folder.path("typed/_n=9/d=much/b=true/x.parquet")).unwrap();
    assert!(output(&["cat", "-c", "d", "-w", "d = 'much'", "typed"]).contains("much"));
    let copy = "COPY (SELECT 1 AS id, '__HIVE_DEFAULT_PARTITION__' AS p) TO 'none' STORED AS PARQUET PARTITIONED BY (p)";
    let (code, said) = run(&folder, &["sql", copy]);
    assert!(code != 0 && said.contains("stands for null"), "{code}: {said}");
    assert!(!folder.path("none").exists());
}

/// The only file below a folder.
fn walk(folder: &std::path::Path) -> std::path::PathBuf {
    let next = fs::read_dir(folder).unwrap().next().unwrap().unwrap().path();
    if next.is_dir() { walk(&next) } else { next }
}

#[test]
fn a_report_does_not_replace_the_rows_that_it_is_about() {
    let folder = Folder::new();
    for name in ["saved.csv", "./saved.csv"] {
        let (code, said) = run(&folder, &["salvage", "people.parquet", "saved.csv", "--report", name]);
        assert!(code == 2 && said.contains("is written by the same call"), "{code}: {said}");
        assert!(!folder.path("saved.csv").exists());
    }
}

/// What is read takes a part of the handles that a process may have; outputs, folders and the schemas beside segments need some too.
#[test]
fn more_files_than_may_be_open_are_read_and_written() {
    const FILES: usize = 100;
    let folder = Folder::new();
    for (name, extension) in [("parquet", "parquet"), ("red", "red"), ("segments", "dat"), ("csv", "csv")] {
        fs::create_dir(folder.path(name)).unwrap();
        let first = format!("{name}/0.{extension}");
        folder.convert("people.csv", &first);
        for number in 1..FILES {
            for beside in fs::read_dir(folder.path(name)).unwrap().map(|entry| entry.unwrap().path()) {
                let copy = beside
                    .file_name()
                    .unwrap()
                    .to_str()
                    .unwrap()
                    .strip_prefix("0.")
                    .map(|rest| folder.path(&format!("{name}/{number}.{rest}")));
                copy.map(|copy| fs::copy(&beside, copy).unwrap());
            }
        }
    }
    for number in 0..FILES {
        fs::create_dir_all(folder.path(&format!("hive/p={number}"))).unwrap();
        fs::copy(folder.path("people.parquet"), folder.path(&format!("hive/p={number}/a.parquet"))).unwrap();
    }
    let program = env!("CARGO_BIN_EXE_pilaster");
    for name in ["parquet", "red", "segments", "csv", "hive"] {
        for (number, args) in [
            format!("count {name}"),
            format!("convert --overwrite {name} out.parquet && '{program}' count out.parquet"),
            format!("salvage --overwrite {name} saved.parquet && '{program}' count saved.parquet"),
            format!("sql \"SELECT count(*) AS rows FROM '{name}'\" | tr -dc 0-9"),
            format!("verify {name} > verified && echo {}", FILES * 5),
        ]
        .into_iter()
        .enumerate()
        {
            let script = format!("set -o pipefail; ulimit -n 64; '{program}' -q {args}");
            let done =
                Command::new("bash").args(["-c", &script]).current_dir(folder.path("")).output().unwrap();
            let said = String::from_utf8_lossy(&done.stderr);
            assert!(done.status.success(), "{number} {args}: {said}");
            assert_eq!(
                String::from_utf8_lossy(&done.stdout).trim(),
                (FILES * 5).to_string(),
                "{args}: {said}"
            );
        }
    }
}
