//! Parsers of a segment's parts on any bytes, for fuzz targets.

use std::sync::Arc;

use bytes::Bytes;
use pilaster_core::Limits;
use pilaster_core::source::MemorySource;

use super::cells::Cell;
use super::column_meta::{IndexedColumnMeta, TreeMeta};
use super::decode::{Form, PageShape};
use super::page::{Page, PagePointer, PageStore};
use super::page_indexes::all_values;
use super::types::{Compression, Encoding, FieldType};
use super::{bitmap_index, bloom, key_index, paged, variant_cell, zone_map};
use crate::messages::{self, DataPageFooterPb, IndexPageFooterPb, PageFooterPb, ZoneMapPb};

pub(crate) fn variant_cell_text(bytes: &[u8], limits: &Limits) -> pilaster_core::Result<String> {
    variant_cell::to_text(bytes, limits)
}

pub(crate) fn decode_any_page(bytes: &[u8], limits: &Limits) {
    let Some((&[kind, encoding, rows, nulls], body)) = bytes.split_first_chunk::<4>() else { return };
    let number = |byte: u8, end: i32| i32::from(byte).checked_rem(end).unwrap_or_default();
    let (Ok(field_type), Ok(encoding)) =
        (FieldType::from_number(number(kind, 41)), Encoding::from_number(number(encoding, 10)))
    else {
        return;
    };
    let Ok(cell) = Cell::of_type(field_type, None, None) else { return };
    let footer = PageFooterPb {
        data_page_footer: Some(DataPageFooterPb {
            first_ordinal: Some(0),
            num_values: Some(u64::from(rows)),
            nullmap_size: Some(u32::from(nulls)),
            next_array_item_ordinal: None,
            format_version: None,
        }),
        ..PageFooterPb::default()
    };
    let page = Page { body: Bytes::copy_from_slice(body), footer };
    let shape = PageShape { cell: cell.clone(), encoding, limits: limits.clone() };
    let words = || cell.bytes_array(b"word".to_vec().into(), &[0, 4], limits);
    if let Ok(mut decoded) = shape.decode(&page, &words) {
        let rows = decoded.rows;
        for form in [Form::Wanted, Form::Codes] {
            if let Ok(values) = decoded.read(0..rows, form, &cell) {
                assert_eq!(values.len(), rows);
            }
        }
    }
}

pub(crate) fn parse_any_index(bytes: &[u8], limits: &Limits) {
    let count = usize::from(bytes.first().copied().unwrap_or_default());
    let body = Bytes::copy_from_slice(bytes);
    let _ = key_index::parse_short_keys(&body, count, bytes.len() / 2);
    let _ = bitmap_index::parse(bytes);
    let _ = bloom::may_hold(bytes, b"cell");
    let index_page_footer = Some(IndexPageFooterPb { num_entries: u32::try_from(count).ok(), kind: None });
    let page = Page { body, footer: PageFooterPb { index_page_footer, ..PageFooterPb::default() } };
    let _ = paged::parse_entries(&page, |_, _| Ok(()));
    any_zone_map(bytes);
    any_index_column(bytes, limits);
}

/// Bounds of every type in one zone map.
fn any_zone_map(bytes: &[u8]) {
    let Ok(zone) = messages::parse::<ZoneMapPb>(bytes, "ZoneMapPB") else { return };
    for number in 0..41 {
        let Ok(field_type) = FieldType::from_number(number) else { continue };
        let Ok(cell) = Cell::of_type(field_type, None, None) else { continue };
        if let Ok((min, max)) = zone_map::bounds(&cell, std::slice::from_ref(&zone)) {
            assert!(min.iter().chain(&max).all(|bound| bound.len() == 1));
        }
    }
}

/// A file of pages, and an index column in it: primary keys, zone maps, filters and dictionaries are such.
fn any_index_column(bytes: &[u8], limits: &Limits) {
    let Some((&[flags, count @ ..], file)) = bytes.split_first_chunk::<9>() else { return };
    let end = file.len() as u64;
    let source = Arc::new(MemorySource::new("fuzz", file.to_vec()));
    let store = Arc::new(PageStore::new(source, limits.clone(), false, end));
    let root = PagePointer { offset: 0, size: u32::try_from(end).unwrap_or(u32::MAX) };
    let tree = Some(TreeMeta { root, is_data_page: flags & 1 == 0 });
    for (encoding, field_type) in [
        (Encoding::Prefix, FieldType::Varchar),
        (Encoding::Plain, FieldType::Varchar),
        (Encoding::Frames, FieldType::Int),
    ] {
        let index = IndexedColumnMeta {
            field_type,
            encoding,
            compression: Compression::None,
            num_values: u64::from_le_bytes(count) >> (flags >> 2),
            ordinal_index: tree.filter(|_| flags & 2 == 0),
            value_index: tree,
        };
        let Ok(cell) = Cell::of_type(field_type, None, None) else { continue };
        if let Ok(values) = all_values(&store, &index, cell) {
            assert_eq!(values.len() as u64, index.num_values);
        }
    }
}
