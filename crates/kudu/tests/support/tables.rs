//! The rows that a real client saw, and the rows we give.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{DataType, SchemaRef};
use pilaster_core::{Dataset, LossLog};
use pilaster_kudu::store::{KuduStore, KuduStoreOptions};
use pilaster_kudu::tablet::KuduTable;
use serde_json::Value;

use super::cells;
use super::golden::json_lines;

/// Rows as texts.
pub type Rows = Vec<Vec<Option<String>>>;

/// A scan that a real client made: table, timestamp, file of rows.
pub struct Expected {
    pub table: String,
    pub as_of: Option<u64>,
    pub rows: PathBuf,
}

pub fn expectations(case: &Path) -> Vec<Expected> {
    let description: Value = serde_json::from_slice(&std::fs::read(case.join("case.json")).unwrap()).unwrap();
    let folder = case.join("expected");
    let text = |value: &Value| value.as_str().unwrap().to_string();
    let tables = description["tables"].as_array().unwrap().iter().map(|table| Expected {
        table: text(&table["name"]),
        as_of: None,
        rows: folder.join(text(&table["expected"])),
    });
    let snapshots = description["snapshots"].as_array().into_iter().flatten().map(|snapshot| Expected {
        table: text(&snapshot["table"]),
        as_of: Some(snapshot["timestamp"].as_u64().unwrap()),
        rows: folder.join(text(&snapshot["expected"])),
    });
    tables.chain(snapshots).collect()
}

/// Rows as texts, columns by name.
pub fn rows_of(batches: &[RecordBatch]) -> Rows {
    let mut rows = Vec::new();
    for batch in batches {
        let schema = batch.schema();
        let columns: Vec<_> = batch
            .columns()
            .iter()
            .zip(schema.fields())
            .map(|(array, field)| {
                let scale = match field.data_type() {
                    DataType::Decimal128(_, s) => *s as usize,
                    _ => 0,
                };
                cells::texts(array, scale)
            })
            .collect();
        rows.extend(
            (0..batch.num_rows()).map(|row| columns.iter().map(|column| column[row].clone()).collect()),
        );
    }
    rows
}

/// The rows of an expectation, columns as in `schema`.
pub fn expected_rows(expected: &Expected, schema: &SchemaRef) -> Rows {
    let of_row = |row: &Value| {
        let fields = schema.fields().iter();
        fields.map(|field| cells::expected(row, field.name(), field.data_type().is_floating())).collect()
    };
    json_lines(&expected.rows).iter().map(of_row).collect()
}

/// Opens a table of a folder; without a name the only one.
pub fn open(folder: &Path, name: Option<&str>, as_of: Option<u64>) -> Result<KuduTable, String> {
    open_store(folder)?.at(as_of).table(name).map_err(|error| error.to_string())
}

/// Opens a server's folder.
pub fn open_store(folder: &Path) -> Result<KuduStore, String> {
    KuduStore::open(&[folder.to_path_buf()], KuduStoreOptions::default()).map_err(|error| error.to_string())
}

/// Scans a table; damage stops the scan, or is skipped and noted.
pub fn scan(table: &KuduTable, losses: Option<&Arc<LossLog>>) -> Result<Rows, String> {
    let mut scan = table.scan();
    if let Some(losses) = losses {
        scan = scan.skip_damage(Arc::clone(losses));
    }
    let batches: Vec<_> = scan
        .read()
        .map_err(|error| error.to_string())?
        .collect::<Result<_, _>>()
        .map_err(|error| pilaster_core::Error::from(error).to_string())?;
    Ok(rows_of(&batches))
}

/// What is different, in few words.
pub fn compare(found: &Rows, wanted: &Rows) -> Result<usize, String> {
    if found.len() != wanted.len() {
        return Err(format!("{} rows instead of {}", found.len(), wanted.len()));
    }
    match found.iter().zip(wanted).position(|(found, wanted)| found != wanted) {
        Some(row) => Err(format!("row {row}: {:?} instead of {:?}", found[row], wanted[row])),
        None => Ok(found.len()),
    }
}
