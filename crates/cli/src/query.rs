//! Statements run one after the other, their rows written.

use std::io::{self, Write};
use std::time::{Duration, Instant};

use pilaster::{BatchReader, Error, OutputFormat, Result};
use pilaster_datafusion::SqlSession;
use pilaster_datafusion::arrow::array::AsArray;
use pilaster_datafusion::session::parse_statements;

use crate::output::OutputArgs;

/// Runs the statements of a text; the first that fails ends it. `done` hears of each: rows written, and how long it took.
pub(crate) fn run(
    session: &SqlSession,
    text: &str,
    output: &OutputArgs,
    done: impl Fn(u64, Duration),
) -> Result<()> {
    for statement in parse_statements(text)? {
        let started = Instant::now();
        let batches = session.execute(statement)?;
        let rows = match batches.schema().fields().as_ref() {
            // Statements such as CREATE VIEW give no columns, and so nothing to write.
            [] => drain(batches)?,
            [kind, plan]
                if kind.name() == "plan_type" && plan.name() == "plan" && is_read_by_people(output)? =>
            {
                print_plan(batches)?
            }
            _ => output.write(batches)?,
        };
        done(rows, started.elapsed());
    }
    Ok(())
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
