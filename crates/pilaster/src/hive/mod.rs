//! Tables in folders that are named after values, as Hive, Spark and many others write them.
//!
//! ```text
//! sales/country=de/day=2024-05-31/part-0.parquet      country and day are columns of every row in the file
//! sales/country=__HIVE_DEFAULT_PARTITION__/…          rows without a country
//! sales/country=a%2Fb/…                               what a name cannot hold is written as %XX
//! ```
//!
//! The type of such a column is the one that was noted when the folders were written here ([`write_partition_types`]); else what all its
//! values are: a whole number of 64 bits, a date, else text.

mod layout;
mod partition;
mod types;

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, Date32Array, Int64Array, StringArray};
use arrow_cast::cast::{CastOptions, cast_with_options};
use arrow_schema::{DataType, Field, FieldRef};
use pilaster_core::{DatasetRef, Error, Finding, Location, Result};

use crate::folder::note;
use crate::open::OpenOptions;
use layout::{Layout, Leaf};
use partition::PartitionFile;
pub use types::write_partition_types;

/// The files of a partitioned folder, each with its columns, and what was passed over.
pub(crate) struct Opened {
    pub(crate) files: Vec<(String, Result<DatasetRef>)>,
    pub(crate) passed_over: Vec<Finding>,
}

/// Whether a folder holds one that is named like a partition.
///
/// # Errors
/// If it cannot be listed.
pub(crate) fn is_partitioned(folder: &Location) -> Result<bool> {
    layout::has_partitions(folder)
}

/// Opens a folder whose folders are partitions; `None` if they are not.
///
/// # Errors
/// If the folders do not agree on their columns, or cannot be read.
pub(crate) fn open(folder: &Location, options: &OpenOptions) -> Result<Option<Opened>> {
    let Some(Layout { columns, leaves, mut passed_over }) = Layout::find(folder)? else { return Ok(None) };
    let noted = types::noted(folder, options.limits())?;
    let mut constants = Vec::with_capacity(columns.len());
    for (index, name) in columns.iter().enumerate() {
        let texts = leaves.iter().map(|leaf| leaf.values.get(index).and_then(Option::as_deref));
        let texts: Vec<_> = texts.collect();
        let noted = noted.as_ref().and_then(|noted| noted.field_with_name(name).ok());
        let strings: ArrayRef = Arc::new(StringArray::from(texts.clone()));
        let values = match noted.map(|field| types::as_noted(&strings, field.data_type())) {
            Some(Some(values)) => values,
            Some(None) => {
                let message = format!(
                    "values of the partitions by {name:?} are not of the type that was noted for them"
                );
                passed_over.push(note(folder, &message));
                typed(&texts)?
            }
            None => typed(&texts)?,
        };
        let is_nullable = values.null_count() > 0;
        let field: FieldRef = Arc::new(Field::new(name, values.data_type().clone(), is_nullable));
        constants.push((field, values));
    }
    let mut files = Vec::new();
    for (number, Leaf { files: in_leaf, .. }) in leaves.into_iter().enumerate() {
        let values: Vec<_> =
            constants.iter().map(|(field, values)| (Arc::clone(field), values.slice(number, 1))).collect();
        for file in in_leaf {
            let opened = file.content.and_then(|(source, format)| options.open_detected(source, format));
            let opened = opened.and_then(|inner| PartitionFile::open(inner, &values));
            files.push((file.name, opened));
        }
    }
    if files.is_empty() {
        let message = "is a folder of partitions without a file that holds rows";
        return Err(folder.blame(Error::invalid(message)));
    }
    Ok(Some(Opened { files, passed_over }))
}

/// The values of a column, as the type that all of them are.
fn typed(texts: &[Option<&str>]) -> Result<ArrayRef> {
    let present = || texts.iter().flatten();
    let has_values = present().next().is_some();
    // Another spelling of the same number is another folder: 01 stays text.
    let number = |text: &str| text.parse::<i64>().ok().filter(|number| number.to_string() == text);
    if has_values && present().all(|text| number(text).is_some()) {
        return Ok(Arc::new(texts.iter().map(|text| text.and_then(number)).collect::<Int64Array>()));
    }
    let strings: ArrayRef = Arc::new(StringArray::from(texts.to_vec()));
    if has_values && present().all(|text| is_date(text)) {
        let options = CastOptions { safe: false, ..CastOptions::default() };
        if let Ok(dates) = cast_with_options(&strings, &DataType::Date32, &options) {
            return Ok(Arc::new(Date32Array::from(dates.to_data())));
        }
    }
    Ok(strings)
}

/// Whether a text is a date as it is printed: four digits, two and two.
fn is_date(text: &str) -> bool {
    let shape = |(index, byte): (usize, u8)| match index {
        4 | 7 => byte == b'-',
        _ => byte.is_ascii_digit(),
    };
    text.len() == 10 && text.bytes().enumerate().all(shape)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_is_what_all_its_values_are() {
        for (texts, expected) in [
            (vec![Some("1"), None, Some("-20")], DataType::Int64),
            (vec![Some("1"), Some("01")], DataType::Utf8),
            (vec![Some("1"), Some("")], DataType::Utf8),
            (vec![Some("9223372036854775808")], DataType::Utf8),
            (vec![Some("2024-02-29"), None], DataType::Date32),
            (vec![Some("2023-02-29")], DataType::Utf8),
            (vec![Some("2024-02-29"), Some("1")], DataType::Utf8),
            (vec![None], DataType::Utf8),
        ] {
            let values = typed(&texts).unwrap();
            assert_eq!(values.data_type(), &expected, "{texts:?}");
            for (row, text) in texts.iter().enumerate() {
                assert_eq!(values.is_null(row), text.is_none(), "{texts:?}");
            }
        }
    }
}
