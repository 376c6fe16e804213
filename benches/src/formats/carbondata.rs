//! A folder of CarbonData files as the SDK writes them, with the options it has by default but the compressor.

use std::path::Path;

use pilaster_carbondata::file::{CarbonWriterOptions, Compressor};
use pilaster_carbondata::table::{CarbonFolderWriter, CarbonTable, CarbonTableOptions};
use pilaster_core::Dataset;

use super::dataset::DatasetFormat;
use crate::Result;
use crate::format::Codec;
use crate::table::{KEY, Table};

pub struct CarbonFolder;

fn compressor(codec: Codec) -> Option<Compressor> {
    match codec {
        Codec::None | Codec::Lz4 => None,
        Codec::Snappy => Some(Compressor::Snappy),
        Codec::Zlib => Some(Compressor::Gzip),
    }
}

impl DatasetFormat for CarbonFolder {
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

    fn open(&self, path: &Path) -> Result<Box<dyn Dataset>> {
        Ok(Box::new(CarbonTable::open(path, &CarbonTableOptions::default())?))
    }
}
