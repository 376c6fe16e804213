//! From a path or address to a source.

use std::sync::Arc;

use super::{FileSource, SourceRef};
use crate::error::{Error, Result};

/// Opens a local path, or an address such as `s3://bucket/key` or `hdfs://host/path` if that feature is built in.
///
/// # Errors
/// [`crate::ErrorKind::Io`] if it cannot be opened, [`crate::ErrorKind::Unsupported`] if the build lacks the feature
/// the address needs.
pub fn open_source(address: &str) -> Result<SourceRef> {
    match address.split_once("://") {
        None => Ok(Arc::new(FileSource::open(address)?)),
        Some(("file", path)) => Ok(Arc::new(FileSource::open(path)?)),
        Some((scheme, _)) => open_remote(address, scheme),
    }
}

#[cfg(feature = "object_store")]
fn open_remote(address: &str, scheme: &str) -> Result<SourceRef> {
    if scheme == "hdfs" && !cfg!(feature = "hdfs") {
        return Err(missing_feature(address, "hdfs"));
    }
    Ok(Arc::new(super::ObjectSource::open(address)?))
}

#[cfg(not(feature = "object_store"))]
fn open_remote(address: &str, scheme: &str) -> Result<SourceRef> {
    let feature = match scheme {
        "hdfs" => "hdfs",
        "s3" | "s3a" | "gs" | "az" | "azure" | "abfs" | "abfss" | "adl" | "http" | "https" => "object_store",
        other => {
            return Err(Error::invalid(format!("no such kind of address: {other}://")).at(address, 0, ""));
        }
    };
    Err(missing_feature(address, feature))
}

#[cfg_attr(
    all(feature = "object_store", feature = "hdfs"),
    expect(dead_code, reason = "nothing is missing then")
)]
fn missing_feature(address: &str, feature: &str) -> Error {
    Error::unsupported(format!("this build has no {feature} support; build it with `--features {feature}`"))
        .at(address, 0, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_file_is_named() {
        assert!(open_source("no/such/file").unwrap_err().to_string().starts_with("no/such/file: "));
    }

    #[test]
    #[cfg(not(feature = "hdfs"))]
    fn a_missing_feature_is_named() {
        assert_eq!(
            open_source("hdfs://host/a").unwrap_err().to_string(),
            "hdfs://host/a: cannot read this: this build has no hdfs support; build it with `--features hdfs`"
        );
    }
}
