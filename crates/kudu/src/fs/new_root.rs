//! The empty folders of a new server.

use std::hash::{BuildHasher, RandomState};
use std::time::{SystemTime, UNIX_EPOCH};

use arrow_array::TimestampSecondArray;
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use pilaster_core::{Error, Location, Result};

use super::block_writer::BlockManager;
use super::pbc::single_record_file;
use crate::messages::{DirInstanceMetadataPb, DirSetPb, InstanceMetadataPb};

/// Blocks of a file system that does not say.
const DEFAULT_FS_BLOCK_BYTES: u64 = 4096;

/// The root of a server that has nothing yet: one folder for log, metadata and data.
#[derive(Debug)]
pub(crate) struct NewRoot {
    pub folder: Location,
    /// Uuid of the server.
    pub uuid: String,
    /// Uuid of its only data directory.
    pub data_uuid: String,
    /// What the file system says its blocks have; blocks of the log block manager begin at multiples of it.
    pub fs_block_bytes: u64,
}

impl NewRoot {
    /// Names of the folders in it.
    pub const FOLDERS: [&'static str; 4] = ["data", "tablet-meta", "consensus-meta", "wals"];

    /// Makes the folders of the root in an empty folder.
    pub fn create(folder: &Location, manager: BlockManager) -> Result<Self> {
        for name in Self::FOLDERS {
            folder.child(name).make_folder()?;
        }
        let fs_block_bytes = folder.block_bytes()?.filter(|bytes| bytes.is_power_of_two());
        let root = Self {
            uuid: new_uuid(),
            data_uuid: new_uuid(),
            fs_block_bytes: fs_block_bytes.unwrap_or(DEFAULT_FS_BLOCK_BYTES),
            folder: folder.clone(),
        };
        let uuid = root.data_uuid.clone().into_bytes();
        let directory = DirInstanceMetadataPb {
            dir_set: Some(DirSetPb { uuid: Some(uuid.clone()), all_uuids: vec![uuid] }),
            dir_type: Some(manager.dir_type().into()),
            filesystem_block_size_bytes: Some(root.fs_block_bytes),
        };
        let path = folder.child("data").child("block_manager_instance");
        path.write(&single_record_file("kudu.DirInstanceMetadataPB", &directory))?;
        Ok(root)
    }

    /// Says whose root it is: without that it is none, so all else must be there.
    pub fn finish(&self) -> Result<()> {
        let instance = InstanceMetadataPb {
            uuid: Some(self.uuid.clone().into_bytes()),
            format_stamp: Some(format!("Formatted at {} by pilaster", wall_clock(now_micros()?)?)),
            ..InstanceMetadataPb::default()
        };
        self.folder.child("instance").write(&single_record_file("kudu.InstanceMetadataPB", &instance))
    }
}

/// Microseconds since 1970.
pub(crate) fn now_micros() -> Result<u64> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let since = since.map_err(|_| Error::invalid("the clock of this machine stands before 1970"))?;
    u64::try_from(since.as_micros()).map_err(|_| Error::invalid("the clock of this machine is out of range"))
}

fn wall_clock(micros: u64) -> Result<String> {
    let seconds = i64::try_from(micros / 1_000_000).unwrap_or(i64::MAX);
    let array = TimestampSecondArray::from(vec![seconds]);
    let options = FormatOptions::default().with_timestamp_format(Some("%Y-%m-%d %H:%M:%S"));
    Ok(ArrayFormatter::try_new(&array, &options)?.value(0).to_string())
}

/// A random uuid as Kudu writes them: 32 hex digits.
pub(crate) fn new_uuid() -> String {
    // The keys of a `RandomState` come from the operating system.
    let half = || RandomState::new().hash_one(now_micros().unwrap_or_default());
    // Version 4 (random) and variant 1 of the uuid standard.
    let high = half() & !0xf000 | 0x4000;
    let low = half() & !(0b11 << 62) | 0b10 << 62;
    format!("{high:016x}{low:016x}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn uuids_are_canonical_and_differ() {
        let uuids: HashSet<_> = (0..1000).map(|_| new_uuid()).collect();
        assert_eq!(uuids.len(), 1000);
        for uuid in uuids {
            assert!(
                uuid.len() == 32 && uuid.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
            );
            assert_eq!(&uuid[12..13], "4");
        }
    }

    #[test]
    fn a_new_root_is_found_as_one() {
        let folder = tempfile::tempdir().unwrap();
        let root = NewRoot::create(&folder.path().into(), BlockManager::Log).unwrap();
        root.finish().unwrap();
        let servers = crate::fs::discover(&[folder.path().into()], None).unwrap().servers;
        assert_eq!(servers.len(), 1);
        assert_eq!(servers[0].uuid, root.uuid);
        assert!(servers[0].findings.is_empty());
        assert!(
            servers[0]
                .blocks(&servers[0].pool(), &pilaster_core::Limits::default())
                .unwrap()
                .findings
                .is_empty()
        );
    }
}
