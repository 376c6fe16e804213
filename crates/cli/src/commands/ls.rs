//! `pilaster ls`: what is there.

use std::collections::BTreeMap;

use pilaster::Result;
use pilaster::ls::{Entry, ListOptions, State, list};
use serde_json::json;

use crate::args::InputArgs;
use crate::bytes::human;
use crate::exit::Outcome;
use crate::json;
use crate::progress::Words;
use crate::sheet::{Sheet, known};

/// What is there: files and tables with rows, bytes and state
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  pilaster ls backup/            the files and tables of a folder
  pilaster ls -r backup/         and of the folders in it
  pilaster ls --orphans tserver/ and blocks that no tablet names; read them as FROM 'tserver/#NAME'
  pilaster ls --json '*.cfile'   for a program

What is damaged is listed with its problem; `pilaster verify` judges it. Exit code 2 if something could not be read at all.")]
pub(crate) struct Args {
    #[command(flatten)]
    input: InputArgs,

    /// Look into folders inside folders
    #[arg(short, long)]
    recursive: bool,

    /// List what belongs to no table too: blocks of Kudu that no superblock names
    #[arg(long)]
    orphans: bool,

    /// Print JSON, with exact sizes
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args, words: &Words) -> Result<Outcome> {
    let options = ListOptions::default()
        .with_open(args.input.open.options()?)
        .with_recursive(args.recursive)
        .with_orphans(args.orphans);
    let entries = words.during("ls", || list(&args.input.paths, &options))?;
    if args.json {
        json::print(&entries.iter().map(to_json).collect())?;
    } else {
        print(&entries)?;
    }
    let is_unread = |entry: &Entry| matches!(entry.state, State::Unread(_));
    Ok(if entries.iter().any(is_unread) { Outcome::Failed } else { Outcome::Fine })
}

fn print(entries: &[Entry]) -> Result<()> {
    let has_details = entries.iter().any(|entry| !entry.details.is_empty());
    let mut columns = vec!["path", "format", ">columns", ">rows", ">size", "state"];
    columns.extend(has_details.then_some("details"));
    let mut sheet = Sheet::new(&columns);
    for entry in entries {
        let details: Vec<_> = entry.details.iter().map(|(name, value)| format!("{name} {value}")).collect();
        let mut cells = vec![
            entry.path.clone(),
            known(entry.format.as_ref()),
            known(entry.columns),
            known(entry.rows),
            human(entry.bytes),
            problem(entry).unwrap_or("ok").to_string(),
        ];
        cells.extend(has_details.then(|| details.join(", ")));
        sheet.row(cells);
    }
    sheet.print()
}

fn to_json(entry: &Entry) -> serde_json::Value {
    json!({
        "path": entry.path,
        "format": entry.format,
        "columns": entry.columns,
        "rows": entry.rows,
        "bytes": entry.bytes,
        "details": entry.details.iter().cloned().collect::<BTreeMap<_, _>>(),
        "is_ok": entry.state == State::Ok,
        "problem": problem(entry),
    })
}

fn problem(entry: &Entry) -> Option<&str> {
    match &entry.state {
        State::Ok => None,
        State::Problem(text) | State::Unread(text) => Some(text),
    }
}
