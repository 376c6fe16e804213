//! `pilaster convert`: any format to any format.

use std::path::PathBuf;

use pilaster::Result;
use pilaster::convert::convert;

use crate::args::{OpenArgs, PositionArgs, RowArgs, open_all};
use crate::bytes::human;
use crate::exit::Outcome;
use crate::progress::{Unit, Words};
use crate::target::TargetArgs;

/// Any format to any format; the rows are counted on both sides
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  pilaster convert data/ rows.parquet
  pilaster convert -c id,name -w \"id > 10\" data/ rows.csv
  pilaster convert --rows ..1000000 data/ first.arrow
  pilaster convert -f cfile-set --cfile-codec lz4 --cfile-key id rows.parquet table/
  pilaster convert -f kudu --kudu-key id --kudu-hash id:4 rows.parquet tserver/

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

pub(crate) fn run(args: &Args, words: &Words) -> Result<Outcome> {
    let target = args.write.target(&args.target)?;
    let dataset = open_all(&args.open.options()?, &args.sources, words)?;
    let (dataset, mut request) = args.rows.narrow(dataset)?;
    args.positions.narrow(&mut request);
    let bar = words.bar("convert", Unit::Rows);
    let summary = convert(dataset.as_ref(), &request, &target, &args.write.options()?, &bar)?;
    drop(bar);
    words.say(format_args!("{}: {} rows, {}", target.path.display(), summary.rows, human(summary.bytes)));
    Ok(Outcome::Fine)
}
