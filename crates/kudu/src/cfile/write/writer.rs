//! The file being written.

use std::io::Write;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, Field, FieldRef};
use pilaster_core::{Error, Result};

use super::block::{BlockBuilder, Cells};
use super::index::IndexBuilder;
use super::options::{CFileWriterOptions, IndexKeys, Resolved};
use super::sink::{Footer, Sink};
use super::values::Stored;
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
        // What is declared nullable may still hold no null; one that comes is an error.
        let field = &field.clone().with_nullable(field.is_nullable() && !options.has_value_index());
        let shape = options.resolve(field)?;
        let sink = Sink::start(sink, &shape)?;
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
        let rows = self.rows.saturating_add(self.block.rows() as u64);
        if rows.saturating_add(array.len() as u64) > u64::from(u32::MAX) {
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
        let is_key = self.shape.options.index_keys == IndexKeys::Separators;
        if self.by_value.is_some() && is_key && !array.is_empty() {
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
        let value = stored.value(row).ok_or_else(|| Error::internal("a key without a value"))?;
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
        let pointer = sink.write_block(shape, &payload)?;
        if let Some(tree) = &mut self.positional {
            tree.add(&ordinal.to_be_bytes(), pointer, |block| sink.write_block(shape, &block))?;
        }
        if let Some(tree) = &mut self.by_value {
            let first = self.keys.first.take().unwrap_or_default();
            let cut = match shape.options.index_keys {
                IndexKeys::Separators => key::separator(&self.keys.before, &first),
                IndexKeys::DeltaKeys => key::delta_key(&first)?,
            };
            tree.add(cut, pointer, |block| sink.write_block(shape, &block))?;
            self.keys.before = self.keys.last.clone().unwrap_or_default();
        }
        self.rows = self.rows.saturating_add(rows as u64);
        self.blocks = self.blocks.saturating_add(1);
        Ok(())
    }

    /// Writes indexes, dictionary and footer and gives the sink back.
    ///
    /// # Errors
    /// [`pilaster_core::ErrorKind::InvalidInput`] if the keys are so long that the footer would have more bytes than readers take;
    /// [`pilaster_core::ErrorKind::Io`].
    pub fn finish(self) -> Result<(W, WriteSummary)> {
        let column = format!("column \"{}\"", self.field.name());
        self.finish_file().map_err(|error| error.at(&column, 0, ""))
    }

    fn finish_file(mut self) -> Result<(W, WriteSummary)> {
        self.finish_block()?;
        let dictionary = self.block.dictionary();
        let Self { mut sink, shape, positional, by_value, keys, rows, blocks, .. } = self;
        let mut root = |tree: Option<IndexBuilder>| {
            tree.map(|tree| tree.finish(|block| sink.write_block(&shape, &block))).transpose()
        };
        let (posidx, validx) = (root(positional)?, root(by_value)?);
        let dictionary = dictionary.map(|block| sink.write_block(&shape, &block)).transpose()?;
        let edges = match shape.options.index_keys {
            IndexKeys::Separators => keys.smallest.zip(keys.last),
            IndexKeys::DeltaKeys => None,
        };
        let footer = Footer { rows, posidx, validx, dictionary, edges };
        let (inner, bytes) = sink.finish(&shape, footer)?;
        Ok((inner, WriteSummary { rows, bytes, blocks }))
    }
}
