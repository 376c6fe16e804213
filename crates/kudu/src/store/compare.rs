//! Whether the replicas of a tablet agree.
//!
//! Replicas of one tablet hold the same rows in other rowsets. They are compared at the time of the last operation that all
//! of their logs have, row by row, in key order.

use std::collections::BTreeMap;

use arrow_row::{RowConverter, Rows, SortField};
use pilaster_core::{BatchReader, Dataset, Error, Finding, Result};

use super::{KuduStore, is_readable};
use crate::tablet::{KuduTable, Replica, at_common_time};

impl KuduStore {
    /// What differs between whole replicas of the tablets that the options choose.
    pub(super) fn compare_replicas(&self, table: Option<&str>) -> Vec<Finding> {
        let mut by_tablet: BTreeMap<&str, Vec<&Replica>> = BTreeMap::new();
        for replica in self.replicas.iter().filter(|replica| {
            table.is_none_or(|name| replica.metadata.table_name == name)
                && is_readable(replica)
                && self.options.chooses(&replica.metadata.tablet_id, &replica.server)
        }) {
            by_tablet.entry(&replica.metadata.tablet_id).or_default().push(replica);
        }
        let several = by_tablet.into_values().filter(|replicas| replicas.len() > 1);
        several.flat_map(|replicas| compare(&replicas)).collect()
    }
}

fn compare(replicas: &[&Replica]) -> Vec<Finding> {
    let tables = at_common_time(replicas);
    let Some(((first, table), others)) = tables.split_first() else { return Vec::new() };
    let finding = |(server, other): &(String, KuduTable)| {
        let difference = match first_difference(table, other) {
            Ok(None) => return None,
            Ok(Some(row)) => Error::corrupt(
                format!("the same rows as on server {first}"),
                format!("another row {row} on server {server}"),
            ),
            Err(error) => error,
        };
        Some(Finding::from_error(&difference, &format!("tablet {}", table.name()), None))
    };
    others.iter().filter_map(finding).collect()
}

/// The position of the first row that is not the same in both.
fn first_difference(a: &KuduTable, b: &KuduTable) -> Result<Option<u64>> {
    let (mut a, mut b) = (RowStream::new(a)?, RowStream::new(b)?);
    let mut position = 0u64;
    loop {
        let is_same = match (a.has_next()?, b.has_next()?) {
            (false, false) => return Ok(None),
            (true, true) => a.next() == b.next(),
            _ => false,
        };
        if !is_same {
            return Ok(Some(position));
        }
        position = position.saturating_add(1);
    }
}

/// The rows of a table as bytes that are equal where the rows are.
struct RowStream {
    reader: BatchReader,
    converter: RowConverter,
    rows: Option<Rows>,
    at: usize,
}

impl RowStream {
    fn new(table: &KuduTable) -> Result<Self> {
        let schema = table.schema();
        let fields = schema.fields().iter().map(|field| SortField::new(field.data_type().clone()));
        let converter = RowConverter::new(fields.collect())?;
        Ok(Self { reader: table.scan().read()?, converter, rows: None, at: 0 })
    }

    fn has_next(&mut self) -> Result<bool> {
        while self.rows.as_ref().is_none_or(|rows| self.at >= rows.num_rows()) {
            let Some(batch) = self.reader.next().transpose()? else { return Ok(false) };
            self.rows = Some(self.converter.convert_columns(batch.columns())?);
            self.at = 0;
        }
        Ok(true)
    }

    fn next(&mut self) -> Option<&[u8]> {
        let rows = self.rows.as_ref().filter(|rows| self.at < rows.num_rows())?;
        let row = rows.row(self.at);
        self.at = self.at.saturating_add(1);
        Some(row.data())
    }
}
