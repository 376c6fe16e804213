//! How the program ends.

use std::error::Error as StdError;
use std::io::{ErrorKind as IoErrorKind, Write};
use std::process::ExitCode;

use pilaster::core::CallOption;
use pilaster::{Error, ErrorKind};

/// The data is bad or damaged.
const DAMAGED: u8 = 1;
/// The call or the I/O failed.
const FAILED: u8 = 2;

/// What a command that ran to its end found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Nothing to complain about.
    Fine,
    /// The data is bad or damaged; the command has said so.
    Damaged,
    /// Something could not be read; the command has said so.
    Failed,
}

impl From<Outcome> for ExitCode {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Fine => Self::SUCCESS,
            Outcome::Damaged => Self::from(DAMAGED),
            Outcome::Failed => Self::from(FAILED),
        }
    }
}

/// The exit code of a command that stopped.
pub(crate) fn code_of(error: &Error) -> ExitCode {
    ExitCode::from(if error.is_damage() { DAMAGED } else { FAILED })
}

/// What the caller can do about it on the command line, to stand behind the error.
pub(crate) fn way_on(error: &Error) -> &'static str {
    match error.option() {
        Some(CallOption::Table) => " (--table NAME)",
        Some(CallOption::Tablet) => " (--tablet ID, --replica UUID)",
        Some(CallOption::Schema) => " (--schema FILE)",
        Some(CallOption::AsOf) => " (--as-of)",
        Some(CallOption::PrimaryKey) => " (--primary-key COLUMNS)",
        Some(CallOption::Columns) => " (-c COLUMNS)",
        Some(CallOption::ColumnShape) => " (--type, --encoding, --compression, --nullable)",
        Some(CallOption::Partial) => "; --partial reads what is here",
        _ => "",
    }
}

/// Whether all that happened is that nobody wants to read on (`pilaster cat x | head`).
pub(crate) fn is_closed_pipe(error: &Error) -> bool {
    let is_pipe = |error: &std::io::Error| error.kind() == IoErrorKind::BrokenPipe;
    let mut next: Option<&(dyn StdError + 'static)> = match error.kind() {
        ErrorKind::Io(io) if is_pipe(io) => return true,
        _ => error.source(),
    };
    while let Some(error) = next {
        if error.downcast_ref::<std::io::Error>().is_some_and(is_pipe) {
            return true;
        }
        next = error.source();
    }
    false
}

/// Prints what is wrong with the call, or the help that was asked for.
pub(crate) fn usage(error: &clap::Error) -> ExitCode {
    let printed = error.print().and_then(|()| std::io::stdout().flush());
    if error.use_stderr() || printed.is_err_and(|error| error.kind() != IoErrorKind::BrokenPipe) {
        ExitCode::from(FAILED)
    } else {
        ExitCode::SUCCESS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closed_pipe_is_recognised_in_any_wrapping() {
        let closed = || std::io::Error::from(IoErrorKind::BrokenPipe);
        assert!(is_closed_pipe(&Error::from(closed())));
        assert!(is_closed_pipe(&Error::from(closed()).at("-", 0, "")));
        assert!(!is_closed_pipe(&Error::from(std::io::Error::from(IoErrorKind::NotFound))));
        assert!(!is_closed_pipe(&Error::invalid("x")));
    }
    #[test]
    fn options_are_named_as_flags() {
        let error = Error::invalid("several tables here; choose one of: a, b").turning_on(CallOption::Table);
        assert_eq!(way_on(&error.at("folder", 0, "")), " (--table NAME)");
        let partial = Error::incomplete("bucket 1").turning_on(CallOption::Partial);
        assert_eq!(way_on(&partial), "; --partial reads what is here");
        // What is here is nothing.
        assert_eq!(way_on(&Error::incomplete("the table")), "");
        assert_eq!(way_on(&Error::invalid("x")), "");
    }
}
