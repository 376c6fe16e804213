//! The rows of a unit in key order: each rowset and the memory as a stream of batches, merged where there are several.

use std::ops::Range;
use std::sync::Arc;

use pilaster_core::merge::{KeyedRows, Keys, SomeRows};
use pilaster_core::{LossLog, Result, RowRanges, ScanMemory, fitting};

use super::encoded_keys::encode_keys;
use super::key_range::KeyRange;
use super::merge::MergedRows;
use super::overlay::Overlay;
use super::row_filter::{RowFilter, keep_bits, keep_rows, span};
use super::rowset::{RowSet, Snapshot};
use super::rowset_reader::{ReadAhead, RowSetReader};
use super::schema::KuduColumn;
use super::units::UnitRows;
use crate::wal::{MemoryCursor, MemoryRows};

/// Bytes of rows that the sources of a merge hold together, about; besides, each holds a block of every column.
const MERGED_BYTES: u64 = 64 << 20;
/// Rows that a source of a merge holds, at least.
const LEAST_MERGED_ROWS: usize = 8;
/// What a cell takes in memory, at least.
const CELL_BYTES: u64 = 16;

/// What to read of rows, and how.
#[derive(Debug, Clone)]
pub(crate) struct Reading {
    pub columns: Vec<KuduColumn>,
    /// The key columns, which are read too where rows must be merged.
    pub keys: Vec<KuduColumn>,
    /// Only rows for which this is true; the columns begin with those it needs.
    pub filter: Option<RowFilter>,
    pub snapshot: Snapshot,
    pub batch_size: usize,
    /// Where rows are noted that cannot be read or proven good; without it they end the scan.
    pub losses: Option<Arc<LossLog>>,
    /// What the columns of all rowsets that are read together draw on.
    pub memory: ScanMemory,
}

impl Reading {
    /// Of live rows with all columns those that are wanted, and the keys of all of them, which the columns then begin with,
    /// where they are wanted; `None` if nothing is left.
    fn given(&self, rows: SomeRows, mut keys: Option<&mut Keys>) -> Result<Option<SomeRows>> {
        if let Some(keys) = &mut keys {
            encode_keys(&self.keys, &rows, keys)?;
        }
        let Some(filter) = &self.filter else { return Ok(Some(rows)) };
        let matches = filter.matches(&rows.arrays, rows.count)?;
        let count = matches.count_set_bits();
        let arrays = keep_rows(rows.arrays, &matches)?;
        let has_keys = keys.is_some();
        if let Some(keys) = keys {
            keys.leave_out_but(&matches);
        }
        Ok((has_keys || count > 0).then_some(SomeRows { arrays, count }))
    }

    /// Reads rows of a rowset: the columns that the filter needs, and the others from the first wanted row to the last.
    fn read_filtered(
        &self,
        filter: &RowFilter,
        reader: &mut RowSetReader,
        rows: &Range<u64>,
        overlay: &Overlay,
        keys: Option<&mut Keys>,
    ) -> Result<Option<SomeRows>> {
        let needed = reader.read(0..filter.width(), rows, overlay)?;
        let mut wanted = filter.matches(&needed, overlay.count())?;
        let live = overlay.live();
        if let Some(live) = &live {
            wanted = &wanted & live;
        }
        let has_keys = keys.is_some();
        if let Some(keys) = keys {
            // Keys of rows that are not wanted count too: one that is live twice must be seen.
            let key_columns = needed.iter().take(self.keys.len()).cloned().collect();
            let (arrays, kept) = match &live {
                Some(live) => (keep_rows(key_columns, live)?, keep_bits(&wanted, live)),
                None => (key_columns, wanted.clone()),
            };
            encode_keys(&self.keys, &SomeRows { arrays, count: kept.len() }, keys)?;
            keys.leave_out_but(&kept);
        }
        let Some(span) = span(&wanted) else {
            return Ok(has_keys.then(|| SomeRows { arrays: Vec::new(), count: 0 }));
        };
        let wanted = wanted.slice(span.start, span.len());
        let start = rows.start.saturating_add(span.start as u64);
        let narrowed = start..start.saturating_add(span.len() as u64);
        let mut arrays: Vec<_> = needed.iter().map(|array| array.slice(span.start, span.len())).collect();
        arrays.extend(reader.read(filter.width()..self.columns.len(), &narrowed, overlay)?);
        Ok(Some(SomeRows { arrays: keep_rows(arrays, &wanted)?, count: wanted.count_set_bits() }))
    }
}

impl UnitRows {
    /// The only rowset of the unit, if no change touches these columns or the existence of its rows.
    pub fn plain(&self, columns: &[KuduColumn], snapshot: Snapshot) -> Option<(&Arc<RowSet>, &RowRanges)> {
        let ([(rowset, rows)], None) = (self.rowsets.as_slice(), &self.memory) else { return None };
        let ids: Vec<i32> = columns.iter().filter_map(|column| column.id).collect();
        rowset.is_plain(&ids, snapshot).then_some((rowset, rows))
    }

    /// Reads the wanted live rows in key order; `None` if there are none to read.
    pub fn read(self, reading: &Reading) -> Result<Option<RowStream>> {
        let members = self.rowsets.len().saturating_add(usize::from(self.memory.is_some()));
        if members < 2 {
            return Ok(self.sources(reading, &ReadAhead::default()).pop().map(RowStream::Single));
        }
        // Keys first, then what the filter needs besides, as the columns begin with that.
        let others = reading.columns.iter().filter(|column| !reading.keys.contains(column));
        let columns: Vec<KuduColumn> = reading.keys.iter().chain(others).cloned().collect();
        let positions = reading.columns.iter().filter_map(|column| columns.iter().position(|c| c == column));
        let positions = positions.collect();
        let filter = reading.filter.as_ref().map(|filter| {
            let needed = reading.columns.iter().take(filter.width());
            let besides = needed.filter(|column| !reading.keys.contains(column)).count();
            filter.over(columns.get(..reading.keys.len().saturating_add(besides)).unwrap_or_default())
        });
        let filter = filter.transpose()?;
        let ahead = ReadAhead::shared_by(members.saturating_mul(columns.len()));
        let rows = MERGED_BYTES.checked_div(self.row_bytes(columns.len()).saturating_mul(members as u64));
        let rows = rows.and_then(|rows| usize::try_from(rows).ok()).unwrap_or(usize::MAX);
        let batch_size = rows.clamp(LEAST_MERGED_ROWS, reading.batch_size.max(LEAST_MERGED_ROWS));
        let memory = reading.memory.shared(members);
        let merged = Reading { columns, filter, batch_size, memory, ..reading.clone() };
        let sources = self.sources(&merged, &ahead);
        let merge = MergedRows::new(sources, reading.batch_size, reading.losses.clone());
        Ok(Some(RowStream::Merged { merge: Box::new(merge), positions }))
    }

    /// About how many bytes a row of so many columns takes.
    fn row_bytes(&self, columns: usize) -> u64 {
        let bytes: u64 = self.rowsets.iter().map(|(rowset, _)| rowset.size_bytes()).sum();
        let rows: u64 = self.rowsets.iter().map(|(rowset, _)| rowset.rows).sum();
        let least = CELL_BYTES.saturating_mul(columns as u64);
        bytes.checked_div(rows).unwrap_or_default().max(least)
    }

    fn sources(self, reading: &Reading, ahead: &ReadAhead) -> Vec<Box<dyn KeyedRows>> {
        let reading = Arc::new(reading.clone());
        let mut sources: Vec<Box<dyn KeyedRows>> = Vec::new();
        for (rowset, rows) in self.rowsets {
            let first_key = rowset.keys().start;
            let pending = rows.as_slice().iter().rev().cloned().collect();
            let (reading, ahead) = (Arc::clone(&reading), *ahead);
            sources.push(Box::new(RowSetRows { rowset, reading, ahead, first_key, pending, reader: None }));
        }
        if let Some((memory, keys)) = self.memory {
            sources.push(Box::new(MemoryBatches::new(memory, keys, reading)));
        }
        sources
    }
}

/// The rows of a unit.
pub(crate) enum RowStream {
    Single(Box<dyn KeyedRows>),
    /// Merged rows, with more columns than were asked for: where those stand.
    Merged {
        merge: Box<MergedRows>,
        positions: Vec<usize>,
    },
}

impl RowStream {
    pub fn next(&mut self) -> Result<Option<SomeRows>> {
        match self {
            Self::Single(rows) => rows.next(None),
            Self::Merged { merge, positions } => Ok(merge.next()?.map(|rows| SomeRows {
                arrays: positions.iter().filter_map(|at| rows.arrays.get(*at).cloned()).collect(),
                count: rows.count,
            })),
        }
    }
}

/// A rowset's wanted live rows, batch by batch; its files are opened when the first are asked for.
struct RowSetRows {
    rowset: Arc<RowSet>,
    reading: Arc<Reading>,
    ahead: ReadAhead,
    first_key: Vec<u8>,
    /// What is still to read, the next at the end.
    pending: Vec<Range<u64>>,
    reader: Option<RowSetReader>,
}

impl RowSetRows {
    /// The next stretch of rows: up to a multiple of the batch size.
    fn next_rows(&mut self) -> Option<Range<u64>> {
        let range = self.pending.pop()?;
        let batch_size = self.reading.batch_size.max(1) as u64;
        let boundary = range.start.checked_div(batch_size)?.saturating_add(1).saturating_mul(batch_size);
        let end = range.end.min(boundary);
        if end < range.end {
            self.pending.push(end..range.end);
        }
        Some(range.start..end)
    }

    /// Reads some of the pending rows; `None` if none of them is left.
    fn read(&mut self, rows: &Range<u64>, keys: Option<&mut Keys>) -> Result<Option<SomeRows>> {
        let reading = Arc::clone(&self.reading);
        reading.memory.start(rows.end.saturating_sub(rows.start));
        let read = self.read_rows(&reading, rows, keys);
        reading.memory.start(0);
        read
    }

    fn read_rows(
        &mut self,
        reading: &Reading,
        rows: &Range<u64>,
        keys: Option<&mut Keys>,
    ) -> Result<Option<SomeRows>> {
        let Reading { columns, filter, snapshot, memory, .. } = reading;
        let reader = match &mut self.reader {
            Some(reader) => reader,
            None => {
                let wanted = std::iter::once(rows.clone()).chain(self.pending.iter().cloned()).collect();
                let certain = filter.as_ref().map_or(columns.len(), RowFilter::width);
                self.reader.insert(
                    self.rowset.reader(columns, certain, *snapshot, &wanted, self.ahead).within(memory),
                )
            }
        };
        let overlay = reader.overlay(rows)?;
        let live = overlay.live();
        if live.as_ref().is_some_and(|live| live.count_set_bits() == 0) {
            return Ok(None);
        }
        if let Some(filter) = filter {
            return reading.read_filtered(filter, reader, rows, &overlay, keys);
        }
        let mut arrays = reader.read(0..columns.len(), rows, &overlay)?;
        let mut count = overlay.count();
        if let Some(live) = live {
            arrays = keep_rows(arrays, &live)?;
            count = live.count_set_bits();
        }
        reading.given(SomeRows { arrays, count }, keys)
    }
}

impl KeyedRows for RowSetRows {
    fn first_key(&self) -> &[u8] {
        &self.first_key
    }

    fn next(&mut self, mut keys: Option<&mut Keys>) -> Result<Option<SomeRows>> {
        while let Some(rows) = self.next_rows() {
            match (self.read(&rows, keys.as_deref_mut()), &self.reading.losses) {
                (Ok(Some(read)), _) => return Ok(Some(read)),
                (Ok(None), _) => {}
                // Smaller and smaller stretches, until they fit, or only the rows that cannot be read are left out.
                (Err(error), losses)
                    if (losses.is_some() || fitting::is_too_large(&error))
                        && rows.end.saturating_sub(rows.start) > 1 =>
                {
                    let middle = rows.start.midpoint(rows.end);
                    self.pending.extend([middle..rows.end, rows.start..middle]);
                }
                (Err(error), None) => return Err(error),
                (Err(error), Some(losses)) => losses.record(rows, None, &error),
            }
        }
        self.reader = None;
        Ok(None)
    }
}

/// Rows of memory, batch by batch.
struct MemoryBatches {
    cursor: MemoryCursor,
    reading: Arc<Reading>,
    first_key: Vec<u8>,
}

impl MemoryBatches {
    fn new(memory: Arc<MemoryRows>, keys: Vec<KeyRange>, reading: Arc<Reading>) -> Self {
        let first_key = keys.first().map(|range| range.start.clone()).unwrap_or_default();
        Self { cursor: MemoryCursor::new(memory, keys), reading, first_key }
    }
}

impl KeyedRows for MemoryBatches {
    fn first_key(&self) -> &[u8] {
        &self.first_key
    }

    fn next(&mut self, mut keys: Option<&mut Keys>) -> Result<Option<SomeRows>> {
        let Reading { columns, snapshot, batch_size, losses, .. } = self.reading.as_ref();
        while let Some((arrays, count)) =
            self.cursor.next(columns, *snapshot, *batch_size, losses.as_deref())?
        {
            let given = self.reading.given(SomeRows { arrays, count }, keys.as_deref_mut())?;
            if given.is_some() {
                return Ok(given);
            }
        }
        Ok(None)
    }
}
