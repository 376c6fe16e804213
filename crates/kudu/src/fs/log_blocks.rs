//! The log block manager: containers of many blocks.
//!
//! A container is a `.data` file with the bytes and a `.metadata` file (a protobuf container) with a record for each block
//! created or deleted. Replaying the records in order gives the live blocks. Data files are preallocated and punched:
//! neither their size nor zeros in them mean anything.

use std::collections::BTreeMap;
use std::sync::Arc;

use pilaster_core::verify::Severity;
use pilaster_core::{Error, Limits, Location, Result};

use super::blocks::{BlockMap, BlockPlace, Container, FilePool};
use super::pbc::{Record, Records, Torn};
use crate::messages::{self, BlockRecordPb, required};

/// Adds the blocks of every container in a data directory (`<root>/data`).
pub(super) fn add_blocks(
    data: &Location,
    block_bytes: u64,
    limits: &Limits,
    pool: &FilePool,
    map: &mut BlockMap,
) {
    let files = pool.unread().entries(data);
    let with_extension = |extension: &str| -> BTreeMap<Location, Location> {
        let matching =
            files.iter().filter(|path| path.path().extension().is_some_and(|found| found == extension));
        matching.map(|path| (path.with_extension(""), path.clone())).collect()
    };
    let (data_files, metadata_files) = (with_extension("data"), with_extension("metadata"));
    for (container, metadata) in &metadata_files {
        let data_file = data_files.get(container);
        add_container(metadata, data_file, block_bytes, limits, pool, map);
    }
    for (container, data_file) in &data_files {
        let has_blocks = || pool.unread().size(data_file).is_some_and(|size| size > 0);
        if !metadata_files.contains_key(container) && has_blocks() {
            let message = "its .metadata file is missing".into();
            map.report(Severity::Error, data_file, 0, "container", message);
            let data = Arc::new(data_file.clone());
            map.containers.push(Container { data, known: BTreeMap::new(), block_bytes });
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
    metadata: &Location,
    data: Option<&Location>,
    block_bytes: u64,
    limits: &Limits,
    pool: &FilePool,
    map: &mut BlockMap,
) {
    let replay = match replay(metadata, limits, pool, map) {
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
    // A file that cannot be looked into may hold them all; whoever asks later is told so too.
    let size = pool.stored(data).map_or(u64::MAX, |source| source.size());
    let file = Arc::new(data.clone());
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

/// More damaged records of a container than these are not told one by one.
const MOST_FINDINGS: u64 = 100;

fn replay(metadata: &Location, limits: &Limits, pool: &FilePool, map: &mut BlockMap) -> Result<Replay> {
    let source = pool.content(metadata)?;
    let mut records = Records::open(source.as_ref(), limits)?;
    let (mut replay, mut damaged) = (Replay::default(), 0u64);
    loop {
        let error = match records.next() {
            Ok(None) => break,
            Ok(Some(Record::Good(at, record))) => match replay.apply(&record) {
                Ok(()) => continue,
                Err(error) => error.at(&metadata.to_string(), at, "block record"),
            },
            Ok(Some(Record::Torn(Torn::Incomplete(at)))) => {
                let message = "the last record is incomplete".into();
                map.report(Severity::Warning, metadata, at, "block record", message);
                continue;
            }
            Ok(Some(Record::Damaged(error, _) | Record::Torn(Torn::Corrupt(error)))) => error,
            // What came before is right all the same.
            Err(error) => {
                map.report_error(metadata, &error);
                break;
            }
        };
        damaged = damaged.saturating_add(1);
        if damaged <= MOST_FINDINGS {
            map.report_error(metadata, &error);
        }
    }
    if let Some(more) = damaged.checked_sub(MOST_FINDINGS).filter(|more| *more > 0) {
        map.report(Severity::Error, metadata, 0, "block record", format!("{more} more records are damaged"));
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
