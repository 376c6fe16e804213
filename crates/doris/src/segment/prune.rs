//! Which rows of a segment can match a predicate, as far as its indexes know.
//!
//! Segment zone maps first, then the key index, bloom filters, bitmap indexes, page zone maps and the entries of dictionaries; each only
//! for columns the predicate looks at, and page zone maps only where more than a few pages are left. Pages of different columns hold different
//! rows, so zone maps are compared on the stretches between all page boundaries.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch, UInt32Array, UInt64Array, new_null_array};
use arrow_schema::{Field, Schema};
use arrow_select::concat::concat;
use arrow_select::take::take;
use pilaster_core::dataset::column_index;
use pilaster_core::predicate::{BoundPredicate, ZoneStatistics};
use pilaster_core::{Predicate, Result, RowRanges};

use super::column::Column;
use super::column_meta::ColumnMeta;
use super::paged::PagedColumn;
use super::reader::{OutputColumn, Segment};
use super::{bitmap_index, key_index, stored, zone_map};

/// Reading one page costs about as much as the zone maps of so many.
const PAGES_FOR_ONE: usize = 32;

/// The rows that may match; all of them where no index says more.
pub(super) fn prune(segment: &Segment, predicate: &Predicate) -> Result<RowRanges> {
    let bound = predicate.bind(&segment.arrow)?;
    let mut columns = Vec::new();
    for name in predicate.columns() {
        let number = column_index(&segment.arrow, name)?;
        let Some(output) = segment.columns.get(number) else { continue };
        if let (Column::Paged(paged), Some(meta)) = (&output.column, segment.stored(output)) {
            columns.push(Candidate { number, output, paged, meta });
        }
    }
    let whole = RowRanges::one(0..segment.metadata.num_rows);
    if !segment_may_match(segment, &bound, &columns)? {
        return Ok(RowRanges::none());
    }
    let mut rows = whole.intersect(&key_index::rows(segment, &bound)?);
    for column in &columns {
        if rows.is_empty() {
            return Ok(rows);
        }
        let schema = segment.schema.as_deref();
        if let Some(gram_size) = schema.and_then(|schema| schema.gram_size(column.output.unique_id))
            && let parts = bound.contained(column.number)
            && let Some(kept) =
                column.output.indexes.may_contain(column.paged, column.meta, gram_size, &parts)?
        {
            rows = rows.intersect(&kept);
        }
        let Some(points) = bound.values(column.number) else { continue };
        let cell = &column.paged.shape.cell;
        let cells: Option<Vec<_>> =
            points.iter().map(|point| stored::cell(cell, column.meta.length, point)).collect();
        if let Some(cells) = cells
            && let Some(kept) = column.output.indexes.may_hold(column.paged, column.meta, &cells)?
        {
            rows = rows.intersect(&kept);
        }
        if let Some(bitmap) = &column.meta.bitmap
            && let Some(kept) = bitmap_index::rows(&segment.store, column.meta, bitmap, cell, &points)?
        {
            rows = rows.intersect(&kept);
        }
    }
    let (cheap, dear): (Vec<_>, Vec<_>) =
        columns.into_iter().partition(|column| is_cheap_to_read(column.paged, &rows));
    if !rows.is_empty() && !dear.is_empty() {
        rows = rows.intersect(&by_zone_maps(segment, &bound, &dear)?);
    }
    if rows.is_empty() || dictionaries_may_match(segment, predicate, cheap.iter().chain(&dear))? {
        return Ok(rows);
    }
    Ok(RowRanges::none())
}

/// Whether the entries of every dictionary leave room for a match. The entries of a column that is compared are read anyway.
fn dictionaries_may_match<'a, 'b: 'a>(
    segment: &Segment,
    predicate: &Predicate,
    columns: impl Iterator<Item = &'a Candidate<'b>>,
) -> Result<bool> {
    let parts = conjuncts(predicate);
    for column in columns.filter(|column| column.paged.dictionary.is_some()) {
        let field = segment.arrow.field(column.number);
        let is_of_column = |part: &&Predicate| part.columns().iter().eq([field.name().as_str()].iter());
        for part in parts.iter().copied().filter(is_of_column) {
            if !word_may_match(column, field, part)? && column.paged.has_only_codes()? {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

/// Predicates that all must hold.
fn conjuncts(predicate: &Predicate) -> Vec<&Predicate> {
    match predicate {
        Predicate::And(parts) => parts.iter().flat_map(conjuncts).collect(),
        other => vec![other],
    }
}

/// Whether an entry of the dictionary, or a null, matches a predicate of its column.
fn word_may_match(column: &Candidate<'_>, field: &Field, predicate: &Predicate) -> Result<bool> {
    let words = column.paged.words()?;
    let null = new_null_array(words.data_type(), 1);
    let values = concat(&[&words as &dyn Array, &null])?;
    let schema = Arc::new(Schema::new(vec![field.clone().with_nullable(true)]));
    let found = predicate.bind(&schema)?.evaluate(&RecordBatch::try_new(schema, vec![values])?)?;
    Ok(found.true_count() > 0)
}

/// Whether `rows` lie in so few of the column's pages that they are read sooner than the zone maps of all.
fn is_cheap_to_read(column: &PagedColumn, rows: &RowRanges) -> bool {
    let (Some(first), Some(last), Ok(pages)) =
        (rows.as_slice().first(), rows.as_slice().last(), column.pages())
    else {
        return false;
    };
    let start = pages.partition_point(|page| page.rows.end <= first.start);
    let end = pages.partition_point(|page| page.rows.start < last.end);
    end.saturating_sub(start).saturating_mul(PAGES_FOR_ONE) < pages.len()
}

/// A column the predicate looks at, with pages and metadata of its own.
struct Candidate<'a> {
    number: usize,
    output: &'a OutputColumn,
    paged: &'a Arc<PagedColumn>,
    meta: &'a ColumnMeta,
}

/// What is known of stretches of rows.
#[derive(Default)]
struct Zones {
    row_counts: Vec<u64>,
    columns: HashMap<usize, ColumnZones>,
}

struct ColumnZones {
    min: Option<ArrayRef>,
    max: Option<ArrayRef>,
    nulls: UInt64Array,
}

impl ZoneStatistics for Zones {
    fn zones(&self) -> usize {
        self.row_counts.len()
    }

    fn min(&self, column: usize) -> Option<ArrayRef> {
        self.columns.get(&column)?.min.clone()
    }

    fn max(&self, column: usize) -> Option<ArrayRef> {
        self.columns.get(&column)?.max.clone()
    }

    fn null_counts(&self, column: usize) -> Option<UInt64Array> {
        Some(self.columns.get(&column)?.nulls.clone())
    }

    fn row_counts(&self) -> Option<UInt64Array> {
        Some(self.row_counts.clone().into())
    }
}

/// The number of nulls in so many rows; known only if there are none or nothing else.
fn null_count((has_null, has_value): (bool, bool), rows: u64) -> Option<u64> {
    match (has_null, has_value) {
        (false, _) => Some(0),
        (true, false) => Some(rows),
        (true, true) => None,
    }
}

fn segment_may_match(segment: &Segment, bound: &BoundPredicate, columns: &[Candidate<'_>]) -> Result<bool> {
    let rows = segment.metadata.num_rows;
    let mut zones = Zones { row_counts: vec![rows], ..Zones::default() };
    for column in columns {
        let Some(zone) = column.meta.zone_map.as_ref().and_then(|zones| zones.segment.as_ref()) else {
            continue;
        };
        let (min, max) = zone_map::bounds(&column.paged.shape.cell, std::slice::from_ref(zone))?;
        let has = (zone.has_null.unwrap_or(true), zone.has_not_null.unwrap_or(true));
        let nulls = UInt64Array::from_iter([null_count(has, rows)]);
        zones.columns.insert(column.number, ColumnZones { min, max, nulls });
    }
    Ok(zones.columns.is_empty() || bound.may_match(&zones).value(0))
}

fn by_zone_maps(segment: &Segment, bound: &BoundPredicate, columns: &[Candidate<'_>]) -> Result<RowRanges> {
    let whole = RowRanges::one(0..segment.metadata.num_rows);
    let mut known = Vec::new();
    let mut starts = Vec::new();
    for column in columns {
        if let Some(zones) = column.output.indexes.zones(column.paged, column.meta)? {
            starts.extend(column.paged.pages()?.iter().map(|page| page.rows.start));
            known.push((column, zones));
        }
    }
    if known.is_empty() {
        return Ok(whole);
    }
    starts.sort_unstable();
    starts.dedup();
    let ends = starts.iter().skip(1).copied().chain([segment.metadata.num_rows]);
    let stretches: Vec<_> = starts.iter().copied().zip(ends).map(|(start, end)| start..end).collect();
    let row_counts = stretches.iter().map(|rows| rows.end.saturating_sub(rows.start)).collect();
    let mut zones = Zones { row_counts, ..Zones::default() };
    for (column, pages) in known {
        let located = column.paged.pages()?;
        let numbers: Vec<u32> = stretches
            .iter()
            .map(|rows| {
                u32::try_from(located.partition_point(|page| page.rows.end <= rows.start)).unwrap_or(u32::MAX)
            })
            .collect();
        let nulls = numbers.iter().zip(&zones.row_counts).map(|(number, rows)| {
            null_count(pages.has.get(*number as usize).copied().unwrap_or((true, true)), *rows)
        });
        let nulls = nulls.collect();
        let numbers = UInt32Array::from(numbers);
        let spread =
            |array: &Option<ArrayRef>| array.as_ref().map(|array| take(array, &numbers, None)).transpose();
        let column_zones = ColumnZones { min: spread(&pages.min)?, max: spread(&pages.max)?, nulls };
        debug_assert!(column_zones.min.as_ref().is_none_or(|min| min.len() == stretches.len()));
        zones.columns.insert(column.number, column_zones);
    }
    let may = bound.may_match(&zones);
    Ok(stretches.into_iter().zip(may.iter()).filter(|(_, may)| *may).map(|(rows, _)| rows).collect())
}
