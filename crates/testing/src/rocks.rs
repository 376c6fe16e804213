//! Small databases of RocksDB: enough of the format to put given pairs into a table, without compression.

use std::path::Path;

use pilaster_encoding::checksum::crc32c;
use pilaster_encoding::varint;

/// Entries of a data block.
const BLOCK_ENTRIES: usize = 5;
const MAGIC: u64 = 0x88e2_41b7_85f4_cff7;
const PUT: u8 = 1;

/// A log of RocksDB, or a manifest, of these records, each in one fragment that checks.
///
/// # Panics
/// If all of them together are longer than a block of 32 KiB and a fragment would not end with one.
pub fn rocksdb_log(records: &[Vec<u8>]) -> Vec<u8> {
    const BLOCK: usize = 32 << 10;
    const HEADER: usize = 7;
    let mut bytes: Vec<u8> = Vec::new();
    for record in records {
        let mut rest = record.as_slice();
        let mut is_first = true;
        while is_first || !rest.is_empty() {
            let left = BLOCK - bytes.len() % BLOCK;
            if left < HEADER {
                bytes.resize(bytes.len() + left, 0);
                continue;
            }
            let (content, after) = rest.split_at(rest.len().min(left - HEADER));
            let kind = match (is_first, after.is_empty()) {
                (true, true) => 1,
                (true, false) => 2,
                (false, false) => 3,
                (false, true) => 4,
            };
            let covered: Vec<u8> = std::iter::once(kind).chain(content.iter().copied()).collect();
            bytes.extend(masked(&covered).to_le_bytes());
            bytes.extend(u16::try_from(content.len()).unwrap_or_default().to_le_bytes());
            bytes.extend(covered);
            (rest, is_first) = (after, false);
        }
    }
    bytes
}

fn masked(bytes: &[u8]) -> u32 {
    crc32c(bytes).rotate_right(15).wrapping_add(0xa282_ead8)
}

fn text(to: &mut Vec<u8>, text: &[u8]) {
    varint::write_u64(to, text.len() as u64);
    to.extend_from_slice(text);
}

fn internal(key: &[u8], sequence: u64) -> Vec<u8> {
    [key, &(sequence << 8 | u64::from(PUT)).to_le_bytes()].concat()
}

/// A block whose keys share nothing.
fn block<'a>(entries: impl IntoIterator<Item = (&'a [u8], &'a [u8])>) -> Vec<u8> {
    let (mut bytes, mut restarts) = (Vec::new(), Vec::new());
    for (key, value) in entries {
        restarts.push(u32::try_from(bytes.len()).unwrap_or_default());
        bytes.push(0);
        varint::write_u64(&mut bytes, key.len() as u64);
        varint::write_u64(&mut bytes, value.len() as u64);
        bytes.extend_from_slice(key);
        bytes.extend_from_slice(value);
    }
    restarts.iter().for_each(|at| bytes.extend(at.to_le_bytes()));
    bytes.extend(u32::try_from(restarts.len()).unwrap_or_default().to_le_bytes());
    bytes
}

/// Appends a block with codec and checksum; gives its handle.
fn add_block(file: &mut Vec<u8>, mut block: Vec<u8>) -> Vec<u8> {
    let mut handle = Vec::new();
    varint::write_u64(&mut handle, file.len() as u64);
    varint::write_u64(&mut handle, block.len() as u64);
    block.push(0);
    block.extend(masked(&block).to_le_bytes());
    file.extend(block);
    handle
}

/// A table with these pairs, which are in the order of their keys, all of one sequence number.
pub fn rocksdb_table(pairs: &[(Vec<u8>, Vec<u8>)], sequence: u64) -> Vec<u8> {
    let mut file = Vec::new();
    let keys: Vec<_> = pairs.iter().map(|(key, _)| internal(key, sequence)).collect();
    let mut index = Vec::new();
    for (keys, pairs) in keys.chunks(BLOCK_ENTRIES).zip(pairs.chunks(BLOCK_ENTRIES)) {
        let entries = keys.iter().zip(pairs).map(|(key, (_, value))| (key.as_slice(), value.as_slice()));
        let handle = add_block(&mut file, block(entries));
        index.push((keys.last().cloned().unwrap_or_default(), handle));
    }
    let mut count = Vec::new();
    varint::write_u64(&mut count, pairs.len() as u64);
    let properties = block([(&b"rocksdb.num.entries"[..], count.as_slice())]);
    let properties = add_block(&mut file, properties);
    let metas = block([(&b"rocksdb.properties"[..], properties.as_slice())]);
    let metas = add_block(&mut file, metas);
    let index = block(index.iter().map(|(key, handle)| (key.as_slice(), handle.as_slice())));
    let index = add_block(&mut file, index);
    let mut handles = [metas, index].concat();
    handles.resize(40, 0);
    file.push(1);
    file.extend(handles);
    file.extend(2u32.to_le_bytes());
    file.extend(MAGIC.to_le_bytes());
    file
}

/// A batch that puts one pair into a column family.
pub fn rocksdb_put(family: u32, sequence: u64, key: &[u8], value: &[u8]) -> Vec<u8> {
    let mut batch = [&sequence.to_le_bytes()[..], &1u32.to_le_bytes(), &[5]].concat();
    varint::write_u32(&mut batch, family);
    text(&mut batch, key);
    text(&mut batch, value);
    batch
}

/// The edit that makes a column family, beside the default one.
pub fn rocksdb_family(number: u32, name: &str) -> Vec<u8> {
    let mut edit = Vec::new();
    [200, number, 201].into_iter().for_each(|field| varint::write_u32(&mut edit, field));
    text(&mut edit, name.as_bytes());
    edit
}

/// Makes a database whose pairs are in a table of one column family, half of them on level 0 and half on level 1.
///
/// # Errors
/// If it cannot be written.
pub fn rocksdb_with_tables(folder: &Path, family: &str, pairs: &[(Vec<u8>, Vec<u8>)]) -> std::io::Result<()> {
    const SEQUENCE: u64 = 7;
    let mut pairs = pairs.to_vec();
    pairs.sort();
    let (number, mut edits) = match family {
        "default" => (0, vec![Vec::new()]),
        name => (2, vec![rocksdb_family(2, name)]),
    };
    let mut edit = Vec::new();
    let (even, odd): (Vec<_>, Vec<_>) = pairs.into_iter().enumerate().partition(|(at, _)| at % 2 == 0);
    for (level, half) in [even, odd].into_iter().enumerate() {
        let half: Vec<_> = half.into_iter().map(|(_, pair)| pair).collect();
        let (Some(first), Some(last)) = (half.first(), half.last()) else { continue };
        let table = rocksdb_table(&half, SEQUENCE);
        let file = 10 + level as u64;
        for field in [100, level as u64, file, table.len() as u64] {
            varint::write_u64(&mut edit, field);
        }
        text(&mut edit, &internal(&first.0, SEQUENCE));
        text(&mut edit, &internal(&last.0, SEQUENCE));
        [SEQUENCE, SEQUENCE].into_iter().for_each(|field| varint::write_u64(&mut edit, field));
        std::fs::write(folder.join(format!("{file:06}.sst")), table)?;
    }
    // The family, the next file, the last sequence number, the log.
    for field in [200, number, 3, 20, 4, SEQUENCE, 2, 15] {
        varint::write_u64(&mut edit, field);
    }
    edits.push(edit);
    std::fs::write(folder.join("CURRENT"), b"MANIFEST-000004\n")?;
    std::fs::write(folder.join("MANIFEST-000004"), rocksdb_log(&edits))?;
    std::fs::write(folder.join("000015.log"), b"")
}
