//! A table as a dataset: its tablets in partition order.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions, RecordBatchReader, UInt64Array};
use arrow_schema::{ArrowError, Schema, SchemaRef};
use arrow_select::filter::{FilterBuilder, prep_null_mask_filter};
use pilaster_core::dataset::column_index;
use pilaster_core::describe::{ColumnStatistics, Node, Page};
use pilaster_core::positional::{self, ColumnCursor, Columns};
use pilaster_core::predicate::BoundPredicate;
use pilaster_core::{
    BatchReader, Dataset, Error, ErrorKind, LostRows, OnDamage, Progress, Result, RowRanges, Scan,
    ScanRequest, Split, VerifyDepth, VerifyReport,
};

use super::cells;
use super::key_range::key_range;
use super::merge::SomeRows;
use super::replica::{LogUse, Tablet};
use super::rowset::{RowSet, Snapshot};
use super::schema::{KuduColumn, KuduSchema};
use super::tablet_rows::{KeyRange, Unit, UnitRows, units};
use crate::cfile::CellCursor;

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
    /// Everything, cut into what threads divide among themselves.
    units: Vec<Unit>,
    /// What a tolerant scan reads instead, made when one is first asked for.
    salvaged: OnceLock<Salvage>,
}

/// What is left of a damaged table.
#[derive(Debug)]
struct Salvage {
    tablets: Vec<Tablet>,
    losses: Vec<LostRows>,
}

impl KuduTable {
    pub(crate) fn new(
        name: String,
        mut tablets: Vec<Tablet>,
        snapshot: Snapshot,
        log: LogUse,
    ) -> Result<Self> {
        tablets.sort_by(|a, b| a.metadata.partition.start.cmp(&b.metadata.partition.start));
        // A tablet that may not be of this table has no say.
        let sure = |tablet: &&Tablet| tablet.replica.doubtful_tables.iter().all(|table| *table != name);
        let newest = tablets.iter().filter(sure).max_by_key(|tablet| tablet.schema_version);
        let schema = newest.map(|tablet| tablet.schema.clone()).unwrap_or_default();
        let units = if tablets.iter().any(Tablet::is_damaged) {
            // Keys that cannot be read must not keep the rest from being salvaged.
            all_units(&tablets, &KeyRange::default()).unwrap_or_default()
        } else {
            all_units(&tablets, &KeyRange::default())?
        };
        let arrow = schema.to_arrow();
        let salvaged = OnceLock::new();
        Ok(Self(Arc::new(Inner { name, arrow, schema, tablets, snapshot, log, units, salvaged })))
    }

    /// Columns with their ids and defaults.
    pub fn kudu_schema(&self) -> &KuduSchema {
        &self.0.schema
    }

    /// The units a request visits.
    fn units(&self, request: &ScanRequest, predicate: Option<&BoundPredicate>) -> Result<Vec<Unit>> {
        let (tablets, is_salvage) = match &request.on_damage {
            OnDamage::Stop => (&self.0.tablets, false),
            OnDamage::Skip(losses) => {
                let salvage = self.salvage();
                salvage.losses.iter().for_each(|lost| losses.add(lost.clone()));
                (&salvage.tablets, true)
            }
        };
        if let Some(index) = request.split {
            let count = self.0.units.len().max(1);
            if index >= count {
                return Err(Error::invalid(format!("no split number {index}: there are {count}")));
            }
            if !is_salvage {
                let unit = self.0.units.get(index).cloned();
                let keys = predicate.map(|predicate| key_range(predicate, &self.0.schema));
                let unit = match (unit, keys) {
                    (Some(unit), Some(keys)) => unit.within(&keys)?,
                    (unit, _) => unit,
                };
                return Ok(unit.into_iter().collect());
            }
            // There may be more or fewer units than splits: the last split takes the rest.
            let mut units = all_units(tablets, &KeyRange::default())?.into_iter().skip(index);
            let is_last = index.saturating_add(1) == count;
            return Ok(if is_last { units.collect() } else { units.next().into_iter().collect() });
        }
        match predicate {
            None if !is_salvage => Ok(self.0.units.clone()),
            None => all_units(tablets, &KeyRange::default()),
            Some(predicate) => all_units(tablets, &key_range(predicate, &self.0.schema)),
        }
    }

    /// What is left of the table; everything, if it is sound.
    fn salvage(&self) -> &Salvage {
        let inner = &self.0;
        inner.salvaged.get_or_init(|| {
            let mut salvage = Salvage { tablets: Vec::new(), losses: Vec::new() };
            for tablet in &inner.tablets {
                if tablet.replica.doubtful_tables.len() > 1 {
                    let reasons = tablet.findings.iter().map(ToString::to_string);
                    let losses = reasons.map(|reason| LostRows { rows: 0..0, column: None, reason });
                    salvage.losses.extend(losses);
                    continue;
                }
                let salvaged = tablet.replica.salvage(inner.log, inner.snapshot);
                salvage.tablets.push(salvaged.tablet);
                salvage.losses.extend(salvaged.losses);
            }
            salvage
        })
    }

    /// Refuses to give rows when some are known to be missing.
    fn check_complete(&self) -> Result<()> {
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

fn all_units(tablets: &[Tablet], keys: &KeyRange) -> Result<Vec<Unit>> {
    let mut all = Vec::new();
    for tablet in tablets {
        all.extend(units(&tablet.rowsets, &tablet.memory, keys)?);
    }
    Ok(all)
}

/// Says where the way out of damage is.
fn with_hint(error: Error) -> Error {
    let ErrorKind::Corrupt { expected, found } = error.kind() else { return error };
    let hinted = Error::corrupt(expected.clone(), format!("{found}; `salvage` gives what is left"));
    match error.position() {
        Some(position) => hinted.at(&position.path, position.offset, position.part),
        None => hinted,
    }
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
        if self.0.snapshot != Snapshot::Latest {
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

    fn splits(&self) -> Result<Vec<Split>> {
        let units = self.0.units.iter();
        let mut splits: Vec<_> = units
            .map(|unit| Split {
                rows: None,
                bytes: unit.rowsets.iter().map(|(rowset, _)| rowset.size_bytes()).sum(),
            })
            .collect();
        // What a tolerant scan finds where nothing was must belong to a split too.
        if splits.is_empty() && self.0.tablets.iter().any(Tablet::is_damaged) {
            splits.push(Split { rows: None, bytes: 0 });
        }
        Ok(splits)
    }

    fn scan(&self) -> Scan<'_> {
        Scan::new(self)
    }

    fn read(&self, request: &ScanRequest) -> Result<BatchReader> {
        if !matches!(request.on_damage, OnDamage::Skip(_)) {
            self.check_complete()?;
        }
        let schema = &self.0.schema;
        let projection = request.projected(&self.0.arrow)?;
        let mut wanted: Vec<usize> = Vec::new();
        let mut filter_columns = Vec::new();
        if let Some(predicate) = &request.predicate {
            for name in predicate.columns() {
                filter_columns.push(column_index(&self.0.arrow, name)?);
            }
        }
        for &column in projection.iter().chain(&filter_columns) {
            if !wanted.contains(&column) {
                wanted.push(column);
            }
        }
        let columns: Vec<KuduColumn> =
            wanted.iter().filter_map(|index| schema.columns.get(*index).cloned()).collect();
        let read_schema = Schema::new(columns.iter().map(KuduColumn::field).collect::<Vec<_>>());
        let predicate =
            request.predicate.as_ref().map(|predicate| predicate.bind(&read_schema)).transpose()?;
        let pruning =
            request.predicate.as_ref().map(|predicate| predicate.bind(&self.0.arrow)).transpose()?;
        // Positions count all rows, so nothing may be pruned before they are counted.
        let by_position = request.rows.is_some() || request.row_numbers.is_some();
        if by_position && request.split.is_some() {
            return Err(Error::invalid(
                "the rows of a split have no positions in a table that is merged by key",
            ));
        }
        let mut units = self.units(request, pruning.as_ref().filter(|_| !by_position))?;
        units.reverse();
        Ok(Box::new(TableScan {
            output: request.output_schema(&self.0.arrow)?,
            projection: projection
                .iter()
                .filter_map(|index| wanted.iter().position(|w| w == index))
                .collect(),
            read_schema: Arc::new(read_schema),
            keys: schema.keys().to_vec(),
            columns,
            request: request.clone(),
            is_by_position: by_position,
            predicate,
            units,
            current: None,
            snapshot: self.0.snapshot,
            batch_size: request.batch_size.max(1),
            left: request.limit.unwrap_or(u64::MAX),
            position: 0,
            rows: request.rows.clone(),
            with_row_numbers: request.row_numbers.is_some(),
        }))
    }

    /// What is wrong with the disks, as far as opening has shown.
    fn findings(&self) -> Vec<pilaster_core::Finding> {
        self.0.tablets.iter().flat_map(|tablet| tablet.findings.iter().cloned()).collect()
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

/// The unit being read.
enum Current {
    Plain(BatchReader),
    Rows(UnitRows),
}

/// The columns of a rowset that nothing changes.
struct RowSetColumns {
    rowset: Arc<RowSet>,
    columns: Vec<KuduColumn>,
}

impl Columns for RowSetColumns {
    fn open(&self, column: usize, wanted: &RowRanges) -> Result<Box<dyn ColumnCursor>> {
        let column =
            self.columns.get(column).ok_or_else(|| Error::invalid(format!("no column number {column}")))?;
        Ok(match self.rowset.column(column)? {
            Some(file) => Box::new(CellCursor::new(file, wanted.clone())),
            None => Box::new(DefaultCursor(column.clone())),
        })
    }
}

/// A column that a rowset lacks: its default for every row.
struct DefaultCursor(KuduColumn);

impl ColumnCursor for DefaultCursor {
    fn read(&mut self, rows: Range<u64>) -> Result<ArrayRef> {
        let count = usize::try_from(rows.end.saturating_sub(rows.start)).unwrap_or(usize::MAX);
        cells::default_array(&self.0, count)
    }

    fn probe(&mut self, rows: Range<u64>) -> Vec<(Range<u64>, Option<Error>)> {
        vec![(rows, None)]
    }
}

struct TableScan {
    output: SchemaRef,
    read_schema: SchemaRef,
    /// Where each output column stands among those read.
    projection: Vec<usize>,
    columns: Vec<KuduColumn>,
    keys: Vec<KuduColumn>,
    request: ScanRequest,
    is_by_position: bool,
    predicate: Option<BoundPredicate>,
    /// What is still to visit, the next at the end.
    units: Vec<Unit>,
    current: Option<Current>,
    snapshot: Snapshot,
    batch_size: usize,
    left: u64,
    /// Rows given by units so far.
    position: u64,
    rows: Option<RowRanges>,
    with_row_numbers: bool,
}

impl TableScan {
    fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        while self.left > 0 {
            let next = match &mut self.current {
                None => {
                    let Some(unit) = self.units.pop() else { return Ok(None) };
                    self.current = Some(self.open(&unit)?);
                    continue;
                }
                Some(Current::Plain(reader)) => reader.next().transpose()?,
                Some(Current::Rows(rows)) => rows.next()?.map(|rows| self.finish(rows)).transpose()?,
            };
            let Some(batch) = next else {
                self.current = None;
                continue;
            };
            if batch.num_rows() > 0 {
                let keep = usize::try_from(self.left).unwrap_or(usize::MAX).min(batch.num_rows());
                self.left = self.left.saturating_sub(keep as u64);
                return Ok(Some(batch.slice(0, keep)));
            }
        }
        Ok(None)
    }

    /// A unit that nothing changes is read like any other columns by position, with all that saves.
    fn open(&self, unit: &Unit) -> Result<Current> {
        if let Some((rowset, rows)) = unit.plain(&self.columns, self.snapshot)
            && !self.is_by_position
        {
            let columns = RowSetColumns { rowset: Arc::clone(rowset), columns: self.columns.clone() };
            let request = ScanRequest {
                projection: Some(self.projection.clone()),
                limit: Some(self.left),
                split: None,
                ..self.request.clone()
            };
            let wanted = rowset.intact(rows.clone());
            return Ok(Current::Plain(positional::scan(&columns, &self.read_schema, &request, &wanted)?));
        }
        let losses = match &self.request.on_damage {
            OnDamage::Stop => None,
            OnDamage::Skip(losses) => Some(Arc::clone(losses)),
        };
        let rows = unit.read(&self.columns, &self.keys, self.snapshot, self.batch_size, losses)?;
        Ok(Current::Rows(rows))
    }

    /// Numbers, filters and projects rows.
    fn finish(&mut self, rows: SomeRows) -> Result<RecordBatch> {
        let SomeRows { arrays, count } = rows;
        let first = self.position;
        self.position = first.saturating_add(count as u64);
        let options = RecordBatchOptions::new().with_row_count(Some(count));
        let batch = RecordBatch::try_new_with_options(Arc::clone(&self.read_schema), arrays, &options)?;
        let mut mask = match &self.predicate {
            Some(predicate) => Some(prep_null_mask_filter(&predicate.evaluate(&batch)?)),
            None => None,
        };
        if let Some(rows) = &self.rows {
            let wanted: arrow_array::BooleanArray = (first..self.position)
                .map(|row| Some(rows.as_slice().iter().any(|range| range.contains(&row))))
                .collect();
            mask = Some(match mask {
                Some(mask) => arrow_array::BooleanArray::new(mask.values() & wanted.values(), None),
                None => wanted,
            });
        }
        let mut columns: Vec<ArrayRef> =
            self.projection.iter().filter_map(|index| batch.columns().get(*index).cloned()).collect();
        if self.with_row_numbers {
            columns.push(Arc::new(UInt64Array::from_iter_values(first..self.position)));
        }
        let mut kept = count;
        if let Some(mask) = mask {
            kept = mask.true_count();
            if kept < count {
                let filter = FilterBuilder::new(&mask).optimize().build();
                columns = columns.iter().map(|array| Ok(filter.filter(array)?)).collect::<Result<_>>()?;
            }
        }
        let options = RecordBatchOptions::new().with_row_count(Some(kept));
        Ok(RecordBatch::try_new_with_options(Arc::clone(&self.output), columns, &options)?)
    }
}

impl Iterator for TableScan {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.next_batch();
        if next.is_err() {
            self.left = 0;
        }
        next.map_err(|error| ArrowError::from(with_hint(error))).transpose()
    }
}

impl RecordBatchReader for TableScan {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.output)
    }
}
