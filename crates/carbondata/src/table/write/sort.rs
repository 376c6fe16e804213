//! Rows in the order of keys: in memory as long as they fit, else through sorted runs in temporary files.

use std::fs::File;
use std::io::{BufReader, BufWriter};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, ListArray, MapArray, RecordBatch, StructArray, UInt32Array};
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::StreamWriter;
use arrow_row::{RowConverter, Rows, SortField};
use arrow_schema::{DataType, SchemaRef};
use arrow_select::concat::concat_batches;
use arrow_select::interleave::interleave;
use arrow_select::take::take_record_batch;
use pilaster_core::error::AtPosition;
use pilaster_core::{Error, Result};

use crate::file::write::encoder::memory_bytes;

/// Rows that are given at once.
const BATCH_ROWS: usize = 8192;

/// The keys of rows, the most important first.
pub(crate) type KeyColumns = Box<dyn Fn(&RecordBatch) -> Result<Vec<ArrayRef>> + Send>;

/// Collects rows and gives them back sorted; rows of equal keys stay in the order they came.
pub(crate) struct RowSorter {
    schema: SchemaRef,
    keys: KeyColumns,
    max_bytes: usize,
    batches: Vec<RecordBatch>,
    bytes: usize,
    runs: Runs,
}

/// Sorted runs in a folder of their own, which goes when they do.
struct Runs {
    folder: PathBuf,
    paths: Vec<PathBuf>,
}

impl Drop for Runs {
    fn drop(&mut self) {
        if !self.paths.is_empty() {
            let _ = std::fs::remove_dir_all(&self.folder);
        }
    }
}

impl RowSorter {
    /// Sorts rows of `schema`; runs go into the new folder `folder`, if there are any.
    pub fn new(schema: SchemaRef, keys: KeyColumns, max_bytes: usize, folder: PathBuf) -> Self {
        let runs = Runs { folder, paths: Vec::new() };
        Self { schema, keys, max_bytes, batches: Vec::new(), bytes: 0, runs }
    }

    pub fn push(&mut self, batch: RecordBatch) -> Result<()> {
        let bytes: usize = batch.columns().iter().map(memory_bytes).sum();
        self.bytes = self.bytes.saturating_add(bytes);
        self.batches.push(batch);
        if self.bytes > self.max_bytes {
            self.spill()?;
        }
        Ok(())
    }

    fn sorted(&mut self) -> Result<(RecordBatch, UInt32Array)> {
        let whole = concat_batches(&self.schema, &self.batches)?;
        self.batches.clear();
        self.bytes = 0;
        let rows = key_rows(&(self.keys)(&whole)?)?;
        let count = u32::try_from(whole.num_rows())
            .map_err(|_| Error::invalid("more rows than can be sorted at once"))?;
        let mut order: Vec<u32> = (0..count).collect();
        order.sort_by(|a, b| rows.row(*a as usize).cmp(&rows.row(*b as usize)));
        Ok((whole, UInt32Array::from(order)))
    }

    fn spill(&mut self) -> Result<()> {
        if self.batches.is_empty() {
            return Ok(());
        }
        let name = self.runs.folder.display().to_string();
        if self.runs.paths.is_empty() {
            std::fs::create_dir(&self.runs.folder).at(&name, 0, "")?;
        }
        let path = self.runs.folder.join(self.runs.paths.len().to_string());
        self.runs.paths.push(path.clone());
        let (whole, order) = self.sorted()?;
        let file = File::create_new(&path).at(&name, 0, "")?;
        let mut writer = StreamWriter::try_new(BufWriter::new(file), &self.schema)?;
        for batch in Slices::new(whole, order) {
            let batch = batch?;
            let columns = batch.columns().iter().map(without_unused).collect::<Result<Vec<_>>>()?;
            writer.write(&RecordBatch::try_new(batch.schema(), columns)?)?;
        }
        writer.finish()?;
        Ok(())
    }

    /// The rows in order.
    pub fn finish(mut self) -> Result<SortedRows> {
        if self.runs.paths.is_empty() {
            if self.batches.is_empty() {
                return Ok(SortedRows::None);
            }
            let (whole, order) = self.sorted()?;
            return Ok(SortedRows::Memory(Slices::new(whole, order)));
        }
        self.spill()?;
        let Self { schema, keys, runs, .. } = self;
        let heads = runs.paths.iter().map(|path| Head::open(path, &keys)).collect::<Result<Vec<_>>>()?;
        Ok(SortedRows::Runs(Box::new(Merge { schema, keys, heads, _runs: runs })))
    }
}

/// The array without the bytes of texts that are none of its own: a file would get all of them.
fn without_unused(array: &ArrayRef) -> Result<ArrayRef> {
    Ok(match array.data_type() {
        DataType::Utf8View => Arc::new(array.as_string_view().gc()),
        DataType::BinaryView => Arc::new(array.as_binary_view().gc()),
        DataType::List(item) => {
            let list = array.as_list::<i32>();
            let values = without_unused(list.values())?;
            Arc::new(ListArray::try_new(item.clone(), list.offsets().clone(), values, list.nulls().cloned())?)
        }
        DataType::Struct(fields) => {
            let structs = array.as_struct();
            let columns = structs.columns().iter().map(without_unused).collect::<Result<Vec<_>>>()?;
            Arc::new(StructArray::try_new(fields.clone(), columns, structs.nulls().cloned())?)
        }
        DataType::Map(entries, is_sorted) => {
            let map = array.as_map();
            let inner: ArrayRef = Arc::new(map.entries().clone());
            let inner = without_unused(&inner)?.as_struct().clone();
            let (offsets, nulls) = (map.offsets().clone(), map.nulls().cloned());
            Arc::new(MapArray::try_new(entries.clone(), offsets, inner, nulls, *is_sorted)?)
        }
        _ => Arc::clone(array),
    })
}

fn key_rows(columns: &[ArrayRef]) -> Result<Rows> {
    let fields = columns.iter().map(|column| SortField::new(column.data_type().clone())).collect();
    Ok(RowConverter::new(fields)?.convert_columns(columns)?)
}

/// See [`RowSorter::finish`].
pub(crate) enum SortedRows {
    None,
    Memory(Slices),
    Runs(Box<Merge>),
}

impl Iterator for SortedRows {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Self::None => None,
            Self::Memory(slices) => slices.next(),
            Self::Runs(merge) => merge.batch().transpose(),
        }
    }
}

/// Rows by an order of them, a batch at a time.
pub(crate) struct Slices {
    whole: RecordBatch,
    order: UInt32Array,
    at: usize,
}

impl Slices {
    fn new(whole: RecordBatch, order: UInt32Array) -> Self {
        Self { whole, order, at: 0 }
    }
}

impl Iterator for Slices {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let rows = self.order.len().saturating_sub(self.at).min(BATCH_ROWS);
        if rows == 0 {
            return None;
        }
        let order = self.order.slice(self.at, rows);
        self.at = self.at.saturating_add(rows);
        Some(take_record_batch(&self.whole, &order).map_err(Into::into))
    }
}

/// The next rows of a run.
struct Head {
    reader: StreamReader<BufReader<File>>,
    batch: RecordBatch,
    rows: Rows,
    at: usize,
}

impl Head {
    fn open(path: &Path, keys: &KeyColumns) -> Result<Option<Self>> {
        let file = File::open(path).at(&path.display().to_string(), 0, "")?;
        let mut reader = StreamReader::try_new(BufReader::new(file), None)?;
        let Some(batch) = reader.next().transpose()? else { return Ok(None) };
        let rows = key_rows(&keys(&batch)?)?;
        Ok(Some(Self { reader, batch, rows, at: 0 }))
    }
}

/// Several runs as one.
pub(crate) struct Merge {
    schema: SchemaRef,
    keys: KeyColumns,
    heads: Vec<Option<Head>>,
    _runs: Runs,
}

impl Merge {
    /// The run with the least key; the earliest of several.
    fn least(&self) -> Option<usize> {
        let mut least: Option<(usize, &Head)> = None;
        for (number, head) in self.heads.iter().enumerate() {
            let Some(head) = head else { continue };
            let is_less = match least {
                Some((_, before)) => head.rows.row(head.at) < before.rows.row(before.at),
                None => true,
            };
            if is_less {
                least = Some((number, head));
            }
        }
        least.map(|(number, _)| number)
    }

    fn batch(&mut self) -> Result<Option<RecordBatch>> {
        // The batches that rows are taken from, and which of them each run is at.
        let mut sources: Vec<RecordBatch> = Vec::new();
        let mut current: Vec<Option<usize>> = vec![None; self.heads.len()];
        let mut taken: Vec<(usize, usize)> = Vec::with_capacity(BATCH_ROWS);
        while taken.len() < BATCH_ROWS {
            let Some(number) = self.least() else { break };
            let (Some(Some(head)), Some(place)) = (self.heads.get_mut(number), current.get_mut(number))
            else {
                break;
            };
            let source = *place.get_or_insert_with(|| {
                sources.push(head.batch.clone());
                sources.len().saturating_sub(1)
            });
            taken.push((source, head.at));
            head.at = head.at.saturating_add(1);
            if head.at < head.batch.num_rows() {
                continue;
            }
            *place = None;
            match head.reader.next().transpose()? {
                Some(batch) => {
                    head.rows = key_rows(&(self.keys)(&batch)?)?;
                    (head.batch, head.at) = (batch, 0);
                }
                None => {
                    if let Some(slot) = self.heads.get_mut(number) {
                        *slot = None;
                    }
                }
            }
        }
        if taken.is_empty() {
            return Ok(None);
        }
        let columns = (0..self.schema.fields().len())
            .map(|column| {
                let arrays: Vec<&dyn Array> =
                    sources.iter().map(|source| source.column(column).as_ref()).collect();
                Ok(interleave(&arrays, &taken)?)
            })
            .collect::<Result<Vec<_>>>()?;
        Ok(Some(RecordBatch::try_new(self.schema.clone(), columns)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::types::Int32Type;
    use arrow_array::{Int32Array, StringViewArray};

    fn sort(max_bytes: usize) -> (Vec<(i32, String)>, PathBuf) {
        let folder = std::env::temp_dir().join(format!("pilaster-sort-{}-{max_bytes}", std::process::id()));
        let batch = |from: i32| {
            let keys: Int32Array =
                (from..from + 40_000).map(|row| (row % 7 > 0).then_some(row % 1000)).collect();
            let texts: StringViewArray = (from..from + 40_000).map(|row| Some(format!("{row:09}"))).collect();
            let columns: [(&str, ArrayRef, bool); 2] =
                [("k", Arc::new(keys), true), ("t", Arc::new(texts), true)];
            RecordBatch::try_from_iter_with_nullable(columns).unwrap()
        };
        let keys: KeyColumns = Box::new(|batch| Ok(vec![Arc::clone(batch.column(0))]));
        let mut sorter = RowSorter::new(batch(0).schema(), keys, max_bytes, folder.clone());
        for part in 0..4 {
            sorter.push(batch(part * 40_000)).unwrap();
        }
        let mut found = Vec::new();
        for batch in sorter.finish().unwrap() {
            let batch = batch.unwrap();
            let keys = batch.column(0).as_primitive::<Int32Type>();
            let texts = batch.column(1).as_string_view();
            found.extend(
                keys.iter().zip(texts).map(|(key, text)| (key.unwrap_or(-1), text.unwrap().to_string())),
            );
        }
        (found, folder)
    }

    #[test]
    fn runs_give_the_order_that_memory_gives() {
        let (in_memory, _) = sort(usize::MAX);
        assert_eq!(in_memory.len(), 160_000);
        assert!(in_memory.is_sorted());
        let (through_files, folder) = sort(2_000_000);
        assert_eq!(in_memory, through_files);
        assert!(!folder.exists());
    }
}
