//! `pilaster salvage`: every row that can be proven good, and a list of what was lost.

use std::path::PathBuf;

use pilaster::kudu::{AssumedShape, Compression, Encoding, KuduType};
use pilaster::overwrite::Overwrite;
use pilaster::recover::{RecoverOptions, save_unproven};
use pilaster::salvage::{SalvageOptions, salvage};
use pilaster::store::open_store;
use pilaster::text::printable;
use pilaster::{LostRows, Result};

use crate::args::{FromToArgs, LostArgs, OpenArgs, open_all};
use crate::exit::Outcome;
use crate::json;
use crate::progress::{Unit, Words};
use crate::target::TargetArgs;

/// How many losses are named on stderr; the report has all.
const SHOWN_LOSSES: usize = 20;

/// Saves every row that can be proven good, and lists what was lost
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "pilaster salvage [OPTIONS] <SRC>... <DST>",
    after_help = "\
Examples:
  pilaster salvage broken.cfile saved.parquet
  pilaster salvage --report lost.json --row-number row broken/ saved.parquet
  pilaster salvage --unproven apart/ tserver/ --table orders saved.parquet   rows that may be old too, apart
  pilaster salvage --type int64 --compression lz4 headless.cfile saved.parquet   a CFile whose footer is lost

Exit code 0 if every row was saved, 1 if some were lost."
)]
pub(crate) struct Args {
    #[command(flatten)]
    paths: FromToArgs,

    /// Write what was saved and lost to this file, as JSON
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,

    /// Write rows that nothing proves to be the table's latest, or its own, into this folder, a file each
    #[arg(long, value_name = "DIR")]
    unproven: Option<PathBuf>,

    /// Add a last column of this name with each row's position in the source
    #[arg(long, value_name = "COLUMN")]
    row_number: Option<String>,

    /// Only these columns, in this order: rows are not lost because of what happened to the others
    #[arg(short, long, value_name = "A,B", value_delimiter = ',')]
    columns: Option<Vec<String>>,

    #[command(flatten)]
    lost: LostArgs,
    #[command(flatten)]
    open: OpenArgs,
    #[command(flatten)]
    write: TargetArgs,
    #[command(flatten)]
    shape: ShapeArgs,
}

/// What a CFile holds whose footer, which would say it, is lost.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "A CFile whose footer is lost")]
struct ShapeArgs {
    /// Kudu type of its values: int8 … int64, string, binary, bool, float, double, date, unixtime_micros, decimal64 …
    #[arg(long = "type", value_name = "TYPE")]
    data_type: Option<KuduType>,

    /// Encoding of its blocks; by default the one Kudu takes for the type
    #[arg(long, requires = "data_type", value_name = "ENCODING")]
    encoding: Option<Encoding>,

    /// Codec of its blocks: no_compression, snappy, lz4, zlib
    #[arg(long, requires = "data_type", value_name = "CODEC", default_value = "no_compression")]
    compression: Compression,

    /// Its cells may be null
    #[arg(long, requires = "data_type")]
    nullable: bool,

    /// Its cells are arrays
    #[arg(long, requires = "data_type")]
    array: bool,

    /// It was written without checksums
    #[arg(long, requires = "data_type")]
    unchecked: bool,
}

impl ShapeArgs {
    fn shape(&self) -> Option<AssumedShape> {
        let data_type = self.data_type?;
        Some(AssumedShape {
            encoding: self.encoding.unwrap_or(data_type.default_encoding()),
            compression: self.compression,
            is_nullable: self.nullable,
            is_array: self.array,
            has_checksums: !self.unchecked,
            ..AssumedShape::new(data_type)
        })
    }
}

pub(crate) fn run(args: &Args, words: &Words) -> Result<Outcome> {
    let (sources, target) = args.paths.split()?;
    let target = args.write.target(target)?;
    args.write.warn(words);
    let open = args.lost.narrow(args.open.options_for(args.shape.shape())?)?;
    let open = open.with_recovery(true);
    let dataset = open_all(&open, &sources, words)?;
    let options = SalvageOptions::default()
        .with_row_number_column(args.row_number.clone())
        .with_columns(args.columns.clone())
        .with_lost_cells(open.lost_cells())
        .with_convert(args.write.options(&sources)?);
    if let Some(path) = &args.report {
        let others = args.unproven.iter().fold(report_rule(&sources), Overwrite::with_other_target);
        others.with_other_target(&target.place).check(path)?;
    }
    let bar = words.bar("salvage", Unit::Rows);
    let report = salvage(dataset.as_ref(), &target, &options, &bar)?;
    drop(bar);
    if let Some(folder) = &args.unproven
        && let Some(store) = open_store(&sources, &open)
    {
        let how = RecoverOptions::default().with_write(args.write.write_options()?);
        for apart in save_unproven(store?.as_ref(), args.open.table(), folder, &how)? {
            words.tell(format_args!(
                "{}: {} rows, not proven: {}",
                apart.path.display(),
                apart.rows,
                printable(&apart.reason)
            ));
        }
    }
    if let Some(path) = &args.report {
        json::save(path, &report.to_json())?;
    }
    say_losses(&report.losses, words);
    if args.unproven.is_none() && report.losses.iter().any(LostRows::is_given_apart) {
        words.tell(format_args!("rows that are given apart are written with --unproven DIR"));
    }
    let lost = report.rows_lost.map_or_else(|| "an unknown number".to_string(), |lost| lost.to_string());
    words.say(format_args!("{} rows saved, {lost} lost", report.rows_saved));
    Ok(if report.is_complete() { Outcome::Fine } else { Outcome::Damaged })
}

/// A report takes the place of an earlier one, but of nothing that is read.
pub(super) fn report_rule<S: AsRef<str>>(sources: &[S]) -> Overwrite {
    Overwrite::new(true).with_sources(sources)
}

/// Says what was lost, as far as it fits a screen.
pub(super) fn say_losses(losses: &[LostRows], words: &Words) {
    for lost in losses.iter().take(SHOWN_LOSSES) {
        words.tell(format_args!("lost: {}", printable(&lost.to_string())));
    }
    if losses.len() > SHOWN_LOSSES {
        let more = losses.len().saturating_sub(SHOWN_LOSSES);
        words.tell(format_args!("lost: {more} more; --report FILE lists all"));
    }
}
