//! Changes of `tablestatus`: read, changed and replaced whole, under the table's lock.
//!
//! The file is kept as JSON, so that what other releases wrote into it stays.

use pilaster_core::error::AtPosition;
use pilaster_core::storage::Tag;
use pilaster_core::{Error, Location, Result};
use serde_json::{Map, Value, json};

use super::super::open::open_file;
use super::super::schema::TableSchema;
use super::super::status::{SegmentStatus, read_json};
use super::load::LoadedFolder;
use super::lock::TableLock;
use super::options::CarbonTableWriterOptions;
use crate::file::WriteSummary;
use crate::file::types::is_global;
use crate::file::write::writer::now_millis;

const STATUS_LOCK: &str = "tablestatus.lock";
const PART: &str = "carbondata tablestatus";

/// One entry of `tablestatus`.
pub(crate) type Entry = Map<String, Value>;

fn status_file(table: &Location) -> Location {
    table.child("Metadata/tablestatus")
}

/// The entries as they are; none, if nothing was ever loaded.
pub(crate) fn read_entries(table: &Location) -> Result<Vec<Entry>> {
    Ok(read_tagged(table)?.0)
}

/// The entries, and the tag of the file they are in.
fn read_tagged(table: &Location) -> Result<(Vec<Entry>, Option<Tag>)> {
    let file = status_file(table);
    match file.entry()? {
        Some(found) => Ok((read_json(&open_file(&file)?, PART)?, found.tag().cloned())),
        None => Ok((Vec::new(), None)),
    }
}

/// The entries of a new table.
pub(crate) fn write_entries(table: &Location, entries: &[Entry]) -> Result<()> {
    let file = status_file(table);
    file.write(&to_json(entries)?).at(&file.to_string(), 0, PART)
}

fn to_json(entries: &[Entry]) -> Result<Vec<u8>> {
    serde_json::to_vec(entries).map_err(|error| Error::internal(error.to_string()))
}

/// Changes `tablestatus` under its lock, and where the storage can tell, only if nobody has who takes none.
pub(crate) fn change_status<T>(
    table: &Location,
    options: &CarbonTableWriterOptions,
    change: impl FnOnce(&mut Vec<Entry>) -> Result<T>,
) -> Result<T> {
    let _lock = TableLock::take(table, STATUS_LOCK, options.lock_timeout)?;
    let (mut entries, tag) = read_tagged(table)?;
    let result = change(&mut entries)?;
    status_file(table).replace_if(tag.as_ref(), to_json(&entries)?)?;
    options.step("tablestatus");
    Ok(result)
}

pub(crate) fn text<'a>(entry: &'a Entry, key: &str) -> &'a str {
    entry.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// What the reader makes of an entry.
pub(crate) fn parsed(entry: &Entry) -> Result<SegmentStatus> {
    serde_json::from_value(Value::Object(entry.clone()))
        .map_err(|error| Error::corrupt("an entry of tablestatus", error))
}

/// Whether a table is of a release before 2.0: its entries tell, and without any its schema. Only those releases have dictionaries of the
/// table, and 2.3 notes for every table whether it has index tables.
pub(crate) fn is_old(table: &TableSchema, entries: &[Entry]) -> bool {
    if entries.is_empty() {
        let notes_index_tables = table.properties.iter().any(|(key, _)| key == "indextableexists");
        return !notes_index_tables || table.columns.iter().any(is_global);
    }
    entries.iter().any(|entry| entry.contains_key("visibility"))
}

/// Notes when an entry was changed.
pub(crate) fn set_modified(entry: &mut Entry, time: i64) {
    let key = match entry.contains_key("visibility") {
        true => "modificationOrdeletionTimesStamp",
        false => "modificationOrDeletionTimestamp",
    };
    entry.insert(key.into(), json!(time.to_string()));
}

/// The id of the next load: one more than the greatest whole one.
pub(crate) fn next_id(entries: &[Entry]) -> Result<u64> {
    let greatest = entries.iter().filter_map(|entry| text(entry, "loadName").parse::<u64>().ok()).max();
    match greatest {
        None => Ok(0),
        Some(id) => id.checked_add(1).ok_or_else(|| Error::invalid("no segment ids are left")),
    }
}

/// An entry for a load that began at `time`; `is_old` for a release before 2.0.
pub(crate) fn new_entry(is_old: bool, id: &str, status: &str, time: i64) -> Entry {
    let mut entry = Entry::new();
    entry.insert("loadName".into(), json!(id));
    entry.insert("loadStatus".into(), json!(status));
    entry.insert("loadStartTime".into(), json!(time.to_string()));
    if is_old {
        for (key, value) in [
            ("partitionCount", "0"),
            ("isDeleted", "FALSE"),
            ("updateDeltaEndTimestamp", ""),
            ("updateDeltaStartTimestamp", ""),
            ("updateStatusFileName", ""),
            ("visibility", "true"),
            ("fileFormat", "COLUMNAR_V3"),
        ] {
            entry.insert(key.into(), json!(value));
        }
    }
    entry
}

/// Makes an entry that of a finished load.
pub(crate) fn finish_entry(entry: &mut Entry, segment_file: Option<&str>, summary: &WriteSummary) {
    let status = if segment_file.is_some() { "Success" } else { "Marked for Delete" };
    let now = now_millis();
    entry.insert("loadStatus".into(), json!(status));
    entry.insert("timestamp".into(), json!(now.to_string()));
    entry.insert("dataSize".into(), json!(summary.data_bytes.to_string()));
    entry.insert("indexSize".into(), json!(summary.index_bytes.to_string()));
    match segment_file {
        Some(name) => {
            entry.insert("segmentFile".into(), json!(name));
        }
        None => set_modified(entry, now),
    }
}

/// Writes `segments/<id>_<time>.segment`, which lists the folders of a segment; gives its name, or none if there are none.
pub(crate) fn write_segment_file(
    table: &Location,
    id: &str,
    time: i64,
    folders: &[LoadedFolder],
) -> Result<Option<String>> {
    if folders.is_empty() {
        return Ok(None);
    }
    let mut locations = Map::new();
    for folder in folders {
        let mut facts = Map::new();
        let (files, merged) = match (folder.is_merged, folder.indexes.first()) {
            (true, Some(name)) => (json!([]), Some(name)),
            _ => (json!(folder.indexes), None),
        };
        facts.insert("files".into(), files);
        facts.insert("partitions".into(), json!(folder.partitions));
        facts.insert("status".into(), json!("Success"));
        if let Some(name) = merged {
            facts.insert("mergeFileName".into(), json!(name));
        }
        facts.insert("isRelative".into(), json!(true));
        let parts: Vec<_> = folder.path.iter().map(|part| part.to_string_lossy()).collect();
        locations.insert(format!("/{}", parts.join("/")), Value::Object(facts));
    }
    let name = format!("{id}_{time}.segment");
    let segments = table.child("Metadata/segments");
    segments.make_folder()?;
    segments.child(&name).write(json!({ "locationMap": locations }).to_string().as_bytes())?;
    Ok(Some(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(ids: &[&str]) -> Vec<Entry> {
        ids.iter().map(|id| new_entry(false, id, "Success", 5)).collect()
    }

    #[test]
    fn ids_with_a_point_do_not_count() {
        assert_eq!(next_id(&[]).unwrap(), 0);
        assert_eq!(next_id(&entries(&["0", "3", "0.9", "2"])).unwrap(), 4);
    }

    fn table(properties: &[&str]) -> TableSchema {
        let properties = properties.iter().map(|key| (key.to_string(), String::new())).collect();
        TableSchema { properties, ..TableSchema::default() }
    }

    #[test]
    fn without_entries_the_schema_tells_the_release() {
        let (old, new) = (table(&["comment"]), table(&["comment", "indextableexists"]));
        assert!(is_old(&old, &[]) && !is_old(&new, &[]));
        // A table that a newer release has loaded into is one of that release.
        assert!(!is_old(&old, &entries(&["0"])));
        assert!(is_old(&new, &[new_entry(true, "0", "Success", 5)]));
    }

    #[test]
    fn entries_are_those_of_the_release() {
        let mut old = new_entry(false, "0", "Success", 5);
        assert!(!old.contains_key("visibility"));
        old.insert("visibility".into(), json!("true"));
        let mut next = new_entry(is_old(&table(&[]), &[old]), "1", "Success", 5);
        assert_eq!(text(&next, "fileFormat"), "COLUMNAR_V3");
        set_modified(&mut next, 7);
        assert_eq!(parsed(&next).unwrap().modified.as_deref(), Some("7"));
        assert!(next.contains_key("modificationOrdeletionTimesStamp"));
    }
}
