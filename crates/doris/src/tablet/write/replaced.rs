//! Rows of a merge-on-write table that later ones replace.

use std::collections::{BTreeMap, HashMap};

use arrow_array::RecordBatch;
use pilaster_core::{Error, Result};
use roaring::RoaringBitmap;

use crate::schema::{SEQUENCE_COLUMN, SchemaColumn, TabletSchema};
use crate::segment::row_keys;

/// Where the living row of a key is.
#[derive(Debug)]
struct Place {
    rowset: usize,
    segment: u32,
    row: u32,
    sequence: Vec<u8>,
}

/// Remembers every key, and marks the rows that lose against another of their key.
#[derive(Debug, Default)]
pub(super) struct Replaced {
    living: HashMap<Vec<u8>, Place>,
    /// By rowset, segment and the version in which they were replaced.
    bitmaps: BTreeMap<(usize, u32, i64), RoaringBitmap>,
}

impl Replaced {
    /// Adds rows of a segment, the first of which has the number `first_row`.
    pub fn add(
        &mut self,
        schema: &TabletSchema,
        batch: &RecordBatch,
        (rowset, segment, version): (usize, u32, i64),
        first_row: u32,
    ) -> Result<()> {
        let keys = row_keys(schema, batch, true)?;
        let sequences = match batch.column_by_name(SEQUENCE_COLUMN) {
            Some(_) => Some(row_keys(&by_sequence(schema), batch, true)?),
            None => None,
        };
        for number in 0..batch.num_rows() {
            let row = u32::try_from(number)
                .ok()
                .and_then(|number| first_row.checked_add(number))
                .ok_or_else(|| Error::invalid("2^32 rows in a segment"))?;
            let sequence = sequences.as_ref().map(|keys| keys.key(number).to_vec()).unwrap_or_default();
            let place = Place { rowset, segment, row, sequence };
            match self.living.get_mut(keys.key(number)) {
                None => {
                    self.living.insert(keys.key(number).to_vec(), place);
                }
                Some(known) => {
                    // Of equal sequences the newest wins.
                    let loser = if place.sequence >= known.sequence {
                        std::mem::replace(known, place)
                    } else {
                        place
                    };
                    let rows = self.bitmaps.entry((loser.rowset, loser.segment, version)).or_default();
                    rows.insert(loser.row);
                }
            }
        }
        Ok(())
    }

    pub fn finish(self) -> Vec<((usize, u32, i64), RoaringBitmap)> {
        self.bitmaps.into_iter().collect()
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
