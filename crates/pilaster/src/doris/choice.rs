//! Which tablets make up a table.
//!
//! A table has one index or several: the base table, and rollups. Tablets of one index are parts of the same rows. Which index a
//! tablet is of is told by the index id, in its metadata or in the folders of a backup, else by the schema hash, which is
//! drawn at random for each index.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;

use pilaster_core::{Finding, Severity};
use pilaster_doris::tablet::{TabletFolder, TabletMeta, TabletState};
use pilaster_doris::{SchemaColumn, TabletSchema};

/// Folders of a backup say the index they are of.
const INDEX_FOLDER: &str = "__idx_";
/// So many ids are named in a message.
const MOST_NAMED: usize = 20;

/// A tablet whose metadata was read.
#[derive(Debug, Clone)]
pub(super) struct Candidate {
    pub folder: TabletFolder,
    pub meta: TabletMeta,
}

impl Candidate {
    /// The newest version it has, if it has any.
    pub fn version(&self) -> i64 {
        self.meta.newest_version().unwrap_or(-1)
    }

    fn index_id(&self) -> Option<i64> {
        self.meta.index_id.or_else(|| index_of_path(self.folder.location.path()))
    }
}

fn index_of_path(path: &Path) -> Option<i64> {
    let names = path.components().rev().filter_map(|part| part.as_os_str().to_str());
    names.filter_map(|name| name.strip_prefix(INDEX_FOLDER)).find_map(|id| id.parse().ok())
}

/// Something to tell, and the table it is about.
#[derive(Debug, Clone)]
pub(super) struct Note {
    pub table_id: Option<i64>,
    pub finding: Finding,
}

impl Note {
    pub fn warning(table_id: i64, path: &str, message: String) -> Self {
        let finding = Finding {
            severity: Severity::Warning,
            path: path.into(),
            offset: 0,
            part: "tablet".to_string(),
            message,
            rows: None,
        };
        Self { table_id: Some(table_id), finding }
    }
}

/// The tablets of a table that are in service, and the others, which have rows of another time.
///
/// A table without any in service was dropped: then those that are left are all there is.
pub(super) fn in_service(candidates: Vec<Candidate>) -> (Vec<Candidate>, Vec<Candidate>) {
    let best = candidates.iter().map(|candidate| rank(&candidate.meta)).max();
    candidates.into_iter().partition(|candidate| Some(rank(&candidate.meta)) == best)
}

fn rank(meta: &TabletMeta) -> u8 {
    match (meta.is_binlog, meta.state) {
        (true, _) => 0,
        (false, TabletState::NotReady) => 1,
        (false, TabletState::Shutdown) => 2,
        (false, TabletState::Stopped | TabletState::Tombstoned) => 3,
        (false, TabletState::Running) => 4,
    }
}

/// What is said of tablets that are left out, or are given though they are not in service.
pub(super) fn state_notes(table_id: i64, used: &[Candidate], left_out: &[Candidate]) -> Vec<Note> {
    let mut notes = Vec::new();
    for (candidates, is_used) in [(used, true), (left_out, false)] {
        let mut by_kind: BTreeMap<String, Vec<&Candidate>> = BTreeMap::new();
        for candidate in candidates {
            match (candidate.meta.is_binlog, candidate.meta.state) {
                (true, _) => by_kind.entry("a log of changes".to_string()).or_default().push(candidate),
                (false, TabletState::Running) => {}
                (false, state) => by_kind.entry(format!("in state {state}")).or_default().push(candidate),
            }
        }
        for (kind, of_kind) in by_kind {
            let ids = named(of_kind.iter().map(|candidate| candidate.meta.tablet_id));
            let path = of_kind.first().map(|candidate| candidate.folder.location.to_string());
            let end = if is_used {
                "; there are no others of the table, so their rows are given"
            } else {
                " and left out; open the folder of one, or ask for it by its id, to see its rows"
            };
            let message = format!("tablet {ids} of table {table_id} is {kind}{end}");
            notes.push(Note::warning(table_id, &path.unwrap_or_default(), message));
        }
    }
    notes
}

/// Some ids in a row.
pub(super) fn named(ids: impl Iterator<Item = i64>) -> String {
    let mut ids: Vec<_> = ids.collect();
    ids.sort_unstable();
    ids.dedup();
    let shown: Vec<_> = ids.iter().take(MOST_NAMED).map(ToString::to_string).collect();
    match ids.len().saturating_sub(MOST_NAMED) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// An index of a table.
#[derive(Debug)]
pub(super) struct Index {
    pub tablets: Vec<Candidate>,
    /// The schema of all its tablets: the newest of theirs.
    pub schema: Arc<TabletSchema>,
    pub schema_version: i32,
    /// Why it cannot be known which schema that is.
    pub conflict: Option<String>,
    /// What tells it apart from others.
    pub label: String,
}

/// The indexes of a table, the one with the most columns first.
pub(super) fn indexes(candidates: Vec<Candidate>) -> Vec<Index> {
    // Tablets of one index may know its id (in a backup) or not (on a disk); the hash is the same.
    let mut ids_of_hash: HashMap<Option<i32>, Vec<i64>> = HashMap::new();
    for candidate in &candidates {
        let ids = ids_of_hash.entry(candidate.meta.schema_hash).or_default();
        ids.extend(candidate.index_id().filter(|id| !ids.contains(id)));
    }
    let mut groups: BTreeMap<(Option<i64>, Option<i32>), Vec<Candidate>> = BTreeMap::new();
    for candidate in candidates {
        let hash = candidate.meta.schema_hash;
        let known = ids_of_hash.get(&hash).map(Vec::as_slice).unwrap_or_default();
        let key = match (candidate.index_id(), known) {
            (Some(id), _) => (Some(id), None),
            (None, [id]) => (Some(*id), None),
            (None, _) => (None, hash),
        };
        groups.entry(key).or_default().push(candidate);
    }
    let mut indexes: Vec<Index> =
        groups.into_iter().filter_map(|(key, tablets)| Index::of(key, tablets)).collect();
    indexes.sort_by_key(|index| std::cmp::Reverse(index.schema.columns.len()));
    indexes
}

impl Index {
    fn of(key: (Option<i64>, Option<i32>), mut tablets: Vec<Candidate>) -> Option<Self> {
        // Partitions in their own order, and tablets in theirs.
        tablets.sort_by_key(|tablet| (tablet.meta.partition_id, tablet.meta.tablet_id));
        let newest = tablets.iter().max_by_key(|tablet| tablet.meta.schema_version)?;
        let (schema, schema_version) = (Arc::new(newest.meta.schema.clone()), newest.meta.schema_version);
        let differs = |tablet: &&Candidate| {
            tablet.meta.schema_version == schema_version && !is_same(&tablet.meta.schema, &schema)
        };
        let conflict = tablets.iter().find(differs).map(|other| {
            format!(
                "tablets {} and {} have different columns under one schema version, {schema_version}; each can be read alone, by its id",
                newest.meta.tablet_id, other.meta.tablet_id
            )
        });
        let label = match key {
            (Some(id), _) => format!("index {id}"),
            (None, Some(hash)) => format!("schema hash {hash}"),
            (None, None) => "unknown index".to_string(),
        };
        Some(Self { tablets, schema, schema_version, conflict, label })
    }
}

/// Whether rows of one schema are rows of the other.
fn is_same(one: &TabletSchema, other: &TabletSchema) -> bool {
    let same = |(a, b): (&SchemaColumn, &SchemaColumn)| {
        let of = |column: &SchemaColumn| {
            let numbers = (column.unique_id, column.precision, column.frac, column.is_key, column.visible);
            (numbers, column.aggregation.clone())
        };
        of(a) == of(b) && a.name == b.name && a.type_name == b.type_name
    };
    one.keys_type == other.keys_type
        && one.columns.len() == other.columns.len()
        && one.columns.iter().zip(&other.columns).all(same)
}
