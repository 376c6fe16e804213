//! `pilaster count`: how many rows.

use std::io::{self, Write};

use pilaster::Result;
use serde_json::json;

use crate::args::{ConditionArgs, InputArgs};
use crate::exit::Outcome;
use crate::json;
use crate::progress::Words;
use crate::select;

/// How many rows
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  pilaster count data/0a1b.cfile
  pilaster count -w \"name IS NULL\" data/

Without -w the number comes from footers where they have it.")]
pub(crate) struct Args {
    #[command(flatten)]
    input: InputArgs,
    #[command(flatten)]
    condition: ConditionArgs,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args, words: &Words) -> Result<Outcome> {
    let dataset = args.condition.narrow(args.input.dataset(words)?)?;
    let rows = words.during("count", || select::count(dataset.as_ref()))?;
    if args.json {
        json::print(&json!({ "rows": rows }))?;
    } else {
        writeln!(io::stdout(), "{rows}")?;
    }
    Ok(Outcome::Fine)
}
