//! Any bytes as a database, for fuzz targets and property tests: what must hold is that reading them ends, without a panic and without
//! more memory than the limits allow.

use pilaster_core::storage::MemoryStorage;
use pilaster_core::{Limits, Result};
use pilaster_encoding::checksum::crc32c;
use pilaster_encoding::varint;

use crate::checksum::mask;
use crate::{DEFAULT_FAMILY, Database, OnDamage};

/// The bytes as table, manifest and log, as they are and inside of frames that check.
pub fn open(bytes: &[u8]) {
    for edit in [known_table(bytes.len()), bytes.to_vec()] {
        read(bytes.to_vec(), frame(&edit), bytes.to_vec());
        read(table_of(bytes), frame(&edit), frame(bytes));
    }
    read(bytes.to_vec(), bytes.to_vec(), bytes.to_vec());
    // The edit that would be right for the table with checksums.
    let table = table_of(bytes);
    read(table.clone(), frame(&known_table(table.len())), frame(bytes));
}

fn read(table: Vec<u8>, manifest: Vec<u8>, log: Vec<u8>) {
    let files = [
        ("CURRENT", b"MANIFEST-000001\n".to_vec()),
        ("MANIFEST-000001", manifest),
        ("000002.log", log),
        ("000003.sst", table),
    ];
    let folder = MemoryStorage::with_files("memory", files).root();
    for on_damage in [OnDamage::Stop, OnDamage::Skip] {
        let Ok(database) = Database::open(&folder, &Limits::small(), on_damage) else {
            continue;
        };
        let families: Vec<_> = database.families().collect();
        for family in families.iter().take(3) {
            let Ok(pairs) = database.pairs(family) else { continue };
            // Keys that share all but a byte can be many times the block that they stand in.
            pairs.take_while(Result::is_ok).take(10_000).for_each(drop);
        }
        let _ = database.get(DEFAULT_FAMILY, b"key");
    }
}

/// An edit that knows the table 3, of so many bytes, on level 1.
fn known_table(bytes: usize) -> Vec<u8> {
    let mut edit = vec![100, 1, 3];
    varint::write_u64(&mut edit, bytes as u64);
    edit.extend(b"\x08\x01\xff\xff\xff\xff\xff\xff\xff\x0c\xff\xff\xff\xff\x01\0\0\0\0\0\0\0\0\x09");
    edit.extend(b"\x03\x09\x04\x09\x02\x02");
    edit
}

/// A record as one fragment that checks.
fn frame(record: &[u8]) -> Vec<u8> {
    let record = record.get(..record.len().min(32_000)).unwrap_or_default();
    let covered = [&[1], record].concat();
    let length = u16::try_from(record.len()).unwrap_or_default().to_le_bytes();
    [&mask(crc32c(&covered)).to_le_bytes()[..], &length, &covered].concat()
}

/// A table whose blocks are parts of the bytes, cut where their first ones say, and check.
fn table_of(bytes: &[u8]) -> Vec<u8> {
    let (cuts, mut rest) = bytes.split_at(bytes.len().min(3));
    let (mut file, mut handles) = (Vec::new(), Vec::new());
    let codec = cuts.first().map_or(0, |cut| cut % 9);
    for number in 0..3 {
        let cut = cuts.get(number).copied().unwrap_or(0);
        let (block, after) = rest.split_at(rest.len().min(usize::from(cut)));
        rest = after;
        handles.push((file.len(), block.len()));
        // What leads to the others is not compressed.
        let covered = [block, &[if number == 0 { codec } else { 0 }]].concat();
        file.extend(&covered);
        file.extend(mask(crc32c(&covered)).to_le_bytes());
    }
    let properties = named(b"rocksdb.properties", handles.first().copied());
    let metas = (file.len(), properties.len());
    let covered = [properties.as_slice(), &[0]].concat();
    file.extend(&covered);
    file.extend(mask(crc32c(&covered)).to_le_bytes());
    let mut footer = vec![1];
    for (offset, length) in [metas, handles.last().copied().unwrap_or_default()] {
        varint::write_u64(&mut footer, offset as u64);
        varint::write_u64(&mut footer, length as u64);
    }
    footer.resize(41, 0);
    footer.extend(2u32.to_le_bytes());
    footer.extend(0x88e2_41b7_85f4_cff7u64.to_le_bytes());
    file.extend(footer);
    file
}

/// A block with one entry: a name, and a handle.
fn named(name: &[u8], handle: Option<(usize, usize)>) -> Vec<u8> {
    let (offset, length) = handle.unwrap_or_default();
    let mut value = Vec::new();
    varint::write_u64(&mut value, offset as u64);
    varint::write_u64(&mut value, length as u64);
    let mut block = vec![0];
    varint::write_u64(&mut block, name.len() as u64);
    varint::write_u64(&mut block, value.len() as u64);
    block.extend_from_slice(name);
    block.extend(value);
    block.extend([0, 0, 0, 0, 1, 0, 0, 0]);
    block
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_bytes_end_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
            open(&bytes);
        }

        #[test]
        fn any_small_numbers_end_without_a_panic(bytes in prop::collection::vec(0u8..12, 0..600)) {
            open(&bytes);
        }
    }
}
