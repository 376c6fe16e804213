//! What is written comes back, whatever the type, the encoding, the codec and the cuts.
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

use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::{
    Array, ArrayRef, BooleanArray, Decimal256Array, Int16Array, Int32Array, ListArray, RecordBatch,
    StringArray, UInt32Array,
};
use arrow_buffer::i256;
use arrow_cast::cast;
use arrow_schema::{DataType, Field, Schema};
use arrow_select::filter::filter;
use pilaster_core::predicate::Literal;
use pilaster_core::progress::Silent;
use pilaster_core::{CompareOp, Dataset, Predicate, RowRanges, VerifyDepth};
use pilaster_kudu::cfile::{
    CFileReader, CFileWriter, CFileWriterOptions, Compression, Encoding, KuduType, Version, kudu_type,
};
use pilaster_kudu::cfile_set::{CFileSet, CFileSetOptions, CFileSetWriter, CFileSetWriterOptions};
use pilaster_testing::needs;
use proptest::prelude::*;

use support::cells::unhex;
use support::columns::{PATTERNS, Pattern, Recipe, ascending, dictionary_types, flat_types, list_types};
use support::golden::Case;
use support::{column, goldens, open_as, read_all, testdata, write};

/// Everything that can be chosen when a column is written.
#[derive(Debug, Clone)]
struct Choice {
    data_type: DataType,
    recipe: Recipe,
    is_nullable: bool,
    is_key: bool,
    encoding: usize,
    compression: Compression,
    block_size: usize,
    index_block_size: usize,
    checksums: bool,
    version: Version,
    cuts: Vec<usize>,
}

fn choices(types: Vec<DataType>) -> impl Strategy<Value = Choice> {
    let shape = (
        prop::sample::select(types),
        prop::sample::select(&PATTERNS[..]),
        prop_oneof![Just(0usize), 1usize..20, 20usize..4000],
        prop_oneof![Just(0u64), 1u64..99, Just(100)],
        any::<u64>(),
        any::<bool>(),
        prop::bool::weighted(0.3),
    );
    let storage = (
        0usize..4,
        prop::sample::select(Compression::ALL),
        prop_oneof![Just(512usize), Just(1000), Just(4096), Just(262_144)],
        prop_oneof![Just(40usize), Just(300), Just(32_768)],
        prop::bool::weighted(0.8),
        prop::bool::weighted(0.2),
        prop::collection::vec(0usize..4000, 0..4),
    );
    (shape, storage).prop_map(|(shape, storage)| {
        let (data_type, pattern, rows, nulls, seed, is_nullable, is_key) = shape;
        let (encoding, compression, block_size, index_block_size, checksums, is_old, cuts) = storage;
        let nulls = if is_nullable { nulls } else { 0 };
        let is_list = matches!(data_type, DataType::List(_) | DataType::LargeList(_));
        let can_be_key = !is_list
            && !is_nullable
            && !matches!(data_type, DataType::Float16 | DataType::Dictionary(..))
            && kudu_type(&data_type).unwrap().can_be_key();
        Choice {
            recipe: Recipe { pattern, rows, nulls, seed },
            is_nullable,
            is_key: is_key && can_be_key,
            encoding,
            compression,
            block_size,
            index_block_size,
            checksums,
            version: if is_old && !is_list { Version::V1 } else { Version::V2 },
            cuts,
            data_type,
        }
    })
}

impl Choice {
    fn field(&self) -> Field {
        Field::new("value", self.data_type.clone(), self.is_nullable)
    }

    fn options(&self) -> CFileWriterOptions {
        let encodings = kudu_type(&self.data_type).unwrap().encodings();
        CFileWriterOptions::default()
            .with_encoding(encodings[self.encoding % encodings.len()])
            .with_compression(self.compression)
            .with_block_size_bytes(self.block_size)
            .with_index_block_size_bytes(self.index_block_size)
            .with_checksums(self.checksums)
            .with_version(self.version)
            .with_value_index(self.is_key)
    }

    fn array(&self) -> ArrayRef {
        let array = self.recipe.build(&self.data_type);
        if self.is_key { ascending(&array) } else { array }
    }

    /// The file, written in pieces.
    fn bytes(&self, array: &ArrayRef) -> Vec<u8> {
        let mut ends: Vec<_> = self.cuts.iter().map(|cut| *cut.min(&array.len())).collect();
        ends.push(array.len());
        ends.sort_unstable();
        let starts = std::iter::once(0).chain(ends.iter().copied());
        let pieces: Vec<_> = starts.zip(&ends).map(|(start, end)| array.slice(start, end - start)).collect();
        write(&self.field(), &pieces, self.options()).unwrap()
    }
}

fn open_sound(bytes: &[u8], field: &Field) -> CFileReader {
    let reader = open_as(bytes, field).unwrap();
    let report = reader.verify(VerifyDepth::Values, &Silent).unwrap();
    assert!(report.findings.is_empty(), "{:?}", report.findings);
    reader
}

/// The rows of `array` for which `predicate` is true, found without any pruning.
fn filtered(array: &ArrayRef, field: &Field, predicate: &Predicate) -> ArrayRef {
    let schema = Arc::new(Schema::new(vec![field.clone()]));
    let batch = RecordBatch::try_new(Arc::clone(&schema), vec![Arc::clone(array)]).unwrap();
    let mask = predicate.bind(&schema).unwrap().evaluate(&batch).unwrap();
    filter(array, &mask).unwrap()
}

const COMPARISONS: [CompareOp; 6] =
    [CompareOp::Eq, CompareOp::NotEq, CompareOp::Lt, CompareOp::LtEq, CompareOp::Gt, CompareOp::GtEq];

fn check(choice: &Choice, batch_size: usize, range: (usize, usize), tests: &[(usize, usize)]) {
    let (array, field) = (choice.array(), choice.field());
    let reader = open_sound(&choice.bytes(&array), &field);
    assert_eq!(reader.row_count(), Some(array.len() as u64));
    assert_eq!(reader.schema().field(0), &field);
    let found = column(reader.scan().batch_size(batch_size)).unwrap();
    assert_eq!(found.as_ref(), array.as_ref());
    found.to_data().validate_full().unwrap();
    let start = range.0.min(array.len());
    let length = range.1.min(array.len() - start);
    let rows = RowRanges::one(start as u64..(start + length) as u64);
    assert_eq!(column(reader.scan().rows(rows)).unwrap().as_ref(), array.slice(start, length).as_ref());
    let is_list = matches!(choice.data_type, DataType::List(_) | DataType::LargeList(_));
    if is_list || array.is_empty() {
        return;
    }
    for &(row, op) in tests {
        let value = Literal::from_array(&array, row % array.len());
        let predicate = Predicate::Compare { column: "value".into(), op: COMPARISONS[op], value };
        let wanted = filtered(&array, &field, &predicate);
        let found = column(reader.scan().filter(predicate.clone()).batch_size(batch_size)).unwrap();
        assert_eq!(found.as_ref(), wanted.as_ref(), "{predicate}");
    }
}

fn cases(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(cases(600))]

    #[test]
    fn flat_columns_come_back(
        choice in choices(flat_types()),
        batch_size in prop_oneof![1usize..50, Just(8192)],
        range in (0usize..4000, 0usize..600),
        tests in prop::collection::vec((0usize..4000, 0usize..6), 0..4),
    ) {
        check(&choice, batch_size, range, &tests);
    }
}

proptest! {
    #![proptest_config(cases(150))]

    #[test]
    fn dictionary_columns_come_back(
        choice in choices(dictionary_types()),
        batch_size in prop_oneof![1usize..50, Just(8192)],
        range in (0usize..4000, 0usize..600),
        tests in prop::collection::vec((0usize..4000, 0usize..6), 0..3),
    ) {
        check(&choice, batch_size, range, &tests);
    }

    #[test]
    fn list_columns_come_back(
        choice in choices(list_types()),
        batch_size in prop_oneof![1usize..50, Just(8192)],
        range in (0usize..4000, 0usize..600),
    ) {
        check(&choice, batch_size, range, &[]);
    }

}

proptest! {
    // Every file of a set is made durable, which takes its time.
    #![proptest_config(cases(24))]

    #[test]
    fn sets_come_back_with_their_schema(
        types in prop::collection::vec(prop::sample::select([flat_types(), dictionary_types(), list_types()].concat()), 1..8),
        pattern in prop::sample::select(&PATTERNS[..]),
        rows in 0usize..3000,
        nulls in 0u64..100,
        seed in any::<u64>(),
        with_key in any::<bool>(),
        projection in any::<u8>(),
    ) {
        let mut fields: Vec<_> = types
            .iter()
            .enumerate()
            .map(|(index, data_type)| Field::new(format!("c {index}/ä"), data_type.clone(), index % 2 == 0))
            .collect();
        let mut arrays: Vec<_> = fields
            .iter()
            .map(|field| {
                let nulls = if field.is_nullable() { nulls } else { 0 };
                Recipe { pattern, rows, nulls, seed }.build(field.data_type())
            })
            .collect();
        fields.push(Field::new("id", DataType::Int32, false).with_metadata([("a".into(), "b".into())].into()));
        arrays.push(Arc::new(Int32Array::from_iter_values((0..rows as i32).map(|row| row * 3))));
        let schema = Arc::new(Schema::new_with_metadata(fields, [("made".into(), "here".into())].into()));
        let batch = RecordBatch::try_new(Arc::clone(&schema), arrays).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("set");
        let mut options = CFileSetWriterOptions::default()
            .with_column_options(CFileWriterOptions::default().with_block_size_bytes(1024));
        if with_key {
            options = options.with_key("id");
        }
        let mut writer = CFileSetWriter::create(&target, Arc::clone(&schema), &options).unwrap();
        writer.write(&batch.slice(0, rows / 3)).unwrap();
        writer.write(&batch.slice(rows / 3, rows - rows / 3)).unwrap();
        prop_assert_eq!(writer.finish().unwrap().rows, rows as u64);

        let set = CFileSet::open(target, CFileSetOptions::default()).unwrap();
        prop_assert_eq!(set.schema(), Arc::clone(&schema));
        let report = set.verify(VerifyDepth::Values, &Silent).unwrap();
        prop_assert!(report.findings.is_empty(), "{:?}", report.findings);
        let reader = set.scan().read().unwrap();
        prop_assert_eq!(reader.schema(), Arc::clone(&schema));
        let found: Vec<_> = reader.map(|batch| batch.unwrap()).collect();
        let found = arrow_select::concat::concat_batches(&schema, &found).unwrap();
        prop_assert_eq!(&found, &batch);

        let wanted = Predicate::And(vec![
            pilaster_core::col("id").gt_eq(pilaster_core::lit(30)),
            pilaster_core::col("id").lt(pilaster_core::lit(900)),
        ]);
        let picked = usize::from(projection) % types.len();
        let found: Vec<_> = set
            .scan()
            .project([schema.field(picked).name().clone()])
            .filter(wanted)
            .read()
            .unwrap()
            .map(|batch| batch.unwrap())
            .collect();
        let narrow = Arc::new(schema.project(&[picked]).unwrap());
        let found = arrow_select::concat::concat_batches(&narrow, &found).unwrap();
        let start = rows.min(10);
        let end = rows.min(300);
        prop_assert_eq!(found, batch.project(&[picked]).unwrap().slice(start, end - start));
    }
}

/// The type to read a column as that may have been stored wider than it was.
fn wide_enough(data_type: &DataType, stored_as: KuduType) -> DataType {
    match (data_type, stored_as) {
        (DataType::Decimal32(p, s) | DataType::Decimal64(p, s), KuduType::Decimal128) => {
            DataType::Decimal128(*p, *s)
        }
        _ => data_type.clone(),
    }
}

/// Every type, encoding, codec, nullability and version at least once, on top of what chance finds.
#[test]
fn every_combination_comes_back() {
    let mut combinations = 0;
    for data_type in flat_types() {
        let natural = kudu_type(&data_type).unwrap();
        let stored_as = match natural {
            KuduType::String | KuduType::Binary => vec![natural, KuduType::Varchar],
            KuduType::Decimal32 | KuduType::Decimal64 => vec![natural, KuduType::Decimal128],
            _ => vec![natural],
        };
        for kudu in stored_as {
            for &encoding in kudu.encodings() {
                for &compression in Compression::ALL {
                    for (version, checksums) in
                        [(Version::V1, false), (Version::V2, false), (Version::V2, true)]
                    {
                        for is_nullable in [false, true] {
                            let nulls = if is_nullable { 25 } else { 0 };
                            let array = Recipe::new(Pattern::Runs, 700, nulls).build(&data_type);
                            let field = Field::new("value", data_type.clone(), is_nullable);
                            let options = CFileWriterOptions::default()
                                .with_data_type(kudu)
                                .with_encoding(encoding)
                                .with_compression(compression)
                                .with_version(version)
                                .with_checksums(checksums)
                                .with_block_size_bytes(512);
                            let bytes = write(&field, &[Arc::clone(&array)], options).unwrap();
                            let wide = wide_enough(&data_type, kudu);
                            let field = Field::new("value", wide.clone(), is_nullable);
                            let reader = open_sound(&bytes, &field);
                            assert_eq!(reader.metadata().has_checksums(), checksums);
                            let context = format!("{data_type} {kudu} {encoding} {compression} {version:?}");
                            let wanted = cast(&array, &wide).unwrap();
                            assert_eq!(read_all(&reader).unwrap().as_ref(), wanted.as_ref(), "{context}");
                            combinations += 1;
                        }
                    }
                }
            }
        }
    }
    assert!(combinations > 2000, "{combinations}");
}

#[test]
fn old_group_varint_files_hold_the_extremes() {
    let values = [0, 1, 255, 256, 65_535, 65_536, (1 << 24) - 1, 1 << 24, u32::MAX, 77, 3];
    let array: ArrayRef = Arc::new(UInt32Array::from(values.repeat(500)));
    let field = Field::new("value", DataType::UInt32, false);
    for version in [Version::V1, Version::V2] {
        let options =
            CFileWriterOptions::default().with_encoding(Encoding::GroupVarint).with_version(version);
        let bytes = write(&field, &[Arc::clone(&array)], options.with_block_size_bytes(512)).unwrap();
        let reader = open_sound(&bytes, &field);
        assert!(reader.pages().unwrap().len() > 30);
        assert_eq!(&read_all(&reader).unwrap(), &array);
    }
}

#[test]
fn integers_of_128_bits_hold_the_extremes() {
    let values = [i128::MIN, -1, 0, 1, i128::MAX].map(i256::from_i128);
    let array = Decimal256Array::from_iter_values(values).with_precision_and_scale(39, 0).unwrap();
    let array: ArrayRef = Arc::new(array);
    let field = Field::new("value", array.data_type().clone(), false);
    for &encoding in KuduType::Int128.encodings() {
        let bytes =
            write(&field, &[Arc::clone(&array)], CFileWriterOptions::default().with_encoding(encoding))
                .unwrap();
        let reader = open_sound(&bytes, &field);
        assert_eq!(reader.metadata().data_type, KuduType::Int128);
        assert_eq!(&read_all(&reader).unwrap(), &array);
    }
}

#[test]
fn keys_whose_order_is_not_that_of_their_bytes_are_refused() {
    let refused = [
        (DataType::Float16, None),
        (DataType::UInt64, Some(KuduType::Int64)),
        (DataType::Int32, Some(KuduType::UInt32)),
    ];
    for (data_type, stored_as) in refused {
        let field = Field::new("value", data_type.clone(), false);
        let mut options = CFileWriterOptions::default().with_value_index(true);
        if let Some(stored_as) = stored_as {
            options = options.with_data_type(stored_as);
        }
        assert!(CFileWriter::try_new(Vec::new(), &field, options).is_err(), "{data_type} {stored_as:?}");
    }
}

#[test]
fn a_key_read_as_a_type_of_another_order_is_filtered_right() {
    let array: ArrayRef = Arc::new(Int32Array::from_iter_values(-3000..3000));
    let field = Field::new("value", DataType::Int32, false);
    let options = CFileWriterOptions::default().with_value_index(true).with_block_size_bytes(512);
    let bytes = write(&field, &[Arc::clone(&array)], options).unwrap();
    for data_type in [DataType::UInt32, DataType::Date32, DataType::Decimal128(9, 2)] {
        let field = Field::new("value", data_type.clone(), false);
        let reader = open_as(&bytes, &field).unwrap();
        let all = read_all(&reader).unwrap();
        for (row, op) in
            [(1, CompareOp::Lt), (2999, CompareOp::GtEq), (4000, CompareOp::Lt), (4000, CompareOp::Eq)]
        {
            let value = Literal::from_array(&all, row);
            let predicate = Predicate::Compare { column: "value".into(), op, value };
            let wanted = filtered(&all, &field, &predicate);
            let found = column(reader.scan().filter(predicate.clone())).unwrap();
            assert_eq!(found.as_ref(), wanted.as_ref(), "{data_type} {predicate}");
        }
    }
}

/// The columns of the case `tiny` whose bytes do not depend on a codec, made here from their values.
#[test]
fn the_writer_makes_the_bytes_of_the_real_one() {
    let nullable =
        |is_null: &dyn Fn(i32) -> bool| (0..10).map(|i| (!is_null(i)).then_some(i)).collect::<Vec<_>>();
    let columns: Vec<(&str, Encoding, ArrayRef)> = vec![
        (
            "k",
            Encoding::Prefix,
            Arc::new(StringArray::from_iter_values((0..10).map(|i| format!("key-{i:02}")))),
        ),
        ("plain", Encoding::Plain, Arc::new(Int32Array::from_iter_values(-5..5))),
        (
            "rle",
            Encoding::Rle,
            Arc::new(Int32Array::from_iter_values((0..10).map(|i| if i < 9 { 7 } else { -1 }))),
        ),
        (
            "nplain",
            Encoding::Plain,
            Arc::new(
                nullable(&|i| i % 3 == 0 && i != 6)
                    .iter()
                    .map(|i| i.map(|i| i as i16))
                    .collect::<Int16Array>(),
            ),
        ),
        ("bplain", Encoding::Plain, Arc::new((0..10).map(|i| Some(i % 3 == 0)).collect::<BooleanArray>())),
        (
            "brle",
            Encoding::Rle,
            Arc::new(nullable(&|i| i == 4).iter().map(|i| i.map(|i| i < 6)).collect::<BooleanArray>()),
        ),
        ("splain", Encoding::Plain, Arc::new(StringArray::from_iter_values((0..10).map(|i| "s".repeat(i))))),
    ];
    let case = Case::open(&testdata().join("tiny"));
    for (name, encoding, array) in columns {
        let listed = case.listed.iter().find(|listed| listed.column == name).unwrap();
        let real = case.blocks.open(listed.block);
        let real = real.read_at(0..real.size()).unwrap();
        let field = Field::new(name, array.data_type().clone(), listed.is_nullable);
        let options = CFileWriterOptions::default().with_encoding(encoding).with_value_index(name == "k");
        let made = write(&field, &[array], options).unwrap();
        assert_eq!(made, real, "{name}");
    }
}

#[test]
fn the_writer_makes_the_array_block_of_the_format_document() {
    let some = |values: &[i32]| Some(values.iter().copied().map(Some).collect::<Vec<_>>());
    let cells = vec![
        some(&[1, 2]),
        some(&[]),
        None,
        some(&[3, 4]),
        some(&[5, 6, 7, 8]),
        Some(vec![None]),
        some(&[9]),
    ];
    let array: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(cells));
    let field = Field::new("value", array.data_type().clone(), true);
    let made = write(&field, &[array], CFileWriterOptions::default().with_encoding(Encoding::Plain)).unwrap();
    let mut payload =
        unhex("0a07 04 10010302 0f 03 0200 0000 0000 0200 0400 0100 0100 02 037b 09000000 00000000");
    payload.extend((1..=9i32).flat_map(i32::to_le_bytes));
    assert_eq!(made[16..16 + payload.len()], payload);
}

/// Single-block files without LZ4 have one form only: ours must be Kudu's.
#[needs(goldens = "kudu")]
#[test]
fn golden_files_are_written_again_byte_for_byte() {
    let root = goldens();
    let (mut same, mut files) = (0, 0);
    for case in Case::all(&root) {
        for listed in case.listed.iter().filter(|listed| listed.kind == "column") {
            let source = case.blocks.open(listed.block);
            let real = source.read_at(0..source.size()).unwrap();
            let reader = CFileReader::open(source).unwrap();
            let metadata = reader.metadata();
            let data_blocks = reader.pages().unwrap().iter().filter(|page| page.rows.is_some()).count();
            let has_lz4 = metadata.compression == Compression::Lz4
                || matches!(metadata.encoding, Encoding::BitShuffle | Encoding::Dict);
            let options = CFileWriterOptions::default()
                .with_data_type(metadata.data_type)
                .with_encoding(metadata.encoding)
                .with_compression(metadata.compression)
                .with_checksums(metadata.has_checksums())
                .with_value_index(metadata.value_index.is_some());
            let array = read_all(&reader).unwrap();
            let made = write(reader.schema().field(0), &[Arc::clone(&array)], options).unwrap();
            files += 1;
            if data_blocks == 1 && !has_lz4 && metadata.compression != Compression::Zlib {
                assert_eq!(made, real, "{} {listed:?}", case.name);
                same += 1;
            }
            let again = open_sound(&made, reader.schema().field(0));
            assert_eq!(read_all(&again).unwrap().as_ref(), array.as_ref(), "{} {listed:?}", case.name);
        }
    }
    eprintln!("{same} of {files} files are byte for byte the same");
    assert!(same > 100 && files > 1000, "{same} of {files}");
}

#[test]
fn strings_are_not_shared_between_rows() {
    let words: Vec<_> = (0..5000).map(|row| format!("{}", row % 7)).collect();
    let array: ArrayRef = Arc::new(StringArray::from_iter_values(&words));
    let field = Field::new("value", DataType::Utf8, false);
    let bytes = write(&field, &[array], CFileWriterOptions::default()).unwrap();
    let found = read_all(&open_sound(&bytes, &field)).unwrap();
    assert_eq!(found.as_string::<i32>().iter().flatten().collect::<Vec<_>>(), words);
}

#[test]
fn lists_of_nothing_but_null_words_come_back() {
    use arrow_array::builder::{ListBuilder, StringBuilder};
    let mut builder = ListBuilder::new(StringBuilder::new());
    for cell in [Some(2), None, Some(0), Some(1)] {
        match cell {
            Some(nulls) => {
                (0..nulls).for_each(|_| builder.values().append_null());
                builder.append(true);
            }
            None => builder.append(false),
        }
    }
    let lists: ArrayRef = Arc::new(builder.finish());
    let field = Field::new("v", lists.data_type().clone(), true);
    let bytes = write(&field, &[Arc::clone(&lists)], CFileWriterOptions::default()).unwrap();
    let reader = open_as(&bytes, &field).unwrap();
    assert_eq!(&read_all(&reader).unwrap(), &lists);
}
