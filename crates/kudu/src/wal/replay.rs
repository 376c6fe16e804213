//! From log entries to rows and changes, as a server's own bootstrap would decide.
//!
//! Operations are played in index order, each with its COMMIT, which says for every row operation which memory stores it
//! changed. A store that was flushed since is on disk already; the superblock says which were. What was replicated but has no
//! COMMIT is applied only if one replica alone decides ([`Uncommitted::Apply`]).

use std::collections::{BTreeMap, BTreeSet, HashMap};

use pilaster_core::verify::{Finding, Severity};
use pilaster_core::{Error, Result};

use super::keyed_op::{KeyedOp, apply_to_memory, apply_to_rowset, keyed_ops};
use super::memory::{MemoryRow, MemoryRows};
use super::row_ops::RowOpKind;
use super::segment::{Log, Segment};
use crate::messages::{
    CommitMsg, LogEntryPb, MemStoreTargetPb, OperationResultPb, ParticipantOpPb, ReplicateMsg, op_type,
    required,
};
use crate::tablet::{
    ChangeBuilder, ChangeKind, History, KuduColumn, KuduSchema, RowSet, Snapshot, TabletMetadata,
    TransactionState,
};

/// What to do with operations that were replicated but not committed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Uncommitted {
    /// They count: the tablet has one voter, so what it logged is decided.
    Apply,
    /// They do not: only a majority could tell.
    Leave,
    /// Those up to this index do: the log of another replica has a COMMIT behind them.
    Until(i64),
}

/// How it is decided what an operation did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Method {
    /// By its COMMIT, which names the stores it changed, and the superblock, which says which of them are on disk.
    ByStores,
    /// By key and timestamp: what no delta file has is applied to the row as it was then. This needs neither COMMITs nor
    /// what the superblock says, and gives flushed rows again if their rowset is gone.
    ByTime,
}

/// What a replay may miss.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Losses {
    /// Rows on disk. The log goes back to the first change that is not there, and it is known which stores those are in.
    Rows,
    /// Operations, or what says which of them are on disk.
    Operations,
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
    /// Indexes of operations that could not be played.
    pub failed: Vec<i64>,
    /// How many rows were made in memory, also such as were deleted later.
    pub inserted: u64,
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
    method: Method,
    /// What is missing, so that a key that is not found may have a row all the same.
    losses: Option<Losses>,
    /// Keys whose row is changed in a way that depends on a row nobody has.
    pub unsure: BTreeSet<Vec<u8>>,
    /// Keys of rows that nobody has and that were deleted, and when.
    pub deleted: BTreeMap<Vec<u8>, u64>,
    /// Every change on disk by rowset, read when first needed.
    histories: Option<Vec<History>>,
    pub report: LogReport,
}

#[derive(Debug, Default)]
struct Transaction {
    state: TransactionState,
    rows: MemoryRows,
}

impl<'a> Replay<'a> {
    pub fn new(metadata: &'a TabletMetadata, rowsets: &'a mut [RowSet], method: Method) -> Self {
        // What a superblock says of transactions is in the log again, where that is believed instead.
        let transactions = metadata.transactions.iter().filter(|_| method == Method::ByStores);
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
            method,
            losses: None,
            unsure: BTreeSet::new(),
            deleted: BTreeMap::new(),
            histories: None,
            report: LogReport::default(),
            metadata,
            rowsets,
        }
    }

    /// The same for disks on which rows or operations are missing: operations whose effect depends on them make a key unsure.
    pub fn over_losses(mut self, losses: Losses) -> Self {
        self.losses = Some(losses);
        self
    }

    /// Plays all segments.
    pub fn play(&mut self, log: &Log, uncommitted: Uncommitted) {
        if let Some(first) = log.segments.first() {
            self.start_schema(first);
        }
        for segment in &log.segments {
            self.report.segments = self.report.segments.saturating_add(1);
            for (offset, entry) in &segment.entries {
                self.report.entries = self.report.entries.saturating_add(1);
                if let Err(error) = self.entry(entry) {
                    let path = segment.path.to_string();
                    let error = error.at(&path, *offset, "log entry");
                    self.report.findings.push(Finding::from_error(&error, &path, None));
                }
            }
        }
        self.finish_pending(uncommitted);
        self.finish_transactions();
    }

    /// The schema the log begins with. Segment headers have no checksum: where the superblock has the same version, its own
    /// schema counts; where it has a newer one, columns may have other names since, but no other types.
    fn start_schema(&mut self, first: &Segment) {
        let known = &self.metadata.schema;
        let Some(schema) = &first.schema else {
            self.schema_version = self.metadata.schema_version;
            return;
        };
        self.schema = schema.clone();
        self.schema_version = first.schema_version;
        let kinds = |schema: &KuduSchema| {
            let columns = schema.columns.iter();
            columns
                .map(|c| (c.id, (c.data_type, c.is_array, c.is_key, c.is_nullable)))
                .collect::<HashMap<_, _>>()
        };
        let (in_header, in_superblock) = (kinds(schema), kinds(known));
        let has_changed = in_header.iter().any(|(id, kind)| in_superblock.get(id).is_some_and(|k| k != kind));
        let is_same_version = first.schema_version == self.metadata.schema_version;
        if !has_changed && (!is_same_version || schema.is_same_table(known)) {
            return;
        }
        let path = first.path.to_string();
        let error = Error::corrupt("the schema of the superblock", "another in the segment header");
        let mut finding = Finding::from_error(&error.at(&path, 12, "log segment"), &path, None);
        if is_same_version {
            finding.severity = Severity::Warning;
            self.schema = known.clone();
        } else {
            // The superblock has a checksum: where both know a column, it is right.
            for column in &mut self.schema.columns {
                let index = column.id.and_then(|id| known.index_of_id(id));
                if let Some(right) = index.and_then(|index| known.columns.get(index)) {
                    *column = KuduColumn { name: column.name.clone(), ..right.clone() };
                }
            }
        }
        self.report.findings.push(finding);
    }

    fn fail(&mut self, error: Error, index: i64) {
        self.report.failed.push(index);
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
                if self.method == Method::ByTime {
                    self.commits.insert(index, commit);
                    return Ok(());
                }
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
                let results: &[OperationResultPb] = commit.result.as_ref().map_or(&[], |result| &result.ops);
                if !results.is_empty() && results.iter().all(|result| result.failed_status.is_some()) {
                    return Ok(());
                }
                let ops = keyed_ops(&self.schema, request)?;
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
        let in_superblock = match self.method {
            Method::ByStores => self.metadata.transactions.get(&id).copied().unwrap_or_default(),
            Method::ByTime => TransactionState::default(),
        };
        if in_superblock.is_aborted || in_superblock.commit_timestamp.is_some() {
            return Ok(());
        }
        let transaction = self.transactions.entry(id).or_default();
        match op.op_type {
            Some(ParticipantOpPb::FINALIZE_COMMIT) => {
                let timestamp = required(op.finalized_commit_timestamp, "finalized_commit_timestamp")?;
                transaction.state.commit_timestamp = u64::try_from(timestamp).ok();
                // What follows may change its rows.
                if self.method == Method::ByTime {
                    let transaction = self.transactions.remove(&id).unwrap_or_default();
                    return self.commit_transaction(transaction);
                }
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
        // Raft decides in order: with one operation all before it are committed.
        let elsewhere = match uncommitted {
            Uncommitted::Until(index) => Some(index),
            Uncommitted::Apply | Uncommitted::Leave => None,
        };
        let decided = commits.keys().max().copied().max(elsewhere);
        for (index, message) in pending {
            let commit = commits.remove(&index);
            let is_decided = Some(index) <= decided;
            let played = match (commit, uncommitted) {
                (Some(commit), _) if matches!(self.method, Method::ByStores) => {
                    self.play_committed(&message, &commit)
                }
                (commit, _) if is_decided => self.decide(&message, commit.as_ref()),
                (Some(commit), Uncommitted::Apply) => self.play_committed(&message, &commit),
                (_, Uncommitted::Leave | Uncommitted::Until(_)) => {
                    self.report.uncommitted.push(index);
                    Ok(())
                }
                (None, Uncommitted::Apply) => {
                    self.report.uncommitted.push(index);
                    self.decide(&message, None)
                }
            };
            if let Err(error) = played {
                self.fail(error, index);
            }
        }
        let mut orphans: Vec<_> = commits.into_iter().filter(|_| self.method == Method::ByStores).collect();
        orphans.sort_by_key(|(index, _)| *index);
        for (index, commit) in orphans {
            if let Err(error) = self.orphaned(&commit) {
                self.fail(error, index);
            }
        }
    }

    /// Plays an operation without asking its COMMIT which stores it changed.
    fn decide(&mut self, message: &ReplicateMsg, commit: Option<&CommitMsg>) -> Result<()> {
        let results = commit.and_then(|commit| commit.result.as_ref()).map_or(&[][..], |result| &result.ops);
        let has_failed =
            |number: usize| results.get(number).is_some_and(|result| result.failed_status.is_some());
        // An operation that changed no store had no effect.
        let is_idle = |number: usize| {
            let result = results.get(number);
            result.is_some_and(|result| result.mutated_stores.is_empty() && result.failed_status.is_none())
        };
        match required(message.op_type, "op_type")? {
            op_type::WRITE => {
                let request = required(message.write_request.as_ref(), "write_request")?;
                let timestamp = required(message.timestamp, "timestamp")?;
                if !results.is_empty() && (0..results.len()).all(has_failed) {
                    return Ok(());
                }
                for (number, op) in keyed_ops(&self.schema, request)?.into_iter().enumerate() {
                    if has_failed(number) || is_idle(number) {
                        continue;
                    }
                    let result = results.get(number);
                    match request.txn_id {
                        Some(id) => {
                            let transaction = self.transactions.entry(id).or_default();
                            if !transaction.rows.0.contains_key(&op.key) {
                                apply_to_memory(&mut transaction.rows, op, timestamp)?;
                            }
                        }
                        None => self.decide_row(op, timestamp, result)?,
                    }
                }
                Ok(())
            }
            op_type::ALTER_SCHEMA if has_failed(0) => Ok(()),
            op_type::ALTER_SCHEMA => self.alter_schema(message),
            op_type::PARTICIPANT => self.participant(message),
            op_type::NO_OP | op_type::CHANGE_CONFIG => Ok(()),
            other => Err(Error::corrupt("a known kind of operation", other)),
        }
    }

    /// Does what a server would do with a row operation now: looks the key up everywhere and changes the row where it
    /// lives.
    fn decide_row(&mut self, op: KeyedOp, timestamp: u64, result: Option<&OperationResultPb>) -> Result<()> {
        if self.is_recorded(&op.key, timestamp)? {
            return Ok(());
        }
        // An operation sees what happened up to its own time.
        let snapshot = match self.method {
            Method::ByStores => Snapshot::Latest,
            Method::ByTime => Snapshot::At(timestamp.saturating_add(1)),
        };
        let in_memory = self.rows.0.get(&op.key).map(MemoryRow::is_live).transpose()?.unwrap_or(false);
        let mut place = None;
        if !in_memory {
            let histories = self.histories.as_deref().unwrap_or_default();
            for (index, (rowset, history)) in self.rowsets.iter().zip(histories).enumerate() {
                if let Some(row) = rowset.find(&op.key)?
                    && rowset.is_live(row, history, snapshot)?
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
            // It was there for the server.
            if self.losses.is_some() && op.kind == RowOpKind::Delete && result.is_some() {
                self.deleted.insert(op.key, timestamp);
            }
            return Ok(());
        }
        match place {
            Some((index, row)) => {
                if let Some(rowset) = self.rowsets.get_mut(index) {
                    rowset.log_mixes_with_redo |= self.method == Method::ByTime;
                    apply_to_rowset(rowset, row, &op, timestamp);
                }
                Ok(())
            }
            None => {
                if let Some(losses) = self.losses {
                    self.note_unsure(&op, result, losses);
                    self.deleted.remove(&op.key);
                }
                self.report.inserted = self.report.inserted.saturating_add(u64::from(!in_memory));
                apply_to_memory(&mut self.rows, op, timestamp)
            }
        }
    }

    /// Notes whether a new row of memory may be an old one that nobody has.
    fn note_unsure(&mut self, op: &KeyedOp, result: Option<&OperationResultPb>, losses: Losses) {
        let sets_all = op.given.len() == op.whole.len().saturating_sub(self.schema.key_count());
        // What went to a store that is not on disk changed a row of that store, or made it.
        let stores = result.map_or(&[][..], |result| &result.mutated_stores);
        let in_memory = losses == Losses::Rows
            && stores.iter().any(|store| store.mrs_id.is_some() && self.is_active(store));
        let makes_the_whole_row = match op.kind {
            RowOpKind::Insert => result.is_some(),
            RowOpKind::Upsert => sets_all || in_memory,
            RowOpKind::Update | RowOpKind::Delete => false,
        };
        if makes_the_whole_row {
            self.unsure.remove(&op.key);
        } else if !self.rows.0.contains_key(&op.key) {
            self.unsure.insert(op.key.clone());
        }
    }

    /// Whether a delta file already has a change of this key at this time.
    fn is_recorded(&mut self, key: &[u8], timestamp: u64) -> Result<bool> {
        let histories = match self.histories.take() {
            Some(histories) => histories,
            None => self.rowsets.iter().map(|rowset| rowset.history()).collect::<Result<Vec<_>>>()?,
        };
        let histories = self.histories.insert(histories);
        for (rowset, history) in self.rowsets.iter().zip(histories) {
            if let Some(row) = rowset.find(key)?
                && history.has(row, timestamp)
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
        for (id, transaction) in transactions {
            if let Err(error) = self.commit_transaction(transaction) {
                self.fail(Error::invalid(format!("transaction {id}: {error}")), 0);
            }
        }
    }

    fn commit_transaction(&mut self, transaction: Transaction) -> Result<()> {
        let Some(commit) = transaction.state.commit_timestamp else { return Ok(()) };
        if transaction.state.is_aborted || transaction.state.is_flushed {
            return Ok(());
        }
        for (key, mut row) in transaction.rows.0 {
            if self.method == Method::ByTime && self.is_recorded(&key, commit)? {
                continue;
            }
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
        Ok(())
    }
}
