//! Rows to stdout or a file.

use std::io::{self, BufWriter, IsTerminal};
use std::path::{Path, PathBuf};

use clap::Args;
use clap::builder::PossibleValuesParser;
use pilaster::output::{BatchWriter, WriteOptions, writer};
use pilaster::overwrite::Overwrite;
use pilaster::{BatchReader, Error, OutputFormat, Result, SharedFile};

use crate::progress::Words;

/// Where rows go and how they look.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct OutputArgs {
    /// How rows are written [default: by the name of the file; on a terminal table, else jsonl]
    #[arg(short, long, value_parser = stream_formats())]
    pub(crate) format: Option<String>,

    /// Write to this file, which appears when it is complete, instead of stdout
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    /// What was opened before the call that gives the rows, and is not written over
    #[arg(skip)]
    pub(crate) opened: Vec<String>,
}

/// The formats that are one stream of bytes.
pub(crate) fn stream_formats() -> PossibleValuesParser {
    PossibleValuesParser::new(stream_format_names())
}

pub(crate) fn stream_format_names() -> impl Iterator<Item = &'static str> {
    OutputFormat::ALL.into_iter().filter(|(format, _)| !format.is_folder()).map(|(_, name)| name)
}

impl OutputArgs {
    /// The format that was asked for, or the one that suits where the rows go.
    pub(crate) fn format(&self) -> Result<OutputFormat> {
        if let Some(name) = &self.format {
            return name.parse();
        }
        match &self.output {
            Some(path) => {
                OutputFormat::from_path(path).filter(|format| !format.is_folder()).ok_or_else(|| {
                    Error::invalid("the name does not say which format to write; add -f").at(
                        &shown(path),
                        0,
                        "",
                    )
                })
            }
            None if io::stdout().is_terminal() => Ok(OutputFormat::Table),
            None => Ok(OutputFormat::Jsonl),
        }
    }

    /// Writes all batches, of as many rows as `total` if that is known; gives the number of rows. The file of -o takes the place of
    /// one that is there, but not of one of the sources the rows are read from.
    pub(crate) fn write(
        &self,
        batches: BatchReader,
        total: Option<u64>,
        sources: &[String],
        words: &Words,
    ) -> Result<u64> {
        let format = self.format()?;
        let is_on_screen = self.output.is_none() && io::stdout().is_terminal();
        // On the screen the rows themselves show that work goes on, once there are any.
        let batches = match is_on_screen {
            true => words.await_first("read", batches),
            false => words.watch("write", batches, total),
        };
        match &self.output {
            Some(path) => write_file(batches, format, path, sources),
            None => write_stdout(batches, format),
        }
    }
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

fn write_stdout(batches: BatchReader, format: OutputFormat) -> Result<u64> {
    if format.is_binary() && io::stdout().is_terminal() {
        return Err(Error::invalid(format!("{format} is not for a terminal; add -o FILE")));
    }
    let sink = Box::new(BufWriter::with_capacity(1 << 16, io::stdout()));
    let mut writer = writer(format, sink, batches.schema(), &WriteOptions::default())?;
    match copy(batches, writer.as_mut()) {
        Ok(rows) => {
            writer.finish()?;
            Ok(rows)
        }
        Err(error) => {
            // The rows before the damage are good: they are shown, and then the error.
            let _ = writer.finish();
            Err(error)
        }
    }
}

/// Writes all batches to a file, which takes the place of one that is there when it is complete, unless that is one of the sources.
pub(crate) fn write_file(
    batches: BatchReader,
    format: OutputFormat,
    path: &Path,
    sources: &[String],
) -> Result<u64> {
    Overwrite::new(true).with_sources(sources).check(path)?;
    let in_file = |error: Error| error.at(&shown(path), 0, "");
    let file = SharedFile::create(path)?;
    let mut writer = writer(format, Box::new(file.clone()), batches.schema(), &WriteOptions::default())
        .map_err(in_file)?;
    let rows = copy(batches, writer.as_mut())?;
    writer.finish().map_err(in_file)?;
    file.take()?.finish()?;
    Ok(rows)
}

fn copy(batches: BatchReader, writer: &mut dyn BatchWriter) -> Result<u64> {
    let mut rows = 0u64;
    for batch in batches {
        let batch = batch.map_err(Error::from)?;
        writer.write(&batch)?;
        rows = rows.saturating_add(u64::try_from(batch.num_rows()).unwrap_or(u64::MAX));
    }
    Ok(rows)
}
