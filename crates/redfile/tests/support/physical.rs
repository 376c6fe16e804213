//! Arrow rows in the terms of the file: groups and repeated nodes as the schema has them, values as they are stored.

use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal128Type, Float32Type, Float64Type, Int32Type, Int64Type};
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use pilaster_redfile::metadata::{ConvertedType, Repetition, SchemaElement, kind};
use serde_json::{Map, Value};

/// A row of a batch of files that have no logical types but text, lists and maps.
pub fn row(elements: &[SchemaElement], columns: &[ArrayRef], row: usize) -> Value {
    let children = elements[0].children.clone().unwrap_or_default();
    let fields = children.iter().zip(columns).map(|(child, column)| {
        let element = &elements[*child as usize];
        (element.name.clone(), node(elements, *child as usize, column, row))
    });
    Value::Object(fields.collect::<Map<_, _>>())
}

fn node(elements: &[SchemaElement], number: usize, array: &ArrayRef, row: usize) -> Value {
    if elements[number].repetition == Some(Repetition::Repeated) {
        let list = array.as_list::<i32>().value(row);
        return items(&list, |list, item| one(elements, number, list, item));
    }
    one(elements, number, array, row)
}

fn items(list: &ArrayRef, each: impl Fn(&ArrayRef, usize) -> Value) -> Value {
    Value::Array((0..list.len()).map(|item| each(list, item)).collect())
}

/// One occurrence of a node.
fn one(elements: &[SchemaElement], number: usize, array: &ArrayRef, row: usize) -> Value {
    let element = &elements[number];
    if array.is_null(row) {
        return Value::Null;
    }
    let Some(children) = &element.children else { return leaf(array, row) };
    let group = |fields: Vec<(String, Value)>| Value::Object(fields.into_iter().collect());
    let name = |child: i32| elements[child as usize].name.clone();
    let is_list = matches!(array.data_type(), DataType::List(_) | DataType::Map(..));
    match element.converted_type {
        Some(ConvertedType::List | ConvertedType::Map) if is_list => {
            let child = children[0];
            let inner = &elements[child as usize];
            let list = match array.data_type() {
                DataType::Map(..) => std::sync::Arc::new(array.as_map().value(row)) as ArrayRef,
                _ => array.as_list::<i32>().value(row),
            };
            let is_entry =
                inner.logical_type.as_ref().is_some_and(|logical| logical.kind == kind::LIST_ENTRY);
            let values = items(&list, |list, item| {
                if is_entry {
                    let entry = inner.children.as_ref().unwrap()[0];
                    return group(vec![(name(entry), node(elements, entry as usize, list, item))]);
                }
                one(elements, child as usize, list, item)
            });
            group(vec![(name(child), values)])
        }
        _ => {
            let fields = children.iter().zip(array.as_struct().columns());
            group(
                fields
                    .map(|(child, column)| (name(*child), node(elements, *child as usize, column, row)))
                    .collect(),
            )
        }
    }
}

fn float(value: f64) -> Value {
    let text = if value.is_nan() {
        "NaN"
    } else if value == f64::INFINITY {
        "Infinity"
    } else if value == f64::NEG_INFINITY {
        "-Infinity"
    } else {
        return serde_json::from_str(&format!("{value:?}")).unwrap();
    };
    text.into()
}

fn leaf(array: &ArrayRef, row: usize) -> Value {
    match array.data_type() {
        DataType::Boolean => array.as_boolean().value(row).into(),
        DataType::Int32 => array.as_primitive::<Int32Type>().value(row).into(),
        DataType::Int64 => array.as_primitive::<Int64Type>().value(row).into(),
        DataType::Decimal128(..) => array.as_primitive::<Decimal128Type>().value(row).to_string().into(),
        DataType::Float32 => float(f64::from(array.as_primitive::<Float32Type>().value(row))),
        DataType::Float64 => float(array.as_primitive::<Float64Type>().value(row)),
        DataType::Utf8 => array.as_string::<i32>().value(row).into(),
        DataType::Binary => {
            let bytes = array.as_binary::<i32>().value(row);
            let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            format!("0x{hex}").into()
        }
        other => panic!("no physical form of {other}"),
    }
}

/// Whether two values are the same; numbers by their value, floats to the bit.
pub fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => {
            let (a, b) = (a.to_string(), b.to_string());
            a == b
                || (a.contains(['.', 'e']) || b.contains(['.', 'e']))
                    && a.parse::<f64>().unwrap().to_bits() == b.parse::<f64>().unwrap().to_bits()
        }
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|((k, a), (l, b))| k == l && same(a, b))
        }
        _ => a == b,
    }
}
