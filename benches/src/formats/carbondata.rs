//! A folder of CarbonData files as the SDK writes them, with the options it has by default but the compressor.

use std::ops::Range;
use std::path::Path;

use pilaster_carbondata::file::{CarbonWriterOptions, Compressor};
use pilaster_carbondata::table::{CarbonFolderWriter, CarbonTable, CarbonTableOptions};

use super::dataset;
use crate::Result;
use crate::format::{Batches, BenchFormat, Codec};
use crate::table::{KEY, Table};

pub struct CarbonFolder;

fn open(path: &Path) -> Result<CarbonTable> {
    Ok(CarbonTable::open(path, &CarbonTableOptions::default())?)
}

fn compressor(codec: Codec) -> Option<Compressor> {
    match codec {
        Codec::None | Codec::Lz4 => None,
        Codec::Snappy => Some(Compressor::Snappy),
        Codec::Zlib => Some(Compressor::Gzip),
    }
}

impl BenchFormat for CarbonFolder {
    fn name(&self) -> &'static str {
        "carbondata"
    }

    fn has(&self, codec: Codec) -> bool {
        compressor(codec).is_some()
    }

    fn write(&self, table: &Table, path: &Path, codec: Codec) -> Result<()> {
        let compressor = compressor(codec).ok_or("CarbonData always compresses")?;
        let options = CarbonWriterOptions::default().with_compressor(compressor).with_sort_columns([KEY]);
        let mut writer = CarbonFolderWriter::create(path, &table.schema, &options)?;
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
