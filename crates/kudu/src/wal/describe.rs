//! The log as a list for people.
//!
//! Values of rows are not shown, and authorization tokens only if asked for: a log may be pasted into a ticket.

use super::row_ops::{self, RowOpKind};
use super::segment::Segment;
use crate::messages::{CommitMsg, LogEntryPb, ParticipantOpPb, ReplicateMsg, WriteRequestPb, op_type};
use crate::tablet::KuduSchema;

/// One entry of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogLine {
    /// File name of the segment.
    pub segment: String,
    /// Byte where the entry begins.
    pub offset: u64,
    /// Raft term.
    pub term: i64,
    /// Raft index.
    pub index: i64,
    /// Hybrid timestamp of a replicated operation.
    pub timestamp: Option<u64>,
    /// What kind of entry it is.
    pub kind: &'static str,
    /// What it does.
    pub summary: String,
    /// The authorization token of a write, if it has one: in hex, or a word in its place.
    pub token: Option<String>,
}

/// Whether authorization tokens are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Secrets {
    Redacted,
    Shown,
}

/// Stands for a token.
const REDACTED: &str = "<redacted>";

/// The entries of a segment.
pub(crate) fn lines(segment: &Segment, secrets: Secrets) -> impl Iterator<Item = LogLine> {
    let name = segment.path.name().to_string_lossy().into_owned();
    segment.entries.iter().map(move |(offset, entry)| line(&name, *offset, entry, secrets))
}

fn line(segment: &str, offset: u64, entry: &LogEntryPb, secrets: Secrets) -> LogLine {
    let replicated = entry.replicate.as_ref().map(|message| (message.id, message.timestamp));
    let committed = entry.commit.as_ref().map(|message| (message.commited_op_id, None));
    let (id, timestamp) = replicated.or(committed).unwrap_or_default();
    let id = id.unwrap_or_default();
    let (kind, summary) = match (&entry.replicate, &entry.commit) {
        (Some(message), _) => operation(message),
        (None, Some(commit)) => ("commit", commit_summary(commit)),
        (None, None) => ("empty", String::new()),
    };
    LogLine {
        segment: segment.to_string(),
        offset,
        term: id.term.unwrap_or_default(),
        index: id.index.unwrap_or_default(),
        timestamp,
        kind,
        summary,
        token: token(entry).map(|token| match secrets {
            Secrets::Redacted => REDACTED.to_string(),
            Secrets::Shown => token.iter().map(|byte| format!("{byte:02x}")).collect(),
        }),
    }
}

fn token(entry: &LogEntryPb) -> Option<&[u8]> {
    entry.replicate.as_ref()?.write_request.as_ref()?.authz_token.as_deref()
}

fn operation(message: &ReplicateMsg) -> (&'static str, String) {
    match message.op_type {
        Some(op_type::NO_OP) => ("no-op", String::new()),
        Some(op_type::WRITE) => {
            ("write", message.write_request.as_ref().map(write_summary).unwrap_or_default())
        }
        Some(op_type::ALTER_SCHEMA) => {
            let request = message.alter_schema_request.as_ref();
            let version = request.and_then(|request| request.schema_version).unwrap_or_default();
            let columns =
                request.and_then(|request| request.schema.as_ref()).map_or(0, |schema| schema.columns.len());
            ("alter schema", format!("version {version}, {columns} columns"))
        }
        Some(op_type::CHANGE_CONFIG) => ("change config", String::new()),
        Some(op_type::PARTICIPANT) => {
            let op = message.participant_request.and_then(|request| request.op).unwrap_or_default();
            let what = match op.op_type {
                Some(ParticipantOpPb::BEGIN_TXN) => "begin",
                Some(ParticipantOpPb::BEGIN_COMMIT) => "begin commit",
                Some(ParticipantOpPb::FINALIZE_COMMIT) => "commit",
                Some(ParticipantOpPb::ABORT_TXN) => "abort",
                _ => "unknown",
            };
            ("transaction", format!("{what} of transaction {}", op.txn_id.unwrap_or_default()))
        }
        _ => ("unknown", String::new()),
    }
}

fn write_summary(request: &WriteRequestPb) -> String {
    let schema =
        request.schema.as_ref().and_then(|schema| KuduSchema::parse(schema).ok()).unwrap_or_default();
    let ops = request.row_operations.as_ref().map(|operations| row_ops::parse(operations, &schema));
    let ops = match ops {
        Some(Ok(ops)) => ops,
        Some(Err(error)) => return error.to_string(),
        None => Vec::new(),
    };
    let counts = [
        (RowOpKind::Insert, "insert"),
        (RowOpKind::Upsert, "upsert"),
        (RowOpKind::Update, "update"),
        (RowOpKind::Delete, "delete"),
    ];
    let mut parts: Vec<_> = counts
        .iter()
        .map(|(kind, name)| (ops.iter().filter(|op| op.kind == *kind).count(), name))
        .filter(|(count, _)| *count > 0)
        .map(|(count, name)| format!("{count} {name}{}", if count == 1 { "" } else { "s" }))
        .collect();
    if let Some(id) = request.txn_id {
        parts.push(format!("transaction {id}"));
    }
    parts.join(", ")
}

fn commit_summary(commit: &CommitMsg) -> String {
    let ops = commit.result.as_ref().map_or(&[][..], |result| &result.ops);
    let failed = ops.iter().filter(|op| op.failed_status.is_some()).count();
    if failed == 0 { format!("{} rows", ops.len()) } else { format!("{} rows, {failed} failed", ops.len()) }
}
