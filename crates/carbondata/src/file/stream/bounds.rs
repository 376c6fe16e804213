//! Least and greatest values of streaming files, as blocklet headers and the index of the segment have them.
//!
//! Their lists have the columns that are not nested, dimensions first. Dimensions are compared as bytes; measures have the form of
//! version 3 and are compared as numbers. A blocklet of one row has no list: its row is one.

use std::cmp::Ordering;

use bytes::Bytes;
use pilaster_core::error::AtPosition;
use pilaster_core::{Error, Result};

use super::rows::Rows;
use super::{BLOCKLET_PART, Stream};
use crate::file::layout::CarbonFile;
use crate::file::page::strings::decimal;
use crate::file::types::{CarbonType, ColumnNode};
use crate::messages::{MinMax, StreamRecord};

/// The columns that have statistics, in the order of their lists.
fn with_statistics(file: &CarbonFile) -> Vec<&ColumnNode> {
    Rows::of(file).columns.into_iter().filter(|node| !node.carbon_type.is_nested()).collect()
}

/// The statistics of a blocklet with a place for every column and child of the file.
pub(super) fn by_column(file: &CarbonFile, known: &MinMax) -> Option<MinMax> {
    let columns = with_statistics(file);
    if known.min.len() != columns.len() || known.max.len() != columns.len() {
        return None;
    }
    let all = file.header.columns.len();
    let mut spread =
        MinMax { min: vec![Bytes::new(); all], max: vec![Bytes::new(); all], is_present: vec![false; all] };
    for (place, node) in columns.iter().enumerate() {
        let Some((min, max)) = known.bounds(place) else { continue };
        *spread.min.get_mut(node.chunk)? = min.clone();
        *spread.max.get_mut(node.chunk)? = max.clone();
        *spread.is_present.get_mut(node.chunk)? = true;
    }
    Some(spread)
}

/// What the index of the segment says of a file of which the blocklets that were opened count.
pub(crate) fn record(file: &CarbonFile) -> Result<StreamRecord> {
    let stream = file.stream.as_ref().ok_or_else(|| Error::invalid("no streaming file"))?;
    let signed = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    let name = file.name().rsplit(['/', '\\']).next().unwrap_or_default();
    Ok(StreamRecord {
        rows: signed(file.rows),
        file_name: name.to_string(),
        min_max: of_file(file, stream)?,
        file_size: signed(stream.end().unwrap_or(file.header_bytes)),
    })
}

/// The statistics of all blocklets together; `None` if those of one are not known, as before release 1.5.
fn of_file(file: &CarbonFile, stream: &Stream) -> Result<Option<MinMax>> {
    let columns = with_statistics(file);
    let mut all: Option<MinMax> = None;
    for (number, known) in stream.statistics.iter().enumerate() {
        let one_row;
        let known = match known {
            Some(known) => known,
            None => {
                let Some(found) = of_one_row(file, stream, number)? else { return Ok(None) };
                one_row = found;
                &one_row
            }
        };
        if known.min.len() != columns.len() || known.max.len() != columns.len() {
            return Ok(None);
        }
        all = Some(match all {
            None => known.clone(),
            Some(all) => merged(&columns, &all, known),
        });
    }
    Ok(all)
}

fn merged(columns: &[&ColumnNode], all: &MinMax, other: &MinMax) -> MinMax {
    let choose = |one: &[Bytes], other: &[Bytes], wanted: Ordering| {
        let each = columns.iter().zip(one.iter().zip(other));
        each.map(|(node, (one, other))| if order(node, other, one) == wanted { other } else { one }.clone())
            .collect()
    };
    MinMax {
        min: choose(&all.min, &other.min, Ordering::Less),
        max: choose(&all.max, &other.max, Ordering::Greater),
        is_present: all.is_present.clone(),
    }
}

/// Whether `outer` leaves out nothing of what `inner` holds.
pub(crate) fn holds(file: &CarbonFile, outer: &MinMax, inner: &MinMax) -> bool {
    let columns = with_statistics(file);
    let lists = [&outer.min, &outer.max, &inner.min, &inner.max];
    lists.iter().all(|list| list.len() == columns.len())
        && columns.iter().enumerate().all(|(place, node)| match (outer.bounds(place), inner.bounds(place)) {
            (Some(outer), Some(inner)) => {
                order(node, outer.0, inner.0) != Ordering::Greater
                    && order(node, outer.1, inner.1) != Ordering::Less
            }
            (outer, _) => outer.is_none(),
        })
}

/// The order of two values of a column.
fn order(node: &ColumnNode, one: &Bytes, other: &Bytes) -> Ordering {
    if node.is_dimension {
        return one.cmp(other);
    }
    let integer = |bytes: &Bytes| match bytes.as_ref() {
        [byte] => i64::from(byte.cast_signed()),
        bytes => bytes.first_chunk().map_or(0, |bytes| i64::from_be_bytes(*bytes)),
    };
    let double = |bytes: &Bytes| bytes.first_chunk().map_or(0.0, |bytes| f64::from_be_bytes(*bytes));
    match node.carbon_type {
        CarbonType::Double => double(one).total_cmp(&double(other)),
        CarbonType::Decimal { precision, scale } => {
            let value = |bytes: &Bytes| {
                let (stored, unscaled) = bytes.split_first()?;
                decimal(*stored, unscaled, precision, scale).ok()
            };
            value(one).cmp(&value(other))
        }
        _ => integer(one).cmp(&integer(other)),
    }
}

/// The values of a blocklet of one row; `None` if it has several, or no value in a dimension.
fn of_one_row(file: &CarbonFile, stream: &Stream, number: usize) -> Result<Option<MinMax>> {
    let (Some(blocklet), Some(block)) = (file.blocklets.get(number), stream.blocks.get(number)) else {
        return Ok(None);
    };
    if blocklet.rows.end.saturating_sub(blocklet.rows.start) != 1 {
        return Ok(None);
    }
    let rows = Rows::of(file);
    let read = || -> Result<Option<Vec<Bytes>>> {
        let bytes = stream.unpacked(file, block)?;
        let mut values = Vec::with_capacity(rows.columns.len());
        rows.cut(&bytes, |node, value| {
            if !node.carbon_type.is_nested() {
                values.push(stored(node, value));
            }
        })?;
        Ok(values.into_iter().collect())
    };
    let values = read().at(file.name(), block.start, BLOCKLET_PART)?;
    Ok(values.map(|values| {
        let is_present = vec![true; values.len()];
        MinMax { min: values.clone(), max: values, is_present }
    }))
}

/// A value of a row in the form of statistics. Nulls of measures count as 0.
fn stored(node: &ColumnNode, value: Option<&[u8]>) -> Option<Bytes> {
    if node.is_dimension {
        return value.map(Bytes::copy_from_slice);
    }
    let width = match node.carbon_type {
        CarbonType::Boolean | CarbonType::Byte => 1,
        CarbonType::Decimal { .. } => return Some(Bytes::copy_from_slice(value.unwrap_or(&[0, 0]))),
        _ => 8,
    };
    let value = value.unwrap_or(&[]);
    let is_negative = value.first().is_some_and(|byte| byte.cast_signed() < 0);
    let missing = usize::saturating_sub(width, value.len());
    let mut bytes = vec![if is_negative { 0xff } else { 0 }; missing];
    bytes.extend_from_slice(value);
    Some(bytes.into())
}
