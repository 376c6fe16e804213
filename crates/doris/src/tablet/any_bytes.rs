//! What describes a tablet, on any bytes: for fuzz targets and property tests.

use pilaster_core::{Limits, Result};

use super::delete_predicate::{self, Columns};
use super::meta::TabletMeta;
use crate::messages;

/// Any bytes as the metadata of a tablet, in its file, as a bare message and as JSON, and whatever it says followed up.
pub(crate) fn parse_any_meta(bytes: &[u8], limits: &Limits) {
    let message = messages::parse(bytes, "TabletMetaPB").and_then(TabletMeta::from_message);
    for meta in [TabletMeta::parse(bytes, limits), message, TabletMeta::parse_json(bytes, limits)] {
        // What is refused was refused without harm, which is all that is asked.
        let _ = meta.and_then(|meta| follow(&meta));
    }
}

fn follow(meta: &TabletMeta) -> Result<()> {
    let newest = meta.newest_version()?;
    let rowsets: Vec<_> = meta.rowsets_at(newest)?.into_iter().cloned().collect();
    let mut columns = Columns { schema: &meta.schema, rowsets: &rowsets, dropped: Vec::new() };
    for rowset in &rowsets {
        if let Some(conditions) = &rowset.delete_predicate {
            delete_predicate::keeps(rowset, conditions, &mut columns)?;
        }
        for segment in 0..rowset.num_segments.min(4) {
            meta.deleted.rows(&rowset.id, segment, newest);
        }
    }
    Ok(())
}
