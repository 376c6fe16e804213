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
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use common::{Table, people};
use datafusion::arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch, StringArray};
use datafusion::arrow::datatypes::{Int64Type, SchemaRef};
use futures::TryStreamExt;
use pilaster_core::source::{CountingSource, FileSource};
use pilaster_core::{Dataset, DatasetRef, Result};
use pilaster_datafusion::{Opener, SqlContext, SqlOptions};
use pilaster_kudu::cfile::{CFileWriterOptions, Encoding};
use pilaster_kudu::cfile_set::{CFileSet, CFileSetOptions, CFileSetWriter, CFileSetWriterOptions};
use pilaster_testing::ReadRecorder;

/// Opens a file through a source that counts, and keeps the source for the test to look at.
#[derive(Debug, Default, Clone)]
struct CountingOpener(Arc<Mutex<Vec<Arc<CountingSource>>>>);

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

const ROWS: i64 = 50_000;

/// Opens a CFile set and notes what is read of each of its files.
#[derive(Debug, Default, Clone)]
struct SetOpener(Arc<Mutex<Vec<Arc<ReadRecorder>>>>);

impl Opener for SetOpener {
    fn open(&self, path: &str, _table: Option<&str>) -> Result<DatasetRef> {
        let (folder, files) = (PathBuf::from(path), Arc::clone(&self.0));
        let set = CFileSet::open_with(path, CFileSetOptions::default(), move |file| {
            let source = Arc::new(ReadRecorder::new(Arc::new(FileSource::open(folder.join(file))?)));
            files.lock().unwrap().push(Arc::clone(&source));
            Ok(source)
        })?;
        Ok(Arc::new(set))
    }
}

/// A key and words in a dictionary, in small blocks under indexes of several levels.
fn write_set(folder: &Path) {
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values((0..ROWS).map(|row| row * 2)));
    let words = (0..ROWS).map(|row| format!("word {}", row * row % 97 % 60));
    let words: ArrayRef = Arc::new(StringArray::from_iter_values(words));
    let batch = RecordBatch::try_from_iter([("id", ids), ("word", words)]).unwrap();
    let blocks = CFileWriterOptions::default().with_block_size_bytes(1024).with_index_block_size_bytes(512);
    let options = CFileSetWriterOptions::default()
        .with_key("id")
        .with_column_options(blocks.with_dictionary_size_bytes(4096))
        .with_encoding("id", Encoding::Plain)
        .with_encoding("word", Encoding::Dict);
    let schema: SchemaRef = batch.schema();
    let mut writer = CFileSetWriter::create(folder, schema, &options).unwrap();
    writer.write(&batch).unwrap();
    writer.finish().unwrap();
}

#[tokio::test]
async fn the_second_query_over_cfiles_reads_data_blocks_only() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().join("set");
    write_set(&folder);
    let pages: Vec<_> = CFileSet::open(&folder, CFileSetOptions::default())
        .unwrap()
        .pages()
        .unwrap()
        .into_iter()
        .filter(|page| page.rows.is_some())
        .map(|page| page.offset..page.offset + page.bytes)
        .collect();
    let opener = SetOpener::default();
    let context = SqlContext::new(SqlOptions::default().with_opener(opener.clone()));
    let run = async |select: &str, condition: &str| {
        let sql = format!("{select} FROM '{}' {condition}", folder.display());
        context.sql(&sql).await.unwrap().try_collect::<Vec<_>>().await.unwrap()
    };
    let read = || opener.0.lock().unwrap().iter().flat_map(|source| source.take()).collect::<Vec<_>>();

    // Bounds and counts are answered from what opening has read.
    let bounds = run("SELECT min(id), max(id), count(*)", "").await;
    let cells = bounds[0].columns().iter().map(|column| column.as_primitive::<Int64Type>().value(0));
    assert_eq!(cells.collect::<Vec<_>>(), [0, 2 * (ROWS - 1), ROWS]);
    assert!(read().iter().all(|range| !pages.contains(range)), "no data block is read for bounds");

    for (select, condition) in
        [("SELECT count(word), sum(id)", ""), ("SELECT word", "WHERE id >= 40000 AND id < 40200")]
    {
        let first = run(select, condition).await;
        assert!(!read().is_empty());
        let files = opener.0.lock().unwrap().len();
        assert_eq!(run(select, condition).await, first);
        assert_eq!(opener.0.lock().unwrap().len(), files, "files that are open are not opened again");
        let again = read();
        assert!(!again.is_empty());
        for range in again {
            assert!(pages.contains(&range), "{select} {condition} reads {range:?}, which is no data block");
        }
    }
    run("SELECT min(id), max(id), count(*)", "").await;
    assert_eq!(read(), [], "nothing is read for bounds that are known");
}
