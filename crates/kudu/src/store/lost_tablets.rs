//! Tablets that are gone, as far as anything that is left tells of them.
//!
//! A server writes a superblock before it lists the voters of a tablet, and deletes it after: a list without a superblock means that the
//! superblock was lost. Blocks that no superblock names may be garbage, which superblocks list, or what a crash left of a flush or a
//! merge; then a tablet here has the same changes. What is neither was the rows of a tablet that nobody names any more.

use std::collections::HashSet;

use pilaster_core::verify::{Finding, Severity};
use pilaster_core::{Error, Result};

use super::orphans::Found;
use super::{KuduStore, Server, is_readable};
use crate::fs::FsRoots;
use crate::tablet::{FoundTablet, Replica, RowSet, UnreadPart, logged_tablets, tablet_id};

/// Tablets that a server lists the voters of, or has a folder of logs of, and neither a superblock nor a log that can be read.
pub(super) fn remnants(roots: &FsRoots, tablets: &[FoundTablet]) -> Vec<String> {
    let files = roots.folders("consensus-meta").into_iter().flat_map(|folder| roots.entries(&folder));
    let ids = files.filter_map(|path| tablet_id(path.name().to_str()?));
    let ids = ids.chain(logged_tablets(roots));
    let is_known = |id: &String| tablets.iter().any(|tablet| tablet.metadata.tablet_id == *id);
    let mut ids: Vec<_> = ids.filter(|id| !is_known(id)).collect();
    ids.sort();
    ids.dedup();
    ids
}

impl KuduStore {
    /// Tablets of which so little is left that they are no table's: errors, unless another server here has the tablet.
    pub(super) fn lost_tablets(&self) -> Vec<Finding> {
        self.servers.iter().flat_map(|server| self.lost_tablets_of(server)).collect()
    }

    fn lost_tablets_of(&self, server: &Server) -> Vec<Finding> {
        // What could not be read may be all that is missing.
        if server.hides_tablets() {
            return Vec::new();
        }
        let mut lost = Vec::new();
        for id in &server.remnants {
            let mut same = self.replicas.iter().filter(|replica| replica.metadata.tablet_id == *id);
            let found = "only its folder of logs, or its voters in consensus-meta: what this server had of it is lost";
            let error = Error::corrupt("a superblock or a log", found);
            let mut finding = Finding::from_error(&error, &format!("tablet {id}"), None);
            if same.any(is_readable) {
                finding.severity = Severity::Warning;
            }
            lost.push(finding);
        }
        let has_tablets = self.replicas.iter().any(|replica| server.owns(replica));
        if !has_tablets && server.remnants.is_empty() && !server.blocks.map.places.is_empty() {
            let found = format!("none, and {} blocks", server.blocks.map.places.len());
            let error = Error::corrupt("superblocks or logs", found);
            let root = server.roots.roots.first().map(ToString::to_string);
            lost.push(Finding::from_error(&error, &root.unwrap_or_default(), None));
        }
        lost
    }

    /// Why there is no table at all, if there was one.
    pub(super) fn no_table(&self) -> Error {
        let lost = self.lost_tablets().into_iter().find(|finding| finding.severity == Severity::Error);
        lost.map_or_else(
            || Error::invalid("no table here"),
            |finding| {
                let found = format!("damage: {finding}; `recover` gives what blocks are left");
                Error::corrupt("a table", found)
            },
        )
    }

    /// Rowsets that no superblock of a server names and no tablet on it has the rows of.
    pub(super) fn lost_rowsets(&self, server: &Server) -> Vec<Found> {
        if server.hides_tablets() {
            return Vec::new();
        }
        let groups = self.recorded_orphans(server).into_iter();
        groups.filter(|found| found.group.is_rowset && !self.is_explained(server, found)).collect()
    }

    /// Findings for [`KuduStore::lost_rowsets`] of all servers.
    pub(super) fn lost_rowset_findings(&self) -> Vec<Finding> {
        let of_server = |server: &Server| {
            let finding = |found: Found| {
                let message = format!(
                    "{} rows of a tablet that no superblock and no log names; `recover` gives them apart",
                    found.group.rows
                );
                Finding::from_error(
                    &Error::corrupt("no rowset without a tablet", message),
                    &found.group.name,
                    None,
                )
            };
            self.lost_rowsets(server).into_iter().map(finding).collect::<Vec<_>>()
        };
        self.servers.iter().flat_map(of_server).collect()
    }

    /// Whether a rowset is garbage, or what a crash left of a flush or a merge: a tablet here has all its changes.
    fn is_explained(&self, server: &Server, found: &Found) -> bool {
        let ids: HashSet<u64> = found.group.blocks.iter().filter_map(|block| block.block).collect();
        let of_server = || self.replicas.iter().filter(|replica| server.owns(replica));
        let is_garbage = |replica: &Replica| {
            let listed: HashSet<u64> = replica.metadata.orphaned.iter().copied().collect();
            ids.is_subset(&listed)
        };
        if of_server().any(is_garbage) {
            return true;
        }
        let Some((rowset, schema)) = &found.rowset else { return false };
        let Some(opened) = RowSet::open(rowset.clone(), schema, server.blocks.clone()).0 else {
            return false;
        };
        let Ok(changes) = opened.changes_by_key() else { return false };
        // A tablet whose own rowsets are not known may have lost this one.
        let is_like = |replica: &&Replica| {
            !replica.is_rebuilt && found.group.tables.contains(&replica.metadata.table_name)
        };
        !changes.is_empty()
            && of_server().filter(is_like).any(|replica| replica.has_changes(&changes).unwrap_or(false))
    }
}

impl Replica {
    /// Whether all these changes are among its own, on disk or in the log.
    fn has_changes(&self, changes: &[(Vec<u8>, u64)]) -> Result<bool> {
        let mut missing: HashSet<&(Vec<u8>, u64)> = changes.iter().collect();
        let written = self.written();
        missing.retain(|change| !written.has(change));
        for rowset in &self.metadata.rowsets {
            if missing.is_empty() {
                break;
            }
            let opened = RowSet::open(rowset.clone(), &self.metadata.schema, self.blocks.clone()).0;
            let own = opened.map(|rowset| rowset.changes_by_key()).transpose()?.unwrap_or_default();
            let own: HashSet<_> = own.into_iter().collect();
            missing.retain(|change| !own.contains(*change));
        }
        Ok(missing.is_empty())
    }
}

impl Server {
    pub(super) fn owns(&self, replica: &Replica) -> bool {
        std::sync::Arc::ptr_eq(&replica.roots, &self.roots)
    }

    /// Whether something could not be read that may say which tablets there are.
    fn hides_tablets(&self) -> bool {
        let unread = self.roots.unread();
        let mut parts = unread.iter().filter_map(|unread| UnreadPart::of(unread, &self.roots));
        parts.any(|part| part != UnreadPart::Blocks)
    }
}
