//! Whatever happens to a file of a table: the rows that are given and the rows that are named as lost are the rows there were.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    reason = "tests compute with known values"
)]

mod support;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use arrow_array::{ArrayRef, Date32Array, Int32Array, Int64Array, RecordBatch, StringViewArray};
use arrow_select::concat::concat_batches;
use pilaster_carbondata::file::CarbonWriterOptions;
use pilaster_carbondata::table::{
    CarbonFolderWriter, CarbonTable, CarbonTableOptions, CarbonTableWriter, CarbonTableWriterOptions, compact,
};
use pilaster_core::progress::Silent;
use pilaster_core::{Dataset, LossLog, LostRows, Result, VerifyDepth};
use pilaster_testing::damage::{Answers, Damage, DamagedFolder, Damages, Judge, Verdict};
use pilaster_testing::needs;
use support::rows::rows;
use support::{batches, goldens, testdata};

fn open(folder: &Path, recovers: bool) -> Result<CarbonTable> {
    CarbonTable::open(folder, &CarbonTableOptions::default().with_recovery(recovers))
}

/// The rows that a scan gives, unless something refuses or is not here.
fn strict(folder: &Path) -> Result<Vec<String>, String> {
    let table = open(folder, false).map_err(|error| error.to_string())?;
    if let Some(absence) = table.absences().first() {
        return Err(absence.to_string());
    }
    let found = batches(table.scan()).map_err(|error| error.to_string())?;
    Ok(rows(&concat_batches(&table.schema(), &found).unwrap()))
}

/// As `verify` judges a table: by itself, or, where it cannot be opened or is not whole, by what is left of it.
fn is_sound(folder: &Path) -> bool {
    let table = match open(folder, false) {
        Ok(table) if table.absences().is_empty() => table,
        _ => return false,
    };
    table.verify(VerifyDepth::Values, &Silent).is_ok_and(|report| report.is_sound())
}

fn salvaged(folder: &Path) -> Result<(Vec<String>, Vec<LostRows>), String> {
    let table = open(folder, true).map_err(|error| error.to_string())?;
    let log = Arc::new(LossLog::new());
    let found = batches(table.scan().skip_damage(Arc::clone(&log))).map_err(|error| error.to_string())?;
    table.absences().iter().for_each(|absence| log.add(absence.loss()));
    Ok((rows(&concat_batches(&table.schema(), &found).unwrap()), log.losses()))
}

fn answers(folder: &Path) -> Answers<String> {
    Answers { strict: strict(folder), is_sound: is_sound(folder), salvaged: salvaged(folder) }
}

/// A flipped bit of a value is a value too, and the format has no checksums: rows are counted then and not compared. What lies outside
/// of its bounds a plain scan gives, `verify` finds and salvage leaves out.
fn counted(answers: Answers<String>) -> Answers<()> {
    let count = |rows: Vec<String>| vec![(); rows.len()];
    let loses = answers.salvaged.as_ref().is_ok_and(|(_, losses)| !losses.is_empty());
    let strict = match answers.strict {
        Ok(_) if loses && !answers.is_sound => Err("verify finds damage".to_string()),
        strict => strict.map(count),
    };
    let salvaged = answers.salvaged.map(|(rows, losses)| (count(rows), losses));
    Answers { strict, is_sound: answers.is_sound, salvaged }
}

/// Whether a damage may make values of others: of what has neither checksums nor a form that a byte may break.
fn changes_values(file: &Path, damage: &Damage) -> bool {
    let has_values = file.extension().is_some_and(|end| end == "carbondata" || end == "dict");
    damage.name.starts_with("byte ") || (has_values && damage.name.ends_with("zeroed"))
}

/// Of a table whose update status, or list of segments, is lost nobody knows which data files were deleted whole: their rows are given, and
/// the report says so.
fn is_said(answers: &Answers<String>) -> bool {
    let says = |lost: &LostRows| lost.reason.contains("may be among those given");
    let is_refused = answers.strict.is_err() && !answers.is_sound;
    is_refused && answers.salvaged.as_ref().is_ok_and(|(_, losses)| losses.iter().any(says))
}

/// As many damages as were asked for, or the few that a usual run has time for: `PILASTER_DAMAGES=100` cuts and flips each file so often.
fn as_asked(how: &Damages) -> Damages {
    let asked = std::env::var("PILASTER_DAMAGES").ok().and_then(|text| text.parse().ok());
    asked.map_or_else(|| how.clone(), |count| Damages { cuts: count, flips: count, ..how.clone() })
}

/// Damages every file of a table and judges what is made of it; how often each verdict came.
fn holds_for(original: &Path, how: &Damages) -> BTreeMap<Verdict, usize> {
    let truth = strict(original).unwrap();
    assert!(is_sound(original), "{}", original.display());
    let folder = DamagedFolder::copy_of(original).unwrap();
    let mut failures = Vec::new();
    let mut verdicts = BTreeMap::new();
    // What is read to its end may hold everything twice.
    let doubled = |(file, bytes): &(std::path::PathBuf, Vec<u8>)| {
        let twice = [bytes.as_slice(), bytes].concat();
        (twice != *bytes).then(|| (file.clone(), Damage::new("twice over", twice)))
    };
    let doubled = folder.files().iter().filter_map(doubled);
    for (file, damage) in folder.damages(&as_asked(how)).chain(doubled) {
        let answers = folder.with(&file, &damage, answers).unwrap();
        if is_said(&answers) {
            *verdicts.entry(Verdict::Unknown).or_default() += 1;
            continue;
        }
        let verdict = match changes_values(&file, &damage) {
            true => counted(answers).judge(&vec![(); truth.len()], &Judge::default()),
            false => answers.judge(&truth, &Judge::default()),
        };
        match verdict {
            Ok(verdict) => *verdicts.entry(verdict).or_default() += 1,
            Err(failure) => failures.push(format!("{} {}: {failure:.300}", file.display(), damage.name)),
        }
    }
    let name = original.file_name().unwrap().display();
    assert!(failures.is_empty(), "{name}: {}\n{}", failures.len(), failures.join("\n"));
    verdicts
}

/// The same for several tables; all are judged before one fails.
fn hold(tables: &[std::path::PathBuf], how: &Damages) {
    let judged = |table: &std::path::PathBuf| std::panic::catch_unwind(|| holds_for(table, how)).is_err();
    let failed: Vec<_> = tables.iter().filter(|table| judged(table)).collect();
    assert!(failed.is_empty(), "{failed:?}");
}

fn few() -> Damages {
    Damages { cuts: 4, flips: 6, ..Damages::default() }
}

#[test]
fn a_table_with_deletes_and_updates() {
    let verdicts = holds_for(&testdata().join("table/iud_update2"), &Damages::default());
    assert!(verdicts.len() > 3, "{verdicts:?}");
}

#[test]
fn a_table_with_partitions() {
    holds_for(&testdata().join("table/part_overwritten"), &few());
}

#[test]
fn a_table_whose_columns_changed() {
    holds_for(&testdata().join("table/evolve_changed"), &few());
}

#[test]
fn streams() {
    let names = ["stream_types", "stream_nested", "stream_map", "stream_1_6"];
    hold(&names.map(|name| testdata().join("stream").join(name)), &few());
}

/// Rows of every form that pages have.
fn batch(first: i64, count: i64) -> RecordBatch {
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(first..first + count));
    let small: ArrayRef = Arc::new(Int32Array::from_iter(
        (first..first + count).map(|n| (n % 7 > 0).then_some((n * 31 % 1000) as i32)),
    ));
    let days: ArrayRef =
        Arc::new(Date32Array::from_iter_values((first..first + count).map(|n| (n * 97 % 20_000) as i32)));
    let texts: ArrayRef = Arc::new(StringViewArray::from_iter(
        (first..first + count).map(|n| (n % 5 > 0).then(|| format!("text {}", n % 13))),
    ));
    let places: ArrayRef = Arc::new(StringViewArray::from_iter_values(
        (first..first + count).map(|n| ["de", "fr", "j/p"][n as usize % 3]),
    ));
    let columns = [("id", numbers), ("small", small), ("day", days), ("text", texts), ("place", places)];
    RecordBatch::try_from_iter_with_nullable(columns.map(|(name, column)| (name, column, true))).unwrap()
}

fn files() -> CarbonWriterOptions {
    CarbonWriterOptions::default().with_page_rows(20).with_blocklet_bytes(2000)
}

fn written(folder: &Path, options: &CarbonTableWriterOptions, loads: i64) {
    let mut writer = CarbonTableWriter::create(folder, &batch(0, 1).schema(), options.clone()).unwrap();
    writer.write(&batch(0, 90)).unwrap();
    writer.finish().unwrap();
    for load in 1..loads {
        let mut writer = CarbonTableWriter::append(folder, options.clone()).unwrap();
        writer.write(&batch(load * 100, 30)).unwrap();
        writer.finish().unwrap();
    }
}

#[test]
fn written_tables_of_several_loads() {
    let options = CarbonTableWriterOptions::default();
    let sorted = options.clone().with_files(files().with_sort_columns(["text", "id"]));
    let place = tempfile::tempdir().unwrap();
    let mut tables = Vec::new();
    for (name, options) in [
        ("plain", options.clone().with_files(files())),
        ("loose", options.clone().with_files(files()).with_merged_index(false)),
        ("sorted", sorted.clone()),
        ("partitioned", sorted.clone().with_partition_columns(["place"])),
        ("buckets", sorted.with_buckets(["id"], 2)),
        ("words", options.with_files(files()).with_dictionary_columns(["text", "small"])),
    ] {
        let folder = place.path().join(name);
        written(&folder, &options, 3);
        tables.push(folder);
    }
    hold(&tables, &few());
}

#[test]
fn a_compacted_table() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("compacted");
    let options = CarbonTableWriterOptions::default().with_files(files());
    written(&folder, &options, 3);
    compact(&folder, None, options.clone()).unwrap();
    let mut writer = CarbonTableWriter::append(&folder, options).unwrap();
    writer.write(&batch(900, 10)).unwrap();
    writer.finish().unwrap();
    holds_for(&folder, &few());
}

#[test]
fn a_folder_without_metadata() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("bare");
    let options = files().with_block_bytes(4000);
    let mut writer = CarbonFolderWriter::create(&folder, &batch(0, 1).schema(), &options).unwrap();
    writer.write(&batch(0, 200)).unwrap();
    writer.finish().unwrap();
    holds_for(&folder, &few());
}

/// Files of versions 1 and 2, dictionaries of 1.6, buckets of 2.3.
#[test]
fn committed_tables_of_older_releases() {
    let names = ["v1_group", "v2_dict_one", "v2_complex", "d16_columndict", "d16_complex", "bucket"];
    let tables = names.map(|name| testdata().join("table").join(name));
    hold(&tables, &Damages { cuts: 3, flips: 3, ..Damages::default() });
}

/// Tables of every release that wrote some, with files of all versions.
#[needs(goldens = "carbondata")]
#[test]
fn tables_of_real_releases() {
    let root = goldens();
    let names = [
        "v1.0/v1_dict_one",
        "v1.0/v1_complex",
        "v1.0/v2_dict_minor",
        "v1.0/v2_group",
        "v1.6/d16_dict_one",
        "v1.6/d16_dict_minor",
        "v1.6/d16_complex",
        "v2.3/compact_minor",
        "v2.3/segs_overwritten",
        "v2.3/iud_delta_compacted",
        "v2.3/iud_segment_gone",
        "v2.3/noindexmerge",
        "v2.3/part_dropped",
        "v2.3/stream_finished",
        "v2.3/stream_handoff",
    ];
    let tables = names.map(|name| root.join("table").join(name));
    hold(&tables, &Damages { cuts: 3, flips: 3, ..Damages::default() });
}
