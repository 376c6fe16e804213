//! The file being written.

use std::io::Write;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, UInt32Array};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use arrow_select::take::take;
use pilaster_core::{Error, Result};
use pilaster_encoding::checksum::crc32c;
use prost::Message;

use super::column::{ColumnWriter, Node};
use super::keys::{KeyBuilder, WrittenKeys};
use super::meta;
use super::options::SegmentWriteOptions;
use super::page::Sink;
use super::plan::{FilePlan, plan_columns};
use super::row_store::{RowStore, lent_values};
use super::values::{Form, Values};
use super::variant::VariantWriter;
use crate::messages::{ColumnMetaEntryPb, ColumnMetaPb, MetadataPairPb, SegmentFooterPb};
use crate::schema::{ROW_STORE_COLUMN, SchemaColumn, TabletSchema};
use crate::segment::default_value::default_value;
use crate::segment::footer::{MAGIC, StorageFormat, VERSION_EXTERNAL_COLUMNS};
use crate::segment::page::PagePointer;

/// Rows that are converted at once: what is made on the way stays in the cache.
const CHUNK_ROWS: usize = 8192;

/// What was written.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SegmentSummary {
    /// Rows.
    pub rows: u64,
    /// Bytes of the whole file.
    pub bytes: u64,
    /// Bytes of data and dictionary pages.
    pub data_bytes: u64,
    /// Full encoded key of the first row in key order.
    pub min_key: Vec<u8>,
    /// Full encoded key of the last row in key order.
    pub max_key: Vec<u8>,
}

/// Writes one segment. Without [`SegmentWriter::finish`] no valid file exists.
///
/// Rows must come in the order of the schema's key columns (of its cluster keys if it has some), nulls first. See the
/// module for what is held in memory.
///
/// ```
/// use std::sync::Arc;
/// use arrow_array::{Int32Array, RecordBatch, StringArray};
/// use pilaster_doris::TabletSchema;
/// use pilaster_doris::segment::{SegmentWriteOptions, SegmentWriter};
///
/// let schema = TabletSchema::parse_json(br#"{"num_short_key_columns": 1, "columns": [
///     {"unique_id": 0, "name": "id", "type": "INT", "is_key": true},
///     {"unique_id": 1, "name": "name", "type": "STRING", "is_nullable": true}]}"#)?;
/// let batch = RecordBatch::try_from_iter([
///     ("id", Arc::new(Int32Array::from(vec![1, 2])) as _),
///     ("name", Arc::new(StringArray::from(vec![Some("ada"), None])) as _),
/// ])?;
/// let mut writer = SegmentWriter::try_new(Vec::new(), &schema, &SegmentWriteOptions::default())?;
/// writer.write(&batch)?;
/// let (file, summary) = writer.finish()?;
/// assert_eq!((summary.rows, &file[file.len() - 4..]), (2, &b"D0R1"[..]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct SegmentWriter<W: Write> {
    sink: Sink<W>,
    schema: TabletSchema,
    options: SegmentWriteOptions,
    file: FilePlan,
    columns: Vec<ColumnWriter>,
    row_store: Option<RowStore>,
    keys: KeyBuilder,
    rows: u64,
    /// Whether a write stopped half-way: then the columns are of different lengths.
    has_failed: bool,
}

impl<W: Write> SegmentWriter<W> {
    /// Starts a segment of a tablet's schema.
    ///
    /// # Errors
    /// [`pilaster_core::ErrorKind::InvalidInput`] if schema and options do not fit each other.
    pub fn try_new(sink: W, schema: &TabletSchema, options: &SegmentWriteOptions) -> Result<Self> {
        if schema.columns.is_empty() {
            return Err(Error::invalid("a segment without columns"));
        }
        if let Some(column) = schema.columns.iter().find(|column| column.has_bitmap_index) {
            return Err(Error::unsupported(format!(
                "writing the bitmap index of column \"{}\"; write without it, and have Doris build an inverted index, which took its place",
                column.name
            )));
        }
        let file = FilePlan::new(schema, options)?;
        let plans = plan_columns(&file, schema, options)?;
        let row_store = RowStore::new(schema, &plans)?;
        let keys = KeyBuilder::new(schema, options.rows_per_short_key, &|number| {
            let plan = plans.get(number).ok_or_else(|| Error::internal("no such column"))?;
            Ok(plan.paged.cell.clone())
        })?;
        let columns = plans.into_iter().map(|plan| ColumnWriter::new(&file, plan)).collect::<Result<_>>()?;
        Ok(Self {
            sink: Sink::new(sink),
            schema: schema.clone(),
            options: options.clone(),
            file,
            columns,
            row_store,
            keys,
            rows: 0,
            has_failed: false,
        })
    }

    /// The columns and types a reader gives, hidden ones too; what can be cast to them without loss can be written.
    pub fn arrow_schema(&self) -> SchemaRef {
        let field = |column: &ColumnWriter| {
            Field::new(&column.plan.name, column.plan.arrow.clone(), column.plan.is_nullable)
        };
        Arc::new(Schema::new(self.columns.iter().map(field).collect::<Vec<_>>()))
    }

    /// Rows so far.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Bytes of encoded pages, and of documents of VARIANT columns, that wait in memory.
    pub fn buffered_bytes(&self) -> usize {
        self.columns.iter().map(ColumnWriter::stored_bytes).sum()
    }

    /// Appends the rows of a batch, whose columns are found by name.
    ///
    /// A column that the batch lacks has the schema's default value, 0 for delete sign and version, the row itself for the
    /// row store, else null.
    ///
    /// # Errors
    /// [`pilaster_core::ErrorKind::InvalidInput`] if a column is missing or of another type, holds a null or a value that
    /// it cannot, or rows are not sorted. Then the segment cannot be finished.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        if self.has_failed {
            return Err(Error::invalid("a segment whose last rows could not be written"));
        }
        self.has_failed = true;
        for field in batch.schema().fields() {
            if !self.schema.columns.iter().any(|column| column.name == *field.name()) {
                return Err(Error::invalid(format!("the schema has no column \"{}\"", field.name())));
            }
        }
        let most = u64::from(self.options.max_rows);
        if self.rows.saturating_add(batch.num_rows() as u64) > most {
            return Err(Error::invalid(format!("more than {most} rows in a segment")));
        }
        let mut start = 0;
        while start < batch.num_rows() {
            let rows = CHUNK_ROWS.min(batch.num_rows().saturating_sub(start));
            self.write_chunk(&batch.slice(start, rows))?;
            start = start.saturating_add(rows);
        }
        self.has_failed = false;
        Ok(())
    }

    fn write_chunk(&mut self, batch: &RecordBatch) -> Result<()> {
        let rows = batch.num_rows();
        let mut arrays: Vec<Option<ArrayRef>> = Vec::with_capacity(self.columns.len());
        for (column, declared) in self.columns.iter().zip(&self.schema.columns) {
            arrays.push(match batch.column_by_name(&declared.name) {
                Some(array) => Some(Arc::clone(array)),
                None if declared.name == ROW_STORE_COLUMN => None,
                None => {
                    Some(missing(declared, &column.plan.arrow, rows).map_err(|e| in_column(e, declared))?)
                }
            });
        }
        let mut values = Vec::with_capacity(self.columns.len());
        for ((column, declared), array) in self.columns.iter().zip(&self.schema.columns).zip(&arrays) {
            let found = match array {
                Some(array) => column.values(array).map_err(|error| in_column(error, declared))?,
                None => None,
            };
            values.push(found);
        }
        self.fill_row_store(&arrays, &mut values, rows)?;
        self.keys.append(&values, rows)?;
        for (((column, declared), array), values) in
            self.columns.iter_mut().zip(&self.schema.columns).zip(&arrays).zip(&values)
        {
            let appended = match (values, array) {
                (Some(values), _) => column.append_values(values),
                (None, Some(array)) => column.append(array),
                (None, None) => Err(Error::internal("no values")),
            };
            appended.map_err(|error| in_column(error, declared))?;
        }
        self.rows = self.rows.saturating_add(rows as u64);
        Ok(())
    }

    /// Makes the row store if the batch does not have it.
    fn fill_row_store(
        &self,
        arrays: &[Option<ArrayRef>],
        values: &mut [Option<Values>],
        rows: usize,
    ) -> Result<()> {
        let (Some(row_store), Some(at)) = (&self.row_store, arrays.iter().position(Option::is_none)) else {
            return Ok(());
        };
        // Columns without cells of their own lend the row store documents and bytes.
        let mut lent = Vec::new();
        for (number, (column, declared)) in self.columns.iter().zip(&self.schema.columns).enumerate() {
            if let (Some(Some(array)), Some(slot @ None)) = (arrays.get(number), values.get_mut(number)) {
                *slot = lent_values(array, &column.plan).map_err(|error| in_column(error, declared))?;
                lent.push(number);
            }
        }
        let made = row_store.make(values, rows)?;
        for number in lent {
            if let Some(slot) = values.get_mut(number) {
                *slot = None;
            }
        }
        if let Some(slot) = values.get_mut(at) {
            *slot = Some(Values { form: Form::Made(made), nulls: None, len: rows });
        }
        Ok(())
    }

    /// Writes pages, indexes and footer and gives the sink back.
    ///
    /// # Errors
    /// [`pilaster_core::ErrorKind::InvalidInput`] if there are no rows, a write failed before, or a document of a VARIANT
    /// is no JSON; [`pilaster_core::ErrorKind::Io`].
    pub fn finish(mut self) -> Result<(W, SegmentSummary)> {
        if self.has_failed {
            return Err(Error::invalid("a segment whose last rows could not be written"));
        }
        if self.rows == 0 {
            return Err(Error::invalid("a segment without rows"));
        }
        for (column, declared) in self.columns.iter_mut().zip(&self.schema.columns) {
            if let Node::Variant(variant) = &mut column.node {
                variant.take_apart().map_err(|error| in_column(error, declared))?;
            }
        }
        let order = self.data_order()?;
        let Self { mut sink, options, file, mut columns, keys, rows, .. } = self;
        for number in &order {
            if let Some(column) = columns.get_mut(*number) {
                column.for_each_paged(&mut |paged| paged.write_data(&mut sink))?;
            }
        }
        let data_bytes = sink.at;
        for column in &mut columns {
            column.for_each_paged(&mut |paged| paged.write_ordinal_index(&mut sink))?;
        }
        for column in &mut columns {
            column.for_each_paged(&mut |paged| paged.write_zone_maps(&mut sink))?;
        }
        for column in &mut columns {
            column.for_each_paged(&mut |paged| paged.write_filters(&mut sink))?;
        }
        let keys = keys.finish(options.segment_id, &mut sink)?;
        let ordered: Vec<&ColumnWriter> = order.iter().filter_map(|number| columns.get(*number)).collect();
        let mut footer = footer(&keys, rows)?;
        match file.format {
            StorageFormat::V2 => footer.columns = inline_columns(&ordered, options.subcolumns_last),
            StorageFormat::V3 => write_external_columns(&ordered, &mut footer, &mut sink)?,
        }
        write_footer(&footer, &mut sink)?;
        let bytes = sink.at;
        let WrittenKeys { min_key, max_key, .. } = keys;
        Ok((sink.finish()?, SegmentSummary { rows, bytes, data_bytes, min_key, max_key }))
    }

    /// Numbers of the columns in the order of their data.
    fn data_order(&self) -> Result<Vec<usize>> {
        let mut order = Vec::with_capacity(self.columns.len());
        for id in &self.options.column_order {
            let number = self.schema.columns.iter().position(|column| column.unique_id == *id);
            let number = number.filter(|number| !order.contains(number));
            order.push(
                number.ok_or_else(|| {
                    Error::invalid(format!("no column, or a repeated one, of unique id {id}"))
                })?,
            );
        }
        let rest: Vec<usize> = (0..self.columns.len()).filter(|number| !order.contains(number)).collect();
        order.extend(rest);
        Ok(order)
    }
}

/// An error that names the column, if it does not say where it is.
pub(super) fn in_column(error: Error, column: &SchemaColumn) -> Error {
    if error.position().is_some() {
        return error;
    }
    error.at(&format!("column \"{}\"", column.name), 0, "")
}

/// The values of a column that a batch does not have.
fn missing(column: &SchemaColumn, arrow: &DataType, rows: usize) -> Result<ArrayRef> {
    let one = default_value(column, arrow)?;
    Ok(take(&one, &UInt32Array::from(vec![0; rows]), None)?)
}

fn footer(keys: &WrittenKeys, rows: u64) -> Result<SegmentFooterPb> {
    Ok(SegmentFooterPb {
        num_rows: Some(u32::try_from(rows).map_err(|_| Error::invalid("2^32 rows in a segment"))?),
        short_key_index_page: keys.short_key_page.map(PagePointer::message),
        primary_key_index_meta: keys.primary.clone(),
        ..SegmentFooterPb::default()
    })
}

fn variant_of(column: &ColumnWriter) -> Option<&VariantWriter> {
    match &column.node {
        Node::Variant(variant) => Some(variant),
        _ => None,
    }
}

/// The columns of a V2 footer.
fn inline_columns(columns: &[&ColumnWriter], subcolumns_last: bool) -> Vec<ColumnMetaPb> {
    let (mut all, mut last) = (Vec::new(), Vec::new());
    for column in columns {
        all.push(meta::top_level(column));
        if let Some(variant) = variant_of(column) {
            let parts = variant.describe_subcolumns(false).into_iter().chain(variant.describe_sparse());
            if subcolumns_last {
                last.extend(parts);
            } else {
                all.extend(parts);
            }
        }
    }
    all.extend(last);
    all
}

/// The columns of a V3 file, in a region of their own; the paths of VARIANT columns get pages before it.
fn write_external_columns<W: Write>(
    columns: &[&ColumnWriter],
    footer: &mut SegmentFooterPb,
    sink: &mut Sink<W>,
) -> Result<()> {
    for column in columns {
        let paths = variant_of(column).map(|variant| variant.write_paths(sink)).transpose()?.flatten();
        if let Some(paths) = paths {
            footer.file_meta_datas.push(MetadataPairPb {
                key: Some(format!("variant_meta_keys.{}", column.plan.unique_id).into_bytes()),
                value: Some(paths.encode_to_vec()),
            });
        }
    }
    footer.version = Some(VERSION_EXTERNAL_COLUMNS);
    footer.col_meta_region_start = Some(sink.at);
    for column in columns {
        let mut root = meta::top_level(column);
        let mut parts = Vec::new();
        if let Some(variant) = variant_of(column) {
            root.children_columns.extend(variant.describe_sparse());
            parts = variant.describe_subcolumns(true);
        }
        for meta in std::iter::once(root).chain(parts) {
            let bytes = meta.encode_to_vec();
            footer.column_meta_entries.push(ColumnMetaEntryPb {
                unique_id: meta.unique_id.map(u32::cast_signed),
                length: u32::try_from(bytes.len()).ok(),
            });
            sink.write(&bytes)?;
        }
    }
    Ok(())
}

/// The message, its length and checksum, and the magic.
pub(crate) fn write_footer<W: Write>(footer: &SegmentFooterPb, sink: &mut Sink<W>) -> Result<()> {
    let message = footer.encode_to_vec();
    let length = u32::try_from(message.len()).map_err(|_| Error::invalid("a footer of 4 GiB"))?;
    sink.write(&message)?;
    sink.write(&length.to_le_bytes())?;
    sink.write(&crc32c(&message).to_le_bytes())?;
    sink.write(MAGIC)
}
