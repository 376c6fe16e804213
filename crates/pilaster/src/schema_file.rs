//! Schemas as JSON: names and types for files that carry none.
//!
//! ```json
//! {"columns": [{"name": "id", "type": "int64", "nullable": false}, {"name": "price", "type": "decimal(15,2)"}]}
//! ```
//!
//! Types: `bool`, `int8` to `int64`, `uint8` to `uint64`, `int128`, `float`, `double`, `string`, `varchar(n)`, `binary`,
//! `date`, `timestamp` (microseconds in UTC), `timestamp_ntz` (without zone), `decimal(p,s)`, `array<T>`. A column is
//! nullable unless it says otherwise.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use arrow_schema::{DECIMAL256_MAX_PRECISION, DataType, Field, Schema, SchemaRef, TimeUnit};
use pilaster_core::error::AtPosition;
use pilaster_core::{Error, Result};
use serde_json::{Value, json};

/// Arrays nested deeper than this are refused.
const DEPTH: u32 = 32;

/// Key of a field's metadata that keeps the length of a `varchar(n)`.
pub const VARCHAR_LENGTH_KEY: &str = "pilaster:varchar_length";

/// Key of a field's metadata that tells an `int128` from a `decimal(38,0)`.
pub const INT128_KEY: &str = "pilaster:int128";

/// Reads a schema from a file.
///
/// # Errors
/// If the file cannot be read or is no schema; the message names the column.
pub fn read(path: impl AsRef<Path>) -> Result<SchemaRef> {
    let name = path.as_ref().display().to_string();
    let text = fs::read_to_string(path.as_ref()).at(&name, 0, "")?;
    parse(&text).at(&name, 0, "")
}

/// Reads a schema from JSON text.
///
/// # Errors
/// [`pilaster_core::ErrorKind::InvalidInput`] if the text is no schema; the message names the column.
pub fn parse(text: &str) -> Result<SchemaRef> {
    let value: Value = serde_json::from_str(text)
        .map_err(|error| Error::invalid(format!("the schema is no JSON: {error}")))?;
    let columns = value.get("columns").and_then(Value::as_array);
    let columns = columns
        .ok_or_else(|| Error::invalid("a schema is {\"columns\": [{\"name\": …, \"type\": …}, …]}"))?;
    let mut fields: Vec<Field> = Vec::with_capacity(columns.len());
    for (index, column) in columns.iter().enumerate() {
        let field = parse_column(index, column)?;
        if fields.iter().any(|known| known.name() == field.name()) {
            return Err(Error::invalid(format!("column \"{}\" stands in the schema twice", field.name())));
        }
        fields.push(field);
    }
    Ok(Arc::new(Schema::new(fields)))
}

fn parse_column(index: usize, column: &Value) -> Result<Field> {
    let name = column.get("name").and_then(Value::as_str);
    let name =
        name.ok_or_else(|| Error::invalid(format!("column number {index} of the schema has no \"name\"")))?;
    let type_name = column.get("type").and_then(Value::as_str);
    let type_name = type_name
        .ok_or_else(|| Error::invalid(format!("column \"{name}\" of the schema has no \"type\"")))?;
    let nullable = match column.get("nullable") {
        None => true,
        Some(Value::Bool(nullable)) => *nullable,
        Some(other) => {
            let message = format!("column \"{name}\": \"nullable\" is true or false, not {other}");
            return Err(Error::invalid(message));
        }
    };
    parse_field(name, type_name, nullable)
        .map_err(|error| Error::invalid(format!("column \"{name}\": {error}")))
}

/// A field of a type given by name.
///
/// # Errors
/// [`pilaster_core::ErrorKind::InvalidInput`] if there is no such type.
pub fn parse_field(name: &str, type_name: &str, nullable: bool) -> Result<Field> {
    let data_type = parse_type(type_name, DEPTH)?;
    let field = Field::new(name, data_type, nullable);
    Ok(match split_type(type_name) {
        ("varchar", Some(length)) => {
            field.with_metadata([(VARCHAR_LENGTH_KEY.to_string(), length.trim().to_string())].into())
        }
        ("int128", None) => field.with_metadata([(INT128_KEY.to_string(), "true".to_string())].into()),
        _ => field,
    })
}

/// `decimal(15,2)` as `decimal` and `15,2`.
fn split_type(text: &str) -> (&str, Option<&str>) {
    let text = text.trim();
    match text.split_once('(') {
        Some((name, rest)) => (name.trim_end(), rest.strip_suffix(')')),
        None => (text, None),
    }
}

fn parse_type(text: &str, depth: u32) -> Result<DataType> {
    let unknown = || Error::invalid(format!("no type \"{text}\""));
    let lower = text.trim().to_ascii_lowercase();
    if let Some(item) = lower.strip_prefix("array<").and_then(|rest| rest.strip_suffix('>')) {
        let deeper = depth.checked_sub(1).ok_or_else(|| Error::invalid("arrays nested too deeply"))?;
        return Ok(DataType::List(Arc::new(Field::new("item", parse_type(item, deeper)?, true))));
    }
    Ok(match split_type(&lower) {
        ("bool" | "boolean", None) => DataType::Boolean,
        ("int8", None) => DataType::Int8,
        ("int16", None) => DataType::Int16,
        ("int32" | "int", None) => DataType::Int32,
        ("int64" | "bigint", None) => DataType::Int64,
        ("uint8", None) => DataType::UInt8,
        ("uint16", None) => DataType::UInt16,
        ("uint32", None) => DataType::UInt32,
        ("uint64", None) => DataType::UInt64,
        ("int128", None) => DataType::Decimal128(38, 0),
        ("float", None) => DataType::Float32,
        ("double", None) => DataType::Float64,
        ("string", None) => DataType::Utf8,
        ("varchar", Some(length)) => {
            length.trim().parse::<u32>().map_err(|_| unknown())?;
            DataType::Utf8
        }
        ("binary", None) => DataType::Binary,
        ("date", None) => DataType::Date32,
        ("timestamp", None) => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        ("timestamp_ntz", None) => DataType::Timestamp(TimeUnit::Microsecond, None),
        ("decimal", Some(arguments)) => {
            let (precision, scale) = arguments.split_once(',').ok_or_else(unknown)?;
            let precision = precision.trim().parse::<u8>().map_err(|_| unknown())?;
            let scale = scale.trim().parse::<i8>().map_err(|_| unknown())?;
            decimal(precision, scale)?
        }
        _ => return Err(unknown()),
    })
}

fn decimal(precision: u8, scale: i8) -> Result<DataType> {
    if precision == 0
        || precision > DECIMAL256_MAX_PRECISION
        || i16::from(scale) > i16::from(precision)
        || scale < 0
    {
        let message = format!(
            "decimal({precision},{scale}) needs a precision of 1 to 76 and a scale of 0 to the precision"
        );
        return Err(Error::invalid(message));
    }
    Ok(if precision <= 38 {
        DataType::Decimal128(precision, scale)
    } else {
        DataType::Decimal256(precision, scale)
    })
}

/// A schema as JSON; types that have no name here are printed as Arrow names them.
pub fn to_json(schema: &Schema) -> Value {
    let columns = schema.fields().iter().map(
        |field| json!({"name": field.name(), "type": type_name(field), "nullable": field.is_nullable()}),
    );
    json!({"columns": columns.collect::<Vec<_>>()})
}

/// The name of a field's type.
pub fn type_name(field: &Field) -> String {
    if let (DataType::Utf8 | DataType::Utf8View, Some(length)) =
        (field.data_type(), field.metadata().get(VARCHAR_LENGTH_KEY))
    {
        return format!("varchar({length})");
    }
    if field.metadata().contains_key(INT128_KEY) {
        return "int128".to_string();
    }
    match field.data_type() {
        DataType::Dictionary(_, values) => type_name(&Field::new("", values.as_ref().clone(), true)),
        DataType::List(item) | DataType::LargeList(item) => format!("array<{}>", type_name(item)),
        DataType::Boolean => "bool".to_string(),
        DataType::Float32 => "float".to_string(),
        DataType::Float64 => "double".to_string(),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => "string".to_string(),
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => "binary".to_string(),
        DataType::Date32 => "date".to_string(),
        DataType::Timestamp(TimeUnit::Microsecond, None) => "timestamp_ntz".to_string(),
        DataType::Timestamp(TimeUnit::Microsecond, Some(_)) => "timestamp".to_string(),
        DataType::Decimal32(precision, scale)
        | DataType::Decimal64(precision, scale)
        | DataType::Decimal128(precision, scale)
        | DataType::Decimal256(precision, scale) => format!("decimal({precision},{scale})"),
        other if other.is_integer() => other.to_string().to_ascii_lowercase(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 23] = [
        "bool",
        "int8",
        "int16",
        "int32",
        "int64",
        "uint8",
        "uint16",
        "uint32",
        "uint64",
        "int128",
        "float",
        "double",
        "string",
        "binary",
        "varchar(20)",
        "date",
        "timestamp",
        "timestamp_ntz",
        "decimal(15,2)",
        "decimal(38,38)",
        "decimal(76,0)",
        "array<string>",
        "array<array<decimal(5,1)>>",
    ];

    #[test]
    fn every_type_name_comes_back() {
        for name in NAMES {
            let text = json!({"columns": [{"name": "c", "type": name, "nullable": false}]});
            let schema = parse(&text.to_string()).unwrap();
            assert_eq!(to_json(&schema), text);
        }
    }

    #[test]
    fn errors_name_the_column() {
        let column = |text: &str| parse(&format!("{{\"columns\":[{text}]}}")).unwrap_err().to_string();
        assert_eq!(column("{\"type\":\"int8\"}"), "column number 0 of the schema has no \"name\"");
        assert_eq!(column("{\"name\":\"a\"}"), "column \"a\" of the schema has no \"type\"");
        assert_eq!(column("{\"name\":\"a\",\"type\":\"int7\"}"), "column \"a\": no type \"int7\"");
        assert_eq!(
            column("{\"name\":\"a\",\"type\":\"decimal(3,4)\"}"),
            "column \"a\": decimal(3,4) needs a precision of 1 to 76 and a scale of 0 to the precision"
        );
        assert_eq!(
            column("{\"name\":\"a\",\"type\":\"int8\",\"nullable\":1}"),
            "column \"a\": \"nullable\" is true or false, not 1"
        );
        assert_eq!(
            column("{\"name\":\"a\",\"type\":\"int8\"},{\"name\":\"a\",\"type\":\"int8\"}"),
            "column \"a\" stands in the schema twice"
        );
        assert!(column("{\"name\":\"a\",\"type\":\"array<array<\"}").contains("no type"));
    }
}
