//! The log block manager: containers of many blocks.
//!
//! A container is a `.data` file with the bytes and a `.metadata` file (a protobuf container) with a record for each block
//! created or deleted. Replaying the records in order gives the live blocks. Data files are preallocated and punched:
//! neither their size nor zeros in them mean anything.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pilaster_core::verify::Severity;
use pilaster_core::{Error, Result};

use super::blocks::{BlockMap, BlockPlace, Container, FilePool};
use super::file_blocks::entries;
use super::pbc::{Pbc, Torn};
use crate::messages::{self, BlockRecordPb, required};

/// Adds the blocks of every container in a data directory (`<root>/data`).
pub(super) fn add_blocks(data: &Path, block_bytes: u64, pool: &FilePool, map: &mut BlockMap) {
    let files = entries(data);
    let with_extension = |extension: &str| -> BTreeMap<PathBuf, PathBuf> {
        let matching = files.iter().filter(|path| path.extension().is_some_and(|found| found == extension));
        matching.map(|path| (path.with_extension(""), path.clone())).collect()
    };
    let (data_files, metadata_files) = (with_extension("data"), with_extension("metadata"));
    for (container, metadata) in &metadata_files {
        let data_file = data_files.get(container);
        add_container(metadata, data_file.map(PathBuf::as_path), block_bytes, pool, map);
    }
    for (container, data_file) in &data_files {
        if !metadata_files.contains_key(container) {
            let size = std::fs::metadata(data_file).map(|metadata| metadata.len()).unwrap_or_default();
            if size > 0 {
                map.report(
                    Severity::Error,
                    data_file,
                    0,
                    "container",
                    "its .metadata file is missing".into(),
                );
                let data = Arc::from(data_file.as_path());
                map.containers.push(Container { data, known: BTreeMap::new(), block_bytes });
            }
        }
    }
}

/// What the records of a container say.
#[derive(Debug, Default)]
struct Replay {
    live: BTreeMap<u64, (u64, u64)>,
    /// Every block ever created: offset → (id, length). Space is never used twice.
    ever: BTreeMap<u64, (u64, u64)>,
}

fn add_container(
    metadata: &Path,
    data: Option<&Path>,
    block_bytes: u64,
    pool: &FilePool,
    map: &mut BlockMap,
) {
    let replay = match replay(metadata, pool, map) {
        Ok(replay) => replay,
        Err(error) => {
            map.report_error(metadata, &error);
            Replay::default()
        }
    };
    let Some(data) = data else {
        if !replay.live.is_empty() {
            let message = format!("its .data file is missing: {} blocks are lost", replay.live.len());
            map.report(Severity::Error, metadata, 0, "container", message);
        }
        return;
    };
    let size = std::fs::metadata(data).map(|metadata| metadata.len()).unwrap_or_default();
    let file: Arc<Path> = Arc::from(data);
    for (&id, &(offset, length)) in &replay.live {
        if length > 0 && offset.saturating_add(length) > size {
            let message = format!(
                "block {id} at {offset}..{} reaches past the end at {size}",
                offset.saturating_add(length)
            );
            map.report(Severity::Error, data, offset, "block", message);
            continue;
        }
        map.add(id, BlockPlace { file: Arc::clone(&file), offset, length });
    }
    map.containers.push(Container { data: file, known: replay.ever, block_bytes });
}

fn replay(metadata: &Path, pool: &FilePool, map: &mut BlockMap) -> Result<Replay> {
    let source = pool.content(metadata)?;
    let pbc = Pbc::read(source.as_ref())?;
    let mut replay = Replay::default();
    match &pbc.torn {
        None => {}
        Some(Torn::Incomplete(at)) => {
            map.report(
                Severity::Warning,
                metadata,
                *at,
                "block record",
                "the last record is incomplete".into(),
            );
        }
        Some(Torn::Corrupt(error)) => map.report_error(metadata, error),
    }
    for (error, _) in &pbc.damaged {
        map.report_error(metadata, error);
    }
    for (at, record) in &pbc.records {
        if let Err(error) = replay.apply(record) {
            map.report_error(metadata, &error.at(&metadata.display().to_string(), *at, "block record"));
        }
    }
    Ok(replay)
}

impl Replay {
    fn apply(&mut self, record: &[u8]) -> Result<()> {
        let record: BlockRecordPb = messages::parse(record, "BlockRecordPB")?;
        let id = required(required(record.block_id, "block_id")?.id, "block_id.id")?;
        match required(record.op_type, "op_type")? {
            BlockRecordPb::CREATE => {
                let number = |field: Option<i64>, name: &str| {
                    let value = required(field, name)?;
                    u64::try_from(value).map_err(|_| Error::corrupt(format!("a {name} of at least 0"), value))
                };
                let (offset, length) = (number(record.offset, "offset")?, number(record.length, "length")?);
                self.ever.insert(offset, (id, length));
                if self.live.insert(id, (offset, length)).is_some() {
                    return Err(Error::corrupt("a new block", format!("block {id}, which is live already")));
                }
                Ok(())
            }
            BlockRecordPb::DELETE => match self.live.remove(&id) {
                Some(_) => Ok(()),
                None => Err(Error::corrupt("a live block to delete", format!("block {id}"))),
            },
            other => Err(Error::corrupt("op_type 1 or 2", other)),
        }
    }
}

/// Replays block records, right or wrong.
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) fn parse_block_records<'a>(records: impl Iterator<Item = &'a [u8]>) {
    let mut replay = Replay::default();
    for record in records {
        let _ = replay.apply(record);
    }
}
