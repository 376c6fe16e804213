//! Nested columns to the pages of their nodes.
//!
//! Nulls are not stored: a null array has one element that is null, a null struct nothing but null fields.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BooleanArray, UInt32Array};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_select::nullif::nullif;
use arrow_select::take::take;
use pilaster_core::{Error, Result};

use super::super::types::{CarbonType, ColumnNode};
use super::chunk::ChunkWriter;
use super::strings::fitting;

/// Adds a page of a column to its chunks.
pub(super) fn add(chunks: &mut [ChunkWriter], node: &ColumnNode, array: &ArrayRef) -> Result<()> {
    match node.carbon_type {
        CarbonType::Array => {
            let list = array.as_list_opt::<i32>().ok_or_else(|| mismatch(node, array))?;
            let (nodes, elements) = arrange(list.offsets(), list.nulls())?;
            let items = taken(list.values(), &elements)?;
            let lone = lone_nulls(list.offsets(), list.nulls(), list.values());
            chunk(chunks, node.chunk)?.conflate(lone);
            chunk(chunks, node.chunk)?.add_nodes(nodes, array.len())?;
            let item = node.children.first().ok_or_else(|| mismatch(node, array))?;
            add(chunks, item, &items)
        }
        CarbonType::Map => {
            let map = array.as_map_opt().ok_or_else(|| mismatch(node, array))?;
            let (nodes, elements) = arrange(map.offsets(), map.nulls())?;
            chunk(chunks, node.chunk)?.add_nodes(nodes, array.len())?;
            let [key, value] = node.children.as_slice() else { return Err(mismatch(node, array)) };
            let (keys, values) = (taken(map.keys(), &elements)?, taken(map.values(), &elements)?);
            if map.keys().null_count() > 0 {
                return Err(Error::invalid(format!("a null key in column {:?}", node.field.name())));
            }
            if let Some(entries) = node.entries_chunk {
                chunk(chunks, entries)?.add_nodes(fields(2, keys.len())?, keys.len())?;
            }
            add(chunks, key, &keys)?;
            add(chunks, value, &values)
        }
        CarbonType::Struct => {
            let structs = array.as_struct_opt().ok_or_else(|| mismatch(node, array))?;
            let nodes = fields(node.children.len(), array.len())?;
            chunk(chunks, node.chunk)?.add_nodes(nodes, array.len())?;
            let mut all_null = true;
            let mut columns = Vec::with_capacity(node.children.len());
            for column in structs.columns() {
                let column = match structs.nulls().filter(|nulls| nulls.null_count() > 0) {
                    Some(nulls) => nullif(column, &BooleanArray::new(!nulls.inner(), None))?,
                    None => Arc::clone(column),
                };
                all_null &= column.null_count() > 0;
                columns.push(column);
            }
            if all_null {
                let is_lost =
                    |row: usize| !structs.is_null(row) && columns.iter().all(|column| column.is_null(row));
                let lost = (0..array.len()).filter(|row| is_lost(*row)).count();
                chunk(chunks, node.chunk)?.conflate(lost as u64);
            }
            for (child, column) in node.children.iter().zip(&columns) {
                add(chunks, child, column)?;
            }
            Ok(())
        }
        _ => chunk(chunks, node.chunk)?.add(array),
    }
}

fn chunk(chunks: &mut [ChunkWriter], number: usize) -> Result<&mut ChunkWriter> {
    chunks.get_mut(number).ok_or_else(|| Error::internal(format!("no chunk number {number}")))
}

fn mismatch(node: &ColumnNode, array: &ArrayRef) -> Error {
    Error::invalid(format!("column {:?} is no {}", node.field.name(), array.data_type()))
}

/// The number of fields, once per value.
fn fields(count: usize, values: usize) -> Result<Vec<u8>> {
    let count = fitting::<u16>(count, "the fields of a struct")?.to_be_bytes();
    Ok(std::iter::repeat_n(count, values).flatten().collect())
}

/// Which elements a page has, in order.
enum Elements {
    /// A stretch of them.
    Range(usize, usize),
    /// These, null where an array is null.
    Places(UInt32Array),
}

/// Counts and first elements of arrays, and which elements they are.
fn arrange(offsets: &OffsetBuffer<i32>, nulls: Option<&NullBuffer>) -> Result<(Vec<u8>, Elements)> {
    let rows = offsets.len().saturating_sub(1);
    let mut nodes = Vec::with_capacity(rows.saturating_mul(8));
    let number = |value: usize| fitting::<u32>(value, "the elements of a page");
    let has_nulls = nulls.is_some_and(|nulls| nulls.null_count() > 0);
    let mut places: Vec<Option<u32>> = Vec::new();
    let mut next = 0usize;
    for (row, pair) in offsets.windows(2).enumerate() {
        let [start, end] = *pair else { continue };
        let (start, end) = (usize::try_from(start).unwrap_or(0), usize::try_from(end).unwrap_or(0));
        let is_null = has_nulls && nulls.is_some_and(|nulls| nulls.is_null(row));
        let count = if is_null { 1 } else { end.saturating_sub(start) };
        let first = if count == 0 { 0 } else { next };
        nodes.extend(number(count)?.to_be_bytes());
        nodes.extend(number(first)?.to_be_bytes());
        next = next.saturating_add(count);
        if is_null {
            places.push(None);
        } else if has_nulls {
            for place in start..end {
                places.push(Some(number(place)?));
            }
        }
    }
    if i32::try_from(next).is_err() {
        return Err(Error::invalid("more than two thousand million elements in a page"));
    }
    let elements = if has_nulls {
        Elements::Places(UInt32Array::from(places))
    } else {
        let start = offsets.first().copied().unwrap_or_default();
        Elements::Range(usize::try_from(start).unwrap_or(0), next)
    };
    Ok((nodes, elements))
}

fn taken(values: &ArrayRef, elements: &Elements) -> Result<ArrayRef> {
    Ok(match elements {
        Elements::Range(start, count) => values.slice(*start, *count),
        Elements::Places(places) => take(values, places, None)?,
    })
}

/// How many arrays have one element, which is null: they will be read as null.
fn lone_nulls(offsets: &OffsetBuffer<i32>, nulls: Option<&NullBuffer>, values: &ArrayRef) -> u64 {
    if values.null_count() == 0 {
        return 0;
    }
    let is_lone = |(row, pair): (usize, &[i32])| match *pair {
        [start, end] if end.checked_sub(start) == Some(1) => {
            nulls.is_none_or(|nulls| nulls.is_valid(row))
                && usize::try_from(start).is_ok_and(|start| values.is_null(start))
        }
        _ => false,
    };
    offsets.windows(2).enumerate().filter(|pair| is_lone(*pair)).count() as u64
}
