//! Which roots belong to one server.
//!
//! The file `instance` in a root has the uuid of its server. It may be lost, and disks may be given together with an older copy of
//! them, so the uuid alone decides nothing: a server has one log, one place of superblocks, and each of its data folders once.
//! Roots that hold the same of these are two servers, or two copies of one, which are read apart like two replicas. Blocks of different servers
//! have the same ids: read together, they would give rows that never were.

use std::collections::BTreeSet;

use pilaster_core::{Location, Result};

use super::UnreadLog;
use super::blocks::FilePool;
use super::pbc::Pbc;
use crate::messages::{self, DirInstanceMetadataPb, TabletSuperBlockPb};

/// More superblocks than this are not asked which data folders they use.
const MOST_ASKED: usize = 64;

/// A root, and what of a server lies in it.
#[derive(Debug, Clone)]
pub(super) struct RootParts {
    pub root: Location,
    /// Uuid of its server; `None` if its `instance` file cannot be read.
    pub server: Option<String>,
    has_superblocks: bool,
    has_logs: bool,
    data: Option<DataFolder>,
    /// Uuids of the data folders that superblocks in it name.
    named: BTreeSet<Vec<u8>>,
}

/// What a data folder says of itself; nothing, where its own instance file cannot be read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct DataFolder {
    uuid: Option<Vec<u8>>,
    /// Uuids of all data folders of the server.
    all: BTreeSet<Vec<u8>>,
}

impl RootParts {
    /// Looks into a root, and where names are lost into the superblocks in it too.
    pub fn of(root: Location, server: Option<String>, are_names_lost: bool, unread: &UnreadLog) -> Self {
        // A folder that cannot be looked into may hold something.
        let holds = |name: &str| {
            let folder = root.child(name);
            unread.is_dir(&folder) && !unread.entries(&folder).is_empty() || unread.knows(&folder)
        };
        let (has_superblocks, has_logs) = (holds("tablet-meta"), holds("wals"));
        let pool = FilePool::new(None, unread.clone());
        let data = unread.is_dir(&root.child("data")).then(|| data_folder(&root.child("data"), &pool));
        let named = match are_names_lost {
            true => named_folders(&root.child("tablet-meta"), &pool),
            false => BTreeSet::new(),
        };
        Self { root, server, has_superblocks, has_logs, data, named }
    }

    /// Whether both may be roots of one server.
    fn fits(&self, other: &Self) -> bool {
        let is_same_server = self.server.is_none() || other.server.is_none() || self.server == other.server;
        let is_twice = self.has_superblocks && other.has_superblocks || self.has_logs && other.has_logs;
        let data = match (&self.data, &other.data) {
            (Some(data), Some(others)) => {
                let is_named = self.server.is_some() && self.server == other.server;
                data.fits(others, is_named)
            }
            // The uuid proves more than superblocks, which may name folders that were replaced since.
            _ if self.server.is_some() && self.server == other.server => true,
            (Some(data), None) => data.is_among(&other.named),
            (None, Some(data)) => data.is_among(&self.named),
            (None, None) => true,
        };
        is_same_server && !is_twice && data
    }
}

impl DataFolder {
    fn fits(&self, other: &Self, is_of_one_server: bool) -> bool {
        match (&self.uuid, &other.uuid) {
            (Some(uuid), Some(of_other)) => {
                // A folder that was added later is unknown to those that could not be written then.
                let know_each_other = self.all.contains(of_other) || other.all.contains(uuid);
                uuid != of_other && (is_of_one_server || know_each_other)
            }
            (Some(_), None) => is_of_one_server || self.all.len() > 1,
            (None, Some(_)) => is_of_one_server || other.all.len() > 1,
            (None, None) => true,
        }
    }

    fn is_among(&self, named: &BTreeSet<Vec<u8>>) -> bool {
        named.is_empty() || self.uuid.as_ref().is_none_or(|uuid| named.contains(uuid))
    }
}

fn data_folder(data: &Location, pool: &FilePool) -> DataFolder {
    let set = read_dir_instance(data, pool).ok().and_then(|instance| instance.dir_set);
    let set = set.unwrap_or_default();
    DataFolder { uuid: set.uuid, all: set.all_uuids.into_iter().collect() }
}

/// What a data folder says of itself.
pub(super) fn read_dir_instance(data: &Location, pool: &FilePool) -> Result<DirInstanceMetadataPb> {
    let source = pool.stored(&data.child("block_manager_instance"))?;
    messages::parse(&Pbc::single(source.as_ref())?, "DirInstanceMetadataPB")
}

/// The data folders that superblocks name; those that cannot be read are told by whoever needs them.
fn named_folders(superblocks: &Location, pool: &FilePool) -> BTreeSet<Vec<u8>> {
    let files = pool.unread().entries(superblocks).into_iter().take(MOST_ASKED);
    let groups = files.filter_map(|file| {
        let record = Pbc::single(pool.stored(&file).ok()?.as_ref()).ok()?;
        messages::parse::<TabletSuperBlockPb>(&record, "TabletSuperBlockPB").ok()?.data_dir_group
    });
    groups.flat_map(|group| group.uuids).collect()
}

/// The roots by server: those with a name first, each beside the nearest others that it fits.
pub(super) fn by_server(roots: Vec<RootParts>) -> Vec<Vec<RootParts>> {
    let (named, nameless): (Vec<_>, Vec<_>) = roots.into_iter().partition(|root| root.server.is_some());
    let mut servers: Vec<Vec<RootParts>> = Vec::new();
    for root in named {
        let is_own = |server: &Vec<RootParts>| server.iter().all(|other| other.server == root.server);
        let fitting = fitting(&root, &servers).into_iter();
        let own =
            fitting.filter(|(at, _)| servers.get(*at).is_some_and(is_own)).max_by_key(|(_, near)| *near);
        add(root, own.map(|(at, _)| at), &mut servers);
    }
    for root in nameless {
        let fitting = fitting(&root, &servers);
        let nearest = fitting.iter().map(|(_, near)| *near).max();
        let mut nearest = fitting.iter().filter(|(_, near)| Some(*near) == nearest);
        // Of several that are as near, nobody knows which.
        let only = nearest.next().filter(|_| nearest.next().is_none()).map(|(at, _)| *at);
        add(root, only, &mut servers);
    }
    servers
}

/// The servers whose roots fit another, and how near the nearest of them is to it: how much of its path they share.
fn fitting(root: &RootParts, servers: &[Vec<RootParts>]) -> Vec<(usize, usize)> {
    let servers =
        servers.iter().enumerate().filter(|(_, server)| server.iter().all(|other| other.fits(root)));
    let near = |other: &RootParts| {
        let mut folders = std::iter::successors(Some(root.root.clone()), Location::parent);
        let shared = folders.find(|folder| other.root.below(folder).is_some());
        shared.map_or(0, |folder| folder.path().components().count())
    };
    servers.map(|(at, server)| (at, server.iter().map(near).max().unwrap_or_default())).collect()
}

fn add(root: RootParts, server: Option<usize>, servers: &mut Vec<Vec<RootParts>>) {
    match server.and_then(|at| servers.get_mut(at)) {
        Some(server) => server.push(root),
        None => servers.push(vec![root]),
    }
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;

    use pilaster_core::storage::MemoryStorage;
    use pilaster_testing::faults::{Fault, faulty};

    use super::*;

    /// A root of a server with superblocks, logs and data folder number `data` of two, each if it is asked for.
    fn root(path: &str, server: &str, parts: &str, data: u8) -> RootParts {
        let all = [vec![data & 0xf0], vec![data & 0xf0 | 1]].into();
        RootParts {
            root: Location::local(path),
            server: (!server.is_empty()).then(|| server.into()),
            has_superblocks: parts.contains('s'),
            has_logs: parts.contains('l'),
            data: parts.contains('d').then(|| DataFolder { uuid: Some(vec![data]), all }),
            named: BTreeSet::new(),
        }
    }

    fn grouped(roots: Vec<RootParts>) -> Vec<Vec<String>> {
        let names = |server: Vec<RootParts>| {
            let mut names: Vec<_> = server.iter().map(|root| root.root.to_string()).collect();
            names.sort();
            names
        };
        let mut servers: Vec<_> = by_server(roots).into_iter().map(names).collect();
        servers.sort();
        servers
    }

    #[test]
    fn a_server_is_its_uuid() {
        let roots = vec![
            root("/a/wal", "x", "l", 0),
            root("/a/one", "x", "sd", 0x10),
            root("/b/two", "x", "d", 0x11),
            root("/b/wal", "y", "l", 0),
        ];
        assert_eq!(grouped(roots), [vec!["/a/one", "/a/wal", "/b/two"], vec!["/b/wal"]]);
    }

    #[test]
    fn two_copies_of_a_server_are_two() {
        let of = |copy: &str| {
            [("data0", "d", 0x10), ("data1", "d", 0x11), ("meta", "s", 0), ("wal", "l", 0)]
                .map(|(name, parts, data)| root(&format!("/{copy}/{name}"), "x", parts, data))
        };
        let copies = grouped([of("new"), of("old")].concat());
        assert_eq!(copies.len(), 2);
        assert!(
            copies.iter().all(|copy| copy.len() == 4 && copy.iter().all(|root| root[..4] == copy[0][..4]))
        );
    }

    #[test]
    fn roots_without_a_name_go_to_the_nearest_that_lack_them() {
        let servers = [("ts0", 0x10), ("ts1", 0x20)];
        let of = |name: &str, (server, data): (&str, u8)| {
            ["s", "l", "d"].map(|parts| root(&format!("/{server}/{parts}"), name, parts, data))
        };
        let lost = grouped(servers.map(|server| of("", server)).concat());
        assert_eq!(lost, [vec!["/ts0/d", "/ts0/l", "/ts0/s"], vec!["/ts1/d", "/ts1/l", "/ts1/s"]]);
        // Whole servers in one root each are never one.
        let whole = servers.map(|(server, data)| root(&format!("/{server}"), "", "sld", data)).to_vec();
        assert_eq!(grouped(whole), [["/ts0"], ["/ts1"]]);
        // One that lost its name is no part of one that has everything, and one of one that does not.
        let mixed = vec![root("/ts0", "x", "sld", 0x10), root("/ts1", "", "sld", 0x20)];
        assert_eq!(grouped(mixed).len(), 2);
        let mixed = vec![root("/ts0/wal", "x", "l", 0), root("/ts0/data", "", "sd", 0x20)];
        assert_eq!(grouped(mixed).len(), 1);
    }

    #[test]
    fn data_folders_know_each_other() {
        let one = root("/disk1", "x", "sld", 0x10);
        assert_eq!(grouped(vec![one.clone(), root("/disk2", "", "d", 0x11)]).len(), 1);
        assert_eq!(grouped(vec![one.clone(), root("/disk2", "", "d", 0x20)]).len(), 2);
        assert_eq!(grouped(vec![one, root("/disk2", "", "d", 0x10)]).len(), 2);
        // Superblocks name those they use.
        let named = RootParts { named: [vec![0x10]].into(), ..root("/meta", "", "sl", 0) };
        assert_eq!(grouped(vec![named.clone(), root("/disk2", "", "d", 0x10)]).len(), 1);
        assert_eq!(grouped(vec![named, root("/disk2", "", "d", 0x11)]).len(), 2);
    }

    #[test]
    fn roots_in_different_storages_are_not_near() {
        let (one, other) = (MemoryStorage::new("one").root(), MemoryStorage::new("other").root());
        let at = |folder: &Location, path: &str, server: &str, parts: &str| RootParts {
            root: folder.child(path),
            ..root("", server, parts, 0x10)
        };
        let roots =
            vec![at(&one, "ts/a", "x", "sl"), at(&other, "ts/b", "y", "sl"), at(&one, "ts/c", "", "d")];
        assert_eq!(grouped(roots), [vec!["one/ts/a", "one/ts/c"], vec!["other/ts/b"]]);
    }

    #[test]
    fn what_cannot_be_looked_into_may_hold_something() {
        let files = ["tablet-meta/t", "wals/t/wal-1"].map(|path| (path, ""));
        let folder = MemoryStorage::with_files("memory", files).root();
        for at in 0.. {
            let (folder, faults) = faulty(&folder, at, Fault::Refuse(ErrorKind::PermissionDenied));
            let parts = RootParts::of(folder, None, true, &UnreadLog::default());
            assert!(parts.has_superblocks && parts.has_logs, "{:?}", faults.happened());
            if faults.happened().is_none() {
                break;
            }
        }
    }

    #[test]
    fn where_nobody_knows_whose_a_root_is_it_is_nobodys() {
        let roots = vec![root("/a", "x", "sl", 0), root("/b", "y", "sl", 0), root("/c", "", "d", 0x10)];
        assert_eq!(grouped(roots).len(), 3);
    }
}
