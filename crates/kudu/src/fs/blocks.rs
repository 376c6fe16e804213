//! Which blocks there are, and where.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use bytes::Bytes;
use pilaster_core::source::{SectionSource, Source};
use pilaster_core::verify::{Finding, Severity};
use pilaster_core::{Error, Location, Result, SourceRef};

use super::encryption::{self, KeyOrWhy, ServerKey};
use super::unread::UnreadLog;

/// Where a block lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BlockPlace {
    pub file: Arc<Location>,
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
    /// A place of blocks that could not be looked at: what is missing may be there.
    pub unread: Option<Location>,
}

/// A container of the log block manager, as far as its records say.
#[derive(Debug, Clone)]
pub(crate) struct Container {
    pub data: Arc<Location>,
    /// Every block ever created: offset → (id, length). Space is never used twice.
    pub known: BTreeMap<u64, (u64, u64)>,
    /// Blocks begin at multiples of this.
    pub block_bytes: u64,
}

impl BlockMap {
    /// Adds a block; an id that is live twice is reported, and the first place kept.
    pub fn add(&mut self, id: u64, place: BlockPlace) {
        if let Some(first) = self.places.get(&id) {
            let message = format!("block {id} is live in {} too", first.file);
            self.report(Severity::Error, &place.file, place.offset, "block record", message);
            return;
        }
        self.places.insert(id, place);
    }

    pub fn report(&mut self, severity: Severity, path: &Location, offset: u64, part: &str, message: String) {
        self.findings.push(Finding {
            severity,
            path: Arc::from(path.to_string()),
            offset,
            part: part.to_string(),
            message,
            rows: None,
        });
    }

    pub fn report_error(&mut self, path: &Location, error: &Error) {
        self.findings.push(Finding::from_error(error, &path.to_string(), None));
    }
}

/// Opens files when they are needed and shares the open ones: a server has more files than a process may have open.
#[derive(Debug)]
pub(crate) struct FilePool {
    open: Mutex<HashMap<Location, Weak<dyn Source>>>,
    key: std::result::Result<ServerKey, String>,
    unread: UnreadLog,
    #[cfg(test)]
    counting: Mutex<Vec<(Location, Arc<pilaster_core::source::CountingSource>)>>,
}

impl FilePool {
    pub fn new(key: Option<ServerKey>, unread: UnreadLog) -> Self {
        Self {
            open: Mutex::default(),
            key: key.ok_or_else(|| encryption::NO_KEY.to_string()),
            unread,
            #[cfg(test)]
            counting: Mutex::default(),
        }
    }

    /// The same, with why there is no key if there is none.
    pub fn lacking_key(mut self, why: impl Into<String>) -> Self {
        self.key = self.key.map_err(|_| why.into());
        self
    }

    fn key(&self) -> KeyOrWhy<'_> {
        self.key.as_ref().map_err(String::as_str)
    }

    /// The file at its own offsets, decrypted if it is encrypted.
    pub fn file(&self, path: &Location) -> Result<SourceRef> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(source) = open.get(path).and_then(Weak::upgrade) {
            return Ok(source);
        }
        let source = encryption::decrypting(self.stored(path)?, self.key())?;
        open.insert(path.clone(), Arc::downgrade(&source));
        Ok(source)
    }

    /// The content of a file that is one structure, without the encryption header.
    pub fn content(&self, path: &Location) -> Result<SourceRef> {
        encryption::content(self.stored(path)?, self.key())
    }

    /// A block as a file of its own.
    pub fn block(&self, id: u64, place: &BlockPlace) -> Result<SourceRef> {
        let whole = self.file(&place.file)?;
        let name = format!("{} (block {id} at byte {})", place.file, place.offset);
        let end = place.offset.saturating_add(place.length);
        Ok(Arc::new(SectionSource::new(name, whole, place.offset..end)?))
    }

    /// Refuses to go on if a file could not be read for want of handles: what is then missing is not damage.
    pub fn check_handles(&self) -> Result<()> {
        self.unread.shortage().map_or(Ok(()), |unread| Err(unread.error()))
    }

    /// Where looking at the disks of this server is remembered if it fails.
    pub fn unread(&self) -> &UnreadLog {
        &self.unread
    }

    /// The file as it is stored, encrypted or not.
    pub fn stored(&self, path: &Location) -> Result<SourceRef> {
        let inner = self.unread.noted(path, path.open())?;
        #[cfg(test)]
        let name = path.clone();
        let (path, unread) = (path.clone(), self.unread.clone());
        let source: SourceRef = Arc::new(NotedSource { inner, path, unread });
        #[cfg(test)]
        let source = self.counted(&name, source);
        Ok(source)
    }

    #[cfg(test)]
    fn counted(&self, path: &Location, source: SourceRef) -> SourceRef {
        let counting = Arc::new(pilaster_core::source::CountingSource::new(source));
        self.counting.lock().unwrap().push((path.clone(), Arc::clone(&counting)));
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
                    reads.entry(path.name().to_string_lossy().into_owned()).or_default();
                sum.reads += counts.reads;
                sum.bytes += counts.bytes;
            }
        }
        reads
    }
}

/// A file whose failures are noted.
#[derive(Debug)]
struct NotedSource {
    inner: SourceRef,
    path: Location,
    unread: UnreadLog,
}

impl Source for NotedSource {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn size(&self) -> u64 {
        self.inner.size()
    }

    fn read_at(&self, range: Range<u64>) -> Result<Bytes> {
        self.unread.noted(&self.path, self.inner.read_at(range))
    }
}
