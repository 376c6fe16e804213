//! Nodes of nested columns.
//!
//! ```text
//! array, map   8 bytes a value: i32 count | i32 place of the first element in the child's page
//! struct       2 bytes a value: i16 number of children; value i has value i of every child
//! ```
//!
//! Nulls are not stored: an array of one null is null, so is a struct of nothing but nulls, as CarbonData reads them.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, ListArray, MapArray, StructArray, UInt32Array};
use arrow_buffer::{BooleanBuffer, NullBuffer, OffsetBuffer};
use arrow_schema::DataType;
use pilaster_core::error::AtPosition;
use pilaster_core::{Error, Result};

use super::super::types::{CarbonType, ColumnNode};
use super::{PART, PageDecoder};

impl PageDecoder<'_> {
    /// The values of a nested column, which must be `rows` if that is known.
    pub(super) fn decode_nested(&self, node: &ColumnNode, rows: Option<usize>) -> Result<ArrayRef> {
        let page = (self.pages)(node.chunk)?;
        let at_page = |error: Error| error.at(page.path, page.offset, PART);
        let bytes = page.node_data(self.limits).map_err(at_page)?;
        let width = if node.carbon_type == CarbonType::Struct { 2 } else { 8 };
        let count = match (bytes.len().checked_div(width), bytes.len().checked_rem(width)) {
            (Some(count), Some(0)) if rows.is_none_or(|rows| rows == count) => count,
            _ => {
                let expected = match rows {
                    Some(rows) => format!("{rows} nodes of {width} bytes"),
                    None => format!("nodes of {width} bytes"),
                };
                return Err(at_page(Error::corrupt(expected, format!("{} bytes", bytes.len()))));
            }
        };
        match node.carbon_type {
            CarbonType::Struct => {
                let (nodes, _) = bytes.as_chunks();
                let wanted = node.children.len();
                if let Some(found) =
                    nodes.iter().find(|node| usize::from(u16::from_be_bytes(**node)) != wanted)
                {
                    let error =
                        Error::corrupt(format!("structs of {wanted} fields"), u16::from_be_bytes(*found));
                    return Err(at_page(error));
                }
                self.decode_struct(node, count)
            }
            CarbonType::Map => {
                let entries = self.decode_entries(node)?;
                map(node, &bytes, &entries).at(page.path, page.offset, PART)
            }
            _ => {
                let Some(item) = node.children.first() else {
                    return Err(Error::corrupt("an array with elements", "none"));
                };
                let items = self.decode(item, None)?;
                let items = items.array(0, items.len())?;
                list(node, &bytes, &items).at(page.path, page.offset, PART)
            }
        }
    }

    fn decode_struct(&self, node: &ColumnNode, count: usize) -> Result<ArrayRef> {
        let children = node
            .children
            .iter()
            .map(|child| self.decode(child, Some(count))?.array(0, count))
            .collect::<Result<Vec<_>>>()?;
        structs(node, children)
    }

    /// The keys and values of a map as an array of structs, null where both are.
    fn decode_entries(&self, node: &ColumnNode) -> Result<(ArrayRef, ArrayRef)> {
        let [key, value] = node.children.as_slice() else {
            return Err(Error::internal("a map column without keys and values"));
        };
        let keys = self.decode(key, None)?;
        let values = self.decode(value, Some(keys.len()))?;
        if let Some(chunk) = node.entries_chunk {
            let page = (self.pages)(chunk)?;
            let stored = page.node_data(self.limits).at(page.path, page.offset, PART)?;
            if stored.len() != keys.len().saturating_mul(2) {
                let found = format!("{} bytes", stored.len());
                let error = Error::corrupt(format!("{} entries of a map", keys.len()), found);
                return Err(error.at(page.path, page.offset, PART));
            }
        }
        Ok((keys.array(0, keys.len())?, values.array(0, values.len())?))
    }
}

/// Structs of these fields, null where all of them are.
pub(crate) fn structs(node: &ColumnNode, children: Vec<ArrayRef>) -> Result<ArrayRef> {
    let DataType::Struct(fields) = node.field.data_type() else {
        return Err(Error::internal("a struct column without fields"));
    };
    let nulls = all_null(&children);
    Ok(Arc::new(StructArray::try_new(fields.clone(), children, nulls)?))
}

/// Null where every one of `arrays` is.
fn all_null(arrays: &[ArrayRef]) -> Option<NullBuffer> {
    let mut is_value: Option<BooleanBuffer> = None;
    for array in arrays {
        // A child without nulls makes every value one.
        let nulls = array.nulls().filter(|nulls| nulls.null_count() > 0)?;
        is_value = Some(match is_value {
            Some(before) => &before | nulls.inner(),
            None => nulls.inner().clone(),
        });
    }
    is_value.map(NullBuffer::new).filter(|nulls| nulls.null_count() > 0)
}

/// Where the elements of each value lie.
struct Layout {
    offsets: OffsetBuffer<i32>,
    nulls: Option<NullBuffer>,
    /// Which elements they are, if not all in order.
    elements: Option<UInt32Array>,
}

impl Layout {
    /// Reads counts and places; a value whose only element `is_null` is null and has none.
    fn parse(bytes: &[u8], elements: usize, is_null: impl Fn(usize) -> bool) -> Result<Self> {
        let (nodes, _) = bytes.as_chunks::<8>();
        let mut offsets = Vec::with_capacity(nodes.len().saturating_add(1));
        let mut is_value = Vec::with_capacity(nodes.len());
        let mut taken = Vec::new();
        offsets.push(0i32);
        for node in nodes {
            let (count, first) = node.split_at(4);
            let number = |bytes: &[u8]| bytes.first_chunk().map_or(-1, |bytes| i32::from_be_bytes(*bytes));
            let (count, first) = (i64::from(number(count)), i64::from(number(first)));
            let end = usize::try_from(first.saturating_add(count)).unwrap_or(usize::MAX);
            let (Ok(start), Ok(count)) = (usize::try_from(first), usize::try_from(count)) else {
                return Err(Error::corrupt("elements of an array", format!("{count} at {first}")));
            };
            if count > 0 && end > elements {
                let found = format!("{count} at {start}");
                return Err(Error::corrupt(format!("elements among {elements}"), found));
            }
            let is_null = count == 1 && is_null(start);
            is_value.push(!is_null);
            if !is_null {
                // More elements in all than the child has would be taken twice: nothing writes that.
                if taken.len().saturating_add(count) > elements {
                    return Err(Error::corrupt(format!("{elements} elements in all"), "more"));
                }
                taken.extend(
                    (start..start.saturating_add(count)).map(|place| u32::try_from(place).unwrap_or(0)),
                );
            }
            offsets.push(i32::try_from(taken.len()).unwrap_or(i32::MAX));
        }
        let is_whole =
            taken.len() == elements && taken.iter().zip(0u32..).all(|(place, next)| *place == next);
        let nulls = NullBuffer::from(is_value);
        Ok(Self {
            offsets: OffsetBuffer::new(offsets.into()),
            nulls: (nulls.null_count() > 0).then_some(nulls),
            elements: (!is_whole).then(|| UInt32Array::from(taken)),
        })
    }

    fn take(&self, array: &ArrayRef) -> Result<ArrayRef> {
        Ok(match &self.elements {
            Some(places) => arrow_select::take::take(array, places, None)?,
            None => Arc::clone(array),
        })
    }
}

pub(crate) fn list(node: &ColumnNode, bytes: &[u8], items: &ArrayRef) -> Result<ArrayRef> {
    let DataType::List(item) = node.field.data_type() else {
        return Err(Error::internal("an array column that is no list"));
    };
    let layout = Layout::parse(bytes, items.len(), |place| items.is_null(place))?;
    let items = layout.take(items)?;
    Ok(Arc::new(ListArray::try_new(Arc::clone(item), layout.offsets, items, layout.nulls)?))
}

pub(crate) fn map(
    node: &ColumnNode,
    bytes: &[u8],
    (keys, values): &(ArrayRef, ArrayRef),
) -> Result<ArrayRef> {
    let DataType::Map(entries, is_sorted) = node.field.data_type() else {
        return Err(Error::internal("a map column that is no map"));
    };
    let DataType::Struct(fields) = entries.data_type() else {
        return Err(Error::internal("a map column without entries"));
    };
    let layout = Layout::parse(bytes, keys.len(), |place| keys.is_null(place) && values.is_null(place))?;
    let (keys, values) = (layout.take(keys)?, layout.take(values)?);
    if keys.null_count() > 0 {
        return Err(Error::corrupt("a key in every entry of a map", "null"));
    }
    let structs = StructArray::try_new(fields.clone(), vec![keys, values], None)?;
    Ok(Arc::new(MapArray::try_new(Arc::clone(entries), layout.offsets, structs, layout.nulls, *is_sorted)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nodes(pairs: &[(i32, i32)]) -> Vec<u8> {
        pairs.iter().flat_map(|(count, first)| [count.to_be_bytes(), first.to_be_bytes()].concat()).collect()
    }

    #[test]
    fn one_null_element_is_a_null_array() {
        let layout = Layout::parse(&nodes(&[(2, 0), (1, 2), (0, 0), (1, 3)]), 4, |place| place == 2).unwrap();
        assert_eq!(layout.offsets.as_ref(), &[0, 2, 2, 2, 3]);
        assert_eq!(layout.nulls.unwrap().iter().collect::<Vec<_>>(), [true, false, true, true]);
        assert_eq!(layout.elements.unwrap().values(), &[0, 1, 3]);
    }

    #[test]
    fn elements_outside_the_child_are_refused() {
        for bad in [&[(2, 3)][..], &[(-1, 0)], &[(1, -1)], &[(i32::MAX, i32::MAX)], &[(3, 0), (3, 0)]] {
            assert!(Layout::parse(&nodes(bad), 4, |_| false).is_err(), "{bad:?}");
        }
        let whole = Layout::parse(&nodes(&[(3, 0), (1, 3)]), 4, |_| false).unwrap();
        assert!(whole.elements.is_none());
    }
}
