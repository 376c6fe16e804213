//! The schema of a tablet for rows of Arrow.
//!
//! | Arrow | Doris |
//! | --- | --- |
//! | booleans, signed integers | BOOLEAN, TINYINT, SMALLINT, INT, BIGINT |
//! | unsigned integers | the next wider signed type; LARGEINT for 64 bits |
//! | floats | FLOAT, DOUBLE |
//! | decimals | DECIMAL32, DECIMAL64, DECIMAL128I, DECIMAL256 by their digits |
//! | dates, timestamps without and with a zone | DATEV2, DATETIMEV2, TIMESTAMPTZ |
//! | text | STRING; VARCHAR(65533) in keys, which STRING cannot be |
//! | lists, maps, structs | ARRAY, MAP, STRUCT |

use arrow_schema::{DataType, Field, Schema, TimeUnit};
use pilaster_core::{Error, Result};

use crate::schema::{DELETE_SIGN_COLUMN, KeysType, SchemaColumn, TabletSchema, VERSION_COLUMN};

/// The longest VARCHAR.
const VARCHAR_BYTES: i32 = 65_533;
/// Bytes of text in a short key.
const SHORT_TEXT_BYTES: i32 = 20;
/// A short key has so many columns and so many bytes at most.
const SHORT_KEY_COLUMNS: usize = 3;
const SHORT_KEY_BYTES: i32 = 36;
const STRING_BYTES: i32 = 2_147_483_643;

/// What Arrow does not say of a table: its key model.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TableModel {
    /// What rows of equal keys mean.
    pub keys_type: KeysType,
    /// The key columns, in order; the first column if there are none.
    pub keys: Vec<String>,
    /// How values of equal keys become one in an aggregating table: column and rule, `SUM`, `MIN`, `MAX`, `REPLACE` or
    /// `REPLACE_IF_NOT_NULL`; REPLACE for those not named.
    pub aggregations: Vec<(String, String)>,
    /// Whether a unique table merges when it is read, and not when it is written.
    pub merge_on_read: bool,
    /// Columns whose pages have bloom filters.
    pub bloom_columns: Vec<String>,
}

impl TabletSchema {
    /// The schema of a tablet with the columns of `arrow`, keys first.
    ///
    /// # Errors
    /// [`pilaster_core::ErrorKind::InvalidInput`] if a column is not there or cannot be what the model says,
    /// [`pilaster_core::ErrorKind::Unsupported`] if Doris has no type for one.
    pub fn from_arrow(arrow: &Schema, model: &TableModel) -> Result<Self> {
        let first = arrow.fields().first().ok_or_else(|| Error::invalid("a tablet without columns"))?;
        let keys = if model.keys.is_empty() { vec![first.name().clone()] } else { model.keys.clone() };
        let named =
            keys.iter().chain(&model.bloom_columns).chain(model.aggregations.iter().map(|(name, _)| name));
        for name in named {
            pilaster_core::dataset::column_index(arrow, name)?;
        }
        let is_key = |field: &Field| keys.iter().any(|key| key == field.name());
        let mut fields = Vec::with_capacity(arrow.fields().len());
        for key in &keys {
            fields.extend(arrow.fields().iter().filter(|field| field.name() == key));
        }
        fields.extend(arrow.fields().iter().filter(|field| !is_key(field)));
        if fields.len() != arrow.fields().len() {
            return Err(Error::invalid("a key column that is named twice"));
        }
        let mut ids = 0..i32::MAX;
        let mut columns = Vec::with_capacity(fields.len());
        for field in fields {
            let mut column = column_of(field, is_key(field), &mut ids)?;
            column.is_bf_column = model.bloom_columns.contains(field.name());
            column.aggregation = aggregation(&column, model)?;
            columns.push(column);
        }
        let mut schema = Self {
            keys_type: model.keys_type,
            num_short_key_columns: short_key_columns(&columns),
            columns,
            merge_on_write: model.keys_type == KeysType::Unique && !model.merge_on_read,
            ..Self::default()
        };
        if model.keys_type == KeysType::Unique {
            let rule = (!schema.merge_on_write).then(|| "REPLACE".to_string());
            for (name, type_name, length) in
                [(DELETE_SIGN_COLUMN, "TINYINT", 1), (VERSION_COLUMN, "BIGINT", 8)]
            {
                schema.columns.push(SchemaColumn {
                    unique_id: ids.next().unwrap_or_default(),
                    name: name.to_string(),
                    type_name: type_name.to_string(),
                    length,
                    index_length: length,
                    default_value: Some("0".to_string()),
                    aggregation: rule.clone(),
                    ..SchemaColumn::default()
                });
            }
        }
        Ok(schema)
    }
}

fn aggregation(column: &SchemaColumn, model: &TableModel) -> Result<Option<String>> {
    let given = model.aggregations.iter().find(|(name, _)| *name == column.name).map(|(_, rule)| rule);
    if let Some(rule) = given {
        let rule = rule.to_ascii_uppercase();
        let is_known = ["SUM", "MIN", "MAX", "REPLACE", "REPLACE_IF_NOT_NULL"].contains(&rule.as_str());
        if column.is_key || model.keys_type != KeysType::Aggregate || !is_known {
            let name = &column.name;
            return Err(Error::invalid(format!(
                "column \"{name}\" cannot be aggregated by {rule} in this table"
            )));
        }
        return Ok(Some(rule));
    }
    let replaces = match model.keys_type {
        KeysType::Duplicate => false,
        KeysType::Unique => model.merge_on_read,
        KeysType::Aggregate => true,
    };
    Ok((replaces && !column.is_key).then(|| "REPLACE".to_string()))
}

fn column_of(field: &Field, is_key: bool, ids: &mut std::ops::Range<i32>) -> Result<SchemaColumn> {
    let (type_name, length, precision, frac) = match value_type(field.data_type()) {
        DataType::Boolean => ("BOOLEAN", 1, 0, 0),
        DataType::Int8 => ("TINYINT", 1, 0, 0),
        DataType::Int16 | DataType::UInt8 => ("SMALLINT", 2, 0, 0),
        DataType::Int32 | DataType::UInt16 => ("INT", 4, 0, 0),
        DataType::Int64 | DataType::UInt32 => ("BIGINT", 8, 0, 0),
        DataType::UInt64 => ("LARGEINT", 16, 0, 0),
        DataType::Float16 | DataType::Float32 => ("FLOAT", 4, 0, 0),
        DataType::Float64 => ("DOUBLE", 8, 0, 0),
        DataType::Decimal32(digits, scale)
        | DataType::Decimal64(digits, scale)
        | DataType::Decimal128(digits, scale)
        | DataType::Decimal256(digits, scale) => decimal(*digits, *scale, field)?,
        DataType::Date32 | DataType::Date64 => ("DATEV2", 4, 0, 0),
        DataType::Timestamp(unit, None) => ("DATETIMEV2", 8, 0, fraction_digits(*unit)),
        DataType::Timestamp(unit, Some(_)) => ("TIMESTAMPTZ", 8, 0, fraction_digits(*unit)),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View if is_key => {
            ("VARCHAR", VARCHAR_BYTES, 0, 0)
        }
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => ("STRING", STRING_BYTES, 0, 0),
        DataType::List(_) | DataType::LargeList(_) | DataType::FixedSizeList(..) => ("ARRAY", 0, 0, 0),
        DataType::Map(..) => ("MAP", 0, 0, 0),
        DataType::Struct(_) => ("STRUCT", 0, 0, 0),
        other => {
            let name = field.name();
            return Err(Error::unsupported(format!("column \"{name}\": Doris has no type for {other}")));
        }
    };
    let is_text = matches!(type_name, "VARCHAR" | "STRING");
    let unique_id = ids.next().unwrap_or_default();
    Ok(SchemaColumn {
        unique_id,
        name: field.name().clone(),
        type_name: type_name.to_string(),
        is_key,
        is_nullable: field.is_nullable(),
        length,
        index_length: if is_text { SHORT_TEXT_BYTES } else { length },
        precision,
        frac,
        visible: true,
        children: children(field.data_type(), ids)?,
        ..SchemaColumn::default()
    })
}

/// What a dictionary stands for.
fn value_type(data_type: &DataType) -> &DataType {
    match data_type {
        DataType::Dictionary(_, values) => value_type(values),
        other => other,
    }
}

fn decimal(digits: u8, scale: i8, field: &Field) -> Result<(&'static str, i32, i32, i32)> {
    if scale < 0 {
        let name = field.name();
        return Err(Error::unsupported(format!("column \"{name}\": decimals of negative scale")));
    }
    let (name, length) = match digits {
        0..=9 => ("DECIMAL32", 4),
        10..=18 => ("DECIMAL64", 8),
        19..=38 => ("DECIMAL128I", 16),
        _ => ("DECIMAL256", 32),
    };
    Ok((name, length, i32::from(digits), i32::from(scale)))
}

fn fraction_digits(unit: TimeUnit) -> i32 {
    match unit {
        TimeUnit::Second => 0,
        TimeUnit::Millisecond => 3,
        TimeUnit::Microsecond | TimeUnit::Nanosecond => 6,
    }
}

/// The columns that a nested one is made of, by the names Doris gives them.
fn children(data_type: &DataType, ids: &mut std::ops::Range<i32>) -> Result<Vec<SchemaColumn>> {
    let named = |field: &Field, name: &str, ids: &mut _| {
        column_of(&Field::new(name, field.data_type().clone(), field.is_nullable()), false, ids)
    };
    match data_type {
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            Ok(vec![named(item, "item", ids)?])
        }
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(pair) => match pair.as_ref() {
                [key, value] => Ok(vec![named(key, "key", ids)?, named(value, "value", ids)?]),
                _ => Err(Error::invalid("a map without keys and values")),
            },
            _ => Err(Error::invalid("a map without entries")),
        },
        DataType::Struct(fields) => fields.iter().map(|field| column_of(field, false, ids)).collect(),
        _ => Ok(Vec::new()),
    }
}

/// As Doris chooses: the first keys up to 36 bytes, three at most, up to the first text.
fn short_key_columns(columns: &[SchemaColumn]) -> usize {
    let mut bytes = 0;
    let mut count = 0usize;
    for column in columns.iter().filter(|column| column.is_key).take(SHORT_KEY_COLUMNS) {
        let is_text = column.type_name == "VARCHAR";
        bytes += column.index_length;
        if bytes > SHORT_KEY_BYTES && !(is_text && count == 0) {
            break;
        }
        if matches!(column.type_name.as_str(), "FLOAT" | "DOUBLE") {
            break;
        }
        count = count.saturating_add(1);
        if is_text {
            break;
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn keys_come_first_and_models_bring_their_columns() {
        let arrow = Schema::new(vec![
            Field::new("v", DataType::Float64, true),
            Field::new("k2", DataType::Utf8View, false),
            Field::new("k1", DataType::Int64, false),
            Field::new("tags", DataType::List(Arc::new(Field::new("x", DataType::Utf8, true))), true),
            Field::new("price", DataType::Decimal128(20, 4), true),
        ]);
        let keys = vec!["k1".to_string(), "k2".to_string()];
        let model = TableModel { keys_type: KeysType::Unique, keys, ..TableModel::default() };
        let schema = TabletSchema::from_arrow(&arrow, &model).unwrap();
        let columns = schema.columns.iter().map(|column| (column.name.as_str(), column.type_name.as_str()));
        let expected = [
            ("k1", "BIGINT"),
            ("k2", "VARCHAR"),
            ("v", "DOUBLE"),
            ("tags", "ARRAY"),
            ("price", "DECIMAL128I"),
            ("__DORIS_DELETE_SIGN__", "TINYINT"),
            ("__DORIS_VERSION_COL__", "BIGINT"),
        ];
        assert_eq!(columns.collect::<Vec<_>>(), expected);
        assert!(schema.merge_on_write);
        assert_eq!((schema.num_short_key_columns, schema.columns[3].children[0].unique_id), (2, 4));
        for (keys, aggregations) in
            [(vec!["nothing"], vec![]), (vec!["k1", "k1"], vec![]), (vec!["k1"], vec![("v", "SUM")])]
        {
            let model = TableModel {
                keys: keys.into_iter().map(String::from).collect(),
                aggregations: aggregations
                    .into_iter()
                    .map(|(a, b): (&str, &str)| (a.into(), b.into()))
                    .collect(),
                ..TableModel::default()
            };
            assert!(TabletSchema::from_arrow(&arrow, &model).is_err(), "{model:?}");
        }
    }
}
