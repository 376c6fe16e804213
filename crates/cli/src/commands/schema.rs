//! `pilaster schema`: columns and types.

use pilaster::{Result, schema_file};

use crate::args::InputArgs;
use crate::exit::Outcome;
use crate::json;
use crate::progress::Words;
use crate::sheet::Sheet;

/// Columns and types
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  pilaster schema lineitem.parquet
  pilaster schema --json lineitem.parquet > columns.json   a file that --schema takes")]
pub(crate) struct Args {
    #[command(flatten)]
    input: InputArgs,

    /// Print JSON, in the form that --schema takes
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args, words: &Words) -> Result<Outcome> {
    let schema = args.input.described(words)?.schema();
    if args.json {
        json::print(&schema_file::to_json(&schema))?;
        return Ok(Outcome::Fine);
    }
    let mut sheet = Sheet::new(&["column", "type", "nullable"]);
    for field in schema.fields() {
        let nullable = if field.is_nullable() { "yes" } else { "no" };
        sheet.row([field.name().clone(), schema_file::type_name(field), nullable.to_string()]);
    }
    sheet.print()?;
    Ok(Outcome::Fine)
}
