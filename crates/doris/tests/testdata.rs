//! The tables of `testdata/doris`: their rows, and each of their segments as another reader sees it.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    missing_docs,
    reason = "tests compute with known values and stop at the first surprise"
)]

#[path = "support/key_models.rs"]
mod key_models;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use arrow_array::{Array, RecordBatch};
use arrow_cast::display::array_value_to_string;
use key_models::MODELS;
use pilaster_core::progress::Silent;
use pilaster_core::{Dataset, Limits, VerifyDepth};
use pilaster_doris::tablet::{TabletOptions, TabletReader, find_tablets};
use pilaster_testing::needs;
use serde_json::Value;

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/doris").join(name)
}

fn lines(path: &Path) -> Vec<Value> {
    fs::read_to_string(path).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The rows as JSON, by the words that Arrow has for cells.
fn rows(batch: &RecordBatch) -> Vec<Value> {
    let cell = |row: usize, column: &dyn Array, name: &str| {
        if column.is_null(row) {
            return Value::Null;
        }
        let text = array_value_to_string(column, row).unwrap();
        if name == "word" { Value::String(text) } else { serde_json::from_str(&text).unwrap() }
    };
    let schema = batch.schema();
    let row = |row: usize| {
        let fields = schema.fields().iter().zip(batch.columns());
        fields.map(|(field, column)| (field.name().clone(), cell(row, column, field.name()))).collect()
    };
    (0..batch.num_rows()).map(|number| Value::Object(row(number))).collect()
}

#[test]
fn tables_of_every_key_model_have_their_rows() {
    for model in MODELS {
        let folders = find_tablets(folder(model.name()), &Limits::default()).unwrap().tablets;
        assert_eq!(folders.len(), 1);
        let tablet = TabletReader::open(&folders[0], &TabletOptions::default()).unwrap();
        assert_eq!(tablet.verify(VerifyDepth::Values, &Silent).unwrap().findings, []);
        let found: Vec<Value> =
            tablet.scan().read().unwrap().flat_map(|batch| rows(&batch.unwrap())).collect();
        let mut found: Vec<String> = found.iter().map(Value::to_string).collect();
        let mut expected: Vec<String> =
            lines(&folder(model.name()).join("rows.jsonl")).iter().map(Value::to_string).collect();
        found.sort();
        expected.sort();
        assert_eq!(found, expected, "{model:?}");
    }
}

#[needs(program = "python3")]
#[test]
fn another_reader_sees_each_load_in_its_segment() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/independent/read_segment.py");
    for model in MODELS {
        let at = folder(model.name());
        let tablet = &find_tablets(&at, &Limits::default()).unwrap().tablets[0];
        let meta = tablet.meta(&Limits::default()).unwrap();
        let loaded = meta.rowsets.iter().filter(|rowset| rowset.num_rows > 0);
        let mut cells = 0;
        for (number, rowset) in loaded.enumerate() {
            let segment = tablet.files[&format!("{}_0.dat", rowset.id)].path();
            let load = at.join(format!("load-{number}.jsonl"));
            let output = Command::new("python3")
                .arg(&script)
                .args([segment, &at.join("schema.json"), &load])
                .output()
                .unwrap();
            let errors = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{}: {errors}", segment.display());
            let text = String::from_utf8(output.stdout).unwrap();
            cells += text.split_whitespace().next().unwrap().parse::<usize>().unwrap();
        }
        let loads: usize = (0..3).map(|number| lines(&at.join(format!("load-{number}.jsonl"))).len()).sum();
        assert_eq!(cells, loads * model.schema().columns.len(), "{model:?}");
    }
}
