//! Redfile, with the options it has by default but the codec.

use std::fs::File;
use std::io::BufWriter;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use pilaster_core::source::FileSource;
use pilaster_redfile::metadata::Compression;
use pilaster_redfile::{RedfileReader, RedfileWriter, RedfileWriterOptions};

use super::dataset;
use crate::Result;
use crate::format::{Batches, BenchFormat, Codec};
use crate::table::Table;

pub struct Redfile;

fn open(path: &Path) -> Result<RedfileReader> {
    Ok(RedfileReader::open(Arc::new(FileSource::open(path)?))?)
}

fn compression(codec: Codec) -> Option<Compression> {
    match codec {
        Codec::None => Some(Compression::Uncompressed),
        Codec::Lz4 => None,
        Codec::Snappy => Some(Compression::Snappy),
        Codec::Zlib => Some(Compression::Gzip),
    }
}

impl BenchFormat for Redfile {
    fn name(&self) -> &'static str {
        "redfile"
    }

    /// It has no dictionaries.
    fn baseline(&self) -> &'static str {
        super::PLAIN_BASELINE
    }

    fn has(&self, codec: Codec) -> bool {
        compression(codec).is_some()
    }

    fn write(&self, table: &Table, path: &Path, codec: Codec) -> Result<()> {
        let compression = compression(codec).ok_or("redfile has no LZ4")?;
        let options = RedfileWriterOptions::default().with_codec(compression);
        let sink = BufWriter::with_capacity(1 << 16, File::create_new(path)?);
        let mut writer = RedfileWriter::try_new(sink, &table.schema, options)?;
        for batch in &table.batches {
            writer.write(batch)?;
        }
        let (sink, _) = writer.finish()?;
        sink.into_inner()?.sync_all()?;
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
