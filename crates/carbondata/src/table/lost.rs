//! What can be known of a table whose metadata is lost or damaged, from what else lies in its folder.

use std::collections::BTreeMap;

use pilaster_core::storage::{Entry, is_not_found};
use pilaster_core::verify::Finding;
use pilaster_core::{CallOption, Error, ErrorKind, Limits, Location, Result};

use super::names::parts_of_name;
use super::open::{FACT, names_if_there, open_file, sorted_names};
use super::schema::{SchemaChange, TableSchema};
use super::status::{SegmentFile, SegmentFolder, SegmentStatus, checked_id};
use super::values::unescape;
use crate::file::IndexFile;
use crate::file::layout::CarbonFile;
use crate::legacy::open_legacy;
use crate::messages::{ColumnSchema, StreamRecord};

/// How deep partition folders lie in each other.
const MOST_PARTITION_COLUMNS: u32 = 32;
/// How many folders are looked into to see whether they hold partitions of a table.
const MOST_FOLDERS_TO_TELL: usize = 40;

/// A file that is gone or damaged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Lost {
    Schema,
    Status,
    SegmentFile {
        segment: String,
        name: String,
    },
    /// An index file in a folder with data files of a segment.
    Index {
        segment: String,
        folder: Location,
        name: String,
    },
    UpdateStatus {
        name: String,
    },
    Delta,
    DictionaryMeta {
        column_id: String,
    },
    Dictionary,
    Data,
}

/// What was worked around, and why.
#[derive(Debug, Clone)]
pub(crate) struct Broken {
    pub lost: Lost,
    pub finding: Finding,
}

/// Whether an error means that something of a table is gone or damaged, and not that the machine cannot read it. What looks like
/// something unknown may be damaged too.
pub(crate) fn is_lost(error: &Error) -> bool {
    use std::io::ErrorKind::{NotFound, UnexpectedEof};
    match error.kind() {
        ErrorKind::Io(error) => matches!(error.kind(), NotFound | UnexpectedEof),
        _ => true,
    }
}

/// What is not there although `what` was named: a table that is not complete, and no call that was wrong.
pub(crate) fn not_here(error: Error, what: &str) -> Error {
    if !is_not_found(&error) {
        return error;
    }
    let path = error.position().map_or_else(String::new, |position| position.path.to_string());
    Error::incomplete(format!("{what} is not here")).turning_on(CallOption::Partial).at(&path, 0, "")
}

/// The data files of a segment in a folder.
pub(crate) fn data_files(folder: &Location, segment: &str) -> Result<Vec<String>> {
    // Without metadata all files are of one load, or of loads that nobody tells apart.
    let is_own = segment.is_empty() || folder.path().ends_with(format!("Segment_{segment}"));
    let is_of = |name: &String| parts_of_name(name).is_some_and(|(id, _)| id == Some(segment));
    let is_data = |name: &String| name.ends_with(".carbondata") && (is_own || is_of(name));
    let names = sorted_names(folder)?;
    Ok(names.into_iter().filter(|name| is_data(name)).collect())
}

/// The index files of a segment in a folder.
fn index_files(folder: &Location, segment: &str) -> Result<Vec<String>> {
    let is_own = folder.path().ends_with(format!("Segment_{segment}"));
    let of_merged = |name: &str| {
        let stem = name.strip_suffix(".carbonindexmerge");
        stem.and_then(|stem| stem.split_once('_')).is_some_and(|(id, _)| id == segment)
    };
    let of_loose = |name: &str| {
        name.ends_with(".carbonindex") && parts_of_name(name).is_some_and(|(id, _)| id == Some(segment))
    };
    let is_index = |name: &str| name.ends_with(".carbonindexmerge") || name.ends_with(".carbonindex");
    let mut names: Vec<_> = sorted_names(folder)?
        .into_iter()
        .filter(|name| if is_own { is_index(name) } else { of_merged(name) || of_loose(name) })
        .collect();
    if names.iter().any(|name| name.ends_with(".carbonindexmerge")) {
        names.retain(|name| name.ends_with(".carbonindexmerge"));
    }
    Ok(names)
}

/// What a segment file would say.
pub(crate) fn segment_file(table: &Location, segment: &str) -> Result<SegmentFile> {
    let mut file = SegmentFile::default();
    let own = format!("{FACT}/Segment_{segment}");
    if table.child(&own).is_folder()? {
        let folder = folder_of(index_files(&table.child(&own), segment)?, Vec::new());
        file.folders.insert(format!("/{own}"), folder);
        return Ok(file);
    }
    let mut folders = Vec::new();
    partition_folders(table, &mut Vec::new(), MOST_PARTITION_COLUMNS, &mut folders)?;
    for partitions in folders {
        let place = partitions.join("/");
        let folder = table.child(&place);
        if !data_files(&folder, segment)?.is_empty() {
            file.folders.insert(format!("/{place}"), folder_of(index_files(&folder, segment)?, partitions));
        }
    }
    Ok(file)
}

fn folder_of(mut names: Vec<String>, partitions: Vec<String>) -> SegmentFolder {
    let merged = names.iter().position(|name| name.ends_with(".carbonindexmerge"));
    // Several merged files in one folder are read as loose ones are: all of them.
    let merge_file = merged.filter(|_| names.len() == 1).map(|place| names.remove(place));
    SegmentFolder { files: names, partitions, status: Some("Success".into()), merge_file, is_relative: true }
}

/// The paths of folders `column=value/…` below a table, each as its parts.
fn partition_folders(
    folder: &Location,
    above: &mut Vec<String>,
    depth: u32,
    found: &mut Vec<Vec<String>>,
) -> Result<()> {
    let Some(depth) = depth.checked_sub(1) else { return Ok(()) };
    for entry in folder.list()?.into_iter().filter(|entry| entry.is_folder() && !entry.is_link()) {
        if let Some(name) = entry.name().to_str().filter(|name| name.contains('=')) {
            above.push(name.to_string());
            found.push(above.clone());
            partition_folders(&folder.beside(entry.path()), above, depth, found)?;
            above.pop();
        }
    }
    Ok(())
}

/// Every folder with data files below a table, and how they are partitioned.
pub(crate) fn data_folders(table: &Location) -> Result<Vec<(Location, Vec<String>)>> {
    let mut folders = Vec::new();
    for name in names_if_there(&table.child(FACT))?.unwrap_or_default() {
        if name.strip_prefix("Segment_").is_some_and(|id| checked_id(id).is_ok()) {
            folders.push((table.child(FACT).child(name), Vec::new()));
        }
    }
    let mut partitions = Vec::new();
    partition_folders(table, &mut Vec::new(), MOST_PARTITION_COLUMNS, &mut partitions)?;
    folders.extend(partitions.into_iter().map(|parts| (table.child(parts.join("/")), parts)));
    Ok(folders)
}

/// Whether segments lie below a folder as only tables with metadata have them: each in its folder, or in partitions in files that are
/// named after it.
///
/// # Errors
/// If none were found, and a folder in which they may lie cannot be listed.
pub(crate) fn has_segments(folder: &Location) -> Result<bool> {
    let is_segment = |name: &str| name.strip_prefix("Segment_").is_some_and(|id| checked_id(id).is_ok());
    let mut unread = None;
    let mut entries_of = |folder: &Location| {
        let listed =
            folder.is_folder().and_then(|is_folder| if is_folder { folder.list() } else { Ok(Vec::new()) });
        listed.unwrap_or_else(|error| {
            unread.get_or_insert(error);
            Vec::new()
        })
    };
    let name_of = |entry: &Entry| entry.name().to_str().map(str::to_string);
    if entries_of(&folder.child(FACT)).iter().filter_map(name_of).any(|name| is_segment(&name)) {
        return Ok(true);
    }
    let is_of_segment = |name: &str| matches!(parts_of_name(name), Some((Some(_), _)));
    // Any folder may be one of values, with nothing in it that is CarbonData's: a few of them tell.
    let of_values = |entries: &[Entry]| -> Vec<Location> {
        let is_value =
            |entry: &&Entry| entry.is_folder() && name_of(entry).is_some_and(|name| name.contains('='));
        entries.iter().rev().filter(is_value).map(|entry| folder.beside(entry.path())).collect()
    };
    let mut pending = of_values(&entries_of(folder));
    for _ in 0..MOST_FOLDERS_TO_TELL {
        let Some(folder) = pending.pop() else { break };
        let entries = entries_of(&folder);
        if entries.iter().filter_map(name_of).any(|name| is_of_segment(&name)) {
            return Ok(true);
        }
        pending.extend(of_values(&entries));
    }
    unread.map_or(Ok(false), Err)
}

/// The segments of a table without `tablestatus`: those with a segment file, or with index files in a folder of their own or in
/// those of partitions. Which of them were deleted or overwritten is not known any more.
pub(crate) fn segments(table: &Location) -> Result<Vec<SegmentStatus>> {
    // By the numbers of their id: stamp and segment file.
    let mut found: BTreeMap<(u64, u64), (String, i64, Option<String>)> = BTreeMap::new();
    for name in names_if_there(&table.child("Metadata/segments"))?.unwrap_or_default() {
        let parts = name.strip_suffix(".segment").and_then(|stem| stem.split_once('_'));
        let Some((id, stamp)) = parts.and_then(|(id, stamp)| Some((id, stamp.parse::<i64>().ok()?))) else {
            continue;
        };
        let Some(key) = numbers(id) else { continue };
        let newest = found.entry(key).or_insert_with(|| (id.to_string(), stamp, Some(name.clone())));
        if stamp >= newest.1 {
            *newest = (id.to_string(), stamp, Some(name.clone()));
        }
    }
    for name in names_if_there(&table.child(FACT))?.unwrap_or_default() {
        let Some(id) = name.strip_prefix("Segment_") else { continue };
        let Some(key) = numbers(id) else { continue };
        let folder = table.child(FACT).child(&name);
        let names = sorted_names(&folder)?;
        let stamp = names.iter().filter_map(|name| parts_of_name(name)).map(|(_, stamp)| stamp).max();
        // The index is the last thing a load writes.
        if names.iter().any(|name| name.contains(".carbonindex")) {
            found.entry(key).or_insert_with(|| (id.to_string(), stamp.unwrap_or(0), None));
        }
    }
    let mut partitions = Vec::new();
    partition_folders(table, &mut Vec::new(), MOST_PARTITION_COLUMNS, &mut partitions)?;
    for partition in partitions {
        let folder = table.child(partition.join("/"));
        for name in sorted_names(&folder)? {
            let Some((Some(id), stamp)) = parts_of_name(&name) else { continue };
            let Some(key) = numbers(id) else { continue };
            if !found.contains_key(&key) && !index_files(&folder, id)?.is_empty() {
                // Partitions are named in a segment file only.
                found.insert(key, (id.to_string(), stamp, Some(format!("{id}_{stamp}.segment"))));
            }
        }
    }
    let segment = |(id, stamp, name): (String, i64, Option<String>)| {
        let folder = table.child(FACT).child(format!("Segment_{id}"));
        let is_stream = name.is_none() && is_stream(&folder)?;
        Ok(SegmentStatus {
            id,
            status: if is_stream { "Streaming" } else { "Success" }.to_string(),
            load_start: Some(stamp.to_string()),
            load_end: Some(stamp.to_string()),
            segment_file: name,
            file_format: is_stream.then(|| "row_v1".to_string()),
            ..SegmentStatus::default()
        })
    };
    found.into_values().map(segment).collect()
}

/// The numbers of an id: `0.2` is the second segment that came from 0.
pub(crate) fn numbers(id: &str) -> Option<(u64, u64)> {
    checked_id(id).ok()?;
    match id.split_once('.') {
        Some((first, second)) => Some((first.parse().ok()?, second.parse().ok()?)),
        None => Some((id.parse().ok()?, 0)),
    }
}

/// Whether a folder has index files of a stream, which have no header.
fn is_stream(folder: &Location) -> Result<bool> {
    let names = names_if_there(folder)?.unwrap_or_default();
    for name in names.iter().filter(|name| name.ends_with(".carbonindex")) {
        let source = open_file(&folder.child(name))?;
        let limits = Limits::default();
        if limits.metadata(source.size()).is_err() || IndexFile::open(&source, &limits).is_ok() {
            continue;
        }
        if StreamRecord::parse_file(&source.read_at(0..source.size())?).is_ok_and(|files| !files.is_empty()) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The data file that was written last, and the partition it is in.
pub(crate) fn newest_file(table: &Location) -> Result<(Location, Vec<String>)> {
    let mut newest: Option<(i64, (Location, Vec<String>))> = None;
    for (folder, partitions) in data_folders(table)? {
        for name in sorted_names(&folder)?.iter().filter(|name| name.ends_with(".carbondata")) {
            let stamp = parts_of_name(name).map_or(0, |(_, stamp)| stamp);
            if newest.as_ref().is_none_or(|(known, _)| stamp >= *known) {
                newest = Some((stamp, (folder.child(name), partitions.clone())));
            }
        }
    }
    let name = table.to_string();
    newest.map(|(_, file)| file).ok_or_else(|| Error::corrupt("data files", "none").at(&name, 0, ""))
}

/// The schema of a table without its schema file: the columns of the newest data file, and partition columns that are not in
/// it (2.3 stores them) as texts.
/// Dropped and added columns, defaults and properties are lost.
pub(crate) fn schema(table: &Location, limits: &Limits) -> Result<TableSchema> {
    let (path, partitions) = newest_file(table)?;
    let names = partitions.iter().filter_map(|part| part.split_once('='));
    let partition_columns: Vec<String> = names.map(|(name, _)| unescape(name).to_lowercase()).collect();
    let (mut columns, time) = columns_of(&path, limits)?;
    for name in &partition_columns {
        if columns.iter().any(|column| column.name.eq_ignore_ascii_case(name)) {
            continue;
        }
        let ordinal = i32::try_from(columns.len()).unwrap_or(i32::MAX);
        columns.push(ColumnSchema::text(name, ordinal));
    }
    Ok(TableSchema {
        // It has none any more, and others only need it to differ from those of other tables.
        table_id: columns.first().map_or_else(|| "lost".to_string(), |column| column.column_id.clone()),
        columns,
        properties: Vec::new(),
        buckets: None,
        partition_columns,
        evolution: vec![SchemaChange { time, ..SchemaChange::default() }],
        data_maps: Vec::new(),
    })
}

/// The columns of a data file, and when its schema was made.
fn columns_of(path: &Location, limits: &Limits) -> Result<(Vec<ColumnSchema>, i64)> {
    let source = open_file(path)?;
    match CarbonFile::with_header(source, limits.clone()) {
        Ok(file) => Ok((file.header.columns, file.header.time_stamp)),
        Err(error) => match open_legacy(open_file(path)?, limits.clone()) {
            Ok(file) => Ok((file.header.columns, 0)),
            Err(_) => Err(error),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_pairs_of_numbers() {
        assert_eq!((numbers("0.10"), numbers("7"), numbers("x")), (Some((0, 10)), Some((7, 0)), None));
    }
}
