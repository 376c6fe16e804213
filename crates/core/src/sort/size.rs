//! How much memory arrays take, and arrays that take no more than they need.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{
    Array, ArrayRef, FixedSizeListArray, GenericListArray, MapArray, OffsetSizeTrait, StructArray,
    UInt64Array,
};
use arrow_schema::{DataType, FieldRef};
use arrow_select::take::take;

use crate::Result;
use crate::fitting::value_bytes;

/// About how many bytes of memory the values of an array take.
pub(super) fn bytes(array: &dyn Array) -> usize {
    let rows = array.len();
    let own = match array.data_type() {
        DataType::Null => 0,
        DataType::Boolean => rows / 8,
        DataType::Utf8View | DataType::BinaryView => rows.saturating_mul(16).saturating_add(strings(array)),
        DataType::Utf8 | DataType::Binary => rows.saturating_mul(4).saturating_add(strings(array)),
        DataType::LargeUtf8 | DataType::LargeBinary => rows.saturating_mul(8).saturating_add(strings(array)),
        DataType::FixedSizeBinary(_) => strings(array),
        DataType::List(_) => list_bytes(array.as_list::<i32>()),
        DataType::LargeList(_) => list_bytes(array.as_list::<i64>()),
        DataType::FixedSizeList(..) => bytes(array.as_fixed_size_list().values()),
        DataType::Map(..) => {
            let map = array.as_map();
            span(map.entries(), map.value_offsets())
        }
        DataType::Struct(_) => {
            array.as_struct().columns().iter().fold(0usize, |sum, column| sum.saturating_add(bytes(column)))
        }
        other => match other.primitive_width() {
            Some(width) => rows.saturating_mul(width),
            None => array.get_array_memory_size(),
        },
    };
    own.saturating_add(rows / 8)
}

fn strings(array: &dyn Array) -> usize {
    usize::try_from(value_bytes(array)).unwrap_or(usize::MAX)
}

fn list_bytes<O: OffsetSizeTrait>(list: &GenericListArray<O>) -> usize {
    span(list.values(), list.value_offsets())
}

fn span<O: OffsetSizeTrait>(elements: &dyn Array, offsets: &[O]) -> usize {
    let at = |offset: Option<&O>| offset.map_or(0, |offset| offset.as_usize());
    let (start, end) = (at(offsets.first()), at(offsets.last()));
    let elements = elements.slice(start.min(elements.len()), end.saturating_sub(start));
    bytes(&elements).saturating_add(offsets.len().saturating_mul(size_of::<O>()))
}

/// The array with strings of its own: views may keep blocks of a file in memory that hold far more than their values.
pub(super) fn copied(array: &ArrayRef) -> Result<ArrayRef> {
    if !has_views(array.data_type()) {
        return Ok(Arc::clone(array));
    }
    if array.data_type().is_nested() {
        // What lists point at may begin before the first and end behind the last of them.
        let all = UInt64Array::from_iter_values(0..array.len() as u64);
        return without_unused(&take(array, &all, None)?);
    }
    without_unused(array)
}

fn has_views(data_type: &DataType) -> bool {
    match data_type {
        DataType::Utf8View | DataType::BinaryView => true,
        DataType::List(field)
        | DataType::LargeList(field)
        | DataType::FixedSizeList(field, _)
        | DataType::Map(field, _) => has_views(field.data_type()),
        DataType::Struct(fields) => fields.iter().any(|field| has_views(field.data_type())),
        _ => false,
    }
}

/// The array without the bytes of strings that are none of its own, in lists, structs and maps too.
pub(super) fn without_unused(array: &ArrayRef) -> Result<ArrayRef> {
    if !has_views(array.data_type()) {
        return Ok(Arc::clone(array));
    }
    Ok(match array.data_type() {
        DataType::Utf8View => Arc::new(array.as_string_view().gc()),
        DataType::BinaryView => Arc::new(array.as_binary_view().gc()),
        DataType::List(item) => Arc::new(list(item, array.as_list::<i32>())?),
        DataType::LargeList(item) => Arc::new(list(item, array.as_list::<i64>())?),
        DataType::FixedSizeList(item, width) => {
            let lists = array.as_fixed_size_list();
            let (values, nulls) = (without_unused(lists.values())?, lists.nulls().cloned());
            Arc::new(FixedSizeListArray::try_new(Arc::clone(item), *width, values, nulls)?)
        }
        DataType::Struct(fields) => {
            let structs = array.as_struct();
            let columns = structs.columns().iter().map(without_unused).collect::<Result<Vec<_>>>()?;
            Arc::new(StructArray::try_new(fields.clone(), columns, structs.nulls().cloned())?)
        }
        DataType::Map(entries, is_sorted) => {
            let map = array.as_map();
            let inner: ArrayRef = Arc::new(map.entries().clone());
            let inner = without_unused(&inner)?.as_struct().clone();
            let (offsets, nulls) = (map.offsets().clone(), map.nulls().cloned());
            Arc::new(MapArray::try_new(Arc::clone(entries), offsets, inner, nulls, *is_sorted)?)
        }
        _ => Arc::clone(array),
    })
}

fn list<O: OffsetSizeTrait>(item: &FieldRef, list: &GenericListArray<O>) -> Result<GenericListArray<O>> {
    let values = without_unused(list.values())?;
    Ok(GenericListArray::try_new(Arc::clone(item), list.offsets().clone(), values, list.nulls().cloned())?)
}
