//! From a table's folder to its segments: what is part of it, now or at an earlier time.

use std::sync::Arc;

use pilaster_core::error::AtPosition;
use pilaster_core::storage::{Entry, is_not_found};
use pilaster_core::{Absence, Error, Location, Result, SourceRef};

use super::as_of::{History, Past};
use super::deletes::Deletes;
use super::lazy::ReadCounts;
use super::lost::{self, Broken, Lost, is_lost, not_here};
use super::opener::{ForeignSegment, Opener, read_indexes};
use super::options::CarbonTableOptions;
use super::part::Part;
use super::recovery::Recovery;
use super::schema::TableSchema;
use super::status::{SegmentStatus, checked_name, read_json};
use crate::file::ColumnNode;
use crate::file::types::column_trees;

const STATUS_PART: &str = "carbondata tablestatus";
const SCHEMA_PART: &str = "carbondata table schema";
/// Where segments without a segment file lie.
pub(crate) const FACT: &str = "Fact/Part0";

/// A table's columns, segments and data files.
#[derive(Debug)]
pub(crate) struct OpenedTable {
    pub schema: TableSchema,
    pub columns: Vec<ColumnNode>,
    pub segments: Vec<SegmentStatus>,
    pub parts: Vec<Part>,
    /// Segments in other formats, which were left out.
    pub foreign: Vec<ForeignSegment>,
    pub read: Arc<ReadCounts>,
    /// What was worked around.
    pub broken: Vec<Broken>,
    /// What the metadata names and is not here.
    pub absences: Vec<(String, Absence)>,
    /// What could not be read, if that was gone over.
    pub unread: Vec<Error>,
}

/// Opens a file of a table. A folder, a pipe or a device in its place is damage of the table, and is not opened: what is read of the
/// others stays readable.
pub(crate) fn open_file(file: &Location) -> Result<SourceRef> {
    if file.entry()?.is_some_and(|found| !found.is_file()) {
        return Err(file.blame(Error::corrupt("a file", "a folder, a pipe or a device")));
    }
    file.open()
}

/// What a folder holds, by name. Names of CarbonData are text: what is called otherwise is none of its files.
pub(crate) fn sorted_names(folder: &Location) -> Result<Vec<String>> {
    let text = |entry: Entry| entry.name().to_str().map(str::to_string);
    Ok(folder.list()?.into_iter().filter_map(text).collect())
}

/// What a folder holds, by name; `None` if there is no such folder. One that cannot be listed is an error.
pub(crate) fn names_if_there(folder: &Location) -> Result<Option<Vec<String>>> {
    match sorted_names(folder) {
        Err(error) if is_not_found(&error) => Ok(None),
        names => names.map(Some),
    }
}

/// The schema file of a table: `schema`, or the last of `schema_<n>`.
pub(crate) fn schema_path(table: &Location) -> Result<Option<Location>> {
    let metadata = table.child("Metadata");
    let plain = metadata.child("schema");
    if plain.is_file()? {
        return Ok(Some(plain));
    }
    let names = names_if_there(&metadata)?.unwrap_or_default();
    let number = |name: &String| name.strip_prefix("schema_").and_then(|rest| rest.parse::<u64>().ok());
    let last = names.into_iter().filter(|name| number(name).is_some()).max_by_key(number);
    Ok(last.map(|last| metadata.child(last)))
}

/// What is part of the table now.
fn present(
    folder: &Location,
    segments: &[SegmentStatus],
    recovery: &mut Recovery<'_>,
    wrong: Option<Error>,
) -> Result<Past> {
    // Only the first segment names the file that counts.
    let named = segments.first().and_then(|segment| segment.update_status_file.as_deref());
    let named = named.filter(|name| !name.is_empty());
    let newest = match named.is_none()
        && segments.iter().any(|segment| segment.is_readable() && segment.was_touched())
    {
        true => newest_update_status(folder)?,
        false => None,
    };
    let deletes = match named {
        Some(name) => {
            let read = match wrong {
                Some(error) => Err(error),
                None => {
                    let read =
                        checked_name(name).and_then(|name| Deletes::read(&folder.child("Metadata"), name));
                    read.map_err(|error| not_here(error, "the update status that tablestatus names"))
                }
            };
            let lost = Lost::UpdateStatus { name: name.to_string() };
            recovery.instead(read, lost, || Ok(Deletes::every_delta()))?
        }
        // Rows were deleted and the files that say so are here, but nothing names the one that counts.
        None => match newest {
            Some(newest) => {
                let error = Error::corrupt("the name of an update status in the first entry", "none");
                let lost = Lost::UpdateStatus { name: newest.clone() };
                let read = || {
                    Deletes::read(&folder.child("Metadata"), &newest).or_else(|_| Ok(Deletes::every_delta()))
                };
                recovery.instead(Err(error), lost, read)?
            }
            None => Deletes::default(),
        },
    };
    let segments = segments.iter().filter(|segment| segment.is_readable()).cloned().collect();
    Ok(Past { segments, deletes, next_deletes: None })
}

/// The newest update status that lies beside the others, whether it counts or not.
fn newest_update_status(folder: &Location) -> Result<Option<String>> {
    let names = names_if_there(&folder.child("Metadata"))?.unwrap_or_default();
    let all = names.into_iter().filter(|name| name.starts_with("tableupdatestatus-"));
    Ok(all.max_by_key(|name| (name.len(), name.clone())))
}

fn refuse_unknown(wanted: Option<&[String]>, readable: &[SegmentStatus]) -> Result<()> {
    for id in wanted.unwrap_or_default() {
        if !readable.iter().any(|segment| segment.id == *id) {
            let known: Vec<_> = readable.iter().map(|segment| segment.id.as_str()).collect();
            let message = format!("no readable segment {id:?}; there are: {}", known.join(", "));
            return Err(Error::invalid(message));
        }
    }
    Ok(())
}

fn read_schema(folder: &Location, options: &CarbonTableOptions) -> Result<(TableSchema, Vec<ColumnNode>)> {
    let missing = || {
        let name = folder.to_string();
        Error::corrupt("a schema file in Metadata", "none").at(&name, 0, SCHEMA_PART)
    };
    let source = open_file(&schema_path(folder)?.ok_or_else(missing)?)?;
    let mut schema = TableSchema::open(&source, &options.limits)?;
    if let Some(time) = options.as_of {
        schema.columns = schema.columns_at(time);
    }
    let columns = column_trees(&schema.columns, options.limits.depth).at(source.name(), 0, SCHEMA_PART)?;
    Ok((schema, columns))
}

/// Opens the table in `folder`, which has a folder of metadata.
pub(crate) fn open_table(folder: &Location, options: &CarbonTableOptions) -> Result<OpenedTable> {
    match open_with_deletes(folder, options, None)? {
        Ok(opened) => Ok(opened),
        Err(wrong) if options.recovers => match open_with_deletes(folder, options, Some(wrong))? {
            Ok(opened) => Ok(opened),
            Err(wrong) => Err(wrong),
        },
        Err(wrong) => Err(wrong),
    }
}

/// Opens a table; or what is wrong with its update status, which the data files show. If that is known already, every delta file counts.
fn open_with_deletes(
    folder: &Location,
    options: &CarbonTableOptions,
    wrong: Option<Error>,
) -> Result<Result<OpenedTable>> {
    let mut recovery = Recovery::new(folder, options);
    let (schema, columns) = recovery.instead(read_schema(folder, options), Lost::Schema, || {
        let schema = lost::schema(folder, &options.limits)?;
        let columns = column_trees(&schema.columns, options.limits.depth)?;
        Ok((schema, columns))
    })?;
    let status_file = folder.child("Metadata").child("tablestatus");
    let status = status_file.to_string();
    let read = open_file(&status_file).and_then(|source| read_json(&source, STATUS_PART));
    let read = read.map_err(|error| not_here(error, "the list of the table's segments"));
    let read = read.and_then(|segments: Vec<SegmentStatus>| {
        segments.iter().try_for_each(SegmentStatus::check_status).at(&status, 0, STATUS_PART)?;
        Ok(segments)
    });
    let mut has_status = true;
    let mut segments: Vec<SegmentStatus> = recovery.instead(read, Lost::Status, || {
        has_status = false;
        lost::segments(folder)
    })?;
    let mut past = match options.as_of {
        Some(time) => {
            let past = History::read(folder, &schema, &segments)?.at(time)?;
            segments.clone_from(&past.segments);
            past
        }
        None => present(folder, &segments, &mut recovery, wrong).at(&status, 0, STATUS_PART)?,
    };
    if !has_status {
        past.deletes = recovery.newest_deletes()?;
    }
    refuse_unknown(options.segments.as_deref(), &past.segments).at(&status, 0, "")?;
    let mut opener = Opener::new(folder, options, schema, columns);
    opener.broken = recovery.broken;
    opener.deletes = past.deletes;
    opener.next_deletes = past.next_deletes;
    for segment in &past.segments {
        let is_wanted = options.segments.as_ref().is_none_or(|wanted| wanted.contains(&segment.id));
        if is_wanted || !has_status {
            match opener.segment(segment).at(&status, 0, STATUS_PART) {
                Err(error) if options.goes_over_unread && !is_lost(&error) => opener.unread.push(error),
                done => done?,
            }
        }
    }
    if let Some(wrong) = opener.wrong_deletes()? {
        return Ok(Err(wrong));
    }
    opener.note_unproven();
    if !has_status {
        opener.drop_compacted(&mut segments)?;
    }
    Ok(Ok(opener.finish(segments)))
}

/// Opens a folder of data files without a table's metadata, as the SDK writes them.
pub(crate) fn open_bare(folder: &Location, options: &CarbonTableOptions) -> Result<OpenedTable> {
    let names = sorted_names(folder)?;
    let limits = &options.limits;
    let indexes = match read_indexes(folder, names.iter().map(String::as_str), limits) {
        // Without them every data file speaks for itself.
        Err(error) if options.recovers && is_lost(&error) => Vec::new(),
        indexes => indexes?,
    };
    let mut opener = Opener::new(folder, options, TableSchema::default(), Vec::new());
    let mut unnamed: Vec<&String> = names.iter().filter(|name| name.ends_with(".carbondata")).collect();
    if let Some(first) = indexes.first() {
        opener.schema.columns.clone_from(&first.header.columns);
        opener.columns = column_trees(&opener.schema.columns, limits.depth)?;
        if options.recovers {
            opener.recover_folder("", folder, &names, &[])?;
            return Ok(opener.finish(Vec::new()));
        }
        opener.add_indexes("", folder, &indexes, &[])?;
        unnamed.retain(|name| !opener.is_named("", name));
        if !options.recovers {
            for name in std::mem::take(&mut unnamed) {
                opener.absent_of("", &folder.child(name), "the index file of this data file", None);
            }
        }
    }
    for name in unnamed {
        let place = folder.child(name);
        let Some(file) = opener.data_file(&place)? else { continue };
        file.refuse_missing_dictionaries()?;
        if opener.columns.is_empty() {
            opener.schema.columns.clone_from(&file.header.columns);
            opener.columns.clone_from(&file.columns);
        }
        opener.add_file("", &place, file, Vec::new(), &[])?;
    }
    if opener.parts.is_empty() && opener.absences.is_empty() {
        let error = Error::corrupt("data files or index files", "none");
        return Err(error.at(&folder.to_string(), 0, ""));
    }
    Ok(opener.finish(Vec::new()))
}
