//! The checksums of a backup repository: the name of each file ends with the MD5 of its content.

use std::fmt::Write as _;

use md5::{Digest, Md5};
use pilaster_core::error::AtPosition;
use pilaster_core::{Error, Finding, Location, Result, Severity, VerifyReport};

use super::layout::{TabletFolder, checksummed};
use super::meta::RowsetMeta;

const PART: &str = "file content";
const CHUNK: u64 = 1 << 20;

/// The files of a tablet whose names carry a checksum.
#[derive(Debug, Clone, Default)]
pub(super) struct StoredDigests(Vec<StoredDigest>);

#[derive(Debug, Clone)]
struct StoredDigest {
    place: Location,
    md5: String,
    /// Whether rows of the tablet are lost if it is damaged.
    is_used: bool,
}

impl StoredDigests {
    /// Those of a folder, of which the tablet consists of `rowsets`.
    pub fn of(folder: &TabletFolder, rowsets: &[RowsetMeta]) -> Self {
        // A segment is `<rowset>_<number>.dat`; what is in no rowset of the version was left behind or replaced.
        let is_used = |name: &str| {
            let rowset = name.split_once('_').map(|(rowset, _)| rowset);
            rowset.is_none_or(|id| rowsets.iter().any(|rowset| rowset.id == id))
        };
        let stored = folder.files.iter().filter_map(|(name, file)| {
            let (_, md5) = checksummed(file.name().to_str()?);
            let place = folder.place_of(file);
            Some(StoredDigest { md5: md5?.to_ascii_lowercase(), is_used: is_used(name), place })
        });
        let mut all: Vec<_> = stored.collect();
        all.sort_by(|a, b| a.place.path().cmp(b.place.path()));
        Self(all)
    }

    /// Reads every file and compares.
    pub fn verify(&self) -> VerifyReport {
        let mut report = VerifyReport::default();
        for stored in &self.0 {
            report.checksums = report.checksums.saturating_add(1);
            let severity = if stored.is_used { Severity::Error } else { Severity::Warning };
            let name = stored.place.to_string();
            let wrong = match md5_of(&stored.place) {
                Ok(found) if found == stored.md5 => continue,
                Ok(found) => Error::corrupt(format!("MD5 {} (in the file's name)", stored.md5), found)
                    .at(&name, 0, PART),
                Err(error) => error,
            };
            report.findings.push(Finding { severity, ..Finding::from_error(&wrong, &name, None) });
        }
        report
    }
}

/// In hexadecimal digits, read piece by piece.
fn md5_of(file: &Location) -> Result<String> {
    let source = file.open()?;
    let (mut digest, mut from) = (Md5::new(), 0);
    while from < source.size() {
        let to = from.saturating_add(CHUNK).min(source.size());
        digest.update(source.read_at(from..to).at(source.name(), from, PART)?);
        from = to;
    }
    Ok(digest.finalize().iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_of_known_contents() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        for (content, md5) in [
            (Vec::new(), "d41d8cd98f00b204e9800998ecf8427e"),
            (b"a".to_vec(), "0cc175b9c0f1b6a831c399e269772661"),
        ] {
            std::fs::write(&path, content).unwrap();
            assert_eq!(md5_of(&Location::local(&path)).unwrap(), md5);
        }
    }
}
