//! Damaged files: what is lost is exactly what the format promises, and the report says so.
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

mod support;

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use pilaster_core::progress::Silent;
use pilaster_core::{Dataset, Limits, LossLog};
use pilaster_redfile::{
    Effort, RedfileReader, RedfileReaderOptions, RedfileSchema, RepairOptions, kernels, recover, repair,
};
use pilaster_testing::needs;
use serde_json::{Value, json};

use support::golden::Golden;
use support::{goldens, memory, one_batch, open, row_groups, small_file};

/// An undamaged file with its rows and its schema.
struct Base {
    bytes: Vec<u8>,
    batch: RecordBatch,
    schema: RedfileSchema,
    /// First row of each row group.
    first_rows: Vec<u64>,
}

impl Base {
    fn new(bytes: Vec<u8>) -> Self {
        let reader = open(&bytes).unwrap();
        let batch = one_batch(reader.scan().batch_size(1 << 20)).unwrap();
        let schema = reader.redfile_schema().clone();
        let first_rows = row_groups(&reader).iter().map(|rows| rows.start).collect();
        Self { bytes, batch, schema, first_rows }
    }
}

fn damaged(bytes: &[u8], op: &Value) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let mut flip =
        |pair: &Value| bytes[pair[0].as_u64().unwrap() as usize] ^= pair[1].as_u64().unwrap() as u8;
    if let Some(pair) = op.get("flip") {
        flip(pair);
    } else if let Some(pairs) = op.get("flip2") {
        pairs.as_array().unwrap().iter().for_each(&mut flip);
    } else {
        bytes.truncate(op["truncate"].as_u64().unwrap() as usize);
    }
    bytes
}

fn without<'a>(value: &Value, keys: impl IntoIterator<Item = &'a str>) -> Value {
    let mut value = value.clone();
    keys.into_iter().for_each(|key| {
        value.as_object_mut().unwrap().remove(key);
    });
    value
}

/// The row numbers of rows a tolerant scan gives, with the rows.
fn salvaged(reader: &RedfileReader) -> (Vec<u64>, RecordBatch, Arc<LossLog>) {
    let log = Arc::new(LossLog::new());
    let batch =
        one_batch(reader.scan().row_numbers("row").skip_damage(Arc::clone(&log)).batch_size(4)).unwrap();
    let last = batch.num_columns() - 1;
    let rows = batch.column(last).as_primitive::<UInt64Type>().values().to_vec();
    (rows, batch.project(&(0..last).collect::<Vec<_>>()).unwrap(), log)
}

/// Every salvaged row is the row of the undamaged file; `groups` leads from row groups found to row groups written.
fn check_rows_are_right(base: &Base, reader: &RedfileReader, holes: &[u64]) -> Vec<(u64, u64)> {
    let (rows, batch, _) = salvaged(reader);
    let groups = row_groups(reader);
    let mut kept = Vec::new();
    for (at, row) in rows.iter().enumerate() {
        let group = groups.iter().position(|rows| rows.contains(row)).unwrap();
        let inside = row - groups[group].start;
        kept.push((group as u64, inside));
        let mut written = group as u64;
        for hole in holes {
            written += u64::from(*hole <= written);
        }
        let original = base.first_rows[written as usize] + inside;
        assert_eq!(
            batch.slice(at, 1).columns(),
            base.batch.slice(original as usize, 1).columns(),
            "row {row}"
        );
    }
    kept
}

fn loss_json(loss: &pilaster_redfile::Loss) -> Value {
    let mut value = serde_json::to_value(loss).unwrap();
    let object = value.as_object_mut().unwrap();
    object.remove("detail");
    object.insert("rows".into(), json!([loss.rows.start, loss.rows.end]));
    if loss.offset.is_none() {
        object.remove("offset");
    }
    value
}

fn check_case(base: &Base, case: &Value) {
    let bytes = damaged(&base.bytes, &case["op"]);
    let source = memory("damaged.red", bytes.clone());
    let limits = Limits::default();

    let strict = open(&bytes).and_then(|reader| one_batch(reader.scan()));
    match case["strict"].as_str().unwrap() {
        "ok" => assert_eq!(strict.unwrap().columns(), base.batch.columns()),
        "error" => assert!(strict.is_err()),
        _ => {
            if let Ok(batch) = strict {
                assert_eq!(batch.columns(), base.batch.columns());
            }
        }
    }

    let found = recover(&source, Effort::Checkpoints, &limits).unwrap();
    let report = serde_json::to_value(&found.report).unwrap();
    assert_eq!(without(&report, ["rest"]), case["recover"]);
    if let Some(wanted) = case.get("walk") {
        let walked = recover(&source, Effort::Walk(Some(&base.schema)), &limits).unwrap();
        let walked_report = serde_json::to_value(&walked.report).unwrap();
        let silent = ["stop", "holes", "bytes_discarded", "rest"];
        assert_eq!(without(&walked_report, silent), without(wanted, silent));
        let blind = recover(&source, Effort::Walk(None), &limits).unwrap();
        let status = serde_json::to_value(blind.report.status).unwrap();
        assert_eq!(status, case["walk_without_schema"]);
        if walked.metadata.is_some() {
            let options = RedfileReaderOptions::default();
            let (reader, _) =
                RedfileReader::recover(Arc::clone(&source), Some(&base.schema), &options).unwrap();
            check_rows_are_right(base, &reader, &[]);
        }
    }
    if found.metadata.is_none() {
        return;
    }
    let (reader, report) =
        RedfileReader::recover(Arc::clone(&source), None, &RedfileReaderOptions::default()).unwrap();
    let inspected = reader.inspect();
    let pages: Vec<Value> = inspected.lost_pages.iter().map(loss_json).collect();
    let chunks: Vec<Value> = inspected.lost_chunks.iter().map(loss_json).collect();
    assert_eq!(Value::Array(pages), case["lost_pages"]);
    assert_eq!(Value::Array(chunks), case["lost_chunks"]);
    assert_eq!(serde_json::to_value(&inspected.notes).unwrap(), case["notes"]);
    let kept = check_rows_are_right(base, &reader, &report.holes);
    assert_eq!(serde_json::to_value(&kept).unwrap(), case["rows_kept"]);

    // A repaired file is whole and holds exactly these rows.
    let (repaired, report) = repair(source, Vec::new(), &RepairOptions::default(), &Silent).unwrap();
    assert_eq!(report.rows_written, kept.len() as u64);
    let whole = open(&repaired).unwrap();
    let verified = whole.verify(pilaster_core::VerifyDepth::Values, &Silent).unwrap();
    assert!(verified.findings.is_empty(), "{:?}", verified.findings);
    let rows = one_batch(whole.scan().batch_size(1 << 20)).unwrap();
    assert_eq!(rows.columns(), salvaged(&reader).1.columns());
}

#[needs(goldens = "redfile")]
#[test]
fn every_damage_case_gives_what_the_format_promises() {
    let root = goldens();
    let folder = root.join("damage");
    let bases: HashMap<String, Base> = Golden::all(&folder)
        .into_iter()
        .map(|golden| (format!("{}.red", golden.name), Base::new(golden.bytes())))
        .collect();
    let text = std::fs::read_to_string(folder.join("cases.jsonl")).unwrap();
    let mut count = 0;
    for line in text.lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let base = &bases[case["file"].as_str().unwrap()];
        let checked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| check_case(base, &case)));
        assert!(checked.is_ok(), "{}", without(&case, ["rows_kept"]));
        count += 1;
    }
    assert_eq!(count, 601);
}

/// The fast way backwards and the slow way over every byte find the same.
fn check_fast_is_slow(bytes: &[u8]) {
    let source = memory("damaged.red", bytes.to_vec());
    let limits = Limits::default();
    let fast = recover(&source, Effort::Checkpoints, &limits).unwrap();
    if fast.report.source == Some(pilaster_redfile::RecoverySource::Footer) {
        return;
    }
    let slow = kernels::recover_by_full_scan(&source, &limits).unwrap();
    assert_eq!(fast.metadata, slow.as_ref().and_then(|found| found.metadata.clone()));
    if let Some(slow) = slow {
        assert_eq!(fast.report, slow.report);
    }
}

/// Whatever happens to a file: the right rows, fewer rows with a report, or an error.
fn check_never_wrong(base: &Base, bytes: &[u8], what: &str) {
    if let Ok(reader) = open(bytes)
        && let Ok(batch) = one_batch(reader.scan())
    {
        assert_eq!(batch.columns(), base.batch.columns(), "{what}");
    }
    let source = memory("damaged.red", bytes.to_vec());
    if let Ok((reader, report)) =
        RedfileReader::recover(source, Some(&base.schema), &RedfileReaderOptions::default())
    {
        let kept = check_rows_are_right(base, &reader, &report.holes);
        if kept.len() < base.batch.num_rows() {
            let inspected = reader.inspect();
            let is_told = report.status != pilaster_redfile::RecoveryStatus::Intact
                || !inspected.lost_pages.is_empty()
                || !inspected.lost_chunks.is_empty();
            assert!(is_told, "{what}: {} rows and no word about it", kept.len());
        }
    }
}

#[test]
fn every_byte_flip_gives_right_rows_fewer_rows_or_an_error() {
    // With checkpoints one bit of each byte, another from byte to byte; without them all bits of each.
    for interval in [2, 0] {
        let mask = |at: usize| if interval > 0 { 1 << (at % 8) } else { 0xff };
        let base = Base::new(small_file(interval));
        for at in 0..base.bytes.len() {
            let mut bytes = base.bytes.clone();
            bytes[at] ^= mask(at);
            check_never_wrong(&base, &bytes, &format!("byte {at} xor {:#x}", mask(at)));
            check_fast_is_slow(&bytes);
        }
    }
}

#[test]
fn every_truncation_keeps_every_row_group_whose_block_is_complete() {
    for interval in [1, 2, 3] {
        let base = Base::new(small_file(interval));
        // The ends of all blocks, found by looking for their last tag.
        let ends: Vec<usize> = (8..=base.bytes.len())
            .filter(|end| {
                let bytes = &base.bytes[..*end];
                let Some((rest, length)) =
                    bytes.strip_suffix(b"RCK1").and_then(|b| b.split_last_chunk::<4>())
                else {
                    return false;
                };
                let start = (rest.len() + 8).checked_sub(u32::from_le_bytes(*length) as usize);
                start.is_some_and(|start| base.bytes[start..].starts_with(b"RCK1"))
            })
            .collect();
        assert_eq!(ends.len(), 5, "the first block and one for each row group");
        for length in 0..base.bytes.len() {
            let bytes = &base.bytes[..length];
            check_never_wrong(&base, bytes, &format!("{length} bytes"));
            check_fast_is_slow(bytes);
            let complete = ends.iter().filter(|end| **end <= length).count();
            let found =
                recover(&memory("cut.red", bytes.to_vec()), Effort::Checkpoints, &Limits::default()).unwrap();
            match complete {
                0 => assert!(found.metadata.is_none(), "{length}"),
                blocks => assert_eq!(found.report.row_groups, blocks as u64 - 1, "{length}"),
            }
        }
    }
}

#[test]
fn two_damaged_places_are_recovered_alike_fast_and_slowly() {
    let base = Base::new(small_file(2));
    let mut numbers = support::Numbers(7);
    for _ in 0..400 {
        let mut bytes = base.bytes.clone();
        for _ in 0..=numbers.below(3) {
            let at = numbers.below(bytes.len() as u64) as usize;
            bytes[at] ^= (1 + numbers.below(255)) as u8;
        }
        let last = bytes.len() - 1;
        bytes[last] ^= 1;
        check_fast_is_slow(&bytes);
        check_never_wrong(&base, &bytes, "several bytes");
    }
}

#[test]
fn without_checksums_damage_never_panics() {
    let batch = Base::new(small_file(2)).batch;
    let options = pilaster_redfile::RedfileWriterOptions::default()
        .with_page_bytes(16)
        .with_row_group_rows(5)
        .with_checksums(false);
    let bytes = support::write(&batch, options).unwrap();
    for at in 0..bytes.len() {
        for mask in [0xff, 1 << (at % 8)] {
            let mut bytes = bytes.clone();
            bytes[at] ^= mask;
            if let Ok(reader) = open(&bytes) {
                let _ = one_batch(reader.scan());
                let _ = salvaged(&reader);
                let _ = reader.verify(pilaster_core::VerifyDepth::Values, &Silent);
            }
        }
    }
}
