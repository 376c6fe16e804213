//! The ranges of a table's range columns, as Kudu encodes them.

use arrow_cast::{CastOptions, cast_with_options};
use bytes::Bytes;
use pilaster_core::{Error, Literal, Result};

use super::columns::TableColumns;
use super::key_rows::{KeyColumn, KeyRows};
use super::partition_options::{HashPartition, KeyBounds, RangePartition, Ranges};
use crate::messages::RowOperationsPb;
use crate::wal::RangeBoundsWriter;

/// Where a range begins, or ends.
#[derive(Debug, Clone, Default)]
pub(super) struct Edge {
    /// The range columns encoded as a key; empty for no bound.
    pub encoded: Vec<u8>,
    /// The cell of each range column; none for no bound.
    cells: Vec<Bytes>,
}

/// A range of keys: from `lower` on and before `upper`.
#[derive(Debug, Clone, Default)]
pub(super) struct KeyRange {
    pub lower: Edge,
    pub upper: Edge,
}

impl KeyRange {
    pub fn contains(&self, key: &[u8]) -> bool {
        self.lower.encoded.as_slice() <= key
            && (self.upper.encoded.is_empty() || key < self.upper.encoded.as_slice())
    }

    /// Whether it has no bounds.
    pub fn is_everything(&self) -> bool {
        self.lower.encoded.is_empty() && self.upper.encoded.is_empty()
    }

    /// Its bounds as two operations on a row of the table.
    pub fn to_message(&self, table: &TableColumns, columns: &[usize]) -> RowOperationsPb {
        let has_nulls = table.columns.iter().any(|column| column.column.is_nullable);
        let mut writer = RangeBoundsWriter::new(table.columns.len(), has_nulls);
        for edge in [&self.lower, &self.upper] {
            let cells = columns.iter().zip(&edge.cells).filter_map(|(place, cell)| {
                let column = table.columns.get(*place)?;
                Some((*place, column.column.cell_bytes().is_some(), cell.as_ref()))
            });
            writer.push(cells);
        }
        writer.finish()
    }
}

/// Where a column of a partition stands in the key.
fn key_place(table: &TableColumns, name: &str) -> Result<usize> {
    table.keys().iter().position(|key| key.column.name == name).ok_or_else(|| {
        let keys: Vec<_> = table.keys().iter().map(|key| key.column.name.as_str()).collect();
        Error::invalid(format!(
            "a table can only be partitioned by columns of its primary key ({}), not by \"{name}\"",
            keys.join(", ")
        ))
    })
}

/// Where the columns of a partition stand in the key.
pub(super) fn key_places(table: &TableColumns, names: &[String]) -> Result<Vec<usize>> {
    let mut places = Vec::with_capacity(names.len());
    for name in names {
        let place = key_place(table, name)?;
        if places.contains(&place) {
            return Err(Error::invalid(format!("column \"{name}\" is in a partition twice")));
        }
        places.push(place);
    }
    if places.is_empty() {
        return Err(Error::invalid("a partition without columns"));
    }
    Ok(places)
}

/// Range columns by their place in the key, and the ranges in ascending order, each with its own hash dimensions, if it has any.
pub(super) type RangesOfTable<'a> = (Vec<usize>, Vec<(KeyRange, &'a [HashPartition])>);

pub(super) fn key_ranges<'a>(table: &TableColumns, range: &'a RangePartition) -> Result<RangesOfTable<'a>> {
    let columns = key_places(table, &range.columns)?;
    let ranges = match &range.ranges {
        Ranges::Splits(splits) => between(table, &columns, splits)?,
        Ranges::Only(ranges) => {
            let encoded =
                ranges.iter().map(|bounds| Ok((key_range(table, &columns, bounds)?, bounds.hash.as_slice())));
            let mut encoded = encoded.collect::<Result<Vec<_>>>()?;
            encoded.sort_by(|(a, _), (b, _)| a.lower.encoded.cmp(&b.lower.encoded));
            check_apart(&encoded, ranges)?;
            encoded
        }
    };
    Ok((columns, ranges))
}

/// All keys, divided at `splits`.
fn between<'a>(
    table: &TableColumns,
    columns: &[usize],
    splits: &[Vec<Literal>],
) -> Result<Vec<(KeyRange, &'a [HashPartition])>> {
    let edges = splits.iter().map(|split| edge(table, columns, split, "split"));
    let mut edges = edges.collect::<Result<Vec<_>>>()?;
    edges.sort_by(|a, b| a.encoded.cmp(&b.encoded));
    if let Some([twice, _]) = edges.array_windows().find(|[before, after]| before.encoded == after.encoded) {
        return Err(Error::invalid(format!("the range split {:02x?} is given twice", twice.encoded)));
    }
    if edges.first().is_some_and(|first| first.encoded.is_empty()) {
        return Err(Error::invalid("a range split at the smallest key has no rows before it"));
    }
    let lowers = std::iter::once(Edge::default()).chain(edges.iter().cloned());
    let uppers = edges.iter().cloned().chain([Edge::default()]);
    Ok(lowers.zip(uppers).map(|(lower, upper)| (KeyRange { lower, upper }, &[][..])).collect())
}

fn key_range(table: &TableColumns, columns: &[usize], bounds: &KeyBounds) -> Result<KeyRange> {
    let edge = |values: &Option<Vec<Literal>>| match values {
        Some(values) => edge(table, columns, values, "bound"),
        None => Ok(Edge::default()),
    };
    let range = KeyRange { lower: edge(&bounds.lower)?, upper: edge(&bounds.upper)? };
    let ends = &range.upper.encoded;
    // The smallest key of all, an empty text, is encoded as no bound.
    if bounds.upper.is_some() && *ends <= range.lower.encoded {
        return Err(Error::invalid(format!("the range {} has no keys", described(bounds))));
    }
    Ok(range)
}

/// Refuses ranges that overlap, and none.
fn check_apart(sorted: &[(KeyRange, &[HashPartition])], ranges: &[KeyBounds]) -> Result<()> {
    if sorted.is_empty() {
        return Err(Error::invalid("a range partition without ranges"));
    }
    let overlap = |[(before, _), (after, _)]: &&[(KeyRange, &[HashPartition]); 2]| {
        before.upper.encoded.is_empty() || after.lower.encoded < before.upper.encoded
    };
    if sorted.array_windows().any(|pair| overlap(&pair)) {
        let ranges: Vec<_> = ranges.iter().map(described).collect();
        return Err(Error::invalid(format!("range partitions that overlap: {}", ranges.join(", "))));
    }
    Ok(())
}

fn described(bounds: &KeyBounds) -> String {
    let values = |values: &Option<Vec<Literal>>| {
        let values = values.iter().flatten().map(ToString::to_string);
        values.collect::<Vec<_>>().join(",")
    };
    format!("{}..{}", values(&bounds.lower), values(&bounds.upper))
}

/// A value for each range column, encoded.
fn edge(table: &TableColumns, columns: &[usize], values: &[Literal], what: &str) -> Result<Edge> {
    if values.len() != columns.len() {
        return Err(Error::invalid(format!(
            "a range {what} of {} values for {} columns",
            values.len(),
            columns.len()
        )));
    }
    let options = CastOptions { safe: false, ..CastOptions::default() };
    let mut keys = Vec::with_capacity(columns.len());
    for (literal, column) in values.iter().zip(columns.iter().filter_map(|place| table.keys().get(*place))) {
        let (name, wanted) = (&column.column.name, column.field.data_type());
        let refuse = || {
            let data_type = column.column.data_type;
            Error::invalid(format!(
                "column \"{name}\" of type {data_type} has no value {literal} to be a range {what}"
            ))
        };
        let value = cast_with_options(literal.array(), wanted, &options).map_err(|_| refuse())?;
        if literal.is_null() {
            return Err(refuse());
        }
        keys.push(KeyColumn::new(column.column.data_type, &value)?);
    }
    let encoded = KeyRows::encode(&keys.iter().collect::<Vec<_>>(), 1)?.get(0).to_vec();
    let cells = keys.iter().filter_map(|key| key.cell(0)).map(Bytes::copy_from_slice).collect();
    Ok(Edge { encoded, cells })
}
