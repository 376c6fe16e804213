//! Statements run one after the other, their rows written.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pilaster::core::error::AtPosition;
use pilaster::overwrite::Overwrite;
use pilaster::{AtomicFile, AtomicFolder, BatchReader, Error, OutputFormat, Result, write_partition_types};
use pilaster_datafusion::SqlSession;
use pilaster_datafusion::arrow::array::{ArrayRef, AsArray, RecordBatch, RecordBatchIterator, UInt64Array};
use pilaster_datafusion::session::{CopyTo, StagedCopy, parse_statements};

use crate::output::{OutputArgs, stream_format_names, write_file};
use crate::progress::Words;

/// Runs the statements of a text; the first that fails ends it. `done` hears of each: rows written, and how long it took.
pub(crate) fn run(
    session: &SqlSession,
    text: &str,
    output: &OutputArgs,
    words: &Words,
    done: impl Fn(u64, Duration),
) -> Result<()> {
    for statement in parse_statements(text)? {
        let started = Instant::now();
        let is_copy = CopyTo::is_copy(&statement);
        let mut sources = session.context().paths_in(&statement)?;
        sources.extend_from_slice(&output.opened);
        let batches = match CopyTo::try_from_statement(statement) {
            Ok(copy) => copied(session, copy, &sources, words)?,
            Err(statement) => match StagedCopy::try_from_statement(*statement) {
                Ok(copy) => copied_in_stages(session, copy, &sources)?,
                Err(statement) => session.execute(*statement)?,
            },
        };
        let rows = match batches.schema().fields().as_ref() {
            // Statements such as CREATE VIEW give no columns, and so nothing to write.
            [] => drain(batches)?,
            // The file of -o is for the rows of queries; those of a COPY have a file of their own, and here is only their number.
            _ if is_copy && output.output.is_some() => drain(batches)?,
            [kind, plan]
                if kind.name() == "plan_type" && plan.name() == "plan" && is_read_by_people(output)? =>
            {
                print_plan(batches)?
            }
            _ => output.write(words.await_first("query", batches), None, &sources, words)?,
        };
        done(rows, started.elapsed());
    }
    Ok(())
}

/// Writes what a COPY asks for as every command writes it, and gives the number of rows as an answer of one cell.
fn copied(session: &SqlSession, copy: CopyTo, sources: &[String], words: &Words) -> Result<BatchReader> {
    let target = Path::new(&copy.target);
    let named = match &copy.format {
        Some(name) => name.parse().ok(),
        None => OutputFormat::from_path(target),
    };
    let format = named.filter(|format| !format.is_folder()).ok_or_else(|| {
        let formats: Vec<_> = stream_format_names().collect();
        let message = format!("COPY needs a file name or STORED AS that says one of: {}", formats.join(", "));
        Error::invalid(message).at(&copy.target, 0, "")
    })?;
    Overwrite::new(true).with_sources(sources).check(target)?;
    let batches = words.watch("copy", words.await_first("query", session.execute(copy.query)?), None);
    let rows = write_file(batches, format, target, sources)?;
    let count = RecordBatch::try_from_iter([("count", Arc::new(UInt64Array::from(vec![rows])) as ArrayRef)])?;
    let schema = count.schema();
    Ok(Box::new(RecordBatchIterator::new([Ok(count)], schema)))
}

/// A COPY with options or partitions, which DataFusion writes: to a place of its own, so that what it leaves appears complete or not
/// at all, beside nothing that is there already.
fn copied_in_stages(session: &SqlSession, copy: StagedCopy, sources: &[String]) -> Result<BatchReader> {
    let target = Path::new(copy.target()).to_path_buf();
    let name = target.display().to_string();
    if copy.is_folder() {
        Overwrite::new(false).with_sources(sources).check_folder(&target, false)?;
        let folder = AtomicFolder::create(&target)?;
        let columns = copy.partition_columns()?;
        let count = collected(session.execute(copy.into_statement(folder.path())?)?)?;
        if let Some(columns) = columns {
            write_partition_types(folder.path(), &session.execute(columns)?.schema())?;
        }
        folder.commit()?;
        return Ok(count);
    }
    Overwrite::new(true).with_sources(sources).check(&target)?;
    let mut file = AtomicFile::create(&target)?;
    // A pipe or a device lies where no folder can be made.
    let beside = file.path().and_then(Path::parent).map_or_else(std::env::temp_dir, Path::to_path_buf);
    let stage =
        AtomicFolder::create(beside.join(target.file_name().unwrap_or_default()).with_extension("stage"))?;
    let staged = stage.path().join(target.file_name().unwrap_or_default());
    let count = collected(session.execute(copy.into_statement(&staged)?)?)?;
    io::copy(&mut File::open(&staged).at(&name, 0, "")?, &mut file).at(&name, 0, "")?;
    file.commit()?;
    Ok(count)
}

/// Runs a statement to its end.
fn collected(batches: BatchReader) -> Result<BatchReader> {
    let schema = batches.schema();
    let batches = batches.collect::<std::result::Result<Vec<_>, _>>()?;
    Ok(Box::new(RecordBatchIterator::new(batches.into_iter().map(Ok), schema)))
}

fn is_read_by_people(output: &OutputArgs) -> Result<bool> {
    Ok(output.output.is_none() && output.format()? == OutputFormat::Table)
}

fn drain(batches: BatchReader) -> Result<u64> {
    for batch in batches {
        batch.map_err(Error::from)?;
    }
    Ok(0)
}

/// The answer of EXPLAIN as text of several lines, which a cell of a table is not.
fn print_plan(batches: BatchReader) -> Result<u64> {
    let mut stdout = io::stdout().lock();
    for batch in batches {
        let batch = batch.map_err(Error::from)?;
        let columns: Vec<_> =
            batch.columns().iter().filter_map(|column| column.as_string_opt::<i32>()).collect();
        let [kinds, plans] = columns.as_slice() else { continue };
        for (kind, plan) in kinds.iter().zip(plans.iter()) {
            writeln!(stdout, "{}:\n{}", kind.unwrap_or_default(), plan.unwrap_or_default().trim_end())?;
        }
    }
    stdout.flush()?;
    Ok(0)
}
