//! The disks of one or several servers: which tables are on them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use pilaster_core::verify::Finding;
use pilaster_core::{Error, Result};

use crate::cfile::CFileReaderOptions;
use crate::fs::{discover, find_blocks};
use crate::tablet::{
    Blocks, KuduTable, LogUse, Replica, Snapshot, TabletState, assign_tables, find_tablets, log_damage,
    rebuild_rowsets, voters,
};
use crate::wal::{LogLine, lines};

/// How to open the disks.
#[derive(Debug, Clone, Default)]
pub struct KuduStoreOptions {
    cfile: CFileReaderOptions,
    log: LogUse,
    as_of: Option<u64>,
    replica: Option<String>,
    tablet: Option<String>,
    server_key: Option<String>,
}

impl KuduStoreOptions {
    /// How CFiles are opened: checksums and limits.
    #[must_use]
    pub fn with_cfile_options(mut self, options: CFileReaderOptions) -> Self {
        self.cfile = options;
        self
    }

    /// Whether the log is read; it is unless told otherwise.
    #[must_use]
    pub fn with_log(mut self, log: LogUse) -> Self {
        self.log = log;
        self
    }

    /// Rows as they were before this hybrid timestamp.
    #[must_use]
    pub fn with_as_of(mut self, timestamp: Option<u64>) -> Self {
        self.as_of = timestamp;
        self
    }

    /// Read the replicas of the server with this uuid (or the start of it).
    #[must_use]
    pub fn with_replica(mut self, server: Option<String>) -> Self {
        self.replica = server;
        self
    }

    /// Read only the tablet with this id (or the start of it).
    #[must_use]
    pub fn with_tablet(mut self, tablet: Option<String>) -> Self {
        self.tablet = tablet;
        self
    }

    /// The clear server key in hex, for disks encrypted with a key management service.
    #[must_use]
    pub fn with_server_key(mut self, key: Option<String>) -> Self {
        self.server_key = key;
        self
    }
}

/// The disks of one or several servers, opened together: one cluster.
#[derive(Debug)]
pub struct KuduStore {
    options: KuduStoreOptions,
    replicas: Vec<Replica>,
    findings: Vec<Finding>,
}

/// A tablet in a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TabletEntry {
    /// Name of its table.
    pub table: String,
    /// Its id.
    pub tablet: String,
    /// Uuid of the server.
    pub server: String,
    /// What the server was doing with it.
    pub state: TabletState,
    /// Its bounds.
    pub partition: String,
    /// Columns of its table.
    pub columns: usize,
    /// Rowsets on disk.
    pub rowsets: usize,
    /// Rows that were live when rowsets were written, where known.
    pub flushed_rows: Option<u64>,
    /// Delta files.
    pub deltas: usize,
    /// Bytes of its blocks.
    pub bytes: u64,
    /// First and last segment of its log.
    pub log_segments: Option<(u64, u64)>,
}

/// The log of a tablet.
#[derive(Debug, Clone)]
pub struct TabletLog {
    /// Name of its table.
    pub table: String,
    /// Its id.
    pub tablet: String,
    /// Uuid of the server.
    pub server: String,
    /// Its entries, in order.
    pub lines: Vec<LogLine>,
    /// What is wrong with its segments.
    pub findings: Vec<Finding>,
}

/// Whether anything in or below a folder is a root of a Kudu server.
pub fn is_kudu_folder(folder: &std::path::Path) -> bool {
    discover(&[folder.to_path_buf()], None).is_ok_and(|servers| !servers.is_empty())
}

impl KuduStore {
    /// Opens the roots in and below the given folders.
    ///
    /// # Errors
    /// [`pilaster_core::ErrorKind::InvalidInput`] if there are none; [`pilaster_core::ErrorKind::Unsupported`] if a block manager or an encryption cannot be read.
    pub fn open(folders: &[PathBuf], options: KuduStoreOptions) -> Result<Self> {
        let servers = discover(folders, options.server_key.as_deref())?;
        if servers.is_empty() {
            let names: Vec<_> = folders.iter().map(|folder| folder.display().to_string()).collect();
            return Err(Error::invalid("no Kudu root here: a root has tablet-meta, wals or data in it").at(
                &names.join(" "),
                0,
                "",
            ));
        }
        let (mut replicas, mut findings) = (Vec::new(), Vec::new());
        for roots in servers {
            findings.extend(roots.findings.iter().cloned());
            let pool = Arc::new(roots.pool());
            let mut map = roots.blocks(&pool)?;
            let mut tablets = find_tablets(&roots, &pool);
            let wanted: Vec<_> =
                tablets.iter().flat_map(|tablet| tablet.metadata.wanted_blocks(&map, &pool)).collect();
            find_blocks(&mut map, &wanted, &pool);
            let mut claimed = wanted.iter().map(|block| block.id).collect();
            for tablet in tablets.iter_mut().filter(|tablet| tablet.lacks_rowsets) {
                let (rowsets, found) = rebuild_rowsets(&tablet.metadata.schema, &mut claimed, &map, &pool);
                tablet.metadata.rowsets = rowsets;
                findings.extend(found);
            }
            findings.extend(map.findings.iter().cloned());
            findings.extend(tablets.iter().filter_map(|tablet| tablet.damage.clone()));
            let blocks = Blocks { pool, map: Arc::new(map), options: options.cfile.clone() };
            let roots = Arc::new(roots);
            replicas.extend(tablets.into_iter().map(|tablet| Replica {
                voters: voters(&roots, &tablet.metadata.tablet_id, &blocks.pool),
                metadata: tablet.metadata,
                metadata_damage: tablet.damage,
                doubtful_tables: Vec::new(),
                server: roots.uuid.clone(),
                roots: Arc::clone(&roots),
                blocks: blocks.clone(),
            }));
        }
        assign_tables(&mut replicas);
        replicas.sort_by(|a, b| {
            let order = |replica: &Replica| {
                (replica.metadata.table_name.clone(), replica.metadata.partition.start.clone())
            };
            order(a).cmp(&order(b)).then_with(|| a.metadata.tablet_id.cmp(&b.metadata.tablet_id))
        });
        Ok(Self { options, replicas, findings })
    }

    /// What is wrong with roots and containers.
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// Names of the tables, each once.
    pub fn tables(&self) -> Vec<String> {
        let live = self.replicas.iter().filter(|replica| is_readable(replica));
        let mut names: Vec<_> = live.map(|replica| replica.metadata.table_name.clone()).collect();
        names.dedup();
        names
    }

    /// Every replica of every tablet.
    pub fn tablets(&self) -> Vec<TabletEntry> {
        self.replicas
            .iter()
            .map(|replica| {
                let metadata = &replica.metadata;
                let rows = metadata.rowsets.iter().map(|rowset| rowset.live_row_count);
                TabletEntry {
                    table: metadata.table_name.clone(),
                    tablet: metadata.tablet_id.clone(),
                    server: replica.server.clone(),
                    state: metadata.state,
                    partition: metadata.partition.to_string(),
                    columns: metadata.schema.columns.len(),
                    rowsets: metadata.rowsets.len(),
                    flushed_rows: rows.sum(),
                    deltas: metadata
                        .rowsets
                        .iter()
                        .map(|r| r.redo_deltas.len().saturating_add(r.undo_deltas.len()))
                        .sum(),
                    bytes: replica.bytes(),
                    log_segments: replica.log_segments(),
                }
            })
            .collect()
    }

    /// The log of every tablet that the options choose: its tablet id and table name, its entries in order, and what is
    /// wrong with it.
    pub fn logs(&self) -> Vec<TabletLog> {
        let wanted =
            |asked: &Option<String>, found: &str| asked.as_ref().is_none_or(|asked| found.starts_with(asked));
        let replicas = self.replicas.iter().filter(|replica| {
            wanted(&self.options.tablet, &replica.metadata.tablet_id)
                && wanted(&self.options.replica, &replica.server)
        });
        replicas
            .map(|replica| {
                let log = replica.log();
                TabletLog {
                    table: replica.metadata.table_name.clone(),
                    tablet: replica.metadata.tablet_id.clone(),
                    server: replica.server.clone(),
                    lines: log.segments.iter().flat_map(lines).collect(),
                    findings: log_damage(&log),
                }
            })
            .collect()
    }

    /// Opens a table; without a name, the only one there is.
    ///
    /// # Errors
    /// [`pilaster_core::ErrorKind::InvalidInput`] if there is none of that name, or several and no name; the message lists them. An `as_of` before
    /// the history that is kept is one too.
    pub fn table(&self, name: Option<&str>) -> Result<KuduTable> {
        let names = self.tables();
        let name = match (name, names.as_slice()) {
            (Some(name), _) if names.iter().any(|known| known == name) => name.to_string(),
            (Some(name), _) => {
                return Err(Error::invalid(format!("no table \"{name}\"; there are: {}", names.join(", "))));
            }
            (None, [only]) => only.clone(),
            (None, []) => return Err(Error::invalid("no table here")),
            (None, several) => {
                return Err(Error::invalid(format!(
                    "several tables here; choose one with --table: {}",
                    several.join(", ")
                )));
            }
        };
        self.check_identity(&name)?;
        let chosen = self.choose(&name)?;
        let snapshot = self.options.as_of.map_or(Snapshot::Latest, Snapshot::At);
        let mut tablets: Vec<_> =
            chosen.into_iter().map(|replica| replica.open(self.options.log, snapshot)).collect();
        // A tablet without a superblock is part of the table if it fits no other; a plain scan stops all the same.
        for replica in self.replicas.iter().filter(|_| self.options.tablet.is_none()) {
            let Some(doubt) = replica.doubt(&name) else { continue };
            let mut tablet = replica.open(self.options.log, snapshot);
            if replica.doubtful_tables.len() > 1 {
                tablet.rowsets.clear();
                tablet.memory = Arc::default();
            }
            tablet.findings.push(doubt);
            tablets.push(tablet);
        }
        if let Snapshot::At(at) = snapshot {
            check_history(&tablets, at)?;
        }
        KuduTable::new(name, tablets, snapshot, self.options.log)
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
        Err(Error::invalid(format!(
            "several tables are called \"{table}\": their ids are {}; give the disks of one cluster, or choose a tablet",
            ids.join(", ")
        )))
    }

    /// One replica of each tablet of a table: the one asked for, else the one whose log goes furthest.
    fn choose(&self, table: &str) -> Result<Vec<&Replica>> {
        let mut by_tablet: BTreeMap<&str, Vec<&Replica>> = BTreeMap::new();
        for replica in self
            .replicas
            .iter()
            .filter(|replica| replica.metadata.table_name == table && is_readable(replica))
        {
            let wanted = |asked: &Option<String>, found: &str| {
                asked.as_ref().is_none_or(|asked| found.starts_with(asked))
            };
            if wanted(&self.options.tablet, &replica.metadata.tablet_id)
                && wanted(&self.options.replica, &replica.server)
            {
                by_tablet.entry(&replica.metadata.tablet_id).or_default().push(replica);
            }
        }
        if by_tablet.is_empty() {
            return Err(Error::invalid(format!(
                "no tablet of table \"{table}\" fits --tablet and --replica"
            )));
        }
        let freshest = |replicas: Vec<&'_ Replica>| -> Option<usize> {
            replicas
                .iter()
                .enumerate()
                .max_by_key(|(_, replica)| (replica.metadata_damage.is_none(), replica.last_op()))
                .map(|(index, _)| index)
        };
        Ok(by_tablet
            .into_values()
            .filter_map(|replicas| {
                let index = if replicas.len() == 1 { Some(0) } else { freshest(replicas.clone()) };
                index.and_then(|index| replicas.get(index).copied())
            })
            .collect())
    }
}

fn is_readable(replica: &Replica) -> bool {
    !matches!(replica.metadata.state, TabletState::Deleted | TabletState::Tombstoned)
}

fn check_history(tablets: &[crate::tablet::Tablet], at: u64) -> Result<()> {
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
