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

/// What the bounds of one blocklet take.
pub(super) fn bytes_in_memory(file: &CarbonFile) -> u64 {
    let of_column = size_of::<Bytes>().saturating_mul(2).saturating_add(size_of::<bool>());
    (file.header.columns.len() as u64).saturating_mul(of_column as u64)
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
    let stream = file.stream.as_ref().ok_or_else(|| Error::internal("no streaming file"))?;
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
        is_present: both_present(&all.is_present, &other.is_present, columns.len()),
    }
}

/// Which columns have bounds in both; no flags are all flags.
fn both_present(one: &[bool], other: &[bool], columns: usize) -> Vec<bool> {
    if one.is_empty() && other.is_empty() {
        return Vec::new();
    }
    let is_in = |flags: &[bool], place: usize| flags.is_empty() || flags.get(place).copied().unwrap_or(false);
    (0..columns).map(|place| is_in(one, place) && is_in(other, place)).collect()
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
    let float = |bytes: &Bytes| bytes.first_chunk().map_or(0.0, |bytes| f32::from_be_bytes(*bytes));
    match node.carbon_type {
        CarbonType::Double => double(one).total_cmp(&double(other)),
        CarbonType::Float => float(one).total_cmp(&float(other)),
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
        // The first four of eight bytes.
        CarbonType::Float => return Some([value.unwrap_or(&[0; 4]), &[0; 4]].concat().into()),
        _ => 8,
    };
    let value = value.unwrap_or(&[]);
    let is_negative = value.first().is_some_and(|byte| byte.cast_signed() < 0);
    let missing = usize::saturating_sub(width, value.len());
    let mut bytes = vec![if is_negative { 0xff } else { 0 }; missing];
    bytes.extend_from_slice(value);
    Some(bytes.into())
}

#[cfg(test)]
mod tests {
    use pilaster_core::Limits;

    use super::super::sample;
    use super::*;

    fn found(
        columns: &[crate::messages::ColumnSchema],
        blocklets: &[(i32, Option<MinMax>, Vec<u8>)],
    ) -> MinMax {
        let file = sample::open(sample::file(columns, blocklets), Limits::default()).unwrap();
        record(&file).unwrap().min_max.unwrap()
    }

    #[test]
    fn floats_have_the_form_of_version_3_and_the_order_of_numbers() {
        let single = |value: f32| (1, None, sample::row(&value.to_be_bytes()));
        let stored = |value: f32| Bytes::from([value.to_be_bytes(), [0; 4]].concat());
        let column = [sample::measure("a", sample::FLOAT)];
        // As numbers of 64 bits -2 would be greater than -3.5.
        let all = found(&column, &[single(-2.0), single(1.5), single(-3.5), single(0.25)]);
        assert_eq!((&all.min[..], &all.max[..]), (&[stored(-3.5)][..], &[stored(1.5)][..]));
        let bounds = crate::file::statistics::bounds;
        let file = sample::open(sample::file(&column, &[single(1.5)]), Limits::default()).unwrap();
        let read = bounds(&file.columns[0], &[all.min.first()]).unwrap();
        assert_eq!(read.as_ref(), &arrow_array::Float32Array::from(vec![-3.5]) as &dyn arrow_array::Array);
        // A null counts as 0.
        let null = (1, None, vec![0, 1, 1]);
        assert_eq!(found(&column, &[single(-2.0), null]).max, [stored(0.0)]);
    }

    #[test]
    fn bounds_that_one_blocklet_lacks_the_file_lacks() {
        let columns = [sample::measure("a", sample::DOUBLE), sample::measure("b", sample::DOUBLE)];
        let row = sample::row(&[0; 16]);
        let bytes = |value: f64| Bytes::copy_from_slice(&value.to_be_bytes());
        let with = |is_present: &[bool]| {
            let lists = (vec![bytes(1.0), bytes(2.0)], vec![bytes(3.0), bytes(4.0)]);
            let known = MinMax { min: lists.0, max: lists.1, is_present: is_present.to_vec() };
            (2, Some(known), [row.clone(), row.clone()].concat())
        };
        for (one, other, expected) in [
            (&[][..], &[][..], &[][..]),
            (&[true, true], &[true, false], &[true, false]),
            (&[false, true], &[true, false], &[false, false]),
            (&[], &[false, true], &[false, true]),
            (&[true, false], &[], &[true, false]),
        ] {
            assert_eq!(found(&columns, &[with(one), with(other)]).is_present, expected);
        }
    }

    /// A blocklet of a few bytes may have bounds of many columns: what has no room is read instead.
    #[test]
    fn bounds_are_kept_while_there_is_room() {
        let column = [sample::measure("a", sample::DOUBLE)];
        let bytes = |value: f64| Bytes::copy_from_slice(&value.to_be_bytes());
        let blocklet = |value: f64| {
            let known = MinMax { min: vec![bytes(value)], max: vec![bytes(value)], is_present: Vec::new() };
            (1, Some(known), sample::row(&value.to_be_bytes()))
        };
        let bytes = sample::file(&column, &[blocklet(1.0), blocklet(2.0), blocklet(3.0)]);
        let of_one = bytes_in_memory(&sample::open(bytes.clone(), Limits::default()).unwrap());
        for (room, kept) in [(3, 3), (2, 2), (1, 1)] {
            let limits = Limits { metadata_bytes: room * of_one, ..Limits::default() };
            let file = sample::open(bytes.clone(), limits).unwrap();
            let with_bounds = file.blocklets.iter().filter(|blocklet| blocklet.min_max.is_some()).count();
            assert_eq!((file.rows, with_bounds), (3, kept), "room for {room}");
            let last = file.stream.as_ref().unwrap().decode(&file, 2, &file.columns[0], 1).unwrap();
            assert_eq!(last.as_ref(), &arrow_array::Float64Array::from(vec![3.0]) as &dyn arrow_array::Array);
        }
    }
}
