//! The speed of every format on TPC-H lineitem, as ratios to Parquet in the same run. See `benches/README.md`.

mod clock;
mod content;
mod format;
mod formats;
mod measure;
mod operation;
mod report;
mod table;

use std::path::PathBuf;

use clap::{Parser, Subcommand};

use clock::Clock;
use content::Content;
use format::{BenchFormat, Codec};
use measure::{Measurement, Task, size_of};
use operation::Operation;
use report::Report;
use table::Table;

type Result<T, E = Box<dyn std::error::Error>> = std::result::Result<T, E>;

/// Writes and reads TPC-H lineitem with each format and compares it with Parquet.
#[derive(Debug, Parser)]
#[command(version)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    /// Rows of the table.
    #[arg(long, default_value_t = 1_000_000)]
    rows: usize,
    /// Formats to compare with Parquet; all unless given.
    #[arg(long, value_delimiter = ',')]
    formats: Option<Vec<String>>,
    /// Codecs to measure with.
    #[arg(long, value_enum, value_delimiter = ',', default_value = "none,lz4")]
    codec: Vec<Codec>,
    /// Only these operations: write, full-scan, key-range or the name of a column.
    #[arg(long, value_delimiter = ',')]
    operations: Option<Vec<Operation>>,
    /// Repetitions in each process, at least; the fastest counts.
    #[arg(long, default_value_t = 5)]
    iterations: usize,
    /// Seconds that each process repeats, at least.
    #[arg(long, default_value_t = 0.3)]
    seconds: f64,
    /// Processes for each measurement, taken in turns by the formats; the fastest counts.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// What counts as time.
    #[arg(long, value_enum, default_value = "cpu")]
    clock: Clock,
    /// Where to put the files; in memory where the system has such a place.
    #[arg(long)]
    folder: Option<PathBuf>,
    /// Leave the written files behind, for profiling, and say where.
    #[arg(long)]
    keep: bool,
    /// Print JSON instead of a table.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Runs one measurement and prints it as JSON.
    #[command(hide = true)]
    Measure(Task),
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    if let Some(Command::Measure(task)) = &arguments.command {
        println!("{}", serde_json::to_string(&task.run()?)?);
        return Ok(());
    }
    let report = compare(&arguments)?;
    if arguments.json {
        println!("{}", serde_json::to_string_pretty(&report)?);
    } else {
        println!(
            "{} rows, one thread, {} time, fastest of at least {} repetitions\n",
            report.rows,
            arguments.clock.name(),
            arguments.iterations.saturating_mul(arguments.rounds)
        );
        print!("{}", report.to_markdown());
    }
    Ok(())
}

/// Parquet and the formats asked for.
fn chosen_formats(names: Option<&[String]>) -> Result<Vec<&'static dyn BenchFormat>> {
    let Some(names) = names else { return Ok(formats::ALL.to_vec()) };
    let others = names.iter().filter(|name| *name != formats::BASELINE);
    std::iter::once(formats::by_name(formats::BASELINE))
        .chain(others.map(|name| formats::by_name(name)))
        .collect()
}

fn compare(arguments: &Arguments) -> Result<Report> {
    let formats = chosen_formats(arguments.formats.as_deref())?;
    let operations = arguments.operations.clone().unwrap_or_else(Operation::all);
    let in_memory = PathBuf::from("/dev/shm");
    let parent = match &arguments.folder {
        Some(folder) => folder.clone(),
        None if in_memory.is_dir() => in_memory,
        None => std::env::temp_dir(),
    };
    let mut folder = tempfile::Builder::new().prefix("pilaster-benches-").tempdir_in(parent)?;
    if arguments.keep {
        folder.disable_cleanup(true);
        eprintln!("files in {}", folder.path().display());
    }
    let place = |format: &dyn BenchFormat, codec: Codec| {
        folder.path().join(format!("lineitem-{}-{}", format.name(), codec.name()))
    };

    let table = Table::generate(arguments.rows)?;
    let rows = table.rows;
    let expected = operations
        .iter()
        .map(|operation| Content::of(operation.expected(&table)?))
        .collect::<Result<Vec<_>>>()?;
    for &codec in &arguments.codec {
        for &format in &formats {
            let path = place(format, codec);
            format.write(&table, &path, codec)?;
            for (operation, expected) in operations.iter().zip(&expected) {
                if *operation == Operation::Write {
                    continue;
                }
                let found = Content::of(operation.read(format, &path, rows)?)?;
                if found != *expected {
                    return Err(format!(
                        "{operation} of {}: expected {expected:?}, found {found:?}",
                        format.name()
                    )
                    .into());
                }
            }
        }
    }
    drop(table);

    let mut report = Report { rows, lines: Vec::new() };
    for (operation, content) in operations.iter().zip(&expected) {
        for &codec in &arguments.codec {
            let mut fastest: Vec<Option<Measurement>> = vec![None; formats.len()];
            for _ in 0..arguments.rounds.max(1) {
                for (format, fastest) in formats.iter().zip(&mut fastest) {
                    let mut path = place(*format, codec);
                    if *operation == Operation::Write {
                        path.set_extension("write");
                    }
                    let task = Task {
                        format: format.name().into(),
                        operation: operation.clone(),
                        codec,
                        path,
                        rows,
                        iterations: arguments.iterations,
                        seconds: arguments.seconds,
                        clock: arguments.clock,
                    };
                    let measured = task.run_apart()?;
                    *fastest = Some(fastest.map_or(measured, |best| best.better(measured)));
                }
            }
            let baseline = fastest.first().copied().flatten();
            for (format, measured) in formats.iter().zip(&fastest) {
                let Some(measured) = *measured else { continue };
                let file_bytes = size_of(&place(*format, codec))?;
                let baseline = baseline.filter(|_| format.name() != formats::BASELINE);
                report.add(operation, codec, format.name(), measured, content.bytes, file_bytes, baseline);
            }
        }
    }
    Ok(report)
}
