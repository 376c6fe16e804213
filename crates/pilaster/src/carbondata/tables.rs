//! Tables with their metadata, and stores of them.

use std::path::{Path, PathBuf};

use pilaster_carbondata::table::{
    CarbonTable, CarbonTableOptions, SegmentStatus, find_tables, has_metadata, shown_time,
};
use pilaster_core::{
    Dataset, DatasetRef, Error, ErrorKind, Finding, Progress, Result, VerifyDepth, VerifyReport,
};

use super::foreign::{open_with_foreign, verify_foreign};
use crate::ls::{Entry, State};
use crate::open::OpenOptions;
use crate::store::Store;

/// Whether a folder is a table, or has tables in it or in the folders of databases in it.
pub(super) fn is_store(folder: &Path) -> bool {
    has_metadata(folder) || find_tables(folder).is_ok_and(|tables| !tables.is_empty())
}

/// The tables of one or several folders.
#[derive(Debug)]
pub(super) struct Tables {
    /// Name and folder of each.
    tables: Vec<(String, PathBuf)>,
    options: CarbonTableOptions,
}

impl Tables {
    pub(super) fn find(folders: &[PathBuf], options: &OpenOptions) -> Result<Self> {
        let mut tables = Vec::new();
        for folder in folders {
            if has_metadata(folder) {
                let name =
                    folder.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
                tables.push((name, folder.clone()));
            } else {
                tables.extend(find_tables(folder)?);
            }
        }
        Ok(Self { tables, options: options.carbon_table()? })
    }

    fn segment_entry(&self, name: &str, table: &CarbonTable, segment: &SegmentStatus) -> Entry {
        let number = |value: &Option<String>| value.as_deref().and_then(|text| text.parse::<u64>().ok());
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
            state: match foreign.and_then(|foreign| foreign.unreachable.clone()) {
                Some(reason) => State::Problem(reason),
                None => State::Ok,
            },
        }
    }

    /// The folder of a table; without a name, of the only one.
    fn folder(&self, name: Option<&str>) -> Result<&Path> {
        let known = || self.tables().join(", ");
        let folder = match (name, self.tables.as_slice()) {
            (None, [(_, folder)]) => folder,
            (None, _) => {
                return Err(Error::invalid(format!("there are several tables; choose one of: {}", known())));
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
    folder: &Path,
    options: &CarbonTableOptions,
    depth: VerifyDepth,
    progress: &dyn Progress,
    report: &mut VerifyReport,
) -> Result<()> {
    let options = options.clone().with_foreign_left_out(true);
    let opened = match CarbonTable::open(folder, &options) {
        Err(error) if error.is_damage() || is_missing(&error) => {
            CarbonTable::open(folder, &options.clone().with_recovery(true)).map_err(|_| error)
        }
        opened => opened,
    };
    match opened {
        Ok(table) => {
            report.merge(table.verify(depth, progress)?);
            verify_foreign(&table, depth, progress, report)?;
        }
        // What this build cannot read is not damage.
        Err(error) if !error.is_damage() && !is_missing(&error) => return Err(error),
        Err(error) => {
            let name = folder.display().to_string();
            report.findings.push(Finding::from_error(&error, &name, None));
        }
    }
    Ok(())
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
            match CarbonTable::open(folder, &self.options.clone().with_foreign_left_out(true)) {
                Ok(table) => {
                    entries.extend(table.segments().iter().map(|s| self.segment_entry(name, &table, s)));
                }
                Err(error) => entries.push(Entry {
                    path: format!("{}#{name}", folder.display()),
                    format: Some("carbondata table".to_string()),
                    rows: None,
                    bytes: 0,
                    columns: None,
                    details: vec![("table".to_string(), name.clone())],
                    state: State::Problem(error.to_string()),
                }),
            }
        }
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
