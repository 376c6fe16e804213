//! From a table's folder to its segments: what is part of it, now or at an earlier time.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use pilaster_core::error::AtPosition;
use pilaster_core::source::open_source;
use pilaster_core::{Error, Result, SourceRef};

use super::as_of::{History, Past};
use super::deletes::Deletes;
use super::lazy::ReadCounts;
use super::lost::{self, Broken, Lost, is_lost};
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
}

pub(crate) fn open_path(path: &Path) -> Result<SourceRef> {
    open_source(&path.display().to_string())
}

/// What a folder holds, by name.
pub(crate) fn sorted_names(folder: &Path) -> Result<Vec<String>> {
    let name = folder.display().to_string();
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder).at(&name, 0, "")? {
        if let Ok(text) = entry.at(&name, 0, "")?.file_name().into_string() {
            names.push(text);
        }
    }
    names.sort();
    Ok(names)
}

/// The schema file of a table: `schema`, or the last of `schema_<n>`.
pub(crate) fn schema_path(table: &Path) -> Option<PathBuf> {
    let metadata = table.join("Metadata");
    let plain = metadata.join("schema");
    if plain.is_file() {
        return Some(plain);
    }
    let names = sorted_names(&metadata).ok()?;
    let number = |name: &String| name.strip_prefix("schema_").and_then(|rest| rest.parse::<u64>().ok());
    let last = names.into_iter().filter(|name| number(name).is_some()).max_by_key(number)?;
    Some(metadata.join(last))
}

/// What is part of the table now.
fn present(folder: &Path, segments: &[SegmentStatus], recovery: &mut Recovery<'_>) -> Result<Past> {
    // Only the first segment names the file that counts.
    let named = segments.first().and_then(|segment| segment.update_status_file.as_deref());
    let deletes = match named.filter(|name| !name.is_empty()) {
        Some(name) => {
            let read = checked_name(name).and_then(|name| Deletes::read(&folder.join("Metadata"), name));
            let lost = Lost::UpdateStatus { name: name.to_string() };
            recovery.instead(read, lost, || Ok(Deletes::every_delta()))?
        }
        None => Deletes::default(),
    };
    let segments = segments.iter().filter(|segment| segment.is_readable()).cloned().collect();
    Ok(Past { segments, deletes, next_deletes: None })
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

fn read_schema(folder: &Path, options: &CarbonTableOptions) -> Result<(TableSchema, Vec<ColumnNode>)> {
    let missing = || {
        let name = folder.display().to_string();
        Error::corrupt("a schema file in Metadata", "none").at(&name, 0, SCHEMA_PART)
    };
    let source = open_path(&schema_path(folder).ok_or_else(missing)?)?;
    let mut schema = TableSchema::open(&source, &options.limits)?;
    if let Some(time) = options.as_of {
        schema.columns = schema.columns_at(time);
    }
    let columns = column_trees(&schema.columns, options.limits.depth).at(source.name(), 0, SCHEMA_PART)?;
    Ok((schema, columns))
}

/// Opens the table in `folder`, which has a folder of metadata.
pub(crate) fn open_table(folder: &Path, options: &CarbonTableOptions) -> Result<OpenedTable> {
    let mut recovery = Recovery::new(folder, options);
    let (schema, columns) = recovery.instead(read_schema(folder, options), Lost::Schema, || {
        let schema = lost::schema(folder, &options.limits)?;
        let columns = column_trees(&schema.columns, options.limits.depth)?;
        Ok((schema, columns))
    })?;
    let status = folder.join("Metadata/tablestatus").display().to_string();
    let read = open_path(Path::new(&status)).and_then(|source| read_json(&source, STATUS_PART));
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
        None => present(folder, &segments, &mut recovery).at(&status, 0, STATUS_PART)?,
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
            opener.segment(segment).at(&status, 0, STATUS_PART)?;
        }
    }
    if !has_status {
        opener.drop_compacted(&mut segments)?;
    }
    Ok(opener.finish(segments))
}

/// Opens a folder of data files without a table's metadata, as the SDK writes them.
pub(crate) fn open_bare(folder: &Path, options: &CarbonTableOptions) -> Result<OpenedTable> {
    let names = sorted_names(folder)?;
    let limits = &options.limits;
    let indexes = match read_indexes(folder, names.iter().map(String::as_str), limits) {
        // Without them every data file speaks for itself.
        Err(error) if options.recovers && is_lost(&error) => Vec::new(),
        indexes => indexes?,
    };
    let mut opener = Opener::new(folder, options, TableSchema::default(), Vec::new());
    if let Some(first) = indexes.first() {
        opener.schema.columns.clone_from(&first.header.columns);
        opener.columns = column_trees(&opener.schema.columns, limits.depth)?;
        opener.add_indexes("", folder, &indexes, &[])?;
    } else {
        for name in names.iter().filter(|name| name.ends_with(".carbondata")) {
            let Some(file) = opener.data_file(&folder.join(name))? else { continue };
            file.refuse_missing_dictionaries()?;
            if opener.columns.is_empty() {
                opener.schema.columns.clone_from(&file.header.columns);
                opener.columns.clone_from(&file.columns);
            }
            opener.add_file("", file, Vec::new(), &[])?;
        }
    }
    if opener.parts.is_empty() {
        let error = Error::corrupt("data files or index files", "none");
        return Err(error.at(&folder.display().to_string(), 0, ""));
    }
    Ok(opener.finish(Vec::new()))
}
