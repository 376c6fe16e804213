//! What is wrong with a file, as a list that goes on after the first finding.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use crate::error::Error;

/// How thoroughly to look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum VerifyDepth {
    /// Headers, footers and indexes are read and agree with each other.
    Footer,
    /// And every stored checksum is right; where a format has none, every value decodes.
    Checksums,
    /// And every value decodes.
    Values,
}

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Odd, but no row is touched.
    Warning,
    /// Rows or structures are damaged.
    Error,
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// Path of the file.
    pub path: Arc<str>,
    /// Byte where the damaged structure lies.
    pub offset: u64,
    /// Which structure it is, in the format's own words; empty if it is the whole file.
    pub part: String,
    /// What was expected and what was found.
    pub message: String,
    /// Row positions that cannot be read because of it, where known.
    pub rows: Option<Range<u64>>,
}

impl Finding {
    /// A finding out of an error, for a file whose path the error may not know.
    pub fn from_error(error: &Error, path: &str, rows: Option<Range<u64>>) -> Self {
        let (path, offset, part) = match error.position() {
            Some(position) => (Arc::clone(&position.path), position.offset, position.part),
            None => (Arc::from(path), 0, ""),
        };
        let message = error.kind().to_string();
        Self { severity: Severity::Error, path, offset, part: part.to_string(), message, rows }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.path)?;
        if !self.part.is_empty() {
            write!(f, "{} at byte {}: ", self.part, self.offset)?;
        }
        f.write_str(&self.message)?;
        if let Some(rows) = &self.rows {
            write!(f, " (rows {}..{})", rows.start, rows.end)?;
        }
        Ok(())
    }
}

/// Everything a verification looked at and found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VerifyReport {
    /// What is wrong, in file order.
    pub findings: Vec<Finding>,
    /// Files that were opened, or should have been.
    pub files: u64,
    /// Those of them that could not be read, which says nothing about what is in them.
    pub unread: u64,
    /// Blocks or pages that were read.
    pub blocks: u64,
    /// Bytes that were read.
    pub bytes: u64,
    /// Rows whose values were decoded.
    pub rows: u64,
    /// Blocks whose checksum was compared (files may carry none).
    pub checksums: u64,
}

impl VerifyReport {
    /// Whether nothing worse than a warning was found.
    pub fn is_sound(&self) -> bool {
        self.findings.iter().all(|finding| finding.severity < Severity::Error)
    }

    /// Adds a file that could not be opened; `is_unread` if that says nothing about what is in it.
    pub fn add_failure(&mut self, path: &str, error: &Error, is_unread: bool) {
        self.files = self.files.saturating_add(1);
        self.unread = self.unread.saturating_add(u64::from(is_unread));
        self.findings.push(Finding::from_error(error, path, None));
    }

    /// Adds what another verification found.
    pub fn merge(&mut self, other: VerifyReport) {
        self.findings.extend(other.findings);
        self.files = self.files.saturating_add(other.files);
        self.unread = self.unread.saturating_add(other.unread);
        self.blocks = self.blocks.saturating_add(other.blocks);
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.rows = self.rows.saturating_add(other.rows);
        self.checksums = self.checksums.saturating_add(other.checksums);
    }
}
