//! The index of a streaming segment: a record per data file, with what the headers of its blocklets say together.

use std::path::Path;

use pilaster_core::{Error, Limits, Result, SourceRef};

use super::super::open::open_path;
use crate::file::layout::read_header;
use crate::file::stream::{open_stream_until_damage, record};

/// How much of a file is searched at a time.
const WINDOW_BYTES: u64 = 1 << 20;

/// Whether a data file holds rows of a stream.
pub(super) fn is_stream(path: &Path, limits: &Limits) -> Result<bool> {
    let source = open_path(path)?;
    Ok(read_header(&source, limits)
        .is_ok_and(|(header, _)| !header.is_footer_present && header.sync_marker.is_some()))
}

/// The bytes of the index over `files`: all their whole blocklets count. What follows the last one is taken for a batch that was
/// never finished, unless another blocklet follows: the engine cuts off what its index does not count.
pub(super) fn index(folder: &Path, files: &[String], limits: &Limits) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    for name in files {
        let source = open_path(&folder.join(name))?;
        let (file, damage) =
            open_stream_until_damage(SourceRef::clone(&source), limits.clone(), source.size())?;
        if let Some(error) = damage {
            let end = file.stream.as_ref().and_then(|stream| stream.end()).unwrap_or(file.header_bytes);
            let marker = file.header.sync_marker.clone().unwrap_or_default();
            if occurs(&source, end.saturating_add(1), &marker)? {
                return Err(error);
            }
        }
        let mut record = record(&file)?;
        record.file_name.clone_from(name);
        record.write(&mut out);
    }
    if out.is_empty() {
        let place = folder.display().to_string();
        return Err(Error::corrupt("data files of a stream", "none").at(&place, 0, "carbondata stream"));
    }
    Ok(out)
}

/// Whether `marker` occurs behind `start`.
fn occurs(source: &SourceRef, start: u64, marker: &[u8]) -> Result<bool> {
    let overlap = marker.len().saturating_sub(1) as u64;
    let mut from = start;
    while from < source.size() && !marker.is_empty() {
        let to = from.saturating_add(WINDOW_BYTES).saturating_add(overlap).min(source.size());
        let bytes = source.read_at(from..to)?;
        if bytes.windows(marker.len()).any(|window| window == marker) {
            return Ok(true);
        }
        from = from.saturating_add(WINDOW_BYTES);
    }
    Ok(false)
}
