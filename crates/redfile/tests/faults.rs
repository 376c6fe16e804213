//! Files in a storage of which one call goes wrong: nothing is given as complete that is not, and errors name the file.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    missing_docs,
    reason = "tests compute with known values and stop at the first surprise"
)]

use std::sync::Arc;

use arrow_array::RecordBatch;
use pilaster_core::progress::Silent;
use pilaster_core::{
    Absence, Dataset, Error, Location, LossLog, LostRows, Result, VerifyDepth, VerifyReport,
};
use pilaster_redfile::{RedfileReader, RedfileReaderOptions, RedfileWriter, RedfileWriterOptions};
use pilaster_testing::batches;
use pilaster_testing::fault_net::{Looks, check, in_memory};
use pilaster_testing::write_net::{self, Writes};

fn texts(all: &[RecordBatch]) -> Vec<String> {
    let of = |batch: &RecordBatch| -> Vec<String> {
        (0..batch.num_rows()).map(|row| format!("{:?}", batch.slice(row, 1).columns())).collect()
    };
    all.iter().flat_map(of).collect()
}

fn rows(file: &Location) -> Result<Vec<String>> {
    let reader = RedfileReader::open(file.open()?)?;
    match reader.absences().first() {
        Some(absence) => Err(Error::incomplete(absence.what.clone()).at(&absence.path, 0, "")),
        None => Ok(texts(&batches(reader.scan())?)),
    }
}

fn verify(file: &Location) -> Result<VerifyReport> {
    let reader = RedfileReader::open(file.open()?)?;
    let mut report = reader.verify(VerifyDepth::Values, &Silent)?;
    report.findings.extend(reader.absences().iter().map(Absence::finding));
    Ok(report)
}

fn salvage(file: &Location) -> Result<(Vec<String>, Vec<LostRows>)> {
    let reader = match RedfileReader::open(file.open()?) {
        Err(error) if error.is_damage() => {
            RedfileReader::recover(file.open()?, None, &RedfileReaderOptions::default())?.0
        }
        opened => opened?,
    };
    let losses = Arc::new(LossLog::new());
    let saved = texts(&batches(reader.scan().skip_damage(Arc::clone(&losses)))?);
    reader.absences().iter().for_each(|absence| losses.add(absence.loss()));
    Ok((saved, losses.losses()))
}

#[test]
fn a_call_that_goes_wrong_is_named_and_costs_no_row_in_silence() {
    let folder = pilaster_testing::testdata("redfile");
    let memory = in_memory(&folder).unwrap();
    let mut calls = 0;
    for name in ["checkpoints_n3", "dremel_document", "flat_optional", "nested_random_01", "nulls_1000"] {
        let name = format!("{name}.red");
        let (local, memory) = (Location::local(folder.join(&name)), memory.child(&name));
        assert_eq!(rows(&local).unwrap(), rows(&memory).unwrap(), "{name}");
        let looks =
            Looks { rows: &rows, verify: &verify, salvage: &salvage, log: None, notices_changes: true };
        calls += check(&memory, &looks);
    }
    assert!(calls > 80, "{calls} calls");
}

#[test]
fn a_file_that_cannot_be_written_is_not_there() {
    let folder = Location::local(pilaster_testing::testdata("redfile"));
    let reader = RedfileReader::open(folder.child("flat_optional.red").open().unwrap()).unwrap();
    let batch = batches(reader.scan()).unwrap()[0].slice(0, 4);
    let write = |target: &Location| -> Result<()> {
        let options = RedfileWriterOptions::default().with_row_group_rows(2);
        let mut writer = RedfileWriter::try_new(target.create()?, &batch.schema(), options)?;
        writer.write(&batch)?;
        writer.finish()?.0.finish()
    };
    let calls = write_net::check(&Writes { prepare: None, write: &write, rows: &rows });
    assert!(calls > 30, "{calls} calls");
}
