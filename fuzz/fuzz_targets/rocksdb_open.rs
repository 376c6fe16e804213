//! Any bytes as a database of RocksDB: as its table, its manifest and its log, with checksums as they are and with all that can be made
//! right made right.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| pilaster_rocksdb::fuzzing::open(data));
