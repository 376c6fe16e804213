//! `pilaster tail`: the last rows.

use pilaster::{Result, RowRanges};

use crate::args::{InputArgs, RowArgs};
use crate::exit::Outcome;
use crate::output::OutputArgs;
use crate::progress::Words;
use crate::select::{count, pick};

/// The last rows
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  pilaster tail data/0a1b.cfile
  pilaster tail -n 3 -w \"id % 2 = 0\" data/")]
pub(crate) struct Args {
    #[command(flatten)]
    input: InputArgs,

    /// How many
    #[arg(short = 'n', long = "limit", value_name = "N", default_value_t = 10)]
    limit: u64,

    #[command(flatten)]
    rows: RowArgs,
    #[command(flatten)]
    output: OutputArgs,
}

pub(crate) fn run(args: &Args, words: &Words) -> Result<Outcome> {
    let (dataset, request) = args.rows.narrow(args.input.dataset(words)?)?;
    let total = words.during("count", || count(dataset.as_ref()))?;
    let last = RowRanges::one(total.saturating_sub(args.limit)..total);
    args.output.write(pick(dataset.as_ref(), &request, last)?, None, &args.input.paths, words)?;
    Ok(Outcome::Fine)
}
