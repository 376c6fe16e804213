//! Names of types, and types by their names.

use std::borrow::Cow;
use std::sync::Arc;

use arrow_schema::{
    DECIMAL256_MAX_PRECISION, DataType, Field, FieldRef, Fields, IntervalUnit, TimeUnit, UnionFields,
    UnionMode,
};
use pilaster_core::{Error, Result};

use super::{INT128_KEY, VARCHAR_LENGTH_KEY};

/// Types nested deeper than this are refused.
const DEPTH: u32 = 64;

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
    let text = text.trim();
    let unknown = || Error::invalid(format!("no type \"{text}\""));
    if let Some((kind, parts)) = split_nested(text) {
        let deeper = depth.checked_sub(1).ok_or_else(|| Error::invalid("types nested too deeply"))?;
        return parse_nested(&kind, &parts, deeper)?.ok_or_else(unknown);
    }
    let lower = text.to_ascii_lowercase();
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
        ("date64", None) => DataType::Date64,
        ("interval", Some(name)) => DataType::Interval(interval_unit(name).ok_or_else(unknown)?),
        ("timestamp", _) => {
            // Zones are spelled with capitals.
            let (unit, zone) = match split_type(text).1 {
                None => (TimeUnit::Microsecond, "UTC"),
                Some(arguments) => {
                    let (name, zone) = arguments.split_once(',').unwrap_or((arguments, "UTC"));
                    (unit(name).ok_or_else(unknown)?, zone.trim())
                }
            };
            DataType::Timestamp(unit, Some(zone.into()))
        }
        ("timestamp_ntz", None) => DataType::Timestamp(TimeUnit::Microsecond, None),
        ("timestamp_ntz", Some(name)) => DataType::Timestamp(unit(name).ok_or_else(unknown)?, None),
        ("time", Some(name)) => match unit(name).ok_or_else(unknown)? {
            unit @ (TimeUnit::Second | TimeUnit::Millisecond) => DataType::Time32(unit),
            unit => DataType::Time64(unit),
        },
        ("duration", Some(name)) => DataType::Duration(unit(name).ok_or_else(unknown)?),
        ("float16", None) => DataType::Float16,
        ("fixed", Some(bytes)) => {
            let bytes = bytes.trim().parse::<i32>().ok().filter(|bytes| *bytes >= 0);
            DataType::FixedSizeBinary(bytes.ok_or_else(unknown)?)
        }
        ("null", None) => DataType::Null,
        ("decimal", Some(arguments)) => {
            let (precision, scale) = arguments.split_once(',').ok_or_else(unknown)?;
            let precision = precision.trim().parse::<u8>().map_err(|_| unknown())?;
            let scale = scale.trim().parse::<i8>().map_err(|_| unknown())?;
            decimal(precision, scale)?
        }
        _ => return Err(unknown()),
    })
}

/// Units of time, with their names.
const UNITS: [(TimeUnit, &str); 4] = [
    (TimeUnit::Second, "s"),
    (TimeUnit::Millisecond, "ms"),
    (TimeUnit::Microsecond, "us"),
    (TimeUnit::Nanosecond, "ns"),
];

fn unit(name: &str) -> Option<TimeUnit> {
    UNITS.iter().find(|(_, known)| known.eq_ignore_ascii_case(name.trim())).map(|(unit, _)| *unit)
}

fn unit_name(unit: TimeUnit) -> &'static str {
    UNITS.iter().find(|(known, _)| *known == unit).map_or("", |(_, name)| name)
}

/// What intervals count, with their names.
const INTERVALS: [(IntervalUnit, &str); 3] = [
    (IntervalUnit::YearMonth, "year_month"),
    (IntervalUnit::DayTime, "day_time"),
    (IntervalUnit::MonthDayNano, "month_day_nano"),
];

fn interval_unit(name: &str) -> Option<IntervalUnit> {
    INTERVALS.iter().find(|(_, known)| known.eq_ignore_ascii_case(name.trim())).map(|(unit, _)| *unit)
}

fn interval_name(unit: IntervalUnit) -> &'static str {
    INTERVALS.iter().find(|(known, _)| *known == unit).map_or("", |(_, name)| name)
}

/// The type around `parts`; none if they do not fit it.
fn parse_nested(kind: &str, parts: &[&str], depth: u32) -> Result<Option<DataType>> {
    let field = |name: &str, part: &str, nullable| Ok(Field::new(name, parse_type(part, depth)?, nullable));
    Ok(match (kind, parts) {
        ("array", [item]) => Some(DataType::List(Arc::new(field("item", item, true)?))),
        ("map", [key, value]) => {
            let entries = vec![field("key", key, false)?, field("value", value, true)?];
            let entries = Field::new("entries", DataType::Struct(entries.into()), false);
            Some(DataType::Map(Arc::new(entries), false))
        }
        ("struct", parts) => {
            let named: Option<Vec<_>> = parts.iter().map(|part| split_name(part)).collect();
            let Some(named) = named else { return Ok(None) };
            let fields = named.iter().map(|(name, part)| field(name, part, true));
            Some(DataType::Struct(fields.collect::<Result<Vec<_>>>()?.into()))
        }
        ("union" | "dense_union", parts) => {
            let mode = if kind == "union" { UnionMode::Sparse } else { UnionMode::Dense };
            let named: Option<Vec<_>> = parts.iter().map(|part| split_numbered(part)).collect();
            let Some(named) = named else { return Ok(None) };
            let numbers: Vec<i8> = named.iter().map(|(number, ..)| *number).collect();
            let fields = named.iter().map(|(_, name, part)| field(name, part, true));
            let fields = fields.collect::<Result<Vec<_>>>()?;
            UnionFields::try_new(numbers, fields).ok().map(|fields| DataType::Union(fields, mode))
        }
        _ => None,
    })
}

/// `map<string,array<int8>>` as `map` and `string`, `array<int8>`.
fn split_nested(text: &str) -> Option<(String, Vec<&str>)> {
    let (kind, inner) = text.split_once('<')?;
    let inner = inner.strip_suffix('>')?;
    let mut parts = Vec::new();
    let (mut depth, mut is_quoted, mut start) = (0u32, false, 0);
    for (at, byte) in inner.bytes().enumerate() {
        match byte {
            b'`' => is_quoted = !is_quoted,
            _ if is_quoted => {}
            b'<' | b'(' => depth = depth.saturating_add(1),
            b'>' | b')' => depth = depth.checked_sub(1)?,
            b',' if depth == 0 => {
                parts.push(inner.get(start..at)?);
                start = at.saturating_add(1);
            }
            _ => {}
        }
    }
    let last = inner.get(start..)?;
    if !(parts.is_empty() && last.trim().is_empty()) {
        parts.push(last);
    }
    (depth == 0 && !is_quoted).then(|| (kind.trim().to_ascii_lowercase(), parts))
}

/// Name and type of a field of a struct; a name in backticks may hold anything, backticks twice.
fn split_name(text: &str) -> Option<(String, &str)> {
    let text = text.trim();
    let Some(quoted) = text.strip_prefix('`') else {
        let (name, part) = text.split_once(':')?;
        return Some((name.trim().to_string(), part));
    };
    let (mut name, mut rest) = (String::new(), quoted);
    loop {
        let (before, after) = rest.split_once('`')?;
        name.push_str(before);
        match after.strip_prefix('`') {
            Some(after) => rest = after,
            None => return Some((name, after.trim_start().strip_prefix(':')?)),
        }
        name.push('`');
    }
}

/// Number, name and type of a member of a union.
fn split_numbered(text: &str) -> Option<(i8, String, &str)> {
    let (number, rest) = text.split_once(' ')?;
    let (name, part) = split_name(rest)?;
    Some((number.trim().parse().ok()?, name, part))
}

fn decimal(precision: u8, scale: i8) -> Result<DataType> {
    if precision == 0 || precision > DECIMAL256_MAX_PRECISION || i16::from(scale) > i16::from(precision) {
        let message = format!(
            "decimal({precision},{scale}) needs a precision of 1 to 76 and a scale of at most the precision"
        );
        return Err(Error::invalid(message));
    }
    Ok(if precision <= 38 {
        DataType::Decimal128(precision, scale)
    } else {
        DataType::Decimal256(precision, scale)
    })
}

/// The name of a field's type.
pub fn type_name(field: &Field) -> String {
    if let (DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View, Some(length)) = (
        field.data_type(),
        field.metadata().get(VARCHAR_LENGTH_KEY).and_then(|text| text.parse::<u32>().ok()),
    ) {
        return format!("varchar({length})");
    }
    if field.metadata().contains_key(INT128_KEY) && field.data_type().is_decimal() {
        return "int128".to_string();
    }
    match field.data_type() {
        DataType::Dictionary(_, values) => type_name(&Field::new("", values.as_ref().clone(), true)),
        DataType::RunEndEncoded(_, values) => type_name(values),
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::ListView(item)
        | DataType::LargeListView(item)
        | DataType::FixedSizeList(item, _) => format!("array<{}>", type_name(item)),
        DataType::Union(fields, mode) => {
            let kind = if *mode == UnionMode::Sparse { "union" } else { "dense_union" };
            let named = |(number, field): (i8, &FieldRef)| {
                format!("{number} {}:{}", quoted(field.name()), type_name(field))
            };
            format!("{kind}<{}>", fields.iter().map(named).collect::<Vec<_>>().join(","))
        }
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(fields) => format!("map<{}>", type_names(fields, |_| String::new())),
            other => other.to_string(),
        },
        DataType::Struct(fields) => {
            format!("struct<{}>", type_names(fields, |field| format!("{}:", quoted(field.name()))))
        }
        DataType::Boolean => "bool".to_string(),
        DataType::Float32 => "float".to_string(),
        DataType::Float64 => "double".to_string(),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => "string".to_string(),
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => "binary".to_string(),
        DataType::Date32 => "date".to_string(),
        DataType::Date64 => "date64".to_string(),
        DataType::Interval(unit) => format!("interval({})", interval_name(*unit)),
        DataType::Timestamp(TimeUnit::Microsecond, None) => "timestamp_ntz".to_string(),
        DataType::Timestamp(unit, None) => format!("timestamp_ntz({})", unit_name(*unit)),
        DataType::Timestamp(unit, Some(zone)) => match (unit, zone.as_ref()) {
            (TimeUnit::Microsecond, "UTC") => "timestamp".to_string(),
            (unit, "UTC") => format!("timestamp({})", unit_name(*unit)),
            (unit, zone) => format!("timestamp({},{zone})", unit_name(*unit)),
        },
        DataType::Time32(unit) | DataType::Time64(unit) => format!("time({})", unit_name(*unit)),
        DataType::Duration(unit) => format!("duration({})", unit_name(*unit)),
        DataType::Float16 => "float16".to_string(),
        DataType::FixedSizeBinary(bytes) => format!("fixed({bytes})"),
        DataType::Null => "null".to_string(),
        DataType::Decimal32(precision, scale)
        | DataType::Decimal64(precision, scale)
        | DataType::Decimal128(precision, scale)
        | DataType::Decimal256(precision, scale) => format!("decimal({precision},{scale})"),
        other if other.is_integer() => other.to_string().to_ascii_lowercase(),
        other => other.to_string(),
    }
}

fn type_names(fields: &Fields, before: impl Fn(&Field) -> String) -> String {
    let names: Vec<_> = fields.iter().map(|field| before(field) + &type_name(field)).collect();
    names.join(",")
}

/// A name as it stands in a type.
fn quoted(name: &str) -> Cow<'_, str> {
    let is_plain =
        !name.is_empty() && name.trim() == name && !name.contains(['`', ',', ':', '<', '>', '(', ')']);
    if is_plain { Cow::Borrowed(name) } else { Cow::Owned(format!("`{}`", name.replace('`', "``"))) }
}
