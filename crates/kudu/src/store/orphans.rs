//! Blocks that no superblock names: what is left of tablets whose superblock is gone.
//!
//! A CFile knows neither its tablet nor its rowset nor its column. A flush writes a rowset in one go, though: its columns in
//! schema order, then the bloom filter, then the index of a compound key, then the deltas that take its inserts back, with
//! ids one after the other. Blocks that follow this pattern are put together and can be read as a table; the rest can be
//! read one by one. Column names and decimal digits come from a table with the same types, if exactly one is known.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use pilaster_core::{DatasetRef, Error, Location, Result, SourceRef};

use super::{KuduStore, Server};
use crate::cfile::{CFileKind, CFileMetadata, CFileReader, MAX_KEY, MIN_KEY};
use crate::fs::{BlockPlace, nameless_files};
use crate::tablet::{
    KuduColumn, KuduSchema, KuduTable, LogUse, Parts, Replica, RowSetMetadata, Snapshot, TabletMetadata,
    TabletState, Witness, belongs_to_undo, key_columns,
};

/// What an orphaned block is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OrphanKind {
    /// Cells of a column.
    Column,
    /// Changes of rows.
    Delta,
    /// A bloom filter of keys.
    Bloom,
    /// The index of a compound key.
    KeyIndex,
}

impl std::fmt::Display for OrphanKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Column => "column",
            Self::Delta => "delta",
            Self::Bloom => "bloom",
            Self::KeyIndex => "key index",
        })
    }
}

/// A CFile that no superblock names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrphanBlock {
    /// The file it lies in.
    pub path: Location,
    /// Where it begins.
    pub offset: u64,
    /// Its length.
    pub bytes: u64,
    /// Its id; `None` if no record names it either.
    pub block: Option<u64>,
    /// What it is.
    pub kind: OrphanKind,
    /// Type of its values.
    pub data_type: String,
    /// Cells, or entries.
    pub rows: u64,
    /// Encoded keys of its first and last row, where its footer has them.
    pub key_range: Option<(Vec<u8>, Vec<u8>)>,
}

/// Orphaned blocks that belong together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrphanGroup {
    /// What [`KuduStore::orphan`] opens it by.
    pub name: String,
    /// Uuid of the server.
    pub server: String,
    /// The tablet, if its log is left: its rowsets are read with the table of that name.
    pub tablet: Option<String>,
    /// Known tables whose columns have the same types.
    pub tables: Vec<String>,
    /// Rows of the rowset, or of the only block.
    pub rows: u64,
    /// Whether the blocks are a whole rowset, which reads as a table.
    pub is_rowset: bool,
    /// Its blocks.
    pub blocks: Vec<OrphanBlock>,
}

/// A group with what is needed to open it.
pub(super) struct Found {
    pub group: OrphanGroup,
    pub rowset: Option<(RowSetMetadata, KuduSchema)>,
}

/// A block and its footer.
struct Candidate {
    id: Option<u64>,
    place: BlockPlace,
    metadata: CFileMetadata,
    kind: OrphanKind,
}

impl Candidate {
    fn new(id: Option<u64>, place: BlockPlace, source: SourceRef) -> Option<Self> {
        let file = CFileReader::open(source).ok()?;
        let metadata = file.metadata().clone();
        let kind = match file.kind() {
            CFileKind::Delta => OrphanKind::Delta,
            CFileKind::Bloom => OrphanKind::Bloom,
            _ if metadata.positional_index.is_none() && metadata.pair(MIN_KEY).is_some() => {
                OrphanKind::KeyIndex
            }
            _ => OrphanKind::Column,
        };
        Some(Self { id, place, metadata, kind })
    }

    fn block(&self) -> OrphanBlock {
        let key = |name: &str| self.metadata.pair(name).map(|key| key.to_vec());
        let array = if self.metadata.is_array { " array" } else { "" };
        OrphanBlock {
            path: self.place.file.as_ref().clone(),
            offset: self.place.offset,
            bytes: self.place.length,
            block: self.id,
            kind: self.kind,
            data_type: format!("{}{array}", self.metadata.data_type),
            rows: self.metadata.num_values,
            key_range: key(MIN_KEY).zip(key(MAX_KEY)),
        }
    }
}

impl KuduStore {
    /// Every CFile that no superblock names, grouped as far as they can be. Containers whose records are lost are searched
    /// for CFiles, so this reads more than opening did.
    pub fn orphans(&self) -> Vec<OrphanGroup> {
        let found = self.servers.iter().flat_map(|server| self.orphans_of(server));
        found.map(|found| found.group).collect()
    }

    /// Opens a group of orphaned blocks: a rowset as a table, a single block as a CFile.
    ///
    /// # Errors
    /// [`pilaster_core::ErrorKind::InvalidInput`] if there is no group of that name.
    pub fn orphan(&self, name: &str) -> Result<DatasetRef> {
        for server in &self.servers {
            let Some(found) = self.orphans_of(server).into_iter().find(|found| found.group.name == name)
            else {
                continue;
            };
            return self.open_orphan(server, found);
        }
        Err(Error::invalid(format!("no orphans of the name \"{name}\"")))
    }

    /// Opens a group of a server: groups of servers that lost their names, and of copies of one, have the same names.
    pub(super) fn open_orphan(&self, server: &Server, found: Found) -> Result<DatasetRef> {
        if let Some(tablet) = &found.group.tablet {
            let of_tablet = |replica: &&Replica| replica.metadata.tablet_id == *tablet;
            let replica = self.replicas.iter().find(of_tablet);
            return self.dataset(replica.map(|replica| replica.metadata.table_name.as_str()));
        }
        match found.rowset {
            Some((rowset, schema)) => {
                let name = &found.group.name;
                Ok(Arc::new(server.orphan_table(name, rowset, schema, self.snapshot())?))
            }
            None => server.orphan_file(&found.group),
        }
    }

    pub(super) fn orphans_of(&self, server: &Server) -> Vec<Found> {
        let mut found = self.rebuilt(server);
        found.extend(self.recorded_orphans(server));
        found.extend(server.nameless().into_iter().map(|candidate| self.found(server, vec![candidate])));
        found
    }

    /// Those that a record names.
    pub(super) fn recorded_orphans(&self, server: &Server) -> Vec<Found> {
        let named: HashSet<u64> = server.named.values().flatten().copied().collect();
        let mut ids: Vec<u64> = server.recorded.iter().copied().filter(|id| !named.contains(id)).collect();
        ids.sort_unstable();
        let candidates = ids.into_iter().filter(|id| !server.rebuilt.contains(id)).filter_map(|id| {
            let place = server.blocks.map.places.get(&id)?;
            Candidate::new(Some(id), place.clone(), server.blocks.pool.block(id, place).ok()?)
        });
        group(candidates.collect(), server).into_iter().map(|group| self.found(server, group)).collect()
    }

    /// Rowsets that were put together for tablets without a superblock.
    fn rebuilt(&self, server: &Server) -> Vec<Found> {
        let mut found = Vec::new();
        let of_server = self.replicas.iter().filter(|replica| Arc::ptr_eq(&replica.roots, &server.roots));
        for replica in of_server {
            let metadata = &replica.metadata;
            for rowset in &metadata.rowsets {
                let blocks: Vec<_> = rowset
                    .block_ids()
                    .filter(|id| server.rebuilt.contains(id))
                    .filter_map(|id| {
                        let place = server.blocks.map.places.get(&id)?;
                        Candidate::new(Some(id), place.clone(), server.blocks.pool.block(id, place).ok()?)
                    })
                    .collect();
                if blocks.is_empty() {
                    continue;
                }
                let group = OrphanGroup {
                    name: format!("{}-rowset-{}", metadata.tablet_id, rowset.id),
                    server: replica.server.clone(),
                    tablet: Some(metadata.tablet_id.clone()),
                    tables: vec![metadata.table_name.clone()],
                    rows: blocks.first().map_or(0, |block| block.metadata.num_values),
                    is_rowset: true,
                    blocks: blocks.iter().map(Candidate::block).collect(),
                };
                found.push(Found { group, rowset: None });
            }
        }
        found
    }

    fn found(&self, server: &Server, blocks: Vec<Candidate>) -> Found {
        let columns: Vec<&Candidate> =
            blocks.iter().filter(|block| block.kind == OrphanKind::Column).collect();
        let schemas = self.schemas_like(&columns);
        let mut tables: Vec<String> = schemas.iter().map(|(name, _)| name.clone()).collect();
        tables.sort();
        tables.dedup();
        let rowset = rowset_of(&blocks).and_then(|rowset| {
            let known = match tables.as_slice() {
                [_] => schemas.first().map(|(_, schema)| (*schema).clone()),
                _ => None,
            };
            let schema = known.map_or_else(|| server.schema_of(&columns, &rowset), Some)?;
            let rowset = RowSetMetadata { columns: column_ids(&schema, &rowset), ..rowset };
            Some((rowset, schema))
        });
        let first = blocks.first();
        let name = match first.and_then(|block| block.id) {
            Some(id) => format!("{}-block-{id}", short(&server.roots.uuid)),
            None => {
                let stem =
                    first.and_then(|block| block.place.file.path().file_stem()?.to_str()).unwrap_or_default();
                format!("{stem}-at-{}", first.map_or(0, |block| block.place.offset))
            }
        };
        let group = OrphanGroup {
            name,
            server: server.roots.uuid.clone(),
            tablet: None,
            tables: if rowset.is_some() { tables } else { Vec::new() },
            rows: first.map_or(0, |block| block.metadata.num_values),
            is_rowset: rowset.is_some(),
            blocks: blocks.iter().map(Candidate::block).collect(),
        };
        Found { group, rowset }
    }

    /// Tables whose columns have these types, with their schemas.
    fn schemas_like(&self, columns: &[&Candidate]) -> Vec<(String, &KuduSchema)> {
        let fits = |schema: &KuduSchema| {
            let same = |(column, block): (&KuduColumn, &&Candidate)| {
                let file = &block.metadata;
                (column.data_type, column.is_nullable, column.is_array)
                    == (file.data_type, file.is_nullable, file.is_array)
            };
            schema.columns.len() == columns.len() && schema.columns.iter().zip(columns).all(same)
        };
        let metadata = self.replicas.iter().map(|replica| &replica.metadata);
        let like = metadata.filter(|metadata| fits(&metadata.schema));
        like.map(|metadata| (metadata.table_name.clone(), &metadata.schema)).collect()
    }
}

/// Blocks in the order of their ids, cut where a rowset ends; those that fit none come alone.
fn group(candidates: Vec<Candidate>, server: &Server) -> Vec<Vec<Candidate>> {
    let mut groups: Vec<Vec<Candidate>> = Vec::new();
    for candidate in candidates {
        let follows = groups.last().is_some_and(|group| follows(group, &candidate, server));
        match groups.last_mut().filter(|_| follows) {
            Some(group) => group.push(candidate),
            None => groups.push(vec![candidate]),
        }
    }
    // What did not become a rowset is not one.
    let split = |group: Vec<Candidate>| match rowset_of(&group).is_some() {
        true => vec![group],
        false => group.into_iter().map(|candidate| vec![candidate]).collect(),
    };
    groups.into_iter().flat_map(split).collect()
}

/// Whether a block is the next one of the flush that wrote the others.
fn follows(group: &[Candidate], next: &Candidate, server: &Server) -> bool {
    let (Some(first), Some(last)) = (group.first(), group.last()) else { return false };
    let is_next = last.id.and_then(|id| id.checked_add(1)) == next.id;
    let has_rows = next.metadata.num_values == first.metadata.num_values;
    let has_key = next.metadata.pair(MIN_KEY).is_some();
    let wants = first.kind == OrphanKind::Column && is_next;
    wants
        && match next.kind {
            OrphanKind::Column => last.kind == OrphanKind::Column && has_rows && !has_key,
            OrphanKind::Bloom => last.kind == OrphanKind::Column,
            OrphanKind::KeyIndex => last.kind == OrphanKind::Bloom && has_rows,
            OrphanKind::Delta => {
                let is_first = matches!(last.kind, OrphanKind::Bloom | OrphanKind::KeyIndex);
                is_first && server.is_undo(next).unwrap_or(false)
            }
        }
}

/// The rowset that a group is, its columns numbered from 0; `None` if it is none.
fn rowset_of(group: &[Candidate]) -> Option<RowSetMetadata> {
    let of_kind = |kind: OrphanKind| {
        let blocks = group.iter().filter(move |block| block.kind == kind);
        blocks.filter_map(|block| block.id).collect::<Vec<u64>>()
    };
    let columns = of_kind(OrphanKind::Column);
    let adhoc_index = of_kind(OrphanKind::KeyIndex).first().copied();
    let has_single_key = group.first()?.metadata.pair(MIN_KEY).is_some();
    let bloom = Some(*of_kind(OrphanKind::Bloom).first()?);
    (!columns.is_empty() && (adhoc_index.is_some() != has_single_key)).then(|| RowSetMetadata {
        id: 0,
        last_durable_dms_id: -1,
        columns: (0..).zip(columns).collect(),
        undo_deltas: of_kind(OrphanKind::Delta),
        bloom,
        adhoc_index,
        ..RowSetMetadata::default()
    })
}

/// The blocks of a rowset by the ids of a schema's columns.
fn column_ids(schema: &KuduSchema, rowset: &RowSetMetadata) -> Vec<(i32, u64)> {
    let blocks = rowset.columns.iter().map(|(_, block)| *block);
    schema.columns.iter().map(|column| column.id.unwrap_or(-1)).zip(blocks).collect()
}

/// The beginning of a uuid.
fn short(uuid: &str) -> &str {
    uuid.get(..8).unwrap_or(uuid)
}

impl Server {
    /// CFiles in containers that neither a record nor a superblock names.
    fn nameless(&self) -> Vec<Candidate> {
        let map = &self.blocks.map;
        let known: BTreeSet<_> =
            map.places.values().map(|place| (place.file.clone(), place.offset)).collect();
        let mut found = Vec::new();
        for container in &map.containers {
            let files = nameless_files(container, &self.blocks.pool).unwrap_or_default();
            for file in files {
                if known.contains(&(file.place.file.clone(), file.place.offset)) {
                    continue;
                }
                let source = self.blocks.pool.block(0, &file.place);
                found.extend(source.ok().and_then(|source| Candidate::new(None, file.place, source)));
            }
        }
        found
    }

    /// Whether a delta file leads back in time.
    fn is_undo(&self, candidate: &Candidate) -> Result<bool> {
        let source = self.blocks.pool.block(candidate.id.unwrap_or_default(), &candidate.place)?;
        belongs_to_undo(source, &self.blocks.options)
    }

    /// Columns without names, the key columns told by the index of keys.
    fn schema_of(&self, columns: &[&Candidate], rowset: &RowSetMetadata) -> Option<KuduSchema> {
        let column = |(number, block): (usize, &&Candidate)| KuduColumn {
            is_array: block.metadata.is_array,
            is_nullable: block.metadata.is_nullable,
            ..KuduColumn::nameless(i32::try_from(number).unwrap_or(i32::MAX), block.metadata.data_type)
        };
        let mut schema = KuduSchema { columns: columns.iter().enumerate().map(column).collect() };
        let keys = match rowset.adhoc_index {
            None => 1,
            Some(index) => {
                let blocks: HashMap<u64, SourceRef> = (rowset.columns.iter().map(|(_, block)| *block))
                    .chain([index])
                    .filter_map(|id| {
                        let place = self.blocks.map.places.get(&id)?;
                        Some((id, self.blocks.pool.block(id, place).ok()?))
                    })
                    .collect();
                key_columns(&schema, rowset, index, &blocks, &self.blocks.options)?
            }
        };
        schema.columns.iter_mut().take(keys).for_each(|column| column.is_key = true);
        Some(schema)
    }

    fn orphan_table(
        &self,
        name: &str,
        rowset: RowSetMetadata,
        schema: KuduSchema,
        snapshot: Snapshot,
    ) -> Result<KuduTable> {
        let metadata = TabletMetadata {
            table_name: name.to_string(),
            schema,
            rowsets: vec![rowset],
            state: TabletState::Unknown,
            ..TabletMetadata::unknown(name)
        };
        let replica = Replica {
            metadata,
            server: self.roots.uuid.clone(),
            roots: Arc::clone(&self.roots),
            blocks: self.blocks.clone(),
            voters: vec![self.roots.uuid.clone()],
            voters_damage: None,
            witness: Witness::default(),
            metadata_damage: None,
            doubtful_tables: Vec::new(),
            unplaced: Vec::new(),
            is_rebuilt: false,
            salvages: false,
        };
        let tablet = replica.open(LogUse::Ignore, snapshot);
        KuduTable::new(name.to_string(), vec![tablet], snapshot, LogUse::Ignore, Parts::default())
    }

    fn orphan_file(&self, group: &OrphanGroup) -> Result<DatasetRef> {
        let block = group.blocks.first().ok_or_else(|| Error::internal("a group without blocks"))?;
        let place =
            BlockPlace { file: Arc::new(block.path.clone()), offset: block.offset, length: block.bytes };
        let source = self.blocks.pool.block(block.block.unwrap_or_default(), &place)?;
        let reader = CFileReader::open_with_options(source, &self.blocks.options)?;
        Ok(Arc::new(reader))
    }
}
