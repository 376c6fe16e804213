//! `pilaster head`: the first rows.

use pilaster::Result;

use crate::args::{InputArgs, RowArgs};
use crate::exit::Outcome;
use crate::output::OutputArgs;
use crate::progress::Words;

/// The first rows
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  pilaster head data/0a1b.cfile
  pilaster head -n 3 -c id,name -f table data/ | less")]
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
    let (dataset, mut request) = args.rows.narrow(args.input.dataset(words)?)?;
    request.limit = Some(args.limit);
    args.output.write(dataset.read(&request)?, None, &args.input.paths, words)?;
    Ok(Outcome::Fine)
}
