//! Which folders are roots, and which roots belong to one server.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use pilaster_core::source::FileSource;
use pilaster_core::verify::{Finding, Severity};
use pilaster_core::{Error, Limits, Result};

use super::blocks::{BlockMap, FilePool};
use super::encryption::ServerKey;
use super::file_blocks::entries;
use super::pbc::Pbc;
use super::{file_blocks, log_blocks, rocks_blocks};
use crate::messages::{self, DirInstanceMetadataPb, InstanceMetadataPb};

/// How far below a given folder roots are looked for: copies often put them side by side in one folder.
const SEARCH_DEPTH: usize = 3;
const DEFAULT_FS_BLOCK_BYTES: u64 = 4096;

/// The roots of one server.
#[derive(Debug, Clone, Default)]
pub struct FsRoots {
    /// The server's uuid; empty if no `instance` file could be read.
    pub uuid: String,
    /// Folders with `wals`, `tablet-meta` or `data` in them.
    pub roots: Vec<PathBuf>,
    /// What is wrong with the roots themselves.
    pub findings: Vec<Finding>,
    key: Option<ServerKey>,
}

/// Whether a folder is a root of a Kudu server.
fn is_root(folder: &Path) -> bool {
    folder.join("tablet-meta").is_dir()
        || folder.join("wals").is_dir()
        || folder.join("data").join("block_manager_instance").is_file()
        || (folder.join("data").is_dir() && folder.join("instance").is_file())
}

/// Finds the roots in and below the given folders and puts those of one server together.
///
/// # Errors
/// [`pilaster_core::ErrorKind::InvalidInput`] if `server_key`, a clear key in hex, is not one.
pub fn discover(folders: &[PathBuf], server_key: Option<&str>) -> Result<Vec<FsRoots>> {
    let given = server_key.map(ServerKey::from_hex).transpose()?;
    let mut servers: BTreeMap<String, FsRoots> = BTreeMap::new();
    for folder in folders {
        let mut roots = Vec::new();
        find_roots(folder, SEARCH_DEPTH, &mut roots);
        for root in roots {
            add_root(root, folder, given.as_ref(), &mut servers);
        }
    }
    Ok(servers.into_values().collect())
}

fn find_roots(folder: &Path, depth: usize, roots: &mut Vec<PathBuf>) {
    if is_root(folder) {
        roots.push(folder.to_path_buf());
        return;
    }
    if let Some(depth) = depth.checked_sub(1) {
        for entry in entries(folder).into_iter().filter(|entry| entry.is_dir()) {
            find_roots(&entry, depth, roots);
        }
    }
}

fn add_root(root: PathBuf, given: &Path, key: Option<&ServerKey>, servers: &mut BTreeMap<String, FsRoots>) {
    let mut findings = Vec::new();
    let instance = read_instance(&root).map_err(|error| {
        let path = root.join("instance").display().to_string();
        let mut finding = Finding::from_error(&error, &path, None);
        // Nothing that is needed for reading is in it, unless the root is encrypted.
        finding.severity = Severity::Warning;
        findings.push(finding);
    });
    let instance = instance.unwrap_or_default();
    let uuid = instance.uuid.as_deref().map(|uuid| String::from_utf8_lossy(uuid).into_owned());
    // Roots without a name are taken to belong to whatever lies beside them.
    let group = uuid.clone().unwrap_or_else(|| format!("~{}", given.display()));
    let server = servers.entry(group).or_default();
    server.uuid = uuid.unwrap_or_default();
    server.key = key.cloned().or_else(|| server.key.take()).or_else(|| ServerKey::from_instance(&instance));
    server.findings.extend(findings);
    if !server.roots.contains(&root) {
        server.roots.push(root);
    }
}

fn read_instance(root: &Path) -> Result<InstanceMetadataPb> {
    let source = FileSource::open(root.join("instance"))?;
    messages::parse(&Pbc::single(&source)?, "InstanceMetadataPB")
}

impl FsRoots {
    /// Opens files of this server, decrypting them if need be.
    pub(crate) fn pool(&self) -> FilePool {
        FilePool::new(self.key.clone())
    }

    /// The folders of this name in all roots that have one.
    pub(crate) fn folders(&self, name: &str) -> Vec<PathBuf> {
        self.roots.iter().map(|root| root.join(name)).filter(|path| path.is_dir()).collect()
    }

    /// Every live block of the server.
    ///
    /// # Errors
    /// [`pilaster_core::ErrorKind::Unsupported`] if a block manager cannot be read by this build.
    pub(crate) fn blocks(&self, pool: &FilePool, limits: &Limits) -> Result<BlockMap> {
        let mut map = BlockMap::default();
        for data in self.folders("data") {
            let (kind, block_bytes) = match read_dir_instance(&data) {
                Ok(instance) => (
                    instance.dir_type.unwrap_or_default(),
                    instance.filesystem_block_size_bytes.unwrap_or(DEFAULT_FS_BLOCK_BYTES),
                ),
                Err(error) => {
                    let mut finding = Finding::from_error(&error, &data.display().to_string(), None);
                    finding.severity = Severity::Warning;
                    map.findings.push(finding);
                    (guess_kind(&data).to_string(), DEFAULT_FS_BLOCK_BYTES)
                }
            };
            match kind.as_str() {
                "log" => log_blocks::add_blocks(&data, block_bytes, pool, &mut map),
                "file" => file_blocks::add_blocks(&data, &mut map),
                "logr" => rocks_blocks::add_blocks(&data, limits, &mut map)?,
                other => {
                    return Err(Error::unsupported(format!("block manager \"{other}\"")).at(
                        &data.display().to_string(),
                        0,
                        "",
                    ));
                }
            }
        }
        Ok(map)
    }
}

fn read_dir_instance(data: &Path) -> Result<DirInstanceMetadataPb> {
    let source = FileSource::open(data.join("block_manager_instance"))?;
    messages::parse(&Pbc::single(&source)?, "DirInstanceMetadataPB")
}

/// Which block manager wrote a folder that no longer says it.
fn guess_kind(data: &Path) -> &'static str {
    let has_containers =
        entries(data).iter().any(|path| path.extension().is_some_and(|e| e == "data" || e == "metadata"));
    match has_containers {
        _ if data.join("rdb").is_dir() => "logr",
        true => "log",
        false => "file",
    }
}
