//! Rows of merge-on-write tablets that newer rowsets replaced: roaring bitmaps by rowset, segment and version.

use std::collections::HashMap;

use pilaster_core::{Error, Result};
use roaring::RoaringBitmap;

use super::messages::DeleteBitmapPb;

/// Segment numbers from here on are marks in a delete bitmap, and no segments.
const FIRST_MARK: u32 = 0xffff_fffe;

/// Rows that newer rowsets replaced: by rowset and segment, with the version that replaced them.
#[derive(Debug, Clone, Default)]
pub(crate) struct DeletedRows(HashMap<(String, u32), Vec<(i64, RoaringBitmap)>>);

impl DeletedRows {
    pub fn parse(message: &DeleteBitmapPb) -> Result<Self> {
        let count = message.rowset_ids.len();
        let counts =
            [message.segment_ids.len(), message.versions.len(), message.segment_delete_bitmaps.len()];
        if counts != [count; 3] {
            return Err(Error::corrupt(
                format!("{count} entries in each list of the delete bitmap"),
                format!("{counts:?}"),
            ));
        }
        let mut deleted = Self::default();
        let places = message.rowset_ids.iter().zip(&message.segment_ids);
        for ((rowset, segment), (version, bytes)) in
            places.zip(message.versions.iter().zip(&message.segment_delete_bitmaps))
        {
            // Version 0 is of loads that were never finished.
            if *segment >= FIRST_MARK || *version == 0 {
                continue;
            }
            let bitmap = RoaringBitmap::deserialize_from(bytes.as_slice())
                .map_err(|error| Error::corrupt("a roaring bitmap of deleted rows", error))?;
            deleted.0.entry((rowset.clone(), *segment)).or_default().push((*version, bitmap));
        }
        Ok(deleted)
    }

    /// The rows of a segment that are gone at `version`.
    pub fn rows(&self, rowset: &str, segment: u32, version: i64) -> RoaringBitmap {
        let entries = self.0.get(&(rowset.to_string(), segment));
        entries
            .into_iter()
            .flatten()
            .filter(|(at, _)| *at <= version)
            .fold(RoaringBitmap::new(), |all, (_, rows)| all | rows)
    }
}
