//! Answers queries, one a line, as Arrow: `echo "SELECT 1" | cargo run -p pilaster-datafusion --example sql_answers`.
//!
//! Each answer is a letter, the length of what follows as four bytes (the lowest first), and that: `A` and an Arrow stream, or `E`
//! and the error as text. Tables stay open between queries, so that a program which compares answers with those of another engine
//! (`.ci/sql-fuzz`, `.ci/tpch`) asks thousands of them of one process. A line `-w PATH`, a tab and a condition asks how many rows it
//! leaves, as `count -w` does. Arguments: `--threads N`, `--batch-size N`.

use std::io::{BufRead, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use pilaster::OpenOptions;
use pilaster_datafusion::arrow::array::{ArrayRef, Int64Array, RecordBatch};
use pilaster_datafusion::arrow::ipc::writer::StreamWriter;
use pilaster_datafusion::{Opener, RowFilter, SqlOptions, SqlSession};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

fn main() -> Result<()> {
    let mut options = SqlOptions::default();
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        let value = arguments.next().ok_or_else(|| format!("{name} needs a number"))?.parse()?;
        options = match name.as_str() {
            "--threads" => options.with_threads(value),
            "--batch-size" => options.with_batch_size(value),
            _ => return Err(format!("no option {name}").into()),
        };
    }
    let session = SqlSession::new(options)?;
    let mut out = std::io::stdout().lock();
    for query in std::io::stdin().lock().lines() {
        let query = query?;
        let (kind, bytes) = match catch_unwind(AssertUnwindSafe(|| answer(&session, &query))) {
            Ok(Ok(bytes)) => (b'A', bytes),
            Ok(Err(error)) => (b'E', error.to_string().into_bytes()),
            Err(_) => (b'E', b"panic: the message is on the standard error output".to_vec()),
        };
        out.write_all(&[kind])?;
        out.write_all(&u32::try_from(bytes.len())?.to_le_bytes())?;
        out.write_all(&bytes)?;
        out.flush()?;
    }
    Ok(())
}

fn answer(session: &SqlSession, query: &str) -> Result<Vec<u8>> {
    if let Some((path, condition)) = query.strip_prefix("-w ").and_then(|rest| rest.split_once('\t')) {
        return count(path, condition);
    }
    let batches = session.sql(query)?;
    let mut writer = StreamWriter::try_new(Vec::new(), &batches.schema())?;
    for batch in batches {
        writer.write(&batch?)?;
    }
    Ok(writer.into_inner()?)
}

fn count(path: &str, condition: &str) -> Result<Vec<u8>> {
    let (path, table) = match path.split_once('#') {
        Some((path, table)) => (path, Some(table)),
        None => (path, None),
    };
    let dataset = Opener::open(&OpenOptions::default(), path, table)?;
    let filtered = RowFilter::parse(condition, &dataset.schema())?.apply(dataset);
    let mut rows = 0_i64;
    for batch in filtered.scan().read()? {
        rows = rows.saturating_add(i64::try_from(batch?.num_rows())?);
    }
    let rows: ArrayRef = Arc::new(Int64Array::from(vec![rows]));
    let batch = RecordBatch::try_from_iter([("rows", rows)])?;
    let mut writer = StreamWriter::try_new(Vec::new(), &batch.schema())?;
    writer.write(&batch)?;
    Ok(writer.into_inner()?)
}
