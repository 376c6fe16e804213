//! Opens anything, reads two columns of some rows, prints them as JSON lines.
//!
//! `cargo run --example scan -- testdata/kudu/tiny/fs`

use std::io::Write;

use pilaster::text::append_json_lines;
use pilaster::{col, lit};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).unwrap_or_else(|| "testdata/kudu/tiny/fs".to_string());
    let dataset = pilaster::open(&path)?;
    let mut text = Vec::new();
    for batch in dataset.scan().project(["k", "bshuf"]).filter(col("bshuf").gt(lit(1000))).limit(5).read()? {
        append_json_lines(&batch?, &mut text)?;
    }
    std::io::stdout().write_all(&text)?;
    Ok(())
}
