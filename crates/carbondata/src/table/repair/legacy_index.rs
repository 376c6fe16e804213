//! Index files of versions 1 and 2: a record per data file, with the statistics of all its blocklets together.

use bytes::Bytes;
use pilaster_core::error::AtPosition;
use pilaster_core::{Limits, Location, Result};
use pilaster_encoding::thrift::{Writer, wire};

use super::super::names::bucket;
use super::thrift::{RawLegacy, read_legacy};
use crate::file::IndexFile;
use crate::messages::{BlockIndex, BlockletIndex, IndexHeader, MinMax};

/// The bytes of the index over `files`.
///
/// The engine puts the path of the loader's temporary folder before each name, which nobody looks at, and which nothing tells any
/// more: here are the names alone.
pub(super) fn index(folder: &Location, files: &[String], limits: &Limits) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    for (number, name) in files.iter().enumerate() {
        let file = read_legacy(&folder.child(name), limits)?;
        if number == 0 {
            header(name, &file, &mut out);
        }
        record(name, &file, &mut out);
    }
    Ok(out)
}

fn header(name: &str, file: &RawLegacy, out: &mut Vec<u8>) {
    let mut writer = Writer::new(out);
    writer.i32(1, file.version);
    writer.list(2, wire::STRUCT, &file.columns, |column, out| out.extend_from_slice(column));
    writer.structure(3, |out| out.extend_from_slice(&file.segment_info));
    if let Some(bucket) = bucket(name) {
        writer.i32(4, bucket);
    }
    writer.finish();
}

fn record(name: &str, file: &RawLegacy, out: &mut Vec<u8>) {
    let mut writer = Writer::new(out);
    writer.i64(1, file.rows);
    writer.text(2, name);
    writer.i64(3, file.footer_offset);
    writer.structure(4, |out| of_file(&file.indexes).write(out));
    writer.finish();
}

/// The statistics of a file: the least and greatest of all its blocklets, as bytes; the keys of its first and its last row.
fn of_file(blocklets: &[BlockletIndex]) -> BlockletIndex {
    let none = BlockletIndex::new(MinMax::default());
    let mut all = blocklets.first().cloned().unwrap_or(none);
    for blocklet in blocklets.iter().skip(1) {
        choose(&mut all.min_max.min, &blocklet.min_max.min, |known, other| other < known);
        choose(&mut all.min_max.max, &blocklet.min_max.max, |known, other| other > known);
        all.keys.1.clone_from(&blocklet.keys.1);
    }
    // What is not known of one blocklet is not known of the file.
    let known = blocklets.iter().flat_map(|one| [one.min_max.min.len(), one.min_max.max.len()]).min();
    all.min_max.min.truncate(known.unwrap_or_default());
    all.min_max.max.truncate(known.unwrap_or_default());
    all
}

fn choose(known: &mut [Bytes], others: &[Bytes], is_better: impl Fn(&Bytes, &Bytes) -> bool) {
    for (known, other) in known.iter_mut().zip(others) {
        if is_better(known, other) {
            known.clone_from(other);
        }
    }
}

/// Whether an index says of a data file what its footer says.
pub(crate) fn is_index_of(
    index: &IndexFile,
    blocks: &[&BlockIndex],
    path: &Location,
    limits: &Limits,
) -> bool {
    let expected = || -> Result<(IndexHeader, Vec<BlockIndex>)> {
        let file = read_legacy(path, limits)?;
        let mut bytes = Vec::new();
        header("", &file, &mut bytes);
        record("", &file, &mut bytes);
        IndexHeader::parse_file(&bytes.into()).at(&path.to_string(), 0, "carbondata index")
    };
    let (Ok((header, records)), [found]) = (expected(), blocks) else { return false };
    let [record] = records.as_slice() else { return false };
    // Releases before 1.0 put the number of rows where the offset of the footer should be.
    let is_offset = found.footer_offset == record.footer_offset || found.footer_offset == record.rows;
    header.version == index.header.version
        && header.columns == index.header.columns
        && header.cardinalities == index.header.cardinalities
        && found.rows == record.rows
        && found.index == record.index
        && is_offset
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_blocklet_does_not_tell_the_file_does_not() {
        let list = |values: &[&'static str]| values.iter().map(|value| Bytes::from(*value)).collect();
        let with = |min: &[&'static str], max: &[&'static str]| {
            BlockletIndex::new(MinMax { min: list(min), max: list(max), ..MinMax::default() })
        };
        let all = of_file(&[with(&["b", "c"], &["d", "e"]), with(&["a", "d"], &["c", "f"])]);
        assert_eq!(all, with(&["a", "c"], &["d", "f"]));
        for order in [[0, 1], [1, 0]] {
            let both = [with(&["b"], &["d"]), with(&[], &[])];
            assert_eq!(of_file(&order.map(|number: usize| both[number].clone())), with(&[], &[]));
        }
    }
}
