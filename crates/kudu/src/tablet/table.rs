//! A table as a dataset: its tablets in partition order.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use arrow_schema::SchemaRef;
use pilaster_core::describe::{ColumnStatistics, Node, Page};
use pilaster_core::predicate::BoundPredicate;
use pilaster_core::{
    Absence, BatchReader, Dataset, Error, Finding, LostRows, OnDamage, PlannedScan, Progress, Result, Scan,
    ScanPlan, ScanRequest, TaskSpan, VerifyDepth, VerifyReport,
};

use super::key_range::{KeyRange, key_ranges};
use super::replica::{LogUse, Tablet};
use super::rowset::Snapshot;
use super::schema::KuduSchema;
use super::table_scan::TableScan;
use super::units::{Unit, units};
use crate::fs::Unread;

/// A Kudu table, from the disks of its servers.
#[derive(Debug, Clone)]
pub struct KuduTable(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    name: String,
    schema: KuduSchema,
    arrow: SchemaRef,
    tablets: Vec<Tablet>,
    snapshot: Snapshot,
    log: LogUse,
    parts: Parts,
    /// Everything, in order.
    units: Vec<TabletUnit>,
    /// What a tolerant scan reads instead, made when one is first asked for.
    salvaged: OnceLock<Salvage>,
}

/// Which parts of a table are here, as far as it is known.
#[derive(Debug, Clone, Default)]
pub(crate) struct Parts {
    /// Folders and files that could not be read and may hold some of its rows.
    pub unread: Vec<Unread>,
    /// Tablets that must exist and are not here, in words.
    pub missing: Vec<String>,
    /// What may be odd about what is here.
    pub notes: Vec<Finding>,
}

/// A unit, and the number of its tablet.
#[derive(Debug, Clone)]
struct TabletUnit {
    tablet: usize,
    unit: Unit,
    /// It cut for threads, which takes some keys: found when it is first asked for, and kept for later scans.
    pieces: Arc<OnceLock<Vec<Unit>>>,
}

impl TabletUnit {
    fn pieces(&self) -> Result<&[Unit]> {
        if let Some(pieces) = self.pieces.get() {
            return Ok(pieces);
        }
        let pieces = self.unit.clone().cut()?;
        Ok(self.pieces.get_or_init(|| pieces))
    }
}

/// What a scan of a table reads.
struct PlannedUnits {
    table: KuduTable,
    units: Vec<TabletUnit>,
    /// Only rows with keys in these ranges can match.
    keys: Option<Vec<KeyRange>>,
    /// Rows are counted from the first one on, so that no task can begin later.
    is_by_position: bool,
    /// The tasks.
    pieces: OnceLock<Vec<Unit>>,
}

impl PlannedUnits {
    /// The units cut for threads, without pieces that can hold no match.
    fn pieces(&self) -> Result<&[Unit]> {
        if let Some(pieces) = self.pieces.get() {
            return Ok(pieces);
        }
        let mut pieces = Vec::new();
        for unit in &self.units {
            let may_match = |piece: &&Unit| self.keys.as_ref().is_none_or(|keys| piece.may_hold(keys));
            pieces.extend(unit.pieces()?.iter().filter(may_match).cloned());
        }
        Ok(self.pieces.get_or_init(|| pieces))
    }
}

impl PlannedScan for PlannedUnits {
    fn spans(&self) -> Result<Vec<TaskSpan>> {
        if self.is_by_position {
            return Ok(vec![TaskSpan { rows: None, bytes: self.table.size_bytes() }]);
        }
        Ok(self.pieces()?.iter().map(|piece| TaskSpan { rows: None, bytes: piece.bytes }).collect())
    }

    fn read(&self, tasks: Option<Range<usize>>, request: &ScanRequest) -> Result<BatchReader> {
        let units = match tasks {
            Some(tasks) if !self.is_by_position => {
                let pieces = self.pieces()?.get(tasks);
                pieces.ok_or_else(|| Error::internal("a task that was not planned"))?.to_vec()
            }
            _ => self.units.iter().map(|of_tablet| of_tablet.unit.clone()).collect(),
        };
        let Inner { schema, snapshot, tablets, .. } = self.table.0.as_ref();
        let limits = tablets.first().map(|tablet| tablet.replica.limits().clone()).unwrap_or_default();
        Ok(Box::new(TableScan::new(schema, *snapshot, &limits, request, units, self.keys.clone())?))
    }
}

/// What is left of a damaged table.
#[derive(Debug)]
struct Salvage {
    tablets: Vec<Tablet>,
    losses: Vec<LostRows>,
    /// Rows that may be older than their latest state, or deleted since.
    unproven: Vec<Tablet>,
}

impl KuduTable {
    pub(crate) fn new(
        name: String,
        mut tablets: Vec<Tablet>,
        snapshot: Snapshot,
        log: LogUse,
        parts: Parts,
    ) -> Result<Self> {
        tablets.sort_by(|a, b| a.metadata.partition.start.cmp(&b.metadata.partition.start));
        // A tablet that may not be of this table has no say.
        let sure = |tablet: &&Tablet| tablet.replica.doubtful_tables.iter().all(|table| *table != name);
        let newest = tablets.iter().filter(sure).max_by_key(|tablet| tablet.schema_version);
        let schema = newest.map(|tablet| tablet.schema.clone()).unwrap_or_default();
        check_handles(&tablets)?;
        let units = all_units(&tablets);
        let arrow = schema.to_arrow();
        let salvaged = OnceLock::new();
        Ok(Self(Arc::new(Inner { name, arrow, schema, tablets, snapshot, log, parts, units, salvaged })))
    }

    /// Columns with their ids and defaults.
    pub fn kudu_schema(&self) -> &KuduSchema {
        &self.0.schema
    }

    /// The same table with its tablets changed.
    #[cfg(test)]
    pub(super) fn with_tablets(self, change: impl FnOnce(&mut [Tablet])) -> Result<Self> {
        let inner = Arc::into_inner(self.0).ok_or_else(|| Error::invalid("a table in use"))?;
        drop(inner.units);
        let mut tablets = inner.tablets;
        change(&mut tablets);
        Self::new(inner.name, tablets, inner.snapshot, inner.log, inner.parts)
    }

    /// The same table at another time.
    #[cfg(test)]
    pub(super) fn at(self, snapshot: Snapshot) -> Result<Self> {
        let inner = Arc::into_inner(self.0).ok_or_else(|| Error::invalid("a table in use"))?;
        Self::new(inner.name, inner.tablets, snapshot, inner.log, inner.parts)
    }

    #[cfg(test)]
    pub(super) fn tablets(&self) -> &[Tablet] {
        &self.0.tablets
    }

    /// What was read of each file, by name.
    #[cfg(test)]
    pub(super) fn reads(&self) -> BTreeMap<String, pilaster_core::source::ReadCounts> {
        let tablets = self.0.tablets.iter();
        tablets.flat_map(|tablet| tablet.replica.blocks.pool.reads()).collect()
    }

    /// The ranges of primary keys that can match.
    fn wanted_keys(&self, predicate: &BoundPredicate) -> Vec<KeyRange> {
        let keys: Vec<_> = self.0.schema.keys().iter().enumerate().collect();
        key_ranges(predicate, &keys)
    }

    /// The units a request visits: those that can hold a match.
    fn units(
        &self,
        request: &ScanRequest,
        predicate: Option<&BoundPredicate>,
        keys: Option<&[KeyRange]>,
    ) -> Result<Vec<TabletUnit>> {
        if let OnDamage::Skip(losses) = &request.on_damage {
            let salvage = self.salvage()?;
            salvage.losses.iter().for_each(|lost| losses.add(lost.clone()));
            return Ok(all_units(&salvage.tablets));
        }
        let tablets = self.tablets_for(predicate);
        let may_match = |of_tablet: &&TabletUnit| {
            tablets.get(of_tablet.tablet).is_none_or(|may| *may)
                && keys.is_none_or(|keys| of_tablet.unit.may_hold(keys))
        };
        Ok(self.0.units.iter().filter(may_match).cloned().collect())
    }

    /// For each tablet, whether its partition can hold a match.
    fn tablets_for(&self, predicate: Option<&BoundPredicate>) -> Vec<bool> {
        let may_match = |tablet: &Tablet| {
            let metadata = &tablet.metadata;
            let may_match = |predicate: &BoundPredicate| {
                metadata.partition_schema.may_match(&metadata.partition, predicate, &self.0.schema)
            };
            tablet.replica.metadata_damage.is_some() || predicate.is_none_or(may_match)
        };
        self.0.tablets.iter().map(may_match).collect()
    }

    /// What is left of the table; everything, if it is sound.
    fn salvage(&self) -> Result<&Salvage> {
        let inner = &self.0;
        // What a disk no longer gives is lost; what somebody forbids is not.
        if let Some(unread) = inner.parts.unread.iter().find(|unread| unread.is_refusal()) {
            return Err(unread.error());
        }
        if let Some(salvage) = inner.salvaged.get() {
            return Ok(salvage);
        }
        let mut salvage = Salvage { tablets: Vec::new(), losses: Vec::new(), unproven: Vec::new() };
        for tablet in &inner.tablets {
            // Columns of the same types prove nothing: it can be read as a table of its own.
            if tablet.replica.doubtful_tables.contains(&inner.name) {
                let part = format!("tablet {}", tablet.metadata.tablet_id);
                let reasons = tablet.findings.iter().map(ToString::to_string);
                salvage.losses.extend(reasons.map(|reason| LostRows::unknown(reason).within(part.clone())));
                continue;
            }
            let salvaged = tablet.replica.salvage(inner.log, inner.snapshot);
            salvage.tablets.push(salvaged.tablet);
            salvage.losses.extend(salvaged.losses);
            salvage.unproven.extend(salvaged.unproven);
        }
        check_handles(&inner.tablets)?;
        Ok(inner.salvaged.get_or_init(|| salvage))
    }

    /// Tablets with rows that may be older than their latest state, or deleted since: operations of the log are lost.
    ///
    /// # Errors
    /// If what is left of the table cannot be read for want of file handles.
    pub(crate) fn unproven(&self) -> Result<Vec<(String, KuduTable)>> {
        let tablets = self.salvage()?.unproven.iter().map(|tablet| {
            let name = format!("{}-before-lost-log", tablet.metadata.tablet_id);
            let again = || Tablet {
                metadata: tablet.metadata.clone(),
                server: tablet.server.clone(),
                schema: tablet.schema.clone(),
                schema_version: tablet.schema_version,
                rowsets: tablet.rowsets.clone(),
                memory: Arc::clone(&tablet.memory),
                log: tablet.log.clone(),
                findings: Vec::new(),
                log_end: None,
                left_out: 0,
                replica: tablet.replica.clone(),
            };
            let parts = Parts::default();
            let table = Self::new(name.clone(), vec![again()], self.0.snapshot, self.0.log, parts)?;
            // A tolerant scan takes what is salvaged already, and must not look at the whole tablet again.
            let salvage = Salvage { tablets: vec![again()], losses: Vec::new(), unproven: Vec::new() };
            drop(table.0.salvaged.set(salvage));
            Ok((name, table))
        });
        tablets.collect()
    }

    /// Refuses to give rows when some are known to be missing.
    fn check_complete(&self) -> Result<()> {
        if let Some(unread) = self.0.parts.unread.first() {
            return Err(unread.error());
        }
        match self.findings().into_iter().find(|finding| finding.severity == pilaster_core::Severity::Error) {
            None => Ok(()),
            Some(finding) => Err(Error::corrupt(
                "a whole table",
                format!("damage: {finding}; `salvage` gives what is left"),
            )
            .at(&self.0.name, 0, "")),
        }
    }
}

fn all_units(tablets: &[Tablet]) -> Vec<TabletUnit> {
    let of_tablet = |(number, tablet): (usize, &Tablet)| {
        let units = units(&tablet.rowsets, &tablet.memory).into_iter();
        units.map(move |unit| TabletUnit { tablet: number, unit, pieces: Arc::default() }).collect::<Vec<_>>()
    };
    tablets.iter().enumerate().flat_map(of_tablet).collect()
}

/// How the logs end that do not end as a server leaves them: one finding for all that end alike.
fn log_ends(table: &str, tablets: &[Tablet]) -> Vec<Finding> {
    let mut alike: BTreeMap<&str, Vec<&Finding>> = BTreeMap::new();
    for end in tablets.iter().filter_map(|tablet| tablet.log_end.as_ref()) {
        alike.entry(&end.message).or_default().push(end);
    }
    let together = |ends: Vec<&Finding>| match ends.as_slice() {
        [] => None,
        [only] => Some(Finding::clone(only)),
        [first, ..] => Some(Finding {
            path: Arc::from(format!("table {table}")),
            offset: 0,
            part: String::new(),
            message: format!("the logs of {} tablets: {}", ends.len(), first.message),
            ..Finding::clone(first)
        }),
    };
    alike.into_values().filter_map(together).collect()
}

/// What could not be read for want of file handles must not pass for damage.
fn check_handles(tablets: &[Tablet]) -> Result<()> {
    tablets.iter().try_for_each(|tablet| tablet.replica.blocks.pool.check_handles())
}

impl Dataset for KuduTable {
    fn format(&self) -> &'static str {
        "kudu table"
    }

    fn name(&self) -> &str {
        &self.0.name
    }

    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.0.arrow)
    }

    fn row_count(&self) -> Option<u64> {
        if self.0.snapshot != Snapshot::Latest || !self.0.parts.unread.is_empty() {
            return None;
        }
        self.0.tablets.iter().try_fold(0u64, |sum, tablet| {
            let is_flushed = tablet.memory.key_range().is_none() && !tablet.is_damaged();
            let rowsets = tablet.rowsets.iter().try_fold(0u64, |sum, rowset| {
                let counted = rowset.metadata.live_row_count.filter(|_| rowset.log_changes.is_empty())?;
                Some(sum.saturating_add(counted))
            });
            Some(sum.saturating_add(rowsets.filter(|_| is_flushed)?))
        })
    }

    fn size_bytes(&self) -> u64 {
        self.0.tablets.iter().flat_map(|tablet| &tablet.rowsets).map(|rowset| rowset.size_bytes()).sum()
    }

    fn scan(&self) -> Scan<'_> {
        Scan::new(self)
    }

    fn plan(&self, request: &ScanRequest) -> Result<ScanPlan> {
        if !matches!(request.on_damage, OnDamage::Skip(_)) {
            self.check_complete()?;
        }
        let predicate =
            request.predicate.as_ref().map(|predicate| predicate.bind(&self.0.arrow)).transpose()?;
        // Positions count all rows, so nothing may be pruned before they are counted.
        let is_by_position = request.rows.is_some() || request.row_numbers.is_some();
        let pruning = predicate.as_ref().filter(|_| !is_by_position);
        let keys = pruning.map(|predicate| self.wanted_keys(predicate));
        let units = self.units(request, pruning, keys.as_deref())?;
        let (table, pieces) = (self.clone(), OnceLock::new());
        ScanPlan::new(request, &self.0.arrow, PlannedUnits { table, units, keys, is_by_position, pieces })
    }

    fn absences(&self) -> Vec<Absence> {
        let path: Arc<str> = Arc::from(format!("table {}", self.0.name));
        let absence = |what: &String| Absence { path: Arc::clone(&path), what: what.clone(), rows: None };
        self.0.parts.missing.iter().map(absence).collect()
    }

    /// What is wrong with the disks, as far as opening has shown.
    fn findings(&self) -> Vec<Finding> {
        let Inner { tablets, parts, .. } = self.0.as_ref();
        let mut findings: Vec<_> =
            tablets.iter().flat_map(|tablet| tablet.findings.iter().cloned()).collect();
        let unread = parts.unread.iter().map(Unread::finding);
        let unread: Vec<_> = unread.filter(|finding| !findings.contains(finding)).collect();
        findings.extend(unread);
        findings.extend(log_ends(&self.0.name, tablets));
        findings.extend(parts.notes.iter().cloned());
        findings
    }

    fn verify(&self, depth: VerifyDepth, progress: &dyn Progress) -> Result<VerifyReport> {
        let mut report = VerifyReport { findings: self.findings(), ..VerifyReport::default() };
        for rowset in self.0.tablets.iter().flat_map(|tablet| &tablet.rowsets) {
            rowset.verify(depth, progress, &mut report);
        }
        Ok(report)
    }

    fn describe(&self) -> Result<Node> {
        let mut node = Node::new(format!("kudu table {}", self.0.name), self.size_bytes())
            .fact("columns", self.0.schema.columns.len())
            .fact("key_columns", self.0.schema.key_count())
            .fact("tablets", self.0.tablets.len());
        for tablet in &self.0.tablets {
            let metadata = &tablet.metadata;
            let bytes = tablet.rowsets.iter().map(|rowset| rowset.size_bytes()).sum();
            let mut child = Node::new(format!("tablet {}", metadata.tablet_id), bytes)
                .fact("server", &tablet.server)
                .fact("state", metadata.state)
                .fact("partition", &metadata.partition)
                .fact("schema_version", metadata.schema_version)
                .fact("rowsets", tablet.rowsets.len())
                .fact("log_segments", tablet.log.segments)
                .fact("log_entries", tablet.log.entries);
            for rowset in &tablet.rowsets {
                child = child.child(rowset.describe());
            }
            node = node.child(child);
        }
        Ok(node)
    }

    fn pages(&self) -> Result<Vec<Page>> {
        let mut pages = Vec::new();
        for rowset in self.0.tablets.iter().flat_map(|tablet| &tablet.rowsets) {
            pages.extend(rowset.pages(&self.0.schema)?);
        }
        Ok(pages)
    }

    fn column_statistics(&self) -> Result<Vec<ColumnStatistics>> {
        let mut all = vec![ColumnStatistics::default(); self.0.schema.columns.len()];
        for rowset in self.0.tablets.iter().flat_map(|tablet| &tablet.rowsets) {
            rowset.add_statistics(&self.0.schema, &mut all)?;
        }
        Ok(all)
    }
}
