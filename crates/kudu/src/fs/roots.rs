//! Which folders are roots, and which roots belong to one server.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::Path;
use std::sync::Arc;

use pilaster_core::verify::{Finding, Severity};
use pilaster_core::{Error, Limits, Location, Result};

use super::blocks::{BlockMap, FilePool};
use super::encryption::ServerKey;
use super::pbc::Pbc;
use super::servers::{RootParts, by_server, read_dir_instance};
use super::unread::{Unread, UnreadLog};
use super::{file_blocks, log_blocks, rocks_blocks};
use crate::messages::{self, InstanceMetadataPb};

/// How far below a given folder roots are looked for: deeper than anybody copies them.
const SEARCH_DEPTH: usize = 64;
/// How many folders are looked into to see whether there is a root at all, the least deep ones first.
const SIGHT: usize = 5_000;
const DEFAULT_FS_BLOCK_BYTES: u64 = 4096;

/// The roots of one server.
#[derive(Debug, Clone, Default)]
pub struct FsRoots {
    /// The server's uuid; empty if no `instance` file could be read.
    pub uuid: String,
    /// Folders with `wals`, `tablet-meta` or `data` in them.
    pub roots: Vec<Location>,
    /// What is wrong with the roots themselves.
    pub findings: Vec<Finding>,
    /// What is good to know of them.
    pub notes: Vec<Finding>,
    key: Option<ServerKey>,
    unread: UnreadLog,
}

/// What is in and below the folders that were given.
#[derive(Debug, Clone, Default)]
pub struct Discovered {
    /// The servers whose roots were found.
    pub servers: Vec<FsRoots>,
    /// Folders that could not be looked into, so that nobody knows whether there are more.
    pub unread: Vec<Unread>,
}

/// Whether a folder is a root of a Kudu server.
fn is_root(folder: &Location, unread: &UnreadLog) -> bool {
    unread.is_dir(&folder.child("tablet-meta"))
        || unread.is_dir(&folder.child("consensus-meta"))
        || unread.is_dir(&folder.child("wals"))
        || unread.is_file(&folder.child("data").child("block_manager_instance"))
        || (unread.is_dir(&folder.child("data")) && unread.is_file(&folder.child("instance")))
}

/// Finds the roots in and below the given folders and puts those of one server together.
///
/// # Errors
/// [`pilaster_core::ErrorKind::InvalidInput`] if `server_key`, a clear key in hex, is not one.
pub fn discover(folders: &[Location], server_key: Option<&str>) -> Result<Discovered> {
    let given = server_key.map(ServerKey::from_hex).transpose()?;
    let unread = UnreadLog::default();
    let mut roots: Vec<Location> = Vec::new();
    let mut seen = BTreeSet::new();
    for root in folders.iter().flat_map(|folder| find_roots(folder, &unread)) {
        // One that is given twice, or through a link, is one.
        let real = root.real().unwrap_or_else(|_| root.clone());
        if seen.insert(real) {
            roots.push(root);
        }
    }
    let servers = group(roots, given.as_ref());
    let mut unread = unread.all();
    // What lies in a root is its server's.
    unread.retain(|unread| !servers.iter().any(|server| server.adopt(unread)));
    Ok(Discovered { servers, unread })
}

/// Whether there is a root in or below a folder, as far as that shows soon.
///
/// # Errors
/// If there is none as far as can be seen, and not all can be looked into.
pub fn has_roots(folder: &Location) -> Result<bool> {
    let unread = UnreadLog::default();
    if Below::new(folder, &unread).take(SIGHT).any(|folder| is_root(&folder, &unread)) {
        return Ok(true);
    }
    unread.all().first().map_or(Ok(false), |unread| Err(unread.error()))
}

fn find_roots(folder: &Location, unread: &UnreadLog) -> Vec<Location> {
    let mut roots: Vec<_> = Below::new(folder, unread).filter(|folder| is_root(folder, unread)).collect();
    roots.sort();
    roots
}

/// A folder and those below it, the least deep ones first, without what lies in roots.
struct Below<'a> {
    pending: VecDeque<(Location, usize)>,
    /// Folders by the path behind all links: links may lead back up.
    seen: BTreeSet<Location>,
    unread: &'a UnreadLog,
}

impl<'a> Below<'a> {
    fn new(folder: &Location, unread: &'a UnreadLog) -> Self {
        Self { pending: VecDeque::from([(folder.clone(), 0)]), seen: BTreeSet::new(), unread }
    }
}

impl Iterator for Below<'_> {
    type Item = Location;

    fn next(&mut self) -> Option<Location> {
        loop {
            let (folder, depth) = self.pending.pop_front()?;
            if folder.real().is_ok_and(|real| !self.seen.insert(real)) {
                continue;
            }
            if depth < SEARCH_DEPTH && !is_root(&folder, self.unread) {
                for entry in self.unread.entries(&folder) {
                    // A file system's own folder, which nobody but the superuser may read.
                    let is_own = entry.name() == "lost+found";
                    if !is_own && self.unread.is_dir(&entry) {
                        self.pending.push_back((entry, depth.saturating_add(1)));
                    }
                }
            }
            return Some(folder);
        }
    }
}

/// The roots of each server. Roots that are not surely one server's are not read together.
fn group(roots: Vec<Location>, key: Option<&ServerKey>) -> Vec<FsRoots> {
    let mut parts = Vec::new();
    let mut looked = BTreeMap::new();
    for root in roots {
        let look = Look::at(&root);
        looked.insert(root, look);
    }
    // Only then does it matter what else tells whose a root is.
    let has_nameless = looked.values().any(|look| look.uuid.is_none());
    for (root, look) in &looked {
        parts.push(RootParts::of(root.clone(), look.uuid.clone(), has_nameless, &look.unread));
    }
    let mut servers: Vec<FsRoots> = Vec::new();
    for roots in by_server(parts) {
        let mut server = FsRoots { key: key.cloned(), ..FsRoots::default() };
        for parts in roots {
            let Some(look) = looked.remove(&parts.root) else { continue };
            if let Some(uuid) = look.uuid {
                server.uuid = uuid;
            }
            server.key = server.key.take().or(look.key);
            look.unread.all().iter().for_each(|unread| server.unread.add(unread));
            server.findings.extend(look.finding);
            server.roots.push(parts.root);
        }
        servers.push(server);
    }
    // By name, copies of one server by where they lie.
    servers.sort_by(|a, b| (&a.uuid, &a.roots).cmp(&(&b.uuid, &b.roots)));
    for index in 1..servers.len() {
        let (before, rest) = servers.split_at_mut(index);
        if let (Some(first), Some(copy)) = (before.last(), rest.first_mut())
            && !copy.uuid.is_empty()
            && first.uuid == copy.uuid
        {
            copy.notes.push(second_copy(first, copy));
        }
    }
    servers
}

/// What the `instance` file of a root says.
struct Look {
    uuid: Option<String>,
    key: Option<ServerKey>,
    finding: Option<Finding>,
    unread: UnreadLog,
}

impl Look {
    fn at(root: &Location) -> Self {
        let unread = UnreadLog::default();
        let (instance, finding) = match read_instance(root, &unread) {
            Ok(instance) => (instance, None),
            Err(error) => {
                let path = root.child("instance").to_string();
                let mut finding = Finding::from_error(&error, &path, None);
                // Nothing that is needed for reading is in it, unless the root is encrypted.
                finding.severity = Severity::Warning;
                (InstanceMetadataPb::default(), Some(finding).filter(|_| unread.all().is_empty()))
            }
        };
        let uuid = instance.uuid.as_deref().map(|uuid| String::from_utf8_lossy(uuid).into_owned());
        Self { uuid, key: ServerKey::from_instance(&instance), finding, unread }
    }
}

fn second_copy(first: &FsRoots, copy: &FsRoots) -> Finding {
    let paths = |server: &FsRoots| {
        let paths = server.roots.iter().map(ToString::to_string);
        paths.collect::<Vec<_>>().join(", ")
    };
    Finding {
        severity: Severity::Warning,
        path: Arc::from(paths(copy)),
        offset: 0,
        part: String::new(),
        message: format!(
            "another copy of server {}, which is at {} too: they are read apart, and of each tablet the better one counts",
            copy.uuid,
            paths(first)
        ),
        rows: None,
    }
}

fn read_instance(root: &Location, unread: &UnreadLog) -> Result<InstanceMetadataPb> {
    let source = FilePool::new(None, unread.clone()).stored(&root.child("instance"))?;
    messages::parse(&Pbc::single(source.as_ref())?, "InstanceMetadataPB")
}

impl FsRoots {
    /// Opens files of this server, decrypting them if need be.
    pub(crate) fn pool(&self) -> FilePool {
        let pool = FilePool::new(self.key.clone(), self.unread.clone());
        match self.findings.first() {
            Some(damage) => {
                pool.lacking_key(format!("the instance file with the key cannot be read ({damage})"))
            }
            None => pool,
        }
    }

    /// The folders of this name in all roots that have one.
    pub(crate) fn folders(&self, name: &str) -> Vec<Location> {
        self.roots.iter().map(|root| root.child(name)).filter(|path| self.unread.is_dir(path)).collect()
    }

    /// What is in a folder, by name.
    pub(crate) fn entries(&self, folder: &Location) -> Vec<Location> {
        self.unread.entries(folder)
    }

    /// Whether a path is a folder.
    pub(crate) fn is_dir(&self, path: &Location) -> bool {
        self.unread.is_dir(path)
    }

    /// Whether a path is a file.
    pub(crate) fn is_file(&self, path: &Location) -> bool {
        self.unread.is_file(path)
    }

    /// Everything in these roots that could not be read so far.
    pub(crate) fn unread(&self) -> Vec<Unread> {
        self.unread.all()
    }

    /// Where a path lies in the root that holds it; `None` if it is in none of them.
    pub(crate) fn place_in_root<'a>(&self, path: &'a Location) -> Option<&'a Path> {
        self.roots.iter().find_map(|root| path.below(root))
    }

    /// Whether what a message names lies in one of the roots.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.roots.iter().any(|root| Path::new(name).starts_with(root.to_string()))
    }

    /// Remembers what lies in one of the roots.
    fn adopt(&self, unread: &Unread) -> bool {
        let is_own = self.place_in_root(&unread.path).is_some();
        if is_own {
            self.unread.add(unread);
        }
        is_own
    }

    /// Every live block of the server.
    ///
    /// # Errors
    /// [`pilaster_core::ErrorKind::Unsupported`] if a block manager cannot be read by this build.
    pub(crate) fn blocks(&self, pool: &FilePool, limits: &Limits) -> Result<BlockMap> {
        let mut map = BlockMap::default();
        for data in self.folders("data") {
            let (kind, block_bytes) = match read_dir_instance(&data, pool) {
                Ok(instance) => (
                    instance.dir_type.unwrap_or_default(),
                    instance.filesystem_block_size_bytes.unwrap_or(DEFAULT_FS_BLOCK_BYTES),
                ),
                Err(error) => {
                    let mut finding = Finding::from_error(&error, &data.to_string(), None);
                    finding.severity = Severity::Warning;
                    map.findings.push(finding);
                    (guess_kind(&data, pool.unread()).to_string(), DEFAULT_FS_BLOCK_BYTES)
                }
            };
            match kind.as_str() {
                "log" => log_blocks::add_blocks(&data, block_bytes, limits, pool, &mut map),
                "file" => file_blocks::add_blocks(&data, pool, &mut map),
                "logr" => rocks_blocks::add_blocks(&data, block_bytes, limits, pool, &mut map)?,
                other => {
                    return Err(Error::unsupported(format!("block manager \"{other}\"")).at(
                        &data.to_string(),
                        0,
                        "",
                    ));
                }
            }
        }
        let is_of_blocks =
            |path: &Location| self.place_in_root(path).is_some_and(|place| place.starts_with("data"));
        map.unread = self.unread().into_iter().map(|unread| unread.path).find(|path| is_of_blocks(path));
        Ok(map)
    }
}

/// Which block manager wrote a folder that no longer says it.
fn guess_kind(data: &Location, unread: &UnreadLog) -> &'static str {
    let is_container =
        |path: &Location| path.path().extension().is_some_and(|e| e == "data" || e == "metadata");
    let has_containers = unread.entries(data).iter().any(is_container);
    match has_containers {
        _ if unread.is_dir(&data.child("rdb")) => "logr",
        true => "log",
        false => "file",
    }
}
