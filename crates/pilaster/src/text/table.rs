//! Rows as a table for people.

use std::io::Write;

use arrow_array::{Array, RecordBatch};
use arrow_schema::{DataType, SchemaRef};
use pilaster_core::Result;

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
        let mut table = comfy_table::Table::new();
        table.load_preset(comfy_table::presets::UTF8_HORIZONTAL_ONLY);
        table.remove_style(comfy_table::TableComponent::HorizontalLines);
        table.remove_style(comfy_table::TableComponent::MiddleIntersections);
        table.set_content_arrangement(comfy_table::ContentArrangement::Disabled);
        table.set_header(self.schema.fields().iter().map(|field| field.name().as_str()));
        for row in self.rows.drain(..) {
            table.add_row(row);
        }
        for (column, field) in table.column_iter_mut().zip(self.schema.fields()) {
            if is_number(field.data_type()) {
                column.set_cell_alignment(comfy_table::CellAlignment::Right);
            }
        }
        self.is_empty = false;
        for line in table.lines() {
            writeln!(self.sink, "{}", line.trim_end())?;
        }
        Ok(())
    }
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
                on_one_line(&String::from_utf8_lossy(&text))
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

/// Control characters would break the alignment (or command the terminal).
fn on_one_line(text: &str) -> String {
    text.chars().flat_map(|c| if c.is_control() { c.escape_default().collect() } else { vec![c] }).collect()
}
