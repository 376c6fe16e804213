//! `pilaster convert`: any format to any format.

use std::path::{Path, PathBuf};

use clap::builder::PossibleValuesParser;
use pilaster::convert::{ConvertOptions, ConvertTarget, convert};
use pilaster::output::{ParquetCodec, WriteOptions};
use pilaster::{OutputFormat, Result};

use crate::args::{OpenArgs, PositionArgs, RowArgs};
use crate::bytes::human;
use crate::exit::Outcome;
use crate::progress::{Unit, Words};

/// Any format to any format; the rows are counted on both sides
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  pilaster convert data/ rows.parquet
  pilaster convert -c id,name -w \"id > 10\" data/ rows.csv
  pilaster convert --rows ..1000000 data/ first.arrow

The output appears under its name when it is complete.")]
pub(crate) struct Args {
    /// Files, folders, globs or URLs; several are read as one
    #[arg(required = true, value_name = "SRC")]
    sources: Vec<String>,

    /// What to write; its extension names the format
    #[arg(value_name = "DST")]
    target: PathBuf,

    #[command(flatten)]
    open: OpenArgs,
    #[command(flatten)]
    rows: RowArgs,
    #[command(flatten)]
    positions: PositionArgs,
    #[command(flatten)]
    write: TargetArgs,
}

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
}

impl TargetArgs {
    pub(crate) fn target(&self, path: &Path) -> Result<ConvertTarget> {
        match &self.format {
            Some(format) => Ok(ConvertTarget::new(path, format.parse()?)),
            None => ConvertTarget::from_path(path),
        }
    }

    pub(crate) fn options(&self) -> ConvertOptions {
        ConvertOptions::default()
            .with_overwrite(self.overwrite)
            .with_write(WriteOptions::default().with_parquet_codec(self.parquet_codec))
    }
}

pub(crate) fn run(args: &Args, words: &Words) -> Result<Outcome> {
    let target = args.write.target(&args.target)?;
    let dataset = args.open.options()?.open_all(&args.sources)?;
    let (dataset, mut request) = args.rows.narrow(dataset)?;
    args.positions.narrow(&mut request);
    let bar = words.bar("convert", Unit::Rows);
    let summary = convert(dataset.as_ref(), &request, &target, &args.write.options(), &bar)?;
    drop(bar);
    words.say(format_args!("{}: {} rows, {}", target.path.display(), summary.rows, human(summary.bytes)));
    Ok(Outcome::Fine)
}
