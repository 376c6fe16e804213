//! What of the disks could not be read, and which tables may miss something because of it.

use std::collections::BTreeMap;

use super::KuduStore;
use crate::fs::Unread;
use crate::tablet::UnreadPart;

impl KuduStore {
    /// Folders and files that the system did not let us read so far: of what is in them nothing is known.
    pub fn unread(&self) -> Vec<Unread> {
        let of_servers = self.servers.iter().flat_map(|server| server.roots.unread());
        sorted(self.undiscovered.iter().cloned().chain(of_servers))
    }

    /// Those of them that may hold the log of a tablet that the options choose, or say whose it is.
    pub fn unread_logs(&self) -> Vec<Unread> {
        let servers = self.servers.iter().filter(|server| self.options.chooses("", &server.roots.uuid));
        let of_servers = servers.flat_map(|server| {
            let may_hold_logs = |unread: &Unread| match UnreadPart::of(unread, &server.roots) {
                Some(UnreadPart::Tablets | UnreadPart::Logs) => true,
                Some(UnreadPart::Superblock(tablet) | UnreadPart::Log(tablet)) => {
                    self.options.chooses(&tablet, &server.roots.uuid)
                }
                Some(UnreadPart::Blocks) | None => false,
            };
            let mut unread = server.roots.unread();
            unread.retain(may_hold_logs);
            unread
        });
        sorted(self.undiscovered.iter().cloned().chain(of_servers))
    }

    /// Those of them that may hold rows of a table.
    pub(super) fn unread_of(&self, table: &str) -> Vec<Unread> {
        let chosen = self.replicas.iter().filter(|replica| {
            (replica.metadata.table_name == table || replica.doubtful_tables.iter().any(|name| name == table))
                && self.options.chooses(&replica.metadata.tablet_id, &replica.server)
        });
        let of_tablets = chosen.flat_map(|replica| replica.unread(self.options.log));
        if self.options.tablet.is_some() {
            return sorted(of_tablets);
        }
        let servers = self.servers.iter().filter(|server| self.options.chooses("", &server.roots.uuid));
        let of_servers = servers.flat_map(|server| {
            let may_hide_tablets = |unread: &Unread| match UnreadPart::of(unread, &server.roots) {
                Some(UnreadPart::Tablets) => true,
                Some(UnreadPart::Superblock(tablet)) => {
                    let mut known = self.replicas.iter();
                    known.any(|replica| replica.metadata.tablet_id == tablet && replica.is_nameless())
                }
                _ => false,
            };
            let mut unread = server.roots.unread();
            unread.retain(may_hide_tablets);
            unread
        });
        sorted(of_tablets.chain(of_servers).chain(self.undiscovered.iter().cloned()))
    }
}

/// By path, each once.
fn sorted(unread: impl Iterator<Item = Unread>) -> Vec<Unread> {
    let by_path: BTreeMap<_, _> = unread.map(|unread| (unread.path.clone(), unread)).collect();
    by_path.into_values().collect()
}
