//! Rows that are on the disks and that nothing proves to be a table's, or to be its latest.

use std::sync::Arc;

use pilaster_core::{DatasetRef, Result};

use super::{KuduStore, OrphanGroup, Replica};

/// Rows apart from those of any table, because something about them is not proven.
#[derive(Debug, Clone)]
pub struct Unproven {
    /// A name for a file.
    pub name: String,
    /// What is not proven.
    pub reason: String,
    /// The rows.
    pub rows: DatasetRef,
}

impl KuduStore {
    /// What can be read beside the proven rows of a table: rows that operations lost with a log may have changed, and
    /// rowsets that no superblock names and no log proves, where a tablet's superblock is lost. Without a table, all of it on
    /// all disks.
    ///
    /// # Errors
    /// As [`KuduStore::table`].
    pub fn unproven(&self, table: Option<&str>) -> Result<Vec<Unproven>> {
        let names = table.map_or_else(|| self.tables(), |name| vec![name.to_string()]);
        let mut unproven = Vec::new();
        for name in &names {
            let rows = self.open_table(Some(name)).and_then(|table| table.unproven());
            let rows = match (rows, table) {
                // Of all tables, one that cannot be opened keeps nobody from the others.
                (Err(_), None) if names.len() > 1 => continue,
                (rows, _) => rows?,
            };
            for (tablet, rows) in rows {
                let reason = format!(
                    "rows of table \"{name}\" that lost operations of the log may have changed or deleted"
                );
                unproven.push(Unproven { name: tablet, reason, rows: Arc::new(rows) });
            }
        }
        let may_own = |replica: &&Replica| replica.is_rebuilt && names.contains(&replica.metadata.table_name);
        for server in &self.servers {
            let of_server = |replica: &&Replica| server.owns(replica);
            let is_known = self.replicas.iter().any(|replica| server.owns(replica));
            let has_lost_own = self.replicas.iter().filter(of_server).any(|replica| may_own(&replica));
            let found = match is_known && !has_lost_own {
                true => self.lost_rowsets(server),
                false => self.orphans_of(server),
            };
            let may_be_of = |group: &OrphanGroup| {
                table.is_none() || has_lost_own || group.tables.iter().any(|name| names.contains(name))
            };
            let is_apart =
                |group: &OrphanGroup| group.is_rowset && group.tablet.is_none() && may_be_of(group);
            for found in found.into_iter().filter(|found| is_apart(&found.group)) {
                let reason = match found.group.tables.as_slice() {
                    [] => "a rowset of an unknown tablet".to_string(),
                    tables => {
                        format!("a rowset of an unknown tablet, with columns as of {}", tables.join(", "))
                    }
                };
                let name = found.group.name.clone();
                unproven.push(Unproven { rows: self.open_orphan(server, found)?, name, reason });
            }
        }
        Ok(unproven)
    }
}
