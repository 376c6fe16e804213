//! The "logr" block manager: containers as in [`super::log_blocks`], with their records in a RocksDB.

use std::path::Path;
use std::sync::Arc;

use pilaster_core::verify::Severity;
use pilaster_core::{Error, Limits, Result};

use super::blocks::{BlockMap, BlockPlace};
use super::rocks_log;
use crate::messages::{self, BlockRecordPb, required};

/// Adds the blocks of a data directory (`<root>/data`).
pub(super) fn add_blocks(data: &Path, limits: &Limits, map: &mut BlockMap) -> Result<()> {
    for (key, value) in pairs(&data.join("rdb"), limits)? {
        match parse(data, &key, &value) {
            Ok((id, place)) => {
                let size = std::fs::metadata(&place.file).map(|metadata| metadata.len()).unwrap_or_default();
                if place.length > 0 && place.offset.saturating_add(place.length) > size {
                    let message = format!("block {id} reaches past the end at {size}");
                    map.report(Severity::Error, &place.file, place.offset, "block", message);
                } else {
                    map.add(id, place);
                }
            }
            Err(error) => map.report_error(&data.join("rdb"), &error),
        }
    }
    Ok(())
}

#[cfg(feature = "rocksdb")]
fn pairs(folder: &Path, limits: &Limits) -> Result<rocks_log::Pairs> {
    match rocks_log::read_logs(folder, limits) {
        Err(error) if matches!(error.kind(), pilaster_core::ErrorKind::Unsupported { .. }) => {
            read_tables(folder)
        }
        other => other,
    }
}

#[cfg(not(feature = "rocksdb"))]
fn pairs(folder: &Path, limits: &Limits) -> Result<rocks_log::Pairs> {
    rocks_log::read_logs(folder, limits)
}

/// Reads the database through RocksDB itself, without writing to it.
#[cfg(feature = "rocksdb")]
fn read_tables(folder: &Path) -> Result<rocks_log::Pairs> {
    let name = folder.display().to_string();
    let failed = |error: rocksdb::Error| Error::from(std::io::Error::other(error)).at(&name, 0, "");
    let database =
        rocksdb::DB::open_for_read_only(&rocksdb::Options::default(), folder, false).map_err(failed)?;
    let pairs = database.iterator(rocksdb::IteratorMode::Start);
    pairs.map(|pair| pair.map(|(key, value)| (key.to_vec(), value.to_vec())).map_err(failed)).collect()
}

fn parse(data: &Path, key: &[u8], value: &[u8]) -> Result<(u64, BlockPlace)> {
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
    let file: Arc<Path> = Arc::from(data.join(format!("{container}.data")));
    let place = BlockPlace {
        file,
        offset: number(record.offset, "offset")?,
        length: number(record.length, "length")?,
    };
    Ok((id, place))
}
