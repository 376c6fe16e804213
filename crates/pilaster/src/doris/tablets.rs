//! Folders of tablets: snapshots, trash, backup repositories.
//!
//! A table is all tablets of one table id with the same columns; the files know its id and not its name. Tablets of other
//! columns under the same id are its rollups, `<id>-2` and so on.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pilaster_core::{
    Dataset, DatasetRef, Error, Finding, Progress, Result, Severity, VerifyDepth, VerifyReport,
};
use pilaster_doris::tablet::{TabletFolder, TabletOptions, TabletReader, find_tablets, has_tablets};

use crate::concat::ConcatDataset;
use crate::ls::{Entry, State};
use crate::open::OpenOptions;
use crate::store::Store;

/// Whether there are tablets in a folder.
pub(super) fn is_store(folder: &Path) -> bool {
    has_tablets(folder)
}

/// The tablets of some folders.
#[derive(Debug)]
pub(super) struct Tablets {
    name: String,
    tables: BTreeMap<String, Vec<TabletReader>>,
    broken: Vec<Broken>,
    /// Whether tables are given without tablets that cannot be read.
    recovers: bool,
    findings: Vec<Finding>,
}

/// A tablet that cannot be read, why, and whose it is, as far as its metadata still tells.
#[derive(Debug)]
struct Broken {
    folder: TabletFolder,
    error: Error,
    table_id: Option<i64>,
}

impl Broken {
    /// Whether it may be a part of a table.
    fn may_be_of(&self, tablets: &[TabletReader]) -> bool {
        self.table_id.is_none_or(|id| tablets.iter().any(|tablet| tablet.meta().table_id == id))
    }
}

impl Tablets {
    pub(super) fn open(folders: &[PathBuf], options: &OpenOptions) -> Result<Self> {
        let version = options.as_of().map(parse_version).transpose()?;
        let tablet_options = TabletOptions::default()
            .with_as_of(version)
            .with_hidden(options.doris().hidden)
            .with_verify_checksums(options.verify_checksums())
            .with_recovery(options.recovers())
            .with_limits(options.limits().clone());
        let names: Vec<_> = folders.iter().map(|folder| folder.display().to_string()).collect();
        let mut store = Self {
            name: names.join(" "),
            tables: BTreeMap::new(),
            broken: Vec::new(),
            recovers: options.recovers(),
            findings: Vec::new(),
        };
        let mut newest: BTreeMap<i64, TabletReader> = BTreeMap::new();
        for root in folders {
            for folder in find_tablets(root, options.limits())? {
                match TabletReader::open(&folder, &tablet_options) {
                    Ok(tablet) => store.keep_newest(tablet, &mut newest),
                    Err(error) => {
                        let path = folder.path.display().to_string();
                        store.findings.push(Finding::from_error(&error, &path, None));
                        let table_id = folder.meta(options.limits()).ok().map(|meta| meta.table_id);
                        store.broken.push(Broken { folder, error, table_id });
                    }
                }
            }
        }
        store.group(newest.into_values());
        Ok(store)
    }

    /// Copies of one tablet are the same rows at different times: the newest counts.
    fn keep_newest(&mut self, tablet: TabletReader, newest: &mut BTreeMap<i64, TabletReader>) {
        let id = tablet.meta().tablet_id;
        let passed_over = match newest.get(&id) {
            Some(known) if known.version() >= tablet.version() => tablet,
            _ => match newest.insert(id, tablet) {
                Some(older) => older,
                None => return,
            },
        };
        self.findings.push(Finding {
            severity: Severity::Warning,
            path: passed_over.name().into(),
            offset: 0,
            part: "tablet".to_string(),
            message: format!(
                "tablet {id} is here more than once; this copy of version {} is passed over",
                passed_over.version()
            ),
            rows: None,
        });
    }

    fn group(&mut self, tablets: impl Iterator<Item = TabletReader>) {
        let mut by_table: BTreeMap<i64, Vec<Vec<TabletReader>>> = BTreeMap::new();
        for tablet in tablets {
            let groups = by_table.entry(tablet.meta().table_id).or_default();
            let same = |group: &&mut Vec<TabletReader>| {
                group.first().is_some_and(|first| first.schema().fields() == tablet.schema().fields())
            };
            match groups.iter_mut().find(same) {
                Some(group) => group.push(tablet),
                None => groups.push(vec![tablet]),
            }
        }
        for (id, mut groups) in by_table {
            groups.sort_by_key(|group| {
                std::cmp::Reverse(group.first().map_or(0, |tablet| tablet.schema().fields().len()))
            });
            for (number, group) in groups.into_iter().enumerate() {
                let name = match number {
                    0 => id.to_string(),
                    other => format!("{id}-{}", other.saturating_add(1)),
                };
                self.tables.insert(name, group);
            }
        }
    }

    fn dataset(&self, name: &str, tablets: &[TabletReader]) -> Result<DatasetRef> {
        let mut parts = tablets.to_vec();
        for broken in self.broken.iter().filter(|broken| broken.may_be_of(tablets)) {
            // A table with a part missing would be taken for all of it.
            if !self.recovers {
                let message = match broken.table_id {
                    Some(_) => format!("a tablet of table {name} cannot be read: {}", broken.error),
                    None => format!(
                        "a tablet cannot be read, and may be one of table {name}: {}; `salvage` gives what is left",
                        broken.error
                    ),
                };
                return Err(Error::invalid(message).at(&broken.folder.path.display().to_string(), 0, ""));
            }
            let error = Error::invalid(broken.error.to_string());
            parts.extend(tablets.first().map(|like| like.lost_like(&broken.folder, error)));
        }
        match parts.as_slice() {
            [only] => Ok(Arc::new(only.clone())),
            several => {
                let parts = several.iter().map(|tablet| Arc::new(tablet.clone()) as DatasetRef).collect();
                Ok(Arc::new(ConcatDataset::try_new(format!("{}#{name}", self.name), parts)?))
            }
        }
    }
}

fn parse_version(text: &str) -> Result<i64> {
    text.trim()
        .parse()
        .map_err(|_| Error::invalid(format!("a version of a Doris tablet is a number, not \"{text}\"")))
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
                return Err(Error::invalid(format!("holds several tables; choose one: {}", known()))
                    .at(&self.name, 0, ""));
            }
            None => self.tables.first_key_value(),
        };
        match (found, self.broken.first()) {
            (Some((name, tablets)), _) => self.dataset(name, tablets),
            (None, Some(broken)) => {
                let folder = broken.folder.path.display().to_string();
                Err(Error::invalid(broken.error.to_string()).at(&folder, 0, ""))
            }
            (None, None) => {
                let message = format!("no table \"{}\"; there are: {}", name.unwrap_or_default(), known());
                Err(Error::invalid(message).at(&self.name, 0, ""))
            }
        }
    }

    fn entries(&self) -> Vec<Entry> {
        let mut entries = Vec::new();
        for (name, tablets) in &self.tables {
            for tablet in tablets {
                let meta = tablet.meta();
                let details = [
                    ("table", name.clone()),
                    ("tablet", meta.tablet_id.to_string()),
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
                    state: State::Ok,
                });
            }
        }
        entries.extend(self.broken.iter().map(|broken| Entry {
            path: broken.folder.path.display().to_string(),
            format: Some("doris tablet".to_string()),
            rows: None,
            bytes: 0,
            columns: None,
            details: Vec::new(),
            state: State::Problem(broken.error.to_string()),
        }));
        entries
    }

    fn findings(&self) -> Vec<Finding> {
        self.findings.clone()
    }

    fn verify(
        &self,
        table: Option<&str>,
        depth: VerifyDepth,
        progress: &dyn Progress,
    ) -> Result<VerifyReport> {
        let mut report = VerifyReport { findings: self.findings.clone(), ..VerifyReport::default() };
        if let Some(name) = table.filter(|name| !self.tables.contains_key(*name)) {
            return Err(Error::invalid(format!(
                "no table \"{name}\"; there are: {}",
                self.tables().join(", ")
            ))
            .at(&self.name, 0, ""));
        }
        for (_, tablets) in self.tables.iter().filter(|(name, _)| table.is_none_or(|table| table == *name)) {
            for tablet in tablets {
                report.merge(tablet.verify(depth, progress)?);
            }
        }
        Ok(report)
    }
}
