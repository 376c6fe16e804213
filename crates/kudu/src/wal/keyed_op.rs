//! Row operations with keys and cells by column id, and what they do to a row.

use std::collections::HashMap;

use bytes::Bytes;
use pilaster_core::{Error, Result};

use super::memory::{MemoryRow, MemoryRows};
use super::row_ops::{self, RowOp, RowOpKind};
use crate::key::{self, KeyPart};
use crate::messages::{WriteRequestPb, required};
use crate::tablet::{ChangeBuilder, ChangeKind, KuduSchema, RowSet};

/// An operation with its cells by column id.
#[derive(Debug)]
pub(super) struct KeyedOp {
    pub kind: RowOpKind,
    pub ignores: bool,
    pub key: Vec<u8>,
    /// Given cells of columns that are not part of the key.
    pub given: Vec<(i32, Option<Bytes>)>,
    /// All cells of the row, defaults included.
    pub whole: HashMap<i32, Option<Bytes>>,
    pub sets_immutable: bool,
}

/// The operations of a request with keys and cells by column id.
pub(super) fn keyed_ops(schema: &KuduSchema, request: &WriteRequestPb) -> Result<Vec<KeyedOp>> {
    let client = KuduSchema::parse(required(request.schema.as_ref(), "schema")?)?;
    let unknown = client.columns.iter().find(|column| schema.index_of_name(&column.name).is_none());
    if let Some(unknown) = unknown {
        return Err(Error::corrupt("columns of the tablet", format!("column {:?}", unknown.name)));
    }
    let operations = required(request.row_operations.as_ref(), "row_operations")?;
    let mut counter = request.auto_incrementing_column.and_then(|column| column.auto_incrementing_counter);
    let ops = row_ops::parse(operations, &client)?;
    ops.into_iter().map(|op| keyed_op(schema, op, &client, &mut counter)).collect()
}

fn keyed_op(
    schema: &KuduSchema,
    op: RowOp,
    client: &KuduSchema,
    counter: &mut Option<i64>,
) -> Result<KeyedOp> {
    let keys = schema.key_count();
    let mut keyed = KeyedOp {
        kind: op.kind,
        ignores: op.ignores,
        key: Vec::new(),
        given: Vec::new(),
        whole: HashMap::new(),
        sets_immutable: false,
    };
    for (index, column) in schema.columns.iter().enumerate() {
        let id = required(column.id, "column id")?;
        let given = client.index_of_name(&column.name).and_then(|at| op.cells.get(at).cloned().flatten());
        let cell = match &given {
            None if column.is_auto_incrementing && op.kind == RowOpKind::Insert => {
                let next = counter.unwrap_or_default().saturating_add(1);
                *counter = Some(next);
                Some(Bytes::copy_from_slice(&next.to_le_bytes()))
            }
            None => column.write_default.clone().map(Bytes::from),
            Some(cell) => cell.clone(),
        };
        if index < keys {
            let part = if index.saturating_add(1) == keys { KeyPart::Last } else { KeyPart::NotLast };
            let value = cell
                .as_deref()
                .ok_or_else(|| Error::corrupt(format!("a value of key column {:?}", column.name), "none"))?;
            key::encode(column.data_type, value, part, &mut keyed.key)?;
        } else if let Some(cell) = given {
            keyed.sets_immutable |= column.is_immutable && cell.is_some();
            if !(column.is_immutable && op.ignores) {
                keyed.given.push((id, cell));
            }
        }
        keyed.whole.insert(id, cell);
    }
    Ok(keyed)
}

/// The change an operation makes to a row that exists.
fn change_of(op: &KeyedOp) -> Option<Vec<u8>> {
    let kind = match op.kind {
        RowOpKind::Delete => return Some(ChangeBuilder::new(ChangeKind::Delete).finish()),
        RowOpKind::Update | RowOpKind::Upsert | RowOpKind::Insert => ChangeKind::Update,
    };
    let mut change = ChangeBuilder::new(kind);
    op.given.iter().for_each(|(id, cell)| change.push(*id, cell.as_deref()));
    (!change.is_empty()).then(|| change.finish())
}

pub(super) fn apply_to_rowset(rowset: &mut RowSet, row: u64, op: &KeyedOp, timestamp: u64) {
    if let Some(change) = change_of(op) {
        rowset.log_changes.entry(row).or_default().push((timestamp, change.into()));
    }
}

pub(super) fn apply_to_memory(rows: &mut MemoryRows, op: KeyedOp, timestamp: u64) -> Result<()> {
    let Some(row) = rows.0.get_mut(&op.key) else {
        return match op.kind {
            RowOpKind::Insert | RowOpKind::Upsert => {
                rows.0
                    .insert(op.key, MemoryRow { inserted: timestamp, cells: op.whole, changes: Vec::new() });
                Ok(())
            }
            RowOpKind::Update | RowOpKind::Delete => Err(Error::corrupt("a row in memory to change", "none")),
        };
    };
    if !row.is_live()? && matches!(op.kind, RowOpKind::Insert | RowOpKind::Upsert) {
        let mut change = ChangeBuilder::new(ChangeKind::Reinsert);
        op.whole.iter().for_each(|(id, cell)| change.push(*id, cell.as_deref()));
        row.changes.push((timestamp, change.finish().into()));
        return Ok(());
    }
    if let Some(change) = change_of(&op) {
        row.changes.push((timestamp, change.into()));
    }
    Ok(())
}
