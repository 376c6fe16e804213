//! Which blocks there are, and where.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use pilaster_core::source::{FileSource, SectionSource, Source};
use pilaster_core::verify::{Finding, Severity};
use pilaster_core::{Error, Result, SourceRef};

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
    key: Option<ServerKey>,
}

impl FilePool {
    pub fn new(key: Option<ServerKey>) -> Self {
        Self { open: Mutex::default(), key }
    }

    /// The file at its own offsets, decrypted if it is encrypted.
    pub fn file(&self, path: &Path) -> Result<SourceRef> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(source) = open.get(path).and_then(Weak::upgrade) {
            return Ok(source);
        }
        let source = encryption::decrypting(Arc::new(FileSource::open(path)?), self.key.as_ref())?;
        open.insert(path.to_path_buf(), Arc::downgrade(&source));
        Ok(source)
    }

    /// The content of a file that is one structure, without the encryption header.
    pub fn content(&self, path: &Path) -> Result<SourceRef> {
        encryption::content(Arc::new(FileSource::open(path)?), self.key.as_ref())
    }

    /// A block as a file of its own.
    pub fn block(&self, id: u64, place: &BlockPlace) -> Result<SourceRef> {
        let whole = self.file(&place.file)?;
        let name = format!("{} (block {id} at byte {})", place.file.display(), place.offset);
        let end = place.offset.saturating_add(place.length);
        Ok(Arc::new(SectionSource::new(name, whole, place.offset..end)?))
    }
}
