//! The index of a streaming segment: a record per data file, with what the headers of its blocklets say together.

use pilaster_core::{Error, ErrorKind, Limits, Location, Result, SourceRef};

use super::super::open::open_file;
use crate::file::layout::read_header;
use crate::file::stream::{open_stream_until_damage, record};

/// How much of a file is searched at a time.
const WINDOW_BYTES: u64 = 1 << 20;

/// Whether a data file holds rows of a stream.
pub(super) fn is_stream(path: &Location, limits: &Limits) -> Result<bool> {
    let source = open_file(path)?;
    Ok(read_header(&source, limits)
        .is_ok_and(|(header, _)| !header.is_footer_present && header.sync_marker.is_some()))
}

/// The bytes of the index over `files`: all their whole blocklets count. What follows the last one is taken for a batch that was
/// never finished, unless another blocklet follows: the engine cuts off what its index does not count.
pub(super) fn index(folder: &Location, files: &[String], limits: &Limits) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    for name in files {
        let source = open_file(&folder.child(name))?;
        let (file, damage) =
            open_stream_until_damage(SourceRef::clone(&source), limits.clone(), source.size())?;
        if let Some(error) = damage {
            let end = file.stream.as_ref().and_then(|stream| stream.end()).unwrap_or(file.header_bytes);
            let marker = file.header.sync_marker.clone().unwrap_or_default();
            // What cannot be read for another reason may well be whole.
            let is_damaged = matches!(error.kind(), ErrorKind::Corrupt { .. });
            if !is_damaged || occurs(&source, end.saturating_add(1), &marker)? {
                return Err(error);
            }
        }
        let mut record = record(&file)?;
        record.file_name.clone_from(name);
        record.write(&mut out);
    }
    if out.is_empty() {
        let place = folder.to_string();
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::stream::sample;

    /// Only what breaks the format was never finished: the index must not leave out a batch that is over a limit.
    #[test]
    fn a_batch_that_may_not_be_read_is_not_left_out() {
        let folder = std::env::temp_dir().join(format!("pilaster-stream-index-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let name = "part-0-0_batchno0-0-0-0.snappy.carbondata".to_string();
        let row = sample::row(&1.5f64.to_be_bytes());
        let bytes = sample::file(&[sample::measure("a", sample::DOUBLE)], &[(1, None, row)]);
        let rebuilt = |bytes: &[u8], limits: &Limits| {
            std::fs::write(folder.join(&name), bytes).unwrap();
            index(&Location::local(&folder), std::slice::from_ref(&name), limits)
        };
        let whole = rebuilt(&bytes, &Limits::default()).unwrap();
        let cut = rebuilt(&bytes[..bytes.len() - 1], &Limits::default()).unwrap();
        assert_ne!(whole, cut);
        let limits = Limits { block_bytes: 1, ..Limits::default() };
        let error = rebuilt(&bytes, &limits).unwrap_err();
        std::fs::remove_dir_all(&folder).unwrap();
        assert!(matches!(error.kind(), ErrorKind::LimitExceeded { .. }), "{error}");
    }
}
