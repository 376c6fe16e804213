//! Schemas as JSON: names and types for files that carry none.
//!
//! ```json
//! {"columns": [{"name": "id", "type": "int64", "nullable": false}, {"name": "price", "type": "decimal(15,2)"}]}
//! ```
//!
//! Types: `bool`, `int8` to `int64`, `uint8` to `uint64`, `int128`, `float`, `double`, `string`, `varchar(n)`, `binary`,
//! `fixed(n)`, `date`, `timestamp` (microseconds in UTC; `timestamp(ms)`, `timestamp(us,+02:00)`), `timestamp_ntz` (without zone),
//! `time(us)`, `duration(us)`, `decimal(p,s)`, `array<T>`, `map<K,V>`, `struct<name:T,…>`. A column is nullable unless it says
//! otherwise.

mod type_names;

use std::fs;
use std::path::Path;
use std::sync::Arc;

use arrow_schema::{Field, Schema, SchemaRef};
use pilaster_core::error::AtPosition;
use pilaster_core::{Error, Result};
use serde_json::{Value, json};

pub use type_names::{parse_field, type_name};

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

/// A schema as JSON; types that have no name here are printed as Arrow names them.
pub fn to_json(schema: &Schema) -> Value {
    let columns = schema.fields().iter().map(
        |field| json!({"name": field.name(), "type": type_name(field), "nullable": field.is_nullable()}),
    );
    json!({"columns": columns.collect::<Vec<_>>()})
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 36] = [
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
        "timestamp(ms)",
        "timestamp(ns,Europe/Berlin)",
        "timestamp_ntz(s)",
        "time(ms)",
        "time(ns)",
        "duration(us)",
        "float16",
        "fixed(16)",
        "null",
        "decimal(15,2)",
        "decimal(38,38)",
        "decimal(76,0)",
        "array<string>",
        "array<array<decimal(5,1)>>",
        "map<string,decimal(5,1)>",
        "struct<A:int32,b c:map<int8,array<string>>>",
        "struct<`a,b`:string,`:``>`:double>",
        "array<struct<>>",
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
        for name in [
            "array<array<",
            "map<string>",
            "map<int8,int8,int8>",
            "struct<a>",
            "struct<a:int8,>",
            "struct<`a:int8>",
        ] {
            let error = column(&json!({"name": "a", "type": name}).to_string());
            assert!(error.contains("no type"), "{name}: {error}");
        }
        let deep = format!("{}int8{}", "map<int8,array<".repeat(40), ">>".repeat(40));
        assert!(column(&json!({"name": "a", "type": deep}).to_string()).contains("nested too deeply"));
    }
}
