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
mod signals;
mod target;

use std::io::Write;
use std::process::ExitCode;

use clap::{CommandFactory, Parser};
use commands::Command;
use pilaster::Error;

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
  pilaster recover disk1/ disk2/ out/              all tables of a dead server

Every command takes a file, a folder, a glob or a URL and finds out the format by itself.
Exit codes: 0 all well, 1 the data is bad or damaged, 2 the call or the I/O failed.";

/// Set to see where libraries panic, also where that becomes an error.
const SHOW_PANICS: &str = "PILASTER_SHOW_PANICS";

/// Of a stack only what is used takes memory.
const STACK: usize = 256 << 20;

fn main() -> ExitCode {
    // Some libraries panic over damaged files. Where they are called that becomes an error with words of its own.
    if std::env::var_os(SHOW_PANICS).is_none() {
        std::panic::set_hook(Box::new(|_| {}));
    }
    // What walks long expressions needs more room than systems give the first thread.
    let started = std::thread::Builder::new().name("main".to_string()).stack_size(STACK).spawn(run);
    let ended = match started {
        Ok(thread) => thread.join(),
        Err(_) => std::panic::catch_unwind(run),
    };
    let code = ended.unwrap_or_else(|_| {
        let _ = writeln!(
            std::io::stderr(),
            "pilaster: stopped by a fault of its own; {SHOW_PANICS}=1 RUST_BACKTRACE=1 show where"
        );
        ExitCode::from(2)
    });
    // All threads of the call have ended: what they left after it had failed goes too.
    pilaster::core::atomic::abandon_all();
    code
}

fn run() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return exit::usage(&error),
    };
    let words = progress::Words::new(cli.quiet);
    let result = signals::watch().map_err(Error::from).and_then(|()| cli.command.run(&words, Cli::command));
    match result {
        Ok(outcome) => outcome.into(),
        Err(error) if exit::is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            // Nobody is left to tell if this fails too.
            let _ = writeln!(std::io::stderr(), "pilaster: {error}{}", exit::way_on(&error));
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
