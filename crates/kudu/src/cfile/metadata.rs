//! What the header and the footer of a CFile say.
//!
//! ```text
//! header: | magic, 8 | u32 L | CFileHeaderPB, L | CRC-32C of all before, 4, if checksums |
//! footer: | CRC-32C of all after, 4, if checksums | CFileFooterPB, F | magic, 8 | u32 F |
//! ```
//!
//! Reading starts with the last 12 bytes. The footer message must be parsed before it can be checked, because it says
//! itself whether there are checksums. See `docs/formats/kudu-cfile.md`, "Header and footer".

use std::ops::Range;

use bytes::Bytes;
use pilaster_core::error::AtPosition;
use pilaster_core::{Error, Limits, Result, Source};
use pilaster_encoding::checksum::check_crc32c;
use prost::Message;

use super::file::CFileReaderOptions;
use super::proto::{self, BTreeInfoPb, BlockPointerPb, FooterPb, HeaderPb, MetadataPairPb, required};
use super::types::{Compression, Encoding, KuduType};

/// First and last magic of a version 1 file (Kudu up to 1.2).
pub const MAGIC_V1: &[u8; 8] = b"kuducfil";
/// First and last magic of a version 2 file (Kudu from 1.3).
pub const MAGIC_V2: &[u8; 8] = b"kuducfl2";

/// Kudu refuses longer header and footer messages.
pub(crate) const MAX_MESSAGE_BYTES: u32 = 65_536;
/// Magic and length, at both ends of a file.
pub(crate) const MAGIC_AND_LENGTH_BYTES: u64 = 12;
/// Bytes of a checksum.
pub(crate) const CHECKSUM_BYTES: u64 = 4;
/// Footer, roots of the indexes and a dictionary of some entries fit in this, so that one read finds them.
pub(crate) const TAIL_BYTES: u64 = 4 << 10;

pub(crate) const FEATURE_CHECKSUM: u32 = 1;
pub(crate) const FEATURE_ARRAY: u32 = 2;

/// Metadata key of the encoded key of the first row.
pub const MIN_KEY: &str = "min_key";
/// Metadata key of the encoded key of the last row.
pub const MAX_KEY: &str = "max_key";
/// Metadata key that only delta files have.
pub const DELTA_STATISTICS: &str = "deltafilestats";

/// Which generation of the format a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// `kuducfil`: no checksums, 8-byte compression headers.
    V1,
    /// `kuducfl2`: optional checksums, 4-byte compression headers.
    V2,
}

impl Version {
    pub(crate) fn magic(self) -> &'static [u8; 8] {
        match self {
            Self::V1 => MAGIC_V1,
            Self::V2 => MAGIC_V2,
        }
    }

    /// The version whose magic these bytes begin with.
    pub fn of(bytes: &[u8]) -> Option<Self> {
        match bytes.first_chunk::<8>()? {
            MAGIC_V1 => Some(Self::V1),
            MAGIC_V2 => Some(Self::V2),
            _ => None,
        }
    }
}

/// Where a block lies: offset from the start of the CFile, and size with its checksum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct BlockPointer {
    /// Offset from the start of the CFile.
    pub offset: u64,
    /// Size in bytes, checksum included.
    pub size: u32,
}

impl BlockPointer {
    pub(crate) fn end(self) -> u64 {
        self.offset.saturating_add(u64::from(self.size))
    }

    /// The bytes of the block.
    pub(crate) fn range(self) -> Range<u64> {
        self.offset..self.end()
    }

    fn parse(message: BlockPointerPb) -> Result<Self> {
        let (offset, size) = (required(message.offset, "offset")?, required(message.size, "size")?);
        match (u64::try_from(offset), u32::try_from(size)) {
            (Ok(offset), Ok(size)) => Ok(Self { offset, size }),
            _ => Err(Error::corrupt("a block pointer", format!("offset {offset}, size {size}"))),
        }
    }
}

/// Everything the header and the footer say.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CFileMetadata {
    /// Generation of the format.
    pub version: Version,
    /// Type of the values, or of the elements of an array column.
    pub data_type: KuduType,
    /// Layout of the values.
    pub encoding: Encoding,
    /// Codec of all blocks.
    pub compression: Compression,
    /// Cells, nulls included.
    pub num_values: u64,
    /// Whether cells may be null.
    pub is_nullable: bool,
    /// Whether a cell is an array.
    pub is_array: bool,
    /// Features a reader must know, as a bit set.
    pub incompatible_features: u32,
    /// Features a reader may ignore, as a bit set.
    pub compatible_features: u32,
    /// Root of the index by row ordinal.
    pub positional_index: Option<BlockPointer>,
    /// Root of the index by value.
    pub value_index: Option<BlockPointer>,
    /// The dictionary of a DICT file.
    pub dictionary: Option<BlockPointer>,
    /// Metadata pairs, those of the header first.
    pub pairs: Vec<(String, Bytes)>,
    /// Where the header ends and blocks may begin.
    pub blocks_start: u64,
    /// Where blocks end and the footer (with its checksum) begins.
    pub blocks_end: u64,
    /// Size of the file.
    pub file_bytes: u64,
}

impl CFileMetadata {
    /// Whether blocks carry checksums.
    pub fn has_checksums(&self) -> bool {
        self.incompatible_features & FEATURE_CHECKSUM != 0
    }

    /// The value of a metadata pair; the first of that name counts.
    pub fn pair(&self, key: &str) -> Option<&Bytes> {
        self.pairs.iter().find(|(name, _)| name == key).map(|(_, value)| value)
    }

    /// Whether this is a delta file (REDO or UNDO).
    pub fn is_delta_file(&self) -> bool {
        self.data_type == KuduType::Binary && self.pair(DELTA_STATISTICS).is_some()
    }

    /// Whether this has the shape of a bloom file: no values, but a value index.
    pub fn is_bloom_file(&self) -> bool {
        self.data_type == KuduType::Binary
            && self.encoding == Encoding::Plain
            && self.num_values == 0
            && self.positional_index.is_none()
            && self.value_index.is_some()
            && !self.is_delta_file()
    }

    /// Reads footer and, if the options say so, header.
    ///
    /// # Errors
    /// [`pilaster_core::ErrorKind::Corrupt`] or [`pilaster_core::ErrorKind::Unsupported`], with the byte.
    pub(crate) fn read(source: &dyn Source, options: &CFileReaderOptions) -> Result<Self> {
        let (verify_checksums, limits) = (options.verify_checksums, &options.limits);
        let (name, size) = (source.name(), source.size());
        if size < 2 * MAGIC_AND_LENGTH_BYTES {
            return Err(
                Error::corrupt("a CFile of at least 24 bytes", format!("{size} bytes")).at(name, 0, "cfile")
            );
        }
        let stored = read_footer(source, limits)?;
        let (footer_version, footer_start) = (stored.version, stored.start);
        let footer: FooterPb =
            proto::parse(stored.message(), "CFileFooterPB").at(name, footer_start, "cfile footer")?;
        let features = footer.incompatible_features.unwrap_or_default();
        if features & !(FEATURE_CHECKSUM | FEATURE_ARRAY) != 0 {
            return Err(Error::unsupported(format!("incompatible features {features:#x}")).at(
                name,
                footer_start,
                "cfile footer",
            ));
        }
        let has_checksums = features & FEATURE_CHECKSUM != 0;
        let mut blocks_end = footer_start;
        if has_checksums {
            blocks_end = footer_start.saturating_sub(CHECKSUM_BYTES);
            if verify_checksums {
                check_crc32c(&stored.covered, stored.checksum).at(
                    name,
                    blocks_end,
                    "cfile footer checksum",
                )?;
            }
        }
        let (version, header, blocks_start) = if options.reads_header {
            read_header(source, limits, has_checksums, verify_checksums, blocks_end)?
        } else {
            let shortest =
                MAGIC_AND_LENGTH_BYTES.saturating_add(if has_checksums { CHECKSUM_BYTES } else { 0 });
            (footer_version, HeaderPb::default(), shortest)
        };
        if version != footer_version {
            let text = |version: Version| String::from_utf8_lossy(version.magic()).into_owned();
            return Err(Error::corrupt(
                format!("{:?}", text(version)),
                format!("{:?}", text(footer_version)),
            )
            .at(name, size.saturating_sub(MAGIC_AND_LENGTH_BYTES), "cfile footer magic"));
        }
        Self::from_messages(version, &header, footer, (blocks_start, blocks_end, size)).at(
            name,
            footer_start,
            "cfile footer",
        )
    }

    fn from_messages(
        version: Version,
        header: &HeaderPb,
        footer: FooterPb,
        (blocks_start, blocks_end, file_bytes): (u64, u64, u64),
    ) -> Result<Self> {
        let data_type = KuduType::from_number(required(footer.data_type, "data_type")?)?;
        let encoding = Encoding::from_number(required(footer.encoding, "encoding")?)?;
        let compression = match footer.compression {
            Some(number) => Compression::from_number(number)?,
            None => Compression::None,
        };
        let num_values = required(footer.num_values, "num_values")?;
        let num_values = u64::try_from(num_values)
            .ok()
            .filter(|&count| count <= u64::from(u32::MAX))
            .ok_or_else(|| Error::corrupt("a count of values of 32 bits", num_values))?;
        if !data_type.encodings().contains(&encoding) {
            return Err(Error::corrupt(format!("an encoding of {data_type}"), encoding));
        }
        let root = |info: Option<BTreeInfoPb>| {
            info.map(|info| BlockPointer::parse(required(info.root_block, "root_block")?)).transpose()
        };
        let features = footer.incompatible_features.unwrap_or_default();
        let is_array = footer.is_type_array.unwrap_or_default();
        if is_array != (features & FEATURE_ARRAY != 0) {
            return Err(Error::corrupt("feature bit 2 exactly in array files", format!("{features:#x}")));
        }
        let dictionary = footer.dict_block_ptr.map(BlockPointer::parse).transpose()?;
        if encoding == Encoding::Dict && dictionary.is_none() {
            return Err(Error::corrupt("a dictionary block", "a DICT file without one"));
        }
        let pairs = header.metadata.iter().chain(&footer.metadata).map(parse_pair).collect::<Result<_>>()?;
        Ok(Self {
            version,
            data_type,
            encoding,
            compression,
            num_values,
            is_nullable: footer.is_type_nullable.unwrap_or_default(),
            is_array,
            incompatible_features: features,
            compatible_features: footer.compatible_features.unwrap_or_default(),
            positional_index: root(footer.posidx_info)?,
            value_index: root(footer.validx_info)?,
            dictionary,
            pairs,
            blocks_start,
            blocks_end,
            file_bytes,
        })
    }

    /// What a file whose footer is lost must be taken for.
    pub(crate) fn assumed(
        file_bytes: u64,
        blocks_start: u64,
        version: Version,
        shape: &super::AssumedShape,
    ) -> Self {
        let features = u32::from(shape.has_checksums) * FEATURE_CHECKSUM;
        Self {
            version,
            data_type: shape.data_type,
            encoding: shape.encoding,
            compression: shape.compression,
            num_values: u64::from(u32::MAX),
            is_nullable: shape.is_nullable,
            is_array: shape.is_array,
            incompatible_features: if shape.is_array { features | FEATURE_ARRAY } else { features },
            compatible_features: 0,
            positional_index: None,
            value_index: None,
            dictionary: None,
            pairs: Vec::new(),
            blocks_start,
            blocks_end: file_bytes,
            file_bytes,
        }
    }
}

/// Whether `bytes` begin as the footer of such a file does, as far as they go: with type and encoding. Its checksum tells nothing.
pub(crate) fn is_footer_start(metadata: &CFileMetadata, bytes: &[u8]) -> bool {
    let skipped = if metadata.has_checksums() { CHECKSUM_BYTES } else { 0 };
    let Some(message) = usize::try_from(skipped).ok().and_then(|skipped| bytes.get(skipped..)) else {
        return false;
    };
    let start = FooterPb {
        data_type: Some(metadata.data_type.number()),
        encoding: Some(metadata.encoding.number()),
        ..FooterPb::default()
    };
    let start = start.encode_to_vec();
    let common = start.len().min(message.len());
    common > 0 && start.get(..common) == message.get(..common)
}

/// Whether `bytes`, which begin at `start` of a file, can be the footer message of a file without checksums: they parse, and
/// what they point to lies before them.
pub(crate) fn looks_like_footer(bytes: &[u8], start: u64) -> bool {
    let Ok(footer) = proto::parse::<FooterPb>(bytes, "CFileFooterPB") else { return false };
    let Ok(metadata) =
        CFileMetadata::from_messages(Version::V2, &HeaderPb::default(), footer, (12, start, start))
    else {
        return false;
    };
    let inside = |pointer: Option<BlockPointer>| pointer.is_none_or(|p| p.offset >= 12 && p.end() <= start);
    (metadata.positional_index.is_some() || metadata.value_index.is_some())
        && inside(metadata.positional_index)
        && inside(metadata.value_index)
        && inside(metadata.dictionary)
}

fn parse_pair(pair: &MetadataPairPb) -> Result<(String, Bytes)> {
    let key = required(pair.key.clone(), "key")?;
    let value = required(pair.value.clone(), "value")?;
    Ok((String::from_utf8_lossy(&key).into_owned(), value.into()))
}

/// The end of a file.
struct StoredFooter {
    version: Version,
    /// Where its message begins.
    start: u64,
    /// The message, magic and length: what the checksum is of.
    covered: Bytes,
    /// The four bytes before the message; a checksum only if the message says so.
    checksum: u32,
}

impl StoredFooter {
    fn message(&self) -> &[u8] {
        // Magic and length follow it.
        self.covered.split_last_chunk::<12>().map_or(&[], |(message, _)| message)
    }
}

fn read_footer(source: &dyn Source, limits: &Limits) -> Result<StoredFooter> {
    let (name, size) = (source.name(), source.size());
    let tail_start = size.saturating_sub(TAIL_BYTES);
    let mut tail = source.read_at(tail_start..size)?;
    let magic_at = size.saturating_sub(MAGIC_AND_LENGTH_BYTES);
    let (length, version) = {
        let last = tail.slice(tail.len().saturating_sub(12)..);
        let version =
            Version::of(&last).ok_or_else(|| {
                Error::corrupt("\"kuducfl2\" or \"kuducfil\"", printable(last.get(..8).unwrap_or_default()))
                    .at(name, magic_at, "cfile footer magic")
            })?;
        let length = last.last_chunk::<4>().map_or(0, |four| u32::from_le_bytes(*four));
        (length, version)
    };
    let room = size.saturating_sub(2 * MAGIC_AND_LENGTH_BYTES).min(u64::from(MAX_MESSAGE_BYTES));
    if u64::from(length) > room {
        return Err(Error::corrupt(format!("at most {room}"), length).at(
            name,
            magic_at.saturating_add(8),
            "cfile footer length",
        ));
    }
    limits.metadata(u64::from(length)).at(name, magic_at, "cfile footer length")?;
    let footer_start = magic_at.saturating_sub(u64::from(length));
    let wanted = footer_start.saturating_sub(CHECKSUM_BYTES);
    let mut start = tail_start;
    if wanted < tail_start {
        tail = source.read_at(wanted..size)?;
        start = wanted;
    }
    let index =
        |position: u64| usize::try_from(position.saturating_sub(start)).unwrap_or(usize::MAX).min(tail.len());
    let before = tail.get(index(wanted)..index(footer_start)).and_then(|before| before.last_chunk::<4>());
    Ok(StoredFooter {
        version,
        start: footer_start,
        checksum: before.map_or(0, |four| u32::from_le_bytes(*four)),
        covered: tail.slice(index(footer_start)..),
    })
}

fn read_header(
    source: &dyn Source,
    limits: &Limits,
    has_checksums: bool,
    verify_checksums: bool,
    blocks_end: u64,
) -> Result<(Version, HeaderPb, u64)> {
    let name = source.name();
    // Most headers have no message: magic, length and checksum are all there is.
    let head = source.read_at(0..source.size().min(MAGIC_AND_LENGTH_BYTES.saturating_add(CHECKSUM_BYTES)))?;
    let (version, length) = parse_header_start(name, &head)?;
    let checksum_bytes = if has_checksums { CHECKSUM_BYTES } else { 0 };
    let end = MAGIC_AND_LENGTH_BYTES.saturating_add(u64::from(length)).saturating_add(checksum_bytes);
    if end > blocks_end {
        let room = blocks_end.saturating_sub(MAGIC_AND_LENGTH_BYTES).saturating_sub(checksum_bytes);
        return Err(Error::corrupt(format!("at most {room}"), length).at(name, 8, "cfile header length"));
    }
    limits.metadata(u64::from(length)).at(name, 8, "cfile header length")?;
    let whole = match usize::try_from(end) {
        Ok(end) if end <= head.len() => head.slice(..end),
        _ => source.read_at(0..end)?,
    };
    let covered =
        whole.slice(..whole.len().saturating_sub(usize::try_from(checksum_bytes).unwrap_or_default()));
    if has_checksums && verify_checksums {
        let stored = whole.last_chunk::<4>().map_or(0, |four| u32::from_le_bytes(*four));
        check_crc32c(&covered, stored).at(name, covered.len() as u64, "cfile header checksum")?;
    }
    let message = covered.get(12..).unwrap_or_default();
    let header = proto::parse(message, "CFileHeaderPB").at(name, MAGIC_AND_LENGTH_BYTES, "cfile header")?;
    Ok((version, header, end))
}

/// Version and message length out of the first 12 bytes.
pub(crate) fn parse_header_start(name: &str, head: &[u8]) -> Result<(Version, u32)> {
    let version = Version::of(head).ok_or_else(|| {
        Error::corrupt("\"kuducfl2\" or \"kuducfil\"", printable(head.get(..8).unwrap_or(head))).at(
            name,
            0,
            "cfile header magic",
        )
    })?;
    let length = head
        .get(8..12)
        .and_then(|four| four.first_chunk())
        .map_or(u32::MAX, |four| u32::from_le_bytes(*four));
    if length > MAX_MESSAGE_BYTES {
        return Err(Error::corrupt(format!("at most {MAX_MESSAGE_BYTES}"), length).at(
            name,
            8,
            "cfile header length",
        ));
    }
    Ok((version, length))
}

fn printable(bytes: &[u8]) -> String {
    format!("\"{}\"", bytes.escape_ascii())
}
