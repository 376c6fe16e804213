//! Segments whose footer is gone: put together again from their pages.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    missing_docs,
    reason = "tests compute with known values and stop at the first surprise"
)]

mod support;

use std::sync::Arc;

use arrow_array::{ArrayRef, Int32Array, Int64Array, ListArray, RecordBatch, StringArray};
use arrow_select::concat::concat_batches;
use pilaster_core::{Dataset, ErrorKind, LossLog, SourceRef};
use pilaster_doris::TabletSchema;
use pilaster_doris::segment::{
    ColumnWriteOptions, Compression, Encoding, SegmentReader, SegmentReaderOptions, SegmentWriteOptions,
    SegmentWriter, StorageFormat, repair,
};
use pilaster_testing::needs;
use support::golden::Case;
use support::{batches, goldens, memory};

fn rows(reader: &SegmentReader) -> RecordBatch {
    concat_batches(&reader.schema(), &batches(reader.scan()).unwrap()).unwrap()
}

/// Where the footer begins, and where the pages end.
fn ends(case: &Case) -> (usize, usize) {
    let reader = case.open().unwrap();
    (reader.metadata().footer_start as usize, reader.metadata().pages_end as usize)
}

#[needs(goldens = "doris")]
#[test]
fn golden_segments_without_a_footer_hold_their_rows() {
    let root = goldens();
    let (mut rebuilt, mut refused) = (0, 0);
    for case in Case::all(&root) {
        let (footer_start, pages_end) = ends(&case);
        let expected = rows(&case.open().unwrap());
        let length = case.bytes.len();
        for end in [footer_start, pages_end, length - 1, length - 4, (footer_start + length) / 2] {
            let source: SourceRef = memory(&case.name, case.bytes[..end].to_vec());
            assert!(SegmentReader::open_with_options(Arc::clone(&source), &case.options()).is_err());
            match SegmentReader::recover(source, &case.options()) {
                Ok(reader) => {
                    assert_eq!(rows(&reader), expected, "{} cut at {end}", case.name);
                    rebuilt += 1;
                }
                Err(error) => {
                    let has_variant = case.schema.columns.iter().any(|column| column.type_name == "VARIANT");
                    // The row store was written before the columns it is made of.
                    let is_reordered = case.name.contains("row_store_dup_1_vertical");
                    assert!(has_variant || is_reordered, "{}: {error}", case.name);
                    // A footer whose checksum is there, and what lies before the footer of V3, tell the paths.
                    let is_described = footer_start > pages_end && end >= footer_start;
                    assert!(!is_described && end < length - 4, "{} cut at {end}: {error}", case.name);
                    refused += 1;
                }
            }
        }
    }
    eprintln!("{rebuilt} cut segments rebuilt, {refused} refused");
    assert!(rebuilt > 400, "{rebuilt} rebuilt");
}

fn table() -> (Arc<TabletSchema>, RecordBatch) {
    let schema = TabletSchema::parse_json(
        br#"{"num_short_key_columns": 1, "columns": [
            {"unique_id": 0, "name": "id", "type": "INT", "is_key": true},
            {"unique_id": 1, "name": "text", "type": "STRING", "is_nullable": true},
            {"unique_id": 2, "name": "list", "type": "ARRAY", "is_nullable": true, "children": [
                {"unique_id": 3, "name": "item", "type": "BIGINT", "is_nullable": true}]},
            {"unique_id": 4, "name": "none", "type": "ARRAY", "children": [
                {"unique_id": 5, "name": "item", "type": "STRING"}]},
            {"unique_id": 6, "name": "last", "type": "BIGINT"}]}"#,
    )
    .unwrap();
    let count = 5000;
    let text: StringArray =
        (0..count).map(|row| (row % 7 != 0).then(|| format!("word {}", row * 31 % 997))).collect();
    let list =
        ListArray::from_iter_primitive::<arrow_array::types::Int64Type, _, _>((0..count).map(|row| {
            (row % 5 != 0).then(|| (0..row % 4).map(|item| (item != 1).then_some(i64::from(item))))
        }));
    let none = {
        let field = Arc::new(arrow_schema::Field::new("item", arrow_schema::DataType::Utf8View, false));
        let offsets = arrow_buffer::OffsetBuffer::from_lengths(vec![0; count as usize]);
        let items: ArrayRef = arrow_array::new_empty_array(field.data_type());
        ListArray::new(field, offsets, items, None)
    };
    let batch = RecordBatch::try_from_iter([
        ("id", Arc::new(Int32Array::from_iter_values(0..count)) as ArrayRef),
        ("text", Arc::new(text)),
        ("list", Arc::new(list)),
        ("none", Arc::new(none)),
        ("last", Arc::new(Int64Array::from_iter_values((0..i64::from(count)).map(|row| row * 1_000_003)))),
    ])
    .unwrap();
    (Arc::new(schema), batch)
}

fn written(schema: &TabletSchema, batch: &RecordBatch, options: &SegmentWriteOptions) -> Vec<u8> {
    let mut writer = SegmentWriter::try_new(Vec::new(), schema, options).unwrap();
    writer.write(batch).unwrap();
    writer.finish().unwrap().0
}

fn reading(schema: &Arc<TabletSchema>) -> SegmentReaderOptions {
    SegmentReaderOptions::default().with_schema(Some(Arc::clone(schema)))
}

#[test]
fn written_segments_without_a_footer_hold_their_rows() {
    let (schema, batch) = table();
    for format in [StorageFormat::V2, StorageFormat::V3] {
        for codec in [
            Compression::None,
            Compression::Lz4,
            Compression::Lz4Frame,
            Compression::Snappy,
            Compression::Zlib,
            Compression::Zstd,
        ] {
            let options = SegmentWriteOptions::default()
                .with_format(format)
                .with_compression(codec)
                .with_page_bytes(3000)
                .with_dictionary_page_bytes(2000);
            let file = written(&schema, &batch, &options);
            let whole =
                SegmentReader::open_with_options(memory("whole", file.clone()), &reading(&schema)).unwrap();
            let cut = file[..whole.metadata().pages_end as usize + 5].to_vec();
            let reader = SegmentReader::recover(memory("cut", cut.clone()), &reading(&schema)).unwrap();
            assert_eq!(rows(&reader), rows(&whole), "{format:?} {codec}");
            let (mended, report) =
                repair(memory("cut", cut), Vec::new(), &schema, &options, &SegmentReaderOptions::default())
                    .unwrap();
            assert!(report.is_footer_rebuilt && report.losses.is_empty());
            assert_eq!((report.rows, report.bytes), (batch.num_rows() as u64, file.len() as u64));
            assert_eq!(mended, file, "{format:?} {codec}");
        }
    }
}

fn variants(count: i32) -> (Arc<TabletSchema>, RecordBatch) {
    let schema = TabletSchema::parse_json(
        br#"{"num_short_key_columns": 1, "columns": [
            {"unique_id": 0, "name": "id", "type": "INT", "is_key": true},
            {"unique_id": 1, "name": "doc", "type": "VARIANT", "is_nullable": true, "variant_max_subcolumns_count": 3},
            {"unique_id": 2, "name": "other", "type": "VARIANT"}]}"#,
    );
    let document = |row: i32| {
        let rare = if row % 3 == 0 { r#","rare":true"# } else { "" };
        format!(r#"{{"a":{row},"b":{{"c":"text {}"}},"list":[{row},2]{rare}}}"#, row % 50)
    };
    let documents: StringArray = (0..count).map(|row| (row % 11 != 0).then(|| document(row))).collect();
    let others: StringArray = (0..count).map(|row| Some(format!(r#"{{"x":{row}}}"#))).collect();
    let batch = RecordBatch::try_from_iter_with_nullable([
        ("id", Arc::new(Int32Array::from_iter_values(0..count)) as ArrayRef, false),
        ("doc", Arc::new(documents), true),
        ("other", Arc::new(others), false),
    ]);
    (Arc::new(schema.unwrap()), batch.unwrap())
}

#[test]
fn variants_are_rebuilt_by_what_lies_before_the_footer() {
    let (schema, batch) = variants(900);
    let options = SegmentWriteOptions::default().with_format(StorageFormat::V3).with_page_bytes(1000);
    let file = written(&schema, &batch, &options);
    let whole = SegmentReader::open_with_options(memory("whole", file.clone()), &reading(&schema)).unwrap();
    let (pages_end, footer_start) =
        (whole.metadata().pages_end as usize, whole.metadata().footer_start as usize);
    let recover = |bytes: Vec<u8>| SegmentReader::recover(memory("cut", bytes), &reading(&schema));
    for end in footer_start..file.len() {
        let reader = recover(file[..end].to_vec()).unwrap_or_else(|error| panic!("cut at {end}: {error}"));
        assert_eq!(rows(&reader), rows(&whole), "cut at {end}");
    }
    let (mended, report) = repair(
        memory("cut", file[..footer_start + 3].to_vec()),
        Vec::new(),
        &schema,
        &SegmentWriteOptions::default().with_page_bytes(1000),
        &SegmentReaderOptions::default(),
    )
    .unwrap();
    assert!(report.is_footer_rebuilt && mended == file);
    // Where a column's description is missing or does not fit its pages, nothing is believed.
    for end in (pages_end..footer_start).step_by(7) {
        assert!(recover(file[..end].to_vec()).is_err(), "cut at {end}");
    }
    let region = &file[pages_end..footer_start];
    let paths: Vec<usize> = (0..region.len() - 5).filter(|at| region[*at..].starts_with(b"doc.a")).collect();
    assert!(!paths.is_empty());
    // The key, which is written behind the whole path, with another letter.
    let key = paths[0] + (0..40).find(|at| region[paths[0] + 5 + at] == b'a').unwrap() + 5;
    let mut changed = file[..footer_start].to_vec();
    changed[pages_end + key] = b'z';
    let error = recover(changed).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Unsupported { .. }), "{error}");
}

#[test]
fn a_changed_description_never_changes_rows() {
    let (schema, batch) = variants(60);
    let file = written(&schema, &batch, &SegmentWriteOptions::default().with_format(StorageFormat::V3));
    let whole = SegmentReader::open_with_options(memory("whole", file.clone()), &reading(&schema)).unwrap();
    let (expected, metadata) = (rows(&whole), whole.metadata());
    let (mut same, mut refused) = (0, 0);
    for at in metadata.pages_end as usize..metadata.footer_start as usize {
        let mut changed = file[..metadata.footer_start as usize].to_vec();
        changed[at] ^= 1 << (at % 8);
        let recovered = SegmentReader::recover(memory("changed", changed), &reading(&schema));
        match recovered
            .map_err(|error| error.to_string())
            .and_then(|reader| batches(reader.scan()).map_err(|error| error.to_string()))
        {
            Ok(found) => {
                assert_eq!(concat_batches(&whole.schema(), &found).unwrap(), expected, "byte {at}");
                same += 1;
            }
            Err(_) => refused += 1,
        }
    }
    assert!(same > 0 && refused > 500, "{same} the same, {refused} refused");
}

#[test]
fn a_footer_without_its_end_is_proven_by_its_checksum() {
    let (schema, batch) = variants(900);
    for format in [StorageFormat::V2, StorageFormat::V3] {
        let file = written(&schema, &batch, &SegmentWriteOptions::default().with_format(format));
        let whole =
            SegmentReader::open_with_options(memory("whole", file.clone()), &reading(&schema)).unwrap();
        let length = file.len();
        let mut damaged: Vec<Vec<u8>> = (1..=4).map(|cut| file[..length - cut].to_vec()).collect();
        // Its length, its magic.
        for at in [length - 12, length - 2] {
            let mut changed = file.clone();
            changed[at] ^= 4;
            damaged.push(changed);
        }
        for bytes in damaged {
            let source: SourceRef = memory("damaged", bytes);
            assert!(SegmentReader::open_with_options(Arc::clone(&source), &reading(&schema)).is_err());
            let reader = SegmentReader::recover(source, &reading(&schema)).unwrap();
            assert_eq!(rows(&reader), rows(&whole), "{format:?}");
            assert_eq!(reader.metadata().format, format);
        }
        // Another byte of the footer is no footer; V2 has nothing else.
        let mut changed = file.clone();
        changed[length - 20] ^= 1;
        let found = SegmentReader::recover(memory("changed", changed), &reading(&schema));
        assert_eq!(found.is_ok(), format == StorageFormat::V3);
    }
}

#[test]
fn a_repair_keeps_encodings_and_codecs() {
    let (schema, batch) = table();
    let column = |encoding: Encoding, codec: Compression| {
        ColumnWriteOptions::default().with_encoding(encoding).with_compression(codec)
    };
    let codec = |codec: Compression| ColumnWriteOptions::default().with_compression(codec);
    for format in [StorageFormat::V2, StorageFormat::V3] {
        let options = SegmentWriteOptions::default()
            .with_format(format)
            .with_compression(Compression::Lz4)
            .with_column("id", column(Encoding::Frames, Compression::Lz4))
            .with_column("list", codec(Compression::Snappy))
            .with_column("list.item", column(Encoding::Plain, Compression::Zstd))
            .with_column("last", column(Encoding::Plain, Compression::Zlib));
        let file = written(&schema, &batch, &options);
        let whole =
            SegmentReader::open_with_options(memory("whole", file.clone()), &reading(&schema)).unwrap();
        let end = whole.metadata().pages_end as usize;
        // Without a footer; with one, and with a damaged page behind the data.
        let mut damaged = file.clone();
        damaged[end - 1] ^= 1;
        for (source, is_rebuilt) in [(file[..end].to_vec(), true), (damaged, false)] {
            let (mended, report) = repair(
                memory("source", source),
                Vec::new(),
                &schema,
                &SegmentWriteOptions::default(),
                &SegmentReaderOptions::default(),
            )
            .unwrap();
            assert_eq!(report.is_footer_rebuilt, is_rebuilt);
            let stored = |file: Vec<u8>| {
                let reader = SegmentReader::open_with_options(memory("file", file), &reading(&schema));
                let columns = reader.unwrap().metadata().columns.clone();
                let parts = columns.iter().flat_map(|column| [column].into_iter().chain(&column.children));
                parts.map(|part| (part.encoding, part.compression)).collect::<Vec<_>>()
            };
            assert_eq!(stored(mended.clone()), stored(file.clone()), "{format:?} {is_rebuilt}");
            assert!(mended == file, "{format:?} {is_rebuilt}: {} bytes, not {}", mended.len(), file.len());
        }
        // What is chosen counts more.
        let chosen = SegmentWriteOptions::default()
            .with_compression(Compression::None)
            .with_column("last", ColumnWriteOptions::default().with_encoding(Encoding::BitShuffle));
        let cut = memory("cut", file[..end].to_vec());
        let (mended, _) =
            repair(cut, Vec::new(), &schema, &chosen, &SegmentReaderOptions::default()).unwrap();
        let mended = SegmentReader::open_with_options(memory("mended", mended), &reading(&schema)).unwrap();
        let columns = &mended.metadata().columns;
        assert!(columns.iter().all(|column| column.compression == Compression::None));
        let encodings = |at: usize| columns[at].encoding;
        assert_eq!((encodings(0), encodings(4)), (Some(Encoding::Frames), Some(Encoding::BitShuffle)));
        assert_eq!(rows(&mended), rows(&whole));
    }
}

#[test]
fn a_damaged_page_costs_its_rows_alone() {
    let (schema, batch) = table();
    let options = SegmentWriteOptions::default().with_page_bytes(3000);
    let file = written(&schema, &batch, &options);
    let whole = SegmentReader::open_with_options(memory("whole", file.clone()), &reading(&schema)).unwrap();
    let page = whole
        .pages()
        .unwrap()
        .into_iter()
        .filter(|page| page.column == "last" && page.kind == "data page")
        .nth(2)
        .unwrap();
    let mut cut = file[..whole.metadata().pages_end as usize].to_vec();
    cut[page.offset as usize + 30] ^= 1;
    let reader = SegmentReader::recover(memory("cut", cut.clone()), &reading(&schema)).unwrap();
    let losses = Arc::new(LossLog::new());
    let left: usize = batches(reader.scan().skip_damage(Arc::clone(&losses)))
        .unwrap()
        .iter()
        .map(RecordBatch::num_rows)
        .sum();
    let lost = losses.losses();
    assert_eq!(lost.len(), 1, "{lost:?}");
    assert_eq!(left as u64 + lost[0].count().unwrap(), batch.num_rows() as u64);
    let (mended, report) =
        repair(memory("cut", cut), Vec::new(), &schema, &options, &SegmentReaderOptions::default()).unwrap();
    assert_eq!((report.rows as usize, report.losses), (left, lost));
    let mended = SegmentReader::open_with_options(memory("mended", mended), &reading(&schema)).unwrap();
    assert_eq!(mended.row_count(), Some(left as u64));
}

#[test]
fn what_does_not_fit_is_refused() {
    let (schema, batch) = table();
    let file = written(&schema, &batch, &SegmentWriteOptions::default());
    let whole = SegmentReader::open_with_options(memory("whole", file.clone()), &reading(&schema)).unwrap();
    let end = whole.metadata().pages_end as usize;
    let error = SegmentReader::recover(memory("cut", file[..end].to_vec()), &SegmentReaderOptions::default());
    assert!(matches!(error.unwrap_err().kind(), ErrorKind::InvalidInput(_)));
    // The schema is of another table, or there is no page at all.
    let mut other = (*schema).clone();
    other.columns.reverse();
    let error =
        SegmentReader::recover(memory("cut", file[..end].to_vec()), &reading(&Arc::new(other))).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Corrupt { .. }), "{error}");
    assert!(SegmentReader::recover(memory("none", Vec::new()), &reading(&schema)).is_err());
}

#[test]
fn a_segment_cut_in_its_data_has_what_is_left_of_each_column() {
    let (schema, batch) = table();
    for dictionary in [true, false] {
        let encoding = if dictionary { Encoding::Dict } else { Encoding::PlainV3 };
        let options = SegmentWriteOptions::default()
            .with_page_bytes(3000)
            .with_column("text", ColumnWriteOptions::default().with_encoding(encoding));
        let file = written(&schema, &batch, &options);
        let whole =
            SegmentReader::open_with_options(memory("whole", file.clone()), &reading(&schema)).unwrap();
        let expected = rows(&whole);
        let pages: Vec<_> =
            whole.pages().unwrap().into_iter().filter(|page| page.kind == "data page").collect();
        let last_data = pages.iter().map(|page| page.offset).max().unwrap() as usize;
        // In the middle of every page but the very first: the columns before are whole, the one that is cut has its first pages.
        for page in pages.iter().filter(|page| page.offset > 0) {
            let cut = file[..(page.offset + page.bytes / 2) as usize].to_vec();
            let reader = SegmentReader::recover(memory("cut", cut.clone()), &reading(&schema)).unwrap();
            for (number, field) in expected.schema().fields().iter().enumerate() {
                let name = field.name().as_str();
                let log = Arc::new(LossLog::new());
                let scan = reader.scan().project([name]).skip_damage(Arc::clone(&log));
                let found = batches(scan).unwrap();
                let left: usize = found.iter().map(RecordBatch::num_rows).sum();
                for batch in &found {
                    assert_eq!(batch.num_columns(), 1);
                }
                if left > 0 {
                    let all = concat_batches(&found[0].schema(), &found).unwrap();
                    assert_eq!(all.column(0), &expected.column(number).slice(0, left), "{name}");
                }
                let ends: Vec<u64> = pages
                    .iter()
                    .filter(|other| other.column == name)
                    .map(|other| other.offset + other.bytes)
                    .collect();
                if ends.iter().all(|end| *end <= page.offset) && name != page.column && name != "text" {
                    assert!(left == reader.row_count().unwrap() as usize, "{name} before {}", page.column);
                }
                if ends.iter().all(|end| *end > page.offset) {
                    assert!(left == 0 && !log.losses().is_empty(), "{name} behind {}", page.column);
                }
            }
        }
        // Cut in its last page, only the rows of that page are lost.
        let cut = file[..last_data + 10].to_vec();
        let (mended, report) =
            repair(memory("cut", cut), Vec::new(), &schema, &options, &SegmentReaderOptions::default())
                .unwrap();
        let last = pages.iter().find(|page| page.offset as usize == last_data).unwrap();
        assert_eq!(report.rows, last.rows.clone().unwrap().start);
        let mended = SegmentReader::open_with_options(memory("mended", mended), &reading(&schema)).unwrap();
        assert_eq!(rows(&mended), expected.slice(0, report.rows as usize));
    }
}

#[test]
fn what_is_missing_is_said_of_its_column() {
    let (schema, batch) = table();
    let file = written(&schema, &batch, &SegmentWriteOptions::default());
    let mut other = (*schema).clone();
    for column in other.columns.iter_mut().filter(|column| column.name == "id") {
        column.type_name = "VARCHAR".to_string();
        column.length = 10;
    }
    let whole = SegmentReader::open_with_options(memory("whole", file.clone()), &reading(&schema)).unwrap();
    let cut = file[..whole.metadata().pages_end as usize].to_vec();
    let text =
        SegmentReader::recover(memory("cut", cut), &reading(&Arc::new(other))).unwrap_err().to_string();
    assert!(
        text.contains("expected pages of VARCHAR for column \"id\", found a page of another type at byte 0"),
        "{text}"
    );
}
