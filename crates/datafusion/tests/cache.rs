//! A session opens a file once, until it changes.
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

use std::fs;
use std::sync::Arc;

use common::{Table, people};
use futures::TryStreamExt;
use pilaster_core::source::{CountingSource, FileSource};
use pilaster_core::{DatasetRef, Result};
use pilaster_datafusion::{Opener, SqlContext, SqlOptions};

/// Opens a file through a source that counts, and keeps the source for the test to look at.
#[derive(Debug, Default, Clone)]
struct CountingOpener(Arc<std::sync::Mutex<Vec<Arc<CountingSource>>>>);

impl Opener for CountingOpener {
    fn open(&self, path: &str, _table: Option<&str>) -> Result<DatasetRef> {
        let source = Arc::new(CountingSource::new(Arc::new(FileSource::open(path)?)));
        self.0.lock().unwrap().push(Arc::clone(&source));
        Ok(Arc::new(Table::open(source, people(3))?))
    }
}

impl CountingOpener {
    fn reads(&self) -> Vec<u64> {
        self.0.lock().unwrap().iter().map(|source| source.counts().reads).collect()
    }
}

#[tokio::test]
async fn the_second_query_reads_no_metadata_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.mem");
    fs::write(&path, "some bytes").unwrap();
    let opener = CountingOpener::default();
    let context = SqlContext::new(SqlOptions::default().with_opener(opener.clone()));
    let run = async |columns: &str| {
        let sql = format!("SELECT {columns} FROM '{}'", path.display());
        context.sql(&sql).await.unwrap().try_collect::<Vec<_>>().await.unwrap();
    };
    run("id").await;
    assert_eq!(opener.reads(), [2], "one read to open, one to scan");
    run("name").await;
    assert_eq!(opener.reads(), [3], "one more to scan");
    run("count(*)").await;
    assert_eq!(opener.reads(), [3], "a count is answered from what is known");

    fs::write(&path, "other bytes").unwrap();
    run("id").await;
    assert_eq!(opener.reads(), [3, 2], "a changed file is opened again");
}
