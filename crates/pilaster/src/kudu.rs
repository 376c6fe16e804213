//! Where Apache Kudu plugs in: which folders are its tables, how they are opened and written.

use std::path::Path;

use pilaster_core::{BatchReader, DatasetRef, Error, Progress, Result, SourceRef};

use crate::convert::ConvertSummary;
use crate::open::OpenOptions;

/// The file that makes a folder of CFiles a table.
const CFILE_SET_MANIFEST: &str = "cfile-set.json";

/// Whether a folder is a set of CFiles with its manifest.
pub(crate) fn is_cfile_set(folder: &Path) -> bool {
    folder.join(CFILE_SET_MANIFEST).is_file()
}

/// Opens one CFile; a schema of one column in the options names and types it.
pub(crate) fn open_cfile(source: SourceRef, _options: &OpenOptions) -> Result<DatasetRef> {
    Err(Error::unsupported("kudu cfile").at(source.name(), 0, ""))
}

/// Opens a set of CFiles as a table.
pub(crate) fn open_cfile_set(folder: &Path, _options: &OpenOptions) -> Result<DatasetRef> {
    Err(Error::unsupported("a set of kudu cfiles").at(&folder.display().to_string(), 0, ""))
}

/// Writes a set of CFiles.
pub(crate) fn write_cfile_set(
    _batches: BatchReader,
    folder: &Path,
    _progress: &dyn Progress,
) -> Result<ConvertSummary> {
    Err(Error::unsupported("writing kudu cfiles").at(&folder.display().to_string(), 0, ""))
}
