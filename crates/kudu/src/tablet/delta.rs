//! Delta files: the changes of a rowset's rows, ordered by row.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::BinaryViewArray;
use pilaster_core::error::AtPosition;
use pilaster_core::{Error, Result, SourceRef};

use crate::cfile::{BlockPointer, CFile, CFileReaderOptions, DELTA_STATISTICS, delta_values};
use crate::key::decode_ordered_varint;
use crate::messages::{self, DeltaStatsPb};

const PART: &str = "delta file";

/// An open delta file.
#[derive(Debug)]
pub(crate) struct DeltaFile {
    file: Arc<CFile>,
    statistics: DeltaStatsPb,
    /// First row of each block, and where the block lies.
    blocks: Vec<(u64, BlockPointer)>,
}

impl DeltaFile {
    pub fn open(source: SourceRef, options: &CFileReaderOptions) -> Result<Self> {
        let file = CFile::open(source, options)?;
        file.check_delta_shape()?;
        let statistics = file.metadata().pair(DELTA_STATISTICS).ok_or_else(|| {
            Error::corrupt(format!("the metadata pair {DELTA_STATISTICS}"), "a file without it").at(
                file.name(),
                file.metadata().blocks_end,
                PART,
            )
        })?;
        let statistics =
            messages::parse(statistics, "DeltaStatsPB").at(file.name(), file.metadata().blocks_end, PART)?;
        let entries = match &file.by_value {
            Some(tree) => tree.entries(&file.store)?,
            None if file.metadata().num_values == 0 => Vec::new(),
            None => {
                return Err(Error::corrupt("a value index", "a delta file without one").at(
                    file.name(),
                    file.metadata().blocks_end,
                    PART,
                ));
            }
        };
        let blocks = entries.into_iter().map(|entry| {
            let row =
                decode_ordered_varint(&entry.key, &mut 0).at(file.name(), entry.pointer.offset, PART)?;
            Ok((row, entry.pointer))
        });
        let blocks = blocks.collect::<Result<Vec<_>>>()?;
        if !blocks.is_sorted_by_key(|(row, _)| *row) {
            return Err(Error::corrupt("blocks that ascend by row", "others").at(file.name(), 0, PART));
        }
        Ok(Self { file: Arc::new(file), statistics, blocks })
    }

    /// Smallest and largest timestamp in it.
    pub fn timestamps(&self) -> (u64, u64) {
        (self.statistics.min_timestamp.unwrap_or(0), self.statistics.max_timestamp.unwrap_or(u64::MAX))
    }

    /// Whether it can change whether rows exist, or the value of a column of `ids`.
    pub fn concerns(&self, ids: &[i32]) -> bool {
        let statistics = &self.statistics;
        let structural =
            statistics.delete_count.unwrap_or(1) != 0 || statistics.reinsert_count.unwrap_or_default() != 0;
        structural
            || statistics.column_stats.iter().any(|column| {
                column.col_id.is_none_or(|id| ids.contains(&id)) && column.update_count != Some(0)
            })
    }

    /// All changes of `rows`, in file order.
    pub fn cursor(self: &Arc<Self>) -> DeltaCursor {
        DeltaCursor { delta: Arc::clone(self), current: None }
    }

    /// First row of each block.
    pub fn first_rows(&self) -> Vec<u64> {
        self.blocks.iter().map(|(row, _)| *row).collect()
    }

    pub fn name(&self) -> &str {
        self.file.name()
    }

    fn read_block(&self, pointer: BlockPointer) -> Result<DeltaBlock> {
        let part = "cfile data block";
        let block = self.file.store.read(pointer, part)?;
        let mut decoded = self.file.decode(&block)?;
        let count = decoded.rows;
        let values = decoded.read_all(&self.file.shape.target).at(self.file.name(), pointer.offset, part)?;
        let lists = delta_values(&values).at(self.file.name(), pointer.offset, part)?.clone();
        let mut keys = Vec::with_capacity(count);
        for value in lists.iter() {
            let mut at = 0;
            let value = value.unwrap_or_default();
            let row = decode_ordered_varint(value, &mut at).at(self.file.name(), pointer.offset, PART)?;
            let timestamp =
                decode_ordered_varint(value, &mut at).at(self.file.name(), pointer.offset, PART)?;
            keys.push((row, timestamp, at));
        }
        if !keys.is_sorted_by_key(|(row, ..)| *row) {
            return Err(Error::corrupt("changes that ascend by row", "others").at(
                self.file.name(),
                pointer.offset,
                PART,
            ));
        }
        Ok(DeltaBlock { pointer, keys, lists })
    }
}

/// One block: row, timestamp and where the list of changes begins in each value.
#[derive(Debug)]
struct DeltaBlock {
    pointer: BlockPointer,
    keys: Vec<(u64, u64, usize)>,
    lists: BinaryViewArray,
}

/// Reads the changes of ascending stretches of rows; the current block is kept.
#[derive(Debug)]
pub(crate) struct DeltaCursor {
    delta: Arc<DeltaFile>,
    current: Option<DeltaBlock>,
}

impl DeltaCursor {
    /// Calls `each` with row, timestamp and list of every change of block number `number`.
    pub fn for_each_of_block(
        &mut self,
        number: usize,
        mut each: impl FnMut(u64, u64, &[u8]) -> Result<()>,
    ) -> Result<()> {
        let delta = Arc::clone(&self.delta);
        let Some((_, pointer)) = delta.blocks.get(number) else { return Ok(()) };
        let block = delta.read_block(*pointer)?;
        for (list, &(row, timestamp, at)) in block.lists.iter().zip(&block.keys) {
            let list = list.and_then(|list| list.get(at..)).unwrap_or_default();
            each(row, timestamp, list).at(delta.name(), pointer.offset, PART)?;
        }
        Ok(())
    }

    /// Calls `each` with row, timestamp and list of every change of `rows`, in file order.
    pub fn for_each(
        &mut self,
        rows: Range<u64>,
        mut each: impl FnMut(u64, u64, &[u8]) -> Result<()>,
    ) -> Result<()> {
        let delta = Arc::clone(&self.delta);
        // The changes of a row may begin in the block before the first one that begins with it.
        let first = delta.blocks.partition_point(|(row, _)| *row < rows.start).saturating_sub(1);
        for (start, pointer) in delta.blocks.iter().skip(first) {
            if *start >= rows.end {
                break;
            }
            if self.current.as_ref().is_none_or(|block| block.pointer != *pointer) {
                self.current = Some(delta.read_block(*pointer)?);
            }
            let Some(block) = &self.current else { continue };
            let from = block.keys.partition_point(|(row, ..)| *row < rows.start);
            for (index, &(row, timestamp, at)) in block.keys.iter().enumerate().skip(from) {
                if row >= rows.end {
                    break;
                }
                let list = block.lists.value(index).get(at..).unwrap_or_default();
                each(row, timestamp, list).at(delta.name(), pointer.offset, PART)?;
            }
        }
        Ok(())
    }
}
