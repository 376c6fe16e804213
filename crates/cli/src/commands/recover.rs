//! `pilaster recover`: all tables of dead servers or of a store, and one report.

use std::path::{Path, PathBuf};

use pilaster::recover::{REPORT, RecoverOptions, RecoveredTable, Watch, recover};
use pilaster::text::printable;
use pilaster::{Error, Progress, Result};

use super::salvage::say_losses;
use crate::args::{FromToArgs, OpenArgs};
use crate::bytes::counted;
use crate::exit::Outcome;
use crate::json;
use crate::progress::{Unit, Words};
use crate::target::TargetArgs;

/// All tables of dead servers or of a store, each into a folder, with one report of what is lost
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "pilaster recover [OPTIONS] <DISK>... <OUT>",
    after_help = "\
Examples:
  pilaster recover /mnt/dead/wal /mnt/dead/data1 /mnt/dead/data2 out/     the disks of a Kudu server
  pilaster recover ts1/ ts2/ ts3/ out/               of several servers: the freshest replica of every tablet is taken
  pilaster recover --table orders ts1/ ts2/ out/     one table only
  pilaster recover doris/storage out/                a Doris backend's storage root
  pilaster recover -f csv store/ out/                a CarbonData store, a CSV file for each table
  pilaster recover /mnt/copies out/                  everything below a folder, of all systems, and files too

Give all disks of all servers that are left, in one call; nothing is written to them. A folder that holds files is a table, too, or
each file is one where their columns differ. What appears:
  out/TABLE/part-*.parquet   the rows of a table that are proven to be its latest
  out/unproven/*.parquet     rows that may be older, or of another table: look at them before you use them
  out/report.json            what is complete, what is lost and why

A run that was stopped goes on where it was when the same command is given again; of a table that is written as a folder of another
format than Parquet (-f kudu), remove the old one first. Damage stops nothing: what can be read is
given, what cannot is named.

Exit code 0 only if every row of every table is there, 1 if some are lost or not proven, 2 if something could not be looked at
(a permission, a full disk)."
)]
pub(crate) struct Args {
    #[command(flatten)]
    paths: FromToArgs,
    #[command(flatten)]
    open: OpenArgs,
    #[command(flatten)]
    write: TargetArgs,
}

pub(crate) fn run(args: &Args, words: &Words) -> Result<Outcome> {
    let (sources, out) = args.paths.split()?;
    if out.exists() && !out.is_dir() {
        return Err(Error::invalid("is no folder; the last path is where the tables go").at(
            &out.display().to_string(),
            0,
            "",
        ));
    }
    let options = RecoverOptions::default()
        .with_format(args.write.format_or_parquet()?)
        .with_table(args.open.table().map(str::to_string))
        .with_choices(args.open.choices())
        .with_write(args.write.write_options()?);
    let watch = Bars { words, out };
    let report = recover(&sources, out, &args.open.options()?, &options, &watch)?;
    for error in &report.errors {
        words.tell(format_args!("not read: {}", printable(&error.to_string())));
    }
    for finding in &report.findings {
        words.tell(format_args!("found: {}", printable(&finding.to_string())));
    }
    for apart in &report.unproven {
        words.tell(format_args!(
            "{}: {}, not proven: {}",
            apart.path.display(),
            counted(apart.rows, "row"),
            printable(&apart.reason)
        ));
    }
    let path: PathBuf = out.join(REPORT);
    json::save(&path, &report.to_json())?;
    let complete = report.tables.iter().filter(|table| table.is_complete()).count();
    words.say(format_args!(
        "{complete} of {} complete; {} says everything",
        counted(report.tables.len() as u64, "table"),
        path.display()
    ));
    Ok(match (report.has_failed(), report.is_complete()) {
        (true, _) => Outcome::Failed,
        (false, true) => Outcome::Fine,
        (false, false) => Outcome::Damaged,
    })
}

/// A bar for every table, and a line when it is done.
struct Bars<'a> {
    words: &'a Words,
    out: &'a Path,
}

impl Watch for Bars<'_> {
    fn begin(&self, _: &str) -> Box<dyn Progress + '_> {
        Box::new(self.words.bar("recover", Unit::Rows))
    }

    fn done(&self, table: &RecoveredTable) {
        let name = printable(&table.name);
        let place = table.path.strip_prefix(self.out).unwrap_or(&table.path).display().to_string();
        match (&table.error, table.is_complete()) {
            (Some(error), _) => {
                self.words.tell(format_args!("{name}: not recovered: {}", printable(&error.to_string())));
            }
            (None, true) => {
                self.words
                    .say(format_args!("{name}: complete, {} in {place}", counted(table.rows_saved, "row")));
            }
            (None, false) => {
                let saved = counted(table.rows_saved, "row");
                self.words.tell(format_args!("{name}: NOT complete, {saved} in {place}, {}", missing(table)));
                say_losses(&table.losses, self.words);
            }
        }
        for error in &table.unread {
            self.words.tell(format_args!("not read: {}", printable(&error.to_string())));
        }
    }
}

/// What of a table is not there: rows that are lost, files that nobody could look at.
fn missing(table: &RecoveredTable) -> String {
    let lost = table.rows_lost.map_or("an unknown number".to_string(), |lost| lost.to_string());
    let unread = counted(table.unread.len() as u64, "file");
    match (table.losses.is_empty(), table.unread.is_empty()) {
        (_, true) => format!("{lost} lost"),
        (false, false) => format!("{lost} lost, {unread} not read"),
        (true, false) => format!("{unread} not read"),
    }
}
