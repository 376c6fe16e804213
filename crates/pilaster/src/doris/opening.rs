//! Opening folders of tablets: which there are, which of them count, and which can be read.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use pilaster_core::{Dataset, Error, ErrorKind, Finding, Location, Result};
use pilaster_doris::tablet::{TabletFolder, TabletOptions, TabletReader, find_tablets};

use super::choice::{self, Candidate, Index, Note, named};
use super::tablets::{Broken, Table, Tablets};
use crate::open::OpenOptions;

impl Tablets {
    pub(super) fn open(folders: &[Location], options: &OpenOptions) -> Result<Self> {
        let version = options.as_of().map(parse_version).transpose()?;
        let mut tablet_options = TabletOptions::default()
            .with_as_of(version)
            .with_hidden(options.doris().hidden)
            .with_verify_checksums(options.verify_checksums())
            .with_lost_cells(options.lost_cells())
            .with_limits(options.limits().clone());
        for (column, path) in &options.doris().variant_paths {
            tablet_options = tablet_options.with_variant_path(column, path);
        }
        let names: Vec<_> = folders.iter().map(|folder| folder.to_string()).collect();
        let mut store = Self {
            name: names.join(" "),
            tables: BTreeMap::new(),
            broken: Vec::new(),
            left_out: Vec::new(),
            recovers: options.recovers(),
            variant_paths: options.doris().variant_paths.clone(),
            notes: Vec::new(),
            headless: Vec::new(),
        };
        let (mut candidates, mut unstored) = (Vec::new(), Vec::new());
        for root in folders {
            let found = find_tablets(root, options.limits())?;
            store.notes.extend(found.findings.into_iter().map(|finding| Note { table_id: None, finding }));
            store.headless.extend(found.headless);
            unstored.extend(found.unstored);
            for (place, error) in found.unread {
                let folder = TabletFolder::unknown(place);
                store.broken.push(Broken { folder, error, tablet_id: None, of: None });
            }
            for folder in found.tablets {
                match folder.meta(options.limits()) {
                    Ok(meta) => candidates.push(Candidate { folder, meta }),
                    Err(error) => {
                        let tablet_id = folder.tablet_id();
                        store.broken.push(Broken { folder, error, tablet_id, of: None });
                    }
                }
            }
        }
        if let Some(id) = options.doris().tablet.as_deref() {
            candidates = store.only(id, candidates)?;
            store.headless.clear();
        }
        // Of a tablet that is asked for, too, there may be more.
        store.headless.extend(unstored);
        let mut by_table: BTreeMap<i64, Vec<Candidate>> = BTreeMap::new();
        for candidate in candidates {
            by_table.entry(candidate.meta.table_id).or_default().push(candidate);
        }
        for (table_id, candidates) in by_table {
            let (used, left_out) = choice::in_service(candidates);
            store.notes.extend(choice::state_notes(table_id, &used, &left_out));
            store.left_out.extend(left_out);
            store.open_table(table_id, choice::indexes(used), &tablet_options);
        }
        store.pass_over_broken_copies();
        Ok(store)
    }

    /// The one tablet that is asked for.
    fn only(&mut self, id: &str, candidates: Vec<Candidate>) -> Result<Vec<Candidate>> {
        let wanted: i64 = id
            .trim()
            .parse()
            .map_err(|_| Error::invalid(format!("the id of a Doris tablet is a number, not \"{id}\"")))?;
        let known = candidates.iter().map(|candidate| candidate.meta.tablet_id);
        let known = named(known.chain(self.broken.iter().filter_map(|broken| broken.tablet_id)));
        let chosen: Vec<_> =
            candidates.into_iter().filter(|candidate| candidate.meta.tablet_id == wanted).collect();
        self.broken.retain(|broken| broken.tablet_id == Some(wanted));
        if chosen.is_empty() && self.broken.is_empty() {
            let message = format!("no tablet {wanted}; there are: {known}");
            return Err(Error::invalid(message).at(&self.name, 0, ""));
        }
        Ok(chosen)
    }

    fn open_table(&mut self, table_id: i64, indexes: Vec<Index>, options: &TabletOptions) {
        let mut opened = Vec::new();
        for index in indexes {
            let columns = index.schema.columns.len();
            let before = (self.notes.len(), self.broken.len());
            let mut table = self.open_index(table_id, &index, options);
            let disputed = table.disputed();
            if !disputed.is_empty() {
                // Paths of VARIANT columns have the types of the files, which may differ.
                self.notes.truncate(before.0);
                self.broken.truncate(before.1);
                let paths = self.variant_paths.iter();
                let disputed =
                    paths.filter(|(column, path)| disputed.contains(&format!("{column}['{path}']")));
                let agreed = disputed
                    .fold(options.clone(), |options, (column, path)| options.with_path_as_json(column, path));
                table = self.open_index(table_id, &index, &agreed);
            }
            opened.push((table, columns));
        }
        let name_of = |number: usize| match number {
            0 => table_id.to_string(),
            other => format!("{table_id}-{}", other.saturating_add(1)),
        };
        if opened.len() > 1 {
            let parts = opened.iter().enumerate().map(|(number, (table, columns))| {
                let (label, tablets) = (&table.label, table.tablets.len());
                format!("{} is {label} ({columns} columns, {tablets} tablets)", name_of(number))
            });
            let message = format!(
                "table {table_id} has several indexes, rollups or states before and after a schema change: {}",
                parts.collect::<Vec<_>>().join(", ")
            );
            self.notes.push(Note::warning(table_id, &self.name, message));
        }
        for (number, (table, _)) in opened.into_iter().enumerate() {
            // One of which nothing can be read keeps its name, so that no other is taken for it.
            if !table.tablets.is_empty() {
                self.tables.insert(name_of(number), table);
            }
        }
    }

    fn open_index(&mut self, table_id: i64, index: &Index, options: &TabletOptions) -> Table {
        let (label, conflict) = (index.label.clone(), index.conflict.clone());
        let mut table = Table { table_id, label, tablets: Vec::new(), conflict };
        // Copies of a tablet follow each other.
        for copies in index.tablets.chunk_by(|one, next| one.meta.tablet_id == next.meta.tablet_id) {
            let with_schema = |candidate: &Candidate| {
                let is_older = candidate.meta.schema_version < index.schema_version;
                options.clone().with_schema(is_older.then(|| Arc::clone(&index.schema)))
            };
            let mut copies = copies.to_vec();
            copies.sort_by_key(|copy| Reverse(copy.version()));
            let Some(newest) = copies.first() else { continue };
            match self.open_copy(newest, &copies, options, &with_schema) {
                Ok(tablet) => table.tablets.push(tablet),
                Err(mut broken) => {
                    broken.of = Some((table_id, index.label.clone()));
                    self.broken.push(*broken);
                }
            }
        }
        table
    }

    /// Opens one of the copies of a tablet, which are its rows at different times: the newest counts, and of equally new ones
    /// one that can be read.
    fn open_copy(
        &mut self,
        newest: &Candidate,
        copies: &[Candidate],
        options: &TabletOptions,
        with_schema: &dyn Fn(&Candidate) -> TabletOptions,
    ) -> Result<TabletReader, Box<Broken>> {
        let is_current = |copy: &Candidate| options.is_as_of() || copy.version() == newest.version();
        let open = |copy: &Candidate, recovers: bool| {
            let options = with_schema(copy).with_recovery(recovers);
            TabletReader::open_with_meta(&copy.folder, copy.meta.clone(), &options)
        };
        let (mut complete, mut incomplete, mut failed) = (None, None, Vec::new());
        for (number, copy) in copies.iter().enumerate().filter(|(_, copy)| is_current(copy)) {
            match open(copy, false) {
                // Another copy may have the parts that are not here.
                Ok(tablet) if !tablet.absences().is_empty() => {
                    incomplete.get_or_insert((number, tablet));
                }
                Ok(tablet) => {
                    complete = Some((number, tablet));
                    break;
                }
                Err(error) => failed.push((number, error)),
            }
        }
        let mut chosen = complete.or(incomplete);
        if chosen.is_none() && self.recovers {
            let mut recovered =
                copies.iter().enumerate().filter_map(|(number, copy)| Some((number, open(copy, true).ok()?)));
            chosen = recovered.next();
        }
        let Some((used, tablet)) = chosen else {
            let older = copies.iter().find(|copy| !is_current(copy) && open(copy, false).is_ok());
            return Err(Box::new(broken_of(newest, failed, older)));
        };
        // What can be put together again is, too.
        let reopened = copies.get(used).filter(|_| self.recovers).and_then(|copy| open(copy, true).ok());
        let tablet = reopened.unwrap_or(tablet);
        for (number, copy) in copies.iter().enumerate().filter(|(number, _)| *number != used) {
            let path = copy.folder.location.to_string();
            let id = copy.meta.tablet_id;
            let failure = failed.iter().find(|(failed, _)| *failed == number).map(|(_, error)| error.clone());
            let message = match failure.or_else(|| open(copy, false).err()) {
                Some(error) => format!(
                    "this copy of tablet {id} cannot be read, the one in {} is: {error}",
                    tablet.name()
                ),
                None => format!(
                    "tablet {id} is here more than once; this copy of version {} is passed over",
                    copy.version()
                ),
            };
            self.notes.push(Note::warning(copy.meta.table_id, &path, message));
        }
        Ok(tablet)
    }

    /// A copy whose metadata cannot be read stands in nobody's way if another one of the tablet can.
    fn pass_over_broken_copies(&mut self) {
        let opened: BTreeMap<i64, (i64, String)> = self
            .tables
            .values()
            .flat_map(|table| &table.tablets)
            .map(|tablet| (tablet.meta().tablet_id, (tablet.meta().table_id, tablet.name().to_string())))
            .collect();
        for broken in std::mem::take(&mut self.broken) {
            let path = broken.folder.location.to_string();
            let finding = Finding::from_error(&broken.error, &path, None);
            let good = broken.tablet_id.filter(|_| broken.of.is_none()).and_then(|id| opened.get(&id));
            match good {
                Some((table_id, other)) => {
                    let message =
                        format!("{}; the copy in {other} is read, which may be older", finding.message);
                    self.notes
                        .push(Note { table_id: Some(*table_id), finding: Finding { message, ..finding } });
                }
                None => self.broken.push(broken),
            }
        }
    }
}

/// The same failure in other words: whether the data is to blame, or the system or the call, stays what it was.
pub(super) fn with_kind_of(error: &Error, message: String) -> Error {
    match error.kind() {
        ErrorKind::Io(io) => Error::from(std::io::Error::new(io.kind(), message)),
        ErrorKind::Internal(_) => Error::internal(message),
        _ if error.is_damage() => Error::incomplete(message),
        _ => Error::invalid(message),
    }
}

/// Why no copy of a tablet can be read.
fn broken_of(newest: &Candidate, failed: Vec<(usize, Error)>, older: Option<&Candidate>) -> Broken {
    let error = failed.into_iter().next().map(|(_, error)| error);
    let error = error.unwrap_or_else(|| Error::invalid("no copy of the tablet"));
    let error = match older {
        None => error,
        Some(older) => with_kind_of(
            &error,
            format!(
                "{error}; an older copy, of version {}, is in {}: open that folder to read it",
                older.version(),
                older.folder.location
            ),
        ),
    };
    let tablet_id = Some(newest.meta.tablet_id);
    Broken { folder: newest.folder.clone(), error, tablet_id, of: None }
}

fn parse_version(text: &str) -> Result<i64> {
    text.trim()
        .parse()
        .map_err(|_| Error::invalid(format!("a version of a Doris tablet is a number, not \"{text}\"")))
}
