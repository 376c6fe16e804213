use std::sync::atomic::{AtomicUsize, Ordering};

use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, Int32Array, ListArray, StringViewArray};
use arrow_schema::{DataType, Field, Schema};
use proptest::prelude::*;

use super::*;

/// What a row is: its key, the number with which it came, and a text.
type Row = (Option<i32>, i32, String);

fn schema() -> SchemaRef {
    let item = Arc::new(Field::new_list_field(DataType::Utf8View, true));
    Arc::new(Schema::new(vec![
        Field::new("key", DataType::Int32, true),
        Field::new("number", DataType::Int32, false),
        Field::new("texts", DataType::List(item), true),
    ]))
}

fn batch(rows: &[Row]) -> RecordBatch {
    let keys: Int32Array = rows.iter().map(|row| row.0).collect();
    let numbers: Int32Array = rows.iter().map(|row| Some(row.1)).collect();
    let texts: StringViewArray = rows.iter().map(|row| Some(row.2.as_str())).collect();
    let DataType::List(item) = schema().field(2).data_type().clone() else { unreachable!() };
    let offsets = arrow_buffer::OffsetBuffer::from_lengths(rows.iter().map(|_| 1));
    let lists = ListArray::new(item, offsets, Arc::new(texts), None);
    let columns: Vec<ArrayRef> = vec![Arc::new(keys), Arc::new(numbers), Arc::new(lists)];
    RecordBatch::try_new(schema(), columns).unwrap()
}

fn by_key(batch: &RecordBatch, keys: &mut Keys) -> Result<()> {
    batch.column(0).as_primitive::<Int32Type>().iter().try_for_each(|key| {
        keys.push(|bytes| {
            bytes.push(u8::from(key.is_some()));
            bytes.extend(key.into_iter().flat_map(|key| (key.cast_unsigned() ^ 0x8000_0000).to_be_bytes()));
            Ok(())
        })
    })
}

fn rows_of(batch: &RecordBatch) -> Vec<Row> {
    let keys = batch.column(0).as_primitive::<Int32Type>().iter();
    let numbers = batch.column(1).as_primitive::<Int32Type>().values().iter();
    let texts = batch.column(2).as_list::<i32>().iter();
    let text = |list: Option<ArrayRef>| list.unwrap().as_string_view().value(0).to_string();
    keys.zip(numbers).zip(texts).map(|((key, number), list)| (key, *number, text(list))).collect()
}

fn sorted(rows: &[Row], per_batch: usize, memory: usize) -> (Vec<Row>, usize) {
    let options = SortOptions::new(std::env::temp_dir()).with_memory_bytes(memory);
    let mut sorter = Sorter::new(schema(), options, by_key);
    // Slices of one batch, as a scan gives them: what they point at begins before them and ends behind them.
    let whole = batch(rows);
    for start in (0..rows.len()).step_by(per_batch) {
        sorter.push(&whole.slice(start, per_batch.min(rows.len() - start))).unwrap();
    }
    let files = sorter.runs.open();
    let found = sorter.finish().unwrap();
    assert_eq!(found.schema(), &schema());
    (found.flat_map(|batch| rows_of(&batch.unwrap())).collect(), files)
}

/// Rows with few keys, so that many are equal.
fn some_rows(count: i32) -> Vec<Row> {
    let mix = |n: i32| n.wrapping_mul(0x9e37_79b1_u32.cast_signed()).unsigned_abs() >> 8;
    let key = |n: i32| (mix(n) % 11 > 0).then(|| i32::try_from(mix(n) % 97).unwrap() - 40);
    (0..count).map(|n| (key(n), n, "x".repeat(mix(n + 7) as usize % 40))).collect()
}

#[test]
fn rows_of_equal_keys_stay_in_their_order_however_little_memory_there_is() {
    let rows = some_rows(20_000);
    let mut expected = rows.clone();
    expected.sort_by_key(|row| row.0);
    // With a byte of memory there are 199 runs, of which 32 become one again and again.
    for (memory, files) in [(usize::MAX, 0..=0), (1 << 20, 1..=2), (100_000, 10..=31), (1, 10..=20)] {
        let (found, open) = sorted(&rows, 100, memory);
        assert!(files.contains(&open), "{open} open files with {memory} bytes");
        assert!(found == expected, "with {memory} bytes");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn runs_give_what_memory_gives(
        keys in prop::collection::vec((prop::option::of(-3i32..3), 0usize..200), 0..300),
        per_batch in 1usize..50,
        memory in 1usize..30_000,
    ) {
        let row = |(number, (key, length)): (i32, &(Option<i32>, usize))| (*key, number, "é".repeat(*length));
        let rows: Vec<Row> = (0..).zip(&keys).map(row).collect();
        let mut expected = rows.clone();
        expected.sort_by_key(|row| row.0);
        prop_assert_eq!(&sorted(&rows, per_batch, memory).0, &expected);
        prop_assert_eq!(&sorted(&rows, per_batch, usize::MAX).0, &expected);
    }

    #[test]
    fn keys_of_any_bytes_compare_as_bytes(mut keys in prop::collection::vec(prop::collection::vec(0u8..3, 0..12), 1..40)) {
        let schema = Arc::new(Schema::new(vec![Field::new("key", DataType::Binary, false)]));
        let mut sorter = Sorter::new(Arc::clone(&schema), SortOptions::new("."), |batch, to| {
            batch.column(0).as_binary::<i32>().iter().flatten().for_each(|key| to.push_bytes(key));
            Ok(())
        });
        let column = arrow_array::BinaryArray::from_iter_values(&keys);
        sorter.push(&RecordBatch::try_new(schema, vec![Arc::new(column)]).unwrap()).unwrap();
        let found = sorter.finish().unwrap().next().unwrap().unwrap();
        keys.sort();
        prop_assert_eq!(found.column(0).as_binary::<i32>().iter().flatten().collect::<Vec<_>>(), keys);
    }
}

#[test]
fn batches_are_small_where_rows_are_large() {
    let rows: Vec<Row> = (0..40).map(|n| (Some(n % 7), n, "y".repeat(200_000))).collect();
    let options = SortOptions::new(std::env::temp_dir()).with_memory_bytes(2 << 20);
    let mut sorter = Sorter::new(schema(), options, by_key);
    rows.chunks(4).for_each(|rows| sorter.push(&batch(rows)).unwrap());
    let mut numbers = Vec::new();
    for batch in sorter.finish().unwrap() {
        let batch = batch.unwrap();
        assert!(batch.num_rows() < 3, "{} rows of 200,000 bytes at once", batch.num_rows());
        assert!(size::bytes(batch.column(2)) < 500_000);
        numbers.extend(rows_of(&batch).into_iter().map(|row| (row.0, row.1)));
    }
    assert!(numbers.is_sorted() && numbers.len() == 40);
}

#[test]
fn rows_that_came_in_order_are_read_run_by_run() {
    let rows: Vec<Row> = (0..10_000).map(|n| (Some(n), n, String::new())).collect();
    let options = SortOptions::new(std::env::temp_dir()).with_memory_bytes(100_000);
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    let mut sorter = Sorter::new(schema(), options, move |batch, keys| {
        counted.fetch_add(1, Ordering::Relaxed);
        by_key(batch, keys)
    });
    rows.chunks(100).for_each(|rows| sorter.push(&batch(rows)).unwrap());
    assert!(sorter.spilled_runs() > 5);
    let mut found = sorter.finish().unwrap();
    let before = calls.load(Ordering::Relaxed);
    let mut first = Vec::new();
    while first.len() < 100 {
        first.extend(rows_of(&found.next().unwrap().unwrap()));
    }
    // Of each batch that is read the keys are made: of the other runs none was read.
    let read = calls.load(Ordering::Relaxed) - before;
    assert!((1..4).contains(&read), "{read} batches read for {} rows", first.len());
    assert_eq!(first, rows[..first.len()]);
}

#[test]
fn no_file_is_left_and_none_can_be_seen() {
    let folder = tempfile::tempdir().unwrap();
    let options = SortOptions::new(folder.path()).with_memory_bytes(10_000);
    let mut sorter = Sorter::new(schema(), options, by_key);
    some_rows(2_000).chunks(50).for_each(|rows| sorter.push(&batch(rows)).unwrap());
    assert!(sorter.spilled_runs() > 1);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    let mut rows = sorter.finish().unwrap();
    rows.next().unwrap().unwrap();
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn a_folder_that_is_not_there_is_named() {
    let options = SortOptions::new("/no/such/folder").with_memory_bytes(1);
    let mut sorter = Sorter::new(schema(), options, by_key);
    sorter.push(&batch(&some_rows(2))).unwrap();
    let error = sorter.push(&batch(&some_rows(2))).unwrap_err();
    assert!(matches!(error.kind(), crate::ErrorKind::Io(_)), "{error}");
    assert!(error.to_string().starts_with("/no/such/folder: a temporary file of sorted rows: "), "{error}");
}

#[test]
fn rows_without_columns_and_no_rows_at_all_are_sorted_too() {
    let schema = Arc::new(Schema::empty());
    let options = SortOptions::new(std::env::temp_dir()).with_memory_bytes(1);
    let no_keys = |batch: &RecordBatch, keys: &mut Keys| {
        (0..batch.num_rows()).for_each(|_| keys.push_bytes(&[]));
        Ok(())
    };
    let mut sorter = Sorter::new(Arc::clone(&schema), options.clone(), no_keys);
    for _ in 0..3 {
        sorter.push(&batch_of(&schema, Vec::new(), 5).unwrap()).unwrap();
    }
    assert_eq!(sorter.finish().unwrap().map(|batch| batch.unwrap().num_rows()).sum::<usize>(), 15);
    assert_eq!(Sorter::new(schema, options, no_keys).finish().unwrap().count(), 0);
}

#[test]
fn keys_that_are_too_few_are_refused() {
    let mut sorter = Sorter::new(schema(), SortOptions::new("."), |_, _| Ok(()));
    assert!(sorter.push(&batch(&some_rows(2))).unwrap_err().to_string().contains("0 keys for 2 rows"));
}
