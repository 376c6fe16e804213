//! From levels and values to Arrow: Dremel's record assembly, a whole batch at a time.
//!
//! Nothing is assembled record by record. For each node of the schema one pass over the levels of its first leaf finds its
//! slots: an entry stands for a slot if its repetition level is at most the node's and its definition level says that the
//! list around it has an element there. Lists count the entries between two slots, everything else asks whether the
//! definition level reaches the node.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{
    Array, ArrayRef, FixedSizeListArray, GenericListArray, GenericListViewArray, MapArray, OffsetSizeTrait,
    StructArray, UInt64Array, make_array,
};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_data::ArrayData;
use arrow_schema::{DataType, FieldRef, Fields};
use pilaster_core::{Error, Result};
use pilaster_encoding::levels;

use super::batch::{LeafBatch, Levels};
use super::page::count_equal;
use super::{encoded, values};
use crate::gather::{gather, runs};
use crate::schema::{Kind, ListKind, Shape};

/// The array of `shape`, of which `leaves` are the columns.
pub(crate) fn assemble(shape: &Shape, leaves: Vec<LeafBatch>) -> Result<ArrayRef> {
    let leaves: Vec<_> = leaves.into_iter().map(Some).collect();
    let mut assembly = Assembly { first: shape.leaves.start, leaves };
    assembly.check_continuations(shape)?;
    assembly.build(shape)
}

struct Assembly {
    /// Number of the first leaf.
    first: usize,
    /// Taken when its array is built; the levels stay.
    leaves: Vec<Option<LeafBatch>>,
}

impl Assembly {
    fn leaf(&self, shape: &Shape) -> Result<&LeafBatch> {
        let number = shape.leaves.start.saturating_sub(self.first);
        let leaf = self.leaves.get(number).and_then(Option::as_ref);
        leaf.ok_or_else(|| Error::internal(format!("no values of \"{}\"", shape.field.name())))
    }

    fn build(&mut self, shape: &Shape) -> Result<ArrayRef> {
        match &shape.kind {
            Kind::Leaf => self.build_leaf(shape),
            Kind::Struct(children) => self.build_struct(shape, children),
            Kind::List(list, element) => self.build_list(shape, *list, element),
            Kind::Map(entries, is_sorted) => self.build_map(shape, entries, *is_sorted),
            Kind::Union(union) => {
                self.check_siblings(shape)?;
                let selector = self.build(&union.selector)?;
                let children =
                    union.children.iter().map(|child| self.build(child)).collect::<Result<Vec<_>>>()?;
                encoded::union(union, &selector, children)
            }
            Kind::Dictionary(values) => encoded::dictionary(self.build(values)?, shape.field.data_type()),
            Kind::Runs(values) => runs(&self.build(values)?, shape.field.data_type()),
        }
    }

    fn build_leaf(&mut self, shape: &Shape) -> Result<ArrayRef> {
        let nulls = self.slot_nulls(shape)?;
        let slots = match &nulls {
            Some(nulls) => nulls.len(),
            None => self.count_slots(shape)?,
        };
        let number = shape.leaves.start.saturating_sub(self.first);
        let leaf = self.leaves.get_mut(number).and_then(Option::as_mut);
        let leaf = leaf.ok_or_else(|| Error::internal(format!("no values of \"{}\"", shape.field.name())))?;
        let empty = super::dense::Dense::Bits { bits: Vec::new(), len: 0 };
        let values = std::mem::replace(&mut leaf.values, empty);
        values::array(values, shape.field.data_type(), slots, nulls)
    }

    fn build_struct(&mut self, shape: &Shape, children: &[Shape]) -> Result<ArrayRef> {
        self.check_siblings(shape)?;
        let nulls = self.slot_nulls(shape)?;
        let arrays = children.iter().map(|child| self.build(child)).collect::<Result<Vec<_>>>()?;
        let fields: Fields = children.iter().map(|child| Arc::clone(&child.field)).collect();
        if fields.iter().any(|field| has_union(field.data_type())) {
            let length = arrays.first().map_or(0, |array| array.len());
            let children = arrays.iter().map(|array| array.to_data()).collect();
            return from_parts(DataType::Struct(fields), length, Vec::new(), children, nulls);
        }
        Ok(Arc::new(StructArray::try_new(fields, arrays, nulls).map_err(|error| unassembled(&error))?))
    }

    fn build_list(&mut self, shape: &Shape, list: ListKind, element: &Shape) -> Result<ArrayRef> {
        let nulls = self.slot_nulls(shape)?;
        let field = Arc::clone(&element.field);
        match list {
            ListKind::Small => {
                let offsets = self.list_offsets::<i32>(shape, element)?;
                self.finish_list(element, field, offsets, nulls)
            }
            ListKind::Large => {
                let offsets = self.list_offsets::<i64>(shape, element)?;
                self.finish_list(element, field, offsets, nulls)
            }
            ListKind::View => {
                let offsets = self.list_offsets::<i32>(shape, element)?;
                self.finish_list_view(element, field, &offsets, nulls)
            }
            ListKind::LargeView => {
                let offsets = self.list_offsets::<i64>(shape, element)?;
                self.finish_list_view(element, field, &offsets, nulls)
            }
            ListKind::Fixed(size) => {
                let offsets = self.list_offsets::<i64>(shape, element)?;
                let values = self.elements(element, &offsets)?;
                fixed_list(field, size, values, &offsets, nulls)
            }
        }
    }

    fn finish_list<O: OffsetSizeTrait>(
        &mut self,
        element: &Shape,
        field: FieldRef,
        offsets: Vec<O>,
        nulls: Option<NullBuffer>,
    ) -> Result<ArrayRef> {
        let values = self.elements(element, &offsets)?;
        if has_union(field.data_type()) {
            let length = offsets.len().saturating_sub(1);
            let data_type = GenericListArray::<O>::DATA_TYPE_CONSTRUCTOR(field);
            return from_parts(
                data_type,
                length,
                vec![Buffer::from_vec(offsets)],
                vec![values.to_data()],
                nulls,
            );
        }
        let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets));
        let list = GenericListArray::try_new(field, offsets, values, nulls);
        Ok(Arc::new(list.map_err(|error| unassembled(&error))?))
    }

    fn finish_list_view<O: OffsetSizeTrait>(
        &mut self,
        element: &Shape,
        field: FieldRef,
        offsets: &[O],
        nulls: Option<NullBuffer>,
    ) -> Result<ArrayRef> {
        let values = self.elements(element, offsets)?;
        let sizes: Vec<O> = offsets.windows(2).map(difference).collect();
        let starts: Vec<O> = offsets.iter().copied().take(sizes.len()).collect();
        if has_union(field.data_type()) {
            let data_type = GenericListViewArray::<O>::DATA_TYPE_CONSTRUCTOR(field);
            let length = sizes.len();
            let buffers = vec![Buffer::from_vec(starts), Buffer::from_vec(sizes)];
            return from_parts(data_type, length, buffers, vec![values.to_data()], nulls);
        }
        let list = GenericListViewArray::try_new(field, starts.into(), sizes.into(), values, nulls);
        Ok(Arc::new(list.map_err(|error| unassembled(&error))?))
    }

    fn build_map(&mut self, shape: &Shape, entries: &Shape, is_sorted: bool) -> Result<ArrayRef> {
        let nulls = self.slot_nulls(shape)?;
        let offsets = self.list_offsets::<i32>(shape, entries)?;
        let values = self.elements(entries, &offsets)?;
        let pairs = values.as_struct().clone();
        let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets));
        let map = MapArray::try_new(Arc::clone(&entries.field), offsets, pairs, nulls, is_sorted);
        Ok(Arc::new(map.map_err(|error| unassembled(&error))?))
    }

    /// The elements of all lists, as many as the offsets say.
    fn elements<O: OffsetSizeTrait>(&mut self, element: &Shape, offsets: &[O]) -> Result<ArrayRef> {
        let values = self.build(element)?;
        let counted = offsets.last().map_or(0, |last| last.as_usize());
        if values.len() != counted {
            return Err(Error::corrupt(format!("{counted} elements"), values.len()));
        }
        Ok(values)
    }

    /// How many slots a shape has.
    fn count_slots(&self, shape: &Shape) -> Result<usize> {
        let leaf = self.leaf(shape)?;
        Ok(match &leaf.levels {
            Levels::None | Levels::Flat { .. } => leaf.entries,
            Levels::Full { def, rep } if rep.is_empty() || shape.rep >= max_rep(rep) => {
                if shape.slot_def == 0 {
                    def.len()
                } else if shape.slot_def == leaf.max_def {
                    count_equal(def, leaf.max_def)
                } else {
                    def.iter().filter(|level| **level >= shape.slot_def).count()
                }
            }
            Levels::Full { def, rep } => {
                def.iter().zip(rep).filter(|(def, rep)| **rep <= shape.rep && **def >= shape.slot_def).count()
            }
        })
    }

    /// Which slots of a shape have a value; `None` if all have.
    fn slot_nulls(&self, shape: &Shape) -> Result<Option<NullBuffer>> {
        if shape.def == shape.slot_def {
            return Ok(None);
        }
        let leaf = self.leaf(shape)?;
        let bits = match &leaf.levels {
            Levels::None => return Ok(None),
            Levels::Flat { validity, len } => BooleanBuffer::new(validity.clone().into(), 0, *len),
            Levels::Full { def, rep } => {
                let mut slots = vec![0u8; def.len()];
                let mut count = 0usize;
                if rep.is_empty() && shape.slot_def == 0 {
                    count = def.len();
                    for (slot, def) in slots.iter_mut().zip(def) {
                        *slot = u8::from(*def >= shape.def);
                    }
                } else if rep.is_empty() || shape.rep >= max_rep(rep) {
                    for def in def {
                        if let Some(slot) = slots.get_mut(count) {
                            *slot = u8::from(*def >= shape.def);
                        }
                        count = count.wrapping_add(usize::from(*def >= shape.slot_def));
                    }
                } else {
                    for (def, rep) in def.iter().zip(rep) {
                        if let Some(slot) = slots.get_mut(count) {
                            *slot = u8::from(*def >= shape.def);
                        }
                        let is_slot = (*rep <= shape.rep) & (*def >= shape.slot_def);
                        count = count.wrapping_add(usize::from(is_slot));
                    }
                }
                let mut bits = Vec::with_capacity(count.div_ceil(8));
                levels::pack(slots.get(..count).unwrap_or_default(), 1, &mut bits)?;
                BooleanBuffer::new(bits.into(), 0, count)
            }
        };
        Ok(Some(NullBuffer::new(bits)).filter(|nulls| nulls.null_count() > 0))
    }

    /// Where the elements of each list begin, and where the last one ends.
    fn list_offsets<O: OffsetSizeTrait>(&self, shape: &Shape, element: &Shape) -> Result<Vec<O>> {
        let leaf = self.leaf(shape)?;
        let Levels::Full { def, rep } = &leaf.levels else {
            return Err(Error::internal("a list without repetition levels"));
        };
        if O::from_usize(def.len()).is_none() {
            let message = format!("a batch with {} list entries: ask for fewer rows at once", def.len());
            return Err(Error::invalid(message));
        }
        let mut offsets = vec![O::default(); def.len().saturating_add(1)];
        let (mut lists, mut count) = (0usize, 0usize);
        for (&def, &rep) in def.iter().zip(rep) {
            // Written for each entry, kept for those that begin a list.
            if let Some(offset) = offsets.get_mut(lists) {
                *offset = O::usize_as(count);
            }
            lists = lists.wrapping_add(usize::from((rep <= shape.rep) & (def >= shape.slot_def)));
            count = count.wrapping_add(usize::from((rep <= element.rep) & (def >= element.slot_def)));
        }
        if let Some(offset) = offsets.get_mut(lists) {
            *offset = O::usize_as(count);
        }
        offsets.truncate(lists.saturating_add(1));
        Ok(offsets)
    }

    /// An entry that goes on with a list must lie in it, and so must the one before.
    fn check_continuations(&self, shape: &Shape) -> Result<()> {
        let mut least = [0u8; 65];
        for (number, leaf) in self.leaves.iter().enumerate() {
            let Some(Levels::Full { def, rep }) = leaf.as_ref().map(|leaf| &leaf.levels) else { continue };
            if rep.is_empty() {
                continue;
            }
            list_levels(shape, shape.leaves.start.saturating_add(number), &mut least);
            let mut is_sound = true;
            let mut before = 0u8;
            for (&def, &rep) in def.iter().zip(rep) {
                let needed = least.get(usize::from(rep)).copied().unwrap_or(u8::MAX);
                is_sound &= def.min(before) >= needed;
                before = def;
            }
            if !is_sound {
                return Err(Error::corrupt("repetition levels that go on with a list", "one without a list"));
            }
        }
        Ok(())
    }

    /// All columns below a group must agree on which of its slots there are and which have a value.
    fn check_siblings(&self, shape: &Shape) -> Result<()> {
        let mut numbers = shape.leaves.clone().map(|number| number.saturating_sub(self.first));
        let leaf_at = |number: usize| self.leaves.get(number).and_then(Option::as_ref);
        let Some(first) = numbers.next().and_then(leaf_at) else { return Ok(()) };
        for other in numbers.filter_map(leaf_at) {
            if !agree(first, other, shape) {
                return Err(Error::corrupt("columns of one group with the same levels", "different ones"));
            }
        }
        Ok(())
    }
}

/// The definition level that each repetition level on the way to a leaf needs.
fn list_levels(shape: &Shape, leaf: usize, least: &mut [u8; 65]) {
    let descend = |child: &Shape, least: &mut [u8; 65]| {
        if child.leaves.contains(&leaf) {
            list_levels(child, leaf, least);
        }
    };
    match &shape.kind {
        Kind::Leaf => {}
        Kind::Struct(children) => children.iter().for_each(|child| descend(child, least)),
        Kind::Union(union) => union.children.iter().for_each(|child| descend(child, least)),
        Kind::Dictionary(values) | Kind::Runs(values) => descend(values, least),
        Kind::List(_, element) | Kind::Map(element, _) => {
            if let Some(slot) = least.get_mut(usize::from(shape.rep).saturating_add(1)) {
                *slot = element.slot_def;
            }
            descend(element, least);
        }
    }
}

fn max_rep(rep: &[u8]) -> u8 {
    rep.iter().copied().fold(0, u8::max)
}

/// Whether two columns have the same slots of a group and the same nulls in them.
fn agree(a: &LeafBatch, b: &LeafBatch, shape: &Shape) -> bool {
    let level = |leaf: &LeafBatch, entry: usize| match &leaf.levels {
        Levels::None => 0,
        Levels::Flat { validity, .. } => u8::from(pilaster_encoding::bits::get(validity, entry)),
        Levels::Full { def, .. } => def.get(entry).copied().unwrap_or_default(),
    };
    let reps = |leaf: &LeafBatch| match &leaf.levels {
        Levels::Full { rep, .. } if !rep.is_empty() => max_rep(rep),
        _ => 0,
    };
    if reps(a) <= shape.rep && reps(b) <= shape.rep {
        // No list below: entries stand for slots one by one.
        if a.entries != b.entries {
            return false;
        }
        if let (Levels::Full { def: a, rep: c }, Levels::Full { def: b, rep: d }) = (&a.levels, &b.levels) {
            let differ = a
                .iter()
                .zip(b)
                .fold(false, |differ, (a, b)| differ | (a.min(&shape.def) != b.min(&shape.def)));
            // Repetition levels that can only be 0 are not kept.
            return !differ && (c == d || c.is_empty() || d.is_empty());
        }
        return shape.def == 0
            || (0..a.entries).all(|entry| level(a, entry).min(shape.def) == level(b, entry).min(shape.def));
    }
    let slots = |leaf: &LeafBatch| -> Vec<(u8, u8)> {
        let rep = |entry: usize| match &leaf.levels {
            Levels::Full { rep, .. } => rep.get(entry).copied().unwrap_or_default(),
            _ => 0,
        };
        (0..leaf.entries)
            .filter(|entry| rep(*entry) <= shape.rep)
            .map(|entry| (rep(entry), level(leaf, entry).min(shape.def)))
            .collect()
    };
    slots(a) == slots(b)
}

fn difference<O: OffsetSizeTrait>(pair: &[O]) -> O {
    match pair {
        [start, end] => O::usize_as(end.as_usize().saturating_sub(start.as_usize())),
        _ => O::default(),
    }
}

/// A list of fixed size: a null one has no elements in the file and `size` empty ones in Arrow.
fn fixed_list(
    field: FieldRef,
    size: i32,
    values: ArrayRef,
    offsets: &[i64],
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef> {
    let lists = offsets.len().saturating_sub(1);
    let wanted = u64::from(size.cast_unsigned());
    for (list, pair) in offsets.windows(2).enumerate() {
        let is_null = nulls.as_ref().is_some_and(|nulls| nulls.is_null(list));
        let found = difference(pair).cast_unsigned();
        if found != wanted && !is_null {
            return Err(Error::corrupt(format!("lists of {size} elements"), found));
        }
        if is_null && found != 0 {
            return Err(Error::corrupt("a null list without elements", found));
        }
    }
    let values = match &nulls {
        None => values,
        Some(nulls) => {
            let size = usize::try_from(size).unwrap_or_default();
            let mut next = 0u64;
            let mut indices = Vec::with_capacity(lists.saturating_mul(size));
            for is_set in nulls.iter() {
                for _ in 0..size {
                    indices.push(is_set.then_some(next));
                    next = next.saturating_add(u64::from(is_set));
                }
            }
            gather(&values, &UInt64Array::from(indices))?
        }
    };
    if has_union(field.data_type()) {
        let data_type = DataType::FixedSizeList(field, size);
        return from_parts(data_type, lists, Vec::new(), vec![values.to_data()], nulls);
    }
    let list = FixedSizeListArray::try_new_with_length(field, size, values, nulls, lists);
    Ok(Arc::new(list.map_err(|error| unassembled(&error))?))
}

/// Whether a union is in it. Arrow's constructors take the nulls of a union's children for nulls of the union, which may not be
/// null where it is required; such arrays are built from their parts.
fn has_union(data_type: &DataType) -> bool {
    match data_type {
        DataType::Union(..) => true,
        DataType::Struct(fields) => fields.iter().any(|field| has_union(field.data_type())),
        DataType::List(field)
        | DataType::LargeList(field)
        | DataType::ListView(field)
        | DataType::LargeListView(field)
        | DataType::FixedSizeList(field, _)
        | DataType::Map(field, _) => has_union(field.data_type()),
        _ => false,
    }
}

fn from_parts(
    data_type: DataType,
    length: usize,
    buffers: Vec<Buffer>,
    children: Vec<ArrayData>,
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef> {
    let data =
        ArrayData::builder(data_type).len(length).buffers(buffers).child_data(children).nulls(nulls).build();
    Ok(make_array(data.map_err(|error| unassembled(&error))?))
}

/// Arrays that do not fit each other: the columns do not belong to the same records.
pub(super) fn unassembled(error: &arrow_schema::ArrowError) -> Error {
    Error::corrupt("columns that assemble to records", error)
}

/// The Arrow type of each leaf below a shape, in order.
pub(crate) fn leaf_types(shape: &Shape, types: &mut Vec<DataType>) {
    match &shape.kind {
        Kind::Leaf => types.push(shape.field.data_type().clone()),
        Kind::Struct(children) => children.iter().for_each(|child| leaf_types(child, types)),
        Kind::List(_, inner) | Kind::Map(inner, _) | Kind::Dictionary(inner) | Kind::Runs(inner) => {
            leaf_types(inner, types);
        }
        Kind::Union(union) => {
            leaf_types(&union.selector, types);
            union.children.iter().for_each(|child| leaf_types(child, types));
        }
    }
}
