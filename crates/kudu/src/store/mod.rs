//! The disks of one or several servers: which tables are on them.

mod catalog;
mod check;
mod compare;
mod completeness;
mod listing;
mod lost_tablets;
mod options;
mod orphans;
mod unproven;
mod unread;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use pilaster_core::verify::{Finding, Severity};
use pilaster_core::{CallOption, Dataset, DatasetRef, Error, Location, Result};

pub use crate::fs::Unread;
use crate::fs::{Discovered, FsRoots, discover, find_blocks, has_roots};
use crate::tablet::{
    Blocks, FoundTablet, KuduTable, Replica, Snapshot, Tablet, TabletState, Witness, assign_tables,
    attach_rowsets, find_tablets, open_best, voters,
};

pub use check::StoreCheck;
pub use listing::{TabletEntry, TabletLog};
pub use options::KuduStoreOptions;
pub use orphans::{OrphanBlock, OrphanGroup, OrphanKind};
pub use unproven::Unproven;

/// The disks of one or several servers, opened together: one cluster.
#[derive(Debug, Clone)]
pub struct KuduStore {
    options: KuduStoreOptions,
    servers: Vec<Server>,
    replicas: Vec<Replica>,
    findings: Vec<Finding>,
    /// Folders that may hold more roots and could not be looked into.
    undiscovered: Vec<Unread>,
}

/// The blocks of one server.
#[derive(Debug, Clone)]
struct Server {
    roots: Arc<FsRoots>,
    blocks: Blocks,
    /// Blocks that a record names.
    recorded: HashSet<u64>,
    /// Blocks that superblocks name, by tablet.
    named: BTreeMap<String, Vec<u64>>,
    /// Blocks that were given to tablets without a superblock.
    rebuilt: HashSet<u64>,
    /// Tablets of which only the list of voters is left.
    remnants: Vec<String>,
}

/// Whether anything in or below a folder is a root of a Kudu server.
///
/// # Errors
/// If there is none as far as can be seen, and not all can be looked into.
pub fn is_kudu_folder(folder: impl Into<Location>) -> Result<bool> {
    has_roots(&folder.into())
}

impl KuduStore {
    /// Opens the roots in and below the given folders.
    ///
    /// # Errors
    /// [`pilaster_core::ErrorKind::InvalidInput`] if there are none; [`pilaster_core::ErrorKind::Unsupported`] if a block manager or an encryption cannot be read.
    pub fn open<L: Clone + Into<Location>>(folders: &[L], options: KuduStoreOptions) -> Result<Self> {
        let folders: Vec<Location> = folders.iter().cloned().map(Into::into).collect();
        let Discovered { servers, unread } = discover(&folders, options.server_key.as_deref())?;
        if servers.is_empty() {
            if let Some(unread) = unread.first() {
                return Err(unread.error());
            }
            let names: Vec<_> = folders.iter().map(ToString::to_string).collect();
            return Err(Error::invalid(
                "no Kudu root here: a root has tablet-meta, consensus-meta, wals or data in it",
            )
            .at(&names.join(" "), 0, ""));
        }
        let mut store = Self {
            options,
            servers: Vec::new(),
            replicas: Vec::new(),
            findings: Vec::new(),
            undiscovered: unread,
        };
        for roots in servers {
            store.add_server(roots)?;
        }
        assign_tables(&mut store.replicas);
        name_tables(&mut store.replicas);
        store.replicas.sort_by(|a, b| {
            let order = |replica: &Replica| {
                (replica.metadata.table_name.clone(), replica.metadata.partition.start.clone())
            };
            order(a).cmp(&order(b)).then_with(|| a.metadata.tablet_id.cmp(&b.metadata.tablet_id))
        });
        Ok(store)
    }

    fn add_server(&mut self, roots: FsRoots) -> Result<()> {
        let limits = &self.options.cfile.limits;
        self.findings.extend(roots.findings.iter().chain(&roots.notes).cloned());
        let pool = Arc::new(roots.pool());
        let mut map = roots.blocks(&pool, limits)?;
        let recorded: HashSet<u64> = map.places.keys().copied().collect();
        let mut tablets = find_tablets(&roots, &pool, limits);
        let mut named = BTreeMap::new();
        let mut wanted = Vec::new();
        for FoundTablet { metadata, .. } in &tablets {
            let blocks = metadata.wanted_blocks(&map, &pool);
            named.insert(metadata.tablet_id.clone(), blocks.iter().map(|block| block.id).collect());
            wanted.extend(blocks);
        }
        find_blocks(&mut map, &wanted, &pool);
        let of_superblocks: HashSet<u64> = wanted.iter().map(|block| block.id).collect();
        let mut claimed = of_superblocks.clone();
        self.findings.extend(map.findings.iter().cloned());
        let blocks = Blocks { pool, map: Arc::new(map), options: self.options.cfile.clone() };
        let unplaced = attach_rowsets(&mut tablets, &mut claimed, &blocks, &roots);
        let remnants = lost_tablets::remnants(&roots, &tablets);
        let roots = Arc::new(roots);
        self.replicas.extend(tablets.into_iter().zip(unplaced).map(|(tablet, unplaced)| {
            let (voters, voters_damage) = voters(&roots, &tablet.metadata.tablet_id, &blocks.pool, limits);
            Replica {
                unplaced,
                is_rebuilt: tablet.lacks_rowsets,
                salvages: false,
                voters,
                voters_damage,
                metadata: tablet.metadata,
                metadata_damage: tablet.damage,
                doubtful_tables: Vec::new(),
                witness: Witness::default(),
                server: roots.uuid.clone(),
                roots: Arc::clone(&roots),
                blocks: blocks.clone(),
            }
        }));
        let rebuilt = claimed.difference(&of_superblocks).copied().collect();
        self.servers.push(Server { roots, blocks, recorded, named, rebuilt, remnants });
        Ok(())
    }

    /// The same disks, with rows as they were before this hybrid timestamp, or the latest; nothing is read again.
    #[must_use]
    pub fn at(mut self, as_of: Option<u64>) -> Self {
        self.options.as_of = as_of;
        self
    }

    /// What is wrong with roots, containers and superblocks. That of a tablet that can be read is a warning: what it costs is told
    /// with the rows. What could not be read is not in it: see [`KuduStore::unread`].
    pub fn findings(&self) -> Vec<Finding> {
        let unread = self.unread();
        let is_told = |finding: &Finding| unread.iter().any(|unread| unread.covers(finding));
        let of_tablet = |replica: &Replica| {
            let mut finding = replica.metadata_damage.clone()?;
            if is_readable(replica) {
                finding.severity = Severity::Warning;
            }
            Some(finding)
        };
        let of_tablets = self.replicas.iter().filter_map(of_tablet);
        let lost = self.lost_tablets();
        self.findings
            .iter()
            .cloned()
            .chain(of_tablets)
            .chain(lost)
            .filter(|finding| !is_told(finding))
            .collect()
    }

    /// Names of the tables, each once.
    pub fn tables(&self) -> Vec<String> {
        let live = self.replicas.iter().filter(|replica| is_readable(replica));
        let mut names: Vec<_> = live.map(|replica| replica.metadata.table_name.clone()).collect();
        names.dedup();
        names
    }

    /// Opens a table; without a name, the only one there is. A master's system catalog comes without its private keys,
    /// unless the options ask for secrets.
    ///
    /// # Errors
    /// As [`KuduStore::table`].
    pub fn dataset(&self, name: Option<&str>) -> Result<DatasetRef> {
        let table = self.open_table(name)?;
        if self.is_catalog(&table) {
            return Ok(Arc::new(catalog::Catalog::new(table, self.options.secrets)));
        }
        Ok(Arc::new(table))
    }

    /// Opens a table; without a name, the only one there is.
    ///
    /// # Errors
    /// [`pilaster_core::ErrorKind::InvalidInput`] if there is none of that name, or several and no name; the message lists
    /// them. An `as_of` before the history that is kept is one too, and a master's system catalog without leave to show
    /// secrets: [`KuduStore::dataset`] gives that redacted.
    pub fn table(&self, name: Option<&str>) -> Result<KuduTable> {
        let table = self.open_table(name)?;
        if self.is_catalog(&table) && !self.options.secrets {
            return Err(Error::invalid(
                "the system catalog holds private keys, which are shown only if asked for",
            ));
        }
        Ok(table)
    }

    fn is_catalog(&self, table: &KuduTable) -> bool {
        let mut named = self.replicas.iter().filter(|replica| replica.metadata.table_name == table.name());
        named.any(|replica| replica.metadata.is_catalog())
    }

    fn open_table(&self, name: Option<&str>) -> Result<KuduTable> {
        let names = self.tables();
        // What could not be read may hold the name of a table.
        let is_known = name.is_some_and(|name| names.iter().any(|known| known == name));
        if let Some(unread) = self.unread_of("").first().filter(|_| !is_known) {
            return Err(unread.error());
        }
        let name = match (name, names.as_slice()) {
            (Some(name), _) if names.iter().any(|known| known == name) => name.to_string(),
            (Some(name), _) => {
                return Err(Error::invalid(format!("no table \"{name}\"; there are: {}", names.join(", "))));
            }
            (None, [only]) => only.clone(),
            (None, []) => return Err(self.no_table()),
            (None, several) => {
                let message = format!("several tables here; choose one of: {}", several.join(", "));
                return Err(Error::invalid(message).turning_on(CallOption::Table));
            }
        };
        self.check_identity(&name)?;
        let snapshot = self.snapshot();
        let mut tablets = self.open_tablets(&name, snapshot)?;
        // A tablet without a superblock is part of the table if it fits no other; a plain scan stops all the same.
        for replica in self.replicas.iter().filter(|_| self.options.tablet.is_none()) {
            let Some(doubt) = replica.doubt(&name) else { continue };
            let mut tablet = replica.open(self.options.log, snapshot);
            tablet.rowsets.clear();
            tablet.memory = Arc::default();
            tablet.findings.push(doubt);
            tablets.push(tablet);
        }
        if let Snapshot::At(at) = snapshot {
            check_history(&tablets, at)?;
        }
        let parts = self.parts(&name, &tablets);
        KuduTable::new(name, tablets, snapshot, self.options.log, parts)
    }

    /// Refuses a name that stands for several tables: disks of several clusters, or a table dropped and made again.
    fn check_identity(&self, table: &str) -> Result<()> {
        let named = self
            .replicas
            .iter()
            .filter(|replica| replica.metadata.table_name == table && is_readable(replica));
        let ids: BTreeSet<_> = named.map(|replica| replica.metadata.table_id.as_str()).collect();
        if ids.len() < 2 || self.options.tablet.is_some() {
            return Ok(());
        }
        let ids: Vec<_> = ids.into_iter().collect();
        let message = format!(
            "several tables are called \"{table}\": their ids are {}; give the disks of one cluster, or choose a tablet",
            ids.join(", ")
        );
        Err(Error::invalid(message).turning_on(CallOption::Tablet))
    }

    fn snapshot(&self) -> Snapshot {
        self.options.as_of.map_or(Snapshot::Latest, Snapshot::At)
    }

    /// The tablets of a table, of each the replica asked for, else the best.
    fn open_tablets(&self, table: &str, snapshot: Snapshot) -> Result<Vec<Tablet>> {
        let mut by_tablet: BTreeMap<&str, Vec<&Replica>> = BTreeMap::new();
        for replica in self.replicas.iter().filter(|replica| {
            let metadata = &replica.metadata;
            metadata.table_name == table
                && is_readable(replica)
                && self.options.chooses(&metadata.tablet_id, &replica.server)
        }) {
            by_tablet.entry(&replica.metadata.tablet_id).or_default().push(replica);
        }
        if by_tablet.is_empty() {
            let message = format!("table \"{table}\" has no such tablet or replica here");
            return Err(Error::invalid(message).turning_on(CallOption::Tablet));
        }
        let replicas = by_tablet.values();
        Ok(replicas.filter_map(|replicas| open_best(replicas, self.options.log, snapshot)).collect())
    }
}

fn is_readable(replica: &Replica) -> bool {
    !matches!(replica.metadata.state, TabletState::Deleted | TabletState::Tombstoned)
}

/// Gives every tablet of a table the name that the newest of them has: servers hear of a new name one after the other.
fn name_tables(replicas: &mut [Replica]) {
    let mut newest: BTreeMap<String, (u32, String)> = BTreeMap::new();
    for replica in replicas.iter().filter(|replica| replica.metadata_damage.is_none()) {
        let metadata = &replica.metadata;
        let known = newest.entry(metadata.table_id.clone()).or_default();
        if known.1.is_empty() || metadata.schema_version > known.0 {
            *known = (metadata.schema_version, metadata.table_name.clone());
        }
    }
    for replica in replicas.iter_mut() {
        if let Some((_, name)) = newest.get(&replica.metadata.table_id) {
            replica.metadata.table_name.clone_from(name);
        }
    }
}

fn check_history(tablets: &[Tablet], at: u64) -> Result<()> {
    let newest = tablets.iter().map(|tablet| tablet.newest_timestamp()).max().unwrap_or_default();
    let age = tablets.iter().map(|tablet| tablet.metadata.history_seconds).min().unwrap_or_default();
    let micros = newest >> 12;
    let earliest = micros.saturating_sub(age.saturating_mul(1_000_000)) << 12;
    if at < earliest {
        return Err(Error::invalid(format!(
            "history before hybrid timestamp {earliest} is no longer kept; {at} is earlier"
        )));
    }
    Ok(())
}
