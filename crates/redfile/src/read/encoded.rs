//! Arrays that Arrow keeps in another form than the file: unions and dictionaries.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowDictionaryKeyType, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type,
    UInt64Type,
};
use arrow_array::{Array, ArrayRef, DictionaryArray, PrimitiveArray, UInt64Array, UnionArray};
use arrow_buffer::ScalarBuffer;
use arrow_row::{RowConverter, SortField};
use arrow_schema::{DataType, UnionMode};
use hashbrown::HashMap;
use pilaster_core::{Error, Result};

use super::assemble::unassembled;
use crate::gather::gather;
use crate::schema::UnionShape;

/// A union of `children`, which are as long as `selector`.
pub(super) fn union(union: &UnionShape, selector: &ArrayRef, children: Vec<ArrayRef>) -> Result<ArrayRef> {
    let selector = selector.as_primitive::<Int32Type>();
    let ids: Vec<i8> = union.fields.iter().map(|(id, _)| id).collect();
    // Where a struct around the union is null there is no id, and any will do.
    let any = ids.first().copied().unwrap_or_default();
    let mut type_ids = Vec::with_capacity(selector.len());
    for id in selector {
        let id = match id {
            None => any,
            Some(id) => i8::try_from(id)
                .ok()
                .filter(|id| ids.contains(id))
                .ok_or_else(|| Error::corrupt(format!("a type id of {ids:?}"), id))?,
        };
        type_ids.push(id);
    }
    if children.iter().any(|child| child.len() != type_ids.len()) {
        return Err(Error::corrupt("children of a union as long as it", "shorter ones"));
    }
    let (offsets, children) = match union.mode {
        UnionMode::Sparse => (None, children),
        UnionMode::Dense => {
            let mut offsets = vec![0i32; type_ids.len()];
            let mut picked = Vec::with_capacity(children.len());
            for (id, child) in ids.iter().zip(&children) {
                let mut rows = Vec::new();
                for (row, (own, offset)) in type_ids.iter().zip(&mut offsets).enumerate() {
                    if own == id {
                        *offset = i32::try_from(rows.len()).unwrap_or(i32::MAX);
                        rows.push(row as u64);
                    }
                }
                picked.push(gather(child, &UInt64Array::from(rows))?);
            }
            (Some(ScalarBuffer::from(offsets)), picked)
        }
    };
    let array = UnionArray::try_new(union.fields.clone(), type_ids.into(), offsets, children);
    Ok(Arc::new(array.map_err(|error| unassembled(&error))?))
}

/// The values of `array` once each, in the order they first come, and where each of them is used.
pub(super) fn dictionary(array: ArrayRef, data_type: &DataType) -> Result<ArrayRef> {
    let DataType::Dictionary(key, _) = data_type else {
        return Err(Error::internal(format!("a dictionary, not {data_type}")));
    };
    let converter = RowConverter::new(vec![SortField::new(array.data_type().clone())])?;
    let rows = converter.convert_columns(std::slice::from_ref(&array))?;
    let nulls = array.logical_nulls();
    let mut numbers = HashMap::new();
    let mut firsts = Vec::new();
    let mut keys = Vec::with_capacity(array.len());
    for (at, row) in rows.iter().enumerate() {
        if nulls.as_ref().is_some_and(|nulls| nulls.is_null(at)) {
            keys.push(None);
            continue;
        }
        let number = *numbers.entry(row.data()).or_insert_with(|| {
            firsts.push(at as u64);
            firsts.len().saturating_sub(1)
        });
        keys.push(Some(number));
    }
    let words = gather(&array, &UInt64Array::from(firsts))?;
    match key.as_ref() {
        DataType::Int8 => keyed::<Int8Type>(&keys, words),
        DataType::Int16 => keyed::<Int16Type>(&keys, words),
        DataType::Int32 => keyed::<Int32Type>(&keys, words),
        DataType::Int64 => keyed::<Int64Type>(&keys, words),
        DataType::UInt8 => keyed::<UInt8Type>(&keys, words),
        DataType::UInt16 => keyed::<UInt16Type>(&keys, words),
        DataType::UInt32 => keyed::<UInt32Type>(&keys, words),
        _ => keyed::<UInt64Type>(&keys, words),
    }
}

fn keyed<K: ArrowDictionaryKeyType>(keys: &[Option<usize>], words: ArrayRef) -> Result<ArrayRef>
where
    K::Native: TryFrom<usize>,
{
    let narrow = |number: &Option<usize>| match number {
        None => Ok(None),
        Some(number) => K::Native::try_from(*number).map(Some).map_err(|_| {
            let most = words.len();
            Error::invalid(format!(
                "{most} different values in a batch of {} keys: ask for fewer rows",
                K::DATA_TYPE
            ))
        }),
    };
    let keys: PrimitiveArray<K> = keys.iter().map(narrow).collect::<Result<_>>()?;
    Ok(Arc::new(DictionaryArray::try_new(keys, words)?))
}
