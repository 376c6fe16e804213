//! Rows to pages to blocklets.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_cast::cast::{CastOptions, cast_with_options};
use arrow_schema::{DataType, Schema, SchemaRef};
use arrow_select::concat::concat;
use pilaster_core::{Error, Limits, Result};

use super::super::types::{ColumnNode, column_trees};
use super::chunk::{ChunkWriter, EncodedChunk};
use super::nested;
use super::options::CarbonWriterOptions;
use super::strings::fitting;
use super::{Release, TableCodes};
use crate::messages::ColumnSchema;

/// A blocklet as it is stored.
#[derive(Debug)]
pub(crate) struct EncodedBlocklet {
    pub(super) page_rows: Vec<i32>,
    pub(super) chunks: Vec<EncodedChunk>,
}

impl EncodedBlocklet {
    pub fn bytes(&self) -> u64 {
        self.chunks.iter().map(EncodedChunk::bytes).sum()
    }
}

/// Takes rows and gives blocklets.
#[derive(Debug)]
pub(crate) struct RowEncoder {
    trees: Vec<ColumnNode>,
    schema: SchemaRef,
    options: CarbonWriterOptions,
    chunks: Vec<ChunkWriter>,
    pending: VecDeque<Vec<ArrayRef>>,
    pending_rows: usize,
    page_rows: Vec<i32>,
}

/// Finds what has chunk number `chunk`.
fn find(nodes: &[ColumnNode], chunk: usize) -> Option<&ColumnNode> {
    nodes.iter().find_map(|node| match node {
        node if node.chunk == chunk || node.entries_chunk == Some(chunk) => Some(node),
        node => find(&node.children, chunk),
    })
}

impl RowEncoder {
    pub fn new(
        columns: &[ColumnSchema],
        codes: &HashMap<usize, Arc<TableCodes>>,
        release: Release,
        options: &CarbonWriterOptions,
    ) -> Result<Self> {
        let trees = column_trees(columns, Limits::default().depth)?;
        let mut chunks = Vec::with_capacity(columns.len());
        for (number, column) in columns.iter().enumerate() {
            if column.name.len() > usize::from(u16::MAX) / 3 {
                return Err(Error::invalid(format!("a column name of {} bytes", column.name.len())));
            }
            let node =
                find(&trees, number).ok_or_else(|| Error::internal("a column outside of all others"))?;
            let mut node = ColumnNode { children: Vec::new(), ..node.clone() };
            if node.entries_chunk == Some(number) {
                // The keys and values of a map: a struct inside it.
                node.carbon_type = super::super::types::CarbonType::Struct;
                node.is_child = true;
            }
            chunks.push(ChunkWriter::new(column, &node, release, options, codes.get(&number).cloned())?);
        }
        let fields: Vec<_> = trees.iter().map(|tree| Arc::clone(&tree.field)).collect();
        Ok(Self {
            trees,
            schema: Arc::new(Schema::new(fields)),
            options: options.clone(),
            chunks,
            pending: VecDeque::new(),
            pending_rows: 0,
            page_rows: Vec::new(),
        })
    }

    /// The schema that batches are cast to.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Values that the format could not tell from others.
    pub fn conflated(&self) -> u64 {
        self.chunks.iter().map(|chunk| chunk.conflated).sum()
    }

    /// Adds rows; `on_blocklet` gets every blocklet that becomes full.
    pub fn write(
        &mut self,
        batch: &RecordBatch,
        on_blocklet: &mut dyn FnMut(EncodedBlocklet) -> Result<()>,
    ) -> Result<()> {
        if batch.num_rows() == 0 {
            return Ok(());
        }
        let columns = stored_columns(batch, &self.schema)?;
        let calendar = self.options.calendar;
        let named = columns.iter().zip(self.schema.fields());
        let columns = named.map(|(column, field)| calendar.stored(column, field.name()));
        self.pending.push_back(columns.collect::<Result<_>>()?);
        self.pending_rows = self.pending_rows.saturating_add(batch.num_rows());
        while self.pending_rows >= self.options.page_rows {
            self.write_page(on_blocklet)?;
        }
        Ok(())
    }

    /// Writes what is left.
    pub fn finish(&mut self, on_blocklet: &mut dyn FnMut(EncodedBlocklet) -> Result<()>) -> Result<()> {
        while self.pending_rows > 0 {
            self.write_page(on_blocklet)?;
        }
        self.end_blocklet(on_blocklet)
    }

    fn write_page(&mut self, on_blocklet: &mut dyn FnMut(EncodedBlocklet) -> Result<()>) -> Result<()> {
        let page = self.take_page()?;
        for (tree, array) in self.trees.iter().zip(&page) {
            nested::add(&mut self.chunks, tree, array)?;
        }
        let rows = page.first().map_or(0, Array::len);
        self.page_rows.push(fitting(rows, "the rows of a page")?);
        let bytes: u64 = self.chunks.iter().map(ChunkWriter::bytes).sum();
        if bytes >= self.options.blocklet_bytes {
            self.end_blocklet(on_blocklet)?;
        }
        Ok(())
    }

    fn end_blocklet(&mut self, on_blocklet: &mut dyn FnMut(EncodedBlocklet) -> Result<()>) -> Result<()> {
        if self.page_rows.is_empty() {
            return Ok(());
        }
        let chunks = self.chunks.iter_mut().map(ChunkWriter::finish).collect::<Result<Vec<_>>>()?;
        on_blocklet(EncodedBlocklet { page_rows: std::mem::take(&mut self.page_rows), chunks })
    }

    /// The columns of the next page.
    fn take_page(&mut self) -> Result<Vec<ArrayRef>> {
        let wanted = self.options.page_rows.min(self.pending_rows);
        let mut parts: Vec<Vec<ArrayRef>> = Vec::new();
        let mut missing = wanted;
        while missing > 0 {
            let Some(front) = self.pending.pop_front() else { break };
            let rows = front.first().map_or(0, Array::len);
            if rows > missing {
                self.pending.push_front(sliced(&front, missing, rows.saturating_sub(missing)));
                parts.push(sliced(&front, 0, missing));
                missing = 0;
            } else {
                missing = missing.saturating_sub(rows);
                parts.push(front);
            }
        }
        let mut page = joined(parts)?;
        let rows = page.first().map_or(0, Array::len);
        let kept = fitting_rows(&page, rows, self.options.page_bytes);
        if kept < rows {
            self.pending.push_front(sliced(&page, kept, rows.saturating_sub(kept)));
            page = sliced(&page, 0, kept);
        }
        self.pending_rows = self.pending_rows.saturating_sub(kept);
        Ok(page)
    }
}

fn sliced(columns: &[ArrayRef], offset: usize, length: usize) -> Vec<ArrayRef> {
    columns.iter().map(|column| column.slice(offset, length)).collect()
}

fn joined(mut parts: Vec<Vec<ArrayRef>>) -> Result<Vec<ArrayRef>> {
    if parts.len() < 2 {
        return Ok(parts.pop().unwrap_or_default());
    }
    let columns = parts.first().map_or(0, Vec::len);
    (0..columns)
        .map(|column| {
            let arrays: Vec<&dyn Array> =
                parts.iter().filter_map(|part| part.get(column)).map(AsRef::as_ref).collect();
            Ok(concat(&arrays)?)
        })
        .collect()
}

/// How many of the rows have no column of more than so many bytes.
fn fitting_rows(columns: &[ArrayRef], rows: usize, max_bytes: usize) -> usize {
    let mut kept = rows;
    for column in columns {
        loop {
            let bytes = variable_bytes(&column.slice(0, kept.min(column.len())));
            if bytes <= max_bytes || kept <= 1 {
                break;
            }
            // As many as would fit if all were as long, and at least one less.
            let share = kept.saturating_mul(max_bytes).checked_div(bytes).unwrap_or(1);
            kept = share.clamp(1, kept.saturating_sub(1));
        }
    }
    kept
}

/// Bytes of the values of a column whose length is not fixed.
fn variable_bytes(array: &ArrayRef) -> usize {
    /// The low half of a view's first word is the length of its value.
    fn lengths(views: &[u128]) -> usize {
        let length = |view: &u128| usize::try_from(view & 0xffff_ffff).unwrap_or_default();
        views.iter().map(length).sum()
    }
    match array.data_type() {
        DataType::Utf8View => lengths(array.as_string_view().views()),
        DataType::BinaryView => lengths(array.as_binary_view().views()),
        DataType::List(_) => {
            let list = array.as_list::<i32>();
            let (first, last) = (list.offsets().first(), list.offsets().last());
            let start = usize::try_from(first.copied().unwrap_or_default()).unwrap_or_default();
            let end = usize::try_from(last.copied().unwrap_or_default()).unwrap_or_default();
            let count = end.saturating_sub(start);
            variable_bytes(&list.values().slice(start, count)).saturating_add(count.saturating_mul(8))
        }
        DataType::Map(..) => {
            let map = array.as_map();
            let (first, last) = (map.offsets().first(), map.offsets().last());
            let start = usize::try_from(first.copied().unwrap_or_default()).unwrap_or_default();
            let end = usize::try_from(last.copied().unwrap_or_default()).unwrap_or_default();
            let count = end.saturating_sub(start);
            let inside = |values: &ArrayRef| variable_bytes(&values.slice(start, count));
            inside(map.keys()).saturating_add(inside(map.values())).saturating_add(count.saturating_mul(8))
        }
        DataType::Struct(_) => array.as_struct().columns().iter().map(variable_bytes).sum(),
        _ => 0,
    }
}

/// The columns of a batch, by name, in the types they are stored as.
pub(crate) fn stored_columns(batch: &RecordBatch, schema: &Schema) -> Result<Vec<ArrayRef>> {
    if batch.num_columns() != schema.fields().len() {
        return Err(Error::invalid(format!(
            "a batch of {} columns for {}",
            batch.num_columns(),
            schema.fields().len()
        )));
    }
    let found = batch.schema();
    let mut columns = Vec::with_capacity(batch.num_columns());
    for (place, field) in schema.fields().iter().enumerate() {
        let is_named = |place: &usize| {
            found.fields().get(*place).is_some_and(|f| f.name().to_lowercase() == *field.name())
        };
        let place = Some(place).filter(is_named).or_else(|| (0..batch.num_columns()).find(is_named));
        let place =
            place.ok_or_else(|| Error::invalid(format!("a batch without column {:?}", field.name())))?;
        columns.push(stored_form(batch.column(place), field.data_type(), field.name())?);
    }
    Ok(columns)
}

/// A column as it is stored, if no value changes by that.
pub(crate) fn stored_form(array: &ArrayRef, data_type: &DataType, name: &str) -> Result<ArrayRef> {
    if array.data_type() == data_type {
        return Ok(Arc::clone(array));
    }
    let options = CastOptions { safe: false, ..CastOptions::default() };
    let refused = |error: &dyn std::fmt::Display| Error::invalid(format!("column {name:?}: {error}"));
    let stored = cast_with_options(array, data_type, &options).map_err(|error| refused(&error))?;
    if loses_digits(array.data_type()) {
        let again =
            cast_with_options(&stored, array.data_type(), &options).map_err(|error| refused(&error))?;
        if again.as_ref() != array.as_ref() {
            return Err(refused(&"a time finer than the milliseconds that CarbonData keeps"));
        }
    }
    Ok(stored)
}

/// Whether values of this type may not come back from the form they are stored in.
fn loses_digits(data_type: &DataType) -> bool {
    use arrow_schema::TimeUnit::{Microsecond, Nanosecond};
    match data_type {
        DataType::Timestamp(Microsecond | Nanosecond, _) | DataType::Date64 => true,
        DataType::List(field) | DataType::LargeList(field) | DataType::FixedSizeList(field, _) => {
            loses_digits(field.data_type())
        }
        DataType::Struct(fields) => fields.iter().any(|field| loses_digits(field.data_type())),
        DataType::Map(entries, _) => loses_digits(entries.data_type()),
        DataType::Dictionary(_, values) => loses_digits(values),
        _ => false,
    }
}
