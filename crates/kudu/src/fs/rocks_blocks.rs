//! The "logr" block manager: containers as in [`super::log_blocks`], with their records in a RocksDB.

use std::path::Path;
use std::sync::Arc;

use pilaster_core::verify::Severity;
use pilaster_core::{Error, Limits, Result, rocks};

use super::blocks::{BlockMap, BlockPlace};
use crate::messages::{self, BlockRecordPb, required};

/// Adds the blocks of a data directory (`<root>/data`).
pub(super) fn add_blocks(data: &Path, limits: &Limits, map: &mut BlockMap) -> Result<()> {
    for (key, value) in rocks::read(&data.join("rdb"), rocks::DEFAULT_FAMILY, limits)? {
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
