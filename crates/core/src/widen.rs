//! Types that leave: what query engines compute with wrongly, or not at all, leaves in a wider type.
//!
//! | Arrow type | leaves as | because |
//! | --- | --- | --- |
//! | Decimal32, Decimal64 | Decimal128 | `1 - x`, `CASE` and `coalesce` make integers of them, and sums wrap |
//! | Float16 | Float32 | an integer beside it becomes one too: `x + 100000` is infinite |
//! | dictionaries of anything but text and bytes with offsets | the values | arithmetic, aggregates and Parquet do not know them |
//! | dictionaries with keys of 8 or 16 bits | with keys of 32 bits | where the dictionaries of several parts are united, keys run out |
//! | ListView, LargeListView | List, LargeList | functions of lists do not know them |
//! | RunEndEncoded | the values | as above |
//! | lists, maps and structs of them | the same with the above inside | |
//!
//! Values stay what they are: a wider type holds all of them.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal32Type, Decimal64Type, Decimal128Type};
use arrow_array::{
    Array, ArrayRef, FixedSizeListArray, GenericListArray, MapArray, OffsetSizeTrait, PrimitiveArray,
    RecordBatch, RecordBatchOptions, StructArray,
};
use arrow_cast::{CastOptions, cast_with_options};
use arrow_schema::{DataType, Field, FieldRef, Fields, Schema, SchemaRef};
use arrow_select::take::take;

use crate::error::{Error, Result};

/// The type in which values of `data_type` leave.
pub fn data_type(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Decimal32(precision, scale) | DataType::Decimal64(precision, scale) => {
            DataType::Decimal128(*precision, *scale)
        }
        DataType::Float16 => DataType::Float32,
        DataType::Dictionary(_, values) if !is_bytes(values) => self::data_type(values),
        DataType::Dictionary(keys, values) if keys.primitive_width().is_some_and(|width| width < 4) => {
            DataType::Dictionary(Box::new(DataType::Int32), values.clone())
        }
        DataType::RunEndEncoded(_, values) => self::data_type(values.data_type()),
        DataType::List(item) | DataType::ListView(item) => DataType::List(field(item)),
        DataType::LargeList(item) | DataType::LargeListView(item) => DataType::LargeList(field(item)),
        DataType::FixedSizeList(item, length) => DataType::FixedSizeList(field(item), *length),
        DataType::Map(entries, is_sorted) => DataType::Map(field(entries), *is_sorted),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(field).collect()),
        other => other.clone(),
    }
}

/// The field as which a field leaves; itself, if its type does.
pub fn field(field: &FieldRef) -> FieldRef {
    let wide = data_type(field.data_type());
    if wide == *field.data_type() {
        return Arc::clone(field);
    }
    Arc::new(Field::clone(field).with_data_type(wide))
}

/// The schema of rows that leave; itself, if all of its types do.
pub fn schema(schema: &SchemaRef) -> SchemaRef {
    let fields: Fields = schema.fields().iter().map(field).collect();
    if fields == *schema.fields() {
        return Arc::clone(schema);
    }
    Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
}

/// The columns of a batch as the types of `schema`, which is that of the batch as [`schema`] gives it.
///
/// # Errors
/// As [`array()`]; if the batch has other columns.
pub fn batch(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
    if batch.schema_ref() == schema {
        return Ok(batch.clone());
    }
    let columns = batch.columns().iter().zip(schema.fields());
    let columns = columns.map(|(column, field)| array(column, field.data_type())).collect::<Result<_>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    Ok(RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)?)
}

/// An array as `wanted`, which is its type as [`data_type`] gives it.
///
/// # Errors
/// If a type is none that can be: a decimal of more digits than it has room for.
pub fn array(array: &ArrayRef, wanted: &DataType) -> Result<ArrayRef> {
    if array.data_type() == wanted {
        return Ok(Arc::clone(array));
    }
    Ok(match (array.data_type(), wanted) {
        (DataType::Decimal32(..), DataType::Decimal128(precision, scale)) => {
            let wide: PrimitiveArray<Decimal128Type> =
                array.as_primitive::<Decimal32Type>().unary(i128::from);
            Arc::new(wide.with_precision_and_scale(*precision, *scale)?)
        }
        (DataType::Decimal64(..), DataType::Decimal128(precision, scale)) => {
            let wide: PrimitiveArray<Decimal128Type> =
                array.as_primitive::<Decimal64Type>().unary(i128::from);
            Arc::new(wide.with_precision_and_scale(*precision, *scale)?)
        }
        (DataType::Dictionary(_, words), DataType::Dictionary(_, wanted_words)) if words == wanted_words => {
            strict_cast(array, wanted)?
        }
        (DataType::Dictionary(..), _) => {
            let words = array.as_any_dictionary();
            take(&self::array(words.values(), wanted)?, words.keys(), None)?
        }
        (DataType::List(_), DataType::List(item)) => list(array.as_list::<i32>(), item)?,
        (DataType::LargeList(_), DataType::LargeList(item)) => list(array.as_list::<i64>(), item)?,
        (DataType::ListView(from), DataType::List(_)) => {
            let lists = strict_cast(array, &DataType::List(Arc::clone(from)))?;
            self::array(&lists, wanted)?
        }
        (DataType::LargeListView(from), DataType::LargeList(_)) => {
            let lists = strict_cast(array, &DataType::LargeList(Arc::clone(from)))?;
            self::array(&lists, wanted)?
        }
        (DataType::RunEndEncoded(_, values), _) => {
            self::array(&strict_cast(array, values.data_type())?, wanted)?
        }
        (DataType::FixedSizeList(..), DataType::FixedSizeList(item, length)) => {
            let lists = array.as_fixed_size_list();
            let values = self::array(lists.values(), item.data_type())?;
            let nulls = lists.nulls().cloned();
            Arc::new(FixedSizeListArray::try_new_with_length(
                Arc::clone(item),
                *length,
                values,
                nulls,
                lists.len(),
            )?)
        }
        (DataType::Map(..), DataType::Map(entries, is_sorted)) => {
            let (_, offsets, pairs, nulls, _) = array.as_map().clone().into_parts();
            let pairs = self::array(&(Arc::new(pairs) as ArrayRef), entries.data_type())?;
            let pairs = pairs.as_struct().clone();
            Arc::new(MapArray::try_new(Arc::clone(entries), offsets, pairs, nulls, *is_sorted)?)
        }
        (DataType::Struct(_), DataType::Struct(fields)) => {
            let parts = array.as_struct();
            let columns = parts.columns().iter().zip(fields);
            let columns = columns.map(|(column, field)| self::array(column, field.data_type()));
            let columns = columns.collect::<Result<Vec<_>>>()?;
            let nulls = parts.nulls().cloned();
            Arc::new(StructArray::try_new_with_length(fields.clone(), columns, nulls, parts.len())?)
        }
        _ => strict_cast(array, wanted)?,
    })
}

/// A cast that fails rather than make a value null.
fn strict_cast(array: &ArrayRef, wanted: &DataType) -> Result<ArrayRef> {
    let strict = CastOptions { safe: false, ..CastOptions::default() };
    cast_with_options(array, wanted, &strict).map_err(|error| Error::invalid(error.to_string()))
}

fn list<O: OffsetSizeTrait>(lists: &GenericListArray<O>, item: &FieldRef) -> Result<ArrayRef> {
    let (_, offsets, values, nulls) = lists.clone().into_parts();
    let values = array(&values, item.data_type())?;
    Ok(Arc::new(GenericListArray::<O>::try_new(Arc::clone(item), offsets, values, nulls)?))
}

fn is_bytes(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Utf8 | DataType::LargeUtf8 | DataType::Binary | DataType::LargeBinary)
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::types::{ArrowPrimitiveType, Float16Type, Int8Type, Int32Type};

    use arrow_array::{
        Decimal32Array, Decimal64Array, DictionaryArray, Float16Array, GenericListViewArray, Int8Array,
        Int32Array, RunArray, StringArray,
    };
    use arrow_buffer::{NullBuffer, OffsetBuffer, ScalarBuffer};
    use arrow_cast::display::array_value_to_string;

    type Half = <Float16Type as ArrowPrimitiveType>::Native;

    fn decimals() -> ArrayRef {
        let values = vec![Some(-150), None, Some(i64::MAX), Some(i64::MIN)];
        Arc::new(Decimal64Array::from(values).with_precision_and_scale(18, 2).unwrap())
    }

    /// Arrays of four rows, and the types as which they leave.
    fn cases() -> Vec<(ArrayRef, DataType)> {
        let wide = DataType::Decimal128(18, 2);
        let item = |data_type: &DataType| Arc::new(Field::new("item", data_type.clone(), true));
        let narrow = item(decimals().data_type());
        let nulls = Some(NullBuffer::from(vec![true, false, true, true]));
        let offsets = OffsetBuffer::new(ScalarBuffer::from(vec![0, 2, 2, 3, 4]));
        let keys = Int8Array::from(vec![Some(2), None, Some(0), Some(1)]);
        let words: ArrayRef = Arc::new(StringArray::from(vec!["a", "b", "c"]));
        let texts: ArrayRef = Arc::new(DictionaryArray::<Int8Type>::new(keys.clone(), words));
        let entries = |value: &ArrayRef| {
            let key: ArrayRef = Arc::new(Int32Array::from(vec![1, 2, 3, 4]));
            StructArray::from(vec![
                (Arc::new(Field::new("key", DataType::Int32, false)), key),
                (Arc::new(Field::new("value", value.data_type().clone(), true)), Arc::clone(value)),
            ])
        };
        let pairs = entries(&decimals());
        let entry = |pairs: &StructArray| Arc::new(Field::new("entries", pairs.data_type().clone(), false));
        let wide_entry = Arc::new(Field::new("entries", data_type(pairs.data_type()), false));
        let views = GenericListViewArray::<i32>::try_new(
            Arc::clone(&narrow),
            vec![2, 0, 0, 1].into(),
            vec![2, 0, 1, 3].into(),
            decimals(),
            nulls.clone(),
        );
        let ends = Int32Array::from(vec![1, 2, 3, 4]);
        vec![
            (decimals(), wide.clone()),
            (
                Arc::new(
                    Decimal32Array::from(vec![1, -1, i32::MAX, 0]).with_precision_and_scale(9, -2).unwrap(),
                ),
                DataType::Decimal128(9, -2),
            ),
            (
                Arc::new(Float16Array::from_iter_values(
                    [0.5f32, -0.25, f32::INFINITY, 2.5].map(Half::from_f32),
                )),
                DataType::Float32,
            ),
            (Arc::clone(&texts), DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8))),
            (Arc::new(DictionaryArray::<Int8Type>::new(keys.clone(), decimals())), wide.clone()),
            (
                Arc::new(DictionaryArray::<Int8Type>::new(keys, Arc::new(Int32Array::from(vec![7, 8, 9])))),
                DataType::Int32,
            ),
            (Arc::new(RunArray::<Int32Type>::try_new(&ends, &decimals()).unwrap()), wide.clone()),
            (
                Arc::new(GenericListArray::<i32>::new(
                    Arc::clone(&narrow),
                    offsets.clone(),
                    decimals(),
                    nulls.clone(),
                )),
                DataType::List(item(&wide)),
            ),
            (Arc::new(views.unwrap()), DataType::List(item(&wide))),
            (
                Arc::new(FixedSizeListArray::new(Arc::clone(&narrow), 1, decimals(), nulls.clone())),
                DataType::FixedSizeList(item(&wide), 1),
            ),
            (
                Arc::new(MapArray::new(entry(&pairs), offsets, pairs.clone(), nulls, false)),
                DataType::Map(wide_entry, false),
            ),
            (Arc::new(pairs.clone()), data_type(pairs.data_type())),
        ]
    }

    #[test]
    fn values_stay_what_they_are() {
        for (narrow, expected) in cases() {
            let wanted = data_type(narrow.data_type());
            assert_eq!(wanted, expected);
            assert_eq!(data_type(&wanted), wanted, "what leaves may leave again");
            for narrow in [Arc::clone(&narrow), narrow.slice(1, 3), narrow.slice(2, 0)] {
                let wide = array(&narrow, &wanted).unwrap();
                assert_eq!(wide.data_type(), &wanted);
                wide.to_data().validate_full().unwrap();
                let texts = |array: &ArrayRef| -> Vec<_> {
                    (0..array.len()).map(|row| array_value_to_string(array, row).unwrap()).collect()
                };
                assert_eq!(texts(&wide), texts(&narrow), "{}", narrow.data_type());
            }
        }
    }

    #[test]
    fn names_and_metadata_of_fields_are_kept() {
        let note = [("a".to_string(), "b".to_string())];
        let field = Field::new("x", DataType::Decimal32(5, 2), false).with_metadata(note.clone().into());
        let narrow = Arc::new(Schema::new_with_metadata(vec![field.clone()], note.into()));
        let wide = schema(&narrow);
        assert_eq!(wide.metadata(), narrow.metadata());
        assert_eq!(wide.field(0), &field.with_data_type(DataType::Decimal128(5, 2)));
        assert!(Arc::ptr_eq(&schema(&wide), &wide));
    }
}
