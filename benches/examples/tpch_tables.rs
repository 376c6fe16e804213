//! Writes the eight tables of TPC-H as Parquet: `cargo run -p pilaster-benches --example tpch_tables -- SCALE FOLDER`.
//!
//! `.ci/tpch` compares the answers of its queries over all formats.

use std::fs::File;
use std::path::Path;

use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;
use tpchgen::generators::{
    CustomerGenerator, LineItemGenerator, NationGenerator, OrderGenerator, PartGenerator, PartSuppGenerator,
    RegionGenerator, SupplierGenerator,
};
use tpchgen_arrow::{
    CustomerArrow, LineItemArrow, NationArrow, OrderArrow, PartArrow, PartSuppArrow, RecordBatchIterator,
    RegionArrow, SupplierArrow,
};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Rows of a batch, and with some of these of a row group: several row groups even in small tables.
const BATCH_ROWS: usize = 4096;
const ROW_GROUP_ROWS: usize = 32_768;

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let scale: f64 = arguments.next().ok_or("give the scale factor")?.parse()?;
    let folder = arguments.next().ok_or("give the folder")?;
    let folder = Path::new(&folder);
    std::fs::create_dir_all(folder)?;
    write(folder, "region", RegionArrow::new(RegionGenerator::new(scale, 1, 1)))?;
    write(folder, "nation", NationArrow::new(NationGenerator::new(scale, 1, 1)))?;
    write(
        folder,
        "supplier",
        SupplierArrow::new(SupplierGenerator::new(scale, 1, 1)).with_batch_size(BATCH_ROWS),
    )?;
    write(
        folder,
        "customer",
        CustomerArrow::new(CustomerGenerator::new(scale, 1, 1)).with_batch_size(BATCH_ROWS),
    )?;
    write(folder, "part", PartArrow::new(PartGenerator::new(scale, 1, 1)).with_batch_size(BATCH_ROWS))?;
    write(
        folder,
        "partsupp",
        PartSuppArrow::new(PartSuppGenerator::new(scale, 1, 1)).with_batch_size(BATCH_ROWS),
    )?;
    write(folder, "orders", OrderArrow::new(OrderGenerator::new(scale, 1, 1)).with_batch_size(BATCH_ROWS))?;
    write(
        folder,
        "lineitem",
        LineItemArrow::new(LineItemGenerator::new(scale, 1, 1)).with_batch_size(BATCH_ROWS),
    )
}

fn write(folder: &Path, table: &str, batches: impl RecordBatchIterator) -> Result<()> {
    let file = File::create(folder.join(format!("{table}.parquet")))?;
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_max_row_group_row_count(Some(ROW_GROUP_ROWS))
        .build();
    let mut writer = ArrowWriter::try_new(file, batches.schema().clone(), Some(properties))?;
    for batch in batches {
        writer.write(&batch)?;
    }
    writer.close()?;
    Ok(())
}
