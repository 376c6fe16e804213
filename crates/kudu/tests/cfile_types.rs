//! What a CFile is read as: types that were asked for, delta files, strings that many rows share.
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

use arrow_array::builder::{BinaryBuilder, ListBuilder, StringViewBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_array::{
    Array, ArrayRef, BinaryArray, Int8Array, Int16Array, Int32Array, Int64Array, ListArray, RecordBatch,
    StringArray, UInt8Array, UInt16Array, UInt32Array, UInt64Array,
};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_cast::cast;
use arrow_schema::{DataType, Field, Schema};
use pilaster_core::fitting::value_bytes;
use pilaster_core::progress::Silent;
use pilaster_core::{Dataset, ErrorKind, Limits, LossLog, Result, VerifyDepth, col, lit};
use pilaster_kudu::cfile::{
    CFileKind, CFileReader, CFileReaderOptions, CFileWriterOptions, Compression, DELTA_STATISTICS, Encoding,
};
use pilaster_kudu::cfile_set::{CFileSet, CFileSetOptions, CFileSetWriter, CFileSetWriterOptions};
use pilaster_kudu::key::encode_ordered_varint;

use support::{batches, column, memory, open_as, read_all, write};

/// Values of a delta file: each row deleted once.
fn deletes(rows: u64) -> Vec<Vec<u8>> {
    (0..rows)
        .map(|row| {
            let mut value = Vec::new();
            encode_ordered_varint(row, &mut value);
            encode_ordered_varint(row + 1000, &mut value);
            value.push(2);
            value
        })
        .collect()
}

fn delta_options() -> CFileWriterOptions {
    CFileWriterOptions::default()
        .with_encoding(Encoding::Plain)
        .with_block_size_bytes(512)
        .with_metadata(DELTA_STATISTICS, [0x08, 0x01])
}

#[test]
fn a_delta_file_of_another_shape_is_refused() {
    let mut lists = ListBuilder::new(BinaryBuilder::new());
    for value in deletes(9) {
        lists.values().append_value(value);
        lists.append(true);
    }
    let arrays: ArrayRef = Arc::new(lists.finish());
    let nulls: ArrayRef = Arc::new(BinaryArray::from_opt_vec(vec![Some(&deletes(1)[0][..]), None]));
    for (array, is_nullable, found) in
        [(&arrays, false, "arrays"), (&nulls, true, "values that may be null"), (&arrays, true, "arrays")]
    {
        let field = Field::new("value", array.data_type().clone(), is_nullable);
        let bytes = write(&field, &[Arc::clone(array)], delta_options()).unwrap();
        let error = CFileReader::open(memory("bad.cfile", bytes)).unwrap_err();
        assert!(error.is_damage(), "{error}");
        let expected = format!("expected a delta file of BINARY values, found {found}");
        assert!(error.to_string().ends_with(&expected), "{error}");
    }
}

#[test]
fn a_delta_file_is_not_read_as_one_column() {
    let array: ArrayRef = Arc::new(BinaryArray::from_iter_values(deletes(9)));
    let bytes = write(&Field::new("value", DataType::Binary, false), &[array], delta_options()).unwrap();
    assert_eq!(CFileReader::open(memory("delta", bytes.clone())).unwrap().kind(), CFileKind::Delta);
    for data_type in [DataType::Binary, DataType::BinaryView, DataType::Utf8] {
        let error = open_as(&bytes, &Field::new("changes", data_type, false)).unwrap_err();
        let expected = "test.cfile: the columns of this file are row, timestamp, changes: it cannot be read as one column \"changes\"";
        assert_eq!(error.to_string(), expected);
    }
}

/// A value that is no change stops a scan and is lost with its block, and no row moves.
#[test]
fn no_row_of_a_delta_file_is_left_out_silently() {
    let mut values = deletes(200);
    values[150] = vec![255];
    let array: ArrayRef = Arc::new(BinaryArray::from_iter_values(values));
    let bytes = write(&Field::new("value", DataType::Binary, false), &[array], delta_options()).unwrap();
    let reader = CFileReader::open(memory("delta", bytes)).unwrap();
    let error = batches(reader.scan()).unwrap_err();
    assert!(error.to_string().starts_with("delta: cfile data block at byte "), "{error}");
    assert!(!reader.verify(VerifyDepth::Values, &Silent).unwrap().is_sound());
    let log = Arc::new(LossLog::new());
    let found = batches(reader.scan().project(["row", "timestamp"]).skip_damage(Arc::clone(&log))).unwrap();
    let rows: Vec<u64> = found
        .iter()
        .flat_map(|batch| batch.column(0).as_primitive::<UInt64Type>().values().to_vec())
        .collect();
    let lost = log.losses();
    assert!(!lost.is_empty() && lost.iter().all(|one| one.extent == lost[0].extent), "{lost:?}");
    let lost = lost[0].positions().unwrap();
    assert!(lost.contains(&150) && lost.end - lost.start < 100, "{lost:?}");
    assert_eq!(rows, (0..200).filter(|row| !lost.contains(row)).collect::<Vec<_>>());
}

/// A word of 300 KB.
fn word(last: &str) -> String {
    "0".repeat(299_999) + last
}

/// A dictionary of two words of 300 KB, which many rows share.
fn shared_words(rows: usize) -> (ArrayRef, Vec<u8>) {
    let words = [word("1"), word("2")];
    let mut views = StringViewBuilder::new();
    let blocks: Vec<u32> =
        words.iter().map(|word| views.append_block(word.clone().into_bytes().into())).collect();
    (0..rows).for_each(|row| views.try_append_view(blocks[row % 2], 0, 300_000).unwrap());
    let array: ArrayRef = Arc::new(views.finish());
    let options = CFileWriterOptions::default().with_dictionary_size_bytes(1 << 20);
    let field = Field::new("value", DataType::Utf8View, false);
    let bytes = write(&field, &[Arc::clone(&array)], options).unwrap();
    assert!(bytes.len() < 700_000, "{}", bytes.len());
    (array, bytes)
}

#[test]
fn text_that_many_rows_share_comes_in_batches_that_fit() {
    let (array, bytes) = shared_words(100);
    let limits = Limits { batch_bytes: 2_000_000, ..Limits::default() };
    for data_type in [
        DataType::Utf8,
        DataType::LargeUtf8,
        DataType::Binary,
        DataType::LargeBinary,
        DataType::FixedSizeBinary(300_000),
        DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8)),
    ] {
        let options = CFileReaderOptions::default().with_limits(limits.clone()).with_field(Field::new(
            "value",
            data_type.clone(),
            false,
        ));
        let reader = CFileReader::open_with_options(memory("test.cfile", bytes.clone()), &options).unwrap();
        let found = batches(reader.scan()).unwrap();
        assert_eq!(found.iter().map(RecordBatch::num_rows).sum::<usize>(), 100, "{data_type}");
        let mut row = 0;
        for batch in &found {
            let values = batch.column(0);
            assert_eq!(values.data_type(), &data_type);
            assert!(value_bytes(values) <= limits.batch_bytes, "{data_type}");
            let wanted = cast(&array.slice(row, values.len()), &DataType::Binary).unwrap();
            let values = match data_type {
                DataType::Dictionary(..) => cast(&cast(values, &DataType::Utf8).unwrap(), &DataType::Binary),
                _ => cast(values, &DataType::Binary),
            };
            assert_eq!(values.unwrap().as_ref(), wanted.as_ref(), "{data_type}");
            row += batch.num_rows();
        }
        let skipped = batches(reader.scan().skip_damage(Arc::new(LossLog::new()))).unwrap();
        assert_eq!(skipped, found, "{data_type}");
        assert!(reader.verify(VerifyDepth::Values, &Silent).unwrap().is_sound());
        if data_type == DataType::Utf8 {
            let second = lit(word("2").as_str());
            let found = batches(reader.scan().filter(col("value").eq(second))).unwrap();
            assert_eq!(found.iter().map(RecordBatch::num_rows).sum::<usize>(), 50);
        }
    }
}

/// One batch of the usual size would take more bytes than offsets of 32 bits can tell.
#[test]
fn text_past_32_bits_is_no_panic() {
    let (_, bytes) = shared_words(7300);
    let reader = open_as(&bytes, &Field::new("value", DataType::Utf8, false)).unwrap();
    let first = reader.scan().read().unwrap().next().unwrap().unwrap();
    assert!(first.num_rows() > 1);
    assert!(value_bytes(first.column(0)) <= Limits::default().batch_bytes);
    assert_eq!(first.column(0).as_string::<i32>().value(1), word("2"));
}

#[test]
fn a_single_value_over_the_limit_is_an_error() {
    let (_, bytes) = shared_words(4);
    let limits = Limits { batch_bytes: 299_999, ..Limits::default() };
    let options = CFileReaderOptions::default().with_limits(limits);
    let options = options.with_field(Field::new("value", DataType::Utf8, false));
    let reader = CFileReader::open_with_options(memory("test.cfile", bytes), &options).unwrap();
    let error = batches(reader.scan()).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::LimitExceeded { limit: "batch_bytes", .. }), "{error}");
}

/// Words inside arrays, and elements that are null: those cost nothing in a file.
#[test]
fn arrays_come_in_batches_that_fit() {
    let (words, _) = shared_words(60);
    let limits = Limits { batch_bytes: 2_000_000, ..Limits::default() };
    let item = Arc::new(Field::new("item", DataType::Utf8View, true));
    let lists: ArrayRef =
        Arc::new(ListArray::new(Arc::clone(&item), OffsetBuffer::from_lengths([3; 20]), words, None));
    let nulls: ArrayRef = Arc::new(ListArray::new(
        item,
        OffsetBuffer::from_lengths([60_000; 20]),
        arrow_array::new_null_array(&DataType::Utf8View, 1_200_000),
        None,
    ));
    for array in [lists, nulls] {
        let options = CFileWriterOptions::default().with_dictionary_size_bytes(1 << 20);
        let field = Field::new("value", array.data_type().clone(), false);
        let bytes = write(&field, &[Arc::clone(&array)], options).unwrap();
        for element in [DataType::Utf8View, DataType::Utf8] {
            let wanted = DataType::new_list(element.clone(), true);
            let options = CFileReaderOptions::default().with_limits(limits.clone()).with_field(Field::new(
                "value",
                wanted.clone(),
                false,
            ));
            let reader =
                CFileReader::open_with_options(memory("test.cfile", bytes.clone()), &options).unwrap();
            let found = batches(reader.scan()).unwrap();
            assert_eq!(found.iter().map(RecordBatch::num_rows).sum::<usize>(), 20);
            for batch in &found {
                let elements = batch.column(0).as_list::<i32>().values();
                assert_eq!(elements.data_type(), &element);
                assert!(elements.len() as u64 * 16 <= limits.batch_bytes);
                assert!(element == DataType::Utf8View || value_bytes(elements) <= limits.batch_bytes);
            }
            assert!(reader.verify(VerifyDepth::Values, &Silent).unwrap().is_sound());
        }
    }
}

#[test]
fn sets_of_text_that_many_rows_share_are_read_as_their_manifest_says() {
    let words: ArrayRef = Arc::new(StringArray::from(vec!["x".repeat(300_000); 40]));
    let schema = Arc::new(Schema::new(vec![Field::new("word", DataType::Utf8, false)]));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("set");
    let columns = CFileWriterOptions::default().with_dictionary_size_bytes(1 << 20);
    let options = CFileSetWriterOptions::default().with_column_options(columns);
    let mut writer = CFileSetWriter::create(&path, Arc::clone(&schema), &options).unwrap();
    writer.write(&RecordBatch::try_new(schema, vec![Arc::clone(&words)]).unwrap()).unwrap();
    writer.finish().unwrap();
    let limits = Limits { batch_bytes: 1_000_000, ..Limits::default() };
    let set = CFileSet::open(path, CFileSetOptions::default().with_limits(limits)).unwrap();
    let found = batches(set.scan()).unwrap();
    assert!(found.len() >= 13 && found.iter().all(|batch| batch.num_rows() <= 3));
    assert_eq!(column(set.scan()).unwrap().as_ref(), words.as_ref());
}

/// Integers as decimals: none of them changes its sign, and types and values that do not fit are refused.
#[test]
fn integers_are_the_same_numbers_as_decimals() {
    let nulls = Some(NullBuffer::from(vec![true, true, false, true]));
    let columns: Vec<(ArrayRef, [&str; 3])> = vec![
        (
            Arc::new(Int8Array::new(vec![i8::MIN, -1, 0, i8::MAX].into(), nulls.clone())),
            ["-128", "-1", "127"],
        ),
        (Arc::new(UInt8Array::new(vec![0, 1, 0, u8::MAX].into(), nulls.clone())), ["0", "1", "255"]),
        (
            Arc::new(Int16Array::new(vec![i16::MIN, -1, 0, i16::MAX].into(), nulls.clone())),
            ["-32768", "-1", "32767"],
        ),
        (Arc::new(UInt16Array::new(vec![0, 1, 0, u16::MAX].into(), nulls.clone())), ["0", "1", "65535"]),
        (
            Arc::new(Int32Array::new(vec![i32::MIN, -1, 0, i32::MAX].into(), nulls.clone())),
            ["-2147483648", "-1", "2147483647"],
        ),
        (Arc::new(UInt32Array::new(vec![0, 1, 0, u32::MAX].into(), nulls.clone())), ["0", "1", "4294967295"]),
        (
            Arc::new(UInt64Array::new(vec![0, 1 << 63, 0, u64::MAX].into(), nulls)),
            ["0", "9223372036854775808", "18446744073709551615"],
        ),
    ];
    let decimals = [
        (DataType::Decimal32(9, 0), 9),
        (DataType::Decimal64(18, 0), 18),
        (DataType::Decimal64(4, 0), 4),
        (DataType::Decimal128(38, 0), 38),
        (DataType::Decimal128(19, 0), 19),
        (DataType::Decimal256(76, 0), 76),
    ];
    for (array, wanted) in columns {
        let stored = array.data_type().clone();
        for encoding in [Encoding::Plain, Encoding::BitShuffle, Encoding::Rle] {
            let options = CFileWriterOptions::default().with_encoding(encoding);
            let field = Field::new("value", stored.clone(), true);
            let bytes = write(&field, &[Arc::clone(&array)], options).unwrap();
            for (decimal, digits) in &decimals {
                let (have, need) = (stored.primitive_width().unwrap(), decimal.primitive_width().unwrap());
                let reader = open_as(&bytes, &Field::new("value", decimal.clone(), true));
                let fits = if stored.is_unsigned_integer() { need > have } else { need >= have };
                assert_eq!(reader.is_ok(), fits, "{stored} as {decimal}");
                let Ok(reader) = reader else { continue };
                let values = read_all(&reader);
                if wanted.iter().any(|text| text.trim_start_matches('-').len() > *digits) {
                    let error = values.unwrap_err().to_string();
                    assert!(error.contains(&format!("a decimal of at most {digits} digits")), "{error}");
                    assert!(!reader.verify(VerifyDepth::Values, &Silent).unwrap().is_sound());
                    continue;
                }
                let values = values.unwrap();
                assert!(values.is_null(2) && values.data_type() == decimal);
                let texts = cast(&values, &DataType::Utf8).unwrap();
                let found: Vec<_> = texts.as_string::<i32>().iter().flatten().collect();
                assert_eq!(found, wanted, "{stored} as {decimal}");
            }
        }
    }
}

/// What was shared stays shared where views are asked for.
#[test]
fn views_are_not_cut() -> Result<()> {
    let (array, bytes) = shared_words(100);
    let limits = Limits { batch_bytes: 1, ..Limits::default() };
    let options = CFileReaderOptions::default().with_limits(limits);
    let reader = CFileReader::open_with_options(memory("test.cfile", bytes), &options)?;
    let [batch] = batches(reader.scan())?.try_into().unwrap();
    assert_eq!(batch.column(0).as_ref(), array.as_ref());
    Ok(())
}

/// What `pages` and `stats` say: nulls of each block, codecs as they are used, bytes before and after compression.
#[test]
fn pages_tell_nulls_and_codecs_and_statistics_bytes() {
    let recipe = |nulls| support::columns::Recipe::new(support::columns::Pattern::Random, 3000, nulls);
    for data_type in [DataType::Int64, DataType::Utf8View, support::columns::list_types()[3].clone()] {
        for (is_nullable, compression) in [
            (false, Compression::None),
            (true, Compression::None),
            (true, Compression::Zlib),
            (false, Compression::Lz4),
        ] {
            let array = recipe(if is_nullable { 40 } else { 0 }).build(&data_type);
            let field = Field::new("value", data_type.clone(), is_nullable);
            let options =
                CFileWriterOptions::default().with_compression(compression).with_block_size_bytes(2048);
            let bytes = write(&field, &[Arc::clone(&array)], options).unwrap();
            let reader = open_as(&bytes, &field).unwrap();
            let pages = reader.pages().unwrap();
            for page in pages.iter().filter(|page| page.rows.is_some()) {
                let rows = page.rows.clone().unwrap();
                let part = array.slice(rows.start as usize, (rows.end - rows.start) as usize);
                assert_eq!(page.nulls, Some(part.null_count() as u64), "{data_type} {compression}");
            }
            for page in &pages {
                let shrank = page.uncompressed_bytes.unwrap() + 8 > page.bytes;
                let codec =
                    if shrank && compression != Compression::None { compression } else { Compression::None };
                assert_eq!(page.codec, codec.name(), "{page:?}");
            }
            let statistics = &reader.column_statistics_with_sizes().unwrap()[0];
            let around = bytes.len() as u64 - pages.iter().map(|page| page.bytes).sum::<u64>();
            let blocks = pages.iter().map(|page| page.uncompressed_bytes.unwrap()).sum::<u64>();
            let expected =
                if compression == Compression::None { bytes.len() as u64 } else { around + blocks };
            assert_eq!(statistics.uncompressed_bytes, Some(expected), "{data_type} {compression}");
            // Planning does not look into compressed blocks.
            let planned = reader.column_statistics().unwrap()[0].uncompressed_bytes;
            assert_eq!(planned.is_some(), compression == Compression::None, "{data_type} {compression}");
        }
    }
    let array: ArrayRef = Arc::new(BinaryArray::from_iter_values(deletes(9)));
    let bytes = write(&Field::new("value", DataType::Binary, false), &[array], delta_options()).unwrap();
    let delta = CFileReader::open(memory("delta", bytes.clone())).unwrap();
    let columns = delta.column_statistics().unwrap();
    assert_eq!(columns.iter().map(|column| column.bytes).collect::<Vec<_>>(), [0, 0, bytes.len() as u64]);
    assert!(columns.iter().all(|column| column.encodings == ["PLAIN_ENCODING"]));
}

/// Readers take footers of 64 KiB: longer keys than that has room for are refused, and the set does not appear.
#[test]
fn a_footer_that_no_reader_takes_is_not_written() {
    let field = Field::new("id", DataType::Utf8, false);
    let keys = |length: usize| -> ArrayRef {
        Arc::new(StringArray::from(vec!["a".repeat(length), "b".repeat(length)]))
    };
    let options = || CFileWriterOptions::default().with_value_index(true);
    let bytes = write(&field, &[keys(32_000)], options()).unwrap();
    assert_eq!(read_all(&open_as(&bytes, &field).unwrap()).unwrap().as_ref(), keys(32_000).as_ref());
    let error = write(&field, &[keys(40_000)], options()).unwrap_err().to_string();
    assert!(error.starts_with("column \"id\": a footer of 80"), "{error}");
    let schema = Arc::new(Schema::new(vec![field]));
    let folder = tempfile::tempdir().unwrap();
    let options = CFileSetWriterOptions::default().with_key("id");
    let mut writer =
        CFileSetWriter::create(folder.path().join("set"), Arc::clone(&schema), &options).unwrap();
    writer.write(&RecordBatch::try_new(schema, vec![keys(40_000)]).unwrap()).unwrap();
    let error = writer.finish().unwrap_err().to_string();
    assert!(error.starts_with("column \"id\": a footer of 80"), "{error}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

/// Bytes of another length than was asked for are an error, never a null.
#[test]
fn values_that_do_not_fit_a_fixed_size_are_refused() {
    let field = Field::new("value", DataType::Binary, true);
    for encoding in [Encoding::Dict, Encoding::Plain, Encoding::Prefix] {
        let array: ArrayRef = Arc::new(BinaryArray::from_opt_vec(vec![Some(b"four"), None, Some(b"three")]));
        let options = CFileWriterOptions::default().with_encoding(encoding);
        let bytes = write(&field, &[array], options).unwrap();
        let reader = open_as(&bytes, &Field::new("value", DataType::FixedSizeBinary(4), true)).unwrap();
        let error = read_all(&reader).unwrap_err();
        assert!(error.to_string().contains("expected values of Arrow type FixedSizeBinary(4)"), "{error}");
        assert!(!reader.verify(VerifyDepth::Values, &Silent).unwrap().is_sound());
        assert!(error.is_damage());
    }
}

#[test]
fn a_column_is_named_once() {
    let schema = Arc::new(Schema::new(vec![Field::new("id", DataType::Int64, true)]));
    let folder = tempfile::tempdir().unwrap();
    let options = CFileSetWriterOptions::default().with_key("id");
    // A key may be declared nullable, but is not.
    let mut writer =
        CFileSetWriter::create(folder.path().join("set"), Arc::clone(&schema), &options).unwrap();
    let keys: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), None]));
    let error = writer.write(&RecordBatch::try_new(schema, vec![keys]).unwrap()).unwrap_err().to_string();
    assert!(error.contains("\"id\"") && error.contains("key column"), "{error}");
    let schema = Arc::new(Schema::new(vec![Field::new("n", DataType::Null, true)]));
    let error = CFileSetWriter::create(folder.path().join("set"), schema, &CFileSetWriterOptions::default());
    assert_eq!(error.unwrap_err().to_string(), "column \"n\": Arrow type Null has no CFile form");
}
