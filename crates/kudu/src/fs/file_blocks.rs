//! The file block manager: a file per block.
//!
//! `data/<b2>/<b3>/<b4>/<id>`: the id in decimal, 16 digits; the folders are its bytes 2, 3 and 4 in hex.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pilaster_core::Result;
use pilaster_core::source::{FileHandles, Source};

use super::blocks::{BlockMap, BlockPlace};
use super::encryption::{HEADER_BYTES, MAGIC};

/// Adds the blocks of a data directory (`<root>/data`).
pub(super) fn add_blocks(data: &Path, map: &mut BlockMap) {
    for first in hex_folders(data) {
        for second in hex_folders(&first) {
            for third in hex_folders(&second) {
                for file in entries(&third) {
                    add_block(data, &file, map);
                }
            }
        }
    }
}

fn add_block(data: &Path, file: &Path, map: &mut BlockMap) {
    let Some(id) = file.file_name().and_then(|name| name.to_str()).and_then(|name| name.parse::<u64>().ok())
    else {
        return;
    };
    if block_path(data, id) != file {
        return;
    }
    match content_of(file) {
        Ok((offset, length)) => map.add(id, BlockPlace { file: Arc::from(file), offset, length }),
        Err(error) => map.report_error(file, &error),
    }
}

/// Where the block begins in its file, behind the header of an encrypted one, and its length.
fn content_of(file: &Path) -> Result<(u64, u64)> {
    let source = FileHandles::shared().open(file)?;
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

fn hex_folders(parent: &Path) -> Vec<PathBuf> {
    entries(parent)
        .into_iter()
        .filter(|path| {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            name.len() == 2 && name.chars().all(|c| c.is_ascii_hexdigit()) && path.is_dir()
        })
        .collect()
}

/// The entries of a folder by name; none if it cannot be read.
pub(super) fn entries(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<_> =
        fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    paths.sort();
    paths
}
