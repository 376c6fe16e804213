//! The encodings and codecs of a damaged segment, for the one that takes its place.

use super::walk::WalkedPage;
use crate::schema::{ROW_STORE_COLUMN, SchemaColumn, TabletSchema};
use crate::segment::column_meta::ColumnMeta;
use crate::segment::footer::StorageFormat;
use crate::segment::types::{Compression, Encoding, FieldType, Physical};
use crate::segment::write::{SegmentWriteOptions, is_readable};

/// The format that pages speak for: entries of dictionaries, and values that have none, are stored otherwise in each.
pub(super) fn format_of(pages: &[WalkedPage]) -> Option<StorageFormat> {
    let words = pages.iter().filter_map(|page| page.footer.dict_page_footer?.encoding);
    let mut words = words.filter_map(|number| Encoding::from_number(number).ok());
    match words.next()? {
        Encoding::PlainV3 | Encoding::PlainV2 => Some(StorageFormat::V3),
        _ => Some(StorageFormat::V2),
    }
}

/// Gives every column of the schema what its pages have. If that was found out by decoding, a column without pages, or none of
/// whose pages is compressed, does not tell its codec: it takes that of the others, under which such pages stay as they are.
pub(super) fn fill_columns(
    options: &mut SegmentWriteOptions,
    schema: &TabletSchema,
    columns: &[ColumnMeta],
    is_guessed: bool,
) {
    let common = is_guessed.then(|| columns.iter().find_map(codec_of)).flatten();
    for column in &schema.columns {
        if let Some(meta) = columns.iter().find(|meta| meta.unique_id == column.unique_id) {
            fill(options, column, meta, &column.name, common);
        }
    }
}

/// The codec of the first part that has one.
fn codec_of(column: &ColumnMeta) -> Option<Compression> {
    let own = column.ordinal_index.is_some().then_some(column.compression);
    own.filter(|codec| *codec != Compression::None).or_else(|| column.children.iter().find_map(codec_of))
}

fn fill(
    options: &mut SegmentWriteOptions,
    column: &SchemaColumn,
    meta: &ColumnMeta,
    path: &str,
    common: Option<Compression>,
) {
    // A column that changes its type is stored as the new one is.
    if FieldType::from_schema_name(&column.type_name) != Some(meta.field_type) {
        return;
    }
    let codec = |part: &ColumnMeta| match common {
        Some(common) if part.compression == Compression::None || part.ordinal_index.is_none() => common,
        _ => part.compression,
    };
    let is_nested = meta.field_type.physical() == Physical::Nested;
    if !is_nested && (meta.field_type != FieldType::AggState || meta.ordinal_index.is_some()) {
        let is_row_store = column.name == ROW_STORE_COLUMN;
        let encoding = meta.encoding.filter(|known| is_readable(meta.field_type, is_row_store, *known));
        options.fill_column(path, encoding, codec(meta));
        return;
    }
    if meta.field_type == FieldType::Variant {
        options.fill_column(path, None, codec(meta));
        return;
    }
    // The helper columns, offsets and nulls, have the codec of the whole column.
    let helper = meta.children.get(column.children.len());
    options.fill_column(path, None, codec(helper.unwrap_or(meta)));
    for (number, (child, part)) in column.children.iter().zip(&meta.children).enumerate() {
        let name = match (meta.field_type, column.children.len(), number) {
            (FieldType::Struct, ..) => child.name.as_str(),
            (_, 1, _) => "item",
            (_, _, 0) => "key",
            _ => "value",
        };
        fill(options, child, part, &format!("{path}.{name}"), common);
    }
}
