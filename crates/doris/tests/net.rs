//! Every file of small tablets of every key model is deleted, emptied, cut, overwritten and flipped: rows that are given and rows
//! that are named as lost are the rows there were, and what stops a scan is found by `verify`.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    missing_docs,
    reason = "tests compute with known values and stop at the first surprise"
)]

#[path = "support/key_models.rs"]
mod key_models;
mod support;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_cast::display::array_value_to_string;
use key_models::{MODELS, Model};
use pilaster_core::progress::Silent;
use pilaster_core::{Dataset, Limits, LossLog, VerifyDepth};
use pilaster_doris::segment::{SegmentWriteOptions, StorageFormat};
use pilaster_doris::tablet::{TabletOptions, TabletReader, TabletWriteOptions, find_tablets};
use pilaster_testing::damage::{Answers, DamagedFolder, Damages, Judge, Verdict, damages};
use support::batches;

fn texts(all: &[RecordBatch]) -> Vec<String> {
    let of = |batch: &RecordBatch| {
        let row = |row: usize| {
            let cells = batch.columns().iter().map(|column| array_value_to_string(column, row).unwrap());
            cells.collect::<Vec<_>>().join(" | ")
        };
        (0..batch.num_rows()).map(row).collect::<Vec<_>>()
    };
    all.iter().flat_map(of).collect()
}

/// What the three ways to look at the folder say, as the commands do.
fn look(root: &Path) -> Answers<String> {
    let refused =
        |error: String| Answers { strict: Err(error.clone()), is_sound: false, salvaged: Err(error) };
    let found = match find_tablets(root, &Limits::default()) {
        Ok(found) => found,
        Err(error) => return refused(error.to_string()),
    };
    let absent: Vec<_> = found.headless.iter().chain(&found.unstored).cloned().collect();
    let Some(folder) = found.tablets.first() else { return refused("no tablet".into()) };
    let opened = TabletReader::open(folder, &TabletOptions::default());
    let read = |tablet: &TabletReader| match absent.iter().chain(&tablet.absences()).next() {
        Some(absence) => Err(absence.what.clone()),
        None => batches(tablet.scan()).map(|all| texts(&all)).map_err(|error| error.to_string()),
    };
    let strict = opened.as_ref().map_err(ToString::to_string).and_then(read);
    let verified = opened.as_ref().ok().and_then(|tablet| {
        let report = tablet.verify(VerifyDepth::Values, &Silent).ok()?;
        Some(report.is_sound() && tablet.absences().is_empty())
    });
    let is_sound = verified == Some(true) && absent.is_empty();
    let losses = Arc::new(LossLog::new());
    let salvaged =
        TabletReader::open(folder, &TabletOptions::default().with_recovery(true)).and_then(|tablet| {
            let saved = texts(&batches(tablet.scan().skip_damage(Arc::clone(&losses)))?);
            absent.iter().chain(&tablet.absences()).for_each(|absence| losses.add(absence.loss()));
            Ok((saved, losses.losses()))
        });
    Answers { strict, is_sound, salvaged: salvaged.map_err(|error| error.to_string()) }
}

#[test]
fn rows_saved_and_rows_lost_are_the_rows_there_were() {
    let mut failures = Vec::new();
    let formats = [StorageFormat::V2, StorageFormat::V3];
    for (model, format) in MODELS.into_iter().flat_map(|model| formats.map(|format| (model, format))) {
        let name = format!("{model:?} {format:?}");
        let scratch = tempfile::tempdir().unwrap();
        let target = scratch.path().join("t");
        let segments = SegmentWriteOptions::default().with_page_bytes(600).with_format(format);
        let options = TabletWriteOptions::default().with_rows_per_segment(150).with_segment_options(segments);
        model.write(&target, 300, &options);
        let folder = DamagedFolder::copy_of(&target).unwrap();
        let whole = look(folder.root());
        let rows = whole.strict.clone().unwrap();
        assert_eq!(whole.judge(&rows, &Judge::default()), Ok(Verdict::Right), "{name}");
        // Of rows that are lost nobody knows which have been replaced or deleted, and which would have been.
        let judge = Judge { may_name_more: model != Model::Duplicate };
        let mut verdicts = BTreeMap::<Verdict, usize>::new();
        for (file, bytes) in folder.files() {
            for damage in damages(bytes, &Damages { flips: 16, ..Damages::default() }) {
                match folder.with(file, &damage, look).unwrap().judge(&rows, &judge) {
                    Ok(verdict) => *verdicts.entry(verdict).or_default() += 1,
                    Err(wrong) => {
                        failures.push(format!("{name} {} {}: {wrong}", file.display(), damage.name));
                    }
                }
            }
        }
        eprintln!("{name}: {} rows, {verdicts:?}", rows.len());
        assert!(verdicts.get(&Verdict::Refused).is_some_and(|count| *count > 0), "{name}: {verdicts:?}");
        assert!(verdicts.get(&Verdict::Counted).is_some_and(|count| *count > 0), "{name}: {verdicts:?}");
    }
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
}
