//! What can be chosen when writing.

use arrow_schema::{DataType, Field};
use pilaster_core::{Error, Result};

use crate::cfile::arrow_types::{Target, is_ordered_as_stored, kudu_type};
use crate::cfile::metadata::Version;
use crate::cfile::types::{Compression, Encoding, KuduType, Physical};

/// Bytes of a block of a column, unless the table says otherwise (`cfile_default_block_size`).
pub(crate) const DEFAULT_BLOCK_SIZE_BYTES: usize = 262_144;
/// Kudu takes no smaller block size.
const SMALLEST_BLOCK_SIZE_BYTES: usize = 512;
/// A block must not be larger than a reader accepts.
const LARGEST_BLOCK_SIZE_BYTES: usize = 8 << 20;
/// Bytes of an index block.
const DEFAULT_INDEX_BLOCK_SIZE_BYTES: usize = 32_768;

/// How to write a CFile; the defaults are what Kudu's own writer does.
#[derive(Debug, Clone)]
pub struct CFileWriterOptions {
    pub(super) data_type: Option<KuduType>,
    pub(super) encoding: Option<Encoding>,
    pub(super) compression: Compression,
    pub(super) block_size_bytes: Option<usize>,
    pub(super) dictionary_size_bytes: Option<usize>,
    pub(super) index_block_size_bytes: usize,
    pub(super) checksums: bool,
    pub(super) positional_index: bool,
    pub(super) value_index: bool,
    pub(super) index_keys: IndexKeys,
    pub(super) version: Version,
    pub(super) pairs: Vec<(String, Vec<u8>)>,
}

/// What the entries of a value index hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IndexKeys {
    /// As much of the first value of a block as sets it apart from the one before.
    Separators,
    /// The delta key of the first change of a block.
    DeltaKeys,
}

impl Default for CFileWriterOptions {
    /// Type and encoding by the Arrow type, no codec, blocks of 256 KiB, checksums, positional index, version 2.
    fn default() -> Self {
        Self {
            data_type: None,
            encoding: None,
            compression: Compression::None,
            block_size_bytes: None,
            dictionary_size_bytes: None,
            index_block_size_bytes: DEFAULT_INDEX_BLOCK_SIZE_BYTES,
            checksums: true,
            positional_index: true,
            value_index: false,
            index_keys: IndexKeys::Separators,
            version: Version::V2,
            pairs: Vec::new(),
        }
    }
}

impl CFileWriterOptions {
    /// The Kudu type to write, where the Arrow type leaves a choice (VARCHAR, a wider decimal).
    #[must_use]
    pub fn with_data_type(mut self, data_type: KuduType) -> Self {
        self.data_type = Some(data_type);
        self
    }

    /// The encoding; by default what Kudu takes for the type.
    #[must_use]
    pub fn with_encoding(mut self, encoding: Encoding) -> Self {
        self.encoding = Some(encoding);
        self
    }

    /// The codec of all blocks.
    #[must_use]
    pub fn with_compression(mut self, compression: Compression) -> Self {
        self.compression = compression;
        self
    }

    /// About how many bytes a block has before compression; 512 bytes to 8 MiB.
    #[must_use]
    pub fn with_block_size_bytes(mut self, bytes: usize) -> Self {
        self.block_size_bytes = Some(bytes);
        self
    }

    /// About how many bytes of entries a dictionary has before strings are stored in plain; as many as a block has, unless
    /// set.
    #[must_use]
    pub fn with_dictionary_size_bytes(mut self, bytes: usize) -> Self {
        self.dictionary_size_bytes = Some(bytes);
        self
    }

    /// The sizes of blocks and of the dictionary, unless a block size was chosen.
    pub(crate) fn or_sizes_bytes(mut self, block: usize, dictionary: usize) -> Self {
        if self.block_size_bytes.is_none() {
            self.block_size_bytes = Some(block);
            self.dictionary_size_bytes.get_or_insert(dictionary);
        }
        self
    }

    /// About how many bytes an index block has.
    #[must_use]
    pub fn with_index_block_size_bytes(mut self, bytes: usize) -> Self {
        self.index_block_size_bytes = bytes;
        self
    }

    /// Whether header, footer and blocks carry checksums. Version 1 never does.
    #[must_use]
    pub fn with_checksums(mut self, checksums: bool) -> Self {
        self.checksums = checksums;
        self
    }

    /// Whether there is an index by row ordinal.
    #[must_use]
    pub fn with_positional_index(mut self, index: bool) -> Self {
        self.positional_index = index;
        self
    }

    /// Whether there is an index by value, so that the column is a key.
    pub fn has_value_index(&self) -> bool {
        self.value_index
    }

    /// Whether this is a key column: an index by value, and the smallest and largest key in the footer. The values
    /// must ascend strictly.
    #[must_use]
    pub fn with_value_index(mut self, index: bool) -> Self {
        self.value_index = index;
        self
    }

    /// As for a delta file: values are delta key and changes, the value index holds whole delta keys, there is no other.
    pub(crate) fn with_delta_index(mut self) -> Self {
        self.positional_index = false;
        self.value_index = true;
        self.index_keys = IndexKeys::DeltaKeys;
        self
    }

    /// The generation of the format. Version 1 is for tests of old readers.
    #[must_use]
    pub fn with_version(mut self, version: Version) -> Self {
        self.version = version;
        self
    }

    /// Adds a metadata pair to the footer.
    #[must_use]
    pub fn with_metadata(mut self, key: impl Into<String>, value: impl Into<Vec<u8>>) -> Self {
        self.pairs.push((key.into(), value.into()));
        self
    }

    /// Settles what was left open, for a column like `field`.
    pub(super) fn resolve(self, field: &Field) -> Result<Resolved> {
        let arrow = match field.data_type() {
            DataType::Dictionary(_, values) => values.as_ref(),
            other => other,
        };
        let is_array = matches!(arrow, DataType::List(_) | DataType::LargeList(_));
        let in_column = |error: Error| error.at(&format!("column \"{}\"", field.name()), 0, "");
        let natural = kudu_type(arrow).map_err(in_column)?;
        let data_type = self.data_type.unwrap_or(natural);
        let encoding = self.encoding.unwrap_or(data_type.default_encoding());
        let refuse = |message: String| Err(in_column(Error::invalid(message)));
        let element = match arrow {
            DataType::List(element) | DataType::LargeList(element) => element.data_type(),
            _ => field.data_type(),
        };
        // What could not be read back must not be written.
        Target::new(natural, Some(element)).map_err(in_column)?;
        if !is_compatible(natural, data_type) {
            return refuse(format!("Arrow type {arrow} cannot be written as {data_type}"));
        }
        if !data_type.encodings().contains(&encoding) {
            return refuse(format!("{data_type} values have no encoding {encoding}"));
        }
        let block_size_bytes = self.block_size_bytes.unwrap_or(DEFAULT_BLOCK_SIZE_BYTES);
        let dictionary_size_bytes = self.dictionary_size_bytes.unwrap_or(block_size_bytes);
        for (what, size) in [("block", block_size_bytes), ("dictionary", dictionary_size_bytes)] {
            if !(SMALLEST_BLOCK_SIZE_BYTES..=LARGEST_BLOCK_SIZE_BYTES).contains(&size) {
                return refuse(format!("a {what} size of {size} bytes is outside 512..=8388608"));
            }
        }
        if !self.positional_index && !self.value_index {
            return refuse("a file without any index cannot be read".into());
        }
        if self.value_index && (field.is_nullable() || is_array || !data_type.can_be_key()) {
            return refuse(
                "only columns without nulls of integer, time, decimal or string types can be keys".into(),
            );
        }
        if self.value_index && !is_ordered_as_stored(data_type, arrow) {
            return refuse(format!("{arrow} values have another order than {data_type} keys"));
        }
        if is_array && matches!(data_type, KuduType::Decimal128 | KuduType::Int128) {
            return refuse(format!("Kudu has no arrays of {data_type}"));
        }
        if is_array && self.version == Version::V1 {
            return refuse("version 1 has no arrays".into());
        }
        Ok(Resolved {
            checksums: self.checksums && self.version == Version::V2,
            data_type,
            encoding,
            is_array,
            is_nullable: field.is_nullable(),
            block_size_bytes,
            dictionary_size_bytes,
            options: self,
        })
    }
}

/// Options with nothing left open.
#[derive(Debug, Clone)]
pub(super) struct Resolved {
    pub data_type: KuduType,
    pub encoding: Encoding,
    pub is_array: bool,
    pub is_nullable: bool,
    pub checksums: bool,
    pub block_size_bytes: usize,
    pub dictionary_size_bytes: usize,
    pub options: CFileWriterOptions,
}

/// Whether values that are naturally `natural` can be stored as `wanted`.
fn is_compatible(natural: KuduType, wanted: KuduType) -> bool {
    let is_decimal = |t| matches!(t, KuduType::Decimal32 | KuduType::Decimal64 | KuduType::Decimal128);
    let is_float = |t| matches!(t, KuduType::Float | KuduType::Double);
    match (natural.physical(), wanted.physical()) {
        _ if natural == wanted => true,
        (Physical::Binary, Physical::Binary) => true,
        // A decimal has a sign.
        (Physical::Fixed(_), _) if is_decimal(natural) && wanted.is_unsigned() => false,
        (Physical::Fixed(from), Physical::Fixed(to)) => {
            (from == to && !is_float(natural) && !is_float(wanted))
                || (is_decimal(natural) && is_decimal(wanted))
                || (wanted == KuduType::Int128 && is_decimal(natural))
        }
        _ => false,
    }
}
