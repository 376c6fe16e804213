//! One Kudu CFile for each column.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use pilaster_kudu::cfile::{CFileWriterOptions, Compression};
use pilaster_kudu::cfile_set::{CFileSet, CFileSetOptions, CFileSetWriter, CFileSetWriterOptions};

use super::dataset;
use crate::Result;
use crate::format::{Batches, BenchFormat, Codec};
use crate::table::{KEY, Table};

pub struct CFileSetFormat;

fn open(path: &Path) -> Result<CFileSet> {
    Ok(CFileSet::open(&path.display().to_string(), CFileSetOptions::default())?)
}

impl BenchFormat for CFileSetFormat {
    fn name(&self) -> &'static str {
        "cfile-set"
    }

    fn write(&self, table: &Table, path: &Path, codec: Codec) -> Result<()> {
        let compression = match codec {
            Codec::None => Compression::None,
            Codec::Lz4 => Compression::Lz4,
            Codec::Snappy => Compression::Snappy,
            Codec::Zlib => Compression::Zlib,
        };
        let options = CFileSetWriterOptions::default()
            .with_column_options(CFileWriterOptions::default().with_compression(compression))
            .with_key(KEY);
        let mut writer = CFileSetWriter::create(path, Arc::clone(&table.schema), &options)?;
        for batch in &table.batches {
            writer.write(batch)?;
        }
        writer.finish()?;
        Ok(())
    }

    fn full_scan(&self, path: &Path) -> Result<Batches> {
        dataset::full_scan(&open(path)?)
    }

    fn one_column(&self, path: &Path, column: &str) -> Result<Batches> {
        dataset::one_column(&open(path)?, column)
    }

    fn key_range(&self, path: &Path, key: &str, range: Range<i64>) -> Result<Batches> {
        dataset::key_range(&open(path)?, key, range)
    }

    fn equal_text(&self, path: &Path, columns: [&str; 2], text: &str) -> Result<Batches> {
        dataset::equal_text(&open(path)?, columns, text)
    }
}
