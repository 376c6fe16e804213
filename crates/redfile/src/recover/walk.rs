//! File metadata out of pages and column metadata, where the footer is gone and there are no checkpoints.
//!
//! Structures tell themselves apart by their first bytes: `RCK1` a block; `15 v 15` a page header; `15 v 19 x5` column
//! metadata; `15 v 19 xc` file metadata, v being a varint. Column metadata says nothing of repetition, so the schema has to come
//! from elsewhere, unless the file metadata itself is met. The walk ends at the first damaged structure.

use pilaster_core::{Limits, Result, SourceRef};
use pilaster_encoding::varint;

use super::Recovery;
use super::block;
use super::report::{RecoveryReport, RecoverySource, Rest};
use crate::metadata::{
    ColumnChunk, ColumnMetadata, FileMetadata, MAGIC, PageHeader, PageType, RowGroup, VERSION, checksums,
};
use crate::schema::RedfileSchema;

/// Bytes in which most structures fit.
const STRUCTURE_BYTES: u64 = 4 << 10;
/// How much file metadata is looked at to see whether it is whole.
const METADATA_BYTES: u64 = 64 << 20;

enum Structure {
    Block(u64),
    Page(Box<PageHeader>, u64),
    Column(Box<ColumnMetadata>, u64),
    File(Box<FileMetadata>, u64),
}

/// Walks from the first structure on.
pub(super) fn walk(source: &SourceRef, schema: Option<&RedfileSchema>, limits: &Limits) -> Result<Recovery> {
    let mut walker = Walker {
        source,
        limits,
        schema,
        at: MAGIC.len() as u64,
        used: MAGIC.len() as u64,
        chunk: OpenChunk::default(),
        columns: Vec::new(),
        groups: Vec::new(),
        has_all: [true; 3],
    };
    let stop = loop {
        match walker.step()? {
            Step::On => {}
            Step::Stop(why) => break why,
            Step::Found(metadata) => {
                let mut report = RecoveryReport::recovered(
                    &metadata,
                    RecoverySource::Walk,
                    walker.at,
                    source.size(),
                    Rest::Tail,
                );
                report.stop = Some("file metadata".to_string());
                return Ok(Recovery { metadata: Some(*metadata), report });
            }
        }
    };
    walker.finish(stop)
}

enum Step {
    On,
    Stop(&'static str),
    Found(Box<FileMetadata>),
}

/// The pages since the last column metadata.
#[derive(Default)]
struct OpenChunk {
    start: Option<u64>,
    /// Records that begin in them; `None` once a page does not tell.
    rows: Option<u64>,
    entries: u64,
}

struct Walker<'a> {
    source: &'a SourceRef,
    limits: &'a Limits,
    schema: Option<&'a RedfileSchema>,
    at: u64,
    /// End of the last complete row group.
    used: u64,
    chunk: OpenChunk,
    /// Chunks of the row group that is being put together, and their rows.
    columns: Vec<(ColumnChunk, Option<u64>)>,
    groups: Vec<RowGroup>,
    /// Whether every page, page header and column metadata had a checksum so far.
    has_all: [bool; 3],
}

impl Walker<'_> {
    fn step(&mut self) -> Result<Step> {
        if self.at >= self.source.size() {
            return Ok(Step::Stop("end of file"));
        }
        match self.structure()? {
            Err(why) => Ok(Step::Stop(why)),
            Ok(Structure::Block(end)) => {
                self.at = end;
                Ok(Step::On)
            }
            Ok(Structure::File(metadata, end)) => {
                self.at = end;
                Ok(Step::Found(metadata))
            }
            Ok(Structure::Page(header, length)) => Ok(self.page(&header, length)),
            Ok(Structure::Column(metadata, end)) => {
                let offset = self.at;
                self.at = end;
                self.column(*metadata, offset);
                Ok(Step::On)
            }
        }
    }

    /// The structure here; the error says in words what is in its place.
    fn structure(&self) -> Result<std::result::Result<Structure, &'static str>> {
        let left = self.source.size().saturating_sub(self.at);
        let mut length = STRUCTURE_BYTES.min(left);
        loop {
            let bytes = self.source.read_at(self.at..self.at.saturating_add(length))?;
            if bytes.starts_with(&block::TAG) {
                let found = block::read(self.source.as_ref(), self.at, self.limits)?;
                return Ok(found.map(|block| Structure::Block(block.end)).ok_or("damaged block"));
            }
            let end = |used: usize| self.at.saturating_add(used as u64);
            let parsed = match kind_of(&bytes) {
                None => return Ok(Err("unknown bytes")),
                Some(Guess::Page) => PageHeader::parse(&bytes)
                    .map(|(header, used)| Structure::Page(Box::new(header), used as u64)),
                Some(Guess::Column) => ColumnMetadata::parse_at_start(&bytes)
                    .map(|(metadata, used)| Structure::Column(Box::new(metadata), end(used))),
                Some(Guess::File) => FileMetadata::parse_at_start(&bytes)
                    .map(|(metadata, used)| Structure::File(Box::new(metadata), end(used))),
            };
            let most = left.min(self.limits.metadata_bytes);
            match parsed {
                Ok(structure) => return Ok(Ok(structure)),
                // It may be longer than what was read.
                Err(_) if length < most => length = length.saturating_mul(16).min(most),
                Err(_) => return Ok(Err("damaged structure")),
            }
        }
    }

    fn page(&mut self, header: &PageHeader, length: u64) -> Step {
        let end = self.at.saturating_add(length).saturating_add(u64::from(header.compressed_size));
        if end > self.source.size() {
            return Step::Stop("page past end");
        }
        let [page, page_header, _] = &mut self.has_all;
        *page &= header.crc.is_some();
        *page_header &= header.has_header_crc;
        let start = *self.chunk.start.get_or_insert(self.at);
        if start == self.at {
            self.chunk.rows = Some(0);
        }
        if header.page_type == PageType::Data
            && let Some(data) = &header.data
        {
            let is_flat = self.leaf().is_some_and(|leaf| leaf.max_rep == 0);
            let rows = data.num_rows.or(is_flat.then_some(data.num_values)).map(u64::from);
            self.chunk.rows = self.chunk.rows.zip(rows).and_then(|(sum, rows)| sum.checked_add(rows));
            self.chunk.entries = self.chunk.entries.saturating_add(u64::from(data.num_values));
        }
        self.at = end;
        Step::On
    }

    /// The column the next chunk should be of.
    fn leaf(&self) -> Option<&crate::schema::Leaf> {
        self.schema?.leaves().get(self.columns.len())
    }

    fn column(&mut self, metadata: ColumnMetadata, offset: u64) {
        let [_, _, column] = &mut self.has_all;
        *column &= metadata.has_crc;
        let chunk = std::mem::take(&mut self.chunk);
        let is_right = |leaf: &crate::schema::Leaf| {
            leaf.physical_type == metadata.physical_type
                && leaf.path == metadata.path
                && u64::try_from(metadata.start()).ok() == chunk.start
                && u64::try_from(metadata.num_values) == Ok(chunk.entries)
        };
        if !self.leaf().is_some_and(is_right) {
            // Another column than the schema asks for: a run begins anew.
            self.columns.clear();
            if !self.leaf().is_some_and(is_right) {
                return;
            }
        }
        let file_offset = i64::try_from(offset).unwrap_or(i64::MAX);
        let described = ColumnChunk { file_path: None, file_offset, metadata: Some(metadata) };
        self.columns.push((described, chunk.rows));
        if self.columns.len() == self.schema.map_or(0, |schema| schema.leaves().len()) {
            self.row_group();
        }
    }

    fn row_group(&mut self) {
        let columns = std::mem::take(&mut self.columns);
        let rows = columns.first().and_then(|(_, rows)| *rows).filter(|rows| *rows > 0);
        let is_one = columns.iter().all(|(_, other)| *other == rows);
        let Some(rows) = rows.filter(|_| is_one).and_then(|rows| i64::try_from(rows).ok()) else { return };
        let columns: Vec<ColumnChunk> = columns.into_iter().map(|(column, _)| column).collect();
        let sum = |pick: fn(&ColumnMetadata) -> i64| {
            columns
                .iter()
                .filter_map(|column| column.metadata.as_ref())
                .fold(0i64, |sum, m| sum.saturating_add(pick(m)))
        };
        let group = RowGroup {
            total_byte_size: sum(|metadata| metadata.total_uncompressed_size),
            total_compressed_size: Some(sum(|metadata| metadata.total_compressed_size)),
            num_rows: rows,
            file_offset: columns
                .first()
                .and_then(|column| column.metadata.as_ref())
                .map(ColumnMetadata::start),
            columns,
        };
        self.groups.push(group);
        self.used = self.at;
    }

    fn finish(self, stop: &str) -> Result<Recovery> {
        let stop = Some(stop.to_string());
        let Some(schema) = self.schema.filter(|_| !self.groups.is_empty()) else {
            let report = RecoveryReport { bytes_used: Some(self.used), stop, ..RecoveryReport::lost() };
            return Ok(Recovery { metadata: None, report });
        };
        let [page, header, column] = self.has_all;
        let promised =
            [(page, checksums::PAGE), (header, checksums::PAGE_HEADER), (column, checksums::COLUMN)];
        let set = promised.iter().filter(|(all, _)| *all).fold(0, |set, (_, bit)| set | bit);
        let metadata = FileMetadata {
            version: VERSION,
            schema: schema.elements().to_vec(),
            num_rows: self.groups.iter().fold(0i64, |sum, group| sum.saturating_add(group.num_rows)),
            row_groups: self.groups,
            checksums: (set != 0).then_some(set),
            ..FileMetadata::default()
        };
        let rest = rest_at(self.source, self.used)?;
        let mut report =
            RecoveryReport::recovered(&metadata, RecoverySource::Walk, self.used, self.source.size(), rest);
        report.stop = stop;
        Ok(Recovery { metadata: Some(metadata), report })
    }
}

enum Guess {
    Page,
    Column,
    File,
}

/// What begins at `at`, where the useful part of a file ends.
pub(super) fn rest_at(source: &SourceRef, at: u64) -> Result<Rest> {
    let bytes = source.read_at(at..at.saturating_add(STRUCTURE_BYTES).min(source.size()).max(at))?;
    Ok(match kind_of(&bytes) {
        Some(Guess::File) if is_whole_metadata(source, at)? => Rest::Tail,
        Some(Guess::File) => Rest::Footer,
        Some(Guess::Page) => Rest::RowGroup,
        Some(Guess::Column) | None => Rest::Unknown,
    })
}

/// Whether file metadata that is not damaged begins here, so that only what leads to it can be.
fn is_whole_metadata(source: &SourceRef, at: u64) -> Result<bool> {
    let end = at.saturating_add(METADATA_BYTES).min(source.size());
    Ok(FileMetadata::parse_at_start(&source.read_at(at..end)?).is_ok())
}

/// What the first bytes of a structure say it is.
fn kind_of(bytes: &[u8]) -> Option<Guess> {
    let rest = bytes.strip_prefix(&[0x15])?;
    let mut pos = 0;
    varint::read_u64(rest, &mut pos).ok()?;
    match rest.get(pos..)? {
        [0x15, ..] => Some(Guess::Page),
        [0x19, list, ..] if list & 15 == 5 => Some(Guess::Column),
        [0x19, list, ..] if list & 15 == 12 => Some(Guess::File),
        _ => None,
    }
}
