//! From what is on the disks to an open tablet, and the proof that nothing is missing.
//!
//! | damage | what is done |
//! | --- | --- |
//! | none | rowsets, and the log played by the stores its COMMITs name |
//! | parts that can be made again or are not needed | the same; a warning |
//! | anything else, and the log holds every operation since the first | everything from the log; warnings |
//! | anything else | errors: a scan stops; [`super::salvage`] gives what is left |

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use pilaster_core::verify::{Finding, Severity};
use pilaster_core::{Error, Location};

use super::log_reach::rowset_name;
use super::replica::{LogUse, Replica, Tablet, Witness};
use super::rowset::{Damage, DamagedPart, RowSet, Snapshot};
use super::superblock::{TabletMetadata, TabletState};
use crate::fs::Unread;
use crate::messages::op_type;
use crate::wal::{
    Coverage, Log, LogReport, Losses, MemoryRows, Method, Replay, Segment, SegmentEnd, Uncommitted, read_log,
};

impl Replica {
    /// Opens rowsets and replays the log.
    pub fn open(&self, log_use: LogUse, snapshot: Snapshot) -> Tablet {
        let (mut rowsets, damage) = self.open_rowsets();
        let flushed = self.newest_flushed(&rowsets);
        let mut errors: Vec<Finding> = self.metadata_damage.iter().cloned().collect();
        let mut warnings = self.voters_finding();
        let (mut undo_is_whole, mut played) = (true, Played::default());
        let damaged = self.damaged_rowsets(&damage);
        for Damage { part, finding } in damage {
            let is_needed = match part {
                DamagedPart::Keys | DamagedPart::Column(_) | DamagedPart::Redo => true,
                DamagedPart::Undo => snapshot != Snapshot::Latest,
                DamagedPart::Derivable => false,
            };
            undo_is_whole &= part != DamagedPart::Undo;
            if is_needed { errors.push(finding) } else { warnings.push(as_warning(finding)) }
        }
        if log_use == LogUse::Replay {
            let log = self.log();
            let coverage = Coverage::of(&log);
            played = self.play(&self.metadata, &log, &mut rowsets, Method::ByStores);
            errors.append(&mut played.errors);
            errors.extend(self.missing_log(&log));
            errors.extend(self.log_behind(&coverage, flushed));
            errors.extend(self.undecidable(&played.report));
            if !undo_is_whole && !played.report.uncommitted.is_empty() {
                let found = "operations that may be on disk already";
                errors.push(self.finding(&Error::corrupt("UNDO deltas to decide by", found)));
            }
            let of_log = log_damage(&log);
            if self.has_lost_nothing(&log, &coverage, &played.report) {
                warnings.extend(of_log.into_iter().map(as_warning));
            } else {
                errors.extend(of_log);
            }
            let end = log_end(&log);
            if !errors.is_empty()
                && let Some(whole) = self.whole_log(&log, &coverage, flushed, &damaged)
            {
                warnings.extend(errors.drain(..).map(as_warning));
                let mut note = self.finding(&Error::invalid(
                    "all rows were made again from the log, which holds every operation since the first",
                ));
                note.severity = Severity::Warning;
                warnings.push(note);
                errors.extend(self.undecidable(&whole.report));
                (played, rowsets) = (whole, Vec::new());
            }
            played.log_end = end;
            played.left_out = self.left_out(&played.report);
        }
        errors.extend(self.half_copied());
        errors.extend(self.witness.out_of_reach.clone());
        // What could not be read is said once, in these words.
        let unread = self.unread(log_use);
        let is_told = |finding: &Finding| unread.iter().any(|unread| unread.covers(finding));
        errors.retain(|finding| !is_told(finding));
        warnings.retain(|finding| !is_told(finding));
        errors.extend(unread.iter().map(Unread::finding));
        errors.extend(warnings);
        self.tablet(rowsets, played, errors)
    }

    /// The rowsets as far as they can be opened, and what cannot.
    pub(super) fn open_rowsets(&self) -> (Vec<RowSet>, Vec<Damage>) {
        let (mut rowsets, mut damage) = (Vec::new(), Vec::new());
        for metadata in &self.metadata.rowsets {
            let (rowset, mut found) =
                RowSet::open(metadata.clone(), &self.metadata.schema, self.blocks.clone());
            let name = rowset_name(metadata.id, &self.metadata.tablet_id);
            for Damage { finding, part } in &mut found {
                // The index of a compound key has its columns too.
                if let (DamagedPart::Column(column), Some(rowset)) = (&*part, &rowset)
                    && rowset.restore_key_column(&self.metadata.schema, column).is_ok()
                {
                    *part = DamagedPart::Derivable;
                    finding.message.push_str("; the key column was made again from the index of keys");
                }
                if *finding.path == *format!("rowset {}", metadata.id) {
                    (finding.path, finding.part) = (Arc::from(name.as_str()), "block".to_string());
                } else {
                    finding.part = format!("{name}: {}", finding.part);
                }
            }
            rowsets.extend(rowset);
            damage.append(&mut found);
        }
        (rowsets, damage)
    }

    /// The log, as far as it can be read, with what others know to follow it.
    pub fn log(&self) -> Log {
        let read = |folder: Location| read_log(&folder, &self.blocks.pool, self.limits());
        let mut log = self.log_folder().map(read).unwrap_or_default();
        if let Some(tail) = &self.witness.tail {
            let last = log.segments.last().map_or(0, |segment| segment.sequence);
            log.segments.push(Segment { sequence: last.saturating_add(1), ..Segment::clone(tail) });
        }
        log
    }

    pub(super) fn play(
        &self,
        metadata: &TabletMetadata,
        log: &Log,
        rowsets: &mut [RowSet],
        method: Method,
    ) -> Played {
        let uncommitted = match (self.voters.len(), &self.witness) {
            (1, _) | (_, Witness { is_majority: true, .. }) => Uncommitted::Apply,
            (_, Witness { committed: Some(index), .. }) => Uncommitted::Until(*index),
            _ => Uncommitted::Leave,
        };
        let mut replay = Replay::new(metadata, rowsets, method);
        if self.salvages && method == Method::ByTime {
            let knows_stores = self.metadata_damage.is_none() && Coverage::of(log).is_unbroken();
            replay = replay.over_losses(if knows_stores { Losses::Rows } else { Losses::Operations });
        }
        replay.play(log, uncommitted);
        let findings = std::mem::take(&mut replay.report.findings);
        let (warnings, errors) =
            findings.into_iter().partition(|finding| finding.severity == Severity::Warning);
        Played {
            schema: replay.newer_schema.take(),
            memory: std::mem::take(&mut replay.rows),
            unsure: std::mem::take(&mut replay.unsure),
            deleted: std::mem::take(&mut replay.deleted),
            report: replay.report,
            warnings,
            errors,
            ..Played::default()
        }
    }

    /// Everything from the log, if it is the whole history of the tablet, up to the last change that was flushed to the rowsets that are
    /// damaged.
    pub(super) fn whole_log(
        &self,
        log: &Log,
        coverage: &Coverage,
        flushed: u64,
        damaged: &BTreeSet<i64>,
    ) -> Option<Played> {
        let is_behind = self.log_behind(coverage, flushed).is_some() || self.ends_before(log, damaged);
        if !coverage.is_whole() || is_behind {
            return None;
        }
        let mut metadata = self.metadata.clone();
        let first = log.segments.first()?;
        match &first.schema {
            // A damaged superblock is believed in nothing that the log says too.
            Some(schema) if self.metadata_damage.is_some() => {
                metadata.schema = schema.clone();
                metadata.schema_version = first.schema_version;
                metadata.mark_catalog();
            }
            Some(_) => {}
            None if self.metadata_damage.is_some() || has_alterations(log) => return None,
            None => {}
        }
        let mut played = self.play(&metadata, log, &mut [], Method::ByTime);
        if self.metadata_damage.is_some() && played.schema.is_none() {
            played.schema = Some((metadata.schema, metadata.schema_version));
        }
        (played.errors.is_empty() && self.has_made_all(&played.report)).then_some(played)
    }

    /// Whether a log can have made the rows on disk. One that a tool began has operation 1 too and knows nothing of rows that were
    /// there before; a superblock that is lost says of no row that it was not.
    fn has_made_all(&self, report: &LogReport) -> bool {
        if self.metadata_damage.is_some() {
            return report.inserted > 0;
        }
        let (rowsets, _) = self.open_rowsets();
        let unopened = self.metadata.rowsets.len().saturating_sub(rowsets.len()) as u64;
        let rows = rowsets.iter().map(|rowset| rowset.rows).fold(unopened, u64::saturating_add);
        rows <= report.inserted
    }

    pub(super) fn tablet(
        &self,
        mut rowsets: Vec<RowSet>,
        played: Played,
        mut findings: Vec<Finding>,
    ) -> Tablet {
        findings.extend(played.warnings);
        rowsets.sort_by_key(RowSet::key_range);
        let (schema, schema_version) =
            played.schema.unwrap_or_else(|| (self.metadata.schema.clone(), self.metadata.schema_version));
        Tablet {
            schema,
            schema_version,
            metadata: self.metadata.clone(),
            server: self.server.clone(),
            rowsets: rowsets.into_iter().map(Arc::new).collect(),
            memory: Arc::new(played.memory),
            log: played.report,
            findings,
            log_end: played.log_end,
            left_out: played.left_out,
            replica: self.clone(),
        }
    }

    /// Whether damaged stretches of the log cost nothing that is not on disk already.
    fn has_lost_nothing(&self, log: &Log, coverage: &Coverage, report: &LogReport) -> bool {
        let commits = log.segments.iter().flat_map(|segment| &segment.entries);
        let commits: Vec<_> = commits.filter_map(|(_, entry)| entry.commit.as_ref()).collect();
        // The COMMIT of a lost operation says which stores it changed; the replay has complained about those not on disk.
        let is_flushed = |index: &i64| {
            let is_of = |id: Option<crate::messages::OpIdPb>| id.and_then(|id| id.index) == Some(*index);
            commits
                .iter()
                .any(|commit| is_of(commit.commited_op_id) && commit.op_type != Some(op_type::ALTER_SCHEMA))
        };
        let knows_schema = log.segments.first().is_none_or(|first| first.schema.is_some());
        !coverage.may_lack_ends
            && coverage.missing.iter().all(is_flushed)
            && (!coverage.may_lack_commits || report.uncommitted.is_empty())
            && (knows_schema || !has_alterations(log))
    }

    pub(super) fn finding(&self, error: &Error) -> Finding {
        Finding::from_error(error, &format!("tablet {}", self.metadata.tablet_id), None)
    }

    /// A copy from another server that was not finished lists everything and has some of it.
    fn half_copied(&self) -> Option<Finding> {
        (self.metadata.state == TabletState::Copying).then(|| {
            let found = "one that is being copied from another server: what is missing cannot be told";
            self.finding(&Error::corrupt("a whole replica", found))
        })
    }

    /// A tablet in use always has a log.
    pub(crate) fn missing_log(&self, log: &Log) -> Option<Finding> {
        let is_used = matches!(self.metadata.state, TabletState::Ready | TabletState::Unknown);
        let is_missing =
            log.segments.is_empty() && log.findings.is_empty() && self.unread(LogUse::Replay).is_empty();
        (is_used && is_missing)
            .then(|| self.finding(&Error::corrupt("a log", "none: what was not flushed is lost")))
    }

    /// What is flushed was in the log first, so a log that ends before it has lost its end. Transactions are flushed with the
    /// time of their commit, which no operation has.
    pub(super) fn log_behind(&self, coverage: &Coverage, flushed: u64) -> Option<Finding> {
        let is_behind = coverage.last_timestamp < flushed && coverage.first.is_some();
        (is_behind && self.metadata.transactions.is_empty()).then(|| {
            let found = format!("its end at {}", coverage.last_timestamp);
            self.finding(&Error::corrupt(format!("a log up to timestamp {flushed}, which is flushed"), found))
        })
    }

    fn voters_finding(&self) -> Vec<Finding> {
        let missing = (self.voters.is_empty() && self.unread(LogUse::Replay).is_empty()).then(|| {
            let mut found = "none that can be read".to_string();
            if let Some(damage) = &self.voters_damage {
                found.push_str(&format!(" ({damage})"));
            }
            as_warning(self.finding(&Error::corrupt("consensus-meta with the voters", found)))
        });
        missing.into_iter().collect()
    }

    /// Operations without COMMIT when nobody says who votes.
    fn undecidable(&self, report: &LogReport) -> Option<Finding> {
        let first = report.uncommitted.first().filter(|_| self.voters.is_empty())?;
        let found = format!("{} from index {first} on, and nobody says who votes", report.uncommitted.len());
        Some(self.finding(&Error::corrupt("a COMMIT for every operation", found)))
    }

    /// How many operations only other replicas can decide.
    fn left_out(&self, report: &LogReport) -> u64 {
        let is_open = self.voters.len() > 1 && !self.witness.is_majority;
        if is_open { report.uncommitted.len() as u64 } else { 0 }
    }
}

/// What a replay made.
#[derive(Debug, Default)]
pub(super) struct Played {
    /// The newest schema and its version, if the superblock does not have it.
    pub schema: Option<(super::schema::KuduSchema, u32)>,
    pub memory: MemoryRows,
    /// Keys of rows in `memory` that may lack cells of rows nobody has.
    pub unsure: BTreeSet<Vec<u8>>,
    /// Keys of rows that nobody has and the log deleted, and when.
    pub deleted: BTreeMap<Vec<u8>, u64>,
    pub report: LogReport,
    pub warnings: Vec<Finding>,
    pub errors: Vec<Finding>,
    pub log_end: Option<Finding>,
    pub left_out: u64,
}

pub(super) fn as_warning(mut finding: Finding) -> Finding {
    finding.severity = Severity::Warning;
    finding
}

/// Everything that is damaged in a log.
pub(crate) fn log_damage(log: &Log) -> Vec<Finding> {
    let segments = log.segments.iter().flat_map(|segment| &segment.findings);
    log.findings.iter().chain(segments).cloned().collect()
}

pub(super) fn has_alterations(log: &Log) -> bool {
    let entries = log.segments.iter().flat_map(|segment| &segment.entries);
    let mut replicates = entries.filter_map(|(_, entry)| entry.replicate.as_ref());
    replicates.any(|message| message.op_type == Some(op_type::ALTER_SCHEMA))
}

/// A log that does not end as a server leaves it may have lost its end. Nothing proves it, so this is a warning.
fn log_end(log: &Log) -> Option<Finding> {
    let last = log.segments.last()?;
    let path = last.path.to_string();
    let end = last.entries.last().map_or(0, |(offset, _)| *offset);
    let (offset, found) = match last.end {
        SegmentEnd::Torn(at) => (at, "an entry that was cut off"),
        SegmentEnd::Bare => {
            (end, "the end of the file right behind the last entry; later ones may be cut off")
        }
        SegmentEnd::Closed | SegmentEnd::Preallocated | SegmentEnd::Damaged => return None,
    };
    let error = Error::corrupt("a footer or space for more entries", found).at(&path, offset, "log segment");
    Some(as_warning(Finding::from_error(&error, &path, None)))
}
