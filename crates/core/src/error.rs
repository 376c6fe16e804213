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
    /// The caller asked for something that cannot be (unknown column, bad option).
    InvalidInput(String),
    /// Reading or writing bytes failed.
    Io(io::Error),
    /// Arrow refused an array, a cast or a batch.
    Arrow(ArrowError),
}

/// What failed and where. Small to move; see [`Error::kind`] and [`Error::position`].
#[derive(Debug)]
pub struct Error(Box<(ErrorKind, Option<Position>)>);

impl Error {
    /// An error of this kind, not yet tied to a place.
    pub fn new(kind: ErrorKind) -> Self {
        Self(Box::new((kind, None)))
    }

    /// Bytes that break the format.
    pub fn corrupt(expected: impl Into<String>, found: impl fmt::Display) -> Self {
        Self::new(ErrorKind::Corrupt { expected: expected.into(), found: found.to_string() })
    }

    /// Something legal that this build cannot do.
    pub fn unsupported(feature: impl Into<String>) -> Self {
        Self::new(ErrorKind::Unsupported { feature: feature.into() })
    }

    /// A request that cannot be met.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::InvalidInput(message.into()))
    }

    /// What went wrong.
    pub fn kind(&self) -> &ErrorKind {
        &self.0.0
    }

    /// Where, if it is known.
    pub fn position(&self) -> Option<&Position> {
        self.0.1.as_ref()
    }

    /// The same error, tied to a place unless it already is.
    #[must_use]
    pub fn at(mut self, path: &str, offset: u64, part: &'static str) -> Self {
        if self.0.1.is_none() {
            self.0.1 = Some(Position { path: path.into(), offset, part });
        }
        self
    }

    /// The same error once more, for one that is kept and given to everybody who asks. What Arrow said becomes its words.
    #[must_use]
    pub fn again(&self) -> Self {
        let kind = match self.kind() {
            ErrorKind::Corrupt { expected, found } => {
                ErrorKind::Corrupt { expected: expected.clone(), found: found.clone() }
            }
            ErrorKind::Unsupported { feature } => ErrorKind::Unsupported { feature: feature.clone() },
            ErrorKind::LimitExceeded { limit, max, found } => {
                ErrorKind::LimitExceeded { limit, max: *max, found: *found }
            }
            ErrorKind::InvalidInput(message) => ErrorKind::InvalidInput(message.clone()),
            ErrorKind::Io(error) => ErrorKind::Io(io::Error::new(error.kind(), error.to_string())),
            ErrorKind::Arrow(error) => ErrorKind::InvalidInput(error.to_string()),
        };
        Self(Box::new((kind, self.position().cloned())))
    }

    /// Whether the data is to blame (and not the call, the machine or this build).
    pub fn is_damage(&self) -> bool {
        matches!(self.kind(), ErrorKind::Corrupt { .. } | ErrorKind::LimitExceeded { .. })
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
            Self::InvalidInput(message) => f.write_str(message),
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
    fn from(error: io::Error) -> Self {
        Self::new(ErrorKind::Io(error))
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
    fn is_given_again_with_the_same_words() {
        for error in [
            Error::corrupt("1", "2").at("f", 3, "p"),
            Error::unsupported("x").at("f", 0, ""),
            Error::invalid("y"),
            Error::from(io::Error::new(io::ErrorKind::NotFound, "gone")).at("f", 0, ""),
            Error::from(ArrowError::ComputeError("z".to_string())),
            Error::new(ErrorKind::LimitExceeded { limit: "l", max: 1, found: 2 }),
        ] {
            assert_eq!(error.again().to_string(), error.to_string());
            assert_eq!(error.again().is_damage(), error.is_damage());
        }
    }

    #[test]
    fn comes_back_out_of_arrow_unchanged() {
        let error = Error::corrupt("1", "2").at("f", 3, "p");
        let text = error.to_string();
        assert_eq!(Error::from(ArrowError::from(error)).to_string(), text);
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
