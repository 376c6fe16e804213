//! Picking values out of arrays, also of those that Arrow's own kernels cannot pick from: unions and runs inside other types.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int16Type, Int32Type, Int64Type, RunEndIndexType};
use arrow_array::{
    Array, ArrayRef, FixedSizeBinaryArray, OffsetSizeTrait, PrimitiveArray, RunArray, UInt64Array,
    UnionArray, make_array,
};
use arrow_buffer::{Buffer, NullBuffer};
use arrow_data::ArrayData;
use arrow_schema::{DataType, UnionFields, UnionMode};
use arrow_select::take::take;
use pilaster_core::{Error, Result};

/// Whether something is in a type that Arrow's kernels lose or refuse: unions, runs, values of no length.
pub(crate) fn is_exotic(data_type: &DataType) -> bool {
    match data_type {
        DataType::Union(..) | DataType::RunEndEncoded(..) => true,
        DataType::FixedSizeBinary(0) | DataType::FixedSizeList(_, 0) => true,
        DataType::Struct(fields) => fields.iter().any(|field| is_exotic(field.data_type())),
        DataType::List(field)
        | DataType::LargeList(field)
        | DataType::ListView(field)
        | DataType::LargeListView(field)
        | DataType::FixedSizeList(field, _)
        | DataType::Map(field, _) => is_exotic(field.data_type()),
        DataType::Dictionary(_, values) => is_exotic(values),
        _ => false,
    }
}

/// The values of `array` at `indices`; null where an index is.
pub(crate) fn gather(array: &ArrayRef, indices: &UInt64Array) -> Result<ArrayRef> {
    if !is_exotic(array.data_type()) {
        return Ok(take(array, indices, None)?);
    }
    let nulls = picked_nulls(array, indices);
    match array.data_type() {
        DataType::Struct(_) => {
            let children = array.as_struct().columns().iter().map(|child| gather(child, indices));
            let children = children.collect::<Result<Vec<_>>>()?;
            from_parts(array.data_type().clone(), indices.len(), Vec::new(), &children, nulls)
        }
        DataType::List(_) => {
            let list = array.as_list::<i32>();
            lists(array, list.values(), list.value_offsets(), indices, nulls)
        }
        DataType::LargeList(_) => {
            let list = array.as_list::<i64>();
            lists(array, list.values(), list.value_offsets(), indices, nulls)
        }
        DataType::Map(..) => {
            let map = array.as_map();
            let entries: ArrayRef = Arc::new(map.entries().clone());
            lists(array, &entries, map.value_offsets(), indices, nulls)
        }
        // Views are picked themselves; what they point to stays.
        DataType::ListView(_) => {
            let list = array.as_list_view::<i32>();
            let parts = [pick(list.offsets(), indices), pick(list.sizes(), indices)];
            from_parts(
                array.data_type().clone(),
                indices.len(),
                parts.into(),
                &[Arc::clone(list.values())],
                nulls,
            )
        }
        DataType::LargeListView(_) => {
            let list = array.as_list_view::<i64>();
            let parts = [pick(list.offsets(), indices), pick(list.sizes(), indices)];
            from_parts(
                array.data_type().clone(),
                indices.len(),
                parts.into(),
                &[Arc::clone(list.values())],
                nulls,
            )
        }
        DataType::FixedSizeList(_, size) => {
            let size = u64::from(size.cast_unsigned());
            let each = |index: Option<u64>| {
                (0..size).map(move |item| index.map(|index| index.saturating_mul(size).saturating_add(item)))
            };
            let inner: UInt64Array = indices.iter().flat_map(each).collect();
            let values = gather(array.as_fixed_size_list().values(), &inner)?;
            from_parts(array.data_type().clone(), indices.len(), Vec::new(), &[values], nulls)
        }
        DataType::FixedSizeBinary(width) => {
            let empty = FixedSizeBinaryArray::try_new_with_len(
                *width,
                Buffer::from_vec(Vec::<u8>::new()),
                nulls,
                indices.len(),
            )?;
            Ok(Arc::new(empty))
        }
        DataType::Union(fields, mode) => union(array.as_union(), fields, *mode, indices),
        DataType::RunEndEncoded(..) => runs(&gather(&expand_runs(array)?, indices)?, array.data_type()),
        other => Err(Error::invalid(format!("{other} cannot be picked from"))),
    }
}

fn picked_nulls(array: &ArrayRef, indices: &UInt64Array) -> Option<NullBuffer> {
    let is_valid = |index: Option<u64>| {
        index.is_some_and(|index| usize::try_from(index).is_ok_and(|index| array.is_valid(index)))
    };
    Some(indices.iter().map(is_valid).collect::<NullBuffer>()).filter(|nulls| nulls.null_count() > 0)
}

fn from_parts(
    data_type: DataType,
    length: usize,
    buffers: Vec<Buffer>,
    children: &[ArrayRef],
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef> {
    let children = children.iter().map(|child| child.to_data()).collect();
    let data = ArrayData::builder(data_type).len(length).buffers(buffers).child_data(children).nulls(nulls);
    Ok(make_array(data.build()?))
}

fn lists<O: OffsetSizeTrait>(
    array: &ArrayRef,
    values: &ArrayRef,
    offsets: &[O],
    indices: &UInt64Array,
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef> {
    let mut starts = vec![O::default()];
    let mut inner = Vec::new();
    for index in indices {
        let index = index.and_then(|index| usize::try_from(index).ok());
        let pair = index.and_then(|index| offsets.get(index..)?.first_chunk::<2>());
        if let Some([start, end]) = pair {
            inner.extend((start.as_usize() as u64)..(end.as_usize() as u64));
        }
        let end = O::from_usize(inner.len())
            .ok_or_else(|| Error::invalid("lists longer than their offsets can tell"))?;
        starts.push(end);
    }
    let values = gather(values, &UInt64Array::from(inner))?;
    from_parts(array.data_type().clone(), indices.len(), vec![Buffer::from_vec(starts)], &[values], nulls)
}

fn pick<O: OffsetSizeTrait>(values: &[O], indices: &UInt64Array) -> Buffer {
    let at = |index: Option<u64>| {
        let index = index.and_then(|index| usize::try_from(index).ok());
        index.and_then(|index| values.get(index).copied()).unwrap_or_default()
    };
    Buffer::from_vec(indices.iter().map(at).collect::<Vec<O>>())
}

fn union(
    union: &UnionArray,
    fields: &UnionFields,
    mode: UnionMode,
    indices: &UInt64Array,
) -> Result<ArrayRef> {
    let any = fields.iter().next().map_or(0, |(id, _)| id);
    let row = |index: Option<u64>| index.and_then(|index| usize::try_from(index).ok());
    let type_ids: Vec<i8> =
        indices.iter().map(|index| row(index).map_or(any, |index| union.type_id(index))).collect();
    let mut offsets = vec![0i32; type_ids.len()];
    let mut children = Vec::with_capacity(fields.len());
    for (id, _) in fields.iter() {
        let mut picks = Vec::new();
        for ((index, own), offset) in indices.iter().zip(&type_ids).zip(&mut offsets) {
            let place = row(index).map(|index| union.value_offset(index) as u64);
            match mode {
                UnionMode::Sparse => picks.push(place.filter(|_| *own == id)),
                UnionMode::Dense if *own == id => {
                    *offset = i32::try_from(picks.len()).unwrap_or(i32::MAX);
                    picks.push(place);
                }
                UnionMode::Dense => {}
            }
        }
        children.push(gather(union.child(id), &UInt64Array::from(picks))?);
    }
    let offsets = (mode == UnionMode::Dense).then(|| offsets.into());
    Ok(Arc::new(UnionArray::try_new(fields.clone(), type_ids.into(), offsets, children)?))
}

/// The values of runs, each as often as its run is long.
pub(crate) fn expand_runs(array: &ArrayRef) -> Result<ArrayRef> {
    let DataType::RunEndEncoded(ends, _) = array.data_type() else {
        return Err(Error::internal(format!("runs, not {}", array.data_type())));
    };
    match ends.data_type() {
        DataType::Int16 => expand::<Int16Type>(array),
        DataType::Int32 => expand::<Int32Type>(array),
        _ => expand::<Int64Type>(array),
    }
}

fn expand<R: RunEndIndexType>(array: &ArrayRef) -> Result<ArrayRef> {
    let runs: &RunArray<R> =
        array.as_run_opt::<R>().ok_or_else(|| Error::internal(format!("runs, not {}", array.data_type())))?;
    let indices = (0..runs.len()).map(|row| runs.get_physical_index(row) as u64);
    gather(runs.values(), &UInt64Array::from_iter_values(indices))
}

/// Equal neighbours of `array` as one value with the end of their run.
pub(crate) fn runs(array: &ArrayRef, data_type: &DataType) -> Result<ArrayRef> {
    let DataType::RunEndEncoded(ends, _) = data_type else {
        return Err(Error::internal(format!("runs, not {data_type}")));
    };
    let ranges = if array.is_empty() {
        Vec::new()
    } else {
        arrow_ord::partition::partition(std::slice::from_ref(array))?.ranges()
    };
    let starts = UInt64Array::from_iter_values(ranges.iter().map(|range| range.start as u64));
    let values = gather(array, &starts)?;
    let ends_of: Vec<usize> = ranges.iter().map(|range| range.end).collect();
    match ends.data_type() {
        DataType::Int16 => run_array::<Int16Type>(&ends_of, &values),
        DataType::Int32 => run_array::<Int32Type>(&ends_of, &values),
        _ => run_array::<Int64Type>(&ends_of, &values),
    }
}

fn run_array<R: RunEndIndexType>(ends: &[usize], values: &ArrayRef) -> Result<ArrayRef>
where
    R::Native: TryFrom<usize>,
{
    let narrow = |end: &usize| {
        let message = || format!("{end} rows in a batch of {} run ends: ask for fewer rows", R::DATA_TYPE);
        R::Native::try_from(*end).map_err(|_| Error::invalid(message()))
    };
    let ends: PrimitiveArray<R> =
        PrimitiveArray::from_iter_values(ends.iter().map(narrow).collect::<Result<Vec<_>>>()?);
    Ok(Arc::new(RunArray::try_new(&ends, values)?))
}
