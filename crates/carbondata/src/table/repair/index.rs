//! Index files out of their data files: of the footers, or of the blocklets of a stream.

use std::collections::HashSet;

use pilaster_core::{Error, Limits, Location, Result};
use pilaster_encoding::thrift::{Writer, wire};

use super::super::lost;
use super::super::names::{bucket, loose_name, part_number};
use super::super::open::{open_file, sorted_names};
use super::super::opener::by_file;
use super::thrift::{RawFile, read, read_legacy};
use super::{legacy_index, stream_index};
use crate::file::IndexFile;
use crate::messages::write_merged;

/// The data files that the index file `name` listed: those of its own name, or all that no other index lists.
pub(super) fn data_files(
    folder: &Location,
    segment: &str,
    name: &str,
    limits: &Limits,
) -> Result<Vec<String>> {
    let mut on_disk: Vec<_> = if segment.is_empty() {
        sorted_names(folder)?.into_iter().filter(|name| name.ends_with(".carbondata")).collect()
    } else {
        lost::data_files(folder, segment)?
    };
    // A task numbers its files, and engines of versions 1 and 2 go by their order alone.
    on_disk.sort_by_cached_key(|name| part_number(name));
    if name.ends_with(".carbonindexmerge") {
        return Ok(on_disk);
    }
    let own: Vec<_> =
        on_disk.iter().filter(|data| loose_name(data).as_deref() == Some(name)).cloned().collect();
    if !own.is_empty() {
        return Ok(own);
    }
    let mut listed = HashSet::new();
    let others =
        sorted_names(folder)?.into_iter().filter(|other| other.ends_with(".carbonindex") && other != name);
    for other in others {
        if let Ok(index) = open_file(&folder.child(other)).and_then(|source| IndexFile::open(&source, limits))
        {
            listed.extend(by_file(&index)?.into_iter().map(|(name, _)| name.to_string()));
        }
    }
    Ok(on_disk.into_iter().filter(|data| !listed.contains(data)).collect())
}

/// The bytes of the index file `name` over data files of its folder.
pub(super) fn index(folder: &Location, name: &str, files: &[String], limits: &Limits) -> Result<Vec<u8>> {
    let place = folder.child(name).to_string();
    if files.is_empty() {
        return Err(Error::corrupt("data files that the index could list", "none").at(&place, 0, ""));
    }
    if !name.ends_with(".carbonindexmerge") {
        return loose(folder, files, limits);
    }
    let mut names: Vec<String> = Vec::new();
    let mut groups: Vec<Vec<String>> = Vec::new();
    for file in files {
        let index_name = loose_name(file).unwrap_or_else(|| format!("{file}.carbonindex"));
        match names.iter().position(|known| *known == index_name) {
            Some(place) => groups.get_mut(place).map(|group| group.push(file.clone())).unwrap_or_default(),
            None => {
                names.push(index_name);
                groups.push(vec![file.clone()]);
            }
        }
    }
    let contents = groups.iter().map(|files| loose(folder, files, limits)).collect::<Result<Vec<_>>>()?;
    let files: Vec<_> = names.into_iter().zip(contents).collect();
    Ok(write_merged(&files))
}

fn loose(folder: &Location, files: &[String], limits: &Limits) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    if let Some(first) = files.first().map(|name| folder.child(name)) {
        if stream_index::is_stream(&first, limits)? {
            return stream_index::index(folder, files, limits);
        }
        if read(&first, limits).is_err() && read_legacy(&first, limits).is_ok() {
            return legacy_index::index(folder, files, limits);
        }
    }
    for (number, name) in files.iter().enumerate() {
        let file = read(&folder.child(name), limits)?;
        if number == 0 {
            header(name, &file, &mut out);
        }
        for (index, blocklet) in file.indexes.iter().zip(&file.blocklets) {
            record(name, &file, index, blocklet, &mut out);
        }
    }
    Ok(out)
}

fn header(name: &str, file: &RawFile, out: &mut Vec<u8>) {
    let mut writer = Writer::new(out);
    writer.i32(1, 3);
    writer.list(2, wire::STRUCT, &file.columns, |column, out| out.extend_from_slice(column));
    writer.structure(3, |out| out.extend_from_slice(&file.segment_info));
    writer.i32(4, bucket(name).unwrap_or(0));
    writer.i64(5, file.time_stamp);
    if let Some(is_sorted) = file.is_sorted {
        writer.bool(6, is_sorted);
    }
    writer.finish();
}

fn record(name: &str, file: &RawFile, index: &[u8], blocklet: &[u8], out: &mut Vec<u8>) {
    let mut writer = Writer::new(out);
    writer.i64(1, file.rows);
    writer.text(2, name);
    writer.i64(3, file.footer_offset);
    writer.structure(4, |out| out.extend_from_slice(index));
    writer.structure(5, |out| out.extend_from_slice(blocklet));
    writer.i64(6, i64::try_from(file.size).unwrap_or(i64::MAX));
    writer.finish();
}
