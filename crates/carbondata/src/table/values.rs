//! Values that are not in data files: defaults of columns that were added later, and partition values in names of folders.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, StringArray, UInt32Array, new_null_array};
use arrow_cast::cast::{CastOptions, cast_with_options};
use arrow_schema::DataType;
use pilaster_core::{Error, Result};

use crate::file::page::strings::{decimal, surrogate_days};
use crate::file::{Calendar, CarbonType, ColumnNode};

/// What the folder of a null partition is called.
pub(crate) const NULL_PARTITION: &str = "__HIVE_DEFAULT_PARTITION__";

/// One value of the column's type, out of its text.
fn from_text(node: &ColumnNode, text: &str) -> Result<ArrayRef> {
    let data_type = node.field.data_type();
    let text: ArrayRef = Arc::new(StringArray::from(vec![text]));
    let options = CastOptions { safe: false, ..CastOptions::default() };
    Ok(cast_with_options(&text, data_type, &options)?)
}

/// The default of a column as it is stored, for rows written before it was added: an array of one value.
pub(crate) fn default_value(node: &ColumnNode, default: Option<&[u8]>) -> Result<ArrayRef> {
    let null = || new_null_array(node.field.data_type(), 1);
    let Some(bytes) = default.filter(|bytes| !bytes.is_empty()) else { return Ok(null()) };
    let refused = || {
        Error::corrupt(format!("a default value of column {:?}", node.field.name()), format!("{bytes:02x?}"))
    };
    let text = || std::str::from_utf8(bytes).map_err(|_| refused());
    match node.carbon_type {
        CarbonType::Decimal { precision, scale } => {
            let (stored, unscaled) = bytes.split_first().ok_or_else(refused)?;
            let value = decimal(*stored, unscaled, precision, scale)?;
            let array = arrow_array::Decimal128Array::from(vec![value]);
            Ok(Arc::new(array.with_precision_and_scale(precision, i8::try_from(scale).unwrap_or(i8::MAX))?))
        }
        CarbonType::Date => {
            let surrogate = text()?.parse().map_err(|_| refused())?;
            Ok(Arc::new(arrow_array::Date32Array::from(vec![surrogate_days(surrogate)?])))
        }
        CarbonType::Timestamp => {
            let bytes = <[u8; 8]>::try_from(bytes).map_err(|_| refused())?;
            let value = i64::from_be_bytes(bytes) ^ i64::MIN;
            let array = arrow_array::TimestampMillisecondArray::from(vec![value]);
            Ok(Arc::new(array.with_timezone("UTC")))
        }
        CarbonType::Binary => Ok(Arc::new(arrow_array::BinaryViewArray::from_iter_values([bytes]))),
        carbon_type if carbon_type.is_nested() => Err(refused()),
        _ => from_text(node, text()?),
    }
}

/// The value of a partition column, out of `name=value` of a folder: an array of one value.
pub(crate) fn partition_value(node: &ColumnNode, value: &str, calendar: Calendar) -> Result<ArrayRef> {
    if value == NULL_PARTITION {
        return Ok(new_null_array(node.field.data_type(), 1));
    }
    let value = unescape(value);
    if !matches!(node.field.data_type(), DataType::Date32 | DataType::Timestamp(..)) {
        return from_text(node, &value);
    }
    // The name says the day as CarbonData shows it, in its calendar.
    calendar.of_text(&value, |text| from_text(node, text))
}

/// Undoes the escaping of Hive's folder names: `%2F` for `/`.
pub(crate) fn unescape(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let code = bytes.get(at.saturating_add(1)..at.saturating_add(3)).filter(|_| byte == b'%');
        let code = code.and_then(|code| std::str::from_utf8(code).ok());
        match code.and_then(|code| u8::from_str_radix(code, 16).ok()) {
            Some(code) => {
                out.push(code);
                at = at.saturating_add(3);
            }
            None => {
                out.push(byte);
                at = at.saturating_add(1);
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// One value, `count` times.
pub(crate) fn repeat(value: &ArrayRef, count: usize) -> Result<ArrayRef> {
    if value.is_null(0) {
        return Ok(new_null_array(value.data_type(), count));
    }
    Ok(arrow_select::take::take(value, &UInt32Array::from(vec![0; count]), None)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folder_names_are_unescaped() {
        assert_eq!(unescape("j%2Fp%3Dx"), "j/p=x");
        assert_eq!(unescape("f r"), "f r");
        assert_eq!(unescape("50%"), "50%");
        assert_eq!(unescape("%zz%4"), "%zz%4");
    }
}
