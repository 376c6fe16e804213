//! The metadata file of a tablet; its bytes are described in [`crate::tablet`]'s `meta`.

use pilaster_core::{Error, Result};
use prost::Message;

use super::options::{TabletLayout, TabletWriteOptions};
use super::replaced::Bitmaps;
use crate::schema::{KeysType, TabletSchema};
use crate::segment::SegmentSummary;
use crate::tablet::header::{NEW_HEADER_BYTES, adler32};
use crate::tablet::messages::{DeleteBitmapPb, KeyBoundsPb, RowsetMetaPb, TabletMetaPb, UniqueIdPb};
use crate::tablet::meta::{ROWSET_BETA, STATE_VISIBLE};
use crate::tablet::schema_message::schema_message;

const STATE_RUNNING: i32 = 1;
const OVERLAPPING: i32 = 1;
const NONOVERLAPPING: i32 = 2;
const HEADER_VERSION: u32 = 1;
/// The top byte of a rowset id of 192 bits.
const ROWSET_ID_VERSION: u64 = 2;

/// A rowset being described.
#[derive(Debug)]
pub(super) struct Rowset {
    pub id: String,
    pub first_version: i64,
    pub last_version: i64,
    pub segments: Vec<SegmentSummary>,
}

/// What all rowsets of a tablet say.
#[derive(Debug)]
pub(super) struct Header<'a> {
    pub options: &'a TabletWriteOptions,
    pub schema: &'a TabletSchema,
    pub creation_time: i64,
}

/// The id of the rowset with this number: version, counter, and the id of whoever wrote it.
pub(super) fn rowset_id(options: &TabletWriteOptions, number: u64) -> String {
    let (high, low) = uid(options);
    let counter = ROWSET_ID_VERSION << 56 | number & (u64::MAX >> 8);
    format!("{counter:016x}{:016x}{:016x}", high.cast_unsigned(), low.cast_unsigned())
}

fn uid(options: &TabletWriteOptions) -> (i64, i64) {
    options.tablet_uid.unwrap_or_else(|| {
        let mixed = options.tablet_id.wrapping_mul(0x9e37_79b9_7f4a_7c15_u64.cast_signed());
        (mixed, options.table_id.wrapping_mul(0x2545_f491_4f6c_dd1d) ^ mixed.rotate_left(29))
    })
}

impl Header<'_> {
    /// The bytes of the file.
    pub fn bytes(&self, rowsets: &[Rowset], replaced: Bitmaps) -> Result<Vec<u8>> {
        let message = self.message(rowsets, replaced)?.encode_to_vec();
        let length = message.len() as u64;
        let file_length = length.saturating_add(NEW_HEADER_BYTES as u64);
        let mut file = Vec::with_capacity(message.len().saturating_add(NEW_HEADER_BYTES));
        file.extend(0u64.to_le_bytes());
        file.extend(HEADER_VERSION.to_le_bytes());
        file.extend(file_length.to_le_bytes());
        file.extend(0u32.to_le_bytes());
        file.extend(length.to_le_bytes());
        file.extend(adler32(&message).to_le_bytes());
        file.extend(0u32.to_le_bytes());
        file.extend(message);
        Ok(file)
    }

    fn message(&self, rowsets: &[Rowset], replaced: Bitmaps) -> Result<TabletMetaPb> {
        let options = self.options;
        let is_merge_on_write = self.schema.keys_type == KeysType::Unique && self.schema.merge_on_write;
        let mut bitmap = DeleteBitmapPb::default();
        for ((rowset, segment, version), rows) in replaced {
            let rowset = rowsets.get(rowset).ok_or_else(|| Error::internal("no such rowset"))?;
            let mut bytes = Vec::with_capacity(rows.serialized_size());
            rows.serialize_into(&mut bytes)?;
            bitmap.rowset_ids.push(rowset.id.clone());
            bitmap.segment_ids.push(segment);
            bitmap.versions.push(version);
            bitmap.segment_delete_bitmaps.push(bytes);
        }
        Ok(TabletMetaPb {
            table_id: Some(options.table_id),
            partition_id: Some(options.partition_id),
            tablet_id: Some(options.tablet_id),
            schema_hash: Some(options.schema_hash),
            shard_id: Some(match options.layout {
                TabletLayout::Snapshot => 0,
                TabletLayout::StorageRoot { shard } => shard,
            }),
            creation_time: Some(self.creation_time),
            cumulative_layer_point: Some(-1),
            tablet_state: Some(STATE_RUNNING),
            schema: Some(schema_message(self.schema)),
            rs_metas: rowsets.iter().map(|rowset| self.rowset(rowset)).collect(),
            in_restore_mode: Some(false),
            tablet_uid: Some(self.uid()),
            preferred_rowset_type: Some(ROWSET_BETA),
            tablet_type: Some(0),
            stale_rs_metas: Vec::new(),
            replica_id: Some(options.replica_id),
            delete_bitmap: is_merge_on_write.then_some(bitmap),
            enable_unique_key_merge_on_write: Some(is_merge_on_write),
            encryption_algorithm: None,
            tablet_role: None,
            index_id: None,
        })
    }

    fn uid(&self) -> UniqueIdPb {
        let (hi, lo) = uid(self.options);
        UniqueIdPb { hi: Some(hi), lo: Some(lo) }
    }

    fn rowset(&self, rowset: &Rowset) -> RowsetMetaPb {
        let long = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        let rows: u64 = rowset.segments.iter().map(|segment| segment.rows).sum();
        let bytes: u64 = rowset.segments.iter().map(|segment| segment.bytes).sum();
        RowsetMetaPb {
            rowset_id: Some(0),
            partition_id: Some(self.options.partition_id),
            tablet_id: Some(self.options.tablet_id),
            txn_id: Some(rowset.last_version),
            tablet_schema_hash: Some(self.options.schema_hash),
            rowset_type: Some(ROWSET_BETA),
            rowset_state: Some(STATE_VISIBLE),
            start_version: Some(rowset.first_version),
            end_version: Some(rowset.last_version),
            version_hash: Some(0),
            num_rows: Some(long(rows)),
            total_disk_size: Some(long(bytes)),
            data_disk_size: Some(long(bytes)),
            index_disk_size: Some(0),
            delete_predicate: None,
            empty: Some(rows == 0),
            creation_time: Some(self.creation_time),
            tablet_uid: Some(self.uid()),
            num_segments: Some(long(rowset.segments.len() as u64)),
            rowset_id_v2: Some(rowset.id.clone()),
            resource_id: None,
            newest_write_timestamp: Some(self.creation_time),
            segments_key_bounds: rowset
                .segments
                .iter()
                .map(|segment| KeyBoundsPb {
                    min_key: Some(segment.min_key.clone()),
                    max_key: Some(segment.max_key.clone()),
                })
                .collect(),
            tablet_schema: Some(schema_message(self.schema)),
            segments_overlap_pb: Some(if self.is_ordered(&rowset.segments) {
                NONOVERLAPPING
            } else {
                OVERLAPPING
            }),
            num_segment_rows: rowset.segments.iter().map(|segment| long(segment.rows)).collect(),
            segments_file_size: rowset.segments.iter().map(|segment| long(segment.bytes)).collect(),
        }
    }

    /// Whether each segment's keys are above those of the one before. Keys tell it only as long as no string stands before
    /// their end.
    fn is_ordered(&self, segments: &[SegmentSummary]) -> bool {
        let sort = self.schema.sort_columns();
        let has_inner_string =
            sort.iter().rev().skip(1).any(|column| matches!(column.type_name.as_str(), "VARCHAR" | "STRING"));
        let ascends =
            |pair: &[SegmentSummary]| matches!(pair, [before, after] if before.max_key < after.min_key);
        let is_sorted_by_key =
            self.schema.cluster_key_uids.is_empty() && !has_inner_string && !sort.is_empty();
        segments.len() <= 1 || (is_sorted_by_key && segments.windows(2).all(ascends))
    }
}
