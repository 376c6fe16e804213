//! Rows as JSON: one object per line, or one array.

use std::io::Write;

use arrow_array::{Array, RecordBatch};
use pilaster_core::Result;

use super::nested::key;
use super::value::ValueEncoder;
use crate::output::BatchWriter;

/// Appends each row of `batch` as a JSON object and a line feed.
///
/// # Errors
/// [`pilaster_core::ErrorKind::Unsupported`] if a column's type has no text.
pub fn append_json_lines(batch: &RecordBatch, out: &mut Vec<u8>) -> Result<()> {
    let columns = columns(batch)?;
    for row in 0..batch.num_rows() {
        append_object(&columns, row, out);
        out.push(b'\n');
    }
    Ok(())
}

/// Each column with what stands before its value.
type Columns<'a> = Vec<(Vec<u8>, ValueEncoder<'a>)>;

fn columns(batch: &RecordBatch) -> Result<Columns<'_>> {
    let mut columns = Vec::with_capacity(batch.num_columns());
    for (field, column) in batch.schema_ref().fields().iter().zip(batch.columns()) {
        let before = if columns.is_empty() { b'{' } else { b',' };
        let column: &dyn Array = column.as_ref();
        columns.push((key(before, field.name()), ValueEncoder::try_new(column)?));
    }
    Ok(columns)
}

fn append_object(columns: &Columns<'_>, row: usize, out: &mut Vec<u8>) {
    for (key, value) in columns {
        out.extend_from_slice(key);
        value.append_json(row, out);
    }
    out.extend_from_slice(if columns.is_empty() { b"{}" } else { b"}" });
}

/// Writes JSON lines.
#[derive(Debug)]
pub struct JsonLinesWriter<W> {
    sink: W,
    buffer: Vec<u8>,
}

impl<W: Write> JsonLinesWriter<W> {
    /// A writer to `sink`.
    pub fn new(sink: W) -> Self {
        Self { sink, buffer: Vec::new() }
    }
}

impl<W: Write + Send> BatchWriter for JsonLinesWriter<W> {
    fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        self.buffer.clear();
        append_json_lines(batch, &mut self.buffer)?;
        Ok(self.sink.write_all(&self.buffer)?)
    }

    fn finish(mut self: Box<Self>) -> Result<()> {
        Ok(self.sink.flush()?)
    }
}

/// Writes one JSON array of objects.
#[derive(Debug)]
pub struct JsonArrayWriter<W> {
    sink: W,
    buffer: Vec<u8>,
    is_empty: bool,
}

impl<W: Write> JsonArrayWriter<W> {
    /// A writer to `sink`.
    pub fn new(sink: W) -> Self {
        Self { sink, buffer: Vec::new(), is_empty: true }
    }
}

impl<W: Write + Send> BatchWriter for JsonArrayWriter<W> {
    fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        self.buffer.clear();
        let columns = columns(batch)?;
        for row in 0..batch.num_rows() {
            self.buffer.extend_from_slice(if self.is_empty { b"[\n" } else { b",\n" });
            self.is_empty = false;
            append_object(&columns, row, &mut self.buffer);
        }
        Ok(self.sink.write_all(&self.buffer)?)
    }

    fn finish(mut self: Box<Self>) -> Result<()> {
        self.sink.write_all(if self.is_empty { b"[]\n" } else { b"\n]\n" })?;
        Ok(self.sink.flush()?)
    }
}
