//! `tablestatus`, segment files, update status and delete deltas: JSON as Gson writes it, all values texts.

use std::collections::{BTreeMap, HashMap};

use pilaster_core::{Error, Result, SourceRef};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::names::parts_of_name;

/// No metadata file of a table is larger.
const MAX_JSON_BYTES: u64 = 256 << 20;

/// One load, update or compaction.
#[derive(Debug, Clone, Default, Deserialize, Serialize, PartialEq, Eq)]
#[serde(default)]
pub struct SegmentStatus {
    /// Its id: `0`, `1`, or `0.1` after compaction.
    #[serde(rename = "loadName")]
    pub id: String,
    /// `Success`, `Marked for Delete`, `Compacted` and so on.
    #[serde(rename = "loadStatus")]
    pub status: String,
    /// When loading began: milliseconds since 1970, or text before 1.1.
    #[serde(rename = "loadStartTime", skip_serializing_if = "Option::is_none")]
    pub load_start: Option<String>,
    /// When loading ended.
    #[serde(rename = "timestamp", skip_serializing_if = "Option::is_none")]
    pub load_end: Option<String>,
    /// When it was deleted or compacted.
    #[serde(
        rename = "modificationOrDeletionTimestamp",
        alias = "modificationOrdeletionTimesStamp",
        skip_serializing_if = "Option::is_none"
    )]
    pub modified: Option<String>,
    /// The segment it was compacted into.
    #[serde(rename = "mergedLoadName", skip_serializing_if = "Option::is_none")]
    pub merged_into: Option<String>,
    /// Bytes of its data files.
    #[serde(rename = "dataSize", skip_serializing_if = "Option::is_none")]
    pub data_bytes: Option<String>,
    /// Bytes of its index files.
    #[serde(rename = "indexSize", skip_serializing_if = "Option::is_none")]
    pub index_bytes: Option<String>,
    /// Name of the file that lists its folders.
    #[serde(rename = "segmentFile", skip_serializing_if = "Option::is_none")]
    pub segment_file: Option<String>,
    /// `columnar_v3`, `row_v1` for streams, or a foreign format.
    #[serde(rename = "fileFormat", skip_serializing_if = "Option::is_none")]
    pub file_format: Option<String>,
    /// Folder of a segment that was added from outside.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Which file says what was deleted; only that of the first segment counts.
    #[serde(rename = "updateStatusFileName", skip_serializing_if = "Option::is_none")]
    pub update_status_file: Option<String>,
    /// When it was first changed by an update, a delete or the drop of a partition.
    #[serde(rename = "updateDeltaStartTimestamp", skip_serializing_if = "Option::is_none")]
    pub update_start: Option<String>,
    /// When it was last changed so.
    #[serde(rename = "updateDeltaEndTimestamp", skip_serializing_if = "Option::is_none")]
    pub update_end: Option<String>,
    /// `false` hides a segment of 1.x, and one whose files were cleaned away.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub visibility: Option<String>,
}

impl SegmentStatus {
    /// Whether rows of it were deleted or updated, as its entry says.
    pub fn was_touched(&self) -> bool {
        self.update_end.as_deref().is_some_and(|stamp| !stamp.is_empty())
    }

    /// Whether its rows are part of the table.
    pub fn is_readable(&self) -> bool {
        let is_visible = self.visibility.as_deref().is_none_or(|text| !text.eq_ignore_ascii_case("false"));
        let states = ["Success", "Partial Success", "Marked for Update", "Streaming", "Streaming Finish"];
        is_visible && states.contains(&self.status.as_str())
    }
}

impl SegmentStatus {
    /// A segment of which it is not known whether its rows count is an error, and not left out.
    pub(crate) fn check_status(&self) -> Result<()> {
        if is_known(&self.status) {
            return Ok(());
        }
        Err(Error::corrupt(format!("the status of segment {:?}", self.id), format!("{:?}", self.status)))
    }

    /// Whether its rows are, or once were, part of the table.
    pub(crate) fn was_readable(&self) -> bool {
        let states = ["Compacted", "Marked for Delete"];
        self.is_readable() || states.contains(&self.status.as_str())
    }

    /// Whether it holds rows of a stream.
    pub(crate) fn is_stream(&self) -> bool {
        self.file_format.as_deref().is_some_and(|format| format.eq_ignore_ascii_case("row_v1"))
    }

    /// Whether the load brought no rows.
    pub(crate) fn has_no_data(&self) -> bool {
        self.data_bytes.as_deref() == Some("0")
    }
}

/// Whether a text is one of the states that segments and their folders can be in.
fn is_known(status: &str) -> bool {
    const READABLE: [&str; 5] =
        ["Success", "Partial Success", "Marked for Update", "Streaming", "Streaming Finish"];
    const OTHERS: [&str; 6] =
        ["Failure", "Marked for Delete", "Compacted", "In Progress", "Overwrite In Progress", "Update"];
    READABLE.contains(&status) || OTHERS.contains(&status)
}

/// What a segment file says of one folder.
#[derive(Debug, Clone, Default, Deserialize, Serialize, PartialEq, Eq)]
#[serde(default)]
pub(crate) struct SegmentFolder {
    pub files: Vec<String>,
    pub partitions: Vec<String>,
    pub status: Option<String>,
    #[serde(rename = "mergeFileName", skip_serializing_if = "Option::is_none")]
    pub merge_file: Option<String>,
    #[serde(rename = "isRelative")]
    pub is_relative: bool,
}

impl SegmentFolder {
    /// Whether its rows count: those of a dropped partition are gone, and so may be its folder.
    pub fn is_live(&self) -> bool {
        self.status.as_deref().is_none_or(|status| status == "Success")
    }

    /// A folder of which it is not known whether its rows count is an error, and not left out.
    pub fn check_status(&self) -> Result<()> {
        match self.status.as_deref() {
            Some(status) if !is_known(status) => {
                Err(Error::corrupt("the status of a folder", format!("{status:?}")))
            }
            _ => Ok(()),
        }
    }

    /// The files in it that count.
    pub fn index_names(&self) -> Vec<String> {
        match &self.merge_file {
            Some(name) => vec![name.clone()],
            None => self.files.clone(),
        }
    }
}

/// `segments/<id>_<time>.segment`.
#[derive(Debug, Clone, Default, Deserialize, Serialize, PartialEq, Eq)]
#[serde(default)]
pub(crate) struct SegmentFile {
    #[serde(rename = "locationMap")]
    pub folders: BTreeMap<String, SegmentFolder>,
}

/// What was deleted from one data file.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct BlockUpdate {
    #[serde(rename = "segmentName")]
    pub segment: String,
    #[serde(rename = "blockName")]
    pub block: String,
    #[serde(rename = "actualBlockName")]
    pub data_file: String,
    #[serde(rename = "deleteDeltaStartTimestamp", skip_serializing_if = "Option::is_none")]
    pub start: Option<String>,
    #[serde(rename = "deleteDeltaEndTimestamp", skip_serializing_if = "Option::is_none")]
    pub end: Option<String>,
    #[serde(rename = "deltaFileStamps", skip_serializing_if = "Option::is_none")]
    pub stamps: Option<Vec<String>>,
    #[serde(rename = "segmentStatus", skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    #[serde(rename = "deletedRowsInBlock", skip_serializing_if = "Option::is_none")]
    pub deleted_rows: Option<String>,
}

impl BlockUpdate {
    /// Whether the whole data file is no longer part of the table.
    pub fn is_gone(&self) -> bool {
        matches!(self.status.as_deref(), Some("Marked for Delete" | "Compacted"))
    }

    /// How many rows were deleted, where that is noted.
    pub fn deleted_count(&self) -> Option<u64> {
        self.deleted_rows.as_deref()?.parse().ok()
    }

    /// Whether its names fit together: the data file is the block's, and of the segment where its name says one.
    pub fn is_consistent(&self) -> bool {
        let is_of_block =
            self.data_file.strip_prefix(self.block.as_str()).is_some_and(|rest| rest.starts_with('-'));
        let segment = parts_of_name(&self.data_file).and_then(|(segment, _)| segment);
        is_of_block && segment.is_none_or(|segment| segment == self.segment)
    }

    /// All stamps of delta files that it lists.
    pub fn stamps_listed(&self) -> Vec<i64> {
        let texts = self.stamps.iter().flatten().chain(&self.start).chain(&self.end);
        texts.filter_map(|text| text.parse().ok()).collect()
    }
}

/// `*.deletedelta`.
#[derive(Debug, Clone, Default, Deserialize)]
pub(crate) struct DeleteDelta {
    #[serde(rename = "blockletDetailsMap")]
    pub pages: HashMap<String, DeletedRows>,
}

/// Rows of one page, counted from its first.
#[derive(Debug, Clone, Default, Deserialize)]
pub(crate) struct DeletedRows {
    #[serde(rename = "deletedRows")]
    pub rows: Vec<u64>,
}

/// Parses a JSON file.
pub(crate) fn read_json<T: DeserializeOwned>(source: &SourceRef, part: &'static str) -> Result<T> {
    let place = |error: Error| error.at(source.name(), 0, part);
    if source.size() > MAX_JSON_BYTES {
        return Err(place(Error::corrupt(format!("at most {MAX_JSON_BYTES} bytes"), source.size())));
    }
    let bytes = source.read_at(0..source.size())?;
    serde_json::from_slice(&bytes)
        .map_err(|error| place(Error::corrupt("JSON as CarbonData writes it", error)))
}

/// A name out of a metadata file, which must not lead out of its folder.
pub(crate) fn checked_name(name: &str) -> Result<&str> {
    let is_bad = name.is_empty() || name.contains(['/', '\\', '\0']) || name == "." || name == "..";
    if is_bad {
        return Err(Error::corrupt("the name of a file", format!("{name:?}")));
    }
    Ok(name)
}

/// A segment id: digits, or digits, a point and digits.
pub(crate) fn checked_id(id: &str) -> Result<&str> {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let is_good = match id.split_once('.') {
        Some((first, second)) => is_number(first) && is_number(second),
        None => is_number(id),
    };
    if is_good { Ok(id) } else { Err(Error::corrupt("the id of a segment", format!("{id:?}"))) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_spellings_of_the_time_are_read() {
        for key in ["modificationOrDeletionTimestamp", "modificationOrdeletionTimesStamp"] {
            let text = format!(r#"[{{"loadName":"0","loadStatus":"Compacted","{key}":"5"}}]"#);
            let segments: Vec<SegmentStatus> = serde_json::from_str(&text).unwrap();
            assert_eq!(segments[0].modified.as_deref(), Some("5"));
            assert!(!segments[0].is_readable());
        }
    }

    #[test]
    fn names_stay_in_their_folder() {
        assert!(checked_name("0_1.segment").is_ok());
        for bad in ["", "..", "a/b", "a\\b", "a\0"] {
            assert!(checked_name(bad).is_err());
        }
        for (id, good) in
            [("0", true), ("0.10", true), ("", false), ("1.", false), ("../1", false), ("1.2.3", false)]
        {
            assert_eq!(checked_id(id).is_ok(), good, "{id}");
        }
    }
}
