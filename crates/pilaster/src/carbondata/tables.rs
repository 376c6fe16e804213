//! Tables with their metadata, and stores of them.

use pilaster_carbondata::table::{
    CarbonTable, CarbonTableOptions, SegmentStatus, find_tables, has_metadata, has_tables, shown_time,
};
use pilaster_core::{
    Absence, CallOption, Dataset, DatasetRef, Error, ErrorKind, Finding, Location, Progress, Result,
    VerifyDepth, VerifyReport,
};

use super::foreign::{open_with_foreign, verify_foreign};
use crate::ls::{Entry, State};
use crate::open::OpenOptions;
use crate::store::Store;

/// Whether a folder is a table, or has tables in it or in the folders of databases in it. One that cannot be looked into is taken for a
/// folder of files, and opening that says why it cannot be.
pub(super) fn is_store(folder: &Location) -> bool {
    has_metadata(folder).unwrap_or(false) || has_tables(folder).unwrap_or(false)
}

/// The tables of one or several folders.
#[derive(Debug)]
pub(super) struct Tables {
    /// Name and folder of each.
    tables: Vec<(String, Location)>,
    /// Folders that could not be looked into.
    unread: Vec<Error>,
    options: CarbonTableOptions,
}

impl Tables {
    pub(super) fn find(folders: &[Location], options: &OpenOptions) -> Result<Self> {
        let (mut tables, mut unread) = (Vec::new(), Vec::new());
        for folder in folders {
            // What is not known of the folder itself is said of what lies in it.
            if has_metadata(folder).unwrap_or(false) {
                tables.push((folder.name().to_string_lossy().into_owned(), folder.clone()));
            } else {
                let below = find_tables(folder)?;
                tables.extend(below.tables);
                unread.extend(below.unread);
            }
        }
        Ok(Self { tables, unread, options: options.carbon_table()? })
    }

    fn segment_entry(&self, name: &str, table: &CarbonTable, segment: &SegmentStatus) -> Entry {
        let number = |value: &Option<String>| value.as_deref().and_then(|text| text.parse::<u64>().ok());
        let absences = table.absences_of(&segment.id);
        let first_absence = absences.first();
        let foreign = table.foreign_segments().iter().find(|foreign| foreign.id == segment.id);
        // Releases before 1.3 note no sizes.
        let bytes = number(&segment.data_bytes).unwrap_or_else(|| table.segment_bytes(&segment.id));
        let details = [
            ("table", name.to_string()),
            ("segment", segment.id.clone()),
            ("status", segment.status.clone()),
            ("load start", shown_time(segment.load_start.as_deref())),
            ("load end", shown_time(segment.load_end.as_deref())),
            ("modified", shown_time(segment.modified.as_deref())),
            ("merged into", segment.merged_into.clone().unwrap_or_default()),
        ];
        Entry {
            path: format!("{}#{name}", table.name()),
            format: Some(
                foreign.map_or("carbondata segment".to_string(), |foreign| {
                    format!("{} segment", foreign.format)
                }),
            ),
            rows: (segment.is_readable() && foreign.is_none()).then(|| table.segment_rows(&segment.id)),
            bytes: bytes.saturating_add(number(&segment.index_bytes).unwrap_or(0)),
            columns: Some(table.schema().fields().len()),
            details: details.map(|(name, value)| (name.to_string(), value)).to_vec(),
            state: match (foreign.and_then(|foreign| foreign.unreachable.clone()), first_absence) {
                (Some(reason), _) => State::Problem(reason),
                (None, Some(absence)) => State::Problem(absence.to_string()),
                (None, None) => State::Ok,
            },
        }
    }

    /// The folder of a table; without a name, of the only one.
    fn folder(&self, name: Option<&str>) -> Result<&Location> {
        let known = || self.tables().join(", ");
        let folder = match (name, self.tables.as_slice()) {
            (None, [(_, folder)]) => folder,
            (None, _) => {
                let message = format!("there are several tables; choose one of: {}", known());
                return Err(Error::invalid(message).turning_on(CallOption::Table));
            }
            (Some(name), tables) => {
                let found = tables.iter().find(|(known, _)| known == name);
                let missing = || Error::invalid(format!("no table \"{name}\"; there are: {}", known()));
                &found.ok_or_else(missing)?.1
            }
        };
        Ok(folder)
    }
}

/// Looks for damage in one table; metadata that is damaged is named, and the rest is looked at without it.
fn verify_table(
    folder: &Location,
    options: &CarbonTableOptions,
    depth: VerifyDepth,
    progress: &dyn Progress,
    report: &mut VerifyReport,
) -> Result<()> {
    let options = options.clone().with_foreign_left_out(true).with_unread_left_out(true);
    let recovering = options.clone().with_recovery(true);
    let opened = match CarbonTable::open(folder, &options) {
        Err(error) if error.is_damage() || is_missing(&error) => {
            CarbonTable::open(folder, &recovering).map_err(|_| error)
        }
        // What is left of the rest says more of a part that is not here.
        Ok(table) if !table.absences().is_empty() => {
            Ok(CarbonTable::open(folder, &recovering).unwrap_or(table))
        }
        opened => opened,
    };
    match opened {
        Ok(table) => {
            report.findings.extend(table.absences().iter().map(Absence::finding));
            report.merge(table.verify(depth, progress)?);
            verify_foreign(&table, depth, progress, report)?;
        }
        // What the system does not let us read is not damage either, and the other tables are looked at.
        Err(error) if matches!(error.kind(), ErrorKind::Io(_)) && !is_missing(&error) => {
            report.add_failure(&folder.to_string(), &error, true);
        }
        // What this build cannot read is not damage.
        Err(error) if !error.is_damage() && !is_missing(&error) => return Err(error),
        Err(error) => {
            let name = folder.to_string();
            report.findings.push(Finding::from_error(&error, &name, None));
        }
    }
    Ok(())
}

/// What could not be opened, or not even looked into.
fn unopened(path: String, table: &str, error: &Error) -> Entry {
    let is_unread = matches!(error.kind(), ErrorKind::Io(_)) && !is_missing(error);
    let said = if is_unread { format!("not looked at: {error}") } else { error.to_string() };
    Entry {
        path,
        format: Some("carbondata table".to_string()),
        rows: None,
        bytes: 0,
        columns: None,
        details: vec![("table".to_string(), table.to_string())],
        state: if is_unread { State::Unread(said) } else { State::Problem(said) },
    }
}

fn place_of(error: &Error) -> String {
    error.position().map_or_else(String::new, |position| position.path.to_string())
}

fn is_missing(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Io(error) if error.kind() == std::io::ErrorKind::NotFound)
}

impl Store for Tables {
    fn tables(&self) -> Vec<String> {
        self.tables.iter().map(|(name, _)| name.clone()).collect()
    }

    fn table(&self, name: Option<&str>) -> Result<DatasetRef> {
        open_with_foreign(self.folder(name)?, &self.options)
    }
    fn entries(&self) -> Vec<Entry> {
        let mut entries = Vec::new();
        for (name, folder) in &self.tables {
            // What cannot be reached can still be listed.
            let options = self.options.clone().with_foreign_left_out(true).with_unread_left_out(true);
            let path = format!("{folder}#{name}");
            match CarbonTable::open(folder, &options) {
                Ok(table) => {
                    entries.extend(table.segments().iter().map(|s| self.segment_entry(name, &table, s)));
                    entries.extend(table.unread().iter().map(|error| unopened(path.clone(), name, error)));
                }
                Err(error) => entries.push(unopened(path, name, &error)),
            }
        }
        entries.extend(self.unread.iter().map(|error| unopened(place_of(error), "", error)));
        entries
    }

    fn findings(&self) -> Vec<Finding> {
        Vec::new()
    }

    fn verify(
        &self,
        table: Option<&str>,
        depth: VerifyDepth,
        progress: &dyn Progress,
    ) -> Result<VerifyReport> {
        let mut report = VerifyReport::default();
        for error in self.unread.iter().filter(|_| table.is_none()) {
            report.add_failure(&place_of(error), error, true);
        }
        if let Some(name) = table {
            verify_table(self.folder(Some(name))?, &self.options, depth, progress, &mut report)?;
            return Ok(report);
        }
        for (_, folder) in &self.tables {
            verify_table(folder, &self.options, depth, progress, &mut report)?;
        }
        Ok(report)
    }
}
