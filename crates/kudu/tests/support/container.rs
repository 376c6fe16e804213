//! Just enough of Kudu's block managers to cut CFiles out of a data folder.
//!
//! ```text
//! .metadata: "kuducntr" | u32 2 | u32 CRC | record | record | …      record: u32 len | u32 CRC | message | u32 CRC
//! first record: which messages follow; each other one: a block was created (offset, length in .data) or deleted
//! ```

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pilaster_core::SourceRef;
use pilaster_core::source::{FileSource, SectionSource};
use prost::Message;

#[derive(Clone, PartialEq, Message)]
struct BlockId {
    #[prost(fixed64, optional, tag = "1")]
    id: Option<u64>,
}

#[derive(Clone, PartialEq, Message)]
struct BlockRecord {
    #[prost(message, optional, tag = "1")]
    block: Option<BlockId>,
    #[prost(int32, optional, tag = "2")]
    operation: Option<i32>,
    #[prost(int64, optional, tag = "4")]
    offset: Option<i64>,
    #[prost(int64, optional, tag = "5")]
    length: Option<i64>,
}

const CREATE: i32 = 1;

/// The live blocks of data folders by number.
#[derive(Debug, Default)]
pub struct Blocks(HashMap<u64, Place>);

#[derive(Debug)]
struct Place {
    path: PathBuf,
    /// Offset and length; the whole file if there are none.
    range: Option<(u64, u64)>,
}

impl Blocks {
    /// Finds all blocks under `folders`, whichever block manager made them.
    pub fn find(folders: &[PathBuf]) -> Self {
        let mut blocks = Self::default();
        for folder in folders {
            blocks.add_folder(folder);
        }
        blocks
    }

    fn add_folder(&mut self, folder: &Path) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap().to_string();
            if path.is_dir() {
                self.add_folder(&path);
            } else if name.ends_with(".metadata") {
                self.add_container(&path);
            } else if let Ok(id) = name.parse() {
                self.0.insert(id, Place { path, range: None });
            }
        }
    }

    fn add_container(&mut self, metadata: &Path) {
        let bytes = fs::read(metadata).unwrap();
        assert_eq!(&bytes[..12], b"kuducntr\x02\0\0\0");
        let mut rest = &bytes[16..];
        let mut is_first = true;
        while rest.len() >= 8 {
            let length = u32::from_le_bytes(rest[..4].try_into().unwrap()) as usize;
            if length == 0 {
                break;
            }
            let message = &rest[8..8 + length];
            rest = &rest[8 + length + 4..];
            if std::mem::take(&mut is_first) {
                continue;
            }
            let record = BlockRecord::decode(message).unwrap();
            let id = record.block.unwrap().id.unwrap();
            if record.operation == Some(CREATE) {
                let range = (record.offset.unwrap() as u64, record.length.unwrap() as u64);
                self.0.insert(id, Place { path: metadata.with_extension("data"), range: Some(range) });
            } else {
                self.0.remove(&id);
            }
        }
    }

    /// The bytes of a block.
    pub fn open(&self, id: u64) -> SourceRef {
        let place = self.0.get(&id).unwrap_or_else(|| panic!("no block {id}"));
        let file: SourceRef = Arc::new(FileSource::open(&place.path).unwrap());
        match place.range {
            None => file,
            Some((offset, length)) => {
                let name = format!("{}#{id}", place.path.display());
                Arc::new(SectionSource::new(name, file, offset..offset + length).unwrap())
            }
        }
    }
}
