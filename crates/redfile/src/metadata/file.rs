//! File metadata, and the end of the file that leads to it.
//!
//! ```text
//! … | FileMetaData | u32 distance from the end of the file to FileMetaData | "RED1" |
//! ```

use pilaster_core::error::AtPosition;
use pilaster_core::{Error, Limits, Result, Source};
use pilaster_encoding::DecodeError;
use pilaster_encoding::checksum::crc32;

use super::column::RowGroup;
use super::schema_element::{KeyValue, SchemaElement};
use super::{missing, parse_key_values, put_key_values};
use crate::thrift::{Reader, Writer, checked_structure, finish_with_long_crc, string, wire};

/// First and last bytes of a file.
pub const MAGIC: [u8; 4] = *b"RED1";
/// Bytes of distance and magic at the end.
const TAIL_BYTES: u64 = 8;
/// The version this crate reads and writes.
pub const VERSION: i32 = 1;
/// Bytes of a sync marker.
pub const MARKER_BYTES: usize = 16;

pub(crate) const FOOTER_PART: &str = "redfile file metadata";
const TAIL_PART: &str = "redfile tail";
const HEAD_PART: &str = "redfile head";

/// Which checksums a file promises.
pub mod checksums {
    /// Every page body.
    pub const PAGE: i32 = 1;
    /// Every page header.
    pub const PAGE_HEADER: i32 = 2;
    /// Every column metadata.
    pub const COLUMN: i32 = 4;
    /// The file metadata.
    pub const FILE: i32 = 8;
    /// All of them.
    pub const ALL: i32 = 15;
}

/// Everything the footer says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FileMetadata {
    /// Version of the format.
    pub version: i32,
    /// The nodes of the schema; the first is the root.
    pub schema: Vec<SchemaElement>,
    /// Rows of all row groups.
    pub num_rows: i64,
    /// The row groups.
    pub row_groups: Vec<RowGroup>,
    /// What the application says.
    pub key_values: Option<Vec<KeyValue>>,
    /// The program that wrote it.
    pub created_by: Option<String>,
    /// Present if the file has checkpoints.
    pub sync_marker: Option<[u8; MARKER_BYTES]>,
    /// A checkpoint follows every so many row groups.
    pub checkpoint_interval: Option<i32>,
    /// Which checksums every structure has; see [`checksums`].
    pub checksums: Option<i32>,
}

impl FileMetadata {
    /// Whether the file promises these checksums.
    pub(crate) fn promises(&self, bit: i32) -> bool {
        self.checksums.is_some_and(|set| set & bit != 0)
    }

    /// Parses a struct at the start of `bytes`; gives its length too.
    pub(crate) fn parse_at_start(bytes: &[u8]) -> Result<(Self, usize), DecodeError> {
        let mut reader = Reader::strict(bytes);
        let (mut version, mut schema, mut num_rows, mut row_groups) = (None, None, None, None);
        let mut metadata = Self::default();
        let has_crc = checked_structure(&mut reader, 6, |reader, field| {
            match field.id {
                1 => version = Some(reader.i32(field)?),
                2 => schema = Some(reader.list(field, wire::STRUCT, SchemaElement::parse)?),
                3 => num_rows = Some(reader.i64(field)?),
                4 => row_groups = Some(reader.list(field, wire::STRUCT, RowGroup::parse)?),
                5 => metadata.key_values = Some(parse_key_values(reader, field)?),
                7 => metadata.created_by = Some(string(reader, field)?),
                8 => {
                    let marker = reader.binary(field)?;
                    metadata.sync_marker = Some(marker.try_into().map_err(|_| {
                        let expected = format!("a sync marker of {MARKER_BYTES} bytes");
                        DecodeError::new(field.at, expected, marker.len().to_string())
                    })?);
                }
                9 => metadata.checkpoint_interval = Some(reader.i32(field)?),
                10 => metadata.checksums = Some(reader.i32(field)?),
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        metadata.version = version.ok_or_else(|| missing(0, "FileMetaData.version"))?;
        metadata.schema = schema.ok_or_else(|| missing(0, "FileMetaData.schema"))?;
        metadata.num_rows = num_rows.ok_or_else(|| missing(0, "FileMetaData.num_rows"))?;
        metadata.row_groups = row_groups.ok_or_else(|| missing(0, "FileMetaData.row_groups"))?;
        if metadata.promises(checksums::FILE) && !has_crc {
            return Err(DecodeError::new(0, "a checksum of the file metadata, as it promises", "none"));
        }
        metadata.check()?;
        Ok((metadata, reader.position()))
    }

    fn check(&self) -> Result<(), DecodeError> {
        if self.version < 1 {
            return Err(DecodeError::new(0, "a version of 1 or more", self.version.to_string()));
        }
        let sum = self.row_groups.iter().try_fold(0i64, |sum, group| sum.checked_add(group.num_rows));
        if sum != Some(self.num_rows) {
            let found = sum.map_or("more than fit".to_string(), |sum| sum.to_string());
            return Err(DecodeError::new(0, format!("row groups of {} rows in all", self.num_rows), found));
        }
        let replicas =
            self.row_groups.iter().flat_map(|group| &group.columns).filter_map(|c| c.metadata.as_ref());
        if self.promises(checksums::COLUMN) && replicas.into_iter().any(|replica| !replica.has_crc) {
            return Err(DecodeError::new(0, "a checksum of every column metadata, as promised", "none"));
        }
        Ok(())
    }

    /// Appends the struct.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        let mut writer = Writer::new(out);
        writer.i32(1, self.version);
        writer.list(2, wire::STRUCT, &self.schema, SchemaElement::write);
        writer.i64(3, self.num_rows);
        writer.list(4, wire::STRUCT, &self.row_groups, RowGroup::write);
        if let Some(pairs) = &self.key_values {
            put_key_values(&mut writer, 5, pairs);
        }
        if let Some(name) = &self.created_by {
            writer.binary(7, name.as_bytes());
        }
        if let Some(marker) = &self.sync_marker {
            writer.binary(8, marker);
        }
        if let Some(interval) = self.checkpoint_interval {
            writer.i32(9, interval);
        }
        if let Some(set) = self.checksums {
            writer.i32(10, set);
        }
        if self.promises(checksums::FILE) {
            finish_with_long_crc(writer, 6);
        } else {
            writer.finish();
        }
    }

    /// Appends struct, distance and magic: the end of a file.
    pub(crate) fn write_footer(&self, out: &mut Vec<u8>) -> Result<()> {
        let start = out.len();
        self.write(out);
        let distance = (out.len().saturating_sub(start) as u64).saturating_add(TAIL_BYTES);
        let distance = u32::try_from(distance)
            .map_err(|_| Error::invalid(format!("file metadata of {distance} bytes: more than 4 GiB")))?;
        out.extend_from_slice(&distance.to_le_bytes());
        out.extend_from_slice(&MAGIC);
        Ok(())
    }

    /// Parses bytes that are exactly one struct, after looking for its checksum from the end: damage inside can turn a
    /// length so that the parser swallows the checksum.
    pub(crate) fn parse_whole(bytes: &[u8]) -> Result<Self, DecodeError> {
        check_from_end(bytes)?;
        let (metadata, used) = Self::parse_at_start(bytes)?;
        if used != bytes.len() {
            let expected = format!("file metadata of {} bytes", bytes.len());
            return Err(DecodeError::new(used, expected, used.to_string()));
        }
        Ok(metadata)
    }

    /// Reads the footer of a file.
    ///
    /// # Errors
    /// [`pilaster_core::ErrorKind::Corrupt`] if tail or metadata are damaged,
    /// [`pilaster_core::ErrorKind::Unsupported`] if the version is later than [`VERSION`].
    pub fn read(source: &dyn Source, limits: &Limits) -> Result<Self> {
        let (name, size) = (source.name(), source.size());
        let metadata = Self::read_any_version(source, limits)?;
        if metadata.version > VERSION {
            return Err(Error::unsupported(format!("redfile version {}", metadata.version)).at(
                name,
                size,
                FOOTER_PART,
            ));
        }
        Ok(metadata)
    }

    fn read_any_version(source: &dyn Source, limits: &Limits) -> Result<Self> {
        let (name, size) = (source.name(), source.size());
        let least = TAIL_BYTES.saturating_add(5);
        if size < least {
            return Err(
                Error::corrupt(format!("a file of {least} bytes or more"), size).at(name, 0, TAIL_PART)
            );
        }
        let tail_at = size.saturating_sub(TAIL_BYTES);
        let tail = source.read_at(tail_at..size)?;
        let (distance, magic) = match tail.split_first_chunk::<4>() {
            Some((distance, magic)) => (u64::from(u32::from_le_bytes(*distance)), magic),
            None => (0, &[][..]),
        };
        if magic != MAGIC {
            return Err(Error::corrupt(
                "\"RED1\" at the end of the file",
                format!(
                    "\"{}\": no file metadata, or damage to the bytes that lead to it",
                    magic.escape_ascii()
                ),
            )
            .at(name, tail_at.saturating_add(4), TAIL_PART));
        }
        if !(9..=size.saturating_sub(4)).contains(&distance) {
            return Err(Error::corrupt(format!("a distance of 9 to {}", size.saturating_sub(4)), distance)
                .at(name, tail_at, TAIL_PART));
        }
        limits.metadata(distance).at(name, tail_at, TAIL_PART)?;
        let start = size.saturating_sub(distance);
        let bytes = source.read_at(start..tail_at)?;
        match Self::parse_whole(&bytes) {
            Ok(metadata) => Ok(metadata),
            // A later version may have changed anything but the first field.
            Err(error) => match later_version(&bytes) {
                Some(version) => {
                    Err(Error::unsupported(format!("redfile version {version}")).at(name, start, FOOTER_PART))
                }
                None => Err::<Self, _>(error).at(name, start, FOOTER_PART),
            },
        }
    }
}

/// The version, if it is the first field and later than ours, and the checksum is right.
fn later_version(bytes: &[u8]) -> Option<i32> {
    check_from_end(bytes).ok()?;
    let mut version = None;
    let _ = Reader::strict(bytes).structure(|reader, field| {
        if field.id == 1 {
            version = Some(reader.i32(field)?);
        }
        Err(DecodeError::new(0, "no more", "the first field"))
    });
    version.filter(|version| *version > VERSION)
}

/// If the bytes end like a struct with a checksum, that checksum must be right.
fn check_from_end(bytes: &[u8]) -> Result<(), DecodeError> {
    let Some((0, rest)) = bytes.split_last().map(|(last, rest)| (*last, rest)) else { return Ok(()) };
    // The last byte of the checksum's varint is below 0x80, those before it are not; the header of field 6 stands before.
    let Some((0..0x80, before)) = rest.split_last().map(|(last, before)| (*last, before)) else {
        return Ok(());
    };
    let more = before.iter().rev().take(4).take_while(|byte| **byte >= 0x80).count();
    let (covered, number) = rest.split_at(before.len().saturating_sub(more));
    let Some(covered) = covered.strip_suffix(&[0x05, 0x0c]) else { return Ok(()) };
    let (stored, computed) = (Reader::strict(number).i32_value()?.cast_unsigned(), crc32(covered));
    if stored != computed {
        let expected = format!("CRC-32 {stored:08x}, as the file metadata says");
        return Err(DecodeError::new(0, expected, format!("{computed:08x}")));
    }
    Ok(())
}

/// Checks the magic at the head of a file.
pub(crate) fn check_head(source: &dyn Source) -> Result<()> {
    let size = source.size().min(4);
    let head = source.read_at(0..size)?;
    if *head == MAGIC {
        return Ok(());
    }
    Err(Error::corrupt("\"RED1\"", format!("\"{}\"", head.escape_ascii())).at(source.name(), 0, HEAD_PART))
}
