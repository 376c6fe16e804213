//! Redfile, with the options it has by default but the codec.

use std::fs::File;
use std::io::BufWriter;
use std::path::Path;
use std::sync::Arc;

use pilaster_core::Dataset;
use pilaster_core::source::FileSource;
use pilaster_redfile::metadata::Compression;
use pilaster_redfile::{RedfileReader, RedfileWriter, RedfileWriterOptions};

use super::dataset::DatasetFormat;
use crate::Result;
use crate::format::Codec;
use crate::table::Table;

pub struct Redfile;

fn compression(codec: Codec) -> Option<Compression> {
    match codec {
        Codec::None => Some(Compression::Uncompressed),
        Codec::Lz4 => None,
        Codec::Snappy => Some(Compression::Snappy),
        Codec::Zlib => Some(Compression::Gzip),
    }
}

impl DatasetFormat for Redfile {
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

    fn open(&self, path: &Path) -> Result<Box<dyn Dataset>> {
        Ok(Box::new(RedfileReader::open(Arc::new(FileSource::open(path)?))?))
    }
}
