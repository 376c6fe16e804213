//! Which rows a predicate can be true for: row groups by the statistics of their chunks, then pages by the index pages, or by
//! their headers where there are none.

use arrow_array::{ArrayRef, BooleanArray, UInt64Array};
use arrow_schema::DataType;
use arrow_select::concat::concat;
use pilaster_core::predicate::{BoundPredicate, ZoneStatistics};
use pilaster_core::{Predicate, Result, RowRanges};

use super::dense::{Dense, PageValues};
use super::file::RedFile;
use super::values;
use crate::metadata::{Encoding, PageIndexEntry, PhysicalType, Statistics};
use crate::schema::{Kind, Order, Shape, order_of};

/// The part of `wanted` in which rows may match.
pub(super) fn narrow(file: &RedFile, predicate: &Predicate, wanted: &RowRanges) -> Result<RowRanges> {
    let schema = file.schema.arrow();
    let bound = predicate.bind(schema)?;
    let columns: Vec<usize> =
        predicate.columns().into_iter().filter_map(|name| schema.index_of(name).ok()).collect();
    let groups: Vec<usize> = (0..file.metadata.row_groups.len())
        .filter(|group| !RowRanges::one(file.group_rows(*group)).intersect(wanted).is_empty())
        .collect();
    let may = bound.may_match(&GroupZones { file, groups: &groups });
    let groups: Vec<usize> =
        groups.into_iter().zip(may.iter()).filter_map(|(group, may)| may.then_some(group)).collect();
    let mut kept = RowRanges::none();
    for group in groups {
        let rows = file.group_rows(group);
        let mut here = RowRanges::one(rows.clone()).intersect(wanted);
        for column in &columns {
            if here.is_empty() {
                break;
            }
            here = here.intersect(&pages_that_may(file, &bound, group, *column)?);
        }
        kept = kept.union(&here);
    }
    Ok(kept)
}

/// The rows of a row group in pages of one column that may match; all if its pages are not known.
fn pages_that_may(file: &RedFile, bound: &BoundPredicate, group: usize, column: usize) -> Result<RowRanges> {
    let rows = file.group_rows(group);
    let all = || Ok(RowRanges::one(rows.clone()));
    let Some(leaf) = file.schema.shapes().get(column).and_then(bounded_leaf) else { return all() };
    // Damage to an index or a header is met where rows are read; here it only saves less.
    let described = file.leaf(leaf.number)?;
    let Ok(Some(entries)) = file.chunk(group, leaf.number).and_then(|chunk| chunk.page_statistics(described))
    else {
        return all();
    };
    let may = bound.may_match(&PageZones { file, column, leaf: &leaf, entries: &entries });
    let range = |entry: &PageIndexEntry| {
        let start = rows.start.saturating_add(entry.first_row);
        start..start.saturating_add(u64::from(entry.num_rows))
    };
    Ok(entries.iter().zip(may.iter()).filter(|(_, may)| *may).map(|(entry, _)| range(entry)).collect())
}

/// A leaf whose bounds speak about rows: one entry for each.
struct BoundedLeaf<'a> {
    number: usize,
    data_type: &'a DataType,
}

fn bounded_leaf(shape: &Shape) -> Option<BoundedLeaf<'_>> {
    match &shape.kind {
        Kind::Leaf if shape.rep == 0 => {
            Some(BoundedLeaf { number: shape.leaves.start, data_type: shape.field.data_type() })
        }
        Kind::Dictionary(values) => bounded_leaf(values),
        _ => None,
    }
}

/// The bounds of several zones as one array; `None` if no zone has any.
fn bounds<'a>(
    file: &RedFile,
    leaf: &BoundedLeaf<'_>,
    zones: impl Iterator<Item = Option<&'a Statistics>>,
    pick: impl Fn(&Statistics) -> Option<&Vec<u8>>,
) -> Option<ArrayRef> {
    let described = file.leaf(leaf.number).ok()?;
    let none = arrow_array::new_null_array(leaf.data_type, 1);
    let mut is_any = false;
    let parts: Vec<ArrayRef> = zones
        .map(|statistics| {
            let bytes = statistics.and_then(&pick);
            match bytes.and_then(|bytes| value(described, leaf.data_type, bytes)) {
                Some(array) => {
                    is_any = true;
                    array
                }
                None => none.clone(),
            }
        })
        .collect();
    let parts: Vec<&dyn arrow_array::Array> = parts.iter().map(AsRef::as_ref).collect();
    is_any.then(|| concat(&parts).ok()).flatten()
}

/// A bound as an array of one value; `None` if its bytes are no value of the type (a text cut inside a character).
pub(super) fn value(leaf: &crate::schema::Leaf, data_type: &DataType, bytes: &[u8]) -> Option<ArrayRef> {
    if order_of(&leaf.element, leaf.physical_type) == Order::None {
        return None;
    }
    let mut dense = Dense::new(leaf.physical_type, data_type, 1);
    let plain = match leaf.physical_type {
        PhysicalType::ByteArray => {
            let mut prefixed = Vec::new();
            pilaster_encoding::prefixed::put(bytes, &mut prefixed).ok()?;
            prefixed
        }
        _ => bytes.to_vec(),
    };
    let mut page = PageValues::open(plain.into(), leaf.physical_type, Encoding::Plain, 1).ok()?;
    page.take(1, &mut dense).ok()?;
    values::array(dense, data_type, 1, None).ok()
}

fn null_counts<'a>(zones: impl Iterator<Item = Option<&'a Statistics>>) -> UInt64Array {
    zones
        .map(|zone| zone.and_then(|zone| zone.null_count).and_then(|count| u64::try_from(count).ok()))
        .collect()
}

/// Where it is known that no value is NaN.
fn without_nan<'a>(zones: impl Iterator<Item = Option<&'a Statistics>>) -> BooleanArray {
    zones.map(|zone| Some(zone.is_some_and(|zone| zone.nan_count == Some(0)))).collect()
}

struct GroupZones<'a> {
    file: &'a RedFile,
    groups: &'a [usize],
}

impl GroupZones<'_> {
    fn leaf(&self, column: usize) -> Option<BoundedLeaf<'_>> {
        self.file.schema.shapes().get(column).and_then(bounded_leaf)
    }

    /// Only replicas: statistics elsewhere would cost a read for each chunk.
    fn statistics(&self, leaf: usize) -> impl Iterator<Item = Option<&Statistics>> {
        self.groups.iter().map(move |group| {
            let column = self.file.metadata.row_groups.get(*group)?.columns.get(leaf)?;
            column.metadata.as_ref()?.statistics.as_ref()
        })
    }
}

impl ZoneStatistics for GroupZones<'_> {
    fn zones(&self) -> usize {
        self.groups.len()
    }

    fn min(&self, column: usize) -> Option<ArrayRef> {
        let leaf = self.leaf(column)?;
        bounds(self.file, &leaf, self.statistics(leaf.number), |zone| zone.min.as_ref())
    }

    fn max(&self, column: usize) -> Option<ArrayRef> {
        let leaf = self.leaf(column)?;
        bounds(self.file, &leaf, self.statistics(leaf.number), |zone| zone.max.as_ref())
    }

    fn null_counts(&self, column: usize) -> Option<UInt64Array> {
        Some(null_counts(self.statistics(self.leaf(column)?.number)))
    }

    fn row_counts(&self) -> Option<UInt64Array> {
        let rows =
            |group: &usize| self.file.metadata.row_groups.get(*group).map(crate::metadata::RowGroup::rows);
        Some(self.groups.iter().map(rows).collect())
    }

    fn without_nan(&self, column: usize) -> Option<BooleanArray> {
        Some(without_nan(self.statistics(self.leaf(column)?.number)))
    }
}

/// The pages of one column; nothing is known of the others.
struct PageZones<'a> {
    file: &'a RedFile,
    column: usize,
    leaf: &'a BoundedLeaf<'a>,
    entries: &'a [PageIndexEntry],
}

impl PageZones<'_> {
    fn statistics(&self) -> impl Iterator<Item = Option<&Statistics>> {
        self.entries.iter().map(|entry| entry.statistics.as_ref())
    }
}

impl ZoneStatistics for PageZones<'_> {
    fn zones(&self) -> usize {
        self.entries.len()
    }

    fn min(&self, column: usize) -> Option<ArrayRef> {
        (column == self.column)
            .then(|| bounds(self.file, self.leaf, self.statistics(), |zone| zone.min.as_ref()))
            .flatten()
    }

    fn max(&self, column: usize) -> Option<ArrayRef> {
        (column == self.column)
            .then(|| bounds(self.file, self.leaf, self.statistics(), |zone| zone.max.as_ref()))
            .flatten()
    }

    fn null_counts(&self, column: usize) -> Option<UInt64Array> {
        (column == self.column).then(|| null_counts(self.statistics()))
    }

    fn row_counts(&self) -> Option<UInt64Array> {
        Some(self.entries.iter().map(|entry| Some(u64::from(entry.num_rows))).collect())
    }

    fn without_nan(&self, column: usize) -> Option<BooleanArray> {
        (column == self.column).then(|| without_nan(self.statistics()))
    }
}
