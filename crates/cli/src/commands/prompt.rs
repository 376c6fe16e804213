//! The prompt of `pilaster sql`, and the same words out of a pipe.

use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;

use pilaster::{Error, OutputFormat, Result};
use pilaster_datafusion::SqlSession;
use pilaster_datafusion::session::ends_statement;
use rustyline::DefaultEditor;
use rustyline::error::ReadlineError;

use crate::exit::is_closed_pipe;
use crate::output::{OutputArgs, stream_format_names};
use crate::progress::Words;
use crate::query;

const HELP: &str = "\
SELECT …;            a statement ends with ;
\\d                   list tables and views
\\d NAME              list the columns of a table or a 'path'
\\timing [on|off]     show how long statements take, or stop showing it
.mode FORMAT         table, csv, tsv, json or jsonl
\\q                   leave
\\?                   this list

FROM 'path' and FROM 'path#table' open files; pilaster_metadata('path'), pilaster_pages('path') and
pilaster_schema('path') tell what files say of themselves; COPY (SELECT …) TO 'x.parquet' writes.";

/// Whether to go on.
#[derive(Debug, PartialEq, Eq)]
enum Next {
    GoOn,
    Leave,
}

/// Reads lines from a terminal until the user leaves.
pub(crate) fn run(session: &SqlSession, output: OutputArgs, words: &Words) -> Result<()> {
    let mut editor = DefaultEditor::new().map_err(|error| prompt_error(&error))?;
    let history = history_file();
    if let Some(path) = &history {
        // There is none on the first day.
        let _ = editor.load_history(path);
    }
    let mut prompt = Prompt::new(session, output, *words);
    words.say("pilaster: \\? for help, \\q to leave");
    loop {
        match editor.readline(prompt.sign()) {
            Ok(line) => match prompt.line(&line) {
                Ok(Next::GoOn) => {}
                Ok(Next::Leave) => break,
                Err(error) if is_closed_pipe(&error) => return Err(error),
                Err(error) => writeln!(io::stderr(), "{error}")?,
            },
            // Ctrl-C throws away what was typed, Ctrl-D leaves.
            Err(ReadlineError::Interrupted) => prompt.typed.clear(),
            Err(ReadlineError::Eof) => break,
            Err(error) => return Err(prompt_error(&error)),
        }
        if prompt.typed.is_empty() && !prompt.finished.is_empty() {
            let _ = editor.add_history_entry(std::mem::take(&mut prompt.finished));
        }
    }
    if let Some(path) = &history {
        if let Some(folder) = path.parent() {
            let _ = fs::create_dir_all(folder);
        }
        // A history that cannot be kept is no reason to fail.
        let _ = editor.save_history(path);
    }
    Ok(())
}

/// Runs what a pipe brings: the same words as at the prompt, and the first error ends it.
pub(crate) fn run_script(session: &SqlSession, text: &str, output: OutputArgs, words: &Words) -> Result<()> {
    let mut prompt = Prompt::new(session, output, *words);
    for line in text.lines() {
        if prompt.line(line)? == Next::Leave {
            return Ok(());
        }
    }
    prompt.end()
}

struct Prompt<'a> {
    session: &'a SqlSession,
    output: OutputArgs,
    words: Words,
    typed: String,
    finished: String,
    is_timing: bool,
}

impl<'a> Prompt<'a> {
    fn new(session: &'a SqlSession, output: OutputArgs, words: Words) -> Self {
        Self { session, output, words, typed: String::new(), finished: String::new(), is_timing: false }
    }

    fn sign(&self) -> &'static str {
        if self.typed.is_empty() { "pilaster> " } else { "      ... " }
    }

    /// Takes one line; runs what is complete.
    fn line(&mut self, line: &str) -> Result<Next> {
        if self.typed.is_empty() {
            let word = line.trim();
            if word.is_empty() {
                return Ok(Next::GoOn);
            }
            if word.starts_with(['\\', '.']) {
                self.finished = word.to_string();
                return self.command(word);
            }
        }
        if !self.typed.is_empty() {
            self.typed.push('\n');
        }
        self.typed.push_str(line);
        if ends_statement(&self.typed) {
            let text = std::mem::take(&mut self.typed);
            self.finished.clone_from(&text);
            self.statements(&text)?;
        }
        Ok(Next::GoOn)
    }

    /// Runs what is left when no more lines come; the last `;` may be missing.
    fn end(&mut self) -> Result<()> {
        let text = std::mem::take(&mut self.typed);
        self.statements(&text)
    }

    fn command(&mut self, text: &str) -> Result<Next> {
        let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let rest = rest.trim().trim_end_matches(';');
        match word.trim_end_matches(';') {
            "\\q" | ".quit" | ".exit" => return Ok(Next::Leave),
            "\\?" | ".help" => writeln!(io::stdout(), "{HELP}")?,
            "\\timing" => {
                self.is_timing = match rest {
                    "" => !self.is_timing,
                    "on" => true,
                    "off" => false,
                    other => return Err(Error::invalid(format!("timing is on or off, not \"{other}\""))),
                };
                self.words.say(if self.is_timing { "timing is on" } else { "timing is off" });
            }
            "\\d" if rest.is_empty() => self.statements(
                "SELECT table_name, table_type FROM information_schema.tables \
                 WHERE table_schema <> 'information_schema' ORDER BY table_name",
            )?,
            "\\d" => self.statements(&format!("DESCRIBE {rest}"))?,
            ".mode" => self.mode(rest)?,
            other => return Err(Error::invalid(format!("no command {other}; \\? lists them"))),
        }
        Ok(Next::GoOn)
    }

    fn mode(&mut self, name: &str) -> Result<()> {
        let text_formats = || stream_format_names().filter(|name| is_text(name));
        if !text_formats().any(|known| known == name) {
            let known: Vec<_> = text_formats().collect();
            return Err(Error::invalid(format!("no mode \"{name}\"; there are: {}", known.join(", "))));
        }
        self.output.format = Some(name.to_string());
        Ok(())
    }

    fn statements(&self, text: &str) -> Result<()> {
        query::run(self.session, text, &self.output, &self.words, |rows, took| {
            if self.is_timing {
                self.words.say(format_args!("{rows} rows in {:.3} s", took.as_secs_f64()));
            }
        })
    }
}

fn is_text(name: &str) -> bool {
    name.parse::<OutputFormat>().is_ok_and(|format| !format.is_binary())
}

fn prompt_error(error: &ReadlineError) -> Error {
    Error::invalid(format!("prompt: {error}"))
}

/// Where the history of the prompt is kept.
fn history_file() -> Option<PathBuf> {
    let folder = std::env::var_os("XDG_STATE_HOME")
        .map(PathBuf::from)
        .filter(|path| path.is_absolute())
        .or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".local/state")))
        .or_else(|| std::env::var_os("LOCALAPPDATA").map(PathBuf::from))?;
    Some(folder.join("pilaster").join("sql_history"))
}
