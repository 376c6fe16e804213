//! A tablet's schema for rows of any Arrow schema.

use std::collections::HashMap;

use arrow_schema::{DataType, Field, Schema};
use pilaster_core::{Error, Result};

use crate::schema::{DELETE_SIGN_COLUMN, KeysType, SchemaColumn, TabletSchema, VERSION_COLUMN};
use crate::segment::FieldType;

/// Strings that can be keys are not longer.
const LONGEST_KEY: i32 = 65_533;
/// Bytes of a string in the short key.
const SHORT_STRING: i32 = 20;
/// The short key has at most so many columns and bytes.
const SHORT_KEY_COLUMNS: usize = 3;
const SHORT_KEY_BYTES: i32 = 36;
/// All date-times of Arrow become those of six digits after the second.
const SECOND_DIGITS: i32 = 6;

/// What a table makes of its rows, which an Arrow schema does not say.
///
/// ```
/// use arrow_schema::{DataType, Field, Schema};
/// use pilaster_doris::{TableModel, TabletSchema};
///
/// let arrow = Schema::new(vec![
///     Field::new("name", DataType::Utf8, true),
///     Field::new("id", DataType::Int64, false),
/// ]);
/// let schema = TabletSchema::from_arrow(&arrow, &TableModel::unique(["id"]))?;
/// let names: Vec<_> = schema.columns.iter().map(|column| column.name.as_str()).collect();
/// assert_eq!(names, ["id", "name", "__DORIS_DELETE_SIGN__", "__DORIS_VERSION_COL__"]);
/// # Ok::<(), pilaster_core::Error>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct TableModel {
    keys_type: KeysType,
    keys: Vec<String>,
    merge_on_write: bool,
    aggregations: HashMap<String, String>,
    bloom_columns: Vec<String>,
}

impl TableModel {
    /// All rows stay, sorted by these columns; by none if there are none.
    pub fn duplicate<S: Into<String>>(keys: impl IntoIterator<Item = S>) -> Self {
        Self { keys: keys.into_iter().map(Into::into).collect(), ..Self::default() }
    }

    /// The newest row of each key stays; found out when rows are written.
    pub fn unique<S: Into<String>>(keys: impl IntoIterator<Item = S>) -> Self {
        Self { keys_type: KeysType::Unique, merge_on_write: true, ..Self::duplicate(keys) }
    }

    /// Rows of equal keys are aggregated; columns that are not named by [`TableModel::with_aggregation`] keep the newest
    /// value.
    pub fn aggregate<S: Into<String>>(keys: impl IntoIterator<Item = S>) -> Self {
        Self { keys_type: KeysType::Aggregate, ..Self::duplicate(keys) }
    }

    /// Whether a unique table finds out replaced rows when it is written, instead of when it is read.
    #[must_use]
    pub fn with_merge_on_write(mut self, merge_on_write: bool) -> Self {
        self.merge_on_write = merge_on_write;
        self
    }

    /// How a column of an aggregating table is aggregated: SUM, MIN, MAX, REPLACE, REPLACE_IF_NOT_NULL.
    #[must_use]
    pub fn with_aggregation(mut self, column: impl Into<String>, name: impl Into<String>) -> Self {
        self.aggregations.insert(column.into(), name.into());
        self
    }

    /// Columns whose pages have bloom filters.
    #[must_use]
    pub fn with_bloom_columns<S: Into<String>>(mut self, columns: impl IntoIterator<Item = S>) -> Self {
        self.bloom_columns = columns.into_iter().map(Into::into).collect();
        self
    }
}

impl TabletSchema {
    /// The schema of a tablet that holds rows of an Arrow schema: keys first, then the other columns, then those that queries
    /// do not see.
    ///
    /// # Errors
    /// [`pilaster_core::ErrorKind::InvalidInput`] if a named column is not there or cannot be a key,
    /// [`pilaster_core::ErrorKind::Unsupported`] if Doris stores no such type.
    pub fn from_arrow(arrow: &Schema, model: &TableModel) -> Result<Self> {
        let named = model.keys.iter().chain(&model.bloom_columns).chain(model.aggregations.keys());
        for name in named {
            if arrow.index_of(name).is_err() {
                return Err(Error::invalid(format!("there is no column \"{name}\"")));
            }
        }
        let is_key = |field: &Field| model.keys.contains(field.name());
        let keys = model.keys.iter().filter_map(|name| arrow.field_with_name(name).ok());
        let values = arrow.fields().iter().map(AsRef::as_ref).filter(|field| !is_key(field));
        let mut next_id = 0;
        let mut columns = Vec::with_capacity(arrow.fields().len());
        for field in keys.chain(values) {
            let column = column(field, is_key(field), &mut next_id)
                .map_err(|error| error.at(&format!("column \"{}\"", field.name()), 0, ""))?;
            columns.push(SchemaColumn {
                aggregation: Some(aggregation(field, is_key(field), model)?),
                is_bf_column: model.bloom_columns.contains(field.name()),
                ..column
            });
        }
        if model.keys_type != KeysType::Duplicate && model.keys.is_empty() {
            return Err(Error::invalid("a unique or aggregating table without key columns"));
        }
        if model.keys_type == KeysType::Unique {
            let aggregation = if model.merge_on_write { "NONE" } else { "REPLACE" };
            for (name, type_name, length) in
                [(DELETE_SIGN_COLUMN, "TINYINT", 1), (VERSION_COLUMN, "BIGINT", 8)]
            {
                columns.push(SchemaColumn {
                    unique_id: take_id(&mut next_id),
                    name: name.to_string(),
                    type_name: type_name.to_string(),
                    aggregation: Some(aggregation.to_string()),
                    length,
                    index_length: length,
                    default_value: Some("0".to_string()),
                    ..SchemaColumn::default()
                });
            }
        }
        Ok(Self {
            keys_type: model.keys_type,
            num_short_key_columns: short_key_columns(&columns),
            merge_on_write: model.keys_type == KeysType::Unique && model.merge_on_write,
            columns,
            ..Self::default()
        })
    }
}

fn aggregation(field: &Field, is_key: bool, model: &TableModel) -> Result<String> {
    let chosen = model.aggregations.get(field.name());
    let default = match model.keys_type {
        _ if is_key => "NONE",
        KeysType::Duplicate => "NONE",
        KeysType::Unique if model.merge_on_write => "NONE",
        KeysType::Unique | KeysType::Aggregate => "REPLACE",
    };
    match chosen {
        Some(name) if is_key || model.keys_type != KeysType::Aggregate => Err(Error::invalid(format!(
            "column \"{}\" cannot be aggregated by {name}: only values of aggregating tables are",
            field.name()
        ))),
        chosen => Ok(chosen.map_or_else(|| default.to_string(), |name| name.to_ascii_uppercase())),
    }
}

/// How many of the first keys are in the short key: few, and a string only as the last.
fn short_key_columns(columns: &[SchemaColumn]) -> usize {
    let (mut count, mut bytes) = (0usize, 0i32);
    for column in columns.iter().filter(|column| column.is_key).take(SHORT_KEY_COLUMNS) {
        bytes = bytes.saturating_add(column.index_length);
        if count > 0 && bytes > SHORT_KEY_BYTES {
            break;
        }
        count = count.saturating_add(1);
        if column.type_name == "VARCHAR" {
            break;
        }
    }
    count
}

fn take_id(next_id: &mut i32) -> i32 {
    let id = *next_id;
    *next_id = next_id.saturating_add(1);
    id
}

fn column(field: &Field, is_key: bool, next_id: &mut i32) -> Result<SchemaColumn> {
    let unique_id = take_id(next_id);
    let (field_type, precision, frac) = doris_type(field.data_type(), is_key)?;
    let children: Vec<Field> = match field.data_type() {
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            vec![item.as_ref().clone().with_name("item")]
        }
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(fields) => {
                let names = ["key", "value"];
                fields.iter().zip(names).map(|(field, name)| field.as_ref().clone().with_name(name)).collect()
            }
            other => return Err(Error::invalid(format!("a map with entries of {other}"))),
        },
        DataType::Struct(fields) => fields.iter().map(|field| field.as_ref().clone()).collect(),
        _ => Vec::new(),
    };
    let is_unusable = matches!(field_type, FieldType::Float | FieldType::Double) || !children.is_empty();
    if is_key && is_unusable {
        return Err(Error::invalid(format!("{field_type} cannot be a key")));
    }
    let length = match field_type {
        FieldType::Varchar => LONGEST_KEY,
        FieldType::String => i32::MAX,
        FieldType::Array | FieldType::Map | FieldType::Struct => 65_535,
        other => i32::try_from(other.width().unwrap_or(0)).unwrap_or(i32::MAX),
    };
    let is_string = matches!(field_type, FieldType::Varchar | FieldType::String);
    Ok(SchemaColumn {
        unique_id,
        name: field.name().clone(),
        type_name: field_type.name().to_string(),
        is_key,
        is_nullable: field.is_nullable() || *field.data_type() == DataType::Null,
        length,
        index_length: if is_string { SHORT_STRING } else { length },
        precision,
        frac,
        visible: true,
        children: children.iter().map(|child| column(child, false, next_id)).collect::<Result<_>>()?,
        ..SchemaColumn::default()
    })
}

/// The type, precision and scale in which Doris holds every value of an Arrow type.
fn doris_type(arrow: &DataType, is_key: bool) -> Result<(FieldType, i32, i32)> {
    let plain = |field_type: FieldType| Ok((field_type, 0, 0));
    match arrow {
        DataType::Boolean => plain(FieldType::Bool),
        DataType::Int8 | DataType::Null => plain(FieldType::TinyInt),
        DataType::Int16 | DataType::UInt8 => plain(FieldType::SmallInt),
        DataType::Int32 | DataType::UInt16 => plain(FieldType::Int),
        DataType::Int64 | DataType::UInt32 => plain(FieldType::BigInt),
        DataType::UInt64 => plain(FieldType::LargeInt),
        DataType::Float16 | DataType::Float32 => plain(FieldType::Float),
        DataType::Float64 => plain(FieldType::Double),
        DataType::Date32 | DataType::Date64 => plain(FieldType::DateV2),
        DataType::Timestamp(_, None) => Ok((FieldType::DateTimeV2, 0, SECOND_DIGITS)),
        DataType::Timestamp(_, Some(_)) => Ok((FieldType::TimestampTz, 0, SECOND_DIGITS)),
        DataType::Decimal32(digits, scale)
        | DataType::Decimal64(digits, scale)
        | DataType::Decimal128(digits, scale)
        | DataType::Decimal256(digits, scale) => {
            if *scale < 0 {
                return Err(Error::unsupported(format!("decimals of negative scale ({arrow})")));
            }
            let field_type = match digits {
                0..=9 => FieldType::Decimal32,
                10..=18 => FieldType::Decimal64,
                19..=38 => FieldType::Decimal128,
                _ => FieldType::Decimal256,
            };
            Ok((field_type, i32::from(*digits), i32::from(*scale)))
        }
        DataType::Utf8
        | DataType::LargeUtf8
        | DataType::Utf8View
        | DataType::Binary
        | DataType::LargeBinary
        | DataType::BinaryView
        | DataType::FixedSizeBinary(_) => plain(if is_key { FieldType::Varchar } else { FieldType::String }),
        DataType::Dictionary(_, values) => doris_type(values, is_key),
        DataType::List(_) | DataType::LargeList(_) | DataType::FixedSizeList(..) => plain(FieldType::Array),
        DataType::Map(..) => plain(FieldType::Map),
        DataType::Struct(_) => plain(FieldType::Struct),
        other => Err(Error::unsupported(format!("a Doris column of {other}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segment::{SegmentReader, SegmentReaderOptions, SegmentWriteOptions, SegmentWriter};
    use arrow_array::{RecordBatch, new_null_array};
    use arrow_cast::cast;
    use arrow_schema::{Fields, TimeUnit};
    use pilaster_core::Dataset;
    use std::sync::Arc;

    fn types() -> Vec<DataType> {
        let item = |data_type: DataType| Arc::new(Field::new("element", data_type, true));
        let entries = DataType::Struct(Fields::from(vec![
            Field::new("keys", DataType::Utf8, false),
            Field::new("values", DataType::Int16, true),
        ]));
        vec![
            DataType::Boolean,
            DataType::Int8,
            DataType::UInt8,
            DataType::UInt16,
            DataType::UInt32,
            DataType::UInt64,
            DataType::Float16,
            DataType::Float32,
            DataType::Date32,
            DataType::Date64,
            DataType::Timestamp(TimeUnit::Nanosecond, None),
            DataType::Timestamp(TimeUnit::Second, Some("+02:00".into())),
            DataType::Decimal32(5, 2),
            DataType::Decimal128(20, 3),
            DataType::Decimal256(50, 0),
            DataType::LargeUtf8,
            DataType::Binary,
            DataType::FixedSizeBinary(3),
            DataType::Null,
            DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8)),
            DataType::LargeList(item(DataType::Int32)),
            DataType::FixedSizeList(item(DataType::Utf8), 2),
            DataType::Map(Arc::new(Field::new("entries", entries, false)), false),
            DataType::Struct(Fields::from(vec![Field::new("x", DataType::Utf8View, true)])),
        ]
    }

    #[test]
    fn every_type_has_a_place() {
        let fields: Vec<Field> =
            types().into_iter().enumerate().map(|(n, t)| Field::new(format!("c{n}"), t, true)).collect();
        let arrow = Arc::new(Schema::new(fields));
        let schema = TabletSchema::from_arrow(&arrow, &TableModel::default()).unwrap();
        let columns = arrow.fields().iter().map(|field| new_null_array(field.data_type(), 3)).collect();
        let batch = RecordBatch::try_new(Arc::clone(&arrow), columns).unwrap();
        let mut writer =
            SegmentWriter::try_new(Vec::new(), &schema, &SegmentWriteOptions::default()).unwrap();
        writer.write(&batch).unwrap();
        let (file, _) = writer.finish().unwrap();
        let options = SegmentReaderOptions::default().with_schema(Some(Arc::new(schema)));
        let reader = SegmentReader::open_with_options(pilaster_testing::memory("t", file), &options).unwrap();
        let read = &pilaster_testing::batches(reader.scan()).unwrap()[0];
        assert!(read.columns().iter().all(|column| column.logical_null_count() == 3));
    }

    #[test]
    fn values_of_wider_types_come_back() {
        let texts = arrow_array::StringArray::from(vec!["0", "7", "200"]);
        for data_type in
            [DataType::UInt8, DataType::UInt16, DataType::UInt32, DataType::UInt64, DataType::Float64]
        {
            let values = cast(&texts, &data_type).unwrap();
            let batch = RecordBatch::try_from_iter([("v", values)]).unwrap();
            let schema =
                TabletSchema::from_arrow(&batch.schema(), &TableModel::duplicate(Vec::<String>::new()))
                    .unwrap();
            let mut writer =
                SegmentWriter::try_new(Vec::new(), &schema, &SegmentWriteOptions::default()).unwrap();
            writer.write(&batch).unwrap();
            let (file, _) = writer.finish().unwrap();
            let options = SegmentReaderOptions::default().with_schema(Some(Arc::new(schema)));
            let reader =
                SegmentReader::open_with_options(pilaster_testing::memory("t", file), &options).unwrap();
            let read = &pilaster_testing::batches(reader.scan()).unwrap()[0];
            assert_eq!(&cast(read.column(0), &data_type).unwrap(), batch.column(0), "{data_type}");
        }
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let arrow = |data_type: DataType| Schema::new(vec![Field::new("a", data_type, true)]);
        let none: [String; 0] = [];
        assert!(TabletSchema::from_arrow(&arrow(DataType::Int32), &TableModel::unique(["b"])).is_err());
        assert!(TabletSchema::from_arrow(&arrow(DataType::Int32), &TableModel::unique(none)).is_err());
        assert!(TabletSchema::from_arrow(&arrow(DataType::Float64), &TableModel::duplicate(["a"])).is_err());
        let time = DataType::Time64(TimeUnit::Microsecond);
        assert!(TabletSchema::from_arrow(&arrow(time), &TableModel::default()).is_err());
        let summed = TableModel::unique(["a"]).with_aggregation("a", "SUM");
        assert!(TabletSchema::from_arrow(&arrow(DataType::Int32), &summed).is_err());
    }
}
