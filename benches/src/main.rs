//! The speed of every format on TPC-H lineitem, as ratios to Parquet in the same run. See `benches/README.md`.

mod carbon_segments;
mod clock;
mod content;
mod format;
mod formats;
mod kudu_tablet;
mod measure;
mod operation;
mod report;
mod table;
mod threads;

use std::path::{Path, PathBuf};

use clap::{Parser, Subcommand};

use clock::Clock;
use content::Content;
use format::{BenchFormat, Codec};
use measure::{Measurement, Task, lay_anew, size_of};
use operation::Operation;
use report::{Line, Report};
use table::{Table, TableKind};

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
    /// Which table.
    #[arg(long, value_enum, default_value = "lineitem")]
    table: TableKind,
    /// Formats to compare with Parquet; all unless given.
    #[arg(long, value_delimiter = ',')]
    formats: Option<Vec<String>>,
    /// Codecs to measure with.
    #[arg(long, value_enum, value_delimiter = ',', default_value = "none,lz4")]
    codec: Vec<Codec>,
    /// Only these operations: write, full-scan, key-range, equal-text or the name of a column.
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
    /// Prints lineitem as commands of the Kudu client that loads it.
    #[command(hide = true)]
    KuduRows(kudu_tablet::Rows),
    /// Scans a table of a Kudu server's folder.
    #[command(hide = true)]
    KuduScan(kudu_tablet::Scan),
    /// Scans a Redfile of several row groups with one thread and with more.
    RedfileThreads(threads::RedfileThreads),
    /// Plans a CarbonData table of many small segments.
    CarbonSegments(carbon_segments::CarbonSegments),
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    match &arguments.command {
        Some(Command::Measure(task)) => {
            println!("{}", serde_json::to_string(&task.run()?)?);
            return Ok(());
        }
        Some(Command::KuduRows(rows)) => return rows.run(),
        Some(Command::KuduScan(scan)) => return scan.run(),
        Some(Command::RedfileThreads(scan)) => return scan.run(),
        Some(Command::CarbonSegments(plan)) => return plan.run(),
        None => {}
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
    let mut chosen: Vec<&'static dyn BenchFormat> = Vec::new();
    for name in names {
        let format = formats::by_name(name)?;
        for format in [formats::by_name(formats::BASELINE)?, formats::by_name(format.baseline())?, format] {
            if chosen.iter().all(|other| other.name() != format.name()) {
                chosen.push(format);
            }
        }
    }
    Ok(chosen)
}

/// Where the table of a format and a codec lies.
fn place(folder: &Path, format: &dyn BenchFormat, codec: Codec) -> PathBuf {
    folder.join(format!("lineitem-{}-{}", format.name(), codec.name()))
}

fn compare(arguments: &Arguments) -> Result<Report> {
    let formats = chosen_formats(arguments.formats.as_deref())?;
    let operations = arguments.operations.clone().unwrap_or_else(|| Operation::all(arguments.table));
    let formats_of = |codec: Codec| formats.iter().copied().filter(move |format| format.has(codec));
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

    let table = Table::generate(arguments.table, arguments.rows)?;
    let rows = table.rows;
    let expected = operations
        .iter()
        .map(|operation| Ok((operation, Content::of(operation.expected(&table)?)?)))
        .collect::<Result<Vec<_>>>()?;
    for &codec in &arguments.codec {
        for format in formats_of(codec) {
            let path = place(folder.path(), format, codec);
            format.write(&table, &path, codec)?;
            check(format, &path, rows, &expected)?;
        }
    }
    drop(table);

    let mut report = Report { rows, lines: Vec::new() };
    for (operation, content) in expected {
        for &codec in &arguments.codec {
            let tasks: Vec<Task> = formats_of(codec)
                .map(|format| Task {
                    table: arguments.table,
                    format: format.name().into(),
                    operation: operation.clone(),
                    codec,
                    path: place(folder.path(), format, codec),
                    rows: arguments.rows,
                    iterations: arguments.iterations,
                    seconds: arguments.seconds,
                    clock: arguments.clock,
                })
                .collect();
            let measured = take_turns(&tasks, arguments.rounds)?;
            for (task, own) in tasks.iter().zip(&measured) {
                let baseline = formats::by_name(&task.format)?.baseline();
                let other =
                    tasks.iter().position(|other| other.format == baseline && task.format != baseline);
                let other = other.and_then(|other| measured.get(other)).copied();
                report.lines.push(Line::new(task, *own, content.bytes, size_of(&task.path)?, other));
            }
        }
    }
    Ok(report)
}

/// Refuses a table that does not read back as it was written.
fn check(format: &dyn BenchFormat, path: &Path, rows: usize, all: &[(&Operation, Content)]) -> Result<()> {
    for (operation, expected) in all.iter().filter(|(operation, _)| **operation != Operation::Write) {
        let found = Content::of(operation.read(format, path, rows)?)?;
        if found != *expected {
            let name = format.name();
            return Err(format!("{operation} of {name}: expected {expected:?}, found {found:?}").into());
        }
    }
    Ok(())
}

/// Runs each task `rounds` times, one after the other, and gives the fastest of each.
///
/// Where in memory the pages of a file lie makes up to a fifth of the time of reading them. So each round reads files that were
/// laid down anew, and luck evens out.
fn take_turns(tasks: &[Task], rounds: usize) -> Result<Vec<Measurement>> {
    let mut fastest: Vec<Option<Measurement>> = vec![None; tasks.len()];
    for _ in 0..rounds.max(1) {
        for task in tasks {
            lay_anew(&task.path)?;
        }
        for (task, fastest) in tasks.iter().zip(&mut fastest) {
            let own = task.run_apart()?;
            *fastest = Some(fastest.map_or(own, |before| before.better(own)));
        }
    }
    Ok(fastest.into_iter().flatten().collect())
}
