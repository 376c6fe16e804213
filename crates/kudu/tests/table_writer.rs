//! Tables of our own, written as the folder of a tablet server and read back.
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

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{
    ArrayRef, Date32Array, Decimal32Array, Decimal64Array, Decimal128Array, DictionaryArray, Float64Array,
    Int32Array, Int64Array, ListArray, RecordBatch, StringArray, TimestampNanosecondArray, UInt32Array,
    UInt64Array,
};
use arrow_buffer::OffsetBuffer;
use arrow_cast::cast;
use arrow_schema::{DataType, Field, Schema, TimeUnit};
use pilaster_core::progress::Silent;
use pilaster_core::{Dataset, VerifyDepth, col, lit};
use pilaster_kudu::cfile::{Compression, KuduType, kudu_type};
use pilaster_kudu::store::{KuduStore, KuduStoreOptions};
use pilaster_kudu::table_writer::{
    BlockManager, HashPartition, KeyBounds, KuduTableSummary, KuduTableWriter, KuduTableWriterOptions,
    RangePartition,
};
use proptest::prelude::*;

use support::Numbers;
use support::columns::{PATTERNS, Pattern, Recipe};
use support::rows::{as_bytes, values, with_unique_keys};

/// Types of key columns.
fn key_types() -> Vec<DataType> {
    use DataType::{
        Binary, Date32, Date64, Decimal32, Decimal64, Decimal128, Int8, Int16, Int32, Int64, LargeUtf8,
        Timestamp, Utf8, Utf8View,
    };
    vec![
        Int8,
        Int16,
        Int32,
        Int64,
        Utf8,
        LargeUtf8,
        Utf8View,
        Binary,
        DataType::FixedSizeBinary(5),
        Date32,
        Date64,
        Timestamp(TimeUnit::Microsecond, None),
        Timestamp(TimeUnit::Microsecond, Some("+02:00".into())),
        Timestamp(TimeUnit::Nanosecond, None),
        Timestamp(TimeUnit::Second, Some("UTC".into())),
        Decimal32(7, 2),
        Decimal64(17, 3),
        Decimal128(4, 4),
        Decimal128(15, 2),
        Decimal128(38, 10),
        DataType::Dictionary(Box::new(Int32), Box::new(Utf8)),
    ]
}

/// Types of columns that are not keys.
fn other_types() -> Vec<DataType> {
    use DataType::{BinaryView, Boolean, Float16, Float32, Float64, LargeBinary};
    let mut types = key_types();
    types.extend([Boolean, Float16, Float32, Float64, LargeBinary, BinaryView]);
    types.extend(
        support::columns::list_types().into_iter().filter(|list| !matches!(list, DataType::LargeList(_))),
    );
    types
}

/// Everything that can be chosen when a table is written.
#[derive(Debug, Clone)]
struct Choice {
    keys: Vec<DataType>,
    others: Vec<DataType>,
    /// Where each key column stands among the columns, so that keys are not always first.
    shuffle: u64,
    rows: usize,
    batch_rows: usize,
    pattern: Pattern,
    seed: u64,
    hash: Vec<(usize, u32)>,
    splits: usize,
    rowset_rows: usize,
    memory_bytes: usize,
    block_size_bytes: usize,
    manager: BlockManager,
}

fn choices() -> impl Strategy<Value = Choice> {
    let columns = (
        prop::collection::vec(prop::sample::select(key_types()), 1..4),
        prop::collection::vec(prop::sample::select(other_types()), 0..5),
        any::<u64>(),
    );
    let rows = (0usize..600, 1usize..300, prop::sample::select(&PATTERNS[..]), any::<u64>());
    let layout = (
        prop::collection::vec((0usize..3, 2u32..5), 0..3),
        0usize..4,
        prop::sample::select(vec![1usize, 7, 100, usize::MAX]),
        prop::sample::select(vec![0usize, 3000, 1 << 30]),
        prop::sample::select(vec![512usize, 4096, 262_144]),
        prop::sample::select(vec![BlockManager::Log, BlockManager::File]),
    );
    (columns, rows, layout).prop_map(
        |((keys, others, shuffle), (rows, batch_rows, pattern, seed), layout)| {
            let (hash, splits, rowset_rows, memory_bytes, block_size_bytes, manager) = layout;
            // Rowsets of one row are slow to write.
            let rows = if rowset_rows == 1 { rows.min(30) } else { rows };
            Choice {
                keys,
                others,
                shuffle,
                rows,
                batch_rows,
                pattern,
                seed,
                hash,
                splits,
                rowset_rows,
                memory_bytes,
                block_size_bytes,
                manager,
            }
        },
    )
}

impl Choice {
    fn key_names(&self) -> Vec<String> {
        (0..self.keys.len()).map(|index| format!("k{index}")).collect()
    }

    /// The rows, columns in any order, keys unique.
    fn batch(&self) -> RecordBatch {
        let mut random = Numbers(self.seed);
        let mut columns: Vec<(Field, ArrayRef)> = Vec::new();
        let all =
            self.key_names().into_iter().zip(&self.keys).map(|(name, data_type)| (name, data_type, false));
        let others =
            self.others.iter().enumerate().map(|(index, data_type)| (format!("c{index}"), data_type, true));
        for (name, data_type, is_nullable) in all.chain(others) {
            let is_nullable = is_nullable && random.below(2) == 0;
            let nulls = if is_nullable { random.below(101) } else { 0 };
            let pattern =
                if name.starts_with('k') && random.below(2) == 0 { Pattern::Random } else { self.pattern };
            let recipe = Recipe { pattern, rows: self.rows, nulls, seed: random.next() };
            columns.push((Field::new(name, data_type.clone(), is_nullable), values(data_type, recipe)));
        }
        let mut shuffle = Numbers(self.shuffle);
        for end in (1..columns.len()).rev() {
            columns.swap(end, shuffle.below(end as u64 + 1) as usize);
        }
        let (fields, arrays): (Vec<_>, Vec<_>) = columns.into_iter().unzip();
        let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).unwrap();
        let names = self.key_names();
        with_unique_keys(&batch, &names.iter().map(String::as_str).collect::<Vec<_>>())
    }

    fn options(&self, batch: &RecordBatch) -> KuduTableWriterOptions {
        let mut random = Numbers(self.seed ^ 5);
        let mut options = KuduTableWriterOptions::default()
            .with_table_name("choice")
            .with_primary_key(self.key_names())
            .with_rowset_rows(self.rowset_rows)
            .with_memory_bytes(self.memory_bytes)
            .with_block_size_bytes(self.block_size_bytes)
            .with_block_manager(self.manager);
        let mut free: Vec<_> = self.key_names();
        let mut own = Vec::new();
        for &(column, buckets) in &self.hash {
            if column < free.len() {
                let column = free.remove(column);
                own.push(HashPartition::new([column.clone()], 7 - buckets));
                let partition = HashPartition::new([column], buckets);
                options = options.with_hash_partition(partition.with_seed(random.next() as u32));
            }
        }
        // Splits at values of the first key column that occur.
        let keys = batch.column_by_name("k0").unwrap();
        let mut splits = HashMap::new();
        for row in (0..keys.len()).step_by(batch.num_rows() / 3 + 1).take(self.splits) {
            let literal = pilaster_core::Literal::from_array(keys, row);
            let is_smallest = matches!(literal.to_string().as_str(), "");
            if !is_smallest {
                splits.insert(literal.to_string(), vec![literal]);
            }
        }
        let only: Vec<_> = splits.values().cloned().collect();
        if let [split] = only.as_slice() {
            // All keys too, but the ranges are named, and one of them has buckets of its own.
            let below = own.into_iter().fold(KeyBounds::new(None, Some(split.clone())), |bounds, hash| {
                bounds.with_hash_partition(hash)
            });
            let ranges = [KeyBounds::new(Some(split.clone()), None), below];
            options = options.with_range_partition(RangePartition::only(["k0"], ranges));
        } else if !only.is_empty() {
            options = options.with_range_partition(RangePartition::new(["k0"], only));
        }
        for field in batch.schema().fields() {
            options = options.with_column_compression(
                field.name(),
                Compression::ALL[random.below(Compression::ALL.len() as u64) as usize],
            );
            let is_plain = !matches!(
                field.data_type(),
                DataType::Float16 | DataType::Date64 | DataType::Timestamp(..) | DataType::List(_)
            );
            if is_plain && random.below(2) == 0 {
                let encodings = kudu_type(field.data_type()).unwrap().encodings();
                options = options
                    .with_encoding(field.name(), encodings[random.below(encodings.len() as u64) as usize]);
            }
        }
        options
    }
}

fn write(
    folder: &Path,
    batch: &RecordBatch,
    batch_rows: usize,
    options: KuduTableWriterOptions,
) -> pilaster_core::Result<KuduTableSummary> {
    let mut writer = KuduTableWriter::try_new(folder, batch.schema(), options)?;
    for start in (0..batch.num_rows()).step_by(batch_rows) {
        writer.write(&batch.slice(start, batch_rows.min(batch.num_rows() - start)))?;
    }
    writer.finish()
}

fn read(folder: &Path) -> (KuduStore, Vec<RecordBatch>) {
    let store = KuduStore::open(&[folder.to_path_buf()], KuduStoreOptions::default()).unwrap();
    assert!(store.findings().is_empty(), "{:?}", store.findings());
    let table = store.table(None).unwrap();
    let batches = table.scan().read().unwrap().collect::<Result<Vec<_>, _>>().unwrap();
    (store, batches)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn any_table_comes_back(choice in choices()) {
        let scratch = tempfile::tempdir().unwrap();
        let folder = scratch.path().join("table");
        let batch = choice.batch();
        let summary = write(&folder, &batch, choice.batch_rows, choice.options(&batch)).unwrap();
        prop_assert_eq!(summary.rows, batch.num_rows() as u64);
        prop_assert_eq!(summary.tablets.iter().map(|tablet| tablet.rows).sum::<u64>(), summary.rows);

        let (store, batches) = read(&folder);
        let table = store.table(None).unwrap();
        let schema = table.schema();
        let names: Vec<_> = schema.fields().iter().map(|field| field.name().clone()).collect();
        prop_assert_eq!(&names[..choice.keys.len()], &choice.key_names()[..]);
        let mut expected = as_bytes(&batch, &schema);
        let mut found: Vec<_> = batches.iter().flat_map(|batch| as_bytes(batch, &schema)).collect();
        expected.sort();
        found.sort();
        prop_assert_eq!(found, expected);

        let report = table.verify(VerifyDepth::Values, &Silent).unwrap();
        prop_assert!(report.findings.is_empty(), "{:?}", report.findings);
    }

    #[test]
    fn a_key_that_occurs_twice_is_always_found(
        keys in prop::collection::vec(0i32..40_000, 2..400),
        twice in any::<prop::sample::Index>(),
        at in any::<prop::sample::Index>(),
        memory in prop::sample::select(vec![0usize, 2000, 1 << 30]),
        batch_rows in 1usize..50,
        is_compound in any::<bool>(),
        buckets in 1u32..4,
    ) {
        let mut unique = keys.clone();
        unique.sort_unstable();
        unique.dedup();
        let mut shuffled: Vec<i32> = keys.iter().copied().filter(|key| {
            unique.binary_search(key).map(|place| { unique.remove(place); }).is_ok()
        }).collect();
        let key = shuffled[twice.index(shuffled.len())];
        shuffled.insert(at.index(shuffled.len() + 1), key);
        let words = StringArray::from_iter_values(shuffled.iter().map(|key| format!("w{key}")));
        let batch = RecordBatch::try_from_iter([
            ("id", Arc::new(Int32Array::from(shuffled)) as ArrayRef),
            ("word", Arc::new(words)),
        ]).unwrap();
        let scratch = tempfile::tempdir().unwrap();
        let names: &[&str] = if is_compound { &["word", "id"] } else { &["id"] };
        let mut options = KuduTableWriterOptions::default()
            .with_primary_key(names.iter().copied())
            .with_memory_bytes(memory);
        if buckets > 1 {
            options = options.with_hash_partition(HashPartition::new(["id"], buckets));
        }
        let error = write(&scratch.path().join("t"), &batch, batch_rows, options).unwrap_err();
        let named = match is_compound {
            true => format!("several rows have the primary key word = w{key}, id = {key}"),
            false => format!("several rows have the primary key id = {key}"),
        };
        prop_assert_eq!(error.to_string(), named);
        prop_assert_eq!(std::fs::read_dir(scratch.path()).unwrap().count(), 0);
    }
}

fn two_columns(ids: Vec<i64>) -> RecordBatch {
    let names = StringArray::from_iter_values(ids.iter().map(|id| format!("name-{id}")));
    RecordBatch::try_from_iter([
        ("id", Arc::new(Int64Array::from(ids)) as ArrayRef),
        ("name", Arc::new(names)),
    ])
    .unwrap()
}

#[test]
fn more_runs_than_are_merged_at_once_are_compared_too() {
    let scratch = tempfile::tempdir().unwrap();
    // Each batch is a run that overlaps with all others.
    let ids: Vec<i64> = (0..150).flat_map(|run| (0..4).map(move |step| step * 1000 + run)).collect();
    let options = KuduTableWriterOptions::default().with_memory_bytes(0);
    let summary = write(&scratch.path().join("a"), &two_columns(ids.clone()), 4, options.clone()).unwrap();
    assert_eq!((summary.tablets[0].rowsets, summary.rows), (150, 600));
    let (_, batches) = read(&scratch.path().join("a"));
    assert_eq!(batches.iter().map(RecordBatch::num_rows).sum::<usize>(), 600);

    for twice in [0, 3001, 2149] {
        let mut ids = ids.clone();
        ids.push(twice);
        let error = write(&scratch.path().join("b"), &two_columns(ids), 4, options.clone()).unwrap_err();
        assert_eq!(error.to_string(), format!("several rows have the primary key id = {twice}"));
    }
    assert_eq!(std::fs::read_dir(scratch.path()).unwrap().count(), 1);
}

#[test]
fn rows_that_come_in_order_make_rowsets_that_do_not_overlap() {
    let scratch = tempfile::tempdir().unwrap();
    let options = KuduTableWriterOptions::default().with_rowset_rows(1000);
    let summary = write(&scratch.path().join("t"), &two_columns((0..3500).collect()), 600, options).unwrap();
    assert_eq!(summary.tablets[0].rowsets, 4);
    assert!(summary.bytes > 0);
}

#[test]
fn rows_before_they_were_written_are_not_there() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().join("t");
    let always = scratch.path().join("always");
    let options = KuduTableWriterOptions::default().with_table_name("t");
    write(&folder, &two_columns(vec![1, 2]), 10, options.clone()).unwrap();
    write(&always, &two_columns(vec![1, 2]), 10, options.with_insert_history(false)).unwrap();
    let rows_at = |folder: &PathBuf, micros: i64| {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_micros();
        let at = u64::try_from(now as i64 + micros).unwrap() << 12;
        let options = KuduStoreOptions::default().with_as_of(Some(at));
        let store = KuduStore::open(std::slice::from_ref(folder), options).unwrap();
        let table = store.table(Some("t")).unwrap();
        table.scan().read().unwrap().map(|batch| batch.unwrap().num_rows()).sum::<usize>()
    };
    assert_eq!((rows_at(&folder, -60_000_000), rows_at(&folder, 60_000_000)), (0, 2));
    assert_eq!((rows_at(&always, -60_000_000), rows_at(&always, 60_000_000)), (2, 2));
}

#[test]
fn keys_find_their_rows_through_index_and_bloom_filter() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().join("t");
    let options = KuduTableWriterOptions::default().with_rowset_rows(500).with_block_size_bytes(512);
    write(&folder, &two_columns((0..2000).map(|i| i * 7 % 2000).collect()), 100, options).unwrap();
    let store = KuduStore::open(&[folder], KuduStoreOptions::default()).unwrap();
    let table = store.table(None).unwrap();
    for id in [0i64, 777, 1999] {
        let found: Vec<_> =
            table.scan().filter(col("id").eq(lit(id))).read().unwrap().collect::<Result<_, _>>().unwrap();
        let rows = found.iter().map(RecordBatch::num_rows).sum::<usize>();
        assert_eq!(rows, 1, "{id}");
    }
}

#[test]
fn a_table_without_rows_is_a_table() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().join("empty");
    let options = KuduTableWriterOptions::default().with_hash_partition(HashPartition::new(["id"], 3));
    let summary = write(&folder, &two_columns(vec![]), 10, options).unwrap();
    assert_eq!((summary.rows, summary.tablets.len(), summary.table_name.as_str()), (0, 3, "empty"));
    let (store, batches) = read(&folder);
    assert_eq!(store.tables(), ["empty"]);
    assert_eq!(batches.iter().map(RecordBatch::num_rows).sum::<usize>(), 0);
}

/// The error of a table of one key column and one other.
fn refused(value: ArrayRef, options: KuduTableWriterOptions) -> String {
    let scratch = tempfile::tempdir().unwrap();
    let ids = Int32Array::from_iter_values(0..value.len() as i32);
    let batch = RecordBatch::try_from_iter([("id", Arc::new(ids) as ArrayRef), ("x", value)]).unwrap();
    let error = write(&scratch.path().join("t"), &batch, 100, options).unwrap_err();
    assert_eq!(std::fs::read_dir(scratch.path()).unwrap().count(), 0, "nothing is left behind");
    error.to_string()
}

#[test]
fn values_that_kudu_cannot_hold_are_refused() {
    let plain = KuduTableWriterOptions::default;
    assert_eq!(
        refused(Arc::new(TimestampNanosecondArray::from(vec![1000, 1001])), plain()),
        "column \"x\": a time of 1001 nanoseconds is not a whole number of microseconds"
    );
    assert_eq!(
        refused(Arc::new(Date32Array::from(vec![0, 3_000_000])), plain()),
        "column \"x\": day 3000000 since 1970 is not in the years 1 to 9999"
    );
    assert_eq!(
        refused(Arc::new(StringArray::from(vec!["ab", "größe"])), plain().with_varchar("x", 4)),
        "column \"x\": a text of 5 characters in a VARCHAR of 4: \"größe\""
    );
    assert_eq!(
        refused(Arc::new(StringArray::from(vec!["x".repeat(65_537)])), plain()),
        "column \"x\": a cell of 65537 bytes; servers take at most 65536 by default"
    );
    let unsigned = || Arc::new(UInt64Array::from(vec![u64::MAX])) as ArrayRef;
    assert!(refused(unsigned(), plain()).starts_with("column \"x\": Arrow type UInt64 has no Kudu type"));
    assert!(refused(unsigned(), plain().with_data_type("x", KuduType::Int64)).starts_with("column \"x\": "));
    let wide = Decimal128Array::from(vec![12_345]).with_precision_and_scale(4, 0).unwrap();
    assert!(refused(Arc::new(wide), plain()).contains("12345"));
    let keys: ArrayRef = Arc::new(StringArray::from(vec!["k".repeat(16_385)]));
    assert_eq!(
        refused(keys, plain().with_primary_key(["x"])),
        "a primary key of 16385 encoded bytes; servers take at most 16384 by default"
    );
    assert_eq!(
        refused(Arc::new(Int32Array::from(vec![Some(1), None])), plain().with_primary_key(["x"])),
        "column \"x\": the column is part of the primary key, but row 1 is null there"
    );
    assert_eq!(
        refused(Arc::new(Float64Array::from(vec![1.0])), plain().with_primary_key(["x"])),
        "column \"x\": DOUBLE cannot be part of the primary key"
    );
}

#[test]
fn partitions_that_cannot_be_are_refused() {
    let plain = KuduTableWriterOptions::default;
    let value = || Arc::new(Int32Array::from(vec![1])) as ArrayRef;
    for (options, message) in [
        (
            plain().with_hash_partition(HashPartition::new(["x"], 2)),
            "a table can only be partitioned by columns of its primary key (id), not by \"x\"",
        ),
        (
            plain().with_hash_partition(HashPartition::new(["id"], 1)),
            "a hash partition of 1 buckets; at least 2",
        ),
        (
            plain()
                .with_hash_partition(HashPartition::new(["id"], 2))
                .with_hash_partition(HashPartition::new(["id"], 2)),
            "column \"id\" is in two hash partitions",
        ),
        (
            plain().with_hash_partition(HashPartition::new(["id"], 1_000_000)),
            "partitions of more than 10000 tablets",
        ),
        (
            plain().with_range_partition("id:seven".parse().unwrap()),
            "column \"id\" of type INT32 has no value seven to be a range split",
        ),
        (
            plain().with_range_partition("id:7|7".parse().unwrap()),
            "the range split [80, 00, 00, 07] is given twice",
        ),
        (plain().with_range_partition("id:7..7|8..".parse().unwrap()), "the range 7..7 has no keys"),
        (
            plain().with_range_partition("id:..7|3..9".parse().unwrap()),
            "range partitions that overlap: ..7, 3..9",
        ),
        (
            plain().with_range_partition("id:1..|3..".parse().unwrap()),
            "range partitions that overlap: 1.., 3..",
        ),
        (
            plain().with_range_partition("id:1..x".parse().unwrap()),
            "column \"id\" of type INT32 has no value x to be a range bound",
        ),
        (
            plain().with_range_partition("id:..7@id:2".parse().unwrap()),
            "a range with 1 hash partitions of its own in a table with 0; Kudu takes only as many",
        ),
        (plain().with_range_partition(RangePartition::only(["id"], [])), "a range partition without ranges"),
        (
            plain().with_range_partition("id:1..".parse().unwrap()),
            "the row with the primary key id = 0 lies in no range partition",
        ),
    ] {
        assert_eq!(refused(value(), options), message);
    }
}

/// Ranges of years that leave some out, one of them with buckets of its own.
#[test]
fn ranges_may_leave_keys_out_and_have_buckets_of_their_own() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().join("t");
    let years: Vec<i32> = [2020, 2021, 2022, 2023, 2030, 2031].repeat(50);
    let ids = Int64Array::from_iter_values(0..years.len() as i64);
    let batch = RecordBatch::try_from_iter([
        ("year", Arc::new(Int32Array::from(years)) as ArrayRef),
        ("id", Arc::new(ids)),
    ])
    .unwrap();
    let options = KuduTableWriterOptions::default()
        .with_primary_key(["year", "id"])
        .with_hash_partition(HashPartition::new(["id"], 2))
        .with_range_partition("year:2030..|2020..2022@id:3:9|2022..2024".parse().unwrap());
    let summary = write(&folder, &batch, 1000, options).unwrap();
    let partitions: Vec<_> = summary.tablets.iter().map(|tablet| tablet.partition.as_str()).collect();
    let year = |year: u32| format!("{:08x}", year ^ (1 << 31));
    let ranges = [(2020, Some(2022)), (2022, Some(2024)), (2030, None)];
    let expected = (0..3).flat_map(|bucket: u32| {
        let of_bucket = ranges.iter().filter(move |range| bucket < 2 || range.0 == 2020);
        of_bucket.map(move |(lower, upper)| {
            let end = match upper {
                Some(upper) => format!("{bucket:08x}{}", year(*upper)),
                None => format!("{:08x}", bucket + 1),
            };
            format!("hash {bucket} [{bucket:08x}{}, {end})", year(*lower))
        })
    });
    assert_eq!(partitions, expected.collect::<Vec<_>>());
    assert!(summary.tablets.iter().all(|tablet| tablet.rows > 0), "{summary:?}");

    // All rows are there, and each is found by its key, in the tablet that the hash of its range names.
    let (store, batches) = read(&folder);
    assert_eq!(batches.iter().map(RecordBatch::num_rows).sum::<usize>(), 300);
    let table = store.table(None).unwrap();
    for row in 0..batch.num_rows() {
        let value = |column: usize| pilaster_core::Literal::from_array(batch.column(column), row);
        let predicate = pilaster_core::Predicate::And(vec![col("year").eq(value(0)), col("id").eq(value(1))]);
        let found = table.scan().filter(predicate).read().unwrap();
        assert_eq!(found.map(|batch| batch.unwrap().num_rows()).sum::<usize>(), 1, "row {row}");
    }
}

#[test]
fn a_failed_write_cannot_be_finished() {
    let scratch = tempfile::tempdir().unwrap();
    let batch = two_columns(vec![1]);
    let mut writer =
        KuduTableWriter::try_new(scratch.path().join("t"), batch.schema(), KuduTableWriterOptions::default())
            .unwrap();
    let other =
        RecordBatch::try_from_iter([("id", Arc::new(Int32Array::from(vec![1])) as ArrayRef)]).unwrap();
    let error = writer.write(&other).unwrap_err();
    assert_eq!(
        error.to_string(),
        "a batch of other columns than the table's: (id Int32) instead of (id Int64, name Utf8)"
    );
    assert!(writer.write(&batch).is_err());
    assert!(writer.finish().is_err());
    assert_eq!(std::fs::read_dir(scratch.path()).unwrap().count(), 0);
}

#[test]
fn a_folder_with_something_in_it_is_left_alone() {
    let scratch = tempfile::tempdir().unwrap();
    std::fs::write(scratch.path().join("precious"), "x").unwrap();
    let schema = two_columns(vec![]).schema();
    assert!(KuduTableWriter::try_new(scratch.path(), schema, KuduTableWriterOptions::default()).is_err());
    assert_eq!(std::fs::read(scratch.path().join("precious")).unwrap(), b"x");
}

#[test]
fn lists_of_any_layout_and_wide_decimals_are_written() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().join("t");
    let lists = ListArray::from_iter_primitive::<Int32Type, _, _>([
        Some(vec![Some(1), None]),
        None,
        Some(vec![Some(5), Some(6)]),
    ]);
    let lists: ArrayRef = Arc::new(lists);
    let element = Arc::new(Field::new("item", DataType::Int32, true));
    let wide = cast(&lists, &DataType::LargeList(Arc::clone(&element))).unwrap();
    let fixed = cast(&lists, &DataType::FixedSizeList(element, 2)).unwrap();
    let numbers: ArrayRef = Arc::new(Int64Array::from(vec![Some(125), Some(-1), None]));
    let decimals = cast(&numbers, &DataType::Decimal256(30, 2)).unwrap();
    let ids = Arc::new(Int32Array::from(vec![3, 1, 2]));
    let batch = RecordBatch::try_from_iter_with_nullable([
        ("id", ids as ArrayRef, false),
        ("large", wide, true),
        ("fixed", fixed, true),
        ("decimal", decimals, true),
    ])
    .unwrap();
    write(&folder, &batch, 10, KuduTableWriterOptions::default()).unwrap();
    let (_, batches) = read(&folder);
    assert_eq!(batches[0].column(3).data_type(), &DataType::Decimal128(30, 2));
    let schema = batches[0].schema();
    // By id: the second row, the third, the first.
    let order = UInt32Array::from(vec![1, 2, 0]);
    let sorted = arrow_select::take::take_record_batch(&batch, &order).unwrap();
    assert_eq!(as_bytes(&batches[0], &schema), as_bytes(&sorted, &schema));
}

#[test]
fn chosen_types_are_written() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().join("t");
    let words: DictionaryArray<Int32Type> = ["a", "b", "a"].into_iter().collect();
    let numbers: ArrayRef = Arc::new(UInt64Array::from(vec![1, 2, 3]));
    let seconds =
        cast(&(Arc::new(Int32Array::from(vec![5, 6, 7])) as ArrayRef), &DataType::Time32(TimeUnit::Second));
    let micros: ArrayRef = Arc::new(Int64Array::from(vec![9, 8, 7]));
    let batch = RecordBatch::try_from_iter([
        ("u", numbers),
        ("w", Arc::new(words) as ArrayRef),
        ("t", seconds.unwrap()),
        ("m", micros),
    ])
    .unwrap();
    let options = KuduTableWriterOptions::default()
        .with_data_type("u", KuduType::Int16)
        .with_data_type("t", KuduType::Int32)
        .with_data_type("m", KuduType::UnixtimeMicros)
        .with_varchar("w", 10);
    write(&folder, &batch, 10, options).unwrap();
    let (_, batches) = read(&folder);
    let types: Vec<_> = batches[0].schema().fields().iter().map(|field| field.data_type().clone()).collect();
    let micros = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
    assert_eq!(types, [DataType::Int16, DataType::Utf8View, DataType::Int32, micros]);
    assert_eq!(batches[0].num_rows(), 3);
}

/// Query engines compute with narrow decimals as if they were integers, so they leave as wide ones; what is written of them has the
/// type that Kudu gives so many digits.
#[test]
fn decimals_leave_wide_and_keep_the_types_of_kudu() {
    let scratch = tempfile::tempdir().unwrap();
    let keys: ArrayRef = Arc::new(
        Decimal64Array::from(vec![-999_999_999_999, 0, 1_234]).with_precision_and_scale(12, 2).unwrap(),
    );
    let few: ArrayRef =
        Arc::new(Decimal32Array::from(vec![Some(-9), None, Some(9)]).with_precision_and_scale(1, 0).unwrap());
    let item = Arc::new(Field::new("item", few.data_type().clone(), true));
    let lists: ArrayRef =
        Arc::new(ListArray::new(item, OffsetBuffer::from_lengths([1, 0, 2]), Arc::clone(&few), None));
    let batch = RecordBatch::try_from_iter_with_nullable([
        ("k", keys, false),
        ("few", few, true),
        ("lists", lists, true),
    ])
    .unwrap();
    let options = || KuduTableWriterOptions::default().with_rowset_rows(2);
    let first = scratch.path().join("first");
    write(&first, &batch, 10, options()).unwrap();
    let (_, batches) = read(&first);
    let found = arrow_select::concat::concat_batches(&batches[0].schema(), &batches).unwrap();
    let types: Vec<_> = found.schema().fields().iter().map(|field| field.data_type().clone()).collect();
    let one = DataType::Decimal128(1, 0);
    assert_eq!(types, [DataType::Decimal128(12, 2), one.clone(), DataType::new_list(one, true)]);
    let schema = found.schema();
    for (column, name) in batch.columns().iter().zip(["k", "few", "lists"]) {
        let wide = cast(column, schema.field_with_name(name).unwrap().data_type()).unwrap();
        assert_eq!(&wide, found.column_by_name(name).unwrap());
    }
    // What was read is written as the same table.
    let second = scratch.path().join("second");
    write(&second, &found, 10, options()).unwrap();
    let (_, again) = read(&second);
    assert_eq!(arrow_select::concat::concat_batches(&schema, &again).unwrap(), found);
    let stored = |folder: &Path| {
        let pages = read(folder).0.table(None).unwrap().pages().unwrap();
        pages.iter().map(|page| page.bytes).sum::<u64>()
    };
    assert_eq!(stored(&first), stored(&second));
    let (store, _) = read(&second);
    let table = store.table(None).unwrap();
    let rows = |literal: &str| {
        let reader = table.scan().filter(col("k").eq(lit(literal))).read();
        reader.unwrap().map(|batch| batch.unwrap().num_rows()).sum::<usize>()
    };
    assert_eq!((rows("12.34"), rows("-9999999999.99"), rows("12.3")), (1, 1, 0));
}
