//! From a path or address to a source.

use super::SourceRef;
use crate::error::Result;
use crate::storage::Location;

/// Opens a local path, or an address such as `s3://bucket/key` or `hdfs://host/path` if that feature is built in.
///
/// # Errors
/// [`crate::ErrorKind::Io`] if it cannot be opened, [`crate::ErrorKind::Unsupported`] if the build lacks the feature
/// the address needs.
pub fn open_source(address: &str) -> Result<SourceRef> {
    Location::parse(address)?.open()
}
