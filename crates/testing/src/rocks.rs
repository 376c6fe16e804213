//! Databases of RocksDB, made by RocksDB itself.

use std::path::Path;

use rocksdb::{DB, Options};

/// Makes a database whose pairs are in tables, all in one column family.
///
/// # Errors
/// What RocksDB says.
pub fn rocksdb_with_tables(
    folder: &Path,
    family: &str,
    pairs: &[(Vec<u8>, Vec<u8>)],
) -> Result<(), rocksdb::Error> {
    let mut options = Options::default();
    options.create_if_missing(true);
    options.create_missing_column_families(true);
    {
        let database = DB::open_cf(&options, folder, ["default", family])?;
        if let Some(handle) = database.cf_handle(family) {
            pairs.iter().try_for_each(|(key, value)| database.put_cf(handle, key, value))?;
        }
    }
    rocksdb_into_tables(folder)
}

/// Has a database move all pairs from its log into tables, as it does when it is opened for writing and when it grows.
///
/// # Errors
/// What RocksDB says.
pub fn rocksdb_into_tables(folder: &Path) -> Result<(), rocksdb::Error> {
    let options = Options::default();
    let families = DB::list_cf(&options, folder)?;
    let database = DB::open_cf(&options, folder, &families)?;
    for handle in families.iter().filter_map(|family| database.cf_handle(family)) {
        database.flush_cf(handle)?;
        database.compact_range_cf::<&[u8], &[u8]>(handle, None, None);
    }
    Ok(())
}
