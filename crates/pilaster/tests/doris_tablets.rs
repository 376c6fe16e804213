//! Folders with several tablets of Doris: which of them are a table, and what is said of the others.
#![cfg(feature = "doris")]
#![allow(
    clippy::arithmetic_side_effects,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    missing_docs,
    reason = "tests compute with known values and stop at the first surprise"
)]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow_select::concat::concat_batches;
use pilaster::core::Severity;
use pilaster::core::progress::Silent;
use pilaster::doris::{DorisOptions, TableModel, TabletSchema, TabletWriteOptions};
use pilaster::ls::State;
use pilaster::store::{Store, open_store};
use pilaster::{DatasetRef, ErrorKind, OpenOptions, VerifyDepth};
use pilaster_doris::tablet::TabletWriter;
use serde_json::{Value, json};

/// What the metadata of a tablet says.
#[derive(Clone)]
struct Meta {
    tablet: i64,
    partition: i64,
    hash: i64,
    state: &'static str,
    schema_version: i64,
    /// Unique ids and names; the first is the key.
    columns: Vec<(i64, &'static str)>,
    /// Loads of keys.
    loads: Vec<Vec<i64>>,
}

impl Default for Meta {
    fn default() -> Self {
        Self {
            tablet: 100,
            partition: 1,
            hash: 77,
            state: "PB_RUNNING",
            schema_version: 0,
            columns: vec![(0, "k"), (1, "v")],
            loads: vec![vec![1, 2, 3]],
        }
    }
}

impl Meta {
    /// Writes segments, and metadata as JSON, in `folder`.
    fn write(&self, folder: &Path) {
        let scratch = tempfile::tempdir().unwrap();
        let batch = |keys: &[i64]| {
            let column = |(id, name): &(i64, &'static str)| {
                let values: Int64Array = keys.iter().map(|key| Some(key + 100 * id)).collect();
                (*name, Arc::new(values) as ArrayRef, *id != 0)
            };
            RecordBatch::try_from_iter_with_nullable(self.columns.iter().map(column)).unwrap()
        };
        let schema = TabletSchema::from_arrow(&batch(&[]).schema(), &TableModel::duplicate(["k"])).unwrap();
        let target = scratch.path().join("tablet");
        let mut writer = TabletWriter::create(&target, &schema, &TabletWriteOptions::default()).unwrap();
        for load in &self.loads {
            writer.write(&batch(load)).unwrap();
            writer.finish_rowset().unwrap();
        }
        let written = writer.finish().unwrap().folder;
        fs::create_dir_all(folder).unwrap();
        let mut segments: Vec<_> =
            fs::read_dir(written.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
        segments.retain(|path| path.extension().is_some_and(|found| found == "dat"));
        segments.sort();
        let mut rowsets = vec![rowset("0", 0, 1, 0, 0)];
        for (number, segment) in segments.iter().enumerate() {
            let name = segment.file_name().unwrap().to_str().unwrap();
            let (id, version) = (name.split('_').next().unwrap(), number as i64 + 2);
            rowsets.push(rowset(id, version, version, 1, self.loads[number].len()));
            fs::copy(segment, folder.join(name)).unwrap();
        }
        let column = |(id, name): &(i64, &str)| {
            json!({"unique_id": id, "name": name, "type": "BIGINT", "is_key": *id == 0, "is_nullable": *id != 0,
                "length": 8, "index_length": 8})
        };
        let columns: Vec<Value> = self.columns.iter().map(column).collect();
        let meta = json!({
            "table_id": 5, "partition_id": self.partition, "tablet_id": self.tablet, "schema_hash": self.hash,
            "tablet_state": self.state,
            "schema": {"keys_type": "DUP_KEYS", "column": columns, "schema_version": self.schema_version},
            "rs_metas": rowsets,
        });
        fs::write(folder.join(format!("{}.hdr.json", self.tablet)), meta.to_string()).unwrap();
    }

    fn below(&self, root: &Path) -> PathBuf {
        let folder = root.join(format!("{}/{}", self.tablet, self.hash));
        self.write(&folder);
        folder
    }
}

fn rowset(id: &str, start: i64, end: i64, segments: i64, rows: usize) -> Value {
    json!({"rowset_id": 0, "rowset_id_v2": id, "rowset_type": "BETA_ROWSET", "rowset_state": "VISIBLE",
        "start_version": start, "end_version": end, "num_segments": segments, "num_rows": rows})
}

fn store(root: &Path, options: &OpenOptions) -> Box<dyn Store> {
    open_store(&[root.display().to_string()], options).unwrap().unwrap()
}

fn rows(dataset: &DatasetRef) -> RecordBatch {
    let reader = dataset.scan().read().unwrap();
    let schema = reader.schema();
    let batches: Vec<_> = reader.map(|batch| batch.unwrap()).collect();
    concat_batches(&schema, &batches).unwrap()
}

fn keys(dataset: &DatasetRef) -> Vec<i64> {
    let all = rows(dataset);
    let mut keys = all.column_by_name("k").unwrap().as_primitive::<Int64Type>().values().to_vec();
    keys.sort_unstable();
    keys
}

/// What a reader of the rows is warned of.
fn said(dataset: &DatasetRef) -> String {
    let findings = dataset.findings();
    assert!(findings.iter().all(|finding| finding.severity == Severity::Warning), "{findings:?}");
    findings.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

fn only(id: &str) -> OpenOptions {
    OpenOptions::default().with_doris(DorisOptions::default().with_tablet(Some(id.to_string())))
}

#[test]
fn tablets_of_one_index_with_older_and_newer_schemas_are_one_table() {
    let root = tempfile::tempdir().unwrap();
    Meta::default().below(root.path());
    let newer = Meta {
        tablet: 101,
        partition: 2,
        schema_version: 3,
        columns: vec![(0, "k"), (1, "renamed"), (2, "added")],
        loads: vec![vec![7, 8]],
        ..Meta::default()
    };
    newer.below(root.path());
    let store = store(root.path(), &OpenOptions::default());
    assert_eq!(store.tables(), ["5"]);
    let table = store.table(Some("5")).unwrap();
    assert_eq!(said(&table), "");
    let all = rows(&table);
    assert_eq!(all.num_rows(), 5);
    let column =
        |name: &str| all.column_by_name(name).unwrap().as_primitive::<Int64Type>().iter().collect::<Vec<_>>();
    assert_eq!(column("renamed"), [Some(101), Some(102), Some(103), Some(107), Some(108)]);
    assert_eq!(column("added"), [None, None, None, Some(207), Some(208)]);
}

#[test]
fn different_columns_under_one_schema_version_are_not_guessed_at() {
    let root = tempfile::tempdir().unwrap();
    Meta::default().below(root.path());
    Meta { tablet: 101, columns: vec![(0, "k"), (1, "other")], ..Meta::default() }.below(root.path());
    let error = store(root.path(), &OpenOptions::default()).table(None).unwrap_err().to_string();
    assert!(error.contains("different columns under one schema version"), "{error}");
    assert_eq!(keys(&only("101").open(&root.path().display().to_string()).unwrap()), [1, 2, 3]);
}

#[test]
fn a_rollup_is_a_table_of_its_own_and_is_named() {
    let root = tempfile::tempdir().unwrap();
    Meta::default().below(root.path());
    Meta { tablet: 102, hash: 78, columns: vec![(0, "k")], loads: vec![vec![1, 2]], ..Meta::default() }
        .below(root.path());
    let open = |root: &Path| store(root, &OpenOptions::default());
    let store = open(root.path());
    assert_eq!(store.tables(), ["5", "5-2"]);
    let base = store.table(Some("5")).unwrap();
    assert_eq!(keys(&base), [1, 2, 3]);
    assert!(said(&base).contains("5-2 is schema hash 78 (1 columns, 1 tablets)"), "{}", said(&base));
    assert_eq!(keys(&store.table(Some("5-2")).unwrap()), [1, 2]);
    // It is not taken for the table where that cannot be read, and is read all the same.
    let base = root.path().join("100/77");
    let segment = fs::read_dir(base).unwrap().map(|entry| entry.unwrap().path());
    fs::write(
        segment.filter(|path| path.extension().is_some_and(|found| found == "dat")).last().unwrap(),
        b"",
    )
    .unwrap();
    let broken = open(root.path());
    assert_eq!(broken.tables(), ["5-2"]);
    assert!(broken.table(Some("5")).unwrap_err().is_damage());
    let error = broken.table(None).unwrap_err().to_string();
    assert!(error.contains("holds table 5-2, and another of which nothing can be read"), "{error}");
    assert_eq!(keys(&broken.table(Some("5-2")).unwrap()), [1, 2]);
}

#[test]
fn the_folders_of_a_backup_say_which_index_it_is() {
    let root = tempfile::tempdir().unwrap();
    // Nothing but the folders tells these apart.
    for (tablet, index) in [(100, 4), (101, 4), (102, 9)] {
        let folder = format!("__ss_a/__ss_content/__db_1/__tbl_5/__part_1/__idx_{index}/__{tablet}");
        Meta { tablet, ..Meta::default() }.write(&root.path().join(folder));
    }
    let store = store(root.path(), &OpenOptions::default());
    assert_eq!(store.tables(), ["5", "5-2"]);
    assert_eq!(keys(&store.table(Some("5")).unwrap()).len(), 6);
    assert_eq!(keys(&store.table(Some("5-2")).unwrap()).len(), 3);
}

#[test]
fn tablets_out_of_service_are_left_out_and_named() {
    for state in ["PB_SHUTDOWN", "PB_NOTREADY", "PB_TOMBSTONED"] {
        let root = tempfile::tempdir().unwrap();
        Meta::default().below(root.path());
        let folder = Meta { tablet: 109, state, loads: vec![vec![50]], ..Meta::default() }.below(root.path());
        let store = store(root.path(), &OpenOptions::default());
        let table = store.table(None).unwrap();
        assert_eq!(keys(&table), [1, 2, 3], "{state}");
        assert!(said(&table).contains("tablet 109 of table 5 is in state"), "{}", said(&table));
        assert!(said(&table).contains("left out"), "{}", said(&table));
        assert_eq!(store.entries().len(), 2);
        assert!(store.verify(None, VerifyDepth::Values, &Silent).unwrap().is_sound());
        // Pointed at alone it opens, and says what it is.
        for alone in [
            OpenOptions::default().open(&folder.display().to_string()).unwrap(),
            only("109").open(&root.path().display().to_string()).unwrap(),
        ] {
            assert_eq!(keys(&alone), [50], "{state}");
            assert!(said(&alone).contains("is in state"), "{}", said(&alone));
        }
    }
}

#[test]
fn one_tablet_is_chosen_by_its_id() {
    let root = tempfile::tempdir().unwrap();
    Meta::default().below(root.path());
    Meta { tablet: 101, loads: vec![vec![9]], ..Meta::default() }.below(root.path());
    let path = root.path().display().to_string();
    assert_eq!(keys(&only("101").open(&path).unwrap()), [9]);
    let error = only("999").open(&path).unwrap_err().to_string();
    assert!(error.ends_with("no tablet 999; there are: 100, 101"), "{error}");
    let error = only("abc").open(&path).unwrap_err().to_string();
    assert!(error.contains("is a number"), "{error}");
}

#[test]
fn a_broken_copy_does_not_stand_in_the_way_of_a_good_one() {
    let good = Meta { loads: vec![vec![1, 2], vec![3]], ..Meta::default() };
    let open = |root: &Path, options: &OpenOptions| options.open(&root.display().to_string());
    let cut = |folder: &Path| {
        let segment = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let segment =
            segment.filter(|path| path.extension().is_some_and(|found| found == "dat")).max().unwrap();
        fs::write(segment, b"").unwrap();
    };
    // Of the same version, with one of its segments damaged.
    let root = tempfile::tempdir().unwrap();
    good.below(&root.path().join("data/1"));
    let copy = good.below(&root.path().join("snapshot/20240101.0.86400"));
    cut(&copy);
    let table = open(root.path(), &OpenOptions::default()).unwrap();
    assert_eq!(keys(&table), [1, 2, 3]);
    assert!(said(&table).contains("this copy of tablet 100 cannot be read"), "{}", said(&table));
    // Nor does one that lacks a part, of which the other is taken.
    fs::remove_file(file_of(&copy, "_0.dat")).unwrap();
    assert_eq!(keys(&open(root.path(), &OpenOptions::default()).unwrap()), [1, 2, 3]);
    // The other one is no better.
    cut(&root.path().join("data/1/100/77"));
    assert!(open(root.path(), &OpenOptions::default()).is_err());

    // Metadata that says nothing any more.
    let root = tempfile::tempdir().unwrap();
    good.below(&root.path().join("data/1"));
    let copy = good.below(&root.path().join("snapshot/20240101.0.86400"));
    fs::write(copy.join("100.hdr.json"), b"{").unwrap();
    let table = open(root.path(), &OpenOptions::default()).unwrap();
    assert_eq!(keys(&table), [1, 2, 3]);
    assert!(said(&table).contains("which may be older"), "{}", said(&table));
    let damaged = store(root.path(), &OpenOptions::default());
    assert!(!damaged.verify(None, VerifyDepth::Footer, &Silent).unwrap().is_sound());

    // A newer one that is broken is not quietly replaced by what was before; but an earlier version is an earlier version.
    let root = tempfile::tempdir().unwrap();
    cut(&good.below(&root.path().join("data/1")));
    Meta { loads: vec![vec![1, 2]], ..good.clone() }.below(&root.path().join("snapshot/20240101.0.86400"));
    let error = open(root.path(), &OpenOptions::default()).unwrap_err().to_string();
    assert!(error.contains("an older copy, of version 2, is in"), "{error}");
    let earlier = OpenOptions::default().with_as_of(Some("2".to_string()));
    assert_eq!(keys(&open(root.path(), &earlier).unwrap()), [1, 2]);
}

#[test]
fn paths_are_named_once() {
    let root = tempfile::tempdir().unwrap();
    let folder = Meta::default().below(root.path());
    fs::write(folder.join("100.hdr.json"), b"{").unwrap();
    let path = folder.display().to_string();
    let error = OpenOptions::default().open(&path).unwrap_err().to_string();
    assert_eq!(error.matches(&path).count(), 1, "{error}");
    let good = tempfile::tempdir().unwrap();
    Meta::default().below(good.path());
    Meta { tablet: 101, ..Meta::default() }.below(good.path());
    let segment = good.path().join("101/77");
    for file in fs::read_dir(&segment).unwrap().map(|entry| entry.unwrap().path()) {
        if file.extension().is_some_and(|found| found == "dat") {
            fs::write(file, b"").unwrap();
        }
    }
    let error = OpenOptions::default().open(&good.path().display().to_string()).unwrap_err().to_string();
    assert_eq!(error.matches(&segment.display().to_string()).count(), 1, "{error}");
}

#[test]
fn any_folder_above_the_tablets_opens() {
    let root = tempfile::tempdir().unwrap();
    Meta::default().below(&root.path().join("user/my backup"));
    assert_eq!(keys(&pilaster::open(&root.path().display().to_string()).unwrap()), [1, 2, 3]);
}

#[test]
fn a_path_has_one_type_in_all_tablets() {
    let root = tempfile::tempdir().unwrap();
    let json = r#"{"keys_type": "DUP_KEYS", "num_short_key_columns": 1, "columns": [
        {"unique_id": 0, "name": "k", "type": "BIGINT", "is_key": true},
        {"unique_id": 1, "name": "v", "type": "VARIANT", "is_nullable": true}]}"#;
    let schema = TabletSchema::parse_json(json.as_bytes()).unwrap();
    for (tablet, text) in [(100, r#"{"a": 1, "b": 10}"#), (101, r#"{"a": "x", "b": 20}"#)] {
        let options = TabletWriteOptions::default().with_tablet_id(tablet);
        let target = root.path().join(tablet.to_string());
        let mut writer = TabletWriter::create(target, &schema, &options).unwrap();
        let keys: ArrayRef = Arc::new(Int64Array::from(vec![tablet]));
        let texts: ArrayRef = Arc::new(StringArray::from(vec![text]));
        writer
            .write(
                &RecordBatch::try_from_iter_with_nullable([("k", keys, false), ("v", texts, true)]).unwrap(),
            )
            .unwrap();
        writer.finish().unwrap();
    }
    let doris = DorisOptions::default().with_variant_path("v", "a").with_variant_path("v", "b");
    let options = OpenOptions::default().with_doris(doris);
    let all = rows(&options.open(&root.path().display().to_string()).unwrap());
    let texts: Vec<_> = all.column_by_name("v['a']").unwrap().as_string_view().iter().flatten().collect();
    assert_eq!(texts, ["1", "\"x\""]);
    assert!(all.column_by_name("v['b']").unwrap().data_type().is_integer());
    let unknown =
        OpenOptions::default().with_doris(DorisOptions::default().with_variant_path("nothing", "a"));
    let error = unknown.open(&root.path().display().to_string()).unwrap_err().to_string();
    assert!(error.contains("there is no VARIANT column \"nothing\""), "{error}");
}

/// The only file of a folder whose name ends so.
fn file_of(folder: &Path, ending: &str) -> PathBuf {
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut found = files.filter(|path| path.to_string_lossy().ends_with(ending));
    found.next().unwrap()
}

#[test]
fn what_the_metadata_names_must_be_here_or_the_rest_be_asked_for() {
    let segment_gone: fn(&Path) = |folder| fs::remove_file(file_of(folder, "_0.dat")).unwrap();
    let version_gone: fn(&Path) = |folder| {
        let header = file_of(folder, ".hdr.json");
        let mut meta: Value = serde_json::from_slice(&fs::read(&header).unwrap()).unwrap();
        let rowsets = meta["rs_metas"].as_array_mut().unwrap();
        let place = rowsets.iter().position(|rowset| rowset["start_version"] == 2).unwrap();
        rowsets.remove(place);
        fs::write(&header, meta.to_string()).unwrap();
    };
    let cases = [
        (segment_gone, vec![vec![4, 5]], "_0.dat", vec![1, 2, 3]),
        (
            version_gone,
            vec![vec![4, 5], vec![6]],
            "no rowset of versions 2..=2 of tablet 101",
            vec![1, 2, 3, 6],
        ),
    ];
    for (damage, loads, message, left) in cases {
        let root = tempfile::tempdir().unwrap();
        Meta::default().below(root.path());
        damage(&Meta { tablet: 101, loads, ..Meta::default() }.below(root.path()));
        let path = root.path().display().to_string();
        let error = OpenOptions::default().open(&path).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Incomplete { .. }), "{error}");
        assert!(error.to_string().contains(message), "{error}");
        let partial = OpenOptions::default().with_partial(true).open(&path).unwrap();
        assert_eq!(keys(&partial), left);
        assert_eq!(partial.absences().len(), 1);
        assert_eq!(partial.row_count(), None);
        let report =
            pilaster::verify::verify(&[&path], &OpenOptions::default(), VerifyDepth::Footer, &Silent);
        let report = report.unwrap();
        assert!(!report.is_sound(), "{report:?}");
        assert!(report.findings.iter().any(|finding| finding.message.contains(message)), "{report:?}");
    }
}

#[test]
fn segments_without_their_metadata_may_be_of_any_table() {
    let root = tempfile::tempdir().unwrap();
    Meta::default().below(root.path());
    let folder = Meta { tablet: 101, ..Meta::default() }.below(root.path());
    fs::remove_file(file_of(&folder, ".hdr.json")).unwrap();
    let path = root.path().display().to_string();
    let error = OpenOptions::default().open(&path).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Incomplete { .. }), "{error}");
    assert!(error.to_string().contains("the .hdr file of 1 segments is not here"), "{error}");
    let partial = OpenOptions::default().with_partial(true).open(&path).unwrap();
    assert_eq!((keys(&partial), partial.absences().len()), (vec![1, 2, 3], 1));
    assert_eq!(keys(&only("100").open(&path).unwrap()), [1, 2, 3]);
    let report = store(root.path(), &OpenOptions::default()).verify(None, VerifyDepth::Footer, &Silent);
    assert!(!report.unwrap().is_sound());
}

#[test]
fn segments_alone_are_found_and_not_taken_for_a_table() {
    let root = tempfile::tempdir().unwrap();
    let folder = Meta::default().below(root.path());
    fs::remove_file(file_of(&folder, ".hdr.json")).unwrap();
    // From above: a tablet without its metadata, and nothing else.
    let above = root.path().display().to_string();
    let error = OpenOptions::default().open(&above).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Incomplete { .. }), "{error}");
    assert!(error.to_string().contains("the .hdr file of 1 segments is not here"), "{error}");
    let entries = pilaster::ls::list(&[&above], &pilaster::ls::ListOptions::default()).unwrap();
    assert!(matches!(&entries[..], [only] if matches!(only.state, State::Problem(_))), "{entries:?}");
    // Their own folder gives their rows to who takes them as they are.
    let own = folder.display().to_string();
    let entries = pilaster::ls::list(&[&own], &pilaster::ls::ListOptions::default()).unwrap();
    assert!(entries.iter().any(|entry| matches!(entry.state, State::Problem(_))), "{entries:?}");
    let error = OpenOptions::default().open(&own).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Incomplete { .. }), "{error}");
    for options in [OpenOptions::default().with_partial(true), OpenOptions::default().with_recovery(true)] {
        let found = options.open(&own).unwrap();
        assert_eq!((rows(&found).num_rows(), found.absences().len()), (3, 1));
    }
    let segment = file_of(&folder, ".dat").display().to_string();
    assert_eq!(rows(&OpenOptions::default().open(&segment).unwrap()).num_rows(), 3);
    for path in [above, own] {
        let report =
            pilaster::verify::verify(&[&path], &OpenOptions::default(), VerifyDepth::Footer, &Silent);
        assert!(!report.unwrap().is_sound(), "{path}");
    }
}

/// Set in a process that may not look into a folder below this one.
#[cfg(unix)]
const DENIED: &str = "PILASTER_TEST_DENIED";

#[cfg(unix)]
#[test]
fn a_folder_that_may_not_be_looked_into_is_not_empty() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    use std::os::unix::process::CommandExt;

    if let Ok(root) = std::env::var(DENIED) {
        let options = OpenOptions::default();
        for options in [options.clone(), options.clone().with_partial(true), options.with_recovery(true)] {
            let error = options.open(&root).unwrap_err();
            assert!(matches!(error.kind(), ErrorKind::Io(_)), "{error}");
            assert!(error.to_string().contains("101"), "{error}");
        }
        let report =
            pilaster::verify::verify(&[&root], &OpenOptions::default(), VerifyDepth::Values, &Silent);
        let report = report.unwrap();
        let errors = report.findings.iter().filter(|finding| finding.severity == Severity::Error);
        assert_eq!((report.unread, errors.count()), (1, 1), "{report:?}");
        assert!(report.rows > 0, "the others are looked at: {report:?}");
        // With nothing else beside it, too.
        let alone = format!("{root}/../alone");
        let error = OpenOptions::default().open(&alone).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Io(_)), "{error}");
        assert!(error.to_string().contains("alone/102/88"), "{error}");
        let entries = store(Path::new(&root), &OpenOptions::default()).entries();
        assert!(entries.iter().any(|entry| matches!(entry.state, State::Unread(_))), "{entries:?}");
        assert!(entries.iter().any(|entry| entry.state == State::Ok), "{entries:?}");
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let permit =
        |path: &Path, mode: u32| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    permit(scratch.path(), 0o755);
    let root = scratch.path().join("root");
    fs::create_dir(&root).unwrap();
    Meta::default().below(&root);
    Meta { tablet: 101, ..Meta::default() }.below(&root);
    let program = scratch.path().join("program");
    fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    permit(&program, 0o755);
    fs::create_dir_all(scratch.path().join("alone/102/88")).unwrap();
    permit(&root.join("101"), 0o000);
    permit(&scratch.path().join("alone/102/88"), 0o000);
    let mut command = std::process::Command::new(&program);
    command.env(DENIED, &root).args(["a_folder_that_may_not_be_looked_into_is_not_empty", "--exact"]);
    if fs::metadata(scratch.path()).unwrap().uid() == 0 {
        command.uid(65534).gid(65534);
    }
    let output = command.output().unwrap();
    permit(&root.join("101"), 0o755);
    permit(&scratch.path().join("alone/102/88"), 0o755);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}
