//! Which types the columns have that folders are named after: their names are text, and `1` may be a number or a text.
//!
//! Who writes such folders here leaves `_pilaster_partitions.json` in the outermost one, a schema as everywhere. Other readers pass over
//! files that begin with an underscore.

use arrow_array::{Array, ArrayRef};
use arrow_cast::cast::{CastOptions, cast_with_options};
use arrow_cast::display::array_value_to_string;
use arrow_schema::{DataType, Schema, SchemaRef};
use pilaster_core::{Limits, Location, Result};

use crate::schema_file;

const NAME: &str = "_pilaster_partitions.json";

/// Notes the types of the columns that the folders in `folder` are named after.
///
/// # Errors
/// [`pilaster_core::ErrorKind::Io`]
pub fn write_partition_types(folder: impl Into<Location>, columns: &Schema) -> Result<()> {
    folder.into().child(NAME).write(format!("{:#}\n", schema_file::to_json(columns)).as_bytes())
}

/// The columns as whoever wrote the folder noted them.
pub(super) fn noted(folder: &Location, limits: &Limits) -> Result<Option<SchemaRef>> {
    let file = folder.child(NAME);
    if file.is_link()? || !file.is_file()? {
        return Ok(None);
    }
    schema_file::read_within(&file, limits).map(Some)
}

/// Values of folders as this type, if each of them is the text of such a value.
pub(super) fn as_noted(texts: &ArrayRef, data_type: &DataType) -> Option<ArrayRef> {
    // Numbers and dates have one text each; of a time there are several.
    let is_told_by_text = match data_type {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => return Some(texts.clone()),
        DataType::Boolean | DataType::Date32 | DataType::Decimal128(..) | DataType::Decimal256(..) => true,
        integer if integer.is_integer() => true,
        DataType::Float32 | DataType::Float64 | DataType::Timestamp(..) => false,
        _ => return None,
    };
    let options = CastOptions { safe: false, ..CastOptions::default() };
    let values = cast_with_options(texts, data_type, &options).ok()?;
    let text = |array: &ArrayRef, row: usize| array_value_to_string(array, row).ok();
    let is_same = |row: usize| values.is_null(row) || text(&values, row) == text(texts, row);
    (!is_told_by_text || (0..values.len()).all(is_same)).then_some(values)
}
