//! `pilaster wal`: the write-ahead log of Kudu tablets.

use pilaster::Result;
use pilaster::core::Location;
use pilaster::kudu::{TabletLog, open_servers};
use pilaster::text::printable;
use serde_json::json;

use crate::args::InputArgs;
use crate::exit::Outcome;
use crate::json;
use crate::progress::Words;
use crate::sheet::{Sheet, known};

/// The write-ahead log of Kudu tablets: every operation and every commit
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  pilaster wal tserver/                   the logs of all tablets
  pilaster wal --tablet 0a1b tserver/     of one
  pilaster wal --table orders tserver/    of the tablets of a table

Values of rows are not shown, authorization tokens only with --show-secrets. Exit code 1 if a log is damaged or a tablet has none,
2 if one could not be looked at.")]
pub(crate) struct Args {
    #[command(flatten)]
    input: InputArgs,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args, words: &Words) -> Result<Outcome> {
    let folders = args.input.paths.iter().map(|path| Location::parse(path)).collect::<Result<Vec<_>>>()?;
    let store = open_servers(&folders, &args.input.open.options()?)?;
    let logs = store.logs(args.input.open.table())?;
    if args.json {
        json::print(&logs.iter().map(to_json).collect())?;
    } else {
        print(&logs)?;
    }
    let findings: Vec<_> = logs.iter().flat_map(|log| &log.findings).collect();
    for finding in &findings {
        words.tell(printable(&finding.to_string()));
    }
    let unread = store.unread_logs();
    for unread in &unread {
        words.tell(printable(&unread.error().to_string()));
    }
    Ok(match (unread.is_empty(), findings.is_empty()) {
        (false, _) => Outcome::Failed,
        (true, false) => Outcome::Damaged,
        (true, true) => Outcome::Fine,
    })
}

fn print(logs: &[TabletLog]) -> Result<()> {
    let columns = ["table", "tablet", "segment", ">offset", ">term", ">index", ">timestamp", "entry", "what"];
    let mut sheet = Sheet::new(&columns);
    for log in logs {
        for line in &log.lines {
            sheet.row([
                log.table.clone(),
                log.tablet.clone(),
                line.segment.clone(),
                line.offset.to_string(),
                line.term.to_string(),
                line.index.to_string(),
                known(line.timestamp),
                line.kind.to_string(),
                line.summary.clone(),
            ]);
        }
    }
    sheet.print()
}

fn to_json(log: &TabletLog) -> serde_json::Value {
    let lines: Vec<_> = log
        .lines
        .iter()
        .map(|line| {
            json!({
                "segment": line.segment,
                "offset": line.offset,
                "term": line.term,
                "index": line.index,
                "timestamp": line.timestamp,
                "entry": line.kind,
                "what": line.summary,
            })
        })
        .collect();
    json!({ "table": log.table, "tablet": log.tablet, "server": log.server, "entries": lines })
}
