//! What a manifest says once all its edits are applied: the column families, and the tables that make up each of them.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use pilaster_core::error::AtPosition;
use pilaster_core::{Error, Limits, Result, SourceRef};

use crate::edit::{Edit, LogNote, TableFile};
use crate::log::LogReader;

const PART: &str = "rocksdb manifest";
const COMPARATOR: &str = "leveldb.BytewiseComparator";

/// A column family.
#[derive(Debug, Clone, Default)]
pub(crate) struct Family {
    pub name: Vec<u8>,
    comparator: Option<String>,
    /// Logs before this one have nothing of it that is not in its tables.
    pub log_number: u64,
    /// By level and number.
    pub tables: BTreeMap<u32, BTreeMap<u64, TableFile>>,
}

impl Family {
    pub fn named(name: &[u8]) -> Self {
        Self { name: name.to_vec(), ..Self::default() }
    }

    /// Refuses keys that are in another order than that of their bytes.
    pub fn check_order(&self) -> Result<()> {
        match &self.comparator {
            Some(other) if other != COMPARATOR => {
                Err(Error::unsupported(format!("keys in the order of \"{other}\"")))
            }
            _ => Ok(()),
        }
    }

    pub fn files(&self) -> impl Iterator<Item = &TableFile> {
        self.tables.values().flat_map(BTreeMap::values)
    }
}

/// The state of a database.
#[derive(Debug, Clone)]
pub(crate) struct Version {
    pub families: BTreeMap<u32, Family>,
    pub next_file: u64,
    pub last_sequence: u64,
    /// The sequence number of each table that has one for all its entries, as far as the manifest goes back: such tables were made
    /// elsewhere, and their numbers are in no log.
    made_elsewhere: BTreeSet<u64>,
    /// Logs that must be there, and how long they are at least.
    pub synced_logs: BTreeMap<u64, u64>,
    is_begun: bool,
    group: Vec<Edit>,
}

impl Default for Version {
    fn default() -> Self {
        Self {
            families: BTreeMap::from([(0, Family::named(b"default"))]),
            next_file: 0,
            last_sequence: 0,
            made_elsewhere: BTreeSet::new(),
            synced_logs: BTreeMap::new(),
            is_begun: false,
            group: Vec::new(),
        }
    }
}

impl Version {
    /// What is known without a manifest.
    pub fn of(families: BTreeMap<u32, Family>) -> Self {
        Self { families, ..Self::default() }
    }

    /// Applies the edits of a manifest. With an error comes what could be applied before it.
    pub fn read(source: SourceRef, number: u64, limits: &Limits) -> (Self, Result<Option<Error>>) {
        let mut version = Self::default();
        let name = source.name().to_string();
        let read = version.read_edits(source, number, limits);
        let read = read.and_then(|torn| match version.is_begun {
            true => Ok(torn),
            false => Err(Error::corrupt("edits that describe a database", "none").at(&name, 0, PART)),
        });
        (version, read)
    }

    /// Why the last edits are not there, if they are not.
    fn read_edits(&mut self, source: SourceRef, number: u64, limits: &Limits) -> Result<Option<Error>> {
        let name = source.name().to_string();
        // One record names all tables of a family: it is held in memory as a whole.
        let limits = Limits { log_bytes: limits.record_file_bytes, ..limits.clone() };
        let mut log = LogReader::new(source, number, &limits);
        let mut last = 0;
        while let Some(record) = log.next()? {
            last = record.offset;
            let edit = Edit::parse(&record.bytes).at(&name, record.offset, PART)?;
            self.add(edit).at(&name, record.offset, PART)?;
        }
        let torn = log.torn();
        if torn.is_none() && !self.group.is_empty() {
            let found = format!("the end after {} of them", self.group.len());
            return Ok(Some(Error::corrupt("all edits of a group", found).at(&name, last, PART)));
        }
        Ok(torn)
    }

    /// Edits of a group count together or not at all.
    fn add(&mut self, edit: Edit) -> Result<()> {
        let Some(left) = edit.group else {
            if self.group.is_empty() {
                return self.apply(edit);
            }
            return Err(Error::corrupt("the rest of a group of edits", "an edit of none"));
        };
        self.group.push(edit);
        match left {
            0 => std::mem::take(&mut self.group).into_iter().try_for_each(|edit| self.apply(edit)),
            _ => Ok(()),
        }
    }

    fn apply(&mut self, edit: Edit) -> Result<()> {
        self.next_file = self.next_file.max(edit.next_file.unwrap_or(0));
        self.last_sequence = self.last_sequence.max(edit.last_sequence.unwrap_or(0));
        self.is_begun |= edit.next_file.is_some();
        for note in &edit.logs {
            match *note {
                LogNote::Synced { number, bytes } => {
                    self.synced_logs.insert(number, bytes);
                }
                LogNote::GoneBefore(number) => self.synced_logs.retain(|known, _| *known >= number),
            }
        }
        if edit.is_dropped {
            let dropped = self.families.remove(&edit.family);
            return dropped.map(drop).ok_or_else(|| no_family(edit.family));
        }
        if let Some(name) = &edit.added_family {
            let is_new = self.families.values().all(|family| family.name != *name);
            if !is_new || self.families.contains_key(&edit.family) {
                let found = format!("family {}, \"{}\", which is there", edit.family, name.escape_ascii());
                return Err(Error::corrupt("a new column family", found));
            }
            self.families.insert(edit.family, Family::named(name));
        }
        let family = self.families.get_mut(&edit.family).ok_or_else(|| no_family(edit.family))?;
        family.log_number = family.log_number.max(edit.log_number.unwrap_or(0));
        if edit.comparator.is_some() {
            family.comparator = edit.comparator;
        }
        for (level, number) in edit.gone {
            let tables = family.tables.entry(level).or_default();
            tables.remove(&number).ok_or_else(|| {
                Error::corrupt(format!("table {number} on level {level}, to be removed"), "none")
            })?;
        }
        for (level, file) in edit.new {
            let number = file.number;
            if let Some((lowest, highest)) = file.sequences
                && lowest == highest
            {
                self.made_elsewhere.insert(lowest);
            }
            if family.tables.entry(level).or_default().insert(number, file).is_some() {
                return Err(Error::corrupt(format!("table {number} once on level {level}"), "it again"));
            }
        }
        Ok(())
    }

    /// The family of this name, and its number.
    pub fn family(&self, name: &str) -> Option<(u32, &Family)> {
        self.families
            .iter()
            .find(|(_, family)| family.name == name.as_bytes())
            .map(|(id, family)| (*id, family))
    }

    /// Logs before this one are not needed.
    pub fn first_log(&self) -> u64 {
        self.families.values().map(|family| family.log_number).min().unwrap_or(0)
    }

    /// A log of this number, or a newer one, is there at any time.
    pub fn newest_log(&self) -> u64 {
        self.families.values().map(|family| family.log_number).max().unwrap_or(0)
    }

    /// The first of these sequence numbers that no table has for itself.
    pub fn first_unknown(&self, mut numbers: Range<u64>) -> Option<u64> {
        // Each step finds another table.
        numbers.find(|number| !self.made_elsewhere.contains(number))
    }
}

fn no_family(number: u32) -> Error {
    Error::corrupt(format!("a column family {number}"), "none of that number")
}
