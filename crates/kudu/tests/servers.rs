//! Whole servers: what `verify` says beside Kudu's own tool, several replicas, secrets, orphaned blocks.
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

use pilaster_core::progress::Silent;
use pilaster_core::{DatasetRef, Literal, VerifyDepth, VerifyReport, col};
use pilaster_kudu::store::{KuduStore, KuduStoreOptions};
use pilaster_testing::needs;
use support::tables::{compare, expectations, expected_rows, rows_of};

fn store(folders: &[PathBuf]) -> KuduStore {
    KuduStore::open(folders, KuduStoreOptions::default()).unwrap()
}

fn verify(store: &KuduStore) -> VerifyReport {
    store.verify(None, VerifyDepth::Values, &Silent).unwrap()
}

/// Folders with a `case.json` and an `fs`.
fn cases(root: &Path) -> Vec<PathBuf> {
    let mut cases: Vec<_> = std::fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path()).collect();
    cases.retain(|case| case.join("case.json").is_file() && case.join("fs").is_dir());
    cases.sort();
    cases
}

/// Damage that `kudu fs check` does not look for.
const BEYOND: &[&str] = &["cfile-flip", "superblock-missing", "wal-flip", "wal-missing"];

/// What `kudu fs check` printed behind a label.
fn printed(report: &str, label: &str) -> Option<u64> {
    let line = report.lines().find(|line| line.starts_with(label))?;
    line[label.len()..].trim_start_matches(':').split_whitespace().next()?.parse().ok()
}

#[needs(goldens = "kudu", goldens = "kudu-extra")]
#[test]
fn verify_agrees_with_kudu_fs_check_and_sees_what_that_does_not() {
    let goldens = support::goldens();
    let root = goldens.join("../kudu-extra/damaged");
    let mut seen = 0;
    for folder in std::fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path()) {
        let Ok(theirs) = std::fs::read_to_string(folder.join("kudu-fs-check.txt")) else { continue };
        let kind = folder.file_name().unwrap().to_str().unwrap();
        let store = store(&[folder.join("fs")]);
        let (check, report) = (store.check(), verify(&store));
        let findings: Vec<_> = report.findings.iter().map(ToString::to_string).collect();
        for (label, ours) in [
            ("Total live blocks", check.live_blocks),
            ("Total live bytes", check.live_bytes),
            ("Total missing blocks", check.missing_blocks()),
            ("Total orphaned blocks", check.orphaned_blocks),
            ("Total orphaned block bytes", check.orphaned_bytes),
        ] {
            if let Some(theirs) = printed(&theirs, label) {
                assert_eq!(ours, theirs, "{kind}: {label}");
                seen += 1;
            }
        }
        for (tablet, blocks) in &check.missing {
            let ids: Vec<_> = blocks.iter().map(|id| format!("{id:016}")).collect();
            let line = format!("tablet {tablet} missing blocks: [ {} ]", ids.join(", "));
            assert!(theirs.contains(&line) || !theirs.contains("missing blocks: ["), "{kind}: {line}");
        }
        let is_refused = theirs.contains("exit status 1");
        assert_eq!(!report.is_sound(), is_refused || BEYOND.contains(&kind), "{kind}: {findings:#?}");
    }
    assert!(seen > 50, "{seen} numbers compared");
}

#[needs(goldens = "kudu", goldens = "kudu-extra")]
#[test]
fn every_golden_server_is_sound() {
    let goldens = support::goldens();
    let mut servers = 0;
    for case in cases(&goldens).into_iter().chain(cases(&goldens.join("../kudu-extra"))) {
        let store = store(&[case.join("fs")]);
        let report = verify(&store);
        assert!(report.is_sound(), "{}: {:#?}", case.display(), report.findings);
        assert!(store.check().missing.is_empty() && report.files > 0, "{}", case.display());
        servers += 1;
    }
    assert!(servers > 20);
}

fn all_rows(dataset: &DatasetRef) -> support::tables::Rows {
    let batches: Vec<_> = dataset.scan().read().unwrap().collect::<Result<_, _>>().unwrap();
    rows_of(&batches)
}

/// Copies a folder without the files that `leaves_out` names.
fn copy_without(from: &Path, to: &Path, leaves_out: &dyn Fn(&Path) -> bool) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        let (path, target) = (entry.path(), to.join(entry.file_name()));
        if leaves_out(&path) {
            continue;
        }
        if path.is_dir() {
            copy_without(&path, &target, leaves_out);
        } else {
            std::fs::copy(&path, target).unwrap();
        }
    }
}

fn is_named(path: &Path, name: &str) -> bool {
    path.file_name().is_some_and(|found| found == name)
}

/// Without superblocks and logs nothing but blocks is left: rowsets are put together, and give all that was flushed.
#[needs(goldens = "kudu")]
#[test]
fn orphaned_rowsets_give_the_rows_of_their_tables() {
    let goldens = support::goldens();
    for case in ["base", "keys", "file-bm", "tiny"] {
        let case = goldens.join(case);
        let target = tempfile::tempdir().unwrap();
        copy_without(&case.join("fs"), target.path(), &|path| {
            is_named(path, "tablet-meta") || is_named(path, "wals")
        });
        let whole = store(&[case.join("fs")]);
        let orphaned = store(&[target.path().to_path_buf()]);
        assert_eq!(orphaned.tables(), Vec::<String>::new());
        let groups = orphaned.orphans();
        assert_eq!(
            groups.iter().map(|group| group.blocks.len() as u64).sum::<u64>(),
            orphaned.check().live_blocks,
            "every block is listed once"
        );
        let rowsets: usize = whole.tablets().iter().map(|tablet| tablet.rowsets).sum();
        let found = groups.iter().filter(|group| group.is_rowset).count();
        assert_eq!(found, rowsets, "{}", case.display());
        // Names and digits are not in the blocks, so tables are compared by the number and the text of their keys.
        let mut ours = 0;
        for group in groups.iter().filter(|group| group.is_rowset) {
            let table = orphaned.orphan(&group.name).unwrap();
            ours += all_rows(&table).len();
        }
        let theirs: usize =
            whole.tables().iter().map(|name| all_rows(&whole.dataset(Some(name)).unwrap()).len()).sum();
        if case.ends_with("base") || case.ends_with("keys") || case.ends_with("tiny") {
            assert_eq!(ours, theirs, "{}", case.display());
        }
    }
}

/// A table of the same types gives the orphans its names, so that rows compare.
#[needs(goldens = "kudu", goldens = "kudu-extra")]
#[test]
fn orphans_take_names_from_a_table_of_the_same_types() {
    let goldens = support::goldens();
    let case = goldens.join("../kudu-extra/damaged");
    let folder = case.join("superblock-missing/fs");
    let store = store(&[folder]);
    let groups = store.orphans();
    assert_eq!(groups.iter().map(|group| group.blocks.len()).sum::<usize>(), 14);
    let rowset = groups.iter().find(|group| group.is_rowset).unwrap();
    assert!(rowset.tablet.is_some());
    let latest = expectations(&case).into_iter().find(|expected| expected.as_of.is_none()).unwrap();
    let table = store.orphan(&rowset.name).unwrap();
    compare(&all_rows(&table), &expected_rows(&latest, &table.schema())).unwrap();
}

/// Without a record a CFile is found by its content, and can be read alone.
#[test]
fn blocks_without_records_are_offered_one_by_one() {
    let target = tempfile::tempdir().unwrap();
    copy_without(&support::testdata().join("tiny/fs"), target.path(), &|path| {
        is_named(path, "tablet-meta")
            || is_named(path, "wals")
            || path.extension().is_some_and(|extension| extension == "metadata")
    });
    let whole = store(&[support::testdata().join("tiny/fs")]);
    let orphaned = store(&[target.path().to_path_buf()]);
    let groups = orphaned.orphans();
    assert_eq!(groups.len() as u64, whole.check().live_blocks);
    for group in &groups {
        assert_eq!((group.is_rowset, group.blocks.len(), group.blocks[0].block), (false, 1, None));
        orphaned.orphan(&group.name).unwrap();
    }
    assert!(orphaned.orphan("nothing").is_err());
}

/// The folders of three servers that were killed one after the other while rows were written.
fn replicated() -> Vec<PathBuf> {
    let fs = support::testdata().join("replicated/fs");
    ["ts0", "ts1", "ts2"].iter().map(|server| fs.join(server)).collect()
}

/// Rows that a client saw after the servers were started again.
fn people(dataset: &DatasetRef) -> support::tables::Rows {
    let case = support::testdata().join("replicated");
    let latest = expectations(&case).into_iter().find(|expected| expected.as_of.is_none()).unwrap();
    expected_rows(&latest, &dataset.schema())
}

/// What is said of the replicas of the only tablet.
fn notice(dataset: &DatasetRef) -> String {
    let of_replicas = dataset.findings().into_iter().filter(|finding| finding.part == "replicas");
    let notices: Vec<_> = of_replicas.map(|finding| finding.message).collect();
    assert_eq!(notices.len(), 1, "one notice for the tablet");
    notices.into_iter().next().unwrap()
}

fn uuid(folder: &Path) -> String {
    store(&[folder.to_path_buf()]).tablets()[0].server.clone()
}

#[test]
fn of_three_replicas_the_furthest_is_read_to_its_end() {
    let folders = replicated();
    for expected in expectations(&support::testdata().join("replicated")) {
        let options = KuduStoreOptions::default().with_as_of(expected.as_of);
        let table = KuduStore::open(&folders, options).unwrap().dataset(None).unwrap();
        compare(&all_rows(&table), &expected_rows(&expected, &table.schema())).unwrap();
    }
    let table = store(&folders).dataset(None).unwrap();
    let notice = notice(&table);
    assert!(notice.starts_with(&format!("3 replicas: read is server {}", uuid(&folders[2]))), "{notice}");
    assert!(notice.contains("of the whole ones none goes further"), "{notice}");
    assert!(notice.contains("may drop them"), "{notice}");
}

#[test]
fn one_replica_of_three_gives_what_is_surely_committed() {
    let all = people(&store(&replicated()).dataset(None).unwrap());
    for folder in replicated() {
        let table = store(std::slice::from_ref(&folder)).dataset(None).unwrap();
        let rows = all_rows(&table);
        assert!(rows.iter().all(|row| all.contains(row)) && rows.len() <= all.len());
        // The last operations of the furthest are in its log alone.
        let left_out = table.findings().iter().any(|finding| finding.message.contains("left out"));
        assert_eq!(left_out, folder.ends_with("ts2"), "{:#?}", table.findings());
        assert!(rows.len() < all.len());
    }
}

#[test]
fn two_of_three_voters_are_a_majority() {
    let folders = replicated();
    let all = people(&store(&folders).dataset(None).unwrap());
    let furthest = store(&folders[1..]).dataset(None).unwrap();
    compare(&all_rows(&furthest), &all).unwrap();
    // The two that died first know less, and agree on what they know.
    let table = store(&folders[..2]).dataset(None).unwrap();
    let rows = all_rows(&table);
    assert!(!table.findings().iter().any(|finding| finding.message.contains("left out")));
    assert!(rows.len() < all.len() && rows.iter().all(|row| all.contains(row)));
}

/// Blocks and an early operation of the furthest replica are lost: a whole one is read, and catches up from the log of the
/// other.
#[test]
fn a_whole_replica_is_read_and_takes_what_it_lacks_from_another_log() {
    let folders = replicated();
    let target = tempfile::tempdir().unwrap();
    let broken = target.path().join("broken");
    copy_without(&folders[2], &broken, &|path| path.extension().is_some_and(|extension| extension == "data"));
    let wal =
        std::fs::read_dir(broken.join("wals")).unwrap().next().unwrap().unwrap().path().join("wal-000000001");
    let mut bytes = std::fs::read(&wal).unwrap();
    bytes[1000] ^= 1;
    std::fs::write(wal, bytes).unwrap();
    let together = [folders[1].clone(), broken.clone()];
    let table = store(&together).dataset(None).unwrap();
    let notice = notice(&table);
    assert!(notice.starts_with(&format!("2 replicas: read is server {}", uuid(&folders[1]))), "{notice}");
    assert!(notice.contains("operations after that come from the log of server"), "{notice}");
    compare(&all_rows(&table), &people(&table)).unwrap();
    // The broken one can still be asked for by name.
    let options = KuduStoreOptions::default().with_replica(Some(uuid(&folders[2])));
    let table = KuduStore::open(&together, options).unwrap().dataset(None).unwrap();
    assert!(table.scan().read().is_err());
}

/// The state of a superblock is changed and its checksum made right again.
fn set_state(folder: &Path, state: u8) {
    let path = std::fs::read_dir(folder.join("tablet-meta")).unwrap().next().unwrap().unwrap().path();
    let mut bytes = std::fs::read(&path).unwrap();
    let word = |bytes: &[u8], at: usize| u32::from_le_bytes(*bytes[at..].first_chunk().unwrap()) as usize;
    let record = 16 + 8 + word(&bytes, 16) + 4;
    let message = record + 8..record + 8 + word(&bytes, record);
    // Fields stand in order; field 10 follows field 9, the version of the schema.
    let at = message.clone().find(|at| bytes[*at..].starts_with(&[0x48, 0, 0x50, 1])).unwrap() + 3;
    bytes[at] = state;
    let crc = pilaster_encoding::checksum::crc32c(&bytes[message.clone()]);
    bytes[message.end..message.end + 4].copy_from_slice(&crc.to_le_bytes());
    std::fs::write(path, bytes).unwrap();
}

#[test]
fn a_half_copied_or_tombstoned_replica_never_wins() {
    let folders = replicated();
    for (state, name) in [(0, "half copied"), (3, "")] {
        let target = tempfile::tempdir().unwrap();
        copy_without(&folders[2], target.path(), &|_| false);
        set_state(target.path(), state);
        let table = store(&[folders[0].clone(), folders[1].clone(), target.path().to_path_buf()])
            .dataset(None)
            .unwrap();
        let notice = notice(&table);
        assert!(notice.contains(&format!("read is server {}", uuid(&folders[0]))), "{notice}");
        assert!(notice.contains(name), "{notice}");
        assert!(table.scan().read().is_ok(), "{:#?}", table.findings());
        // Alone, a half copy is never taken for the whole, and what was removed is no table.
        let alone = store(&[target.path().to_path_buf()]);
        match state {
            0 => assert!(alone.dataset(None).unwrap().scan().read().is_err()),
            _ => assert!(alone.tables().is_empty()),
        }
    }
}

/// The folder of a master: one tablet, the system catalog.
fn master() -> Vec<PathBuf> {
    vec![support::testdata().join("master/fs")]
}

#[test]
fn private_keys_of_a_master_are_shown_only_if_asked_for() {
    let redacted = store(&master());
    assert_eq!(redacted.tables(), ["sys.catalog"]);
    assert!(redacted.table(None).unwrap_err().to_string().contains("private keys"));
    let options = KuduStoreOptions::default().with_secrets(true);
    let open = KuduStore::open(&master(), options).unwrap();
    let (ours, secret) = (all_rows(&redacted.dataset(None).unwrap()), all_rows(&open.dataset(None).unwrap()));
    assert_eq!(ours.len(), secret.len());
    let hidden = "<redacted>".bytes().map(|byte| format!("{byte:02x}")).collect::<String>();
    let mut secrets = 0;
    for (ours, secret) in ours.iter().zip(&secret) {
        assert_eq!(ours[..2], secret[..2]);
        let is_secret = ["3", "4"].contains(&secret[0].as_deref().unwrap());
        assert_eq!(ours[2].as_deref() == Some(hidden.as_str()), is_secret);
        assert_eq!(ours[2] == secret[2], !is_secret);
        secrets += usize::from(is_secret);
    }
    assert!(secrets >= 2, "an authority and a signing key");
    // A filter sees what is shown, not what is hidden.
    let hex = secret.iter().find(|row| row[0].as_deref() == Some("3")).unwrap()[2].clone().unwrap();
    let key: Vec<u8> =
        (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect();
    let key = arrow_array::BinaryViewArray::from_iter_values([key]);
    let filter = col("metadata").eq(Literal::from_array(&key, 0));
    let dataset = redacted.dataset(None).unwrap();
    let batches = dataset.scan().filter(filter).read().unwrap();
    assert_eq!(batches.map(|batch| batch.unwrap().num_rows()).sum::<usize>(), 0);
    let words = arrow_array::BinaryViewArray::from_iter_values([b"<redacted>"]);
    let filter = col("metadata").eq(Literal::from_array(&words, 0));
    let batches = dataset.scan().project(["entry_type"]).filter(filter).read().unwrap();
    assert_eq!(batches.map(|batch| batch.unwrap().num_rows()).sum::<usize>(), secrets);
}

#[test]
fn tokens_of_a_log_are_shown_only_if_asked_for() {
    let tokens = |secrets: bool| -> Vec<String> {
        let options = KuduStoreOptions::default().with_secrets(secrets);
        let logs = KuduStore::open(&replicated()[..1], options).unwrap().logs(None).unwrap();
        logs.into_iter().flat_map(|log| log.lines).filter_map(|line| line.token).collect()
    };
    let (hidden, shown) = (tokens(false), tokens(true));
    assert!(!hidden.is_empty() && hidden.len() == shown.len());
    assert!(hidden.iter().all(|token| token == "<redacted>"));
    assert!(
        shown.iter().all(|token| token.len() > 100 && token.bytes().all(|byte| byte.is_ascii_hexdigit()))
    );
}

/// Every block of a table with a compound key is lost in turn, and its log with it: key columns come back from the index of
/// keys, the index from the key columns; other columns are lost.
#[needs(goldens = "kudu")]
#[test]
fn a_lost_key_column_comes_back_from_the_index_of_keys() {
    let goldens = support::goldens();
    let case = support::golden::Case::open(&goldens.join("keys"));
    let (mut whole, mut lost) = (0, 0);
    for table in case.tables() {
        let keys: Vec<_> = table.columns.iter().filter(|column| column.is_key).collect();
        let Some(rowset) = case.rowsets(&table.name).into_iter().next().filter(|_| keys.len() > 1) else {
            continue;
        };
        for ((kind, column), listed) in rowset {
            let target = tempfile::tempdir().unwrap();
            copy_without(&case.folder.join("fs"), target.path(), &|_| false);
            delete_block(target.path(), listed.block);
            let options = KuduStoreOptions::default().with_log(pilaster_kudu::tablet::LogUse::Ignore);
            let store = KuduStore::open(&[target.path().to_path_buf()], options).unwrap();
            let found = store.dataset(Some(&table.name)).unwrap();
            let is_key = keys.iter().any(|key| key.name == column);
            let at = format!("{} {kind} {column}", table.name);
            match (kind, is_key) {
                ("column", false) => {
                    assert!(found.scan().read().is_err(), "{at}");
                    lost += 1;
                }
                _ => {
                    let expected = support::tables::Expected {
                        table: table.name.clone(),
                        as_of: None,
                        rows: case.folder.join(format!("expected/{}.jsonl.gz", table.name)),
                    };
                    compare(&all_rows(&found), &expected_rows(&expected, &found.schema())).unwrap();
                    assert!(!found.findings().is_empty(), "{at}");
                    whole += 1;
                }
            }
        }
    }
    assert!(whole > 10 && lost > 2, "{whole} whole, {lost} lost");
}

/// Takes a block out of its container: its CREATE record is replaced by one whose bytes lie elsewhere.
fn delete_block(folder: &Path, block: u64) {
    for path in std::fs::read_dir(folder.join("data")).unwrap().map(|entry| entry.unwrap().path()) {
        if path.extension().is_none_or(|extension| extension != "metadata") {
            continue;
        }
        let mut bytes = std::fs::read(&path).unwrap();
        let mut id = vec![0x0a, 9, 9];
        id.extend(block.to_le_bytes());
        id.extend([0x10, 1]);
        let Some(at) = bytes.windows(id.len()).position(|window| window == id) else { continue };
        // Another id: the record is good, and the block no longer there.
        bytes[at + 3..at + 11].copy_from_slice(&(u64::MAX / 2).to_le_bytes());
        let length = u32::from_le_bytes(*bytes[at - 8..].first_chunk().unwrap()) as usize;
        let crc = pilaster_encoding::checksum::crc32c(&bytes[at..at + length]);
        bytes[at + length..at + length + 4].copy_from_slice(&crc.to_le_bytes());
        std::fs::write(path, bytes).unwrap();
        return;
    }
    panic!("no record of block {block}");
}

/// Changes a text in a log entry and makes its checksums right again.
fn change_text(wal: &Path, from: &[u8], to: &[u8]) {
    let mut bytes = std::fs::read(wal).unwrap();
    let word = |bytes: &[u8], at: usize| u32::from_le_bytes(*bytes[at..].first_chunk().unwrap()) as usize;
    let mut at = 12 + word(&bytes, 8);
    while at + 16 < bytes.len() {
        let payload = at + 16..at + 16 + word(&bytes, at);
        if let Some(found) = bytes[payload.clone()].windows(from.len()).position(|window| window == from) {
            bytes[payload.start + found..][..to.len()].copy_from_slice(to);
            let crc = pilaster_encoding::checksum::crc32c(&bytes[payload]);
            bytes[at + 8..at + 12].copy_from_slice(&crc.to_le_bytes());
            let crc = pilaster_encoding::checksum::crc32c(&bytes[at..at + 12]);
            bytes[at + 12..at + 16].copy_from_slice(&crc.to_le_bytes());
            std::fs::write(wal, bytes).unwrap();
            return;
        }
        at = payload.end;
    }
    panic!("no such text in {}", wal.display());
}

#[test]
fn replicas_that_differ_are_found() {
    let folders = replicated();
    let report = verify(&store(&folders));
    assert!(report.is_sound(), "{:#?}", report.findings);
    let target = tempfile::tempdir().unwrap();
    copy_without(&folders[1], target.path(), &|_| false);
    let wal = std::fs::read_dir(target.path().join("wals")).unwrap().next().unwrap().unwrap().path();
    change_text(&wal.join("wal-000000001"), b"late 7", b"lame 7");
    let changed = store(&[folders[0].clone(), target.path().to_path_buf(), folders[2].clone()]);
    let report = verify(&changed);
    let errors: Vec<_> =
        report.findings.iter().filter(|finding| finding.severity == pilaster_core::Severity::Error).collect();
    assert!(!errors.is_empty(), "{:#?}", report.findings);
    for error in errors {
        let message = &error.message;
        assert!(
            message.contains("the same rows as on server") && message.contains(&uuid(&folders[1])),
            "{message}"
        );
    }
}
