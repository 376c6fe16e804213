//! `pilaster sql`: statements from the command line, a file, a pipe or a prompt.

use std::fs;
use std::io::{self, IsTerminal, Read};
use std::path::{Path, PathBuf};

use pilaster::core::error::AtPosition;
use pilaster::store::named_tables;
use pilaster::{AtomicFolder, DatasetRef, Error, OpenOptions, Result};
use pilaster_datafusion::{Opener, SqlOptions, SqlSession};

use super::prompt;
use crate::args::{OpenArgs, say_noticed};
use crate::bytes::parse_size;
use crate::exit::Outcome;
use crate::output::{OutputArgs, stream_format_names, stream_formats};
use crate::progress::Words;
use crate::query;

/// SQL over files: FROM 'path', FROM 'path#table'
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  pilaster sql \"SELECT count(*) FROM 'data/0a1b.cfile' WHERE value > 10\"
  pilaster sql \"SELECT a.id, b.name FROM 'data/#orders' a JOIN 'names.parquet' b ON a.id = b.id\"
  pilaster sql \"COPY (SELECT * FROM 'data/') TO 'rows.parquet'\"
  pilaster sql \"SELECT * FROM pilaster_pages('data/0a1b.cfile')\"
  pilaster sql --open tserver/ \"SELECT * FROM orders JOIN customers USING (customer_id)\"
  pilaster sql -f report.sql --format csv -o report.csv
  pilaster sql --memory 256M \"COPY (SELECT * FROM 'big/' ORDER BY name) TO 'sorted.parquet'\"
  pilaster sql                       a prompt; \\? explains it

Table functions: pilaster_metadata('path'), pilaster_pages('path'), pilaster_schema('path').
-f takes a file of statements here; the name of a format after -f is understood as well.
Rows of a plain SELECT come in the order of the table.")]
pub(crate) struct Args {
    /// Statements, separated by ;
    #[arg(value_name = "SQL")]
    text: Option<String>,

    /// Run the statements of this file
    #[arg(short = 'f', long = "file", value_name = "FILE")]
    file: Vec<String>,

    /// How rows are written [default: by the name of the file; on a terminal table, else jsonl]
    #[arg(long, value_parser = stream_formats())]
    format: Option<String>,

    /// Write the rows of the last query to this file instead of stdout
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Give the tables in this folder (or this file) their own names; may be given several times: the disks of one server
    #[arg(long = "open", value_name = "PATH")]
    opened: Vec<String>,

    /// Memory for sorting, grouping and joining: 64M, 2G. Sorts and groups that need more go through temporary files, in the folder that
    /// TMPDIR names, which vanish with the program; a join that needs more is an error. Reading and writing need about 200M besides
    /// [default: no bound]
    #[arg(long, value_name = "SIZE", value_parser = parse_size, env = "PILASTER_SQL_MEMORY", hide_env_values = true)]
    memory: Option<usize>,

    #[command(flatten)]
    open: OpenArgs,
}

/// Opens paths, and says what opening noticed.
#[derive(Debug)]
struct SpokenOpener {
    options: OpenOptions,
    words: Words,
}

impl Opener for SpokenOpener {
    fn open(&self, path: &str, table: Option<&str>) -> Result<DatasetRef> {
        let dataset = Opener::open(&self.options, path, table)?;
        say_noticed(dataset.as_ref(), &self.words);
        Ok(dataset)
    }
}

pub(crate) fn run(args: &Args, words: &Words) -> Result<Outcome> {
    let (files, format) = sort_out(args);
    let output = OutputArgs { format, output: args.output.clone(), opened: args.opened.clone() };
    let options = args.open.options()?;
    let opener = SpokenOpener { options: options.clone(), words: *words };
    let mut sql = SqlOptions::default().with_opener(opener);
    // Taken away when this call ends, however it does.
    let spill =
        args.memory.map(|_| AtomicFolder::create(std::env::temp_dir().join("pilaster-sql"))).transpose()?;
    if let (Some(bytes), Some(folder)) = (args.memory, &spill) {
        sql = sql.with_memory(bytes, folder.path())?;
    }
    let session = SqlSession::new(sql)?;
    for (name, dataset) in named_tables(&args.opened, &options)? {
        say_noticed(dataset.as_ref(), words);
        session.register(&name, dataset)?;
    }
    match (&args.text, files.as_slice()) {
        (Some(_), [_, ..]) => {
            Err(Error::invalid("statements come from the command line or from -f, not both"))
        }
        (Some(text), []) => query::run(&session, text, &output, words, |_, _| ()),
        (None, [_, ..]) => files.iter().try_for_each(|file| {
            let text = fs::read_to_string(file).at(file, 0, "")?;
            query::run(&session, &text, &output, words, |_, _| ())
        }),
        (None, []) if io::stdin().is_terminal() => prompt::run(&session, output, words),
        (None, []) => {
            let mut text = String::new();
            io::stdin().read_to_string(&mut text).at("-", 0, "")?;
            prompt::run_script(&session, &text, output, words)
        }
    }?;
    Ok(Outcome::Fine)
}

/// What stands after `-f`: files of statements, or the format that `-f` means in other commands.
fn sort_out(args: &Args) -> (Vec<String>, Option<String>) {
    let (mut files, mut format) = (Vec::new(), args.format.clone());
    for value in &args.file {
        if stream_format_names().any(|name| name == value) && !Path::new(value).exists() {
            format = Some(value.clone());
        } else {
            files.push(value.clone());
        }
    }
    (files, format)
}
