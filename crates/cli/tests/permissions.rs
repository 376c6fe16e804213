//! Folders and files that may not be looked at, of tables of every system: they are named with the system's error, never taken for lost or
//! empty, and what is given in spite of them is everything.
#![cfg(unix)]
#![allow(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests compute with known values, and stop at the first surprise"
)]

#[allow(dead_code, reason = "no snapshots here")]
mod common;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use common::Folder;

fn testdata(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata").join(name)
}

/// A table, and what looks at it.
struct Table(Folder);

impl Table {
    fn copy_of(names: &[&str]) -> Self {
        let folder = Folder::new();
        match names {
            [only] => folder.copy(&testdata(only), "table"),
            several => {
                fs::create_dir(folder.path("table")).unwrap();
                for (number, name) in several.iter().enumerate() {
                    let file = Path::new(name).file_name().unwrap().to_string_lossy().into_owned();
                    folder.copy(&testdata(name), &format!("table/{number}-{file}"));
                }
            }
        }
        Self(folder)
    }

    /// The table's folders, and of the files in each the first with each extension.
    fn places(&self) -> Vec<String> {
        let (mut places, mut pending) = (Vec::new(), vec![PathBuf::from("table")]);
        while let Some(folder) = pending.pop() {
            let mut inside: Vec<_> = fs::read_dir(self.0.path(folder.to_str().unwrap()))
                .unwrap()
                .map(|e| e.unwrap().file_name())
                .collect();
            inside.sort();
            let mut kinds = BTreeSet::new();
            for path in inside.into_iter().map(|name| folder.join(name)) {
                match self.0.path(path.to_str().unwrap()).is_dir() {
                    true => pending.push(path),
                    false if kinds.insert(path.extension().map(ToOwned::to_owned)) => {
                        places.push(path.display().to_string());
                    }
                    false => {}
                }
            }
            places.push(folder.display().to_string());
        }
        places
    }

    fn calls() -> [Vec<&'static str>; 7] {
        [
            vec!["count", "table"],
            vec!["sql", "SELECT count(*) FROM 'table'"],
            vec!["verify", "table"],
            vec!["ls", "table"],
            vec!["ls", "-r", "table"],
            vec!["salvage", "-f", "csv", "table", "out/saved.csv"],
            vec!["recover", "table", "out/all"],
        ]
    }

    /// Does a call with an empty folder to write to; without permission on a place, if there is one.
    fn call(&self, place: Option<&str>, args: &[&str]) -> Output {
        let out = self.0.path("out");
        if out.is_dir() {
            fs::remove_dir_all(&out).unwrap();
        }
        fs::create_dir(&out).unwrap();
        fs::set_permissions(&out, std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
        match place {
            Some(place) => self.0.run_without_permission(place, args),
            None => self.0.run_bound(args),
        }
    }

    /// Every call without permission on every place, one after the other.
    fn go_through(&self) {
        let mut refused = 0;
        let wholes = Self::calls().map(|args| self.call(None, &args));
        for (args, whole) in Self::calls().iter().zip(&wholes) {
            assert_eq!(whole.status.code(), Some(0), "{args:?}: {}", said(whole));
        }
        for place in self.places() {
            for (args, whole) in Self::calls().iter().zip(&wholes) {
                let found = self.call(Some(&place), args);
                let text = said(&found);
                let name = place.rsplit('/').next().unwrap();
                let is_named = text.contains(name) && text.contains("Permission denied (os error 13)");
                let claims = ["is lost", "are lost", "found none", "found no container", "unknown number"];
                let claim = claims.iter().find(|claim| text.contains(**claim));
                match found.status.code() {
                    Some(2) => {
                        assert!(is_named && claim.is_none(), "{place} {args:?}: {text}");
                        refused += 1;
                    }
                    // Nothing that is needed is in it, or looked at; for `verify` nothing but that it is right.
                    Some(0) => {
                        assert!(!text.contains("Permission denied"), "{place} {args:?}: {text}");
                        assert!(
                            rows(&found) == rows(whole),
                            "{place} {args:?}: {text}\nwhole: {}",
                            said(whole)
                        );
                    }
                    other => panic!("{place} {args:?}: exit code {other:?}: {text}"),
                }
            }
        }
        assert!(refused > 0);
    }
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&[output.stdout.as_slice(), &output.stderr].concat()).into_owned()
}

/// What a call says of rows: all of its output, and the lines of words that count them.
fn rows(output: &Output) -> (String, Vec<String>) {
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    let lines = words.lines().filter(|line| line.contains("rows")).map(ToString::to_string);
    (String::from_utf8_lossy(&output.stdout).into_owned(), lines.collect())
}

#[test]
fn disks_of_kudu() {
    Table::copy_of(&["kudu/mixed/fs"]).go_through();
}

#[test]
fn disks_of_kudu_with_files_of_blocks() {
    Table::copy_of(&["kudu/file-blocks/fs"]).go_through();
}

#[test]
fn tables_of_carbondata() {
    for name in ["table/iud_update2", "table/part_overwritten", "stream/stream_map", "table/v1_dict_one"] {
        Table::copy_of(&[&format!("carbondata/{name}")]).go_through();
    }
}

#[test]
fn tablets_of_doris() {
    for name in ["merge-on-write", "duplicate"] {
        Table::copy_of(&[&format!("doris/{name}/tablet")]).go_through();
    }
}

/// Where a folder on the way to the tablets may not be looked into, nothing below says whose they are.
#[test]
fn storage_roots_of_doris() {
    let folder = Folder::new();
    for (name, shard) in [("merge-on-write", 0), ("duplicate", 1)] {
        folder.copy(&testdata(&format!("doris/{name}/tablet")), &format!("table/data/{shard}"));
    }
    let table = Table(folder);
    for place in table.places().iter().filter(|place| table.0.path(place).is_dir()) {
        for args in [&["ls", "table"][..], &["ls", "-r", "table"], &["ls", "."], &["verify", "table"]] {
            let found = table.call(Some(place), args);
            let text = said(&found);
            assert_eq!(found.status.code(), Some(2), "{place} {args:?}: {text}");
            assert!(
                text.contains(place) && text.contains("Permission denied (os error 13)"),
                "{place} {args:?}: {text}"
            );
        }
    }
}

#[test]
fn folders_of_files() {
    Table::copy_of(&["redfile/checkpoints_n3.red", "redfile/checkpoints_n3.red"]).go_through();
}
