//! The rows of a write request.
//!
//! ```text
//! op: | type, 1 | bits: column is given | bits: column is null, if the schema has nullable columns | cells |
//! cell: fixed types: the bytes; others: u64 offset into the indirect data, u64 length
//! ```
//!
//! Here a set null bit means null; in a CFile a set bit means a value.

use bytes::Bytes;
use pilaster_core::{Error, Result};
use pilaster_encoding::bits;

use crate::messages::RowOperationsPb;
use crate::tablet::KuduSchema;

/// What an operation does to a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RowOpKind {
    Insert,
    Update,
    Delete,
    Upsert,
}

/// One operation.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RowOp {
    pub kind: RowOpKind,
    /// Whether it does nothing, instead of failing, where it cannot apply.
    pub ignores: bool,
    /// For each column of the client's schema: the cell, if given; inside, `None` for null.
    pub cells: Vec<Option<Option<Bytes>>>,
}

/// Parses the operations of a request whose columns are those of `schema`.
pub(crate) fn parse(operations: &RowOperationsPb, schema: &KuduSchema) -> Result<Vec<RowOp>> {
    let rows = operations.rows.clone().unwrap_or_default();
    let indirect = operations.indirect_data.clone().unwrap_or_default();
    let bitmap_bytes = schema.columns.len().div_ceil(8);
    let has_nulls = schema.columns.iter().any(|column| column.is_nullable);
    let mut at = 0usize;
    let mut take = |count: usize, what: &str| -> Result<Bytes> {
        let end = at.checked_add(count).filter(|end| *end <= rows.len());
        let end =
            end.ok_or_else(|| Error::corrupt(format!("{what} of {count} bytes"), "the end of the rows"))?;
        let bytes = rows.slice(at..end);
        at = end;
        Ok(bytes)
    };
    let mut ops = Vec::new();
    loop {
        let Ok(kind) = take(1, "an operation") else { return Ok(ops) };
        let (kind, ignores) = match kind.first() {
            Some(1) => (RowOpKind::Insert, false),
            Some(2) => (RowOpKind::Update, false),
            Some(3) => (RowOpKind::Delete, false),
            Some(5) => (RowOpKind::Upsert, false),
            Some(10) => (RowOpKind::Insert, true),
            Some(11) => (RowOpKind::Update, true),
            Some(12) => (RowOpKind::Delete, true),
            Some(13) => (RowOpKind::Upsert, true),
            other => return Err(Error::corrupt("a row operation", format!("type {other:?}"))),
        };
        let given = take(bitmap_bytes, "a bitmap of given columns")?;
        let nulls = if has_nulls { take(bitmap_bytes, "a bitmap of nulls")? } else { Bytes::new() };
        let mut cells = Vec::with_capacity(schema.columns.len());
        for (index, column) in schema.columns.iter().enumerate() {
            if !bits::get(&given, index) {
                cells.push(None);
            } else if has_nulls && column.is_nullable && bits::get(&nulls, index) {
                cells.push(Some(None));
            } else if let Some(width) = column.cell_bytes() {
                cells.push(Some(Some(take(width, "a cell")?)));
            } else {
                let place = take(16, "a cell")?;
                cells.push(Some(Some(indirect_cell(&indirect, &place)?)));
            }
        }
        ops.push(RowOp { kind, ignores, cells });
    }
}

fn indirect_cell(indirect: &Bytes, place: &[u8]) -> Result<Bytes> {
    let number = |at: usize| {
        let eight = place.get(at..).and_then(|rest| rest.first_chunk::<8>());
        eight.and_then(|eight| usize::try_from(u64::from_le_bytes(*eight)).ok())
    };
    let range = number(0).zip(number(8)).and_then(|(start, length)| Some(start..start.checked_add(length)?));
    match range {
        Some(range) if range.end <= indirect.len() => Ok(indirect.slice(range)),
        _ => Err(Error::corrupt(
            format!("a cell inside {} bytes of indirect data", indirect.len()),
            "one outside",
        )),
    }
}

const RANGE_LOWER_BOUND: u8 = 6;
const RANGE_UPPER_BOUND: u8 = 7;

/// Writes the bounds of a range as two operations on rows with the range columns given.
#[derive(Debug)]
pub(crate) struct RangeBoundsWriter {
    columns: usize,
    has_nulls: bool,
    next: u8,
    rows: Vec<u8>,
    indirect: Vec<u8>,
}

impl RangeBoundsWriter {
    /// For a schema of so many columns.
    pub fn new(columns: usize, has_nulls: bool) -> Self {
        Self { columns, has_nulls, next: RANGE_LOWER_BOUND, rows: Vec::new(), indirect: Vec::new() }
    }

    /// Adds a bound, the lower one first: column number, whether its type has a fixed width, and cell, by number of the column.
    pub fn push<'a>(&mut self, cells: impl Iterator<Item = (usize, bool, &'a [u8])>) {
        let mut cells: Vec<_> = cells.collect();
        cells.sort_by_key(|(column, ..)| *column);
        self.rows.push(self.next);
        self.next = RANGE_UPPER_BOUND;
        let is_given = |column: usize| cells.iter().any(|(given, ..)| *given == column);
        bits::pack(&(0..self.columns).map(is_given).collect::<Vec<_>>(), &mut self.rows);
        if self.has_nulls {
            bits::pack(&vec![false; self.columns], &mut self.rows);
        }
        for (_, is_fixed, cell) in cells {
            if is_fixed {
                self.rows.extend_from_slice(cell);
            } else {
                self.rows.extend((self.indirect.len() as u64).to_le_bytes());
                self.rows.extend((cell.len() as u64).to_le_bytes());
                self.indirect.extend_from_slice(cell);
            }
        }
    }

    pub fn finish(self) -> RowOperationsPb {
        RowOperationsPb { rows: Some(self.rows.into()), indirect_data: Some(self.indirect.into()) }
    }
}

/// Parses rows of a schema with columns of several widths, right or wrong.
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) fn parse_rows(bytes: &Bytes) {
    use crate::messages::{ColumnSchemaPb, SchemaPb};
    // Integers, text, booleans, nullable ones among them.
    let columns = [5, 8, 9, 17, 1].iter().zip(0..).map(|(&data_type, number)| ColumnSchemaPb {
        name: Some(format!("c{number}")),
        data_type: Some(data_type),
        is_nullable: Some(number > 2),
        ..ColumnSchemaPb::default()
    });
    let Ok(schema) = KuduSchema::parse(&SchemaPb { columns: columns.collect() }) else { return };
    let operations = RowOperationsPb { rows: Some(bytes.clone()), indirect_data: Some(bytes.clone()) };
    let _ = parse(&operations, &schema);
}
