//! Which pages a filter reads: the indexes of the columns it names, and the data they leave over.
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

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int32Array, RecordBatch, StringArray};
use pilaster_core::{Dataset, Predicate, RowRanges, SourceRef, col, lit};
use pilaster_doris::TabletSchema;
use pilaster_doris::segment::{
    ColumnWriteOptions, Compression, Encoding, SegmentReader, SegmentReaderOptions, SegmentWriteOptions,
    SegmentWriter,
};
use pilaster_testing::ReadRecorder;
use pilaster_testing::needs;
use support::golden::Case;
use support::{batches, goldens, memory};

/// How often pages of each column and kind are read.
type Reads = BTreeMap<(String, &'static str), usize>;

struct Watched {
    source: Arc<ReadRecorder>,
    reader: SegmentReader,
    pages: Vec<pilaster_core::describe::Page>,
}

impl Watched {
    fn open(file: Vec<u8>, options: &SegmentReaderOptions) -> Self {
        let source = Arc::new(ReadRecorder::new(memory("file", file)));
        let open = || SegmentReader::open_with_options(Arc::clone(&source) as SourceRef, options).unwrap();
        let pages = open().pages().unwrap();
        // Another reader, which has not read anything but the end of the file.
        let reader = open();
        source.take();
        Self { source, reader, pages }
    }

    fn reads(&self) -> Reads {
        let mut reads = Reads::new();
        for range in self.source.take() {
            for page in self
                .pages
                .iter()
                .filter(|page| range.start <= page.offset && page.offset + page.bytes <= range.end)
            {
                *reads.entry((page.column.clone(), page.kind)).or_default() += 1;
            }
        }
        reads
    }

    /// Rows and what was read for them.
    fn ask(&self, predicate: Predicate, columns: &[&str]) -> (usize, Reads) {
        let found = batches(self.reader.scan().project(columns.iter().copied()).filter(predicate)).unwrap();
        (found.iter().map(RecordBatch::num_rows).sum(), self.reads())
    }
}

fn of(reads: &Reads, column: &str, kind: &str) -> usize {
    reads.iter().filter(|((c, k), _)| c == column && *k == kind).map(|(_, count)| count).sum()
}

fn data(reads: &Reads) -> usize {
    reads.iter().filter(|((_, kind), _)| *kind == "data page").map(|(_, count)| count).sum()
}

const ROWS: i32 = 40_000;

fn schema(keys: &str) -> Arc<TabletSchema> {
    // The last one's indexes, and the end of the keys, are read when the file is opened.
    let json = format!(
        r#"{{{keys}, "columns": [
            {{"unique_id": 0, "name": "k", "type": "INT", "is_key": true}},
            {{"unique_id": 1, "name": "n", "type": "INT"}},
            {{"unique_id": 2, "name": "s", "type": "STRING", "is_bf_column": true}},
            {{"unique_id": 3, "name": "d", "type": "STRING"}},
            {{"unique_id": 4, "name": "o", "type": "STRING", "is_bf_column": true}}]}}"#
    );
    Arc::new(TabletSchema::parse_json(json.as_bytes()).unwrap())
}

/// `k` and `n` ascend; `s` is all different, `d` has seven words, `o` is long.
fn written(keys: &str) -> Watched {
    let texts = |text: &dyn Fn(i32) -> String| -> ArrayRef {
        Arc::new(StringArray::from_iter_values((0..ROWS).map(text)))
    };
    let batch = RecordBatch::try_from_iter([
        ("k", Arc::new(Int32Array::from_iter_values((0..ROWS).map(|row| row * 2))) as ArrayRef),
        ("n", Arc::new(Int32Array::from_iter_values((0..ROWS).map(|row| row / 3)))),
        ("s", texts(&|row| format!("s{:08}", (i64::from(row) * 7_919) % 1_000_003))),
        ("d", texts(&|row| format!("word {}", row % 7))),
        ("o", texts(&|row| format!("{row:040}"))),
    ])
    .unwrap();
    let plain = || ColumnWriteOptions::default().with_encoding(Encoding::Plain);
    let options = SegmentWriteOptions::default()
        .with_compression(Compression::None)
        .with_page_bytes(2048)
        .with_column("s", plain())
        .with_column("o", plain());
    let schema = schema(keys);
    let mut writer = SegmentWriter::try_new(Vec::new(), &schema, &options).unwrap();
    writer.write(&batch).unwrap();
    let file = writer.finish().unwrap().0;
    Watched::open(file, &SegmentReaderOptions::default().with_schema(Some(schema)))
}

const DUPLICATE: &str = r#""keys_type": "DUP_KEYS", "num_short_key_columns": 1"#;
const MERGE_ON_WRITE: &str = r#""keys_type": "UNIQUE_KEYS", "merge_on_write": true"#;

#[test]
fn zone_maps_of_the_column_alone_lead_to_its_pages() {
    let watched = written(DUPLICATE);
    let predicate = col("n").eq(lit(5000i64));
    let (rows, reads) = watched.ask(predicate.clone(), &["s"]);
    assert_eq!(rows, 3);
    let zone_maps: Vec<_> = reads.keys().filter(|(_, kind)| *kind == "zone map page").collect();
    assert!(zone_maps.iter().all(|(column, _)| column == "n") && !zone_maps.is_empty(), "{reads:?}");
    assert!(reads.keys().all(|(_, kind)| *kind != "bloom filter page"), "{reads:?}");
    assert!(reads.keys().all(|(column, _)| column == "n" || column == "s"), "{reads:?}");
    assert!(of(&reads, "n", "data page") <= 2 && of(&reads, "s", "data page") <= 2, "{reads:?}");
    // What was read of indexes is kept.
    let (rows, reads) = watched.ask(predicate, &["s"]);
    assert_eq!(rows, 3);
    assert!(reads.keys().all(|(_, kind)| *kind == "data page"), "{reads:?}");
}

#[test]
fn bloom_filters_of_the_column_alone_leave_pages_out() {
    let watched = written(DUPLICATE);
    let (rows, reads) = watched.ask(col("s").eq(lit("s00000001x")), &["k", "o"]);
    assert_eq!(rows, 0);
    assert!(of(&reads, "s", "bloom filter page") > 0, "{reads:?}");
    assert_eq!(of(&reads, "o", "bloom filter page"), 0, "{reads:?}");
    let all = watched.pages.iter().filter(|page| page.column == "s" && page.kind == "data page").count();
    assert!(all > 200 && of(&reads, "s", "data page") < all / 8, "{reads:?} of {all}");
    assert_eq!(of(&reads, "o", "data page"), 0, "{reads:?}");
}

#[test]
fn words_that_do_not_match_leave_out_all_pages() {
    let watched = written(DUPLICATE);
    // Between the smallest and the largest word, and no word.
    for predicate in [
        col("d").eq(lit("word 3x")),
        col("d").like(lit("%3_")),
        Predicate::And(vec![col("n").gt(lit(10i64)), Predicate::And(vec![col("d").eq(lit("word 3x"))])]),
    ] {
        let (rows, reads) = watched.ask(predicate.clone(), &["k", "s", "o"]);
        assert_eq!(rows, 0);
        // The last page of the column tells that it has codes, as all before it.
        assert!(of(&reads, "d", "data page") <= 1 && data(&reads) <= 1, "{predicate}: {reads:?}");
    }
    let (rows, reads) = watched.ask(col("d").eq(lit("word 3")), &["k"]);
    assert_eq!(rows, 5714);
    assert!(data(&reads) > 2);
}

#[test]
fn a_primary_key_costs_a_page_of_keys_and_one_that_is_not_there_none() {
    let watched = written(MERGE_ON_WRITE);
    let keys = |reads: &Reads| of(reads, "", "primary key data page");
    let (rows, reads) = watched.ask(col("k").eq(lit(40_000i64)), &["s"]);
    assert_eq!(rows, 1);
    assert!((1..=2).contains(&keys(&reads)), "{reads:?}");
    assert!(of(&reads, "k", "data page") <= 1 && of(&reads, "s", "data page") <= 1, "{reads:?}");
    assert!(reads.keys().all(|(_, kind)| *kind != "zone map page"), "{reads:?}");
    // Odd keys are not there, which the filter of all keys knows; it may be wrong about one in a hundred.
    let mut costly = 0;
    for key in (10_001..10_101).step_by(2) {
        let (rows, reads) = watched.ask(col("k").eq(lit(i64::from(key))), &["s"]);
        assert_eq!(rows, 0);
        costly += usize::from(keys(&reads) > 0);
    }
    assert!(costly <= 5, "{costly} of 50");
    // Before the first and behind the last nothing is read at all.
    for predicate in [col("k").lt(lit(0i64)), col("k").gt(lit(i64::from(ROWS) * 2))] {
        assert_eq!(watched.ask(predicate, &["s"]), (0, Reads::new()));
    }
}

#[test]
fn threads_that_share_a_segment_prune_it_once() {
    let watched = written(DUPLICATE);
    let predicate = col("s").eq(lit("s00000001x"));
    let parts = 8;
    std::thread::scope(|scope| {
        for part in 0..parts {
            let (reader, predicate) = (watched.reader.clone(), predicate.clone());
            scope.spawn(move || {
                let size = u64::from(ROWS.unsigned_abs()) / parts;
                let rows = RowRanges::one(part * size..(part + 1) * size);
                assert!(batches(reader.scan().rows(rows).filter(predicate)).unwrap().is_empty());
            });
        }
    });
    let reads = watched.reads();
    for (page, count) in reads.iter().filter(|((_, kind), _)| *kind != "data page") {
        let there = watched.pages.iter().filter(|p| (&p.column, p.kind) == (&page.0, page.1)).count();
        assert!(*count <= there, "{page:?} read {count} times of {there}");
    }
}

#[needs(goldens = "doris")]
#[test]
fn bitmaps_of_the_column_alone_are_read() {
    let root = goldens();
    let case = &Case::some(&root, "v012_bitmap_index")[0];
    let watched = Watched::open(case.bytes.clone(), &case.options());
    let has_bitmap =
        |name: &str| watched.pages.iter().any(|page| page.column == name && page.kind == "bitmap index page");
    let mut asked = 0;
    for column in case.schema.columns.iter().filter(|column| has_bitmap(&column.name)) {
        let rows = batches(watched.reader.scan().project([column.name.as_str()]).limit(1)).unwrap();
        let value = pilaster_core::Literal::from_array(rows[0].column(0), 0);
        watched.reads();
        if value.is_null() {
            continue;
        }
        let (found, reads) = watched.ask(col(column.name.as_str()).eq(value), &[column.name.as_str()]);
        assert!(found > 0);
        let of_bitmaps = |kind: &str| kind.starts_with("bitmap index");
        assert!(reads.keys().filter(|(_, kind)| of_bitmaps(kind)).all(|(name, _)| *name == column.name));
        asked += reads.keys().filter(|(_, kind)| of_bitmaps(kind)).count();
    }
    assert!(asked > 0);
}
