//! The block records of the "logr" block manager: a RocksDB whose keys are `<container id>.<block id>`.
//!
//! A young database has nothing but its write-ahead log, which is simple enough to read here:
//!
//! ```text
//! 32 KiB blocks of fragments: | u32 masked CRC-32C of type and bytes | u16 length | u8 type: 1 full, 2 first, 3 middle, 4 last | bytes |
//! joined fragments, a batch:  | u64 sequence | u32 count | 1, varint length, key, varint length, value: put; 0, varint length, key: delete | … |
//! ```
//!
//! Once RocksDB has written tables (`.sst`), only RocksDB itself reads them safely: that is the feature `rocksdb`.

use std::collections::BTreeMap;
use std::path::Path;

use pilaster_core::error::AtPosition;
use pilaster_core::source::{FileSource, Source};
use pilaster_core::{Error, Limits, Result};
use pilaster_encoding::checksum::crc32c;
use pilaster_encoding::varint;

use super::file_blocks::entries;

const BLOCK_BYTES: usize = 32 * 1024;
const FRAGMENT_HEADER_BYTES: usize = 7;
const PART: &str = "rocksdb log";

/// Every key and value of a database folder.
pub(super) type Pairs = BTreeMap<Vec<u8>, Vec<u8>>;

/// Reads a database that has only logs.
///
/// # Errors
/// [`pilaster_core::ErrorKind::Unsupported`] if it has tables too.
pub(super) fn read_logs(folder: &Path, limits: &Limits) -> Result<Pairs> {
    let files = entries(folder);
    let with_extension = |wanted: &str| {
        files.iter().filter(|path| path.extension().is_some_and(|found| found == wanted)).collect::<Vec<_>>()
    };
    if let Some(table) = with_extension("sst").first() {
        return Err(Error::unsupported(
            "block records in RocksDB tables (block manager \"logr\"): this program was built without RocksDB; build it with `cargo build --release --features rocksdb`, which needs a C++ compiler and libclang",
        )
        .at(&table.display().to_string(), 0, ""));
    }
    let mut pairs = Pairs::new();
    for log in with_extension("log") {
        let source = FileSource::open(log)?;
        limits.log(source.size()).at(source.name(), 0, PART)?;
        let bytes = source.read_at(0..source.size())?;
        for (offset, batch) in batches(&bytes).at(source.name(), 0, PART)? {
            apply(&batch, &mut pairs).at(source.name(), offset as u64, PART)?;
        }
    }
    Ok(pairs)
}

/// The batches of a log, joined from their fragments. A torn last one is left out.
fn batches(bytes: &[u8]) -> Result<Vec<(usize, Vec<u8>)>> {
    let mut batches = Vec::new();
    let mut joined: Option<(usize, Vec<u8>)> = None;
    for (number, block) in bytes.chunks(BLOCK_BYTES).enumerate() {
        let mut at = 0usize;
        while let Some(header) = block.get(at..).and_then(|rest| rest.first_chunk::<FRAGMENT_HEADER_BYTES>())
        {
            let [c0, c1, c2, c3, l0, l1, kind] = *header;
            let length = usize::from(u16::from_le_bytes([l0, l1]));
            if kind == 0 && length == 0 {
                break;
            }
            let start = at.saturating_add(FRAGMENT_HEADER_BYTES);
            let end = start.saturating_add(length);
            let Some(content) = block.get(start..end) else { return Ok(batches) };
            let computed = crc32c(block.get(start.saturating_sub(1)..end).unwrap_or_default());
            let masked = computed.rotate_right(15).wrapping_add(0xa282_ead8);
            if masked != u32::from_le_bytes([c0, c1, c2, c3]) {
                return Ok(batches);
            }
            let offset = number.saturating_mul(BLOCK_BYTES).saturating_add(at);
            match (kind, joined.take()) {
                (1, None) => batches.push((offset, content.to_vec())),
                (2, None) => joined = Some((offset, content.to_vec())),
                (3, Some((from, mut bytes))) => {
                    bytes.extend_from_slice(content);
                    joined = Some((from, bytes));
                }
                (4, Some((from, mut bytes))) => {
                    bytes.extend_from_slice(content);
                    batches.push((from, bytes));
                }
                (other, _) => return Err(Error::unsupported(format!("a fragment of type {other}"))),
            }
            at = end;
        }
    }
    Ok(batches)
}

fn apply(batch: &[u8], pairs: &mut Pairs) -> Result<()> {
    let count =
        batch.get(8..12).and_then(|four| four.first_chunk::<4>()).map_or(0, |four| u32::from_le_bytes(*four));
    let mut at = 12usize;
    let text = |at: &mut usize| -> Result<Vec<u8>> {
        let length = varint::read_u32(batch, at)? as usize;
        let end = at.saturating_add(length);
        let bytes = batch
            .get(*at..end)
            .ok_or_else(|| Error::corrupt(format!("{length} bytes"), "the end of the batch"))?;
        *at = end;
        Ok(bytes.to_vec())
    };
    for _ in 0..count {
        let tag = batch.get(at).copied();
        at = at.saturating_add(1);
        match tag {
            Some(1) => {
                let key = text(&mut at)?;
                let value = text(&mut at)?;
                pairs.insert(key, value);
            }
            Some(0) => {
                let key = text(&mut at)?;
                pairs.remove(&key);
            }
            other => return Err(Error::unsupported(format!("a batch entry with tag {other:?}"))),
        }
    }
    Ok(())
}

/// Reads a log, right or wrong.
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) fn parse_rocks_log(bytes: &[u8]) {
    let mut pairs = Pairs::new();
    for (_, batch) in batches(bytes).into_iter().flatten() {
        let _ = apply(&batch, &mut pairs);
    }
}
