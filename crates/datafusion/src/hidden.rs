//! Values behind nulls.
//!
//! Where a struct is null, Arrow leaves open what its columns hold there. DataFusion takes a column out of a struct without looking at
//! the struct's own nulls, so that `s['a']` would give such a value. Batches therefore leave with nulls there.

use std::sync::Arc;

use datafusion::arrow::array::cast::AsArray;
use datafusion::arrow::array::{
    Array, ArrayRef, BooleanArray, FixedSizeListArray, GenericListArray, MapArray, OffsetSizeTrait,
    RecordBatch, RecordBatchOptions, StructArray,
};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::arrow::compute::nullif;
use datafusion::arrow::datatypes::DataType;
use datafusion::arrow::error::ArrowError;

/// The batch with nulls instead of all values that stand behind the null of a struct.
///
/// # Errors
/// As [`cleared`].
pub(crate) fn cleared_batch(batch: &RecordBatch) -> Result<RecordBatch, ArrowError> {
    let columns = batch.columns().iter().map(cleared).collect::<Result<_, _>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(batch.schema(), columns, &options)
}

/// The array with nulls instead of all values that stand behind the null of a struct; itself, if it can have none.
///
/// # Errors
/// Those of Arrow, where the parts do not go together; they are those of an array that did.
pub(crate) fn cleared(array: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    if !holds_structs(array.data_type()) {
        return Ok(Arc::clone(array));
    }
    Ok(match array.data_type() {
        DataType::Struct(fields) => {
            let parts = array.as_struct();
            let hidden = parts.nulls().filter(|nulls| nulls.null_count() > 0);
            let columns = parts.columns().iter().map(|column| match hidden {
                // First the nulls, which those of a struct inside pass on.
                Some(nulls) => cleared(&hide(column, nulls)?),
                None => cleared(column),
            });
            let columns = columns.collect::<Result<_, _>>()?;
            Arc::new(StructArray::try_new_with_length(
                fields.clone(),
                columns,
                parts.nulls().cloned(),
                parts.len(),
            )?)
        }
        DataType::List(_) => list(array.as_list::<i32>())?,
        DataType::LargeList(_) => list(array.as_list::<i64>())?,
        DataType::FixedSizeList(item, length) => {
            let lists = array.as_fixed_size_list();
            let (values, nulls) = (cleared(lists.values())?, lists.nulls().cloned());
            let item = Arc::clone(item);
            Arc::new(FixedSizeListArray::try_new_with_length(item, *length, values, nulls, lists.len())?)
        }
        DataType::Map(entries, is_sorted) => {
            let (_, offsets, pairs, nulls, _) = array.as_map().clone().into_parts();
            let pairs = cleared(&(Arc::new(pairs) as ArrayRef))?.as_struct().clone();
            Arc::new(MapArray::try_new(Arc::clone(entries), offsets, pairs, nulls, *is_sorted)?)
        }
        _ => Arc::clone(array),
    })
}

/// Types that a struct can stand in, at any depth.
fn holds_structs(data_type: &DataType) -> bool {
    match data_type {
        DataType::Struct(_) => true,
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            holds_structs(item.data_type())
        }
        // Its entries are a struct that is never null.
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(fields) => fields.iter().any(|field| holds_structs(field.data_type())),
            _ => false,
        },
        _ => false,
    }
}

fn hide(column: &ArrayRef, nulls: &NullBuffer) -> Result<ArrayRef, ArrowError> {
    match column.data_type() {
        // Neither has nulls of its own.
        DataType::Null | DataType::Union(..) => Ok(Arc::clone(column)),
        _ => nullif(column, &BooleanArray::new(!nulls.inner(), None)),
    }
}

fn list<O: OffsetSizeTrait>(lists: &GenericListArray<O>) -> Result<ArrayRef, ArrowError> {
    let (item, offsets, values, nulls) = lists.clone().into_parts();
    Ok(Arc::new(GenericListArray::<O>::try_new(item, offsets, cleared(&values)?, nulls)?))
}
