//! Schemas as JSON: names and types for files that carry none.
//!
//! ```json
//! {"columns": [{"name": "id", "type": "int64", "nullable": false}, {"name": "price", "type": "decimal(15,2)"}]}
//! ```
//!
//! Types: `bool`, `int8` to `int64`, `uint8` to `uint64`, `int128`, `float`, `double`, `string`, `varchar(n)`, `binary`,
//! `fixed(n)`, `date`, `date64`, `timestamp` (microseconds in UTC; `timestamp(ms)`, `timestamp(us,+02:00)`), `timestamp_ntz` (without zone),
//! `time(us)`, `duration(us)`, `interval(month_day_nano)`, `decimal(p,s)`, `float16`, `null`, `array<T>`, `map<K,V>`,
//! `struct<name:T,…>`, `union<number name:T,…>`. A column is nullable unless it says otherwise.

mod type_names;

use std::path::Path;
use std::sync::Arc;

use arrow_schema::{Field, Schema, SchemaRef};
use pilaster_core::{Error, Limits, Location, Result};
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
    read_within(&Location::local(path.as_ref()), &Limits::default())
}

/// As [`read`], of a file anywhere.
///
/// # Errors
/// Likewise; [`pilaster_core::ErrorKind::LimitExceeded`] if the file is larger than metadata may be.
pub(crate) fn read_within(file: &Location, limits: &Limits) -> Result<SchemaRef> {
    let bytes = file.read("metadata_bytes", limits.metadata_bytes)?;
    let text = std::str::from_utf8(&bytes).map_err(|_| Error::invalid("the schema is no text"));
    text.and_then(parse).map_err(|error| file.blame(error))
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

/// A schema as JSON, which [`parse`] takes: types that differ only in how values lie in memory have one name.
pub fn to_json(schema: &Schema) -> Value {
    let columns = schema.fields().iter().map(
        |field| json!({"name": field.name(), "type": type_name(field), "nullable": field.is_nullable()}),
    );
    json!({"columns": columns.collect::<Vec<_>>()})
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_schema::{DataType, IntervalUnit, UnionFields, UnionMode};
    use proptest::prelude::*;

    const NAMES: [&str; 42] = [
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
        "date64",
        "interval(month_day_nano)",
        "decimal(5,-2)",
        "union<0 a:int8,5 `b c:`:string>",
        "dense_union<127 a:array<union<>>>",
        "array<timestamp(us,+02:00)>",
    ];

    #[test]
    fn every_type_name_comes_back() {
        for name in NAMES {
            let text = json!({"columns": [{"name": "c", "type": name, "nullable": false}]});
            let schema = parse(&text.to_string()).unwrap();
            assert_eq!(to_json(&schema), text);
        }
    }

    /// Types of every kind that Arrow has.
    fn any_type() -> impl Strategy<Value = DataType> {
        use DataType::{
            Binary, BinaryView, Boolean, Date32, Date64, Duration, Float16, Float32, Float64, Int8, Int16,
            Int32, Int64, Interval, LargeBinary, LargeUtf8, Null, Time32, Time64, Timestamp, UInt8, UInt16,
            UInt32, UInt64, Utf8, Utf8View,
        };
        use arrow_schema::TimeUnit::{Microsecond, Millisecond, Nanosecond, Second};
        let mut flat = vec![
            Null,
            Boolean,
            Int8,
            Int16,
            Int32,
            Int64,
            UInt8,
            UInt16,
            UInt32,
            UInt64,
            Float16,
            Float32,
            Float64,
            Utf8,
            LargeUtf8,
            Utf8View,
            Binary,
            LargeBinary,
            BinaryView,
            Date32,
            Date64,
            Time32(Second),
            Time32(Millisecond),
            Time64(Microsecond),
            Time64(Nanosecond),
            DataType::FixedSizeBinary(3),
            DataType::Decimal32(9, 2),
            DataType::Decimal64(18, -3),
            DataType::Decimal128(38, 38),
            DataType::Decimal256(76, 0),
        ];
        for unit in [Second, Millisecond, Microsecond, Nanosecond] {
            let zones = [None, Some("UTC".into()), Some("+02:00".into()), Some("Europe/Berlin".into())];
            flat.extend(zones.map(|zone| Timestamp(unit, zone)));
            flat.push(Duration(unit));
        }
        flat.extend(
            [IntervalUnit::YearMonth, IntervalUnit::DayTime, IntervalUnit::MonthDayNano].map(Interval),
        );
        let name = "[a-c `:,<>()_é]{0,5}";
        let field = |data_type| Arc::new(Field::new("item", data_type, true));
        prop::sample::select(flat).prop_recursive(4, 24, 4, move |inner| {
            let named = (name, inner.clone()).prop_map(|(name, data_type)| Field::new(name, data_type, true));
            let several = prop::collection::vec(named, 0..4);
            prop_oneof![
                inner.clone().prop_map(move |t| DataType::List(field(t))),
                inner.clone().prop_map(move |t| DataType::LargeListView(field(t))),
                inner.clone().prop_map(move |t| DataType::FixedSizeList(field(t), 2)),
                inner.clone().prop_map(|t| DataType::Dictionary(Box::new(UInt8), Box::new(t))),
                inner.clone().prop_map(move |t| {
                    let ends = Arc::new(Field::new("run_ends", Int32, false));
                    DataType::RunEndEncoded(ends, Arc::new(Field::new("values", t, true)))
                }),
                (inner.clone(), inner).prop_map(|(key, value)| {
                    let pair = vec![Field::new("k", key, false), Field::new("v", value, true)];
                    let entries = Field::new("entries", DataType::Struct(pair.into()), false);
                    DataType::Map(Arc::new(entries), false)
                }),
                several.clone().prop_map(|fields| DataType::Struct(fields.into())),
                (several, any::<bool>()).prop_map(|(fields, is_dense)| {
                    let numbers: Vec<i8> = (3..).take(fields.len()).collect();
                    let mode = if is_dense { UnionMode::Dense } else { UnionMode::Sparse };
                    DataType::Union(UnionFields::try_new(numbers, fields).unwrap(), mode)
                }),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_is_printed_is_taken(data_type in any_type(), nullable in any::<bool>()) {
            let printed = to_json(&Schema::new(vec![Field::new("c", data_type, nullable)]));
            let parsed = parse(&printed.to_string()).unwrap();
            prop_assert_eq!(to_json(&parsed), printed);
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
            "column \"a\": decimal(3,4) needs a precision of 1 to 76 and a scale of at most the precision"
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
