//! The superblock: everything a tablet has on disk.

use std::collections::{HashMap, HashSet};

use pilaster_core::error::AtPosition;
use pilaster_core::{Error, Result};

use super::partition::{Partition, PartitionSchema};
use super::schema::KuduSchema;
use crate::messages::{self, BlockIdPb, RowSetDataPb, TabletSuperBlockPb, required};

const PART: &str = "tablet superblock";
/// Days of history Kudu keeps unless a table says otherwise.
const DEFAULT_HISTORY_SECONDS: u64 = 7 * 24 * 3600;

/// The servers' own table of the states of transactions.
const TRANSACTIONS_TABLE: &str = "kudu_system.kudu_transactions";
const TRANSACTIONS_COLUMNS: [&str; 4] = ["txn_id", "entry_type", "identifier", "metadata"];
/// The only tablet of a master: the system catalog.
const CATALOG_TABLET: &str = "00000000000000000000000000000000";

/// What a server was doing with a tablet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TabletState {
    /// Being copied from another replica; blocks may be missing.
    Copying,
    /// In use.
    Ready,
    /// Deleted; nothing is left.
    Deleted,
    /// Removed from this server; nothing but its identity is left.
    Tombstoned,
    /// Not said.
    Unknown,
}

impl std::fmt::Display for TabletState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Copying => "copying",
            Self::Ready => "ready",
            Self::Deleted => "deleted",
            Self::Tombstoned => "tombstoned",
            Self::Unknown => "unknown",
        })
    }
}

/// The blocks of a rowset.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RowSetMetadata {
    /// Its id inside the tablet.
    pub id: i64,
    /// Changes of memory stores up to this one are in the delta files; −1 for none.
    pub last_durable_dms_id: i64,
    /// Block of each column, by column id.
    pub columns: Vec<(i32, u64)>,
    /// Blocks of newer changes, oldest first.
    pub redo_deltas: Vec<u64>,
    /// Blocks of older values, newest first.
    pub undo_deltas: Vec<u64>,
    /// Block of the bloom filter.
    pub bloom: Option<u64>,
    /// Block of the compound key's index.
    pub adhoc_index: Option<u64>,
    /// Rows that were live when it was written.
    pub live_row_count: Option<u64>,
}

impl RowSetMetadata {
    /// All its blocks.
    pub(crate) fn block_ids(&self) -> impl Iterator<Item = u64> + '_ {
        let columns = self.columns.iter().map(|(_, block)| *block);
        let deltas = self.undo_deltas.iter().chain(&self.redo_deltas).copied();
        columns.chain(self.bloom).chain(self.adhoc_index).chain(deltas)
    }
}

/// What the log must know of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct TransactionState {
    pub is_aborted: bool,
    pub commit_timestamp: Option<u64>,
    pub is_flushed: bool,
}

/// Everything a superblock says.
#[derive(Debug, Clone, PartialEq)]
pub struct TabletMetadata {
    /// Id of the table.
    pub table_id: String,
    /// Id of the tablet.
    pub tablet_id: String,
    /// Name of the table.
    pub table_name: String,
    /// Rows of memory stores up to this one are in rowsets; −1 for none.
    pub last_durable_mrs_id: i64,
    /// Columns of the table.
    pub schema: KuduSchema,
    /// Which version of the schema that is.
    pub schema_version: u32,
    /// What the server was doing with it.
    pub state: TabletState,
    /// Which rows of the table it holds.
    pub partition: Partition,
    pub(crate) partition_schema: PartitionSchema,
    /// Its rowsets, in no order.
    pub rowsets: Vec<RowSetMetadata>,
    /// How long old values are kept.
    pub history_seconds: u64,
    pub(crate) transactions: HashMap<i64, TransactionState>,
    /// Blocks that are garbage, to be deleted.
    pub(crate) orphaned: Vec<u64>,
}

impl TabletMetadata {
    /// Parses a superblock message that lies at `path`.
    pub(crate) fn parse(path: &str, message: &[u8]) -> Result<Self> {
        let message: TabletSuperBlockPb = messages::parse(message, "TabletSuperBlockPB").at(path, 0, PART)?;
        Self::from_message(message).at(path, 0, PART)
    }

    /// A tablet of which nothing but the id is known.
    pub(crate) fn unknown(id: &str) -> Self {
        Self {
            table_id: String::new(),
            tablet_id: id.to_string(),
            table_name: Self::name_for(id),
            last_durable_mrs_id: -1,
            schema: KuduSchema::default(),
            schema_version: 0,
            state: TabletState::Unknown,
            partition: Partition::default(),
            partition_schema: PartitionSchema::default(),
            rowsets: Vec::new(),
            history_seconds: DEFAULT_HISTORY_SECONDS,
            transactions: HashMap::new(),
            orphaned: Vec::new(),
        }
    }

    /// Whether this is the master's own table, which holds messages and private keys.
    pub fn is_catalog(&self) -> bool {
        self.tablet_id == CATALOG_TABLET
    }

    /// The system catalog declares messages and numbers as text, the table of transactions messages.
    pub(super) fn mark_catalog(&mut self) {
        let is_catalog = self.is_catalog();
        // Where its name is lost, its columns tell.
        let names = self.schema.columns.iter().map(|column| column.name.as_str());
        let has_messages = self.table_name == TRANSACTIONS_TABLE
            || self.table_name == Self::name_for(&self.tablet_id) && names.eq(TRANSACTIONS_COLUMNS);
        for column in &mut self.schema.columns {
            column.is_opaque = is_catalog || has_messages && column.name == "metadata";
        }
    }

    /// What a table is called when nothing says its name.
    pub(super) fn name_for(id: &str) -> String {
        format!("tablet-{id}")
    }

    /// Whether a rowset of a damaged superblock makes sense.
    pub(super) fn is_rowset(message: &RowSetDataPb) -> bool {
        parse_rowset(message).is_ok()
    }

    pub(super) fn from_message(message: TabletSuperBlockPb) -> Result<Self> {
        let text = |field: Option<Vec<u8>>, name: &str| -> Result<String> {
            Ok(String::from_utf8_lossy(&required(field, name)?).into_owned())
        };
        let rowsets = message.rowsets.iter().map(parse_rowset).collect::<Result<Vec<_>>>()?;
        let mut ids = HashSet::new();
        if let Some(twice) = rowsets.iter().find(|rowset| !ids.insert(rowset.id)) {
            return Err(Error::corrupt("rowset ids that differ", format!("rowset {} twice", twice.id)));
        }
        let timestamp = |field: Option<i64>| field.and_then(|value| u64::try_from(value).ok());
        let transactions = message.txn_metadata.iter().map(|(&id, state)| {
            let state = TransactionState {
                is_aborted: state.aborted.unwrap_or_default(),
                commit_timestamp: timestamp(state.commit_timestamp),
                is_flushed: state.flushed_committed_mrs.unwrap_or_default(),
            };
            (id, state)
        });
        let schema = KuduSchema::parse(&required(message.schema, "schema")?)?;
        let partition_schema = message.partition_schema.unwrap_or_default();
        let history = message.extra_config.and_then(|config| config.history_max_age_sec);
        let mut metadata = Self {
            table_id: text(message.table_id, "table_id")?,
            tablet_id: text(message.tablet_id, "tablet_id")?,
            table_name: required(message.table_name, "table_name")?,
            last_durable_mrs_id: required(message.last_durable_mrs_id, "last_durable_mrs_id")?,
            partition_schema: PartitionSchema::parse(&partition_schema, &schema),
            schema,
            schema_version: required(message.schema_version, "schema_version")?,
            state: match message.tablet_data_state {
                Some(0) => TabletState::Copying,
                Some(1) => TabletState::Ready,
                Some(2) => TabletState::Deleted,
                Some(3) => TabletState::Tombstoned,
                _ => TabletState::Unknown,
            },
            partition: Partition::parse(message.partition.unwrap_or_default()),
            rowsets,
            history_seconds: history
                .and_then(|age| u64::try_from(age).ok())
                .unwrap_or(DEFAULT_HISTORY_SECONDS),
            transactions: transactions.collect(),
            orphaned: message.orphaned_blocks.iter().filter_map(|block| block.id).collect(),
        };
        metadata.mark_catalog();
        Ok(metadata)
    }
}

fn parse_rowset(message: &RowSetDataPb) -> Result<RowSetMetadata> {
    let block = |field: Option<BlockIdPb>| required(required(field, "block")?.id, "block.id");
    let optional = |field: Option<BlockIdPb>| field.and_then(|block| block.id);
    let id = required(message.id, "rowset id")?;
    let columns =
        message.columns.iter().map(|column| Ok((column.column_id.unwrap_or(-1), block(column.block)?)));
    Ok(RowSetMetadata {
        id: i64::try_from(id).map_err(|_| Error::corrupt("a rowset id of 63 bits", id))?,
        last_durable_dms_id: required(message.last_durable_dms_id, "last_durable_dms_id")?,
        columns: columns.collect::<Result<_>>()?,
        redo_deltas: message.redo_deltas.iter().map(|delta| block(delta.block)).collect::<Result<_>>()?,
        undo_deltas: message.undo_deltas.iter().map(|delta| block(delta.block)).collect::<Result<_>>()?,
        bloom: optional(message.bloom_block),
        adhoc_index: optional(message.adhoc_index_block),
        live_row_count: message.live_row_count.and_then(|count| u64::try_from(count).ok()),
    })
}
