//! Which tablets and replicas of a table are here, and which are not.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arrow_array::TimestampSecondArray;
use arrow_cast::display::array_value_to_string;
use pilaster_core::Result;
use pilaster_core::verify::{Finding, Severity};

use super::{KuduStore, catalog, is_readable};
use crate::tablet::{
    Completeness, KuduTable, LogUse, Partition, Parts, Replica, Snapshot, Tablet, TabletState, completeness,
};

impl KuduStore {
    /// What is known of the parts of a table, of which these tablets were opened.
    pub(super) fn parts(&self, table: &str, opened: &[Tablet]) -> Parts {
        let unread = self.unread_of(table);
        let mut notes: Vec<_> = self.replicas_note(table, opened).into_iter().collect();
        let mut missing = Vec::new();
        if unread.is_empty() {
            let replicas: Vec<_> = opened.iter().map(|tablet| &tablet.replica).collect();
            let found = self.missing(table, &replicas);
            missing = found.missing;
            let gaps = (!found.gaps.is_empty() && missing.is_empty()).then(|| listing(&found.gaps));
            notes.extend(gaps.map(|gaps| {
                let doubt = "whether the table has such rows only the master's catalog can tell";
                note(table, "partitions", format!("no tablet here holds keys of {gaps}: {doubt}"))
            }));
        }
        Parts { unread, missing, notes }
    }

    /// The tablets that must exist and are not here, of every table: its name, and which tablet.
    pub fn missing_tablets(&self) -> Vec<(String, String)> {
        let of_table = |table: String| {
            if !self.unread_of(&table).is_empty() {
                return Vec::new();
            }
            let replicas = self.replicas.iter().filter(|replica| {
                replica.metadata.table_name == table
                    && is_readable(replica)
                    && self.options.chooses(&replica.metadata.tablet_id, &replica.server)
            });
            let missing = self.missing(&table, &replicas.collect::<Vec<_>>()).missing.into_iter();
            missing.map(|missing| (table.clone(), missing)).collect()
        };
        self.tables().into_iter().flat_map(of_table).collect()
    }

    /// What a table lacks, of which these replicas are read. Whoever asks for one tablet is not told of the others.
    fn missing(&self, table: &str, read: &[&Replica]) -> Completeness {
        if self.options.tablet.is_some() || read.iter().any(|replica| replica.metadata.is_catalog()) {
            return Completeness::default();
        }
        let sure = || read.iter().filter(|replica| replica.doubtful_tables.is_empty());
        let ids: BTreeSet<&str> = sure().map(|replica| replica.metadata.tablet_id.as_str()).collect();
        let table_id = sure().map(|replica| &replica.metadata.table_id).find(|id| !id.is_empty());
        if let Some(listed) = table_id.and_then(|id| self.listed_tablets(id)) {
            let missing = listed.iter().filter(|(id, _)| !ids.contains(id.as_str()));
            let line = |(id, partition): (&String, &Partition)| {
                format!("tablet {id} ({partition}), which the master's catalog lists, is not here")
            };
            return Completeness { missing: missing.map(line).collect(), ..Completeness::default() };
        }
        // A tablet whose superblock is lost does not say which one it is.
        let is_placed = |replica: &&&Replica| {
            replica.metadata_damage.is_none() || replica.metadata.partition != Partition::default()
        };
        let placed = sure().filter(is_placed).map(|replica| &replica.metadata);
        let placed: Vec<_> =
            placed.map(|metadata| (&metadata.partition, &metadata.partition_schema)).collect();
        let unplaced = read.len().saturating_sub(placed.len()) as u64;
        let mut found = completeness(&placed);
        if found.missing_count > unplaced {
            let unlisted = found.missing_count.saturating_sub(found.missing.len() as u64);
            if unlisted > 0 {
                found.missing.push(format!("{unlisted} more tablets are not here"));
            }
            if unplaced > 0 {
                let doubt = format!("; or it is one of {unplaced} here whose superblocks are lost");
                found.missing.iter_mut().for_each(|missing| missing.push_str(&doubt));
            }
            return found;
        }
        found.missing.clear();
        if unplaced == 0 {
            let partitions: Vec<_> = placed.iter().map(|(partition, _)| *partition).collect();
            found.missing = self.elsewhere(table, &ids, &partitions);
            if !found.gaps.is_empty() {
                let gaps = listing(&found.gaps);
                let lost = self.lost_tablets().into_iter().filter(|lost| lost.severity == Severity::Error);
                found.missing.extend(lost.map(|lost| format!("{lost}; it may have held keys of {gaps}")));
            }
        } else {
            found.gaps.clear();
        }
        found
    }

    /// Tablets of a table that are known by name, and were not opened: of which only a tombstone is here, or which only other
    /// servers have than the one that was asked for.
    fn elsewhere(&self, table: &str, ids: &BTreeSet<&str>, opened: &[&Partition]) -> Vec<String> {
        let others = self.replicas.iter().filter(|replica| {
            let metadata = &replica.metadata;
            metadata.table_name == table
                && metadata.state != TabletState::Deleted
                && replica.metadata_damage.is_none()
                && !ids.contains(metadata.tablet_id.as_str())
                && !opened.contains(&&metadata.partition)
        });
        let by_id: BTreeMap<&str, &Replica> =
            others.map(|replica| (replica.metadata.tablet_id.as_str(), replica)).collect();
        let line = |(id, replica): (&str, &Replica)| {
            let Replica { metadata, server, .. } = replica;
            let what = if is_readable(replica) { "is on" } else { "is not here: only its tombstone is, on" };
            format!("tablet {id} ({}) {what} server {server}", metadata.partition)
        };
        by_id.into_iter().map(line).collect()
    }

    /// The tablets of a table by id, as a master's catalog on these disks lists them; `None` if there is none that knows it.
    fn listed_tablets(&self, table_id: &str) -> Option<BTreeMap<String, Partition>> {
        let mut replicas = self.replicas.iter();
        replicas.find(|replica| replica.metadata.is_catalog() && is_readable(replica))?;
        let read = || -> Result<BTreeMap<String, Partition>> {
            let name = &catalog::NAME;
            let tablets = self.open_tablets(name, Snapshot::Latest)?;
            let table = KuduTable::new(
                name.to_string(),
                tablets,
                Snapshot::Latest,
                LogUse::Replay,
                Parts::default(),
            )?;
            catalog::tablets_of(&table, table_id)
        };
        // A catalog that cannot be read tells nothing; it is a table of its own, and says so itself.
        read().ok().filter(|tablets| !tablets.is_empty())
    }

    /// How many of the voters of a tablet are here, and how many there are.
    pub(super) fn voters_here(&self, of: &Replica) -> (usize, usize) {
        let here = of.voters.iter().filter(|voter| {
            let mut same = self.replicas.iter().filter(|replica| replica.server == **voter);
            same.any(|replica| replica.metadata.tablet_id == of.metadata.tablet_id && is_readable(replica))
        });
        (here.count(), of.voters.len())
    }

    /// Why other servers may have newer rows of a table than these disks: most voters of a tablet must have an operation before
    /// a client is told that it is done, so that most of them, or none here, know the last ones. `None` if enough are here.
    pub fn unheard(&self, table: &str) -> Option<String> {
        let read = self.replicas.iter().filter(|replica| {
            replica.metadata.table_name == table
                && is_readable(replica)
                && self.options.chooses(&replica.metadata.tablet_id, &replica.server)
        });
        let tablets: BTreeSet<&str> = read.map(|replica| replica.metadata.tablet_id.as_str()).collect();
        let heard: Vec<_> = tablets.into_iter().map(|tablet| self.heard(tablet)).collect();
        let of = |tablets: usize| match tablets {
            1 => String::new(),
            tablets => format!(" of each of {tablets} tablets"),
        };
        let silent = heard.iter().filter(|heard| heard.voters == 0).count();
        if silent > 0 {
            return Some(format!(
                "nobody says which servers have replicas{}: their list in consensus-meta is lost, and servers that are not here may have newer operations",
                of(silent)
            ));
        }
        // What is lost with the only replica there is, its damage tells.
        let is_few = |heard: &&Heard| heard.voters > 1 && heard.here.saturating_mul(2) <= heard.voters;
        let few: Vec<_> = heard.iter().filter(is_few).collect();
        let Heard { here, voters, nameless } = few.iter().min_by_key(|heard| heard.here)?;
        let but = match nameless {
            0 => String::new(),
            servers => format!(", besides {servers} of servers that lost their names (`instance`)"),
        };
        Some(format!(
            "the logs of only {here} of {voters} replicas{} are here{but}, and the others may have newer operations; give their disks too",
            of(few.len())
        ))
    }

    /// Whose logs of a tablet are here.
    fn heard(&self, tablet: &str) -> Heard {
        let same = || {
            let replicas = self.replicas.iter();
            replicas.filter(|replica| replica.metadata.tablet_id == tablet && is_readable(replica))
        };
        let with_log: BTreeSet<&str> = same()
            .filter(|replica| replica.log_segments().is_some())
            .map(|replica| replica.server.as_str())
            .collect();
        // Where one server no longer says who votes, another does.
        let voters = same().map(|replica| &replica.voters).max_by_key(|voters| voters.len());
        let voters = voters.map_or(&[][..], Vec::as_slice);
        let is_nameless = |replica: &&Replica| replica.server.is_empty() && replica.log_segments().is_some();
        Heard {
            here: voters.iter().filter(|voter| with_log.contains(voter.as_str())).count(),
            voters: voters.len(),
            nameless: same().filter(is_nameless).count(),
        }
    }

    /// How many of the voters of each tablet are here, if not all of them are; and what was left out because of it.
    fn replicas_note(&self, table: &str, opened: &[Tablet]) -> Option<Finding> {
        let counts = opened.iter().map(|tablet| self.voters_here(&tablet.replica));
        let counts: Vec<_> = counts.filter(|(here, voters)| here < voters).collect();
        let (least, voters) = counts.iter().min()?;
        let most = counts.iter().map(|(here, _)| here).max()?;
        let here = if least == most { least.to_string() } else { format!("{least} to {most}") };
        let of = match counts.len() {
            1 => String::new(),
            tablets => format!(" of each of {tablets} tablets"),
        };
        let newest = opened.iter().map(Tablet::newest_timestamp).max().unwrap_or_default();
        let mut message = format!("{here} of {voters} replicas{of}; newest operation at {}", clock(newest));
        let left_out: u64 = opened.iter().map(|tablet| tablet.left_out).sum();
        if left_out > 0 {
            message.push_str(&format!(
                "; {left_out} operations were replicated but not committed, and the logs of most voters are not here, so they are left out"
            ));
        }
        Some(note(table, "voters", message))
    }
}

/// Whose logs of a tablet are on these disks.
struct Heard {
    /// Voters whose logs they are.
    here: usize,
    /// All voters; 0 if nobody says who they are.
    voters: usize,
    /// Logs of servers that lost their names: they may be voters.
    nameless: usize,
}

fn note(table: &str, part: &str, message: String) -> Finding {
    Finding {
        severity: Severity::Warning,
        path: Arc::from(format!("table {table}")),
        offset: 0,
        part: part.to_string(),
        message,
        rows: None,
    }
}

/// The first few, and how many more there are.
fn listing(gaps: &[String]) -> String {
    const MOST: usize = 4;
    let mut shown = gaps.iter().take(MOST).cloned().collect::<Vec<_>>().join(", ");
    if let Some(more) = gaps.len().checked_sub(MOST).filter(|more| *more > 0) {
        shown.push_str(&format!(" and {more} more ranges"));
    }
    shown
}

/// A hybrid timestamp as the time of day that it was.
fn clock(hybrid: u64) -> String {
    let seconds = i64::try_from((hybrid >> 12).checked_div(1_000_000).unwrap_or_default());
    let array = TimestampSecondArray::from(vec![seconds.unwrap_or_default()]);
    array_value_to_string(&array, 0).unwrap_or_default().replace('T', " ") + " UTC"
}
