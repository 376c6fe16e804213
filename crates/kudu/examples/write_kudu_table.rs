//! Writes a table as the folder of a tablet server: `cargo run -p pilaster-kudu --example write_kudu_table -- FOLDER`.
//!
//! `docs/guides/write-a-kudu-table.md` gives the folder to a real Kudu.

use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::{ArrayRef, Date32Array, Decimal128Array, Int64Array, RecordBatch, StringArray};
use pilaster_kudu::cfile::Compression;
use pilaster_kudu::table_writer::{HashPartition, KuduTableWriter, KuduTableWriterOptions};

const ROWS: i32 = 100_000;
const BATCH_ROWS: usize = 8_192;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = PathBuf::from(std::env::args().nth(1).ok_or("give the folder to write")?);
    let options = KuduTableWriterOptions::default()
        .with_table_name("orders")
        .with_primary_key(["id"])
        .with_hash_partition(HashPartition::new(["id"], 4))
        .with_compression(Compression::Lz4);
    let mut writer = KuduTableWriter::try_new(&folder, batch(0)?.schema(), options)?;
    // The last rows come first: rows need not be in order.
    for start in (0..ROWS).step_by(BATCH_ROWS).rev() {
        writer.write(&batch(start)?)?;
    }
    let summary = writer.finish()?;
    println!("table {} ({} rows) of server {}", summary.table_name, summary.rows, summary.server_uuid);
    for tablet in summary.tablets {
        println!("  tablet {} {}: {} rows", tablet.tablet_id, tablet.partition, tablet.rows);
    }
    Ok(())
}

/// The orders from number `start` on.
fn batch(start: i32) -> Result<RecordBatch, Box<dyn std::error::Error>> {
    let ids: Vec<i64> = (start..ROWS).take(BATCH_ROWS).map(i64::from).collect();
    let customers = ids.iter().map(|id| format!("customer-{}", id.rem_euclid(997)));
    let days = ids.iter().map(|id| i32::try_from(id.rem_euclid(20_000)).unwrap_or_default());
    let cents = ids.iter().map(|id| i128::from(*id).saturating_mul(37));
    let price = Decimal128Array::from_iter_values(cents).with_precision_and_scale(12, 2)?;
    Ok(RecordBatch::try_from_iter([
        ("id", Arc::new(Int64Array::from(ids.clone())) as ArrayRef),
        ("customer", Arc::new(StringArray::from_iter_values(customers))),
        ("day", Arc::new(Date32Array::from_iter_values(days))),
        ("price", Arc::new(price)),
    ])?)
}
