//! That a filter saves reading the other columns of rowsets with changes, and gives the rows it would give without that.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::{ArrayRef, BinaryArray, Int32Array, Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
use arrow_select::concat::concat_batches;
use arrow_select::filter::filter_record_batch;
use bytes::Bytes;
use pilaster_core::source::MemorySource;
use pilaster_core::{Dataset, Predicate, Scan, col, lit};
use proptest::prelude::*;
use prost::Message;

use super::change::{ChangeBuilder, ChangeKind};
use super::delta::DeltaFile;
use super::rowset::{RowSet, Snapshot};
use super::scan_tests::made::{MadeServer, Partition};
use super::table::KuduTable;
use crate::cfile::{CFileReaderOptions, CFileWriter, CFileWriterOptions, DELTA_STATISTICS, Encoding};
use crate::key::encode_ordered_varint;
use crate::messages::{DeltaColumnStatsPb, DeltaStatsPb};
use crate::wal::{MemoryRow, MemoryRows};

/// Key, two numbers and a text: columns 0 to 3.
type Row = (i64, Option<i32>, i32, String);

fn fields() -> Vec<Field> {
    vec![
        Field::new("k", DataType::Int64, false),
        Field::new("a", DataType::Int32, true),
        Field::new("v", DataType::Int32, false),
        Field::new("s", DataType::Utf8, false),
    ]
}

fn batch(rows: &[Row]) -> RecordBatch {
    let columns: Vec<ArrayRef> = vec![
        Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| row.0))),
        Arc::new(rows.iter().map(|row| row.1).collect::<Int32Array>()),
        Arc::new(Int32Array::from_iter_values(rows.iter().map(|row| row.2))),
        Arc::new(StringArray::from_iter_values(rows.iter().map(|row| &row.3))),
    ];
    RecordBatch::try_new(Arc::new(Schema::new(fields())), columns).unwrap()
}

/// What happens to a row: when, how, and the new values of `a`, `v` and `s`.
#[derive(Debug, Clone)]
struct Change {
    timestamp: u64,
    kind: ChangeKind,
    a: Option<Option<i32>>,
    v: Option<i32>,
    s: Option<String>,
}

impl Change {
    fn update(timestamp: u64) -> Self {
        Self { timestamp, kind: ChangeKind::Update, a: None, v: None, s: None }
    }

    fn list(&self) -> Vec<u8> {
        let mut list = ChangeBuilder::new(self.kind);
        if self.kind != ChangeKind::Delete {
            if let Some(a) = self.a {
                list.push(1, a.map(i32::to_le_bytes).as_ref().map(<[u8; 4]>::as_slice));
            }
            if let Some(v) = self.v {
                list.push(2, Some(&v.to_le_bytes()));
            }
            if let Some(s) = &self.s {
                list.push(3, Some(s.as_bytes()));
            }
        }
        list.finish()
    }
}

/// A delta file of changes of rows, in the order given for each row.
fn delta_file(changes: &BTreeMap<u64, Vec<Change>>) -> Arc<DeltaFile> {
    let all = || changes.values().flatten();
    let count = |is_counted: &dyn Fn(&Change) -> bool| Some(all().filter(|c| is_counted(c)).count() as i64);
    let of_column = |id: i32, is_changed: &dyn Fn(&Change) -> bool| DeltaColumnStatsPb {
        col_id: Some(id),
        update_count: count(&|c| c.kind != ChangeKind::Delete && is_changed(c)),
    };
    let statistics = DeltaStatsPb {
        delete_count: count(&|c| c.kind == ChangeKind::Delete),
        reinsert_count: count(&|c| c.kind == ChangeKind::Reinsert),
        min_timestamp: all().map(|c| c.timestamp).min(),
        max_timestamp: all().map(|c| c.timestamp).max(),
        column_stats: vec![
            of_column(1, &|c| c.a.is_some()),
            of_column(2, &|c| c.v.is_some()),
            of_column(3, &|c| c.s.is_some()),
        ],
    };
    let options = CFileWriterOptions::default()
        .with_encoding(Encoding::Plain)
        .with_block_size_bytes(512)
        .with_delta_index()
        .with_metadata(DELTA_STATISTICS, statistics.encode_to_vec());
    let values = changes.iter().flat_map(|(row, changes)| {
        changes.iter().map(|change| {
            let mut value = Vec::new();
            encode_ordered_varint(*row, &mut value);
            encode_ordered_varint(change.timestamp, &mut value);
            value.extend(change.list());
            value
        })
    });
    let values: ArrayRef = Arc::new(BinaryArray::from_iter_values(values.collect::<Vec<_>>()));
    let field = Field::new("value", DataType::Binary, false);
    let mut file = CFileWriter::try_new(Vec::new(), &field, options).unwrap();
    file.write_array(&values).unwrap();
    let source = Arc::new(MemorySource::new("delta", file.finish().unwrap().0));
    Arc::new(DeltaFile::open(source, &CFileReaderOptions::default()).unwrap())
}

/// A table of one tablet with these rowsets, whose blocks are small.
fn table(rowsets: &[Vec<Row>], change: impl Fn(usize, &mut RowSet)) -> KuduTable {
    let options = CFileWriterOptions::default().with_encoding(Encoding::Plain).with_block_size_bytes(1024);
    let mut server = MadeServer::new(fields(), 1).with_options(options);
    let made: Vec<_> = rowsets.iter().map(|rows| server.rowset(&batch(rows), &[])).collect();
    let ids: Vec<_> = made.iter().map(|rowset| rowset.id.unwrap() as i64).collect();
    server.tablet(made, Partition::default());
    let opened = server.open().with_tablets(|tablets| {
        for rowset in &mut tablets[0].rowsets {
            let number = ids.iter().position(|id| *id == rowset.metadata.id).unwrap();
            change(number, Arc::get_mut(rowset).unwrap());
        }
    });
    opened.unwrap()
}

fn all(scan: Scan<'_>) -> Result<RecordBatch, String> {
    let reader = scan.read().map_err(|error| error.to_string())?;
    let schema = reader.schema();
    let batches = reader.collect::<Result<Vec<_>, _>>().map_err(|error| error.to_string())?;
    Ok(concat_batches(&schema, &batches).unwrap())
}

fn numbered(keys: impl Iterator<Item = i64>) -> Vec<Row> {
    keys.map(|k| (k, Some(k as i32 % 100), k as i32, format!("the text of row {k}"))).collect()
}

fn one_change(row: u64, change: Change) -> Arc<DeltaFile> {
    delta_file(&BTreeMap::from([(row, vec![change])]))
}

/// Bytes read of the file of each column of the first two rowsets since this was last asked. Rowset n has the blocks 4 n + 1 to
/// 4 n + 4.
fn bytes_read(table: &KuduTable) -> [[u64; 4]; 2] {
    let reads = table.reads();
    let of_block = |block: u64| reads.get(&format!("{block:016}")).map_or(0, |counts| counts.bytes);
    [[1, 2, 3, 4].map(of_block), [5, 6, 7, 8].map(of_block)]
}

/// A block and an index block of 1 KiB, and the tail of a file, which is read at once.
const FEW_BYTES: u64 = 20 << 10;
/// The texts of 10,000 rows take more than ten times as much.
const MANY_BYTES: u64 = 200 << 10;

#[test]
fn other_columns_of_a_changed_rowset_are_read_where_rows_remain() {
    let rows = numbered(0..10_000);
    // Row 7000 is changed to what row 3000 has been; that one is deleted.
    let changed = Change { v: Some(3000), s: Some("new".into()), ..Change::update(9) };
    let gone = Change { kind: ChangeKind::Delete, ..Change::update(9) };
    let redo = delta_file(&BTreeMap::from([(3000, vec![gone]), (7000, vec![changed])]));
    let table = table(&[rows], |_, rowset| rowset.redo.push(Arc::clone(&redo)));
    table.reads();
    let scan = || table.scan().project(["k", "s"]);
    let found = all(scan().filter(col("v").eq(lit(3000)))).unwrap();
    assert_eq!(format!("{:?}", found.columns()), format!("{:?}", expected(&[(7000, "new")])));
    let [[keys, a, v, texts], _] = bytes_read(&table);
    assert!(a == 0 && v > 40_000 && keys < FEW_BYTES && texts < FEW_BYTES, "{keys} {a} {v} {texts}");
    // Nothing remains: their files are not opened again.
    assert_eq!(all(scan().filter(col("v").eq(lit(7000)))).unwrap().num_rows(), 0);
    let [[keys, _, v, texts], _] = bytes_read(&table);
    assert!(v > 40_000 && keys == 0 && texts == 0, "{keys} {v} {texts}");
    // Everything, for comparison.
    assert_eq!(all(scan()).unwrap().num_rows(), 9999);
    let [[.., texts], _] = bytes_read(&table);
    assert!(texts > MANY_BYTES, "{texts}");
}

#[test]
fn other_columns_of_merged_rowsets_are_read_where_rows_remain() {
    let rowsets = [numbered((0..20_000).step_by(2)), numbered((1..20_001).step_by(2))];
    let redo = one_change(5, Change { v: Some(-1), ..Change::update(9) });
    let table = table(&rowsets, |number, rowset| {
        if number == 1 {
            rowset.redo.push(Arc::clone(&redo));
        }
    });
    table.reads();
    let found = all(table.scan().project(["k", "s"]).filter(col("v").lt(lit(0)))).unwrap();
    assert_eq!(format!("{:?}", found.columns()), format!("{:?}", expected(&[(11, "the text of row 11")])));
    let [first, second] = bytes_read(&table);
    assert!(first[0] > 0 && first[2] > 40_000 && first[3] < FEW_BYTES, "{first:?}");
    assert!(second[2] > 40_000 && second[3] < FEW_BYTES, "{second:?}");
}

fn expected(rows: &[(i64, &str)]) -> Vec<ArrayRef> {
    use arrow_array::StringViewArray;
    let keys: ArrayRef = Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| row.0)));
    vec![keys, Arc::new(StringViewArray::from_iter_values(rows.iter().map(|row| row.1)))]
}

#[test]
fn a_key_that_is_live_twice_is_seen_though_the_filter_wants_one_of_them() {
    let rowsets = [numbered(0..10), vec![(5, Some(1), 99, "again".into()), (50, None, 0, String::new())]];
    let table = table(&rowsets, |_, _| {});
    for predicate in [col("v").eq(lit(99)), col("v").eq(lit(5)), col("v").eq(lit(1_000_000))] {
        let error = all(table.scan().filter(predicate)).unwrap_err();
        assert!(error.contains("live in two rowsets"), "{error}");
    }
}

fn any_change() -> impl Strategy<Value = Change> {
    let kind = prop_oneof![
        6 => Just(ChangeKind::Update),
        2 => Just(ChangeKind::Delete),
        1 => Just(ChangeKind::Reinsert),
    ];
    let cells = (
        prop::option::of(prop::option::of(0i32..4)),
        prop::option::of(0i32..4),
        prop::option::of("[xy]{0,20}"),
    );
    (0u64..10, kind, cells).prop_map(|(timestamp, kind, (a, v, s))| Change { timestamp, kind, a, v, s })
}

/// For some rows of each rowset: UNDOs, REDOs and changes of the log.
type Changes = BTreeMap<u64, [Vec<Change>; 3]>;

fn any_changes() -> impl Strategy<Value = Changes> {
    let some = || prop::collection::vec(any_change(), 0..3);
    prop::collection::btree_map(0u64..40, [some(), some(), some()], 0..12)
}

fn lay(rowset: &mut RowSet, changes: &Changes) {
    let file = |place: usize| -> BTreeMap<u64, Vec<Change>> {
        let of_rows = changes.iter().filter(|(row, _)| **row < rowset.rows);
        let of_rows = of_rows.map(|(row, changes)| {
            let mut changes = changes[place].clone();
            // UNDOs go back in time, from 19 to 10, the others forward: REDOs from 20 on, the log from 30 on.
            match place {
                0 => changes.sort_by_key(|change| std::cmp::Reverse(change.timestamp)),
                _ => changes.sort_by_key(|change| change.timestamp),
            }
            changes.iter_mut().for_each(|change| change.timestamp += 10 * (place as u64 + 1));
            (*row, changes)
        });
        of_rows.filter(|(_, changes)| !changes.is_empty()).collect()
    };
    let (undo, redo, log) = (file(0), file(1), file(2));
    rowset.undo.extend((!undo.is_empty()).then(|| delta_file(&undo)));
    rowset.redo.extend((!redo.is_empty()).then(|| delta_file(&redo)));
    for (row, changes) in log {
        let changes = changes.iter().map(|change| (change.timestamp, Bytes::from(change.list())));
        rowset.log_changes.insert(row, changes.collect());
    }
}

fn memory_row(server: &MadeServer, row: &Row) -> (Vec<u8>, MemoryRow) {
    let number = |number: i32| Bytes::copy_from_slice(&number.to_le_bytes());
    let cells = [
        (0, Some(Bytes::copy_from_slice(&row.0.to_le_bytes()))),
        (1, row.1.map(number)),
        (2, Some(number(row.2))),
        (3, Some(Bytes::copy_from_slice(row.3.as_bytes()))),
    ];
    let key = server.key_of(&batch(std::slice::from_ref(row)), 0);
    (key, MemoryRow { inserted: 15, cells: cells.into(), changes: Vec::new() })
}

fn any_predicate() -> impl Strategy<Value = Predicate> {
    let leaf = prop_oneof![
        (0i32..4).prop_map(|v| col("a").eq(lit(v))),
        (0i32..4).prop_map(|v| col("v").gt_eq(lit(v))),
        (0i32..4).prop_map(|v| col("v").eq(lit(v))),
        "[xy]{0,2}".prop_map(|s| col("s").gt(lit(s.as_str()))),
        (0i64..60).prop_map(|k| col("k").lt(lit(k))),
        Just(col("a").is_null()),
        Just(Predicate::And(Vec::new())),
        Just(Predicate::Or(Vec::new())),
    ];
    leaf.prop_recursive(2, 6, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 1..3).prop_map(Predicate::And),
            prop::collection::vec(inner.clone(), 1..3).prop_map(Predicate::Or),
            inner.prop_map(|p| Predicate::Not(Box::new(p))),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn a_filtered_scan_is_the_filtered_rows_of_the_whole_scan(
        rows in prop::collection::btree_map(0i64..60, (prop::option::of(0i32..4), 0i32..4, "[xy]{0,20}", 0usize..4), 1..60),
        changes in prop::collection::vec(any_changes(), 3),
        predicates in prop::collection::vec(any_predicate(), 8),
        columns in prop::sample::subsequence(vec!["k", "a", "v", "s"], 0..4),
        at in prop::option::of(8u64..42),
        batch_size in 1usize..30,
        limit in 0u64..20,
    ) {
        let mut rowsets: [Vec<Row>; 4] = Default::default();
        for (k, (a, v, s, to)) in rows {
            rowsets[to].push((k, a, v, s));
        }
        let [.., in_memory] = &rowsets;
        let given: Vec<_> = rowsets[..3].iter().zip(&changes).filter(|(rows, _)| !rows.is_empty()).collect();
        let flushed: Vec<_> = given.iter().map(|(rows, _)| (*rows).clone()).collect();
        let table = table(&flushed, |number, rowset| lay(rowset, given[number].1));
        let encoder = MadeServer::new(fields(), 1);
        let memory = in_memory.iter().map(|row| memory_row(&encoder, row)).collect();
        let table = table.with_tablets(|tablets| tablets[0].memory = Arc::new(MemoryRows(memory))).unwrap();
        let table = table.at(at.map_or(Snapshot::Latest, Snapshot::At)).unwrap();
        let everything = all(table.scan()).unwrap();
        for predicate in predicates {
            let mask = predicate.bind(&table.schema()).unwrap().evaluate(&everything).unwrap();
            let kept = filter_record_batch(&everything, &mask).unwrap();
            let indexes: Vec<_> = columns.iter().map(|name| kept.schema().index_of(name).unwrap()).collect();
            let kept = kept.project(&indexes).unwrap();
            let scan = || table.scan().project(columns.clone()).filter(predicate.clone()).batch_size(batch_size);
            prop_assert_eq!(&all(scan()).unwrap(), &kept, "{}", predicate);
            let first = kept.slice(0, kept.num_rows().min(limit as usize));
            prop_assert_eq!(&all(scan().limit(limit)).unwrap(), &first, "{} limit {}", predicate, limit);
        }
    }
}
