//! Cells as aligned columns under a header.

use std::fmt;
use std::io::Write;

use comfy_table::{CellAlignment, ContentArrangement, Table, TableComponent, presets};
use pilaster_core::Result;

/// Which side the cells of a column stand on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Text.
    Left,
    /// Numbers.
    Right,
}

/// A table for people, held until it is written because its widths are those of all cells.
pub struct Sheet(Table);

impl fmt::Debug for Sheet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sheet").field("rows", &self.0.row_count()).finish()
    }
}

impl Sheet {
    /// A table of these columns.
    pub fn new<'a>(columns: impl IntoIterator<Item = (&'a str, Side)>) -> Self {
        let (names, sides): (Vec<_>, Vec<_>) = columns.into_iter().unzip();
        let mut table = Table::new();
        table.load_preset(presets::UTF8_HORIZONTAL_ONLY);
        table.remove_style(TableComponent::HorizontalLines);
        table.remove_style(TableComponent::MiddleIntersections);
        table.set_content_arrangement(ContentArrangement::Disabled);
        table.set_header(names.into_iter().map(printable));
        for (column, side) in table.column_iter_mut().zip(sides) {
            if side == Side::Right {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        Self(table)
    }

    /// Adds a row.
    pub fn row(&mut self, cells: impl IntoIterator<Item = impl AsRef<str>>) {
        self.0.add_row(cells.into_iter().map(|cell| printable(cell.as_ref())));
    }

    /// Writes the table, a line per row.
    ///
    /// # Errors
    /// [`pilaster_core::ErrorKind::Io`]
    pub fn write_to(&self, sink: &mut dyn Write) -> Result<()> {
        for line in self.0.lines() {
            writeln!(sink, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

/// Text out of files without the power to command a terminal, on one line: control characters are escaped.
pub fn printable(text: &str) -> String {
    text.chars().flat_map(|c| if c.is_control() { c.escape_default().collect() } else { vec![c] }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_cells_stay_on_their_line() {
        let mut sheet = Sheet::new([("na\nme", Side::Left), ("\u{1b}[31m", Side::Right)]);
        sheet.row(["a\tb", "1"]);
        sheet.row(["é", "20"]);
        let mut text = Vec::new();
        sheet.write_to(&mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        assert!(
            text.contains(" na\\nme") && text.contains("\\u{1b}[31m") && text.contains(" a\\tb"),
            "{text}"
        );
        assert!(text.lines().all(|line| !line.chars().any(char::is_control)), "{text}");
        let ends: Vec<_> = text.lines().filter(|line| line.ends_with(['1', '0'])).map(str::len).collect();
        assert_eq!(ends.len(), 2, "{text}");
    }
}
