//! Tables in the folders of a store: `store/table`, `store/database/table`, or deeper, as copies have them.

use std::collections::{BTreeSet, VecDeque};
use std::path::PathBuf;

use pilaster_core::storage::{Entry, is_not_found};
use pilaster_core::{Error, Location, Result};

use super::reader::has_metadata;

/// How far below a folder tables are looked for: deeper than anybody puts them.
const DEPTH: usize = 64;
/// How many folders are looked into to see whether there is a table at all, the least deep ones first.
const SIGHT: usize = 5_000;

/// The tables below a folder.
#[derive(Debug, Default)]
pub struct TablesBelow {
    /// Path in the folder (`db/table` or `table`) and folder of each.
    pub tables: Vec<(String, Location)>,
    /// Folders that could not be looked into: nobody knows whether tables are there.
    pub unread: Vec<Error>,
}

/// The tables below a store's folder.
///
/// # Errors
/// If the folder itself cannot be listed.
pub fn find_tables(store: impl Into<Location>) -> Result<TablesBelow> {
    let store = store.into();
    store.list()?;
    let mut walk = Walk::new(store);
    let mut tables: Vec<_> = walk.by_ref().collect();
    tables.sort_by(|(one, a), (other, b)| (one, a.path()).cmp(&(other, b.path())));
    Ok(TablesBelow { tables, unread: walk.unread })
}

/// Whether there is a table below a folder, as far as that shows soon.
///
/// # Errors
/// If none was found, and there may be one in a folder that cannot be looked into.
pub fn has_tables(store: impl Into<Location>) -> Result<bool> {
    let mut walk = Walk { left: SIGHT, ..Walk::new(store.into()) };
    match (walk.next(), walk.unread.into_iter().next()) {
        (Some(_), _) => Ok(true),
        (None, Some(unread)) => Err(unread),
        (None, None) => Ok(false),
    }
}

/// Gives name and folder of each table, and notes what could not be looked at.
struct Walk {
    /// Folders, their names from the store on, and how deep they lie.
    pending: VecDeque<(Location, String, usize)>,
    tables: VecDeque<(String, Location)>,
    /// Folders by the path behind all links: links may lead back up.
    seen: BTreeSet<PathBuf>,
    unread: Vec<Error>,
    /// How many folders may still be looked into.
    left: usize,
}

impl Walk {
    fn new(store: Location) -> Self {
        Self {
            pending: VecDeque::from([(store, String::new(), 0)]),
            tables: VecDeque::new(),
            seen: BTreeSet::new(),
            unread: Vec::new(),
            left: usize::MAX,
        }
    }

    fn look_into(&mut self, folder: &Location, name: &str, depth: usize) {
        if folder.real().is_ok_and(|real| !self.seen.insert(real.path().to_path_buf())) {
            return;
        }
        let entries = folder.list().unwrap_or_else(|error| {
            // Gone since the folder it is in was listed.
            if !is_not_found(&error) {
                self.unread.push(error);
            }
            Vec::new()
        });
        for entry in entries.into_iter().filter(Entry::is_folder) {
            let inner = entry.name().to_string_lossy();
            let name = if name.is_empty() { inner.into_owned() } else { format!("{name}/{inner}") };
            let place = folder.beside(entry.path());
            match has_metadata(&place) {
                Ok(true) => {
                    self.tables.push_back((name, place));
                    continue;
                }
                Ok(false) => {}
                // One that cannot be listed says so when it is looked into.
                Err(error) if place.list().is_ok() => self.unread.push(error),
                Err(_) => {}
            }
            if depth < DEPTH {
                self.pending.push_back((place, name, depth.saturating_add(1)));
            }
        }
    }
}

impl Iterator for Walk {
    type Item = (String, Location);

    fn next(&mut self) -> Option<(String, Location)> {
        loop {
            if let Some(table) = self.tables.pop_front() {
                return Some(table);
            }
            self.left = self.left.checked_sub(1)?;
            let (folder, name, depth) = self.pending.pop_front()?;
            self.look_into(&folder, &name, depth);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_found_however_deep_and_links_that_lead_back_end() {
        let place = tempfile::tempdir().unwrap();
        let store = place.path();
        for table in ["t", "db/t", "a/b/c/d/e/t"] {
            std::fs::create_dir_all(store.join(table).join("Metadata/segments")).unwrap();
        }
        #[cfg(unix)]
        for link in ["x", "y"] {
            std::os::unix::fs::symlink(store.join("a"), store.join("a/b").join(link)).unwrap();
        }
        let found = find_tables(store).unwrap();
        assert_eq!(
            found.tables.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(),
            ["a/b/c/d/e/t", "db/t", "t"]
        );
        assert!(found.unread.is_empty());
        let has = |folder: &std::path::Path| has_tables(folder).unwrap();
        assert!(has(store) && has(&store.join("a")) && !has(&store.join("t")));
        assert!(find_tables(store.join("nowhere")).is_err());
    }
}
