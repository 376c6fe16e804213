//! What to write, and how: the options of `convert` and `salvage`.

mod carbondata;
mod cfile;
mod doris;
mod kudu;
mod redfile;

use std::path::Path;

use clap::builder::PossibleValuesParser;
use pilaster::convert::{ConvertOptions, ConvertTarget};
use pilaster::output::{ParquetCodec, WriteOptions};
use pilaster::{Error, OutputFormat, Result};

use self::carbondata::CarbonArgs;
use self::cfile::CFileArgs;
use self::doris::DorisArgs;
use self::kudu::KuduArgs;
use self::redfile::RedfileArgs;

/// How the target is written.
#[derive(Debug, clap::Args)]
pub(crate) struct TargetArgs {
    /// The format to write, where the extension does not say it
    #[arg(short, long, value_parser = PossibleValuesParser::new(OutputFormat::ALL.map(|(_, name)| name)))]
    format: Option<String>,

    /// Block codec of Parquet files: none, snappy, lz4, gzip, zstd
    #[arg(long, value_name = "CODEC", default_value = "zstd")]
    parquet_codec: ParquetCodec,

    /// Replace what is there
    #[arg(long)]
    overwrite: bool,

    #[command(flatten)]
    cfile: CFileArgs,
    #[command(flatten)]
    kudu: KuduArgs,
    #[command(flatten)]
    redfile: RedfileArgs,
    #[command(flatten)]
    doris: DorisArgs,
    #[command(flatten)]
    carbondata: CarbonArgs,
}

impl TargetArgs {
    pub(crate) fn target(&self, path: &Path) -> Result<ConvertTarget> {
        match &self.format {
            Some(format) => Ok(ConvertTarget::new(path, format.parse()?)),
            None => ConvertTarget::from_path(path),
        }
    }

    /// Whether rows go into a folder of Parquet files: a path that ends in a slash, and no other format named.
    pub(crate) fn is_migration(&self, path: &Path) -> bool {
        let is_parquet = self.format.as_deref().is_none_or(|format| format == "parquet");
        is_parquet && path.to_string_lossy().ends_with(std::path::MAIN_SEPARATOR)
    }

    pub(crate) fn options(&self) -> Result<ConvertOptions> {
        Ok(ConvertOptions::default().with_overwrite(self.overwrite).with_write(self.write_options()?))
    }

    pub(crate) fn write_options(&self) -> Result<WriteOptions> {
        Ok(WriteOptions::default()
            .with_parquet_codec(self.parquet_codec)
            .with_cfile_set(self.cfile.options())
            .with_kudu(self.kudu.options())
            .with_redfile(self.redfile.options())
            .with_doris(self.doris.options()?)
            .with_carbondata(self.carbondata.options()))
    }
}

/// `COLUMN=VALUE`
fn parse_pair(text: &str) -> Result<(String, String)> {
    let (column, value) = text.rsplit_once('=').ok_or_else(|| Error::invalid("expected COLUMN=VALUE"))?;
    Ok((column.to_string(), value.to_string()))
}
