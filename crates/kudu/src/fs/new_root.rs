//! The empty folders of a new server.

use std::fs::{self, File};
use std::hash::{BuildHasher, RandomState};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use arrow_array::TimestampSecondArray;
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use pilaster_core::error::AtPosition;
use pilaster_core::{Error, Result};

use super::block_writer::BlockManager;
use super::pbc::single_record_file;
use crate::messages::{DirInstanceMetadataPb, DirSetPb, InstanceMetadataPb};

/// Blocks of a file system that does not say.
const DEFAULT_FS_BLOCK_BYTES: u64 = 4096;

/// The root of a server that has nothing yet: one folder for log, metadata and data.
#[derive(Debug)]
pub(crate) struct NewRoot {
    pub folder: PathBuf,
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

    /// Makes the root in an empty folder.
    pub fn create(folder: &Path, manager: BlockManager) -> Result<Self> {
        for name in Self::FOLDERS {
            fs::create_dir(folder.join(name)).at(&folder.display().to_string(), 0, "")?;
        }
        let root = Self {
            uuid: new_uuid(),
            data_uuid: new_uuid(),
            fs_block_bytes: fs_block_bytes(folder)?,
            folder: folder.to_path_buf(),
        };
        let instance = InstanceMetadataPb {
            uuid: Some(root.uuid.clone().into_bytes()),
            format_stamp: Some(format!("Formatted at {} by pilaster", wall_clock(now_micros()?)?)),
            ..InstanceMetadataPb::default()
        };
        write_durably(&folder.join("instance"), &single_record_file("kudu.InstanceMetadataPB", &instance))?;
        let uuid = root.data_uuid.clone().into_bytes();
        let directory = DirInstanceMetadataPb {
            dir_set: Some(DirSetPb { uuid: Some(uuid.clone()), all_uuids: vec![uuid] }),
            dir_type: Some(manager.dir_type().into()),
            filesystem_block_size_bytes: Some(root.fs_block_bytes),
        };
        write_durably(
            &folder.join("data").join("block_manager_instance"),
            &single_record_file("kudu.DirInstanceMetadataPB", &directory),
        )?;
        Ok(root)
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

#[cfg(unix)]
fn fs_block_bytes(folder: &Path) -> Result<u64> {
    use std::os::unix::fs::MetadataExt;
    let size = fs::metadata(folder).at(&folder.display().to_string(), 0, "")?.blksize();
    Ok(if size.is_power_of_two() { size } else { DEFAULT_FS_BLOCK_BYTES })
}

#[cfg(not(unix))]
fn fs_block_bytes(_folder: &Path) -> Result<u64> {
    Ok(DEFAULT_FS_BLOCK_BYTES)
}

/// Writes a new file and makes it durable.
pub(crate) fn write_durably(path: &Path, bytes: &[u8]) -> Result<()> {
    let write = || {
        let mut file = File::create_new(path)?;
        file.write_all(bytes)?;
        file.sync_all()
    };
    write().at(&path.display().to_string(), 0, "")
}

/// Makes the names in a folder durable.
#[cfg(unix)]
pub(crate) fn sync_folder(folder: &Path) -> Result<()> {
    File::open(folder).and_then(|opened| opened.sync_all()).at(&folder.display().to_string(), 0, "")
}

/// Makes the names in a folder durable.
#[cfg(not(unix))]
pub(crate) fn sync_folder(_folder: &Path) -> Result<()> {
    Ok(())
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
        let root = NewRoot::create(folder.path(), BlockManager::Log).unwrap();
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
