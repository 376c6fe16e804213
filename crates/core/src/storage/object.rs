//! Stores of objects: S3, GCS, Azure, HTTP, HDFS.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use futures::StreamExt;
use futures::stream::BoxStream;
use object_store::path::Path as Key;
use object_store::{
    MultipartUpload, ObjectMeta, ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload, UpdateVersion,
};

use super::{Entry, EntryKind, Location, Lock, Sink, Storage, Tag, Walk, changed_meanwhile, not_found};
use crate::error::{AtPosition, Error, Result};
use crate::source::{MemorySource, ObjectSource, SourceRef, object_store_of, wait};

/// What is sent at once of a large file. Ten thousand parts are allowed at most, so that files have up to 80 GB.
const PART_BYTES: usize = 8 << 20;

/// Entries of a walk that are fetched together.
const WALK_ENTRIES: usize = 1000;

/// A store of objects. Folders are what keys have in common up to a slash, and exist as long as there are such objects.
#[derive(Debug, Clone)]
pub struct ObjectStorage {
    /// The address of the key that is empty, without a slash at its end.
    address: Arc<str>,
    store: Arc<dyn ObjectStore>,
}

impl ObjectStorage {
    /// A store that the caller has set up; `address` stands before keys in messages.
    pub fn new(address: impl Into<Arc<str>>, store: Arc<dyn ObjectStore>) -> Self {
        Self { address: address.into(), store }
    }

    /// What an address such as `s3://bucket/key` leads to; credentials come from the environment, as the clouds' own tools take them.
    ///
    /// # Errors
    /// [`crate::ErrorKind::InvalidInput`] if the address makes no sense.
    pub(super) fn of_address(address: &str) -> Result<Location> {
        let (store, key) = object_store_of(address)?;
        let trimmed = address.trim_end_matches('/');
        let root = trimmed.strip_suffix(key.as_ref()).unwrap_or(trimmed).trim_end_matches('/');
        Ok(Location::new(Arc::new(Self::new(root, store)), key.as_ref()))
    }

    /// The folder of all objects.
    pub fn root(&self) -> Location {
        Location::new(Arc::new(self.clone()), "")
    }

    /// # Errors
    /// Paths that are no text have no keys.
    fn key(&self, path: &Path) -> Result<Key> {
        let text = path.to_str().ok_or_else(|| Error::invalid("keys of objects are text"));
        let key = text.and_then(|text| Key::parse(text).map_err(|error| Error::invalid(error.to_string())));
        key.at(&self.display(path), 0, "")
    }
}

impl Storage for ObjectStorage {
    fn display(&self, path: &Path) -> String {
        if path.as_os_str().is_empty() {
            return self.address.to_string();
        }
        format!("{}/{}", self.address, path.display())
    }

    fn entry(&self, path: &Path) -> Result<Option<Entry>> {
        let (store, key, name) = (Arc::clone(&self.store), self.key(path)?, self.display(path));
        let found = wait(async move {
            if !key.as_ref().is_empty() {
                match store.head(&key).await {
                    Ok(object) => return Ok(Some(file_entry(&object))),
                    Err(object_store::Error::NotFound { .. }) => {}
                    Err(error) => return Err(error),
                }
            }
            let below = store.list(Some(&key)).next().await.transpose()?;
            Ok(below.map(|_| folder_entry(&key)))
        });
        found.at(&name, 0, "")
    }

    fn list(&self, folder: &Path) -> Result<Vec<Entry>> {
        let (store, key, name) = (Arc::clone(&self.store), self.key(folder)?, self.display(folder));
        let prefix = key.clone();
        let listed = wait(async move { store.list_with_delimiter(Some(&prefix)).await }).at(&name, 0, "")?;
        let folders = listed.common_prefixes.iter().map(folder_entry);
        // Some programs mark a folder by an object of its name.
        let files = listed.objects.iter().filter(|object| object.location != key).map(file_entry);
        let mut entries: Vec<_> = folders.chain(files).collect();
        if entries.is_empty() && listed.objects.is_empty() && !key.as_ref().is_empty() {
            return Err(not_found(&name));
        }
        entries.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(entries)
    }

    fn walk(&self, folder: &Path) -> Walk {
        match self.key(folder) {
            Ok(key) => Box::new(ObjectWalk {
                name: self.display(folder),
                stream: Some(self.store.list(Some(&key))),
                folder: key,
                fetched: Vec::new().into_iter(),
                is_empty: true,
            }),
            Err(error) => Box::new(std::iter::once(Err(error))),
        }
    }

    fn open(&self, path: &Path) -> Result<SourceRef> {
        let key = self.key(path)?;
        Ok(Arc::new(ObjectSource::new(self.display(path), Arc::clone(&self.store), key)?))
    }

    fn create(&self, path: &Path) -> Result<Box<dyn Sink>> {
        Ok(Box::new(ObjectSink {
            name: self.display(path),
            key: self.key(path)?,
            store: Arc::clone(&self.store),
            part: Vec::new(),
            upload: None,
        }))
    }

    fn replace_if(&self, path: &Path, tag: Option<&Tag>, bytes: Bytes) -> Result<()> {
        let (store, key, name) = (Arc::clone(&self.store), self.key(path)?, self.display(path));
        let mode = tag.map_or(PutMode::Create, |tag| {
            PutMode::Update(UpdateVersion { e_tag: Some(tag.as_str().to_string()), version: None })
        });
        let options = PutOptions { mode, ..PutOptions::default() };
        let is_ours = wait(async move {
            use object_store::Error::{AlreadyExists, Precondition};
            match store.put_opts(&key, PutPayload::from(bytes.clone()), options).await {
                Ok(_) => Ok(true),
                // If only the answer was lost, the same call was made again and found what it had written itself.
                Err(AlreadyExists { .. } | Precondition { .. }) => match store.get(&key).await {
                    Ok(there) => Ok(there.bytes().await? == bytes),
                    Err(object_store::Error::NotFound { .. }) => Ok(false),
                    Err(error) => Err(error),
                },
                Err(error) => Err(error),
            }
        });
        if is_ours.at(&name, 0, "")? { Ok(()) } else { Err(changed_meanwhile(&name)) }
    }

    fn remove(&self, path: &Path) -> Result<()> {
        let (store, key) = (Arc::clone(&self.store), self.key(path)?);
        wait(async move { store.delete(&key).await }).at(&self.display(path), 0, "")
    }

    fn set_aside(&self, path: &Path, aside: &Path) -> Result<()> {
        if self.entry(aside)?.is_some() {
            return Err(changed_meanwhile(&self.display(aside)));
        }
        let (store, from, to) = (Arc::clone(&self.store), self.key(path)?, self.key(aside)?);
        wait(async move { store.copy(&from, &to).await }).at(&self.display(path), 0, "")
    }

    fn try_lock(&self, path: &Path) -> Result<Option<Lock>> {
        Lock::of_file(Arc::new(self.clone()), path)
    }
}

struct ObjectWalk {
    name: String,
    folder: Key,
    stream: Option<BoxStream<'static, object_store::Result<ObjectMeta>>>,
    fetched: std::vec::IntoIter<ObjectMeta>,
    is_empty: bool,
}

impl Iterator for ObjectWalk {
    type Item = Result<Entry>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(object) = self.fetched.next() {
                self.is_empty = false;
                if object.location != self.folder {
                    return Some(Ok(file_entry(&object)));
                }
                continue;
            }
            let Some(mut stream) = self.stream.take() else {
                // Said once: there are no folders without files.
                let is_missing = std::mem::take(&mut self.is_empty) && !self.folder.as_ref().is_empty();
                return is_missing.then(|| Err(not_found(&self.name)));
            };
            let fetched = wait(async move {
                let mut objects = Vec::new();
                while objects.len() < WALK_ENTRIES {
                    match stream.next().await {
                        Some(object) => objects.push(object?),
                        None => return Ok((objects, None)),
                    }
                }
                Ok((objects, Some(stream)))
            });
            match fetched.at(&self.name, 0, "") {
                Ok((objects, stream)) => (self.fetched, self.stream) = (objects.into_iter(), stream),
                Err(error) => {
                    self.is_empty = false;
                    return Some(Err(error));
                }
            }
        }
    }
}

/// An object being written: at once if it is small, else in parts, of which the last makes it appear.
#[derive(Debug)]
struct ObjectSink {
    name: String,
    key: Key,
    store: Arc<dyn ObjectStore>,
    part: Vec<u8>,
    upload: Option<Box<dyn MultipartUpload>>,
}

impl ObjectSink {
    fn send_part(&mut self) -> io::Result<()> {
        let payload = PutPayload::from(std::mem::take(&mut self.part));
        let (store, key, begun) = (Arc::clone(&self.store), self.key.clone(), self.upload.take());
        let upload = wait(async move {
            let mut upload = match begun {
                Some(upload) => upload,
                None => store.put_multipart(&key).await?,
            };
            let sent = upload.put_part(payload).await;
            Ok((upload, sent))
        });
        let (upload, sent) = upload?;
        self.upload = Some(upload);
        sent.map_err(io::Error::from)
    }
}

impl Write for ObjectSink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = PART_BYTES.saturating_sub(self.part.len());
        let taken = bytes.get(..room).unwrap_or(bytes);
        self.part.extend_from_slice(taken);
        if self.part.len() >= PART_BYTES {
            self.send_part()?;
        }
        Ok(taken.len())
    }

    /// What is not a whole part yet waits for the end.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Sink for ObjectSink {
    /// Parts that were sent cannot be read before the last one.
    fn written(&mut self) -> Result<Option<SourceRef>> {
        let source = || -> SourceRef { Arc::new(MemorySource::new(self.name.clone(), self.part.clone())) };
        Ok(self.upload.is_none().then(source))
    }

    fn finish(mut self: Box<Self>) -> Result<()> {
        let name = self.name.clone();
        if self.upload.is_none() {
            let (store, key) = (Arc::clone(&self.store), self.key.clone());
            let payload = PutPayload::from(std::mem::take(&mut self.part));
            return wait(async move { store.put(&key, payload).await.map(drop) }).at(&name, 0, "");
        }
        if !self.part.is_empty() {
            self.send_part().at(&name, 0, "")?;
        }
        let Some(mut upload) = self.upload.take() else { return Ok(()) };
        let finished = wait(async move {
            let finished = upload.complete().await.map(drop);
            if finished.is_err() {
                // Parts that nobody asks for cost money; if this fails too, the first error says more.
                let _ = upload.abort().await;
            }
            finished
        });
        finished.at(&name, 0, "")
    }
}

impl Drop for ObjectSink {
    fn drop(&mut self) {
        if let Some(mut upload) = self.upload.take() {
            let _ = wait(async move { upload.abort().await });
        }
    }
}

fn file_entry(object: &ObjectMeta) -> Entry {
    Entry {
        path: PathBuf::from(object.location.as_ref()),
        kind: EntryKind::File,
        size: object.size,
        modified: Some(object.last_modified.into()),
        tag: object.e_tag.as_ref().map(Tag::new),
        is_link: false,
    }
}

fn folder_entry(key: &Key) -> Entry {
    Entry {
        path: PathBuf::from(key.as_ref()),
        kind: EntryKind::Folder,
        size: 0,
        modified: None,
        tag: None,
        is_link: false,
    }
}
