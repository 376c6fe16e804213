//! What planning costs for a CarbonData table of many small segments.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use clap::Args;
use pilaster_carbondata::table::{
    CarbonTable, CarbonTableOptions, CarbonTableWriter, CarbonTableWriterOptions,
};
use pilaster_core::{Dataset, col, lit};
use serde_json::{Value, json};

use crate::Result;

/// Plans and reads a CarbonData table of many small segments, split by split, as a query does.
#[derive(Debug, Args)]
pub struct CarbonSegments {
    /// Numbers of segments.
    #[arg(long, value_delimiter = ',', default_value = "500,5000")]
    segments: Vec<usize>,
    /// Times each is done; the fastest counts.
    #[arg(long, default_value_t = 3)]
    iterations: usize,
}

impl CarbonSegments {
    pub fn run(&self) -> Result<()> {
        println!("| segments | open, ms | plan and read all tasks, ms | µs a segment |");
        println!("| ---: | ---: | ---: | ---: |");
        for &count in &self.segments {
            let place = tempfile::tempdir()?;
            let folder = place.path().join("table");
            write(&folder, count)?;
            let (mut opened, mut read) = (Duration::MAX, Duration::MAX);
            for _ in 0..self.iterations {
                let start = Instant::now();
                let table = CarbonTable::open(&folder, &CarbonTableOptions::default())?;
                opened = opened.min(start.elapsed());
                let start = Instant::now();
                let mut rows = 0usize;
                for task in table.scan().filter(col("id").gt_eq(lit(2i64))).plan()?.tasks()? {
                    for batch in task.read()? {
                        rows = rows.saturating_add(batch?.num_rows());
                    }
                }
                read = read.min(start.elapsed());
                if rows != count.saturating_mul(2) {
                    return Err(format!("{rows} rows of {count} segments with 2 each").into());
                }
            }
            let [opened, read] = [opened, read].map(|time| time.as_secs_f64() * 1000.0);
            #[expect(clippy::cast_precision_loss, reason = "a number of folders")]
            let each = read * 1000.0 / count as f64;
            println!("| {count} | {opened:.1} | {read:.1} | {each:.1} |");
        }
        Ok(())
    }
}

/// A table of `count` segments: one is written, the others are copies of it under other numbers.
fn write(folder: &Path, count: usize) -> Result<()> {
    let ids: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 3]));
    let batch = RecordBatch::try_from_iter([("id", ids)])?;
    let options = CarbonTableWriterOptions::default();
    let mut writer = CarbonTableWriter::create(folder, &batch.schema(), options)?;
    writer.write(&batch)?;
    writer.finish()?;
    let status = folder.join("Metadata/tablestatus");
    let mut entries: Vec<Value> = serde_json::from_slice(&fs::read(&status)?)?;
    let first = entries.first().cloned().ok_or("a table without segments")?;
    let segments = folder.join("Metadata/segments");
    let name = first.get("segmentFile").and_then(Value::as_str).ok_or("a segment without its file")?;
    let text = fs::read_to_string(segments.join(name))?;
    let data = folder.join("Fact/Part0/Segment_0");
    let files: Vec<_> = fs::read_dir(&data)?.collect::<std::io::Result<_>>()?;
    for id in 1..count {
        let name = format!("{id}_1.segment");
        fs::write(segments.join(&name), text.replace("Segment_0", &format!("Segment_{id}")))?;
        let copy = folder.join(format!("Fact/Part0/Segment_{id}"));
        fs::create_dir_all(&copy)?;
        for file in &files {
            fs::copy(file.path(), copy.join(file.file_name()))?;
        }
        let mut entry = first.clone();
        if let Some(entry) = entry.as_object_mut() {
            entry.insert("loadName".into(), json!(id.to_string()));
            entry.insert("segmentFile".into(), json!(name));
        }
        entries.push(entry);
    }
    fs::write(status, serde_json::to_vec(&entries)?)?;
    Ok(())
}
