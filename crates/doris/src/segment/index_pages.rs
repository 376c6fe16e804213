//! The pages of ordinal indexes, which lie next to each other: the first that is asked for brings those along that will be.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use pilaster_core::source::READ_AHEAD_BYTES;
use pilaster_core::{Result, Source};

use super::page::PagePointer;

/// Reads ordinal index pages and keeps those that were read along.
#[derive(Debug, Default)]
pub(crate) struct IndexPages(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    announced: Vec<PagePointer>,
    is_announced: HashSet<PagePointer>,
    fetched: HashMap<PagePointer, Bytes>,
}

impl IndexPages {
    /// Says that the page at `pointer`, which must lie inside the file, is likely to be asked for.
    pub fn announce(&self, pointer: PagePointer) {
        let mut state = self.lock();
        if !state.fetched.contains_key(&pointer) && state.is_announced.insert(pointer) {
            state.announced.push(pointer);
        }
    }

    /// The stored bytes of the page at `pointer`.
    pub fn read(&self, source: &dyn Source, pointer: PagePointer) -> Result<Bytes> {
        let announced = {
            let mut state = self.lock();
            if let Some(bytes) = state.fetched.remove(&pointer) {
                return Ok(bytes);
            }
            state.is_announced.clear();
            std::mem::take(&mut state.announced)
        };
        let mut together = vec![pointer];
        let mut bytes = u64::from(pointer.size);
        for other in announced.into_iter().filter(|other| *other != pointer) {
            let with_other = bytes.saturating_add(u64::from(other.size));
            if with_other <= READ_AHEAD_BYTES {
                bytes = with_other;
                together.push(other);
            }
        }
        let ranges: Vec<_> = together.iter().map(|pointer| pointer.range()).collect();
        let mut stored = match source.read_many(&ranges) {
            Ok(stored) => stored.into_iter(),
            // What another page has must not stop this one.
            Err(_) => return source.read_at(pointer.range()),
        };
        let own = stored.next().unwrap_or_default();
        self.lock().fetched.extend(together.into_iter().skip(1).zip(stored));
        Ok(own)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use pilaster_core::source::{CountingSource, MemorySource};

    use super::*;

    #[test]
    fn announced_pages_come_along() {
        let whole: Vec<u8> = (0..100).collect();
        let source = CountingSource::new(Arc::new(MemorySource::new("m", whole.clone())));
        let page = |offset: u64| PagePointer { offset, size: 10 };
        let pages = IndexPages::default();
        for offset in [10, 20, 30, 20] {
            pages.announce(page(offset));
        }
        for (offset, reads) in [(20, 1), (10, 1), (30, 1), (30, 2), (50, 3)] {
            let found = pages.read(&source, page(offset)).unwrap();
            assert_eq!(found, whole[offset as usize..offset as usize + 10]);
            assert_eq!(source.counts().reads, reads, "{offset}");
        }
        // One that cannot be read does not stop another.
        pages.announce(page(1000));
        assert_eq!(pages.read(&source, page(40)).unwrap(), whole[40..50]);
    }
}
