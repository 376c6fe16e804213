//! The types in which strings are views over the pages they lie in, so that a word of a dictionary is there once.

use std::sync::Arc;

use arrow_schema::{DataType, Field, FieldRef, Schema};

/// The same schema with strings as views.
pub(super) fn schema(schema: &Schema) -> Schema {
    let fields: Vec<_> = schema.fields().iter().map(field).collect();
    Schema::new_with_metadata(fields, schema.metadata().clone())
}

fn field(field: &FieldRef) -> FieldRef {
    Arc::new(Field::clone(field).with_data_type(data_type(field.data_type())))
}

fn data_type(known: &DataType) -> DataType {
    match known {
        DataType::Utf8 | DataType::LargeUtf8 => DataType::Utf8View,
        DataType::Binary | DataType::LargeBinary => DataType::BinaryView,
        DataType::List(item) => DataType::List(field(item)),
        DataType::LargeList(item) => DataType::LargeList(field(item)),
        DataType::FixedSizeList(item, length) => DataType::FixedSizeList(field(item), *length),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(field).collect()),
        DataType::Map(entries, is_sorted) => DataType::Map(field(entries), *is_sorted),
        other => other.clone(),
    }
}
