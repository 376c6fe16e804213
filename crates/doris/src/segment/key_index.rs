//! Rows by key: the short key index of sorted rows, the primary key index of merge-on-write tables.
//!
//! ```text
//! short key page   keys of rows 0, n, 2n, … back to back | varint offset of each        n is in the page footer
//! primary keys     a PREFIX column of the full key of every row, with an index by value
//! ```

use std::ops::Bound;
use std::sync::Arc;

use arrow_array::Array;
use arrow_array::cast::AsArray;
use bytes::Bytes;
use pilaster_core::error::AtPosition;
use pilaster_core::predicate::{BoundPredicate, Bounds};
use pilaster_core::{Error, Literal, Result, RowRanges};
use pilaster_encoding::varint;

use super::cells::Cell;
use super::column::Column;
use super::column_meta::IndexedColumnMeta;
use super::footer::PrimaryKeyMeta;
use super::page::PageKind;
use super::page_indexes::index_values;
use super::paged::{PagedColumn, parse_entries};
use super::reader::Segment;
use super::types::Compression;
use super::{bloom, key, stored};
use crate::messages::required;

/// Between which keys all matches lie: no match is below `lower`, none has a beginning above `upper`.
#[derive(Debug, Default, PartialEq)]
struct KeyBounds {
    lower: Vec<u8>,
    upper: Vec<u8>,
    /// Whether they are the values of all columns, and the same.
    is_key: bool,
}

impl KeyBounds {
    fn is_unbounded(&self) -> bool {
        self.lower.is_empty() && self.upper.is_empty()
    }

    fn is_below(&self, key: &[u8]) -> bool {
        key < self.lower.as_slice()
    }

    fn is_above(&self, key: &[u8]) -> bool {
        !self.upper.is_empty() && key.get(..self.upper.len()).unwrap_or(key) > self.upper.as_slice()
    }
}

/// A column of the key.
struct KeyColumn<'a> {
    cell: &'a Cell,
    length: i32,
    /// Bytes of a string that are in the key.
    most: usize,
    /// Whether other parts of the key follow a string without an end mark.
    is_primary: bool,
    bounds: Bounds,
}

/// Markers of what follows a string in a primary key are not larger.
const LARGEST_MARKER: u8 = 0x02;

impl KeyColumn<'_> {
    /// Cuts an upper bound, whose value begins at `start`, before the first byte that a marker may be larger than: the key of a
    /// string that ends there goes on with one, and must not lie above the bound.
    fn cut_upper(&self, start: usize, key: &mut Vec<u8>) {
        if !self.is_primary || self.cell.width().is_some() {
            return;
        }
        let value = key.get(start..).unwrap_or_default();
        if let Some(at) = value.iter().position(|byte| *byte <= LARGEST_MARKER) {
            key.truncate(start.saturating_add(at));
        }
    }
}

/// The rows between the keys that `bound` asks for, as far as an index tells.
pub(crate) fn rows(segment: &Segment, bound: &BoundPredicate) -> Result<RowRanges> {
    let all = RowRanges::one(0..segment.metadata.num_rows);
    let Some(schema) = &segment.schema else { return Ok(all) };
    let (is_primary, count) = match &segment.metadata.primary_key {
        Some(_) if schema.cluster_key_uids.is_empty() => (true, usize::MAX),
        _ => (false, schema.num_short_key_columns),
    };
    let mut columns = Vec::new();
    for declared in schema.sort_columns().into_iter().take(count) {
        let number = segment
            .columns
            .iter()
            .position(|output| output.unique_id == declared.unique_id && output.stored.is_some());
        let Some(number) = number else { break };
        let output = segment.columns.get(number);
        let (Some(Column::Paged(paged)), Some(meta)) =
            (output.map(|output| &output.column), output.and_then(|output| segment.stored(output)))
        else {
            break;
        };
        let most = if is_primary { usize::MAX } else { usize::try_from(declared.index_length).unwrap_or(0) };
        columns.push(KeyColumn {
            cell: &paged.shape.cell,
            length: meta.length,
            most,
            is_primary,
            bounds: bound.bounds(number),
        });
    }
    let mut bounds = key_bounds(&columns);
    bounds.is_key &= is_primary && columns.len() == schema.sort_columns().len();
    if bounds.is_unbounded() {
        return Ok(all);
    }
    let narrowed = match (&segment.metadata.primary_key, segment.metadata.short_key_page) {
        (Some(primary), _) if is_primary => {
            if !may_hold(segment, primary, &bounds)? {
                return Ok(RowRanges::none());
            }
            primary_rows(segment, &primary.index, &bounds)?
        }
        (_, Some(_)) => short_key_rows(segment, &bounds)?,
        _ => return Ok(all),
    };
    Ok(all.intersect(&narrowed))
}

/// Equal values of the first columns, then a range of the next one.
fn key_bounds(columns: &[KeyColumn<'_>]) -> KeyBounds {
    let mut bounds = KeyBounds::default();
    let mut whole_columns = 0usize;
    for column in columns {
        let append = |value: &Literal, key: &mut Vec<u8>| {
            let cell = stored::cell(column.cell, column.length, value)?;
            key::append(column.cell, &cell, column.most, key)?;
            Some(cell.len() <= column.most || column.cell.width().is_some())
        };
        // Zero and minus zero are equal values with different keys.
        if matches!(column.cell, Cell::Number(arrow, _) if arrow.is_floating()) {
            break;
        }
        let value = |limit: &Bound<Literal>| match limit {
            Bound::Included(value) | Bound::Excluded(value) => Some(value.clone()),
            Bound::Unbounded => None,
        };
        let (lower, upper) = (value(&column.bounds.lower), value(&column.bounds.upper));
        let is_equal = lower.is_some() && lower == upper;
        // Addresses are given as text, whose order is not that of their keys.
        if matches!(column.cell, Cell::Ipv4 | Cell::Ipv6) && !is_equal {
            break;
        }
        let mut is_whole = is_equal;
        let upper_start = bounds.upper.len();
        for (limit, key) in [(lower, &mut bounds.lower), (upper, &mut bounds.upper)] {
            let before = key.len();
            let Some(limit) = limit else { continue };
            match append(&limit, key) {
                Some(whole) => is_whole &= whole,
                None => {
                    key.truncate(before);
                    is_whole = false;
                }
            }
        }
        if !is_equal {
            // The byte before the value is the marker that it is there.
            column.cut_upper(upper_start.saturating_add(1), &mut bounds.upper);
        }
        // What comes after a range, or after a string that was cut, is in no order.
        if !is_whole {
            break;
        }
        whole_columns = whole_columns.saturating_add(1);
    }
    bounds.is_key = whole_columns == columns.len() && whole_columns > 0;
    bounds
}

/// Whether keys between the bounds may be there at all, by the first and the last one, and by the filter of all.
fn may_hold(segment: &Segment, primary: &PrimaryKeyMeta, bounds: &KeyBounds) -> Result<bool> {
    if primary.max_key.is_empty() {
        return Ok(true);
    }
    if bounds.is_above(&primary.min_key) || bounds.is_below(&primary.max_key) {
        return Ok(false);
    }
    let Some(bloom) = primary.bloom.filter(|_| bounds.is_key) else { return Ok(true) };
    let filters = index_values(&segment.store, &bloom, 1)?;
    Ok(filters.iter().flatten().all(|filter| bloom::may_hold(filter, &bounds.lower)))
}

fn short_key_rows(segment: &Segment, bounds: &KeyBounds) -> Result<RowRanges> {
    let Some(pointer) = segment.metadata.short_key_page else { return Ok(RowRanges::none()) };
    let page = segment.store.read(pointer, PageKind::ShortKey, Compression::None)?;
    let parse = || {
        let footer = required(page.footer.short_key_page_footer, "short_key_page_footer")?;
        let rows_per_item = u64::from(required(footer.num_rows_per_block, "num_rows_per_block")?);
        let items = parse_short_keys(
            &page.body,
            footer.num_items.unwrap_or(0) as usize,
            footer.key_bytes.unwrap_or(0) as usize,
        )?;
        let expected = segment.metadata.num_rows.div_ceil(rows_per_item.max(1));
        if rows_per_item == 0 || items.len() as u64 != expected {
            return Err(Error::corrupt(format!("{expected} short keys"), items.len()));
        }
        // The block before the first key that is not below may hold matches at its end.
        let first = items.partition_point(|item| bounds.is_below(item)).saturating_sub(1);
        let end = items.partition_point(|item| !bounds.is_above(item));
        let row = |item: usize| rows_per_item.saturating_mul(item as u64);
        Ok(RowRanges::one(row(first)..row(end.max(first))))
    };
    parse().at(segment.name(), pointer.offset, PageKind::ShortKey.part())
}

/// The keys of a short key page.
pub(crate) fn parse_short_keys(body: &Bytes, count: usize, key_bytes: usize) -> Result<Vec<Bytes>> {
    let offsets = body.get(key_bytes..).filter(|offsets| count <= offsets.len()).ok_or_else(|| {
        Error::corrupt(
            format!("{count} keys in {key_bytes} bytes"),
            format!("a page of {} bytes", body.len()),
        )
    })?;
    let mut at = 0;
    let mut starts = Vec::with_capacity(count.saturating_add(1));
    for _ in 0..count {
        starts.push(varint::read_u32(offsets, &mut at)? as usize);
    }
    starts.push(key_bytes);
    starts
        .windows(2)
        .map(|pair| match *pair {
            [start, end] if start <= end && end <= key_bytes => Ok(body.slice(start..end)),
            _ => Err(Error::corrupt(format!("offsets that ascend to {key_bytes}"), format!("{pair:?}"))),
        })
        .collect()
}

/// Reads every key that an index has: primary keys must ascend.
pub(crate) fn check(segment: &Segment) -> Result<()> {
    if segment.metadata.short_key_page.is_some() {
        short_key_rows(segment, &KeyBounds::default())?;
    }
    let Some(primary) = &segment.metadata.primary_key else { return Ok(()) };
    if let Some(bloom) = &primary.bloom {
        index_values(&segment.store, bloom, 1)?;
    }
    let column = PagedColumn::of_index(&segment.store, &primary.index, Cell::Bytes);
    let mut last: Option<Vec<u8>> = None;
    for located in column.pages()? {
        let keys = column.values_of(located)?;
        let keys = keys.as_binary_view_opt().ok_or_else(|| Error::corrupt("keys", keys.data_type()))?;
        for key in keys.iter() {
            let key = key.unwrap_or_default();
            if last.as_ref().is_some_and(|last| last.as_slice() >= key) {
                return Err(Error::corrupt("primary keys that ascend", "one that does not").at(
                    segment.name(),
                    located.pointer.offset,
                    PageKind::Data.part(),
                ));
            }
            last.get_or_insert_default().clear();
            last.get_or_insert_default().extend_from_slice(key);
        }
    }
    Ok(())
}

fn primary_rows(segment: &Segment, index: &IndexedColumnMeta, bounds: &KeyBounds) -> Result<RowRanges> {
    if index.num_values != segment.metadata.num_rows {
        return Err(Error::corrupt(format!("{} primary keys", segment.metadata.num_rows), index.num_values)
            .at(segment.name(), segment.metadata.footer_start, "segment footer"));
    }
    let column = Arc::new(PagedColumn::of_index(&segment.store, index, Cell::Bytes));
    let pages = column.pages()?.len();
    // The first key of each page; a single page needs none.
    let firsts: Vec<Bytes> = match index.value_index {
        Some(tree) if !tree.is_data_page => {
            let page = segment.store.read(tree.root, PageKind::Index, index.compression)?;
            let mut firsts = Vec::new();
            let parsed = parse_entries(&page, |key, _| {
                firsts.push(page.body.slice_ref(key));
                Ok(())
            });
            parsed.at(segment.name(), tree.root.offset, PageKind::Index.part())?;
            firsts
        }
        _ => Vec::new(),
    };
    if firsts.len() != pages && pages > 1 {
        let error = Error::corrupt(format!("a value index of {pages} pages"), firsts.len());
        return Err(error.at(segment.name(), index.offset(), PageKind::Index.part()));
    }
    let first_row = |is_before: &dyn Fn(&[u8]) -> bool| -> Result<u64> {
        let number = firsts.partition_point(|key| is_before(key)).saturating_sub(1);
        let Some(located) = column.pages()?.get(number) else { return Ok(0) };
        let keys = column.values_of(located)?;
        let keys = keys.as_binary_view_opt().ok_or_else(|| Error::corrupt("keys", keys.data_type()))?;
        let at = keys.iter().take_while(|key| key.is_some_and(is_before)).count();
        Ok(located.rows.start.saturating_add(at as u64))
    };
    let start = first_row(&|key| bounds.is_below(key))?;
    let end = first_row(&|key| !bounds.is_above(key))?;
    Ok(RowRanges::one(start..end.max(start)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn bounds_compare_beginnings() {
        let bounds = KeyBounds { lower: b"b".to_vec(), upper: b"cd".to_vec(), is_key: false };
        assert!(bounds.is_below(b"a") && !bounds.is_below(b"b"));
        assert!(bounds.is_above(b"ce") && !bounds.is_above(b"cdz") && !bounds.is_above(b"c"));
    }

    proptest! {
        /// Keys of a text and a number are in the order of their bytes, which is not that of the texts.
        #[test]
        fn no_match_lies_outside_the_bounds(texts in prop::collection::vec("[\u{0}-\u{4}a]{0,4}", 1..20), limit in "[\u{0}-\u{4}a]{0,4}") {
            let literal = || Literal::from(limit.as_str());
            for (bounds, is_match) in [
                (Bounds { lower: Bound::Unbounded, upper: Bound::Included(literal()) }, &(|text: &String| *text <= limit) as &dyn Fn(&String) -> bool),
                (Bounds { lower: Bound::Unbounded, upper: Bound::Excluded(literal()) }, &|text: &String| *text < limit),
                (Bounds { lower: Bound::Excluded(literal()), upper: Bound::Unbounded }, &|text: &String| *text > limit),
                (Bounds { lower: Bound::Included(literal()), upper: Bound::Included(literal()) }, &|text: &String| *text == limit),
            ] {
                let column = KeyColumn { cell: &Cell::Text, length: 100, most: usize::MAX, is_primary: true, bounds };
                let found = key_bounds(&[column]);
                for text in texts.iter().filter(|text| is_match(text)) {
                    let mut key = Vec::new();
                    key::append(&Cell::Text, text.as_bytes(), usize::MAX, &mut key).unwrap();
                    key.extend([0x02, 0x80, 0, 0, 1]);
                    prop_assert!(!found.is_below(&key) && !found.is_above(&key), "{:?} {:?}", text, limit);
                }
            }
        }

        #[test]
        fn any_bytes_are_keys_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..60), count in 0usize..20, key_bytes in 0usize..60) {
            if let Ok(keys) = parse_short_keys(&bytes.into(), count, key_bytes) {
                prop_assert_eq!(keys.len(), count);
            }
        }
    }
}
