//! How to open a file.

use std::fmt;
use std::sync::Arc;

pub use pilaster_core::LostCells;
use pilaster_core::{Limits, Location, Result, SourceRef};

/// Opens a data file by its path, relative to the folder of the metadata file.
pub(crate) type OpenFile = Arc<dyn Fn(&str) -> Result<SourceRef> + Send + Sync>;

/// How to open a file.
#[derive(Clone)]
pub struct RedfileReaderOptions {
    pub(crate) verify_checksums: bool,
    pub(crate) limits: Limits,
    pub(crate) any_path: bool,
    pub(crate) open_file: Option<OpenFile>,
    pub(crate) lost_cells: LostCells,
}

impl Default for RedfileReaderOptions {
    /// Checksums are verified; data files are looked for beside the metadata file.
    fn default() -> Self {
        // A footer may be larger than those of other formats: it repeats the metadata of every chunk.
        let limits = Limits { metadata_bytes: 1 << 30, decoded_bytes: 1 << 30, ..Limits::default() };
        Self {
            verify_checksums: true,
            limits,
            any_path: false,
            open_file: None,
            lost_cells: LostCells::DropRow,
        }
    }
}

impl fmt::Debug for RedfileReaderOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedfileReaderOptions")
            .field("verify_checksums", &self.verify_checksums)
            .field("limits", &self.limits)
            .field("lost_cells", &self.lost_cells)
            .finish_non_exhaustive()
    }
}

impl RedfileReaderOptions {
    /// Whether checksums of page bodies are compared; on unless switched off. Those of headers and metadata always are.
    #[must_use]
    pub fn with_verify_checksums(mut self, verify: bool) -> Self {
        self.verify_checksums = verify;
        self
    }

    /// How much the file may make us allocate.
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Whether a metadata file may name data files anywhere, also with an absolute path or `..`. Only for files that are
    /// trusted.
    #[must_use]
    pub fn with_any_data_path(mut self, allow: bool) -> Self {
        self.any_path = allow;
        self
    }

    /// How data files are opened by the path that the metadata file names.
    #[must_use]
    pub fn with_data_files(
        mut self,
        open: impl Fn(&str) -> Result<SourceRef> + Send + Sync + 'static,
    ) -> Self {
        self.open_file = Some(Arc::new(open));
        self
    }

    /// What a tolerant scan does with a row of which some cells are lost.
    #[must_use]
    pub fn with_lost_cells(mut self, lost: LostCells) -> Self {
        self.lost_cells = lost;
        self
    }
}

/// Opens files beside the one called `name`.
pub(crate) fn beside(name: &str) -> OpenFile {
    let folder = name.rfind(['/', std::path::MAIN_SEPARATOR]).and_then(|end| name.get(..=end));
    let folder = folder.unwrap_or_default().to_string();
    Arc::new(move |path| Location::parse(&format!("{folder}{path}"))?.open())
}
