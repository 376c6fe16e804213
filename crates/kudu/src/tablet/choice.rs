//! Which replica of a tablet is read when the disks of several servers are given.
//!
//! Whole replicas come before damaged ones, damaged ones before half-copied ones; among equals the one whose log goes
//! furthest is read. The logs of the others still speak: a COMMIT in any of them decides an operation for all, the logs of
//! most voters together decide everything that the furthest has, and operations that the chosen replica has not
//! received are taken from the log that has them, as the server itself would have caught up.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use pilaster_core::{Error, Finding, Severity};

use super::replica::{LogUse, Replica, Tablet, Witness};
use super::rowset::Snapshot;
use super::superblock::TabletState;
use super::table::{KuduTable, Parts};
use crate::cfile::Compression;
use crate::messages::LogEntryPb;
use crate::wal::{Coverage, Log, Segment, SegmentEnd};

/// How far a replica's own log goes.
#[derive(Debug, Default)]
struct Standing {
    /// Term of each operation by index; of one that was overwritten, the last.
    terms: BTreeMap<i64, i64>,
    timestamps: HashMap<i64, u64>,
    committed: Option<i64>,
}

impl Standing {
    fn of(log: &Log) -> Self {
        let entries = log.segments.iter().flat_map(|segment| &segment.entries);
        let mut standing = Self { committed: Coverage::of(log).last_committed, ..Self::default() };
        for (_, entry) in entries {
            let Some((index, term)) = op_id(entry) else { continue };
            // A newer leader overwrites what came after.
            standing.terms.split_off(&index);
            standing.terms.insert(index, term);
            let timestamp = entry.replicate.as_ref().and_then(|message| message.timestamp);
            standing.timestamps.insert(index, timestamp.unwrap_or_default());
        }
        standing
    }

    /// Term and index of the last operation.
    fn last(&self) -> Option<(i64, i64)> {
        self.terms.last_key_value().map(|(index, term)| (*term, *index))
    }
}

fn op_id(entry: &LogEntryPb) -> Option<(i64, i64)> {
    let id = entry.replicate.as_ref()?.id?;
    Some((id.index?, id.term?))
}

/// How good a replica is, the best last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Health {
    HalfCopied,
    Damaged,
    Whole,
}

impl Health {
    fn of(tablet: &Tablet) -> Self {
        match tablet.metadata.state {
            TabletState::Copying => Self::HalfCopied,
            _ if tablet.is_damaged() => Self::Damaged,
            _ => Self::Whole,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::HalfCopied => "half copied",
            Self::Damaged => "damaged",
            Self::Whole => "whole",
        }
    }
}

/// Opens the best of the replicas of one tablet; `None` if there are none.
pub(crate) fn open_best(replicas: &[&Replica], log_use: LogUse, snapshot: Snapshot) -> Option<Tablet> {
    if let [only] = replicas {
        return Some(only.open(log_use, snapshot));
    }
    // Where one server no longer says who votes, another does.
    let replicas: Vec<Replica> = with_voters(replicas);
    let replicas: Vec<&Replica> = replicas.iter().collect();
    let replicas = replicas.as_slice();
    let standings: Vec<Standing> = replicas.iter().map(|replica| Standing::of(&replica.log())).collect();
    let witness = witness(replicas, &standings);
    let open =
        |replica: &Replica, witness: Witness| Replica { witness, ..replica.clone() }.open(log_use, snapshot);
    let mut healths = Vec::with_capacity(replicas.len());
    let mut best = None;
    for (index, (replica, standing)) in replicas.iter().zip(&standings).enumerate() {
        let tablet = open(replica, witness.clone());
        let health = Health::of(&tablet);
        // Without the log only what was flushed counts.
        let rank = match log_use {
            LogUse::Replay => (health, standing.last(), 0),
            LogUse::Ignore => (health, None, tablet.newest_timestamp()),
        };
        healths.push(health);
        if best.as_ref().is_none_or(|(_, known, _)| rank > *known) {
            best = Some((index, rank, tablet));
        }
    }
    let (chosen, _, mut tablet) = best?;
    let own = standings.get(chosen)?;
    let furthest = standings.iter().zip(replicas).max_by_key(|(standing, _)| standing.last())?;
    let lead = match log_use {
        LogUse::Replay => Lead::of(furthest.1, furthest.0, own, &witness),
        LogUse::Ignore => Lead::Nothing,
    };
    match &lead {
        Lead::Nothing => {}
        Lead::Operations(tail) => {
            let replica = replicas.get(chosen)?;
            tablet = open(replica, Witness { tail: Some(Arc::clone(tail)), ..witness.clone() });
        }
        Lead::OutOfReach => {
            let found = format!("its log up to {}", place(own.last()));
            let expected = format!(
                "every operation up to {}, which server {} has",
                place(furthest.0.last()),
                furthest.1.server
            );
            let out_of_reach = Some(tablet.replica.finding(&Error::corrupt(expected, found)));
            let replica = replicas.get(chosen)?;
            tablet = open(replica, Witness { out_of_reach, ..witness.clone() });
        }
    }
    let mut notice = describe(replicas, &standings, &healths, chosen);
    let unheard = undecided(furthest.0, &furthest.1.voters, replicas, &standings);
    if log_use == LogUse::Replay && witness.is_majority && unheard > 0 {
        notice.push_str(&format!(
            "; {unheard} of the operations are not in the logs of most voters: nobody was told that they are done, and a cluster started on these disks may drop them"
        ));
    }
    if let Lead::Operations(tail) = &lead {
        let count = tail.entries.len();
        notice.push_str(&format!(
            "; {count} operations after that come from the log of server {}",
            furthest.1.server
        ));
    }
    tablet.findings.push(Finding {
        severity: Severity::Warning,
        path: Arc::from(format!("tablet {}", tablet.metadata.tablet_id)),
        offset: 0,
        part: "replicas".to_string(),
        message: notice,
        rows: None,
    });
    Some(tablet)
}

/// The whole ones of the replicas of a tablet, by server, as they were right after the last operation that all have.
pub(crate) fn at_common_time(replicas: &[&Replica]) -> Vec<(String, KuduTable)> {
    let replicas: Vec<Replica> = with_voters(replicas);
    let replicas: Vec<&Replica> = replicas.iter().collect();
    let standings: Vec<Standing> = replicas.iter().map(|replica| Standing::of(&replica.log())).collect();
    let Some((first, others)) = standings.split_first() else { return Vec::new() };
    let is_common =
        |(index, term): &(&i64, &i64)| others.iter().all(|other| other.terms.get(index) == Some(*term));
    let common = first.terms.iter().rev().find(is_common);
    let Some(timestamp) = common.and_then(|(index, _)| first.timestamps.get(index)) else {
        return Vec::new();
    };
    let snapshot = Snapshot::At(timestamp.saturating_add(1));
    let witness = witness(&replicas, &standings);
    let tablets = replicas.iter().map(|replica| {
        Replica { witness: witness.clone(), ..(*replica).clone() }.open(LogUse::Replay, snapshot)
    });
    let whole = tablets.filter(|tablet| Health::of(tablet) == Health::Whole);
    let table = |tablet: Tablet| {
        let (server, name) = (tablet.server.clone(), tablet.metadata.tablet_id.clone());
        Some((server, KuduTable::new(name, vec![tablet], snapshot, LogUse::Replay, Parts::default()).ok()?))
    };
    whole.filter_map(table).collect()
}

/// The replicas, each with voters: its own, else those of the one whose log goes furthest of those that say.
fn with_voters(replicas: &[&Replica]) -> Vec<Replica> {
    let mut all: Vec<Replica> = replicas.iter().map(|replica| (*replica).clone()).collect();
    if all.iter().any(|replica| replica.voters.is_empty()) {
        let known = replicas.iter().filter(|replica| !replica.voters.is_empty());
        let furthest = known.max_by_key(|replica| Standing::of(&replica.log()).last());
        let voters = furthest.map(|replica| replica.voters.clone()).unwrap_or_default();
        let silent = all.iter_mut().filter(|replica| replica.voters.is_empty());
        silent.for_each(|replica| replica.voters.clone_from(&voters));
    }
    all
}

/// What all logs together say.
fn witness(replicas: &[&Replica], standings: &[Standing]) -> Witness {
    let with_log = replicas.iter().zip(standings).filter(|(_, standing)| standing.last().is_some());
    let furthest = with_log.clone().max_by_key(|(_, standing)| standing.last());
    let voters = furthest.map_or(&[][..], |(replica, _)| &replica.voters);
    let heard = voters.iter().filter(|voter| with_log.clone().any(|(replica, _)| replica.server == **voter));
    Witness {
        is_majority: heard.count().saturating_mul(2) > voters.len(),
        committed: standings.iter().filter_map(|standing| standing.committed).max(),
        tail: None,
        out_of_reach: None,
    }
}

/// How many operations of the furthest log fewer than most voters are known to have.
fn undecided(further: &Standing, voters: &[String], replicas: &[&Replica], standings: &[Standing]) -> usize {
    let committed = standings.iter().filter_map(|standing| standing.committed).max().unwrap_or(i64::MIN);
    let open = further.terms.iter().filter(|(index, _)| **index > committed);
    open.filter(|(index, term)| {
        let has = |standing: &Standing| standing.terms.get(index) == Some(term);
        let heard = voters.iter().filter(|voter| {
            let mut known = replicas.iter().zip(standings);
            known.any(|(replica, standing)| replica.server == **voter && has(standing))
        });
        heard.count().saturating_mul(2) <= voters.len()
    })
    .count()
}

/// What another replica's log has beyond one's own, as far as it is decided.
enum Lead {
    Nothing,
    /// The operations that follow.
    Operations(Arc<Segment>),
    /// Some of them are in no log any more.
    OutOfReach,
}

impl Lead {
    fn of(other: &Replica, further: &Standing, own: &Standing, witness: &Witness) -> Self {
        let decided = if witness.is_majority { Some(i64::MAX) } else { witness.committed };
        let Some((_, last)) = further.last().filter(|last| Some(*last) > own.last()) else {
            return Self::Nothing;
        };
        let Some(last) = decided.map(|decided| decided.min(last)) else { return Self::Nothing };
        let (Some((&first_own, _)), Some((_, last_own))) = (own.terms.first_key_value(), own.last()) else {
            return Self::OutOfReach;
        };
        let is_new = |index: &i64, term: &i64| own.terms.get(index) != Some(term);
        let from = further.terms.range(first_own..).find(|(index, term)| is_new(index, term));
        let Some((&from, _)) = from.filter(|(from, _)| **from <= last) else { return Self::Nothing };
        let count = last.saturating_sub(from).saturating_add(1);
        let missing = i64::try_from(further.terms.range(from..=last).count()).ok() != Some(count);
        if from > last_own.saturating_add(1) || missing {
            return Self::OutOfReach;
        }
        let log = other.log();
        let Some(end) = log.segments.last() else { return Self::OutOfReach };
        let mut tail = Segment::empty(&end.path, end.sequence, Compression::None);
        tail.end = SegmentEnd::Preallocated;
        let entries = log.segments.into_iter().flat_map(|segment| segment.entries);
        tail.entries = entries
            .filter(|(_, entry)| {
                let id = op_id(entry).filter(|(index, _)| (from..=last).contains(index));
                id.is_some_and(|(index, term)| further.terms.get(&index) == Some(&term))
            })
            .collect();
        Self::Operations(Arc::new(tail))
    }
}

/// Which replica is read and why, in words.
fn describe(replicas: &[&Replica], standings: &[Standing], healths: &[Health], chosen: usize) -> String {
    let of = |index: usize| {
        let replica = replicas.get(index).map(|replica| replica.server.as_str()).unwrap_or_default();
        let health = healths.get(index).map_or("unknown", |health| health.name());
        let last = standings.get(index).and_then(Standing::last);
        format!("server {replica} ({health}, log up to {})", place(last))
    };
    let best = healths.get(chosen).copied();
    let is_only = healths.iter().filter(|health| Some(**health) == best).count() == 1;
    let reason = match best {
        Some(Health::Whole) if is_only => "the only whole one",
        Some(Health::Whole) => "of the whole ones none goes further",
        _ => "none is whole, and of the best none goes further",
    };
    let others: Vec<_> = (0..replicas.len()).filter(|index| *index != chosen).map(of).collect();
    format!("{} replicas: read is {}: {reason}; not read: {}", replicas.len(), of(chosen), others.join(", "))
}

fn place(op: Option<(i64, i64)>) -> String {
    op.map_or_else(|| "nothing".to_string(), |(term, index)| format!("operation {index} of term {term}"))
}
