//! How to write tables.

use std::sync::Arc;
use std::time::Duration;

use crate::file::CarbonWriterOptions;

/// How long to wait for a lock, as CarbonData does.
const LOCK_TIMEOUT: Duration = Duration::from_secs(15);

/// Is told what has just been done.
pub(crate) type StepHook = Arc<dyn Fn(&str) + Send + Sync>;

/// How to write a table.
#[derive(Clone)]
pub struct CarbonTableWriterOptions {
    pub(crate) files: CarbonWriterOptions,
    pub(crate) partition_columns: Vec<String>,
    pub(crate) bucket_columns: Vec<String>,
    pub(crate) buckets: u32,
    pub(crate) dictionary_columns: Vec<String>,
    pub(crate) merged_index: bool,
    pub(crate) lock_timeout: Duration,
    pub(crate) properties: Vec<(String, String)>,
    pub(crate) on_step: Option<StepHook>,
}

impl std::fmt::Debug for CarbonTableWriterOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CarbonTableWriterOptions")
            .field("files", &self.files)
            .field("partition_columns", &self.partition_columns)
            .field("bucket_columns", &self.bucket_columns)
            .field("buckets", &self.buckets)
            .field("dictionary_columns", &self.dictionary_columns)
            .field("merged_index", &self.merged_index)
            .field("lock_timeout", &self.lock_timeout)
            .field("properties", &self.properties)
            .finish_non_exhaustive()
    }
}

impl Default for CarbonTableWriterOptions {
    /// Files with their defaults, neither partitions nor buckets nor dictionaries, index files merged.
    fn default() -> Self {
        Self {
            files: CarbonWriterOptions::default(),
            partition_columns: Vec::new(),
            bucket_columns: Vec::new(),
            buckets: 0,
            dictionary_columns: Vec::new(),
            merged_index: true,
            lock_timeout: LOCK_TIMEOUT,
            properties: Vec::new(),
            on_step: None,
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

impl CarbonTableWriterOptions {
    /// How data files are written. What a table that exists says itself (sort columns, long texts, sizes) goes before it.
    #[must_use]
    pub fn with_files(mut self, files: CarbonWriterOptions) -> Self {
        self.files = files;
        self
    }

    /// As [`CarbonWriterOptions::with_sort_memory_bytes`], whatever else its files have.
    #[must_use]
    pub fn with_sort_memory_bytes(mut self, bytes: usize) -> Self {
        self.files = self.files.with_sort_memory_bytes(bytes);
        self
    }

    /// Columns whose values are in the names of folders, of a new table. They become its last columns.
    #[must_use]
    pub fn with_partition_columns<I, S>(mut self, columns: I) -> Self
    where
        I: IntoIterator<Item = S>,
        S: AsRef<str>,
    {
        self.partition_columns = lower(columns);
        self
    }

    /// Columns that say into which of `buckets` files a row goes, of a new table.
    #[must_use]
    pub fn with_buckets<I, S>(mut self, columns: I, buckets: u32) -> Self
    where
        I: IntoIterator<Item = S>,
        S: AsRef<str>,
    {
        self.bucket_columns = lower(columns);
        self.buckets = buckets;
        self
    }

    /// Columns that are stored as codes of a dictionary of the whole table, as releases before 2.0 did, of a new table. Releases
    /// since 2.0 refuse such tables.
    #[must_use]
    pub fn with_dictionary_columns<I, S>(mut self, columns: I) -> Self
    where
        I: IntoIterator<Item = S>,
        S: AsRef<str>,
    {
        self.dictionary_columns = lower(columns);
        self
    }

    /// Whether the index files of a load are merged into one per folder.
    #[must_use]
    pub fn with_merged_index(mut self, merged: bool) -> Self {
        self.merged_index = merged;
        self
    }

    /// How long to wait for somebody else who is writing to the table.
    #[must_use]
    pub fn with_lock_timeout(mut self, timeout: Duration) -> Self {
        self.lock_timeout = timeout;
        self
    }

    /// Adds a property of a new table; the key is stored in lower case.
    #[must_use]
    pub fn with_property(mut self, key: impl AsRef<str>, value: impl Into<String>) -> Self {
        self.properties.push((key.as_ref().to_lowercase(), value.into()));
        self
    }

    /// Calls `hook` after everything that changes the table's folder; for tests of what a crash leaves behind.
    #[doc(hidden)]
    #[must_use]
    pub fn with_step_hook(mut self, hook: Arc<dyn Fn(&str) + Send + Sync>) -> Self {
        self.on_step = Some(hook);
        self
    }

    pub(crate) fn step(&self, what: &str) {
        if let Some(hook) = &self.on_step {
            hook(what);
        }
    }
}
