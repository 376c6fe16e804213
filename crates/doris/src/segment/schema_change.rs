//! Columns of a file in the types that the schema has today.
//!
//! Most changes of a type make Doris write all rows anew. What it changes in the schema alone, leaving the files as they are, are
//! the insides of nested columns: a STRUCT gets more fields at its end, a VARCHAR becomes longer, an integer or a float wider.
//! Parts are joined by their place, because files do not name them and Doris neither moves nor renames them.

use arrow_schema::DataType;
use pilaster_core::{Error, Result};

use super::column::{Column, schema_type};
use super::types::{FieldType, Physical};
use crate::schema::SchemaColumn;

/// Integers from narrow to wide.
const INTEGERS: [FieldType; 5] =
    [FieldType::TinyInt, FieldType::SmallInt, FieldType::Int, FieldType::BigInt, FieldType::LargeInt];

/// A column of a file that is another type in the schema: the type to cast it to, `None` if values are the same in both.
pub(super) fn other_type(
    column: &Column,
    stored: FieldType,
    schema: &SchemaColumn,
) -> Result<Option<DataType>> {
    let declared = FieldType::from_schema_name(&schema.type_name);
    if declared == Some(stored) {
        return Ok(None);
    }
    let is_nested =
        |field_type: FieldType| field_type.physical() == Physical::Nested && field_type != FieldType::Variant;
    if is_nested(stored) || declared.is_some_and(is_nested) {
        return Err(refuse(schema, stored));
    }
    let wanted = schema_type(schema)?;
    Ok((wanted != column.arrow()).then_some(wanted))
}

/// Refuses a STRUCT that has more fields in the file than in a schema that names them.
pub(super) fn check_fields(schema: Option<&SchemaColumn>, stored: usize) -> Result<()> {
    match schema {
        Some(schema) if !schema.children.is_empty() && schema.children.len() < stored => {
            Err(Error::invalid(format!(
                "\"{}\" is a STRUCT of {stored} fields in the file and of {} in the schema: Doris only adds fields",
                schema.name,
                schema.children.len()
            )))
        }
        _ => Ok(()),
    }
}

/// A part of a nested column, in the type that the schema has for it.
pub(super) fn widened(column: Column, stored: FieldType, schema: &SchemaColumn) -> Result<Column> {
    let declared = FieldType::from_schema_name(&schema.type_name);
    let is_text = |field_type| matches!(field_type, FieldType::Char | FieldType::Varchar | FieldType::String);
    match declared {
        Some(declared) if declared == stored => {
            // Digits may be missing in a schema; others than the file's would make other values of the same bytes.
            let has_digits = matches!(column.arrow(), DataType::Decimal128(..) | DataType::Decimal256(..))
                && schema.precision > 0;
            if has_digits && schema_type(schema)? != column.arrow() {
                return Err(refuse(schema, stored));
            }
            Ok(column)
        }
        Some(declared) if is_text(declared) && is_text(stored) => Ok(column),
        Some(declared) if is_wider(declared, stored) => {
            Ok(Column::Cast(Box::new(column), schema_type(schema)?))
        }
        _ => Err(refuse(schema, stored)),
    }
}

fn is_wider(declared: FieldType, stored: FieldType) -> bool {
    let place = |field_type: FieldType| INTEGERS.iter().position(|integer| *integer == field_type);
    match (place(stored), place(declared)) {
        (Some(stored), Some(declared)) => stored < declared,
        _ => (stored, declared) == (FieldType::Float, FieldType::Double),
    }
}

fn refuse(schema: &SchemaColumn, stored: FieldType) -> Error {
    let digits = match schema.precision {
        0 => String::new(),
        precision => format!("({precision}, {})", schema.frac),
    };
    Error::invalid(format!(
        "\"{}\" is {stored} in the file and {}{digits} in the schema, which no schema change of Doris makes of it",
        schema.name, schema.type_name
    ))
}
