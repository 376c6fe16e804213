//! The metadata of a storage root: a RocksDB beside the data.
//!
//! ```text
//! <root>/meta, column family "meta"
//! tabletmeta_<tablet id>_<schema hash>, old: hdr_…   TabletMetaPB, as of its last checkpoint
//! rst_<tablet uid>_<rowset id>                       RowsetMetaPB: visible ones may be younger than the checkpoint
//! dlb_ | u64 BE tablet id | u64 BE version           DeleteBitmapPB whose entries are all of this version
//! ```

use std::collections::BTreeMap;

use pilaster_core::error::AtPosition;
use pilaster_core::{Error, Finding, Limits, Location, Result};
use pilaster_rocksdb::{Database, OnDamage, is_database};

use super::messages::{DeleteBitmapPb, RowsetMetaPb, TabletMetaPb};
use crate::messages;

const FAMILY: &str = "meta";
const TABLET_KEYS: [&str; 2] = ["tabletmeta_", "hdr_"];
const ROWSET_KEY: &[u8] = b"rst_";
const DELETES_KEY: &[u8] = b"dlb_";

/// Where the database of a storage root is, if `root` is one.
///
/// # Errors
/// [`pilaster_core::ErrorKind::Io`] if it cannot be looked at.
pub(super) fn of_root(root: &Location) -> Result<Option<Location>> {
    let database = root.child("meta");
    let is_root = root.child("data").is_folder()? && is_database(&database)?;
    Ok(is_root.then_some(database))
}

/// A tablet that a database knows: the name of its folder, and what is known of it.
pub(super) struct StoredTablet {
    pub schema_hash: String,
    pub message: TabletMetaPb,
}

/// What a database has.
#[derive(Default)]
pub(super) struct Stored {
    /// By id.
    pub tablets: BTreeMap<i64, StoredTablet>,
    /// What of it is odd, or cannot be read: rowsets of any tablet may then be missing.
    pub findings: Vec<Finding>,
}

/// Every tablet of a database.
pub(super) fn tablets(database: &Location, limits: &Limits) -> Result<Stored> {
    let name = database.to_string();
    let mut stored = Stored::default();
    let rocks = Database::open(database, limits, OnDamage::Skip)?;
    // Rowsets and deleted rows come before the tablets that they are of.
    let (mut others, mut bytes) = (Vec::new(), 0u64);
    for pair in rocks.pairs(FAMILY)? {
        let (key, value) = pair?;
        if let Some((id, schema_hash)) = tablet_key(&key) {
            let message = limits.metadata(value.len() as u64);
            let message = message.and_then(|_| messages::parse::<TabletMetaPb>(&value, "TabletMetaPB"));
            match message {
                Ok(message) => drop(stored.tablets.insert(id, StoredTablet { schema_hash, message })),
                Err(error) => stored.report(&name, &key, error),
            }
        } else if key.starts_with(ROWSET_KEY) || key.starts_with(DELETES_KEY) {
            bytes = bytes.saturating_add(key.len() as u64).saturating_add(value.len() as u64);
            limits.log(bytes).at(&name, 0, "tablet metadata")?;
            others.push((key, value));
        }
    }
    for (key, value) in &others {
        let added = match key.strip_prefix(DELETES_KEY) {
            Some(rest) => add_deletes(rest, value, &mut stored.tablets),
            None => add_rowset(value, &mut stored.tablets),
        };
        if let Err(error) = added {
            stored.report(&name, key, error);
        }
    }
    stored.findings.extend(rocks.findings());
    Ok(stored)
}

impl Stored {
    fn report(&mut self, name: &str, key: &[u8], error: Error) {
        let finding = Finding::from_error(&error.at(name, 0, "tablet metadata"), name, None);
        let message = format!("{}, of the key \"{}\"", finding.message, key.escape_ascii());
        self.findings.push(Finding { message, ..finding });
    }
}

fn tablet_key(key: &[u8]) -> Option<(i64, String)> {
    let text = std::str::from_utf8(key).ok()?;
    let rest = TABLET_KEYS.iter().find_map(|prefix| text.strip_prefix(prefix))?;
    let (id, schema_hash) = rest.split_once('_')?;
    // It becomes part of a path.
    let is_number =
        schema_hash.strip_prefix('-').unwrap_or(schema_hash).bytes().all(|byte| byte.is_ascii_digit());
    is_number.then_some((id.parse().ok()?, schema_hash.to_string()))
}

/// Rowsets that are younger than the checkpoint of their tablet.
fn add_rowset(value: &[u8], tablets: &mut BTreeMap<i64, StoredTablet>) -> Result<()> {
    let rowset: RowsetMetaPb = messages::parse(value, "RowsetMetaPB")?;
    let tablet = rowset.tablet_id.and_then(|id| tablets.get_mut(&id));
    // One that was dropped and made again has another uid, and nothing to do with what is left of the first.
    let is_of = |tablet: &&mut StoredTablet| {
        tablet.message.tablet_uid.zip(rowset.tablet_uid).is_none_or(|(tablet, rowset)| tablet == rowset)
    };
    if let Some(StoredTablet { message, .. }) = tablet.filter(is_of) {
        let is_same = |known: &RowsetMetaPb| {
            (known.rowset_id, &known.rowset_id_v2) == (rowset.rowset_id, &rowset.rowset_id_v2)
        };
        if !message.rs_metas.iter().chain(&message.stale_rs_metas).any(is_same) {
            message.rs_metas.push(rowset);
        }
    }
    Ok(())
}

/// Rows that newer ones replaced, at one version.
fn add_deletes(key: &[u8], value: &[u8], tablets: &mut BTreeMap<i64, StoredTablet>) -> Result<()> {
    let number = |bytes: Option<&[u8; 8]>| bytes.map(|eight| i64::from_be_bytes(*eight));
    let (Some(tablet), Some(version), 16) = (number(key.first_chunk()), number(key.last_chunk()), key.len())
    else {
        return Err(Error::corrupt(
            "the ids of a tablet and a version",
            format!("\"{}\"", key.escape_ascii()),
        ));
    };
    let Some(StoredTablet { message, .. }) = tablets.get_mut(&tablet) else { return Ok(()) };
    let added: DeleteBitmapPb = messages::parse(value, "DeleteBitmapPB")?;
    let all = message.delete_bitmap.get_or_insert_default();
    all.versions.extend(std::iter::repeat_n(version, added.rowset_ids.len()));
    all.rowset_ids.extend(added.rowset_ids);
    all.segment_ids.extend(added.segment_ids);
    all.segment_delete_bitmaps.extend(added.segment_delete_bitmaps);
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use pilaster_core::Severity;
    use pilaster_testing::needs;
    use pilaster_testing::{rocksdb_family, rocksdb_log, rocksdb_put, rocksdb_with_tables};
    use prost::Message;

    use super::*;
    use crate::tablet::header::open_header;
    use crate::tablet::messages::UniqueIdPb;
    use crate::tablet::{TabletFolder, TabletOptions, TabletReader, find_tablets};

    /// A tablet's metadata as a database has it between two checkpoints: its newest rowset and its deleted rows apart.
    fn records(mut message: TabletMetaPb) -> Vec<(Vec<u8>, Vec<u8>)> {
        let id = message.tablet_id.unwrap();
        let mut records = Vec::new();
        let mut newest = message.rs_metas.pop().unwrap();
        newest.tablet_id = Some(id);
        message.tablet_uid = Some(UniqueIdPb { hi: Some(1), lo: Some(2) });
        newest.tablet_uid = message.tablet_uid;
        // What is left of a tablet that had this id before.
        let next = newest.end_version.map(|version| version + 1);
        let left = RowsetMetaPb {
            rowset_id: Some(78),
            rowset_id_v2: None,
            tablet_uid: Some(UniqueIdPb { hi: Some(9), lo: Some(9) }),
            start_version: next,
            end_version: next,
            ..newest.clone()
        };
        records.push((b"rst_0000000000000009-0000000000000009_x".to_vec(), left.encode_to_vec()));
        records.push((b"rst_0000000000000001-0000000000000002_x".to_vec(), newest.encode_to_vec()));
        // One that is known already, and one that is not yet visible.
        let mut known = message.rs_metas[0].clone();
        known.tablet_id = Some(id);
        records.push((b"rst_0000000000000001-0000000000000002_y".to_vec(), known.encode_to_vec()));
        let prepared =
            RowsetMetaPb { rowset_id: Some(77), rowset_id_v2: None, rowset_state: Some(0), ..newest };
        records.push((b"rst_0000000000000001-0000000000000002_z".to_vec(), prepared.encode_to_vec()));
        let deleted = message.delete_bitmap.take().unwrap_or_default();
        let mut by_version: BTreeMap<i64, DeleteBitmapPb> = BTreeMap::new();
        for (at, version) in deleted.versions.iter().enumerate() {
            let of_version = by_version.entry(*version).or_default();
            of_version.rowset_ids.push(deleted.rowset_ids[at].clone());
            of_version.segment_ids.push(deleted.segment_ids[at]);
            of_version.segment_delete_bitmaps.push(deleted.segment_delete_bitmaps[at].clone());
        }
        for (version, of_version) in by_version {
            let key = [b"dlb_".as_slice(), &id.to_be_bytes(), &version.to_be_bytes()].concat();
            records.push((key, of_version.encode_to_vec()));
        }
        let key = format!("tabletmeta_{id}_{}", message.schema_hash.unwrap_or(0));
        records.push((key.into_bytes(), message.encode_to_vec()));
        records
    }

    fn rows(folder: &TabletFolder) -> Vec<String> {
        let tablet = TabletReader::open(folder, &TabletOptions::default()).unwrap();
        let batches = pilaster_testing::batches(pilaster_core::Dataset::scan(&tablet)).unwrap();
        batches.iter().map(|batch| format!("{batch:?}")).collect()
    }

    /// Tablets whose metadata `write` puts into the database of a storage root, against the same from their header files.
    fn check_roots(write: impl Fn(&Path, &[(Vec<u8>, Vec<u8>)])) {
        let goldens = pilaster_testing::goldens("doris");
        let limits = Limits::default();
        let (mut count, mut deletes) = (0, 0);
        for name in ["unique_mow", "aggregate"] {
            let original =
                find_tablets(goldens.join("tablet").join(name), &limits).unwrap().tablets.remove(0);
            let root = tempfile::tempdir().unwrap();
            let header = original.files.iter().find(|(name, _)| name.ends_with(".hdr")).unwrap().1;
            let header = std::fs::read(header.path()).unwrap();
            let message: TabletMetaPb =
                messages::parse(open_header(&header).unwrap(), "TabletMetaPB").unwrap();
            deletes += message.delete_bitmap.as_ref().map_or(0, |deleted| deleted.versions.len());
            let (id, hash) = (message.tablet_id.unwrap(), message.schema_hash.unwrap_or(0));
            let folder = root.path().join(format!("data/7/{id}/{hash}"));
            std::fs::create_dir_all(&folder).unwrap();
            for (name, file) in original.files.iter().filter(|(name, _)| name.ends_with(".dat")) {
                std::fs::copy(file.path(), folder.join(name)).unwrap();
            }
            let database = root.path().join("meta");
            std::fs::create_dir_all(&database).unwrap();
            write(&database, &records(message));
            let found = find_tablets(root.path(), &limits).unwrap();
            assert_eq!(found.findings, []);
            let found = found.tablets;
            assert_eq!(found.len(), 1);
            assert_eq!(found[0].location.path(), folder);
            assert_eq!(rows(&found[0]), rows(&original));
            count += 1;
        }
        assert!(count == 2 && deletes > 0, "{count} tablets, {deletes} entries of deleted rows");
    }

    fn write_log(database: &Path, records: &[(Vec<u8>, Vec<u8>)]) {
        let batches =
            records.iter().zip(1..).map(|((key, value), number)| rocksdb_put(2, number, key, value));
        // The next file is the third, nothing was written yet, and the log is the second.
        let manifest = [b"\x03\x03\x04\x00\x02\x02".to_vec(), rocksdb_family(2, FAMILY)];
        std::fs::write(database.join("CURRENT"), b"MANIFEST-000001\n").unwrap();
        std::fs::write(database.join("MANIFEST-000001"), rocksdb_log(&manifest)).unwrap();
        std::fs::write(database.join("000002.log"), rocksdb_log(&batches.collect::<Vec<_>>())).unwrap();
    }

    #[needs(goldens = "doris")]
    #[test]
    fn a_storage_root_gives_the_rows_of_its_tablets() {
        check_roots(write_log);
    }

    #[needs(goldens = "doris")]
    #[test]
    fn a_storage_root_whose_records_are_in_tables_gives_them_too() {
        check_roots(|database, records| rocksdb_with_tables(database, FAMILY, records).unwrap());
    }

    #[test]
    fn what_is_lost_of_the_metadata_is_named_and_the_rest_read() {
        let tablet = |id| {
            let message = TabletMetaPb { tablet_id: Some(id), ..TabletMetaPb::default() };
            (format!("tabletmeta_{id}_1").into_bytes(), message.encode_to_vec())
        };
        let records: Vec<_> = (1..9).map(tablet).collect();
        let limits = Limits::default();
        let ids = |folder: &Path| {
            let stored = tablets(&folder.into(), &limits).unwrap();
            let severities = stored.findings.iter().map(|finding| finding.severity);
            (stored.tablets.into_keys().collect::<Vec<_>>(), severities.collect::<Vec<_>>())
        };
        let folder = tempfile::tempdir().unwrap();
        rocksdb_with_tables(folder.path(), FAMILY, &records).unwrap();
        assert_eq!(ids(folder.path()), ((1..9).collect(), vec![]));
        std::fs::remove_file(folder.path().join("000011.sst")).unwrap();
        assert_eq!(ids(folder.path()), (vec![1, 3, 5, 7], vec![Severity::Error]));

        // A log that ends in the middle of a record is what a killed backend leaves.
        let folder = tempfile::tempdir().unwrap();
        write_log(folder.path(), &records);
        let log = folder.path().join("000002.log");
        let bytes = std::fs::read(&log).unwrap();
        std::fs::write(&log, &bytes[..bytes.len() - 1]).unwrap();
        assert_eq!(ids(folder.path()), ((1..8).collect(), vec![Severity::Warning]));
        let mut flipped = bytes.clone();
        flipped[20] ^= 1;
        std::fs::write(&log, flipped).unwrap();
        assert_eq!(ids(folder.path()), (vec![], vec![Severity::Error]));
        // A root whose database does not even say which manifest counts is one still.
        std::fs::write(&log, &bytes).unwrap();
        std::fs::remove_file(folder.path().join("CURRENT")).unwrap();
        assert!(is_database(&Location::local(folder.path())).unwrap());
        // Logs alone do not say which family "meta" is.
        let lost = tablets(&folder.path().into(), &limits).map(|stored| stored.findings.len());
        assert!(lost.is_err() || lost.is_ok_and(|findings| findings > 0));
        // One value that is no message.
        let mut records = records;
        records[2].1 = vec![0xff];
        write_log(folder.path(), &records);
        assert_eq!(ids(folder.path()), (vec![1, 2, 4, 5, 6, 7, 8], vec![Severity::Error]));
    }
}
