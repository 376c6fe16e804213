//! `pilaster completions`: for the user's shell.

use std::io::{self, Write};

use clap_complete::Shell;
use pilaster::Result;

use crate::exit::Outcome;

/// Completions for your shell
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  pilaster completions bash > ~/.local/share/bash-completion/completions/pilaster
  pilaster completions zsh > ~/.zfunc/_pilaster")]
pub(crate) struct Args {
    shell: Shell,
}

pub(crate) fn run(args: &Args, mut whole: clap::Command) -> Result<Outcome> {
    // Made in memory first: the generator would panic on a closed pipe.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut whole, "pilaster", &mut script);
    io::stdout().write_all(&script)?;
    Ok(Outcome::Fine)
}
