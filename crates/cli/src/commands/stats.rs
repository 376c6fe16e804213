//! `pilaster stats`: what is known of each column without reading it.

use pilaster::core::describe::ColumnStatistics;
use pilaster::text::ValueEncoder;
use pilaster::{Dataset, Result, schema_file};
use pilaster_datafusion::arrow::array::ArrayRef;
use pilaster_datafusion::arrow::datatypes::Field;
use serde_json::{Value, json};

use crate::args::InputArgs;
use crate::bytes::{human, percent, ratio};
use crate::exit::Outcome;
use crate::json;
use crate::progress::Words;
use crate::sheet::{Sheet, known};

/// Longest minimum or maximum shown in the table.
const SHOWN_CHARACTERS: usize = 32;

/// Per column: min, max, nulls, encodings, bytes, ratio
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  pilaster stats lineitem.parquet
  pilaster stats --json lineitem.parquet | jq '.columns[] | {column, bytes}'

Everything comes from headers, footers and indexes; no value is read.")]
pub(crate) struct Args {
    #[command(flatten)]
    input: InputArgs,

    /// Print JSON, with exact sizes
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args, words: &Words) -> Result<Outcome> {
    let dataset = args.input.described(words)?;
    let statistics = words.during("stats", || dataset.column_statistics_with_sizes())?;
    if args.json {
        json::print(&to_json(dataset.as_ref(), &statistics)?)?;
    } else {
        print(dataset.as_ref(), &statistics)?;
    }
    Ok(Outcome::Fine)
}

fn print(dataset: &dyn Dataset, statistics: &[ColumnStatistics]) -> Result<()> {
    let total = statistics.iter().map(|column| column.bytes).fold(0, u64::saturating_add);
    let mut sheet = Sheet::new(&[
        "column",
        "type",
        ">nulls",
        "min",
        "max",
        "encodings",
        "codecs",
        ">size",
        ">share",
        ">ratio",
    ]);
    for (field, column) in dataset.schema().fields().iter().zip(statistics) {
        sheet.row([
            field.name().clone(),
            schema_file::type_name(field),
            known(column.nulls),
            shortened(text_of(column.min.as_ref())?),
            shortened(text_of(column.max.as_ref())?),
            column.encodings.join(" "),
            column.codecs.join(" "),
            human(column.bytes),
            percent(column.bytes, total),
            ratio(column.uncompressed_bytes, column.bytes)
                .map(|ratio| format!("{ratio:.2}"))
                .unwrap_or_default(),
        ]);
    }
    sheet.print()
}

fn to_json(dataset: &dyn Dataset, statistics: &[ColumnStatistics]) -> Result<Value> {
    let schema = dataset.schema();
    let columns = schema.fields().iter().zip(statistics).map(|(field, column)| column_json(field, column));
    Ok(json!({
        "format": dataset.format(),
        "rows": dataset.row_count(),
        "bytes": dataset.size_bytes(),
        "columns": columns.collect::<Result<Vec<_>>>()?,
    }))
}

fn column_json(field: &Field, column: &ColumnStatistics) -> Result<Value> {
    Ok(json!({
        "column": field.name(),
        "type": schema_file::type_name(field),
        "nulls": column.nulls,
        "min": text_of(column.min.as_ref())?,
        "max": text_of(column.max.as_ref())?,
        "encodings": column.encodings,
        "codecs": column.codecs,
        "bytes": column.bytes,
        "uncompressed_bytes": column.uncompressed_bytes,
    }))
}

/// A bound as the rows would show it.
fn text_of(bound: Option<&ArrayRef>) -> Result<Option<String>> {
    let Some(bound) = bound.filter(|bound| !bound.is_empty() && !bound.is_null(0)) else { return Ok(None) };
    let mut text = Vec::new();
    ValueEncoder::try_new(bound.as_ref())?.append_text(0, &mut text);
    Ok(Some(String::from_utf8_lossy(&text).into_owned()))
}

fn shortened(text: Option<String>) -> String {
    let text = text.unwrap_or_default();
    match text.char_indices().nth(SHOWN_CHARACTERS) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text,
    }
}
