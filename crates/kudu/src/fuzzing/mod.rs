//! Entry points for fuzz targets: every parser of the tablet layer on any bytes.
//!
//! They give nothing back; what must hold is that they end, without a panic and without more memory than the bytes can
//! justify. The property tests of this module run the same functions on a few hundred inputs.

mod damage;

use std::sync::Arc;

use bytes::Bytes;
use pilaster_core::Limits;
use pilaster_core::source::MemorySource;

use crate::cfile::CFileReaderOptions;
use crate::fs::{Pbc, parse_block_records};
use crate::tablet::{DeltaFile, TabletMetadata, parse_damaged_superblock};
use crate::wal::{parse_rows, parse_segment};

pub use damage::{damaged_cfile, damaged_container, damaged_log};

/// A protobuf container, its records as block records of a container.
pub fn container(bytes: &[u8]) {
    let bytes = Bytes::copy_from_slice(bytes);
    if let Ok(file) = Pbc::parse("fuzz", &bytes) {
        parse_block_records(file.records.iter().map(|(_, record)| record.as_ref()));
    }
    parse_block_records([bytes.as_ref()].into_iter());
}

/// A superblock message, with a right checksum and without.
pub fn superblock(bytes: &[u8]) {
    let _ = TabletMetadata::parse("fuzz", bytes);
    let _ = parse_damaged_superblock("fuzz", bytes);
}

/// A log segment, and the bytes as the rows of a write request.
pub fn log_segment(bytes: &[u8]) {
    let bytes = Bytes::copy_from_slice(bytes);
    let _ = parse_segment(&pilaster_core::Location::local("wal-000000001"), "fuzz", &bytes, &Limits::small());
    parse_rows(&bytes);
}

/// A delta file.
pub fn delta_file(bytes: &[u8]) {
    let source = Arc::new(MemorySource::new("fuzz", bytes.to_vec()));
    let limits = Limits::small();
    let options = CFileReaderOptions::default().with_limits(limits).with_verify_checksums(false);
    if let Ok(delta) = DeltaFile::open(source, &options) {
        let _ = Arc::new(delta).cursor().for_each(0..u64::MAX, |_, _, list| {
            crate::tablet::ChangeList::parse(list)?.for_each(|_, _| Ok(()))
        });
    }
}

/// An array cell.
pub fn array_cell(bytes: &[u8]) {
    crate::tablet::parse_array_cells(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;
    use pilaster_encoding::checksum::crc32c;
    use proptest::prelude::*;

    /// A segment whose entry headers are right, so that what is inside is looked at.
    fn segment_of(payloads: &[Vec<u8>]) -> Vec<u8> {
        let mut bytes = b"kudulogf".to_vec();
        // Sequence number 1, an empty schema.
        let header = [0x30, 1, 0x3a, 0];
        bytes.extend((header.len() as u32).to_le_bytes());
        bytes.extend(header);
        for payload in payloads {
            let length = (payload.len() as u32).to_le_bytes();
            let start = bytes.len();
            bytes.extend(length);
            bytes.extend(length);
            bytes.extend(crc32c(payload).to_le_bytes());
            let crc = crc32c(&bytes[start..]);
            bytes.extend(crc.to_le_bytes());
            bytes.extend(payload);
        }
        bytes
    }

    fn any_bytes(most: usize) -> impl Strategy<Value = Vec<u8>> {
        prop::collection::vec(any::<u8>(), 0..most)
    }

    proptest! {
        #[test]
        fn any_damage_under_right_checksums_is_met(bytes in any_bytes(40)) {
            damaged_cfile(&bytes);
            damaged_log(&bytes);
            damaged_container(&bytes);
        }

        #[test]
        fn any_bytes_end_without_a_panic(bytes in any_bytes(400)) {
            for parse in [container, superblock, log_segment, delta_file, array_cell] {
                parse(&bytes);
            }
        }

        #[test]
        fn any_records_in_sound_containers(records in prop::collection::vec(any_bytes(60), 0..6)) {
            let records: Vec<&[u8]> = records.iter().map(Vec::as_slice).collect();
            container(&crate::fs::file_of(&records));
        }

        #[test]
        fn any_entries_in_sound_segments(payloads in prop::collection::vec(any_bytes(60), 0..6), cut in 0usize..40) {
            let mut bytes = segment_of(&payloads);
            log_segment(&bytes);
            bytes.truncate(bytes.len().saturating_sub(cut));
            log_segment(&bytes);
        }
    }
}
