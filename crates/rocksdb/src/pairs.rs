//! The pairs of a column family in the order of their keys: of each key the newest entry that is not deleted.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use bytes::Bytes;
use pilaster_core::{Error, Result};

use crate::damage::Damage;
use crate::key::{self, Entry, Kind, Place};
use crate::level::LevelScan;
use crate::range_deletes::RangeDeletes;

/// Where entries come from.
pub(crate) enum Run {
    Memory(Box<dyn Iterator<Item = Entry> + Send>),
    Level(Box<LevelScan>),
}

impl std::fmt::Debug for Run {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Memory(_) => f.write_str("Memory"),
            Self::Level(level) => level.fmt(f),
        }
    }
}

impl Run {
    fn next(&mut self, deletes: &mut RangeDeletes) -> Result<Option<Entry>> {
        match self {
            Self::Memory(entries) => Ok(entries.next()),
            Self::Level(level) => level.next(deletes),
        }
    }
}

/// The next entry of a run.
#[derive(Debug, PartialEq, Eq)]
struct Head {
    entry: Entry,
    run: usize,
}

impl Ord for Head {
    fn cmp(&self, other: &Self) -> Ordering {
        key::compare((&self.entry.user, self.entry.tag), (&other.entry.user, other.entry.tag))
            .then(self.run.cmp(&other.run))
    }
}

impl PartialOrd for Head {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The pairs of a column family, each as key and value. After an error there are no more.
#[derive(Debug)]
pub struct Pairs {
    runs: Vec<Run>,
    heads: BinaryHeap<Reverse<Head>>,
    deletes: RangeDeletes,
    damage: Damage,
    name: String,
    last: Option<Vec<u8>>,
    is_begun: bool,
    is_finished: bool,
}

impl Pairs {
    pub(crate) fn new(runs: Vec<Run>, deletes: RangeDeletes, damage: Damage, name: &str) -> Self {
        Self {
            runs,
            heads: BinaryHeap::new(),
            deletes,
            damage,
            name: name.to_string(),
            last: None,
            is_begun: false,
            is_finished: false,
        }
    }

    fn refill(&mut self, run: usize) -> Result<()> {
        if let Some(source) = self.runs.get_mut(run)
            && let Some(entry) = source.next(&mut self.deletes)?
        {
            self.heads.push(Reverse(Head { entry, run }));
        }
        Ok(())
    }

    fn read(&mut self) -> Result<Option<(Vec<u8>, Bytes)>> {
        if !self.is_begun {
            self.is_begun = true;
            (0..self.runs.len()).try_for_each(|run| self.refill(run))?;
        }
        while let Some(Reverse(Head { entry, run })) = self.heads.pop() {
            // Before anything else: what comes next may bring range deletes.
            self.refill(run)?;
            if self.last.as_ref() == Some(&entry.user) {
                continue;
            }
            self.last = Some(entry.user.clone());
            let place = Place { user: entry.user, tag: entry.tag };
            if self.deletes.covers(&place) {
                continue;
            }
            match Kind::of(place.tag) {
                Ok(Kind::Put) => return Ok(Some((place.user, entry.value))),
                Ok(Kind::Delete) => {}
                Ok(Kind::Foreign(feature)) => {
                    let feature = format!("{feature}, of the key \"{}\"", place.user.escape_ascii());
                    self.damage.pass(Error::unsupported(feature).at(&self.name, 0, "rocksdb entry"))?;
                }
                Err(error) => self.damage.pass(error.at(&self.name, 0, "rocksdb entry"))?,
            }
        }
        Ok(None)
    }
}

impl Iterator for Pairs {
    type Item = Result<(Vec<u8>, Bytes)>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_finished {
            return None;
        }
        let next = self.read().transpose();
        self.is_finished = !matches!(next, Some(Ok(_)));
        next
    }
}
