//! Rows by their keys, for sorting them before they are written.

use arrow_array::RecordBatch;
use pilaster_core::{Error, Result};

use super::column::ColumnWriter;
use super::options::SegmentWriteOptions;
use super::plan::{FilePlan, plan_columns};
use super::values::Values;
use super::writer::in_column;
use crate::schema::{KeysType, SchemaColumn, TabletSchema};
use crate::segment::cells::Cell;
use crate::segment::key;

/// Keys of rows in a form that compares as bytes, column by column.
#[derive(Debug, Default)]
pub(crate) struct RowKeys {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl RowKeys {
    /// The key of a row.
    pub fn key(&self, row: usize) -> &[u8] {
        let start = row.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or(0);
        self.ends.get(row).and_then(|end| self.bytes.get(start..*end)).unwrap_or_default()
    }

    /// Adds the key of a row; with `has_ends`, strings in it end before what follows them.
    fn append(&mut self, columns: &[(&Cell, &Values)], row: usize, has_ends: bool) -> Result<()> {
        for (cell, values) in columns {
            if values.is_null(row) {
                key::append_null(&mut self.bytes);
                continue;
            }
            let start = self.bytes.len();
            key::append(cell, values.cell(row), usize::MAX, &mut self.bytes)
                .ok_or_else(|| Error::internal("no key column"))?;
            if has_ends && cell.width().is_none() {
                // A string ends with 00 00; zeros inside it become 00 ff.
                let value = self.bytes.split_off(start);
                for byte in value {
                    self.bytes.push(byte);
                    if byte == 0 {
                        self.bytes.push(u8::MAX);
                    }
                }
                self.bytes.extend([0, 0]);
            }
        }
        self.ends.push(self.bytes.len());
        Ok(())
    }
}

/// The keys of a batch's rows: those rows are sorted by, or the table's keys even where other columns sort its rows.
///
/// Keys that a merge-on-write table indexes are as in its index; others compare column by column.
pub(crate) fn row_keys(schema: &TabletSchema, batch: &RecordBatch, of_table: bool) -> Result<RowKeys> {
    let file = FilePlan::new(schema, &SegmentWriteOptions::default())?;
    let plans = plan_columns(&file, schema, &SegmentWriteOptions::default())?;
    let sort: Vec<&SchemaColumn> = if of_table {
        schema.columns.iter().filter(|column| column.is_key).collect()
    } else {
        schema.sort_columns()
    };
    let mut columns = Vec::with_capacity(sort.len());
    for declared in sort {
        let plan = plans
            .iter()
            .find(|plan| plan.unique_id == declared.unique_id)
            .ok_or_else(|| Error::invalid(format!("no column \"{}\"", declared.name)))?;
        let array = batch
            .column_by_name(&declared.name)
            .ok_or_else(|| Error::invalid(format!("the batch has no key column \"{}\"", declared.name)))?;
        let cell = plan.paged.cell.clone();
        let writer = ColumnWriter::new(&file, plan.clone())?;
        let values = writer.values(array).map_err(|error| in_column(error, declared))?;
        let values =
            values.ok_or_else(|| in_column(Error::invalid("a column made of columns as a key"), declared))?;
        columns.push((cell, values));
    }
    let columns: Vec<(&Cell, &Values)> = columns.iter().map(|(cell, values)| (cell, values)).collect();
    let is_indexed = schema.keys_type == KeysType::Unique
        && schema.merge_on_write
        && (of_table || schema.cluster_key_uids.is_empty());
    let mut keys = RowKeys::default();
    for row in 0..batch.num_rows() {
        keys.append(&columns, row, !is_indexed)?;
    }
    Ok(keys)
}
