//! What a file says of itself, in one shape for all formats: for `meta`, `tree`, `pages` and `stats`.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::ArrayRef;

/// A structure of a file or table, with the facts it carries and what lies inside it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Node {
    /// What it is, in the format's own words.
    pub name: String,
    /// Bytes it takes on disk, all of its children included.
    pub bytes: u64,
    /// What its headers and footers say, in their order.
    pub facts: Vec<(String, String)>,
    /// The structures inside it.
    pub children: Vec<Node>,
}

impl Node {
    /// A structure of `bytes` bytes.
    pub fn new(name: impl Into<String>, bytes: u64) -> Self {
        Self { name: name.into(), bytes, ..Self::default() }
    }

    /// Adds a fact.
    #[must_use]
    pub fn fact(mut self, name: impl Into<String>, value: impl ToString) -> Self {
        self.facts.push((name.into(), value.to_string()));
        self
    }

    /// Adds a structure inside this one.
    #[must_use]
    pub fn child(mut self, child: Node) -> Self {
        self.children.push(child);
        self
    }
}

/// One page or block of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// The file it lies in.
    pub path: Arc<str>,
    /// The column it belongs to.
    pub column: String,
    /// What kind of page it is, in the format's own words.
    pub kind: &'static str,
    /// Where it begins.
    pub offset: u64,
    /// Bytes on disk.
    pub bytes: u64,
    /// Bytes after decompression, where known.
    pub uncompressed_bytes: Option<u64>,
    /// The rows it holds, where it holds rows.
    pub rows: Option<Range<u64>>,
    /// Null values in it, where known.
    pub nulls: Option<u64>,
    /// Value encoding.
    pub encoding: String,
    /// Block codec.
    pub codec: String,
}

/// What is known of one column without reading its values.
#[derive(Debug, Clone, Default)]
pub struct ColumnStatistics {
    /// Smallest value: an array of length one, of the column's type.
    pub min: Option<ArrayRef>,
    /// Largest value, likewise.
    pub max: Option<ArrayRef>,
    /// Number of nulls.
    pub nulls: Option<u64>,
    /// Value encodings met, in order of first appearance.
    pub encodings: Vec<String>,
    /// Block codecs met.
    pub codecs: Vec<String>,
    /// Bytes on disk.
    pub bytes: u64,
    /// Bytes after decompression, where known.
    pub uncompressed_bytes: Option<u64>,
}
