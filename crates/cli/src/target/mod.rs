//! What to write, and how: the options of `convert` and `salvage`.

mod carbondata;
mod cfile;
mod doris;
mod kudu;
mod redfile;

use std::path::Path;

use clap::builder::PossibleValuesParser;
use pilaster::convert::{ConvertOptions, ConvertTarget};
use pilaster::core::sort::DEFAULT_MEMORY_BYTES;
use pilaster::output::{ParquetCodec, WriteOptions};
use pilaster::overwrite::Overwrite;
use pilaster::text::printable;
use pilaster::{Error, OutputFormat, Result};

use self::carbondata::CarbonArgs;
use self::cfile::CFileArgs;
use self::doris::DorisArgs;
use self::kudu::KuduArgs;
use self::redfile::RedfileArgs;
use crate::bytes::parse_size;
use crate::progress::Words;

/// Memory for sorting.
#[derive(Debug, clap::Args)]
pub(crate) struct SortMemory {
    /// Memory for rows that have to be sorted, as those of CarbonData tables with sort columns, partitions or buckets and of Doris
    /// tablets with keys have: 64M, 2G. What is more goes through temporary files beside the target, which vanish with the program.
    /// Reading and writing need about 200M besides, whatever the number of rows [default: 128M]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    memory: Option<usize>,
}

impl SortMemory {
    pub(crate) fn bytes(&self) -> usize {
        self.memory.unwrap_or(DEFAULT_MEMORY_BYTES)
    }
}

/// How the target is written.
#[derive(Debug, clap::Args)]
pub(crate) struct TargetArgs {
    /// The format to write, where neither the extension nor the options of a format say it
    #[arg(short, long, value_parser = PossibleValuesParser::new(OutputFormat::ALL.map(|(_, name)| name)))]
    format: Option<String>,

    /// Block codec of Parquet files: none, snappy, lz4, gzip, zstd
    #[arg(long, value_name = "CODEC", default_value = "zstd")]
    parquet_codec: ParquetCodec,

    /// Replace the file that is there; folders are never replaced
    #[arg(long)]
    overwrite: bool,

    #[command(flatten)]
    memory: SortMemory,

    #[command(flatten)]
    cfile: Option<CFileArgs>,
    #[command(flatten)]
    kudu: Option<KuduArgs>,
    #[command(flatten)]
    redfile: Option<RedfileArgs>,
    #[command(flatten)]
    doris: Option<DorisArgs>,
    #[command(flatten)]
    carbondata: Option<CarbonArgs>,
}

impl TargetArgs {
    pub(crate) fn target(&self, path: &Path) -> Result<ConvertTarget> {
        match self.named_format(path) {
            Some(format) => Ok(ConvertTarget::new(path, format.parse()?)),
            None => ConvertTarget::from_path(path),
        }
    }

    /// The format that was asked for; for a path without an extension also the one whose options were given.
    fn named_format(&self, path: &Path) -> Option<&str> {
        let options = [
            ("cfile-set", self.cfile.is_some()),
            ("kudu", self.kudu.is_some()),
            ("redfile", self.redfile.is_some()),
            ("doris", self.doris.is_some()),
            ("carbondata", self.carbondata.is_some()),
        ];
        let implied = || {
            let mut given = options.iter().filter(|(_, is_given)| *is_given).map(|(format, _)| *format);
            given.next().filter(|_| given.next().is_none() && (is_folder(path) || path.extension().is_none()))
        };
        self.format.as_deref().or_else(implied)
    }

    /// The format that was asked for; Parquet unless told otherwise.
    pub(crate) fn format_or_parquet(&self) -> Result<OutputFormat> {
        self.named_format(Path::new("")).map_or(Ok(OutputFormat::Parquet), str::parse)
    }

    /// Whether rows go into a folder of Parquet files: a path that ends in a slash, and no other format named.
    pub(crate) fn is_migration(&self, path: &Path) -> bool {
        self.named_format(path).is_none_or(|format| format == "parquet") && is_folder(path)
    }

    pub(crate) fn options(&self, sources: &[String]) -> Result<ConvertOptions> {
        let overwrite = Overwrite::new(self.overwrite).with_sources(sources);
        Ok(ConvertOptions::default().with_overwrite(overwrite).with_write(self.write_options()?))
    }

    /// Says what whoever chose these options should know.
    pub(crate) fn warn(&self, words: &Words) {
        if let Some(warning) = self.doris.as_ref().and_then(DorisArgs::warning) {
            words.tell(format_args!("warning: {}", printable(&warning)));
        }
    }

    pub(crate) fn write_options(&self) -> Result<WriteOptions> {
        let memory = self.memory.bytes();
        let doris = self.doris.as_ref().map(DorisArgs::options).transpose()?.unwrap_or_default();
        let carbondata = self.carbondata.as_ref().map(CarbonArgs::options).unwrap_or_default();
        Ok(WriteOptions::default()
            .with_parquet_codec(self.parquet_codec)
            .with_cfile_set(self.cfile.as_ref().map(CFileArgs::options).unwrap_or_default())
            .with_kudu(self.kudu.as_ref().map(KuduArgs::options).unwrap_or_default())
            .with_redfile(self.redfile.as_ref().map(RedfileArgs::options).unwrap_or_default())
            .with_doris(doris.with_sort_memory_bytes(memory))
            .with_carbondata(carbondata.with_sort_memory_bytes(memory)))
    }
}

/// Whether a path ends in a slash.
fn is_folder(path: &Path) -> bool {
    path.to_string_lossy().ends_with(std::path::is_separator)
}

/// `COLUMN=VALUE`
fn parse_pair(text: &str) -> Result<(String, String)> {
    let (column, value) = text.rsplit_once('=').ok_or_else(|| Error::invalid("expected COLUMN=VALUE"))?;
    Ok((column.to_string(), value.to_string()))
}
