//! Reading the rows of a tablet: segment after segment, in key order, or merged by key.

use std::collections::{BTreeSet, VecDeque};
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions, RecordBatchReader};
use arrow_schema::{ArrowError, Schema, SchemaRef};
use arrow_select::filter::{filter_record_batch, prep_null_mask_filter};
use pilaster_core::dataset::{OnDamage, column_index};
use pilaster_core::merge::KeyedRows;
use pilaster_core::predicate::BoundPredicate;
use pilaster_core::{
    BatchReader, Dataset, Error, LossLog, LostRows, PlannedScan, Predicate, Result, RowRanges, ScanMemory,
    ScanPlan, ScanRequest, TaskSpan, col, lit,
};

use super::delete_predicate::Keeps;
use super::doubts::Doubts;
use super::merge::Merge;
use super::order::{OrderedRows, Piece, living};
use super::reader::{Tablet, TabletSegment};
use super::segment_rows::{KeyColumns, MergedLosses, MergedSegment, SegmentRows};
use crate::schema::{DELETE_SIGN_COLUMN, KeysType, SEQUENCE_COLUMN, SchemaColumn, VERSION_COLUMN};

/// Name of the column with positions in a segment, while it is needed.
const POSITION: &str = "#position in segment";

/// Plans to give the rows asked for. Positions can be asked for only where those in the files are those of the rows:
/// [`Tablet::gives_all_rows`].
pub(super) fn plan(tablet: &Arc<Tablet>, request: &ScanRequest) -> Result<ScanPlan> {
    let all = match &request.on_damage {
        OnDamage::Skip(log) => Some(log),
        OnDamage::Stop => None,
    };
    tablet.report_lost(all)?;
    let pieces = OnceLock::new();
    // What cannot be read by these columns is refused before anything is.
    Plan::new(tablet, request, false)?;
    ScanPlan::new(request, &tablet.arrow, PlannedPieces { tablet: Arc::clone(tablet), pieces })
}

/// What a scan of a tablet reads.
struct PlannedPieces {
    tablet: Arc<Tablet>,
    /// The tasks: pieces that can be read by themselves, and where their rows lie.
    pieces: OnceLock<Vec<(Piece, TaskSpan)>>,
}

impl PlannedPieces {
    fn pieces(&self) -> &[(Piece, TaskSpan)] {
        self.pieces.get_or_init(|| {
            let tablet = &self.tablet;
            let spanned = |piece: &Piece| {
                let span = TaskSpan { rows: tablet.rows_of(piece), bytes: tablet.bytes_of(piece) };
                (piece.clone(), span)
            };
            tablet.pieces().iter().map(spanned).collect()
        })
    }

    /// Rows that are merged by key are read together.
    fn is_one_task(&self) -> bool {
        self.tablet.merges() || self.tablet.segments.is_empty()
    }

    /// What is read one after the other. Where damage is passed over, rows are not merged: which are lost is known by segment.
    fn work(&self, tasks: Option<Range<usize>>, request: &ScanRequest) -> Result<Vec<Piece>> {
        let tablet = &self.tablet;
        let given = request.projected(&tablet.arrow)?;
        let is_given = |key: &usize| given.iter().any(|at| tablet.output.get(*at) == Some(key));
        // Rows that are only counted have no order. Tasks without the key columns are in key order among each other; in them
        // nobody sees one, and a merge would cost many times what reading does.
        let is_seen = match tasks {
            None => !given.is_empty(),
            Some(_) => tablet.key_columns().iter().all(is_given),
        };
        let pieces = match tasks {
            // A tablet without segments is one task and no piece.
            Some(tasks) if !self.is_one_task() => {
                let pieces = self.pieces().get(tasks);
                let pieces = pieces.ok_or_else(|| Error::internal("a task that was not planned"))?;
                pieces.iter().map(|(piece, _)| piece.clone()).collect()
            }
            _ => tablet.units().to_vec(),
        };
        match request.on_damage {
            OnDamage::Stop if is_seen => Ok(pieces),
            _ => {
                let parts = pieces.into_iter().flat_map(|piece| piece.parts);
                Ok(parts.map(|part| Piece { parts: vec![part] }).collect())
            }
        }
    }
}

impl PlannedScan for PlannedPieces {
    fn spans(&self) -> Result<Vec<TaskSpan>> {
        if self.is_one_task() {
            let bytes = self.tablet.segments.iter().map(TabletSegment::bytes).fold(0, u64::saturating_add);
            return Ok(vec![TaskSpan { rows: None, bytes }]);
        }
        Ok(self.pieces().iter().map(|(_, span)| span.clone()).collect())
    }

    fn read(&self, tasks: Option<Range<usize>>, request: &ScanRequest) -> Result<BatchReader> {
        let tablet = &self.tablet;
        let pieces = if tablet.merges() { Vec::new() } else { self.work(tasks, request)? };
        let plan = Plan::new(tablet, request, pieces.iter().any(|piece| piece.parts.len() > 1))?;
        let rows = if tablet.merges() {
            let all = match &request.on_damage {
                OnDamage::Skip(log) => Some(log),
                OnDamage::Stop => None,
            };
            Rows::Merged(Box::new(merge(tablet, &plan, request, all)?))
        } else {
            Rows::Pieces { pending: pieces.into(), current: None }
        };
        Ok(Box::new(TabletScan {
            left: request.limit.unwrap_or(u64::MAX),
            tablet: Arc::clone(tablet),
            request: request.clone(),
            plan: Arc::new(plan),
            rows,
        }))
    }
}

fn merge(
    tablet: &Arc<Tablet>,
    plan: &Plan,
    request: &ScanRequest,
    all: Option<&Arc<LossLog>>,
) -> Result<Merge> {
    let columns: Vec<&SchemaColumn> =
        plan.needed.iter().filter_map(|at| tablet.schema.columns.get(*at)).collect();
    let keys = KeyColumns::new(&columns, &plan.narrow)?;
    let doubts = Arc::new(Doubts::default());
    // Rows that are not there may have replaced any; who reads on in spite of that, and not over damage, is told so.
    if !tablet.lost.is_empty() || (all.is_some() && !tablet.absences.is_empty()) {
        doubts.add(None, None);
    }
    let memory = request.memory(&tablet.limits);
    let sources = tablet.segments.iter().enumerate().map(|(number, segment)| {
        let memory = memory.shared(tablet.segments.len());
        let rows = plan.open(tablet, segment, request, &(0..u64::MAX), memory)?;
        let losses = all.map(|all| MergedLosses {
            all: Arc::clone(all),
            doubts: Arc::clone(&doubts),
            tablet: Arc::clone(tablet),
            number,
        });
        Ok(Box::new(MergedSegment::new(rows, keys.clone(), losses)) as Box<dyn KeyedRows>)
    });
    let sources = sources.collect::<Result<Vec<_>>>()?;
    let (schema, batch_size) =
        (Arc::clone(&plan.narrow), memory.fitting_rows(&plan.narrow, request.batch_size));
    let versions = tablet.segments.iter().map(|segment| segment.version).collect();
    let merge = Merge::new(sources, schema, &columns, &tablet.schema, batch_size, Arc::clone(&doubts));
    Ok(merge.with_versions(versions))
}

/// What is read of each segment, and what is done with it.
pub(super) struct Plan {
    /// Columns to read, of all columns of the tablet.
    pub needed: Vec<usize>,
    /// Their schema.
    pub narrow: SchemaRef,
    /// The schema of what comes out.
    output: SchemaRef,
    /// Columns of `narrow` that come out.
    projection: Vec<usize>,
    /// What segments can be asked to leave out.
    pushed: Option<Predicate>,
    /// What is left to compare afterwards.
    filter: Option<BoundPredicate>,
}

impl Plan {
    fn new(tablet: &Tablet, request: &ScanRequest, needs_keys: bool) -> Result<Self> {
        let output = request.output_schema(&tablet.arrow)?;
        let given = request.projected(&tablet.arrow)?;
        let mut needed: BTreeSet<usize> =
            given.iter().filter_map(|at| tablet.output.get(*at).copied()).collect();
        if let Some(predicate) = &request.predicate {
            for name in predicate.columns() {
                needed.extend(tablet.output.get(column_index(&tablet.arrow, name)?));
            }
        }
        let is_named = |name: &str| tablet.schema.columns.iter().position(|column| column.name == name);
        if tablet.merges() || needs_keys {
            needed.extend(tablet.key_columns());
        }
        if tablet.merges() && tablet.schema.keys_type == KeysType::Unique {
            needed.extend(is_named(SEQUENCE_COLUMN));
            needed.extend(is_named(DELETE_SIGN_COLUMN));
            needed.extend(sequences_of(tablet, &needed));
        }
        let unpushed = tablet.segments.iter().flat_map(|segment| &segment.keeps);
        for keeps in unpushed.filter(|keeps| keeps.pushed().is_none()) {
            needed.extend(keeps.columns().filter_map(is_named));
        }
        let needed: Vec<usize> = needed.into_iter().collect();
        let narrow = Arc::new(Schema::new(tablet.fields.clone()).project(&needed)?);
        let place = |at: &usize| {
            let all = tablet.output.get(*at)?;
            needed.iter().position(|needed| needed == all)
        };
        let projection: Option<Vec<usize>> = given.iter().map(place).collect();
        let projection = projection.ok_or_else(|| Error::internal("a column that is not read"))?;
        let is_pushed = request.predicate.as_ref().is_some_and(|predicate| can_push(tablet, predicate));
        let filter = match &request.predicate {
            Some(predicate) if !is_pushed => Some(predicate.bind(&narrow)?),
            _ => None,
        };
        let pushed = request.predicate.clone().filter(|_| is_pushed);
        Ok(Self { needed, narrow, output, projection, pushed, filter })
    }

    /// Starts reading some rows of a segment.
    pub fn open(
        &self,
        tablet: &Tablet,
        segment: &TabletSegment,
        request: &ScanRequest,
        rows: &Range<u64>,
        memory: ScanMemory,
    ) -> Result<SegmentRows> {
        let log = matches!(request.on_damage, OnDamage::Skip(_)).then(|| Arc::new(LossLog::new()));
        let mut parts: Vec<_> = segment.keeps.iter().filter_map(Keeps::pushed).cloned().collect();
        parts.extend(self.pushed.clone());
        let is_unique = tablet.schema.keys_type == KeysType::Unique;
        let has_sign = tablet.schema.columns.iter().any(|column| column.name == DELETE_SIGN_COLUMN);
        if is_unique && has_sign && !tablet.merges() {
            let sign = || col(DELETE_SIGN_COLUMN);
            parts.push(Predicate::Or(vec![sign().eq(lit(0i64)), sign().is_null()]));
        }
        let positions = !segment.deleted.is_empty()
            || request.row_numbers.is_some()
            || (tablet.merges() && log.is_some());
        let end = rows.end.min(segment.reader.metadata().num_rows);
        let mut wanted = RowRanges::one(rows.start.min(end)..end);
        if let Some(rows) = &request.rows {
            let shifted = rows.as_slice().iter().map(|range| {
                range.start.saturating_sub(segment.first_row)..range.end.saturating_sub(segment.first_row)
            });
            wanted = wanted.intersect(&shifted.collect::<RowRanges>());
        }
        let reader = segment.reader.read(&ScanRequest {
            projection: Some(self.needed.clone()),
            predicate: (!parts.is_empty()).then_some(Predicate::And(parts)),
            rows: Some(wanted),
            batch_size: request.batch_size,
            row_numbers: positions.then(|| POSITION.to_string()),
            on_damage: log.clone().map_or(OnDamage::Stop, OnDamage::Skip),
            memory: Some(memory),
            ..ScanRequest::default()
        })?;
        Ok(SegmentRows {
            reader,
            schema: Arc::clone(&self.narrow),
            version: segment.version,
            filled: segment.reader.filled_columns(),
            log,
            keeps: segment
                .keeps
                .iter()
                .filter(|keeps| keeps.pushed().is_none())
                .map(|keeps| keeps.bind(&self.narrow))
                .collect::<Result<_>>()?,
        })
    }
}

/// The sequence columns of the groups to which some columns belong.
fn sequences_of(tablet: &Tablet, needed: &BTreeSet<usize>) -> Vec<usize> {
    let columns = &tablet.schema.columns;
    let is_needed =
        |id: &i32| needed.iter().any(|at| columns.get(*at).is_some_and(|column| column.unique_id == *id));
    let groups = tablet.schema.sequence_groups.iter();
    let groups = groups.filter(|group| group.columns_in_group.iter().any(is_needed));
    groups
        .filter_map(|group| columns.iter().position(|column| column.unique_id == group.sequence_column))
        .collect()
}

/// Whether segments may leave out rows by themselves: not where a row that is left out would uncover an older one.
fn can_push(tablet: &Tablet, predicate: &Predicate) -> bool {
    let columns = predicate.columns();
    if columns.contains(VERSION_COLUMN) {
        return false;
    }
    let is_key =
        |name: &&str| tablet.schema.columns.iter().any(|column| column.name == *name && column.is_key);
    !tablet.merges() || columns.iter().all(is_key)
}

enum Rows {
    Pieces { pending: VecDeque<Piece>, current: Option<Current> },
    Merged(Box<Merge>),
}

/// The piece being read.
enum Current {
    Segment(usize, SegmentRows),
    Several(OrderedRows),
}

struct TabletScan {
    tablet: Arc<Tablet>,
    request: ScanRequest,
    plan: Arc<Plan>,
    rows: Rows,
    left: u64,
}

impl TabletScan {
    /// The next rows of the tablet with their positions, before what is left of the filter.
    fn next_rows(&mut self) -> Result<Option<(RecordBatch, Option<ArrayRef>)>> {
        if let Rows::Merged(merge) = &mut self.rows {
            let Some(batch) = merge.next()? else {
                if let (unproven @ 1.., OnDamage::Skip(log)) = (merge.unproven(), &self.request.on_damage) {
                    let found = format!(
                        "{unproven} keys next to lost rows, which may have replaced or deleted theirs"
                    );
                    let error = Error::corrupt("all rows of each key", found);
                    let error = error.at(&self.tablet.name, 0, "tablet");
                    log.add(LostRows::counted(unproven, error.to_string()).within(&*self.tablet.name));
                }
                return Ok(None);
            };
            return Ok(Some((without_deleted(batch)?, None)));
        }
        self.next_of_pieces()
    }

    fn next_of_pieces(&mut self) -> Result<Option<(RecordBatch, Option<ArrayRef>)>> {
        let Rows::Pieces { pending, current } = &mut self.rows else { return Ok(None) };
        loop {
            let next = match current {
                None => {
                    let Some(piece) = pending.pop_front() else { return Ok(None) };
                    *current = open_piece(&self.tablet, &self.plan, &self.request, &piece)?;
                    continue;
                }
                Some(Current::Segment(number, rows)) => {
                    let Some(segment) = self.tablet.segments.get(*number) else { return Ok(None) };
                    let next = rows.next()?;
                    if let (None, OnDamage::Skip(all)) = (&next, &self.request.on_damage) {
                        rows.report_losses(&self.tablet, segment, all);
                    }
                    next.map(|(batch, positions)| living(segment, batch, positions)).transpose()?
                }
                Some(Current::Several(rows)) => rows.next()?.map(|batch| (batch, None)),
            };
            match next {
                Some(next) => return Ok(Some(next)),
                None => *current = None,
            }
        }
    }

    fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        while self.left > 0 {
            let Some((mut batch, mut positions)) = self.next_rows()? else { return Ok(None) };
            if let Some(mask) = self.filter_mask(&batch)? {
                positions = positions.map(|all| arrow_select::filter::filter(&all, &mask)).transpose()?;
                batch = filter_record_batch(&batch, &mask)?;
            }
            if batch.num_rows() == 0 {
                continue;
            }
            let keep = usize::try_from(self.left).unwrap_or(usize::MAX).min(batch.num_rows());
            self.left = self.left.saturating_sub(keep as u64);
            let mut columns: Vec<ArrayRef> =
                self.plan.projection.iter().map(|at| batch.column(*at).slice(0, keep)).collect();
            if self.request.row_numbers.is_some() {
                columns.extend(positions.map(|positions| positions.slice(0, keep)));
            }
            let options = RecordBatchOptions::new().with_row_count(Some(keep));
            return Ok(Some(RecordBatch::try_new_with_options(
                Arc::clone(&self.plan.output),
                columns,
                &options,
            )?));
        }
        Ok(None)
    }

    fn filter_mask(&self, batch: &RecordBatch) -> Result<Option<BooleanArray>> {
        let Some(filter) = &self.plan.filter else { return Ok(None) };
        let mask = filter.evaluate(batch)?;
        Ok(Some(if mask.null_count() > 0 { prep_null_mask_filter(&mask) } else { mask }))
    }
}

fn open_piece(
    tablet: &Arc<Tablet>,
    plan: &Arc<Plan>,
    request: &ScanRequest,
    piece: &Piece,
) -> Result<Option<Current>> {
    Ok(match piece.parts.as_slice() {
        [] => None,
        [only] => match tablet.segments.get(only.segment) {
            Some(segment) => {
                let rows = plan.open(tablet, segment, request, &only.rows, request.memory(&tablet.limits))?;
                Some(Current::Segment(only.segment, rows))
            }
            None => None,
        },
        _ => Some(Current::Several(OrderedRows::new(tablet, plan, request, piece)?)),
    })
}

/// Merged rows that do not mark their key as deleted.
fn without_deleted(batch: RecordBatch) -> Result<RecordBatch> {
    let Some(sign) = batch.column_by_name(DELETE_SIGN_COLUMN) else { return Ok(batch) };
    let Some(sign) = sign.as_primitive_opt::<arrow_array::types::Int8Type>() else { return Ok(batch) };
    let alive: BooleanArray = sign.iter().map(|sign| Some(sign.unwrap_or(0) == 0)).collect();
    Ok(filter_record_batch(&batch, &alive)?)
}

impl Iterator for TabletScan {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.next_batch();
        if next.is_err() {
            self.left = 0;
        }
        next.map_err(ArrowError::from).transpose()
    }
}

impl RecordBatchReader for TabletScan {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.plan.output)
    }
}
