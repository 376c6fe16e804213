//! How large rows are in Doris's memory, which decides whether their segment is compressed.

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::DataType;

use crate::schema::{SchemaColumn, TabletSchema};
use crate::segment::FieldType;

/// Segments of rows up to this size are left uncompressed (`segment_compression_threshold_kb`).
pub(super) const COMPRESSED_FROM: usize = 256 << 10;

/// Bytes of a value of a type that older releases keep in another form on disk.
const OLD_DATE_BYTES: usize = 8;
const OLD_DECIMAL_BYTES: usize = 16;
/// Where a string ends.
const OFFSET_BYTES: usize = 8;

/// About how many bytes Doris counts for rows.
pub(super) fn of_rows(schema: &TabletSchema, batch: &RecordBatch) -> usize {
    let fields = batch.schema();
    let columns = fields.fields().iter().zip(batch.columns()).map(|(field, array)| {
        let column = schema.columns.iter().find(|column| column.name == *field.name());
        of_column(column, array)
    });
    columns.fold(0, usize::saturating_add)
}

fn of_column(column: Option<&SchemaColumn>, array: &ArrayRef) -> usize {
    let field_type = column.and_then(|column| FieldType::from_schema_name(&column.type_name));
    let width = match field_type {
        Some(FieldType::Date) => Some(OLD_DATE_BYTES),
        Some(FieldType::Decimal) => Some(OLD_DECIMAL_BYTES),
        Some(other) => other.width(),
        None => None,
    };
    let nulls = if column.is_some_and(|column| column.is_nullable) { array.len() } else { 0 };
    let values = match width {
        Some(width) => width.saturating_mul(array.len()),
        None => of_texts(array),
    };
    values.saturating_add(nulls)
}

fn of_texts(array: &ArrayRef) -> usize {
    let lengths: usize = match array.data_type() {
        DataType::Utf8 => array.as_string::<i32>().iter().flatten().map(str::len).sum(),
        DataType::LargeUtf8 => array.as_string::<i64>().iter().flatten().map(str::len).sum(),
        DataType::Utf8View => array.as_string_view().iter().flatten().map(str::len).sum(),
        DataType::Binary => array.as_binary::<i32>().iter().flatten().map(<[u8]>::len).sum(),
        DataType::LargeBinary => array.as_binary::<i64>().iter().flatten().map(<[u8]>::len).sum(),
        DataType::BinaryView => array.as_binary_view().iter().flatten().map(<[u8]>::len).sum(),
        _ => array.to_data().get_slice_memory_size().unwrap_or(0),
    };
    lengths.saturating_add(array.len().saturating_mul(OFFSET_BYTES))
}
