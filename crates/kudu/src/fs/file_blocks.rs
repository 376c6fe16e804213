//! The file block manager: a file per block.
//!
//! `data/<b2>/<b3>/<b4>/<id>`: the id in decimal, 16 digits; the folders are its bytes 2, 3 and 4 in hex.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use pilaster_core::{Location, Result};

use super::blocks::{BlockMap, BlockPlace, FilePool};
use super::encryption::{HEADER_BYTES, MAGIC};
use super::unread::UnreadLog;

/// Adds the blocks of a data directory (`<root>/data`).
pub(super) fn add_blocks(data: &Location, pool: &FilePool, map: &mut BlockMap) {
    let unread = pool.unread();
    for first in hex_folders(data, unread) {
        for second in hex_folders(&first, unread) {
            for third in hex_folders(&second, unread) {
                for file in unread.entries(&third) {
                    add_block(data, &file, pool, map);
                }
            }
        }
    }
}

fn add_block(data: &Location, file: &Location, pool: &FilePool, map: &mut BlockMap) {
    let Some(id) = file.name().to_str().and_then(|name| name.parse::<u64>().ok()) else { return };
    if block_path(data.path(), id) != file.path() {
        return;
    }
    match content_of(file, pool) {
        Ok((offset, length)) => map.add(id, BlockPlace { file: Arc::new(file.clone()), offset, length }),
        Err(error) => map.report_error(file, &error),
    }
}

/// Where the block begins in its file, behind the header of an encrypted one, and its length.
fn content_of(file: &Location, pool: &FilePool) -> Result<(u64, u64)> {
    let source = pool.stored(file)?;
    let size = source.size();
    let is_encrypted = size >= HEADER_BYTES && source.read_at(0..MAGIC.len() as u64)? == MAGIC.as_slice();
    let offset = if is_encrypted { HEADER_BYTES } else { 0 };
    Ok((offset, size.saturating_sub(offset)))
}

/// Where the block of an id lies in a data directory.
pub(super) fn block_path(data: &Path, id: u64) -> PathBuf {
    let byte = |shift: u32| format!("{:02x}", id >> shift & 0xff);
    data.join(byte(40)).join(byte(32)).join(byte(24)).join(format!("{id:016}"))
}

fn hex_folders(parent: &Location, unread: &UnreadLog) -> Vec<Location> {
    unread
        .entries(parent)
        .into_iter()
        .filter(|path| {
            let name = path.name().to_str().unwrap_or_default();
            name.len() == 2 && name.chars().all(|c| c.is_ascii_hexdigit()) && unread.is_dir(path)
        })
        .collect()
}
