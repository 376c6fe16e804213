//! Tables of this writer, opened and read by a real Kudu tablet server.
//!
//! A server of Kudu's own is started on a copy of each folder, and every tablet is scanned through it; the rows it prints must
//! be the rows that were written, each in the tablet it was written to.
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

use std::ffi::OsStr;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, BooleanArray, Int32Array, RecordBatch};
use arrow_schema::{Field, Schema};
use arrow_select::filter::filter_record_batch;
use pilaster_core::{Dataset, lit};
use pilaster_kudu::cfile::{Compression, Encoding, KuduType};
use pilaster_kudu::store::{KuduStore, KuduStoreOptions};
use pilaster_kudu::table_writer::{
    BlockManager, HashPartition, KeyBounds, KuduTableSummary, KuduTableWriter, KuduTableWriterOptions,
    RangePartition,
};
use pilaster_testing::needs;

use support::columns::Pattern;
use support::printed::{self, TYPES, values};
use support::rows::with_unique_keys;

/// A table to write: columns with their Kudu types.
struct Table {
    columns: Vec<(String, KuduType)>,
    batch: RecordBatch,
}

impl Table {
    fn new(columns: Vec<(String, KuduType, bool, ArrayRef)>) -> Self {
        let fields: Vec<_> = columns
            .iter()
            .map(|(name, _, is_nullable, array)| Field::new(name, array.data_type().clone(), *is_nullable))
            .collect();
        let arrays = columns.iter().map(|(.., array)| Arc::clone(array)).collect();
        let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).unwrap();
        Self { columns: columns.into_iter().map(|(name, data_type, ..)| (name, data_type)).collect(), batch }
    }

    fn with_unique_keys(mut self, keys: &[&str]) -> Self {
        self.batch = with_unique_keys(&self.batch, keys);
        self
    }

    /// Rows as Kudu prints them; the columns must be in the table's order.
    fn printed(&self) -> Vec<String> {
        let columns: Vec<Vec<String>> = self
            .columns
            .iter()
            .zip(self.batch.columns())
            .map(|((name, data_type), array)| {
                let cells = printed::column(*data_type, array).into_iter();
                cells.map(|cell| format!("{} {name}={cell}", type_name(*data_type))).collect()
            })
            .collect();
        (0..self.batch.num_rows())
            .map(|row| {
                let cells: Vec<_> = columns.iter().map(|column| column[row].as_str()).collect();
                format!("({})", cells.join(", "))
            })
            .collect()
    }

    /// Writes the table in batches of so many rows, lets Kudu read it and compares the rows.
    fn check(
        &self,
        what: &str,
        batch_rows: usize,
        manager: BlockManager,
        options: KuduTableWriterOptions,
    ) -> KuduTableSummary {
        let scratch = tempfile::tempdir().unwrap();
        let folder = scratch.path().join("table");
        let options = options.with_block_manager(manager);
        let mut writer = KuduTableWriter::try_new(&folder, self.batch.schema(), options).unwrap();
        for start in (0..self.batch.num_rows()).step_by(batch_rows) {
            writer.write(&self.batch.slice(start, batch_rows.min(self.batch.num_rows() - start))).unwrap();
        }
        let summary = writer.finish().unwrap();
        let out = scratch.path().join("rows");
        let managers: [&OsStr; 3] =
            ["--block-manager".as_ref(), manager.dir_type().as_ref(), "--out".as_ref()];
        let arguments = managers.into_iter().chain([out.as_os_str(), folder.as_os_str()]);
        let output = printed::run_kudu("kudu-accepts-tablet", arguments);
        let said = format!(
            "{what}: {}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
        assert!(output.status.success(), "{said}");
        let mut found = Vec::new();
        for tablet in &summary.tablets {
            let text = std::fs::read_to_string(out.join(format!("{}.txt", tablet.tablet_id))).unwrap();
            let rows: Vec<_> = text.lines().map(String::from).collect();
            assert_eq!(rows.len() as u64, tablet.rows, "{what}: {}", tablet.partition);
            found.extend(rows);
        }
        let mut expected = self.printed();
        expected.sort();
        found.sort();
        if let Some(row) = found.iter().zip(&expected).position(|(found, expected)| found != expected) {
            panic!("{what}: expected {}\nfound {}", expected[row], found[row]);
        }
        assert_eq!(found.len(), expected.len());
        eprintln!(
            "{what}: {} rows in {} tablets and {} rowsets accepted by Kudu",
            found.len(),
            summary.tablets.len(),
            summary.tablets.iter().map(|tablet| tablet.rowsets).sum::<usize>()
        );
        summary
    }
}

fn type_name(data_type: KuduType) -> String {
    match data_type {
        KuduType::Decimal32 | KuduType::Decimal64 | KuduType::Decimal128 => "decimal".into(),
        other => other.name().to_lowercase(),
    }
}

/// The types that tables have.
fn table_types() -> impl Iterator<Item = KuduType> {
    TYPES.into_iter().filter(|data_type| {
        use KuduType::{Int128, UInt8, UInt16, UInt32, UInt64};
        !matches!(data_type, UInt8 | UInt16 | UInt32 | UInt64 | Int128)
    })
}

fn ids(rows: usize) -> (String, KuduType, bool, ArrayRef) {
    // In no order, each once.
    let ids = Int32Array::from_iter_values((0..rows as i32).map(|row| row * 7919 % rows as i32 - 100));
    ("id".into(), KuduType::Int32, false, Arc::new(ids))
}

#[test]
#[ignore = "runs the real Kudu, which is downloaded once (kudu-accepts-tablet in PILASTER_TOOLS)"]
fn kudu_reads_tables_of_every_type_encoding_and_codec() {
    let rows = 401;
    let mut columns = vec![ids(rows)];
    let mut options = KuduTableWriterOptions::default().with_block_size_bytes(512).with_rowset_rows(130);
    for data_type in table_types() {
        for (&encoding, nulls) in data_type.encodings().iter().flat_map(|e| [(e, 0), (e, 30), (e, 100)]) {
            let name = format!("c{}", columns.len());
            let pattern = if nulls == 0 { Pattern::Random } else { Pattern::Runs };
            options = options
                .with_encoding(&name, encoding)
                .with_column_compression(&name, Compression::ALL[columns.len() % Compression::ALL.len()]);
            if data_type == KuduType::Varchar {
                options = options.with_varchar(&name, 200);
            }
            columns.push((name, data_type, nulls > 0, values(data_type, pattern, rows, nulls)));
        }
    }
    let table = Table::new(columns);
    let summary = table.check("every type", 90, BlockManager::Log, options.clone());
    assert_eq!(summary.tablets[0].rowsets, 4);
    table.check("every type, file blocks", rows, BlockManager::File, options.clone());
    // What the schema leaves open is what Kudu chooses.
    let plain = table
        .columns
        .iter()
        .filter(|(_, data_type)| *data_type == KuduType::Varchar)
        .fold(KuduTableWriterOptions::default(), |options, (name, _)| options.with_varchar(name, 200));
    table.check("every type, defaults", rows, BlockManager::Log, plain);
}

#[test]
#[ignore = "runs the real Kudu, which is downloaded once (kudu-accepts-tablet in PILASTER_TOOLS)"]
fn kudu_reads_tables_with_keys_of_every_type() {
    for data_type in table_types().filter(|data_type| data_type.can_be_key()) {
        for encoding in [data_type.default_encoding(), Encoding::Plain] {
            let keys = values(data_type, Pattern::Random, 700, 0);
            let table = Table::new(vec![
                ("key".into(), data_type, false, keys),
                ("value".into(), KuduType::String, true, values(KuduType::String, Pattern::Few, 700, 20)),
            ]);
            let mut options =
                KuduTableWriterOptions::default().with_encoding("key", encoding).with_memory_bytes(0);
            if data_type == KuduType::Varchar {
                options = options.with_varchar("key", 200);
            }
            let what = format!("key {data_type} {encoding}");
            table.with_unique_keys(&["key"]).check(&what, 200, BlockManager::Log, options);
        }
    }
}

/// A table with a key of three columns.
fn compound(rows: usize) -> Table {
    let column = |name: &str, data_type, pattern| {
        (name.to_string(), data_type, false, values(data_type, pattern, rows, 0))
    };
    let table = Table::new(vec![
        column("word", KuduType::String, Pattern::Random),
        column("number", KuduType::Int32, Pattern::Random),
        column("day", KuduType::Date, Pattern::Random),
        column("bytes", KuduType::Binary, Pattern::Random),
        column("flag", KuduType::Bool, Pattern::Random),
    ]);
    table.with_unique_keys(&["word", "number", "day"])
}

#[test]
#[ignore = "runs the real Kudu, which is downloaded once (kudu-accepts-tablet in PILASTER_TOOLS)"]
fn kudu_reads_partitioned_tables() {
    let options = KuduTableWriterOptions::default().with_primary_key(["word", "number", "day"]);
    let hash = options
        .clone()
        .with_hash_partition(HashPartition::new(["word", "day"], 3).with_seed(7))
        .with_hash_partition(HashPartition::new(["number"], 2));
    let range = RangePartition::new(["number"], [vec![lit(-1_000_000_000)], vec![lit(1_000_000_000)]]);
    let words =
        RangePartition::new(["word", "number"], [vec![lit("a\0b"), lit(5)], vec![lit("größe"), lit(0)]]);
    let table = compound(3000);
    let one = table.check("one tablet", 1000, BlockManager::Log, options.clone());
    assert_eq!(one.tablets.len(), 1);
    let by_hash = table.check("hash", 3000, BlockManager::Log, hash.clone());
    assert_eq!(by_hash.tablets.len(), 6);
    assert!(by_hash.tablets.iter().all(|tablet| tablet.rows > 0));
    let both = hash.with_range_partition(range.clone()).with_memory_bytes(100_000);
    let both = table.check("hash and range", 500, BlockManager::File, both);
    assert_eq!(both.tablets.len(), 18);
    let by_range = table.check("range", 3000, BlockManager::Log, options.clone().with_range_partition(range));
    assert_eq!(by_range.tablets.len(), 3);
    let by_words =
        table.check("range of two columns", 3000, BlockManager::Log, options.with_range_partition(words));
    assert_eq!(by_words.tablets.len(), 3);
}

#[test]
#[ignore = "runs the real Kudu, which is downloaded once (kudu-accepts-tablet in PILASTER_TOOLS)"]
fn kudu_reads_tables_with_gaps_between_ranges_and_hashes_of_their_own() {
    let options = KuduTableWriterOptions::default()
        .with_primary_key(["word", "number", "day"])
        .with_hash_partition(HashPartition::new(["word", "day"], 3).with_seed(7))
        .with_hash_partition(HashPartition::new(["number"], 2));
    let mut table = compound(3000);
    // No rows with numbers from -1,000,000,000 up to 0.
    let numbers = table.batch.column(1).as_primitive::<Int32Type>();
    let kept = numbers.values().iter().map(|number| Some(!(-1_000_000_000..0).contains(number)));
    table.batch = filter_record_batch(&table.batch, &kept.collect::<BooleanArray>()).unwrap();
    assert!(table.batch.num_rows() > 1000);
    let numbers = "number:..-1000000000|0..1000000000@day:4:5@word:2|1000000000..".parse().unwrap();
    let summary = table.check("gaps", 700, BlockManager::Log, options.clone().with_range_partition(numbers));
    assert_eq!(summary.tablets.len(), 6 + 8 + 6);
    // Bounds of text and of two columns.
    let bounds = |word: &str, number: i32| Some(vec![lit(word), lit(number)]);
    let words = RangePartition::only(
        ["word", "number"],
        [
            KeyBounds::new(None, bounds("größe", 0))
                .with_hash_partition(HashPartition::new(["day"], 2))
                .with_hash_partition(HashPartition::new(["number", "word"], 5)),
            KeyBounds::new(bounds("größe", 0), None),
        ],
    );
    let summary = table.check("ranges of text", 700, BlockManager::File, options.with_range_partition(words));
    assert_eq!(summary.tablets.len(), 10 + 6);
}

#[test]
#[ignore = "runs the real Kudu, which is downloaded once (kudu-accepts-tablet in PILASTER_TOOLS)"]
fn kudu_reads_large_overlapping_and_empty_rowsets() {
    let key = ["word", "number", "day"];
    for &compression in Compression::ALL {
        let options = KuduTableWriterOptions::default()
            .with_primary_key(key)
            .with_compression(compression)
            .with_insert_history(compression != Compression::Zlib)
            .with_memory_bytes(500_000)
            .with_rowset_bytes(200_000);
        let summary =
            compound(20_000).check(&format!("many rows, {compression}"), 1000, BlockManager::Log, options);
        assert!(summary.tablets[0].rowsets > 5);
    }
    let empty = compound(0);
    let options = KuduTableWriterOptions::default()
        .with_primary_key(key)
        .with_hash_partition(HashPartition::new(["word"], 2));
    let summary = empty.check("no rows", 10, BlockManager::Log, options);
    assert_eq!(summary.rows, 0);
}

/// The hash of every row of real tables leads to the tablet that a real Kudu put it into.
#[needs(goldens = "kudu")]
#[test]
fn rows_of_real_tables_hash_to_their_tablets() {
    let goldens = support::goldens();
    let mut checked = 0;
    for (case, name, columns, buckets, seed) in [
        ("mixed", "mixed", &["k"][..], 2, 5),
        ("multidir", "spread", &["k"], 3, 0),
        ("keys", "k_int_str_i64", &["a", "b"], 3, 7),
    ] {
        let open = |tablet: Option<String>| {
            let options = KuduStoreOptions::default().with_tablet(tablet);
            KuduStore::open(&[goldens.join(case).join("fs")], options).unwrap()
        };
        for entry in open(None).tablets().into_iter().filter(|entry| entry.table == name) {
            let bucket: u32 = entry.partition.split([' ', ',']).nth(1).unwrap().parse().unwrap();
            let store = open(Some(entry.tablet));
            let table = store.table(Some(name)).unwrap();
            let types: Vec<_> = columns
                .iter()
                .map(|name| (*name, table.schema().field_with_name(name).unwrap().clone()))
                .collect();
            for batch in table.scan().read().unwrap() {
                let batch = batch.unwrap();
                for row in 0..batch.num_rows() {
                    let cells: Vec<_> = types
                        .iter()
                        .map(|(name, field)| {
                            let kudu = pilaster_kudu::cfile::kudu_type(field.data_type()).unwrap();
                            (kudu, support::rows::stored(batch.column_by_name(name).unwrap(), row))
                        })
                        .collect();
                    let cells: Vec<_> = cells.iter().map(|(kudu, cell)| (*kudu, cell.as_slice())).collect();
                    let found = pilaster_kudu::partition_hash::bucket(
                        &cells,
                        seed,
                        std::num::NonZeroU32::new(buckets).unwrap(),
                    );
                    assert_eq!(found.unwrap(), bucket, "{case} {name}");
                    checked += 1;
                }
            }
        }
    }
    assert!(checked > 1000, "{checked}");
}
