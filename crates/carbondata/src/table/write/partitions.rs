//! Names of partition folders, as Hive writes them.

use std::fmt::Write;
use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_array::cast::AsArray;
use arrow_cast::cast::cast;
use arrow_schema::{DataType, TimeUnit};
use pilaster_core::{Error, Result};

use super::super::values::NULL_PARTITION;
use crate::file::Calendar;

/// The texts of partition values. An empty one is refused: no folder is named after it, and that of null is read as null.
pub(crate) fn partition_text(array: &ArrayRef, calendar: Calendar) -> Result<ArrayRef> {
    let texts = match array.data_type() {
        DataType::Utf8View => {
            let is_null = |text: &&str| text.is_empty() || *text == NULL_PARTITION;
            if let Some(text) = array.as_string_view().iter().flatten().find(is_null) {
                return Err(Error::invalid(format!("a partition value that stands for null: {text:?}")));
            }
            Arc::clone(array)
        }
        DataType::Timestamp(..) => {
            // Without a zone, as the engine prints them.
            let plain = cast(&named(array, calendar)?, &DataType::Timestamp(TimeUnit::Millisecond, None))?;
            let texts = cast(&plain, &DataType::Utf8View)?;
            let spaced = texts.as_string_view().iter().map(|text| text.map(|text| text.replace('T', " ")));
            Arc::new(calendar.texts_of(array, spaced.collect()))
        }
        DataType::Date32 => {
            let texts = cast(&named(array, calendar)?, &DataType::Utf8View)?;
            Arc::new(calendar.texts_of(array, texts.as_string_view().clone()))
        }
        DataType::Int8
        | DataType::Int16
        | DataType::Int32
        | DataType::Int64
        | DataType::Boolean
        | DataType::Decimal128(..) => cast(array, &DataType::Utf8View)?,
        other => return Err(Error::invalid(format!("a table cannot be partitioned by {other}"))),
    };
    Ok(texts)
}

/// Days and times by the names that CarbonData has for them.
fn named(array: &ArrayRef, calendar: Calendar) -> Result<ArrayRef> {
    match calendar {
        Calendar::Shown => Ok(Arc::clone(array)),
        Calendar::Stored => Calendar::Shown.shown(array),
    }
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
    use arrow_array::StringViewArray;

    #[test]
    fn what_a_folder_would_call_null_is_refused() {
        let text = |text: &str| {
            partition_text(&(Arc::new(StringViewArray::from(vec![text])) as ArrayRef), Calendar::Shown)
        };
        assert!(text("x").is_ok());
        for null in ["", NULL_PARTITION] {
            assert!(text(null).unwrap_err().to_string().contains("stands for null"));
        }
    }

    #[test]
    fn names_are_escaped_as_hive_does() {
        assert_eq!(folder_name("country", Some("j/p=x")), "country=j%2Fp%3Dx");
        assert_eq!(folder_name("country", Some("f r")), "country=f r");
        assert_eq!(folder_name("c", None), "c=__HIVE_DEFAULT_PARTITION__");
        assert_eq!(folder_name("c", Some("é\n")), "c=é%0A");
    }
}
