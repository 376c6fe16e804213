//! What a scan of a table reads, and that pruning, cutting and merging change nothing.

#[path = "../../tests/support/made.rs"]
pub(super) mod made;

use std::collections::{BTreeMap, HashMap};
use std::num::NonZeroU32;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Int32Array, Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
use arrow_select::concat::concat_batches;
use arrow_select::filter::filter_record_batch;
use bytes::Bytes;
use pilaster_core::{Dataset, Predicate, RowRanges, Scan, ScanTask, col, lit};
use pilaster_testing::needs;
use proptest::prelude::*;

use self::made::{MadeServer, Partition};
use super::change::{ChangeBuilder, ChangeKind};
use super::key_range::KeyRange;
use super::table::KuduTable;
use crate::cfile::{CFileWriterOptions, Encoding};
use crate::partition_hash::bucket_of_encoded;
use crate::store::{KuduStore, KuduStoreOptions};
use crate::wal::{MemoryRow, MemoryRows};

fn all(scan: Scan<'_>) -> RecordBatch {
    let reader = scan.read().unwrap();
    let schema = reader.schema();
    let batches: Vec<_> = reader.collect::<Result<_, _>>().unwrap();
    concat_batches(&schema, &batches).unwrap()
}

fn numbers(batch: &RecordBatch) -> Vec<i64> {
    batch.column(0).as_primitive::<Int64Type>().values().to_vec()
}

/// Rows with a number as key and another column.
fn numbered(keys: impl Iterator<Item = i64>) -> RecordBatch {
    let keys = Int64Array::from_iter_values(keys);
    let values: ArrayRef = Arc::new(Int64Array::from_iter_values(keys.values().iter().map(|key| key * 3)));
    RecordBatch::try_new(Arc::new(Schema::new(number_fields())), vec![Arc::new(keys), values]).unwrap()
}

fn number_fields() -> Vec<Field> {
    vec![Field::new("k", DataType::Int64, false), Field::new("v", DataType::Int64, false)]
}

/// Rowsets of a table of numbers with the given keys; blocks are small. Block 2 n + 1 is the key of rowset n, block 2 n + 2 the
/// other column.
fn rowsets(keys: &[std::ops::Range<i64>]) -> MadeServer {
    let options = CFileWriterOptions::default().with_encoding(Encoding::Plain).with_block_size_bytes(1024);
    let mut server = MadeServer::new(number_fields(), 1).with_options(options);
    let rowsets = keys.iter().map(|keys| server.rowset(&numbered(keys.clone()), &[])).collect();
    server.tablet(rowsets, Partition::default());
    server
}

fn name(block: u64) -> String {
    format!("{block:016}")
}

#[test]
fn a_key_reads_its_rowset_and_a_range_its_blocks() {
    let server = rowsets(&[0..20_000, 20_000..40_000, 40_000..60_000]);
    let table = server.open();
    table.reads();
    for predicate in [
        col("k").eq(lit(30_000_i64)),
        col("k").is_in(vec![lit(30_000_i64), lit(30_000_i64)]),
        Predicate::And(vec![col("k").gt_eq(lit(30_000_i64)), col("k").lt(lit(30_001_i64))]),
    ] {
        assert_eq!(numbers(&all(table.scan().filter(predicate.clone()))), [30_000]);
        let reads = table.reads();
        assert_eq!(reads.keys().cloned().collect::<Vec<_>>(), [name(3), name(4)], "{predicate}");
        // The tail of a file with its index, and a block or two.
        assert!(reads.values().all(|counts| counts.bytes < 32 << 10), "{reads:?}");
    }
    let found = all(table.scan().filter(col("k").is_in(vec![lit(5_i64), lit(59_999_i64)])));
    assert_eq!(numbers(&found), [5, 59_999]);
    assert!(!table.reads().contains_key(&name(3)));
    // No key of any rowset: nothing is read.
    assert_eq!(all(table.scan().filter(col("k").gt(lit(60_000_i64)))).num_rows(), 0);
    assert_eq!(all(table.scan().filter(col("k").is_in(Vec::new()))).num_rows(), 0);
    assert!(table.reads().is_empty());
}

#[test]
fn counting_reads_no_column_and_a_limit_stops_early() {
    let table = rowsets(&[0..20_000, 20_000..40_000]).open();
    table.reads();
    let none: [&str; 0] = [];
    assert_eq!(all(table.scan().project(none)).num_rows(), 40_000);
    assert!(table.reads().is_empty());
    assert_eq!(numbers(&all(table.scan().limit(3))), [0, 1, 2]);
    let reads = table.reads();
    assert_eq!(reads.keys().cloned().collect::<Vec<_>>(), [name(1), name(2)]);
    // Positions, too: what comes before is not read.
    let rows: RowRanges = [5..7, 30_000..30_001].into_iter().collect();
    assert_eq!(numbers(&all(table.scan().rows(rows.clone()))), [5, 6, 30_000]);
    let found = all(table.scan().rows(rows).row_numbers("n").project(["k"]));
    let positions = found.column(1).as_primitive::<arrow_array::types::UInt64Type>().values();
    assert_eq!((numbers(&found), positions.to_vec()), (vec![5, 6, 30_000], vec![5, 6, 30_000]));
}

/// The rows of each task.
fn by_task(scan: Scan<'_>) -> Vec<RecordBatch> {
    let plan = scan.plan().unwrap();
    let read = |task: &ScanTask| {
        let batches: Vec<_> = task.read().unwrap().map(|batch| batch.unwrap()).collect();
        concat_batches(&plan.schema(), &batches).unwrap()
    };
    plan.tasks().unwrap().iter().map(read).collect()
}

#[test]
fn rowsets_that_overlap_are_cut_where_they_do() {
    // The second begins inside the first, the third lies alone.
    let server = rowsets(&[0..10_000, 10_000..20_000, 30_000..40_000]);
    let table = server.open();
    assert_eq!(by_task(table.scan()).len(), 3);
    let mut made = MadeServer::new(number_fields(), 1);
    let even = numbered((0..10_000).map(|row| row * 2));
    let odd = numbered((4000..14_000).map(|row| row * 2 + 1));
    let rowsets = vec![made.rowset(&even, &[]), made.rowset(&odd, &[])];
    made.tablet(rowsets, Partition::default());
    let table = made.open();
    let parts: Vec<Vec<i64>> = by_task(table.scan()).iter().map(numbers).collect();
    assert_eq!(parts.iter().map(Vec::len).collect::<Vec<_>>(), [4001, 11_998, 4001]);
    assert_eq!(parts.concat(), numbers(&all(table.scan())));
    assert!(parts.concat().is_sorted());
}

#[test]
fn large_overlapping_rowsets_are_cut_for_threads() {
    let mut made = MadeServer::new(number_fields(), 1);
    let rowsets: Vec<_> =
        (0..3).map(|number| made.rowset(&numbered((0..100_000).map(|row| row * 3 + number)), &[])).collect();
    made.tablet(rowsets, Partition::default());
    let table = made.open();
    let parts: Vec<_> = by_task(table.scan()).iter().map(RecordBatch::num_rows).collect();
    assert!(parts.len() >= 3, "{parts:?}");
    assert_eq!(parts.iter().sum::<usize>(), 300_000);
    assert!(parts.iter().all(|rows| *rows < 200_000), "{parts:?}");
}

/// A table divided by hash and range, with rows in several rowsets, in memory, deleted and changed.
struct Divided {
    table: KuduTable,
    /// The files of each tablet, and its partition.
    tablets: Vec<(std::ops::RangeInclusive<u64>, i32, bool)>,
}

fn divided_fields() -> Vec<Field> {
    vec![
        Field::new("a", DataType::Int32, false),
        Field::new("b", DataType::Utf8, false),
        Field::new("v", DataType::Int32, true),
        Field::new("s", DataType::Utf8, true),
    ]
}

type Row = (i32, String, Option<i32>, Option<String>);

fn divided_batch(rows: &[Row]) -> RecordBatch {
    let columns: Vec<ArrayRef> = vec![
        Arc::new(Int32Array::from_iter_values(rows.iter().map(|row| row.0))),
        Arc::new(StringArray::from_iter_values(rows.iter().map(|row| &row.1))),
        Arc::new(rows.iter().map(|row| row.2).collect::<Int32Array>()),
        Arc::new(rows.iter().map(|row| row.3.clone()).collect::<StringArray>()),
    ];
    RecordBatch::try_new(Arc::new(Schema::new(divided_fields())), columns).unwrap()
}

const SEED: u32 = 7;
const BUCKETS: i32 = 3;
/// Values of `a` from here on are in the second range.
const RANGE_EDGE: i32 = 10;

/// `where_to` says for each row which rowset it is in; one past the last is memory, two past it are rows of the first rowset
/// that the log deletes, three past it those that it changes.
fn divided(rows: &[(Row, usize)], rowset_count: usize) -> Divided {
    let hash: &[i32] = &[1];
    let mut server = MadeServer::new(divided_fields(), 2).with_partitions(&[(hash, BUCKETS, SEED)], &[0]);
    let edge = server.encoded(&divided_batch(&[(RANGE_EDGE, String::new(), None, None)]), 0, &[0]);
    let mut parts: BTreeMap<(i32, bool), Vec<(Row, usize)>> = BTreeMap::new();
    for (row, to) in rows {
        let key = server.encoded(&divided_batch(std::slice::from_ref(row)), 0, &[1]);
        let bucket = bucket_of_encoded(&key, SEED, NonZeroU32::new(BUCKETS as u32).unwrap()) as i32;
        parts.entry((bucket, row.0 >= RANGE_EDGE)).or_default().push((row.clone(), *to));
    }
    let (mut tablets, mut memories, mut changes) = (Vec::new(), Vec::new(), Vec::new());
    let mut first_block = 1;
    for ((bucket, is_high), rows) in parts {
        let (mut rowsets, mut changed) = (Vec::new(), Vec::new());
        for number in 0..rowset_count {
            let is_here = |to: usize| to == number || (number == 0 && to > rowset_count);
            let here: Vec<_> = rows.iter().filter(|(_, to)| is_here(*to)).collect();
            if here.is_empty() {
                continue;
            }
            if number == 0 {
                changed = here.iter().map(|(_, to)| *to).collect();
            }
            let batch = divided_batch(&here.iter().map(|(row, _)| row.clone()).collect::<Vec<_>>());
            rowsets.push(server.rowset(&batch, &[]));
        }
        let prefix = (bucket as u32).to_be_bytes().to_vec();
        // The first tablet begins and the last one ends with no key at all.
        let (start, end) = match is_high {
            false if bucket == 0 => (Vec::new(), [prefix, edge.clone()].concat()),
            true if bucket + 1 == BUCKETS => ([prefix, edge.clone()].concat(), Vec::new()),
            false => (prefix.clone(), [prefix, edge.clone()].concat()),
            true => ([prefix, edge.clone()].concat(), (bucket as u32 + 1).to_be_bytes().to_vec()),
        };
        let last_block = first_block + 5 * rowsets.len() as u64 - 1;
        let first_id = rowsets.first().map(|rowset| rowset.id.unwrap() as i64);
        server.tablet(rowsets, Partition { buckets: vec![bucket], start: Some(start), end: Some(end) });
        tablets.push((first_block..=last_block, bucket, is_high));
        first_block = last_block + 1;
        let in_memory = rows.iter().filter(|(_, to)| *to == rowset_count);
        memories.push(in_memory.map(|(row, _)| memory_row(&server, row)).collect::<BTreeMap<_, _>>());
        changes.push((first_id, changed));
    }
    let table = server.open();
    let table = table.with_tablets(|opened| {
        // Tablets come in the order of their partitions.
        for ((tablet, memory), (first_id, changed)) in opened.iter_mut().zip(memories).zip(changes) {
            tablet.memory = Arc::new(MemoryRows(memory));
            let first = tablet.rowsets.iter_mut().find(|rowset| Some(rowset.metadata.id) == first_id);
            let Some(rowset) = first.and_then(Arc::get_mut) else { continue };
            for (row, to) in changed.into_iter().enumerate() {
                let mut change = match to.checked_sub(rowset_count) {
                    Some(2) => ChangeBuilder::new(ChangeKind::Delete),
                    Some(3) => ChangeBuilder::new(ChangeKind::Update),
                    _ => continue,
                };
                if to == rowset_count + 3 {
                    change.push(2, Some(&1i32.to_le_bytes()));
                }
                rowset.log_changes.insert(row as u64, vec![(9, Bytes::from(change.finish()))]);
            }
        }
    });
    Divided { table: table.unwrap(), tablets }
}

fn memory_row(server: &MadeServer, row: &Row) -> (Vec<u8>, MemoryRow) {
    let text = |text: &str| Bytes::copy_from_slice(text.as_bytes());
    let number = |number: i32| Bytes::copy_from_slice(&number.to_le_bytes());
    let cells = HashMap::from([
        (0, Some(number(row.0))),
        (1, Some(text(&row.1))),
        (2, row.2.map(number)),
        (3, row.3.as_deref().map(text)),
    ]);
    let key = server.key_of(&divided_batch(std::slice::from_ref(row)), 0);
    (key, MemoryRow { inserted: 1, cells, changes: Vec::new() })
}

fn any_rows() -> impl Strategy<Value = Vec<(Row, usize)>> {
    let cells = (prop::option::of(-2i32..3), prop::option::of("[xy]{0,2}"), 0usize..7);
    prop::collection::btree_map((0i32..20, "[ab\0]{0,2}"), cells, 1..60)
        .prop_map(|rows| rows.into_iter().map(|((a, b), (v, s, to))| ((a, b, v, s), to)).collect())
}

fn any_predicate() -> impl Strategy<Value = Predicate> {
    let number = |column: &'static str| {
        (0usize..6, -2i32..21).prop_map(move |(op, value)| {
            let (column, value) = (col(column), lit(value));
            match op {
                0 => column.eq(value),
                1 => column.not_eq(value),
                2 => column.lt(value),
                3 => column.lt_eq(value),
                4 => column.gt(value),
                _ => column.gt_eq(value),
            }
        })
    };
    let text = (0usize..4, "[ab\0]{0,2}").prop_map(|(op, value)| {
        let (column, value) = (col("b"), lit(value.as_str()));
        match op {
            0 => column.eq(value),
            1 => column.lt(value),
            2 => column.gt(value),
            _ => column.not_eq(value),
        }
    });
    let leaf = prop_oneof![
        number("a"),
        number("v"),
        text,
        prop::collection::vec(-1i32..21, 0..4).prop_map(|v| col("a").is_in(v.into_iter().map(lit).collect())),
        prop::collection::vec("[ab\0]{0,2}", 0..3)
            .prop_map(|v| col("b").is_in(v.iter().map(|text| lit(text.as_str())).collect())),
        Just(col("s").is_null()),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Predicate::And),
            prop::collection::vec(inner.clone(), 0..3).prop_map(Predicate::Or),
            inner.prop_map(|p| Predicate::Not(Box::new(p))),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn pruning_cutting_and_merging_change_nothing(
        rows in any_rows(),
        predicates in prop::collection::vec(any_predicate(), 12),
        places in prop::collection::vec((0u64..60, 0u64..9), 0..4),
        batch_size in 1usize..20,
        limit in 0u64..60,
    ) {
        let table = divided(&rows, 3).table;
        let everything = all(table.scan());
        let alive = rows.iter().filter(|(_, to)| *to != 5).count();
        prop_assert_eq!(everything.num_rows(), alive);
        let changed = rows.iter().filter(|(_, to)| *to != 5).map(|((a, b, v, s), to)| {
            (*a, b.clone(), if *to == 6 { Some(1) } else { *v }, s.clone())
        });
        let sum = |values: &mut dyn Iterator<Item = Option<i32>>| values.flatten().sum::<i32>();
        let found = everything.column(2).as_primitive::<arrow_array::types::Int32Type>();
        prop_assert_eq!(sum(&mut found.iter()), sum(&mut changed.map(|row| row.2)));
        for predicate in predicates {
            let mask = predicate.bind(&table.schema()).unwrap().evaluate(&everything).unwrap();
            let expected = filter_record_batch(&everything, &mask).unwrap();
            let scan = || table.scan().filter(predicate.clone()).batch_size(batch_size);
            prop_assert_eq!(&all(scan()), &expected, "{}", predicate);
            let first = expected.slice(0, expected.num_rows().min(limit as usize));
            prop_assert_eq!(&all(scan().limit(limit)), &first, "{} limit {}", predicate, limit);
            let parts = by_task(scan());
            prop_assert_eq!(&concat_batches(&table.schema(), &parts).unwrap(), &expected, "{} in tasks", predicate);
            let tasks = scan().plan().unwrap().tasks_for(2).unwrap();
            prop_assert!(tasks.len() <= 2);
            let parts: Vec<_> = tasks.iter().flat_map(|task| task.read().unwrap()).map(|batch| batch.unwrap()).collect();
            prop_assert_eq!(&concat_batches(&table.schema(), &parts).unwrap(), &expected, "{} in two tasks", predicate);
        }
        let wanted: RowRanges = places.into_iter().map(|(start, count)| start..start + count).collect();
        let mask = wanted.within(&(0..alive as u64)).to_mask(alive);
        let expected = filter_record_batch(&everything, &arrow_array::BooleanArray::new(mask, None)).unwrap();
        prop_assert_eq!(all(table.scan().rows(wanted)), expected);
    }
}

#[test]
fn a_key_reads_only_tablets_that_can_hold_it() {
    let rows: Vec<(Row, usize)> =
        (0..400).map(|row| ((row % 20, format!("b{row:03}"), Some(row), None), 0)).collect();
    let mut rows = rows;
    rows.sort();
    let bucket_of = |text: &str| {
        bucket_of_encoded(text.as_bytes(), SEED, NonZeroU32::new(BUCKETS as u32).unwrap()) as i32
    };
    let read = |predicate: Predicate| -> (usize, Vec<(i32, bool)>) {
        // What was read once is kept, so each time anew.
        let Divided { table, tablets } = divided(&rows, 1);
        assert_eq!(tablets.len(), 6);
        table.reads();
        let tasks = table.scan().filter(predicate.clone()).plan().unwrap().tasks().unwrap();
        assert!(table.reads().is_empty(), "planning reads nothing");
        let rows = all(table.scan().filter(predicate.clone())).num_rows();
        let files = table.reads();
        let is_read = |blocks: &std::ops::RangeInclusive<u64>| {
            blocks.clone().any(|block| files.contains_key(&name(block)))
        };
        let read = tablets.iter().filter(|(blocks, ..)| is_read(blocks)).map(|(_, b, high)| (*b, *high));
        let read: Vec<_> = read.collect();
        // One rowset each: there is a task for every tablet that is read, and few for others.
        assert!(read.len() <= tasks.len() && tasks.len() < tablets.len(), "{} {predicate}", tasks.len());
        (rows, read)
    };
    let (count, touched) = read(col("b").eq(lit("b123")));
    assert_eq!(count, 1);
    assert!(
        touched.iter().all(|(bucket, _)| *bucket == bucket_of("b123")) && !touched.is_empty(),
        "{touched:?}"
    );
    let (count, touched) = read(Predicate::And(vec![col("b").eq(lit("b123")), col("a").eq(lit(3))]));
    assert_eq!((count, touched), (1, vec![(bucket_of("b123"), false)]));
    let (count, touched) = read(col("a").gt_eq(lit(RANGE_EDGE)));
    assert_eq!((count, touched.len()), (200, 3));
    assert!(touched.iter().all(|(_, is_high)| *is_high));
    let (count, touched) = read(col("b").is_in(vec![lit("b000"), lit("b001")]));
    let buckets = [bucket_of("b000"), bucket_of("b001")];
    assert_eq!(count, 2);
    assert!(touched.iter().all(|(bucket, _)| buckets.contains(bucket)), "{touched:?}");
    let (count, touched) = read(Predicate::And(vec![col("a").gt(lit(5)), col("a").lt(lit(5))]));
    assert_eq!((count, touched.len()), (0, 0));
}

#[needs(goldens = "kudu")]
#[test]
fn the_bloom_file_of_a_real_rowset_answers_for_keys_that_are_not_there() {
    let folder = pilaster_testing::goldens("kudu").join("file-bm/fs");
    let store = KuduStore::open(&[folder], KuduStoreOptions::default()).unwrap();
    let (mut asked, mut passed) = (0, 0);
    for table in store.tables() {
        let table = store.table(Some(&table)).unwrap();
        for rowset in table.tablets().iter().flat_map(|tablet| &tablet.rowsets) {
            let keys = rowset.keys_of(0..rowset.rows).unwrap();
            for (row, key) in keys.iter().enumerate() {
                let found = rowset.rows_in(&KeyRange::closed(key, key)).unwrap();
                assert_eq!(found, row as u64..row as u64 + 1);
            }
            // Between two keys lies the first with a byte more.
            for key in keys.iter().take(keys.len() - 1).map(|key| [key.as_slice(), &[1]].concat()) {
                assert!(rowset.rows_in(&KeyRange::closed(&key, &key)).unwrap().is_empty());
                asked += 1;
                passed += usize::from(rowset.may_contain(&key));
            }
        }
    }
    assert!(asked > 1000 && passed * 20 < asked, "{passed} of {asked} got past the bloom filter");
}
