//! Runs `tests/slt/*.slt`: SQL with its expected answers, over tables in memory and files in a folder.
#![allow(
    dead_code,
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests compute with known values, and share helpers that not all of them use"
)]

mod common;

use std::path::Path;
use std::sync::Arc;

use common::{Table, people};
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use futures::TryStreamExt;
use pilaster_core::{DatasetRef, Error, Result};
use pilaster_datafusion::{Opener, SqlContext, SqlOptions};
use sqllogictest::{AsyncDB, DBOutput, DefaultColumnType, Runner};

/// Opens `people.mem` and `store#people` as tables in memory, everything else as usual.
#[derive(Debug)]
struct TestOpener;

impl Opener for TestOpener {
    fn open(&self, path: &str, table: Option<&str>) -> Result<DatasetRef> {
        match (path, table) {
            ("people.mem", None) | ("./store", Some("people")) => {
                Ok(Arc::new(Table::new("people.mem", people(10), 4)))
            }
            ("./store", _) => {
                Err(Error::invalid("holds several tables; choose one of: people").at(path, 0, ""))
            }
            ("broken.mem", _) => Err(Error::corrupt("crc 1", "crc 2").at(path, 7, "footer")),
            _ => pilaster::open(path),
        }
    }
}

struct Database(SqlContext);

#[async_trait::async_trait]
impl AsyncDB for Database {
    type Error = Error;
    type ColumnType = DefaultColumnType;

    async fn run(&mut self, sql: &str) -> Result<DBOutput<DefaultColumnType>> {
        let stream = self.0.sql(sql).await?;
        let columns = stream.schema().fields().len();
        let batches: Vec<RecordBatch> =
            stream.try_collect().await.map_err(pilaster_datafusion::from_datafusion)?;
        if columns == 0 {
            return Ok(DBOutput::StatementComplete(0));
        }
        let mut rows = Vec::new();
        for batch in &batches {
            let options = FormatOptions::default().with_null("NULL");
            let columns = batch
                .columns()
                .iter()
                .map(|column| ArrayFormatter::try_new(column, &options))
                .collect::<Result<Vec<_>, _>>()?;
            rows.extend(
                (0..batch.num_rows()).map(|row| columns.iter().map(|c| c.value(row).to_string()).collect()),
            );
        }
        Ok(DBOutput::Rows { types: vec![DefaultColumnType::Any; columns], rows })
    }

    async fn shutdown(&mut self) {}
}

#[tokio::test(flavor = "multi_thread")]
async fn every_statement_answers_as_written() {
    let folder = tempfile::tempdir().unwrap();
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/slt");
    let mut scripts: Vec<_> =
        std::fs::read_dir(scripts).unwrap().map(|entry| entry.unwrap().path()).collect();
    scripts.sort();
    assert!(!scripts.is_empty());
    for script in scripts {
        let mut runner = Runner::new(|| async {
            Ok(Database(SqlContext::new(SqlOptions::default().with_opener(TestOpener).with_threads(3))))
        });
        runner.set_var("FOLDER".into(), folder.path().display().to_string());
        if let Err(error) = runner.run_file_async(&script).await {
            panic!("{error}");
        }
    }
}
