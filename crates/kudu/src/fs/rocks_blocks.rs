//! The "logr" block manager: containers as in [`super::log_blocks`], with their records in a RocksDB.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use pilaster_core::verify::Severity;
use pilaster_core::{Error, ErrorKind, Limits, Location, Result};
use pilaster_rocksdb::{DEFAULT_FAMILY, Database, OnDamage};

use super::blocks::{BlockMap, BlockPlace, Container, FilePool};
use crate::messages::{self, BlockRecordPb, required};

/// Adds the blocks of a data directory (`<root>/data`). What of the records is damaged or gone is reported, as it is of a container's
/// records: a block that is then missing is looked for in the containers, and else missed by whatever names it.
pub(super) fn add_blocks(
    data: &Location,
    block_bytes: u64,
    limits: &Limits,
    pool: &FilePool,
    map: &mut BlockMap,
) -> Result<()> {
    let (folder, sound) = (data.child("rdb"), map.findings.len());
    match pool.unread().noted(&folder, read(data, &folder, limits, pool, map)) {
        Ok(()) => {}
        Err(_) if pool.unread().all().iter().any(|unread| folder.below(&unread.path).is_some()) => {
            return Ok(());
        }
        Err(error) if is_lost(&error) => map.report_error(&folder, &error),
        Err(error) => return Err(error),
    }
    if map.findings.len() > sound {
        add_containers(data, block_bytes, pool, map);
    }
    Ok(())
}

/// Whether there is no database that could be read, rather than one that this build cannot read.
fn is_lost(error: &Error) -> bool {
    match error.kind() {
        ErrorKind::Io(error) => {
            matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
        }
        _ => error.is_damage(),
    }
}

/// Every container, to look in for the blocks whose records are lost.
fn add_containers(data: &Location, block_bytes: u64, pool: &FilePool, map: &mut BlockMap) {
    let is_container = |path: &Location| path.path().extension().is_some_and(|extension| extension == "data");
    let mut known: BTreeMap<Location, BTreeMap<u64, (u64, u64)>> = pool
        .unread()
        .entries(data)
        .into_iter()
        .filter(is_container)
        .map(|path| (path, BTreeMap::new()))
        .collect();
    for (id, place) in &map.places {
        if let Some(known) = known.get_mut(&*place.file) {
            known.insert(place.offset, (*id, place.length));
        }
    }
    let container = |(path, known): (Location, _)| Container { data: Arc::new(path), known, block_bytes };
    map.containers.extend(known.into_iter().map(container));
}

fn read(
    data: &Location,
    folder: &Location,
    limits: &Limits,
    pool: &FilePool,
    map: &mut BlockMap,
) -> Result<()> {
    let mut sizes: BTreeMap<Arc<Location>, u64> = BTreeMap::new();
    let database = Database::open(folder, limits, OnDamage::Skip)?;
    for pair in database.pairs(DEFAULT_FAMILY)? {
        let (key, value) = pair?;
        match parse(data, &key, &value) {
            Ok((id, place)) => {
                let size =
                    *sizes.entry(Arc::clone(&place.file)).or_insert_with(|| size_of(&place.file, pool));
                if place.length > 0 && place.offset.saturating_add(place.length) > size {
                    let message = format!("block {id} reaches past the end at {size}");
                    map.report(Severity::Error, &place.file, place.offset, "block", message);
                } else {
                    map.add(id, place);
                }
            }
            Err(error) => map.report_error(folder, &error),
        }
    }
    map.findings.extend(database.findings());
    Ok(())
}

/// Bytes of a container; one that cannot be looked into may hold anything, one that is not there holds nothing.
fn size_of(file: &Location, pool: &FilePool) -> u64 {
    match pool.stored(file) {
        Ok(source) => source.size(),
        Err(_) if pool.unread().knows(file) => u64::MAX,
        Err(_) => 0,
    }
}

fn parse(data: &Location, key: &[u8], value: &[u8]) -> Result<(u64, BlockPlace)> {
    let bad = || Error::corrupt("a key <container>.<block>", format!("\"{}\"", key.escape_ascii()));
    let text = std::str::from_utf8(key).map_err(|_| bad())?;
    let (container, block) = text.split_once('.').ok_or_else(bad)?;
    if container.len() != 32 || !container.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(bad());
    }
    let id: u64 = block.parse().map_err(|_| bad())?;
    let record: BlockRecordPb = messages::parse(value, "BlockRecordPB")?;
    let number = |field: Option<i64>, name: &str| {
        let value = required(field, name)?;
        u64::try_from(value).map_err(|_| Error::corrupt(format!("a {name} of at least 0"), value))
    };
    let file = Arc::new(data.child(format!("{container}.data")));
    let place = BlockPlace {
        file,
        offset: number(record.offset, "offset")?,
        length: number(record.length, "length")?,
    };
    Ok((id, place))
}
