//! A Kudu server's folders: which roots there are, which blocks live where.
//!
//! ```text
//! <root>/instance                          who wrote this root
//! <root>/wals/<tablet>/wal-000000001       write-ahead log
//! <root>/tablet-meta/<tablet>              superblock
//! <root>/consensus-meta/<tablet>           who votes
//! <root>/data/block_manager_instance       which block manager
//! <root>/data/<32 hex>.data, .metadata     log block manager: containers of many blocks
//! <root>/data/xx/yy/zz/<block id>          file block manager: a file per block
//! ```
//!
//! Nothing here writes to a folder that exists: a dead server's disks are evidence. New ones are made by `new_root` and
//! `block_writer`.

mod block_writer;
mod blocks;
mod encryption;
mod file_blocks;
mod log_blocks;
mod naming;
mod new_root;
mod pbc;
mod rocks_blocks;
mod roots;
mod scavenge;
mod servers;
mod stretches;
mod unread;

#[cfg(any(test, feature = "fuzzing"))]
pub(crate) use log_blocks::parse_block_records;
#[cfg(test)]
pub(crate) use pbc::tests::file_of;

pub use block_writer::BlockManager;
pub(crate) use block_writer::{BlockWriter, WrittenBlock};
pub(crate) use blocks::{BlockMap, BlockPlace, FilePool};
pub(crate) use naming::{BlockKind, WantedBlock, find_blocks};
pub(crate) use new_root::{NewRoot, new_uuid, now_micros};
pub(crate) use pbc::{Pbc, Torn, single_record_file};
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) use pbc::{append_record, file_start};
pub use roots::{Discovered, FsRoots, discover, has_roots};
pub(crate) use scavenge::nameless_files;
pub(crate) use stretches::Stretches;
pub use unread::Unread;
pub(crate) use unread::UnreadLog;
