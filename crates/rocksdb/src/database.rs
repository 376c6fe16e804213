//! A database: the folder that holds a manifest, tables and logs.
//!
//! ```text
//! CURRENT                     the name of the manifest, and a line feed
//! MANIFEST-<number>           which tables make up each column family, and from which log on it is to be played
//! <number>.sst, .ldb          tables
//! <number>.log                write-ahead logs, in the order of their numbers
//! LOCK, IDENTITY, OPTIONS-…   nothing that a reader needs
//! ```

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use pilaster_core::error::AtPosition;
use pilaster_core::storage::is_not_found;
use pilaster_core::verify::{Finding, Severity};
use pilaster_core::{Error, Limits, Location, Result};

use crate::damage::{Damage, OnDamage};
use crate::edit::TableFile;
use crate::level::{LevelScan, Opener};
use crate::pairs::{Pairs, Run};
use crate::range_deletes::RangeDeletes;
use crate::replay::{Replay, log_number};
use crate::table::Table;
use crate::version::{Family, Version};

/// The column family that every database has.
pub const DEFAULT_FAMILY: &str = "default";

const CURRENT: &str = "CURRENT";
const MANIFEST: &str = "MANIFEST-";

/// An open database. Nothing is locked, and nothing is changed.
#[derive(Debug)]
pub struct Database {
    folder: Location,
    /// How the folder is called in messages.
    name: String,
    names: Arc<[String]>,
    limits: Limits,
    damage: Damage,
    version: Version,
}

/// Whether a folder is a database: it has the file that names the manifest, or a manifest.
///
/// # Errors
/// [`pilaster_core::ErrorKind::Io`] if it cannot be listed; a folder that is not there is no database.
pub fn is_database(folder: &Location) -> Result<bool> {
    let entries = match folder.entry()? {
        Some(entry) if entry.is_folder() => folder.list(),
        _ => return Ok(false),
    };
    let names_manifest = |name: &str| name == CURRENT || name.starts_with(MANIFEST);
    match entries {
        Ok(entries) => Ok(entries.iter().any(|entry| entry.name().to_str().is_some_and(names_manifest))),
        // Gone meanwhile.
        Err(error) if is_not_found(&error) => Ok(false),
        Err(error) => Err(error),
    }
}

impl Database {
    /// Opens the database in a folder.
    ///
    /// # Errors
    /// If the manifest cannot be read, or is not there; not with [`OnDamage::Skip`], where all tables of the folder are then read.
    pub fn open(folder: &Location, limits: &Limits, on_damage: OnDamage) -> Result<Self> {
        let name = folder.to_string();
        let damage = Damage::new(on_damage, &name);
        // Names that are no text are not RocksDB's.
        let entries = folder.list()?;
        let mut names: Vec<_> =
            entries.iter().filter_map(|entry| entry.name().to_str().map(str::to_string)).collect();
        names.sort();
        let mut database = Self {
            folder: folder.clone(),
            name,
            names: names.into(),
            limits: limits.clone(),
            damage,
            version: Version::default(),
        };
        if let Err(error) = database.read_manifest() {
            database.damage.pass(error)?;
            database.take_all_tables()?;
        }
        database.note_newer_tables();
        Ok(database)
    }

    fn read_manifest(&mut self) -> Result<()> {
        let name = self.manifest()?;
        let number = name.strip_prefix(MANIFEST).and_then(|digits| digits.parse().ok()).unwrap_or(0);
        let (version, read) = Version::read(self.folder.child(&name).open()?, number, &self.limits);
        self.version = version;
        if let Some(torn) = read? {
            self.damage.note(&torn, Severity::Warning);
        }
        Ok(())
    }

    /// The name of the manifest.
    fn manifest(&self) -> Result<String> {
        // A name is short.
        const MOST: u64 = 100;
        if !self.has(CURRENT) {
            let missing =
                Error::incomplete(format!("the file {CURRENT}, which names the manifest, is not here"));
            return Err(missing.at(&self.name, 0, ""));
        }
        let source = self.folder.child(CURRENT).open()?;
        let text = source.read_at(0..source.size().min(MOST))?;
        let name = std::str::from_utf8(&text).ok().and_then(|text| text.strip_suffix('\n'));
        let is_manifest = |name: &&str| {
            let digits = name.strip_prefix(MANIFEST).unwrap_or_default();
            !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
        };
        let name = name.filter(is_manifest).ok_or_else(|| {
            let found = format!("\"{}\"", text.escape_ascii());
            Error::corrupt(format!("the name of a manifest, {MANIFEST}…, and a line feed"), found).at(
                source.name(),
                0,
                CURRENT,
            )
        })?;
        match self.has(name) {
            true => Ok(name.to_string()),
            false => Err(Error::incomplete(format!("the manifest {name}, which CURRENT names, is not here"))
                .at(&self.name, 0, "")),
        }
    }

    fn has(&self, name: &str) -> bool {
        self.names.binary_search_by(|known| known.as_str().cmp(name)).is_ok()
    }

    /// The numbers of the tables that lie in the folder.
    fn table_numbers(&self) -> impl Iterator<Item = u64> {
        self.names.iter().filter_map(|name| {
            let (digits, ending) = name.rsplit_once('.')?;
            matches!(ending, "sst" | "ldb").then(|| digits.parse().ok())?
        })
    }

    /// Without a manifest nobody knows which tables count: all that are there are taken, each into the family that it names, and all logs.
    fn take_all_tables(&mut self) -> Result<()> {
        let mut families: BTreeMap<u32, Family> = BTreeMap::new();
        for (number, family) in &self.version.families {
            families.insert(*number, Family::named(&family.name));
        }
        let opener = self.opener(&[]);
        for number in self.table_numbers() {
            let opened = opener.table_name(number).and_then(|name| self.folder.child(&name).open()).and_then(
                |source| {
                    let bytes = source.size();
                    Ok((Table::open(source, None, &self.limits)?, bytes))
                },
            );
            let (table, bytes) = match opened {
                Ok(opened) => opened,
                Err(error) => {
                    self.damage.pass(error)?;
                    continue;
                }
            };
            let Some((id, name)) = table.family.clone() else {
                // So it is with tables that were made elsewhere.
                let error =
                    Error::incomplete("the column family of this table, which only the manifest knows");
                self.damage.pass(error.at(table.name(), 0, ""))?;
                continue;
            };
            let family = families.entry(id).or_insert_with(|| Family::named(&name));
            // Over all keys: what range deletes reach is then not known, so that they reach as far as they say.
            let file = TableFile::unknown(number, bytes);
            family.tables.entry(0).or_default().insert(number, file);
        }
        self.version = Version::of(families);
        Ok(())
    }

    /// Tables with numbers that the manifest does not know yet: of a write that did not end, or the manifest is older than they are.
    fn note_newer_tables(&self) {
        let next = self.version.next_file;
        let newer: Vec<_> = self.table_numbers().filter(|number| next > 0 && *number >= next).collect();
        if let (Some(first), count) = (newer.iter().min(), newer.len()) {
            let what = format!(
                "{count} tables from {first:06}.sst on are newer than the manifest knows, and are not read"
            );
            self.damage.note(&Error::incomplete(what).at(&self.name, 0, ""), Severity::Warning);
        }
    }

    fn opener(&self, from: &[u8]) -> Opener {
        Opener {
            folder: self.folder.clone(),
            names: Arc::clone(&self.names),
            limits: self.limits.clone(),
            damage: self.damage.clone(),
            from: from.to_vec(),
        }
    }

    /// The names of the column families.
    pub fn families(&self) -> impl Iterator<Item = String> {
        self.version.families.values().map(|family| String::from_utf8_lossy(&family.name).into_owned())
    }

    /// The pairs of a column family, in the order of their keys.
    ///
    /// # Errors
    /// If there is no such family, if its tables or logs are not all there, or if the logs cannot be read.
    pub fn pairs(&self, family: &str) -> Result<Pairs> {
        self.pairs_from(family, &[])
    }

    /// The pairs of a column family from a key on.
    ///
    /// # Errors
    /// As [`Database::pairs`].
    pub fn pairs_from(&self, family: &str, from: &[u8]) -> Result<Pairs> {
        let name = self.name.as_str();
        let (id, known) = self.version.family(family).ok_or_else(|| {
            Error::corrupt(format!("a column family \"{family}\""), "none of that name").at(name, 0, "")
        })?;
        known.check_order().at(name, 0, "")?;
        let opener = self.opener(from);
        for file in known.files().filter(|file| file.path == 0) {
            // Said at once, not where its keys would come.
            if let Err(error) = opener.table_name(file.number) {
                self.damage.pass(error)?;
            }
        }
        let memory = Replay {
            folder: &self.folder,
            names: &self.names,
            version: &self.version,
            limits: &self.limits,
            damage: &self.damage,
        }
        .memory_of(id)?;
        let mut deletes = RangeDeletes::default();
        memory.range_deletes.iter().for_each(|delete| deletes.add(delete.clone()));
        let mut runs = vec![Run::Memory(Box::new(memory.into_entries(from)))];
        for (level, files) in &known.tables {
            if *level == 0 {
                runs.extend(
                    files
                        .values()
                        .map(|file| Run::Level(Box::new(LevelScan::new(vec![file.clone()], &opener)))),
                );
            } else {
                runs.push(Run::Level(Box::new(LevelScan::new(files.values().cloned().collect(), &opener))));
            }
        }
        Ok(Pairs::new(runs, deletes, self.damage.clone(), name))
    }

    /// The value of one key.
    ///
    /// # Errors
    /// As [`Database::pairs`], and if what leads to the key cannot be read.
    pub fn get(&self, family: &str, key: &[u8]) -> Result<Option<Bytes>> {
        let first = self.pairs_from(family, key)?.next().transpose()?;
        Ok(first.filter(|(found, _)| found == key).map(|(_, value)| value))
    }

    /// What was odd so far, and with [`OnDamage::Skip`] what could not be read. Complete once all pairs were read.
    pub fn findings(&self) -> Vec<Finding> {
        self.damage.findings()
    }
}

/// The names of logs, by number.
pub(crate) fn logs(names: &[String]) -> BTreeMap<u64, String> {
    names.iter().filter_map(|name| Some((log_number(name)?, name.clone()))).collect()
}
