//! Bytes already in memory.

use std::ops::Range;

use bytes::Bytes;

use super::{Source, check_range};
use crate::error::Result;

/// A buffer as a source; reads share it and copy nothing.
#[derive(Debug, Clone)]
pub struct MemorySource {
    name: String,
    bytes: Bytes,
}

impl MemorySource {
    /// A source over `bytes`, called `name` in messages.
    pub fn new(name: impl Into<String>, bytes: impl Into<Bytes>) -> Self {
        Self { name: name.into(), bytes: bytes.into() }
    }
}

impl Source for MemorySource {
    fn name(&self) -> &str {
        &self.name
    }

    fn size(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn read_at(&self, range: Range<u64>) -> Result<Bytes> {
        let length = check_range(&self.name, self.size(), &range)?;
        let start = usize::try_from(range.start).unwrap_or(usize::MAX);
        Ok(self.bytes.slice(start..start.saturating_add(length)))
    }
}
