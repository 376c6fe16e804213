//! `pilaster repair`: a whole file again from a damaged one.

use std::path::PathBuf;

use pilaster::Result;
use pilaster::repair::repair;

use super::salvage::say_losses;
use crate::args::OpenArgs;
use crate::bytes::human;
use crate::exit::Outcome;
use crate::json;
use crate::progress::{Unit, Words};

/// Writes a whole file of the same format from a damaged one: footer, indexes and metadata are made again
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  pilaster repair cut-off.red whole.red
  pilaster repair --report lost.json damaged.red whole.red
  pilaster repair --schema schema.json no-footer.dat whole.dat

Redfiles and segments of Doris can be repaired; of other formats `pilaster salvage` writes what is left to a file of any format.
The damaged file stays as it is. Exit code 0 if every row is in the new file, 1 if some were lost.")]
pub(crate) struct Args {
    /// The damaged file
    #[arg(value_name = "SRC")]
    source: String,

    /// The file that will appear
    #[arg(value_name = "DST")]
    target: PathBuf,

    /// Write what was lost to this file, as JSON
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,

    /// Replace what is there
    #[arg(long)]
    overwrite: bool,

    #[command(flatten)]
    open: OpenArgs,
}

pub(crate) fn run(args: &Args, words: &Words) -> Result<Outcome> {
    let bar = words.bar("repair", Unit::Rows);
    let report = repair(&args.source, &args.target, args.overwrite, &args.open.options()?, &bar)?;
    drop(bar);
    if let Some(path) = &args.report {
        json::save(path, &report.to_json())?;
    }
    say_losses(&report.losses, words);
    words.say(format_args!("{}: {} rows, {}", args.target.display(), report.rows, human(report.bytes)));
    Ok(if report.is_complete { Outcome::Fine } else { Outcome::Damaged })
}
