//! Which tablets a server has: by their superblocks, and by their logs where a superblock is damaged or gone.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use pilaster_core::{Error, Finding, Limits, Location, Result};

use super::lenient;
use super::superblock::{TabletMetadata, TabletState};
use super::unread_parts::UnreadPart;
use crate::fs::{BlockKind, BlockMap, FilePool, FsRoots, Pbc, WantedBlock};
use crate::wal::{read_headers, read_log};

/// A tablet and how sure it is what its superblock said.
#[derive(Debug)]
pub(crate) struct FoundTablet {
    pub metadata: TabletMetadata,
    /// What is wrong with the superblock; `None` if it is sound.
    pub damage: Option<Finding>,
    /// Whether nothing of the superblock is left: rowsets must be put together from blocks.
    pub lacks_rowsets: bool,
}

/// All tablets of a server.
pub(crate) fn find_tablets(roots: &FsRoots, pool: &FilePool, limits: &Limits) -> Vec<FoundTablet> {
    let mut found: BTreeMap<String, FoundTablet> = BTreeMap::new();
    for folder in roots.folders("tablet-meta") {
        for (id, path) in tablet_files(&folder, roots) {
            if let Some(tablet) = read_superblock(&id, &path, roots, pool, limits) {
                let known = found.entry(id).or_insert(tablet);
                debug_assert_eq!(known.metadata.tablet_id.len(), 32);
            }
        }
    }
    for id in logged_tablets(roots) {
        if !found.contains_key(&id)
            && let Some(tablet) = without_superblock(&id, roots, pool, limits)
        {
            found.insert(id, tablet);
        }
    }
    found.into_values().collect()
}

fn read_superblock(
    id: &str,
    path: &Location,
    roots: &FsRoots,
    pool: &FilePool,
    limits: &Limits,
) -> Option<FoundTablet> {
    let name = path.to_string();
    let file = pool.content(path).and_then(|source| Pbc::first_within(source.as_ref(), limits));
    let error = match file {
        Ok(mut file) => {
            if let Some((_, record)) = file.records.first() {
                match sound(&name, id, record) {
                    Ok(metadata) => {
                        return Some(FoundTablet { metadata, damage: None, lacks_rowsets: false });
                    }
                    Err(error) => Some(error),
                }
            } else if !file.damaged.is_empty() {
                let (error, record) = file.damaged.swap_remove(0);
                if let Some(mut metadata) = lenient::parse(id, &record) {
                    let mut damage = Finding::from_error(&error, &name, None);
                    let log = log_folder(id, roots).map(|folder| read_log(&folder, pool, limits));
                    damage.message.push_str(
                        match lenient::take_columns(&mut metadata, &log.unwrap_or_default()) {
                            true => "; its columns are taken from the log, the table's name is not proven",
                            false => {
                                "; nothing proves the names and types of its columns, nor the table's name"
                            }
                        },
                    );
                    return Some(FoundTablet { metadata, damage: Some(damage), lacks_rowsets: false });
                }
                Some(error)
            } else {
                match file.torn {
                    Some(crate::fs::Torn::Corrupt(error)) => Some(error),
                    _ => None,
                }
            }
        }
        Err(error) => Some(error),
    };
    let error = error.unwrap_or_else(|| {
        Error::corrupt("a superblock", "the end of the file").at(&name, 0, "tablet superblock")
    });
    let mut tablet = without_superblock(id, roots, pool, limits).unwrap_or_else(|| FoundTablet {
        metadata: TabletMetadata { state: TabletState::Unknown, ..TabletMetadata::unknown(id) },
        damage: None,
        lacks_rowsets: true,
    });
    tablet.damage = Some(Finding::from_error(&error, &name, None));
    Some(tablet)
}

/// A superblock whose checksum is right. Its name must be its own: a file put in the place of another is damage too.
fn sound(name: &str, id: &str, record: &Bytes) -> Result<TabletMetadata> {
    let metadata = TabletMetadata::parse(name, record)?;
    if metadata.tablet_id != id {
        return Err(Error::corrupt(format!("tablet {id}"), format!("tablet {}", metadata.tablet_id)).at(
            name,
            0,
            "tablet superblock",
        ));
    }
    Ok(metadata)
}

/// A tablet of which only a log is left, or an unfinished copy of its superblock.
fn without_superblock(id: &str, roots: &FsRoots, pool: &FilePool, limits: &Limits) -> Option<FoundTablet> {
    let place = format!("tablet {id}");
    let unread = roots.unread();
    let hidden = unread.iter().find(|unread| UnreadPart::of(unread, roots) == Some(UnreadPart::Tablets));
    let damage = match hidden {
        Some(unread) => unread.finding(),
        None => Finding::from_error(&Error::corrupt("a superblock", "none"), &place, None),
    };
    let damage = Some(damage);
    for path in unfinished_copies(id, roots) {
        let name = path.to_string();
        let record = pool.content(&path).and_then(|source| Pbc::single_within(source.as_ref(), limits));
        if let Ok(metadata) = record.and_then(|record| sound(&name, id, &record)) {
            return Some(FoundTablet { metadata, damage, lacks_rowsets: false });
        }
    }
    let segments = read_headers(&log_folder(id, roots)?, pool, limits);
    let first = segments.iter().find(|segment| segment.schema.is_some())?;
    let mut metadata = TabletMetadata {
        schema: first.schema.clone()?,
        schema_version: first.schema_version,
        state: TabletState::Unknown,
        ..TabletMetadata::unknown(id)
    };
    metadata.mark_catalog();
    Some(FoundTablet { metadata, damage, lacks_rowsets: true })
}

/// `<id>.kudutmp.<letters>`, newest name last: a superblock about to replace the old one.
fn unfinished_copies(id: &str, roots: &FsRoots) -> Vec<Location> {
    let folders = roots.folders("tablet-meta").into_iter();
    let mut copies: Vec<_> = folders
        .flat_map(|folder| roots.entries(&folder))
        .filter(|path| {
            let name = path.name().to_str().unwrap_or_default();
            name.strip_prefix(id).is_some_and(|rest| {
                rest.starts_with(".kudutmp") || rest.starts_with(".tmp") || rest.starts_with(".bak")
            })
        })
        .collect();
    copies.sort();
    copies
}

/// The folder of a tablet's log: what a server was replaying when it died counts more than what it was writing anew.
pub(super) fn log_folder(id: &str, roots: &FsRoots) -> Option<Location> {
    let folders = roots.folders("wals");
    let recovery = folders.iter().map(|folder| folder.child(format!("{id}.recovery")));
    let plain = folders.iter().map(|folder| folder.child(id));
    recovery.chain(plain).find(|folder| roots.is_dir(folder))
}

fn tablet_files(folder: &Location, roots: &FsRoots) -> Vec<(String, Location)> {
    let files = roots.entries(folder).into_iter();
    files.filter_map(|path| Some((tablet_id(path.name().to_str()?)?, path))).collect()
}

/// Tablets that have a folder of logs.
pub(crate) fn logged_tablets(roots: &FsRoots) -> BTreeSet<String> {
    let folders = roots.folders("wals").into_iter();
    let logs = folders.flat_map(|folder| roots.entries(&folder));
    logs.filter_map(|path| {
        let name = path.name().to_str()?;
        tablet_id(name.strip_suffix(".recovery").unwrap_or(name))
    })
    .collect()
}

/// The id that a file or folder is named after.
pub(crate) fn tablet_id(name: &str) -> Option<String> {
    (name.len() == 32 && name.bytes().all(|byte| byte.is_ascii_hexdigit())).then(|| name.to_string())
}

impl TabletMetadata {
    /// Every block it names, with what is known of it.
    pub(crate) fn wanted_blocks(&self, map: &BlockMap, pool: &FilePool) -> Vec<WantedBlock> {
        let mut wanted = Vec::new();
        for rowset in &self.rowsets {
            let mut blocks = Vec::new();
            for (id, block) in &rowset.columns {
                let column = self.schema.index_of_id(*id).and_then(|index| self.schema.columns.get(index));
                let kind = column.map_or(BlockKind::DroppedColumn, |column| BlockKind::Column {
                    data_type: column.data_type,
                    is_nullable: column.is_nullable,
                    is_array: column.is_array,
                });
                blocks.push((*block, kind));
            }
            let deltas = rowset.redo_deltas.iter().chain(&rowset.undo_deltas);
            blocks.extend(deltas.map(|block| (*block, BlockKind::Delta)));
            blocks.extend(rowset.bloom.map(|block| (block, BlockKind::Bloom)));
            blocks.extend(rowset.adhoc_index.map(|block| (block, BlockKind::KeyIndex)));
            let is_whole = blocks.iter().all(|(block, _)| map.places.contains_key(block));
            let rows = if is_whole { None } else { rows_of(&rowset.columns, map, pool) };
            wanted.extend(blocks.into_iter().map(|(id, kind)| WantedBlock { id, kind, rows }));
        }
        wanted
    }
}

/// Number of rows, as any column that is there says.
fn rows_of(columns: &[(i32, u64)], map: &BlockMap, pool: &FilePool) -> Option<u64> {
    columns.iter().find_map(|(_, block)| {
        let source = pool.block(*block, map.places.get(block)?).ok()?;
        Some(crate::cfile::CFileReader::open(source).ok()?.metadata().num_values)
    })
}
