//! How to write files.

use pilaster_core::{Error, Result};
use pilaster_encoding::codec::Codec;

use crate::file::Calendar;

/// Rows of a page; row ids are 16-bit numbers, and CarbonData's vector reader has room for no more.
const PAGE_ROWS: usize = 32_000;
/// Bytes of one column's values at which a page ends early, before they are compressed.
const PAGE_BYTES: usize = 64 << 20;
/// Compressed bytes at which a blocklet ends.
const BLOCKLET_BYTES: u64 = 64 << 20;
/// Bytes at which a data file ends, of which nine tenths are used.
const BLOCK_BYTES: u64 = 1024 << 20;
/// Distinct values of a column and blocklet at which its local dictionary is given up.
const LOCAL_DICTIONARY_THRESHOLD: usize = 10_000;
/// Bytes of the entries of a local dictionary at which it is given up.
pub(super) const LOCAL_DICTIONARY_BYTES: usize = 4 << 20;

/// How pages are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Compressor {
    /// Raw Snappy, CarbonData's own choice.
    #[default]
    Snappy,
    /// Zstandard, level 3.
    Zstd,
    /// gzip, level 6.
    Gzip,
}

impl Compressor {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Snappy, Self::Zstd, Self::Gzip];

    /// Its name in files and in their names.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Snappy => "snappy",
            Self::Zstd => "zstd",
            Self::Gzip => "gzip",
        }
    }

    pub(super) const fn codec(self) -> Codec {
        match self {
            Self::Snappy => Codec::Snappy,
            Self::Zstd => Codec::Zstd,
            Self::Gzip => Codec::Gzip,
        }
    }
}

impl std::str::FromStr for Compressor {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        let found = Self::ALL.into_iter().find(|compressor| compressor.name().eq_ignore_ascii_case(name));
        found.ok_or_else(|| Error::invalid(format!("no compressor {name:?}: snappy, zstd or gzip")))
    }
}

/// How to write data files; the defaults are CarbonData's.
#[derive(Debug, Clone)]
pub struct CarbonWriterOptions {
    pub(crate) compressor: Compressor,
    pub(crate) page_rows: usize,
    pub(crate) page_bytes: usize,
    pub(crate) blocklet_bytes: u64,
    pub(crate) block_bytes: u64,
    pub(crate) local_dictionary: bool,
    pub(crate) local_dictionary_threshold: usize,
    pub(crate) sort_columns: Vec<String>,
    pub(crate) inverted_index: Vec<String>,
    pub(crate) long_strings: Vec<String>,
    pub(crate) sort_memory_bytes: usize,
    pub(crate) written_by: String,
    pub(crate) calendar: Calendar,
}

impl Default for CarbonWriterOptions {
    /// Snappy, pages of 32,000 rows, blocklets of 64 MiB, files of 1 GiB, local dictionaries of up to 10,000 entries, rows in the
    /// order they come.
    fn default() -> Self {
        Self {
            compressor: Compressor::Snappy,
            page_rows: PAGE_ROWS,
            page_bytes: PAGE_BYTES,
            blocklet_bytes: BLOCKLET_BYTES,
            block_bytes: BLOCK_BYTES,
            local_dictionary: true,
            local_dictionary_threshold: LOCAL_DICTIONARY_THRESHOLD,
            sort_columns: Vec::new(),
            inverted_index: Vec::new(),
            long_strings: Vec::new(),
            sort_memory_bytes: pilaster_core::sort::DEFAULT_MEMORY_BYTES,
            written_by: concat!("pilaster ", env!("CARGO_PKG_VERSION")).to_string(),
            calendar: Calendar::default(),
        }
    }
}

fn lower<I, S>(names: I) -> Vec<String>
where
    I: IntoIterator<Item = S>,
    S: AsRef<str>,
{
    names.into_iter().map(|name| name.as_ref().to_lowercase()).collect()
}

impl CarbonWriterOptions {
    /// Which days and times the numbers stand for that are written: with [`Calendar::Stored`] they go into the file as they are.
    #[must_use]
    pub fn with_calendar(mut self, calendar: Calendar) -> Self {
        self.calendar = calendar;
        self
    }

    /// How pages are compressed.
    #[must_use]
    pub fn with_compressor(mut self, compressor: Compressor) -> Self {
        self.compressor = compressor;
        self
    }

    /// Rows of a page: 1 to 32,000.
    #[must_use]
    pub fn with_page_rows(mut self, rows: usize) -> Self {
        self.page_rows = rows.clamp(1, PAGE_ROWS);
        self
    }

    /// Bytes of one column's values at which a page ends early (`table_page_size_inmb`); at most 64 MiB.
    #[must_use]
    pub fn with_page_bytes(mut self, bytes: usize) -> Self {
        self.page_bytes = bytes.clamp(1, PAGE_BYTES);
        self
    }

    /// Compressed bytes at which a blocklet ends (`table_blocklet_size`).
    #[must_use]
    pub fn with_blocklet_bytes(mut self, bytes: u64) -> Self {
        self.blocklet_bytes = bytes.clamp(1, 1 << 30);
        self
    }

    /// Bytes at which a new data file begins (`table_blocksize`), of folders and tables.
    #[must_use]
    pub fn with_block_bytes(mut self, bytes: u64) -> Self {
        self.block_bytes = bytes.max(1);
        self
    }

    /// Whether texts of few distinct values are stored as codes (`local_dictionary_enable`).
    #[must_use]
    pub fn with_local_dictionary(mut self, enable: bool) -> Self {
        self.local_dictionary = enable;
        self
    }

    /// How many distinct values are few (`local_dictionary_threshold`): 1,000 to 100,000 for CarbonData, any number here.
    #[must_use]
    pub fn with_local_dictionary_threshold(mut self, words: usize) -> Self {
        self.local_dictionary_threshold = words.min(1 << 20);
        self
    }

    /// The columns that rows are sorted by, the most important first (`sort_columns`).
    #[must_use]
    pub fn with_sort_columns<I, S>(mut self, columns: I) -> Self
    where
        I: IntoIterator<Item = S>,
        S: AsRef<str>,
    {
        self.sort_columns = lower(columns);
        self
    }

    /// Sort columns whose pages are sorted by value, with row ids (`inverted_index`): texts and dates. A page with nulls gets
    /// none, because CarbonData's filters would be wrong on it.
    #[must_use]
    pub fn with_inverted_index<I, S>(mut self, columns: I) -> Self
    where
        I: IntoIterator<Item = S>,
        S: AsRef<str>,
    {
        self.inverted_index = lower(columns);
        self
    }

    /// Texts that may be longer than 32,000 bytes (`long_string_columns`), stored as VARCHAR.
    #[must_use]
    pub fn with_long_strings<I, S>(mut self, columns: I) -> Self
    where
        I: IntoIterator<Item = S>,
        S: AsRef<str>,
    {
        self.long_strings = lower(columns);
        self
    }

    /// About how many bytes of rows are sorted in memory, in folders and tables; more go through temporary files beside what is
    /// written, which have no names. 128 MiB unless set.
    #[must_use]
    pub fn with_sort_memory_bytes(mut self, bytes: usize) -> Self {
        self.sort_memory_bytes = bytes.max(1);
        self
    }

    /// Which program the files say they were written by.
    #[must_use]
    pub fn with_written_by(mut self, program: impl Into<String>) -> Self {
        self.written_by = program.into();
        self
    }
}
