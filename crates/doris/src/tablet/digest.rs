//! The checksums of a backup repository: the name of each file ends with the MD5 of its content.

use std::fmt::Write as _;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use md5::{Digest, Md5};
use pilaster_core::error::AtPosition;
use pilaster_core::{Error, Finding, Result, Severity, VerifyReport};

use super::layout::{TabletFolder, checksummed};
use super::meta::RowsetMeta;

const PART: &str = "file content";
const CHUNK: usize = 1 << 20;

/// The files of a tablet whose names carry a checksum.
#[derive(Debug, Clone, Default)]
pub(super) struct StoredDigests(Vec<StoredDigest>);

#[derive(Debug, Clone)]
struct StoredDigest {
    path: PathBuf,
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
        let stored = folder.files.iter().filter_map(|(name, path)| {
            let (_, md5) = checksummed(path.file_name()?.to_str()?);
            Some(StoredDigest { md5: md5?.to_ascii_lowercase(), is_used: is_used(name), path: path.clone() })
        });
        let mut all: Vec<_> = stored.collect();
        all.sort_by(|a, b| a.path.cmp(&b.path));
        Self(all)
    }

    /// Reads every file and compares.
    pub fn verify(&self) -> VerifyReport {
        let mut report = VerifyReport::default();
        for stored in &self.0 {
            report.checksums = report.checksums.saturating_add(1);
            let severity = if stored.is_used { Severity::Error } else { Severity::Warning };
            let name = stored.path.display().to_string();
            let wrong = match md5_of(&stored.path) {
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
fn md5_of(path: &Path) -> Result<String> {
    let name = path.display().to_string();
    let mut file = File::open(path).at(&name, 0, PART)?;
    let (mut digest, mut chunk) = (Md5::new(), vec![0; CHUNK]);
    loop {
        match file.read(&mut chunk).at(&name, 0, PART)? {
            0 => break,
            count => digest.update(chunk.get(..count).unwrap_or_default()),
        }
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
            assert_eq!(md5_of(&path).unwrap(), md5);
        }
    }
}
