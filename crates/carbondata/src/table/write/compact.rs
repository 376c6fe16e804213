//! Compaction: several segments become one.

use pilaster_core::error::AtPosition;
use pilaster_core::{Dataset, Error, Location, Result};
use serde_json::json;

use super::super::options::CarbonTableOptions;
use super::super::reader::CarbonTable;
use super::commit::{
    Entry, change_status, finish_entry, is_old, new_entry, parsed, read_entries, set_modified, text,
    write_segment_file,
};
use super::dictionary::Dictionaries;
use super::load::LoadWriter;
use super::lock::TableLock;
use super::options::CarbonTableWriterOptions;
use super::plan::{plan, read_table, segment_folder, table_files};
use crate::file::write::writer::now_millis;
use crate::file::{Calendar, WriteSummary};

/// What a compaction did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CompactionSummary {
    /// The segments that were merged; none, if there were fewer than two.
    pub merged: Vec<String>,
    /// Id of the segment they became; none if no row was left, or nothing was merged.
    pub segment: Option<String>,
    /// What was written.
    pub written: WriteSummary,
}

/// Merges segments of the table in `folder` into one: those in `segments`, or all that can be. Deleted rows are left out, and rows
/// are sorted again. Until `tablestatus` is replaced the table is as it was; the files of the merged segments stay.
///
/// # Errors
/// If a segment is not there or cannot be merged, somebody else compacts or changed one of them meanwhile, or reading or
/// writing fails; then the table is as it was.
pub fn compact(
    folder: impl Into<Location>,
    segments: Option<&[String]>,
    options: CarbonTableWriterOptions,
) -> Result<CompactionSummary> {
    let folder = &folder.into();
    let table = read_table(folder)?;
    let files = table_files(&table, &options.files)?.with_calendar(Calendar::Stored);
    let options = CarbonTableWriterOptions { files, ..options };
    let _lock = TableLock::take(folder, "compaction.lock", options.lock_timeout)?;
    let name = folder.to_string();
    let before = read_entries(folder)?;
    let chosen = choose(&before, segments).at(&name, 0, "")?;
    if chosen.len() < 2 {
        return match segments {
            Some(_) => Err(Error::invalid("a compaction needs at least two segments").at(&name, 0, "")),
            None => Ok(CompactionSummary::default()),
        };
    }
    let merged: Vec<String> = chosen.iter().map(|entry| text(entry, "loadName").to_string()).collect();
    let result = result_id(&before, &merged)?;
    let time = now_millis();
    // What a compaction that did not come to its end has left.
    folder.child(segment_folder(&result)).remove_folder()?;
    // Days go from file to file as they are.
    let read = CarbonTableOptions::default().with_segments(Some(merged.clone()));
    let source = CarbonTable::open(folder, &read.with_calendar(Calendar::Stored))?;
    let mut plan = plan(folder, &table, &result, time, is_old(&table, &before), &options)?;
    let dictionaries = Dictionaries::open(folder, &plan.columns, &options)?;
    plan.codes = dictionaries.codes();
    let mut load = LoadWriter::new(plan);
    for batch in source.scan().read()? {
        load.write(&batch?)?;
    }
    let loaded = load.finish()?;
    dictionaries.commit(&options)?;
    let file = write_segment_file(folder, &result, time, &loaded.folders)?;
    options.step("segment file");
    change_status(folder, &options, |entries| {
        let now = now_millis();
        for old in &chosen {
            let id = text(old, "loadName");
            let entry = entries.iter_mut().find(|entry| text(entry, "loadName") == id);
            match entry.filter(|entry| is_unchanged(old, entry)) {
                Some(entry) => {
                    entry.insert("loadStatus".into(), json!("Compacted"));
                    set_modified(entry, now);
                    entry.insert("mergedLoadName".into(), json!(result));
                }
                None => {
                    let message = format!("segment {id} was changed while it was merged");
                    return Err(Error::invalid(message).at(&name, 0, ""));
                }
            }
        }
        let mut entry = new_entry(is_old(&table, entries), &result, "Success", time);
        finish_entry(&mut entry, file.as_deref(), &loaded.summary);
        // Deletes are found through the first segment, which keeps its entry.
        entries.push(entry);
        Ok(())
    })?;
    Ok(CompactionSummary { merged, segment: file.map(|_| result), written: loaded.summary })
}

/// The entries of the segments to merge, in load order.
fn choose(entries: &[Entry], wanted: Option<&[String]>) -> Result<Vec<Entry>> {
    let mut chosen = Vec::new();
    for entry in entries {
        let segment = parsed(entry)?;
        let is_wanted = wanted.is_none_or(|wanted| wanted.contains(&segment.id));
        let format = segment.file_format.as_deref().unwrap_or("columnar_v3");
        let is_columnar = format.eq_ignore_ascii_case("columnar_v3");
        let can_be = segment.is_readable() && is_columnar && segment.path.is_none();
        if is_wanted && can_be {
            chosen.push(entry.clone());
        } else if is_wanted && wanted.is_some() && segment.is_readable() {
            return Err(Error::unsupported(format!(
                "segment {} is {format}, which is not merged",
                segment.id
            )));
        }
    }
    for id in wanted.unwrap_or_default() {
        if !chosen.iter().any(|entry| text(entry, "loadName") == id) {
            return Err(Error::invalid(format!("no readable segment {id:?}")));
        }
    }
    Ok(chosen)
}

/// The id of the first merged segment, with 1 behind a point, or with one more than what is there.
fn result_id(entries: &[Entry], merged: &[String]) -> Result<String> {
    let first = merged.first().map(String::as_str).unwrap_or_default();
    let (base, suffix) = first.split_once('.').unwrap_or((first, "0"));
    let mut suffix: u64 = suffix.parse().map_err(|_| Error::corrupt("the id of a segment", first))?;
    loop {
        suffix = suffix.checked_add(1).ok_or_else(|| Error::invalid("no segment ids are left"))?;
        let id = format!("{base}.{suffix}");
        // An id is not used twice, even if its segment is gone.
        if !entries.iter().any(|entry| text(entry, "loadName") == id) {
            return Ok(id);
        }
    }
}

/// Whether a segment still has the rows it had.
fn is_unchanged(before: &Entry, now: &Entry) -> bool {
    ["loadStatus", "segmentFile", "updateDeltaEndTimestamp", "updateDeltaStartTimestamp"]
        .iter()
        .all(|key| text(before, key) == text(now, key))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_numbered_as_carbondata_does() {
        let id = |merged: &[&str]| {
            let merged: Vec<_> = merged.iter().map(ToString::to_string).collect();
            result_id(&[], &merged).unwrap()
        };
        assert_eq!(id(&["0", "1"]), "0.1");
        assert_eq!(id(&["0.1", "2.1"]), "0.2");
        assert_eq!(id(&["0.2", "4"]), "0.3");
        assert_eq!(id(&["5", "6"]), "5.1");
        assert_eq!(id(&["0.9", "1"]), "0.10");
        let taken = new_entry(false, "0.1", "Marked for Delete", 1);
        assert_eq!(result_id(&[taken], &["0".into()]).unwrap(), "0.2");
    }
}
