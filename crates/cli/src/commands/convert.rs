//! `pilaster convert`: any format to any format.

use std::path::PathBuf;

use pilaster::convert::convert;
use pilaster::migrate::{DEFAULT_FILE_ROWS, MigrateOptions, migrate};
use pilaster::overwrite::Overwrite;
use pilaster::{OutputFormat, Result};
use pilaster_datafusion::arrow::datatypes::{DataType, Schema};

use crate::args::{FromToArgs, OpenArgs, PositionArgs, RowArgs, open_all};
use crate::bytes::{counted, human};
use crate::exit::Outcome;
use crate::progress::{Unit, Words};
use crate::target::TargetArgs;

/// Any format to any format; the rows are counted on both sides
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "pilaster convert [OPTIONS] <SRC>... <DST>",
    after_help = "\
Examples:
  pilaster convert data/ rows.parquet
  pilaster convert tserver/ --table orders orders.parquet
  pilaster convert -c id,name -w \"id > 10\" data/ rows.csv
  pilaster convert --rows ..1000000 data/ first.arrow
  pilaster convert -f cfile-set --cfile-codec lz4 --cfile-key id rows.parquet table/
  pilaster convert --kudu-key id --kudu-hash id:4 rows.parquet tserver/
  pilaster convert -f doris --doris-model unique --doris-key id rows.parquet snapshot/
  pilaster convert -f carbondata --carbon-sort id rows.parquet store/db/table
  pilaster convert store/db/table out/

The output appears under its name when it is complete. A target that ends in / and no other format named becomes a folder of
Parquet files, by partition; if that was stopped, the same command goes on where it was."
)]
pub(crate) struct Args {
    #[command(flatten)]
    paths: FromToArgs,

    #[command(flatten)]
    open: OpenArgs,
    #[command(flatten)]
    rows: RowArgs,
    #[command(flatten)]
    positions: PositionArgs,
    /// Rows of a file, at most, in a folder of Parquet files
    #[arg(long, value_name = "ROWS", default_value_t = DEFAULT_FILE_ROWS)]
    file_rows: u64,

    #[command(flatten)]
    write: TargetArgs,
}

pub(crate) fn run(args: &Args, words: &Words) -> Result<Outcome> {
    let (sources, target) = args.paths.split()?;
    if args.write.is_migration(target) {
        return run_migration(args, words);
    }
    let target = args.write.target(target)?;
    args.write.warn(words);
    let dataset = open_all(&args.open.options()?, &sources, words)?;
    let (dataset, mut request) = args.rows.narrow(dataset)?;
    args.positions.narrow(&mut request);
    if target.format == OutputFormat::Kudu && has_arrays(request.output_schema(&dataset.schema())?.as_ref()) {
        words.tell("warning: no released server of Kudu (up to 1.18) takes tables with arrays: this one can be read here only");
    }
    let bar = words.bar("convert", Unit::Rows);
    let summary = convert(dataset.as_ref(), &request, &target, &args.write.options(&sources)?, &bar)?;
    drop(bar);
    words.say(format_args!("{}: {} rows, {}", target.place, summary.rows, human(summary.bytes)));
    Ok(Outcome::Fine)
}

/// Whether a column holds lists.
fn has_arrays(schema: &Schema) -> bool {
    let is_array = |data_type: &DataType| matches!(data_type, DataType::List(_) | DataType::LargeList(_));
    schema.fields().iter().any(|field| is_array(field.data_type()))
}

/// A folder of Parquet files, in pieces that survive a kill.
fn run_migration(args: &Args, words: &Words) -> Result<Outcome> {
    let (sources, target) = args.paths.split()?;
    // A folder that was begun is gone on with.
    Overwrite::new(false).with_sources(&sources).check_folder(target, true)?;
    let dataset = open_all(&args.open.options()?, &sources, words)?;
    let (dataset, mut request) = args.rows.narrow(dataset)?;
    args.positions.narrow(&mut request);
    let options = MigrateOptions::default()
        .with_file_rows(args.file_rows)
        .with_write(args.write.write_options()?)
        .with_choices(args.open.choices().into_iter().chain(args.rows.choices()).collect())
        .with_source_paths(sources.iter().map(PathBuf::from).filter(|path| path.exists()).collect());
    let bar = words.bar("convert", Unit::Rows);
    let done = migrate(dataset.as_ref(), &request, target, &options, &bar)?;
    drop(bar);
    let before = match done.files_before {
        0 => String::new(),
        files => format!(", {files} of them there already"),
    };
    words.say(format_args!(
        "{}: {} in {}{before}, {}",
        target.display(),
        counted(done.rows, "row"),
        counted(done.files as u64, "file"),
        human(done.bytes)
    ));
    Ok(Outcome::Fine)
}
