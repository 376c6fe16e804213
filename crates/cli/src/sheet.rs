//! Tables of facts for people.

use std::io::{self, Write};

use pilaster::Result;
use pilaster::text::{self, Side};

/// A table with a header.
#[derive(Debug)]
pub(crate) struct Sheet(text::Sheet);

impl Sheet {
    /// A table of these columns; those whose name begins with `>` are aligned to the right, under the rest of the name.
    pub(crate) fn new(columns: &[&str]) -> Self {
        Self(text::Sheet::new(columns.iter().map(|name| match name.strip_prefix('>') {
            Some(name) => (name, Side::Right),
            None => (*name, Side::Left),
        })))
    }

    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.0.row(cells);
    }

    /// Prints it to stdout.
    pub(crate) fn print(&self) -> Result<()> {
        let mut stdout = io::stdout().lock();
        self.0.write_to(&mut stdout)?;
        Ok(stdout.flush()?)
    }
}

/// A number, or nothing if it is not known.
pub(crate) fn known(value: Option<impl ToString>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}
