//! The value of a column in rows that were written before the column was added.
//!
//! A schema has it as text, already free of functions: `CURRENT_TIMESTAMP` was replaced by a time when the column was added. As
//! Doris reads it:
//!
//! ```text
//! NULL                            null
//! ARRAY                           [] is the only one
//! MAP, STRUCT, AGG_STATE          null is the only one
//! HLL, BITMAP, QUANTILE_STATE     a zero byte, or nothing: the empty sketch, bitmap or state
//! CHAR, VARCHAR, STRING           the text up to its first zero byte
//! no default                      null, and an error where the column may not be null
//! ```

use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, BinaryArray, ListArray, StringArray, new_empty_array, new_null_array};
use arrow_buffer::OffsetBuffer;
use arrow_cast::{CastOptions, cast_with_options};
use arrow_schema::DataType;
use pilaster_core::{Error, Limits, Result};

use super::types::FieldType;
use crate::jsonb;
use crate::schema::{DELETE_SIGN_COLUMN, ROW_STORE_COLUMN, SchemaColumn, VERSION_COLUMN};

/// The text that stands for null, whatever the type.
const NULL: &str = "NULL";
/// HLL and BITMAP: the kind that holds nothing.
const EMPTY: &[u8] = &[0];
/// QUANTILE_STATE: 2048, the usual compression, as a float, and the kind that holds nothing.
const EMPTY_QUANTILES: &[u8] = &[0, 0, 0, 0x45, 0];

/// One value, of the Arrow type `arrow` of the column.
pub(crate) fn default_value(schema: &SchemaColumn, arrow: &DataType) -> Result<ArrayRef> {
    // Tables have these columns without anybody naming a default.
    let is_zero = matches!(schema.name.as_str(), DELETE_SIGN_COLUMN | VERSION_COLUMN);
    let text = schema.default_value.as_deref().or(is_zero.then_some("0"));
    match text.filter(|text| *text != NULL) {
        Some(text) => of_text(schema, text, arrow),
        None if schema.is_nullable => Ok(new_null_array(arrow, 1)),
        None => Err(Error::invalid(format!(
            "column \"{}\" is missing, may not be null and has no default value",
            schema.name
        ))),
    }
}

fn of_text(schema: &SchemaColumn, text: &str, arrow: &DataType) -> Result<ArrayRef> {
    let refuse = |why: &str| {
        let type_name = &schema.type_name;
        Error::invalid(format!(
            "the default value {text:?} of column \"{}\" is no {type_name}{why}",
            schema.name
        ))
    };
    let field_type = FieldType::from_schema_name(&schema.type_name).ok_or_else(|| refuse(""))?;
    let plain = |text: &str| -> Result<ArrayRef> {
        let strict = CastOptions { safe: false, ..CastOptions::default() };
        cast_with_options(&StringArray::from(vec![text]), arrow, &strict)
            .map_err(|error| refuse(&format!(": {error}")))
    };
    let bytes = |bytes: &[u8]| -> Result<ArrayRef> {
        Ok(arrow_cast::cast(&BinaryArray::from_vec(vec![bytes]), arrow)?)
    };
    let is_empty = |names: &[&str]| text.is_empty() || text == "\0" || names.contains(&text);
    match field_type {
        FieldType::Array => match (text, arrow) {
            ("[]", DataType::List(item)) => {
                let no_items = OffsetBuffer::from_lengths([0]);
                let values = new_empty_array(item.data_type());
                Ok(Arc::new(ListArray::try_new(Arc::clone(item), no_items, values, None)?))
            }
            _ => Err(refuse(" that Doris knows: only [] is")),
        },
        FieldType::Map | FieldType::Struct | FieldType::AggState => {
            Err(refuse(" that Doris knows: only NULL is"))
        }
        FieldType::Bitmap if is_empty(&["BITMAP_EMPTY"]) => bytes(EMPTY),
        FieldType::Hll if is_empty(&["HLL_EMPTY"]) => bytes(EMPTY),
        FieldType::QuantileState if is_empty(&[]) => bytes(EMPTY_QUANTILES),
        FieldType::Bitmap | FieldType::Hll | FieldType::QuantileState => {
            Err(refuse(" that Doris knows: only the empty one is"))
        }
        FieldType::Jsonb | FieldType::Variant => {
            let depth = Limits::default().depth;
            let document = jsonb::from_text(text, depth).map_err(|error| refuse(&format!(": {error}")))?;
            plain(&jsonb::to_text(&document, depth)?)
        }
        FieldType::String if schema.name == ROW_STORE_COLUMN => bytes(text.as_bytes()),
        FieldType::Char | FieldType::Varchar | FieldType::String => {
            plain(text.split('\0').next().unwrap_or_default())
        }
        FieldType::Ipv4 => {
            let address: Ipv4Addr = text.parse().map_err(|_| refuse(""))?;
            plain(&address.to_string())
        }
        FieldType::Ipv6 => {
            let address: Ipv6Addr = text.parse().map_err(|_| refuse(""))?;
            plain(&address.to_string())
        }
        _ => {
            let value = plain(text)?;
            // A cast that cannot fail gives null for what it cannot read.
            if value.is_null(0) { Err(refuse("")) } else { Ok(value) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::cast::AsArray;
    use arrow_cast::display::{ArrayFormatter, FormatOptions};

    use crate::segment::schema_type;

    fn column(type_name: &str, default_value: Option<&str>, is_nullable: bool) -> SchemaColumn {
        let item = SchemaColumn { name: "item".into(), type_name: "INT".into(), ..SchemaColumn::default() };
        SchemaColumn {
            name: "added".into(),
            type_name: type_name.into(),
            default_value: default_value.map(str::to_string),
            is_nullable,
            children: vec![item.clone(), item],
            precision: if type_name.starts_with("DECIMAL") { 9 } else { 0 },
            frac: if type_name.starts_with("DECIMAL") { 2 } else { 0 },
            ..SchemaColumn::default()
        }
    }

    fn value(type_name: &str, text: Option<&str>, is_nullable: bool) -> Result<ArrayRef> {
        let column = column(type_name, text, is_nullable);
        default_value(&column, &schema_type(&column).unwrap())
    }

    fn shown(type_name: &str, text: &str) -> String {
        let value = value(type_name, Some(text), false).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(value.len(), 1);
        let options = FormatOptions::default();
        ArrayFormatter::try_new(&value, &options).unwrap().value(0).to_string()
    }

    #[test]
    fn texts_become_values_of_every_type() {
        for (type_name, text, expected) in [
            ("BOOLEAN", "1", "true"),
            ("TINYINT", "-7", "-7"),
            (
                "LARGEINT",
                "-170141183460469231731687303715884105728",
                "-170141183460469231731687303715884105728",
            ),
            ("DOUBLE", "3.141592653589793", "3.141592653589793"),
            ("DECIMAL32", "1.5", "1.50"),
            ("DATE", "2024-02-29", "2024-02-29"),
            ("DATEV2", "0001-01-01", "0001-01-01"),
            ("DATETIME", "2024-02-29 01:02:03", "2024-02-29T01:02:03"),
            ("DATETIMEV2", "2024-02-29 01:02:03.4", "2024-02-29T01:02:03.400"),
            ("TIMESTAMPTZ", "2024-02-29 01:02:03+08:00", "2024-02-28T17:02:03Z"),
            ("CHAR", "ab\0\0", "ab"),
            ("STRING", "", ""),
            ("IPV6", "0:0:0:0:0:0:0:1", "::1"),
            ("JSONB", r#"{"a" : [1]}"#, r#"{"a":[1]}"#),
            ("ARRAY", "[]", "[]"),
            ("BITMAP", "\0", "00"),
            ("BITMAP", "BITMAP_EMPTY", "00"),
            ("HLL", "", "00"),
            ("QUANTILE_STATE", "", "0000004500"),
        ] {
            assert_eq!(shown(type_name, text), expected, "{type_name} {text:?}");
        }
    }

    #[test]
    fn null_is_a_default_of_any_type() {
        for type_name in ["INT", "STRING", "DATEV2", "ARRAY", "MAP", "STRUCT", "BITMAP", "VARIANT"] {
            for text in [None, Some("NULL")] {
                assert_eq!(value(type_name, text, true).unwrap().null_count(), 1, "{type_name}");
                let error = value(type_name, text, false).unwrap_err().to_string();
                assert!(error.contains("\"added\"") && error.contains("may not be null"), "{error}");
            }
        }
        // The text and not the word.
        assert_eq!(value("STRING", Some("null"), true).unwrap().as_string_view().value(0), "null");
    }

    #[test]
    fn what_is_no_value_of_the_type_is_refused_by_name() {
        for (type_name, text) in [
            ("INT", "x"),
            ("INT", "3000000000"),
            ("DATE", "CURRENT_DATE"),
            ("ARRAY", "[1]"),
            ("MAP", "{}"),
            ("STRUCT", "{}"),
            ("BITMAP", "1"),
            ("IPV4", "1.2.3"),
            ("JSONB", "{"),
        ] {
            let error = value(type_name, Some(text), true).unwrap_err().to_string();
            assert!(error.contains("\"added\"") && error.contains(type_name), "{error}");
        }
    }
}
