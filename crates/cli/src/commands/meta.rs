//! `pilaster meta`: everything the headers and footers say.

use std::io::{self, Write};

use pilaster::Result;
use pilaster::core::describe::Node;
use pilaster::text::printable;

use crate::args::InputArgs;
use crate::bytes::human;
use crate::exit::Outcome;
use crate::json;
use crate::progress::Words;

/// Everything the headers and footers say
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  pilaster meta data/0a1b.cfile
  pilaster meta --json data/0a1b.cfile | jq '.facts'
  pilaster sql \"SELECT * FROM pilaster_metadata('data/0a1b.cfile')\"")]
pub(crate) struct Args {
    #[command(flatten)]
    input: InputArgs,

    /// Print JSON, with exact sizes
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args, words: &Words) -> Result<Outcome> {
    let dataset = args.input.described(words)?;
    let root = words.during("meta", || dataset.describe())?;
    if args.json {
        json::print(&json::node(&root))?;
    } else {
        print(&root)?;
    }
    Ok(Outcome::Fine)
}

fn print(root: &Node) -> Result<()> {
    let mut stdout = io::BufWriter::new(io::stdout().lock());
    // An explicit stack: the depth of the tree is the file's to decide.
    let mut stack = vec![(root, 0usize)];
    while let Some((node, depth)) = stack.pop() {
        let indent = "  ".repeat(depth);
        writeln!(stdout, "{indent}{} ({})", printable(&node.name), human(node.bytes))?;
        for (name, value) in &node.facts {
            writeln!(stdout, "{indent}  {}: {}", printable(name), printable(value))?;
        }
        stack.extend(node.children.iter().rev().map(|child| (child, depth.saturating_add(1))));
    }
    Ok(stdout.flush()?)
}
