//! All tables of dead servers or of a store, each into a folder of its own, and one report of what is there and what is not.
//!
//! ```text
//! out/report.json            every table: rows saved, rows lost and why, what could not be opened
//! out/orders/part-00000.parquet …   the proven rows of a table; a run that was stopped goes on here
//! out/unproven/…             rows that nothing proves to be a table's latest state, a file each
//! ```

mod places;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use pilaster_core::error::AtPosition;
use pilaster_core::progress::Silent;
use pilaster_core::salvage::total_lost;
use pilaster_core::storage::EntryKind;
use pilaster_core::{
    DatasetRef, Error, ErrorKind, Finding, Location, LossLog, LostRows, OnDamage, Progress, Result,
    ScanRequest, Severity,
};
use serde_json::{Value, json};

use crate::convert::{ConvertOptions, ConvertTarget};
use crate::folder::note;
use crate::migrate::{MigrateOptions, folder_name, migrate};
use crate::open::{Beside, OpenOptions, Opened, is_lost, join};
use crate::output::{OutputFormat, WriteOptions};
use crate::paths;
use crate::salvage::{SalvageOptions, losses_to_json, salvage};
use crate::store::Store;
use places::{Place, Places};

/// The report in the target folder.
pub const REPORT: &str = "report.json";
/// The folder of rows that are not proven.
const UNPROVEN: &str = "unproven";

/// How to recover.
#[derive(Debug, Clone)]
pub struct RecoverOptions {
    format: OutputFormat,
    table: Option<String>,
    write: WriteOptions,
    choices: Vec<String>,
}

impl Default for RecoverOptions {
    fn default() -> Self {
        Self {
            format: OutputFormat::Parquet,
            table: None,
            write: WriteOptions::default(),
            choices: Vec::new(),
        }
    }
}

impl RecoverOptions {
    /// What tables are written as: Parquet makes a folder of files per table, which a second run continues; any other format
    /// one file or folder, which a second run writes anew.
    #[must_use]
    pub fn with_format(mut self, format: OutputFormat) -> Self {
        self.format = format;
        self
    }

    /// Only this table.
    #[must_use]
    pub fn with_table(mut self, table: Option<String>) -> Self {
        self.table = table;
        self
    }

    /// How files are written.
    #[must_use]
    pub fn with_write(mut self, write: WriteOptions) -> Self {
        self.write = write;
        self
    }

    /// What decides which rows are read, in any words: a run that continues must have been asked for the same.
    #[must_use]
    pub fn with_choices(mut self, choices: Vec<String>) -> Self {
        self.choices = choices;
        self
    }
}

/// Rows that were written apart, because nothing proves them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnprovenRows {
    /// Where they are.
    pub path: PathBuf,
    /// Their number.
    pub rows: u64,
    /// What is not proven.
    pub reason: String,
}

/// What became of a table.
#[derive(Debug)]
pub struct RecoveredTable {
    /// Its name.
    pub name: String,
    /// Where its rows are.
    pub path: PathBuf,
    /// Rows written.
    pub rows_saved: u64,
    /// Rows that could not be given; `None` if nobody can tell.
    pub rows_lost: Option<u64>,
    /// What was lost and why.
    pub losses: Vec<LostRows>,
    /// Files of it that could not be looked at, and why. What is in them is neither saved nor lost.
    pub unread: Vec<Error>,
    /// Why it could not be recovered at all, or not to its end.
    pub error: Option<Error>,
}

impl RecoveredTable {
    /// Whether all its rows are there.
    pub fn is_complete(&self) -> bool {
        self.losses.is_empty() && self.unread.is_empty() && self.error.is_none()
    }
}

/// What was recovered and what was not.
#[derive(Debug, Default)]
pub struct RecoverReport {
    /// Every table, in the order of the disks.
    pub tables: Vec<RecoveredTable>,
    /// Rows apart.
    pub unproven: Vec<UnprovenRows>,
    /// What could not be opened at all, and why.
    pub errors: Vec<Error>,
    /// What is wrong with the disks that is no one table's.
    pub findings: Vec<Finding>,
}

impl RecoverReport {
    /// Whether everything is there.
    pub fn is_complete(&self) -> bool {
        // Damage that belongs to no table may have taken rows of any of them.
        let is_sound = self.findings.iter().all(|finding| finding.severity < Severity::Error);
        is_sound
            && self.errors.is_empty()
            && self.unproven.is_empty()
            && self.tables.iter().all(RecoveredTable::is_complete)
    }

    /// Whether something could not be read or written that is no damage: a permission, a full disk.
    pub fn has_failed(&self) -> bool {
        let of_tables = self.tables.iter().flat_map(|table| table.error.iter().chain(&table.unread));
        of_tables.chain(&self.errors).any(|error| !error.is_damage())
    }

    /// The report as JSON.
    pub fn to_json(&self) -> Value {
        let table = |table: &RecoveredTable| {
            json!({
                "table": table.name,
                "path": table.path.display().to_string(),
                "is_complete": table.is_complete(),
                "rows_saved": table.rows_saved,
                "rows_lost": table.rows_lost,
                "losses": losses_to_json(&table.losses),
                "unread": table.unread.iter().map(ToString::to_string).collect::<Vec<_>>(),
                "error": table.error.as_ref().map(ToString::to_string),
            })
        };
        let unproven = |rows: &UnprovenRows| json!({"path": rows.path.display().to_string(), "rows": rows.rows, "reason": rows.reason});
        json!({
            "is_complete": self.is_complete(),
            "tables": self.tables.iter().map(table).collect::<Vec<_>>(),
            "unproven": self.unproven.iter().map(unproven).collect::<Vec<_>>(),
            "errors": self.errors.iter().map(ToString::to_string).collect::<Vec<_>>(),
            "findings": self.findings.iter().map(ToString::to_string).collect::<Vec<_>>(),
        })
    }
}

/// Who watches a recovery.
pub trait Watch {
    /// The next table begins; the rows written for it are told to what this gives.
    fn begin(&self, table: &str) -> Box<dyn Progress + '_>;

    /// A table is done.
    fn done(&self, table: &RecoveredTable);
}

/// Recovers all tables that `given` holds into `out`: disks of servers, stores, folders and files of any format, at any depth below
/// these paths.
///
/// # Errors
/// [`pilaster_core::ErrorKind::InvalidInput`] if there is nothing, or not the table asked for, or `out` lies in the data of a table. What
/// is wrong with one table does not stop the others: it is in the report.
pub fn recover<S: AsRef<str>>(
    given: &[S],
    out: &Path,
    open: &OpenOptions,
    options: &RecoverOptions,
    watch: &dyn Watch,
) -> Result<RecoverReport> {
    let target = Location::local(out);
    let Places { places, findings, errors, .. } = Places::find(given, &target);
    let named = given.iter().filter_map(|path| paths::place(path.as_ref()).ok());
    check_apart(named.filter(|place| is_same(place, &target)), &target)?;
    for place in &places {
        check_apart(place.sources(), &target)?;
    }
    // Not before it is clear that it is not on the disks: nothing is written there.
    target.make_folder()?;
    let open = open.clone().with_recovery(true).with_partial(true).with_table(None);
    let report = RecoverReport { findings, errors, ..RecoverReport::default() };
    let mut recovery = Recovery { out, options, watch, report, sources: Vec::new() };
    for place in places {
        match place {
            Place::Store { driver, folders } => {
                recovery.sources = folders.clone();
                match driver.open_store(&folders, &open) {
                    Ok(store) => recovery.store(store.as_ref()),
                    Err(error) => recovery.report.errors.push(error),
                }
            }
            Place::Table { name, place, is_partitioned } if recovery.wants(&name) => {
                let is_there = |place: &Location| place.entry().is_ok_and(|entry| entry.is_some());
                let source = Some(place.clone()).filter(|place| place.local_path().is_some());
                recovery.sources = source.filter(is_there).into_iter().collect();
                recovery.path(&name, &place, is_partitioned, &open);
            }
            Place::Table { .. } => {}
        }
    }
    let report = recovery.report;
    // Damage that keeps every table from being read is not that there is none.
    let has_damage = report.findings.iter().any(|finding| finding.severity == Severity::Error);
    let is_empty = report.tables.is_empty() && report.errors.is_empty() && report.unproven.is_empty();
    if is_empty && !(has_damage && options.table.is_none()) {
        let what = options
            .table
            .as_ref()
            .map_or("no table here".to_string(), |name| format!("no table \"{name}\" here"));
        return Err(Error::invalid(what));
    }
    Ok(report)
}

/// Refuses a target inside of what is read: the next run would take it for a part of that.
fn check_apart(sources: impl IntoIterator<Item = Location>, out: &Location) -> Result<()> {
    let real = real_path(out.path()).at(&out.to_string(), 0, "")?;
    let holds = |source: &Location| source.real().is_ok_and(|source| real.starts_with(source.path()));
    let mut local = sources.into_iter().filter(|source| source.local_path().is_some());
    match local.find(holds) {
        Some(source) => {
            let message = format!("lies in {source}, which is read: write to another folder");
            Err(out.blame(Error::invalid(message)))
        }
        None => Ok(()),
    }
}

/// Whether two paths are one file or folder.
fn is_same(place: &Location, other: &Location) -> bool {
    place.real().is_ok_and(|place| other.real().is_ok_and(|other| place == other))
}

/// The path behind all links of a folder that may not be there yet.
fn real_path(folder: &Path) -> std::io::Result<PathBuf> {
    let folder = std::path::absolute(folder)?;
    let real = |known: &Path| {
        let real = Location::local(known).real().ok()?;
        Some(real.path().join(folder.strip_prefix(known).ok()?))
    };
    Ok(folder.ancestors().find_map(real).unwrap_or_else(|| folder.clone()))
}

struct Recovery<'a> {
    out: &'a Path,
    options: &'a RecoverOptions,
    watch: &'a dyn Watch,
    report: RecoverReport,
    sources: Vec<Location>,
}

impl Recovery<'_> {
    fn wants(&self, name: &str) -> bool {
        self.options.table.as_ref().is_none_or(|wanted| wanted == name)
    }

    fn store(&mut self, store: &dyn Store) {
        self.find(store.findings());
        if store.tables().is_empty()
            && let Err(error) = store.table(None)
            && !matches!(error.kind(), ErrorKind::InvalidInput(_))
        {
            // There may have been tables: this says what became of them.
            self.report.errors.push(error);
        }
        for name in store.tables().into_iter().filter(|name| self.wants(name)).collect::<Vec<_>>() {
            let opened = store.table(Some(&name));
            let elsewhere = store.elsewhere(&name);
            self.table_with(name, opened, elsewhere, Vec::new());
        }
        if self.options.table.as_ref().is_some_and(|wanted| !store.tables().contains(wanted)) {
            return;
        }
        let apart =
            save_unproven(store, self.options.table.as_deref(), &self.out.join(UNPROVEN), self.options);
        match apart {
            Ok(rows) => self.report.unproven.extend(rows),
            // A table that cannot be opened has said so.
            Err(_) if self.report.tables.iter().any(|table| table.error.is_some()) => {}
            Err(error) => self.report.errors.push(error),
        }
    }

    /// A file, or the files of a folder: one table, or, if they do not have the same columns, one each.
    fn path(&mut self, name: &str, place: &Location, is_partitioned: bool, open: &OpenOptions) {
        let Opened { parts, beside: Beside { passed_over, absences } } = match open.open_one(place) {
            Ok(opened) => opened,
            Err(error) => return self.table(name.to_string(), Err(error)),
        };
        // Folders beside files are places of their own, but not those beside partitions.
        let is_place = |finding: &Finding| {
            !is_partitioned
                && paths::place(&finding.path)
                    .and_then(|place| paths::kind(&place))
                    .is_ok_and(|kind| kind == Some(EntryKind::Folder))
        };
        self.find(passed_over.into_iter().filter(|finding| !is_place(finding)).collect());
        // One file that cannot be looked at keeps nobody from the others.
        let is_unread = |(name, part): &(String, _)| matches!(part, Err(error) if !is_lost(name, error));
        let (unread, parts) = match parts.iter().all(is_unread) {
            true => (Vec::new(), parts),
            false => parts.into_iter().partition(is_unread),
        };
        let again = |part: &Result<DatasetRef>| part.as_ref().map(Arc::clone).map_err(Error::clone);
        let beside = Beside { passed_over: Vec::new(), absences: absences.clone() };
        match join(place.to_string(), parts.iter().map(|(_, part)| again(part)).collect(), beside) {
            Err(error) if parts.len() > 1 && parts.iter().any(|(_, part)| part.is_ok()) => {
                let missing =
                    absences.iter().map(|absence| Error::incomplete(&absence.what).at(&absence.path, 0, ""));
                self.report.errors.extend(missing);
                self.report.errors.extend(unread.into_iter().filter_map(|(_, part)| part.err()));
                let text = format!("is no one table, so that each file becomes one: {error}");
                self.find(vec![note(place, &text)]);
                for (file, part) in parts {
                    let stem = Path::new(&file).file_stem().map(|stem| stem.to_string_lossy().into_owned());
                    self.table(format!("{name}/{}", stem.unwrap_or_default()), part);
                }
            }
            joined => {
                let unread = unread.into_iter().filter_map(|(_, part)| part.err()).collect();
                self.table_with(name.to_string(), joined, Vec::new(), unread);
            }
        }
    }

    /// Notes what was found that is no loss of a table, once.
    fn find(&mut self, findings: Vec<Finding>) {
        for finding in findings {
            if !self.report.findings.contains(&finding) {
                self.report.findings.push(finding);
            }
        }
    }

    fn table(&mut self, name: String, opened: Result<DatasetRef>) {
        self.table_with(name, opened, Vec::new(), Vec::new());
    }

    /// A table, what of it only others can know, and why files of it could not be looked at.
    fn table_with(
        &mut self,
        name: String,
        opened: Result<DatasetRef>,
        elsewhere: Vec<LostRows>,
        unread: Vec<Error>,
    ) {
        if let Ok(dataset) = &opened {
            // Damage is among the losses.
            let noticed = dataset.findings().into_iter().filter(|finding| finding.severity < Severity::Error);
            self.find(noticed.collect());
        }
        let progress = self.watch.begin(&name);
        let path = self.path_of(&name);
        let mut table = RecoveredTable {
            name,
            path,
            rows_saved: 0,
            rows_lost: None,
            losses: Vec::new(),
            unread,
            error: None,
        };
        match opened.and_then(|dataset| self.write(&dataset, &table.path, progress.as_ref())) {
            Ok((rows, mut losses)) => {
                losses.extend(elsewhere);
                table.rows_saved = rows;
                table.rows_lost = total_lost(&losses);
                table.losses = losses;
            }
            Err(error) => table.error = Some(error),
        }
        drop(progress);
        self.watch.done(&table);
        self.report.tables.push(table);
    }

    /// Where a table goes; two tables of one name go to two places.
    fn path_of(&self, name: &str) -> PathBuf {
        let plain = folder_name(name);
        let extension = match self.options.format {
            OutputFormat::Parquet => String::new(),
            format if format.is_folder() => String::new(),
            format => format!(".{}", extension(format)),
        };
        let is_taken = |path: &PathBuf| {
            [REPORT, UNPROVEN].iter().any(|name| path.ends_with(name))
                || self.report.tables.iter().any(|table| table.path == *path)
        };
        let numbered = (2..).map(|number| format!("{plain}-{number}{extension}"));
        let names = std::iter::once(format!("{plain}{extension}")).chain(numbered);
        names.map(|name| self.out.join(name)).find(|path| !is_taken(path)).unwrap_or_default()
    }

    fn write(
        &self,
        dataset: &DatasetRef,
        path: &Path,
        progress: &dyn Progress,
    ) -> Result<(u64, Vec<LostRows>)> {
        if self.options.format != OutputFormat::Parquet {
            let report = save(dataset, path, self.options, progress)?;
            return Ok((report.rows_saved, report.losses));
        }
        let losses = Arc::new(LossLog::new());
        let request =
            ScanRequest { on_damage: OnDamage::Skip(Arc::clone(&losses)), ..ScanRequest::default() };
        let how = MigrateOptions::default()
            .with_write(self.options.write.clone())
            .with_choices(self.options.choices.clone())
            .with_source_paths(
                self.sources.iter().filter_map(|source| Some(source.local_path()?.to_path_buf())).collect(),
            );
        let done = migrate(dataset.as_ref(), &request, path, &how, progress)?;
        dataset.absences().iter().for_each(|absence| losses.add(absence.loss()));
        Ok((done.rows, losses.losses()))
    }
}

fn extension(format: OutputFormat) -> &'static str {
    match format {
        OutputFormat::Redfile => "red",
        format => {
            OutputFormat::ALL.into_iter().find(|(known, _)| *known == format).map_or("rows", |(_, name)| name)
        }
    }
}

fn save(
    dataset: &DatasetRef,
    path: &Path,
    options: &RecoverOptions,
    progress: &dyn Progress,
) -> Result<crate::salvage::SalvageReport> {
    let target = ConvertTarget::new(path, options.format);
    let convert = ConvertOptions::default()
        .with_overwrite(crate::overwrite::Overwrite::new(true))
        .with_write(options.write.clone());
    salvage(dataset.as_ref(), &target, &SalvageOptions::default().with_convert(convert), progress)
}

/// Writes what a store has beside the proven rows of its tables, or of one: a file each in `folder`.
///
/// # Errors
/// If there is no table of that name, or reading or writing fails.
pub fn save_unproven(
    store: &dyn Store,
    table: Option<&str>,
    folder: &Path,
    options: &RecoverOptions,
) -> Result<Vec<UnprovenRows>> {
    let mut saved = Vec::new();
    // A folder for each would look like a table.
    let format = if options.format.is_folder() { OutputFormat::Parquet } else { options.format };
    let options = options.clone().with_format(format);
    for apart in store.unproven(table)? {
        Location::local(folder).make_folder()?;
        // Servers that lost their names call their parts the same.
        let (plain, extension) = (folder_name(&apart.name), extension(options.format));
        let numbered = (2..).map(|number| format!("{plain}-{number}.{extension}"));
        let paths = std::iter::once(format!("{plain}.{extension}")).chain(numbered);
        let is_free = |path: &PathBuf| saved.iter().all(|known: &UnprovenRows| known.path != *path);
        let path = paths.map(|name| folder.join(name)).find(is_free).unwrap_or_default();
        let report = save(&apart.rows, &path, &options, &Silent)?;
        saved.push(UnprovenRows { path, rows: report.rows_saved, reason: apart.reason });
    }
    Ok(saved)
}
