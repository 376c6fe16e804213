//! Parsers of a segment's parts on any bytes, for fuzz targets.

use bytes::Bytes;
use pilaster_core::Limits;

use super::cells::Cell;
use super::decode::{Form, PageShape};
use super::page::Page;
use super::types::{Encoding, FieldType};
use super::{bitmap_index, bloom, key_index, paged, variant_cell};
use crate::messages::{DataPageFooterPb, IndexPageFooterPb, PageFooterPb};

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

pub(crate) fn parse_any_index(bytes: &[u8]) {
    let count = usize::from(bytes.first().copied().unwrap_or_default());
    let body = Bytes::copy_from_slice(bytes);
    let _ = key_index::parse_short_keys(&body, count, bytes.len() / 2);
    let _ = bitmap_index::parse(bytes);
    let _ = bloom::may_hold(bytes, b"cell");
    let index_page_footer = Some(IndexPageFooterPb { num_entries: u32::try_from(count).ok(), kind: None });
    let page = Page { body, footer: PageFooterPb { index_page_footer, ..PageFooterPb::default() } };
    let _ = paged::parse_entries(&page, |_, _| Ok(()));
}
