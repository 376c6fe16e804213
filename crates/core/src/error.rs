//! The one error type of the workspace.

use std::fmt;
use std::io;
use std::sync::Arc;

use arrow_schema::ArrowError;
use pilaster_encoding::DecodeError;

/// Result of everything that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Where in which file something was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Position {
    /// Path or address of the file.
    pub path: Arc<str>,
    /// Byte offset from the start of the file.
    pub offset: u64,
    /// Which structure of the format lies there, in the format's own words.
    pub part: &'static str,
}

/// What went wrong, so that a caller can act on it.
#[derive(Debug)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The bytes break the format. Another reader would refuse them too.
    Corrupt {
        /// What the format asks for.
        expected: String,
        /// What stands there.
        found: String,
    },
    /// The bytes are legal, but this build or version cannot read them.
    Unsupported {
        /// What would be needed.
        feature: String,
    },
    /// A size or count is over the limit the caller set.
    LimitExceeded {
        /// Name of the limit in [`crate::Limits`].
        limit: &'static str,
        /// The limit.
        max: u64,
        /// What the file asks for.
        found: u64,
    },
    /// Parts that the table's metadata names are not here: giving the rest would be giving too little.
    Incomplete {
        /// What is not here.
        missing: String,
    },
    /// The caller asked for something that cannot be (unknown column, bad option).
    InvalidInput(String),
    /// Something that this library promises itself does not hold. Neither the data nor the caller is to blame.
    Internal(String),
    /// Reading or writing bytes failed.
    Io(io::Error),
    /// Arrow refused an array, a cast or a batch.
    Arrow(ArrowError),
}

/// An option of the call that a failure turns on, by what it means: each front end knows how it is given there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CallOption {
    /// The name of a table, of several that lie in one place.
    Table,
    /// Which tablet of a table, and which replica of it.
    Tablet,
    /// The names and types of columns, for a file that carries none.
    Schema,
    /// The point in time at which rows are read.
    AsOf,
    /// The columns of the primary key of a table to be written.
    PrimaryKey,
    /// Which columns are read.
    Columns,
    /// Type, encoding and compression of the only column of a file.
    ColumnShape,
    /// That what is here of a table is read without the rest.
    Partial,
}

/// What failed and where. Small to move, cheap to clone; see [`Error::kind`] and [`Error::position`].
#[derive(Debug, Clone)]
pub struct Error {
    kind: Arc<ErrorKind>,
    position: Option<Arc<Position>>,
    option: Option<CallOption>,
}

impl Error {
    /// An error of this kind, not yet tied to a place.
    pub fn new(kind: ErrorKind) -> Self {
        Self { kind: Arc::new(kind), position: None, option: None }
    }

    /// Bytes that break the format.
    pub fn corrupt(expected: impl Into<String>, found: impl fmt::Display) -> Self {
        Self::new(ErrorKind::Corrupt { expected: expected.into(), found: found.to_string() })
    }

    /// Something legal that this build cannot do.
    pub fn unsupported(feature: impl Into<String>) -> Self {
        Self::new(ErrorKind::Unsupported { feature: feature.into() })
    }

    /// Parts of a table that are not here.
    pub fn incomplete(missing: impl Into<String>) -> Self {
        Self::new(ErrorKind::Incomplete { missing: missing.into() })
    }

    /// A request that cannot be met.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::InvalidInput(message.into()))
    }

    /// A broken promise of this library, in the words of its code.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Internal(message.into()))
    }

    /// What went wrong.
    pub fn kind(&self) -> &ErrorKind {
        &self.kind
    }

    /// Where, if it is known.
    pub fn position(&self) -> Option<&Position> {
        self.position.as_deref()
    }

    /// The option of the call with which it could be otherwise, if there is one.
    pub fn option(&self) -> Option<CallOption> {
        self.option
    }

    /// The same error, which another value of `option` would avoid.
    #[must_use]
    pub fn turning_on(mut self, option: CallOption) -> Self {
        self.option = Some(option);
        self
    }

    /// The same error, tied to a place unless it already is.
    #[must_use]
    pub fn at(mut self, path: &str, offset: u64, part: &'static str) -> Self {
        if self.position.is_none() {
            self.position = Some(Arc::new(Position { path: path.into(), offset, part }));
        }
        self
    }

    /// Whether the data is to blame (and not the call, the machine or this build).
    pub fn is_damage(&self) -> bool {
        matches!(
            self.kind(),
            ErrorKind::Corrupt { .. } | ErrorKind::LimitExceeded { .. } | ErrorKind::Incomplete { .. }
        )
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(position) = self.position() {
            write!(f, "{}: ", position.path)?;
            if !position.part.is_empty() {
                write!(f, "{} at byte {}: ", position.part, position.offset)?;
            }
        }
        self.kind().fmt(f)
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Corrupt { expected, found } => write!(f, "expected {expected}, found {found}"),
            Self::Unsupported { feature } => write!(f, "cannot read this: {feature}"),
            Self::LimitExceeded { limit, max, found } => {
                write!(f, "{found} is over the limit {limit} = {max}")
            }
            Self::Incomplete { missing: message } | Self::InvalidInput(message) => f.write_str(message),
            Self::Internal(message) => write!(f, "a fault of pilaster itself, please report it: {message}"),
            Self::Io(error) => error.fmt(f),
            Self::Arrow(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self.kind() {
            ErrorKind::Io(error) => Some(error),
            ErrorKind::Arrow(error) => Some(error),
            _ => None,
        }
    }
}

impl From<io::Error> for Error {
    /// Takes our own error out again when it was only carried through a call of [`io::Write`] or [`io::Read`].
    fn from(error: io::Error) -> Self {
        error.downcast::<Self>().unwrap_or_else(|error| Self::new(ErrorKind::Io(error)))
    }
}

impl From<DecodeError> for Error {
    fn from(error: DecodeError) -> Self {
        Self::corrupt(error.expected, error.found)
    }
}

impl From<ArrowError> for Error {
    /// Takes our own error out again when Arrow only carried it.
    fn from(error: ArrowError) -> Self {
        match error {
            ArrowError::ExternalError(inner) => match inner.downcast::<Error>() {
                Ok(own) => *own,
                Err(inner) => Self::new(ErrorKind::Arrow(ArrowError::ExternalError(inner))),
            },
            other => Self::new(ErrorKind::Arrow(other)),
        }
    }
}

impl From<Error> for ArrowError {
    fn from(error: Error) -> Self {
        ArrowError::ExternalError(Box::new(error))
    }
}

/// Ties a failure to the file and the byte where it happened.
pub trait AtPosition<T> {
    /// Adds path, base offset and structure; a [`DecodeError`]'s own position counts from `base`.
    ///
    /// # Errors
    /// The error that was there, with its place.
    fn at(self, path: &str, base: u64, part: &'static str) -> Result<T>;
}

impl<T> AtPosition<T> for Result<T, DecodeError> {
    fn at(self, path: &str, base: u64, part: &'static str) -> Result<T> {
        self.map_err(|error| {
            let offset = base.saturating_add(error.at as u64);
            Error::from(error).at(path, offset, part)
        })
    }
}

impl<T> AtPosition<T> for Result<T, Error> {
    fn at(self, path: &str, base: u64, part: &'static str) -> Result<T> {
        self.map_err(|error| error.at(path, base, part))
    }
}

impl<T> AtPosition<T> for Result<T, io::Error> {
    fn at(self, path: &str, base: u64, part: &'static str) -> Result<T> {
        self.map_err(|error| Error::from(error).at(path, base, part))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_path_structure_byte_expected_and_found() {
        let error =
            Error::corrupt("\"kuducfl2\"", "\"kuducfl\\0\"").at("t/0a1b.data", 4096, "cfile footer magic");
        assert_eq!(
            error.to_string(),
            "t/0a1b.data: cfile footer magic at byte 4096: expected \"kuducfl2\", found \"kuducfl\\0\""
        );
    }

    #[test]
    fn keeps_the_first_position() {
        let error = Error::invalid("x").at("a", 1, "p").at("b", 2, "q");
        assert_eq!(error.position().map(|p| (&*p.path, p.offset, p.part)), Some(("a", 1, "p")));
    }

    #[test]
    fn a_clone_is_the_same_error() {
        for error in [
            Error::corrupt("1", "2").at("f", 3, "p"),
            Error::invalid("y").turning_on(CallOption::Table),
            Error::from(io::Error::new(io::ErrorKind::NotFound, "gone")).at("f", 0, ""),
            Error::from(ArrowError::ComputeError("z".to_string())),
        ] {
            let clone = error.clone();
            assert!(Arc::ptr_eq(&clone.kind, &error.kind), "nothing is copied");
            assert_eq!(clone.to_string(), error.to_string());
            assert_eq!(clone.option(), error.option());
            // A place that one of them gets is its own.
            assert!(clone.at("g", 0, "").position().is_some());
        }
        let placeless = Error::invalid("x");
        assert_eq!(placeless.clone().at("a", 1, "p").position().map(|at| &*at.path), Some("a"));
        assert_eq!(placeless.position(), None);
    }

    #[test]
    fn a_fault_of_ours_blames_neither_the_data_nor_the_call() {
        let error = Error::internal("no column number 7").at("f", 0, "");
        assert!(!error.is_damage());
        assert_eq!(error.to_string(), "f: a fault of pilaster itself, please report it: no column number 7");
    }

    #[test]
    fn comes_back_out_of_arrow_unchanged() {
        let error = Error::corrupt("1", "2").at("f", 3, "p");
        let text = error.to_string();
        assert_eq!(Error::from(ArrowError::from(error)).to_string(), text);
    }

    #[test]
    fn comes_back_out_of_a_call_of_write_unchanged() {
        let full = || io::Error::from(io::ErrorKind::StorageFull);
        let own = Error::from(full()).at("a", 1, "");
        let carried = io::Error::new(full().kind(), own.clone());
        assert_eq!(carried.kind(), io::ErrorKind::StorageFull);
        assert_eq!(Error::from(carried).to_string(), own.to_string());
    }

    #[test]
    fn decode_errors_count_from_the_base() {
        let result: Result<(), DecodeError> = Err(DecodeError::new(5, "a", "b"));
        assert_eq!(
            result.at("f", 100, "block").unwrap_err().to_string(),
            "f: block at byte 105: expected a, found b"
        );
    }
}
