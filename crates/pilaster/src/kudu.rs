//! Where Apache Kudu plugs in: which files and folders are its own, how they are opened and written.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use pilaster_core::source::open_source;
use pilaster_core::{AtomicFolder, BatchReader, Dataset, DatasetRef, Error, Progress, Result, SourceRef};
pub use pilaster_kudu::cfile::{AssumedShape, CFileWriterOptions, Compression, Encoding, KuduType, Version};
use pilaster_kudu::cfile::{CFileReader, CFileReaderOptions};
pub use pilaster_kudu::cfile_set::CFileSetWriterOptions;
use pilaster_kudu::cfile_set::{CFileSet, CFileSetOptions, CFileSetWriter, MANIFEST_NAME};
pub use pilaster_kudu::store::{KuduStore, KuduStoreOptions, TabletEntry, TabletLog};
pub use pilaster_kudu::tablet::LogUse;
pub use pilaster_kudu::wal::LogLine;

use crate::convert::ConvertSummary;
use crate::ls::{Entry, State};
use crate::open::OpenOptions;
use crate::paths;

/// What only Kudu's files need to know to be opened.
#[derive(Debug, Clone, Default)]
pub struct KuduOptions {
    assumed_shape: Option<AssumedShape>,
    store: KuduStoreOptions,
}

impl KuduOptions {
    /// What a CFile whose footer is lost must be taken for.
    #[must_use]
    pub fn with_assumed_shape(mut self, shape: Option<AssumedShape>) -> Self {
        self.assumed_shape = shape;
        self
    }

    /// How servers' folders are read: log, replica, tablet, server key. Checksums, limits and the time come from
    /// [`OpenOptions`].
    #[must_use]
    pub fn with_store(mut self, store: KuduStoreOptions) -> Self {
        self.store = store;
        self
    }

    /// What a CFile whose footer is lost must be taken for.
    pub fn assumed_shape(&self) -> Option<&AssumedShape> {
        self.assumed_shape.as_ref()
    }
}

/// Opens the disks of one or several servers together.
///
/// # Errors
/// If they are no roots of a Kudu server, or cannot be read by this build.
pub fn open_store(folders: &[PathBuf], options: &OpenOptions) -> Result<KuduStore> {
    let store_options = (options.kudu().store.clone())
        .with_cfile_options(cfile_options(options))
        .with_as_of(options.as_of().map(parse_as_of).transpose()?);
    KuduStore::open(folders, store_options)
}

/// The store that all these paths together are, if each is a folder with roots of a Kudu server.
pub(crate) fn store_of<S: AsRef<str>>(given: &[S], options: &OpenOptions) -> Option<Result<KuduStore>> {
    let folders: Vec<PathBuf> = given.iter().map(|path| paths::local(path.as_ref()).to_path_buf()).collect();
    let is_store = |folder: &PathBuf| folder.is_dir() && !is_cfile_set(folder) && is_store_folder(folder);
    (!folders.is_empty() && folders.iter().all(is_store)).then(|| open_store(&folders, options))
}

/// Whether a folder is a root of a Kudu server, or holds nothing but folders with roots in or below them. A folder with
/// files of its own is a folder of files, whatever lies deeper.
fn is_store_folder(folder: &Path) -> bool {
    let is_file = |path: &PathBuf| path.is_file();
    let has_files = paths::entries(folder).is_ok_and(|entries| entries.iter().any(is_file));
    let is_root = |name: &str| folder.join(name).is_dir();
    (!has_files || is_root("tablet-meta") || is_root("wals") || is_root("data"))
        && pilaster_kudu::store::is_kudu_folder(folder)
}

/// Every table of a store (or the one asked for), each by itself.
pub(crate) fn open_tables(
    path: &str,
    store: &KuduStore,
    options: &OpenOptions,
) -> Result<Vec<(String, Result<DatasetRef>)>> {
    let names = match options.table() {
        Some(name) => vec![name.to_string()],
        None => store.tables(),
    };
    let open = |name: String| {
        let opened = store.table(Some(&name)).map(|table| Arc::new(table) as DatasetRef);
        (format!("{path}#{name}"), opened)
    };
    Ok(names.into_iter().map(open).collect())
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
        Error::invalid(format!("--as-of takes {expected}, not \"{text}\""))
    })?;
    let micros = u64::try_from(nanos.div_euclid(1000)).map_err(|_| Error::invalid("a time before 1970"))?;
    // The upper bits of a hybrid timestamp are microseconds, the lower 12 count within one.
    micros.checked_mul(1 << 12).ok_or_else(|| Error::invalid("a time too far in the future"))
}

/// Every replica of every tablet, and what is wrong with the folders.
pub(crate) fn list(path: &str, store: &KuduStore) -> Vec<Entry> {
    let tablets = store.tablets().into_iter().map(|tablet| {
        let mut details = vec![
            ("table".to_string(), tablet.table.clone()),
            ("tablet".to_string(), tablet.tablet.clone()),
            ("server".to_string(), tablet.server.clone()),
            ("state".to_string(), tablet.state.to_string()),
            ("partition".to_string(), tablet.partition.clone()),
            ("rowsets".to_string(), tablet.rowsets.to_string()),
            ("deltas".to_string(), tablet.deltas.to_string()),
        ];
        let log = tablet
            .log_segments
            .map_or("none".to_string(), |(first, last)| format!("segments {first}..={last}"));
        details.push(("log".to_string(), log));
        Entry {
            path: format!("{path}#{}", tablet.table),
            format: Some("kudu tablet".to_string()),
            rows: tablet.flushed_rows,
            bytes: tablet.bytes,
            columns: Some(tablet.columns),
            details,
            state: State::Ok,
        }
    });
    let problems = store.findings().iter().map(|finding| Entry {
        path: finding.path.to_string(),
        format: None,
        rows: None,
        bytes: 0,
        columns: None,
        details: Vec::new(),
        state: State::Problem(format!("{} at byte {}: {}", finding.part, finding.offset, finding.message)),
    });
    tablets.chain(problems).collect()
}

fn cfile_options(options: &OpenOptions) -> CFileReaderOptions {
    CFileReaderOptions::default()
        .with_verify_checksums(options.verify_checksums())
        .with_limits(options.limits().clone())
}

/// Whether a folder is a set of CFiles with its manifest.
pub(crate) fn is_cfile_set(folder: &Path) -> bool {
    folder.join(MANIFEST_NAME).is_file()
}

/// Whether an address is a set of CFiles with its manifest.
pub(crate) fn is_cfile_set_address(address: &str) -> bool {
    open_source(&format!("{}/{MANIFEST_NAME}", address.trim_end_matches('/'))).is_ok()
}

/// Opens one CFile; a schema of one column in the options names and types it.
pub(crate) fn open_cfile(source: SourceRef, options: &OpenOptions) -> Result<DatasetRef> {
    let mut reader_options = cfile_options(options);
    if let Some(schema) = options.schema() {
        let [field] = schema.fields().as_ref() else {
            let message = format!("a cfile holds one column; the schema given has {}", schema.fields().len());
            return Err(Error::invalid(message).at(source.name(), 0, ""));
        };
        reader_options = reader_options.with_field(Arc::clone(field));
    }
    Ok(Arc::new(match options.kudu().assumed_shape() {
        Some(shape) => CFileReader::recover(source, shape, &reader_options)?,
        None => CFileReader::open_with_options(source, &reader_options)?,
    }))
}

/// Opens a set of CFiles, a path or an address, as a table.
pub(crate) fn open_cfile_set(folder: &str, options: &OpenOptions) -> Result<DatasetRef> {
    let options = CFileSetOptions::default()
        .with_verify_checksums(options.verify_checksums())
        .with_limits(options.limits().clone());
    Ok(Arc::new(CFileSet::open(folder, options)?))
}

/// Writes a set of CFiles; it is opened again and its rows are counted before it gets its name.
pub(crate) fn write_cfile_set(
    batches: BatchReader,
    folder: &Path,
    options: &CFileSetWriterOptions,
    progress: &dyn Progress,
) -> Result<ConvertSummary> {
    let unchecked = AtomicFolder::create(folder)?;
    let name = folder.display().to_string();
    let in_folder = |error: Error| error.at(&name, 0, "");
    let mut writer =
        CFileSetWriter::create(unchecked.path(), batches.schema(), options).map_err(in_folder)?;
    let mut rows = 0u64;
    for batch in batches {
        let batch = batch.map_err(Error::from)?;
        writer.write(&batch).map_err(in_folder)?;
        rows = rows.saturating_add(batch.num_rows() as u64);
        progress.advance(batch.num_rows() as u64);
    }
    let summary = writer.finish().map_err(in_folder)?;
    let written = CFileSet::open(&unchecked.path().display().to_string(), CFileSetOptions::default())?;
    for column in 0..written.schema().fields().len() {
        let found = written.column(column)?.row_count().unwrap_or(0);
        if found != rows {
            return Err(in_folder(Error::corrupt(format!("{rows} rows, as many as were read"), found)));
        }
    }
    unchecked.commit()?;
    Ok(ConvertSummary { rows, bytes: summary.bytes, is_counted: true })
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
