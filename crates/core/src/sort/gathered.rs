//! Rows in memory, and their order.

use std::sync::Arc;

use arrow_array::{Array, RecordBatch};
use arrow_schema::SchemaRef;
use arrow_select::interleave::interleave;

use super::{BATCH_ROWS, batch_of, size};
use crate::merge::Keys;
use crate::{Error, Result};

/// What a batch and each of its columns take beside values: small batches are mostly that.
const OVERHEAD: usize = 256;

/// Rows in the order in which they came, with their keys.
#[derive(Debug, Default)]
pub(super) struct Gathered {
    batches: Vec<RecordBatch>,
    keys: Vec<Keys>,
    /// Of each batch, with keys and places.
    batch_bytes: Vec<usize>,
    bytes: usize,
}

/// A row, and the first bytes of its key, which decide most comparisons.
#[derive(Debug, Clone, Copy)]
struct Place {
    prefix: u64,
    batch: u32,
    row: u32,
}

/// The memory that the rows of a batch take until they are sorted.
pub(super) fn bytes(batch: &RecordBatch, keys: &Keys) -> usize {
    let columns = batch.columns().iter().map(|column| size::bytes(column).saturating_add(OVERHEAD));
    let places = batch.num_rows().saturating_mul(size_of::<Place>());
    let rest = keys.memory_bytes().saturating_add(places).saturating_add(OVERHEAD);
    columns.fold(rest, usize::saturating_add)
}

impl Gathered {
    pub fn is_empty(&self) -> bool {
        self.batches.is_empty()
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Adds rows that take so many bytes.
    pub fn add(&mut self, batch: RecordBatch, mut keys: Keys, bytes: usize) -> Result<()> {
        let is_countable =
            u32::try_from(batch.num_rows()).is_ok() && u32::try_from(self.batches.len()).is_ok();
        if !is_countable {
            return Err(Error::invalid("more rows than can be sorted at once"));
        }
        keys.shrink();
        self.batches.push(batch);
        self.keys.push(keys);
        self.batch_bytes.push(bytes);
        self.bytes = self.bytes.saturating_add(bytes);
        Ok(())
    }

    /// The rows by their keys.
    pub fn sorted(self, schema: &SchemaRef) -> SortedInMemory {
        let mut order = Vec::with_capacity(self.keys.iter().map(Keys::len).sum());
        for (batch, keys) in (0..=u32::MAX).zip(&self.keys) {
            let places = (0..=u32::MAX).zip(0..keys.len());
            order.extend(places.map(|(row, at)| Place { prefix: prefix(keys.get(at)), batch, row }));
        }
        let key =
            |place: &Place| self.keys.get(place.batch as usize).map(|keys| keys.get(place.row as usize));
        // No two places are equal, so that rows of equal keys stay in their order.
        order.sort_unstable_by(|a, b| {
            let by_key = || key(a).cmp(&key(b));
            a.prefix.cmp(&b.prefix).then_with(by_key).then_with(|| (a.batch, a.row).cmp(&(b.batch, b.row)))
        });
        SortedInMemory { schema: Arc::clone(schema), gathered: self, order, at: 0 }
    }
}

/// The first eight bytes of a key; zeros take the place of those that it does not have, which no key that is less has others for.
fn prefix(key: &[u8]) -> u64 {
    let mut first = [0; 8];
    first.iter_mut().zip(key).for_each(|(to, from)| *to = *from);
    u64::from_be_bytes(first)
}

/// Rows in order, out of memory.
#[derive(Debug)]
pub(super) struct SortedInMemory {
    schema: SchemaRef,
    gathered: Gathered,
    order: Vec<Place>,
    at: usize,
}

impl SortedInMemory {
    /// The key of the first row.
    pub fn first_key(&self) -> &[u8] {
        let place = self.order.first();
        let keys = place.and_then(|place| Some((self.gathered.keys.get(place.batch as usize)?, place.row)));
        keys.map(|(keys, row)| keys.get(row as usize)).unwrap_or_default()
    }

    /// The next rows: no more than about `most_bytes` of them, but one at least. `None` at the end.
    pub fn next_batch(&mut self, most_bytes: usize) -> Result<Option<RecordBatch>> {
        let mut bytes = 0usize;
        let rest = self.order.get(self.at..).unwrap_or_default();
        let rows = rest.iter().take(BATCH_ROWS).take_while(|place| {
            let is_wanted = bytes < most_bytes;
            bytes = bytes.saturating_add(self.share(place));
            is_wanted
        });
        let rows: Vec<(usize, usize)> =
            rows.map(|place| (place.batch as usize, place.row as usize)).collect();
        if rows.is_empty() {
            return Ok(None);
        }
        self.at = self.at.saturating_add(rows.len());
        let columns = (0..self.schema.fields().len()).map(|column| {
            let arrays = self.gathered.batches.iter().filter_map(|batch| batch.columns().get(column));
            let arrays: Vec<&dyn Array> = arrays.map(AsRef::as_ref).collect();
            Ok(interleave(&arrays, &rows)?)
        });
        batch_of(&self.schema, columns.collect::<Result<_>>()?, rows.len()).map(Some)
    }

    /// What a row takes, if those of its batch are alike.
    fn share(&self, place: &Place) -> usize {
        let batch = place.batch as usize;
        let bytes = self.gathered.batch_bytes.get(batch).copied().unwrap_or_default();
        let rows = self.gathered.keys.get(batch).map_or(0, Keys::len);
        bytes.checked_div(rows).unwrap_or_default()
    }
}
