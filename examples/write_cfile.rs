//! Writes a column as a CFile that Kudu's own tool reads, and reads one row of it back by position.
//!
//! `cargo run --example write_cfile -- /some/folder/numbers.cfile`

use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array};
use arrow_schema::{DataType, Field};
use pilaster::{AtomicFile, RowRanges};
use pilaster_kudu::cfile::{CFileWriter, CFileWriterOptions, Compression};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("where to write?")?;
    let values: ArrayRef = Arc::new(Int64Array::from_iter_values((0..10_000_000).step_by(10)));
    let options = CFileWriterOptions::default().with_compression(Compression::Lz4).with_value_index(true);
    let field = Field::new("value", DataType::Int64, false);
    let mut writer = CFileWriter::try_new(AtomicFile::create(&path)?, &field, options)?;
    writer.write_array(&values)?;
    let (file, summary) = writer.finish()?;
    file.commit()?;
    println!("{} rows in {} bytes", summary.rows, summary.bytes);

    let row = 999_999;
    for batch in pilaster::open(&path)?.scan().rows(RowRanges::one(row..row + 1)).read()? {
        println!("row {row}: {:?}", batch?.column(0));
    }
    Ok(())
}
