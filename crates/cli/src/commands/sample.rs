//! `pilaster sample`: some rows by chance.

use pilaster::Result;

use crate::args::{InputArgs, RowArgs};
use crate::exit::Outcome;
use crate::output::OutputArgs;
use crate::progress::Words;
use crate::select::{count, pick, sample};

/// Some rows by chance, in their order
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  pilaster sample -n 100 data/0a1b.cfile
  pilaster sample --seed 7 data/0a1b.cfile     the same rows every time")]
pub(crate) struct Args {
    #[command(flatten)]
    input: InputArgs,

    /// How many
    #[arg(short = 'n', long = "limit", value_name = "N", default_value_t = 10)]
    limit: u64,

    /// The same seed gives the same rows
    #[arg(long, value_name = "NUMBER")]
    seed: Option<u64>,

    #[command(flatten)]
    rows: RowArgs,
    #[command(flatten)]
    output: OutputArgs,
}

pub(crate) fn run(args: &Args, words: &Words) -> Result<Outcome> {
    let (dataset, request) = args.rows.narrow(args.input.dataset(words)?)?;
    let seed = args.seed.unwrap_or_else(|| fastrand::u64(..));
    let total = words.during("count", || count(dataset.as_ref()))?;
    let chosen = sample(total, args.limit, seed);
    args.output.write(pick(dataset.as_ref(), &request, chosen)?, None, &args.input.paths, words)?;
    Ok(Outcome::Fine)
}
