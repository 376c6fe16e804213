//! Databases of RocksDB, in which Kudu and Doris keep metadata: all pairs of a column family, read without writing.
//!
//! A young database has nothing but its write-ahead log, which is simple enough to read here:
//!
//! ```text
//! 32 KiB blocks of fragments: | u32 masked CRC-32C of type and bytes | u16 length | u8 type: 1 full, 2 first, 3 middle, 4 last | bytes |
//! joined fragments, a batch:  | u64 sequence | u32 count | entries |
//! entry: 1, key, value: put       5, varint family, key, value: put       keys and values: | varint length | bytes |
//!        0, key: delete           4, varint family, key: delete           3, bytes: a remark
//! ```
//!
//! The manifest has the same blocks; its batches are edits, of which the names of column families matter here:
//! `200, varint number` and `201, varint length, name`.
//!
//! Once RocksDB has written tables (`.sst`), only RocksDB itself reads them safely: that is the feature `rocksdb`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use pilaster_encoding::checksum::crc32c;
use pilaster_encoding::varint;

use crate::error::{AtPosition, Error, Result};
use crate::limits::Limits;
use crate::source::{FileSource, Source};

/// The column family that every database has.
pub const DEFAULT_FAMILY: &str = "default";

const BLOCK_BYTES: usize = 32 * 1024;
const FRAGMENT_HEADER_BYTES: usize = 7;
/// Sequence and count.
const BATCH_HEADER_BYTES: usize = 12;
const PART: &str = "rocksdb log";

/// Every key and value.
pub type Pairs = BTreeMap<Vec<u8>, Vec<u8>>;

/// Whether a folder is a database.
pub fn is_database(folder: &Path) -> bool {
    folder.join("CURRENT").is_file()
}

/// Reads a column family of the database in a folder.
///
/// # Errors
/// [`crate::ErrorKind::Unsupported`] if it has tables and this build has no RocksDB.
pub fn read(folder: &Path, family: &str, limits: &Limits) -> Result<Pairs> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .at(&folder.display().to_string(), 0, "")?
        .flatten()
        .map(|entry| entry.path())
        .collect();
    files.sort();
    let has_extension = |path: &&PathBuf, wanted: &str| path.extension().is_some_and(|found| found == wanted);
    match files.iter().find(|path| has_extension(path, "sst")) {
        Some(table) => read_tables(folder, family, table, limits),
        None => {
            let logs: Vec<_> = files.iter().filter(|path| has_extension(path, "log")).collect();
            read_logs(&files, &logs, family, limits)
        }
    }
}

#[cfg(not(feature = "rocksdb"))]
fn read_tables(_folder: &Path, _family: &str, table: &Path, _limits: &Limits) -> Result<Pairs> {
    Err(Error::unsupported(
        "records in RocksDB tables: this program was built without RocksDB; build it with `cargo build --release --features rocksdb`, which needs a C++ compiler and libclang",
    )
    .at(&table.display().to_string(), 0, ""))
}

/// Reads the database through RocksDB itself, without writing to it.
#[cfg(feature = "rocksdb")]
fn read_tables(folder: &Path, family: &str, _table: &Path, limits: &Limits) -> Result<Pairs> {
    let name = folder.display().to_string();
    let failed = |error: rocksdb::Error| rocks_error(error).at(&name, 0, "rocksdb");
    let options = rocksdb::Options::default();
    let families = rocksdb::DB::list_cf(&options, folder).map_err(failed)?;
    let database = rocksdb::DB::open_cf_for_read_only(&options, folder, families, false).map_err(failed)?;
    let handle = database.cf_handle(family).ok_or_else(|| no_family(family).at(&name, 0, ""))?;
    let (mut pairs, mut bytes) = (Pairs::new(), 0u64);
    for pair in database.iterator_cf(handle, rocksdb::IteratorMode::Start) {
        let (key, value) = pair.map_err(failed)?;
        bytes = bytes.saturating_add(key.len() as u64).saturating_add(value.len() as u64);
        limits.log(bytes).at(&name, 0, "rocksdb")?;
        pairs.insert(key.into_vec(), value.into_vec());
    }
    Ok(pairs)
}

/// What RocksDB found wrong is damage; that it could not read is not.
#[cfg(feature = "rocksdb")]
fn rocks_error(error: rocksdb::Error) -> Error {
    match error.kind() {
        rocksdb::ErrorKind::Corruption => Error::corrupt("a sound database", error.into_string()),
        _ => Error::from(std::io::Error::other(error)),
    }
}

fn no_family(family: &str) -> Error {
    Error::corrupt(format!("a column family \"{family}\""), "none of that name")
}

fn read_logs(files: &[PathBuf], logs: &[&PathBuf], family: &str, limits: &Limits) -> Result<Pairs> {
    let number = if family == DEFAULT_FAMILY { 0 } else { family_number(files, family, limits)? };
    let mut pairs = Pairs::new();
    for log in logs {
        let (name, bytes) = whole(log, limits)?;
        read_log(&bytes, number, &mut pairs).at(&name, 0, PART)?;
    }
    Ok(pairs)
}

fn whole(path: &Path, limits: &Limits) -> Result<(String, bytes::Bytes)> {
    let source = FileSource::open(path)?;
    limits.log(source.size()).at(source.name(), 0, PART)?;
    Ok((source.name().to_string(), source.read_at(0..source.size())?))
}

/// The number of a column family, from the newest manifest that knows it.
fn family_number(files: &[PathBuf], family: &str, limits: &Limits) -> Result<u32> {
    let is_manifest = |path: &&PathBuf| {
        path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with("MANIFEST-"))
    };
    for manifest in files.iter().rev().filter(is_manifest) {
        let (name, bytes) = whole(manifest, limits)?;
        for (_, edit) in batches(&bytes).at(&name, 0, PART)? {
            if let Some(number) = added_family(&edit, family) {
                return Ok(number);
            }
        }
    }
    Err(no_family(family))
}

/// The number that an edit gives to the column family of this name.
fn added_family(edit: &[u8], family: &str) -> Option<u32> {
    let (mut at, mut number) = (0usize, None);
    loop {
        match varint::read_u32(edit, &mut at).ok()? {
            // Comparator: a name.
            1 => {
                text(edit, &mut at).ok()?;
            }
            // Numbers of logs and files, the last sequence.
            2 | 3 | 4 | 9 | 10 | 203 => {
                varint::read_u64(edit, &mut at).ok()?;
            }
            200 => number = varint::read_u32(edit, &mut at).ok(),
            201 => {
                if text(edit, &mut at).ok()? == family.as_bytes() {
                    return number;
                }
            }
            _ => return None,
        }
    }
}

/// Plays a log: the pairs of one column family, by its number.
///
/// # Errors
/// [`crate::ErrorKind::Corrupt`] if a batch is not what it says; a torn last one is left out.
pub fn read_log(bytes: &[u8], family: u32, pairs: &mut Pairs) -> Result<()> {
    for (offset, batch) in batches(bytes)? {
        apply(&batch, family, pairs).at("", offset as u64, PART)?;
    }
    Ok(())
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

fn text<'a>(bytes: &'a [u8], at: &mut usize) -> Result<&'a [u8]> {
    let length = varint::read_u32(bytes, at)? as usize;
    let end = at.saturating_add(length);
    let text = bytes
        .get(*at..end)
        .ok_or_else(|| Error::corrupt(format!("{length} bytes"), "the end of the batch"))?;
    *at = end;
    Ok(text)
}

fn apply(batch: &[u8], family: u32, pairs: &mut Pairs) -> Result<()> {
    let count =
        batch.get(8..12).and_then(|four| four.first_chunk::<4>()).map_or(0, |four| u32::from_le_bytes(*four));
    let (mut at, mut applied) = (BATCH_HEADER_BYTES, 0u32);
    while applied < count {
        let tag = batch.get(at).copied();
        at = at.saturating_add(1);
        let of = match tag {
            Some(4 | 5) => varint::read_u32(batch, &mut at)?,
            _ => 0,
        };
        match tag {
            Some(1 | 5) => {
                let (key, value) = (text(batch, &mut at)?, text(batch, &mut at)?);
                if of == family {
                    pairs.insert(key.to_vec(), value.to_vec());
                }
            }
            Some(0 | 4) => {
                let key = text(batch, &mut at)?;
                if of == family {
                    pairs.remove(key);
                }
            }
            Some(3) => {
                text(batch, &mut at)?;
                continue;
            }
            other => return Err(Error::unsupported(format!("a batch entry with tag {other:?}"))),
        }
        applied = applied.saturating_add(1);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fragment(kind: u8, content: &[u8], to: &mut Vec<u8>) {
        let checked: Vec<u8> = std::iter::once(kind).chain(content.iter().copied()).collect();
        let masked = crc32c(&checked).rotate_right(15).wrapping_add(0xa282_ead8);
        to.extend(masked.to_le_bytes());
        to.extend(u16::try_from(content.len()).unwrap().to_le_bytes());
        to.extend(checked);
    }

    fn batch(count: u32, entries: &[u8]) -> Vec<u8> {
        [&[0; 8], &count.to_le_bytes()[..], entries].concat()
    }

    #[test]
    fn a_family_of_a_young_database_is_read_from_its_log() {
        let folder = tempfile::tempdir().unwrap();
        let (mut manifest, mut log) = (Vec::new(), Vec::new());
        fragment(1, b"\x01\x03cmp\x02\x05\x03\x07", &mut manifest);
        fragment(1, b"\xc8\x01\x01\xc9\x01\x05doris", &mut manifest);
        fragment(1, b"\xc8\x01\x02\xc9\x01\x04meta\xcb\x01\x02", &mut manifest);
        fragment(1, &batch(2, b"\x05\x02\x01a\x02AA\x05\x02\x01b\x01B"), &mut log);
        // A batch in two fragments: a remark, another family, and a deletion.
        let second = batch(3, b"\x03\x02hi\x01\x01a\x01D\x05\x01\x01a\x01X\x04\x02\x01b");
        fragment(2, &second[..15], &mut log);
        fragment(4, &second[15..], &mut log);
        std::fs::write(folder.path().join("CURRENT"), b"MANIFEST-000004\n").unwrap();
        std::fs::write(folder.path().join("MANIFEST-000004"), &manifest).unwrap();
        std::fs::write(folder.path().join("000005.log"), &log).unwrap();
        assert!(is_database(folder.path()));
        for (family, expected) in [("meta", ("a", "AA")), ("default", ("a", "D")), ("doris", ("a", "X"))] {
            let pairs = read(folder.path(), family, &Limits::default()).unwrap();
            assert_eq!(pairs, Pairs::from([(expected.0.into(), expected.1.into())]), "{family}");
        }
        assert!(read(folder.path(), "other", &Limits::default()).is_err());
        std::fs::write(folder.path().join("000009.sst"), b"").unwrap();
        let error = read(folder.path(), "meta", &Limits::default()).unwrap_err().to_string();
        assert!(cfg!(feature = "rocksdb") || error.contains("--features rocksdb"), "{error}");
    }

    /// Pairs of several families in tables, changed and deleted in others, and some in the log still.
    #[cfg(feature = "rocksdb")]
    #[test]
    fn tables_and_log_are_read_together_and_stay_as_they_are() {
        let folder = tempfile::tempdir().unwrap();
        let mut options = rocksdb::Options::default();
        options.create_if_missing(true);
        options.create_missing_column_families(true);
        {
            let database = rocksdb::DB::open_cf(&options, folder.path(), ["default", "meta"]).unwrap();
            let meta = database.cf_handle("meta").unwrap();
            for number in 0..1000u32 {
                database.put_cf(meta, number.to_be_bytes(), b"first").unwrap();
            }
            database.put(b"elsewhere", b"1").unwrap();
            database.flush_cf(meta).unwrap();
            database.put_cf(meta, 7u32.to_be_bytes(), b"second").unwrap();
            database.delete_cf(meta, 8u32.to_be_bytes()).unwrap();
            database.flush_cf(meta).unwrap();
            database.put_cf(meta, 9u32.to_be_bytes(), b"third").unwrap();
        }
        let files = || {
            let files = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path());
            files.map(|path| (path.clone(), std::fs::read(path).unwrap())).collect::<BTreeMap<_, _>>()
        };
        let before = files();
        let mut expected: Pairs =
            (0..1000u32).map(|n| (n.to_be_bytes().to_vec(), b"first".to_vec())).collect();
        expected.insert(7u32.to_be_bytes().to_vec(), b"second".to_vec());
        expected.remove(8u32.to_be_bytes().as_slice());
        expected.insert(9u32.to_be_bytes().to_vec(), b"third".to_vec());
        assert_eq!(read(folder.path(), "meta", &Limits::default()).unwrap(), expected);
        let default = read(folder.path(), DEFAULT_FAMILY, &Limits::default()).unwrap();
        assert_eq!(default, Pairs::from([(b"elsewhere".to_vec(), b"1".to_vec())]));
        assert!(read(folder.path(), "other", &Limits::default()).unwrap_err().is_damage());
        let few = Limits { log_bytes: 1000, ..Limits::default() };
        assert!(read(folder.path(), "meta", &few).is_err());
        assert_eq!(files(), before);

        // A table that is cut off is damage, not rows.
        let table = before.keys().find(|path| path.extension().is_some_and(|found| found == "sst")).unwrap();
        std::fs::write(table, &before[table][..before[table].len() / 2]).unwrap();
        let error = read(folder.path(), "meta", &Limits::default()).unwrap_err();
        assert!(error.is_damage(), "{error}");
    }
}
