//! How the disks are opened.

use crate::cfile::CFileReaderOptions;
use crate::tablet::LogUse;

/// How to open the disks.
#[derive(Debug, Clone, Default)]
pub struct KuduStoreOptions {
    pub(super) cfile: CFileReaderOptions,
    pub(super) log: LogUse,
    pub(super) as_of: Option<u64>,
    pub(super) replica: Option<String>,
    pub(super) tablet: Option<String>,
    pub(super) server_key: Option<String>,
    pub(super) secrets: bool,
}

impl KuduStoreOptions {
    /// How CFiles are opened: checksums and limits. The limits are those of all other files too.
    #[must_use]
    pub fn with_cfile_options(mut self, options: CFileReaderOptions) -> Self {
        self.cfile = options;
        self
    }

    /// Whether the log is read; it is unless told otherwise.
    #[must_use]
    pub fn with_log(mut self, log: LogUse) -> Self {
        self.log = log;
        self
    }

    /// Rows as they were before this hybrid timestamp.
    #[must_use]
    pub fn with_as_of(mut self, timestamp: Option<u64>) -> Self {
        self.as_of = timestamp;
        self
    }

    /// Read the replicas of the server with this uuid (or the start of it).
    #[must_use]
    pub fn with_replica(mut self, server: Option<String>) -> Self {
        self.replica = server;
        self
    }

    /// Read only the tablet with this id (or the start of it).
    #[must_use]
    pub fn with_tablet(mut self, tablet: Option<String>) -> Self {
        self.tablet = tablet;
        self
    }

    /// The clear server key in hex, for disks encrypted with a key management service.
    #[must_use]
    pub fn with_server_key(mut self, key: Option<String>) -> Self {
        self.server_key = key;
        self
    }

    /// Whether authorization tokens of the log and private keys of a master's system catalog are shown; they are redacted
    /// unless asked for.
    #[must_use]
    pub fn with_secrets(mut self, secrets: bool) -> Self {
        self.secrets = secrets;
        self
    }

    /// Whether the options choose this replica of this tablet.
    pub(super) fn chooses(&self, tablet: &str, server: &str) -> bool {
        let fits = |asked: &Option<String>, found: &str| {
            asked.as_ref().is_none_or(|asked| found.starts_with(asked.as_str()))
        };
        fits(&self.tablet, tablet) && fits(&self.replica, server)
    }
}
