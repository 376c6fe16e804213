//! LIKE, answered by every format: what a scan leaves out never changes an answer.
#![cfg(all(feature = "carbondata", feature = "kudu", feature = "redfile"))]
#![allow(
    clippy::arithmetic_side_effects,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    missing_docs,
    reason = "tests compute with known values and stop at the first surprise"
)]

use std::collections::BTreeSet;
use std::fs;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, RecordBatch, StringArray};
use arrow_cast::cast;
use arrow_schema::DataType;
use arrow_select::concat::concat_batches;
use arrow_select::filter::filter_record_batch;
use pilaster::store::open_store;
use pilaster::{DatasetRef, OpenOptions, Predicate, col, lit};

/// Every sample table of the repository.
fn samples() -> Vec<DatasetRef> {
    let options = OpenOptions::default();
    let mut samples = Vec::new();
    for (system, folder) in [("kudu", "."), ("carbondata", "sdk"), ("carbondata", "table"), ("redfile", ".")]
    {
        let folder = pilaster_testing::testdata(system).join(folder);
        for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path().display().to_string()) {
            match open_store(&[&path], &options) {
                Some(Ok(store)) => {
                    samples.extend(store.tables().iter().filter_map(|table| store.table(Some(table)).ok()));
                }
                Some(Err(_)) => {}
                None => samples.extend(options.open(&path)),
            }
        }
    }
    samples
}

fn read(dataset: &DatasetRef, predicate: Option<&Predicate>) -> RecordBatch {
    let scan = dataset.scan();
    let scan = match predicate {
        Some(predicate) => scan.filter(predicate.clone()),
        None => scan,
    };
    let batches: Vec<_> = scan.read().unwrap().map(|batch| batch.unwrap()).collect();
    concat_batches(&dataset.schema(), &batches).unwrap()
}

fn patterns(texts: &StringArray) -> BTreeSet<String> {
    let mut patterns = BTreeSet::from(["%".to_string(), "_%".to_string(), "a%".to_string()]);
    let step = (texts.len() / 4).max(1);
    for text in (0..texts.len()).step_by(step).filter(|row| texts.is_valid(*row)).map(|row| texts.value(row))
    {
        let part = |skip: usize, take: usize| -> String {
            let escaped = |c: char| if "%_\\".contains(c) { format!("\\{c}") } else { c.to_string() };
            text.chars().skip(skip).take(take).map(escaped).collect()
        };
        patterns.extend([part(0, 2) + "%", format!("%{}%", part(1, 3)), part(0, 1) + "_%", part(0, 99)]);
    }
    patterns
}

#[test]
fn a_filter_by_pattern_gives_the_rows_that_match() {
    let (mut asked, mut matched, mut formats) = (0, 0, BTreeSet::new());
    for dataset in samples() {
        let rows = read(&dataset, None);
        let schema = rows.schema();
        let texts = schema.fields().iter().enumerate().filter(|(_, field)| {
            matches!(field.data_type(), DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
        });
        for (number, field) in texts {
            let column = cast(rows.column(number), &DataType::Utf8).unwrap();
            for pattern in patterns(column.as_string()) {
                let like = col(field.name()).like(lit(pattern.as_str()));
                for predicate in [like.clone(), Predicate::Not(Box::new(like))] {
                    let selected = predicate.bind(&schema).unwrap().evaluate(&rows).unwrap();
                    let expected = filter_record_batch(&rows, &selected).unwrap();
                    let found = read(&dataset, Some(&predicate));
                    assert_eq!(found, expected, "{}: {predicate}", dataset.name());
                    asked += 1;
                    matched += found.num_rows();
                }
            }
        }
        formats.insert(dataset.format());
    }
    assert!(asked > 300 && matched > 10_000 && formats.len() >= 3, "{asked}, {matched}, {formats:?}");
}

#[test]
fn a_pattern_is_for_texts() {
    let people = "id,name\n1,a\n";
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("people.csv");
    fs::write(&path, people).unwrap();
    let dataset = pilaster::open(&path.display().to_string()).unwrap();
    let schema = Arc::clone(&dataset.schema());
    let error = col("id").like(lit("1%")).bind(&schema).unwrap_err().to_string();
    assert!(error.contains("column \"id\" is of type Int64"), "{error}");
}
