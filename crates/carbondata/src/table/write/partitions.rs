//! Names of partition folders, as Hive writes them.

use std::fmt::Write;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{ArrayRef, StringViewArray};
use arrow_cast::cast::cast;
use arrow_schema::{DataType, TimeUnit};
use pilaster_core::{Error, Result};

use super::super::values::NULL_PARTITION;

/// The texts of partition values; empty ones are null, as they go to the same folder. The rows keep their values.
pub(crate) fn partition_text(array: &ArrayRef) -> Result<ArrayRef> {
    let texts = match array.data_type() {
        DataType::Utf8View => {
            if array.as_string_view().iter().flatten().any(|text| text == NULL_PARTITION) {
                return Err(Error::invalid(format!(
                    "a partition value that stands for null: {NULL_PARTITION:?}"
                )));
            }
            Arc::clone(array)
        }
        DataType::Timestamp(..) => {
            // Without a zone, as the engine prints them.
            let plain = cast(array, &DataType::Timestamp(TimeUnit::Millisecond, None))?;
            let texts = cast(&plain, &DataType::Utf8View)?;
            let spaced = texts.as_string_view().iter().map(|text| text.map(|text| text.replace('T', " ")));
            Arc::new(spaced.collect::<StringViewArray>())
        }
        DataType::Int8
        | DataType::Int16
        | DataType::Int32
        | DataType::Int64
        | DataType::Boolean
        | DataType::Date32
        | DataType::Decimal128(..) => cast(array, &DataType::Utf8View)?,
        other => return Err(Error::invalid(format!("a table cannot be partitioned by {other}"))),
    };
    let texts = texts.as_string_view().iter().map(|text| text.filter(|text| !text.is_empty()));
    Ok(Arc::new(texts.collect::<StringViewArray>()))
}

/// `column=value`, with what a path cannot hold escaped.
pub(crate) fn folder_name(column: &str, value: Option<&str>) -> String {
    let mut name = escaped(column);
    name.push('=');
    match value {
        Some(value) => name.push_str(&escaped(value)),
        None => name.push_str(NULL_PARTITION),
    }
    name
}

fn escaped(text: &str) -> String {
    const SPECIAL: &str = "\"#%'*/:=?\\{[]^\u{7f}";
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        if letter < ' ' || SPECIAL.contains(letter) {
            let _ = write!(out, "%{:02X}", u32::from(letter));
        } else {
            out.push(letter);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_escaped_as_hive_does() {
        assert_eq!(folder_name("country", Some("j/p=x")), "country=j%2Fp%3Dx");
        assert_eq!(folder_name("country", Some("f r")), "country=f r");
        assert_eq!(folder_name("c", None), "c=__HIVE_DEFAULT_PARTITION__");
        assert_eq!(folder_name("c", Some("é\n")), "c=é%0A");
    }
}
