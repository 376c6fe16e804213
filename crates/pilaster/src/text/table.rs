//! Rows as a table for people.

use std::io::Write;

use arrow_array::{Array, RecordBatch};
use arrow_schema::{DataType, SchemaRef};
use pilaster_core::Result;

use super::sheet::{Sheet, Side};
use super::value::ValueEncoder;
use crate::output::BatchWriter;

/// Rows that are measured together. A longer table starts anew with its own widths, so memory stays bounded.
const ROWS_PER_TABLE: usize = 10_000;

/// Writes aligned columns under a header: numbers to the right, text to the left, null as `null`.
#[derive(Debug)]
pub struct TableWriter<W> {
    sink: W,
    schema: SchemaRef,
    rows: Vec<Vec<String>>,
    is_empty: bool,
}

impl<W: Write> TableWriter<W> {
    /// A writer of the columns of `schema` to `sink`.
    pub fn new(sink: W, schema: SchemaRef) -> Self {
        Self { sink, schema, rows: Vec::new(), is_empty: true }
    }

    fn flush_rows(&mut self) -> Result<()> {
        let columns = self.schema.fields().iter();
        let mut sheet = Sheet::new(columns.map(|field| (field.name().as_str(), side_of(field.data_type()))));
        for row in self.rows.drain(..) {
            sheet.row(row);
        }
        self.is_empty = false;
        sheet.write_to(&mut self.sink)
    }
}

fn side_of(data_type: &DataType) -> Side {
    if is_number(data_type) { Side::Right } else { Side::Left }
}

fn is_number(data_type: &DataType) -> bool {
    match data_type {
        DataType::Dictionary(_, values) => is_number(values),
        other => other.is_numeric(),
    }
}

impl<W: Write + Send> BatchWriter for TableWriter<W> {
    fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        let arrays = batch.columns().iter().map(|column| column.as_ref() as &dyn Array);
        let columns = arrays.map(ValueEncoder::try_new).collect::<Result<Vec<_>>>()?;
        for row in 0..batch.num_rows() {
            let cells = columns.iter().map(|column| {
                let mut text = Vec::new();
                match column.is_null(row) {
                    true => text.extend_from_slice(b"null"),
                    false => column.append_text(row, &mut text),
                }
                String::from_utf8_lossy(&text).into_owned()
            });
            self.rows.push(cells.collect());
            if self.rows.len() >= ROWS_PER_TABLE {
                self.flush_rows()?;
            }
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<()> {
        if self.is_empty || !self.rows.is_empty() {
            self.flush_rows()?;
        }
        Ok(self.sink.flush()?)
    }
}
