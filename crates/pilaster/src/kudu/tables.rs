//! The disks of tablet servers.

use std::ffi::OsStr;

use pilaster_core::{
    BatchReader, CallOption, Dataset, DatasetRef, Error, Finding, Location, LostRows, Progress, Result,
    VerifyDepth, VerifyReport,
};
use pilaster_kudu::store::{KuduStore, KuduStoreOptions, OrphanGroup, TabletEntry, Unproven, Unread};
use pilaster_kudu::table_writer::{KuduTableWriter, KuduTableWriterOptions};

use super::cfiles::cfile_options;
use crate::convert::{ConvertSummary, Counted, write_counted};
use crate::folder::has_columnar_files;
use crate::ls::{Entry, State};
use crate::open::OpenOptions;
use crate::store::{Store, UnprovenPart};

/// The disks of one or several servers, as a store of tables.
#[derive(Debug)]
pub(super) struct Servers {
    /// The folders as they were given.
    name: String,
    store: KuduStore,
}

impl Servers {
    pub(super) fn open(folders: &[Location], options: &OpenOptions) -> Result<Self> {
        let names: Vec<_> = folders.iter().map(|folder| folder.to_string()).collect();
        Ok(Self { name: names.join(" "), store: open_servers(folders, options)? })
    }
}

impl Store for Servers {
    fn tables(&self) -> Vec<String> {
        self.store.tables()
    }

    fn table(&self, name: Option<&str>) -> Result<DatasetRef> {
        let dataset = self.store.dataset(name);
        match name {
            // Looking for orphans reads much, so only what is no table is looked for among them.
            Some(name) if dataset.is_err() && !self.tables().iter().any(|table| table == name) => {
                self.store.orphan(name).or(dataset)
            }
            _ => dataset,
        }
    }

    fn entries(&self) -> Vec<Entry> {
        let tablets = self.store.tablets().into_iter().map(|tablet| entry(&self.name, tablet));
        let tablets: Vec<_> = tablets.collect();
        // Looking at the tablets may have shown more that cannot be read.
        let missing = self.store.missing_tablets().into_iter();
        let missing =
            missing.map(|(table, what)| missing_entry(format!("{}#{table}", self.name), &table, what));
        tablets.into_iter().chain(missing).chain(self.store.unread().iter().map(unread_entry)).collect()
    }

    fn orphans(&self) -> Vec<Entry> {
        self.store.orphans().into_iter().map(|group| orphan_entry(&self.name, group)).collect()
    }

    fn unproven(&self, table: Option<&str>) -> Result<Vec<UnprovenPart>> {
        let parts = self.store.unproven(table)?.into_iter();
        let part = |Unproven { name, reason, rows }| UnprovenPart { name, reason, rows };
        Ok(parts.map(part).collect())
    }

    fn elsewhere(&self, table: &str) -> Vec<LostRows> {
        let lost = self.store.unheard(table).map(LostRows::unknown);
        lost.map(|lost| lost.within(format!("table {table}"))).into_iter().collect()
    }

    fn findings(&self) -> Vec<Finding> {
        self.store.findings()
    }

    fn verify(
        &self,
        table: Option<&str>,
        depth: VerifyDepth,
        progress: &dyn Progress,
    ) -> Result<VerifyReport> {
        self.store.verify(table, depth, progress)
    }
}

fn entry(path: &str, tablet: TabletEntry) -> Entry {
    let log =
        tablet.log_segments.map_or("none".to_string(), |(first, last)| format!("segments {first}..={last}"));
    let replicas = match tablet.replicas {
        (_, 0) => "unknown".to_string(),
        (here, voters) => format!("{here} of {voters}"),
    };
    let details = [
        ("table", tablet.table.clone()),
        ("tablet", tablet.tablet),
        ("server", tablet.server),
        ("state", tablet.state.to_string()),
        ("partition", tablet.partition),
        ("rowsets", tablet.rowsets.to_string()),
        ("deltas", tablet.deltas.to_string()),
        ("log", log),
        ("replicas here", replicas),
    ];
    Entry {
        path: format!("{path}#{}", tablet.table),
        format: Some("kudu tablet".to_string()),
        rows: tablet.flushed_rows,
        bytes: tablet.bytes,
        columns: Some(tablet.columns),
        details: details.map(|(name, value)| (name.to_string(), value)).to_vec(),
        state: match (tablet.unread, tablet.damage, tablet.missing_blocks) {
            (Some(unread), ..) => State::Unread(unread.error().to_string()),
            (None, Some(damage), _) => State::Problem(damage.to_string()),
            (None, None, 0) => State::Ok,
            (None, None, missing) => State::Problem(format!("{missing} blocks are missing")),
        },
    }
}

/// A tablet that must exist and is not here.
fn missing_entry(path: String, table: &str, what: String) -> Entry {
    Entry {
        path,
        format: Some("kudu tablet".to_string()),
        rows: None,
        bytes: 0,
        columns: None,
        details: vec![("table".to_string(), table.to_string())],
        state: State::Problem(what),
    }
}

fn unread_entry(unread: &Unread) -> Entry {
    let error = unread.error();
    Entry {
        path: unread.path.to_string(),
        format: None,
        rows: None,
        bytes: 0,
        columns: None,
        details: Vec::new(),
        state: State::Unread(error.kind().to_string()),
    }
}

fn orphan_entry(path: &str, group: OrphanGroup) -> Entry {
    let mut details = vec![
        ("server".to_string(), group.server),
        ("blocks".to_string(), group.blocks.len().to_string()),
        ("reads as".to_string(), if group.is_rowset { "a table" } else { "a cfile" }.to_string()),
    ];
    if let Some(tablet) = group.tablet {
        details.push(("tablet".to_string(), tablet));
    }
    if !group.tables.is_empty() {
        details.push(("columns like".to_string(), group.tables.join(", ")));
    }
    let kinds: Vec<_> =
        group.blocks.iter().map(|block| format!("{} {}", block.data_type, block.kind)).collect();
    details.push(("holds".to_string(), kinds.join(", ")));
    Entry {
        path: format!("{path}#{}", group.name),
        format: Some("kudu orphans".to_string()),
        rows: Some(group.rows),
        bytes: group.blocks.iter().map(|block| block.bytes).sum(),
        columns: None,
        details,
        state: State::Ok,
    }
}

/// Opens the disks of one or several servers together.
///
/// # Errors
/// If they are no roots of a Kudu server, or cannot be read by this build.
pub fn open_servers(folders: &[Location], options: &OpenOptions) -> Result<KuduStore> {
    let store_options = (options.kudu().store.clone())
        .with_cfile_options(cfile_options(options))
        .with_as_of(options.as_of().map(parse_as_of).transpose()?);
    KuduStore::open(folders, store_options)
}

/// Whether a folder is a root of a Kudu server, or has roots in or below its folders. A folder with columnar files of its own is
/// a folder of files, whatever lies deeper; notes and logs beside the roots are none.
pub(super) fn is_store(folder: &Location) -> bool {
    (is_root(folder) || !has_columnar_files(folder))
        && pilaster_kudu::store::is_kudu_folder(folder).unwrap_or(false)
}

/// Whether a folder is a root itself.
pub(super) fn is_root(folder: &Location) -> bool {
    let is_dir = |name: &str| folder.child(name).is_folder().unwrap_or(false);
    let is_there = |name: &str| folder.child(name).entry().is_ok_and(|entry| entry.is_some());
    is_dir("tablet-meta")
        || is_dir("consensus-meta")
        || is_dir("wals")
        || is_dir("data") && (is_there("data/block_manager_instance") || is_there("instance"))
}

/// What lies in a root; a server that stops while it writes a file leaves it under a name with an addition.
pub(super) fn is_part_of_root(name: &OsStr) -> bool {
    const PARTS: [&str; 5] = ["consensus-meta", "data", "instance", "tablet-meta", "wals"];
    let name = name.to_string_lossy();
    PARTS
        .iter()
        .any(|part| name == *part || name.strip_prefix(part).is_some_and(|rest| rest.starts_with('.')))
}

/// A hybrid timestamp, as a number; or a wall-clock time, UTC unless it names a zone.
///
/// # Errors
/// [`pilaster_core::ErrorKind::InvalidInput`] if it is neither.
pub fn parse_as_of(text: &str) -> Result<u64> {
    if let Ok(hybrid) = text.parse::<u64>() {
        return Ok(hybrid);
    }
    let nanos = arrow_cast::parse::string_to_timestamp_nanos(text).map_err(|_| {
        let expected = "a hybrid timestamp (a number) or a time such as 2024-05-31T12:00:00";
        Error::invalid(format!("a point in time is {expected}, not \"{text}\"")).turning_on(CallOption::AsOf)
    })?;
    let micros = u64::try_from(nanos.div_euclid(1000)).map_err(|_| Error::invalid("a time before 1970"))?;
    // The upper bits of a hybrid timestamp are microseconds, the lower 12 count within one.
    micros.checked_mul(1 << 12).ok_or_else(|| Error::invalid("a time too far in the future"))
}

/// Writes a table as the folder of a tablet server; it is opened again and its rows are counted.
pub(super) fn write(
    batches: BatchReader,
    folder: &Location,
    options: &KuduTableWriterOptions,
    progress: &dyn Progress,
) -> Result<ConvertSummary> {
    let name = folder.to_string();
    let in_folder = |error: Error| error.at(&name, 0, "");
    let mut options = options.clone();
    let stem = folder.path().file_stem().map(|stem| stem.to_string_lossy().into_owned());
    if let (None, Some(stem)) = (options.table_name(), stem) {
        options = options.with_table_name(stem);
    }
    write_counted(folder, |folder| {
        let mut writer = KuduTableWriter::try_new(folder, batches.schema(), options).map_err(in_folder)?;
        for batch in batches {
            let batch = batch.map_err(Error::from)?;
            writer.write(&batch).map_err(in_folder)?;
            progress.advance(batch.num_rows() as u64);
        }
        let summary = writer.finish().map_err(in_folder)?;
        let store = KuduStore::open(std::slice::from_ref(folder), KuduStoreOptions::default())?;
        let found = store.table(None)?.row_count();
        let found =
            found.ok_or_else(|| in_folder(Error::corrupt("a table that counts its rows", "no count")))?;
        Ok(Counted { rows: summary.rows, bytes: summary.bytes, found: Some(found) })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_a_number_or_a_clock() {
        assert_eq!(parse_as_of("7351211160565825537").unwrap(), 7_351_211_160_565_825_537);
        assert_eq!(parse_as_of("1970-01-01T00:00:01").unwrap(), 1_000_000 << 12);
        assert_eq!(parse_as_of("1970-01-01T02:00:00+02:00").unwrap(), 0);
        for text in ["yesterday", "", "1969-01-01T00:00:00"] {
            assert!(parse_as_of(text).is_err(), "{text}");
        }
    }
}
