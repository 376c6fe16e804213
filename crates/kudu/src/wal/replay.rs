//! From log entries to rows and changes, as a server's own bootstrap would decide.
//!
//! Operations are played in index order, each with its COMMIT, which says for every row operation which memory stores it
//! changed. A store that was flushed since is on disk already; the superblock says which were. What was replicated but has no
//! COMMIT is applied only if one replica alone decides ([`Uncommitted::Apply`]).

use std::collections::{BTreeMap, HashMap, HashSet};

use bytes::Bytes;
use pilaster_core::verify::Finding;
use pilaster_core::{Error, Result};

use super::memory::{MemoryRow, MemoryRows};
use super::row_ops::{self, RowOp, RowOpKind};
use super::segment::Segment;
use crate::key::{self, KeyPart};
use crate::messages::{
    CommitMsg, LogEntryPb, MemStoreTargetPb, OperationResultPb, ParticipantOpPb, ReplicateMsg,
    WriteRequestPb, op_type, required,
};
use crate::tablet::{ChangeBuilder, ChangeKind, KuduSchema, RowSet, TabletMetadata, TransactionState};

/// What to do with operations that were replicated but not committed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Uncommitted {
    /// They count: the tablet has one voter, so what it logged is decided.
    Apply,
    /// They do not: only a majority could tell.
    Leave,
}

/// What a replay did.
#[derive(Debug, Clone, Default)]
pub(crate) struct LogReport {
    pub segments: usize,
    pub entries: usize,
    /// Term and index of the last replicated operation.
    pub last_op: Option<(i64, i64)>,
    /// Newest timestamp of any operation.
    pub newest_timestamp: u64,
    /// Indexes of operations without a COMMIT, and whether they were applied.
    pub uncommitted: Vec<i64>,
    pub findings: Vec<Finding>,
}

/// The state of a replay.
#[derive(Debug)]
pub(crate) struct Replay<'a> {
    metadata: &'a TabletMetadata,
    rowsets: &'a mut [RowSet],
    /// The schema at this point of the log.
    schema: KuduSchema,
    schema_version: u32,
    /// The newest schema seen, if it is newer than the superblock's.
    pub newer_schema: Option<(KuduSchema, u32)>,
    pub rows: MemoryRows,
    transactions: HashMap<i64, Transaction>,
    pending: BTreeMap<i64, ReplicateMsg>,
    commits: HashMap<i64, CommitMsg>,
    /// (rowset, row, timestamp) of every change on disk, read when first needed.
    recorded: Option<HashMap<i64, HashSet<(u64, u64)>>>,
    pub report: LogReport,
}

#[derive(Debug, Default)]
struct Transaction {
    state: TransactionState,
    rows: MemoryRows,
}

/// An operation with its cells by column id.
struct KeyedOp {
    kind: RowOpKind,
    ignores: bool,
    key: Vec<u8>,
    /// Given cells of columns that are not part of the key.
    given: Vec<(i32, Option<Bytes>)>,
    /// All cells of the row, defaults included.
    whole: HashMap<i32, Option<Bytes>>,
    sets_immutable: bool,
}

impl<'a> Replay<'a> {
    pub fn new(metadata: &'a TabletMetadata, rowsets: &'a mut [RowSet]) -> Self {
        let transactions = metadata.transactions.iter();
        let transactions =
            transactions.map(|(&id, &state)| (id, Transaction { state, rows: MemoryRows::default() }));
        Self {
            schema: metadata.schema.clone(),
            schema_version: 0,
            newer_schema: None,
            rows: MemoryRows::default(),
            transactions: transactions.collect(),
            pending: BTreeMap::new(),
            commits: HashMap::new(),
            recorded: None,
            report: LogReport::default(),
            metadata,
            rowsets,
        }
    }

    /// Plays all segments, which stand in order.
    pub fn play(&mut self, segments: &[Segment], uncommitted: Uncommitted) {
        if let Some(first) = segments.first() {
            self.schema = first.schema.clone();
            self.schema_version = first.schema_version;
        }
        for segment in segments {
            self.report.segments = self.report.segments.saturating_add(1);
            self.report.findings.extend(segment.findings.iter().cloned());
            for (offset, entry) in &segment.entries {
                self.report.entries = self.report.entries.saturating_add(1);
                if let Err(error) = self.entry(entry) {
                    let path = segment.path.display().to_string();
                    let error = error.at(&path, *offset, "log entry");
                    self.report.findings.push(Finding::from_error(&error, &path, None));
                }
            }
        }
        self.finish_pending(uncommitted);
        self.finish_transactions();
    }

    fn fail(&mut self, error: Error, index: i64) {
        let path = format!("tablet {}", self.metadata.tablet_id);
        let error = Error::invalid(format!("operation {index}: {error}")).at(&path, 0, "log");
        self.report.findings.push(Finding::from_error(&error, &path, None));
    }

    fn entry(&mut self, entry: &LogEntryPb) -> Result<()> {
        match required(entry.entry_type, "type")? {
            LogEntryPb::REPLICATE => {
                let message = required(entry.replicate.clone(), "replicate")?;
                let id = required(message.id, "id")?;
                let (term, index) = (required(id.term, "term")?, required(id.index, "index")?);
                self.report.last_op = self.report.last_op.max(Some((term, index)));
                self.report.newest_timestamp =
                    self.report.newest_timestamp.max(message.timestamp.unwrap_or_default());
                // A newer leader overwrites what came after.
                for (overwritten, _) in self.pending.split_off(&index) {
                    self.commits.remove(&overwritten);
                }
                self.pending.insert(index, message);
                Ok(())
            }
            LogEntryPb::COMMIT => {
                let commit = required(entry.commit.clone(), "commit")?;
                let index = required(required(commit.commited_op_id, "commited_op_id")?.index, "index")?;
                let lowest = self.pending.first_key_value().map(|(lowest, _)| *lowest);
                if lowest.is_none_or(|lowest| lowest > index) {
                    return self.orphaned(&commit);
                }
                self.commits.insert(index, commit);
                while let Some((&lowest, _)) = self.pending.first_key_value() {
                    let Some(commit) = self.commits.remove(&lowest) else { break };
                    let Some((index, message)) = self.pending.pop_first() else { break };
                    if let Err(error) = self.play_committed(&message, &commit) {
                        self.fail(error, index);
                    }
                }
                Ok(())
            }
            other => Err(Error::corrupt("a REPLICATE or a COMMIT", other)),
        }
    }

    /// A COMMIT whose operation was in a segment collected since: fine if everything it did is on disk.
    fn orphaned(&self, commit: &CommitMsg) -> Result<()> {
        let results = commit.result.iter().flat_map(|result| &result.ops);
        let is_active = results.flat_map(|op| &op.mutated_stores).any(|store| self.is_active(store));
        if is_active {
            return Err(Error::corrupt("the operation of a COMMIT", "a COMMIT of changes that are nowhere"));
        }
        Ok(())
    }

    /// Whether what a store held is not on disk.
    fn is_active(&self, store: &MemStoreTargetPb) -> bool {
        if let Some(transaction) = store.rs_txn_id {
            let state = self.metadata.transactions.get(&transaction).copied().unwrap_or_default();
            return !state.is_flushed;
        }
        if let Some(mrs) = store.mrs_id {
            return mrs > self.metadata.last_durable_mrs_id;
        }
        let rowset = self.rowsets.iter().find(|rowset| Some(rowset.metadata.id) == store.rs_id);
        rowset.is_some_and(|rowset| store.dms_id.is_some_and(|dms| dms > rowset.metadata.last_durable_dms_id))
    }

    fn play_committed(&mut self, message: &ReplicateMsg, commit: &CommitMsg) -> Result<()> {
        match required(message.op_type, "op_type")? {
            op_type::WRITE => {
                let request = required(message.write_request.as_ref(), "write_request")?;
                let ops = self.keyed_ops(request)?;
                let results: &[OperationResultPb] = commit.result.as_ref().map_or(&[], |result| &result.ops);
                if results.len() != ops.len() {
                    return Err(Error::corrupt(format!("{} results", ops.len()), results.len()));
                }
                let timestamp = required(message.timestamp, "timestamp")?;
                for (op, result) in ops.into_iter().zip(results) {
                    self.play_row(op, result, timestamp, request.txn_id)?;
                }
                Ok(())
            }
            op_type::ALTER_SCHEMA => {
                let has_failed =
                    commit.result.iter().flat_map(|result| &result.ops).any(|op| op.failed_status.is_some());
                if has_failed { Ok(()) } else { self.alter_schema(message) }
            }
            op_type::PARTICIPANT => self.participant(message),
            op_type::NO_OP | op_type::CHANGE_CONFIG => Ok(()),
            other => Err(Error::corrupt("a known kind of operation", other)),
        }
    }

    fn alter_schema(&mut self, message: &ReplicateMsg) -> Result<()> {
        let request = required(message.alter_schema_request.as_ref(), "alter_schema_request")?;
        let version = required(request.schema_version, "schema_version")?;
        if version <= self.schema_version {
            return Ok(());
        }
        self.schema = KuduSchema::parse(required(request.schema.as_ref(), "schema")?)?;
        self.schema_version = version;
        if version > self.metadata.schema_version {
            self.newer_schema = Some((self.schema.clone(), version));
        }
        Ok(())
    }

    fn participant(&mut self, message: &ReplicateMsg) -> Result<()> {
        let op = required(required(message.participant_request, "participant_request")?.op, "op")?;
        let id = required(op.txn_id, "txn_id")?;
        let in_superblock = self.metadata.transactions.get(&id).copied().unwrap_or_default();
        if in_superblock.is_aborted || in_superblock.commit_timestamp.is_some() {
            return Ok(());
        }
        let transaction = self.transactions.entry(id).or_default();
        match op.op_type {
            Some(ParticipantOpPb::FINALIZE_COMMIT) => {
                let timestamp = required(op.finalized_commit_timestamp, "finalized_commit_timestamp")?;
                transaction.state.commit_timestamp = u64::try_from(timestamp).ok();
            }
            Some(ParticipantOpPb::ABORT_TXN) => transaction.state.is_aborted = true,
            Some(ParticipantOpPb::BEGIN_TXN | ParticipantOpPb::BEGIN_COMMIT) => {}
            other => return Err(Error::corrupt("a known participant operation", format!("{other:?}"))),
        }
        Ok(())
    }

    fn play_row(
        &mut self,
        op: KeyedOp,
        result: &OperationResultPb,
        timestamp: u64,
        txn: Option<i64>,
    ) -> Result<()> {
        if result.failed_status.is_some() || result.skip_on_replay == Some(true) {
            return Ok(());
        }
        let mut active = result.mutated_stores.iter().filter(|store| self.is_active(store)).copied();
        let Some(store) = active.next() else { return Ok(()) };
        if active.next().is_some() {
            return Err(Error::corrupt("one store that a row operation changed", "two"));
        }
        if let Some(id) = store.rs_txn_id.or(txn.filter(|_| store.mrs_id.is_none() && store.rs_id.is_none()))
        {
            let transaction = self.transactions.entry(id).or_default();
            return apply_to_memory(&mut transaction.rows, op, timestamp);
        }
        if store.mrs_id.is_some() {
            return apply_to_memory(&mut self.rows, op, timestamp);
        }
        let rowset = self.rowsets.iter_mut().find(|rowset| Some(rowset.metadata.id) == store.rs_id);
        let rowset = rowset.ok_or_else(|| Error::corrupt("a rowset", format!("{:?}", store.rs_id)))?;
        let row = rowset
            .find(&op.key)?
            .ok_or_else(|| Error::corrupt("a row with the key of the change", "none"))?;
        apply_to_rowset(rowset, row, &op, timestamp);
        Ok(())
    }

    /// What was replicated but not committed, and everything behind it.
    fn finish_pending(&mut self, uncommitted: Uncommitted) {
        let pending = std::mem::take(&mut self.pending);
        let mut commits = std::mem::take(&mut self.commits);
        for (index, message) in pending {
            let played = match (commits.remove(&index), uncommitted) {
                (Some(commit), Uncommitted::Apply) => self.play_committed(&message, &commit),
                (_, Uncommitted::Leave) => {
                    self.report.uncommitted.push(index);
                    Ok(())
                }
                (None, Uncommitted::Apply) => {
                    self.report.uncommitted.push(index);
                    self.play_uncommitted(&message)
                }
            };
            if let Err(error) = played {
                self.fail(error, index);
            }
        }
    }

    fn play_uncommitted(&mut self, message: &ReplicateMsg) -> Result<()> {
        match required(message.op_type, "op_type")? {
            op_type::WRITE => {
                let request = required(message.write_request.as_ref(), "write_request")?;
                let timestamp = required(message.timestamp, "timestamp")?;
                for op in self.keyed_ops(request)? {
                    match request.txn_id {
                        Some(id) => {
                            let transaction = self.transactions.entry(id).or_default();
                            if !transaction.rows.0.contains_key(&op.key) {
                                apply_to_memory(&mut transaction.rows, op, timestamp)?;
                            }
                        }
                        None => self.decide_row(op, timestamp)?,
                    }
                }
                Ok(())
            }
            op_type::ALTER_SCHEMA => self.alter_schema(message),
            op_type::PARTICIPANT => self.participant(message),
            _ => Ok(()),
        }
    }

    /// Does what a server would do with a row operation now: looks the key up everywhere and changes the row where it
    /// lives.
    fn decide_row(&mut self, op: KeyedOp, timestamp: u64) -> Result<()> {
        if self.is_recorded(&op.key, timestamp)? {
            return Ok(());
        }
        let in_memory = self.rows.0.get(&op.key).map(MemoryRow::is_live).transpose()?.unwrap_or(false);
        let mut place = None;
        if !in_memory {
            for (index, rowset) in self.rowsets.iter().enumerate() {
                if let Some(row) = rowset.find(&op.key)?
                    && rowset.is_live(row)?
                {
                    place = Some((index, row));
                    break;
                }
            }
        }
        let is_live = in_memory || place.is_some();
        let fails = match op.kind {
            RowOpKind::Insert => is_live,
            RowOpKind::Update => !is_live || (op.sets_immutable && !op.ignores),
            RowOpKind::Delete => !is_live,
            RowOpKind::Upsert => is_live && op.sets_immutable && !op.ignores,
        };
        if fails {
            return Ok(());
        }
        match place {
            Some((index, row)) => {
                if let Some(rowset) = self.rowsets.get_mut(index) {
                    apply_to_rowset(rowset, row, &op, timestamp);
                }
                Ok(())
            }
            None => apply_to_memory(&mut self.rows, op, timestamp),
        }
    }

    /// Whether a delta file already has a change of this key at this time.
    fn is_recorded(&mut self, key: &[u8], timestamp: u64) -> Result<bool> {
        if self.recorded.is_none() {
            let all = self.rowsets.iter().map(|rowset| Ok((rowset.metadata.id, rowset.recorded_changes()?)));
            self.recorded = Some(all.collect::<Result<_>>()?);
        }
        let Some(recorded) = &self.recorded else { return Ok(false) };
        for rowset in self.rowsets.iter() {
            if let Some(row) = rowset.find(key)?
                && recorded
                    .get(&rowset.metadata.id)
                    .is_some_and(|changes| changes.contains(&(row, timestamp)))
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Rows of committed transactions appear at their commit.
    fn finish_transactions(&mut self) {
        let mut transactions: Vec<_> = std::mem::take(&mut self.transactions).into_iter().collect();
        transactions.sort_by_key(|(id, transaction)| (transaction.state.commit_timestamp, *id));
        for (_, transaction) in transactions {
            let Some(commit) = transaction.state.commit_timestamp else { continue };
            if transaction.state.is_aborted || transaction.state.is_flushed {
                continue;
            }
            for (key, mut row) in transaction.rows.0 {
                match self.rows.0.get_mut(&key) {
                    None => {
                        row.inserted = commit;
                        self.rows.0.insert(key, row);
                    }
                    Some(ghost) => {
                        let mut change = ChangeBuilder::new(ChangeKind::Reinsert);
                        row.cells.iter().for_each(|(id, cell)| change.push(*id, cell.as_deref()));
                        ghost.changes.push((commit, change.finish().into()));
                        ghost.changes.extend(row.changes);
                    }
                }
            }
        }
    }

    /// The operations of a request with keys and cells by column id.
    fn keyed_ops(&self, request: &WriteRequestPb) -> Result<Vec<KeyedOp>> {
        let client = KuduSchema::parse(required(request.schema.as_ref(), "schema")?)?;
        let operations = required(request.row_operations.as_ref(), "row_operations")?;
        let mut counter =
            request.auto_incrementing_column.and_then(|column| column.auto_incrementing_counter);
        let ops = row_ops::parse(operations, &client)?;
        ops.into_iter().map(|op| self.keyed_op(op, &client, &mut counter)).collect()
    }

    fn keyed_op(&self, op: RowOp, client: &KuduSchema, counter: &mut Option<i64>) -> Result<KeyedOp> {
        let keys = self.schema.key_count();
        let mut keyed = KeyedOp {
            kind: op.kind,
            ignores: op.ignores,
            key: Vec::new(),
            given: Vec::new(),
            whole: HashMap::new(),
            sets_immutable: false,
        };
        for (index, column) in self.schema.columns.iter().enumerate() {
            let id = required(column.id, "column id")?;
            let given = client.index_of_name(&column.name).and_then(|at| op.cells.get(at).cloned().flatten());
            let cell = match &given {
                None if column.is_auto_incrementing && op.kind == RowOpKind::Insert => {
                    let next = counter.unwrap_or_default().saturating_add(1);
                    *counter = Some(next);
                    Some(Bytes::copy_from_slice(&next.to_le_bytes()))
                }
                None => column.write_default.clone().map(Bytes::from),
                Some(cell) => cell.clone(),
            };
            if index < keys {
                let part = if index.saturating_add(1) == keys { KeyPart::Last } else { KeyPart::NotLast };
                let value = cell.as_deref().ok_or_else(|| {
                    Error::corrupt(format!("a value of key column {:?}", column.name), "none")
                })?;
                key::encode(column.data_type, value, part, &mut keyed.key)?;
            } else if let Some(cell) = given {
                keyed.sets_immutable |= column.is_immutable && cell.is_some();
                if !(column.is_immutable && op.ignores) {
                    keyed.given.push((id, cell));
                }
            }
            keyed.whole.insert(id, cell);
        }
        Ok(keyed)
    }
}

/// The change an operation makes to a row that exists.
fn change_of(op: &KeyedOp) -> Option<Vec<u8>> {
    let kind = match op.kind {
        RowOpKind::Delete => return Some(ChangeBuilder::new(ChangeKind::Delete).finish()),
        RowOpKind::Update | RowOpKind::Upsert | RowOpKind::Insert => ChangeKind::Update,
    };
    let mut change = ChangeBuilder::new(kind);
    op.given.iter().for_each(|(id, cell)| change.push(*id, cell.as_deref()));
    (!change.is_empty()).then(|| change.finish())
}

fn apply_to_rowset(rowset: &mut RowSet, row: u64, op: &KeyedOp, timestamp: u64) {
    if let Some(change) = change_of(op) {
        rowset.log_changes.entry(row).or_default().push((timestamp, change.into()));
    }
}

fn apply_to_memory(rows: &mut MemoryRows, op: KeyedOp, timestamp: u64) -> Result<()> {
    let Some(row) = rows.0.get_mut(&op.key) else {
        return match op.kind {
            RowOpKind::Insert | RowOpKind::Upsert => {
                rows.0
                    .insert(op.key, MemoryRow { inserted: timestamp, cells: op.whole, changes: Vec::new() });
                Ok(())
            }
            RowOpKind::Update | RowOpKind::Delete => Err(Error::corrupt("a row in memory to change", "none")),
        };
    };
    if !row.is_live()? && matches!(op.kind, RowOpKind::Insert | RowOpKind::Upsert) {
        let mut change = ChangeBuilder::new(ChangeKind::Reinsert);
        op.whole.iter().for_each(|(id, cell)| change.push(*id, cell.as_deref()));
        row.changes.push((timestamp, change.finish().into()));
        return Ok(());
    }
    if let Some(change) = change_of(&op) {
        row.changes.push((timestamp, change.into()));
    }
    Ok(())
}
