//! `pilaster tree`: where the bytes go.

use std::io::{self, Write};

use pilaster::Result;
use pilaster::core::describe::Node;
use pilaster::text::printable;

use crate::args::InputArgs;
use crate::bytes::{human, percent};
use crate::exit::Outcome;
use crate::json;
use crate::progress::Words;

/// Where the bytes go: structure with sizes and percentages
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  pilaster tree data/0a1b.cfile
  pilaster tree --json data/0a1b.cfile | jq '.children[] | {name, bytes}'")]
pub(crate) struct Args {
    #[command(flatten)]
    input: InputArgs,

    /// Print JSON, with exact sizes
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args, words: &Words) -> Result<Outcome> {
    let dataset = args.input.described(words)?;
    let root = words.during("tree", || dataset.describe())?;
    if args.json {
        json::print(&json::node(&root))?;
    } else {
        print(&root)?;
    }
    Ok(Outcome::Fine)
}

/// A structure on its way to a line: what stands before its name, and before those inside it.
struct Line<'a> {
    node: &'a Node,
    before: String,
    before_children: String,
}

fn print(root: &Node) -> Result<()> {
    let mut stdout = io::BufWriter::new(io::stdout().lock());
    let mut stack = vec![Line { node: root, before: String::new(), before_children: String::new() }];
    while let Some(Line { node, before, before_children }) = stack.pop() {
        let share = percent(node.bytes, root.bytes);
        writeln!(stdout, "{:>10} {share:>6}  {before}{}", human(node.bytes), printable(&node.name))?;
        let last = node.children.len().saturating_sub(1);
        for (index, child) in node.children.iter().enumerate().rev() {
            let (branch, below) = if index == last { ("└─ ", "   ") } else { ("├─ ", "│  ") };
            stack.push(Line {
                node: child,
                before: format!("{before_children}{branch}"),
                before_children: format!("{before_children}{below}"),
            });
        }
    }
    Ok(stdout.flush()?)
}
