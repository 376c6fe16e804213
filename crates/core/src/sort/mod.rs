//! Rows put in the order of keys within a bound of memory: in memory as long as they fit, else through sorted runs in temporary
//! files, which are merged at the end.
//!
//! Keys are bytes that compare as the rows do; how they are made is the format's matter, as for [`crate::merge`]. Rows of equal
//! keys keep the order in which they came, so that a writer can tell the last of them.
//!
//! The files have no name, as far as the system can do without: they are gone with the process, however it ends.

mod gathered;
mod runs;
mod size;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::SchemaRef;

use crate::merge::Keys;
use crate::{Error, Result};
use gathered::{Gathered, SortedInMemory};
use runs::{MergedRuns, Runs};

/// Memory for rows that are sorted, unless something else is asked for: with what reading and writing take beside it, a
/// conversion stays below 512 MiB.
pub const DEFAULT_MEMORY_BYTES: usize = 128 << 20;

/// Rows that are given at once.
const BATCH_ROWS: usize = 8192;

/// Appends the key of every row of a batch, in their order.
pub type KeysOf = dyn Fn(&RecordBatch, &mut Keys) -> Result<()> + Send + Sync;

/// How rows are sorted.
#[derive(Debug, Clone)]
pub struct SortOptions {
    memory_bytes: usize,
    folder: PathBuf,
}

impl SortOptions {
    /// Rows of up to [`DEFAULT_MEMORY_BYTES`] in memory, more of them in files in `folder`, which must exist by then.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { memory_bytes: DEFAULT_MEMORY_BYTES, folder: folder.into() }
    }

    /// About how many bytes of memory rows, their keys and the merge may take.
    #[must_use]
    pub fn with_memory_bytes(mut self, bytes: usize) -> Self {
        self.memory_bytes = bytes.max(1);
        self
    }
}

/// Takes rows in any order and gives them back in that of their keys; rows of equal keys stay in the order in which they came.
///
/// ```
/// use std::sync::Arc;
/// use arrow_array::cast::AsArray;
/// use arrow_array::types::Int32Type;
/// use arrow_array::{ArrayRef, Int32Array, RecordBatch};
/// use pilaster_core::sort::{SortOptions, Sorter};
///
/// let batch = RecordBatch::try_from_iter([("n", Arc::new(Int32Array::from(vec![3, 1, 2])) as ArrayRef)])?;
/// let options = SortOptions::new(std::env::temp_dir()).with_memory_bytes(1 << 20);
/// let mut sorter = Sorter::new(batch.schema(), options, |batch, keys| {
///     let numbers = batch.column(0).as_primitive::<Int32Type>();
///     for number in numbers.values() {
///         keys.push_bytes(&number.cast_unsigned().to_be_bytes());
///     }
///     Ok(())
/// });
/// sorter.push(&batch)?;
/// for sorted in sorter.finish()? {
///     assert_eq!(sorted?.column(0).as_primitive::<Int32Type>().values(), &[1, 2, 3]);
/// }
/// # Ok::<(), pilaster_core::Error>(())
/// ```
pub struct Sorter {
    schema: SchemaRef,
    keys_of: Arc<KeysOf>,
    memory_bytes: usize,
    gathered: Gathered,
    runs: Runs,
}

impl std::fmt::Debug for Sorter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sorter").field("memory_bytes", &self.memory_bytes).finish_non_exhaustive()
    }
}

impl Sorter {
    /// Sorts rows of `schema` by the keys that `keys_of` appends for them.
    pub fn new(
        schema: SchemaRef,
        options: SortOptions,
        keys_of: impl Fn(&RecordBatch, &mut Keys) -> Result<()> + Send + Sync + 'static,
    ) -> Self {
        let keys_of: Arc<KeysOf> = Arc::new(keys_of);
        let SortOptions { memory_bytes, folder } = options;
        let runs = Runs::new(Arc::clone(&schema), Arc::clone(&keys_of), memory_bytes, folder);
        Self { schema, keys_of, memory_bytes, gathered: Gathered::default(), runs }
    }

    /// Takes rows.
    ///
    /// # Errors
    /// Those of making keys; [`crate::ErrorKind::InvalidInput`] if the batch has other columns; [`crate::ErrorKind::Io`].
    pub fn push(&mut self, batch: &RecordBatch) -> Result<()> {
        if batch.num_rows() == 0 {
            return Ok(());
        }
        let columns = batch.columns().iter().map(size::copied).collect::<Result<Vec<_>>>()?;
        let batch = batch_of(&self.schema, columns, batch.num_rows())?;
        let keys = keys_of(&*self.keys_of, &batch)?;
        let bytes = gathered::bytes(&batch, &keys);
        if self.gathered.bytes().saturating_add(bytes) > self.memory_bytes {
            self.spill()?;
        }
        self.gathered.add(batch, keys, bytes)
    }

    /// The schema of the rows.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// How many runs were written to files so far.
    pub fn spilled_runs(&self) -> u64 {
        self.runs.written()
    }

    fn spill(&mut self) -> Result<()> {
        match std::mem::take(&mut self.gathered) {
            rows if rows.is_empty() => Ok(()),
            rows => self.runs.add(rows.sorted(&self.schema)),
        }
    }

    /// The rows in order.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Io`]
    pub fn finish(mut self) -> Result<SortedRows> {
        let schema = Arc::clone(&self.schema);
        let rows = if self.runs.written() == 0 {
            Rows::Memory(self.gathered.sorted(&schema))
        } else {
            self.spill()?;
            Rows::Runs(Box::new(self.runs.merged()?))
        };
        Ok(SortedRows { schema, rows })
    }
}

/// Rows with the bytes of their own strings only: those of a scan may keep blocks of a file in memory that hold far more.
///
/// # Errors
/// If the strings of a batch are more than an array can hold.
pub fn with_own_values(batch: &RecordBatch) -> Result<RecordBatch> {
    let columns = batch.columns().iter().map(size::copied).collect::<Result<Vec<_>>>()?;
    batch_of(&batch.schema(), columns, batch.num_rows())
}

/// The keys of all rows of a batch.
fn keys_of(make: &KeysOf, batch: &RecordBatch) -> Result<Keys> {
    let mut keys = Keys::default();
    keys.clear(batch.num_rows());
    make(batch, &mut keys)?;
    if keys.len() != batch.num_rows() {
        return Err(Error::internal(format!("{} keys for {} rows to sort", keys.len(), batch.num_rows())));
    }
    Ok(keys)
}

fn batch_of(schema: &SchemaRef, columns: Vec<ArrayRef>, rows: usize) -> Result<RecordBatch> {
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    Ok(RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)?)
}

/// See [`Sorter::finish`]. Its files are gone when it is.
pub struct SortedRows {
    schema: SchemaRef,
    rows: Rows,
}

enum Rows {
    Memory(SortedInMemory),
    Runs(Box<MergedRuns>),
}

impl std::fmt::Debug for SortedRows {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SortedRows").field("schema", &self.schema).finish_non_exhaustive()
    }
}

impl SortedRows {
    /// The schema of the batches.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }
}

impl Iterator for SortedRows {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        match &mut self.rows {
            Rows::Memory(rows) => rows.next_batch(usize::MAX).transpose(),
            Rows::Runs(rows) => rows.next_batch().transpose(),
        }
    }
}
