//! A tablet of a real Kudu server: the rows for a client to load, and our scan of the server's folder.
//!
//! `benches/kudu-tablet-scan` runs both around the server and its own scanner.

use std::io::Write;
use std::path::PathBuf;
use std::time::Instant;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_schema::DataType;
use clap::Args;
use pilaster_core::Dataset;
use pilaster_kudu::store::{KuduStore, KuduStoreOptions};
use serde::Serialize;

use crate::Result;
use crate::clock::Clock;
use crate::table::{BATCH_ROWS, KEY, Table, TableKind};
use crate::threads::{count, scan_tasks};

/// Prints lineitem as commands of the client that loads it: a line for each row.
#[derive(Debug, Args)]
pub struct Rows {
    /// Rows of the table.
    #[arg(long, default_value_t = 1_000_000)]
    rows: usize,
    /// Name of the table.
    #[arg(long, default_value = "lineitem")]
    table: String,
}

impl Rows {
    pub fn run(&self) -> Result<()> {
        let table = Table::generate(TableKind::Lineitem, self.rows)?;
        let mut out = std::io::BufWriter::new(std::io::stdout().lock());
        for batch in &table.batches {
            let schema = batch.schema();
            let columns = schema.fields().iter().zip(batch.columns());
            let columns = columns.filter(|(field, _)| field.name() != KEY);
            let texts = columns.map(|(field, array)| Ok((field.name().as_str(), cell_texts(array)?)));
            let texts = texts.collect::<Result<Vec<_>>>()?;
            for row in 0..batch.num_rows() {
                write!(out, "r\tI\t{}", self.table)?;
                for (name, texts) in &texts {
                    write!(out, "\t{name}={}", texts.get(row).map(String::as_str).unwrap_or_default())?;
                }
                writeln!(out)?;
            }
        }
        Ok(out.flush()?)
    }
}

/// Cells as the client reads them: text in hex, dates as days, numbers in decimal.
fn cell_texts(array: &ArrayRef) -> Result<Vec<String>> {
    if let Some(texts) = array.as_string_view_opt() {
        let hex =
            |text: Option<&str>| text.unwrap_or_default().bytes().map(|byte| format!("{byte:02x}")).collect();
        return Ok(texts.iter().map(hex).collect());
    }
    let array = match array.data_type() {
        DataType::Date32 => arrow_cast::cast(array, &DataType::Int32)?,
        _ => ArrayRef::clone(array),
    };
    let formatter = ArrayFormatter::try_new(&array, &FormatOptions::default())?;
    Ok((0..array.len()).map(|row| formatter.value(row).to_string()).collect())
}

/// Scans a table of a Kudu server's folder, all columns, and prints the times as JSON.
#[derive(Debug, Args)]
pub struct Scan {
    /// The server's folder.
    folder: PathBuf,
    /// Name of the table.
    #[arg(long, default_value = "lineitem")]
    table: String,
    /// Scans; the table is opened once before them.
    #[arg(long, default_value_t = 5)]
    iterations: usize,
    /// Threads that take turns at the tasks.
    #[arg(long, default_value_t = 1)]
    threads: usize,
    /// What counts as time; with several threads, that of the thread that took longest.
    #[arg(long, value_enum, default_value = "wall")]
    clock: Clock,
}

#[derive(Debug, Serialize)]
struct Times {
    rows: usize,
    tasks: usize,
    open_seconds: f64,
    seconds: Vec<f64>,
}

impl Scan {
    pub fn run(&self) -> Result<()> {
        let start = Instant::now();
        let store = KuduStore::open(std::slice::from_ref(&self.folder), KuduStoreOptions::default())?;
        let table = store.table(Some(&self.table))?;
        let open_seconds = start.elapsed().as_secs_f64();
        let tasks = table.scan().plan()?.tasks()?.len();
        let (mut rows, mut seconds) = (0, Vec::with_capacity(self.iterations));
        for _ in 0..self.iterations {
            let (count, time) = if self.threads > 1 {
                scan_tasks(&table, self.threads, self.clock)?
            } else {
                let watch = self.clock.start();
                let count = count(table.scan().batch_size(BATCH_ROWS).read()?)?;
                (count, watch.elapsed())
            };
            rows = count;
            seconds.push(time.as_secs_f64());
        }
        println!("{}", serde_json::to_string(&Times { rows, tasks, open_seconds, seconds })?);
        Ok(())
    }
}
