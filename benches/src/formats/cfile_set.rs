//! One Kudu CFile for each column.

use std::path::Path;
use std::sync::Arc;

use pilaster_core::Dataset;
use pilaster_kudu::cfile::{CFileWriterOptions, Compression};
use pilaster_kudu::cfile_set::{CFileSet, CFileSetOptions, CFileSetWriter, CFileSetWriterOptions};

use super::dataset::DatasetFormat;
use crate::Result;
use crate::format::Codec;
use crate::table::{KEY, Table};

pub struct CFileSetFormat;

impl DatasetFormat for CFileSetFormat {
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

    fn open(&self, path: &Path) -> Result<Box<dyn Dataset>> {
        Ok(Box::new(CFileSet::open(path, CFileSetOptions::default())?))
    }
}
