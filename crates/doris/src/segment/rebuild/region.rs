//! The columns of a V3 file whose footer is gone: their descriptions lie between the pages and the footer.
//!
//! ```text
//! pages │ ColumnMetaPB │ ColumnMetaPB │ … │ what is left of the footer
//! ```
//!
//! Only the footer knows how long each is. But every one begins with field 1, and so does the footer; and a footer has no
//! field 2, which every column has. No checksum covers them, in a whole file either, so they are believed only if they and
//! the pages, which have checksums, fit: every page of the file belongs to one column, every page that a column names is
//! there, the columns are those of the schema, and the paths of a VARIANT are those in its pages of paths.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use pilaster_core::{Error, Result, SourceRef};
use pilaster_encoding::varint;
use prost::Message;

use super::assign::short_keys;
use super::walk::WalkedPage;
use super::{Mended, Recovered};
use crate::messages::{ColumnMetaPb, SegmentFooterPb};
use crate::schema::TabletSchema;
use crate::segment::cells::Cell;
use crate::segment::column_meta::ColumnMeta;
use crate::segment::decode::{Form, PageShape};
use crate::segment::footer::StorageFormat;
use crate::segment::page::{PageKind, PagePointer};
use crate::segment::reader::{Segment, SegmentReader, SegmentReaderOptions};
use crate::segment::structure;
use crate::segment::types::{Encoding, FieldType};
use crate::segment::variant::is_map_key;
use crate::segment::write::{Sink, write_footer};

const FIRST_FIELD: u64 = 1;
const PAGE_DATA: i32 = 1;
const PAGE_SHORT_KEYS: i32 = 4;

/// A file by the descriptions of its columns.
pub(super) fn recovered(
    source: &SourceRef,
    pages: &[WalkedPage],
    end: u64,
    options: &SegmentReaderOptions,
) -> Result<Recovered> {
    let left = source.size().saturating_sub(end);
    options.limits().metadata(left)?;
    let described = described(&source.read_at(end..source.size())?);
    let columns: Vec<_> = described.into_iter().map(|(column, _)| column).collect();
    let rows = columns.first().and_then(|column| column.num_rows).unwrap_or(0);
    if columns.is_empty() || columns.iter().any(|column| column.num_rows != Some(rows)) {
        return Err(Error::corrupt("descriptions of columns behind the pages", "none that fit"));
    }
    let footer = SegmentFooterPb {
        columns,
        num_rows: Some(u32::try_from(rows).map_err(|_| Error::corrupt("less than 2^32 rows", rows))?),
        short_key_index_page: short_keys(pages, rows),
        ..SegmentFooterPb::default()
    };
    let mut sink = Sink::at(Vec::new(), end);
    write_footer(&footer, &mut sink)?;
    let mended = Mended { source: Arc::clone(source), kept: end, tail: sink.finish()?.into() };
    let reader = SegmentReader::open_as_it_is(Arc::new(mended), options)?;
    let unclaimed = unclaimed(reader.shared(), pages)?;
    check_schema(&reader.shared().metadata.columns, options.written_schema())?;
    check_paths(reader.shared(), &unclaimed)?;
    Ok(Recovered { reader, format: Some(StorageFormat::V3), is_guessed: false })
}

/// How many bytes the descriptions have.
pub(super) fn length(bytes: &[u8]) -> usize {
    described(bytes).iter().map(|(_, length)| length).sum()
}

/// Columns one after another, up to what is none, with their lengths.
fn described(bytes: &[u8]) -> Vec<(ColumnMetaPb, usize)> {
    let mut columns = Vec::new();
    let mut rest = bytes;
    while let Some(length) = next_length(rest) {
        let (first, after) = rest.split_at(length);
        let Some(column) = ColumnMetaPb::decode(first).ok().filter(|column| is_whole(column, after)) else {
            break;
        };
        columns.push((column, length));
        rest = after;
    }
    columns
}

/// Whether it is a column, and nothing of it is cut off: something follows, or it has the field that is written last.
fn is_whole(column: &ColumnMetaPb, after: &[u8]) -> bool {
    let is_column = column.unique_id.is_some() && column.field_type.is_some() && column.num_rows.is_some();
    is_column && (!after.is_empty() || column.raw_data_bytes.is_some() || column.none_null_size.is_some())
}

/// The length of a message whose fields ascend from the first, up to the next message.
fn next_length(bytes: &[u8]) -> Option<usize> {
    let (mut at, mut last) = (0, 0);
    while at < bytes.len() {
        let start = at;
        let tag = varint::read_u64(bytes, &mut at).ok()?;
        let field = tag >> 3;
        if field == FIRST_FIELD && start > 0 {
            return Some(start);
        }
        if field < last || (start == 0 && field != FIRST_FIELD) {
            return None;
        }
        last = field;
        let skipped = match tag & 7 {
            0 => varint::read_u64(bytes, &mut at).map(|_| 0).ok()?,
            1 => 8,
            2 => usize::try_from(varint::read_u64(bytes, &mut at).ok()?).ok()?,
            5 => 4,
            _ => return None,
        };
        at = at.checked_add(skipped)?;
    }
    (at == bytes.len() && at > 0).then_some(at)
}

/// The pages that belong to no column, after making sure that none of them holds values.
///
/// Indexes lie behind the values of all columns, and behind the columns' own indexes only what the footer knew: keys of
/// rows, and the paths of a VARIANT.
fn unclaimed<'a>(segment: &Segment, pages: &'a [WalkedPage]) -> Result<Vec<&'a WalkedPage>> {
    let mut failure = None;
    let claimed = structure::walk(segment, &mut |error| failure = Some(error));
    if let Some(error) = failure {
        return Err(error);
    }
    let key = |pointer: &PagePointer| (pointer.offset, pointer.size);
    let found: BTreeSet<_> = pages.iter().map(|page| key(&page.pointer)).collect();
    if let Some(page) = claimed.iter().find(|page| !found.contains(&key(&page.pointer))) {
        return Err(Error::corrupt(format!("a {} at byte {}", page.what, page.pointer.offset), "none"));
    }
    let claims: BTreeSet<_> = claimed.iter().map(|page| key(&page.pointer)).collect();
    let is_index = |page: &&structure::StructurePage| {
        page.kind != PageKind::ShortKey && !matches!(page.what, "data page" | "dictionary page")
    };
    let last_index = claimed.iter().filter(is_index).map(|page| page.pointer.offset).max();
    let is_free = |page: &&WalkedPage| !claims.contains(&key(&page.pointer));
    let free: Vec<_> =
        pages.iter().filter(is_free).filter(|page| page.footer.kind != Some(PAGE_SHORT_KEYS)).collect();
    let is_lost = |page: &&&WalkedPage| last_index.is_none_or(|last| page.pointer.offset < last);
    match free.iter().find(is_lost) {
        Some(page) => Err(Error::corrupt(
            "a column for every page",
            format!("a page at byte {} that no column names", page.pointer.offset),
        )),
        None => Ok(free),
    }
}

/// That the columns are those of the schema, and subcolumns belong to one of them.
fn check_schema(columns: &[ColumnMeta], schema: Option<&TabletSchema>) -> Result<()> {
    for declared in schema.iter().flat_map(|schema| &schema.columns) {
        let found = columns.iter().find(|column| column.unique_id == declared.unique_id);
        let is_same = found.is_some_and(|column| {
            FieldType::from_schema_name(&declared.type_name) == Some(column.field_type)
                && column.is_nullable == declared.is_nullable
        });
        if !is_same {
            return Err(Error::corrupt(format!("column \"{}\" of the schema", declared.name), "another"));
        }
    }
    for column in columns.iter().filter(|column| column.unique_id < 0) {
        let parent = column.path.as_ref().and_then(|path| path.parent);
        let root = columns.iter().find(|root| Some(root.unique_id) == parent);
        let is_part = root.is_some_and(|root| root.field_type == FieldType::Variant);
        if !is_part || is_opaque(column.field_type) {
            return Err(Error::corrupt("a part of a VARIANT", column.field_type));
        }
    }
    Ok(())
}

/// Whether no value inside a VARIANT is of the type.
fn is_opaque(field_type: FieldType) -> bool {
    use FieldType as T;
    matches!(field_type, T::Hll | T::Bitmap | T::QuantileState | T::AggState | T::Variant)
}

/// That the subcolumns of each VARIANT are those whose paths its pages of paths list.
fn check_paths(segment: &Segment, unclaimed: &[&WalkedPage]) -> Result<()> {
    let columns = &segment.metadata.columns;
    let mut listed: Vec<Vec<String>> = Vec::new();
    for page in unclaimed {
        let is_first = page.footer.data_page_footer.is_some_and(|data| data.first_ordinal == Some(0));
        let texts = texts(segment, page);
        match listed.last_mut().filter(|_| !is_first) {
            Some(last) => last.extend(texts),
            None => listed.push(texts),
        }
    }
    for root in columns.iter().filter(|column| column.field_type == FieldType::Variant) {
        let paths = columns.iter().filter_map(|column| column.path.as_ref());
        let paths = paths.filter(|path| path.parent == Some(root.unique_id));
        let paths = paths.filter(|path| !path.keys.first().is_some_and(|key| is_map_key(key)));
        let mut paths: Vec<String> = paths.map(|path| path.keys.join(".")).collect();
        paths.sort();
        if !paths.is_empty() && !listed.contains(&paths) {
            return Err(Error::corrupt(
                format!("the {} paths of column {} in a page of paths", paths.len(), root.unique_id),
                "others",
            ));
        }
    }
    Ok(())
}

/// The values of a page of keys or paths; none if it is no such page.
fn texts(segment: &Segment, page: &WalkedPage) -> Vec<String> {
    let codecs = segment.metadata.columns.iter().map(|column| column.compression);
    let decoded = codecs.into_iter().find_map(|codec| {
        let opened = segment.store.read(page.pointer, PageKind::Data, codec).ok()?;
        let shape =
            PageShape { cell: Cell::Text, encoding: Encoding::Prefix, limits: segment.store.limits.clone() };
        shape.decode(&opened, &|| Err(Error::corrupt("a dictionary", "none"))).ok()
    });
    let decoded = decoded.filter(|_| page.footer.kind == Some(PAGE_DATA));
    let array = decoded.and_then(|mut page| page.read(0..page.rows, Form::Wanted, &Cell::Text).ok());
    let Some(array) = array else { return Vec::new() };
    let Some(values) = array.as_string_view_opt() else { return Vec::new() };
    values.iter().flatten().map(str::to_string).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn column(unique_id: u32) -> ColumnMetaPb {
        ColumnMetaPb {
            column_id: Some(unique_id),
            unique_id: Some(unique_id),
            field_type: Some(5),
            num_rows: Some(3),
            raw_data_bytes: Some(12),
            ..ColumnMetaPb::default()
        }
    }

    #[test]
    fn columns_end_where_the_next_begins() {
        let columns = [column(1), column(300)].map(|column| column.encode_to_vec());
        let footer = SegmentFooterPb { version: Some(2), num_rows: Some(3), ..SegmentFooterPb::default() };
        let bytes = [columns.concat(), footer.encode_to_vec()].concat();
        let found: Vec<_> = described(&bytes).iter().map(|(column, _)| column.unique_id).collect();
        assert_eq!(found, [Some(1), Some(300)]);
        assert_eq!(length(&bytes), columns.concat().len());
        // The second is cut: what is left of it may be a whole message, but is no whole column.
        for cut in 1..columns[1].len() {
            assert_eq!(described(&columns.concat()[..columns.concat().len() - cut]).len(), 1, "{cut}");
        }
        assert!(described(&footer.encode_to_vec()).is_empty());
    }

    proptest! {
        #[test]
        fn any_bytes_are_described_or_not(bytes in prop::collection::vec(prop::sample::select(vec![0u8, 1, 2, 5, 8, 16, 24, 26, 0x42, 0x58, 0xff]), 0..200)) {
            prop_assert!(length(&bytes) <= bytes.len());
        }
    }
}
