//! To which table a tablet belongs whose superblock does not say it, or says it without a right checksum.

use std::collections::BTreeSet;

use pilaster_core::{Error, Finding};

use super::replica::Replica;
use super::schema::{KuduColumn, KuduSchema};
use super::superblock::TabletMetadata;

/// Gives tablets with damaged superblocks the table they surely belong to, or notes those they may belong to.
pub(crate) fn assign_tables(replicas: &mut [Replica]) {
    let sound: Vec<Replica> =
        replicas.iter().filter(|replica| replica.metadata_damage.is_none()).cloned().collect();
    for replica in replicas.iter_mut().filter(|replica| replica.metadata_damage.is_some()) {
        let metadata = &mut replica.metadata;
        // Another server knows the tablet, or another tablet the table.
        let same_tablet = sound.iter().find(|other| other.metadata.tablet_id == metadata.tablet_id);
        let same_table = sound.iter().find(|other| {
            other.metadata.table_id == metadata.table_id || other.metadata.table_name == metadata.table_name
        });
        if let Some(other) = same_tablet {
            metadata.partition = other.metadata.partition.clone();
        }
        if let Some(other) = same_tablet.or(same_table) {
            metadata.table_id.clone_from(&other.metadata.table_id);
            metadata.table_name.clone_from(&other.metadata.table_name);
            continue;
        }
        // An id or a name that no other tablet has is that of a table with one tablet.
        let names_itself = metadata.table_name != TabletMetadata::name_for(&metadata.tablet_id);
        if names_itself || !metadata.table_id.is_empty() {
            continue;
        }
        let tables: BTreeSet<String> = sound
            .iter()
            .filter(|other| may_be_same(&metadata.schema, &other.metadata.schema))
            .map(|other| other.metadata.table_name.clone())
            .collect();
        replica.doubtful_tables = tables.into_iter().collect();
    }
}

/// Whether two schemas can be of one table at different times: ids are never used twice, and types never change.
fn may_be_same(a: &KuduSchema, b: &KuduSchema) -> bool {
    let keys = |schema: &KuduSchema| -> Vec<_> {
        schema.keys().iter().map(|key| (key.id, key.name.clone(), key.data_type)).collect()
    };
    let agree = |column: &KuduColumn| {
        let other = column.id.and_then(|id| b.index_of_id(id)).and_then(|index| b.columns.get(index));
        other.is_none_or(|other| {
            (other.data_type, other.is_array, other.is_nullable)
                == (column.data_type, column.is_array, column.is_nullable)
        })
    };
    a.columns.is_empty() || (keys(a) == keys(b) && a.columns.iter().all(agree))
}

impl Replica {
    /// Why a table may lack this tablet, if it may be one of it.
    pub fn doubt(&self, table: &str) -> Option<Finding> {
        if !self.doubtful_tables.iter().any(|name| name == table) {
            return None;
        }
        let place = format!("tablet {}", self.metadata.tablet_id);
        let found = format!("none that can be read; it may belong to table \"{table}\"");
        Some(Finding::from_error(&Error::corrupt("a superblock", found), &place, None))
    }
}
