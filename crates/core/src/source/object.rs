//! An object of S3, GCS, Azure, HTTP or HDFS.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use object_store::path::Path as ObjectPath;
use object_store::{ObjectStore, ObjectStoreExt};
use tokio::runtime::Runtime;

use super::{Source, check_range, cut, merge_ranges};
use crate::error::{AtPosition, Error, Result};

/// Over a network a round trip costs what a megabyte costs.
const REMOTE_MERGE_HOLE_BYTES: u64 = 1 << 20;

/// An object in a store. Decoders stay synchronous: this source does its own waiting.
#[derive(Debug)]
pub struct ObjectSource {
    name: String,
    size: u64,
    store: Arc<dyn ObjectStore>,
    path: ObjectPath,
}

impl ObjectSource {
    /// Opens an object of a store that the caller has set up.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Io`] if the store fails.
    pub fn new(name: impl Into<String>, store: Arc<dyn ObjectStore>, path: ObjectPath) -> Result<Self> {
        let name = name.into();
        let head = {
            let (store, path) = (Arc::clone(&store), path.clone());
            wait(async move { store.head(&path).await }).at(&name, 0, "")?
        };
        Ok(Self { name, size: head.size, store, path })
    }
}

impl Source for ObjectSource {
    fn name(&self) -> &str {
        &self.name
    }

    fn size(&self) -> u64 {
        self.size
    }

    fn read_at(&self, range: Range<u64>) -> Result<Bytes> {
        check_range(&self.name, self.size, &range)?;
        if range.is_empty() {
            return Ok(Bytes::new());
        }
        let (store, path, start) = (Arc::clone(&self.store), self.path.clone(), range.start);
        wait(async move { store.get_range(&path, range).await }).at(&self.name, start, "read")
    }

    fn read_many(&self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        for range in ranges {
            check_range(&self.name, self.size, range)?;
        }
        let merged = merge_ranges(ranges, REMOTE_MERGE_HOLE_BYTES);
        if merged.is_empty() {
            return Ok(vec![Bytes::new(); ranges.len()]);
        }
        let (store, path, wanted) = (Arc::clone(&self.store), self.path.clone(), merged.clone());
        let fetched =
            wait(async move { store.get_ranges(&path, &wanted).await }).at(&self.name, 0, "read")?;
        cut(ranges, &merged, &fetched)
    }
}

/// The store that an address leads to, and the path in it; credentials come from the environment, as the cloud's own tools take them.
pub(crate) fn object_store_of(address: &str) -> Result<(Arc<dyn ObjectStore>, ObjectPath)> {
    let bad = |error: &dyn std::fmt::Display| Error::invalid(error.to_string()).at(address, 0, "");
    let url = url::Url::parse(address).map_err(|error| bad(&error))?;
    #[cfg(feature = "hdfs")]
    if matches!(url.scheme(), "hdfs" | "viewfs") {
        let store = hdfs_native_object_store::HdfsObjectStoreBuilder::new()
            .with_url(url.as_str())
            .build()
            .map_err(|error| bad(&error))?;
        let path = ObjectPath::from_url_path(url.path()).map_err(|error| bad(&error))?;
        return Ok((Arc::new(store), path));
    }
    let (store, path) = object_store::parse_url_opts(&url, environment()).map_err(|error| bad(&error))?;
    Ok((Arc::from(store), path))
}

/// The environment's variables that are text; others cannot be settings of a store.
fn environment() -> impl Iterator<Item = (String, String)> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
}

/// Runs a future to its end on a runtime of our own, also when the caller is inside another runtime.
pub(crate) fn wait<T: Send + 'static>(
    future: impl Future<Output = object_store::Result<T>> + Send + 'static,
) -> std::io::Result<T> {
    static RUNTIME: OnceLock<std::io::Result<Runtime>> = OnceLock::new();
    let runtime = RUNTIME
        .get_or_init(|| tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build())
        .as_ref()
        .map_err(|error| std::io::Error::other(error.to_string()))?;
    let (sender, receiver) = std::sync::mpsc::sync_channel(1);
    runtime.spawn(async move {
        let _ = sender.send(future.await);
    });
    receiver.recv().map_err(std::io::Error::other)?.map_err(std::io::Error::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use object_store::PutPayload;
    use object_store::memory::InMemory;

    fn stored(bytes: Vec<u8>) -> ObjectSource {
        let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
        let path = ObjectPath::from("a/b");
        let (putter, to) = (Arc::clone(&store), path.clone());
        wait(async move { putter.put(&to, PutPayload::from(bytes)).await }).unwrap();
        ObjectSource::new("memory://a/b", store, path).unwrap()
    }

    #[test]
    fn reads_what_was_stored() {
        let source = stored((0..200u8).collect());
        assert_eq!(source.size(), 200);
        assert_eq!(&source.read_at(10..13).unwrap()[..], [10, 11, 12]);
        let parts = source.read_many(&[5..6, 0..0, 190..200]).unwrap();
        assert_eq!(parts.iter().map(Bytes::len).collect::<Vec<_>>(), [1, 0, 10]);
        assert!(source.read_at(100..201).is_err());
    }
}
