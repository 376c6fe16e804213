//! Which operations a log holds, and which it has lost.
//!
//! Operations are numbered without holes from 1 on, so a log that begins with 1 and misses no number is the whole history
//! of its tablet: everything can be made again from it. A number that is missing behind the first one was lost to damage.
//! Damage with the next number behind it has cost COMMITs at most; damage behind the last number may have cost anything.

use std::collections::HashSet;

use super::segment::{Log, Segment};
use crate::messages::{CommitMsg, LogEntryPb, OpIdPb};

/// What a log holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Coverage {
    /// First and last operation.
    pub first: Option<i64>,
    pub last: Option<i64>,
    /// Operations between the two that are not there.
    pub missing: Vec<i64>,
    /// Whether damaged bytes may have held operations before the first or after the last.
    pub may_lack_ends: bool,
    /// Whether damaged bytes may have held COMMITs.
    pub may_lack_commits: bool,
    /// The highest operation with a COMMIT: all before it are decided.
    pub last_committed: Option<i64>,
    /// Smallest and largest timestamp.
    pub first_timestamp: u64,
    pub last_timestamp: u64,
}

/// More missing numbers than this are not listed one by one.
const MOST_MISSING: i64 = 1 << 16;

impl Coverage {
    pub fn of(log: &Log) -> Self {
        let mut walk = Walk { first_timestamp: u64::MAX, ..Walk::default() };
        let mut before: Option<&Segment> = None;
        for segment in &log.segments {
            let is_next = before.is_none_or(|before| before.sequence.saturating_add(1) == segment.sequence);
            if !is_next {
                walk.gap();
            }
            walk.segment(segment);
            before = Some(segment);
        }
        let mut coverage = walk.coverage;
        coverage.may_lack_ends |= walk.is_after_gap;
        // A segment that cannot be read at all may have been any of them.
        coverage.may_lack_ends |= log.segments.len() < segments_on_disk(log);
        coverage.first_timestamp = if coverage.first.is_some() { walk.first_timestamp } else { 0 };
        coverage
    }

    /// Whether the log is the whole history of its tablet.
    pub fn is_whole(&self) -> bool {
        self.first == Some(1) && self.missing.is_empty() && !self.may_lack_ends
    }

    /// Whether nothing is missing from the first operation it has on.
    pub fn is_unbroken(&self) -> bool {
        self.missing.is_empty() && !self.may_lack_ends
    }
}

/// Segments that were read and those that were not.
fn segments_on_disk(log: &Log) -> usize {
    let read: HashSet<String> = log.segments.iter().map(|segment| segment.path.to_string()).collect();
    let unread: HashSet<_> = log
        .findings
        .iter()
        .map(|finding| &finding.path)
        .filter(|path| !read.contains(path.as_ref()))
        .collect();
    log.segments.len().saturating_add(unread.len())
}

#[derive(Default)]
struct Walk {
    coverage: Coverage,
    is_after_gap: bool,
    first_timestamp: u64,
}

impl Walk {
    fn gap(&mut self) {
        self.is_after_gap = true;
        self.coverage.may_lack_commits = true;
    }

    fn segment(&mut self, segment: &Segment) {
        let mut gaps = segment.gaps.iter().copied().peekable();
        for (number, (_, entry)) in segment.entries.iter().enumerate() {
            while gaps.next_if(|gap| *gap <= number).is_some() {
                self.gap();
            }
            self.entry(entry);
        }
        if gaps.next().is_some() {
            self.gap();
        }
    }

    fn entry(&mut self, entry: &LogEntryPb) {
        let commit = entry.commit.as_ref().and_then(commit_index);
        self.coverage.last_committed = self.coverage.last_committed.max(commit);
        let Some(replicate) = &entry.replicate else { return };
        let Some(OpIdPb { index: Some(index), .. }) = replicate.id else { return };
        let timestamp = replicate.timestamp.unwrap_or_default();
        let coverage = &mut self.coverage;
        coverage.last_timestamp = coverage.last_timestamp.max(timestamp);
        self.first_timestamp = self.first_timestamp.min(timestamp);
        match coverage.last {
            None => {
                coverage.first = Some(index);
                coverage.may_lack_ends |= self.is_after_gap && index > 1;
            }
            Some(last) => {
                let from = last.saturating_add(1);
                coverage.missing.extend(from..index.min(from.saturating_add(MOST_MISSING)));
            }
        }
        coverage.last = coverage.last.max(Some(index));
        self.is_after_gap = false;
    }
}

/// The operation a COMMIT is for.
pub(super) fn commit_index(commit: &CommitMsg) -> Option<i64> {
    commit.commited_op_id?.index
}
