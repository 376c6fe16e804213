//! Days before 1582-10-15 leave as CarbonData shows them, and go back as they were.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    reason = "tests compute with known values"
)]

mod support;

use std::path::Path;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Date32Type, Int64Type};
use arrow_array::{
    Array, ArrayRef, Date32Array, Int64Array, ListArray, RecordBatch, StructArray, TimestampMillisecondArray,
};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{DataType, Field, Fields};
use arrow_select::concat::concat_batches;
use arrow_select::filter::filter_record_batch;
use arrow_select::take::take_record_batch;
use pilaster_carbondata::file::{
    Calendar, CarbonFileOptions, CarbonFileReader, CarbonFileWriter, CarbonWriterOptions,
};
use pilaster_carbondata::table::{
    CarbonTable, CarbonTableOptions, CarbonTableWriter, CarbonTableWriterOptions, compact,
};
use pilaster_core::progress::Silent;
use pilaster_core::{Dataset, Literal, VerifyDepth, col};
use support::tables::whole;
use support::{GoldenFile, Numbers, batches, memory, testdata};

const DAY: i64 = 86_400_000;
/// 1582-10-15
const AGREED: i32 = -141_427;
/// What Java's calendar has for 0001-01-01, and what others do.
const FIRST: (i32, i32) = (-719_164, -719_162);
/// What Java's calendar has for 1500-02-29, which is no day of others.
const JULIAN_LEAP_DAY: i32 = -171_596;

fn open(folder: &Path, calendar: Calendar) -> CarbonTable {
    CarbonTable::open(folder, &CarbonTableOptions::default().with_calendar(calendar)).unwrap()
}

fn without_nulls(values: &ArrayRef) -> ArrayRef {
    let data = values.to_data().into_builder().nulls(None).build().unwrap();
    arrow_array::make_array(data)
}

fn list(values: ArrayRef) -> ArrayRef {
    let offsets = OffsetBuffer::from_lengths(std::iter::repeat_n(1, values.len()));
    let item = Arc::new(Field::new("element", values.data_type().clone(), true));
    Arc::new(ListArray::new(item, offsets, values, None))
}

fn structure(values: ArrayRef) -> ArrayRef {
    let fields = Fields::from(vec![Field::new("inside", values.data_type().clone(), true)]);
    Arc::new(StructArray::new(fields, vec![values], None))
}

/// Rows with these days everywhere that days and times can be.
fn rows_of(days: &[Option<i32>]) -> RecordBatch {
    let dates: ArrayRef = Arc::new(Date32Array::from(days.to_vec()));
    let times = days.iter().enumerate().map(|(row, day)| day.map(|day| i64::from(day) * DAY + row as i64));
    let times = TimestampMillisecondArray::from_iter(times).with_timezone("UTC");
    let times: ArrayRef = Arc::new(times);
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..days.len() as i64));
    let columns = [
        ("n", numbers),
        ("d", Arc::clone(&dates)),
        ("t", Arc::clone(&times)),
        // A list of one null is null to CarbonData.
        ("list", list(without_nulls(&dates))),
        ("parts", structure(without_nulls(&times))),
        ("p", dates),
    ];
    RecordBatch::try_from_iter_with_nullable(columns.map(|(name, column)| (name, column, true))).unwrap()
}

/// Days on both sides of the change, all of them in both calendars.
fn some_days(numbers: &mut Numbers, count: u64) -> Vec<Option<i32>> {
    let day = |numbers: &mut Numbers| match numbers.below(4) {
        0 => AGREED - 11 - numbers.below(600) as i32,
        1 => AGREED + numbers.below(600) as i32,
        _ => FIRST.1 + numbers.below(700_000) as i32,
    };
    let kept = |day: &i32| !(AGREED - 10..AGREED).contains(day);
    (0..count)
        .map(|_| {
            let day = std::iter::repeat_with(|| day(numbers)).find(kept);
            day.filter(|_| numbers.below(8) > 0)
        })
        .collect()
}

/// In the order of `n`.
fn sorted(batch: &RecordBatch) -> RecordBatch {
    let keys = batch.column_by_name("n").unwrap();
    let order = arrow_ord::sort::sort_to_indices(keys, None, None).unwrap();
    take_record_batch(batch, &order).unwrap()
}

fn options() -> CarbonTableWriterOptions {
    let files = CarbonWriterOptions::default()
        .with_page_rows(40)
        .with_blocklet_bytes(4000)
        .with_sort_columns(["d", "t"]);
    CarbonTableWriterOptions::default().with_files(files).with_partition_columns(["p"])
}

fn create(folder: &Path, batch: &RecordBatch, options: CarbonTableWriterOptions) {
    let mut writer = CarbonTableWriter::create(folder, &batch.schema(), options).unwrap();
    writer.write(batch).unwrap();
    writer.finish().unwrap();
}

#[test]
fn days_that_were_written_come_back_and_prune() {
    let mut numbers = Numbers(7);
    let mut days = some_days(&mut numbers, 25);
    let few = days.clone();
    days.extend((0..600).map(|_| few[numbers.below(25) as usize]));
    let batch = rows_of(&days);
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("t");
    create(&folder, &batch, options());
    let mut writer = CarbonTableWriter::append(&folder, options()).unwrap();
    let more = rows_of(&some_days(&mut numbers, 20));
    writer.write(&more).unwrap();
    writer.finish().unwrap();
    let table = open(&folder, Calendar::Shown);
    assert_eq!(table.verify(VerifyDepth::Values, &Silent).unwrap().findings, []);
    let read = whole(&table);
    let mut both = [&batch, &more].map(support::rows::rows).concat();
    both.sort();
    let found = support::rows::rows(&read);
    assert_eq!(found.len(), both.len());
    found.iter().zip(&both).for_each(|(found, written)| assert_eq!(found, written));
    for name in ["d", "t", "p"] {
        let column = read.column_by_name(name).unwrap();
        for row in 0..60 {
            let value = || Literal::from_array(column.as_ref(), row);
            for predicate in [
                col(name).lt(value()),
                col(name).lt_eq(value()),
                col(name).eq(value()),
                col(name).gt_eq(value()),
                col(name).gt(value()),
            ] {
                let mask = predicate.bind(&read.schema()).unwrap().evaluate(&read).unwrap();
                let found = batches(table.scan().filter(predicate.clone())).unwrap();
                let found = concat_batches(&read.schema(), &found).unwrap();
                assert_eq!(found, filter_record_batch(&read, &mask).unwrap(), "{predicate}");
            }
        }
    }
}

/// The numbers are those that Java's calendar has, and go from file to file as they are.
#[test]
fn stored_days_are_those_of_java() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("t");
    let shown = rows_of(&[Some(FIRST.1), Some(0), None, Some(AGREED), Some(AGREED - 11)]);
    create(&folder, &shown, options());
    let days = |calendar| {
        let batch = sorted(&whole(&open(&folder, calendar)));
        ["d", "p"].map(|name| {
            batch.column_by_name(name).unwrap().as_primitive::<Date32Type>().iter().collect::<Vec<_>>()
        })
    };
    let stored = vec![Some(FIRST.0), Some(0), None, Some(AGREED), Some(AGREED - 1)];
    assert_eq!(days(Calendar::Stored), [stored.clone(), stored]);
    let expected = vec![Some(FIRST.1), Some(0), None, Some(AGREED), Some(AGREED - 11)];
    assert_eq!(days(Calendar::Shown), [expected.clone(), expected]);
    assert!(folder.join("p=0001-01-01").is_dir() && folder.join("p=1582-10-04").is_dir());
    // A day that only Java's calendar has: only the numbers can say it.
    let files = CarbonWriterOptions::default().with_calendar(Calendar::Stored);
    let mut writer = CarbonTableWriter::append(&folder, options().with_files(files)).unwrap();
    writer.write(&rows_of(&[Some(JULIAN_LEAP_DAY), Some(JULIAN_LEAP_DAY + 1)])).unwrap();
    writer.finish().unwrap();
    assert!(folder.join("p=1500-02-29").is_dir() && folder.join("p=1500-03-01").is_dir());
    for _ in 0..2 {
        let numbers = whole(&open(&folder, Calendar::Stored));
        let of = |batch: &RecordBatch, name: &str| {
            let column = batch.column_by_name(name).unwrap().as_primitive::<Date32Type>();
            let mut all: Vec<_> = column
                .iter()
                .flatten()
                .filter(|day| *day < AGREED && *day > FIRST.1 && *day < AGREED - 20)
                .collect();
            all.sort_unstable();
            all
        };
        for name in ["d", "p"] {
            assert_eq!(of(&numbers, name), [JULIAN_LEAP_DAY, JULIAN_LEAP_DAY + 1], "{name}");
            let shown = of(&whole(&open(&folder, Calendar::Shown)), name);
            assert_eq!(shown, [-171_605, -171_605], "{name}");
            // A filter on the day they are given as finds both.
            let filter = col(name).eq(Literal::from_array(&Date32Array::from(vec![-171_605]), 0));
            let found = batches(open(&folder, Calendar::Shown).scan().filter(filter)).unwrap();
            assert_eq!(found.iter().map(RecordBatch::num_rows).sum::<usize>(), 2);
        }
        compact(&folder, None, options()).unwrap();
    }
}

#[test]
fn days_that_are_not_in_the_calendar_are_refused() {
    let place = tempfile::tempdir().unwrap();
    for day in [AGREED - 10, AGREED - 1] {
        let folder = place.path().join("t");
        let batch = rows_of(&[Some(day)]).project(&[0, 1]).unwrap();
        let mut writer =
            CarbonTableWriter::create(&folder, &batch.schema(), CarbonTableWriterOptions::default()).unwrap();
        let error = writer.write(&batch).and_then(|()| writer.finish().map(drop)).unwrap_err();
        assert!(error.to_string().contains("is not in CarbonData's calendar"), "{error}");
        assert!(!folder.exists());
    }
}

/// The SDK's own file of such days, read alone: what it shows is in the golden test; here the numbers are.
#[test]
fn a_file_gives_its_numbers_on_request() {
    let golden = GoldenFile::all(&testdata())
        .into_iter()
        .find(|golden| golden.case.ends_with("datetime_edges"))
        .unwrap();
    let options = CarbonFileOptions::default().with_calendar(Calendar::Stored);
    let file = CarbonFileReader::open_with_options(support::source(&golden.data), &options).unwrap();
    let batch = concat_batches(&file.schema(), &batches(file.scan()).unwrap()).unwrap();
    let days = batch.column_by_name("d").unwrap().as_primitive::<Date32Type>();
    assert_eq!((days.value(0), days.value(1), days.value(2)), (FIRST.0, AGREED - 1, AGREED));
    let file = CarbonFileReader::open(support::source(&golden.data)).unwrap();
    let least = file.column_statistics().unwrap()[1].min.clone();
    assert!(least.is_none_or(|least| least.as_primitive::<Date32Type>().value(0) == FIRST.1));
    // Written again, the file has the same numbers.
    let batch = concat_batches(&file.schema(), &batches(file.scan()).unwrap()).unwrap();
    let mut writer =
        CarbonFileWriter::try_new(Vec::new(), &batch.schema(), &CarbonWriterOptions::default()).unwrap();
    writer.write(&batch).unwrap();
    let (bytes, _, _) = writer.finish().unwrap();
    let again = CarbonFileReader::open_with_options(memory("again", bytes), &options).unwrap();
    let again = concat_batches(&again.schema(), &batches(again.scan()).unwrap()).unwrap();
    assert_eq!(again.column_by_name("d").unwrap().as_primitive::<Date32Type>(), days);
    assert!(
        batch.column(0).data_type() == &DataType::Int32
            || batch.column(0).as_primitive_opt::<Int64Type>().is_some()
    );
}
