//! Metadata and index files written anew, from the data and from each other.
//!
//! | file | comes from |
//! | --- | --- |
//! | `schema` | the columns of the newest data file; partition columns as texts |
//! | `tablestatus` | segment files and folders; what was compacted into what, by the numbers of rows |
//! | `segments/*.segment` | the folders with data files of the segment |
//! | `.carbonindex`, `.carbonindexmerge` | the footers of the data files, copied part by part; the blocklets of a stream |
//! | `tableupdatestatus-*` | the delta files that lie beside the data |
//! | `.dictmeta`, `.sortindex` | the entries of the dictionary |
//!
//! What was there before stays beside the new file, as `damaged-<n>.<name>.bad`. A new file appears complete or not at all.

mod index;
mod legacy_index;
mod schema;
mod stream_index;
mod thrift;
pub(crate) mod words;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;

use pilaster_core::verify::Finding;
use pilaster_core::{Absence, Dataset, Error, ErrorKind, Location, Result};
use serde::Serialize;

use super::deletes::stamps_in_folder;
use super::lost::{self, Lost};
use super::open::{OpenedTable, names_if_there, open_table, schema_path};
use super::options::CarbonTableOptions;
use super::reader::CarbonTable;
use super::status::{BlockUpdate, SegmentStatus};
pub(crate) use legacy_index::is_index_of;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) use thrift::fuzz as fuzz_raw;
pub(crate) use words::check as check_sort_indexes;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) use words::fuzz as fuzz_words;

/// A file that was written anew.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RebuiltFile {
    /// Its path.
    pub path: Location,
    /// Where the damaged one is now, if there was one.
    pub kept: Option<Location>,
}

/// What the repair of a table did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TableRepair {
    /// The files that were written.
    pub rebuilt: Vec<RebuiltFile>,
    /// What was found and what it means, whether it was repaired or not.
    pub findings: Vec<Finding>,
    /// What could not be repaired.
    pub left: Vec<Finding>,
}

impl TableRepair {
    /// Whether the table is whole again.
    pub fn is_complete(&self) -> bool {
        self.left.is_empty()
    }
}

/// Writes the metadata and index files of the table in `folder` that are lost or damaged. The data files stay as they are, and a
/// damaged file stays beside the new one.
///
/// # Errors
/// If so much is lost that the table cannot be opened at all, or a file cannot be written. What was written until then is
/// complete.
pub fn repair(folder: impl Into<Location>, options: &CarbonTableOptions) -> Result<TableRepair> {
    let options = CarbonTableOptions { recovers: true, as_of: None, segments: None, ..options.clone() };
    let place = folder.into();
    let opened = open_table(&place, &options)?;
    let mut repair =
        Repair { folder: &place, options: &options, opened: &opened, report: TableRepair::default() };
    repair.report.findings = opened.broken.iter().map(|broken| broken.finding.clone()).collect();
    repair.run()?;
    let mut report = repair.report;
    let plain = CarbonTableOptions { recovers: false, ..options.clone() };
    match CarbonTable::open(&place, &plain) {
        Ok(table) => report.left.extend(table.absences().iter().map(Absence::finding)),
        Err(error) => {
            report.left.push(Finding::from_error(&error, &place.to_string(), None));
        }
    }
    Ok(report)
}

struct Repair<'a> {
    folder: &'a Location,
    options: &'a CarbonTableOptions,
    opened: &'a OpenedTable,
    report: TableRepair,
}

impl Repair<'_> {
    fn run(&mut self) -> Result<()> {
        let opened = self.opened;
        // Segment files name index files, and tablestatus names segment files: from the bottom up.
        for broken in &opened.broken {
            let done = match &broken.lost {
                Lost::Index { segment, folder, name } => self.index(segment, folder, name)?,
                Lost::DictionaryMeta { column_id } => {
                    let bytes = words::meta(&self.folder.child("Metadata"), column_id, self.options)?;
                    self.write(&self.folder.child(format!("Metadata/{column_id}.dictmeta")), &bytes)?;
                    true
                }
                Lost::Delta | Lost::Dictionary | Lost::Data => false,
                Lost::Schema | Lost::Status | Lost::SegmentFile { .. } | Lost::UpdateStatus { .. } => true,
            };
            if !done {
                self.report.left.push(broken.finding.clone());
            }
        }
        let lost = |wanted: &dyn Fn(&Lost) -> bool| opened.broken.iter().any(|broken| wanted(&broken.lost));
        for broken in &opened.broken {
            match &broken.lost {
                Lost::SegmentFile { segment, name } => {
                    let file = lost::segment_file(self.folder, segment)?;
                    self.write_json(&self.folder.child("Metadata/segments").child(name), &file)?;
                }
                Lost::UpdateStatus { name } => {
                    let updates = self.updates()?;
                    self.write_json(&self.folder.child("Metadata").child(name), &updates)?;
                }
                _ => {}
            }
        }
        if lost(&|lost| *lost == Lost::Schema) {
            let path = schema_path(self.folder)?.unwrap_or_else(|| self.folder.child("Metadata/schema"));
            let bytes = schema::schema(self.folder, &self.opened.schema, self.options)?;
            self.write(&path, &bytes)?;
        }
        if lost(&|lost| *lost == Lost::Status) {
            let segments = self.segments()?;
            self.write_json(&self.folder.child("Metadata/tablestatus"), &segments)?;
        }
        for (path, bytes) in words::sort_indexes(self.folder, &self.opened.schema, self.options)? {
            self.write(&path, &bytes)?;
        }
        Ok(())
    }

    /// Writes an index file; `false` if a footer that it needs is lost.
    fn index(&mut self, segment: &str, folder: &Location, name: &str) -> Result<bool> {
        let files = index::data_files(folder, segment, name, &self.options.limits)?;
        match index::index(folder, name, &files, &self.options.limits) {
            Ok(bytes) => {
                self.write(&folder.child(name), &bytes)?;
                Ok(true)
            }
            Err(error) if lost::is_lost(&error) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// The segments as `tablestatus` lists them.
    fn segments(&self) -> Result<Vec<SegmentStatus>> {
        let mut segments = self.opened.segments.clone();
        let mut sizes: BTreeMap<&str, u64> = BTreeMap::new();
        for part in &self.opened.parts {
            let size = sizes.entry(part.segment.as_str()).or_default();
            *size = size.saturating_add(part.file.source.size());
        }
        for segment in &mut segments {
            let size = sizes.get(segment.id.as_str()).copied();
            segment.data_bytes = size.filter(|_| !segment.is_stream()).map(|size| size.to_string());
        }
        let names = names_if_there(&self.folder.child("Metadata"))?.unwrap_or_default();
        let newest = names
            .into_iter()
            .filter(|name| name.starts_with("tableupdatestatus-"))
            .max_by_key(|name| name.rsplit_once('-').and_then(|(_, stamp)| stamp.parse::<u64>().ok()));
        if let Some(first) = segments.first_mut() {
            first.update_status_file = newest;
        }
        Ok(segments)
    }

    /// An update status in which every delta file counts.
    fn updates(&self) -> Result<Vec<BlockUpdate>> {
        let mut updates = Vec::new();
        for part in &self.opened.parts {
            let name = part.place.name().to_string_lossy().into_owned();
            let stem = name.strip_suffix(".carbondata").unwrap_or(&name);
            let block = stem.rsplit_once('-').map_or(stem, |(block, _)| block).to_string();
            let stamps =
                stamps_in_folder(&part.place.parent().unwrap_or_else(|| self.folder.clone()), &block)?;
            if let (Some(first), Some(last)) = (stamps.first(), stamps.last()) {
                updates.push(BlockUpdate {
                    segment: part.segment.clone(),
                    block,
                    data_file: name.clone(),
                    start: Some(first.clone()),
                    end: Some(last.clone()),
                    deleted_rows: Some(part.file.rows.saturating_sub(part.live.count()).to_string()),
                    stamps: (stamps.len() > 1).then_some(stamps),
                    status: None,
                });
            }
        }
        Ok(updates)
    }

    fn write_json<T: Serialize>(&mut self, path: &Location, value: &T) -> Result<()> {
        let bytes = serde_json::to_vec(value).map_err(|error| Error::internal(error.to_string()))?;
        self.write(path, &bytes)
    }

    /// Writes a file; what is there stays under another name.
    fn write(&mut self, file: &Location, bytes: &[u8]) -> Result<()> {
        if self.report.rebuilt.iter().any(|known| known.path == *file) {
            return Ok(());
        }
        if let Some(folder) = file.parent() {
            folder.make_folder()?;
        }
        let is_there = file.is_link()? || file.entry()?.is_some();
        let kept = is_there.then(|| keep(file)).transpose()?;
        file.write(bytes)?;
        self.report.rebuilt.push(RebuiltFile { path: file.clone(), kept });
        Ok(())
    }
}

/// Gives a file another name, which no engine looks for.
fn keep(file: &Location) -> Result<Location> {
    let is_taken = |kind: &ErrorKind| matches!(kind, ErrorKind::Io(error) if error.kind() == io::ErrorKind::AlreadyExists);
    for number in 1u32.. {
        let mut name = OsString::from(format!("damaged-{number}."));
        name.push(file.name());
        name.push(".bad");
        match file.set_aside(name) {
            Err(error) if is_taken(error.kind()) => {}
            done => return done,
        }
    }
    Err(file.blame(Error::from(io::Error::from(io::ErrorKind::AlreadyExists))))
}
