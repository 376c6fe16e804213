//! `pilaster`: columnar files of Kudu, CarbonData, Doris and Redfile on the command line.
//!
//! Data goes to stdout, words and progress to stderr. Exit codes: 0 all well, 1 the data is bad or damaged, 2 the call
//! or the I/O failed. A closed pipe is success.
#![forbid(unsafe_code)]

mod args;
mod bytes;
mod commands;
mod exit;
mod json;
mod output;
mod progress;
mod query;
mod select;
mod sheet;
mod target;

use std::io::Write;
use std::process::ExitCode;

use clap::{CommandFactory, Parser};
use commands::Command;

/// Reads, queries, converts, verifies and salvages columnar files of Kudu, CarbonData, Doris and Redfile.
#[derive(Debug, Parser)]
#[command(name = "pilaster", version, after_help = AFTER_HELP)]
struct Cli {
    /// Say nothing but data, warnings and errors: no progress, no summaries
    #[arg(short, long, global = true)]
    quiet: bool,

    #[command(subcommand)]
    command: Command,
}

const AFTER_HELP: &str = "\
Examples:
  pilaster head data/0a1b.cfile                    look at the first rows
  pilaster sql \"SELECT count(*) FROM 'data/0a1b.cfile' WHERE value > 10\"
  pilaster convert data/0a1b.cfile rows.parquet    leave for Parquet
  pilaster verify --depth values data/             look for damage
  pilaster salvage broken.cfile saved.parquet      save what is left

Every command takes a file, a folder, a glob or a URL and finds out the format by itself.
Exit codes: 0 all well, 1 the data is bad or damaged, 2 the call or the I/O failed.";

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return exit::usage(&error),
    };
    let words = progress::Words::new(cli.quiet);
    match cli.command.run(&words, Cli::command) {
        Ok(outcome) => outcome.into(),
        Err(error) if exit::is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            // Nobody is left to tell if this fails too.
            let _ = writeln!(std::io::stderr(), "pilaster: {error}");
            exit::code_of(&error)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_do_not_contradict_each_other() {
        Cli::command().debug_assert();
    }
}
