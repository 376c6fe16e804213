//! Tables of facts for people.

use std::io::{self, Write};

use comfy_table::{CellAlignment, ContentArrangement, Table, TableComponent, presets};
use pilaster::Result;

/// A table with a header.
#[derive(Debug)]
pub(crate) struct Sheet(Table);

impl Sheet {
    /// A table of these columns; those whose name begins with `>` are aligned to the right, under the rest of the name.
    pub(crate) fn new(columns: &[&str]) -> Self {
        let mut table = Table::new();
        table.load_preset(presets::UTF8_HORIZONTAL_ONLY);
        table.remove_style(TableComponent::HorizontalLines);
        table.remove_style(TableComponent::MiddleIntersections);
        table.set_content_arrangement(ContentArrangement::Disabled);
        table.set_header(columns.iter().map(|name| name.strip_prefix('>').unwrap_or(name)));
        for (column, name) in table.column_iter_mut().zip(columns) {
            if name.starts_with('>') {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        Self(table)
    }

    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.0.add_row(cells.into_iter().map(|cell| printable(&cell)));
    }

    /// Prints it to stdout.
    pub(crate) fn print(&self) -> Result<()> {
        let mut stdout = io::stdout().lock();
        for line in self.0.lines() {
            writeln!(stdout, "{}", line.trim_end())?;
        }
        Ok(stdout.flush()?)
    }
}

/// Text out of files without the power to command the terminal.
pub(crate) fn printable(text: &str) -> String {
    text.chars().flat_map(|c| if c.is_control() { c.escape_default().collect() } else { vec![c] }).collect()
}

/// A number, or nothing if it is not known.
pub(crate) fn known(value: Option<impl ToString>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}
