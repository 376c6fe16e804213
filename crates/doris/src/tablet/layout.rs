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
use std::path::PathBuf;
use std::sync::Arc;

use pilaster_core::error::AtPosition;
use pilaster_core::storage::{Entry, is_not_found};
use pilaster_core::{Absence, Error, Finding, Limits, Location, Result, Severity};

use super::database;
use super::header::read_header;
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
#[derive(Debug, Clone)]
pub struct TabletFolder {
    /// The folder.
    pub location: Location,
    /// Files by their name in Doris: the names of a repository carry a mark and a checksum.
    pub files: HashMap<String, Entry>,
    /// Files that stand for the same file of Doris, with different contents.
    rivals: Vec<(PathBuf, PathBuf)>,
    /// Its metadata, where a database has it and no file.
    stored: Option<Arc<TabletMetaPb>>,
    /// Why it could not be looked into.
    unread: Option<Error>,
}

impl TabletFolder {
    /// A folder of which nothing is known.
    pub fn unknown(location: Location) -> Self {
        Self::with_files(&location, Vec::new())
    }

    /// The files of a folder, if the metadata of a tablet is among them.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn of(location: impl Into<Location>) -> Result<Option<Self>> {
        let location = location.into();
        Ok(Self::of_files(&location, Listing::of(&location)?.files))
    }

    fn of_files(location: &Location, files: Vec<Entry>) -> Option<Self> {
        let is_tablet = files.iter().filter_map(text_of_name).any(is_header);
        is_tablet.then(|| Self::with_files(location, files))
    }

    fn with_files(location: &Location, stored_files: Vec<Entry>) -> Self {
        let (mut files, mut rivals) = (HashMap::with_capacity(stored_files.len()), Vec::new());
        for entry in stored_files {
            let Some(name) = text_of_name(&entry).map(|name| checksummed(name).0.to_string()) else {
                continue;
            };
            let path = entry.path().to_path_buf();
            if let Some(other) = files.insert(name, entry) {
                rivals.push((other.path().to_path_buf(), path));
            }
        }
        Self { location: location.clone(), files, rivals, stored: None, unread: None }
    }

    /// Where a file of the folder is.
    pub fn place_of(&self, file: &Entry) -> Location {
        self.location.beside(file.path())
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
                self.location.beside(one),
                self.location.beside(other)
            ))
            .at(&self.location.to_string(), 0, ""));
        }
        if let Some(error) = &self.unread {
            return Err(error.clone());
        }
        if let Some(message) = &self.stored {
            let at = self.location.to_string();
            return TabletMeta::from_message(message.as_ref().clone()).at(&at, 0, "tablet metadata");
        }
        let (file, is_json) = self.header()?;
        let source = self.place_of(file).open()?;
        let meta = match is_json {
            true => limits.metadata(source.size()).and_then(|_| source.read_at(0..source.size())),
            false => read_header(source.as_ref(), limits),
        };
        let parse = if is_json { TabletMeta::parse_json } else { TabletMeta::parse };
        meta.and_then(|bytes| parse(&bytes, limits)).at(source.name(), 0, HEADER_PART)
    }

    /// The metadata file, and whether it is the JSON form: that one is used where the other is not there.
    fn header(&self) -> Result<(&Entry, bool)> {
        for (ending, is_json) in [(HEADER, false), (JSON_HEADER, true)] {
            let is_it = |name: &str| is_header(name) && name.ends_with(ending);
            let mut headers = self.files.iter().filter(|(name, _)| is_it(name));
            match (headers.next(), headers.next()) {
                (Some((_, file)), None) => return Ok((file, is_json)),
                (Some(_), Some(_)) => {
                    let message = format!("several {ending} files in one folder");
                    return Err(self.location.blame(Error::invalid(message)));
                }
                (None, _) => {}
            }
        }
        Err(self.location.blame(Error::invalid("no tablet: there is no .hdr file")))
    }
}

/// The tablets that the database of a storage root knows. Those without a folder have no file left.
fn stored_tablets(
    root: &Location,
    database: &Location,
    limits: &Limits,
    all: &mut FoundTablets,
) -> Result<()> {
    let shards = Listing::of(&root.child("data"))?.folders;
    let mut found = Vec::new();
    let stored = database::tablets(database, limits)?;
    for finding in stored.findings {
        match finding.severity {
            Severity::Warning => all.findings.push(finding),
            Severity::Error => all.unstored.push(Absence {
                path: Arc::clone(&finding.path),
                what: format!(
                    "the metadata of this storage root is damaged, and rowsets of any of its tablets may be missing: {}",
                    said(&finding)
                ),
                rows: None,
            }),
        }
    }
    for (id, tablet) in stored.tablets {
        let in_shard = |shard: &Location| shard.child(id.to_string()).child(&tablet.schema_hash);
        // The metadata names the shard; the others are looked through only where that is not true.
        let named =
            tablet.message.shard_id.map(|shard| in_shard(&root.child("data").child(shard.to_string())));
        let mut listed = None;
        for folder in named.iter().cloned().chain(shards.iter().map(in_shard)) {
            match Listing::of(&folder) {
                Err(error) if is_not_found(&error) => {}
                listing => {
                    listed = Some((folder, listing));
                    break;
                }
            }
        }
        let (location, listing) = match listed {
            Some(found) => found,
            // None of its files is here, and each will be named.
            None => (named.unwrap_or_else(|| root.child("data")), Ok(Listing::default())),
        };
        let (files, unread) = match listing {
            Ok(listing) => (listing.files, None),
            Err(error) => (Vec::new(), Some(error)),
        };
        let stored = Some(Arc::new(tablet.message));
        found.push(TabletFolder { stored, unread, ..TabletFolder::with_files(&location, files) });
    }
    all.tablets = found;
    Ok(())
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

/// Whether this is the name of a segment of some rowset: `<rowset id>_<segment>.dat`. The oldest ids are numbers.
fn is_segment(name: &str) -> bool {
    rowset_of(name)
        .is_some_and(|rowset| rowset.bytes().all(|byte| byte.is_ascii_digit()) || is_rowset(rowset))
}

/// Whether a file has the name of a segment that a tablet's metadata names, and no other file would have.
pub fn is_segment_of_tablet(name: &str) -> bool {
    rowset_of(name).is_some_and(is_rowset)
}

fn is_rowset(id: &str) -> bool {
    id.len() == ROWSET_DIGITS && id.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The rowset in the name of a segment.
fn rowset_of(name: &str) -> Option<&str> {
    let (name, _) = checksummed(name);
    let (rowset, number) = name.strip_suffix(".dat")?.split_once('_')?;
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    (is_number && !rowset.is_empty()).then_some(rowset)
}

/// Names of Doris are text: what is called otherwise is none of its files.
fn text_of_name(entry: &Entry) -> Option<&str> {
    entry.name().to_str()
}

/// What lies in a folder, in the order of names.
#[derive(Debug, Default)]
pub(super) struct Listing {
    /// Everything but folders.
    pub files: Vec<Entry>,
    /// Folders, without those that links lead to.
    pub folders: Vec<Location>,
    /// Links to folders, which may lead back up.
    pub links: Vec<Location>,
}

impl Listing {
    pub fn of(folder: &Location) -> Result<Self> {
        let mut listing = Self::default();
        for entry in folder.list()? {
            match (entry.is_folder(), entry.is_link()) {
                (true, false) => listing.folders.push(folder.beside(entry.path())),
                (true, true) => listing.links.push(folder.beside(entry.path())),
                (false, _) => listing.files.push(entry),
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
    /// Folders that could not be looked into: there may be tablets in them.
    pub unread: Vec<(Location, Error)>,
    /// Metadata that is not beside the segments it is of.
    pub headless: Vec<Absence>,
    /// What cannot be read of the metadata of a storage root: any of its tablets may have more rows than are known.
    pub unstored: Vec<Absence>,
    /// Where tablets may lie that were not found: links; and what is odd about the metadata of a storage root.
    pub findings: Vec<Finding>,
}

/// Every folder of a tablet in `root`, by path.
///
/// # Errors
/// If `root` cannot be read, or is a storage root whose database cannot, or there is more below it than is looked at.
pub fn find_tablets(root: impl Into<Location>, limits: &Limits) -> Result<FoundTablets> {
    let root = &root.into();
    let mut found = FoundTablets::default();
    if let Some(database) = database::of_root(root)? {
        stored_tablets(root, &database, limits, &mut found)?;
    }
    let known: HashSet<PathBuf> =
        found.tablets.iter().map(|tablet| tablet.location.path().to_path_buf()).collect();
    let mut walk = Walk::new(root, Bounds::FIND);
    while let Some((folder, listing)) = walk.next()? {
        let listing = match listing {
            Ok(listing) => listing,
            Err(error) if folder.path() == root.path() => return Err(error),
            Err(error) => {
                // What is known to be a tablet's folder is said of the tablet.
                if !known.contains(folder.path()) {
                    found.unread.push((folder, error));
                }
                continue;
            }
        };
        for link in &listing.links {
            found.findings.push(warning(link, "a link to a folder, which is not followed"));
        }
        let segments = listing.files.iter().filter_map(text_of_name).filter(|name| is_segment(name));
        let segments = segments.count();
        match TabletFolder::of_files(&folder, listing.files) {
            Some(tablet) => found.tablets.push(tablet),
            None => {
                if segments > 0 && !known.contains(folder.path()) {
                    found.headless.push(Absence {
                        path: folder.to_string().into(),
                        what: format!("the .hdr file of {segments} segments is not here: whose they are is not known, and they are not read; opened by itself, the folder gives their rows"),
                        rows: None,
                    });
                }
                listing.folders.into_iter().try_for_each(|folder| walk.enter(folder, Chance::Likely))?;
            }
        }
    }
    found.tablets.sort_by(|a, b| a.location.path().cmp(b.location.path()));
    Ok(found)
}

/// What a finding says, without its path.
fn said(finding: &Finding) -> String {
    match finding.part.as_str() {
        "" => finding.message.clone(),
        part => format!("{part} at byte {}: {}", finding.offset, finding.message),
    }
}

fn warning(place: &Location, message: impl Into<String>) -> Finding {
    Finding {
        severity: Severity::Warning,
        path: place.to_string().into(),
        offset: 0,
        part: "folder".to_string(),
        message: message.into(),
        rows: None,
    }
}

/// Whether the metadata or segments of a tablet lie in this very folder.
///
/// # Errors
/// If it cannot be listed.
pub fn is_tablet_folder(folder: impl Into<Location>) -> Result<bool> {
    let entries = folder.into().list()?;
    let is_part = |name: &str| is_header(name) || is_segment_of_tablet(name);
    Ok(entries.iter().any(|entry| entry.is_file() && entry.name().to_str().is_some_and(is_part)))
}

/// Whether a file beside folders is about them, and has no rows: notes and logs.
fn is_note(name: &str) -> bool {
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
    ["md", "txt", "log", "html", "pdf"].iter().any(|known| extension.eq_ignore_ascii_case(known))
}

/// Whether there is a tablet below `root`: its metadata, or segments of one in a folder that lies deeper. Segments in `root` itself are
/// files, which can be read as they are.
///
/// Where names of Doris's own lead to it, many folders are looked into; otherwise few, and none if files other than notes lie in `root`:
/// then it is a folder of files, whatever lies deeper.
///
/// # Errors
/// If none was found, and there may be one in a folder that cannot be listed.
pub fn has_tablets(root: impl Into<Location>) -> Result<bool> {
    let root = &root.into();
    // One that cannot be looked at is said when it is opened.
    if !matches!(database::of_root(root), Ok(None)) {
        return Ok(true);
    }
    let mut walk = Walk::new(root, Bounds::SIGHT);
    let (mut is_of_files, mut unread) = (None, None);
    while let Ok(Some((folder, listing))) = walk.next() {
        let listing = match listing {
            Ok(listing) => listing,
            Err(error) => {
                unread.get_or_insert(error);
                continue;
            }
        };
        let is_below = folder.path() != root.path();
        let is_tablet = |name: &str| is_header(name) || is_below && is_segment_of_tablet(name);
        if listing.files.iter().filter_map(text_of_name).any(is_tablet) {
            return Ok(true);
        }
        let is_data = |file: &Entry| text_of_name(file).is_none_or(|name| !is_note(name));
        let is_of_files = *is_of_files.get_or_insert(listing.files.iter().any(is_data));
        for folder in listing.folders {
            let is_likely = folder.name().to_str().is_some_and(may_lead_to_tablets);
            let chance = if is_likely { Chance::Likely } else { Chance::Any };
            if (is_likely || !is_of_files) && walk.enter(folder, chance).is_err() {
                return Ok(false);
            }
        }
    }
    unread.map_or(Ok(false), Err)
}

/// Folders on the way to tablets are numbers, or have one of Doris's names.
fn may_lead_to_tablets(name: &str) -> bool {
    name.starts_with("__")
        || matches!(name, "data" | "snapshot" | "trash")
        || name.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

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
        let folder = TabletFolder::of(root.path()).unwrap().unwrap();
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
            assert!(!has_tablets(root.path()).unwrap(), "{path}");
            let folder = tablet(root.path(), path);
            assert!(has_tablets(root.path()).unwrap(), "{path}");
            let found = find_tablets(root.path(), &Limits::default()).unwrap();
            assert_eq!(found.tablets[0].location.path(), folder);
            assert_eq!(found.findings, []);
        }
    }

    #[test]
    fn segments_without_their_metadata_are_those_of_a_tablet() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("7/8");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("1_0.dat"), b"").unwrap();
        assert!(!has_tablets(root.path()).unwrap());
        fs::write(folder.join(format!("{}_0.dat", "0".repeat(48))), b"").unwrap();
        assert!(has_tablets(root.path()).unwrap());
        assert!(!has_tablets(folder.as_path()).unwrap());
        let found = find_tablets(root.path(), &Limits::default()).unwrap();
        assert_eq!((found.tablets.len(), found.headless.len()), (0, 1));
    }

    #[test]
    fn a_folder_of_files_is_one_whatever_lies_deeper() {
        let root = tempfile::tempdir().unwrap();
        tablet(root.path(), "backup/7/8");
        fs::write(root.path().join("README.md"), b"a").unwrap();
        assert!(has_tablets(root.path()).unwrap());
        fs::write(root.path().join("rows.csv"), b"a").unwrap();
        assert!(!has_tablets(root.path()).unwrap());
        tablet(root.path(), "data/1/7/8");
        assert!(has_tablets(root.path()).unwrap());
        assert_eq!(find_tablets(root.path(), &Limits::default()).unwrap().tablets.len(), 2);
    }

    #[test]
    fn pictures_are_no_tablets() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("photos")).unwrap();
        fs::write(root.path().join("photos/sunset.hdr"), b"#?RADIANCE").unwrap();
        assert!(!has_tablets(root.path()).unwrap());
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
        assert_eq!((found.findings.len(), found.headless.len()), (0, 1), "{found:?}");
        assert!(found.headless[0].what.starts_with("the .hdr file of 1 segments is not here"));
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink(root.path(), root.path().join("up")).unwrap();
            let found = find_tablets(root.path(), &Limits::default()).unwrap();
            assert!(found.findings.iter().any(|finding| finding.message.contains("a link to a folder")));
        }
    }
}
