//! Records to levels and values: Dremel's shredding, a whole batch at a time.
//!
//! From the root down, each node gets the levels of its entries and an array of the values that are present. A field that
//! may be null drops its nulls from the array and leaves their definition level where it was; a list replaces each entry by
//! as many as it has elements. What is left at a leaf is its column.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{
    Array, ArrayRef, BooleanArray, FixedSizeListArray, GenericListArray, GenericListViewArray, Int32Array,
    OffsetSizeTrait, UInt64Array, UnionArray,
};
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, Field};
use arrow_select::filter::filter;
use arrow_select::take::take;
use pilaster_core::{Error, Result};

use crate::gather::{expand_runs, gather, is_exotic};
use crate::schema::{Kind, ListKind, Shape, UnionShape};

/// The levels of the entries of a node. Without a vector every entry has the same level: the node's own.
#[derive(Debug, Clone, Default)]
pub(super) struct EntryLevels {
    pub entries: usize,
    pub def: Option<Arc<Vec<u8>>>,
    pub rep: Option<Arc<Vec<u8>>>,
}

/// The column of one leaf: levels, and the values of the entries that have one.
#[derive(Debug)]
pub(super) struct Column {
    pub leaf: usize,
    pub levels: EntryLevels,
    pub values: ArrayRef,
}

/// Takes the columns of `array` apart.
pub(super) fn shred(shape: &Shape, array: &ArrayRef, columns: &mut Vec<Column>) -> Result<()> {
    let levels = EntryLevels { entries: array.len(), def: None, rep: None };
    node(shape, array, levels, 0, columns)
}

/// `array` has a value for each entry whose definition level is `parent_def`.
fn node(
    shape: &Shape,
    array: &ArrayRef,
    mut levels: EntryLevels,
    parent_def: u8,
    columns: &mut Vec<Column>,
) -> Result<()> {
    match &shape.kind {
        Kind::Dictionary(values) => {
            return node(values, &plain_dictionary(array)?, levels, parent_def, columns);
        }
        Kind::Runs(values) => return node(values, &expand_runs(array)?, levels, parent_def, columns),
        _ => {}
    }
    if !is_written_as(array.data_type(), shape.field.data_type()) {
        return Err(Error::invalid(format!(
            "field \"{}\" of {}, not {}",
            shape.field.name(),
            shape.field.data_type(),
            array.data_type()
        )));
    }
    let mut array = Arc::clone(array);
    let nulls = array.logical_nulls().filter(|nulls| nulls.null_count() > 0);
    if shape.def > parent_def {
        define(&mut levels, nulls.as_ref(), parent_def);
        if let Some(nulls) = &nulls {
            array = present(&array, nulls, shape)?;
        }
    } else if nulls.is_some() && !matches!(shape.kind, Kind::Union(_)) {
        return Err(Error::invalid(format!("null in \"{}\", which may not be null", shape.field.name())));
    }
    match &shape.kind {
        Kind::Leaf => columns.push(Column { leaf: shape.leaves.start, levels, values: array }),
        Kind::Struct(children) => {
            for (child, values) in children.iter().zip(array.as_struct().columns()) {
                node(child, values, levels.clone(), shape.def, columns)?;
            }
        }
        Kind::List(list, element) => {
            let (lengths, values) = elements(*list, &array, element)?;
            let levels = repeat(&levels, &lengths, shape.def, element.rep);
            node(element, &values, levels, element.slot_def, columns)?;
        }
        Kind::Map(entries, _) => {
            let map = array.as_map();
            let (lengths, range) = lengths_of(map.offsets());
            let values: ArrayRef = Arc::new(map.entries().slice(range.start, range.len()));
            let levels = repeat(&levels, &lengths, shape.def, entries.rep);
            node(entries, &values, levels, entries.slot_def, columns)?;
        }
        Kind::Union(union) => union_columns(union, array.as_union(), &levels, shape.def, columns)?,
        Kind::Dictionary(_) | Kind::Runs(_) => {}
    }
    Ok(())
}

/// Whether values of a type are written as they are to a column of type `wanted`: that, or one with narrow decimals in it, which take
/// the same bytes.
fn is_written_as(have: &DataType, wanted: &DataType) -> bool {
    use DataType::{
        Decimal32, Decimal64, Decimal128, Dictionary, FixedSizeList, LargeList, LargeListView, List,
        ListView, Map, RunEndEncoded, Struct, Union,
    };
    let field = |have: &Field, wanted: &Field| {
        have.name() == wanted.name()
            && have.is_nullable() == wanted.is_nullable()
            && have.metadata() == wanted.metadata()
            && is_written_as(have.data_type(), wanted.data_type())
    };
    match (have, wanted) {
        (Decimal32(digits, scale) | Decimal64(digits, scale), Decimal128(wanted_digits, wanted_scale)) => {
            (digits, scale) == (wanted_digits, wanted_scale)
        }
        (Dictionary(keys, values), Dictionary(wanted_keys, wanted_values)) => {
            keys == wanted_keys && is_written_as(values, wanted_values)
        }
        (RunEndEncoded(ends, values), RunEndEncoded(wanted_ends, wanted_values)) => {
            field(ends, wanted_ends) && field(values, wanted_values)
        }
        (List(item), List(wanted))
        | (LargeList(item), LargeList(wanted))
        | (ListView(item), ListView(wanted))
        | (LargeListView(item), LargeListView(wanted)) => field(item, wanted),
        (FixedSizeList(item, length), FixedSizeList(wanted, wanted_length)) => {
            length == wanted_length && field(item, wanted)
        }
        (Map(entries, is_sorted), Map(wanted, wanted_sorted)) => {
            is_sorted == wanted_sorted && field(entries, wanted)
        }
        (Struct(fields), Struct(wanted)) => {
            fields.len() == wanted.len() && fields.iter().zip(wanted).all(|(a, b)| field(a, b))
        }
        (Union(fields, mode), Union(wanted, wanted_mode)) => {
            mode == wanted_mode
                && fields.len() == wanted.len()
                && fields
                    .iter()
                    .zip(wanted.iter())
                    .all(|((a, have), (b, wanted))| a == b && field(have, wanted))
        }
        (have, wanted) => have == wanted,
    }
}

/// Raises the definition level of entries that have a value.
fn define(levels: &mut EntryLevels, nulls: Option<&NullBuffer>, parent_def: u8) {
    let above = parent_def.saturating_add(1);
    match (&levels.def, nulls) {
        // All entries had the same level and still have.
        (None, None) => {}
        (None, Some(nulls)) => {
            let level = |is_set: bool| parent_def.saturating_add(u8::from(is_set));
            levels.def = Some(Arc::new(nulls.iter().map(level).collect()));
        }
        (Some(def), None) => {
            let raise = |level: &u8| if *level == parent_def { above } else { *level };
            levels.def = Some(Arc::new(def.iter().map(raise).collect()));
        }
        (Some(def), Some(nulls)) => {
            let mut validity = nulls.iter();
            let raise = |level: &u8| match *level {
                level if level == parent_def && validity.next() == Some(true) => above,
                level => level,
            };
            levels.def = Some(Arc::new(def.iter().map(raise).collect()));
        }
    }
}

/// The values that are not null.
fn present(array: &ArrayRef, nulls: &NullBuffer, shape: &Shape) -> Result<ArrayRef> {
    if let Kind::List(ListKind::Small, _) = shape.kind
        && let Some(list) = without_null_lists(array.as_list::<i32>(), nulls)
    {
        return Ok(list);
    }
    if is_exotic(array.data_type()) {
        let rows = nulls.valid_indices().map(|row| row as u64);
        return gather(array, &UInt64Array::from_iter_values(rows));
    }
    Ok(filter(array, &BooleanArray::new(nulls.inner().clone(), None))?)
}

/// The lists that are not null, without touching their elements: possible where null lists are empty, as they mostly are.
fn without_null_lists(list: &GenericListArray<i32>, nulls: &NullBuffer) -> Option<ArrayRef> {
    let offsets = list.offsets();
    let is_empty = |row: usize| offsets.get(row) == offsets.get(row.saturating_add(1));
    let mut kept = Vec::with_capacity(offsets.len().saturating_sub(nulls.null_count()));
    for (row, is_set) in nulls.iter().enumerate() {
        if is_set {
            kept.push(*offsets.get(row)?);
        } else if !is_empty(row) {
            return None;
        }
    }
    kept.push(*offsets.last()?);
    let DataType::List(field) = list.data_type() else { return None };
    let offsets = arrow_buffer::OffsetBuffer::new(kept.into());
    let list = GenericListArray::try_new(Arc::clone(field), offsets, Arc::clone(list.values()), None);
    list.ok().map(|list| Arc::new(list) as ArrayRef)
}

fn lengths_of<O: OffsetSizeTrait>(offsets: &[O]) -> (Vec<usize>, std::ops::Range<usize>) {
    let length = |pair: &[O]| match pair {
        [start, end] => end.as_usize().saturating_sub(start.as_usize()),
        _ => 0,
    };
    let at = |offset: Option<&O>| offset.map_or(0, |offset| offset.as_usize());
    (offsets.windows(2).map(length).collect(), at(offsets.first())..at(offsets.last()))
}

/// The length of each list, and the elements of all of them.
fn elements(kind: ListKind, array: &ArrayRef, element: &Shape) -> Result<(Vec<usize>, ArrayRef)> {
    match kind {
        ListKind::Small => Ok(list_elements(array.as_list::<i32>())),
        ListKind::Large => Ok(list_elements(array.as_list::<i64>())),
        ListKind::View => view_elements(array.as_list_view::<i32>()),
        ListKind::LargeView => view_elements(array.as_list_view::<i64>()),
        ListKind::Fixed(size) => {
            let list: &FixedSizeListArray = array.as_fixed_size_list();
            let size = usize::try_from(size).unwrap_or_default();
            let values = list.values();
            if values.len() != list.len().saturating_mul(size) {
                return Err(Error::invalid(format!(
                    "lists of \"{}\" with other lengths",
                    element.field.name()
                )));
            }
            Ok((vec![size; list.len()], Arc::clone(values)))
        }
    }
}

fn list_elements<O: OffsetSizeTrait>(list: &GenericListArray<O>) -> (Vec<usize>, ArrayRef) {
    let (lengths, range) = lengths_of(list.offsets());
    (lengths, list.values().slice(range.start, range.len()))
}

/// Views may point anywhere, so their elements are gathered.
fn view_elements<O: OffsetSizeTrait>(list: &GenericListViewArray<O>) -> Result<(Vec<usize>, ArrayRef)> {
    let lengths: Vec<usize> = list.sizes().iter().map(|size| size.as_usize()).collect();
    let each = list.offsets().iter().zip(&lengths);
    let indices = each.flat_map(|(start, length)| {
        let start = start.as_usize() as u64;
        start..start.saturating_add(*length as u64)
    });
    let values = gather(list.values(), &UInt64Array::from_iter_values(indices))?;
    Ok((lengths, values))
}

/// Replaces each entry of a list by its elements; an empty list stays one entry, without a value.
fn repeat(levels: &EntryLevels, lengths: &[usize], list_def: u8, element_rep: u8) -> EntryLevels {
    let above = list_def.saturating_add(1);
    let total: usize = lengths.iter().map(|length| (*length).max(1)).sum();
    let capacity = total.saturating_add(levels.entries).saturating_sub(lengths.len());
    let mut rep = Vec::with_capacity(capacity);
    let mut def = Vec::with_capacity(capacity);
    let mut all_present = true;
    let mut lengths = lengths.iter();
    for entry in 0..levels.entries {
        let own_def = levels.def.as_ref().map_or(list_def, |def| def.get(entry).copied().unwrap_or_default());
        let own_rep = levels.rep.as_ref().map_or(0, |rep| rep.get(entry).copied().unwrap_or_default());
        rep.push(own_rep);
        let length = if own_def == list_def { lengths.next().copied().unwrap_or_default() } else { 0 };
        if length == 0 {
            def.push(own_def);
            all_present = false;
        } else {
            def.resize(def.len().saturating_add(length), above);
            rep.resize(rep.len().saturating_add(length).saturating_sub(1), element_rep);
        }
    }
    EntryLevels { entries: rep.len(), def: (!all_present).then(|| Arc::new(def)), rep: Some(Arc::new(rep)) }
}

/// The columns of a union: which child has the value, and each child where it has it.
fn union_columns(
    shape: &UnionShape,
    union: &UnionArray,
    levels: &EntryLevels,
    def: u8,
    columns: &mut Vec<Column>,
) -> Result<()> {
    let ids = Int32Array::from_iter_values(union.type_ids().iter().map(|id| i32::from(*id)));
    node(&shape.selector, &(Arc::new(ids) as ArrayRef), levels.clone(), def, columns)?;
    for ((id, _), child) in shape.fields.iter().zip(&shape.children) {
        let pick = |row: usize| (union.type_id(row) == id).then(|| union.value_offset(row) as u64);
        let indices: UInt64Array = (0..union.len()).map(pick).collect();
        let values = gather(union.child(id), &indices)?;
        node(child, &values, levels.clone(), def, columns)?;
    }
    Ok(())
}

fn plain_dictionary(array: &ArrayRef) -> Result<ArrayRef> {
    let dictionary = array
        .as_any_dictionary_opt()
        .ok_or_else(|| Error::internal(format!("a dictionary, not {}", array.data_type())))?;
    Ok(take(dictionary.values(), dictionary.keys(), None)?)
}
