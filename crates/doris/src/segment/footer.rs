//! What the footer of a segment says.
//!
//! ```text
//! | pages | V3: ColumnMetaPB, one after another | SegmentFooterPB | u32 length | u32 CRC-32C | "D0R1" |
//! ```
//!
//! See `docs/formats/doris-segment.md`, "Footer". Two layouts differ in where the columns are described: inside the footer
//! (V2) or in a region before it (V3).

use bytes::Bytes;
use pilaster_core::error::AtPosition;
use pilaster_core::{Error, Limits, Result, Source};
use pilaster_encoding::checksum::check_crc32c;

use super::column_meta::{ColumnMeta, IndexedColumnMeta};
use super::page::PagePointer;
use crate::messages::{self, PrimaryKeyIndexPb, SegmentFooterPb, required};

/// The last bytes of every segment.
pub const MAGIC: &[u8; 4] = b"D0R1";
/// Length, checksum and magic.
pub(crate) const TAIL_BYTES: u64 = 12;
/// `SegmentFooterPB.version` of a file whose columns are described outside the footer.
pub(crate) const VERSION_EXTERNAL_COLUMNS: u32 = 2;
pub(crate) const FOOTER_PART: &str = "segment footer";
const REGION_PART: &str = "segment column metadata";
/// More columns, with those inside of others, are not believed: a described column takes many times its bytes.
const MOST_COLUMNS: usize = 1 << 16;
/// `SegmentFooterPB.columns` and `ColumnMetaPB.children_columns`.
const COLUMNS_FIELD: u64 = 2;
const CHILDREN_FIELD: u64 = 10;

/// Where the columns are described.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub enum StorageFormat {
    /// In the footer.
    V2,
    /// In a region before the footer.
    V3,
}

/// Everything the footer says, and the column metadata of a V3 file.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SegmentMetadata {
    /// Where the columns are described.
    pub format: StorageFormat,
    /// Rows of the segment.
    pub num_rows: u64,
    /// Columns in file order, VARIANT subcolumns too.
    pub columns: Vec<ColumnMeta>,
    /// The page of the short key index.
    pub short_key_page: Option<PagePointer>,
    /// The primary key index of a merge-on-write table.
    pub primary_key: Option<PrimaryKeyMeta>,
    /// Key/value pairs of the file.
    pub pairs: Vec<(String, Vec<u8>)>,
    /// Where pages end.
    pub pages_end: u64,
    /// Where the footer message begins.
    pub footer_start: u64,
    /// Bytes of the file.
    pub file_bytes: u64,
}

/// The primary key index of a merge-on-write table.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PrimaryKeyMeta {
    pub(crate) index: IndexedColumnMeta,
    pub(crate) bloom: Option<IndexedColumnMeta>,
    /// First key, without sequence and row id.
    pub min_key: Vec<u8>,
    /// Last key, without sequence and row id.
    pub max_key: Vec<u8>,
}

impl SegmentMetadata {
    /// Reads the end of a file.
    pub(crate) fn read(source: &dyn Source, verify_checksums: bool, limits: &Limits) -> Result<Self> {
        let size = source.size();
        let name = source.name();
        if size < TAIL_BYTES {
            return Err(Error::corrupt("at least 12 bytes", format!("{size} bytes")).at(
                name,
                0,
                FOOTER_PART,
            ));
        }
        let tail_start = size.saturating_sub(TAIL_BYTES);
        let tail = source.read_at(tail_start..size)?;
        let (length, checksum) = parse_tail(&tail).at(name, tail_start, FOOTER_PART)?;
        let footer_start =
            tail_start.checked_sub(u64::from(length)).ok_or_else(|| {
                Error::corrupt(format!("a footer of at most {tail_start} bytes"), format!("{length} bytes"))
                    .at(name, tail_start, FOOTER_PART)
            })?;
        limits.metadata(u64::from(length)).at(name, footer_start, FOOTER_PART)?;
        let message = source.read_at(footer_start..tail_start)?;
        if verify_checksums {
            check_crc32c(&message, checksum).at(name, footer_start, FOOTER_PART)?;
        }
        let columns =
            messages::count_nested(&message, COLUMNS_FIELD, CHILDREN_FIELD, MOST_COLUMNS.saturating_add(1));
        if columns > MOST_COLUMNS {
            return Err(Error::corrupt(format!("at most {MOST_COLUMNS} columns"), "more").at(
                name,
                footer_start,
                FOOTER_PART,
            ));
        }
        let footer: SegmentFooterPb =
            messages::parse(&message, "SegmentFooterPB").at(name, footer_start, FOOTER_PART)?;
        let format = match footer.version.unwrap_or(1) {
            0 | 1 => StorageFormat::V2,
            VERSION_EXTERNAL_COLUMNS => StorageFormat::V3,
            other => {
                let feature = format!("segment footer version {other}");
                return Err(Error::unsupported(feature).at(name, footer_start, FOOTER_PART));
            }
        };
        let mut metadata = Self {
            format,
            num_rows: u64::from(footer.num_rows.unwrap_or(0)),
            columns: Vec::new(),
            short_key_page: None,
            primary_key: None,
            pairs: Vec::new(),
            pages_end: footer_start,
            footer_start,
            file_bytes: size,
        };
        metadata.fill(footer, source, limits).at(name, footer_start, FOOTER_PART)?;
        Ok(metadata)
    }

    /// How many paths of the VARIANT column number `root` have columns of their own.
    pub(crate) fn path_count(&self, root: usize) -> u64 {
        let id = self.columns.get(root).map(|root| root.unique_id);
        let is_part = |column: &&ColumnMeta| column.path.as_ref().is_some_and(|path| path.parent == id);
        self.columns.iter().filter(is_part).count() as u64
    }

    fn fill(&mut self, footer: SegmentFooterPb, source: &dyn Source, limits: &Limits) -> Result<()> {
        self.short_key_page = footer.short_key_index_page.map(PagePointer::parse).transpose()?;
        self.primary_key = footer.primary_key_index_meta.as_ref().map(parse_primary_key).transpose()?;
        for pair in &footer.file_meta_datas {
            let key = String::from_utf8_lossy(pair.key.as_deref().unwrap_or_default()).into_owned();
            self.pairs.push((key, pair.value.clone().unwrap_or_default()));
        }
        if self.format == StorageFormat::V2 {
            for message in &footer.columns {
                self.columns.push(ColumnMeta::parse(message, self.num_rows, limits)?);
            }
            return Ok(());
        }
        let start = required(footer.col_meta_region_start, "col_meta_region_start")?;
        if start == 0 || footer.column_meta_entries.is_empty() {
            return Err(Error::corrupt("a region of column metadata", "none"));
        }
        let mut at = start;
        let mut ranges = Vec::with_capacity(footer.column_meta_entries.len());
        for entry in &footer.column_meta_entries {
            let length = entry.length.unwrap_or(0);
            let end = at.saturating_add(u64::from(length));
            if length == 0 || end > self.footer_start {
                return Err(Error::corrupt(
                    format!("column metadata inside bytes {start}..{}", self.footer_start),
                    format!("{length} bytes at {at}"),
                ));
            }
            ranges.push(at..end);
            at = end;
        }
        limits.metadata(at.saturating_sub(start))?;
        self.pages_end = start;
        for ((bytes, range), entry) in
            source.read_many(&ranges)?.into_iter().zip(ranges).zip(&footer.column_meta_entries)
        {
            let column = messages::parse(&bytes, "ColumnMetaPB")
                .and_then(|message| ColumnMeta::parse(&message, self.num_rows, limits))
                .and_then(|column| match entry.unique_id {
                    Some(expected) if expected != column.unique_id => {
                        Err(Error::corrupt(format!("the column with unique id {expected}"), column.unique_id))
                    }
                    _ => Ok(column),
                });
            self.columns.push(column.at(source.name(), range.start, REGION_PART)?);
        }
        Ok(())
    }
}

fn parse_primary_key(message: &PrimaryKeyIndexPb) -> Result<PrimaryKeyMeta> {
    let index = required(message.primary_key_index.as_ref(), "primary_key_index")?;
    let bloom = message
        .bloom_filter_index
        .as_ref()
        .and_then(|index| index.bloom_filter_index.as_ref())
        .and_then(|bloom| bloom.bloom_filter.as_ref())
        .map(IndexedColumnMeta::parse)
        .transpose()?;
    Ok(PrimaryKeyMeta {
        index: IndexedColumnMeta::parse(index)?,
        bloom,
        min_key: message.min_key.clone().unwrap_or_default(),
        max_key: message.max_key.clone().unwrap_or_default(),
    })
}

/// Length and checksum of the footer message.
fn parse_tail(tail: &Bytes) -> Result<(u32, u32)> {
    let word = |at: usize| {
        tail.get(at..).and_then(|rest| rest.first_chunk::<4>()).map_or(0, |four| u32::from_le_bytes(*four))
    };
    let magic = tail.get(8..).unwrap_or_default();
    if magic != MAGIC {
        return Err(Error::corrupt("\"D0R1\" as the last bytes", format!("\"{}\"", magic.escape_ascii())));
    }
    Ok((word(0), word(4)))
}
