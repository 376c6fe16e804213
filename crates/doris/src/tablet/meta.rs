//! The metadata of a tablet: its schema, its rowsets and the versions they hold.
//!
//! ```text
//! .hdr = u64 0 | u32 version 1 | u64 file length | u32 0 | u64 message length | u32 Adler-32 of the message | u32 0 | TabletMetaPB
//! old  = u32 file length | u32 checksum | u32 message length | u32 Adler-32 | u32 0 | TabletMetaPB
//! ```

use std::collections::{BTreeSet, HashMap};

use pilaster_core::{Error, Limits, Result};
use roaring::RoaringBitmap;

use super::messages::{
    ColumnPb, DeleteBitmapPb, DeletePredicatePb, RowsetMetaPb, TabletMetaPb, TabletSchemaPb,
};
use super::schema_message;
use crate::messages;
use crate::schema::{KeysType, SEQUENCE_COLUMN, SchemaColumn, TabletSchema};

pub(super) const NEW_HEADER_BYTES: usize = 40;
const OLD_HEADER_BYTES: usize = 20;
pub(super) const STATE_VISIBLE: i32 = 2;
pub(super) const ROWSET_BETA: i32 = 1;
/// Segment numbers from here on are marks in a delete bitmap, and no segments.
const FIRST_MARK: u32 = 0xffff_fffe;

/// So many segments no rowset has: Doris ends a load at a thousand unless told otherwise.
const MAX_SEGMENTS: u32 = 100_000;

/// What a `.hdr` file, or its JSON form, says.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct TabletMeta {
    /// Id of the tablet.
    pub tablet_id: i64,
    /// Id of the table.
    pub table_id: i64,
    /// Id of the partition.
    pub partition_id: i64,
    /// The current schema.
    pub schema: TabletSchema,
    /// Rowsets that make up the tablet.
    pub rowsets: Vec<RowsetMeta>,
    /// Rowsets that others have replaced.
    pub stale_rowsets: Vec<RowsetMeta>,
    pub(crate) deleted: DeletedRows,
}

/// A rowset: what one load or one compaction wrote.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RowsetMeta {
    /// Its id, as in the names of its files.
    pub id: String,
    /// First version it holds.
    pub start_version: i64,
    /// Last version it holds.
    pub end_version: i64,
    /// Number of its segments.
    pub num_segments: u32,
    /// Its number of rows.
    pub num_rows: u64,
    /// The number of rows of each segment, where it is known.
    pub segment_rows: Vec<u64>,
    /// Whether its segments are in object storage.
    pub is_remote: bool,
    pub(crate) delete_predicate: Option<DeletePredicatePb>,
    /// The schema it was written with, if it says.
    pub schema: Option<TabletSchema>,
}

/// Rows that newer rowsets replaced: by rowset and segment, with the version that replaced them.
#[derive(Debug, Clone, Default)]
pub(crate) struct DeletedRows(HashMap<(String, u32), Vec<(i64, RoaringBitmap)>>);

impl DeletedRows {
    fn parse(message: &DeleteBitmapPb) -> Result<Self> {
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

impl RowsetMeta {
    /// The number of rows of a segment, if it is known without its file.
    pub fn rows_of_segment(&self, number: u32) -> Option<u64> {
        let listed = self.segment_rows.get(number as usize).copied();
        listed.or((self.num_segments == 1).then_some(self.num_rows))
    }
}

impl TabletMeta {
    /// Parses a `.hdr` file.
    ///
    /// # Errors
    /// [`pilaster_core::ErrorKind::Corrupt`] if its lengths, its checksum or its message are wrong,
    /// [`pilaster_core::ErrorKind::Unsupported`] if the tablet is encrypted or older than segments.
    pub fn parse(hdr: &[u8], limits: &Limits) -> Result<Self> {
        limits.metadata(hdr.len() as u64)?;
        let message = open_header(hdr)?;
        Self::from_message(messages::parse(message, "TabletMetaPB")?)
    }

    /// Parses a `.hdr.json` file.
    ///
    /// # Errors
    /// As [`TabletMeta::parse`].
    pub fn parse_json(json: &[u8], limits: &Limits) -> Result<Self> {
        limits.metadata(json.len() as u64)?;
        // By way of a value, since Doris writes some fields twice.
        let message: TabletMetaPb = serde_json::from_slice::<serde_json::Value>(json)
            .and_then(serde_json::from_value)
            .map_err(|error| Error::corrupt("the metadata of a tablet as JSON", error))?;
        Self::from_message(message)
    }

    pub(super) fn from_message(meta: TabletMetaPb) -> Result<Self> {
        if meta.encryption_algorithm.unwrap_or(0) != 0 {
            return Err(Error::unsupported("an encrypted tablet"));
        }
        let mut schema = parse_schema(&messages::required(meta.schema, "schema")?)?;
        schema.merge_on_write = meta.enable_unique_key_merge_on_write.unwrap_or(false);
        Ok(Self {
            tablet_id: messages::required(meta.tablet_id, "tablet_id")?,
            table_id: meta.table_id.unwrap_or(0),
            partition_id: meta.partition_id.unwrap_or(0),
            schema,
            rowsets: parse_rowsets(&meta.rs_metas)?,
            stale_rowsets: parse_rowsets(&meta.stale_rs_metas)?,
            deleted: DeletedRows::parse(&meta.delete_bitmap.unwrap_or_default())?,
        })
    }

    /// The newest version.
    ///
    /// # Errors
    /// If there is no rowset.
    pub fn newest_version(&self) -> Result<i64> {
        let newest = self.rowsets.iter().map(|rowset| rowset.end_version).max();
        newest.ok_or_else(|| Error::corrupt("a visible rowset", "none"))
    }

    /// The rowsets that together hold all versions from 0 to `version`: as few as possible, replaced ones only where
    /// needed, oldest first.
    ///
    /// # Errors
    /// [`pilaster_core::ErrorKind::InvalidInput`] if no rowsets end with this version or there is a gap.
    pub fn rowsets_at(&self, version: i64) -> Result<Vec<&RowsetMeta>> {
        let current: Vec<_> = self.rowsets.iter().collect();
        let all: Vec<_> = self.rowsets.iter().chain(&self.stale_rowsets).collect();
        chain(&current, version).or_else(|| chain(&all, version)).ok_or_else(|| {
            let mut ends: Vec<_> = reached(&all, i64::MAX).into_keys().filter(|end| *end >= 0).collect();
            ends.sort_unstable();
            Error::invalid(format!(
                "version {version} of tablet {} is not on disk; there are: {ends:?}",
                self.tablet_id
            ))
        })
    }
}

/// For each version that rowsets lead to without a gap: how many it takes from version 0, and the last of them.
type Reached<'a> = HashMap<i64, (usize, Option<&'a RowsetMeta>)>;

/// The versions up to `last` that can be reached, with as few rowsets as possible.
fn reached<'a>(rowsets: &[&'a RowsetMeta], last: i64) -> Reached<'a> {
    let mut usable: Vec<&'a RowsetMeta> =
        rowsets.iter().copied().filter(|rowset| rowset.end_version <= last).collect();
    usable.sort_by_key(|rowset| rowset.end_version);
    let mut reached: Reached<'a> = HashMap::from([(-1, (0, None))]);
    for rowset in usable {
        let Some((count, _)) = reached.get(&rowset.start_version.saturating_sub(1)).copied() else {
            continue;
        };
        let count = count.saturating_add(1);
        let known = reached.get(&rowset.end_version).map_or(usize::MAX, |(count, _)| *count);
        if count < known {
            reached.insert(rowset.end_version, (count, Some(rowset)));
        }
    }
    reached
}

/// The fewest rowsets from version 0 to `last` without a gap.
fn chain<'a>(rowsets: &[&'a RowsetMeta], last: i64) -> Option<Vec<&'a RowsetMeta>> {
    let reached = reached(rowsets, last);
    let mut chain = Vec::new();
    let mut at = last;
    while at >= 0 {
        let rowset = reached.get(&at)?.1?;
        chain.push(rowset);
        at = rowset.start_version.checked_sub(1)?;
    }
    chain.reverse();
    Some(chain)
}

/// The message of a `.hdr` file, its length and checksum compared.
pub(super) fn open_header(hdr: &[u8]) -> Result<&[u8]> {
    let cut = || Error::corrupt("a tablet header", format!("a file of {} bytes", hdr.len()));
    let word = |at: usize| {
        hdr.get(at..)
            .and_then(|rest| rest.first_chunk::<4>())
            .map(|four| u32::from_le_bytes(*four))
            .ok_or_else(cut)
    };
    let long = |at: usize| {
        hdr.get(at..)
            .and_then(|rest| rest.first_chunk::<8>())
            .map(|eight| u64::from_le_bytes(*eight))
            .ok_or_else(cut)
    };
    let (file_length, length, checksum, start) = if long(0)? == 0 {
        (long(12)?, long(24)?, word(32)?, NEW_HEADER_BYTES)
    } else {
        (u64::from(word(0)?), u64::from(word(8)?), word(12)?, OLD_HEADER_BYTES)
    };
    if file_length != hdr.len() as u64 {
        return Err(Error::corrupt(format!("a file of {file_length} bytes"), format!("{} bytes", hdr.len())));
    }
    let message = hdr.get(start..).unwrap_or_default();
    if message.len() as u64 != length {
        return Err(Error::corrupt(
            format!("a message of {length} bytes"),
            format!("{} bytes", message.len()),
        ));
    }
    let computed = adler32(message);
    if computed != checksum {
        return Err(Error::corrupt(format!("checksum {checksum:#010x}"), format!("{computed:#010x}")));
    }
    Ok(message)
}

/// The checksum of zlib: two sums modulo the largest prime below 2^16.
pub(super) fn adler32(bytes: &[u8]) -> u32 {
    const MODULUS: u32 = 65_521;
    /// So many bytes can be added before the larger sum overflows.
    const STRIDE: usize = 5552;
    let (mut a, mut b) = (1u32, 0u32);
    for chunk in bytes.chunks(STRIDE) {
        for byte in chunk {
            a = a.wrapping_add(u32::from(*byte));
            b = b.wrapping_add(a);
        }
        a %= MODULUS;
        b %= MODULUS;
    }
    b << 16 | a
}

fn parse_rowsets(messages: &[RowsetMetaPb]) -> Result<Vec<RowsetMeta>> {
    let visible =
        messages.iter().filter(|rowset| rowset.rowset_state.unwrap_or(STATE_VISIBLE) == STATE_VISIBLE);
    visible.map(parse_rowset).collect()
}

fn parse_rowset(message: &RowsetMetaPb) -> Result<RowsetMeta> {
    if message.rowset_type.unwrap_or(ROWSET_BETA) != ROWSET_BETA {
        return Err(Error::unsupported("an ALPHA rowset: files from before segments"));
    }
    let id = match message.rowset_id_v2.as_deref().filter(|id| !id.is_empty()) {
        Some(id) => id.to_string(),
        None => messages::required(message.rowset_id, "rowset_id")?.to_string(),
    };
    // It becomes part of a path.
    if !id.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return Err(Error::corrupt("a rowset id of digits and letters", format!("{id:?}")));
    }
    let start_version = messages::required(message.start_version, "start_version")?;
    let end_version = messages::required(message.end_version, "end_version")?;
    if start_version < 0 || end_version < start_version {
        return Err(Error::corrupt("versions that ascend", format!("{start_version}..={end_version}")));
    }
    let num_segments = message.num_segments.unwrap_or(0);
    Ok(RowsetMeta {
        id,
        start_version,
        end_version,
        num_segments: u32::try_from(num_segments).ok().filter(|count| *count <= MAX_SEGMENTS).ok_or_else(
            || Error::corrupt(format!("a number of segments, at most {MAX_SEGMENTS}"), num_segments),
        )?,
        num_rows: u64::try_from(message.num_rows.unwrap_or(0)).unwrap_or(0),
        segment_rows: message.num_segment_rows.iter().map(|rows| u64::try_from(*rows).unwrap_or(0)).collect(),
        is_remote: message.resource_id.as_ref().is_some_and(|id| !id.is_empty()),
        delete_predicate: message.delete_predicate.clone(),
        schema: message.tablet_schema.as_ref().map(parse_schema).transpose()?,
    })
}

fn parse_schema(message: &TabletSchemaPb) -> Result<TabletSchema> {
    let schema = TabletSchema {
        keys_type: match message.keys_type.unwrap_or(0) {
            0 => KeysType::Duplicate,
            1 => KeysType::Unique,
            2 => KeysType::Aggregate,
            other => return Err(Error::corrupt("a keys type of 0, 1 or 2", other)),
        },
        columns: message.column.iter().map(parse_column).collect::<Result<_>>()?,
        num_short_key_columns: usize::try_from(message.num_short_key_columns.unwrap_or(0)).unwrap_or(0),
        merge_on_write: false,
        cluster_key_uids: message.cluster_key_uids.clone(),
        ..schema_message::storage_of(message)
    };
    check_groups(&schema)?;
    Ok(schema)
}

/// That every group has its sequence column, no column belongs to two, and none is a key.
fn check_groups(schema: &TabletSchema) -> Result<()> {
    let mut taken = BTreeSet::new();
    for group in &schema.sequence_groups {
        let sequence = group.sequence_column;
        if !schema.columns.iter().any(|column| column.unique_id == sequence) {
            return Err(Error::corrupt("the sequence column of a group", format!("no column {sequence}")));
        }
        for id in group.columns_in_group.iter().chain([&sequence]) {
            let is_key = schema.columns.iter().any(|column| column.unique_id == *id && column.is_key);
            if is_key || !taken.insert(*id) {
                return Err(Error::corrupt("value columns that belong to one group", format!("column {id}")));
            }
        }
    }
    if !taken.is_empty() && schema.columns.iter().any(|column| column.name == SEQUENCE_COLUMN) {
        return Err(Error::corrupt("sequences of a table or of its column groups", "both"));
    }
    Ok(())
}

fn parse_column(message: &ColumnPb) -> Result<SchemaColumn> {
    let default_value =
        message.default_value.as_ref().map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    Ok(SchemaColumn {
        unique_id: messages::required(message.unique_id, "unique_id")?,
        name: message.name.clone().unwrap_or_default(),
        type_name: messages::required(message.type_name.clone(), "type")?,
        is_key: message.is_key.unwrap_or(false),
        is_nullable: message.is_nullable.unwrap_or(false),
        aggregation: message.aggregation.clone(),
        length: message.length.unwrap_or(0),
        index_length: message.index_length.unwrap_or(0),
        precision: message.precision.unwrap_or(0),
        frac: message.frac.unwrap_or(0),
        visible: message.visible.unwrap_or(true),
        default_value,
        children: message.children_columns.iter().map(parse_column).collect::<Result<_>>()?,
        is_bf_column: message.is_bf_column.unwrap_or(false),
        result_is_nullable: message.result_is_nullable.unwrap_or(false),
        be_exec_version: message.be_exec_version,
        variant_max_subcolumns_count: message.variant_max_subcolumns_count,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::SequenceGroup;
    use proptest::prelude::*;

    fn rowset(start_version: i64, end_version: i64) -> RowsetMeta {
        RowsetMeta {
            id: format!("{start_version}to{end_version}"),
            start_version,
            end_version,
            num_segments: 0,
            num_rows: 0,
            segment_rows: Vec::new(),
            is_remote: false,
            delete_predicate: None,
            schema: None,
        }
    }

    #[test]
    fn the_fewest_rowsets_without_a_gap() {
        let all = [rowset(0, 1), rowset(2, 2), rowset(3, 3), rowset(2, 3), rowset(4, 4), rowset(6, 6)];
        let all: Vec<_> = all.iter().collect();
        let ids = |last| {
            chain(&all, last).map(|found| found.iter().map(|r| r.id.clone()).collect::<Vec<_>>().join(" "))
        };
        assert_eq!(ids(4).as_deref(), Some("0to1 2to3 4to4"));
        assert_eq!(ids(2).as_deref(), Some("0to1 2to2"));
        assert_eq!(ids(6), None);
        assert_eq!(ids(0), None);
    }

    #[test]
    fn groups_of_columns_have_one_sequence_each() {
        let parse = |columns: &str, groups: &str| {
            let json = format!(
                r#"{{"tablet_id": 1, "schema": {{"keys_type": "UNIQUE_KEYS", "column": [
                    {{"unique_id": 0, "name": "k", "type": "INT", "is_key": true}},
                    {{"unique_id": 1, "name": "v", "type": "INT"}}, {{"unique_id": 2, "name": "s", "type": "INT"}}
                    {columns}], "seq_map": {{"cg": [{groups}]}}}}}}"#
            );
            Ok::<_, Error>(
                TabletMeta::parse_json(json.as_bytes(), &Limits::default())?.schema.sequence_groups,
            )
        };
        let group = r#"{"sequence_column": 2, "columns_in_group": [1]}"#;
        assert_eq!(
            parse("", group).unwrap(),
            [SequenceGroup { sequence_column: 2, columns_in_group: vec![1] }]
        );
        let table_wide = r#", {"unique_id": 3, "name": "__DORIS_SEQUENCE_COL__", "type": "INT"}"#;
        for (columns, groups) in [
            ("", r#"{"sequence_column": 9, "columns_in_group": [1]}"#),
            ("", r#"{"sequence_column": 2, "columns_in_group": [0]}"#),
            ("", r#"{"sequence_column": 2, "columns_in_group": [1, 1]}"#),
            ("", &format!("{group}, {group}")),
            (table_wide, group),
        ] {
            assert!(parse(columns, groups).is_err(), "{columns} {groups}");
        }
    }

    #[test]
    fn the_checksum_is_that_of_zlib() {
        assert_eq!(adler32(b"Wikipedia"), 0x11e6_0398);
        assert_eq!(adler32(b""), 1);
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_header_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            let _ = TabletMeta::parse(&bytes, &Limits::default());
        }
    }
}
