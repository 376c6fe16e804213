//! Databases that RocksDB wrote: their pairs, and what is made of them when bytes of them are damaged.
#![allow(
    missing_docs,
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test"
)]

use std::collections::BTreeMap;
use std::path::Path;

use bytes::Bytes;
use pilaster_core::storage::MemoryStorage;
use pilaster_core::{Limits, Location, Result};
use pilaster_rocksdb::{Database, OnDamage, is_database};
use pilaster_testing::faults::{Fault, faulty};

type Pairs = Vec<(Vec<u8>, Vec<u8>)>;

struct Case {
    name: String,
    files: BTreeMap<String, Bytes>,
    /// By family, or why it is refused.
    expected: Result<BTreeMap<String, Pairs>, String>,
}

fn unhex(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
}

fn cases() -> Vec<Case> {
    let root = pilaster_testing::testdata("rocksdb");
    let mut cases = Vec::new();
    for entry in std::fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path()) {
        if !entry.is_dir() {
            continue;
        }
        let files = std::fs::read_dir(entry.join("database")).unwrap().map(|file| file.unwrap().path());
        let name = |path: &Path| path.file_name().unwrap().to_string_lossy().into_owned();
        let files = files.map(|path| (name(&path), std::fs::read(path).unwrap().into())).collect();
        let mut families: BTreeMap<String, Pairs> = BTreeMap::new();
        let (mut family, mut refused) = (String::new(), None);
        for line in std::fs::read_to_string(entry.join("pairs")).unwrap().lines() {
            if let Some(name) = line.strip_prefix("family ") {
                family = name.to_string();
                families.insert(family.clone(), Vec::new());
            } else if let Some(why) = line.strip_prefix("refused ") {
                refused = Some(why.to_string());
            } else {
                let (key, value) = line.split_once(' ').unwrap();
                families.get_mut(&family).unwrap().push((unhex(key), unhex(value)));
            }
        }
        cases.push(Case { name: name(&entry), files, expected: refused.map_or(Ok(families), Err) });
    }
    cases.sort_by(|a, b| a.name.cmp(&b.name));
    assert!(cases.len() >= 25, "{} cases", cases.len());
    cases
}

fn open(files: BTreeMap<String, Bytes>, on_damage: OnDamage) -> Result<Database> {
    let folder = MemoryStorage::with_files("memory", files).root();
    Database::open(&folder, &Limits::small(), on_damage)
}

fn pairs(database: &Database, family: &str) -> Result<Pairs> {
    database.pairs(family)?.map(|pair| pair.map(|(key, value)| (key, value.to_vec()))).collect()
}

#[test]
fn every_database_gives_the_pairs_that_rocksdb_reads() {
    for case in cases() {
        let database = open(case.files.clone(), OnDamage::Stop).unwrap();
        let families = match &case.expected {
            Ok(families) => families,
            Err(why) => {
                let error = pairs(&database, "default").unwrap_err().to_string();
                assert!(error.contains(why), "{}: {error}", case.name);
                continue;
            }
        };
        assert_eq!(database.families().collect::<Vec<_>>().len(), families.len(), "{}", case.name);
        for (family, expected) in families {
            assert_eq!(&pairs(&database, family).unwrap(), expected, "{} {family}", case.name);
            for (at, (key, value)) in expected.iter().enumerate().step_by(7) {
                let found = database.get(family, key).unwrap();
                assert_eq!(found.as_deref(), Some(value.as_slice()), "{}", case.name);
                let from = database.pairs_from(family, key).unwrap();
                assert_eq!(from.count(), expected.len() - at, "{}", case.name);
            }
            assert_eq!(database.get(family, b"no such key").unwrap(), None);
        }
        assert!(database.pairs("no such family").unwrap_err().is_damage());
        assert_eq!(database.findings(), [], "{}", case.name);
    }
}

#[test]
fn a_folder_is_read_and_stays_as_it_is() {
    let root = pilaster_testing::testdata("rocksdb").join("levels/database");
    let case = cases().into_iter().find(|case| case.name == "levels").unwrap();
    let database = Database::open(&Location::local(&root), &Limits::small(), OnDamage::Stop).unwrap();
    assert_eq!(pairs(&database, "default").unwrap(), case.expected.unwrap()["default"]);
    let after = std::fs::read_dir(&root).unwrap().count();
    assert_eq!(after, case.files.len());
}

/// What may be said of a database of which one file was changed.
fn judge(case: &Case, name: &str, content: Option<Vec<u8>>, is_prefix: bool) {
    let mut files = case.files.clone();
    match content {
        Some(content) => drop(files.insert(name.to_string(), content.into())),
        None => drop(files.remove(name)),
    }
    let Ok(families) = &case.expected else { return };
    // A log or a manifest that ends between two records looks like one that was never longer.
    let may_be_shorter = is_prefix && !name.ends_with(".sst");
    for (family, expected) in families {
        let known: BTreeMap<_, _> = expected.iter().cloned().collect();
        if let Ok(database) = open(files.clone(), OnDamage::Stop)
            && let Ok(found) = pairs(&database, family)
            && database.findings().is_empty()
            && !may_be_shorter
        {
            assert_eq!(&found, expected, "{} {family}: {name} was damaged", case.name);
        }
        // What is left has only pairs that were there, or older values, and the loss is named.
        let Ok(database) = open(files.clone(), OnDamage::Skip) else { continue };
        if let Ok(found) = pairs(&database, family)
            && found.iter().cloned().collect::<BTreeMap<_, _>>() != known
            && !may_be_shorter
        {
            assert!(!database.findings().is_empty(), "{} {family}: {name} was damaged", case.name);
        }
    }
}

#[test]
fn a_changed_byte_is_an_error_or_changes_nothing() {
    for case in cases().iter().filter(|case| case.name != "v6-no-checksum") {
        for (name, bytes) in &case.files {
            let step = (bytes.len() / 400).max(1);
            for at in (0..bytes.len()).step_by(step) {
                let mut changed = bytes.to_vec();
                changed[at] ^= 1 << (at % 8);
                judge(case, name, Some(changed), false);
            }
        }
    }
}

#[test]
fn a_file_that_is_cut_or_not_here_is_never_a_whole_one() {
    for case in cases() {
        for (name, bytes) in &case.files {
            let step = (bytes.len() / 150).max(1);
            for length in (0..bytes.len()).step_by(step) {
                judge(&case, name, Some(bytes[..length].to_vec()), true);
            }
            judge(
                &case,
                name,
                None,
                name.ends_with(".log") && case.files.keys().filter(|name| name.ends_with(".log")).count() > 1,
            );
        }
    }
}

#[test]
fn a_call_that_fails_is_named_and_costs_no_pair_in_silence() {
    for name in ["levels", "families", "log-only", "v6-xxh3-two-levels"] {
        let case = cases().into_iter().find(|case| case.name == name).unwrap();
        let folder = MemoryStorage::with_files("memory", case.files.clone()).root();
        let (family, expected) = case.expected.as_ref().unwrap().iter().next().unwrap();
        for at in 0.. {
            let read = |fault, on_damage| {
                let (folder, faults) = faulty(&folder, at, fault);
                let read = Database::open(&folder, &Limits::small(), on_damage)
                    .and_then(|database| Ok((pairs(&database, family)?, database.findings())));
                (read, faults.happened())
            };
            let refused = Fault::Refuse(std::io::ErrorKind::PermissionDenied);
            let (read_all, happened) = read(refused, OnDamage::Stop);
            let Some((call, path)) = happened else {
                assert_eq!(&read_all.unwrap().0, expected, "{name}");
                break;
            };
            let error = read_all.map(drop).unwrap_err();
            assert!(!error.is_damage() && error.to_string().contains(&path), "{name}, {call} {at}: {error}");
            if let (Ok((_, findings)), _) = read(refused, OnDamage::Skip) {
                let is_named = findings.iter().any(|finding| finding.to_string().contains(&path));
                assert!(is_named, "{name}, {call} of {path}: {findings:?}");
            }
        }
    }
}

#[test]
fn a_table_that_the_manifest_names_is_missed_by_name() {
    let case = cases().into_iter().find(|case| case.name == "levels").unwrap();
    let mut files = case.files.clone();
    let table = files.keys().find(|name| name.ends_with(".sst")).unwrap().clone();
    files.remove(&table);
    let error = open(files.clone(), OnDamage::Stop).unwrap().pairs("default").map(drop).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("memory: the table {table}, which the manifest names, is not here")
    );
    let database = open(files, OnDamage::Skip).unwrap();
    assert!(!pairs(&database, "default").unwrap().is_empty());
    assert!(database.findings().iter().any(|finding| finding.message.contains(&table)));
}

#[test]
fn a_lost_manifest_costs_no_pair_where_the_tables_say_whose_they_are() {
    for name in ["levels", "v5-zstd-xxh3", "families"] {
        let case = cases().into_iter().find(|case| case.name == name).unwrap();
        let manifest = case.files.keys().find(|name| name.starts_with("MANIFEST")).unwrap();
        let mut files = case.files.clone();
        files.remove(manifest);
        assert!(open(files.clone(), OnDamage::Stop).unwrap_err().is_damage());
        let database = open(files, OnDamage::Skip).unwrap();
        // Families that have no table yet are known to nobody.
        let family = if name == "families" { "meta" } else { "default" };
        assert_eq!(pairs(&database, family).unwrap(), case.expected.unwrap()[family], "{name}");
        assert!(!database.findings().is_empty());
    }
}

#[test]
fn a_folder_without_current_is_a_database_still() {
    let place = tempfile::tempdir().unwrap();
    let folder = Location::local(place.path());
    assert!(!is_database(&folder).unwrap() && !is_database(&folder.child("missing")).unwrap());
    let case = cases().into_iter().find(|case| case.name == "levels").unwrap();
    for (name, bytes) in case.files.iter().filter(|(name, _)| *name != "CURRENT") {
        std::fs::write(place.path().join(name), bytes).unwrap();
    }
    assert!(is_database(&folder).unwrap());
    let error = Database::open(&folder, &Limits::small(), OnDamage::Stop).unwrap_err();
    assert!(error.is_damage() && error.to_string().contains("the file CURRENT"), "{error}");
    let database = Database::open(&folder, &Limits::small(), OnDamage::Skip).unwrap();
    assert_eq!(pairs(&database, "default").unwrap(), case.expected.unwrap()["default"]);
    assert!(!database.findings().is_empty());
}
