//! Parts of Thrift structs as they stand in a data file, to be put into other files unchanged.

use bytes::Bytes;
use pilaster_core::error::AtPosition;
use pilaster_core::{Error, Limits, Location, Result, SourceRef};
use pilaster_encoding::DecodeError;
use pilaster_encoding::thrift::{Field, Reader, wire};

use super::super::open::open_file;
use crate::messages::{BlockletIndex, Parsed, required};

const HEADER_PART: &str = "carbondata header";
const FOOTER_PART: &str = "carbondata footer";

/// What a data file says of itself, each struct as its bytes.
#[derive(Debug)]
pub(super) struct RawFile {
    pub columns: Vec<Vec<u8>>,
    pub time_stamp: i64,
    pub segment_info: Vec<u8>,
    pub rows: i64,
    pub indexes: Vec<Vec<u8>>,
    pub blocklets: Vec<Vec<u8>>,
    pub is_sorted: Option<bool>,
    pub footer_offset: i64,
    pub size: u64,
}

/// What the footer of a file of version 1 or 2 says, each struct that is copied as its bytes.
#[derive(Debug)]
pub(super) struct RawLegacy {
    pub version: i32,
    pub columns: Vec<Vec<u8>>,
    pub segment_info: Vec<u8>,
    pub rows: i64,
    pub indexes: Vec<BlockletIndex>,
    pub footer_offset: i64,
}

/// Reads header and footer of a data file of version 3.
pub(super) fn read(path: &Location, limits: &Limits) -> Result<RawFile> {
    let source = open_file(path)?;
    let (columns, time_stamp) = header(&source, limits)?;
    let (offset, bytes) = footer_bytes(&source, limits)?;
    let mut file = footer(&bytes).at(source.name(), offset, FOOTER_PART)?;
    (file.columns, file.time_stamp) = (columns, time_stamp);
    file.footer_offset = i64::try_from(offset).unwrap_or(i64::MAX);
    file.size = source.size();
    Ok(file)
}

/// Reads the footer of a data file of version 1 or 2.
pub(super) fn read_legacy(path: &Location, limits: &Limits) -> Result<RawLegacy> {
    let source = open_file(path)?;
    let (offset, bytes) = footer_bytes(&source, limits)?;
    let mut file = legacy_footer(&bytes).at(source.name(), offset, FOOTER_PART)?;
    file.footer_offset = i64::try_from(offset).unwrap_or(i64::MAX);
    Ok(file)
}

/// The bytes of a footer, and where it begins: the last 8 bytes of a file say so, in every version.
fn footer_bytes(source: &SourceRef, limits: &Limits) -> Result<(u64, Bytes)> {
    let end = source.size().saturating_sub(8);
    let trailer = source.read_at(end..source.size())?;
    let offset = trailer.first_chunk().map_or(u64::MAX, |bytes| u64::from_be_bytes(*bytes));
    if offset >= end {
        let error = Error::corrupt(format!("an offset below {end}"), offset);
        return Err(error.at(source.name(), end, FOOTER_PART));
    }
    limits.metadata(end.saturating_sub(offset)).at(source.name(), offset, FOOTER_PART)?;
    Ok((offset, source.read_at(offset..end)?))
}

/// The columns of a data file, each as its bytes: of a header, or of a footer of versions 1 and 2.
pub(super) fn columns(path: &Location, limits: &Limits) -> Result<Vec<Vec<u8>>> {
    let columns = header(&open_file(path)?, limits).map(|(columns, _)| columns);
    columns.or_else(|error| read_legacy(path, limits).map(|file| file.columns).map_err(|_| error))
}

fn header(source: &SourceRef, limits: &Limits) -> Result<(Vec<Vec<u8>>, i64)> {
    let bytes = source.read_at(0..source.size().min(limits.metadata_bytes))?;
    let parse = || -> Parsed<_> {
        let (mut columns, mut time) = (None, 0);
        Reader::new(&bytes).structure(|reader, field| {
            match field.id {
                2 => columns = Some(structs(reader, field)?),
                4 => time = reader.i64(field)?,
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok((required(columns, 0, "a header with columns")?, time))
    };
    parse().at(source.name(), 0, HEADER_PART)
}

fn footer(bytes: &[u8]) -> Parsed<RawFile> {
    let (mut rows, mut segment_info, mut is_sorted) = (None, Vec::new(), None);
    let (mut indexes, mut blocklets) = (Vec::new(), Vec::new());
    Reader::new(bytes).structure(|reader, field| {
        match field.id {
            1 => rows = Some(reader.i64(field)?),
            2 => segment_info = reader.structure_field(field, |reader| one(reader))?,
            3 => indexes = structs(reader, field)?,
            4 => blocklets = structs(reader, field)?,
            6 => is_sorted = Some(reader.bool(field)?),
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    Ok(RawFile {
        columns: Vec::new(),
        time_stamp: 0,
        segment_info,
        rows: required(rows, 0, "a footer with a number of rows")?,
        indexes,
        blocklets,
        is_sorted,
        footer_offset: 0,
        size: 0,
    })
}

fn legacy_footer(bytes: &Bytes) -> Parsed<RawLegacy> {
    let (mut version, mut rows, mut columns, mut segment_info) = (None, None, None, Vec::new());
    let mut indexes = Vec::new();
    Reader::new(bytes).structure(|reader, field| {
        match field.id {
            1 => version = Some(reader.i32(field)?),
            2 => rows = Some(reader.i64(field)?),
            3 => columns = Some(structs(reader, field)?),
            4 => segment_info = reader.structure_field(field, |reader| one(reader))?,
            5 => {
                let index = |reader: &mut Reader<'_>| BlockletIndex::parse_legacy(bytes, reader);
                indexes = reader.list(field, wire::STRUCT, index)?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    let version = required(version, 0, "a footer with a version")?;
    if !(0..=2).contains(&version) {
        return Err(DecodeError::new(0, "version 0, 1 or 2", version.to_string()));
    }
    Ok(RawLegacy {
        version,
        columns: required(columns, 0, "a footer with columns")?,
        segment_info,
        rows: required(rows, 0, "a footer with a number of rows")?,
        indexes,
        footer_offset: 0,
    })
}

fn structs(reader: &mut Reader<'_>, field: Field) -> Parsed<Vec<Vec<u8>>> {
    reader.list(field, wire::STRUCT, |reader| one(reader))
}

fn one(reader: &mut Reader<'_>) -> Parsed<Vec<u8>> {
    let start = reader.position();
    reader.structure(|_, _| Ok(false))?;
    Ok(reader.bytes_between(start, reader.position()).to_vec())
}

/// A footer as a fuzz target sees it.
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) fn fuzz(bytes: &[u8]) {
    if let Ok(file) = footer(bytes) {
        let copied: usize = file.indexes.iter().chain(&file.blocklets).map(Vec::len).sum();
        assert!(copied <= bytes.len(), "no more bytes than there are");
    }
    if let Ok(file) = legacy_footer(&Bytes::copy_from_slice(bytes)) {
        let copied: usize = file.columns.iter().map(Vec::len).sum();
        assert!(copied <= bytes.len(), "no more bytes than there are");
    }
}
