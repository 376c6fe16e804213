//! What planning costs grows with the number of segments, and not with its square.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "tests compute with known values"
)]

mod support;

use std::fs;
use std::path::Path;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use pilaster_carbondata::table::{CarbonTableWriter, CarbonTableWriterOptions};
use pilaster_core::{Dataset, RowRanges, ScanRequest, ScanTask, col, lit};
use support::tables::{copy_all, open};

/// A table of as many segments as wanted, all with the rows of the first.
fn with_segments(folder: &Path, count: usize) {
    let batch =
        RecordBatch::try_from_iter([("id", Arc::new(Int64Array::from(vec![1, 2, 3])) as ArrayRef)]).unwrap();
    let mut writer =
        CarbonTableWriter::create(folder, &batch.schema(), CarbonTableWriterOptions::default()).unwrap();
    writer.write(&batch).unwrap();
    writer.finish().unwrap();
    let status = folder.join("Metadata/tablestatus");
    let entries: Vec<serde_json::Value> = serde_json::from_slice(&fs::read(&status).unwrap()).unwrap();
    let first = &entries[0];
    let named = folder.join("Metadata/segments").join(first["segmentFile"].as_str().unwrap());
    let text = fs::read_to_string(named).unwrap();
    let mut all = entries.clone();
    for id in 1..count {
        let name = format!("{id}_1.segment");
        fs::write(
            folder.join("Metadata/segments").join(&name),
            text.replace("Segment_0", &format!("Segment_{id}")),
        )
        .unwrap();
        copy_all(&folder.join("Fact/Part0/Segment_0"), &folder.join(format!("Fact/Part0/Segment_{id}")));
        let mut entry = first.clone();
        entry["loadName"] = id.to_string().into();
        entry["segmentFile"] = name.into();
        all.push(entry);
    }
    fs::write(status, serde_json::to_vec(&all).unwrap()).unwrap();
}

#[test]
fn every_segment_is_planned_once_however_many_there_are() {
    for count in [10, 100, 1000] {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("t");
        with_segments(&folder, count);
        for predicate in [None, Some(col("id").gt_eq(lit(2i64)))] {
            let table = open(&folder);
            let request = ScanRequest { predicate: predicate.clone(), ..ScanRequest::default() };
            let tasks = table.plan(&request).unwrap().tasks().unwrap();
            assert_eq!(tasks.len(), count);
            let read =
                |task: &ScanTask| task.read().unwrap().map(|batch| batch.unwrap().num_rows()).sum::<usize>();
            let rows: usize = tasks.iter().map(read).sum();
            assert_eq!(rows, count * if predicate.is_some() { 2 } else { 3 });
            assert_eq!(table.parts_planned(), count as u64);
            // Rows by position are as near.
            let request =
                ScanRequest { rows: Some(RowRanges::one(7..9)), predicate, ..ScanRequest::default() };
            let _ = table.read(&request).unwrap().map(|batch| batch.unwrap().num_rows()).sum::<usize>();
            assert_eq!(table.parts_planned(), count as u64 + 1);
        }
    }
}
