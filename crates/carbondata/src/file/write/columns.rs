//! From an Arrow schema to the list of columns in headers.
//!
//! Columns stand in the order sort columns, other simple dimensions, long texts, nested columns with every node of theirs,
//! measures. The order of the user is their `ordinal`.

use std::collections::HashSet;

use arrow_schema::{DataType, Field, Schema, TimeUnit};
use pilaster_core::{Error, Result};

use super::super::page::encoding;
use super::super::types::CarbonType;
use super::options::CarbonWriterOptions;
use crate::messages::ColumnSchema;

/// Deepest nesting of columns.
const MAX_DEPTH: usize = 32;

/// How columns are identified and children named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Naming {
    /// As the SDK does: ids are names, here with those of the parents.
    Sdk,
    /// As the engine does in tables: ids are random.
    Table,
}

/// The Arrow type that values of `data_type` are stored as.
///
/// # Errors
/// [`pilaster_core::ErrorKind::InvalidInput`] if there is none.
pub fn storable_type(data_type: &DataType) -> Result<DataType> {
    let item =
        |field: &Field| -> Result<Field> { Ok(Field::new("item", storable_type(field.data_type())?, true)) };
    Ok(match data_type {
        DataType::Boolean | DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Int64 => {
            data_type.clone()
        }
        DataType::UInt8 => DataType::Int16,
        DataType::UInt16 => DataType::Int32,
        DataType::UInt32 => DataType::Int64,
        DataType::UInt64 => DataType::Decimal128(20, 0),
        DataType::Float16 | DataType::Float32 => DataType::Float32,
        DataType::Float64 => DataType::Float64,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Null => DataType::Utf8View,
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => {
            DataType::BinaryView
        }
        DataType::Date32 | DataType::Date64 => DataType::Date32,
        DataType::Timestamp(..) => DataType::Timestamp(TimeUnit::Millisecond, Some("UTC".into())),
        DataType::Decimal32(precision, scale)
        | DataType::Decimal64(precision, scale)
        | DataType::Decimal128(precision, scale)
        | DataType::Decimal256(precision, scale)
            if *precision <= 38 && *scale >= 0 && i16::from(*scale) <= i16::from(*precision) =>
        {
            DataType::Decimal128(*precision, *scale)
        }
        DataType::Dictionary(_, values) => storable_type(values)?,
        DataType::RunEndEncoded(_, values) => storable_type(values.data_type())?,
        DataType::List(field)
        | DataType::LargeList(field)
        | DataType::FixedSizeList(field, _)
        | DataType::ListView(field)
        | DataType::LargeListView(field) => DataType::List(item(field)?.into()),
        DataType::Struct(fields) if !fields.is_empty() => DataType::Struct(
            fields
                .iter()
                .map(|field| {
                    let name = field.name().to_lowercase();
                    Ok(Field::new(name, storable_type(field.data_type())?, true))
                })
                .collect::<Result<Vec<_>>>()?
                .into(),
        ),
        DataType::Map(entries, _) => {
            let DataType::Struct(fields) = entries.data_type() else {
                return Err(Error::invalid("a map without entries"));
            };
            let [key, value] = &**fields else { return Err(Error::invalid("a map without keys and values")) };
            let fields = vec![
                Field::new("key", storable_type(key.data_type())?, false),
                Field::new("value", storable_type(value.data_type())?, true),
            ];
            DataType::Map(Field::new("entries", DataType::Struct(fields.into()), false).into(), false)
        }
        other => return Err(Error::invalid(format!("{other} has no form in CarbonData"))),
    })
}

/// The number of a type in headers.
fn type_number(data_type: &DataType) -> Result<i32> {
    Ok(match data_type {
        DataType::Utf8View => 0,
        DataType::Int16 => 1,
        DataType::Int32 => 2,
        DataType::Int64 => 3,
        DataType::Float64 => 4,
        DataType::Decimal128(..) => 5,
        DataType::Timestamp(..) => 6,
        DataType::Date32 => 7,
        DataType::Boolean => 8,
        DataType::List(_) => 20,
        DataType::Struct(_) => 21,
        DataType::Map(..) => 23,
        DataType::Float32 => 24,
        DataType::Int8 => 25,
        DataType::BinaryView => 26,
        other => return Err(Error::invalid(format!("{other} has no form in CarbonData"))),
    })
}

/// The number of VARCHAR.
const VARCHAR: i32 = 22;

struct Builder {
    naming: Naming,
    /// Elements of arrays and maps so far, which the SDK counts.
    elements: usize,
    columns: Vec<ColumnSchema>,
}

impl Builder {
    /// The SDK leaves out the parents' names, and then takes children of one name for the same column.
    fn id(&self, name: &str) -> String {
        match self.naming {
            Naming::Table => random_id(),
            Naming::Sdk => name.to_string(),
        }
    }

    fn push(&mut self, name: &str, parent: Option<&str>, data_type: &DataType, depth: usize) -> Result<()> {
        if depth > MAX_DEPTH {
            return Err(Error::invalid(format!("column {name:?}: more than {MAX_DEPTH} levels of nesting")));
        }
        let number = type_number(data_type)?;
        let (precision, scale) = match data_type {
            DataType::Decimal128(precision, scale) => (i32::from(*precision), i32::from(*scale)),
            _ => (-1, -1),
        };
        let is_dimension = parent.is_some()
            || data_type.is_nested()
            || matches!(
                data_type,
                DataType::Utf8View | DataType::BinaryView | DataType::Date32 | DataType::Timestamp(..)
            );
        let encoders = match data_type {
            DataType::Date32 if parent.is_none() => vec![encoding::DIRECT_DICTIONARY, encoding::DICTIONARY],
            _ => Vec::new(),
        };
        let num_child = match data_type {
            DataType::Struct(fields) => i32::try_from(fields.len()).unwrap_or(i32::MAX),
            DataType::List(_) | DataType::Map(..) => 1,
            _ => 0,
        };
        self.columns.push(ColumnSchema {
            data_type: number,
            name: name.to_string(),
            column_id: self.id(name),
            encoders,
            is_dimension,
            is_columnar: true,
            group: -1,
            scale,
            precision,
            num_child,
            default_value: None,
            properties: Vec::new(),
            is_invisible: false,
            ordinal: Some(-1),
        });
        self.children(name, data_type, depth.saturating_add(1))
    }

    fn children(&mut self, name: &str, data_type: &DataType, depth: usize) -> Result<()> {
        match data_type {
            DataType::List(item) => {
                let child = self.element(name);
                self.push(&child, Some(name), item.data_type(), depth)
            }
            DataType::Struct(fields) => {
                distinct(fields.iter().map(|field| field.name().as_str()))?;
                fields.iter().try_for_each(|field| {
                    let child = format!("{name}.{}", field.name());
                    self.push(&child, Some(name), field.data_type(), depth)
                })
            }
            DataType::Map(entries, _) => {
                let DataType::Struct(fields) = entries.data_type() else { return Ok(()) };
                let [key, value] = &**fields else { return Ok(()) };
                let number = i32::try_from(fields.len()).unwrap_or(2);
                let (struct_name, key_name, value_name) = self.entries(name);
                let mut structure = ColumnSchema {
                    data_type: type_number(entries.data_type())?,
                    name: struct_name.clone(),
                    column_id: self.id(&struct_name),
                    num_child: number,
                    ..ColumnSchema::text("", -1)
                };
                structure.is_dimension = true;
                self.columns.push(structure);
                let depth = depth.saturating_add(1);
                self.push(&key_name, Some(&struct_name), key.data_type(), depth)?;
                self.push(&value_name, Some(&struct_name), value.data_type(), depth)
            }
            _ => Ok(()),
        }
    }

    /// The name of an array's element.
    fn element(&mut self, name: &str) -> String {
        match self.naming {
            Naming::Table => format!("{name}.val"),
            Naming::Sdk => {
                let number = self.elements;
                self.elements = number.saturating_add(1);
                format!("{name}.val{number}")
            }
        }
    }

    /// The names of a map's struct, its keys and its values.
    fn entries(&mut self, name: &str) -> (String, String, String) {
        match self.naming {
            Naming::Table => {
                (format!("{name}.unknown"), format!("{name}.val.key"), format!("{name}.val.value"))
            }
            Naming::Sdk => {
                let entries = self.element(name);
                let last = name.rsplit('.').next().unwrap_or(name);
                let (key, value) = (format!("{entries}.{last}.key"), format!("{entries}.{last}.value"));
                (entries, key, value)
            }
        }
    }
}

/// A random UUID.
pub(crate) fn random_id() -> String {
    let bits = fastrand::u128(..);
    let version = (bits & !(0xf << 76) & !(0x3 << 62)) | (0x4 << 76) | (0x2 << 62);
    let text = format!("{version:032x}");
    let part = |range: std::ops::Range<usize>| text.get(range).unwrap_or_default();
    format!("{}-{}-{}-{}-{}", part(0..8), part(8..12), part(12..16), part(16..20), part(20..32))
}

fn distinct<'a>(names: impl Iterator<Item = &'a str>) -> Result<()> {
    let mut seen = HashSet::new();
    for name in names {
        if name.is_empty() || name.contains('.') {
            return Err(Error::invalid(format!("a column cannot be called {name:?}")));
        }
        if !seen.insert(name.to_lowercase()) {
            return Err(Error::invalid(format!("two columns are called {name:?}, in lower case")));
        }
    }
    Ok(())
}

/// Where a column stands in the list.
fn rank(column: &ColumnSchema, sort_columns: &[String]) -> (usize, usize) {
    if let Some(place) = sort_columns.iter().position(|name| *name == column.name) {
        return (0, place);
    }
    let group = match column.data_type {
        VARCHAR => 2,
        20 | 21 | 23 => 3,
        _ if column.is_dimension => 1,
        _ => 4,
    };
    (group, 0)
}

/// The columns of files for rows of `schema`, in storage order; those in `dictionaries` hold codes of the table's dictionary.
pub(crate) fn columns_of(
    schema: &Schema,
    options: &CarbonWriterOptions,
    dictionaries: &[String],
    naming: Naming,
) -> Result<Vec<ColumnSchema>> {
    if schema.fields().is_empty() {
        return Err(Error::invalid("a file without columns"));
    }
    distinct(schema.fields().iter().map(|field| field.name().as_str()))?;
    let mut trees = Vec::with_capacity(schema.fields().len());
    let mut elements = 0;
    for (ordinal, field) in schema.fields().iter().enumerate() {
        let name = field.name().to_lowercase();
        let mut builder = Builder { naming, elements, columns: Vec::new() };
        let data_type = storable_type(field.data_type())
            .map_err(|error| Error::invalid(format!("column {name:?}: {error}")))?;
        builder.push(&name, None, &data_type, 0)?;
        elements = builder.elements;
        let mut tree = builder.columns;
        if let Some(top) = tree.first_mut() {
            top.ordinal = i32::try_from(ordinal).ok();
            choose(top, options)?;
            if dictionaries.contains(&top.name) {
                top.is_dimension = true;
                top.encoders = vec![encoding::DICTIONARY];
            }
        }
        trees.push(tree);
    }
    for (names, what) in [
        (&options.sort_columns, "sort by"),
        (&options.inverted_index, "index"),
        (&options.long_strings, "store as a long text"),
    ] {
        let is_column =
            |name: &String| trees.iter().any(|tree| tree.first().is_some_and(|c| c.name == *name));
        if let Some(name) = names.iter().find(|name| !is_column(name)) {
            return Err(Error::invalid(format!("no column {name:?} to {what}")));
        }
    }
    let mut seen = HashSet::new();
    if let Some(name) = options.sort_columns.iter().find(|name| !seen.insert(name.as_str())) {
        return Err(Error::invalid(format!("column {name:?} is a sort column twice")));
    }
    trees.sort_by_key(|tree| tree.first().map(|top| rank(top, &options.sort_columns)));
    Ok(trees.into_iter().flatten().collect())
}

/// What the options say of a column.
fn choose(column: &mut ColumnSchema, options: &CarbonWriterOptions) -> Result<()> {
    let name = column.name.clone();
    let refuse = |what: &str| Err(Error::invalid(format!("column {name:?} {what}")));
    if options.long_strings.contains(&name) {
        if column.data_type != 0 {
            return refuse("is no text, so it cannot be a long one");
        }
        column.data_type = VARCHAR;
    }
    if options.sort_columns.contains(&name) {
        // Floating numbers, decimals, bytes, long texts and nested columns have no order in CarbonData.
        if matches!(column.data_type, 4 | 5 | 20..=24 | 26) {
            return refuse("has a type that rows cannot be sorted by");
        }
        column.is_dimension = true;
        column.properties.push(("sort_columns".into(), "true".into()));
    }
    if options.inverted_index.contains(&name) {
        let is_sorted = options.sort_columns.contains(&name);
        if !is_sorted || !matches!(column.data_type, 0 | 7) {
            return refuse("is no text or date among the sort columns, so it cannot have an inverted index");
        }
        column.encoders.push(encoding::INVERTED_INDEX);
    }
    Ok(())
}

/// Whether a column of the list is one that rows are sorted by.
pub(crate) fn is_sort_column(column: &ColumnSchema) -> bool {
    column.properties.iter().any(|(key, value)| key == "sort_columns" && value == "true")
}

/// The number of a type in encoder metas.
pub(crate) fn meta_type(carbon_type: CarbonType) -> u8 {
    match carbon_type {
        CarbonType::Timestamp => 2,
        CarbonType::Boolean => 3,
        CarbonType::Short => 4,
        CarbonType::Int => 5,
        CarbonType::Float => 6,
        CarbonType::Long => 7,
        CarbonType::Double => 8,
        CarbonType::Decimal { .. } => 10,
        CarbonType::Byte => 14,
        _ => 15,
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::types::column_trees;
    use super::*;
    use std::sync::Arc;

    #[test]
    fn columns_stand_in_the_order_of_the_format() {
        let list = DataType::List(Arc::new(Field::new("item", DataType::Utf8, true)));
        let schema = Schema::new(vec![
            Field::new("M", DataType::Int32, true),
            Field::new("list", list, true),
            Field::new("long", DataType::Utf8, true),
            Field::new("text", DataType::Utf8, true),
            Field::new("key", DataType::Int64, true),
            Field::new("day", DataType::Date32, true),
        ]);
        let options =
            CarbonWriterOptions::default().with_sort_columns(["key", "Day"]).with_long_strings(["long"]);
        let columns = columns_of(&schema, &options, &[], Naming::Sdk).unwrap();
        let names: Vec<_> = columns.iter().map(|column| column.name.as_str()).collect();
        assert_eq!(names, ["key", "day", "text", "long", "list", "list.val0", "m"]);
        let trees = column_trees(&columns, 8).unwrap();
        let names: Vec<_> = trees.iter().map(|tree| tree.field.name().as_str()).collect();
        assert_eq!(names, ["m", "list", "long", "text", "key", "day"]);
        assert_eq!(trees[2].carbon_type, CarbonType::Varchar);
        assert!(columns[0].is_dimension && !columns[6].is_dimension);
    }

    #[test]
    fn what_has_no_form_is_refused() {
        let field = |name: &str, data_type| Field::new(name, data_type, true);
        let try_with = |fields: Vec<Field>, options: CarbonWriterOptions| {
            columns_of(&Schema::new(fields), &options, &[], Naming::Table).map(|_| ())
        };
        let plain = CarbonWriterOptions::default;
        assert!(try_with(vec![field("a", DataType::Int8)], plain()).is_ok());
        assert!(try_with(vec![], plain()).is_err());
        assert!(try_with(vec![field("a", DataType::Int8), field("A", DataType::Int8)], plain()).is_err());
        assert!(try_with(vec![field("a.b", DataType::Int8)], plain()).is_err());
        assert!(try_with(vec![field("a", DataType::Time64(TimeUnit::Nanosecond))], plain()).is_err());
        assert!(try_with(vec![field("a", DataType::Struct(Vec::<Field>::new().into()))], plain()).is_err());
        assert!(try_with(vec![field("a", DataType::Float64)], plain().with_sort_columns(["a"])).is_err());
        assert!(try_with(vec![field("a", DataType::Utf8)], plain().with_sort_columns(["b"])).is_err());
        assert!(try_with(vec![field("a", DataType::Utf8)], plain().with_sort_columns(["a", "A"])).is_err());
        assert!(try_with(vec![field("a", DataType::Utf8)], plain().with_inverted_index(["a"])).is_err());
        assert!(try_with(vec![field("a", DataType::Int32)], plain().with_long_strings(["a"])).is_err());
    }

    #[test]
    fn ids_are_uuids() {
        let id = random_id();
        assert_eq!(id.len(), 36);
        assert_eq!(id.as_bytes()[14], b'4');
        assert_ne!(id, random_id());
    }
}
