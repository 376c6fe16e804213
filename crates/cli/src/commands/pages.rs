//! `pilaster pages`: every page or block.

use pilaster::Result;
use pilaster::core::describe::Page;
use serde_json::{Value, json};

use crate::args::InputArgs;
use crate::exit::Outcome;
use crate::json;
use crate::progress::Words;
use crate::sheet::{Sheet, known};

/// Every page or block with offset, encoding, codec and rows
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  pilaster pages data/0a1b.cfile
  pilaster sql \"SELECT encoding, sum(bytes) FROM pilaster_pages('data/0a1b.cfile') GROUP BY 1\"

Offsets and sizes are exact bytes, so that they add up.")]
pub(crate) struct Args {
    #[command(flatten)]
    input: InputArgs,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args, words: &Words) -> Result<Outcome> {
    let dataset = args.input.described(words)?;
    let pages = words.during("pages", || dataset.pages())?;
    if args.json {
        json::print(&pages.iter().map(to_json).collect())?;
        return Ok(Outcome::Fine);
    }
    let mut sheet = Sheet::new(&[
        "file",
        "column",
        "kind",
        ">offset",
        ">bytes",
        ">uncompressed",
        ">first row",
        ">rows",
        ">nulls",
        "encoding",
        "codec",
    ]);
    for page in &pages {
        sheet.row([
            page.path.to_string(),
            page.column.clone(),
            page.kind.to_string(),
            page.offset.to_string(),
            page.bytes.to_string(),
            known(page.uncompressed_bytes),
            known(first_row(page)),
            known(row_count(page)),
            known(page.nulls),
            page.encoding.clone(),
            page.codec.clone(),
        ]);
    }
    sheet.print()?;
    Ok(Outcome::Fine)
}

fn first_row(page: &Page) -> Option<u64> {
    page.rows.as_ref().map(|rows| rows.start)
}

fn row_count(page: &Page) -> Option<u64> {
    page.rows.as_ref().map(|rows| rows.end.saturating_sub(rows.start))
}

fn to_json(page: &Page) -> Value {
    json!({
        "file": *page.path,
        "column": page.column,
        "kind": page.kind,
        "offset": page.offset,
        "bytes": page.bytes,
        "uncompressed_bytes": page.uncompressed_bytes,
        "first_row": first_row(page),
        "rows": row_count(page),
        "nulls": page.nulls,
        "encoding": page.encoding,
        "codec": page.codec,
    })
}
