//! Reading everything of a replica to see whether it is sound.

use std::collections::HashSet;
use std::sync::Arc;

use pilaster_core::verify::Finding;
use pilaster_core::{Error, Progress, Result, VerifyDepth, VerifyReport};

use super::change::{ChangeKind, ChangeList};
use super::opening::log_damage;
use super::replica::{LogUse, Replica};
use super::rowset::{RowSet, Snapshot};
use super::unread_parts::UnreadPart;

/// Keys compared at once.
const STRETCH_ROWS: u64 = 8192;

impl Replica {
    /// Looks for damage in the superblock, every block and the log.
    pub fn verify(
        &self,
        log_use: LogUse,
        snapshot: Snapshot,
        depth: VerifyDepth,
        progress: &dyn Progress,
        report: &mut VerifyReport,
    ) {
        let unread = self.unread(log_use);
        let mut parts = unread.iter().filter_map(|unread| UnreadPart::of(unread, &self.roots));
        if parts.any(|part| matches!(part, UnreadPart::Tablets | UnreadPart::Superblock(_))) {
            // Nobody knows what there should be.
            return;
        }
        let before = report.findings.len();
        report.findings.extend(self.metadata_damage.clone());
        let (rowsets, damage) = self.open_rowsets();
        report.findings.extend(damage.into_iter().map(|damage| damage.finding));
        for rowset in &rowsets {
            rowset.verify(depth, progress, report);
            if depth == VerifyDepth::Values {
                let place = format!("rowset {} of tablet {}", rowset.metadata.id, self.metadata.tablet_id);
                let wrong = [rowset.check_keys(), rowset.check_live_rows()];
                let wrong = wrong.into_iter().filter_map(Result::err);
                report.findings.extend(wrong.map(|error| Finding::from_error(&error, &place, None)));
            }
        }
        if log_use == LogUse::Replay {
            let log = self.log();
            report.files = report.files.saturating_add(log.segments.len() as u64);
            if unread.is_empty() {
                report.findings.extend(log_damage(&log));
                report.findings.extend(self.missing_log(&log));
            } else {
                report.findings.extend(log.segments.iter().flat_map(|segment| segment.findings.clone()));
            }
        }
        if !unread.is_empty() {
            // Only damage that was seen in a file is surely damage; what is missing may be in what could not be read.
            let mut own = report.findings.split_off(before);
            own.retain(|finding| self.roots.has(&finding.path));
            report.findings.extend(own);
            return;
        }
        // What only shows when everything is put together; damage told above is not told again.
        let known: HashSet<String> = report.findings.iter().map(ToString::to_string).collect();
        let opened = self.open(log_use, snapshot).findings.into_iter();
        report.findings.extend(opened.filter(|finding| !known.contains(&finding.to_string())));
    }
}

impl RowSet {
    /// Keys must ascend, each once.
    fn check_keys(&self) -> Result<()> {
        let mut before: Option<Vec<u8>> = None;
        let mut start = 0;
        while start < self.rows {
            let end = start.saturating_add(STRETCH_ROWS).min(self.rows);
            for (row, key) in (start..end).zip(self.keys_of(start..end)?) {
                if before.as_ref().is_some_and(|before| *before >= key) {
                    return Err(Error::corrupt("keys that ascend", format!("row {row} that does not")));
                }
                before = Some(key);
            }
            start = end;
        }
        Ok(())
    }

    /// The superblock counts the rows that no flushed change has deleted.
    fn check_live_rows(&self) -> Result<()> {
        let Some(counted) = self.metadata.live_row_count else { return Ok(()) };
        let mut deleted = HashSet::new();
        for delta in &self.redo {
            Arc::clone(delta).cursor().for_each(0..self.rows, |row, _, list| {
                match ChangeList::parse(list)?.kind {
                    ChangeKind::Delete => deleted.insert(row),
                    ChangeKind::Reinsert => deleted.remove(&row),
                    ChangeKind::Update => false,
                };
                Ok(())
            })?;
        }
        let live = self.rows.saturating_sub(deleted.len() as u64);
        if live == counted {
            return Ok(());
        }
        Err(Error::corrupt(format!("{counted} live rows, as the superblock says"), live))
    }
}
