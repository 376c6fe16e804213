//! One file per command, each with `Args` and `run`.

mod cat;
mod compact;
mod completions;
mod convert;
mod count;
mod head;
mod ls;
mod meta;
mod pages;
mod prompt;
mod recover;
mod repair;
mod salvage;
mod sample;
mod schema;
mod sql;
mod stats;
mod tail;
mod tree;
mod verify;
mod wal;

use clap::Subcommand;
use pilaster::Result;

use crate::exit::Outcome;
use crate::progress::Words;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Ls(ls::Args),
    Schema(schema::Args),
    Meta(meta::Args),
    Stats(stats::Args),
    Cat(cat::Args),
    Head(head::Args),
    Tail(tail::Args),
    Sample(sample::Args),
    Count(count::Args),
    Tree(tree::Args),
    Pages(pages::Args),
    Sql(sql::Args),
    Convert(convert::Args),
    Verify(verify::Args),
    Salvage(salvage::Args),
    Recover(recover::Args),
    Repair(repair::Args),
    Compact(compact::Args),
    Wal(wal::Args),
    Completions(completions::Args),
}

impl Command {
    pub(crate) fn run(&self, words: &Words, whole: fn() -> clap::Command) -> Result<Outcome> {
        match self {
            Self::Ls(args) => ls::run(args, words),
            Self::Schema(args) => schema::run(args, words),
            Self::Meta(args) => meta::run(args, words),
            Self::Stats(args) => stats::run(args, words),
            Self::Cat(args) => cat::run(args, words),
            Self::Head(args) => head::run(args, words),
            Self::Tail(args) => tail::run(args, words),
            Self::Sample(args) => sample::run(args, words),
            Self::Count(args) => count::run(args, words),
            Self::Tree(args) => tree::run(args, words),
            Self::Pages(args) => pages::run(args, words),
            Self::Sql(args) => sql::run(args, words),
            Self::Convert(args) => convert::run(args, words),
            Self::Verify(args) => verify::run(args, words),
            Self::Salvage(args) => salvage::run(args, words),
            Self::Recover(args) => recover::run(args, words),
            Self::Repair(args) => repair::run(args, words),
            Self::Compact(args) => compact::run(args, words),
            Self::Wal(args) => wal::run(args, words),
            Self::Completions(args) => completions::run(args, whole()),
        }
    }
}
