//! Blocks being written into a new data directory.

use std::fmt;
use std::io::{self, Write};
use std::str::FromStr;
use std::sync::Arc;

use pilaster_core::{Error, Location, NewFile, Result};
use prost::Message;

use super::blocks::BlockPlace;
use super::file_blocks::block_path;
use super::new_root::{new_uuid, now_micros};
use super::pbc::{append_record, file_start};
use crate::messages::{BlockIdPb, BlockRecordPb};

/// A container is full at this size (`log_container_max_size`).
const CONTAINER_BYTES: u64 = 10 << 30;

/// How blocks lie on the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BlockManager {
    /// Many blocks in one file: what Kudu does on Linux.
    #[default]
    Log,
    /// A file for each block.
    File,
}

impl BlockManager {
    /// The name in `block_manager_instance`, and of the flag `--block_manager`.
    pub fn dir_type(self) -> &'static str {
        match self {
            Self::Log => "log",
            Self::File => "file",
        }
    }
}

impl fmt::Display for BlockManager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.dir_type())
    }
}

impl FromStr for BlockManager {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text.to_ascii_lowercase().as_str() {
            "log" => Ok(Self::Log),
            "file" => Ok(Self::File),
            _ => Err(Error::invalid(format!("no block manager \"{text}\"; there are: log, file"))),
        }
    }
}

/// A block that was written.
#[derive(Debug, Clone)]
pub(crate) struct WrittenBlock {
    pub id: u64,
    pub place: BlockPlace,
}

impl WrittenBlock {
    pub fn message(&self) -> BlockIdPb {
        BlockIdPb { id: Some(self.id) }
    }
}

/// Writes blocks one after the other, with ids that ascend from 1.
#[derive(Debug)]
pub(crate) struct BlockWriter {
    data: Location,
    manager: BlockManager,
    fs_block_bytes: u64,
    last_id: u64,
    bytes: u64,
    container: Option<Container>,
}

/// A container of the log block manager that takes further blocks.
#[derive(Debug)]
struct Container {
    place: Arc<Location>,
    data: NewFile,
    metadata: NewFile,
    at: u64,
}

/// Where the bytes of a block go, counted.
#[derive(Debug)]
pub(crate) struct BlockSink<'a> {
    file: &'a mut NewFile,
    bytes: u64,
}

impl Write for BlockSink<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.file.write(bytes)?;
        self.bytes = self.bytes.saturating_add(count as u64);
        Ok(count)
    }

    /// The file is flushed when all blocks are there.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl BlockWriter {
    /// Writes into `data`, the data directory of a new root.
    pub fn new(data: Location, manager: BlockManager, fs_block_bytes: u64) -> Self {
        Self { data, manager, fs_block_bytes, last_id: 0, bytes: 0, container: None }
    }

    /// Bytes of all blocks so far.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Writes the bytes that `write` gives as a block. An error leaves the folder useless.
    pub fn write_block(
        &mut self,
        write: impl FnOnce(&mut BlockSink<'_>) -> Result<()>,
    ) -> Result<WrittenBlock> {
        self.last_id = self.last_id.saturating_add(1);
        let id = self.last_id;
        let place = match self.manager {
            BlockManager::Log => self.write_into_container(id, write)?,
            BlockManager::File => self.write_file(id, write)?,
        };
        self.bytes = self.bytes.saturating_add(place.length);
        Ok(WrittenBlock { id, place })
    }

    fn write_file(
        &mut self,
        id: u64,
        write: impl FnOnce(&mut BlockSink<'_>) -> Result<()>,
    ) -> Result<BlockPlace> {
        let place = self.data.beside(block_path(self.data.path(), id));
        if let Some(folder) = place.parent() {
            folder.make_folder()?;
        }
        let mut file = place.create()?;
        let mut sink = BlockSink { file: &mut file, bytes: 0 };
        write(&mut sink)?;
        let length = sink.bytes;
        file.finish()?;
        Ok(BlockPlace { file: Arc::new(place), offset: 0, length })
    }

    fn write_into_container(
        &mut self,
        id: u64,
        write: impl FnOnce(&mut BlockSink<'_>) -> Result<()>,
    ) -> Result<BlockPlace> {
        if let Some(full) = self.container.take_if(|container| container.at >= CONTAINER_BYTES) {
            full.finish()?;
        }
        let container = match &mut self.container {
            Some(container) => container,
            none => none.insert(Container::create(&self.data)?),
        };
        container.write(id, self.fs_block_bytes, write)
    }

    /// Makes everything durable; then the blocks can be read.
    pub fn finish(&mut self) -> Result<()> {
        self.container.take().map_or(Ok(()), Container::finish)
    }
}

impl Container {
    fn create(data: &Location) -> Result<Self> {
        let base = data.child(new_uuid());
        let place = base.with_extension("data");
        let (data, mut metadata) = (place.create()?, base.with_extension("metadata").create()?);
        metadata.write_all(&file_start("kudu.BlockRecordPB"))?;
        Ok(Self { place: Arc::new(place), data, metadata, at: 0 })
    }

    fn write(
        &mut self,
        id: u64,
        fs_block_bytes: u64,
        write: impl FnOnce(&mut BlockSink<'_>) -> Result<()>,
    ) -> Result<BlockPlace> {
        let offset = self.at.next_multiple_of(fs_block_bytes.max(1));
        let padding = usize::try_from(offset.saturating_sub(self.at)).unwrap_or_default();
        self.data.write_all(&vec![0; padding])?;
        let mut sink = BlockSink { file: &mut self.data, bytes: 0 };
        write(&mut sink)?;
        let length = sink.bytes;
        self.at = offset.saturating_add(length);
        let record = BlockRecordPb {
            block_id: Some(BlockIdPb { id: Some(id) }),
            op_type: Some(BlockRecordPb::CREATE),
            timestamp_us: Some(now_micros()?),
            offset: i64::try_from(offset).ok(),
            length: i64::try_from(length).ok(),
        };
        let mut bytes = Vec::new();
        append_record(&mut bytes, &record.encode_to_vec());
        self.metadata.write_all(&bytes)?;
        Ok(BlockPlace { file: Arc::clone(&self.place), offset, length })
    }

    fn finish(self) -> Result<()> {
        self.data.finish()?;
        self.metadata.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fs::{FilePool, NewRoot, discover};

    #[test]
    fn what_is_written_is_found_by_its_id() {
        for manager in [BlockManager::Log, BlockManager::File] {
            let folder = tempfile::tempdir().unwrap();
            let place = Location::local(folder.path());
            let root = NewRoot::create(&place, manager).unwrap();
            root.finish().unwrap();
            let mut writer = BlockWriter::new(place.child("data"), manager, root.fs_block_bytes);
            let contents: Vec<Vec<u8>> = vec![vec![1; 10], vec![], vec![2; 5000], vec![3; 1]];
            for content in &contents {
                writer.write_block(|sink| Ok(sink.write_all(content)?)).unwrap();
            }
            assert_eq!(writer.bytes(), 5011);
            writer.finish().unwrap();
            let servers = discover(&[folder.path().into()], None).unwrap().servers;
            let pool = FilePool::new(None, crate::fs::UnreadLog::default());
            let map = servers[0].blocks(&pool, &pilaster_core::Limits::default()).unwrap();
            assert!(map.findings.is_empty(), "{:?}", map.findings);
            assert_eq!(map.places.len(), contents.len());
            for (id, content) in (1..).zip(&contents) {
                let place = &map.places[&id];
                assert_eq!(place.offset % root.fs_block_bytes, 0);
                let source = pool.block(id, place).unwrap();
                assert_eq!(source.read_at(0..source.size()).unwrap(), content);
            }
        }
    }
}
