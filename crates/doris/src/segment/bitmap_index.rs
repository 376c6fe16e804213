//! The bitmap index of old files: for each distinct value the rows that hold it.
//!
//! ```text
//! values    distinct values, ascending
//! bitmaps   for each value: 01 | u32 count | u32 row …, or 02 | a portable roaring bitmap; one more for nulls
//! ```

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, BinaryViewArray};
use pilaster_core::error::AtPosition;
use pilaster_core::{Error, Literal, Result, RowRanges};
use roaring::RoaringBitmap;

use super::cells::Cell;
use super::column_meta::{BitmapMeta, ColumnMeta};
use super::page::{PageKind, PageStore};
use super::page_indexes::all_values;
use super::stored;

/// Rows with a hole of at most this many between them are read together.
const JOINED_ROWS: u64 = 256;

/// A bitmap for each value, and one for nulls if the index has some.
fn bitmaps(store: &Arc<PageStore>, bitmap: &BitmapMeta) -> Result<BinaryViewArray> {
    if bitmap.bitmaps.num_values != bitmap.bitmap_count() {
        let expected = format!("{} bitmaps", bitmap.bitmap_count());
        return Err(Error::corrupt(expected, bitmap.bitmaps.num_values).at(
            store.name(),
            store.pages_end,
            "segment column metadata",
        ));
    }
    let bitmaps = all_values(store, &bitmap.bitmaps, Cell::Bytes)?;
    bitmaps
        .as_binary_view_opt()
        .cloned()
        .ok_or_else(|| Error::corrupt("bitmaps of bytes", bitmaps.data_type()))
}

/// Reads everything the index has.
pub(crate) fn check(store: &Arc<PageStore>, bitmap: &BitmapMeta, cell: &Cell) -> Result<()> {
    all_values(store, &bitmap.values, cell.clone())?;
    for stored in bitmaps(store, bitmap)?.iter().flatten() {
        parse(stored).at(store.name(), bitmap.bitmaps.offset(), PageKind::Data.part())?;
    }
    Ok(())
}

/// The rows whose value is one of `points`, and few others; `None` if one of the points cannot be looked up.
pub(crate) fn rows(
    store: &Arc<PageStore>,
    meta: &ColumnMeta,
    bitmap: &BitmapMeta,
    cell: &Cell,
    points: &[Literal],
) -> Result<Option<RowRanges>> {
    let wanted: Option<Vec<_>> = points.iter().map(|point| stored::cell(cell, meta.length, point)).collect();
    let Some(wanted) = wanted else { return Ok(None) };
    let values = all_values(store, &bitmap.values, cell.clone())?;
    let bitmaps = bitmaps(store, bitmap)?;
    let mut found = RoaringBitmap::new();
    for number in 0..values.len() {
        let value = stored::cell(cell, meta.length, &Literal::from_array(&values, number));
        if value.is_some_and(|value| wanted.contains(&value)) {
            found |= parse(bitmaps.value(number)).at(
                store.name(),
                bitmap.bitmaps.offset(),
                PageKind::Data.part(),
            )?;
        }
    }
    Ok(Some(joined(&found, meta.num_rows)))
}

/// Rows as ranges, small holes filled.
fn joined(rows: &RoaringBitmap, num_rows: u64) -> RowRanges {
    let mut ranges = Vec::new();
    let mut open: Option<std::ops::Range<u64>> = None;
    for row in rows.iter().map(u64::from).take_while(|row| *row < num_rows) {
        match &mut open {
            Some(range) if row <= range.end.saturating_add(JOINED_ROWS) => range.end = row.saturating_add(1),
            _ => ranges.extend(open.replace(row..row.saturating_add(1))),
        }
    }
    ranges.extend(open);
    ranges.into_iter().collect()
}

pub(crate) fn parse(bytes: &[u8]) -> Result<RoaringBitmap> {
    match bytes.split_first() {
        Some((1, rest)) => {
            let (count, rows) = rest
                .split_first_chunk::<4>()
                .ok_or_else(|| Error::corrupt("a count of rows", format!("{} bytes", rest.len())))?;
            let count = u32::from_le_bytes(*count) as usize;
            if rows.len() != count.saturating_mul(4) {
                return Err(Error::corrupt(format!("{count} rows"), format!("{} bytes", rows.len())));
            }
            Ok(rows.as_chunks::<4>().0.iter().map(|row| u32::from_le_bytes(*row)).collect())
        }
        Some((2, rest)) => {
            RoaringBitmap::deserialize_from(rest).map_err(|error| Error::corrupt("a roaring bitmap", error))
        }
        other => Err(Error::corrupt("a bitmap of form 1 or 2", format!("{:?}", other.map(|(form, _)| form)))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn both_forms_and_small_holes() {
        let list = parse(b"\x01\x02\0\0\0\x05\0\0\0\x07\0\0\0").unwrap();
        assert_eq!(list.iter().collect::<Vec<_>>(), [5, 7]);
        let mut portable = vec![2];
        RoaringBitmap::from_iter([1u32, 1000, 1001]).serialize_into(&mut portable).unwrap();
        let rows = joined(&parse(&portable).unwrap(), 1001);
        assert_eq!(rows.as_slice(), [1..2, 1000..1001]);
        assert!(parse(b"\x01\x02\0\0\0\x05\0\0\0").is_err());
        assert!(parse(b"").is_err());
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_bitmap_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            let _ = parse(&bytes);
            let _ = parse(&[&[2][..], &bytes].concat());
        }
    }
}
