//! From a table's folder to its data files.

use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use pilaster_core::error::AtPosition;
use pilaster_core::source::open_source;
use pilaster_core::{Error, Limits, Result, SourceRef};

use super::dictionary::read_dictionary;
use super::lazy::LazySource;
use super::live::Live;
use super::part::{ColumnOrigin, Part};
use super::schema::TableSchema;
use super::status::{
    BlockUpdate, DeleteDelta, SegmentFile, SegmentFolder, SegmentStatus, checked_id, checked_name, read_json,
};
use super::values::{default_value, partition_value, unescape};
use crate::file::layout::CarbonFile;
use crate::file::page::words::{WordsRef, code_bytes};
use crate::file::stream::open_stream;
use crate::file::types::column_trees;
use crate::file::{ColumnNode, IndexFile};
use crate::legacy::{cardinalities, open_legacy};
use crate::messages::{BlockIndex, parse_stream_index};

const STATUS_PART: &str = "carbondata tablestatus";
const SEGMENT_PART: &str = "carbondata segment file";
const UPDATE_PART: &str = "carbondata update status";
const STREAM_PART: &str = "carbondata stream";
const DELTA_PART: &str = "carbondata delete delta";
const SCHEMA_PART: &str = "carbondata table schema";
/// Where segments without a segment file lie.
const FACT: &str = "Fact/Part0";

/// A table's columns, segments and data files.
#[derive(Debug)]
pub(crate) struct OpenedTable {
    pub schema: TableSchema,
    pub columns: Vec<ColumnNode>,
    pub segments: Vec<SegmentStatus>,
    pub parts: Vec<Part>,
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

struct Opener<'a> {
    table: &'a Path,
    limits: &'a Limits,
    schema: TableSchema,
    columns: Vec<ColumnNode>,
    parts: Vec<Part>,
    updates: Vec<BlockUpdate>,
    /// By column id.
    dictionaries: HashMap<String, WordsRef>,
}

/// Opens the table in `folder`; only the segments in `wanted`, if that is given.
pub(crate) fn open_table(folder: &Path, wanted: Option<&[String]>, limits: &Limits) -> Result<OpenedTable> {
    let name = folder.display().to_string();
    let missing = || Error::corrupt("a schema file in Metadata", "none").at(&name, 0, SCHEMA_PART);
    let schema_source = open_path(&schema_path(folder).ok_or_else(missing)?)?;
    let schema = TableSchema::open(&schema_source, limits)?;
    let columns = column_trees(&schema.columns, limits.depth).at(schema_source.name(), 0, SCHEMA_PART)?;
    let status = open_path(&folder.join("Metadata/tablestatus"))?;
    let segments: Vec<SegmentStatus> = read_json(&status, STATUS_PART)?;
    for id in wanted.unwrap_or_default() {
        if !segments.iter().any(|segment| segment.id == *id && segment.is_readable()) {
            let known: Vec<_> =
                segments.iter().filter(|segment| segment.is_readable()).map(|s| s.id.as_str()).collect();
            let message = format!("no readable segment {id:?}; there are: {}", known.join(", "));
            return Err(Error::invalid(message).at(status.name(), 0, ""));
        }
    }
    let mut opener = Opener {
        table: folder,
        limits,
        schema,
        columns,
        parts: Vec::new(),
        updates: Vec::new(),
        dictionaries: HashMap::new(),
    };
    // Only the first segment names the file that counts.
    let updates = segments.first().and_then(|segment| segment.update_status_file.as_deref());
    if let Some(name) = updates.filter(|name| !name.is_empty()) {
        let name = checked_name(name).at(status.name(), 0, STATUS_PART)?;
        opener.updates = read_json(&open_path(&folder.join("Metadata").join(name))?, UPDATE_PART)?;
    }
    for segment in segments.iter().filter(|segment| segment.is_readable()) {
        if wanted.is_none_or(|wanted| wanted.contains(&segment.id)) {
            opener.segment(segment).at(status.name(), 0, STATUS_PART)?;
        }
    }
    Ok(opener.finish(segments))
}

/// Opens a folder of data files without a table's metadata, as the SDK writes them.
pub(crate) fn open_bare(folder: &Path, limits: &Limits) -> Result<OpenedTable> {
    let names = sorted_names(folder)?;
    let indexes = read_indexes(folder, names.iter().map(String::as_str), limits)?;
    let mut opener = Opener {
        table: folder,
        limits,
        schema: TableSchema::default(),
        columns: Vec::new(),
        parts: Vec::new(),
        updates: Vec::new(),
        dictionaries: HashMap::new(),
    };
    if let Some(first) = indexes.first() {
        opener.schema.columns.clone_from(&first.header.columns);
        opener.columns = column_trees(&opener.schema.columns, limits.depth)?;
        opener.add_indexes("", folder, &indexes, &[])?;
    } else {
        for name in names.iter().filter(|name| name.ends_with(".carbondata")) {
            let file = CarbonFile::open(open_path(&folder.join(name))?, limits.clone())?;
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

/// The index files among `names`: merged ones, if there are any, else all others.
fn read_indexes<'a>(
    folder: &Path,
    names: impl Iterator<Item = &'a str> + Clone,
    limits: &Limits,
) -> Result<Vec<IndexFile>> {
    let mut indexes = Vec::new();
    for name in names.clone().filter(|name| name.ends_with(".carbonindexmerge")) {
        indexes.extend(IndexFile::open_merged(&open_path(&folder.join(name))?, limits)?);
    }
    if indexes.is_empty() {
        for name in names.filter(|name| name.ends_with(".carbonindex")) {
            indexes.push(IndexFile::open(&open_path(&folder.join(name))?, limits)?);
        }
    }
    Ok(indexes)
}

impl Opener<'_> {
    fn finish(self, segments: Vec<SegmentStatus>) -> OpenedTable {
        let Self { schema, columns, mut parts, .. } = self;
        let mut row = 0u64;
        for part in &mut parts {
            part.first_row = row;
            row = part.rows().end;
        }
        OpenedTable { schema, columns, segments, parts }
    }

    fn segment(&mut self, segment: &SegmentStatus) -> Result<()> {
        let id = checked_id(&segment.id)?;
        let format = segment.file_format.as_deref().unwrap_or("columnar_v3");
        if format.eq_ignore_ascii_case("row_v1") {
            return self.stream(id);
        }
        if !format.eq_ignore_ascii_case("columnar_v3") {
            let place = segment.path.as_deref().unwrap_or("its folder");
            return Err(Error::unsupported(format!(
                "segment {id} is {format} in {place}: open it by itself"
            )));
        }
        let Some(name) = segment.segment_file.as_deref().filter(|name| !name.is_empty()) else {
            let folder = self.table.join(FACT).join(format!("Segment_{id}"));
            let names = sorted_names(&folder)?;
            let indexes = read_indexes(&folder, names.iter().map(String::as_str), self.limits)?;
            return self.add_indexes(id, &folder, &indexes, &[]);
        };
        let path = self.table.join("Metadata/segments").join(checked_name(name)?);
        let file: SegmentFile = read_json(&open_path(&path)?, SEGMENT_PART)?;
        for (location, folder) in &file.folders {
            // The rows of a dropped partition are gone, and so may be its folder.
            if folder.status.as_deref().is_none_or(|status| status == "Success") {
                self.folder(id, location, folder).at(&path.display().to_string(), 0, SEGMENT_PART)?;
            }
        }
        Ok(())
    }

    /// The files of a streaming segment, up to the bytes that its index says are whole.
    fn stream(&mut self, segment: &str) -> Result<()> {
        let folder = self.table.join(FACT).join(format!("Segment_{segment}"));
        if !folder.is_dir() {
            // Nothing has been written into it yet.
            return Ok(());
        }
        for name in sorted_names(&folder)?.iter().filter(|name| name.ends_with(".carbonindex")) {
            let index = open_path(&folder.join(name))?;
            self.limits.metadata(index.size()).at(index.name(), 0, STREAM_PART)?;
            let bytes = index.read_at(0..index.size())?;
            for (name, size) in parse_stream_index(&bytes).at(index.name(), 0, STREAM_PART)? {
                let source = open_path(&folder.join(checked_name(&name)?))?;
                let valid = u64::try_from(size).unwrap_or(u64::MAX);
                if valid > source.size() {
                    let error = Error::corrupt(format!("{size} bytes, as the index says"), source.size());
                    return Err(error.at(source.name(), source.size(), STREAM_PART));
                }
                let file = open_stream(source, self.limits.clone(), valid)?;
                self.add_file(segment, file, Vec::new(), &[])?;
            }
        }
        Ok(())
    }

    fn folder(&mut self, segment: &str, location: &str, folder: &SegmentFolder) -> Result<()> {
        let relative = Path::new(location.trim_start_matches('/'));
        let is_inside = relative.components().all(|part| matches!(part, Component::Normal(_)));
        if !folder.is_relative || !is_inside {
            return Err(Error::unsupported(format!("a segment outside of the table's folder: {location:?}")));
        }
        let path = self.table.join(relative);
        let names = match &folder.merge_file {
            Some(name) => vec![checked_name(name)?],
            None => folder.files.iter().map(|name| checked_name(name)).collect::<Result<_>>()?,
        };
        let indexes = read_indexes(&path, names.into_iter(), self.limits)?;
        self.add_indexes(segment, &path, &indexes, &folder.partitions)
    }

    /// Adds the data files that index files name.
    fn add_indexes(
        &mut self,
        segment: &str,
        folder: &Path,
        indexes: &[IndexFile],
        partitions: &[String],
    ) -> Result<()> {
        for index in indexes {
            let mut order: Vec<&str> = Vec::new();
            let mut files: HashMap<&str, Vec<&BlockIndex>> = HashMap::new();
            for block in &index.blocklets {
                // Old releases put the path of a temporary folder before the name.
                let name = block.file_name.rsplit(['/', '\\']).next().unwrap_or_default();
                let blocks = files.entry(checked_name(name)?).or_default();
                if blocks.is_empty() {
                    order.push(name);
                }
                blocks.push(block);
            }
            for name in order {
                let blocks = files.remove(name).unwrap_or_default();
                let path = folder.join(name);
                let text = path.display().to_string();
                let size = match blocks.first().and_then(|block| block.file_size) {
                    Some(size) => u64::try_from(size).unwrap_or(0),
                    None => open_path(&path)?.size(),
                };
                let file = if index.header.version < 3 {
                    let mut file = open_legacy(open_path(&path)?, self.limits.clone())?;
                    let cardinalities = cardinalities(&file).to_vec();
                    self.add_dictionaries(&mut file, &cardinalities)?;
                    file
                } else {
                    let source = Arc::new(LazySource::new(text, size));
                    let mut file =
                        CarbonFile::from_index(source, self.limits.clone(), &index.header, &blocks)?;
                    self.add_dictionaries(&mut file, &index.header.cardinalities)?;
                    file
                };
                let Some(deleted) = self.deleted(segment, folder, name, &file)? else { continue };
                self.add_file(segment, file, deleted, partitions)?;
            }
        }
        Ok(())
    }

    /// Gives a file the dictionaries of the table that its columns need.
    fn add_dictionaries(&mut self, file: &mut CarbonFile, cardinalities: &[i32]) -> Result<()> {
        // Without its table's metadata a folder has no dictionaries.
        if self.schema.table_id.is_empty() {
            return file.refuse_missing_dictionaries();
        }
        let mut leaves = Vec::new();
        file.columns.iter().for_each(|column| leaves_of(column, &mut leaves));
        let mut found = HashMap::new();
        for (chunk, column) in file.global_columns() {
            let Some(node) = leaves.iter().find(|node| node.chunk == chunk) else { continue };
            let words = match self.dictionaries.get(&column.column_id) {
                Some(words) => Arc::clone(words),
                None => {
                    let metadata = self.table.join("Metadata");
                    let words = read_dictionary(&metadata, &column.column_id, node, self.limits)?;
                    self.dictionaries.insert(column.column_id.clone(), Arc::clone(&words));
                    words
                }
            };
            let Some(cardinality) = cardinalities.get(chunk) else {
                let error = Error::corrupt(format!("the cardinality of column {:?}", column.name), "none");
                return Err(error.at(file.name(), 0, "carbondata index"));
            };
            found.insert(chunk, (words, code_bytes(*cardinality)));
        }
        file.dictionaries = found;
        file.refuse_missing_dictionaries()
    }

    /// The deleted rows of a data file, ascending; `None` if all of it is gone.
    fn deleted(
        &self,
        segment: &str,
        folder: &Path,
        name: &str,
        file: &CarbonFile,
    ) -> Result<Option<Vec<u64>>> {
        let mut rows = Vec::new();
        for update in self.updates.iter().filter(|u| u.segment == segment && u.data_file == name) {
            if matches!(update.status.as_deref(), Some("Marked for Delete" | "Compacted")) {
                return Ok(None);
            }
            for stamp in self.stamps(folder, update)? {
                let delta = format!("{}-{stamp}.deletedelta", update.block);
                let path = folder.join(checked_name(&delta)?);
                let delta: DeleteDelta = read_json(&open_path(&path)?, DELTA_PART)?;
                for (key, page) in &delta.pages {
                    deleted_of_page(file, key, &page.rows, &mut rows).at(
                        &path.display().to_string(),
                        0,
                        DELTA_PART,
                    )?;
                }
            }
        }
        rows.sort_unstable();
        rows.dedup();
        Ok(Some(rows))
    }

    /// The stamps of the delta files that count.
    fn stamps(&self, folder: &Path, update: &BlockUpdate) -> Result<Vec<String>> {
        if let Some(stamps) = update.stamps.as_ref().filter(|stamps| !stamps.is_empty()) {
            return Ok(stamps.clone());
        }
        let (start, end) = (update.start.as_deref().unwrap_or(""), update.end.as_deref().unwrap_or(""));
        if start == end || start.is_empty() {
            return Ok(vec![end.to_string()]);
        }
        if folder.join(format!("{}-{start}.deletedelta", update.block)).is_file() {
            // Before 1.5 every file between the two stamps counts.
            let prefix = format!("{}-", update.block);
            let (start, end) = (start.parse::<u64>().unwrap_or(0), end.parse::<u64>().unwrap_or(u64::MAX));
            let names = sorted_names(folder)?;
            let stamps = names.iter().filter_map(|name| {
                let stamp = name.strip_prefix(&prefix)?.strip_suffix(".deletedelta")?;
                (start..=end).contains(&stamp.parse().ok()?).then(|| stamp.to_string())
            });
            return Ok(stamps.collect());
        }
        Ok(vec![end.to_string()])
    }

    fn add_file(
        &mut self,
        segment: &str,
        file: CarbonFile,
        deleted: Vec<u64>,
        partitions: &[String],
    ) -> Result<()> {
        let by_id: HashMap<&str, usize> = file
            .columns
            .iter()
            .enumerate()
            .filter_map(|(index, node)| {
                Some((file.header.columns.get(node.chunk)?.column_id.as_str(), index))
            })
            .collect();
        let values: HashMap<String, &str> = partitions
            .iter()
            .filter_map(|text| text.split_once('='))
            .map(|(name, value)| (unescape(name).to_lowercase(), value))
            .collect();
        let origins = self
            .columns
            .iter()
            .map(|node| {
                let Some(column) = self.schema.columns.get(node.chunk) else {
                    return Err(Error::invalid("a column without a schema"));
                };
                if let Some(value) = values.get(node.field.name()) {
                    return Ok(ColumnOrigin::Constant(partition_value(node, value)?));
                }
                match by_id.get(column.column_id.as_str()) {
                    Some(index) => Ok(ColumnOrigin::File(*index)),
                    None => Ok(ColumnOrigin::Constant(default_value(node, column.default_value.as_deref())?)),
                }
            })
            .collect::<Result<_>>()?;
        let live = Live::new(file.rows, &deleted);
        self.parts.push(Part {
            segment: segment.to_string(),
            file: Arc::new(file),
            live,
            origins,
            first_row: 0,
        });
        Ok(())
    }
}

/// The nodes without children below a column.
fn leaves_of<'a>(node: &'a ColumnNode, leaves: &mut Vec<&'a ColumnNode>) {
    if node.children.is_empty() {
        leaves.push(node);
    }
    node.children.iter().for_each(|child| leaves_of(child, leaves));
}

/// Adds the rows of a page, whose key is `blocklet_page`.
fn deleted_of_page(file: &CarbonFile, key: &str, rows: &[u64], deleted: &mut Vec<u64>) -> Result<()> {
    let place = key.split_once('_').and_then(|(blocklet, page)| {
        let blocklet = file.blocklets.get(blocklet.parse::<usize>().ok()?)?;
        let page = page.parse::<usize>().ok()?;
        (page < blocklet.pages()).then(|| blocklet.page_rows(page))
    });
    let Some(page) = place else {
        return Err(Error::corrupt("the number of a blocklet and of a page", format!("{key:?}")));
    };
    for row in rows {
        let row = page.start.saturating_add(*row);
        if row >= page.end {
            let expected = format!("rows of a page of {}", page.end.saturating_sub(page.start));
            return Err(Error::corrupt(expected, row.saturating_sub(page.start)));
        }
        deleted.push(row);
    }
    Ok(())
}
