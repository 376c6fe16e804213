//! Which blocks there are, and where.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use bytes::Bytes;
use pilaster_core::source::{FileHandles, PooledSource, SectionSource, Source, is_out_of_handles};
use pilaster_core::verify::{Finding, Severity};
use pilaster_core::{Error, ErrorKind, Result, SourceRef};

use super::encryption::{self, ServerKey};

/// Where a block lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BlockPlace {
    pub file: Arc<Path>,
    pub offset: u64,
    pub length: u64,
}

/// All live blocks of a server, by id.
#[derive(Debug, Default)]
pub(crate) struct BlockMap {
    pub places: HashMap<u64, BlockPlace>,
    /// Containers whose records say which blocks they hold: where to look for blocks that no record names.
    pub containers: Vec<Container>,
    /// Blocks that were found without a record and whose name is a guess among several.
    pub uncertain: HashSet<u64>,
    /// What is wrong with the containers.
    pub findings: Vec<Finding>,
}

/// A container of the log block manager, as far as its records say.
#[derive(Debug, Clone)]
pub(crate) struct Container {
    pub data: Arc<Path>,
    /// Every block ever created: offset → (id, length). Space is never used twice.
    pub known: BTreeMap<u64, (u64, u64)>,
    /// Blocks begin at multiples of this.
    pub block_bytes: u64,
}

impl BlockMap {
    /// Adds a block; an id that is live twice is reported, and the first place kept.
    pub fn add(&mut self, id: u64, place: BlockPlace) {
        if let Some(first) = self.places.get(&id) {
            let message = format!("block {id} is live in {} too", first.file.display());
            self.report(Severity::Error, &place.file, place.offset, "block record", message);
            return;
        }
        self.places.insert(id, place);
    }

    pub fn report(&mut self, severity: Severity, path: &Path, offset: u64, part: &str, message: String) {
        self.findings.push(Finding {
            severity,
            path: Arc::from(path.display().to_string()),
            offset,
            part: part.to_string(),
            message,
            rows: None,
        });
    }

    pub fn report_error(&mut self, path: &Path, error: &Error) {
        self.findings.push(Finding::from_error(error, &path.display().to_string(), None));
    }
}

/// Opens files when they are needed and shares the open ones: a server has more files than a process may have open.
#[derive(Debug)]
pub(crate) struct FilePool {
    open: Mutex<HashMap<PathBuf, Weak<dyn Source>>>,
    handles: Arc<FileHandles>,
    key: Option<ServerKey>,
    shortage: Shortage,
    #[cfg(test)]
    counting: Mutex<Vec<(PathBuf, Arc<pilaster_core::source::CountingSource>)>>,
}

impl FilePool {
    pub fn new(key: Option<ServerKey>) -> Self {
        Self {
            open: Mutex::default(),
            handles: FileHandles::shared(),
            key,
            shortage: Shortage::default(),
            #[cfg(test)]
            counting: Mutex::default(),
        }
    }

    /// The file at its own offsets, decrypted if it is encrypted.
    pub fn file(&self, path: &Path) -> Result<SourceRef> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(source) = open.get(path).and_then(Weak::upgrade) {
            return Ok(source);
        }
        let source = encryption::decrypting(self.open(path)?, self.key.as_ref())?;
        open.insert(path.to_path_buf(), Arc::downgrade(&source));
        Ok(source)
    }

    /// The content of a file that is one structure, without the encryption header.
    pub fn content(&self, path: &Path) -> Result<SourceRef> {
        encryption::content(self.open(path)?, self.key.as_ref())
    }

    /// A block as a file of its own.
    pub fn block(&self, id: u64, place: &BlockPlace) -> Result<SourceRef> {
        let whole = self.file(&place.file)?;
        let name = format!("{} (block {id} at byte {})", place.file.display(), place.offset);
        let end = place.offset.saturating_add(place.length);
        Ok(Arc::new(SectionSource::new(name, whole, place.offset..end)?))
    }

    /// Refuses to go on if a file could not be read for want of handles: what is then missing is not damage.
    pub fn check_handles(&self) -> Result<()> {
        self.shortage.error().map_or(Ok(()), Err)
    }

    fn open(&self, path: &Path) -> Result<SourceRef> {
        let inner = self.shortage.noted(self.handles.open(path))?;
        let source: SourceRef = Arc::new(NotedSource { inner, shortage: self.shortage.clone() });
        #[cfg(test)]
        let source = self.counted(path, source);
        Ok(source)
    }

    #[cfg(test)]
    fn counted(&self, path: &Path, source: SourceRef) -> SourceRef {
        let counting = Arc::new(pilaster_core::source::CountingSource::new(source));
        self.counting.lock().unwrap().push((path.to_path_buf(), Arc::clone(&counting)));
        counting
    }

    /// What was read of each file since it was last asked for, by name.
    #[cfg(test)]
    pub fn reads(&self) -> BTreeMap<String, pilaster_core::source::ReadCounts> {
        let mut reads = BTreeMap::new();
        for (path, source) in self.counting.lock().unwrap().iter() {
            let counts = source.counts();
            source.reset();
            if counts.reads > 0 {
                let sum: &mut pilaster_core::source::ReadCounts =
                    reads.entry(path.file_name().unwrap().to_string_lossy().into_owned()).or_default();
                sum.reads += counts.reads;
                sum.bytes += counts.bytes;
            }
        }
        reads
    }
}

/// The first file that could not be opened because too many were open, and what the system said.
#[derive(Debug, Clone, Default)]
struct Shortage(Arc<OnceLock<(String, i32)>>);

impl Shortage {
    fn noted<T>(&self, result: Result<T>) -> Result<T> {
        if let Err(error) = &result
            && is_out_of_handles(error)
            && let ErrorKind::Io(cause) = error.kind()
        {
            let path = error.position().map(|position| position.path.to_string());
            self.0.get_or_init(|| (path.unwrap_or_default(), cause.raw_os_error().unwrap_or_default()));
        }
        result
    }

    fn error(&self) -> Option<Error> {
        let (path, code) = self.0.get()?;
        Some(Error::from(std::io::Error::from_raw_os_error(*code)).at(path, 0, ""))
    }
}

/// A file whose failures for want of handles are noted.
#[derive(Debug)]
struct NotedSource {
    inner: PooledSource,
    shortage: Shortage,
}

impl Source for NotedSource {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn size(&self) -> u64 {
        self.inner.size()
    }

    fn read_at(&self, range: Range<u64>) -> Result<Bytes> {
        self.shortage.noted(self.inner.read_at(range))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lack_of_handles_is_remembered_and_other_failures_are_not() {
        let pool = FilePool::new(None);
        assert!(pool.file(Path::new("no/such/file")).is_err());
        assert!(pool.check_handles().is_ok());
        let full = || Error::from(std::io::Error::from_raw_os_error(24)).at("the/file", 0, "");
        assert!(pool.shortage.noted::<()>(Err(full())).is_err());
        if cfg!(unix) {
            let error = pool.check_handles().unwrap_err();
            assert!(!error.is_damage() && error.to_string().starts_with("the/file: "), "{error}");
        }
    }
}
