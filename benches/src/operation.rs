//! What is timed.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use arrow_array::StringViewArray;
use arrow_ord::cmp;
use arrow_select::filter::filter_record_batch;

use crate::format::{Batches, BenchFormat};
use crate::table::{KEY, SINGLE_COLUMNS, SOUGHT_COLUMNS, SOUGHT_TEXT, TableKind, key_range};
use crate::{Result, table};

/// One thing to do with a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operation {
    Write,
    FullScan,
    OneColumn(String),
    KeyRange,
    EqualText,
}

impl Operation {
    /// All, in the order of the report.
    pub fn all(table: TableKind) -> Vec<Self> {
        if table == TableKind::Orders {
            return vec![Self::Write, Self::FullScan];
        }
        let columns = SINGLE_COLUMNS.iter().map(|column| Self::OneColumn((*column).to_string()));
        [Self::Write, Self::FullScan]
            .into_iter()
            .chain(columns)
            .chain([Self::KeyRange, Self::EqualText])
            .collect()
    }

    /// Starts the scan; a table is not written here.
    pub fn read(&self, format: &dyn BenchFormat, path: &Path, rows: usize) -> Result<Batches> {
        match self {
            Self::Write => Err("writing is not a scan".into()),
            Self::FullScan => format.full_scan(path),
            Self::OneColumn(column) => format.one_column(path, column),
            Self::KeyRange => format.key_range(path, KEY, key_range(rows)),
            Self::EqualText => format.equal_text(path, SOUGHT_COLUMNS, SOUGHT_TEXT),
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
            Self::EqualText => {
                let names = SOUGHT_COLUMNS.map(|name| table.schema.index_of(name));
                let columns = names.into_iter().collect::<Result<Vec<_>, _>>()?;
                let wanted = StringViewArray::new_scalar(SOUGHT_TEXT);
                Box::new(batches.into_iter().map(move |batch| {
                    let batch = batch.project(&columns)?;
                    filter_record_batch(&batch, &cmp::eq(batch.column(1), &wanted)?)
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
            Self::EqualText => f.write_str("equal-text"),
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
