//! `pilaster convert`: any format to any format.

use std::path::{Path, PathBuf};

use clap::builder::PossibleValuesParser;
use pilaster::convert::{ConvertOptions, ConvertTarget, convert};
use pilaster::kudu::{CFileSetWriterOptions, CFileWriterOptions, Compression, Encoding};
use pilaster::output::{ParquetCodec, WriteOptions};
use pilaster::{Error, OutputFormat, Result};

use crate::args::{OpenArgs, PositionArgs, RowArgs, open_all};
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
  pilaster convert -f cfile-set --cfile-codec lz4 --cfile-key id rows.parquet table/

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

    #[command(flatten)]
    cfile: CFileArgs,
}

/// How a CFile set is written.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Writing CFiles")]
struct CFileArgs {
    /// Codec of CFile blocks: no_compression, snappy, lz4, zlib
    #[arg(long, value_name = "CODEC", default_value = "no_compression")]
    cfile_codec: Compression,

    /// Bytes of a CFile block before compression [default: 65536]
    #[arg(long, value_name = "BYTES")]
    cfile_block_size: Option<usize>,

    /// The column by which rows ascend, without repeats: it gets an index by value
    #[arg(long, value_name = "COLUMN")]
    cfile_key: Option<String>,

    /// Encoding of a column; may be given several times: --cfile-encoding name=prefix_encoding
    #[arg(long, value_name = "COLUMN=ENCODING", value_parser = parse_encoding)]
    cfile_encoding: Vec<(String, Encoding)>,

    /// Write CFiles without checksums
    #[arg(long)]
    cfile_unchecked: bool,
}

fn parse_encoding(text: &str) -> Result<(String, Encoding)> {
    let (column, encoding) =
        text.rsplit_once('=').ok_or_else(|| Error::invalid("an encoding is given as COLUMN=ENCODING"))?;
    Ok((column.to_string(), encoding.parse()?))
}

impl CFileArgs {
    fn options(&self) -> CFileSetWriterOptions {
        let mut column = CFileWriterOptions::default()
            .with_compression(self.cfile_codec)
            .with_checksums(!self.cfile_unchecked);
        if let Some(bytes) = self.cfile_block_size {
            column = column.with_block_size_bytes(bytes);
        }
        let mut options = CFileSetWriterOptions::default().with_column_options(column);
        if let Some(key) = &self.cfile_key {
            options = options.with_key(key);
        }
        for (column, encoding) in &self.cfile_encoding {
            options = options.with_encoding(column, *encoding);
        }
        options
    }
}

impl TargetArgs {
    pub(crate) fn target(&self, path: &Path) -> Result<ConvertTarget> {
        match &self.format {
            Some(format) => Ok(ConvertTarget::new(path, format.parse()?)),
            None => ConvertTarget::from_path(path),
        }
    }

    pub(crate) fn options(&self) -> ConvertOptions {
        ConvertOptions::default().with_overwrite(self.overwrite).with_write(
            WriteOptions::default()
                .with_parquet_codec(self.parquet_codec)
                .with_cfile_set(self.cfile.options()),
        )
    }
}

pub(crate) fn run(args: &Args, words: &Words) -> Result<Outcome> {
    let target = args.write.target(&args.target)?;
    let dataset = open_all(&args.open.options()?, &args.sources, words)?;
    let (dataset, mut request) = args.rows.narrow(dataset)?;
    args.positions.narrow(&mut request);
    let bar = words.bar("convert", Unit::Rows);
    let summary = convert(dataset.as_ref(), &request, &target, &args.write.options(), &bar)?;
    drop(bar);
    words.say(format_args!("{}: {} rows, {}", target.path.display(), summary.rows, human(summary.bytes)));
    Ok(Outcome::Fine)
}
