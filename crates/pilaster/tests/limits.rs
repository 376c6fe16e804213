//! Every bound of memory, lowered to every size at which a reader asks for more, over files and folders of every format: each time the
//! same rows, or an error or a loss that says so. What a reader is denied is what it asked for last, so that all of its requests are
//! gone through, one after the other.
#![cfg(all(feature = "kudu", feature = "doris", feature = "carbondata", feature = "redfile"))]
#![allow(
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    missing_docs,
    reason = "tests stop at the first surprise"
)]

mod made;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_cast::display::array_value_to_string;
use pilaster::convert::{ConvertOptions, ConvertTarget, convert};
use pilaster::core::progress::Silent;
use pilaster::output::WriteOptions;
use pilaster::{
    DatasetRef, Error, ErrorKind, Limits, LossLog, OpenOptions, OutputFormat, Result, ScanRequest,
    VerifyDepth, verify,
};
use pilaster_testing::damage::{Answers, Judge};
use pilaster_testing::testdata;

/// More requests than a small file makes mean that a bound is not kept to.
const MOST_STEPS: usize = 2000;

type Field = (&'static str, fn(&mut Limits, u64));

const FIELDS: [Field; 8] = [
    ("metadata_bytes", |limits, value| limits.metadata_bytes = value),
    ("block_bytes", |limits, value| limits.block_bytes = value),
    ("decoded_bytes", |limits, value| limits.decoded_bytes = value),
    ("batch_bytes", |limits, value| limits.batch_bytes = value),
    ("scan_bytes", |limits, value| limits.scan_bytes = value),
    ("record_file_bytes", |limits, value| limits.record_file_bytes = value),
    ("log_bytes", |limits, value| limits.log_bytes = value),
    ("depth", |limits, value| limits.depth = u32::try_from(value).unwrap_or(u32::MAX)),
];

fn options(limits: &Limits) -> OpenOptions {
    OpenOptions::default().with_limits(limits.clone())
}

fn rows(dataset: &DatasetRef, losses: Option<&Arc<LossLog>>) -> Result<Vec<String>> {
    let mut scan = dataset.scan();
    if let Some(losses) = losses {
        scan = scan.skip_damage(Arc::clone(losses));
    }
    let mut rows = Vec::new();
    for batch in scan.read()? {
        let batch = batch.map_err(Error::from)?;
        rows.extend((0..batch.num_rows()).map(|row| {
            let cells = batch.columns().iter().map(|column| array_value_to_string(column, row).unwrap());
            cells.collect::<Vec<_>>().join(" | ")
        }));
    }
    Ok(rows)
}

fn strict(path: &str, limits: &Limits) -> Result<Vec<String>> {
    rows(&options(limits).open(path)?, None)
}

/// What the three ways to look at a path say within these bounds, and the error of the first.
fn look(path: &str, limits: &Limits) -> (Answers<String>, Option<Error>) {
    let (strict, error) = match strict(path, limits) {
        Ok(rows) => (Ok(rows), None),
        Err(error) => (Err(error.to_string()), Some(error)),
    };
    let verified = verify::verify(&[path], &options(limits), VerifyDepth::Values, &Silent);
    let losses = Arc::new(LossLog::new());
    let salvaged = options(limits).with_recovery(true).with_partial(true).open(path).and_then(|dataset| {
        let saved = rows(&dataset, Some(&losses))?;
        dataset.absences().iter().for_each(|absence| losses.add(absence.loss()));
        Ok((saved, losses.losses()))
    });
    let is_sound = verified.is_ok_and(|report| report.is_sound());
    (Answers { strict, is_sound, salvaged: salvaged.map_err(|error| error.to_string()) }, error)
}

/// Raises a bound from nothing to what suffices, by what was asked for each time; gives how often something was denied.
fn walk(what: &str, path: &str, rows: &[String], (name, set): Field, failures: &mut Vec<String>) -> usize {
    let mut value = 0;
    for step in 0..MOST_STEPS {
        let mut limits = Limits::default();
        set(&mut limits, value);
        let (answers, error) = look(path, &limits);
        // What is given up for want of memory may have been replaced or deleted by what is left.
        if let Err(wrong) = answers.judge(rows, &Judge { may_name_more: true }) {
            failures.push(format!("{what} with {name} = {value}: {wrong}"));
        }
        let Some(error) = error else { return step };
        value = match error.kind() {
            ErrorKind::LimitExceeded { found, .. } if *found > value => *found,
            // A bound that is passed may make a part unreadable, and that is what is said.
            _ => value.saturating_mul(2).max(value + 1),
        };
    }
    failures.push(format!("{what} with {name}: not done after {MOST_STEPS} steps, at {value}"));
    MOST_STEPS
}

fn written(place: &Path, name: &str, format: OutputFormat) -> (String, PathBuf) {
    let source = place.join(format!("{name}.source.parquet"));
    std::fs::write(&source, made::parquet_bytes(&made::sample(300), 100)).unwrap();
    let dataset = pilaster::open(source.to_str().unwrap()).unwrap();
    let target = place.join(name);
    let options = ConvertOptions::default().with_write(WriteOptions::default());
    convert(
        dataset.as_ref(),
        &ScanRequest::default(),
        &ConvertTarget::new(target.clone(), format),
        &options,
        &Silent,
    )
    .unwrap();
    (name.to_string(), target)
}

fn samples(place: &Path) -> Vec<(String, PathBuf)> {
    let mut samples = vec![
        written(place, "x.parquet", OutputFormat::Parquet),
        written(place, "x.arrow", OutputFormat::Arrow),
        written(place, "x.red", OutputFormat::Redfile),
        written(place, "x.csv", OutputFormat::Csv),
        written(place, "x.jsonl", OutputFormat::Jsonl),
        written(place, "cfile set", OutputFormat::CFileSet),
    ];
    for (system, name) in [
        ("kudu", "cfiles/prefix-lz4.cfile"),
        ("kudu", "arrays/string-dict-none-null.cfile"),
        ("kudu", "mixed/fs"),
        ("kudu", "log-only/fs"),
        ("kudu", "encrypted/fs"),
        ("kudu", "file-blocks/fs"),
        ("doris", "duplicate/tablet"),
        ("doris", "merge-on-write/tablet"),
        ("doris", "aggregate/tablet"),
        ("carbondata", "sdk/complex_zstd/data"),
        ("carbondata", "table/iud_update2"),
        ("carbondata", "table/d16_columndict"),
        ("carbondata", "table/v1_complex"),
        ("carbondata", "stream/stream_nested"),
        ("redfile", "nested_random_01.red"),
        ("redfile", "codec_lzo.red"),
    ] {
        samples.push((format!("{system} {name}"), testdata(system).join(name)));
    }
    samples
}

#[test]
fn every_bound_gives_the_same_rows_or_says_that_it_was_passed() {
    let place = tempfile::tempdir().unwrap();
    let mut failures = Vec::new();
    for (what, path) in samples(place.path()) {
        let path = path.to_str().unwrap();
        let rows = strict(path, &Limits::default()).unwrap_or_else(|error| panic!("{what}: {error}"));
        assert!(!rows.is_empty(), "{what}");
        let denied = FIELDS.map(|field| walk(&what, path, &rows, field, &mut failures));
        eprintln!("{what}: {} rows, denied {denied:?}", rows.len());
        // Texts are read a piece at a time and have nothing that says how long it is.
        let is_text = what.ends_with(".csv") || what.ends_with(".jsonl");
        assert!(is_text || denied.iter().sum::<usize>() > 0, "{what}: no bound is kept to");
    }
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
}
