//! Backup repositories: the files of a tablet under names that carry the MD5 of their content.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    missing_docs,
    reason = "tests compute with known values and stop at the first surprise"
)]

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use md5::{Digest, Md5};
use pilaster_core::progress::Silent;
use pilaster_core::{Dataset, Limits, Severity, VerifyDepth, VerifyReport};
use pilaster_doris::tablet::{
    TabletFolder, TabletOptions, TabletReader, TabletWriteOptions, TabletWriter, find_tablets,
};
use pilaster_doris::{TableModel, TabletSchema};
use support::batches;

fn batch(keys: &[i64]) -> RecordBatch {
    let keys: ArrayRef = Arc::new(Int64Array::from(keys.to_vec()));
    RecordBatch::try_from_iter_with_nullable([("key", keys, false)]).unwrap()
}

/// A repository with one tablet of two loads, its files marked by `mark`, and the folder of the tablet.
fn repository(root: &Path, mark: &str) -> PathBuf {
    let schema = TabletSchema::from_arrow(&batch(&[]).schema(), &TableModel::unique(["key"])).unwrap();
    let snapshot = root.join("snapshot");
    let mut writer = TabletWriter::create(&snapshot, &schema, &TabletWriteOptions::default()).unwrap();
    for keys in [[1, 2], [2, 3]] {
        writer.write(&batch(&keys)).unwrap();
        writer.finish_rowset().unwrap();
    }
    let written = writer.finish().unwrap().folder;
    let backup = root.join("backup");
    let target = backup
        .join("__palo_repository_main/__ss_monday/__ss_content/__db_1/__tbl_2/__part_3/__idx_2/__10001");
    fs::create_dir_all(&target).unwrap();
    for file in fs::read_dir(written.path()).unwrap().map(|entry| entry.unwrap()) {
        let content = fs::read(file.path()).unwrap();
        let md5: String = Md5::digest(&content).iter().map(|byte| format!("{byte:02x}")).collect();
        let name = format!("{mark}{}.{md5}", file.file_name().to_str().unwrap());
        fs::write(target.join(name), content).unwrap();
    }
    target
}

fn only_tablet(root: &Path) -> TabletFolder {
    let mut found = find_tablets(root.join("backup"), &Limits::default()).unwrap().tablets;
    assert_eq!(found.len(), 1);
    found.remove(0)
}

fn verify(root: &Path, options: &TabletOptions, depth: VerifyDepth) -> VerifyReport {
    TabletReader::open(&only_tablet(root), options).unwrap().verify(depth, &Silent).unwrap()
}

#[test]
fn a_repository_opens_as_a_snapshot_does() {
    for mark in ["", "__"] {
        let root = tempfile::tempdir().unwrap();
        repository(root.path(), mark);
        let reader = TabletReader::open(&only_tablet(root.path()), &TabletOptions::default()).unwrap();
        let rows = batches(reader.scan()).unwrap();
        let keys =
            rows.iter().flat_map(|batch| batch.column(0).as_primitive::<Int64Type>().values().to_vec());
        let mut keys: Vec<_> = keys.collect();
        keys.sort_unstable();
        assert_eq!(keys, [1, 2, 3]);
        let options = TabletOptions::default();
        let header = verify(root.path(), &options, VerifyDepth::Footer);
        let checksums = verify(root.path(), &options, VerifyDepth::Checksums);
        assert_eq!((header.findings, checksums.findings), (vec![], vec![]));
        // The header and two segments.
        assert_eq!(checksums.checksums - header.checksums, 3 + checksums.blocks - header.blocks);
    }
}

#[test]
fn contents_that_are_not_those_of_the_name_are_found() {
    let root = tempfile::tempdir().unwrap();
    let folder = repository(root.path(), "");
    let stored: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    let of_kind = |kind: &str| stored.iter().find(|path| path.to_str().unwrap().contains(kind)).unwrap();
    // A header that says the same in other bytes: only the name tells that it was changed.
    let header = of_kind(".hdr.");
    let whole = fs::read(header).unwrap();
    let mut changed = whole.clone();
    changed[8] ^= 1;
    fs::write(header, &changed).unwrap();
    let report = verify(root.path(), &TabletOptions::default(), VerifyDepth::Checksums);
    assert_eq!(report.findings.len(), 1, "{:?}", report.findings);
    assert!(!report.is_sound());
    assert_eq!(report.findings[0].path.as_ref(), header.to_str().unwrap());
    assert!(report.findings[0].message.contains("(in the file's name)"), "{}", report.findings[0]);
    assert_eq!(verify(root.path(), &TabletOptions::default(), VerifyDepth::Footer).findings, []);
    fs::write(header, &whole).unwrap();

    // A file that no rowset of the tablet names costs no row.
    fs::write(folder.join(format!("0{}_0.dat.{}", "2".repeat(47), "0".repeat(32))), b"left behind").unwrap();
    let report = verify(root.path(), &TabletOptions::default(), VerifyDepth::Values);
    assert_eq!(report.findings.len(), 1, "{:?}", report.findings);
    assert_eq!(report.findings[0].severity, Severity::Warning);
}
