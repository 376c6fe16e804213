//! Where tablets lie: storage roots, snapshot folders, trash, and backup repositories.
//!
//! ```text
//! <storage root>/data/<shard>/<tablet id>/<schema hash>/<rowset id>_<segment>.dat, with <storage root>/meta
//! <anything>/<tablet id>/<schema hash>/<tablet id>.hdr, <rowset id>_<segment>.dat
//! <repository>/…/__<tablet id>/<tablet id>.hdr.<md5>, <rowset id>_<segment>.dat.<md5>
//! ```
//!
//! Names in a repository end with the MD5 of the content; a mark `__` before them, as folders have it, is taken off too.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pilaster_core::error::AtPosition;
use pilaster_core::{Error, Limits, Result};

use super::database;
use super::messages::TabletMetaPb;
use super::meta::TabletMeta;

/// How the names of metadata files end.
const HEADER: &str = ".hdr";
const JSON_HEADER: &str = ".hdr.json";
pub(super) const HEADER_PART: &str = "tablet header";
/// How deep folders inside folders are followed.
const DEPTH: u32 = 12;
/// How many entries are looked at before a folder is taken for something else.
const MAX_ENTRIES: usize = 200_000;
/// An MD5 in hexadecimal digits.
const MD5_DIGITS: usize = 32;

/// A folder with the files of a tablet.
#[derive(Debug, Clone)]
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
        let (files, rivals) = files_in(path)?;
        let found = Self { path: path.to_path_buf(), files, rivals, stored: None };
        [HEADER, JSON_HEADER].iter().any(|ending| found.has(ending)).then_some(found)
    }

    fn has(&self, ending: &str) -> bool {
        self.files.keys().any(|name| name.ends_with(ending))
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
            let mut headers = self.files.iter().filter(|(name, _)| name.ends_with(ending));
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

/// Files by their name in Doris, and those of which there is more than one content.
#[expect(clippy::type_complexity, reason = "two lists, used at two places below")]
fn files_in(folder: &Path) -> Option<(HashMap<String, PathBuf>, Vec<(PathBuf, PathBuf)>)> {
    let (mut files, mut rivals) = (HashMap::new(), Vec::new());
    for entry in fs::read_dir(folder).ok()?.flatten() {
        if let Some(name) = entry.file_name().to_str() {
            let path = entry.path();
            if let Some(other) = files.insert(checksummed(name).0.to_string(), path.clone()) {
                rivals.push((other, path));
            }
        }
    }
    Some((files, rivals))
}

/// The tablets that the database of a storage root knows. Those without a folder have no file left.
fn stored_tablets(root: &Path, database: &Path, limits: &Limits) -> Result<Vec<TabletFolder>> {
    let mut shards: Vec<PathBuf> =
        fs::read_dir(root.join("data")).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    shards.sort();
    let mut found = Vec::new();
    for (id, tablet) in database::tablets(database, limits)? {
        let folders = shards.iter().map(|shard| shard.join(id.to_string()).join(&tablet.schema_hash));
        let path = folders.clone().find(|folder| folder.is_dir());
        let path = path.or_else(|| folders.clone().next()).unwrap_or_else(|| root.join("data"));
        let (files, rivals) = files_in(&path).unwrap_or_default();
        found.push(TabletFolder { path, files, rivals, stored: Some(Arc::new(tablet.message)) });
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

/// Every folder of a tablet in `root`, by path.
///
/// # Errors
/// If `root` cannot be read, or is a storage root whose database cannot.
pub fn find_tablets(root: &Path, limits: &Limits) -> Result<Vec<TabletFolder>> {
    fs::read_dir(root).at(&root.display().to_string(), 0, "")?;
    let (mut found, mut left) = (Vec::new(), MAX_ENTRIES);
    if let Some(database) = database::of_root(root) {
        found = stored_tablets(root, &database, limits)?;
    }
    walk(root, DEPTH, &mut left, &mut |folder| {
        found.push(folder);
        true
    });
    found.sort_by(|a: &TabletFolder, b| a.path.cmp(&b.path));
    Ok(found)
}

/// Whether there is a tablet in `root`.
pub fn has_tablets(root: &Path) -> bool {
    if database::of_root(root).is_some() {
        return true;
    }
    let (mut found, mut left) = (false, MAX_ENTRIES);
    walk(root, DEPTH, &mut left, &mut |_| {
        found = true;
        false
    });
    found
}

/// Calls `visit` for each tablet until it wants no more; whether it does.
fn walk(folder: &Path, depth: u32, left: &mut usize, visit: &mut dyn FnMut(TabletFolder) -> bool) -> bool {
    if let Some(tablet) = TabletFolder::of(folder) {
        return visit(tablet);
    }
    let (Some(depth), Ok(entries)) = (depth.checked_sub(1), fs::read_dir(folder)) else { return true };
    for entry in entries.flatten() {
        let Some(fewer) = left.checked_sub(1) else { return false };
        *left = fewer;
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        let is_plausible = entry.file_name().to_str().is_some_and(may_lead_to_tablets);
        if is_folder && is_plausible && !walk(&entry.path(), depth, left, visit) {
            return false;
        }
    }
    true
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

    #[test]
    fn tablets_are_found_below() {
        let root = tempfile::tempdir().unwrap();
        let tablet = root.path().join("snapshot/20240101.0.86400/7/8");
        fs::create_dir_all(&tablet).unwrap();
        assert!(!has_tablets(root.path()));
        fs::write(tablet.join("7.hdr"), b"").unwrap();
        assert!(has_tablets(root.path()));
        assert_eq!(find_tablets(root.path(), &Limits::default()).unwrap()[0].path, tablet);
    }
}
