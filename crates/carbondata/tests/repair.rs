//! Tables whose lost and damaged metadata is written anew.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    reason = "tests compute with known values"
)]

mod support;

use std::fs;
use std::path::{Path, PathBuf};

use pilaster_carbondata::table::{CarbonTableOptions, TableRepair, repair};
use pilaster_core::progress::Silent;
use pilaster_core::{Dataset, Literal, VerifyDepth, col};
use pilaster_testing::needs;
use support::damage::{ALL, Copy, Damage, damage};
use support::rows::{expected, rows};
use support::tables::{files_below, open, whole};
use support::{goldens, testdata};

fn run(folder: &Path) -> TableRepair {
    repair(folder, &CarbonTableOptions::default()).unwrap()
}

/// Damages each file that `is_it` chooses in every way, repairs, and compares; gives how many were written with the same bytes
/// as before.
fn heals(original: &Path, name: &str, is_it: &dyn Fn(&str) -> bool) -> (usize, usize) {
    let truth = expected(&original.with_extension("jsonl"));
    heals_to(original, name, &truth, is_it, &|path| fs::read(path).unwrap())
}

/// The same, where `before` gives the bytes that a file should have.
fn heals_to(
    original: &Path,
    name: &str,
    truth: &[String],
    is_it: &dyn Fn(&str) -> bool,
    before: &dyn Fn(&Path) -> Vec<u8>,
) -> (usize, usize) {
    let (mut count, mut same) = (0, 0);
    let all = Copy::of(original, name);
    let mut files = Vec::new();
    files_below(&all.1, &mut files);
    for path in files.iter().filter(|path| is_it(path.file_name().unwrap().to_str().unwrap())) {
        let place = path.strip_prefix(&all.1).unwrap();
        for how in ALL {
            let copy = Copy::of(original, name);
            let path = copy.1.join(place);
            damage(&path, how);
            let damaged = fs::read(&path).ok();
            let report = run(&copy.1);
            assert!(report.is_complete(), "{how:?} {}: {report:?}", place.display());
            let table = open(&copy.1);
            assert_eq!(rows(&whole(&table)), truth, "{how:?} {}", place.display());
            let verified = table.verify(VerifyDepth::Values, &Silent).unwrap();
            assert_eq!(verified.findings, [], "{how:?} {}", place.display());
            let Some(rebuilt) = report.rebuilt.iter().find(|rebuilt| rebuilt.path.path() == path) else {
                continue;
            };
            // The damaged one is still there.
            assert_eq!(rebuilt.kept.as_ref().map(|kept| fs::read(kept.path()).unwrap()), damaged);
            count += 1;
            same += usize::from(fs::read(&path).unwrap() == before(&original.join(place)));
            // A second repair finds nothing to do.
            assert_eq!(run(&copy.1), TableRepair::default());
        }
    }
    (count, same)
}

#[test]
fn index_files_are_written_from_footers() {
    let is_index = |name: &str| name.contains(".carbonindex");
    let (count, _) = heals(&testdata().join("table/iud_update2"), "repair-index", &is_index);
    assert!(count >= 3, "{count}");
}

#[needs(goldens = "carbondata")]
#[test]
fn index_files_of_the_golden_tables_are_written_from_footers() {
    let is_index = |name: &str| name.contains(".carbonindex");
    let mut all = heals(&testdata().join("table/iud_update2"), "repair-index", &is_index);
    let root = goldens();
    for table in ["v2.3/noindexmerge", "v2.3/types", "v2.3/bucket", "v2.3/part_loaded", "v1.6/d16_dict_three"]
    {
        let (count, same) = heals(&root.join("table").join(table), "repair-index", &is_index);
        all = (all.0 + count, all.1 + same);
    }
    eprintln!("{} index files written, {} with the same bytes", all.0, all.1);
    assert!(all.0 >= 60, "{all:?}");
}

/// The bytes of an index file of versions 1 and 2 with the names of its data files alone: before them is the path of the loader's
/// temporary folder, which no file tells and no reader looks at.
fn without_paths(path: &Path) -> Vec<u8> {
    let bytes = fs::read(path).unwrap();
    let mut out = Vec::new();
    let mut rest = bytes.as_slice();
    while let Some(at) = rest.windows(12).position(|window| window == b"/var/loader/") {
        let length = usize::from(rest[at - 1]);
        assert!(length < 128, "a length of one byte");
        let name = rest[at..at + length].rsplit(|byte| *byte == b'/').next().unwrap();
        out.extend_from_slice(&rest[..at - 1]);
        out.push(name.len() as u8);
        out.extend_from_slice(name);
        rest = &rest[at + length..];
    }
    out.extend_from_slice(rest);
    out
}

#[needs(goldens = "carbondata")]
#[test]
fn index_files_of_versions_1_and_2_are_written_from_footers() {
    let root = goldens();
    let is_index = |name: &str| name.ends_with(".carbonindex");
    let mut all = 0;
    for (name, folder) in support::sorted(&root.join("table/v1.0"))
        .into_iter()
        .filter(|path| path.is_dir())
        .map(|path| (path.file_name().unwrap().to_str().unwrap().to_string(), path))
    {
        let truth = rows(&whole(&open(&folder)));
        let (count, same) = heals_to(&folder, &format!("repair-{name}"), &truth, &is_index, &without_paths);
        assert_eq!(count, same, "{name}");
        all += count;
    }
    // Those of segments that were merged into others are not looked at.
    assert!(all >= 16 * ALL.len(), "{all}");
}

#[test]
fn the_index_of_a_stream_is_written_from_its_blocklets() {
    // Batches of one row, which have no statistics of their own; nested columns, which have none at all.
    for name in ["stream_nested", "stream_types", "stream_map", "stream_1_6"] {
        let is_stream = |name: &str| name == "0_batchno0-0-0-0.carbonindex";
        let (count, same) = heals(&testdata().join("stream").join(name), name, &is_stream);
        // Garbage may only make the statistics wider, which is no fault.
        assert!(count >= 3 && same == count, "{name}: {count} and {same}");
    }
}

#[needs(goldens = "carbondata")]
#[test]
fn the_index_of_a_golden_stream_is_written_from_its_blocklets() {
    let root = goldens();
    for name in ["stream_open", "stream_finished"] {
        let is_stream = |name: &str| name == "0_batchno0-0-0-0.carbonindex";
        let (count, same) = heals(&root.join("table/v2.3").join(name), name, &is_stream);
        assert_eq!((count, same), (ALL.len(), ALL.len()), "{name}");
    }
}

#[needs(goldens = "carbondata")]
#[test]
fn the_index_of_a_stream_counts_whole_blocklets_and_loses_none() {
    let root = goldens();
    let folder = |copy: &Copy| copy.1.join("Fact/Part0/Segment_1");
    let data = |copy: &Copy| folder(copy).join("part-0-0_batchno0-0-1-0.snappy.carbondata");
    let index = |copy: &Copy| folder(copy).join("0_batchno0-0-0-0.carbonindex");
    let bytes = |copy: &Copy| fs::read(data(copy)).unwrap();
    // A batch that was not finished is not part of the table, before and after.
    let copy = Copy::of(&root.join("table/v2.3/stream_open"), "stream-unfinished");
    let (whole_rows, known) = (rows(&whole(&open(&copy.1))), fs::read(index(&copy)).unwrap());
    let mut longer = bytes(&copy);
    longer.extend_from_slice(b"@carbondata_sync\0\0\0\x67 and no more");
    fs::write(data(&copy), &longer).unwrap();
    fs::remove_file(index(&copy)).unwrap();
    let report = run(&copy.1);
    assert!(report.left.iter().all(|finding| finding.path.ends_with(".carbondata")), "{report:?}");
    assert_eq!(fs::read(index(&copy)).unwrap(), known);
    assert_eq!(rows(&whole(&open(&copy.1))), whole_rows);
    // A size that is inside of a blocklet is the index's fault.
    let at = known.len() - 3;
    let mut other = known.clone();
    other[at] ^= 0x02;
    fs::write(index(&copy), other).unwrap();
    run(&copy.1);
    assert_eq!(fs::read(index(&copy)).unwrap(), known);
    // The engine would cut off what an index does not count: with a blocklet damaged in the middle none is written.
    let copy = Copy::of(&root.join("table/v2.3/stream_open"), "stream-middle");
    let mut bad = bytes(&copy);
    bad[1168..1184].fill(0);
    fs::write(data(&copy), &bad).unwrap();
    fs::remove_file(index(&copy)).unwrap();
    let report = run(&copy.1);
    assert!(!report.is_complete() && !index(&copy).exists(), "{report:?}");
}

/// A filter reads the same bytes and gives the same rows over the index files that were there and over those written anew.
#[needs(goldens = "carbondata")]
#[test]
fn rebuilt_index_files_prune_alike() {
    let root = goldens();
    for name in ["v1.0/v1_dict_three", "v1.0/v2_blocklets", "v1.0/v2_dict_three", "v2.3/stream_open"] {
        let original = root.join("table").join(name);
        let copy = Copy::of(&original, "repair-prune");
        let mut files = Vec::new();
        files_below(&copy.1, &mut files);
        files.retain(|path| path.extension().is_some_and(|end| end == "carbonindex"));
        files.iter().for_each(|path| fs::remove_file(path).unwrap());
        assert!(run(&copy.1).is_complete(), "{name}");
        assert!(files.iter().all(|path| path.exists()), "{name}");
        let batch = whole(&open(&original));
        for column in 0..batch.num_columns() {
            for row in [0, batch.num_rows() / 2, batch.num_rows() - 1] {
                let value = Literal::from_array(batch.column(column).as_ref(), row);
                let name = col(batch.schema().field(column).name());
                for filter in [name.clone().eq(value.clone()), name.clone().lt(value)] {
                    let read = |folder: &Path| {
                        let table = open(folder);
                        let found = support::batches(table.scan().filter(filter.clone())).unwrap();
                        (found, table.data_read())
                    };
                    assert_eq!(read(&copy.1), read(&original), "{filter}");
                }
            }
        }
    }
}

#[test]
fn metadata_is_written_from_what_is_there() {
    for is_it in [
        |name: &str| name == "tablestatus",
        |name: &str| name == "schema",
        |name: &str| name.ends_with(".segment"),
    ] {
        let (count, _) = heals(&testdata().join("table/iud_update2"), "repair-metadata", &is_it);
        assert!(count >= 3, "{count}");
    }
}

#[needs(goldens = "carbondata")]
#[test]
fn metadata_of_the_golden_tables_is_written_from_what_is_there() {
    let root = goldens();
    for (table, name) in [
        ("v2.3/compact_minor", "tablestatus"),
        ("v2.3/part_overwritten", "tablestatus"),
        ("v2.3/types", "schema"),
        ("v2.3/complex", "schema"),
        ("v1.6/d16_dict_three", "schema"),
        ("v1.0/v1_dict_three", "tablestatus"),
    ] {
        let (count, _) = heals(&root.join("table").join(table), "repair-metadata", &|found| found == name);
        assert!(count >= 3, "{table} {name}: {count}");
    }
}

#[needs(goldens = "carbondata")]
#[test]
fn dictionaries_get_their_order_and_their_commits_back() {
    let root = goldens();
    for table in ["v1.6/d16_dict_three", "v1.0/v1_dict_three"] {
        let original = root.join("table").join(table);
        let newest = |name: &str| name.ends_with(".sortindex");
        let (count, same) = heals(&original, "repair-words", &newest);
        assert!(count >= 6 && same == count, "{table}: {count} written, {same} as before");
        let (count, _) = heals(&original, "repair-words", &|name| name.ends_with(".dictmeta"));
        assert!(count >= 6, "{table}: {count}");
    }
}

#[test]
fn what_cannot_be_repaired_is_said() {
    let copy = Copy::of(&testdata().join("table/iud_update2"), "repair-not");
    let mut files = Vec::new();
    files_below(&copy.1, &mut files);
    let find = |end: &str| -> PathBuf {
        files.iter().find(|path| path.to_str().unwrap().ends_with(end)).unwrap().clone()
    };
    // A data file that was cut, and its index too: the footer that would tell is gone.
    let data = find(".carbondata");
    damage(&data, Damage::Cut);
    for path in files
        .iter()
        .filter(|path| path.parent() == data.parent() && path.to_str().unwrap().contains("carbonindex"))
    {
        damage(path, Damage::Gone);
    }
    let report = run(&copy.1);
    assert!(!report.is_complete());
    assert!(report.left.iter().any(|finding| finding.path.ends_with(".carbondata")), "{report:?}");
}

/// A pipe would be waited for, a device swallow what is written, and of a link the damaged file behind it be written over.
#[cfg(unix)]
#[test]
fn what_is_no_file_makes_way_for_one() {
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;
    use std::process::Command;

    let original = testdata().join("table/iud_update2");
    let truth = expected(&original.with_extension("jsonl"));
    let elsewhere = tempfile::tempdir().unwrap();
    let damaged = elsewhere.path().join("damaged");
    fs::write(&damaged, "damaged").unwrap();
    type Make<'a> = &'a dyn Fn(&Path);
    let kinds: [(&str, Make); 6] = [
        ("pipe", &|path| assert!(Command::new("mkfifo").arg(path).status().unwrap().success())),
        // The path of a socket may be short only.
        ("socket", &|path| {
            let short = elsewhere.path().join("s");
            drop(UnixListener::bind(&short).unwrap());
            fs::rename(&short, path).unwrap();
        }),
        ("folder", &|path| fs::create_dir(path).unwrap()),
        ("device", &|path| symlink("/dev/null", path).unwrap()),
        ("link to nothing", &|path| symlink("nothing", path).unwrap()),
        ("link to a damaged file", &|path| symlink(&damaged, path).unwrap()),
    ];
    for end in [".carbonindexmerge", "tablestatus", "schema"] {
        for (kind, make) in kinds {
            let copy = Copy::of(&original, "repair-kinds");
            let mut files = Vec::new();
            files_below(&copy.1, &mut files);
            let path = files.iter().find(|path| path.to_str().unwrap().ends_with(end)).unwrap();
            fs::remove_file(path).unwrap();
            make(path);
            let report = run(&copy.1);
            let rebuilt = report.rebuilt.iter().find(|rebuilt| rebuilt.path.path() == path);
            let kept = rebuilt.and_then(|rebuilt| rebuilt.kept.clone());
            assert!(
                kept.is_some_and(|kept| fs::symlink_metadata(kept.path()).is_ok()),
                "{end} a {kind}: {report:?}"
            );
            assert!(fs::symlink_metadata(path).unwrap().is_file(), "{end} a {kind}");
            assert_eq!(rows(&whole(&open(&copy.1))), truth, "{end} a {kind}");
            assert_eq!(fs::read(&damaged).unwrap(), b"damaged", "{end} a {kind}");
        }
    }
}
