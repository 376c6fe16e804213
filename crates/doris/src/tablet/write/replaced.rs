//! Rows of a merge-on-write table that later ones replace.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, UInt32Type, UInt64Type};
use arrow_array::{ArrayRef, BinaryArray, Int64Array, RecordBatch, UInt32Array, UInt64Array};
use arrow_schema::{DataType, Field, Schema};
use pilaster_core::sort::{SortOptions, Sorter};
use pilaster_core::{Error, Result};
use roaring::RoaringBitmap;

use crate::schema::{SEQUENCE_COLUMN, SchemaColumn, TabletSchema};
use crate::segment::row_keys;

/// Rows by rowset, segment and the version in which they were replaced.
pub(super) type Bitmaps = Vec<((usize, u32, i64), RoaringBitmap)>;

/// Where the living row of a key is, and by what it wins against others.
#[derive(Debug)]
struct Place {
    rowset: usize,
    segment: u32,
    row: u32,
    sequence: Vec<u8>,
}

/// Notes the key of every row, and finds those that lose against another of their key.
#[derive(Debug)]
pub(super) struct Replaced {
    /// Keys with their places, in the order in which they came.
    places: Sorter,
}

impl Replaced {
    /// Keys of up to so many bytes are kept in memory, more in `folder`.
    pub fn new(memory_bytes: usize, folder: PathBuf) -> Self {
        let field = |name: &str, data_type: DataType| Field::new(name, data_type, false);
        let schema = Schema::new(vec![
            field("key", DataType::Binary),
            field("sequence", DataType::Binary),
            field("rowset", DataType::UInt64),
            field("segment", DataType::UInt32),
            field("row", DataType::UInt32),
            field("version", DataType::Int64),
        ]);
        let options = SortOptions::new(folder).with_memory_bytes(memory_bytes);
        let places = Sorter::new(Arc::new(schema), options, |batch, keys| {
            let column = batch.column(0).as_binary::<i32>();
            column.iter().for_each(|key| keys.push_bytes(key.unwrap_or_default()));
            Ok(())
        });
        Self { places }
    }

    /// Adds rows of a segment, the first of which has the number `first_row`.
    pub fn add(
        &mut self,
        schema: &TabletSchema,
        batch: &RecordBatch,
        (rowset, segment, version): (usize, u32, i64),
        first_row: u32,
    ) -> Result<()> {
        let count = batch.num_rows();
        let keys = row_keys(schema, batch, true)?;
        let sequences = match batch.column_by_name(SEQUENCE_COLUMN) {
            Some(_) => Some(row_keys(&by_sequence(schema), batch, true)?),
            None => None,
        };
        let end = u32::try_from(count).ok().and_then(|count| first_row.checked_add(count));
        let end = end.ok_or_else(|| Error::invalid("2^32 rows in a segment"))?;
        let sequence = |row: usize| sequences.as_ref().map(|keys| keys.key(row)).unwrap_or_default();
        let columns: Vec<ArrayRef> = vec![
            Arc::new(BinaryArray::from_iter_values((0..count).map(|row| keys.key(row)))),
            Arc::new(BinaryArray::from_iter_values((0..count).map(sequence))),
            Arc::new(UInt64Array::from(vec![rowset as u64; count])),
            Arc::new(UInt32Array::from(vec![segment; count])),
            Arc::new(UInt32Array::from_iter_values(first_row..end)),
            Arc::new(Int64Array::from(vec![version; count])),
        ];
        self.places.push(&RecordBatch::try_new(Arc::clone(self.places.schema()), columns)?)
    }

    /// The rows that were replaced.
    pub fn finish(self) -> Result<Bitmaps> {
        let mut bitmaps: BTreeMap<(usize, u32, i64), RoaringBitmap> = BTreeMap::new();
        let mut living: Option<(Vec<u8>, Place)> = None;
        for batch in self.places.finish()? {
            let batch = batch?;
            let (keys, sequences) = (batch.column(0).as_binary::<i32>(), batch.column(1).as_binary::<i32>());
            let rowsets = batch.column(2).as_primitive::<UInt64Type>().values();
            let segments = batch.column(3).as_primitive::<UInt32Type>().values();
            let rows = batch.column(4).as_primitive::<UInt32Type>().values();
            let versions = batch.column(5).as_primitive::<Int64Type>().values();
            let places = rowsets
                .iter()
                .zip(segments.iter())
                .zip(rows.iter())
                .zip(versions.iter())
                .zip(sequences.iter());
            for (key, ((((rowset, segment), row), version), sequence)) in keys.iter().zip(places) {
                let (key, sequence) = (key.unwrap_or_default(), sequence.unwrap_or_default().to_vec());
                let rowset = usize::try_from(*rowset).map_err(|_| Error::internal("no such rowset"))?;
                let place = Place { rowset, segment: *segment, row: *row, sequence };
                match &mut living {
                    Some((known_key, known)) if known_key == key => {
                        // Of equal sequences the newest wins.
                        let loser = if place.sequence >= known.sequence {
                            std::mem::replace(known, place)
                        } else {
                            place
                        };
                        let rows = bitmaps.entry((loser.rowset, loser.segment, *version)).or_default();
                        rows.insert(loser.row);
                    }
                    _ => living = Some((key.to_vec(), place)),
                }
            }
        }
        Ok(bitmaps.into_iter().collect())
    }
}

/// A schema whose key is the sequence column.
fn by_sequence(schema: &TabletSchema) -> TabletSchema {
    let columns = schema
        .columns
        .iter()
        .map(|column| SchemaColumn { is_key: column.name == SEQUENCE_COLUMN, ..column.clone() });
    TabletSchema {
        columns: columns.collect(),
        num_short_key_columns: 0,
        merge_on_write: false,
        cluster_key_uids: Vec::new(),
        ..schema.clone()
    }
}
