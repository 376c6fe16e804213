//! Which of the folders and files that could not be read a tablet needs.

use std::path::Component;

use pilaster_core::Location;

use super::replica::{LogUse, Replica};
use super::superblock::TabletMetadata;
use crate::fs::{FsRoots, Unread};

/// What of a server lies in a place that could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum UnreadPart {
    /// All of it, or which tablets there are.
    Tablets,
    /// The logs or the voters of all tablets.
    Logs,
    /// The superblock of a tablet.
    Superblock(String),
    /// The log or the voters of a tablet.
    Log(String),
    /// Blocks.
    Blocks,
}

impl UnreadPart {
    /// Of one of these roots; `None` if it lies elsewhere.
    pub fn of(unread: &Unread, roots: &FsRoots) -> Option<Self> {
        let mut names = roots.place_in_root(&unread.path)?.components().filter_map(|part| match part {
            Component::Normal(name) => Some(name.to_string_lossy().into_owned()),
            _ => None,
        });
        let (folder, entry) = (names.next().unwrap_or_default(), names.next());
        let tablet = entry.map(|name| match name.split_once('.') {
            Some((id, _)) => id.to_string(),
            None => name,
        });
        Some(match (folder.as_str(), tablet) {
            ("tablet-meta", Some(tablet)) => Self::Superblock(tablet),
            ("wals" | "consensus-meta", Some(tablet)) => Self::Log(tablet),
            ("wals" | "consensus-meta", None) => Self::Logs,
            ("data", _) => Self::Blocks,
            _ => Self::Tablets,
        })
    }
}

impl Replica {
    /// What of this server could not be read so far and may hold some of this tablet's rows.
    pub fn unread(&self, log_use: LogUse) -> Vec<Unread> {
        let mut unread = self.roots.unread();
        unread.retain(|unread| self.needs(unread, log_use));
        unread
    }

    fn needs(&self, unread: &Unread, log_use: LogUse) -> bool {
        let is_own = |tablet: &str| tablet == self.metadata.tablet_id;
        let reads_log = log_use == LogUse::Replay;
        match UnreadPart::of(unread, &self.roots) {
            None => false,
            Some(UnreadPart::Tablets) => true,
            Some(UnreadPart::Logs) => reads_log,
            Some(UnreadPart::Superblock(tablet)) => is_own(&tablet),
            Some(UnreadPart::Log(tablet)) => reads_log && is_own(&tablet),
            Some(UnreadPart::Blocks) => {
                // Without a superblock nobody knows which blocks there should be.
                self.metadata_damage.is_some()
                    || self.missing_blocks() > 0
                    || self.has_blocks_in(&unread.path)
            }
        }
    }

    fn has_blocks_in(&self, file: &Location) -> bool {
        let places = self.block_ids().filter_map(|id| self.blocks.map.places.get(&id));
        places.into_iter().any(|place| &*place.file == file)
    }

    /// Whether nothing says to which table it belongs.
    pub fn is_nameless(&self) -> bool {
        self.metadata.table_name == TabletMetadata::name_for(&self.metadata.tablet_id)
    }
}
