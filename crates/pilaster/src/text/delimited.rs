//! Rows as CSV or TSV.

use std::io::Write;

use arrow_array::{Array, RecordBatch};
use arrow_schema::Schema;
use pilaster_core::Result;

use super::value::ValueEncoder;
use crate::output::BatchWriter;

/// Writes a header and one record per row, quoted as RFC 4180 says. Null is an empty field, an empty string is `""`.
#[derive(Debug)]
pub struct DelimitedWriter<W> {
    sink: W,
    delimiter: u8,
    buffer: Vec<u8>,
    has_header: bool,
}

impl<W: Write> DelimitedWriter<W> {
    /// A writer of the columns of `schema` to `sink`.
    pub fn new(sink: W, schema: &Schema, delimiter: u8) -> Self {
        let mut buffer = Vec::new();
        for (index, field) in schema.fields().iter().enumerate() {
            if index > 0 {
                buffer.push(delimiter);
            }
            let start = buffer.len();
            buffer.extend_from_slice(field.name().as_bytes());
            quote_if_needed(&mut buffer, start, delimiter);
        }
        buffer.push(b'\n');
        Self { sink, delimiter, buffer, has_header: false }
    }

    /// The header comes with the first rows, or at the end if there are none.
    fn start(&mut self) {
        if self.has_header {
            self.buffer.clear();
        }
        self.has_header = true;
    }
}

/// Quotes what lies behind `start`, if a reader would need it: it is empty or holds a delimiter, a quote or a line end.
fn quote_if_needed(out: &mut Vec<u8>, start: usize, delimiter: u8) {
    let text = out.get(start..).unwrap_or_default();
    let is_special = |byte: &u8| *byte == delimiter || matches!(byte, b'"' | b'\n' | b'\r');
    if !text.is_empty() && !text.iter().any(is_special) {
        return;
    }
    let mut quoted = Vec::with_capacity(text.len().saturating_add(2));
    quoted.push(b'"');
    for &byte in text {
        if byte == b'"' {
            quoted.push(b'"');
        }
        quoted.push(byte);
    }
    quoted.push(b'"');
    out.truncate(start);
    out.append(&mut quoted);
}

impl<W: Write + Send> BatchWriter for DelimitedWriter<W> {
    fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        self.start();
        let arrays = batch.columns().iter().map(|column| column.as_ref() as &dyn Array);
        let columns = arrays.map(ValueEncoder::try_new).collect::<Result<Vec<_>>>()?;
        for row in 0..batch.num_rows() {
            for (index, column) in columns.iter().enumerate() {
                if index > 0 {
                    self.buffer.push(self.delimiter);
                }
                // A record of one empty field is an empty line, which readers pass over.
                if !column.is_null(row) || columns.len() == 1 {
                    let start = self.buffer.len();
                    column.append_text(row, &mut self.buffer);
                    quote_if_needed(&mut self.buffer, start, self.delimiter);
                }
            }
            self.buffer.push(b'\n');
        }
        Ok(self.sink.write_all(&self.buffer)?)
    }

    fn finish(mut self: Box<Self>) -> Result<()> {
        if !self.has_header {
            self.sink.write_all(&self.buffer)?;
        }
        Ok(self.sink.flush()?)
    }
}
