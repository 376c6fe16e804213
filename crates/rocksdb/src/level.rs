//! The tables of one level, one after another: their keys do not overlap. A table of level 0 is a level of its own.

use std::sync::Arc;
use std::vec;

use pilaster_core::{Error, Limits, Location, Result};

use crate::damage::Damage;
use crate::edit::TableFile;
use crate::key::{self, Entry};
use crate::range_deletes::{RangeDeletes, within};
use crate::table::Table;
use crate::table_scan::TableScan;

/// How often a damaged table is tried again behind what could not be read.
const MOST_ERRORS: usize = 100;

/// What all levels of a scan need.
#[derive(Debug, Clone)]
pub(crate) struct Opener {
    pub folder: Location,
    pub names: Arc<[String]>,
    pub limits: Limits,
    pub damage: Damage,
    pub from: Vec<u8>,
}

impl Opener {
    /// The name that a table has: `.sst`, or `.ldb` in databases that LevelDB began.
    pub fn table_name(&self, number: u64) -> Result<String> {
        let candidates = [format!("{number:06}.sst"), format!("{number:06}.ldb")];
        match candidates.iter().find(|name| self.names.binary_search(name).is_ok()) {
            Some(name) => Ok(name.clone()),
            None => Err(Error::incomplete(format!(
                "the table {number:06}.sst, which the manifest names, is not here"
            ))
            .at(&self.folder.to_string(), 0, "")),
        }
    }

    pub fn open(&self, file: &TableFile) -> Result<Arc<Table>> {
        if file.path != 0 {
            let feature = format!(
                "table {:06}.sst in folder {} of `db_paths`, outside of the database",
                file.number, file.path
            );
            return Err(Error::unsupported(feature).at(&self.folder.to_string(), 0, ""));
        }
        Table::open(self.folder.child(self.table_name(file.number)?).open()?, Some(file), &self.limits)
    }
}

/// Goes through the tables of a level.
#[derive(Debug)]
pub(crate) struct LevelScan {
    opener: Opener,
    files: vec::IntoIter<TableFile>,
    open: Option<(TableFile, TableScan)>,
    last: Option<(Vec<u8>, u64)>,
    errors: usize,
}

impl LevelScan {
    pub fn new(mut files: Vec<TableFile>, opener: &Opener) -> Self {
        files.sort_by(|a, b| a.bounds.cmp(&b.bounds));
        files.retain(|file| file.bounds.as_ref().is_none_or(|(_, largest)| largest.user >= opener.from));
        Self { opener: opener.clone(), files: files.into_iter(), open: None, last: None, errors: 0 }
    }

    /// The next entry. Range deletes come into `deletes` before anything they may cover is given, here or on another level.
    pub fn next(&mut self, deletes: &mut RangeDeletes) -> Result<Option<Entry>> {
        loop {
            let Some((file, scan)) = &mut self.open else {
                let Some(file) = self.files.next() else { return Ok(None) };
                self.errors = 0;
                match self.opener.open(&file).and_then(|table| Ok((table.range_deletes()?, table))) {
                    Ok((found, table)) => {
                        found.into_iter().for_each(|delete| deletes.add(within(delete, &file)));
                        self.open = Some((file, TableScan::new(table, &self.opener.from)));
                    }
                    Err(error) => self.opener.damage.pass(error)?,
                }
                continue;
            };
            match scan.next() {
                Ok(Some(entry)) => match check(file, &entry, self.last.as_ref()) {
                    Ok(()) => {
                        self.last = Some((entry.user.clone(), entry.tag));
                        return Ok(Some(entry));
                    }
                    Err(error) => self.pass(error)?,
                },
                Ok(None) => self.open = None,
                Err(error) => self.pass(error)?,
            }
        }
    }

    fn pass(&mut self, error: Error) -> Result<()> {
        let passed = self.opener.damage.pass(error);
        self.errors = self.errors.saturating_add(1);
        if passed.is_err() || self.errors > MOST_ERRORS {
            self.open = None;
        }
        passed
    }
}

/// Keys come in their order over all tables of a level, and within what the manifest says of theirs.
fn check(file: &TableFile, entry: &Entry, last: Option<&(Vec<u8>, u64)>) -> Result<()> {
    if let Some((smallest, largest)) = &file.bounds
        && (entry.user < smallest.user || entry.user > largest.user)
    {
        let (smallest, largest) = (smallest.user.escape_ascii(), largest.user.escape_ascii());
        let found = format!("\"{}\" in table {:06}.sst", entry.user.escape_ascii(), file.number);
        return Err(Error::corrupt(format!("keys from \"{smallest}\" to \"{largest}\""), found));
    }
    match last {
        Some((user, tag)) if key::compare((user, *tag), (&entry.user, entry.tag)).is_ge() => {
            Err(Error::corrupt(
                format!("a key behind \"{}\" on its level", user.escape_ascii()),
                format!("\"{}\" in table {:06}.sst", entry.user.escape_ascii(), file.number),
            ))
        }
        _ => Ok(()),
    }
}
