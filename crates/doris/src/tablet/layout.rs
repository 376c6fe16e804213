//! Where tablets lie: storage roots, snapshot folders, trash, and backup repositories.
//!
//! ```text
//! <storage root>/data/<shard>/<tablet id>/<schema hash>/<rowset id>_<segment>.dat, with <storage root>/meta
//! <anything>/<tablet id>/<schema hash>/<tablet id>.hdr, <rowset id>_<segment>.dat
//! <repository>/…/__<tablet id>/<tablet id>.hdr.<md5>, <rowset id>_<segment>.dat.<md5>
//! ```
//!
//! Names in a repository end with the MD5 of the content; a mark `__` before them, as folders have it, is taken off too.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pilaster_core::error::AtPosition;
use pilaster_core::{Error, Finding, Limits, Result, Severity};

use super::database;
use super::messages::TabletMetaPb;
use super::meta::TabletMeta;
use super::walk::{Bounds, Chance, Walk};

/// How the names of metadata files end.
const HEADER: &str = ".hdr";
const JSON_HEADER: &str = ".hdr.json";
pub(super) const HEADER_PART: &str = "tablet header";
/// An MD5 in hexadecimal digits.
const MD5_DIGITS: usize = 32;
/// A rowset id of 192 bits in hexadecimal digits.
const ROWSET_DIGITS: usize = 48;

/// A folder with the files of a tablet.
#[derive(Debug, Clone, Default)]
pub struct TabletFolder {
    /// The folder.
    pub path: PathBuf,
    /// Files by their name in Doris: the names of a repository carry a mark and a checksum.
    pub files: HashMap<String, PathBuf>,
    /// Files that stand for the same file of Doris, with different contents.
    rivals: Vec<(PathBuf, PathBuf)>,
    /// Its metadata, where a database has it and no file.
    stored: Option<Arc<TabletMetaPb>>,
}

impl TabletFolder {
    /// The files of a folder, if the metadata of a tablet is among them.
    pub fn of(path: &Path) -> Option<Self> {
        Self::of_files(path, Listing::of(path).ok()?.files)
    }

    fn of_files(path: &Path, files: Vec<PathBuf>) -> Option<Self> {
        files.iter().filter_map(|path| name_of(path)).any(is_header).then(|| Self::with_files(path, files))
    }

    fn with_files(path: &Path, stored_files: Vec<PathBuf>) -> Self {
        let (mut files, mut rivals) = (HashMap::with_capacity(stored_files.len()), Vec::new());
        for path in stored_files {
            let Some(name) = name_of(&path).map(|name| checksummed(name).0.to_string()) else { continue };
            if let Some(other) = files.insert(name, path.clone()) {
                rivals.push((other, path));
            }
        }
        Self { path: path.to_path_buf(), files, rivals, stored: None }
    }

    /// The id of the tablet, which its metadata file is named by.
    pub fn tablet_id(&self) -> Option<i64> {
        if let Some(message) = &self.stored {
            return message.tablet_id;
        }
        let name = self.files.keys().find(|name| is_header(name))?;
        name.split('.').next()?.parse().ok()
    }

    /// What its metadata file says.
    ///
    /// # Errors
    /// If there is none, or several, or it is damaged, or a file of the folder is there twice with different contents.
    pub fn meta(&self, limits: &Limits) -> Result<TabletMeta> {
        if let Some((one, other)) = self.rivals.first() {
            return Err(Error::invalid(format!(
                "{} and {} are two contents of one file; the backup's job information tells which one belongs to it",
                one.display(),
                other.display()
            ))
            .at(&self.path.display().to_string(), 0, ""));
        }
        if let Some(message) = &self.stored {
            let at = self.path.display().to_string();
            return TabletMeta::from_message(message.as_ref().clone()).at(&at, 0, "tablet metadata");
        }
        let (path, is_json) = self.header()?;
        let name = path.display().to_string();
        let bytes = fs::read(path).at(&name, 0, "")?;
        let parse = if is_json { TabletMeta::parse_json } else { TabletMeta::parse };
        parse(&bytes, limits).at(&name, 0, HEADER_PART)
    }

    /// The metadata file, and whether it is the JSON form: that one is used where the other is not there.
    fn header(&self) -> Result<(&Path, bool)> {
        let at = self.path.display().to_string();
        for (ending, is_json) in [(HEADER, false), (JSON_HEADER, true)] {
            let is_it = |name: &str| is_header(name) && name.ends_with(ending);
            let mut headers = self.files.iter().filter(|(name, _)| is_it(name));
            match (headers.next(), headers.next()) {
                (Some((_, path)), None) => return Ok((path, is_json)),
                (Some(_), Some(_)) => {
                    return Err(
                        Error::invalid(format!("several {ending} files in one folder")).at(&at, 0, "")
                    );
                }
                (None, _) => {}
            }
        }
        Err(Error::invalid("no tablet: there is no .hdr file").at(&at, 0, ""))
    }
}

/// The tablets that the database of a storage root knows. Those without a folder have no file left.
fn stored_tablets(root: &Path, database: &Path, limits: &Limits) -> Result<Vec<TabletFolder>> {
    let mut shards: Vec<PathBuf> =
        fs::read_dir(root.join("data")).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    shards.sort();
    let mut found = Vec::new();
    for (id, tablet) in database::tablets(database, limits)? {
        let in_shard = |shard: &Path| shard.join(id.to_string()).join(&tablet.schema_hash);
        // The metadata names the shard; the others are looked through only where that is not true.
        let named = tablet.message.shard_id.map(|shard| in_shard(&root.join("data").join(shard.to_string())));
        let path = named.clone().filter(|folder| folder.is_dir());
        let path = path.or_else(|| shards.iter().map(|shard| in_shard(shard)).find(|folder| folder.is_dir()));
        let path = path.or(named).unwrap_or_else(|| root.join("data"));
        let files = Listing::of(&path).map(|listing| listing.files).unwrap_or_default();
        let stored = Some(Arc::new(tablet.message));
        found.push(TabletFolder { stored, ..TabletFolder::with_files(&path, files) });
    }
    Ok(found)
}

/// A name as Doris gave it, and the MD5 that a repository puts behind it.
pub(super) fn checksummed(name: &str) -> (&str, Option<&str>) {
    let is_md5 = |text: &str| text.len() == MD5_DIGITS && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    match name.rsplit_once('.') {
        Some((inner, md5)) if is_md5(md5) => (inner.strip_prefix("__").unwrap_or(inner), Some(md5)),
        _ => (name, None),
    }
}

/// Whether this is the name of a tablet's metadata: `<tablet id>.hdr`, or the same as JSON.
fn is_header(name: &str) -> bool {
    let (name, _) = checksummed(name);
    let id = name.strip_suffix(HEADER).or_else(|| name.strip_suffix(JSON_HEADER));
    id.is_some_and(|id| !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Whether this is the name of a segment of some rowset: `<rowset id>_<segment>.dat`.
fn is_segment(name: &str) -> bool {
    let (name, _) = checksummed(name);
    let parts = name.strip_suffix(".dat").and_then(|stem| stem.split_once('_'));
    parts.is_some_and(|(rowset, number)| {
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let is_id = rowset.len() == ROWSET_DIGITS && rowset.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_number(number) && (is_id || is_number(rowset))
    })
}

fn name_of(path: &Path) -> Option<&str> {
    path.file_name()?.to_str()
}

/// What lies in a folder.
#[derive(Debug, Default)]
pub(super) struct Listing {
    /// Everything but folders.
    pub files: Vec<PathBuf>,
    /// Folders, without those that links lead to.
    pub folders: Vec<PathBuf>,
    /// Links to folders, which may lead back up.
    pub links: Vec<PathBuf>,
}

impl Listing {
    pub fn of(folder: &Path) -> Result<Self> {
        let name = folder.display().to_string();
        let mut listing = Self::default();
        for entry in fs::read_dir(folder).at(&name, 0, "")? {
            let entry = entry.at(&name, 0, "")?;
            let kind = entry.file_type().at(&name, 0, "")?;
            let path = entry.path();
            if kind.is_dir() {
                listing.folders.push(path);
            } else if kind.is_symlink() && path.is_dir() {
                listing.links.push(path);
            } else {
                listing.files.push(path);
            }
        }
        Ok(listing)
    }
}

/// The tablets below a folder.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct FoundTablets {
    /// Their folders, by path.
    pub tablets: Vec<TabletFolder>,
    /// Where tablets may lie that were not found: folders that cannot be read, links, segments without metadata.
    pub findings: Vec<Finding>,
}

/// Every folder of a tablet in `root`, by path.
///
/// # Errors
/// If `root` cannot be read, or is a storage root whose database cannot, or there is more below it than is looked at.
pub fn find_tablets(root: &Path, limits: &Limits) -> Result<FoundTablets> {
    let mut found = FoundTablets::default();
    if let Some(database) = database::of_root(root) {
        found.tablets = stored_tablets(root, &database, limits)?;
    }
    let known: HashSet<PathBuf> = found.tablets.iter().map(|tablet| tablet.path.clone()).collect();
    let mut walk = Walk::new(root, Bounds::FIND);
    while let Some((folder, listing)) = walk.next()? {
        let listing = match listing {
            Ok(listing) => listing,
            Err(error) if folder == root => return Err(error),
            Err(error) => {
                let path = folder.display().to_string();
                let finding = Finding::from_error(&error, &path, None);
                found.findings.push(Finding { severity: Severity::Warning, ..finding });
                continue;
            }
        };
        for link in &listing.links {
            found.findings.push(warning(link, "a link to a folder, which is not followed"));
        }
        let segments = listing.files.iter().filter_map(|path| name_of(path)).filter(|name| is_segment(name));
        let segments = segments.count();
        match TabletFolder::of_files(&folder, listing.files) {
            Some(tablet) => found.tablets.push(tablet),
            None => {
                if segments > 0 && !known.contains(&folder) {
                    found.findings.push(warning(
                        &folder,
                        format!("{segments} segments without a .hdr file: whose they are is not known, they are not read"),
                    ));
                }
                listing.folders.into_iter().try_for_each(|folder| walk.enter(folder, Chance::Likely))?;
            }
        }
    }
    found.tablets.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}

fn warning(path: &Path, message: impl Into<String>) -> Finding {
    Finding {
        severity: Severity::Warning,
        path: path.display().to_string().into(),
        offset: 0,
        part: "folder".to_string(),
        message: message.into(),
        rows: None,
    }
}

/// Whether there is a tablet below `root`.
///
/// Where names of Doris's own lead to it, many folders are looked into; otherwise few, and none if files lie in `root`: then it
/// is a folder of files, whatever lies deeper.
pub fn has_tablets(root: &Path) -> bool {
    if database::of_root(root).is_some() {
        return true;
    }
    let mut walk = Walk::new(root, Bounds::SIGHT);
    let mut is_of_files = None;
    while let Ok(Some((_, listing))) = walk.next() {
        let Ok(listing) = listing else { continue };
        if listing.files.iter().filter_map(|path| name_of(path)).any(is_header) {
            return true;
        }
        let is_of_files = *is_of_files.get_or_insert(!listing.files.is_empty());
        for folder in listing.folders {
            let is_likely = name_of(&folder).is_some_and(may_lead_to_tablets);
            let chance = if is_likely { Chance::Likely } else { Chance::Any };
            if (is_likely || !is_of_files) && walk.enter(folder, chance).is_err() {
                return false;
            }
        }
    }
    false
}

/// Folders on the way to tablets are numbers, or have one of Doris's names.
fn may_lead_to_tablets(name: &str) -> bool {
    name.starts_with("__")
        || matches!(name, "data" | "snapshot" | "trash")
        || name.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_a_repository_are_stripped() {
        let md5 = "d41d8cd98f00b204e9800998ecf8427e";
        for stored in [format!("20001.hdr.{md5}"), format!("__20001.hdr.{md5}")] {
            assert_eq!(checksummed(&stored), ("20001.hdr", Some(md5)));
        }
        assert_eq!(checksummed("20001.hdr"), ("20001.hdr", None));
        assert_eq!(checksummed("__x.dat"), ("__x.dat", None));
    }

    #[test]
    fn two_contents_of_one_file_are_not_chosen_from() {
        let root = tempfile::tempdir().unwrap();
        for md5 in ["d41d8cd98f00b204e9800998ecf8427e", "0cc175b9c0f1b6a831c399e269772661"] {
            fs::write(root.path().join(format!("7.hdr.{md5}")), b"").unwrap();
        }
        let folder = TabletFolder::of(root.path()).unwrap();
        let error = folder.meta(&Limits::default()).unwrap_err().to_string();
        assert!(error.contains("two contents of one file"), "{error}");
    }

    fn tablet(root: &Path, folder: &str) -> PathBuf {
        let folder = root.join(folder);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("7.hdr"), b"").unwrap();
        folder
    }

    #[test]
    fn tablets_are_found_below_any_folder() {
        for path in [
            "snapshot/20240101.0.86400/7/8",
            "my backup/of monday/7/8",
            "x/__ss_a/__7",
            "a/b/c/d/e/f/g/h/i/j/k/l/m/n/o/7/8",
        ] {
            let root = tempfile::tempdir().unwrap();
            fs::create_dir_all(root.path().join(path)).unwrap();
            assert!(!has_tablets(root.path()), "{path}");
            let folder = tablet(root.path(), path);
            assert!(has_tablets(root.path()), "{path}");
            let found = find_tablets(root.path(), &Limits::default()).unwrap();
            assert_eq!(found.tablets[0].path, folder);
            assert_eq!(found.findings, []);
        }
    }

    #[test]
    fn a_folder_of_files_is_one_whatever_lies_deeper() {
        let root = tempfile::tempdir().unwrap();
        tablet(root.path(), "backup/7/8");
        fs::write(root.path().join("rows.csv"), b"a").unwrap();
        assert!(!has_tablets(root.path()));
        tablet(root.path(), "data/1/7/8");
        assert!(has_tablets(root.path()));
        assert_eq!(find_tablets(root.path(), &Limits::default()).unwrap().tablets.len(), 2);
    }

    #[test]
    fn pictures_are_no_tablets() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("photos")).unwrap();
        fs::write(root.path().join("photos/sunset.hdr"), b"#?RADIANCE").unwrap();
        assert!(!has_tablets(root.path()));
    }

    #[test]
    fn what_may_hide_tablets_is_named() {
        let root = tempfile::tempdir().unwrap();
        tablet(root.path(), "1/7/8");
        let bare = root.path().join("2/9/8");
        fs::create_dir_all(&bare).unwrap();
        fs::write(bare.join(format!("{}_0.dat", "0".repeat(48))), b"").unwrap();
        fs::write(bare.join("segment_0.dat"), b"").unwrap();
        let found = find_tablets(root.path(), &Limits::default()).unwrap();
        assert_eq!(found.tablets.len(), 1);
        assert_eq!(found.findings.len(), 1, "{:?}", found.findings);
        assert!(found.findings[0].message.starts_with("1 segments without a .hdr file"));
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink(root.path(), root.path().join("up")).unwrap();
            let found = find_tablets(root.path(), &Limits::default()).unwrap();
            assert!(found.findings.iter().any(|finding| finding.message.contains("a link to a folder")));
        }
    }
}
