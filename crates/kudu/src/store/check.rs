//! Looking for damage on the disks of whole servers.
//!
//! `kudu fs check` compares the blocks that superblocks name with those that containers record, and reads neither blocks nor
//! logs. This does the same, so that both agree, and reads everything else too.

use std::collections::HashSet;

use pilaster_core::verify::{Finding, Severity};
use pilaster_core::{Absence, Dataset, Error, Progress, Result, VerifyDepth, VerifyReport};

use super::{KuduStore, Server, Unread, is_readable};
use crate::tablet::{KuduTable, UnreadPart};

/// What `kudu fs check` counts, over all servers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StoreCheck {
    /// Blocks that are recorded and lie inside their files.
    pub live_blocks: u64,
    /// Their bytes.
    pub live_bytes: u64,
    /// Blocks that a superblock names and no record: tablet and block ids.
    pub missing: Vec<(String, Vec<u64>)>,
    /// Recorded blocks that no superblock names.
    pub orphaned_blocks: u64,
    /// Their bytes.
    pub orphaned_bytes: u64,
}

impl StoreCheck {
    /// Number of missing blocks.
    pub fn missing_blocks(&self) -> u64 {
        self.missing.iter().map(|(_, blocks)| blocks.len() as u64).sum()
    }
}

impl KuduStore {
    /// Compares the blocks that superblocks name with those that are recorded, as `kudu fs check` does.
    pub fn check(&self) -> StoreCheck {
        let mut check = StoreCheck::default();
        for server in &self.servers {
            let bytes = |id: &u64| server.blocks.map.places.get(id).map_or(0, |place| place.length);
            let named: HashSet<u64> = server.named.values().flatten().copied().collect();
            let orphaned: Vec<_> = server.recorded.iter().filter(|id| !named.contains(id)).collect();
            check.live_blocks = check.live_blocks.saturating_add(server.recorded.len() as u64);
            check.live_bytes = check.live_bytes.saturating_add(server.recorded.iter().map(bytes).sum());
            check.orphaned_blocks = check.orphaned_blocks.saturating_add(orphaned.len() as u64);
            check.orphaned_bytes = check.orphaned_bytes.saturating_add(orphaned.into_iter().map(bytes).sum());
            check.missing.extend(server.missing());
        }
        check
    }

    /// Looks for damage everywhere: roots, containers, superblocks, every replica's blocks and logs. With a name only the
    /// tablets of that table are read; what is wrong with roots and containers is told all the same. What a server would not
    /// start with is an error here, even where all rows can be read in spite of it. With [`VerifyDepth::Values`] whole
    /// replicas of a tablet are compared row by row.
    ///
    /// # Errors
    /// [`pilaster_core::ErrorKind::InvalidInput`] if there is no table of that name.
    pub fn verify(
        &self,
        table: Option<&str>,
        depth: VerifyDepth,
        progress: &dyn Progress,
    ) -> Result<VerifyReport> {
        if let Some(name) = table.filter(|name| !self.tables().iter().any(|known| known == name)) {
            return Err(Error::invalid(format!(
                "no table \"{name}\"; there are: {}",
                self.tables().join(", ")
            )));
        }
        let mut report = VerifyReport::default();
        let mut is_all_read = true;
        for server in &self.servers {
            report.findings.extend(server.roots.findings.iter().cloned().map(as_error));
            report.findings.extend(server.roots.notes.iter().cloned());
            report.findings.extend(server.blocks.map.findings.iter().cloned());
            let unread = server.roots.unread();
            let mut parts = unread.iter().filter_map(|unread| UnreadPart::of(unread, &server.roots));
            is_all_read &= unread.is_empty();
            // What has no record may have one that could not be read.
            if !parts.any(|part| matches!(part, UnreadPart::Blocks | UnreadPart::Tablets)) {
                report.findings.extend(server.missing_findings());
            }
        }
        report.findings.extend(self.lost_tablets().into_iter().map(as_error));
        let check = self.check();
        if check.orphaned_blocks > 0 && is_all_read {
            report.findings.extend(self.lost_rowset_findings());
            report.findings.push(orphans_finding(&check));
        }
        let chosen = self.replicas.iter().filter(|replica| {
            table.is_none_or(|name| replica.metadata.table_name == name)
                && is_readable(replica)
                && self.options.chooses(&replica.metadata.tablet_id, &replica.server)
        });
        for replica in chosen {
            replica.verify(self.options.log, self.snapshot(), depth, progress, &mut report);
        }
        if depth == VerifyDepth::Values {
            report.findings.extend(self.compare_replicas(table));
        }
        for name in self.tables().iter().filter(|name| table.is_none_or(|table| table == *name)) {
            self.verify_table(name, depth, &mut report);
        }
        // What could not be read is said once, and only where it matters.
        let all_unread = self.unread();
        report.findings.retain(|finding| !all_unread.iter().any(|unread| unread.covers(finding)));
        let unread = table.map_or(all_unread, |name| self.unread_of(name));
        report.unread = unread.len() as u64;
        report.findings.extend(unread.iter().map(Unread::finding));
        let mut seen = HashSet::new();
        report.findings.retain(|finding| seen.insert(finding.to_string()));
        Ok(report)
    }
}

impl KuduStore {
    /// What shows only when a table is put together and read: missing tablets, and whatever else makes a scan stop.
    fn verify_table(&self, name: &str, depth: VerifyDepth, report: &mut VerifyReport) {
        let place = format!("table {name}");
        let mut stopped = |error: &Error| report.findings.push(Finding::from_error(error, &place, None));
        let table = match self.open_table(Some(name)) {
            Ok(table) => table,
            Err(error) => return stopped(&error),
        };
        // What is missing may be in what could not be read.
        if !self.unread_of(name).is_empty() {
            return;
        }
        let opened = table.findings();
        let is_whole = opened.iter().all(|finding| finding.severity < Severity::Error);
        if depth > VerifyDepth::Footer
            && is_whole
            && let Err(error) = read_all(&table)
        {
            stopped(&error);
        }
        report.findings.extend(opened);
        report.findings.extend(table.absences().iter().map(Absence::finding));
    }
}

/// Reads every row and throws it away.
fn read_all(table: &KuduTable) -> Result<()> {
    for batch in table.scan().read()? {
        batch?;
    }
    Ok(())
}

impl Server {
    /// Blocks that superblocks name and no record, by tablet.
    fn missing(&self) -> Vec<(String, Vec<u64>)> {
        let missing = self.named.iter().map(|(tablet, blocks)| {
            let blocks: Vec<u64> = blocks.iter().copied().filter(|id| !self.recorded.contains(id)).collect();
            (tablet.clone(), blocks)
        });
        missing.filter(|(_, blocks)| !blocks.is_empty()).collect()
    }

    fn missing_findings(&self) -> Vec<Finding> {
        let finding = |(tablet, blocks): (String, Vec<u64>)| {
            let is_found = |id: &u64| self.blocks.map.places.contains_key(id);
            let found = blocks.iter().filter(|id| is_found(id)).count();
            let ids: Vec<_> = blocks.iter().map(ToString::to_string).collect();
            let what = format!("no record of {} ({found} of them found by their content)", ids.join(", "));
            let error = Error::corrupt("records of all blocks that the superblock names", what);
            Finding::from_error(&error, &format!("tablet {tablet}"), None)
        };
        self.missing().into_iter().map(finding).collect()
    }
}

fn orphans_finding(check: &StoreCheck) -> Finding {
    Finding {
        severity: Severity::Warning,
        path: "blocks".into(),
        offset: 0,
        part: "orphans".to_string(),
        message: format!(
            "{} blocks of {} bytes belong to no superblock; a repair by Kudu's own check would delete them",
            check.orphaned_blocks, check.orphaned_bytes
        ),
        rows: None,
    }
}

fn as_error(mut finding: Finding) -> Finding {
    finding.severity = Severity::Error;
    finding
}
