//! Which keys a log changes, and when.

use std::collections::{HashMap, HashSet};

use super::coverage::Coverage;
use super::keyed_op::keyed_ops;
use super::segment::Log;
use crate::messages::{ParticipantOpPb, op_type};
use crate::tablet::KuduSchema;

/// The keys and times of a log's row operations.
#[derive(Debug, Default)]
pub(crate) struct Written {
    changes: HashSet<(Vec<u8>, u64)>,
    /// Between which times, both inclusive, no operation is missing.
    whole: Option<(u64, u64)>,
}

impl Written {
    /// What a log says, with the schema of its tablet where its own is lost.
    pub fn of(log: &Log, coverage: &Coverage, schema: &KuduSchema) -> Self {
        let mut schema =
            log.segments.first().and_then(|first| first.schema.clone()).unwrap_or(schema.clone());
        let mut written = Self::default();
        let mut is_whole = coverage.first.is_some() && coverage.is_unbroken();
        let mut transactions: HashMap<i64, Vec<Vec<u8>>> = HashMap::new();
        let entries = log.segments.iter().flat_map(|segment| &segment.entries);
        for message in entries.filter_map(|(_, entry)| entry.replicate.as_ref()) {
            let (Some(kind), Some(timestamp)) = (message.op_type, message.timestamp) else {
                is_whole = false;
                continue;
            };
            match kind {
                op_type::WRITE => {
                    let Some(request) = &message.write_request else { continue };
                    let Ok(ops) = keyed_ops(&schema, request) else {
                        is_whole = false;
                        continue;
                    };
                    let keys = ops.into_iter().map(|op| op.key);
                    match request.txn_id {
                        // Rows of a transaction appear when it is committed.
                        Some(id) => transactions.entry(id).or_default().extend(keys),
                        None => written.changes.extend(keys.map(|key| (key, timestamp))),
                    }
                }
                op_type::ALTER_SCHEMA => {
                    let altered = message.alter_schema_request.as_ref();
                    let altered =
                        altered.and_then(|request| KuduSchema::parse(request.schema.as_ref()?).ok());
                    match altered {
                        Some(altered) => schema = altered,
                        None => is_whole = false,
                    }
                }
                op_type::PARTICIPANT => {
                    let Some(op) = message.participant_request.and_then(|request| request.op) else {
                        continue;
                    };
                    let committed = op.finalized_commit_timestamp.and_then(|at| u64::try_from(at).ok());
                    if let (Some(ParticipantOpPb::FINALIZE_COMMIT), Some(id), Some(at)) =
                        (op.op_type, op.txn_id, committed)
                    {
                        let keys = transactions.remove(&id).unwrap_or_default();
                        written.changes.extend(keys.into_iter().map(|key| (key, at)));
                    }
                    // Commit times are not those of operations.
                    is_whole = false;
                }
                _ => {}
            }
        }
        written.whole = is_whole.then_some((coverage.first_timestamp, coverage.last_timestamp));
        written
    }

    /// Whether an operation changes this key at this time.
    pub fn has(&self, change: &(Vec<u8>, u64)) -> bool {
        self.changes.contains(change)
    }

    /// Whether the changes of a rowset are the log's own: one at least is in it, and none is missing that should be.
    pub fn proves(&self, changes: &[(Vec<u8>, u64)]) -> bool {
        let is_missing = |(key, at): &(Vec<u8>, u64)| {
            self.whole.is_some_and(|(first, last)| (first..=last).contains(at))
                && !self.changes.contains(&(key.clone(), *at))
        };
        changes.iter().any(|change| self.changes.contains(change)) && !changes.iter().any(is_missing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rowset_is_proven_by_one_change_and_refuted_by_another() {
        let change = |key: &str, at: u64| (key.as_bytes().to_vec(), at);
        let written = Written { changes: [change("a", 10), change("b", 12)].into(), whole: Some((10, 20)) };
        for (changes, expected) in [
            (vec![change("a", 10)], true),
            (vec![change("a", 10), change("z", 5)], true),
            (vec![change("a", 10), change("c", 15)], false),
            (vec![change("a", 11)], false),
            (vec![change("c", 10)], false),
            (vec![change("z", 5)], false),
            (vec![], false),
        ] {
            assert_eq!(written.proves(&changes), expected, "{changes:?}");
        }
    }
}
