//! `pilaster cat`: rows.

use pilaster::Result;

use crate::args::{InputArgs, PositionArgs, RowArgs};
use crate::exit::Outcome;
use crate::output::OutputArgs;
use crate::progress::Words;

/// Rows, all of them or those asked for
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  pilaster cat -f csv -c id,name data/ > rows.csv
  pilaster cat -w \"id > 10 AND name LIKE 'a%'\" data/0a1b.cfile
  pilaster cat --rows 1000..1010 data/0a1b.cfile     by position, the first row being 0

Without -f rows are a table on a terminal and JSON lines (jsonl) in a pipe.")]
pub(crate) struct Args {
    #[command(flatten)]
    input: InputArgs,
    #[command(flatten)]
    rows: RowArgs,
    #[command(flatten)]
    positions: PositionArgs,
    #[command(flatten)]
    output: OutputArgs,
}

pub(crate) fn run(args: &Args, words: &Words) -> Result<Outcome> {
    let (dataset, mut request) = args.rows.narrow(args.input.dataset(words)?)?;
    args.positions.narrow(&mut request);
    let total = args.positions.is_everything().then(|| dataset.row_count()).flatten();
    args.output.write(dataset.read(&request)?, total, &args.input.paths, words)?;
    Ok(Outcome::Fine)
}
