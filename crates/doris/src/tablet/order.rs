//! Merge-on-write rows in the order of their keys.
//!
//! Segments are sorted by key, and no key is alive in two of them. Those whose keys do not overlap are read one after the other;
//! the others are merged, and cut at keys into pieces for threads. Rows without a key order (duplicate tables, cluster
//! keys) are read segment by segment.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_array::{ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions};
use arrow_schema::{Schema, SchemaRef};
use arrow_select::filter::{filter, filter_record_batch};
use pilaster_core::merge::{self, KeyedRows, Keys, Runs, SomeRows};
use pilaster_core::{Dataset, Error, Result, RowRanges, ScanMemory, ScanRequest};

use super::reader::{Tablet, TabletSegment};
use super::scan::Plan;
use super::segment_rows::{KeyColumns, SegmentRows};
use crate::schema::{KeysType, SchemaColumn};

/// Rows of a piece that one thread reads, about.
const PIECE_ROWS: u64 = 1 << 17;
/// More keys than about this are not looked up to cut segments that overlap: more of them are cut into fewer pieces.
const MOST_LOOK_UPS: u64 = 8192;
/// Keys that are looked up to find one among the rows of a segment, about.
const LOOK_UPS_FOR_ONE: u64 = 18;

/// Rows that are read together, and are in key order then.
#[derive(Debug, Clone)]
pub(super) struct Piece {
    pub parts: Vec<Part>,
}

/// Some rows of a segment.
#[derive(Debug, Clone)]
pub(super) struct Part {
    pub segment: usize,
    pub rows: Range<u64>,
    /// A key that none of them is before.
    first_key: Vec<u8>,
}

impl Piece {
    fn rows(&self) -> u64 {
        self.parts.iter().map(|part| part.rows.end.saturating_sub(part.rows.start)).sum()
    }
}

impl Tablet {
    /// Whether rows come in the order of their keys though they are not merged.
    pub fn is_ordered(&self) -> bool {
        self.schema.keys_type == KeysType::Unique
            && !self.merges()
            && self.schema.cluster_key_uids.is_empty()
            && self.segments.len() > 1
    }

    /// All rows, in order, in as few pieces as are read without a merge.
    pub fn units(&self) -> &[Piece] {
        self.units.get_or_init(|| {
            let bounds = self.is_ordered().then(|| KeyReader::new(self)).and_then(Result::ok);
            let bounds = bounds.and_then(|keys| bounds_of(self, &keys).ok());
            match bounds {
                Some(bounds) => grouped(self, bounds),
                // Where keys cannot be read, the order is lost; that they cannot is met when rows are.
                None => (0..self.segments.len())
                    .map(|number| Piece { parts: vec![whole(self, number)] })
                    .collect(),
            }
        })
    }

    /// The same, cut for threads.
    pub fn pieces(&self) -> &[Piece] {
        self.pieces.get_or_init(|| {
            let cut = |unit: &Piece| cut(self, unit).unwrap_or_else(|_| vec![unit.clone()]);
            self.units().iter().flat_map(cut).collect()
        })
    }

    /// Positions in the tablet between which the rows of a piece lie, if they are those in its files.
    pub fn rows_of(&self, piece: &Piece) -> Option<Range<u64>> {
        let [only] = piece.parts.as_slice() else { return None };
        let first = self.segments.get(only.segment).filter(|_| self.gives_all_rows())?.first_row;
        Some(first.saturating_add(only.rows.start)..first.saturating_add(only.rows.end))
    }

    /// About how many bytes reading a piece takes.
    pub fn bytes_of(&self, piece: &Piece) -> u64 {
        let bytes = piece.parts.iter().filter_map(|part| {
            let reader = &self.segments.get(part.segment)?.reader;
            let rows = u128::from(part.rows.end.saturating_sub(part.rows.start));
            let share = u128::from(reader.size_bytes()).saturating_mul(rows);
            u64::try_from(share.checked_div(u128::from(reader.metadata().num_rows))?).ok()
        });
        bytes.sum()
    }
}

fn whole(tablet: &Tablet, number: usize) -> Part {
    let rows = tablet.segments.get(number).map_or(0, |segment| segment.reader.metadata().num_rows);
    Part { segment: number, rows: 0..rows, first_key: Vec::new() }
}

/// Reads keys of single rows.
struct KeyReader {
    columns: Vec<usize>,
    schema: SchemaRef,
    keys: KeyColumns,
}

impl KeyReader {
    fn new(tablet: &Tablet) -> Result<Self> {
        let columns = tablet.key_columns();
        let schema = Arc::new(Schema::new(tablet.fields.clone()).project(&columns)?);
        let declared: Vec<&SchemaColumn> =
            columns.iter().filter_map(|at| tablet.schema.columns.get(*at)).collect();
        let keys = KeyColumns::new(&declared, &schema)?;
        Ok(Self { columns, schema, keys })
    }

    fn key(&self, segment: &TabletSegment, row: u64) -> Result<Vec<u8>> {
        let mut reader = segment.reader.read(&ScanRequest {
            projection: Some(self.columns.clone()),
            rows: Some(RowRanges::one(row..row.saturating_add(1))),
            ..ScanRequest::default()
        })?;
        let batch = reader.next().transpose()?.filter(|batch| batch.num_rows() == 1);
        let batch = batch.ok_or_else(|| Error::corrupt(format!("a key in row {row}"), "none"))?;
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), batch.columns().to_vec())?;
        let mut keys = Keys::default();
        self.keys.encode(&batch, &mut keys)?;
        Ok(keys.get(0).to_vec())
    }

    /// The first of some rows whose key is not below `key`.
    fn first_not_below(&self, segment: &TabletSegment, rows: &Range<u64>, key: &[u8]) -> Result<u64> {
        let (mut low, mut high) = (rows.start, rows.end);
        while low < high {
            let middle = low.midpoint(high);
            if self.key(segment, middle)?.as_slice() < key {
                low = middle.saturating_add(1);
            } else {
                high = middle;
            }
        }
        Ok(low)
    }
}

/// Each segment with its first and its last key.
fn bounds_of(tablet: &Tablet, keys: &KeyReader) -> Result<Vec<(Part, Vec<u8>)>> {
    let mut bounds = Vec::with_capacity(tablet.segments.len());
    for (number, segment) in tablet.segments.iter().enumerate() {
        let mut part = whole(tablet, number);
        let Some(last) = part.rows.end.checked_sub(1) else { continue };
        part.first_key = keys.key(segment, 0)?;
        bounds.push((part, keys.key(segment, last)?));
    }
    Ok(bounds)
}

/// Segments whose keys overlap, together.
fn grouped(tablet: &Tablet, mut bounds: Vec<(Part, Vec<u8>)>) -> Vec<Piece> {
    bounds.sort_by(|a, b| (&a.0.first_key, a.0.segment).cmp(&(&b.0.first_key, b.0.segment)));
    let mut units: Vec<Piece> = Vec::with_capacity(tablet.segments.len());
    let mut end: Vec<u8> = Vec::new();
    for (part, last) in bounds {
        match units.last_mut() {
            Some(unit) if part.first_key <= end => unit.parts.push(part),
            _ => units.push(Piece { parts: vec![part] }),
        }
        end = end.max(last);
    }
    units
}

/// Pieces of about as many rows of the largest part, between keys.
fn cut(tablet: &Tablet, unit: &Piece) -> Result<Vec<Piece>> {
    let look_ups = LOOK_UPS_FOR_ONE.saturating_mul(unit.parts.len() as u64);
    let most = MOST_LOOK_UPS.checked_div(look_ups).unwrap_or(1);
    let count = unit.rows().div_ceil(PIECE_ROWS).min(most);
    let size = |part: &&Part| part.rows.end.saturating_sub(part.rows.start);
    let Some(largest) = unit.parts.iter().max_by_key(size).filter(|_| count > 1 && unit.parts.len() > 1)
    else {
        return Ok(vec![unit.clone()]);
    };
    let segment = |part: &Part| {
        tablet.segments.get(part.segment).ok_or_else(|| Error::internal("a segment that is not there"))
    };
    let keys = KeyReader::new(tablet)?;
    let step = size(&largest).div_ceil(count).max(1);
    let mut pieces = Vec::new();
    let mut rest = unit.parts.clone();
    let mut row = largest.rows.start.saturating_add(step);
    while row < largest.rows.end {
        let key = keys.key(segment(largest)?, row)?;
        let (mut before, mut after) = (Vec::new(), Vec::new());
        for part in rest {
            let at = keys.first_not_below(segment(&part)?, &part.rows, &key)?;
            if part.rows.start < at {
                before.push(Part { rows: part.rows.start..at, ..part.clone() });
            }
            if at < part.rows.end {
                let first_key = part.first_key.max(key.clone());
                after.push(Part { segment: part.segment, rows: at..part.rows.end, first_key });
            }
        }
        pieces.push(Piece { parts: before });
        rest = after;
        row = row.saturating_add(step);
    }
    pieces.push(Piece { parts: rest });
    pieces.retain(|piece| !piece.parts.is_empty());
    Ok(pieces)
}

/// The parts of a piece made one.
pub(super) struct OrderedRows {
    merge: merge::Merge,
    plan: Arc<Plan>,
    batch_size: usize,
}

impl OrderedRows {
    pub fn new(tablet: &Arc<Tablet>, plan: &Arc<Plan>, request: &ScanRequest, piece: &Piece) -> Result<Self> {
        let columns: Vec<&SchemaColumn> =
            plan.needed.iter().filter_map(|at| tablet.schema.columns.get(*at)).collect();
        let keys = KeyColumns::new(&columns, &plan.narrow)?;
        let memory = request.memory(&tablet.limits);
        let source = |part: &Part| {
            Box::new(PartRows {
                memory: memory.shared(piece.parts.len()),
                tablet: Arc::clone(tablet),
                plan: Arc::clone(plan),
                request: request.clone(),
                part: part.clone(),
                keys: keys.clone(),
                rows: None,
            }) as Box<dyn KeyedRows>
        };
        Ok(Self {
            merge: merge::Merge::new(piece.parts.iter().map(source).collect()),
            plan: Arc::clone(plan),
            batch_size: memory.fitting_rows(&plan.narrow, request.batch_size),
        })
    }

    /// The next rows.
    pub fn next(&mut self) -> Result<Option<RecordBatch>> {
        let mut runs = Runs::default();
        while runs.count() < self.batch_size {
            let Some(run) = self.merge.next_run(self.batch_size.saturating_sub(runs.count()))? else { break };
            runs.add(&run);
        }
        let Some(SomeRows { arrays, count }) = runs.gather()? else { return Ok(None) };
        let options = RecordBatchOptions::new().with_row_count(Some(count));
        Ok(Some(RecordBatch::try_new_with_options(Arc::clone(&self.plan.narrow), arrays, &options)?))
    }
}

/// The rows of a part that are alive; it is opened when its turn comes.
struct PartRows {
    tablet: Arc<Tablet>,
    plan: Arc<Plan>,
    request: ScanRequest,
    part: Part,
    keys: KeyColumns,
    memory: ScanMemory,
    rows: Option<SegmentRows>,
}

impl KeyedRows for PartRows {
    fn first_key(&self) -> &[u8] {
        &self.part.first_key
    }

    fn next(&mut self, keys: Option<&mut Keys>) -> Result<Option<SomeRows>> {
        let Some(segment) = self.tablet.segments.get(self.part.segment) else { return Ok(None) };
        let mut own = Keys::default();
        let keys = keys.unwrap_or(&mut own);
        keys.clear(0);
        loop {
            let rows = match &mut self.rows {
                Some(rows) => rows,
                None => {
                    let memory = self.memory.clone();
                    self.rows.insert(self.plan.open(
                        &self.tablet,
                        segment,
                        &self.request,
                        &self.part.rows,
                        memory,
                    )?)
                }
            };
            let Some((batch, positions)) = rows.next()? else {
                self.part.rows = 0..0;
                return Ok(None);
            };
            let (batch, _) = living(segment, batch, positions)?;
            if batch.num_rows() > 0 {
                self.keys.encode(&batch, keys)?;
                return Ok(Some(SomeRows { count: batch.num_rows(), arrays: batch.columns().to_vec() }));
            }
        }
    }
}

/// Rows that no newer ones have replaced, and their positions in the tablet, out of those in the segment.
pub(super) fn living(
    segment: &TabletSegment,
    batch: RecordBatch,
    positions: Option<ArrayRef>,
) -> Result<(RecordBatch, Option<ArrayRef>)> {
    let Some(positions) = positions else { return Ok((batch, None)) };
    let in_segment = positions.as_primitive::<UInt64Type>();
    let is_alive = |row: &u64| u32::try_from(*row).is_ok_and(|row| !segment.deleted.contains(row));
    let alive: BooleanArray = in_segment.values().iter().map(|row| Some(is_alive(row))).collect();
    let moved: ArrayRef =
        Arc::new(in_segment.unary::<_, UInt64Type>(|row| row.saturating_add(segment.first_row)));
    Ok((filter_record_batch(&batch, &alive)?, Some(filter(&moved, &alive)?)))
}
