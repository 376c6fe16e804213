//! Folders and files that the system does not let us read: nothing of them may pass for lost or empty.
//!
//! Permissions do not bind the superuser, so here a link that leads to itself stands for what cannot be read; the tests of the
//! command line take the permission away.
#![cfg(unix)]
#![allow(
    missing_docs,
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test"
)]

mod support;

use std::path::{Path, PathBuf};

use pilaster_core::progress::Silent;
use pilaster_core::{Dataset, ErrorKind, Severity, VerifyDepth};
use pilaster_kudu::store::{KuduStore, KuduStoreOptions};
use pilaster_kudu::tablet::LogUse;

/// A copy of the server of `testdata/kudu/mixed`: one table of two tablets.
struct Server(tempfile::TempDir);

impl Server {
    fn new() -> Self {
        let server = Self(tempfile::tempdir().unwrap());
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/kudu/mixed/fs");
        for file in files(&root) {
            let copy = server.0.path().join(file.strip_prefix(&root).unwrap());
            std::fs::create_dir_all(copy.parent().unwrap()).unwrap();
            std::fs::copy(&file, &copy).unwrap();
        }
        server
    }

    fn store(&self, log: LogUse) -> pilaster_core::Result<KuduStore> {
        KuduStore::open(&[self.0.path().to_path_buf()], KuduStoreOptions::default().with_log(log))
    }

    /// Puts a link to itself in the place of a file or folder until the check is over.
    fn without<T>(&self, path: &Path, check: impl FnOnce() -> T) -> T {
        let whole = self.0.path().join(path);
        let aside = tempfile::tempdir_in(self.0.path().parent().unwrap()).unwrap();
        let kept = aside.path().join("kept");
        std::fs::rename(&whole, &kept).unwrap();
        std::os::unix::fs::symlink(&whole, &whole).unwrap();
        let result = check();
        std::fs::remove_file(&whole).unwrap();
        std::fs::rename(&kept, &whole).unwrap();
        result
    }
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if path.is_dir() { files.extend(self::files(&path)) } else { files.push(path) }
    }
    files.sort();
    files
}

/// The rows of the only table, or why there are none: whether the system is to blame, and the words.
fn rows(store: pilaster_core::Result<KuduStore>) -> Result<usize, (bool, String)> {
    let read = || -> pilaster_core::Result<usize> {
        let mut rows = 0;
        for batch in store?.table(None)?.scan().read()? {
            rows += batch?.num_rows();
        }
        Ok(rows)
    };
    read().map_err(|error| (matches!(error.kind(), ErrorKind::Io(_)), error.to_string()))
}

#[test]
fn what_cannot_be_read_is_named_and_never_taken_for_lost() {
    let server = Server::new();
    let root = server.0.path();
    let all = rows(server.store(LogUse::Replay)).unwrap();
    let mut paths: Vec<PathBuf> =
        ["wals", "tablet-meta", "consensus-meta", "data", "instance"].map(Into::into).into();
    paths.extend(files(root).iter().map(|file| file.strip_prefix(root).unwrap().to_path_buf()));
    paths.extend(["wals", "tablet-meta"].map(|name| {
        let first = std::fs::read_dir(root.join(name)).unwrap().next().unwrap().unwrap().path();
        first.strip_prefix(root).unwrap().to_path_buf()
    }));
    let mut refused = Vec::new();
    for path in &paths {
        let name = path.display();
        server.without(path, || {
            let store = server.store(LogUse::Replay).unwrap();
            match rows(Ok(store.clone())) {
                // Not every container holds something that is still needed.
                Ok(count) => assert!(path.starts_with("data") && count == all, "{name}: {count} rows"),
                Err((is_io, error)) => {
                    refused.push(path.clone());
                    let start = root.join(path).display().to_string();
                    assert!(is_io && error.starts_with(&start), "{name}: {error}");
                    assert!(error.contains("(os error ") && error.ends_with("was not looked at"), "{error}");
                    let told = store.unread();
                    assert!(
                        told.iter().all(|unread| unread.path.path() == root.join(path)),
                        "{name}: {told:?}"
                    );
                    assert_eq!(told.len(), 1, "{name}");
                }
            }
            // The list of what stands in the logs says so too.
            let needs_blocks = path.starts_with("data");
            let logs = store.logs(None).unwrap();
            assert!(logs.iter().all(|log| log.findings.is_empty()), "{name}: {logs:?}");
            let told: Vec<_> =
                store.unread_logs().into_iter().map(|unread| unread.path.path().to_path_buf()).collect();
            let expected = if needs_blocks { vec![] } else { vec![root.join(path)] };
            assert_eq!(told, expected, "{name}");
            let table = (!path.starts_with("tablet-meta")).then(|| store.tables()[0].clone());
            for table in [None, table.as_deref()] {
                let report = store.verify(table, VerifyDepth::Checksums, &Silent).unwrap();
                let errors = report.findings.iter().filter(|finding| finding.severity == Severity::Error);
                let errors: Vec<_> = errors.map(ToString::to_string).collect();
                if refused.last() == Some(path) || table.is_none() && report.unread > 0 {
                    assert_eq!((errors.len(), report.unread), (1, 1), "{name}: {errors:#?}");
                    assert!(errors[0].contains("was not looked at"), "{name}: {errors:?}");
                }
            }
        });
    }
    for must in ["wals", "tablet-meta", "consensus-meta", "data", "instance"] {
        assert!(refused.iter().any(|path| path == Path::new(must)), "{must}");
        let below = refused.iter().any(|path| path.starts_with(must) && path != Path::new(must));
        assert!(below || must == "instance", "{must}/…");
    }
    assert_eq!(rows(server.store(LogUse::Replay)), Ok(all));
}

#[test]
fn a_log_that_is_not_asked_for_need_not_be_readable() {
    let server = Server::new();
    let flushed = rows(server.store(LogUse::Ignore)).unwrap();
    let found = server.without(Path::new("wals"), || rows(server.store(LogUse::Ignore)));
    assert_eq!(found, Ok(flushed));
}

#[test]
fn a_folder_that_cannot_be_looked_into_is_no_folder_without_roots() {
    let folder = tempfile::tempdir().unwrap();
    let ring = folder.path().join("server");
    std::os::unix::fs::symlink(&ring, &ring).unwrap();
    let error = KuduStore::open(&[folder.path().to_path_buf()], KuduStoreOptions::default()).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Io(_)), "{error}");
    assert!(error.to_string().starts_with(&ring.display().to_string()), "{error}");
    // Beside a server it may be another root of the same.
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/kudu/mixed/fs");
    std::os::unix::fs::symlink(root.canonicalize().unwrap(), folder.path().join("other")).unwrap();
    let store = KuduStore::open(&[folder.path().to_path_buf()], KuduStoreOptions::default());
    let (is_io, error) = rows(store).unwrap_err();
    assert!(is_io && error.starts_with(&ring.display().to_string()), "{error}");
}
