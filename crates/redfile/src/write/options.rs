//! How to write a file.

use std::collections::HashMap;

use crate::metadata::{Compression, KeyValue, MARKER_BYTES};

/// Uncompressed bytes of a page at which it is closed.
pub const PAGE_BYTES: usize = 8192;
/// Uncompressed bytes of a row group at which it is closed.
pub const ROW_GROUP_BYTES: u64 = 512 << 20;
/// A checkpoint follows every so many row groups.
pub const CHECKPOINT_INTERVAL: u32 = 16;

/// How integers are encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EncodingChoice {
    /// For each page the smaller of both.
    #[default]
    Auto,
    /// Always PLAIN.
    Plain,
    /// Always GROUP_VAR_INT.
    GroupVarInt,
}

/// How to write a file.
#[derive(Debug, Clone)]
pub struct RedfileWriterOptions {
    pub(super) page_bytes: usize,
    pub(super) row_group_bytes: u64,
    pub(super) row_group_rows: u64,
    pub(super) codec: Compression,
    pub(super) column_codecs: HashMap<String, Compression>,
    pub(super) encoding: EncodingChoice,
    pub(super) replica: bool,
    pub(super) index_pages: bool,
    pub(super) statistics: bool,
    pub(super) checksums: bool,
    pub(super) checkpoint_interval: u32,
    pub(super) sync_marker: Option<[u8; MARKER_BYTES]>,
    pub(super) row_group_extent: bool,
    pub(super) page_row_counts: bool,
    pub(super) key_values: Vec<KeyValue>,
    pub(super) created_by: Option<String>,
}

impl Default for RedfileWriterOptions {
    /// Pages of 8 KiB, row groups of 512 MiB, Snappy; with replicas, index pages, statistics, all checksums, and a checkpoint
    /// every 16 row groups.
    fn default() -> Self {
        Self {
            page_bytes: PAGE_BYTES,
            row_group_bytes: ROW_GROUP_BYTES,
            row_group_rows: u64::MAX,
            codec: Compression::Snappy,
            column_codecs: HashMap::new(),
            encoding: EncodingChoice::Auto,
            replica: true,
            index_pages: true,
            statistics: true,
            checksums: true,
            checkpoint_interval: CHECKPOINT_INTERVAL,
            sync_marker: None,
            row_group_extent: true,
            page_row_counts: true,
            key_values: Vec::new(),
            created_by: Some(concat!("pilaster ", env!("CARGO_PKG_VERSION")).to_string()),
        }
    }
}

impl RedfileWriterOptions {
    /// Uncompressed bytes of a page at which it is closed; records never span pages.
    #[must_use]
    pub fn with_page_bytes(mut self, bytes: usize) -> Self {
        self.page_bytes = bytes.max(1);
        self
    }

    /// Uncompressed bytes of a row group at which it is closed. The stored pages of a row group are held in memory.
    #[must_use]
    pub fn with_row_group_bytes(mut self, bytes: u64) -> Self {
        self.row_group_bytes = bytes.max(1);
        self
    }

    /// Rows of a row group at which it is closed; no limit unless set.
    #[must_use]
    pub fn with_row_group_rows(mut self, rows: u64) -> Self {
        self.row_group_rows = rows.max(1);
        self
    }

    /// Codec of all columns that have none of their own.
    #[must_use]
    pub fn with_codec(mut self, codec: Compression) -> Self {
        self.codec = codec;
        self
    }

    /// Codec of one column of the file, named by its path with dots.
    #[must_use]
    pub fn with_column_codec(mut self, path: impl Into<String>, codec: Compression) -> Self {
        self.column_codecs.insert(path.into(), codec);
        self
    }

    /// How integers are encoded.
    #[must_use]
    pub fn with_encoding(mut self, encoding: EncodingChoice) -> Self {
        self.encoding = encoding;
        self
    }

    /// Whether the footer repeats the metadata of every chunk, so that one read plans a scan.
    #[must_use]
    pub fn with_replica(mut self, replica: bool) -> Self {
        self.replica = replica;
        self
    }

    /// Whether chunks end with an index page, so that a row is found without walking.
    #[must_use]
    pub fn with_index_pages(mut self, index_pages: bool) -> Self {
        self.index_pages = index_pages;
        self
    }

    /// Whether bounds and counts are kept of chunks and pages.
    #[must_use]
    pub fn with_statistics(mut self, statistics: bool) -> Self {
        self.statistics = statistics;
        self
    }

    /// Whether pages, page headers, column metadata and file metadata have checksums.
    #[must_use]
    pub fn with_checksums(mut self, checksums: bool) -> Self {
        self.checksums = checksums;
        self
    }

    /// After how many row groups the metadata of all of them is written again; 0 switches recovery off.
    #[must_use]
    pub fn with_checkpoint_interval(mut self, row_groups: u32) -> Self {
        self.checkpoint_interval = row_groups;
        self
    }

    /// The marker of this file's checkpoints; random unless set.
    #[must_use]
    pub fn with_sync_marker(mut self, marker: [u8; MARKER_BYTES]) -> Self {
        self.sync_marker = Some(marker);
        self
    }

    /// Whether row groups say where they begin and how many bytes they take.
    #[must_use]
    pub fn with_row_group_extent(mut self, extent: bool) -> Self {
        self.row_group_extent = extent;
        self
    }

    /// Whether page headers say how many records begin in the page.
    #[must_use]
    pub fn with_page_row_counts(mut self, counts: bool) -> Self {
        self.page_row_counts = counts;
        self
    }

    /// Adds a key with its value to the file, after those of the schema.
    #[must_use]
    pub fn with_key_value(mut self, key: impl Into<String>, value: Option<String>) -> Self {
        self.key_values.push((key.into(), value));
        self
    }

    /// Which program the file says it was written by.
    #[must_use]
    pub fn with_created_by(mut self, program: Option<String>) -> Self {
        self.created_by = program;
        self
    }
}
