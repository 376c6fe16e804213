//! The elements an Arrow schema becomes.

use std::collections::HashMap;

use arrow_schema::{DataType, Field, IntervalUnit, Schema, TimeUnit, UnionMode};
use pilaster_core::{Error, Result};

use super::leaf::decimal_physical;
use crate::metadata::{ConvertedType, KeyValue, LogicalType, PhysicalType, Repetition, SchemaElement, kind};

/// Name of the root.
const ROOT: &str = "schema";
/// Name of the group around an element that may be null.
const LIST_ENTRY: &str = "list";
/// Name of the column that selects the child of a union.
const TYPE_ID: &str = "type_id";

pub(super) fn elements(schema: &Schema) -> Result<Vec<SchemaElement>> {
    let mut builder = Builder { elements: Vec::new() };
    builder.group(SchemaElement { name: ROOT.to_string(), ..SchemaElement::default() }, |builder| {
        schema.fields().iter().map(|field| builder.field(field)).collect()
    })?;
    Ok(builder.elements)
}

/// Arrow's metadata as key/values, in a fixed order.
pub(super) fn key_values(metadata: &HashMap<String, String>) -> Option<Vec<KeyValue>> {
    if metadata.is_empty() {
        return None;
    }
    let mut pairs: Vec<_> = metadata.iter().map(|(key, value)| (key.clone(), Some(value.clone()))).collect();
    pairs.sort();
    Some(pairs)
}

struct Builder {
    elements: Vec<SchemaElement>,
}

impl Builder {
    /// Appends a group and what `children` append; gives its position.
    fn group(
        &mut self,
        element: SchemaElement,
        children: impl FnOnce(&mut Self) -> Result<Vec<i32>>,
    ) -> Result<i32> {
        let at = self.push(element)?;
        let numbers = children(self)?;
        if let Some(element) = usize::try_from(at).ok().and_then(|at| self.elements.get_mut(at)) {
            element.children = Some(numbers);
        }
        Ok(at)
    }

    fn push(&mut self, element: SchemaElement) -> Result<i32> {
        let at = i32::try_from(self.elements.len());
        self.elements.push(element);
        at.map_err(|_| Error::invalid("more columns than a schema can hold"))
    }

    fn field(&mut self, field: &Field) -> Result<i32> {
        let repetition = if field.is_nullable() { Repetition::Optional } else { Repetition::Required };
        self.node(field, field.data_type(), repetition, LogicalType::default())
    }

    /// Appends what `data_type` becomes; `extra` has the fields of a dictionary or of runs around it.
    fn node(
        &mut self,
        field: &Field,
        data_type: &DataType,
        repetition: Repetition,
        extra: LogicalType,
    ) -> Result<i32> {
        match data_type {
            DataType::Dictionary(key, values) => {
                let width = key.primitive_width().unwrap_or(0).saturating_mul(8);
                let extra = LogicalType {
                    dict_index_width: Some(i32::try_from(width).unwrap_or(0)),
                    dict_index_signed: Some(key.is_signed_integer()).filter(|signed| *signed),
                    dict_ordered: field.dict_is_ordered().filter(|ordered| *ordered),
                    ..extra
                };
                return self.node(field, values, repetition, refuse_twice(field, extra)?);
            }
            DataType::RunEndEncoded(ends, values) => {
                let width = ends.data_type().primitive_width().unwrap_or(0).saturating_mul(8);
                let extra = LogicalType { run_end_width: Some(i32::try_from(width).unwrap_or(0)), ..extra };
                return self.node(field, values.data_type(), repetition, refuse_twice(field, extra)?);
            }
            _ => {}
        }
        let mut element = SchemaElement {
            name: field.name().clone(),
            repetition: Some(repetition),
            key_values: key_values(field.metadata()),
            ..SchemaElement::default()
        };
        let mut logical = LogicalType::default();
        if let Some(physical) = leaf(field, data_type, &mut element, &mut logical)? {
            element.physical_type = Some(physical);
            element.logical_type = merged(logical, extra);
            if *data_type == DataType::Null && repetition == Repetition::Required {
                return Err(Error::invalid(format!(
                    "column \"{}\" of nulls that may not be null",
                    field.name()
                )));
            }
            return self.push(element);
        }
        match data_type {
            DataType::Struct(fields) => {
                if fields.is_empty() {
                    return Err(Error::invalid(format!("struct \"{}\" without fields", field.name())));
                }
                element.logical_type = merged(logical, extra);
                self.group(element, |builder| fields.iter().map(|field| builder.field(field)).collect())
            }
            DataType::List(item)
            | DataType::LargeList(item)
            | DataType::ListView(item)
            | DataType::LargeListView(item)
            | DataType::FixedSizeList(item, _) => {
                element.converted_type = Some(ConvertedType::List);
                logical = list_type(data_type);
                element.logical_type = merged(logical, extra);
                self.group(element, |builder| Ok(vec![builder.list_element(item)?]))
            }
            DataType::Map(entries, is_sorted) => {
                let DataType::Struct(pair) = entries.data_type() else {
                    return Err(Error::invalid(format!("map \"{}\" without entries", field.name())));
                };
                element.converted_type = Some(ConvertedType::Map);
                if *is_sorted {
                    logical = LogicalType { kind: kind::MAP, variant: Some(1), ..LogicalType::default() };
                }
                element.logical_type = merged(logical, extra);
                let inner = SchemaElement {
                    name: entries.name().clone(),
                    repetition: Some(Repetition::Repeated),
                    converted_type: Some(ConvertedType::MapKeyValue),
                    key_values: key_values(entries.metadata()),
                    ..SchemaElement::default()
                };
                self.group(element, |builder| {
                    let at = builder
                        .group(inner, |builder| pair.iter().map(|field| builder.field(field)).collect())?;
                    Ok(vec![at])
                })
            }
            DataType::Union(fields, mode) => {
                if repetition == Repetition::Optional {
                    return Err(Error::invalid(format!("union \"{}\" that may be null", field.name())));
                }
                logical = LogicalType {
                    kind: kind::UNION,
                    variant: Some(i32::from(*mode == UnionMode::Dense)),
                    type_ids: Some(fields.iter().map(|(id, _)| i32::from(id)).collect()),
                    type_nullable: Some(fields.iter().map(|(_, f)| i32::from(f.is_nullable())).collect()),
                    ..LogicalType::default()
                };
                element.logical_type = merged(logical, extra);
                self.group(element, |builder| {
                    let selector = SchemaElement {
                        name: TYPE_ID.to_string(),
                        physical_type: Some(PhysicalType::Int32),
                        repetition: Some(Repetition::Required),
                        ..SchemaElement::default()
                    };
                    let mut children = vec![builder.push(selector)?];
                    for (_, child) in fields.iter() {
                        let data_type = child.data_type();
                        let at =
                            builder.node(child, data_type, Repetition::Optional, LogicalType::default())?;
                        children.push(at);
                    }
                    Ok(children)
                })
            }
            other => {
                Err(Error::invalid(format!("column \"{}\": {other} has no form in a redfile", field.name())))
            }
        }
    }

    fn list_element(&mut self, item: &Field) -> Result<i32> {
        if !item.is_nullable() {
            return self.node(item, item.data_type(), Repetition::Repeated, LogicalType::default());
        }
        let entry = SchemaElement {
            name: LIST_ENTRY.to_string(),
            repetition: Some(Repetition::Repeated),
            logical_type: Some(LogicalType { kind: kind::LIST_ENTRY, ..LogicalType::default() }),
            ..SchemaElement::default()
        };
        self.group(entry, |builder| Ok(vec![builder.field(item)?]))
    }
}

fn refuse_twice(field: &Field, extra: LogicalType) -> Result<LogicalType> {
    if extra.dict_index_width.is_some() && extra.run_end_width.is_some() {
        let message = format!("column \"{}\": runs of dictionaries have no form in a redfile", field.name());
        return Err(Error::invalid(message));
    }
    Ok(extra)
}

/// The logical type with the fields of a dictionary or of runs; none if it says nothing.
fn merged(logical: LogicalType, extra: LogicalType) -> Option<LogicalType> {
    let merged = LogicalType {
        dict_index_width: extra.dict_index_width,
        dict_index_signed: extra.dict_index_signed,
        dict_ordered: extra.dict_ordered,
        run_end_width: extra.run_end_width,
        ..logical
    };
    (merged != LogicalType::default()).then_some(merged)
}

fn list_type(data_type: &DataType) -> LogicalType {
    let of = |variant, byte_width| LogicalType {
        kind: kind::LIST,
        variant: Some(variant),
        byte_width,
        ..LogicalType::default()
    };
    match data_type {
        DataType::LargeList(_) => of(1, None),
        DataType::ListView(_) => of(2, None),
        DataType::LargeListView(_) => of(3, None),
        DataType::FixedSizeList(_, size) => of(4, Some(*size)),
        _ => LogicalType::default(),
    }
}

/// The physical type of a leaf; its kind and its converted type are put where they belong. `None` for groups.
fn leaf(
    field: &Field,
    data_type: &DataType,
    element: &mut SchemaElement,
    logical: &mut LogicalType,
) -> Result<Option<PhysicalType>> {
    use PhysicalType::{Boolean, ByteArray, Double, Float, Int32, Int64};
    let mut set = |kind: i32, change: &dyn Fn(&mut LogicalType)| {
        logical.kind = kind;
        change(logical);
    };
    let integer = |bits: i32, signed: bool| {
        move |logical: &mut LogicalType| {
            logical.bit_width = Some(bits);
            logical.signed = Some(signed);
        }
    };
    let variant = |number: i32| move |logical: &mut LogicalType| logical.variant = Some(number);
    let unit = |unit: &TimeUnit| {
        let unit = match unit {
            TimeUnit::Second => 0,
            TimeUnit::Millisecond => 1,
            TimeUnit::Microsecond => 2,
            TimeUnit::Nanosecond => 3,
        };
        move |logical: &mut LogicalType| logical.unit = Some(unit)
    };
    let physical = match data_type {
        DataType::Null => {
            set(kind::NULL, &|_| {});
            Boolean
        }
        DataType::Boolean => Boolean,
        DataType::Int32 => Int32,
        DataType::Int64 => Int64,
        DataType::Int8 => {
            set(kind::INT, &integer(8, true));
            Int32
        }
        DataType::Int16 => {
            set(kind::INT, &integer(16, true));
            Int32
        }
        DataType::UInt8 => {
            set(kind::INT, &integer(8, false));
            Int32
        }
        DataType::UInt16 => {
            set(kind::INT, &integer(16, false));
            Int32
        }
        DataType::UInt32 => {
            set(kind::INT, &integer(32, false));
            Int32
        }
        DataType::UInt64 => {
            set(kind::INT, &integer(64, false));
            Int64
        }
        DataType::Float16 => {
            set(kind::FLOAT16, &|_| {});
            Int32
        }
        DataType::Float32 => Float,
        DataType::Float64 => Double,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {
            element.converted_type = Some(ConvertedType::Utf8);
            match data_type {
                DataType::LargeUtf8 => set(kind::STRING, &variant(1)),
                DataType::Utf8View => set(kind::STRING, &variant(2)),
                _ => {}
            }
            ByteArray
        }
        DataType::Binary => ByteArray,
        DataType::LargeBinary => {
            set(kind::BINARY, &variant(1));
            ByteArray
        }
        DataType::BinaryView => {
            set(kind::BINARY, &variant(2));
            ByteArray
        }
        DataType::FixedSizeBinary(width) => {
            let width = *width;
            set(kind::FIXED_BINARY, &|logical| logical.byte_width = Some(width));
            ByteArray
        }
        DataType::Date32 => {
            set(kind::DATE, &|_| {});
            Int32
        }
        DataType::Date64 => {
            set(kind::DATE, &variant(1));
            Int64
        }
        DataType::Time32(time) => {
            set(kind::TIME, &unit(time));
            Int32
        }
        DataType::Time64(time) => {
            set(kind::TIME, &unit(time));
            Int64
        }
        DataType::Timestamp(time, zone) => {
            set(kind::TIMESTAMP, &unit(time));
            logical.timezone = zone.as_ref().map(ToString::to_string);
            Int64
        }
        DataType::Duration(time) => {
            set(kind::DURATION, &unit(time));
            Int64
        }
        DataType::Interval(IntervalUnit::YearMonth) => {
            set(kind::INTERVAL, &|_| {});
            Int32
        }
        DataType::Interval(IntervalUnit::DayTime) => {
            set(kind::INTERVAL, &variant(1));
            Int64
        }
        DataType::Interval(IntervalUnit::MonthDayNano) => {
            set(kind::INTERVAL, &variant(2));
            ByteArray
        }
        DataType::Decimal32(precision, scale)
        | DataType::Decimal64(precision, scale)
        | DataType::Decimal128(precision, scale)
        | DataType::Decimal256(precision, scale) => {
            let bits = match data_type {
                DataType::Decimal32(..) => 32,
                DataType::Decimal64(..) => 64,
                DataType::Decimal128(..) => 128,
                _ => 256,
            };
            let (precision, scale) = (*precision, *scale);
            if precision == 0 {
                return Err(Error::invalid(format!("column \"{}\": a decimal of no digits", field.name())));
            }
            set(kind::DECIMAL, &|logical| {
                logical.precision = Some(i32::from(precision));
                logical.scale = Some(i32::from(scale));
                logical.bit_width = Some(bits);
            });
            decimal_physical(precision)
        }
        _ => return Ok(None),
    };
    Ok(Some(physical))
}
