//! `pilaster repair`: a whole file again from a damaged one, or a table's metadata again from its data.

use std::path::PathBuf;

use pilaster::carbondata::{TableRepair, repair_table};
use pilaster::overwrite::Overwrite;
use pilaster::redfile::{repair_in_place, write_sidecar};
use pilaster::repair::{RepairReport, repair};
use pilaster::{Error, Result};

use super::salvage::{report_rule, say_losses};
use crate::args::{LostArgs, OpenArgs};
use crate::bytes::{counted, human};
use crate::exit::Outcome;
use crate::json;
use crate::progress::{Unit, Words};

/// Writes a whole file of the same format from a damaged one: footer, indexes and metadata are made again
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  pilaster repair cut-off.red whole.red
  pilaster repair --report lost.json damaged.red whole.red
  pilaster repair --in-place cut-off.red
  pilaster repair --sidecar cut-off.meta.red cut-off.red
  pilaster repair --schema schema.json no-footer.dat whole.dat
  pilaster repair store/db/table

Redfiles, segments of Doris and tables of CarbonData can be repaired; of other formats `pilaster salvage` writes what is left to a
file of any format. A damaged file stays as it is unless --in-place says otherwise. Of a CarbonData table lost and damaged
metadata and index files are written anew in its folder, and damaged ones are kept beside them.
Exit code 0 if every row is in the new file, 1 if some were lost.")]
pub(crate) struct Args {
    /// The damaged file, or the folder of a CarbonData table
    #[arg(value_name = "SRC")]
    source: String,

    /// The file that will appear
    #[arg(value_name = "DST", conflicts_with_all = ["in_place", "sidecar"])]
    target: Option<PathBuf>,

    /// Give a Redfile its footer again where it lies; what is behind its last complete row group is cut off
    #[arg(long, conflicts_with = "sidecar")]
    in_place: bool,

    /// Write a small file with the metadata that leads into a damaged Redfile, which stays as it is
    #[arg(long, value_name = "FILE")]
    sidecar: Option<PathBuf>,

    /// Write what was lost to this file, as JSON
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,

    /// Replace what is there
    #[arg(long)]
    overwrite: bool,

    #[command(flatten)]
    lost: LostArgs,
    #[command(flatten)]
    open: OpenArgs,
}

pub(crate) fn run(args: &Args, words: &Words) -> Result<Outcome> {
    let options = args.lost.narrow(args.open.options()?)?;
    if std::path::Path::new(&args.source).is_dir() {
        return Ok(say_table(&args.source, &repair_table(&args.source, &options)?, words));
    }
    if let Some(path) = &args.report {
        let others = args.target.iter().chain(&args.sidecar);
        others.fold(report_rule(&[&args.source]), Overwrite::with_other_target).check(path)?;
    }
    let (report, target) = match (&args.target, &args.sidecar) {
        (_, Some(sidecar)) => {
            (write_sidecar(&args.source, sidecar, args.overwrite, &options)?, sidecar.display().to_string())
        }
        (None, None) if args.in_place => (repair_in_place(&args.source, &options)?, args.source.clone()),
        (None, None) => return Err(Error::invalid("a file to write is missing: pilaster repair SRC DST")),
        (Some(target), None) => {
            let bar = words.bar("repair", Unit::Rows);
            let report = repair(&args.source, target, args.overwrite, &options, &bar)?;
            (report, target.display().to_string())
        }
    };
    if let Some(path) = &args.report {
        json::save(path, &report.to_json())?;
    }
    Ok(say_file(&target, &report, words))
}

fn say_file(target: &str, report: &RepairReport, words: &Words) -> Outcome {
    say_losses(&report.losses, words);
    words.say(format_args!("{target}: {} rows, {}", report.rows, human(report.bytes)));
    if report.is_complete { Outcome::Fine } else { Outcome::Damaged }
}

fn say_table(table: &str, repair: &TableRepair, words: &Words) -> Outcome {
    for file in &repair.rebuilt {
        let kept = file.kept.as_ref().map(|kept| format!(", the damaged one is {kept}"));
        words.say(format_args!("written: {}{}", file.path, kept.unwrap_or_default()));
    }
    for finding in &repair.left {
        words.tell(format_args!("left: {finding}"));
    }
    let (written, left) = (repair.rebuilt.len() as u64, repair.left.len() as u64);
    words.say(format_args!(
        "{table}: {} written, {} left",
        counted(written, "file"),
        counted(left, "problem")
    ));
    if repair.is_complete() { Outcome::Fine } else { Outcome::Damaged }
}
