//! An open CFile: its metadata, its indexes, its dictionary, and the way from a row or a key to a block.

use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use arrow_array::Array;
use arrow_schema::{DataType, Field, FieldRef};
use bytes::Bytes;
use pilaster_core::error::AtPosition;
use pilaster_core::source::TailSource;
use pilaster_core::{Error, Limits, Result, SourceRef};

use super::arrow_types::{Target, natural_list};
use super::block::{Block, BlockStore};
use super::decode::{BlockShape, DecodedBlock, Words, decode_plain_bytes, words_of};
use super::index::{IndexEntry, IndexTree, KeyOrder};
use super::metadata::{BlockPointer, CFileMetadata, TAIL_BYTES};
use super::recover::Recovered;
use super::types::KuduType;

/// Name of the only column of a CFile when nobody gives one.
pub const DEFAULT_COLUMN: &str = "value";

pub(crate) const DATA_PART: &str = "cfile data block";
const DICTIONARY_PART: &str = "cfile dictionary block";

/// A dictionary is kept with its file up to so many bytes, or so many times the size of the file.
const KEPT_WORDS_BYTES: u64 = 64 << 10;
const KEPT_WORDS_TIMES: u64 = 16;

/// How to open a CFile.
#[derive(Debug, Clone)]
pub struct CFileReaderOptions {
    pub(crate) field: Option<FieldRef>,
    pub(crate) verify_checksums: bool,
    pub(crate) reads_header: bool,
    pub(crate) limits: Limits,
}

impl Default for CFileReaderOptions {
    /// The column is called [`DEFAULT_COLUMN`] and has its natural Arrow type; checksums are verified.
    fn default() -> Self {
        Self { field: None, verify_checksums: true, reads_header: true, limits: Limits::default() }
    }
}

impl CFileReaderOptions {
    /// Name and Arrow type of the column, which a CFile does not know itself.
    #[must_use]
    pub fn with_field(mut self, field: impl Into<FieldRef>) -> Self {
        self.field = Some(field.into());
        self
    }

    /// Whether stored checksums are compared; on unless switched off.
    #[must_use]
    pub fn with_verify_checksums(mut self, verify: bool) -> Self {
        self.verify_checksums = verify;
        self
    }

    /// Leaves the header alone: nothing in it is needed to read values.
    pub(crate) fn without_header(mut self) -> Self {
        self.reads_header = false;
        self
    }

    /// How much the file may make us allocate.
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }
}

/// Where a data block lies and which rows it holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LocatedBlock {
    pub pointer: BlockPointer,
    pub rows: Range<u64>,
}

impl LocatedBlock {
    /// Stands for rows that only the block itself knows.
    pub const UNKNOWN_ROWS: Range<u64> = 0..0;

    pub fn is_known(&self) -> bool {
        self.rows != Self::UNKNOWN_ROWS
    }
}

/// What all readers of an open CFile share.
#[derive(Debug)]
pub(crate) struct CFile {
    pub store: BlockStore,
    pub shape: BlockShape,
    pub field: FieldRef,
    pub positional: Option<IndexTree>,
    pub by_value: Option<IndexTree>,
    words: Mutex<Option<Words>>,
    /// For files without a positional index: every data block in order.
    sequence: OnceLock<Vec<BlockPointer>>,
    /// For files whose footer is lost: what was found.
    pub recovered: Option<Recovered>,
}

impl CFile {
    pub fn open(source: SourceRef, options: &CFileReaderOptions) -> Result<Self> {
        let source: SourceRef = Arc::new(TailSource::read(source, TAIL_BYTES)?);
        let metadata = CFileMetadata::read(source.as_ref(), options)?;
        Self::with_metadata(source, metadata, options)
    }

    /// The same file, for a reader that compares every checksum and has decoded nothing yet.
    pub fn open_again_with_checksums(&self) -> Result<Self> {
        let options = CFileReaderOptions {
            field: Some(Arc::clone(&self.field)),
            verify_checksums: true,
            reads_header: true,
            limits: self.store.limits.clone(),
        };
        // Its end is in memory already.
        let source = Arc::clone(&self.store.source);
        let metadata = CFileMetadata::read(source.as_ref(), &options)?;
        Self::with_metadata(source, metadata, &options)
    }

    pub fn with_metadata(
        source: SourceRef,
        metadata: CFileMetadata,
        options: &CFileReaderOptions,
    ) -> Result<Self> {
        let wanted = options.field.as_ref().map(|field| field.data_type());
        let target = if metadata.is_array {
            let element = wanted.map(list_element).transpose()?;
            Target::new(metadata.data_type, element)
        } else {
            Target::new(metadata.data_type, wanted)
        }
        .at(source.name(), metadata.blocks_end, "cfile footer")?;
        let natural =
            || if metadata.is_array { natural_list(metadata.data_type) } else { target.arrow.clone() };
        let field = match &options.field {
            Some(given) if given.is_nullable() == metadata.is_nullable => Arc::clone(given),
            Some(given) => Arc::new(given.as_ref().clone().with_nullable(metadata.is_nullable)),
            None => Arc::new(Field::new(DEFAULT_COLUMN, natural(), metadata.is_nullable)),
        };
        let order = if metadata.is_delta_file() { KeyOrder::Any } else { KeyOrder::Ascending };
        let metadata = Arc::new(metadata);
        Ok(Self {
            positional: metadata.positional_index.map(|root| IndexTree::new(root, KeyOrder::Ordinals)),
            by_value: metadata.value_index.map(|root| IndexTree::new(root, order)),
            field,
            shape: BlockShape { metadata: Arc::clone(&metadata), limits: options.limits.clone(), target },
            store: BlockStore {
                source,
                metadata,
                limits: options.limits.clone(),
                verify_checksums: options.verify_checksums,
            },
            words: Mutex::new(None),
            sequence: OnceLock::new(),
            recovered: None,
        })
    }

    pub fn metadata(&self) -> &CFileMetadata {
        &self.store.metadata
    }

    pub fn name(&self) -> &str {
        self.store.source.name()
    }

    /// The values of a delta file are bytes, each of them there.
    pub fn check_delta_shape(&self) -> Result<()> {
        let metadata = self.metadata();
        let found = match metadata {
            _ if metadata.is_array => "arrays".to_string(),
            _ if metadata.is_nullable => "values that may be null".to_string(),
            _ if metadata.data_type != KuduType::Binary => metadata.data_type.to_string(),
            _ => return Ok(()),
        };
        Err(Error::corrupt("a delta file of BINARY values", found).at(
            self.name(),
            metadata.blocks_end,
            "cfile footer",
        ))
    }

    /// The dictionary; `None` if the file has no encoding that needs one. It is kept with the file unless it is much larger.
    pub fn words(&self) -> Result<Option<Words>> {
        let Some(pointer) = self.metadata().dictionary else { return Ok(None) };
        let mut words = self.words.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = words.as_ref() {
            return Ok(Some(Arc::clone(known)));
        }
        let block = self.store.read(pointer, DICTIONARY_PART)?;
        let read = self.decode_words(&block.payload).at(self.name(), pointer.offset, DICTIONARY_PART)?;
        let most = self.store.source.size().saturating_mul(KEPT_WORDS_TIMES).max(KEPT_WORDS_BYTES);
        if read.get_buffer_memory_size() as u64 <= most {
            *words = Some(Arc::clone(&read));
        }
        Ok(Some(read))
    }

    /// Whether the dictionary is kept with the file.
    pub fn has_words(&self) -> bool {
        self.words.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    fn decode_words(&self, payload: &Bytes) -> Result<Words> {
        let mut shape = self.shape.clone();
        // A dictionary has at most as many entries as rows. Files of arrays count cells, and dictionaries elements; without its footer a
        // file has the rows that were found.
        if self.metadata().is_array || self.recovered.is_some() {
            let metadata = CFileMetadata { num_values: u64::from(u32::MAX), ..self.metadata().clone() };
            shape.metadata = Arc::new(metadata);
        }
        let (start, values) = decode_plain_bytes(&shape, payload)?;
        if start.ordinal != 0 {
            return Err(Error::corrupt("ordinal 0", start.ordinal));
        }
        words_of(&values, &self.shape.target)
    }

    /// Decodes the payload of a data block.
    pub fn decode(&self, block: &Block) -> Result<DecodedBlock> {
        self.decode_with(block, None)
    }

    /// The same, if the dictionary is there already.
    pub fn decode_with(&self, block: &Block, words: Option<&Words>) -> Result<DecodedBlock> {
        let find = || words.map_or_else(|| self.words(), |words| Ok(Some(Arc::clone(words))));
        let decoded =
            self.shape.decode(&block.payload, &find).at(self.name(), block.pointer.offset, DATA_PART)?;
        let end = decoded.first_row.saturating_add(decoded.rows as u64);
        if decoded.rows == 0 || end > self.metadata().num_values {
            return Err(Error::corrupt(
                format!("rows inside 0..{}", self.metadata().num_values),
                format!("rows {}..{end}", decoded.first_row),
            )
            .at(self.name(), block.pointer.offset, DATA_PART));
        }
        Ok(decoded)
    }

    /// The data blocks of a file without a positional index, in row order.
    pub fn sequence(&self) -> Result<&[BlockPointer]> {
        if let Some(known) = self.sequence.get() {
            return Ok(known);
        }
        let pointers = match &self.by_value {
            Some(tree) => tree.entries(&self.store)?.into_iter().map(|entry| entry.pointer).collect(),
            None if self.metadata().num_values == 0 => Vec::new(),
            None => {
                return Err(Error::corrupt("a positional or a value index", "neither").at(
                    self.name(),
                    self.metadata().blocks_end,
                    "cfile footer",
                ));
            }
        };
        Ok(self.sequence.get_or_init(|| pointers))
    }

    /// Every data block with its rows, as the positional index says.
    pub fn located_blocks(&self) -> Result<Vec<LocatedBlock>> {
        if let Some(found) = &self.recovered {
            return Ok(found.blocks.clone());
        }
        let Some(tree) = &self.positional else { return self.locate_by_reading() };
        let entries = tree.entries(&self.store)?;
        let starts = entries.iter().map(|entry| self.ordinal_of(entry)).collect::<Result<Vec<_>>>()?;
        let ends = starts.iter().skip(1).copied().chain([self.metadata().num_values]);
        Ok(entries
            .iter()
            .zip(starts.iter().zip(ends))
            .map(|(entry, (&start, end))| LocatedBlock { pointer: entry.pointer, rows: start..end })
            .collect())
    }

    /// Without a positional index only the blocks themselves know their rows.
    fn locate_by_reading(&self) -> Result<Vec<LocatedBlock>> {
        self.sequence()?
            .iter()
            .map(|&pointer| {
                let decoded = self.decode(&self.store.read(pointer, DATA_PART)?)?;
                let end = decoded.first_row.saturating_add(decoded.rows as u64);
                Ok(LocatedBlock { pointer, rows: decoded.first_row..end })
            })
            .collect()
    }

    /// The row a positional entry stands for.
    pub fn ordinal_of(&self, entry: &IndexEntry) -> Result<u64> {
        match entry.key.as_ref().try_into().map(u32::from_be_bytes) {
            Ok(ordinal) => Ok(u64::from(ordinal)),
            Err(_) => Err(Error::corrupt(
                "a positional key of 4 bytes",
                format!("{} bytes", entry.key.len()),
            )
            .at(self.name(), entry.pointer.offset, "cfile index block")),
        }
    }
}

fn list_element(data_type: &DataType) -> Result<&DataType> {
    match data_type {
        DataType::List(element) | DataType::LargeList(element) => Ok(element.data_type()),
        other => Err(Error::invalid(format!("a column of arrays cannot be read as Arrow type {other}"))),
    }
}
