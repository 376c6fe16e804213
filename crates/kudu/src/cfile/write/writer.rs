//! The file being written.

use std::io::Write;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, Field, FieldRef};
use pilaster_core::{Error, Result};
use pilaster_encoding::checksum::crc32c;
use prost::Message;

use super::block::{BlockBuilder, Cells};
use super::index::IndexBuilder;
use super::options::{CFileWriterOptions, Resolved};
use super::values::Stored;
use crate::cfile::block::MAX_UNCOMPRESSED_BYTES;
use crate::cfile::metadata::{BlockPointer, FEATURE_ARRAY, FEATURE_CHECKSUM, MAX_KEY, MIN_KEY, Version};
use crate::cfile::proto::{BTreeInfoPb, BlockPointerPb, FooterPb, MetadataPairPb};
use crate::key::{self, KeyPart};

/// What was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WriteSummary {
    /// Rows, nulls included.
    pub rows: u64,
    /// Bytes of the whole file.
    pub bytes: u64,
    /// Data blocks.
    pub blocks: u64,
}

/// Writes one column as a CFile. Without [`CFileWriter::finish`] no valid file exists.
#[derive(Debug)]
pub struct CFileWriter<W: Write> {
    sink: Sink<W>,
    field: FieldRef,
    shape: Resolved,
    block: BlockBuilder,
    positional: Option<IndexBuilder>,
    by_value: Option<IndexBuilder>,
    keys: Keys,
    rows: u64,
    blocks: u64,
}

/// The encoded keys at the edges of blocks; empty for columns that are not keys.
#[derive(Debug, Default)]
struct Keys {
    smallest: Option<Vec<u8>>,
    /// Last key of the block before.
    before: Vec<u8>,
    /// First key of the block being filled.
    first: Option<Vec<u8>>,
    /// Last key so far.
    last: Option<Vec<u8>>,
}

impl<W: Write> CFileWriter<W> {
    /// Starts a file for a column like `field`; its name is not stored.
    ///
    /// # Errors
    /// [`pilaster_core::ErrorKind::InvalidInput`] if the options do not fit the type; [`pilaster_core::ErrorKind::Io`].
    pub fn try_new(sink: W, field: &Field, options: CFileWriterOptions) -> Result<Self> {
        let shape = options.resolve(field)?;
        let mut sink = Sink { inner: sink, at: 0 };
        let mut header = shape.options.version.magic().to_vec();
        header.extend(0u32.to_le_bytes());
        if shape.checksums {
            header.extend(crc32c(&header).to_le_bytes());
        }
        sink.write(&header)?;
        let tree = |wanted: bool| wanted.then(|| IndexBuilder::new(shape.options.index_block_size_bytes));
        Ok(Self {
            sink,
            field: Arc::new(field.clone()),
            block: BlockBuilder::new(&shape)?,
            positional: tree(shape.options.positional_index),
            by_value: tree(shape.options.value_index),
            shape,
            keys: Keys::default(),
            rows: 0,
            blocks: 0,
        })
    }

    /// Appends the rows of a batch with one column.
    ///
    /// # Errors
    /// As [`CFileWriter::write_array`].
    pub fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        match batch.columns() {
            [column] => self.write_array(column),
            columns => Err(Error::invalid(format!("a CFile holds one column, not {}", columns.len()))),
        }
    }

    /// Appends values.
    ///
    /// # Errors
    /// [`pilaster_core::ErrorKind::InvalidInput`] if the array has another type, a null where none may be, a key out of
    /// order, or too many rows; [`pilaster_core::ErrorKind::Io`].
    pub fn write_array(&mut self, array: &ArrayRef) -> Result<()> {
        if array.data_type() != self.field.data_type() {
            let (wanted, found) = (self.field.data_type(), array.data_type());
            return Err(Error::invalid(format!("column \"{}\" is {wanted}, not {found}", self.field.name())));
        }
        if self.rows.saturating_add(array.len() as u64) > u64::from(u32::MAX) {
            return Err(Error::invalid("a CFile holds at most 4294967295 rows"));
        }
        self.append(array).map_err(|error| {
            if error.position().is_some() {
                error
            } else {
                error.at(&format!("column \"{}\"", self.field.name()), 0, "")
            }
        })
    }

    fn append(&mut self, array: &ArrayRef) -> Result<()> {
        match array.data_type() {
            DataType::List(_) => {
                let list = array.as_list::<i32>();
                let starts: Vec<usize> =
                    list.value_offsets().iter().map(|&o| usize::try_from(o).unwrap_or(0)).collect();
                self.append_lists(&starts, list.nulls(), list.values())
            }
            DataType::LargeList(_) => {
                let list = array.as_list::<i64>();
                let starts: Vec<usize> =
                    list.value_offsets().iter().map(|&o| usize::try_from(o).unwrap_or(0)).collect();
                self.append_lists(&starts, list.nulls(), list.values())
            }
            _ => {
                let nulls = array.logical_nulls().filter(|nulls| nulls.null_count() > 0);
                let stored = Stored::new(array, self.shape.data_type.physical())?;
                self.append_values(array, &stored, nulls.as_ref())
            }
        }
    }

    fn append_values(&mut self, array: &ArrayRef, stored: &Stored, nulls: Option<&NullBuffer>) -> Result<()> {
        if self.by_value.is_some() && !array.is_empty() {
            self.check_order(array, stored)?;
        }
        let mut row = 0;
        while row < array.len() {
            let (taken, is_done) = self.block.append(stored, nulls, row..array.len())?;
            if self.by_value.is_some() && taken > 0 {
                if self.keys.first.is_none() {
                    self.keys.first = Some(self.encoded_key(stored, row)?);
                }
                self.keys.last = Some(self.encoded_key(stored, row.saturating_add(taken).saturating_sub(1))?);
            }
            row = row.saturating_add(taken);
            if is_done {
                self.finish_block()?;
            }
        }
        Ok(())
    }

    fn append_lists(
        &mut self,
        starts: &[usize],
        nulls: Option<&NullBuffer>,
        elements: &ArrayRef,
    ) -> Result<()> {
        let element_nulls = elements.logical_nulls().filter(|nulls| nulls.null_count() > 0);
        let stored = Stored::new(elements, self.shape.data_type.physical())?;
        let cells = Cells { starts, nulls, elements: &stored, element_nulls: element_nulls.as_ref() };
        let count = starts.len().saturating_sub(1);
        let mut row = 0;
        while row < count {
            let (taken, is_done) = self.block.append_cells(&cells, row..count)?;
            row = row.saturating_add(taken);
            if is_done {
                self.finish_block()?;
            }
        }
        Ok(())
    }

    fn encoded_key(&self, stored: &Stored, row: usize) -> Result<Vec<u8>> {
        let value = stored.value(row).ok_or_else(|| Error::invalid("a key without a value"))?;
        let mut encoded = Vec::new();
        key::encode(self.shape.data_type, value, KeyPart::Last, &mut encoded)?;
        Ok(encoded)
    }

    fn check_order(&mut self, array: &ArrayRef, stored: &Stored) -> Result<()> {
        let first = self.encoded_key(stored, 0)?;
        let follows = self.keys.last.as_ref().is_none_or(|last| *last < first);
        if !follows || !stored.ascends(array)? {
            return Err(Error::invalid("the values of a key column must ascend, without repeats"));
        }
        self.keys.smallest.get_or_insert(first);
        Ok(())
    }

    /// Writes the block being filled and names it in the indexes.
    fn finish_block(&mut self) -> Result<()> {
        let rows = self.block.rows();
        if rows == 0 {
            return Ok(());
        }
        let ordinal =
            u32::try_from(self.rows).map_err(|_| Error::invalid("more rows than a CFile can hold"))?;
        let payload = self.block.finish(ordinal)?;
        let Self { sink, shape, .. } = self;
        let pointer = write_block(sink, shape, &payload)?;
        if let Some(tree) = &mut self.positional {
            tree.add(&ordinal.to_be_bytes(), pointer, |block| write_block(sink, shape, &block))?;
        }
        if let Some(tree) = &mut self.by_value {
            let first = self.keys.first.take().unwrap_or_default();
            let cut = key::separator(&self.keys.before, &first);
            tree.add(cut, pointer, |block| write_block(sink, shape, &block))?;
            self.keys.before = self.keys.last.clone().unwrap_or_default();
        }
        self.rows = self.rows.saturating_add(rows as u64);
        self.blocks = self.blocks.saturating_add(1);
        Ok(())
    }

    /// Writes indexes, dictionary and footer and gives the sink back.
    ///
    /// # Errors
    /// [`pilaster_core::ErrorKind::Io`]
    pub fn finish(mut self) -> Result<(W, WriteSummary)> {
        self.finish_block()?;
        let dictionary = self.block.dictionary();
        let Self { mut sink, shape, positional, by_value, keys, rows, blocks, .. } = self;
        let mut root = |tree: Option<IndexBuilder>| {
            tree.map(|tree| tree.finish(|block| write_block(&mut sink, &shape, &block))).transpose()
        };
        let (posidx, validx) = (root(positional)?, root(by_value)?);
        let dictionary = dictionary.map(|block| write_block(&mut sink, &shape, &block)).transpose()?;
        let footer = footer_message(&shape, rows, posidx, validx, dictionary, keys).encode_to_vec();
        let mut tail = footer.clone();
        tail.extend_from_slice(shape.options.version.magic());
        tail.extend(u32::try_from(footer.len()).unwrap_or(u32::MAX).to_le_bytes());
        if shape.checksums {
            sink.write(&crc32c(&tail).to_le_bytes())?;
        }
        sink.write(&tail)?;
        sink.inner.flush()?;
        Ok((sink.inner, WriteSummary { rows, bytes: sink.at, blocks }))
    }
}

fn footer_message(
    shape: &Resolved,
    rows: u64,
    posidx: Option<BlockPointer>,
    validx: Option<BlockPointer>,
    dictionary: Option<BlockPointer>,
    keys: Keys,
) -> FooterPb {
    let pointer = |pointer: BlockPointer| BlockPointerPb {
        offset: i64::try_from(pointer.offset).ok(),
        size: i32::try_from(pointer.size).ok(),
    };
    let tree = |root: Option<BlockPointer>| root.map(|root| BTreeInfoPb { root_block: Some(pointer(root)) });
    let pair = |key: &str, value: Vec<u8>| MetadataPairPb { key: Some(key.into()), value: Some(value) };
    let mut metadata: Vec<_> =
        shape.options.pairs.iter().map(|(key, value)| pair(key, value.clone())).collect();
    metadata.extend(keys.smallest.map(|key| pair(MIN_KEY, key)));
    metadata.extend(keys.last.map(|key| pair(MAX_KEY, key)));
    let checksum_bit = if shape.checksums { FEATURE_CHECKSUM } else { 0 };
    let array_bit = if shape.is_array { FEATURE_ARRAY } else { 0 };
    FooterPb {
        data_type: Some(shape.data_type.number()),
        encoding: Some(shape.encoding.number()),
        num_values: i64::try_from(rows).ok(),
        posidx_info: tree(posidx),
        validx_info: tree(validx),
        compression: Some(shape.options.compression.number()),
        metadata,
        is_type_nullable: Some(shape.is_nullable),
        dict_block_ptr: dictionary.map(pointer),
        incompatible_features: Some(checksum_bit | array_bit),
        compatible_features: None,
        is_type_array: shape.is_array.then_some(true),
    }
}

/// Where bytes go, and how many went.
#[derive(Debug)]
struct Sink<W> {
    inner: W,
    at: u64,
}

impl<W: Write> Sink<W> {
    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.inner.write_all(bytes)?;
        self.at = self.at.saturating_add(bytes.len() as u64);
        Ok(())
    }
}

/// Compresses a payload, adds its checksum and writes it.
fn write_block<W: Write>(sink: &mut Sink<W>, shape: &Resolved, payload: &[u8]) -> Result<BlockPointer> {
    let mut stored = Vec::with_capacity(payload.len().saturating_add(12));
    match shape.options.compression.codec() {
        None => stored.extend_from_slice(payload),
        Some(codec) => {
            if payload.len() as u64 > MAX_UNCOMPRESSED_BYTES {
                return Err(Error::invalid("a compressed block of more than 16 MiB, which Kudu refuses"));
            }
            let size = u32::try_from(payload.len()).unwrap_or(u32::MAX);
            let mut compressed = Vec::new();
            codec.compress(payload, &mut compressed)?;
            match shape.options.version {
                Version::V1 => {
                    stored.extend(u32::try_from(compressed.len()).unwrap_or(u32::MAX).to_le_bytes());
                    stored.extend(size.to_le_bytes());
                    stored.extend(compressed);
                }
                Version::V2 => {
                    stored.extend(size.to_le_bytes());
                    // What does not shrink by a tenth is stored raw.
                    let pays = compressed.len().saturating_mul(10) <= payload.len().saturating_mul(9);
                    stored.extend_from_slice(if pays { &compressed } else { payload });
                }
            }
        }
    }
    if shape.checksums {
        stored.extend(crc32c(&stored).to_le_bytes());
    }
    let size = i32::try_from(stored.len()).map_err(|_| Error::invalid("a block of more than 2 GiB"))?;
    let pointer = BlockPointer { offset: sink.at, size: u32::try_from(size).unwrap_or_default() };
    sink.write(&stored)?;
    Ok(pointer)
}
