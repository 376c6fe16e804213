//! Folders of tablets: snapshots, trash, backup repositories, storage roots.
//!
//! The files know a table's id and not its name. A table is all tablets of one index of it; where there are several indexes, the
//! one with the most columns has the table's id for a name, the others are `<id>-2` and so on.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_schema::{FieldRef, SchemaRef};
use pilaster_core::{
    Absence, CallOption, Dataset, DatasetRef, Error, Finding, Location, Progress, Result, Severity,
    VerifyDepth, VerifyReport,
};
use pilaster_doris::tablet::{TabletFolder, TabletReader, has_tablets, is_tablet_folder};

use super::choice::{Candidate, Note};
use super::opening::with_kind_of;
use crate::concat::ConcatDataset;
use crate::ls::{Entry, State};
use crate::store::Store;
use crate::verify::is_unread;

/// Whether there are tablets in a folder. One that cannot be listed is taken for a folder of files, and opening that says why it cannot be.
pub(super) fn is_store(folder: &Location) -> bool {
    has_tablets(folder).unwrap_or(false)
}

/// Whether all that is in a folder is a backend's or a tablet's: a storage root, whose tablets lie below `data`, the folder of a tablet,
/// or one in which there are only those.
pub(super) fn is_root(folder: &Location) -> bool {
    let is_folder = |place: &Location| place.is_folder().unwrap_or(false);
    let is_tablet = |place: &Location| is_tablet_folder(place).unwrap_or(false);
    let (data, meta) = (folder.child("data"), folder.child("meta"));
    let holds_only_tablets = || {
        let entries = folder.list().unwrap_or_default();
        let mut folders = entries.iter().filter(|entry| entry.is_folder()).peekable();
        folders.peek().is_some() && folders.all(|entry| is_tablet(&folder.beside(entry.path())))
    };
    is_store(folder)
        && (is_folder(&data) && (is_folder(&meta) || is_store(&data))
            || is_tablet(folder)
            || holds_only_tablets())
}

/// The tablets of some folders.
#[derive(Debug)]
pub(super) struct Tablets {
    pub(super) name: String,
    pub(super) tables: BTreeMap<String, Table>,
    pub(super) broken: Vec<Broken>,
    /// Tablets that belong to a table, and are not in service.
    pub(super) left_out: Vec<Candidate>,
    /// Whether tables are given without tablets that cannot be read.
    pub(super) recovers: bool,
    pub(super) variant_paths: Vec<(String, String)>,
    pub(super) notes: Vec<Note>,
    /// Metadata that is not beside its segments, or cannot be read: they may be of any table.
    pub(super) headless: Vec<Absence>,
}

/// The tablets of one index of a table.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) table_id: i64,
    /// What tells it apart from other indexes of the table.
    pub(super) label: String,
    pub(super) tablets: Vec<TabletReader>,
    /// Why they cannot be read together.
    pub(super) conflict: Option<String>,
}

impl Table {
    /// Names of the columns that tablets give different types of.
    pub(super) fn disputed(&self) -> Vec<String> {
        let schemas: Vec<_> = self.tablets.iter().map(TabletReader::schema).collect();
        let Some((first, others)) = schemas.split_first() else { return Vec::new() };
        let differs = |place: usize, field: &FieldRef| {
            let type_of =
                |schema: &SchemaRef| schema.fields().get(place).map(|field| field.data_type().clone());
            others.iter().any(|other| type_of(other).as_ref() != Some(field.data_type()))
        };
        let fields = first.fields().iter().enumerate();
        fields
            .filter(|(place, field)| differs(*place, field))
            .map(|(_, field)| field.name().clone())
            .collect()
    }
}

/// A tablet that cannot be read, why, and whose it is, as far as its metadata still tells.
#[derive(Debug)]
pub(super) struct Broken {
    pub(super) folder: TabletFolder,
    pub(super) error: Error,
    pub(super) tablet_id: Option<i64>,
    /// The table, and which index of it.
    pub(super) of: Option<(i64, String)>,
}

impl Broken {
    /// Whether it may be a part of a table.
    fn may_be_of(&self, table: &Table) -> bool {
        self.of.as_ref().is_none_or(|(id, label)| (*id, label) == (table.table_id, &table.label))
    }
}

impl Tablets {
    fn dataset(&self, name: &str, table: &Table) -> Result<DatasetRef> {
        if let Some(conflict) = &table.conflict {
            let error = Error::invalid(format!("table {name}: {conflict}")).turning_on(CallOption::Tablet);
            return Err(error.at(&self.name, 0, ""));
        }
        let mut parts = table.tablets.clone();
        for broken in self.broken.iter().filter(|broken| broken.may_be_of(table)) {
            // A table with a part missing would be taken for all of it.
            if !self.recovers {
                let message = match broken.of {
                    Some(_) => format!("a tablet of table {name} cannot be read: {}", broken.error),
                    None => format!(
                        "a tablet cannot be read, and may be one of table {name}: {}; `salvage` gives what is left",
                        broken.error
                    ),
                };
                return Err(with_kind_of(&broken.error, message));
            }
            if is_unread(&self.name, &broken.error) {
                let message = format!("not looked at, and may hold rows of table {name}: {}", broken.error);
                return Err(with_kind_of(&broken.error, message));
            }
            parts.extend(
                table.tablets.first().map(|like| like.lost_like(&broken.folder, broken.error.clone())),
            );
        }
        let notes = self.notes.iter().filter(|note| note.table_id.is_none_or(|id| id == table.table_id));
        // What is passed over costs the table no row.
        let warning = |note: &Note| Finding { severity: Severity::Warning, ..note.finding.clone() };
        let mut notes: Vec<_> = notes.map(warning).collect();
        let mut headless = self.headless.as_slice();
        let parts = parts.into_iter().map(|tablet| {
            let (notes, headless) = (std::mem::take(&mut notes), std::mem::take(&mut headless));
            Arc::new(tablet.with_notes(notes).with_absences(headless)) as DatasetRef
        });
        let mut parts: Vec<_> = parts.collect();
        match (parts.pop(), parts.is_empty()) {
            (Some(only), true) => Ok(only),
            (last, _) => {
                parts.extend(last);
                Ok(Arc::new(ConcatDataset::try_new(format!("{}#{name}", self.name), parts)?))
            }
        }
    }
}

impl Store for Tablets {
    fn tables(&self) -> Vec<String> {
        self.tables.keys().cloned().collect()
    }

    fn table(&self, name: Option<&str>) -> Result<DatasetRef> {
        let known = || self.tables().join(", ");
        let found = match name {
            Some(name) => self.tables.get_key_value(name),
            None if self.tables.len() > 1 => {
                let error = Error::invalid(format!("holds several tables; choose one of: {}", known()));
                return Err(error.turning_on(CallOption::Table).at(&self.name, 0, ""));
            }
            None => self.tables.first_key_value(),
        };
        // One that is the only one left is not the only one there is.
        if let (None, Some((only, table))) = (name, found)
            && let Some(other) = self.broken.iter().find(|broken| !broken.may_be_of(table))
        {
            let message = format!(
                "holds table {only}, and another of which nothing can be read: {}; choose one of them",
                other.error
            );
            return Err(with_kind_of(&other.error, message).turning_on(CallOption::Table));
        }
        match (found, self.broken.first()) {
            (Some((name, table)), _) => self.dataset(name, table),
            (None, Some(broken)) => Err(broken.error.clone().at(&broken.folder.location.to_string(), 0, "")),
            (None, None) if !self.headless.is_empty() && name.is_none() => {
                let missing = self.headless.iter().map(|absence| absence.what.as_str()).collect::<Vec<_>>();
                Err(Error::incomplete(missing.join("; ")).at(&self.name, 0, ""))
            }
            (None, None) => {
                let message = format!("no table \"{}\"; there are: {}", name.unwrap_or_default(), known());
                Err(Error::invalid(message).at(&self.name, 0, ""))
            }
        }
    }

    fn entries(&self) -> Vec<Entry> {
        let mut entries = Vec::new();
        for (name, table) in &self.tables {
            for tablet in &table.tablets {
                let meta = tablet.meta();
                let details = [
                    ("table", name.clone()),
                    ("tablet", meta.tablet_id.to_string()),
                    ("state", meta.state.to_string()),
                    ("partition", meta.partition_id.to_string()),
                    ("keys", format!("{:?}", meta.schema.keys_type)),
                    ("version", tablet.version().to_string()),
                    ("rowsets", meta.rowsets.len().to_string()),
                    ("folder", tablet.name().to_string()),
                ];
                entries.push(Entry {
                    path: format!("{}#{name}", self.name),
                    format: Some("doris tablet".to_string()),
                    rows: tablet.row_count(),
                    bytes: tablet.size_bytes(),
                    columns: Some(tablet.schema().fields().len()),
                    details: details.map(|(name, value)| (name.to_string(), value)).to_vec(),
                    state: match tablet.absences().first() {
                        Some(absence) => State::Problem(absence.what.clone()),
                        None => State::Ok,
                    },
                });
            }
        }
        entries.extend(self.left_out.iter().map(|left_out| {
            let meta = &left_out.meta;
            let details = [
                ("table", meta.table_id.to_string()),
                ("tablet", meta.tablet_id.to_string()),
                ("state", meta.state.to_string()),
                ("partition", meta.partition_id.to_string()),
                ("version", left_out.version().to_string()),
                ("rowsets", meta.rowsets.len().to_string()),
                ("left out", "not in service".to_string()),
            ];
            Entry {
                path: left_out.folder.location.to_string(),
                format: Some("doris tablet".to_string()),
                rows: None,
                bytes: meta.rowsets.iter().map(|rowset| rowset.bytes).sum(),
                columns: Some(meta.schema.columns.iter().filter(|column| column.visible).count()),
                details: details.map(|(name, value)| (name.to_string(), value)).to_vec(),
                state: State::Ok,
            }
        }));
        // Where there is no table they are findings of the whole.
        let headless = if self.tables.is_empty() { &[] } else { self.headless.as_slice() };
        entries.extend(headless.iter().map(|absence| Entry {
            path: absence.path.to_string(),
            format: Some("doris tablet".to_string()),
            rows: None,
            bytes: 0,
            columns: None,
            details: Vec::new(),
            state: State::Problem(absence.what.clone()),
        }));
        entries.extend(self.broken.iter().map(|broken| Entry {
            path: broken.folder.location.to_string(),
            format: Some("doris tablet".to_string()),
            rows: None,
            bytes: 0,
            columns: None,
            details: Vec::new(),
            state: match is_unread(&self.name, &broken.error) {
                true => State::Unread(broken.error.to_string()),
                false => State::Problem(broken.error.to_string()),
            },
        }));
        entries
    }

    fn findings(&self) -> Vec<Finding> {
        let broken = self
            .broken
            .iter()
            .map(|broken| Finding::from_error(&broken.error, &broken.folder.location.to_string(), None));
        let notes = self.notes.iter().map(|note| note.finding.clone());
        // They are missing in each of the tables, and are said there if there are any.
        let headless = if self.tables.is_empty() { self.headless.as_slice() } else { &[] };
        notes.chain(headless.iter().map(Absence::finding)).chain(broken).collect()
    }

    fn verify(
        &self,
        table: Option<&str>,
        depth: VerifyDepth,
        progress: &dyn Progress,
    ) -> Result<VerifyReport> {
        let notes = self.notes.iter().map(|note| note.finding.clone());
        let mut report = VerifyReport { findings: notes.collect(), ..VerifyReport::default() };
        report.findings.extend(self.headless.iter().map(Absence::finding));
        for broken in &self.broken {
            let path = broken.folder.location.to_string();
            report.add_failure(&path, &broken.error, is_unread(&path, &broken.error));
        }
        if let Some(name) = table.filter(|name| !self.tables.contains_key(*name)) {
            return Err(Error::invalid(format!(
                "no table \"{name}\"; there are: {}",
                self.tables().join(", ")
            ))
            .at(&self.name, 0, ""));
        }
        let asked = self.tables.iter().filter(|(name, _)| table.is_none_or(|table| table == *name));
        for (_, table) in asked {
            for tablet in &table.tablets {
                report.findings.extend(tablet.absences().iter().map(Absence::finding));
                report.merge(tablet.verify(depth, progress)?);
            }
        }
        Ok(report)
    }
}
