//! One field of the Arrow schema, by row position.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, new_null_array};
use arrow_schema::DataType;
use pilaster_core::dataset::DEFAULT_BATCH_SIZE;
use pilaster_core::kept::copied_out;
use pilaster_core::positional::{ColumnCursor, Columns};
use pilaster_core::{Error, LossLog, Result, RowRanges, ScanMemory};

use super::assemble::{assemble, leaf_types};
use super::batch::LeafBatch;
use super::chunk::CHUNK_PART;
use super::file::RedFile;
use super::leaf::LeafReader;
use super::options::LostCells;
use super::salvage::{ChunkState, inspect_chunk};
use crate::schema::Shape;

/// The fields of a file.
pub(super) struct RedfileColumns {
    pub file: Arc<RedFile>,
    /// Where lost cells are noted that are given as null.
    pub losses: Option<Arc<LossLog>>,
    pub memory: ScanMemory,
}

impl Columns for RedfileColumns {
    fn memory(&self) -> ScanMemory {
        self.memory.clone()
    }

    fn open(&self, column: usize, wanted: &RowRanges) -> Result<Box<dyn ColumnCursor>> {
        let shape = self.file.schema.shapes().get(column);
        let shape = shape.ok_or_else(|| Error::internal(format!("no column number {column}")))?.clone();
        let readers = shape
            .leaves
            .clone()
            .map(|leaf| LeafReader::new(Arc::clone(&self.file), leaf, wanted.clone(), &self.memory))
            .collect();
        let mut types = Vec::new();
        leaf_types(&shape, &mut types);
        let fills = self.file.options.lost_cells == LostCells::Null && shape.field.is_nullable();
        Ok(Box::new(FieldCursor {
            file: Arc::clone(&self.file),
            shape,
            readers,
            types,
            memory: self.memory.clone(),
            inspected: BTreeMap::new(),
            fill: self.losses.clone().filter(|_| fills),
        }))
    }
}

/// Reads a field of `rows` to the end, for its errors.
pub(crate) fn read_through(file: &Arc<RedFile>, column: usize, rows: &RowRanges) -> Result<()> {
    let file = Arc::clone(file);
    let memory = ScanMemory::of_one_column(&file.options.limits);
    let mut cursor = RedfileColumns { file, losses: None, memory }.open(column, rows)?;
    for range in rows.as_slice() {
        let mut at = range.start;
        while at < range.end {
            let end = at.saturating_add(DEFAULT_BATCH_SIZE as u64).min(range.end);
            cursor.read(at..end)?;
            at = end;
        }
    }
    Ok(())
}

/// Rows of a row group that are lost, and why.
type LostStretches = Vec<(Range<u64>, String)>;

struct FieldCursor {
    file: Arc<RedFile>,
    shape: Shape,
    readers: Vec<LeafReader>,
    types: Vec<DataType>,
    memory: ScanMemory,
    /// The row groups that were looked through for damage, and the rows of them that are lost.
    inspected: BTreeMap<usize, LostStretches>,
    /// Lost cells are null and noted here.
    fill: Option<Arc<LossLog>>,
}

impl FieldCursor {
    /// The stretches of `rows` by row group, counted from the start of the group.
    fn by_group(&self, rows: &Range<u64>) -> Vec<(usize, Range<u64>)> {
        let mut stretches = Vec::new();
        let mut at = rows.start;
        while at < rows.end {
            let group = self.file.group_of(at);
            let all = self.file.group_rows(group);
            let end = all.end.min(rows.end);
            if end <= at {
                break;
            }
            stretches.push((group, at.saturating_sub(all.start)..end.saturating_sub(all.start)));
            at = end;
        }
        stretches
    }

    fn read_values(&mut self, rows: &Range<u64>) -> Result<ArrayRef> {
        self.readers.iter_mut().for_each(LeafReader::begin_read);
        let values = self.read_pages(rows);
        let mut must_copy = false;
        self.readers.iter_mut().for_each(|reader| must_copy |= reader.end_read());
        match must_copy {
            true => copied_out(&values?, &self.memory),
            false => values,
        }
    }

    fn read_pages(&mut self, rows: &Range<u64>) -> Result<ArrayRef> {
        let count = usize::try_from(rows.end.saturating_sub(rows.start)).unwrap_or(usize::MAX);
        let stretches = self.by_group(rows);
        let mut batches = Vec::with_capacity(self.readers.len());
        for (reader, (number, data_type)) in
            self.readers.iter_mut().zip(self.shape.leaves.clone().zip(&self.types))
        {
            let mut batch = LeafBatch::new(self.file.leaf(number)?, data_type, count.min(1 << 20));
            for (group, rows) in &stretches {
                reader.read(*group, rows.clone(), &mut batch)?;
            }
            batches.push(batch);
        }
        let array = assemble(&self.shape, batches).map_err(|error| self.in_place(error, &stretches))?;
        if array.len() != count {
            let error = Error::corrupt(format!("{count} records"), array.len());
            return Err(self.in_place(error, &stretches));
        }
        Ok(array)
    }

    /// An error of assembling: it belongs to a chunk, not to one of its pages.
    fn in_place(&self, error: Error, stretches: &[(usize, Range<u64>)]) -> Error {
        let chunk =
            stretches.first().and_then(|(group, _)| self.file.chunk(*group, self.shape.leaves.start).ok());
        match chunk {
            Some(chunk) => error.at(chunk.name(), chunk.start, CHUNK_PART),
            None => error.at(self.file.name(), 0, CHUNK_PART),
        }
    }

    /// Looks through the chunks of a row group once; the pages that are sound are read from then on.
    fn inspect(&mut self, group: usize) -> &[(Range<u64>, String)] {
        if !self.inspected.contains_key(&group) {
            let mut lost = Vec::new();
            for (reader, leaf) in self.readers.iter_mut().zip(self.shape.leaves.clone()) {
                match inspect_chunk(&self.file, group, leaf) {
                    ChunkState::Lost { loss, .. } => lost.push((loss.rows.clone(), loss.to_string())),
                    ChunkState::Readable { chunk, places, losses, .. } => {
                        lost.extend(losses.iter().map(|loss| (loss.rows.clone(), loss.to_string())));
                        reader.use_places(*chunk, Arc::new(places));
                    }
                }
            }
            lost.sort_by_key(|(rows, _)| (rows.start, rows.end));
            self.inspected.insert(group, lost);
        }
        self.inspected.get(&group).map(Vec::as_slice).unwrap_or_default()
    }

    /// Rows are asked for in ascending order: what is known of row groups before them is not needed again.
    fn forget_before(&mut self, rows: &Range<u64>) {
        let first = self.file.group_of(rows.start);
        self.inspected.retain(|group, _| *group >= first);
        self.readers.iter_mut().for_each(|reader| reader.forget_before(first));
    }

    /// The parts of `rows` of a row group that are lost, and those that are not, in order.
    fn stretches(&mut self, group: usize, rows: &Range<u64>) -> Vec<(Range<u64>, Option<String>)> {
        let mut cuts = vec![rows.start, rows.end];
        let lost = self.inspect(group).to_vec();
        for (range, _) in &lost {
            cuts.extend([range.start, range.end].into_iter().filter(|cut| rows.contains(cut)));
        }
        cuts.sort_unstable();
        cuts.dedup();
        let reason = |part: &Range<u64>| {
            lost.iter()
                .find(|(range, _)| range.start < part.end && part.start < range.end)
                .map(|(_, text)| text.clone())
        };
        cuts.windows(2)
            .filter_map(|pair| match pair {
                &[start, end] => Some(start..end),
                _ => None,
            })
            .map(|part| (part.clone(), reason(&part)))
            .collect()
    }
}

impl ColumnCursor for FieldCursor {
    fn read(&mut self, rows: Range<u64>) -> Result<ArrayRef> {
        if self.fill.is_none() {
            return self.read_values(&rows);
        }
        // Lost cells are null: the rest is read around them.
        self.forget_before(&rows);
        let mut parts = Vec::new();
        for (group, stretch) in self.by_group(&rows) {
            let base = self.file.group_rows(group).start;
            for (part, reason) in self.stretches(group, &stretch) {
                let count = usize::try_from(part.end.saturating_sub(part.start)).unwrap_or_default();
                parts.push(match reason {
                    Some(_) => new_null_array(self.shape.field.data_type(), count),
                    None => {
                        self.read_values(&(base.saturating_add(part.start)..base.saturating_add(part.end)))?
                    }
                });
            }
        }
        let parts: Vec<&dyn Array> = parts.iter().map(AsRef::as_ref).collect();
        Ok(arrow_select::concat::concat(&parts)?)
    }

    fn probe(&mut self, rows: Range<u64>) -> Vec<(Range<u64>, Option<Error>)> {
        self.forget_before(&rows);
        let mut probed = Vec::new();
        for (group, stretch) in self.by_group(&rows) {
            let base = self.file.group_rows(group).start;
            for (part, reason) in self.stretches(group, &stretch) {
                let part = base.saturating_add(part.start)..base.saturating_add(part.end);
                let damage = reason
                    .map(|reason| Error::corrupt("an undamaged column", reason).at(self.file.name(), 0, ""));
                match (&self.fill, damage) {
                    (Some(log), Some(error)) => {
                        log.record(part.clone(), Some(self.shape.field.name()), &error);
                        probed.push((part, None));
                    }
                    (_, damage) => probed.push((part, damage)),
                }
            }
        }
        probed.into_iter().map(|(rows, damage)| self.checked(rows, damage)).collect()
    }
}

impl FieldCursor {
    /// Pages that are sound one by one may still not assemble together.
    fn checked(&mut self, rows: Range<u64>, damage: Option<Error>) -> (Range<u64>, Option<Error>) {
        if damage.is_some() || self.fill.is_some() {
            return (rows, damage);
        }
        let damage = self.read_values(&rows).err();
        (rows, damage)
    }
}
