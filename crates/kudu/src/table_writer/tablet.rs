//! A tablet being written: its rows in memory, its rowsets, its metadata.

use pilaster_core::Result;

use super::columns::TableColumns;
use super::duplicates::RunKeys;
use super::rowset::{WrittenRowSet, write_rowset};
use super::run::RowBuffer;
use crate::fs::{BlockWriter, NewRoot, new_uuid, single_record_file};
use crate::messages::{
    ConsensusMetadataPb, DataDirGroupPb, HostPortPb, PartitionPb, PartitionSchemaPb, RaftConfigPb,
    RaftPeerPb, RowSetDataPb, TabletSuperBlockPb,
};
use crate::wal::{FIRST_SEGMENT, FIRST_TERM, first_segment};

/// `opid_index` of a configuration that no operation of the log made.
const NO_OPERATION: i64 = -1;

/// Takes the rows of one tablet and writes its rowsets.
#[derive(Debug)]
pub(super) struct TabletWriter {
    pub id: String,
    pub partition: PartitionPb,
    pub buffer: RowBuffer,
    pub runs: Vec<RunKeys>,
    pub rows: u64,
    rowsets: Vec<RowSetDataPb>,
}

/// What all tablets of the table share.
#[derive(Debug)]
pub(super) struct TableIdentity<'a> {
    pub name: &'a str,
    pub id: &'a str,
    pub columns: &'a TableColumns,
    pub partition_schema: PartitionSchemaPb,
    pub server_address: &'a (String, u16),
    pub root: &'a NewRoot,
    /// When the rows were inserted, and when the table was finished.
    pub timestamp: u64,
    pub now_micros: u64,
}

impl TabletWriter {
    pub fn new(partition: PartitionPb) -> Self {
        Self {
            id: new_uuid(),
            partition,
            buffer: RowBuffer::default(),
            runs: Vec::new(),
            rows: 0,
            rowsets: Vec::new(),
        }
    }

    pub fn rowsets(&self) -> usize {
        self.rowsets.len()
    }

    /// Sorts the rows in memory and writes them as rowsets of about the given size; fails with a key if two rows have it.
    pub fn flush(
        &mut self,
        table: &TableColumns,
        (rowset_rows, rowset_bytes): (usize, usize),
        timestamp: Option<u64>,
        blocks: &mut BlockWriter,
    ) -> Result<Result<(), Vec<u8>>> {
        let run = match std::mem::take(&mut self.buffer).sort() {
            Ok(run) => run,
            Err(key) => return Ok(Err(key)),
        };
        let Some(last) = run.rows().checked_sub(1) else { return Ok(Ok(())) };
        // Parts of about the same size.
        let parts = run.bytes().div_ceil(rowset_bytes.max(1)).max(1);
        let step = run.rows().div_ceil(parts).clamp(1, rowset_rows);
        let mut written: Vec<WrittenRowSet> = Vec::new();
        for start in (0..run.rows()).step_by(step) {
            let rows = start..start.saturating_add(step).min(run.rows());
            let id = self.rowsets.len().saturating_add(written.len()) as u64;
            written.push(write_rowset(id, &run, rows, table, timestamp, blocks)?);
        }
        self.runs.push(RunKeys::new(run.key(0), run.key(last), &written));
        self.rowsets.extend(written.into_iter().map(|rowset| rowset.message));
        Ok(Ok(()))
    }

    /// Writes what makes a tablet of the rowsets: votes, log and superblock.
    pub fn write_metadata(&self, table: &TableIdentity<'_>) -> Result<()> {
        let folder = &table.root.folder;
        let votes = single_record_file("kudu.consensus.ConsensusMetadataPB", &votes(table));
        folder.child("consensus-meta").child(&self.id).write(&votes)?;
        let log = folder.child("wals").child(&self.id);
        log.make_folder()?;
        // The log goes on where the inserts ended.
        let timestamp = table.timestamp.saturating_add(1);
        let segment = first_segment(&self.id, table.columns.to_message(), timestamp, table.now_micros);
        log.child(FIRST_SEGMENT).write(&segment)?;
        let superblock = single_record_file("kudu.tablet.TabletSuperBlockPB", &self.superblock(table));
        folder.child("tablet-meta").child(&self.id).write(&superblock)
    }

    fn superblock(&self, table: &TableIdentity<'_>) -> TabletSuperBlockPb {
        TabletSuperBlockPb {
            table_id: Some(table.id.into()),
            tablet_id: Some(self.id.clone().into()),
            // As if all rows had been in the first memory store, and that was flushed.
            last_durable_mrs_id: Some(if self.rowsets.is_empty() { -1 } else { 0 }),
            rowsets: self.rowsets.clone(),
            table_name: Some(table.name.into()),
            schema: Some(table.columns.to_message()),
            schema_version: Some(0),
            tablet_data_state: Some(TabletSuperBlockPb::READY),
            partition: Some(self.partition.clone()),
            partition_schema: Some(table.partition_schema.clone()),
            data_dir_group: Some(DataDirGroupPb { uuids: vec![table.root.data_uuid.clone().into()] }),
            supports_live_row_count: Some(true),
            ..TabletSuperBlockPb::default()
        }
    }
}

/// The server as the only voter.
fn votes(table: &TableIdentity<'_>) -> ConsensusMetadataPb {
    let (host, port) = table.server_address;
    ConsensusMetadataPb {
        committed_config: Some(RaftConfigPb {
            opid_index: Some(NO_OPERATION),
            peers: vec![RaftPeerPb {
                permanent_uuid: Some(table.root.uuid.clone().into()),
                member_type: Some(RaftPeerPb::VOTER),
                last_known_addr: Some(HostPortPb { host: Some(host.clone()), port: Some(u32::from(*port)) }),
            }],
        }),
        current_term: Some(FIRST_TERM),
        voted_for: Some(table.root.uuid.clone()),
    }
}
