//! The metadata of a tablet: its schema, its rowsets and the versions they hold.

use std::collections::HashMap;
use std::fmt;

use pilaster_core::{Error, Limits, Result};

use super::deleted::DeletedRows;
use super::header::open_header;
use super::messages::{DeletePredicatePb, RowsetMetaPb, TabletMetaPb, TabletSchemaPb};
use super::schema_message::parse_schema;
use crate::messages;
use crate::schema::TabletSchema;

pub(super) const STATE_VISIBLE: i32 = 2;
pub(super) const ROWSET_BETA: i32 = 1;
/// `TabletMetaPB.tablet_role` of a tablet with the changes of another one's rows.
const ROLE_ROW_BINLOG: i32 = 1;

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
    /// Id of the index (the base table, or a rollup), where the metadata says.
    pub index_id: Option<i64>,
    /// A number that tells the indexes of a table apart: drawn at random for each.
    pub schema_hash: Option<i32>,
    /// Whether it is in service.
    pub state: TabletState,
    /// Whether its rows are the changes of another tablet's rows.
    pub is_binlog: bool,
    /// The current schema: that of the largest version, of the tablet's own and those its rowsets were written with.
    pub schema: TabletSchema,
    /// How often that was changed.
    pub schema_version: i32,
    /// Rowsets that make up the tablet.
    pub rowsets: Vec<RowsetMeta>,
    /// Rowsets that others have replaced.
    pub stale_rowsets: Vec<RowsetMeta>,
    pub(crate) deleted: DeletedRows,
}

/// Whether a tablet is in service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TabletState {
    /// It is being filled by a schema change, a rollup or a clone.
    NotReady,
    /// It answers queries.
    Running,
    /// It has lost rowsets, and is to be dropped.
    Tombstoned,
    /// It is being dropped.
    Stopped,
    /// It is dropped, or another one took its place.
    Shutdown,
}

impl TabletState {
    /// A state that is not said is that of a tablet in service.
    fn parse(number: Option<i32>) -> Result<Self> {
        Ok(match number {
            Some(0) => Self::NotReady,
            None | Some(1) => Self::Running,
            Some(2) => Self::Tombstoned,
            Some(3) => Self::Stopped,
            Some(4) => Self::Shutdown,
            Some(other) => return Err(Error::corrupt("the state of a tablet, 0 to 4", other)),
        })
    }
}

impl fmt::Display for TabletState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotReady => "NOTREADY",
            Self::Running => "RUNNING",
            Self::Tombstoned => "TOMBSTONED",
            Self::Stopped => "STOPPED",
            Self::Shutdown => "SHUTDOWN",
        })
    }
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
    /// Bytes of its files, as the metadata says.
    pub bytes: u64,
    /// When it was made, in seconds since 1970.
    pub creation_time: Option<i64>,
    /// Whether its segments are in object storage.
    pub is_remote: bool,
    pub(crate) delete_predicate: Option<DeletePredicatePb>,
    /// The schema it was written with, if it says.
    pub schema: Option<TabletSchema>,
    /// How often that had been changed.
    pub schema_version: i32,
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
        let own = messages::required(meta.schema, "schema")?;
        let rowsets = parse_rowsets(&meta.rs_metas)?;
        let (mut schema, mut schema_version) = (parse_schema(&own)?, version_of(&own));
        // A column added or dropped without rewriting is known to the rowsets written since, and not to the tablet.
        for rowset in &rowsets {
            if let Some(newer) = rowset.schema.as_ref().filter(|_| rowset.schema_version > schema_version) {
                (schema, schema_version) = (newer.clone(), rowset.schema_version);
            }
        }
        schema.merge_on_write = meta.enable_unique_key_merge_on_write.unwrap_or(false);
        Ok(Self {
            tablet_id: messages::required(meta.tablet_id, "tablet_id")?,
            table_id: meta.table_id.unwrap_or(0),
            partition_id: meta.partition_id.unwrap_or(0),
            index_id: meta.index_id.filter(|id| *id > 0),
            schema_hash: meta.schema_hash,
            state: TabletState::parse(meta.tablet_state)?,
            is_binlog: meta.tablet_role == Some(ROLE_ROW_BINLOG),
            schema,
            schema_version,
            rowsets,
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
    /// needed, oldest first. Of a merge-on-write tablet replaced ones are of no use: which of their rows were replaced is
    /// not kept.
    ///
    /// # Errors
    /// [`pilaster_core::ErrorKind::InvalidInput`] if no rowsets end with this version or there is a gap.
    pub fn rowsets_at(&self, version: i64) -> Result<Vec<&RowsetMeta>> {
        let current: Vec<_> = self.rowsets.iter().collect();
        let stale = self.stale_rowsets.iter().filter(|_| !self.schema.merge_on_write);
        let all: Vec<_> = self.rowsets.iter().chain(stale).collect();
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

impl TabletMeta {
    /// The current rowsets, oldest first, and the versions up to the newest that are in none of them: first and last of each gap.
    pub(super) fn rowsets_with_gaps(&self) -> (Vec<&RowsetMeta>, Vec<(i64, i64)>) {
        let mut sorted: Vec<&RowsetMeta> = self.rowsets.iter().collect();
        sorted.sort_by_key(|rowset| (rowset.start_version, std::cmp::Reverse(rowset.end_version)));
        let (mut rowsets, mut gaps, mut next) = (Vec::with_capacity(sorted.len()), Vec::new(), 0i64);
        for rowset in sorted {
            // One that lies in another was compacted into it.
            if rowset.start_version < next {
                continue;
            }
            if rowset.start_version > next {
                gaps.push((next, rowset.start_version.saturating_sub(1)));
            }
            next = rowset.end_version.saturating_add(1);
            rowsets.push(rowset);
        }
        (rowsets, gaps)
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

fn version_of(schema: &TabletSchemaPb) -> i32 {
    schema.schema_version.unwrap_or(0)
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
        bytes: message.total_disk_size.and_then(|bytes| u64::try_from(bytes).ok()).unwrap_or(0),
        creation_time: message.creation_time,
        is_remote: message.resource_id.as_ref().is_some_and(|id| !id.is_empty()),
        delete_predicate: message.delete_predicate.clone(),
        schema: message.tablet_schema.as_ref().map(parse_schema).transpose()?,
        schema_version: message.tablet_schema.as_ref().map_or(0, version_of),
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
            bytes: 0,
            creation_time: None,
            is_remote: false,
            delete_predicate: None,
            schema: None,
            schema_version: 0,
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

    proptest! {
        #[test]
        fn any_bytes_are_a_header_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            let _ = TabletMeta::parse(&bytes, &Limits::default());
        }
    }
}
