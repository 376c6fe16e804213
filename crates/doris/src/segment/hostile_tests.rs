//! Files whose checksums are right and whose counts lie: errors, and no more memory than there are bytes for.

use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, Int32Array, ListArray, RecordBatch, StringArray};
use pilaster_core::progress::Silent;
use pilaster_core::source::MemorySource;
use pilaster_core::{Dataset, ErrorKind, Limits, Predicate, VerifyDepth, col, lit};
use pilaster_encoding::checksum::crc32c;
use prost::Message;

use super::footer::MAGIC;
use super::write::{ColumnWriteOptions, SegmentWriteOptions, SegmentWriter};
use super::{SegmentReader, SegmentReaderOptions};
use crate::messages::{
    BTreePb, BitmapIndexPb, ColumnIndexPb, ColumnMetaPb, DataPageFooterPb, IndexPageFooterPb,
    IndexedColumnPb, OrdinalIndexPb, PageFooterPb, PagePointerPb, SegmentFooterPb,
};
use crate::schema::TabletSchema;

const ROWS: i32 = 5000;

fn schema() -> Arc<TabletSchema> {
    let json = br#"{"keys_type": "UNIQUE_KEYS", "merge_on_write": true, "columns": [
        {"unique_id": 0, "name": "k", "type": "INT", "is_key": true},
        {"unique_id": 1, "name": "s", "type": "STRING", "is_nullable": true, "is_bf_column": true}]}"#;
    Arc::new(TabletSchema::parse_json(json).unwrap())
}

/// A segment with zone maps, bloom filters and primary keys, of several pages each.
fn segment() -> Vec<u8> {
    let keys: ArrayRef = Arc::new(Int32Array::from_iter_values(0..ROWS));
    let texts = StringArray::from_iter_values((0..ROWS).map(|row| format!("text {row}")));
    let batch = RecordBatch::try_from_iter([("k", keys), ("s", Arc::new(texts) as ArrayRef)]).unwrap();
    let options = SegmentWriteOptions::default()
        .with_page_bytes(4096)
        .with_column("s", ColumnWriteOptions::default().with_encoding(super::Encoding::Plain));
    let mut writer = SegmentWriter::try_new(Vec::new(), &schema(), &options).unwrap();
    writer.write(&batch).unwrap();
    writer.finish().unwrap().0
}

/// The file of some pages and a footer.
fn file(pages: &[u8], footer: &SegmentFooterPb) -> Vec<u8> {
    let message = footer.encode_to_vec();
    let mut file = [pages, &message].concat();
    file.extend((message.len() as u32).to_le_bytes());
    file.extend(crc32c(&message).to_le_bytes());
    file.extend(MAGIC);
    file
}

/// The same pages under a footer that says something else.
fn with_footer(sound: &[u8], change: impl FnOnce(&mut SegmentFooterPb)) -> Vec<u8> {
    let tail = sound.len() - 12;
    let length = u32::from_le_bytes(sound[tail..tail + 4].try_into().unwrap()) as usize;
    let mut footer = SegmentFooterPb::decode(&sound[tail - length..tail]).unwrap();
    change(&mut footer);
    file(&sound[..tail - length], &footer)
}

fn open(bytes: Vec<u8>) -> SegmentReader {
    let options = SegmentReaderOptions::default().with_schema(Some(schema()));
    SegmentReader::open_with_options(Arc::new(MemorySource::new("file", bytes)), &options).unwrap()
}

fn rows(reader: &SegmentReader, predicate: &Predicate) -> pilaster_core::Result<usize> {
    let mut rows = 0;
    for batch in reader.scan().filter(predicate.clone()).read()? {
        rows += batch?.num_rows();
    }
    Ok(rows)
}

fn is_sound(reader: &SegmentReader, depth: VerifyDepth) -> bool {
    reader.verify(depth, &Silent).unwrap().is_sound()
}

type Change = fn(&mut SegmentFooterPb, i64);

/// Ways to lie about the number of values of an index, and a filter that asks it.
fn lies() -> Vec<(&'static str, Change, Predicate)> {
    let zones: Change = |footer, count| {
        for column in &mut footer.columns {
            let zones = column.indexes.iter_mut().find_map(|index| index.zone_map_index.as_mut()).unwrap();
            zones.page_zone_maps.as_mut().unwrap().num_values = Some(count);
        }
    };
    let blooms: Change = |footer, count| {
        let indexes = &mut footer.columns[1].indexes;
        let bloom = indexes.iter_mut().find_map(|index| index.bloom_filter_index.as_mut()).unwrap();
        bloom.bloom_filter.as_mut().unwrap().num_values = Some(count);
    };
    let keys: Change = |footer, count| {
        let primary = footer.primary_key_index_meta.as_mut().unwrap();
        primary.primary_key_index.as_mut().unwrap().num_values = Some(count);
    };
    // The old index, of which the file has none, in the place of other pages.
    let bitmaps: Change = |footer, count| {
        let column = &mut footer.columns[0];
        let zones = column.indexes.iter().find_map(|index| index.zone_map_index.as_ref()).unwrap();
        let pages = zones.page_zone_maps.unwrap();
        let values = IndexedColumnPb {
            data_type: Some(17),
            num_values: Some(count),
            ordinal_index_meta: None,
            value_index_meta: pages.ordinal_index_meta,
            ..pages
        };
        let bitmap = BitmapIndexPb {
            bitmap_type: Some(1),
            has_null: Some(false),
            dict_column: Some(values),
            bitmap_column: Some(values),
        };
        column.indexes.push(ColumnIndexPb {
            kind: Some(3),
            bitmap_index: Some(bitmap),
            ..ColumnIndexPb::default()
        });
        column.field_type = Some(17);
        column.encoding = Some(2);
    };
    vec![
        ("zone maps", zones, col("s").gt(lit("text 1"))),
        ("bloom filters", blooms, col("s").eq(lit("text 77"))),
        ("primary keys", keys, col("k").eq(lit(77i64))),
        ("bitmaps", bitmaps, col("k").eq(lit("77"))),
    ]
}

#[test]
fn counts_of_indexes_are_not_believed() {
    let sound = segment();
    assert!(is_sound(&open(sound.clone()), VerifyDepth::Values));
    for (name, change, predicate) in lies() {
        for count in [1i64 << 61, 1 << 34, 1 << 20, 1, 0] {
            let reader = open(with_footer(&sound, |footer| change(footer, count)));
            let found = rows(&reader, &predicate);
            assert!(found.is_err(), "{name} of {count}: {found:?}");
            assert!(!is_sound(&reader, VerifyDepth::Checksums), "{name} of {count}");
        }
        // The counts of zone maps, filters and keys are known without looking at a page.
        if name != "bitmaps" {
            let reader = open(with_footer(&sound, |footer| change(footer, 1 << 61)));
            assert!(!is_sound(&reader, VerifyDepth::Footer), "{name}");
        }
    }
}

/// A page of `rows` values, all of them null.
fn null_page(rows: u64, next_item: Option<u64>) -> Vec<u8> {
    let width = 8u32;
    let mut body: Vec<u8> = [0u32, 16, 0, width].iter().flat_map(|word| word.to_le_bytes()).collect();
    let mut map = Vec::new();
    pilaster_encoding::varint::write_u64(&mut map, rows << 1);
    map.push(1);
    body.extend(&map);
    let footer = PageFooterPb {
        kind: Some(1),
        uncompressed_size: Some(body.len() as u32),
        data_page_footer: Some(DataPageFooterPb {
            first_ordinal: Some(0),
            num_values: Some(rows),
            nullmap_size: Some(map.len() as u32),
            next_array_item_ordinal: next_item,
            format_version: None,
        }),
        ..PageFooterPb::default()
    }
    .encode_to_vec();
    page(body, &footer)
}

/// A page of a body and a footer.
fn page(mut body: Vec<u8>, footer: &[u8]) -> Vec<u8> {
    body.extend(footer);
    body.extend((footer.len() as u32).to_le_bytes());
    body.extend(crc32c(&body).to_le_bytes());
    body
}

/// A column whose only page is the first of the file.
fn column(field_type: i32, rows: u64, page: Option<usize>, children: Vec<ColumnMetaPb>) -> ColumnMetaPb {
    let tree = page.map(|size| BTreePb {
        root_page: Some(PagePointerPb { offset: Some(0), size: Some(size as u32) }),
        is_root_data_page: Some(true),
    });
    ColumnMetaPb {
        column_id: Some(0),
        unique_id: Some(0),
        field_type: Some(field_type),
        length: Some(8),
        encoding: Some(if page.is_some() { 6 } else { 0 }),
        compression: Some(2),
        is_nullable: Some(false),
        indexes: vec![ColumnIndexPb {
            kind: Some(1),
            ordinal_index: tree.map(|root_page| OrdinalIndexPb { root_page: Some(root_page) }),
            ..ColumnIndexPb::default()
        }],
        children_columns: children,
        num_rows: Some(rows),
        ..ColumnMetaPb::default()
    }
}

fn bare(bytes: Vec<u8>) -> SegmentReader {
    SegmentReader::open(Arc::new(MemorySource::new("file", bytes))).unwrap()
}

#[test]
fn a_page_of_many_nulls_is_read_in_batches() {
    let rows = 1u64 << 24;
    let page = null_page(rows, None);
    let mut column = column(7, rows, Some(page.len()), Vec::new());
    column.is_nullable = Some(true);
    let columns = vec![column.clone()];
    let footer = SegmentFooterPb { num_rows: Some(rows as u32), columns, ..SegmentFooterPb::default() };
    let reader = bare(file(&page, &footer));
    let report = reader.verify(VerifyDepth::Values, &Silent).unwrap();
    assert!(report.is_sound(), "{:?}", report.findings);
    let batches = reader.scan().read().unwrap().map(|batch| batch.unwrap().num_rows());
    assert_eq!(batches.max(), Some(pilaster_core::dataset::DEFAULT_BATCH_SIZE));
    // In a column that may not have any, they are damage.
    column.is_nullable = Some(false);
    let footer = SegmentFooterPb { columns: vec![column], ..footer };
    assert!(!is_sound(&bare(file(&page, &footer)), VerifyDepth::Values));
}

#[test]
fn offsets_that_are_null_are_one_finding() {
    let rows = 1u64 << 24;
    let page = null_page(rows, Some(0));
    let mut item = column(5, 0, None, Vec::new());
    item.encoding = Some(6);
    let offsets = column(8, rows, Some(page.len()), Vec::new());
    let columns = vec![column(19, rows, None, vec![item, offsets])];
    let footer = SegmentFooterPb { num_rows: Some(rows as u32), columns, ..SegmentFooterPb::default() };
    let reader = bare(file(&page, &footer));
    let report = reader.verify(VerifyDepth::Values, &Silent).unwrap();
    assert_eq!(report.findings.len(), 1, "{:?}", report.findings);
    let text = report.findings[0].to_string();
    assert!(
        text.contains(&format!("expected no nulls in a column that may not have any, found {rows} nulls")),
        "{text}"
    );
    assert_eq!(report.findings[0].rows, Some(0..rows));
    assert!(text.starts_with("file: segment data page at byte 0: expected"), "{text}");
}

/// One row of an array whose items are all null: in a struct of so many fields, each of which would be made.
#[test]
fn items_that_no_byte_stands_for_are_limited() {
    let items = 1u64 << 24;
    let nulls = null_page(items, None);
    let body = [&1u32.to_le_bytes()[..], &0u64.to_le_bytes()].concat();
    let offsets = PageFooterPb {
        kind: Some(1),
        uncompressed_size: Some(body.len() as u32),
        data_page_footer: Some(DataPageFooterPb {
            first_ordinal: Some(0),
            num_values: Some(1),
            nullmap_size: Some(0),
            next_array_item_ordinal: Some(items),
            format_version: None,
        }),
        ..PageFooterPb::default()
    }
    .encode_to_vec();
    let body = page(body, &offsets);
    let page = nulls;
    let fields = vec![column(7, items, Some(page.len()), Vec::new()); 100];
    let mut starts = column(8, 1, Some(body.len()), Vec::new());
    starts.encoding = Some(2);
    let root = starts.indexes[0].ordinal_index.as_mut().unwrap().root_page.as_mut().unwrap();
    root.root_page.as_mut().unwrap().offset = Some(page.len() as u64);
    let columns = vec![column(19, 1, None, vec![column(18, items, None, fields), starts])];
    let footer = SegmentFooterPb { num_rows: Some(1), columns, ..SegmentFooterPb::default() };
    let reader = bare(file(&[page, body].concat(), &footer));
    let error = reader.scan().read().unwrap().find_map(Result::err).unwrap().to_string();
    assert!(error.contains("is over the limit batch_bytes"), "{error}");
    assert!(!is_sound(&reader, VerifyDepth::Values));
}

#[test]
fn runs_that_stand_for_more_than_the_limit_are_refused() {
    let limits = Limits { decoded_bytes: 1 << 10, ..Limits::default() };
    let rows = 1u64 << 20;
    let page = null_page(rows, None);
    let columns = vec![column(7, rows, Some(page.len()), Vec::new())];
    let footer = SegmentFooterPb { num_rows: Some(rows as u32), columns, ..SegmentFooterPb::default() };
    let source = Arc::new(MemorySource::new("file", file(&page, &footer)));
    let options = SegmentReaderOptions::default().with_limits(limits);
    let reader = SegmentReader::open_with_options(source, &options).unwrap();
    let error = reader.scan().read().unwrap().find_map(Result::err).unwrap().to_string();
    assert!(error.contains("131072 is over the limit decoded_bytes = 1024"), "{error}");
}

#[test]
fn numbers_that_nobody_knows_are_unsupported() {
    let sound = segment();
    type Change = fn(&mut ColumnMetaPb);
    let changes: [(&str, Change); 3] = [
        ("a field type of number 99", |column| column.field_type = Some(99)),
        ("an encoding of number 99", |column| column.encoding = Some(99)),
        ("a codec of number 99", |column| column.compression = Some(99)),
    ];
    for (expected, change) in changes {
        let file = with_footer(&sound, |footer| change(&mut footer.columns[0]));
        let error = SegmentReader::open(Arc::new(MemorySource::new("file", file))).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Unsupported { .. }), "{error}");
        assert!(error.to_string().contains(expected), "{error}");
    }
}

#[test]
fn items_that_are_not_there_are_said_of_the_page_that_asks_for_them() {
    let json = br#"{"keys_type": "DUP_KEYS", "columns": [
        {"unique_id": 0, "name": "k", "type": "INT", "is_key": true},
        {"unique_id": 1, "name": "list", "type": "ARRAY", "children": [
            {"unique_id": 2, "name": "item", "type": "INT", "is_nullable": true}]}]}"#;
    let schema = Arc::new(TabletSchema::parse_json(json).unwrap());
    let keys: ArrayRef = Arc::new(Int32Array::from_iter_values(0..ROWS));
    let lists = (0..ROWS).map(|row| Some([Some(row), None]));
    let lists: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(lists));
    let options = SegmentWriteOptions::default().with_page_bytes(4096);
    let mut writer = SegmentWriter::try_new(Vec::new(), &schema, &options).unwrap();
    writer.write(&RecordBatch::try_from_iter([("k", keys), ("list", lists)]).unwrap()).unwrap();
    let sound = writer.finish().unwrap().0;
    let lying = with_footer(&sound, |footer| footer.columns[1].children_columns[0].num_rows = Some(1));
    let options = SegmentReaderOptions::default().with_schema(Some(schema));
    let open = |bytes: Vec<u8>| {
        SegmentReader::open_with_options(Arc::new(MemorySource::new("file", bytes)), &options).unwrap()
    };
    let reader = open(lying);
    let error = rows(&reader, &col("k").is_not_null()).unwrap_err();
    assert!(error.to_string().contains("expected offsets up to 1, found items 0.."), "{error}");
    let at = error.position().unwrap();
    let pages = open(sound).pages().unwrap();
    let page = pages.iter().find(|page| page.offset == at.offset).unwrap();
    assert!(page.column.starts_with("list"), "{error} is said of a page of {}", page.column);
}

#[test]
fn an_index_without_pages_is_no_column_without_rows() {
    let footer = PageFooterPb {
        kind: Some(2),
        uncompressed_size: Some(0),
        index_page_footer: Some(IndexPageFooterPb { num_entries: Some(0), kind: Some(1) }),
        ..PageFooterPb::default()
    };
    let index = page(Vec::new(), &footer.encode_to_vec());
    let mut empty = column(5, 3, Some(index.len()), Vec::new());
    let tree = empty.indexes[0].ordinal_index.as_mut().unwrap().root_page.as_mut().unwrap();
    tree.is_root_data_page = Some(false);
    let footer = SegmentFooterPb { num_rows: Some(3), columns: vec![empty], ..SegmentFooterPb::default() };
    let reader = bare(file(&index, &footer));
    for predicate in [col("0").gt(lit(1i64)), col("0").is_not_null()] {
        let error = rows(&reader, &predicate).unwrap_err().to_string();
        assert!(error.contains("expected pages of 3 rows, found an index without entries"), "{error}");
    }
    let error = reader.pages().unwrap_err().to_string();
    assert!(error.starts_with("file: segment index page at byte 0: expected pages"), "{error}");
}

#[test]
fn columns_that_take_much_memory_are_not_believed() {
    let sound = segment();
    // A described column takes hundreds of bytes, and two in the file.
    for (children, columns) in [(0, 70_000), (70_000, 1)] {
        let lying = with_footer(&sound, |footer| {
            let inner = vec![ColumnMetaPb::default(); children];
            footer.columns =
                vec![ColumnMetaPb { children_columns: inner, ..ColumnMetaPb::default() }; columns];
        });
        let error = SegmentReader::open(Arc::new(MemorySource::new("file", lying))).unwrap_err().to_string();
        assert!(error.contains("segment footer at byte"), "{error}");
        assert!(error.contains("expected at most 65536 columns"), "{error}");
    }
}
