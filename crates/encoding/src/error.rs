//! What a decoder says when bytes are not what the layout promises.

use std::borrow::Cow;
use std::fmt;

/// Bytes that break an encoding: where in the given slice, what the layout asks for, what stands there.
///
/// The position is relative to the slice the decoder was given; the caller, who knows the file, adds the path and
/// the base offset (see [`DecodeError::shifted`]).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecodeError {
    /// Byte position inside the slice that was being decoded.
    pub at: usize,
    /// What the layout asks for.
    pub expected: Cow<'static, str>,
    /// What stands there instead.
    pub found: Cow<'static, str>,
}

impl DecodeError {
    /// A new error at byte `at` of the slice.
    pub fn new(
        at: usize,
        expected: impl Into<Cow<'static, str>>,
        found: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self { at, expected: expected.into(), found: found.into() }
    }

    /// The same error seen from a slice that begins `by` bytes earlier.
    #[must_use]
    pub fn shifted(self, by: usize) -> Self {
        Self { at: self.at.saturating_add(by), ..self }
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at byte {}: expected {}, found {}", self.at, self.expected, self.found)
    }
}

impl std::error::Error for DecodeError {}

/// Result of a decoder.
pub type Result<T, E = DecodeError> = std::result::Result<T, E>;
