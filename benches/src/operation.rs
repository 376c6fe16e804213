//! What is timed.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use crate::format::{Batches, BenchFormat};
use crate::table::{KEY, SINGLE_COLUMNS, TableKind, key_range};
use crate::{Result, table};

/// One thing to do with a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operation {
    Write,
    FullScan,
    OneColumn(String),
    KeyRange,
}

impl Operation {
    /// All, in the order of the report.
    pub fn all(table: TableKind) -> Vec<Self> {
        if table == TableKind::Orders {
            return vec![Self::Write, Self::FullScan];
        }
        let columns = SINGLE_COLUMNS.iter().map(|column| Self::OneColumn((*column).to_string()));
        [Self::Write, Self::FullScan].into_iter().chain(columns).chain([Self::KeyRange]).collect()
    }

    /// Starts the scan; a table is not written here.
    pub fn read(&self, format: &dyn BenchFormat, path: &Path, rows: usize) -> Result<Batches> {
        match self {
            Self::Write => Err("writing is not a scan".into()),
            Self::FullScan => format.full_scan(path),
            Self::OneColumn(column) => format.one_column(path, column),
            Self::KeyRange => format.key_range(path, KEY, key_range(rows)),
        }
    }

    /// The batches the scan must give.
    pub fn expected(&self, table: &table::Table) -> Result<Batches> {
        let batches = table.batches.clone();
        Ok(match self {
            Self::Write | Self::FullScan => Box::new(batches.into_iter().map(Ok)),
            Self::OneColumn(column) => {
                let index = table.schema.index_of(column)?;
                Box::new(batches.into_iter().map(move |batch| batch.project(&[index])))
            }
            Self::KeyRange => {
                let range = key_range(table.rows);
                let (wanted_start, wanted_end) = (usize::try_from(range.start)?, usize::try_from(range.end)?);
                let mut first = 0usize;
                Box::new(batches.into_iter().map(move |batch| {
                    let end = first.saturating_add(batch.num_rows());
                    let start = wanted_start.clamp(first, end);
                    let length = wanted_end.clamp(first, end).saturating_sub(start);
                    let slice = batch.slice(start.saturating_sub(first), length);
                    first = end;
                    Ok(slice)
                }))
            }
        })
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Write => f.write_str("write"),
            Self::FullScan => f.write_str("full-scan"),
            Self::OneColumn(column) => f.write_str(column),
            Self::KeyRange => f.write_str("key-range"),
        }
    }
}

impl FromStr for Operation {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Self::all(TableKind::Lineitem)
            .into_iter()
            .find(|operation| operation.to_string() == name)
            .ok_or_else(|| format!("no operation {name:?}"))
    }
}
