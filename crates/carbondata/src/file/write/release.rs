//! The release whose form files have.

use super::super::types::is_global;
use crate::messages::ColumnSchema;

/// Whose readers a file is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Release {
    /// 1.6, the last one with dictionaries of the table: cardinalities, no compressor in the name of a file, and lengths of two bytes inside
    /// of nested columns.
    Old,
    /// 2.3.
    Current,
}

impl Release {
    /// The release for files with these columns, in a table that is of a release before 2.0 or not.
    pub fn of(columns: &[ColumnSchema], is_old: bool) -> Self {
        if is_old || columns.iter().any(is_global) { Self::Old } else { Self::Current }
    }

    /// What files say wrote them.
    pub fn version(self) -> &'static str {
        match self {
            Self::Old => "1.6.1",
            Self::Current => "2.3.0",
        }
    }
}
