//! One table of expectations for every storage.

use std::io;
use std::path::PathBuf;

use super::*;

/// The storages with a folder to work in; what must outlive it comes along.
fn places() -> Vec<(&'static str, Location, Option<tempfile::TempDir>)> {
    let folder = tempfile::tempdir().unwrap();
    vec![
        ("memory", MemoryStorage::new("memory").root(), None),
        ("local", Location::local(folder.path()), Some(folder)),
        #[cfg(feature = "object_store")]
        {
            let store = std::sync::Arc::new(object_store::memory::InMemory::new());
            ("objects", ObjectStorage::new("memory:/", store).root().child("work"), None)
        },
    ]
}

fn put(location: &Location, bytes: &[u8]) {
    let mut sink = location.create().unwrap();
    sink.write_all(bytes).unwrap();
    sink.finish().unwrap();
}

fn names(location: &Location) -> Vec<(String, EntryKind, u64)> {
    let entries = location.list().unwrap();
    entries.iter().map(|entry| (entry.name().display().to_string(), entry.kind(), entry.size())).collect()
}

fn walked(location: &Location) -> Vec<PathBuf> {
    let entries = location.walk().map(|entry| entry.unwrap());
    entries.map(|entry| entry.path().strip_prefix(location.path()).unwrap().to_path_buf()).collect()
}

fn child(location: &Location, path: &str) -> Location {
    // Folders must be there before files are written to a local disk.
    let child = location.child(path);
    if location.storage().display(Path::new("x")) == "x" {
        std::fs::create_dir_all(child.path().parent().unwrap()).unwrap();
    }
    child
}

#[test]
fn files_are_written_listed_opened_and_removed() {
    for (kind, place, _kept) in places() {
        put(&child(&place, "t/b/c"), b"three");
        put(&child(&place, "t/b/d"), b"");
        put(&child(&place, "t/a"), b"1");
        put(&child(&place, "t-x"), b"beside");
        let table = place.child("t");
        let expected = [("a".to_string(), EntryKind::File, 1), ("b".to_string(), EntryKind::Folder, 0)];
        assert_eq!(names(&table), expected, "{kind}");
        assert_eq!(walked(&table), ["a", "b/c", "b/d"].map(PathBuf::from), "{kind}");
        let file = table.child("b").child("c");
        assert_eq!(file.open().unwrap().read_at(1..3).unwrap(), "hr", "{kind}");
        assert_eq!(file.open().unwrap().name(), file.to_string(), "{kind}");
        assert_eq!(file.entry().unwrap().unwrap().size(), 5, "{kind}");
        assert_eq!((table.is_folder().unwrap(), file.is_file().unwrap()), (true, true), "{kind}");
        assert_eq!(file.parent().unwrap().to_string(), table.child("b").to_string(), "{kind}");
        file.remove().unwrap();
        assert!(file.entry().unwrap().is_none(), "{kind}");
        assert!(is_not_found(&file.open().unwrap_err()), "{kind}");
        assert!(!is_not_found(&table.open().unwrap_err()) || kind == "objects", "{kind}");
        let limited = table.child("a").read("metadata_bytes", 0).unwrap_err();
        assert!(limited.to_string().ends_with("1 is over the limit metadata_bytes = 0"), "{limited}");
    }
}

#[test]
fn a_location_is_a_path_of_one_storage() {
    let (one, other) = (MemoryStorage::new("one").root(), MemoryStorage::new("other").root());
    assert_eq!(one.child("a"), one.child("b").parent().unwrap().child("a"));
    assert_ne!(one.child("a"), other.child("a"));
    assert_eq!(one.child("a/b").below(&one.child("a")), Some(Path::new("b")));
    assert_eq!(one.child("a/b").below(&other.child("a")), None);
    assert_eq!(one.child("ab").below(&one.child("a")), None);
    assert!(one.child("a") < one.child("b"));
    assert_eq!(Location::from(Path::new("x")), Location::local("x"));
    assert_eq!(one.child("a.dat").with_extension("json"), one.child("a.json"));
}

#[test]
fn what_is_not_there_is_not_empty() {
    for (kind, place, _kept) in places() {
        put(&child(&place, "a"), b"1");
        let missing = place.child("missing");
        assert!(missing.entry().unwrap().is_none(), "{kind}");
        let error = missing.list().unwrap_err();
        assert!(is_not_found(&error) && error.to_string().contains("missing"), "{kind}: {error}");
        let errors: Vec<_> = missing.walk().map(|entry| entry.unwrap_err().to_string()).collect();
        assert!(errors.len() == 1 && errors[0].contains("missing"), "{kind}: {errors:?}");
        // Below a file nothing is.
        assert!(place.child("a").child("b").entry().unwrap().is_none(), "{kind}");
        assert!(place.child("a").list().is_err(), "{kind}");
    }
}

#[test]
fn a_file_that_is_given_up_leaves_nothing() {
    for (kind, place, _kept) in places() {
        put(&child(&place, "a"), b"before");
        for large in [100, 20 << 20] {
            let mut sink = place.child("a").create().unwrap();
            sink.write_all(&vec![7; large]).unwrap();
            drop(sink);
            assert_eq!(place.child("a").read("bytes", 10).unwrap(), "before", "{kind}");
            assert_eq!(names(&place).len(), 1, "{kind}");
        }
    }
}

#[test]
fn large_files_arrive_whole() {
    let bytes: Vec<u8> = (0..20u32 << 18).flat_map(u32::to_le_bytes).collect();
    for (kind, place, _kept) in places() {
        put(&child(&place, "a"), &bytes);
        assert!(place.child("a").read("bytes", 1 << 30).unwrap() == bytes, "{kind}");
    }
}

#[test]
fn a_file_is_replaced_only_by_who_has_seen_it() {
    for (kind, place, _kept) in places() {
        let status = child(&place, "status");
        status.replace_if(None, "1").unwrap();
        let first = status.entry().unwrap().unwrap().tag().cloned().unwrap();
        let conflict = |tag: Option<&Tag>| {
            let error = status.replace_if(tag, "other").unwrap_err();
            assert!(error.to_string().ends_with("was changed by somebody else meanwhile"), "{kind}: {error}");
            assert!(
                matches!(error.kind(), ErrorKind::Io(error) if error.kind() == io::ErrorKind::AlreadyExists)
            );
        };
        conflict(None);
        status.replace_if(Some(&first), "22").unwrap();
        conflict(Some(&first));
        assert_eq!(status.read("bytes", 10).unwrap(), "22", "{kind}");
        status.remove().unwrap();
        conflict(Some(&first));
    }
}

#[test]
fn what_is_written_can_be_read_before_it_has_its_name() {
    for (kind, place, _kept) in places() {
        let mut file = place.child("a").create().unwrap();
        file.write_all(b"some rows").unwrap();
        let written = file.written().unwrap().unwrap();
        assert_eq!(written.read_at(0..written.size()).unwrap(), "some rows", "{kind}");
        assert!(place.child("a").entry().unwrap().is_none(), "{kind}");
        assert_eq!(file.bytes(), 9, "{kind}");
        file.finish().unwrap();
        assert_eq!(place.child("a").read("bytes", 10).unwrap(), "some rows", "{kind}");
    }
}

#[test]
fn a_folder_that_is_given_up_leaves_nothing() {
    for (kind, place, _kept) in places() {
        let folder = NewFolder::create(place.child("t")).unwrap();
        folder.place().child("b/c").make_folder().unwrap();
        folder.place().child("b/c/d").write(b"1").unwrap();
        folder.place().child("a").write(b"2").unwrap();
        drop(folder);
        assert!(place.child("t").entry().unwrap().is_none(), "{kind}");
        let left: Vec<_> = place.walk().filter_map(Result::ok).collect();
        assert!(left.is_empty(), "{kind}: {left:?}");
    }
}

#[test]
fn a_folder_has_its_name_when_it_is_finished() {
    for (kind, place, _kept) in places() {
        let folder = NewFolder::create(place.child("t")).unwrap();
        folder.place().child("b").make_folder().unwrap();
        folder.place().child("b/c").write(b"1").unwrap();
        assert_eq!(folder.place().child("b/c").read("bytes", 1).unwrap(), "1", "{kind}");
        assert_eq!(folder.target(), &place.child("t"), "{kind}");
        folder.finish().unwrap();
        assert_eq!(walked(&place.child("t")), [PathBuf::from("b/c")], "{kind}");
        let message = "exists already and is not an empty folder";
        for taken in ["t", "t/b/c"] {
            let error = NewFolder::create(place.child(taken)).unwrap_err().to_string();
            assert!(error.ends_with(message), "{kind}: {error}");
        }
        place.child("t").remove_folder().unwrap();
        place.child("t").remove_folder().unwrap();
        assert!(place.child("t").entry().unwrap().is_none(), "{kind}");
    }
}

#[test]
fn what_makes_way_has_another_name() {
    for (kind, place, _kept) in places() {
        let file = place.child("status");
        assert!(file.set_aside("old").is_err(), "{kind}");
        file.write(b"1").unwrap();
        let old = file.set_aside("old").unwrap();
        file.write(b"2").unwrap();
        let contents = [&old, &file].map(|file| file.read("bytes", 1).unwrap());
        assert_eq!(contents, ["1", "2"], "{kind}");
        let error = file.set_aside("old").unwrap_err();
        let is_taken = |error: &io::Error| error.kind() == io::ErrorKind::AlreadyExists;
        assert!(matches!(error.kind(), ErrorKind::Io(error) if is_taken(error)), "{kind}: {error}");
    }
}

#[test]
fn the_end_of_a_file_is_replaced_if_nobody_else_changed_it() {
    for (kind, place, _kept) in places() {
        let file = place.child("a");
        file.write(b"head and tail").unwrap();
        let error = file.replace_end(12, 4, b"").unwrap_err().to_string();
        assert!(error.ends_with("a: has 13 bytes, and had 12 when it was looked at"), "{kind}: {error}");
        file.replace_end(13, 4, b" ends").unwrap();
        assert_eq!(file.read("bytes", 100).unwrap(), "head ends", "{kind}");
        file.replace_end(9, 9, b"!").unwrap();
        assert_eq!(file.read("bytes", 100).unwrap(), "head ends!", "{kind}");
    }
}

#[test]
fn a_lock_is_held_once() {
    for (kind, place, _kept) in places() {
        let (one, other) = (place.child("one.lock"), place.child("other.lock"));
        let held = one.try_lock().unwrap();
        assert!(held.is_some() && one.try_lock().unwrap().is_none(), "{kind}");
        assert!(other.try_lock().unwrap().is_some(), "{kind}");
        drop(held);
        assert!(one.try_lock().unwrap().is_some(), "{kind}");
    }
}

#[test]
fn addresses_lead_to_storages() {
    assert_eq!(Location::parse("a/b").unwrap().to_string(), "a/b");
    assert_eq!(Location::parse("file:///a/b").unwrap().path(), Path::new("/a/b"));
    assert!(Location::parse("gopher://a/b").is_err());
    let missing = Location::parse("no/such/file").unwrap().open().unwrap_err();
    assert!(missing.to_string().starts_with("no/such/file: "), "{missing}");
    #[cfg(feature = "object_store")]
    for (address, shown) in
        [("memory:///a/b", "memory:/"), ("http://127.0.0.1:9/a/b%20c", "http://127.0.0.1:9")]
    {
        let location = Location::parse(address).unwrap();
        assert!(location.to_string().starts_with(shown), "{location}");
        assert_eq!(location.path().iter().count(), 2, "{location:?}");
    }
    #[cfg(not(feature = "hdfs"))]
    assert_eq!(
        Location::parse("hdfs://host/a").unwrap_err().to_string(),
        "hdfs://host/a: cannot read this: this build has no hdfs support; build it with `--features hdfs`"
    );
}

#[cfg(unix)]
mod local {
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn names_that_are_no_text_stay_what_they_are() {
        let folder = tempfile::tempdir().unwrap();
        let name = OsStr::from_bytes(b"caf\xe9");
        let place = Location::local(folder.path());
        put(&place.child(name), b"1");
        let entries = place.list().unwrap();
        assert_eq!(entries[0].name(), name);
        assert_eq!(place.beside(entries[0].path()).read("bytes", 1).unwrap(), "1");
    }

    #[test]
    fn links_pipes_and_rounds() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        std::fs::create_dir(path("inner")).unwrap();
        std::fs::write(path("inner/file"), "1").unwrap();
        symlink("..", path("inner/round")).unwrap();
        symlink("inner/file", path("link")).unwrap();
        symlink("nowhere", path("dangling")).unwrap();
        symlink("itself", path("itself")).unwrap();
        let mode = rustix::fs::Mode::RUSR;
        rustix::fs::mkfifoat(rustix::fs::CWD, path("pipe"), mode).unwrap();
        let place = Location::local(folder.path());
        let other = EntryKind::Other;
        let kinds = [
            ("dangling", other, 0),
            ("inner", EntryKind::Folder, 0),
            ("itself", other, 0),
            ("link", EntryKind::File, 1),
            ("pipe", other, 0),
        ];
        assert_eq!(names(&place), kinds.map(|(name, kind, size)| (name.to_string(), kind, size)));
        assert_eq!(walked(&place), ["dangling", "inner/file", "itself", "link", "pipe"].map(PathBuf::from));
        let links: Vec<_> = place.list().unwrap().iter().map(Entry::is_link).collect();
        assert_eq!(links, [true, false, true, true, false]);
        assert!(place.child("pipe").open().is_err());
        assert!(place.child("itself").entry().is_err());
        let is_link = |name: &str| place.child(name).is_link().unwrap();
        assert!(is_link("dangling") && is_link("itself") && is_link("link"));
        assert!(!is_link("inner") && !is_link("missing") && !is_link("inner/file/below"));
        assert_eq!(place.child("inner").child("round").real().unwrap(), place.real().unwrap());
        assert!(is_not_found(&place.child("missing").real().unwrap_err()));
    }

    #[test]
    fn what_is_no_file_makes_way_and_is_not_written_through() {
        let folder = tempfile::tempdir().unwrap();
        let place = Location::local(folder.path());
        std::fs::write(folder.path().join("behind"), "kept").unwrap();
        symlink("behind", folder.path().join("link")).unwrap();
        let aside = place.child("link").set_aside("aside").unwrap();
        place.child("link").write(b"new").unwrap();
        assert!(aside.is_link().unwrap() && !place.child("link").is_link().unwrap());
        assert_eq!(aside.read("bytes", 9).unwrap(), "kept");
    }

    #[test]
    fn errors_of_writing_name_the_file() {
        let full = Location::local("/dev/full");
        let written = full.create().and_then(|mut file| {
            file.write_all(&[0; 4 << 20])?;
            file.finish()
        });
        let error = written.unwrap_err().to_string();
        assert!(error.starts_with("/dev/full: "), "{error}");
    }

    #[test]
    fn what_may_only_be_listed_is_still_there() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let listed = folder.path().join("listed");
        std::fs::create_dir_all(listed.join("inner")).unwrap();
        std::fs::write(listed.join("file"), "1").unwrap();
        std::fs::set_permissions(&listed, std::fs::Permissions::from_mode(0o400)).unwrap();
        let place = Location::local(&listed);
        let kinds: Vec<_> = place.list().unwrap().iter().map(Entry::kind).collect();
        // Root may look everywhere.
        let is_refused = std::fs::metadata(listed.join("file")).is_err();
        let errors = place.walk().filter(Result::is_err).count();
        let opened = place.child("file").open();
        std::fs::set_permissions(&listed, std::fs::Permissions::from_mode(0o700)).unwrap();
        assert_eq!(kinds, [EntryKind::File, EntryKind::Folder]);
        assert_eq!((errors, opened.is_err()), (usize::from(is_refused), is_refused));
    }

    #[test]
    fn a_folder_that_cannot_be_listed_is_an_error_and_the_rest_is_given() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let closed = folder.path().join("closed");
        std::fs::create_dir(&closed).unwrap();
        std::fs::write(closed.join("inside"), "1").unwrap();
        std::fs::write(folder.path().join("open"), "1").unwrap();
        std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o000)).unwrap();
        // Root may look everywhere.
        if std::fs::read_dir(&closed).is_err() {
            let place = Location::local(folder.path());
            let (found, errors): (Vec<_>, Vec<_>) = place.walk().partition(Result::is_ok);
            assert_eq!((found.len(), errors.len()), (1, 1));
            let error = errors.into_iter().next().unwrap().unwrap_err();
            assert!(error.to_string().starts_with(closed.to_str().unwrap()), "{error}");
            assert!(!is_not_found(&place.child("closed").list().unwrap_err()));
            assert!(place.child("closed").child("inside").entry().is_err());
        }
        std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o700)).unwrap();
    }
}
